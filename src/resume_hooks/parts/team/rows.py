"""What the team's server sends, as typed values; no other module sees a raw one.

Whoever runs the server, and any member who can write a row, counts as an attacker: a column may
hold anything. Every value is read here by the parser of its column, and a row with a value that is
none of its kind is left out and counted, never raised: the rows beside it count. A query casts each
column to text, or to ``bytea`` where it is bytes, so that no reader of the driver's ever sees it.
What one answer takes in memory is bounded where the system can do that (Linux).
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from resume_hooks import clock
from resume_hooks.paths import is_session_id
from resume_hooks.system.text import collapse_line, format_count, plain_line

if TYPE_CHECKING:
    import psycopg

MOST_ANSWER = 64 * 1024 * 1024
"""Bytes that the process may grow by while an answer is waited for.

The largest that we ask for has 10 MB.
"""

MOST_ROWS = 50_000
"""Rows of an answer that are read; each takes several times its bytes here.

A file of 10 GB has 40,000 pieces.
"""

MOST_TEXT = 64 * 1024
"""Bytes of a value that is text; a longer one is not ours."""

MOST_NUMBER = 2**63 - 1
DIGEST = 32
"""Bytes of a SHA-256."""

_DATA = 5
"""Which word of ``statm`` counts the pages that can be written, and are no file's."""

_WHOLE = re.compile(rb"-?[0-9]{1,19}")

_LATE = "The server took too long over all of it: what had come by then is shown."

Parser = Callable[["bytes | None"], Any]
"""Reads one value as it was sent, None for a null. ValueError where it has another form."""

Row = TypeVar("Row")


class Form(NamedTuple, Generic[Row]):
    """What the rows of a query are: the value that they make, and a parser for each of its fields."""

    make: Callable[..., Row]
    columns: tuple[Parser, ...]

    def read(self, values: Sequence[bytes | None]) -> Row:
        """A row. ValueError where a value has another form."""
        return self.make(*(parse(value) for parse, value in zip(self.columns, values, strict=True)))


class Database:
    """A team's database that we are connected to. ``refused`` counts the rows that were left out.

    ``end`` is the instant, by the monotonic clock, until which answers are waited for, all
    together.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.refused = 0
        self.end = math.inf
        self._was_late = False

    def limit(self, seconds: float) -> None:
        """Wait for all answers together so many seconds from now on."""
        self.end = time.monotonic() + seconds

    def is_late(self) -> bool:
        """Whether that time is over, for an act that has more to ask: ``notes`` say then that it did not."""
        self._was_late = self._was_late or time.monotonic() > self.end
        return self._was_late

    @property
    def closed(self) -> bool:
        """Whether nothing more can be asked."""
        return self.connection.closed

    def close(self) -> None:
        """End the connection, also amid an answer."""
        self.connection.close()

    def transaction(self) -> contextlib.AbstractContextManager[object]:
        """All that is done within the block is done, or nothing."""
        return self.connection.transaction()

    def run(self, statement: str, values: Sequence[object] = ()) -> None:
        """Have something done that has no answer; several statements where there are no values."""
        self.connection.execute(statement.encode(), values or None)

    def rows(
        self, query: str, values: Sequence[object] | Mapping[str, object], form: Form[Row]
    ) -> list[Row]:
        """The rows of a query that are what they should be."""
        with self.connection.cursor(binary=True) as cursor:
            cursor.execute(query.encode(), values)
            found, refused = _read(cursor.pgresult, form)
        self.refused += refused
        return found

    def row(self, query: str, values: Sequence[object], form: Form[Row]) -> Row | None:
        """The first such row; None for none."""
        return next(iter(self.rows(query, values, form)), None)

    def value(
        self, query: str, values: Sequence[object], parse: Callable[[bytes | None], Row]
    ) -> Row | None:
        """The one value of a query; None without a row, and for another form."""
        return self.row(query, values, Form(_same, (parse,)))

    @property
    def notes(self) -> list[str]:
        """What to say of rows that were left out, and of what was not asked any more."""
        said = (
            f"{format_count(self.refused, 'row')} of the server were not what they should be, and "
            "were left out."
        )
        notes = [said] if self.refused else []
        if self._was_late:
            return [*notes, _LATE]
        return notes


async def rows_of(
    connection: psycopg.AsyncConnection[Any], query: str, values: Sequence[object], form: Form[Row]
) -> tuple[list[Row], int]:
    """The same for a program that waits by ``await``, and how many rows were left out."""
    async with connection.cursor(binary=True) as cursor:
        await cursor.execute(query.encode(), values)
        return _read(cursor.pgresult, form)


def _read(result: Any, form: Form[Row]) -> tuple[list[Row], int]:
    """The rows of a result, by libpq's own functions, and how many were none of the form."""
    found: list[Row] = []
    count = result.ntuples if result else 0
    for number in range(min(count, MOST_ROWS)):
        try:
            found.append(
                form.read([result.get_value(number, column) for column in range(result.nfields)])
            )
        except (ValueError, OverflowError, OSError, RecursionError):  # the middle ones of instants
            continue
    return found, count - len(found)


