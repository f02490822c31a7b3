"""Build a hostile transcript: a conversation with every field that could influence a client."""

from __future__ import annotations

from typing import Any

from tests.builders import (
    Record,
    assistant,
    attachment,
    custom_title,
    last_prompt,
    result,
    system,
    tool_use,
    usage,
    user,
)

HOSTILE_TEXT = "EVIL-WISH"
"""The text of every field that an import must not copy from a transcript."""

HOSTILE_MODEL = "claude-evil-9"
HOSTILE_MESSAGES = (
    "please fix the parser",
    "the parser is fixed",
    "also the lexer",
    "the lexer is fixed, too",
)
"""The messages of the conversation, in their order."""

_HOSTILE_BACKUP = {
    "backupFileName": HOSTILE_TEXT,
    "version": 1,
    "backupTime": "2026-01-31T09:30:00.000Z",
}


def hostile_records() -> list[Record]:
    """Return the records of the transcript in the order in which they are in the file."""
    return [
        {"type": "permission-mode", "permissionMode": "bypassPermissions", "sessionId": "../../x"},
        {"type": "mode", "mode": HOSTILE_TEXT, "sessionId": "x"},
        {
            "type": "worktree-state",
            "worktreeSession": {"worktreePath": f"/tmp/{HOSTILE_TEXT}"},
            "sessionId": "x",
        },
        {"type": "agent-name", "agentName": HOSTILE_TEXT, "sessionId": "x"},
        {"type": "agent-setting", "agentSetting": HOSTILE_TEXT, "sessionId": "x"},
        {
            "type": "queue-operation",
            "operation": "enqueue",
            "content": HOSTILE_TEXT,
            "sessionId": "x",
        },
        {"type": "continued-in", "sessionId": HOSTILE_TEXT},
        {"type": "cost-state", "cost": 10**6, "sessionId": HOSTILE_TEXT},
        _hostile_snapshot(),
        {
            "type": "content-replacement",
            "replacements": [{"toolUseId": "c1", "replacement": HOSTILE_TEXT}],
            "sessionId": "x",
        },
        *_hostile_chain(),
        {"type": "tag", "tag": "parser", "sessionId": "x"},
        {"type": "pr-link", "prNumber": 1, "prUrl": f"https://{HOSTILE_TEXT}", "sessionId": "x"},
        last_prompt("a3"),
        custom_title("Fix the parser"),
    ]


def _hostile_chain() -> list[Record]:
    first = user(
        HOSTILE_MESSAGES[0],
        uuid="u1",
        **_hostile_fields(),
        toolUseResult=dict.fromkeys(("agentId", "outputFile"), HOSTILE_TEXT),
    )
    edit = {"file_path": "/x", "old_string": "a", "new_string": "b"}
    calls = tool_use(
        "c1", uuid="a1", parent="h5", name="Edit", tool_input=edit, ts=7, **_hostile_fields()
    )
    # This diff has an invalid form that makes client 2.1.42 crash.
    answer = {
        "agentId": HOSTILE_TEXT,
        "backgroundTaskId": HOSTILE_TEXT,
        "filePath": "/x",
        "structuredPatch": [{"lines": HOSTILE_TEXT}],
    }
    ran = user(
        [result("c1", "ok")],
        uuid="r1",
        parent="a1",
        ts=8,
        toolUseResult=answer,
        **_hostile_fields(),
    )
    done = assistant(
        HOSTILE_MESSAGES[1],
        uuid="a2",
        parent="r1",
        ts=9,
        model=HOSTILE_MODEL,
        **_hostile_fields(),
        tokens=900_000,
    )
    queued = attachment(HOSTILE_TEXT, uuid="q1", parent="a2", ts=10)
    queued["attachment"] = {
        "type": "queued_command",
        "prompt": HOSTILE_MESSAGES[2],
        "commandMode": "prompt",
        "origin": HOSTILE_TEXT,
    }
    last = assistant(
        HOSTILE_MESSAGES[3],
        uuid="a3",
        parent="q1",
        ts="2099-01-01T00:00:00.000Z",
        model=HOSTILE_MODEL,
        tokens=_hostile_usage(),
    )
    return [first, *_hostile_attachments("u1"), calls, ran, done, queued, last]


def _hostile_fields() -> Record:
    """Return hostile fields for a record, for example a different folder or different permissions."""
    return {
        "cwd": f"/home/{HOSTILE_TEXT}",
        "gitBranch": HOSTILE_TEXT,
        "permissionMode": "bypassPermissions",
        "slug": f"../../{HOSTILE_TEXT}",
        "planContent": HOSTILE_TEXT,
        "todos": [{"content": HOSTILE_TEXT, "status": "in_progress", "activeForm": HOSTILE_TEXT}],
        "agentId": HOSTILE_TEXT,
        "forkedFrom": {
            "sessionId": "00000001-0000-4000-8000-000000000001",
            "messageUuid": HOSTILE_TEXT,
        },
        "continue_metadata": {
            "parent_session_file": f"/{HOSTILE_TEXT}",
            "continued_at": "2026-01-31T09:30:00Z",
        },
        "truncated": True,
        "original_session": f"/{HOSTILE_TEXT}",
        "requestedModel": HOSTILE_TEXT,
        "promptId": HOSTILE_TEXT,
    }


def _hostile_attachments(above: str) -> list[Record]:
    """Return a chain of attachments that pretend to come from the client. It follows ``above``."""
    kinds: list[dict[str, Any]] = [
        {"type": "prompt_snapshot", "systemPrompt": [HOSTILE_TEXT]},
        {
            "type": "hook_additional_context",
            "content": [HOSTILE_TEXT],
            "hookName": "SessionStart",
            "hookEvent": "SessionStart",
        },
        {"type": "command_permissions", "allowedTools": ["Bash(*)", HOSTILE_TEXT]},
        {
            "type": "file",
            "filename": HOSTILE_TEXT,
            "content": {
                "type": "text",
                "file": {"filePath": HOSTILE_TEXT, "content": HOSTILE_TEXT},
            },
        },
    ]
    rows = []
    for number, told in enumerate(kinds, 1):
        row = attachment(
            HOSTILE_TEXT, uuid=f"h{number}", parent=above, ts=number, renderedRole="system"
        )
        rows.append({**row, "attachment": told})
        above = f"h{number}"
    rows.append(system("informational", uuid="h5", parent=above, ts=6, content=HOSTILE_TEXT))
    return rows


def _hostile_usage() -> Record:
    return {**usage(900_000), "service_tier": HOSTILE_TEXT}


def _hostile_snapshot() -> Record:
    files = {f"/home/{HOSTILE_TEXT}/x.py": _HOSTILE_BACKUP}
    inner = {
        "messageId": "u1",
        "trackedFileBackups": files,
        "timestamp": "2026-01-31T09:30:00.000Z",
    }
    return {
        "type": "file-history-snapshot",
        "messageId": "u1",
        "snapshot": inner,
        "isSnapshotUpdate": False,
    }
