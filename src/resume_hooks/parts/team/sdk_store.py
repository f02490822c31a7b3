"""Implement the Agent SDK's ``SessionStore`` in the team's database.

The class does not inherit from the SDK's class. The SDK is imported only to compute the summary of
a session, and only in a program that has the SDK. A stored session can be read only by its owner
and is not redacted, because ``load`` must return exactly the entries that were appended. To share a
session with other members, use ``team push``.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from resume_hooks.errors import UsageError
from resume_hooks.parts.team import rows
from resume_hooks.parts.team.connect import (
    INVALID_SERVER_ANSWER_ADVICE,
    TeamRequestFailed,
    connect_async,
    validate_service_name,
)
from resume_hooks.parts.team.rows import RowFormat

if TYPE_CHECKING:
    import psycopg

Entry = dict[str, Any]
SessionKey = dict[str, Any]
Row = TypeVar("Row")

MAX_LOADED_BYTES = 1024 * 1024 * 1024
"""The maximum total size, in bytes, of a loaded session's entries as JSON."""


class _StoredPart(NamedTuple):
    row_id: int
    entry_count: int
    summary: bytes


class _ListedTranscript(NamedTuple):
    name: str
    mtime: int


class _StoredSummary(NamedTuple):
    summary: bytes
    mtime: int


_parse_bytes = rows.make_bytes_parser(MAX_LOADED_BYTES)


def _parse_bytes_or_empty(raw: bytes | None) -> bytes:
    return raw or b""


_PART_ROW_FORMAT = RowFormat(
    _StoredPart, (rows.parse_row_id, rows.parse_count, _parse_bytes_or_empty)
)
_TRANSCRIPT_ROW_FORMAT = RowFormat(_ListedTranscript, (rows.parse_text, rows.parse_count))
_SUMMARY_ROW_FORMAT = RowFormat(_StoredSummary, (_parse_bytes, rows.parse_count))
_DATA_ROW_FORMAT = RowFormat(bytes, (_parse_bytes,))
_TEXT_ROW_FORMAT = RowFormat(str, (rows.parse_text,))


