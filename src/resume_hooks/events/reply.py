"""The reply of a UserPromptSubmit hook: nothing, so that the prompt passes, or a block with a reason to show.

Standard library, Python 3.9.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Optional

MAX_REASON = 9_500
"""Characters of a reason; the client cuts at 10,000."""


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
    if len(reason) > MAX_REASON:
        # The last line is the useful one; what is cut comes out of the middle.
        head, _, last = reason.rpartition("\n")
        reason = f"{head[: MAX_REASON - len(last) - 8]}\n  ...\n{last}"
    output = {"hookEventName": "UserPromptSubmit", "suppressOriginalPrompt": True}
    return json.dumps({"decision": "block", "reason": reason, "hookSpecificOutput": output}).encode()
