"""The clients that call our hooks, their events, and our replies: a blocked prompt, or a session's start.

Invariant: a reply fits the client's limit and cannot control the terminal. Standard library, Python
3.9.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from resume_hooks.part_table import HOSTS
from resume_hooks.paths import Where, find_session, verify_session_path
from resume_hooks.system.text import cut_to_utf16_units, plain_line, plain_text, utf16_length

Event = dict[str, Any]


class Host(NamedTuple):
    """A client, and the JSON that blocks a prompt in it.

    ``extra_fields`` contains the JSON's fields other than the reason. ``rewrite_text`` rewrites our
    text for the client's users. ``empties_input`` means that the input box is empty after a prompt
    is blocked.
    """

    name: str
    extra_fields: dict[str, Any]
    rewrite_text: Callable[[str], str]
    empties_input: bool


CLAUDE = Host(
    "claude",
    {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "suppressOriginalPrompt": True}},
    str,
    empties_input=False,
)


def host_of_event(event: Event) -> Host:
    """Return the client that sent an event."""
    for part, fields, host in HOSTS.values():
        if all(event.get(field) for field in fields):
            from resume_hooks import seam  # events of Claude Code do not need this import

            if seam.is_installed(part):
                return cast("Host", seam.load_value(part, host))
    return CLAUDE


# the maximum size of hook input in bytes; a trigger is never that long
MAX_INPUT_BYTES = 32 * 1024 * 1024
# the maximum length of a reason in UTF-16 units; the client cuts its strings at 10,000
MAX_REASON_UTF16_UNITS = 9_500
# a last line of up to this many UTF-16 units survives a cut; a longer one is cut like the rest
MAX_LAST_LINE_UNITS = 200

# the maximum length in UTF-16 units of a hook's text for the model; above 10,000 the client shows
# only a preview
MAX_START_UNITS = 9_950

CUT_NOTICE = "\n  ... (cut; press Up for your prompt)"


def read_stdin(max_bytes: int = MAX_INPUT_BYTES) -> dict[str, Any] | None:
    """Return the hook's input. Return None if it is too long, not a JSON object, or if hooks must not act.

    Hooks must not act in a headless client that we started, or if no variable names the user's
    home.
    """
    raw, environ = sys.stdin.buffer.read(max_bytes + 1), os.environ
    has_home = environ.get("CLAUDE_CONFIG_DIR") or environ.get("HOME") or os.name == "nt"
    if len(raw) > max_bytes or environ.get("RESUME_HOOKS_CHILD") or not has_home:
        return None
    return parse_event(raw)


def write_reply(reply: bytes) -> None:
    """Write a reply for the client."""
    sys.stdout.buffer.write(reply)
    sys.stdout.buffer.flush()


def is_headless() -> bool:
    """Check whether the client runs without a screen (``-p``)."""
    return os.environ.get("CLAUDE_CODE_ENTRYPOINT", "").startswith("sdk")


def parse_event(raw: bytes) -> dict[str, Any] | None:
    """Return the hook's input, or None if it is not a JSON object.

    Invalid UTF-8 is replaced and never raises.
    """
    try:
        event = json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if isinstance(event, dict):
        return event
    return None


def text_field(event: dict[str, Any], name: str) -> str:
    """Return a string field of the event, or ``""``."""
    value = event.get(name)
    if isinstance(value, str):
        return value
    return ""


def find_transcript(event: dict[str, Any], session_id: str, where: Where) -> str | None:
    """Return the event's transcript if it belongs to the session, else the newest file with the session's id.

    Return None if there is none.
    """
    return verify_session_path(
        text_field(event, "transcript_path"), session_id, where
    ) or find_session(session_id, where)


def block_reply(reason: str, host: Host = CLAUDE) -> bytes:
    """Return a reply that blocks the prompt and shows ``reason`` only to the user."""
    return json.dumps(
        {
            "decision": "block",
            "reason": _shorten_reason(plain_text(host.rewrite_text(reason))),
            **host.extra_fields,
        }
    ).encode()


def start_reply(context: str, message: str) -> bytes:
    """Return the reply to a session's start: ``context`` for the model, and one line of ``message`` for the user.

    Either may be empty. Return ``b""`` if both are empty.
    """
    context_text, line = plain_text(context), plain_line(message)
    output: dict[str, Any] = {"systemMessage": line} if line else {}
    if context_text.strip():
        shown_context = cut_to_utf16_units(context_text, MAX_START_UNITS)
        output["hookSpecificOutput"] = {
            "hookEventName": "SessionStart",
            "additionalContext": shown_context,
        }
    # The JSON is not escaped, because the client copies this text to the head of the session's
    # file, which listings read.
    if output:
        return json.dumps(output, ensure_ascii=False).encode()
    return b""


def _shorten_reason(reason: str) -> str:
    """Return ``reason``, shortened to the limit.

    Only the middle is removed, because the last line is the useful one.
    """
    if utf16_length(reason) <= MAX_REASON_UTF16_UNITS:
        return reason
    last_line = reason[reason.rfind("\n") :] if "\n" in reason else ""
    if utf16_length(last_line) > MAX_LAST_LINE_UNITS:
        last_line = ""
    max_units = MAX_REASON_UTF16_UNITS - utf16_length(last_line) - len(CUT_NOTICE)
    return f"{cut_to_utf16_units(reason, max_units)}{CUT_NOTICE}{last_line}"
