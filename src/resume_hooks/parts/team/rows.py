"""Parse the values that the team's server sends. No other module receives unparsed values.

Neither the server nor the members who can write rows are trusted: a column may contain any value.
Each column has a parser that checks its values. A row with an invalid value is omitted and counted,
and the other rows are used. Queries cast each column to ``text`` or ``bytea``, so that the driver's
own converters are never used. On Linux, the memory for an answer is limited.
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

MAX_SERVER_ANSWER_BYTES = 64 * 1024 * 1024
"""The maximum number of bytes by which the memory of the process may grow while an answer is received.

The largest expected answer is 10 MB in size.
"""

MAX_ANSWER_ROWS = 50_000
"""The maximum number of rows in an answer. In memory, a row is several times as large as its data.

For comparison, a 10 GB file has 40,000 chunks, and each chunk is one row.
"""

MAX_TEXT_BYTES = 64 * 1024
"""The maximum number of bytes in a text value. This program never sends a longer text."""

MAX_BIGINT_VALUE = 2**63 - 1
SHA256_BYTES = 32
"""The number of bytes in a SHA-256 digest."""

_DATA_PAGE_COUNT_POSITION = 5
"""The index of the field in ``/proc/self/statm`` that contains the number of writable memory pages.
"""

_WHOLE_NUMBER_PATTERN = re.compile(rb"-?[0-9]{1,19}")

_TIMEOUT_NOTE = (
    "The server took too long. The answer contains only the results that arrived in time."
)

ColumnParser = Callable[["bytes | None"], Any]
"""Parses a value from the server and raises ValueError if it is invalid. The argument None is SQL's
null."""

Row = TypeVar("Row")


class RowFormat(NamedTuple, Generic[Row]):
    """The format of a query's rows: the type of a parsed row, and a parser for each of its fields."""

    row_type: Callable[..., Row]
    column_parsers: tuple[ColumnParser, ...]

    def parse_row(self, values: Sequence[bytes | None]) -> Row:
        """Return a parsed row. Raise ValueError if a value is invalid."""
        return self.row_type(
            *(parse(value) for parse, value in zip(self.column_parsers, values, strict=True))
        )


class Database:
    """An open connection to a team's database.

    ``refused_row_count`` is the number of invalid rows that were omitted. ``deadline`` is the
    deadline for all answers together, in seconds of the monotonic clock.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.refused_row_count = 0
        self.deadline = math.inf
        self._has_timed_out = False

    def set_deadline(self, seconds: float) -> None:
        """Allow ``seconds`` seconds, counted from now, for all answers together."""
        self.deadline = time.monotonic() + seconds

    def has_passed_deadline(self) -> bool:
        """Check whether the deadline has passed. If it has, ``notes`` will contain a remark about it."""
        self._has_timed_out = self._has_timed_out or time.monotonic() > self.deadline
        return self._has_timed_out

    @property
    def is_closed(self) -> bool:
        """Whether the connection is closed."""
        return self.connection.closed

    def close(self) -> None:
        """Close the connection, even if an answer is still arriving."""
        self.connection.close()

    def transaction(self) -> contextlib.AbstractContextManager[object]:
        """Return a context manager that runs its block in a transaction."""
        return self.connection.transaction()

    def run_statement(self, statement: str, values: Sequence[object] = ()) -> None:
        """Execute a statement that returns no rows.

        Without ``values``, ``statement`` may consist of several statements.
        """
        self.connection.execute(statement.encode(), values or None)

    def fetch_rows(
        self,
        query: str,
        values: Sequence[object] | Mapping[str, object],
        row_format: RowFormat[Row],
    ) -> list[Row]:
        """Return the valid rows of a query, and count its invalid rows."""
        with self.connection.cursor(binary=True) as cursor:
            cursor.execute(query.encode(), values)
            valid_rows, refused_count = _parse_result(cursor.pgresult, row_format)
        self.refused_row_count += refused_count
        return valid_rows

    def fetch_row(
        self, query: str, values: Sequence[object], row_format: RowFormat[Row]
    ) -> Row | None:
        """Return the first valid row of a query, or None if there is no valid row."""
        return next(iter(self.fetch_rows(query, values, row_format)), None)

    def fetch_value(
        self, query: str, values: Sequence[object], parse: Callable[[bytes | None], Row]
    ) -> Row | None:
        """Return the only value in a query's first row, or None if there is no row or the value is invalid."""
        return self.fetch_row(query, values, RowFormat(_return_unchanged, (parse,)))

    @property
    def notes(self) -> list[str]:
        """Notes for the user about invalid rows, and about the deadline if it has passed."""
        refused_note = f"{format_count(self.refused_row_count, 'row')} from the server were invalid and were left out."
        notes = [refused_note] if self.refused_row_count else []
        if self._has_timed_out:
            return [*notes, _TIMEOUT_NOTE]
        return notes


