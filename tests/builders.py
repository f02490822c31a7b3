"""Build records and session files in the client's format.

Times are ISO strings or seconds after ``EPOCH``. A uuid can be any string.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, Self

import orjson

from resume_hooks.paths import Where, project_key

Record = dict[str, Any]

EPOCH = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
SESSION_ID_PATTERN = "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
"""A regular expression that matches any session id."""

SESSION = "11111111-1111-4111-8111-111111111111"
CWD = "/home/user/proj"
CLIENT_VERSION = "2.1.329"


class ConfigHome(NamedTuple):
    """A temporary config home. ``where`` is for the engine's functions, and ``environ`` for programs."""

    root: Path
    config: Path
    environ: dict[str, str]

    @classmethod
    def at(cls, root: Path) -> Self:
        """Create an empty config home in ``root``, and return it."""
        config = root / ".claude"
        (config / "projects").mkdir(parents=True)
        return cls(root, config, {"HOME": str(root), "CLAUDE_CONFIG_DIR": str(config)})

    @property
    def where(self) -> Where:
        """Return the paths and the environment in the form that the engine's functions take."""
        return Where(self.environ)

    def project(self, cwd: str = CWD) -> Path:
        """Create the project folder of a working directory, and return it."""
        folder = self.config / "projects" / project_key(cwd)
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def session_id(number: int) -> str:
    """Return a session id that shows its number: 3 gives ``00000003-0000-4000-8000-000000000003``."""
    return f"{number:08x}-0000-4000-8000-{number:012x}"


def iso_time(ts: float | str) -> str:
    """Return the time ``ts`` seconds after ``EPOCH``, in the format of transcripts.

    If ``ts`` is a string, it is returned unchanged.
    """
    if isinstance(ts, str):
        return ts
    moment = EPOCH + timedelta(seconds=ts)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def chain_record(
    kind: str, *, uuid: str, parent: str | None, ts: float | str, session_id: str, **extra: Any
) -> Record:
    """Return a record with a uuid, a parent and the client's common fields.

    ``extra`` adds fields or replaces them.
    """
    return {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "entrypoint": "cli",
        "cwd": CWD,
        "sessionId": session_id,
        "version": CLIENT_VERSION,
        "gitBranch": "main",
        "type": kind,
        "uuid": uuid,
        "timestamp": iso_time(ts),
        **extra,
    }


def user(
    content: str | list[Record],
    *,
    uuid: str,
    parent: str | None = None,
    ts: float | str = 0,
    session_id: str = SESSION,
    **extra: Any,
) -> Record:
    """Return a user record whose content is a prompt or a list of blocks."""
    message = {"role": "user", "content": content}
    return chain_record(
        "user", uuid=uuid, parent=parent, ts=ts, session_id=session_id, message=message, **extra
    )


def assistant(
    content: str | list[Record],
    *,
    uuid: str,
    parent: str | None = None,
    ts: float | str = 0,
    session_id: str = SESSION,
    message_id: str | None = None,
    tokens: int | Record = 0,
    model: str = "claude-opus-4-5",
    **extra: Any,
) -> Record:
    """Return an assistant record. If ``content`` is a string, it becomes one text block.

    ``tokens`` is the total number of tokens that the API counted (10 of them for output), or a
    whole usage object. If it is 0, the record has no usage. The records of one answer share a
    ``message_id``; by default, each record has a different one.
    """
    message: Record = {
        "model": model,
        "id": message_id or f"msg_{uuid}",
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": content}] if isinstance(content, str) else content,
        "stop_reason": "end_turn",
    }
    if tokens:
        message["usage"] = tokens if isinstance(tokens, dict) else usage(tokens)
    return chain_record(
        "assistant",
        uuid=uuid,
        parent=parent,
        ts=ts,
        session_id=session_id,
        message=message,
        **extra,
    )


def usage(total_tokens: int) -> Record:
    """Return a usage object whose counts add up to ``total_tokens`` tokens (at least 10)."""
    return {
        "input_tokens": 3,
        "cache_creation_input_tokens": 2,
        "cache_read_input_tokens": total_tokens - 15,
        "output_tokens": 10,
    }