def parse_whole_number(least: int, most: int = MOST_NUMBER) -> Callable[[bytes | None], int]:
    """A parser of whole numbers between two."""

    def parse(raw: bytes | None) -> int:
        if raw is None or not _WHOLE.fullmatch(raw) or not least <= int(raw) <= most:
            raise ValueError
        return int(raw)

    return parse


row_number = parse_whole_number(1)
"""A row of ours on the server."""

count = parse_whole_number(0)


def truth(raw: bytes | None) -> bool:
    """A boolean."""
    if raw not in {b"true", b"false"}:
        raise ValueError
    return raw == b"true"


def parse_text(raw: bytes | None) -> str:
    """Text as it is, ``MOST_TEXT`` bytes at most: for a program, never for a screen or a path."""
    return _text(raw)


def real(raw: bytes | None) -> float:
    """A finite number."""
    number = float(_text(raw))
    if not math.isfinite(number):
        raise ValueError
    return number


def parse_session_id(raw: bytes | None) -> str:
    """The id of a session, which alone may become part of a path."""
    text = _text(raw)
    if not is_session_id(text):
        raise ValueError
    return text


def session_id_or_none(raw: bytes | None) -> str:
    """The id of a session; ``""`` for anything else."""
    text = _text(raw)
    if is_session_id(text):
        return text
    return ""


def login(raw: bytes | None) -> str:
    """The name of a role: no control character, no white space but single spaces, 63 bytes at most."""
    text = _text(raw)
    if raw is None or not 0 < len(raw) <= 63 or collapse_line(plain_line(text), len(text)) != text:
        raise ValueError
    return text


def login_or_none(raw: bytes | None) -> str:
    """The same, or ``""``."""
    if raw:
        return login(raw)
    return ""


def logins(raw: bytes | None) -> tuple[str, ...]:
    """A JSON list of names of roles; none for a null."""
    names = json.loads(_text(raw)) if raw is not None else []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError
    return tuple(login(name.encode()) for name in names)


def parse_line(most: int) -> Callable[[bytes | None], str]:
    """A parser of words to be shown: one line without control characters, cut to ``most`` of them."""

    def parse(raw: bytes | None) -> str:
        return collapse_line(plain_line(_text(raw)), most)

    return parse


def parse_folder(raw: bytes | None) -> str:
    """A folder on somebody's machine, as it is shown, never opened."""
    return plain_line(_text(raw))[:4096]


def parse_instant(raw: bytes | None) -> str:
    """An instant that a client wrote, in the form of the transcripts; ``""`` for anything else."""
    return clock.normalize_timestamp(_text(raw))


def epoch(raw: bytes | None) -> datetime:
    """An instant of the server's own, sent in seconds since the epoch."""
    return datetime.fromtimestamp(real(raw), UTC)


def one_of(words: Mapping[str, str]) -> Callable[[bytes | None], str]:
    """A parser of one of some words, as what it means to us."""

    def parse(raw: bytes | None) -> str:
        meaning = words.get(_text(raw))
        if meaning is None:
            raise ValueError
        return meaning

    return parse


def blob(most: int, least: int = 0) -> Callable[[bytes | None], bytes]:
    """A parser of bytes, so many at least and at most."""

    def parse(raw: bytes | None) -> bytes:
        if raw is None or not least <= len(raw) <= most:
            raise ValueError
        return raw

    return parse


digest = blob(DIGEST, DIGEST)


def parse_head(raw: bytes | None) -> bytes:
    """The digest of all that came before a place; empty at the first."""
    if raw is None or len(raw) not in {0, DIGEST}:
        raise ValueError
    return raw


def _text(raw: bytes | None) -> str:
    if raw is None or len(raw) > MOST_TEXT:
        raise ValueError
    return raw.decode()  # a UnicodeDecodeError is a ValueError


def _same(value: Row) -> Row:
    return value


@functools.cache
def _own_limits() -> tuple[int, int]:
    """The limits that the process was started with: of two threads that wait at once one would restore the other's."""
    import resource  # as below

    return resource.getrlimit(resource.RLIMIT_DATA)


@contextlib.contextmanager
def bounded_memory() -> Iterator[None]:
    """While the block runs the process grows by ``MOST_ANSWER`` at most: libpq then gives an answer up.

    The length of a message is the server's word, and libpq takes up to 2 GB in before we see any of
    it.
    """
    try:
        import resource  # Windows has none

        with open("/proc/self/statm", "rb") as stream:
            now = int(stream.read().split()[_DATA]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, OSError, ValueError):
        yield
        return
    before, hard = _own_limits()
    limits = []
    for limit in (before, hard, now + MOST_ANSWER):
        if limit != resource.RLIM_INFINITY:
            limits.append(limit)
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, hard))
