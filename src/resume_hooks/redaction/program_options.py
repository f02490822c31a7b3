"""Passwords in the arguments of programs: ``mysql -p``, ``docker login -p``, ``curl -u``, ``net use``."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple

from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.redaction.passwords import password_spans
from resume_hooks.redaction.spans import Span
from resume_hooks.redaction.ways import VALUE, any_except


class Option(NamedTuple):
    """An ``option`` of some ``programs``, the text after the programs' names, and the notation of the password."""

    option: bytes
    programs: tuple[bytes, ...]
    after: re.Pattern[bytes]
    argument: re.Pattern[bytes]


_SPACE = rb"[ \t]{1,4}"
_END = rb"(?:\s|\Z)"
OPTIONS = [
    Option(b" -p", (b"mysql", b"mariadb"), late(rb"[\w-]{0,12}" + _END), late(rb" -p" + VALUE)),
    Option(
        b" -p", (b" login", b"\tlogin", b"sshpass"), late(_END), late(rb" -p[ \t=]{0,4}" + VALUE)
    ),
    Option(
        b" -p",
        (
            b"mongo",
            b"7z",
            b"winrm",
            b"mapexec",
            b"netexec",
            b"rar",
            b"veracrypt",
            b"usermod",
            b"keychain",
        ),
        late(rb"[\w-]{0,12}" + _END),
        late(rb" -p[ \t]{0,4}" + VALUE),
    ),
    Option(
        b" -p",
        (b"sqlcmd", b"zip", b"mosquitto_", b"bcp"),
        late(rb"[\w-]{0,12}" + _END),
        late(rb" -P[ \t]{0,4}" + VALUE),
    ),
    Option(
        b"-u",
        (b"smb", b"lftp"),
        late(rb"[\w-]{0,12}" + _END),
        late(
            rb"-[uU]"
            + _SPACE
            + rb"[\"']?[^\s%,\"']{1,60}[%,](?P<bare>"
            + any_except(b"\"'\\")
            + rb"{6,200})"
        ),
    ),
    Option(
        b" -p",
        (b" -u", b" -U", b" --user", b" --login", b" --admin-user", b" -l", b" -n"),
        late(rb"(?:ser|sername|name)?[ =]"),
        late(rb" -[pP][ \t=]{0,2}(?![^\s]{0,40}:\d)" + VALUE),
    ),
    Option(
        b" -w",
        (b"security ",),
        late(rb"[a-z]{2,12}-[a-z-]{2,40}" + _END),
        late(rb" -w[ \t]{0,4}" + VALUE),
    ),
    Option(b" -w", (b"ipa-",), late(rb"[\w-]{0,20}" + _END), late(rb" -w[ \t]{0,4}" + VALUE)),
    Option(b" -w", (b" -U", b" -D", b" -d"), late(rb"[ ]"), late(rb" -w[ \t]{0,4}" + VALUE)),
    Option(b" /rp", (b" /ru",), late(_END), late(rb" /rp[ \t]{1,4}" + VALUE)),
    Option(b" -p", (b"psexec", b"rdesktop"), late(_END), late(rb" -p[ \t]{1,4}" + VALUE)),
    Option(b" /p:", (b"freerdp",), late(_END), late(rb" /p:" + VALUE)),
    Option(b"-creds", (b"skopeo",), late(_END), late(rb"-creds[ =]{1,4}[\w.-]{1,60}:" + VALUE)),
    Option(b" -w", (b"ldap",), late(rb"[a-z]{3,8}" + _END), late(rb" -w[ \t]{0,4}" + VALUE)),
    Option(b" -a", (b"redis-cli",), late(_END), late(rb" -a[ \t]{1,4}" + VALUE)),
    Option(
        b"-u",
        (b"curl", b"wget", b"http ", b"httpie"),
        late(rb"\s"),
        late(
            rb"-u(?:ser)?[ =]?\\{0,3}[\"']?[^\s:/\"'\\]{1,128}:(?P<bare>"
            + any_except(b"\"'\\")
            + rb"{6,200})"
        ),
    ),
]

_FARTHEST = 300
"""The number of bytes before an option to search for its program."""

_COMMAND_ENDS = (b"\n", b";", b"|", b"&")
_COMMAND_END = late(rb"[\n;|&]")


def argument_spans(raw: bytes, places: Iterable[int], option: bytes) -> Iterator[Span]:
    """Yield the passwords that are passed to programs with an option at one of ``places``."""
    for place, row in _places_of_option(raw, places, option):
        if found := row.argument.match(raw, place):
            yield from password_spans(found, sure=b" -u" not in row.programs)


