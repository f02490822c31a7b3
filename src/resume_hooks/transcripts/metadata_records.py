"""Define the kinds of records outside the conversation, and the fields that contain their values.

The client appends a record of such a kind when its value changes, so the last record of a kind is
the valid one. The module also detects whether ``/clear`` started a session, because such a session
gets the title of the previous one.

The module uses only the standard library and runs with Python 3.9, because the session hooks import
it before the engine is installed.
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
# Records of these kinds describe the state of the user's files at the time of a message.
SNAPSHOT_KINDS = frozenset({FILE_SNAPSHOT, FILE_DELTA})
# Records of this kind list the tool results that the client shortens in requests. With this list, a
# resumed session sends the same bytes as before, so the API's cache stays valid.
SHORTENED_RESULTS_KIND = "content-replacement"

# Records of this kind are our own. They store a digest.
DIGEST_KIND = "resume-hooks-digest"
# Every digest starts with this text.
DIGEST_BEGINNING = "digest of what was done before"

IMPORT_FIELD = "import_metadata"
"""The field in the first line of an imported session. That line contains no other field."""

TITLE_FIELDS_BY_KIND = {
    CUSTOM_TITLE: "customTitle",
    AI_TITLE: "aiTitle",
    SUMMARY: "summary",
    TAG: "tag",
}
"""The kinds of records that contain a title or a tag of the session, each with the field for its
text."""

VALUE_FIELDS_BY_KIND = {**TITLE_FIELDS_BY_KIND, AGENT_NAME: "agentName", LAST_PROMPT: "lastPrompt"}

KINDS_WITHOUT_CONVERSATION_TEXT = SNAPSHOT_KINDS | {
    AGENT_NAME, LAST_PROMPT, QUEUE_OPERATION, PR_LINK, MODE, WORKTREE, SHORTENED_RESULTS_KIND, "api-request",
    "api-request-blob", "api-request-shape", "atis-latch", "bridge-session",
    "continued-in", "cost-state", "derived-from",
    "permission-mode", "tools-used", DIGEST_KIND,
}  # fmt: skip
"""Records of these kinds contain no words of the conversation.

The kind for queued prompts is included, because each queued prompt is recorded again when it is
sent.
"""


def make_label_record(kind: str, label: str, session_id: str) -> dict[str, Any]:
    """Return a record that sets a session's title, its tag or its agent name."""
    return {"type": kind, VALUE_FIELDS_BY_KIND[kind]: label, "sessionId": session_id}


OPENING_AFTER_CLEAR_PREFIX = "This session was started by /clear, after a handoff "
"""The start of the sentence that precedes a handoff's opening in a session that ``/clear`` started.
"""

LATER_PART_PREFIX = "More of what this session starts with"
"""The start of every part of a hook's text except the first part. ``parted_text`` joins the parts.
"""


def detect_start_after_clear(head: bytes) -> str:
    """Return how a session started, according to the first bytes of its file.

    The result is ``handoff`` if ``/clear`` started the session after a handoff, ``clear`` if
    ``/clear`` started it without a handoff, and ``""`` if it started in another way.
    """
    # In files of client 2.1.112, the texts of hooks precede the command and may be longer than
    # ``head``. Therefore the name of the hooks' event is also searched for. Each record of a hook
    # contains this name.
    if (
        b'"<command-name>/clear</command-name>' not in head
        and b'"hookName":"SessionStart:clear"' not in head
    ):
        return ""
    if f'"{OPENING_AFTER_CLEAR_PREFIX}'.encode() in head:
        return "handoff"
    return "clear"
