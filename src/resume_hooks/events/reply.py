"""The reply of a UserPromptSubmit hook: nothing, so that the prompt passes, or a block with a reason to show.

Invariant: whatever a card holds, its reason fits the client's cap and can't drive the terminal. Standard library,
Python 3.9.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Optional

from resume_hooks.plain import plain

MAX_REASON = 9_500
"""UTF-16 units of a reason; the client cuts its strings at 10,000."""

MAX_LAST = 200
"""Units of a last line that survives a cut; a longer one is no last line but a text."""

CUT = "\n  ... (cut; arrow up has your prompt)"


def read_event(raw: bytes) -> Optional[Dict[str, Any]]:
    """The hook's input, or None where it is no JSON object; bad UTF-8 is replaced, never raised."""
    try:
        event = json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None


def field(event: Dict[str, Any], name: str) -> str:
    """A string of the event, or ``""``."""
    value = event.get(name)
    return value if isinstance(value, str) else ""


def block(reason: str) -> bytes:
    """A reply that keeps the prompt from the model and shows ``reason`` to the user alone."""
    output = {"hookEventName": "UserPromptSubmit", "suppressOriginalPrompt": True}
    return json.dumps({"decision": "block", "reason": _fit(plain(reason)), "hookSpecificOutput": output}).encode()


def _fit(reason: str) -> str:
    """``reason`` within the cap; the last line is the useful one, so what is cut comes out of the middle."""
    if _units(reason) <= MAX_REASON:
        return reason
    last = reason[reason.rfind("\n") :] if "\n" in reason else ""
    if _units(last) > MAX_LAST:
        last = ""
    room = MAX_REASON - _units(last) - len(CUT)
    return f"{_utf16(reason)[: 2 * room].decode('utf-16-le', 'ignore')}{CUT}{last}"


def _units(text: str) -> int:
    return len(_utf16(text)) // 2


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-le", "replace")