def may_be_arguments(lower: bytes, places: Iterable[int], option: bytes) -> Iterator[int]:
    """Yield an option's positions at which it belongs to a program that takes a password."""
    return (place for place, _ in _places_of_option(lower, places, option))


def _places_of_option(
    raw: bytes, places: Iterable[int], option: bytes
) -> Iterator[tuple[int, Option]]:
    """Yield an option's positions after one of its programs in the same command, each with the matching option."""
    rows = [row for row in OPTIONS if row.option == option]
    called: list[tuple[Option, list[int]]] = []
    end = 0
    for place in places:
        if place >= end:
            begin = (
                max(raw.rfind(sign, max(0, place - _FARTHEST), place) for sign in _COMMAND_ENDS) + 1
            )
            begin = max(begin, place - _FARTHEST, 0)
            stop = _COMMAND_END.search(raw, place)
            end = stop.start() if stop else len(raw)
            called = [
                (row, starts) for row in rows if (starts := _ends_of_programs(raw, row, begin, end))
            ]
        for row, starts in called:
            number = bisect(starts, place)
            if number and place - starts[number - 1] <= _FARTHEST:
                yield place, row
                break


def _ends_of_programs(raw: bytes, row: Option, begin: int, end: int) -> list[int]:
    """Return the ends of the names of an option's programs in a command, in order."""
    places = sorted(
        place for program in row.programs for place in _ends_of_word(raw, program, begin, end)
    )
    return [place for place in places if row.after.match(raw, place)]


def _ends_of_word(raw: bytes, word: bytes, begin: int, end: int) -> Iterator[int]:
    """Yield the end of each occurrence of a word in a range."""
    place = raw.find(word, begin, end)
    while place >= 0:
        yield place + len(word)
        place = raw.find(word, place + len(word), end)


NAMED = [
    late(rb"(?<=ldap)passwd(?=[ \t])[^\n|;&]{0,200}?[ \t]-s[ \t]{0,4}" + VALUE),
    late(rb"(?<=wpa_)passphrase[ \t]+(?:\"[^\"\n]{1,60}\"|\S{1,60})[ \t]+" + VALUE),
    late(rb"(?<=ht)passwd[ \t]+-[a-zA-Z]{0,6}n[a-zA-Z]{0,6}[ \t]+[^\s-]\S{0,60}[ \t]+" + VALUE),
    late(rb"(?<=ht)passwd(?:[ \t]+-\w{1,8}){1,4}[ \t]+[^\s-]\S{0,100}[ \t]+\S{1,60}[ \t]+" + VALUE),
    late(rb"secrets set[ \t]+\w{1,60}=" + VALUE),
]
"""Commands whose names contain a word for a secret, from that word on, in the same notation."""

_READS = rb"(?<=ch)passwd|passwd --stdin|password-stdin|passphrase-fd|secret put"
_READER = late(_READS)
"""A program that reads a password from its input, from its word for the password on."""

_CALLED = late(_READS + rb"|(?<=wpa_)passphrase|(?<=ht)passwd|(?<=ldap)passwd|secrets set")
"""Matches either kind of command."""

_PIPED = late(
    rb"(?:echo|printf)[ \t]+(?:-\w{1,3}[ \t]+|[\"']%s(?:\\n)?[\"'][ \t]+){0,3}"
    rb"(?:(?P<quote>[\"'])(?:[\w.@-]{1,60}:)?(?P<quoted>[^\"'\r\n\\:]{6,200})(?P=quote)"
    rb"|(?:[\w.@-]{1,60}:)?(?P<bare>"
    + any_except(b"\"'`,;<>(){}|\\:")
    + rb"{6,200}))[ \t]{0,4}\|[^|\n]{0,100}\Z"
)
_HERE = late(rb"[^|\n<]{1,60}<<<[ \t]*" + VALUE)


def is_command(lower: bytes, place: int) -> object:
    """Check whether a word for a secret at ``place`` is part of a command's name."""
    return _CALLED.match(lower, place)


def named_command_spans(raw: bytes, place: int) -> Generator[Span, None, None]:
    """Yield the password of a command whose name contains a word for a secret at ``place``.

    There is at most one.
    """
    if not _CALLED.match(raw, place):
        return
    if _READER.match(raw, place):
        yield from piped_spans(raw, place)
    elif found := next(filter(None, (one.match(raw, place) for one in NAMED)), None):
        yield from password_spans(found)


def piped_spans(raw: bytes, place: int) -> Generator[Span, None, None]:
    """Yield the input of the password reader at ``place``, which comes from a pipe or follows the reader.

    There is at most one.
    """
    if found := _PIPED.search(raw, max(0, place - _FARTHEST), place) or _HERE.match(raw, place):
        yield from password_spans(found, sure=True)
