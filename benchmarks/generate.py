"""Generate large sessions and full homes for benchmarks from the turns of real sessions.

A session is a valid chain with unique ids. The same seed always gives the same bytes. Real turns
are used because their composition matters for speed: a few huge tool results, many small records,
attachments, and empty thinking with long signatures.
"""

from __future__ import annotations

import functools
import os
import random
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from resume_hooks.paths import project_key
from resume_hooks.transcripts.transcript import scan_transcript
from tests.needs import corpus_sessions

Record = dict[str, Any]
TurnRecords = list[Record]

START_TIME = datetime(2026, 1, 1, tzinfo=UTC)
CLIENT_VERSION = "2.1.329"
MAX_TURN_BYTES = 2_000_000
"""The maximum number of bytes of a turn. With longer turns, the size of a session would depend on
chance."""


class SessionPlace(NamedTuple):
    """The session to which generated records belong, and its folder and branch."""

    session_id: str
    cwd: str
    branch: str


def generate_session(
    path: str,
    size_bytes: int,
    seed: int = 0,
    *,
    cwd: str = "/home/user/big",
    title: str = "",
    days: float = 0,
    compacted_bytes: int = 0,
) -> str:
    """Write a session of about ``size_bytes`` to ``path``, and return the session's id.

    If the name of the file is an id, this is the session's id. The session starts ``days`` days after
    START_TIME. Lines have the client's form: compact, with parentUuid first. With
    ``compacted_bytes``, the session is compacted each time after that number of bytes. Without it,
    the whole session is live.
    """
    random_source = random.Random(seed)
    stem = Path(path).stem
    place = SessionPlace(stem if len(stem) == 36 else _new_id(random_source), cwd, "main")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with open(path, "wb") as stream:
        for record in _generate_records(
            random_source, place, START_TIME + timedelta(days=days), compacted_bytes
        ):
            line = orjson.dumps(record) + b"\n"
            stream.write(line)
            written += len(line)
            if written >= size_bytes and record["type"] == "last-prompt":
                break
        if title:
            stream.write(
                orjson.dumps({"type": "custom-title", "customTitle": title, "sessionId": place[0]})
                + b"\n"
            )
    return place.session_id


def generate_home(
    config: str, session_count: int, total_bytes: int, seed: int = 0, *, project_count: int = 12
) -> list[str]:
    """Write sessions of very different sizes to the home ``config``, with about ``total_bytes`` in all.

    Return the paths of the sessions, oldest first. Their modification times are an hour apart, and the last is
    now. Session 7, for example, has the title ``Session 7`` and the folder ``/home/user/project-<7
    modulo project_count>``.
    """
    random_source = random.Random(seed)
    weights = [random_source.lognormvariate(0, 1.6) for _ in range(session_count)]
    now = datetime.now(UTC).timestamp()
    paths = []
    for number, weight in enumerate(weights):
        cwd = f"/home/user/project-{number % project_count}"
        path = os.path.join(config, "projects", project_key(cwd), f"{_new_id(random_source)}.jsonl")
        size = int(total_bytes * weight / sum(weights))
        generate_session(
            path, size, seed + number, cwd=cwd, title=f"Session {number}", days=number / 24
        )
        moment = now - 3600 * (session_count - number)
        os.utime(path, (moment, moment))
        paths.append(path)
    return paths


def _generate_records(
    random_source: random.Random, place: SessionPlace, start: datetime, compacted_bytes: int
) -> Iterator[Record]:
    """Yield the records of an endless session: turns of real sessions in random order.

    A last-prompt record follows each turn.
    """
    since = 0
    parent: str | None = None
    moment = start
    tokens = 20_000
    while True:
        piece = random_source.choice(_read_real_turns())
        ids = _NewIds(random_source)
        for old in piece:
            record = _renew_record(orjson.loads(orjson.dumps(old)), ids, place)
            moment += timedelta(milliseconds=random_source.randint(20, 20_000))
            record["parentUuid"] = parent
            record["timestamp"] = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
            usage = record.get("message", {}).get("usage")
            if isinstance(usage, dict):
                tokens = 20_000 + (tokens + random_source.randint(50, 900)) % 170_000
                usage.update(
                    input_tokens=3, cache_creation_input_tokens=97, cache_read_input_tokens=tokens
                )
            parent = record["uuid"]
            yield record
        yield {
            "type": "last-prompt",
            "lastPrompt": "go on",
            "leafUuid": parent,
            "sessionId": place.session_id,
        }
        since += sum(map(len, map(orjson.dumps, piece)))
        if compacted_bytes and since > compacted_bytes:
            since, tokens = 0, 20_000
            boundary, summary = _build_compaction(random_source, place, parent, moment)
            parent = summary["uuid"]
            yield from (boundary, summary)


