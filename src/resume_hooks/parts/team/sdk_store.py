"""The Agent SDK's ``SessionStore`` on the team's database: atomic, deduplicated, with summaries, for any entry.

Duck-typed: the SDK is imported where a program that has it appends, for its fold of summaries. Rows are one's own:
nobody else on the server sees them. Nothing is redacted, since ``load`` must give what was appended; for sessions that
others may see there is ``team push``.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

from resume_hooks.errors import UsageError
from resume_hooks.parts.team.connect import connected_async, service_named

Entry = dict[str, Any]
Key = dict[str, Any]
Rows = list[tuple[Any, ...]]


class PostgresSessionStore:
    """A store for ``ClaudeAgentOptions(session_store=...)``, by the libpq service of a team that one is a member of."""

    def __init__(self, service: str) -> None:
        self._service = service_named(service)

    async def append(self, key: Key, entries: Sequence[Entry]) -> None:
        """Append entries, each uuid once, in one transaction."""
        if not entries:
            return
        async with connected_async(self._service) as db, db.transaction():
            place = (*_main(key), key.get("subpath") or "")
            await db.execute(
                "insert into team.sdk_part(project_key, session_id, subpath) values(%s, %s, %s) on conflict do nothing",
                place,
            )
            found = await db.execute(
                "select id, entries, summary from team.sdk_part"
                " where owner = team.me() and project_key = %s and session_id = %s and subpath = %s for update",
                place,
            )
            row = await found.fetchone()
            if row is None:
                raise UsageError("The session was deleted while it was appended to", "Append again.")
            part, count, summary = row
            uuids = [entry["uuid"] for entry in entries if isinstance(entry.get("uuid"), str) and entry["uuid"]]
            answer = await db.execute(
                "insert into team.sdk_seen select %s, u from unnest(%s::bytea[]) u"
                " on conflict do nothing returning uuid",
                (part, [uuid.encode("utf-8", "surrogatepass") for uuid in dict.fromkeys(uuids)]),
            )
            new = {bytes(uuid).decode("utf-8", "surrogatepass") for (uuid,) in await answer.fetchall()}
            fresh = []
            for entry in entries:
                uuid = entry.get("uuid")
                if not (isinstance(uuid, str) and uuid) or uuid in new:
                    fresh.append(entry)
                    new.discard(str(uuid))
            if not fresh:
                return
            folded = None
            if not key.get("subpath"):
                from claude_agent_sdk import fold_session_summary

                known = json.loads(summary) if summary else None
                folded = json.dumps(fold_session_summary(known, key, fresh)).encode()  # type: ignore[arg-type]
            data = zlib.compress(b"\n".join(json.dumps(entry).encode() for entry in fresh))
            await db.execute("insert into team.sdk_chunk values(%s, %s, %s)", (part, count, data))
            await db.execute(
                "update team.sdk_part set entries = entries + %s, summary = coalesce(%s, summary),"
                " mtime = greatest(mtime + 1, (extract(epoch from clock_timestamp()) * 1000)::bigint) where id = %s",
                (len(fresh), folded, part),
            )

    async def load(self, key: Key) -> list[Entry] | None:
        """Every entry in the order of its append; None for a session that there is not."""
        rows = await self._rows(
            "select c.data from team.sdk_chunk c join team.sdk_part p on p.id = c.part"
            " where owner = team.me() and project_key = %s and session_id = %s and subpath = %s"
            " order by c.first",
            (*_main(key), key.get("subpath") or ""),
        )
        return [json.loads(line) for (data,) in rows for line in zlib.decompress(data).split(b"\n")] if rows else None

    async def list_sessions(self, project_key: str) -> list[dict[str, Any]]:
        """The main transcripts of a project, with the milliseconds of their last change."""
        query = (
            "select session_id, mtime from team.sdk_part where owner = team.me() and project_key = %s and subpath = ''"
        )
        return [{"session_id": name, "mtime": mtime} for name, mtime in await self._rows(query, (project_key,))]

    async def list_session_summaries(self, project_key: str) -> list[dict[str, Any]]:
        """Their folded summaries, on the same clock."""
        query = (
            "select summary, mtime from team.sdk_part"
            " where owner = team.me() and project_key = %s and subpath = '' and summary is not null"
        )
        return [{**json.loads(summary), "mtime": mtime} for summary, mtime in await self._rows(query, (project_key,))]

    async def delete(self, key: Key) -> None:
        """Remove a transcript; the main one with all below it."""
        subpath = key.get("subpath")
        query = (
            "delete from team.sdk_part"
            " where owner = team.me() and project_key = %s and session_id = %s"
            " and (%s::text is null or subpath = %s)"
        )
        async with connected_async(self._service) as db:
            await db.execute(query.encode(), (*_main(key), subpath or None, subpath or None))

    async def list_subkeys(self, key: Key) -> list[str]:
        """The sub-agents' transcripts of a session."""
        query = (
            "select subpath from team.sdk_part"
            " where owner = team.me() and project_key = %s and session_id = %s and subpath <> ''"
        )
        return [subpath for (subpath,) in await self._rows(query, _main(key))]

    async def _rows(self, query: str, values: Sequence[object]) -> Rows:
        async with connected_async(self._service) as db:
            return await (await db.execute(query.encode(), values)).fetchall()


def _main(key: Key) -> tuple[str, str]:
    return str(key["project_key"]), str(key["session_id"])