async def read_rows_async(
    connection: psycopg.AsyncConnection[Any],
    query: str,
    values: Sequence[object],
    row_format: RowFormat[Row],
) -> tuple[list[Row], int]:
    """Return the valid rows of a query over an asyncio connection, and the number of invalid rows."""
    async with connection.cursor(binary=True) as cursor:
        await cursor.execute(query.encode(), values)
        return _parse_result(cursor.pgresult, row_format)


def _parse_result(result: Any, row_format: RowFormat[Row]) -> tuple[list[Row], int]:
    """Return the valid rows in a result, and the number of invalid rows.

    libpq's functions read the values, so that the driver's converters are not used.
    """
    rows: list[Row] = []
    row_count = result.ntuples if result else 0
    for row_number in range(min(row_count, MAX_ANSWER_ROWS)):
        try:
            rows.append(
                row_format.parse_row(
                    [result.get_value(row_number, column) for column in range(result.nfields)]
                )
            )
        # Parsing a time can raise OverflowError or OSError.
        except (ValueError, OverflowError, OSError, RecursionError):
            continue
    return rows, row_count - len(rows)


def make_whole_number_parser(
    minimum: int, maximum: int = MAX_BIGINT_VALUE
) -> Callable[[bytes | None], int]:
    """Return a parser for whole numbers from ``minimum`` to ``maximum``."""

    def parse_number(raw: bytes | None) -> int:
        if (
            raw is None
            or not _WHOLE_NUMBER_PATTERN.fullmatch(raw)
            or not minimum <= int(raw) <= maximum
        ):
            raise ValueError
        return int(raw)

    return parse_number


parse_row_id = make_whole_number_parser(1)
"""Parses the id of a row on the server."""

parse_count = make_whole_number_parser(0)


def parse_boolean(raw: bytes | None) -> bool:
    """Parse a boolean."""
    if raw not in {b"true", b"false"}:
        raise ValueError
    return raw == b"true"


def parse_text(raw: bytes | None) -> str:
    """Parse a text of up to ``MAX_TEXT_BYTES`` bytes.

    The text may contain control characters. It must never be shown on a screen or used in a path.
    """
    return _decode_text(raw)


def parse_finite_number(raw: bytes | None) -> float:
    """Parse a finite number."""
    number = float(_decode_text(raw))
    if not math.isfinite(number):
        raise ValueError
    return number


def parse_session_id(raw: bytes | None) -> str:
    """Parse a session id. A session id is the only value from the server that may become part of a path."""
    text = _decode_text(raw)
    if not is_session_id(text):
        raise ValueError
    return text


def parse_session_id_or_empty(raw: bytes | None) -> str:
    """Parse a session id. Return ``""`` for any other value."""
    text = _decode_text(raw)
    if is_session_id(text):
        return text
    return ""


def parse_login(raw: bytes | None) -> str:
    """Parse the name of a database role.

    The name must have at most 63 bytes. It may contain single spaces, but no other white space and
    no control characters.
    """
    text = _decode_text(raw)
    if raw is None or not 0 < len(raw) <= 63 or collapse_line(plain_line(text), len(text)) != text:
        raise ValueError
    return text