def _build_compaction(
    random_source: random.Random, place: SessionPlace, parent: str | None, moment: datetime
) -> tuple[Record, Record]:
    """Return the two records of a compaction as the client writes them.

    The first is the boundary, which has no parent. The second is the summary.
    """
    at = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    rest = {
        "sessionId": place.session_id,
        "cwd": place.cwd,
        "gitBranch": place.branch,
        "version": CLIENT_VERSION,
    }
    common = {"isSidechain": False, "timestamp": at, **rest}
    boundary = {
        "parentUuid": None,
        "logicalParentUuid": parent,
        "type": "system",
        "subtype": "compact_boundary",
        "content": "Conversation compacted",
        "compactMetadata": {"trigger": "auto", "preTokens": 170_000},
        "uuid": _new_id(random_source),
        **common,
    }
    summary = {
        "parentUuid": boundary["uuid"],
        "type": "user",
        "message": {"role": "user", "content": "What was done. " * 200},
        "isCompactSummary": True,
        "isVisibleInTranscriptOnly": True,
        "uuid": _new_id(random_source),
        **common,
    }
    return boundary, summary


class _NewIds:
    """Makes new ids for the records of a turn. The same old id always gets the same new id."""

    def __init__(self, random_source: random.Random) -> None:
        self._chance = random_source
        self._known: dict[str, str] = {}

    def new_uuid(self) -> str:
        return _new_id(self._chance)

    def new_api_id(self, old_id: object, prefix: str) -> str:
        return self._known.setdefault(str(old_id), f"{prefix}_{self._chance.getrandbits(96):024x}")


def _renew_record(record: Record, ids: _NewIds, place: SessionPlace) -> Record:
    """Return a record with new ids and the session's folder, with parentUuid first."""
    record = {"parentUuid": None, **record}
    record.update(
        uuid=ids.new_uuid(), sessionId=place.session_id, cwd=place.cwd, gitBranch=place.branch, version=CLIENT_VERSION,
        isSidechain=False,
    )  # fmt: skip
    record.pop("sourceToolAssistantUUID", None)
    message = record.get("message")
    if not isinstance(message, dict):
        return record
    if "id" in message:
        message["id"] = ids.new_api_id(message["id"], "msg")
    for block in message["content"] if isinstance(message.get("content"), list) else []:
        for key in ("id", "tool_use_id"):
            if key in block:
                block[key] = ids.new_api_id(block[key], "toolu")
    return record


@functools.cache
def _read_real_turns() -> tuple[TurnRecords, ...]:
    """Return the turns of the corpus in which every call has a result."""
    found = []
    for path in corpus_sessions():
        transcript = scan_transcript(str(path))
        for turn in transcript.turns:
            calls = [call for node in turn.nodes for call in node.call_ids]
            results = [call for node in turn.nodes for call in node.answered_call_ids]
            size = sum(node.line_length for node in turn.nodes)
            kinds = {node.kind for node in turn.nodes}
            cut = any(node.is_boundary for node in turn.nodes)
            if (
                sorted(calls) == sorted(results)
                and "assistant" in kinds
                and size < MAX_TURN_BYTES
                and not cut
            ):
                found.append([transcript.read_record(node) for node in turn.nodes])
    if not found:
        raise FileNotFoundError(
            "The benchmarks need real turns: set RESUME_HOOKS_CORPUS (see tests/needs.py)"
        )
    return tuple(found)


def _new_id(random_source: random.Random) -> str:
    return str(uuid.UUID(int=random_source.getrandbits(128), version=4))
