"""Fixtures for tests of exported documents: a session with content of every kind."""

from __future__ import annotations

import base64
import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from resume_hooks.parts.share.export import HTML
from resume_hooks.parts.share.export.document import Document, DocumentOptions
from resume_hooks.parts.share.export.select_records import CONVERSATION
from resume_hooks.sessions.locate import session_file
from tests.builders import (
    SESSION,
    ConfigHome,
    Record,
    assistant,
    boundary,
    call,
    custom_title,
    session_id,
    summary,
    tool_result,
    user,
    write_session,
)

ExportText = Callable[..., str]
"""A function that exports a session's file and returns the text of the document."""

GITHUB_TOKEN = "ghp_" + "".join(chr(97 + (number * 7) % 26) for number in range(30)) + "A1b2C3"
"""A text that looks like a token and belongs to no account."""


def red_png() -> str:
    """Return a red dot as a PNG, in base64."""
    rows = b"".join(b"\0" + b"\xff\x20\x20" * 8 for _ in range(8))

    def png_chunk(kind: bytes, body: bytes) -> bytes:
        return (
            len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")
        )

    header = (8).to_bytes(4, "big") * 2 + b"\x08\x02\0\0\0"
    raw = (
        b"\x89PNG\r\n\x1a\n"
        + png_chunk(b"IHDR", header)
        + png_chunk(b"IDAT", zlib.compress(rows))
        + png_chunk(b"IEND", b"")
    )
    return base64.b64encode(raw).decode()


PNG_BASE64 = red_png()
IMAGE: Record = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": PNG_BASE64},
}

ANSWER_TEXT = """The pool closes **before** the upload ends:

| step | ms |
|---|---:|
| open | 3 |

```python
def close(pool):  # the culprit
    return pool.shutdown(wait=False)
```

See [the docs](https://example.com/pool) and `close()`."""


def link_records(records: list[Record]) -> list[Record]:
    """Link the records to one chain, and give each a uuid and a message id."""
    rows = []
    for place, record in enumerate(records):
        ids = {
            "uuid": session_id(0x1000 + place),
            "parentUuid": session_id(0x0FFF + place) if place else None,
        }
        rows.append(
            {**record, **ids, "message": {**record.get("message", {}), "id": f"msg_{place}"}}
        )
    return rows


def records_of_every_kind() -> list[Record]:
    """Return a session of three turns with content of every kind.

    A compaction follows the first turn.
    """
    todos = [
        {"content": "find it", "status": "completed"},
        {"content": "fix it", "status": "in_progress"},
    ]
    edit = {
        "file_path": "/home/user/proj/pool.py",
        "old_string": "a\nwait=False",
        "new_string": "a\nwait=True",
    }
    task = {"description": "look", "prompt": "Look at **it**", "subagent_type": "Explore"}
    rows = link_records(
        [
            user("Find out why uploads fail", uuid=""),
            assistant([{"type": "thinking", "thinking": "perhaps the pool", "signature": "x"}], uuid="", ts=1),
            assistant([call("c1", "Bash", command="pytest -k upload", description="Run the tests")], uuid="", ts=2),
            tool_result("c1", "1 failed\n\x1b[31mred\x1b[0m", uuid="", parent=None, ts=3, toolUseResult={}),
            assistant(ANSWER_TEXT, uuid="", ts=4, tokens=1_500),
            boundary(uuid="", ts=5),
            summary("So far: the pool is closed early.", uuid="", parent=None, ts=6),
            user([{"type": "text", "text": "Fix it, <b>please</b>"}, IMAGE], uuid="", ts=7),
            assistant([call("c2", "TodoWrite", todos=todos)], uuid="", ts=8),
            tool_result("c2", "Todos have been modified", uuid="", parent=None, ts=9),
            assistant([call("c3", "Edit", **edit)], uuid="", ts=10),
            tool_result("c3", "The file was updated", uuid="", parent=None, ts=11),
            assistant([call("c4", "Read", file_path="/home/user/proj/pool.py")], uuid="", ts=12),
            tool_result("c4", "     1→def close():\n     2→    pass", uuid="", parent=None, ts=13),
            assistant([call("c5", "Agent", **task)], uuid="", ts=14),
            tool_result("c5", "Looked.", uuid="", parent=None, ts=15, toolUseResult={"agentId": "a1"}),
            assistant("Fixed: it waits now.", uuid="", ts=16, tokens=2_500),
            user("Thanks. The unanswered question?", uuid="", ts=17),
            assistant([call("c6", "Bash", command="false")], uuid="", ts=18),
            tool_result("c6", "Exit code 1", uuid="", parent=None, ts=19, is_error=True),
        ]
    )  # fmt: skip
    rows[5] = {**rows[5], "parentUuid": None, "logicalParentUuid": rows[4]["uuid"]}
    rows[19]["message"]["content"][0]["is_error"] = True
    return [*rows, custom_title("Uploads: a pool that closes early")]


def write_session_with_subagent(home: ConfigHome, records: list[Record] | None = None) -> Path:
    """Write the session with its sub-agent to the project, and return its path."""
    path = Path(write_session(home.project(), SESSION, records or records_of_every_kind()))
    agent = path.with_suffix("") / "subagents" / "agent-a1.jsonl"
    agent.parent.mkdir(parents=True)
    own = link_records(
        [user("Look at it", uuid=""), assistant("The sub-agent found a needle.", uuid="", ts=1)]
    )
    agent.write_bytes(b"")
    write_session(
        agent.parent, "agent-a1", [{**row, "isSidechain": True, "agentId": "a1"} for row in own]
    )
    agent.with_suffix("").with_suffix(".meta.json").write_text('{"agentType":"Explore"}')
    return path


@pytest.fixture
def session_of_every_kind(config_home: ConfigHome) -> Path:
    """Write a session with content of every kind and return its path."""
    return write_session_with_subagent(config_home)


def document_of_session(
    path: str | os.PathLike[str], home: ConfigHome, format_name: str = HTML, **options: object
) -> Document:
    """Return the document of a session.

    The keywords in ``options`` replace fields of ``DocumentOptions``.
    """
    fields = {
        "format": format_name,
        "must_redact": True,
        "includes_thinking": True,
        "record_range": CONVERSATION,
        "max_text_characters": 100_000,
        **options,
    }
    return Document([session_file(str(path))], DocumentOptions(**fields), home.where)  # type: ignore[arg-type]


@pytest.fixture
def export_text(config_home: ConfigHome) -> ExportText:
    """Return a function that exports a session and returns the text of the document."""

    def export_session(
        path: str | os.PathLike[str], format_name: str = HTML, **options: object
    ) -> str:
        return b"".join(
            document_of_session(path, config_home, format_name, **options).build_chunks()
        ).decode()

    return export_session
