"""The kinds of records beside the conversation, and the field of those that say a single thing.

Clients append them as things change: of each kind the last one counts. And what ``/clear`` leaves
in the session that it starts, to which the client gives the title of the one before.

Standard library and Python 3.9: the session hooks write here before the engine is installed.
"""

from __future__ import annotations

from typing import Any

CUSTOM_TITLE, AI_TITLE, SUMMARY, TAG, AGENT_NAME = (
    "custom-title",
    "ai-title",
    "summary",
    "tag",
    "agent-name",
)
LAST_PROMPT, QUEUE_OPERATION, PR_LINK = "last-prompt", "queue-operation", "pr-link"
MODE, WORKTREE, RELOCATED = "mode", "worktree-state", "relocated"

SNAPSHOT, DELTA = "file-history-snapshot", "file-history-delta"
SNAPSHOTS = frozenset({SNAPSHOT, DELTA})  # the states of the user's files at a message
REPLACED = (
    "content-replacement"  # results sent shorter, so that what is cached of them still counts
)

DIGEST = "resume-hooks-digest"
DIGEST_HEAD = "digest of what was done before"
"""The kind of the record that keeps a digest of ours, and how a digest's text begins."""

IMPORTED = "import_metadata"
"""The one field of the first line of an imported session."""

TITLES = {CUSTOM_TITLE: "customTitle", AI_TITLE: "aiTitle", SUMMARY: "summary", TAG: "tag"}
"""What names a session, and the field that holds the words."""

FIELDS = {**TITLES, AGENT_NAME: "agentName", LAST_PROMPT: "lastPrompt"}

SILENT = SNAPSHOTS | {
    AGENT_NAME, LAST_PROMPT, QUEUE_OPERATION, PR_LINK, MODE, WORKTREE, REPLACED, "api-request", "api-request-blob",
    "api-request-shape", "atis-latch", "bridge-session", "continued-in", "cost-state", "derived-from",
    "permission-mode", "tools-used", DIGEST,
}  # fmt: skip
"""What nobody said; what was queued is said once it is sent."""


def label(kind: str, words: str, session_id: str) -> dict[str, Any]:
    """A record that gives a session a title, a tag or a name."""
    return {"type": kind, FIELDS[kind]: words, "sessionId": session_id}


AFTER_CLEAR = "This session was started by /clear, after a handoff "
"""How a session that ``/clear`` started is told of the handoff that it took, before the handoff's own opening."""

FURTHER_PART = "More of what this session starts with"
"""How each further part begins where a hook's text came in several; ``parted_text`` puts them together."""


def kind_after_clear(head: bytes) -> str:
    """How a session came to be that begins with these bytes, ``clear`` or ``handoff``; ``""`` for any other."""
    # 2.1.112 writes the command behind what hooks gave, which may be long; each hook's record names
    # the event.
    if (
        b'"<command-name>/clear</command-name>' not in head
        and b'"hookName":"SessionStart:clear"' not in head
    ):
        return ""
    if f'"{AFTER_CLEAR}'.encode() in head:
        return "handoff"
    return "clear"