def parse_login_or_empty(raw: bytes | None) -> str:
    """Parse a role name. Return ``""`` for SQL NULL."""
    if raw:
        return parse_login(raw)
    return ""


def parse_logins(raw: bytes | None) -> tuple[str, ...]:
    """Parse a JSON list of role names. Return an empty tuple for SQL NULL."""
    names = json.loads(_decode_text(raw)) if raw is not None else []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError
    return tuple(parse_login(name.encode()) for name in names)


def make_line_parser(max_characters: int) -> Callable[[bytes | None], str]:
    """Return a parser for a line of text to display.

    The parsed line has at most ``max_characters`` characters and no control characters.
    """

    def parse_single_line(raw: bytes | None) -> str:
        return collapse_line(plain_line(_decode_text(raw)), max_characters)

    return parse_single_line


def parse_folder(raw: bytes | None) -> str:
    """Parse the path of a folder on another machine. The program displays this path but never opens it."""
    return plain_line(_decode_text(raw))[:4096]


def parse_timestamp(raw: bytes | None) -> str:
    """Parse a timestamp that a client recorded, and return it in the format of transcripts.

    Return ``""`` if the timestamp is invalid.
    """
    return clock.normalize_timestamp(_decode_text(raw))


def parse_epoch_time(raw: bytes | None) -> datetime:
    """Parse a time that the server sends as seconds since the epoch."""
    return datetime.fromtimestamp(parse_finite_number(raw), UTC)


def make_keyword_parser(values_by_text: Mapping[str, str]) -> Callable[[bytes | None], str]:
    """Return a parser that maps each text in ``values_by_text`` to its value and accepts no other text."""

    def parse_keyword(raw: bytes | None) -> str:
        value = values_by_text.get(_decode_text(raw))
        if value is None:
            raise ValueError
        return value

    return parse_keyword


def make_bytes_parser(max_bytes: int, min_bytes: int = 0) -> Callable[[bytes | None], bytes]:
    """Return a parser for bytes of a limited length."""

    def parse_bytes(raw: bytes | None) -> bytes:
        if raw is None or not min_bytes <= len(raw) <= max_bytes:
            raise ValueError
        return raw

    return parse_bytes


parse_digest = make_bytes_parser(SHA256_BYTES, SHA256_BYTES)


def parse_chain_digest(raw: bytes | None) -> bytes:
    """Parse the digest of all chunks of a file. It is empty if the file has no chunks."""
    if raw is None or len(raw) not in {0, SHA256_BYTES}:
        raise ValueError
    return raw


def _decode_text(raw: bytes | None) -> str:
    if raw is None or len(raw) > MAX_TEXT_BYTES:
        raise ValueError
    return raw.decode()  # UnicodeDecodeError is a ValueError.


def _return_unchanged(value: Row) -> Row:
    return value


@functools.cache
def _read_initial_memory_limits() -> tuple[int, int]:
    """Return the memory limits that the process had when this function was first called.

    The limits are cached because another thread may have lowered them by the time of a later call.
    """
    import resource  # Windows does not have this module.

    return resource.getrlimit(resource.RLIMIT_DATA)


@contextlib.contextmanager
def limit_memory() -> Iterator[None]:
    """Limit the growth of the process to ``MAX_SERVER_ANSWER_BYTES`` inside the block.

    libpq trusts the message length that the server announces, and buffers up to 2 GB before this
    program sees the message. With the limit, libpq aborts a larger message.
    """
    try:
        import resource  # Windows does not have this module.

        with open("/proc/self/statm", "rb") as stream:
            current_bytes = int(stream.read().split()[_DATA_PAGE_COUNT_POSITION]) * os.sysconf(
                "SC_PAGE_SIZE"
            )
    except (ImportError, OSError, ValueError):
        yield
        return
    soft_limit, hard_limit = _read_initial_memory_limits()
    limits = []
    for byte_limit in (soft_limit, hard_limit, current_bytes + MAX_SERVER_ANSWER_BYTES):
        if byte_limit != resource.RLIM_INFINITY:
            limits.append(byte_limit)
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard_limit))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft_limit, hard_limit))