def call(call_id: str, name: str = "Read", **tool_input: Any) -> Record:
    """Return a tool_use block."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": tool_input}


def result(call_id: str, content: str | list[Record] = "ok", **extra: Any) -> Record:
    """Return a tool_result block."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **extra}


def tool_use(
    call_id: str,
    *,
    uuid: str,
    parent: str | None,
    name: str = "Read",
    tool_input: Record | None = None,
    **rest: Any,
) -> Record:
    """Return an assistant record with one tool call. ``rest`` is passed to ``assistant``."""
    return assistant([call(call_id, name, **(tool_input or {}))], uuid=uuid, parent=parent, **rest)


def tool_result(
    call_id: str, content: str | list[Record] = "ok", *, uuid: str, parent: str | None, **rest: Any
) -> Record:
    """Return a user record with the result of one tool call. ``rest`` is passed to ``user``."""
    return user([result(call_id, content)], uuid=uuid, parent=parent, **rest)


def repl_script(
    script_calls: Iterable[tuple[str, Record, Any]],
    *,
    uuid: str,
    parent: str | None,
    code: str = "await main()",
    output: str = "done",
    ts: float | str = 0,
    session_id: str = SESSION,
) -> list[Record]:
    """Return a call of the tool REPL, its result, and the calls that the REPL's script made.

    Each item of ``script_calls`` consists of a tool, its input, and the details that the client
    stores next to the result. If the details are an ``Exception``, the call fails. The parent of
    each record is the previous record. The uuid of the last record is ``{uuid}-end``.
    """
    at: Record = {"ts": ts, "session_id": session_id}
    given = {"code": code, "description": "Run a script"}
    noted = {"code": code, "stdout": output, "stderr": ""}
    rows = [
        tool_use(
            f"toolu_{uuid}",
            name="REPL",
            tool_input=given,
            uuid=uuid,
            parent=parent,
            tokens=5_000,
            **at,
        ),
        tool_result(
            f"toolu_{uuid}", output, uuid=f"{uuid}-out", parent=uuid, toolUseResult=noted, **at
        ),
    ]
    unsent: Record = {"isVirtual": True, **at}
    for number, (tool, inputs, gave) in enumerate(script_calls):
        call_id, own = f"repl_{uuid}_{number}", f"{uuid}-{number}"
        failed = isinstance(gave, Exception)
        answer = result(call_id, str(gave) if failed else "", is_error=failed)
        details = {} if failed else {"toolUseResult": gave}
        above = rows[-1]["uuid"]
        used = call(call_id, tool, **inputs)
        rows.append(assistant([used], uuid=own, parent=above, model="<synthetic>", **unsent))
        rows.append(user([answer], uuid=f"{own}-out", parent=own, **details, **unsent))
    rows.append(
        assistant("That is done.", uuid=f"{uuid}-end", parent=rows[-1]["uuid"], tokens=5_100, **at)
    )
    return rows


def system(
    subtype: str,
    *,
    uuid: str,
    parent: str | None = None,
    ts: float | str = 0,
    session_id: str = SESSION,
    **extra: Any,
) -> Record:
    """Return a system record."""
    return chain_record(
        "system", uuid=uuid, parent=parent, ts=ts, session_id=session_id, subtype=subtype, **extra
    )


def progress(
    *, uuid: str, parent: str | None, ts: float | str = 0, session_id: str = SESSION
) -> Record:
    """Return a progress record as clients 2.1.7 to 2.1.72 wrote it.

    Although the record has a parent, the client does not send the record.
    """
    data = {"type": "hook_progress", "hookEvent": "PostToolUse"}
    return chain_record(
        "progress", uuid=uuid, parent=parent, ts=ts, session_id=session_id, data=data
    )


def attachment(
    rendered: str,
    *,
    uuid: str,
    parent: str | None,
    ts: float | str = 0,
    session_id: str = SESSION,
    **extra: Any,
) -> Record:
    """Return an attachment record. The client sends the text ``rendered`` with the conversation."""
    body = {"type": "hook_additional_context", "content": [rendered]}
    sent = {
        "attachment": body,
        "rendered": [{"content": rendered}],
        "renderedRole": "user",
        **extra,
    }
    return chain_record(
        "attachment", uuid=uuid, parent=parent, ts=ts, session_id=session_id, **sent
    )