class PostgresSessionStore:
    """A store for ``ClaudeAgentOptions(session_store=...)`` in a team's database.

    ``service`` is the name of the team's libpq service.
    """

    def __init__(self, service: str) -> None:
        self._service = validate_service_name(service)

    async def append(self, key: SessionKey, entries: Sequence[Entry]) -> None:
        """Append entries to a transcript in one transaction.

        An entry is skipped if the transcript already contains an entry with its uuid.
        """
        if not entries:
            return
        async with connect_async(self._service) as db, db.transaction():
            values = (*_parse_session_key(key), key.get("subpath") or "")
            await db.execute(
                (
                    "insert into team.sdk_part(project_key, session_id, subpath) values(%s, "
                    "%s, %s) on conflict do nothing"
                ),
                values,
            )
            parts = await _fetch_only_valid_rows(
                db,
                "select id::text, entries::text, summary from team.sdk_part"
                " where owner = team.me() and project_key = %s and session_id = %s and subpath = %s for update",
                values,
                _PART_ROW_FORMAT,
            )
            if not parts:
                raise UsageError(
                    "The session was deleted while entries were added", "Append them again."
                )
            part_row, entry_count, summary = parts[0]
            uuids = []
            for entry in entries:
                if isinstance(entry.get("uuid"), str) and entry["uuid"]:
                    uuids.append(entry["uuid"])
            answer = await _fetch_only_valid_rows(
                db,
                "insert into team.sdk_seen select %s, u from unnest(%s::bytea[]) u"
                " on conflict do nothing returning uuid",
                (
                    part_row,
                    [uuid.encode("utf-8", "surrogatepass") for uuid in dict.fromkeys(uuids)],
                ),
                _DATA_ROW_FORMAT,
            )
            new_uuids = {uuid.decode("utf-8", "surrogatepass") for uuid in answer}
            new_entries = []
            for entry in entries:
                uuid = entry.get("uuid")
                if not (isinstance(uuid, str) and uuid) or uuid in new_uuids:
                    new_entries.append(entry)
                    new_uuids.discard(str(uuid))
            if not new_entries:
                return
            folded_summary = None
            if not key.get("subpath"):
                from claude_agent_sdk import fold_session_summary

                known_summary = json.loads(summary) if summary else None
                fields = fold_session_summary(known_summary, key, new_entries)  # type: ignore[arg-type]
                folded_summary = json.dumps(fields).encode()
            compressed = zlib.compress(
                b"\n".join(json.dumps(entry).encode() for entry in new_entries)
            )
            await db.execute(
                "insert into team.sdk_chunk values(%s, %s, %s)", (part_row, entry_count, compressed)
            )
            await db.execute(
                "update team.sdk_part set entries = entries + %s, summary = coalesce(%s, summary),"
                " mtime = greatest(mtime + 1, (extract(epoch from clock_timestamp()) * 1000)::bigint) where id = %s",
                (len(new_entries), folded_summary, part_row),
            )

    async def load(self, key: SessionKey) -> list[Entry] | None:
        """Return all entries in the order in which they were appended, or None if there are none."""
        chunks = await self._fetch_rows(
            "select c.data from team.sdk_chunk c join team.sdk_part p on p.id = c.part"
            " where owner = team.me() and project_key = %s and session_id = %s and subpath = %s"
            " order by c.first",
            (*_parse_session_key(key), key.get("subpath") or ""),
            _DATA_ROW_FORMAT,
        )
        if chunks:
            return _unpack_entries(chunks)
        return None

    async def list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        """Return the sessions of a project as dictionaries with the keys ``session_id`` and ``mtime``.

        ``mtime`` is the time of the session's last change, in milliseconds.
        """
        query = (
            "select session_id, mtime::text from team.sdk_part"
            " where owner = team.me() and project_key = %s and subpath = ''"
        )
        rows = await self._fetch_rows(query, (project_key,), _TRANSCRIPT_ROW_FORMAT)
        sessions = []
        for row in rows:
            sessions.append({"session_id": row.name, "mtime": row.mtime})
        return sessions

    async def list_session_summaries(self, project_key: str) -> list[dict[str, Any]]:
        """Return the summaries of a project's sessions.

        Each summary is a dictionary. Its key ``mtime`` is the time of the session's last change.
        """
        query = (
            "select summary, mtime::text from team.sdk_part"
            " where owner = team.me() and project_key = %s and subpath = '' and summary is not null"
        )
        rows = await self._fetch_rows(query, (project_key,), _SUMMARY_ROW_FORMAT)
        summaries = []
        for row in rows:
            summaries.append({**json.loads(row.summary), "mtime": row.mtime})
        return summaries

    async def delete(self, key: SessionKey) -> None:
        """Delete a transcript. If it is a session's main transcript, also delete those of its sub-agents."""
        subpath = key.get("subpath")
        async with connect_async(self._service) as db:
            await db.execute(
                "select team.sdk_delete(%s, %s, %s)", (*_parse_session_key(key), subpath or None)
            )

    async def list_subkeys(self, key: SessionKey) -> list[str]:
        """Return the subpaths of a session's sub-agent transcripts."""
        query = (
            "select subpath from team.sdk_part"
            " where owner = team.me() and project_key = %s and session_id = %s and subpath <> ''"
        )
        return await self._fetch_rows(query, _parse_session_key(key), _TEXT_ROW_FORMAT)

    async def _fetch_rows(
        self, query: str, values: Sequence[object], row_format: RowFormat[Row]
    ) -> list[Row]:
        async with connect_async(self._service) as db:
            return await _fetch_only_valid_rows(db, query, values, row_format)


async def _fetch_only_valid_rows(
    db: psycopg.AsyncConnection[Any],
    query: str,
    values: Sequence[object],
    row_format: RowFormat[Row],
) -> list[Row]:
    """Return the rows of a query. Raise TeamRequestFailed if a row is invalid.

    If invalid rows were skipped, the loaded session would lack entries.
    """
    valid_rows, refused_count = await rows.read_rows_async(db, query, values, row_format)
    if refused_count:
        raise _build_damage_error()
    return valid_rows


def _unpack_entries(chunks: Iterable[bytes]) -> list[Entry]:
    """Return the entries in compressed chunks.

    Raise TeamRequestFailed if a chunk is damaged or if the entries exceed ``MAX_LOADED_BYTES``
    bytes.
    """
    entries: list[Entry] = []
    remaining_bytes = MAX_LOADED_BYTES
    for packed_chunk in chunks:
        decompressor = zlib.decompressobj()
        try:
            body = decompressor.decompress(packed_chunk, remaining_bytes)
            if not decompressor.eof:
                raise _build_damage_error()
            for line in body.split(b"\n"):
                entries.append(json.loads(line))
        except (zlib.error, ValueError, RecursionError) as error:
            raise _build_damage_error() from error
        remaining_bytes = max(1, remaining_bytes - len(body))  # zlib treats 0 as unlimited.
    return entries


def _build_damage_error() -> TeamRequestFailed:
    return TeamRequestFailed(
        "The team's database has damaged data for this session",
        INVALID_SERVER_ANSWER_ADVICE,
    )


def _parse_session_key(key: SessionKey) -> tuple[str, str]:
    return str(key["project_key"]), str(key["session_id"])
