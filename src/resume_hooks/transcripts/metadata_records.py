"""The kinds of records outside the conversation, and the field of each simple kind that contains its value.

Clients append such records when a value changes, so the last one of each kind counts. This module
also finds the traces of ``/clear`` in the new session, which gets the title of the previous one.

Standard library and Python 3.9: the session hooks use this module before the engine is installed.
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

FILE_SNAPSHOT, FILE_DELTA = "file-history-snapshot", "file-history-delta"
SNAPSHOT_KINDS = frozenset(
    {FILE_SNAPSHOT, FILE_DELTA}
)  # the states of the user's files at a message
# records of the results that the client sends in shortened form, so that the cache stays valid
SHORTENED_RESULTS_KIND = "content-replacement"

DIGEST_KIND = "resume-hooks-digest"
DIGEST_BEGINNING = "digest of what was done before"
"""The kind of our record that stores a digest, and the beginning of a digest's text."""

IMPORT_FIELD = "import_metadata"
"""The only field in the first line of an imported session."""

TITLE_FIELDS = {CUSTOM_TITLE: "customTitle", AI_TITLE: "aiTitle", SUMMARY: "summary", TAG: "tag"}
"""The kinds of records that name a session, and their text fields."""

VALUE_FIELDS = {**TITLE_FIELDS, AGENT_NAME: "agentName", LAST_PROMPT: "lastPrompt"}

SILENT_KINDS = SNAPSHOT_KINDS | {
    AGENT_NAME, LAST_PROMPT, QUEUE_OPERATION, PR_LINK, MODE, WORKTREE, SHORTENED_RESULTS_KIND, "api-request",
    "api-request-blob", "api-request-shape", "atis-latch", "bridge-session",
    "continued-in", "cost-state", "derived-from",
    "permission-mode", "tools-used", DIGEST_KIND,
}  # fmt: skip
"""Kinds that contain no words of the conversation. A queued prompt counts once it is sent."""


def make_label_record(kind: str, label: str, session_id: str) -> dict[str, Any]:
    """Return a record that gives a session a title, a tag or a name."""
    return {"type": kind, VALUE_FIELDS[kind]: label, "sessionId": session_id}


AFTER_CLEAR_BEGINNING = "This session was started by /clear, after a handoff "
"""The sentence before a handoff's opening in a session that ``/clear`` started."""

LATER_PART_BEGINNING = "More of what this session starts with"
"""The beginning of every further part of a hook's text; ``parted_text`` joins the parts."""


def kind_after_clear(head: bytes) -> str:
    """Return ``clear`` or ``handoff`` for the head of a session that started that way, or ``""``."""
    # Client 2.1.112 writes the command after the hooks' texts, which may be long, but each hook's record
    # names the event.
    if (
        b'"<command-name>/clear</command-name>' not in head
        and b'"hookName":"SessionStart:clear"' not in head
    ):
        return ""
    if f'"{AFTER_CLEAR_BEGINNING}'.encode() in head:
        return "handoff"
    return "clear"
