"""Makes invalid transcripts: records that are almost valid, and lines that are not records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.builders import CWD, SESSION, Record, session_id
from tests.fuzz.draws import Draws

REUSED_IDS = (*(f"{n:08x}-aaaa-4aaa-8aaa-aaaaaaaaaaaa" for n in range(9)), "x", "")
"""Ids for all records. There are so few that cycles, late parents and duplicate ids occur."""

SESSION_IDS = (SESSION, *(session_id(n) for n in range(1, 5)))
RECORD_TYPES = (
    "user", "assistant", "user", "assistant", "system", "attachment", "progress", "summary", "custom-title", "ai-title",
    "tag", "agent-name", "last-prompt", "file-history-snapshot", "file-history-delta", "pr-link", "mode",
    "worktree-state", "queue-operation", "content-replacement", "session_meta", "unheard-of",
)  # fmt: skip
BLOCK_TYPES = (
    "text",
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "image",
    "document",
    "server_tool_use",
)
FLAG_FIELDS = (
    "isMeta",
    "isSidechain",
    "isCompactSummary",
    "isVisibleInTranscriptOnly",
    "isApiErrorMessage",
)
RECORD_FIELDS = (
    "parentUuid", "uuid", "sessionId", "timestamp", "type", "message", "cwd", "version", "entrypoint", "subtype",
    "toolUseResult", "compactMetadata", "logicalParentUuid", "sentAsUuid", "attachment", "rendered", "leafUuid",
    "customTitle", "aiTitle", "tag", "summary", "snapshot", "delta", "forkedFrom", "truncated", "original_session",
    "original_index", "original_uuid", "continue_metadata", "trim_metadata", "prNumber", "prUrl", "agentName",
)  # fmt: skip
INVALID_LINES = (
    b"",
    b"\r",
    b"\x00\x00",
    b"{",
    b"}",
    b"[]",
    b"null",
    b'"x"',
    b'{"a":',
    b"\xff\xfe{}",
    b"\xef\xbb\xbf{}",
)
NESTED_BRACKET_COUNT = 3_000
"""Number of nested brackets in a line. A recursive parser cannot parse so many."""


def draw_block(draws: Draws) -> Any:
    """Return a block for the content of a message."""
    if draws.flip_coin(8):
        return draws.json()
    kind, call = draws.pick(BLOCK_TYPES), draws.pick(("c0", "c1", "c2", ""))
    inner: Record = {"type": kind}
    if kind == "text":
        inner["text"] = draws.text()
    elif kind == "tool_use":
        tool = draws.pick(("Read", "Bash", "Edit", "Write", "Task", "TodoWrite", "mcp__x__y"))
        given = {
            "file_path": draws.text(),
            "command": draws.text(),
            "old_string": "a",
            "new_string": draws.text(),
        }
        inner |= {"id": call, "name": tool, "input": draws.json() if draws.flip_coin(3) else given}
    elif kind == "tool_result":
        content = (
            draws.json()
            if draws.flip_coin(3)
            else [{"type": "text", "text": draws.text() * draws.pick((1, 40))}]
        )
        inner |= {"tool_use_id": call, "content": content, "is_error": draws.flip_coin()}
    elif kind == "thinking":
        inner |= {"thinking": draws.text(), "signature": draws.text()}
    else:
        inner |= {
            "source": {"type": "base64", "media_type": draws.text(), "data": draws.text()},
            "data": draws.text(),
        }
    return inner


def draw_record(draws: Draws) -> Record:
    """Return a record that is almost valid."""
    kind = draws.pick(RECORD_TYPES)
    made: Record = {
        "type": kind,
        "sessionId": draws.pick(SESSION_IDS),
        "uuid": draws.pick(REUSED_IDS),
    }
    if draws.number_below(4):
        made["parentUuid"] = draws.pick(REUSED_IDS) or None
    made["timestamp"] = (
        draws.text() if draws.flip_coin(6) else f"2026-01-31T09:{draws.number_below(60):02}:00.000Z"
    )
    if kind in {"user", "assistant"}:
        content = (
            draws.text() if draws.flip_coin() else draws.draw_list(4, lambda: draw_block(draws))
        )
        made["message"] = {
            "role": kind,
            "content": content,
            "id": draws.pick(REUSED_IDS),
            "model": draws.text(),
        }
        if kind == "assistant" and draws.flip_coin():
            made["message"]["usage"] = {
                "input_tokens": draws.json(0),
                "output_tokens": draws.number_below(70_000),
            }
        made |= {"cwd": CWD, "entrypoint": "cli", "version": "2.1.329"}
    elif kind == "system":
        made["subtype"] = draws.pick(
            ("compact_boundary", "local_command", "informational", "turn_duration")
        )
        kept = {
            "anchorUuid": draws.pick(REUSED_IDS),
            "headUuid": draws.pick(REUSED_IDS),
            "tailUuid": draws.pick(REUSED_IDS),
        }
        listed = {
            "anchorUuid": draws.pick(REUSED_IDS),
            "uuids": draws.draw_list(3, lambda: draws.pick(REUSED_IDS)),
        }
        preserved = (
            {"preservedMessages": listed} if draws.flip_coin() else {"preservedSegment": kept}
        )
        made["compactMetadata"] = (
            draws.json() if draws.flip_coin(3) else {"preTokens": 5, **preserved}
        )
    elif kind == "custom-title":
        made["customTitle"] = draws.text()
    for flag in draws.draw_list(2, lambda: draws.pick(FLAG_FIELDS)):
        made[flag] = True
    for key in draws.draw_list(2, lambda: draws.pick(RECORD_FIELDS)):
        made[key] = draws.json()
    return made


def draw_metadata(draws: Draws) -> Record:
    """Return a first line that names a parent and possibly other files."""
    parent = draws.pick(SESSION_IDS)
    places = (
        f"{parent}.jsonl",
        f"../{parent}.jsonl",
        f"/etc/{parent}.jsonl",
        draws.text(),
        draws.json(),
    )
    about = {
        "parent_session_file": draws.pick(places),
        "parent_file": draws.pick(places),
        "parent_session_id": draws.pick((parent, draws.text(), draws.json())),
        "continued_at": draws.text(),
        "continuation_type": draws.pick(
            ("handoff", "rollover", "trim", "fork", draws.text(), draws.json())
        ),
        "exported_file": draws.text(),
    }
    made: Record = {"continue_metadata": draws.json() if draws.flip_coin(6) else about}
    if draws.flip_coin(3):
        made["trim_metadata"] = (
            draws.json()
            if draws.flip_coin()
            else {**about, "trim_params": draws.json(), "stats": {}}
        )
    return made


def draw_line(draws: Draws) -> bytes:
    """Return a line without its line break."""
    kind = draws.number_below(16)
    if kind == 15:
        return draws.pick(INVALID_LINES) + draws.take_bytes(20)
    if kind == 14:
        return (
            b'{"type":"user","uuid":"x","a":' + draws.pick((b"[", b'{"a":')) * NESTED_BRACKET_COUNT
        )
    made = draw_metadata(draws) if kind == 13 else draw_record(draws)
    body = json.dumps(made, ensure_ascii=draws.flip_coin()).encode("utf-8", "surrogatepass")
    return body[: draws.number_below(len(body) + 1)] if kind == 12 else body


def draw_transcript(draws: Draws, max_lines: int = 14) -> bytes:
    """Return the content of a transcript with different line breaks. The last one may be missing."""
    ends = (b"\n", b"\n", b"\n", b"\r\n", b"\n\n")
    head = json.dumps(draw_metadata(draws)).encode() + b"\n" if draws.flip_coin(3) else b""
    lines = (draw_line(draws) + draws.pick(ends) for _ in range(1 + draws.number_below(max_lines)))
    whole = draws.pick((b"", b"", b"", b"\xef\xbb\xbf")) + head + b"".join(lines)
    return whole[:-1] if draws.flip_coin(4) else whole


def write_session_file(folder: Path, session_id: str, content: bytes) -> str:
    """Write a session's file and return its path."""
    path = folder / f"{session_id}.jsonl"
    path.write_bytes(content)
    return str(path)
