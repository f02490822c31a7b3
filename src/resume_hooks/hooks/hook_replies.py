"""Read the client's hook events, and write replies: block a prompt, or show text when a session starts.

Invariant: a reply fits the client's limits, and its text can't control the terminal. This module
uses only the standard library.
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
    """A client that calls our hooks, and the form of the reply that blocks a prompt in this client.

    ``extra_fields`` are the fields of the reply other than the reason. ``rewrite_text`` adapts our
    texts to the client. ``empties_input`` says whether the client empties the input box when a
    prompt is blocked.
    """

    name: str
    extra_fields: dict[str, Any]
    rewrite_text: Callable[[str], str]
    empties_input: bool


CLAUDE_HOST = Host(
    "claude",
    {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "suppressOriginalPrompt": True}},
    str,
    empties_input=False,
)


def host_of_event(event: Event) -> Host:
    """Return the client that sent an event."""
    for part, fields, host in HOSTS.values():
        if all(event.get(field) for field in fields):
            # Imported late because events of Claude Code do not need it.
            from resume_hooks import seam

            if seam.is_installed(part):
                return cast("Host", seam.load_part_object(part, host))
    return CLAUDE_HOST


# the maximum number of bytes of an event; a prompt that is a trigger is much shorter
MAX_INPUT_BYTES = 32 * 1024 * 1024
# the maximum number of UTF-16 units of a reason; the client cuts texts at 10,000
MAX_REASON_UTF16_UNITS = 9_500
# When a reason is shortened, its last line is kept if it has at most this number of UTF-16 units.
MAX_LAST_LINE_UNITS = 200

# the maximum number of UTF-16 units of a hook's text for the model; the client shows only the
# beginning of a text of more than 10,000 units
MAX_START_UNITS = 9_950

CUT_NOTICE = "\n  ... (cut; press Up for your prompt)"


def read_stdin(max_bytes: int = MAX_INPUT_BYTES) -> dict[str, Any] | None:
    """Return the event on stdin. Return None if it is too long or not a JSON object.

    Also return None if hooks must not act, that is, if this is a headless client that we started,
    or if no variable names the user's home folder.
    """
    raw, environ = sys.stdin.buffer.read(max_bytes + 1), os.environ
    has_home = environ.get("CLAUDE_CONFIG_DIR") or environ.get("HOME") or os.name == "nt"
    if len(raw) > max_bytes or environ.get("RESUME_HOOKS_CHILD") or not has_home:
        return None
    return parse_event(raw)


def write_reply(reply: bytes) -> None:
    """Write a reply to stdout, where the client reads it."""
    sys.stdout.buffer.write(reply)
    sys.stdout.buffer.flush()


def is_headless() -> bool:
    """Check whether the client runs without a screen (``claude -p``)."""
    return os.environ.get("CLAUDE_CODE_ENTRYPOINT", "").startswith("sdk")


def parse_event(raw: bytes) -> dict[str, Any] | None:
    """Return an event, or None if it is not a JSON object. Replace bytes that are not valid UTF-8."""
    try:
        event = json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if isinstance(event, dict):
        return event
    return None


def text_field(event: dict[str, Any], name: str) -> str:
    """Return a field of the event if it is a string, else ``""``."""
    value = event.get(name)
    if isinstance(value, str):
        return value
    return ""


def find_transcript(event: dict[str, Any], session_id: str, where: Where) -> str | None:
    """Return the path of the session's transcript, or None if there is no file.

    Use the path in the event if its file belongs to the session, else the newest file with the
    session's id.
    """
    return verify_session_path(
        text_field(event, "transcript_path"), session_id, where
    ) or find_session(session_id, where)


def block_reply(reason: str, host: Host = CLAUDE_HOST) -> bytes:
    """Return a reply that blocks the prompt. Only the user sees ``reason``, not the model."""
    return json.dumps(
        {
            "decision": "block",
            "reason": _shorten_reason(plain_text(host.rewrite_text(reason))),
            **host.extra_fields,
        }
    ).encode()


def start_reply(context: str, message: str) -> bytes:
    """Return the reply of a hook that runs when a session starts.

    The model reads ``context``. The user reads ``message``, which is joined into one line. Either
    may be empty. If both are empty, return ``b""``.
    """
    context_text, line = plain_text(context), plain_line(message)
    output: dict[str, Any] = {"systemMessage": line} if line else {}
    if context_text.strip():
        shown_context = cut_to_utf16_units(context_text, MAX_START_UNITS)
        output["hookSpecificOutput"] = {
            "hookEventName": "SessionStart",
            "additionalContext": shown_context,
        }
    # The text has no ``\u`` escapes, because the client copies it to the beginning of the session's
    # file, where lists of sessions read it.
    if output:
        return json.dumps(output, ensure_ascii=False).encode()
    return b""


def _shorten_reason(reason: str) -> str:
    """Return ``reason``, shortened to the client's limit.

    The last line is kept, because it says what to do.
    """
    if utf16_length(reason) <= MAX_REASON_UTF16_UNITS:
        return reason
    last_line = reason[reason.rfind("\n") :] if "\n" in reason else ""
    if utf16_length(last_line) > MAX_LAST_LINE_UNITS:
        last_line = ""
    max_units = MAX_REASON_UTF16_UNITS - utf16_length(last_line) - len(CUT_NOTICE)
    return f"{cut_to_utf16_units(reason, max_units)}{CUT_NOTICE}{last_line}"
