"""Passwords among the arguments of programs: ``mysql -p``, ``docker login -p``, ``curl -u``, ``net use``."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.redaction.passwords import VALUE, but, password_of
from resume_hooks.redaction.spans import Span


class Option(NamedTuple):
    """An ``option`` of some ``programs``, each with what follows its name, and how a password is given by it."""

    option: bytes
    programs: tuple[bytes, ...]
    after: re.Pattern[bytes]
    argument: re.Pattern[bytes]


_END = rb"(?:\s|\Z)"
OPTIONS = [
    Option(b" -p", (b"mysql", b"mariadb"), late(rb"[\w-]{0,12}" + _END), late(rb" -p" + VALUE)),
    Option(b" -p", (b" login", b"\tlogin", b"sshpass"), late(_END), late(rb" -p[ \t=]{0,4}" + VALUE)),
    Option(b" -w", (b"ldap",), late(rb"[a-z]{3,8}" + _END), late(rb" -w[ \t]{0,4}" + VALUE)),
    Option(b" -a", (b"redis-cli",), late(_END), late(rb" -a[ \t]{1,4}" + VALUE)),
    Option(
        b"-u",
        (b"curl",),
        late(rb"\s"),
        late(rb"-u(?:ser)?[ =]?\\{0,3}[\"']?[^\s:/\"'\\]{1,64}:(?P<bare>" + but(b"\"'\\") + rb"{6,200})"),
    ),
]

_FARTHEST = 300
"""Bytes before an option in which its program stands."""

_COMMAND_END = re.compile(rb"[\n;|&]")
_NET_USE = late(rb"(?i)net use[ \t]+(?:[a-z*]:?[ \t]+)?\\{2,8}\S{1,200}(?:[ \t]+/\S{1,100}+){0,4}[ \t]+(?!/)" + VALUE)


def arguments(raw: bytes, places: Iterable[int], option: bytes) -> Iterator[Span]:
    """The passwords that an option, which stands at ``places``, gives to programs."""
    for place, row in _given(raw, places, option):
        if found := row.argument.match(raw, place):
            yield from password_of(found)


def may_be_arguments(lower: bytes, places: Iterable[int], option: bytes) -> Iterator[int]:
    """Those of the places of an option at which it is one of a program that takes passwords."""
    return (place for place, _ in _given(lower, places, option))


def _given(raw: bytes, places: Iterable[int], option: bytes) -> Iterator[tuple[int, Option]]:
    """The places of an option behind one of its programs in the same command, and which of the options it is there."""
    rows = [(row, starts) for row in OPTIONS if row.option == option and (starts := list(_starts(raw, row)))]
    for place in places if rows else ():
        for row, starts in rows:
            number = bisect(starts, place)
            start = starts[number - 1] if number else place - _FARTHEST - 1
            if place - start <= _FARTHEST and not _COMMAND_END.search(raw, start, place):
                yield place, row
                break


def _starts(raw: bytes, row: Option) -> Iterator[int]:
    """Where the programs of an option are called, in order."""
    places = sorted(place for program in row.programs for place in _ends(raw, program))
    return (place for place in places if row.after.match(raw, place))


def _ends(raw: bytes, word: bytes) -> Iterator[int]:
    """Where a word ends, each time."""
    place = raw.find(word)
    while place >= 0:
        yield place + len(word)
        place = raw.find(word, place + len(word))


def net_use(raw: bytes, place: int) -> Iterator[Span]:
    """The password of ``net use`` on Windows; at most one."""
    if found := _NET_USE.match(raw, place):
        yield from password_of(found)