def boundary(
    *,
    uuid: str,
    before: str | None = None,
    ts: float | str = 0,
    session_id: str = SESSION,
    parent: str | None = None,
    segment: Record | None = None,
    preserved: Record | None = None,
    **extra: Any,
) -> Record:
    """Return a compact_boundary record that follows the record ``before``.

    ``segment`` and ``preserved`` are the metadata of messages that the compaction keeps.
    """
    metadata: Record = {"trigger": "auto", "preTokens": 150_000}
    if segment is not None:
        metadata["preservedSegment"] = segment
    if preserved is not None:
        metadata["preservedMessages"] = preserved
    return system(
        "compact_boundary",
        uuid=uuid,
        parent=parent,
        ts=ts,
        session_id=session_id,
        logicalParentUuid=before,
        content="Conversation compacted",
        compactMetadata=metadata,
        **extra,
    )


def summary(
    text: str, *, uuid: str, parent: str | None, ts: float | str = 0, session_id: str = SESSION
) -> Record:
    """Return the user record that follows a boundary and contains the summary."""
    marks = {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
    return user(text, uuid=uuid, parent=parent, ts=ts, session_id=session_id, **marks)


def last_prompt(leaf: str, text: str = "go on", session_id: str = SESSION) -> Record:
    """Return the metadata record that names the last record of the current branch."""
    return {"type": "last-prompt", "lastPrompt": text, "leafUuid": leaf, "sessionId": session_id}


def custom_title(title: str, session_id: str = SESSION) -> Record:
    """Return a metadata record with a title that the user chose."""
    return {"type": "custom-title", "customTitle": title, "sessionId": session_id}


def conversation(
    turns: int, *, session_id: str = SESSION, prefix: str = "r", start: float = 0
) -> list[Record]:
    """Return prompts and answers, one second apart, with the uuids ``r0``, ``r1`` and so on."""
    records: list[Record] = []
    for number in range(2 * turns):
        ts, parent = start + number, f"{prefix}{number - 1}" if number else None
        if number % 2:
            answer, tokens = f"answer {number}", 1_000 + 100 * number
            records.append(
                assistant(
                    answer,
                    uuid=f"{prefix}{number}",
                    parent=parent,
                    ts=ts,
                    session_id=session_id,
                    tokens=tokens,
                )
            )
        else:
            records.append(
                user(
                    f"prompt {number}",
                    uuid=f"{prefix}{number}",
                    parent=parent,
                    ts=ts,
                    session_id=session_id,
                )
            )
    return records


def store_settings(config: Path, **values: object) -> None:
    """Store settings in a client's config folder, as ``resume-hooks config`` does."""
    state = config / "resume-hooks"
    state.mkdir(mode=0o700, exist_ok=True)
    (state / "settings.json").write_bytes(orjson.dumps({"version": 1, **values}))


def line(record: Record | bytes) -> bytes:
    """Return a record as compact JSON without a line break. Bytes are returned unchanged."""
    return record if isinstance(record, bytes) else orjson.dumps(record)


def session_bytes(records: Iterable[Record | bytes]) -> bytes:
    """Return the content of a file with one record on each line."""
    return b"".join(line(record) + b"\n" for record in records)


def write_session(
    folder: str | os.PathLike[str],
    session_id: str,
    records: Iterable[Record | bytes],
    *,
    mtime: float | None = None,
) -> str:
    """Write ``<session_id>.jsonl`` into ``folder`` and return its path.

    Create the folder if it does not exist.
    """
    path = Path(folder) / f"{session_id}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(session_bytes(records))
    if mtime is not None:
        os.utime(path, (mtime, mtime))
    return str(path)


def write_running_client_file(config: Path, session_id: str) -> None:
    """Write the file in which a client announces that it has a session open.

    The file contains the id of this process, so the client seems to be running.
    """
    folder = config / "sessions"
    folder.mkdir(exist_ok=True)
    entry = {"pid": os.getpid(), "sessionId": session_id, "cwd": CWD, "updatedAt": 1}
    (folder / f"{os.getpid()}.json").write_bytes(orjson.dumps(entry))
