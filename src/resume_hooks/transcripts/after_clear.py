"""What ``/clear`` leaves in the session that it starts, to which the client gives the title of the one before.

Standard library and Python 3.9: the session hooks write here before the engine is installed.
"""

from __future__ import annotations

AFTER_CLEAR = "This session was started by /clear, after a handoff "
"""How a session that ``/clear`` started is told of the handoff that it took, before the handoff's own opening."""


def kind_after_clear(head: bytes) -> str:
    """How a session came to be that begins with these bytes, ``clear`` or ``handoff``; ``""`` for any other."""
    if b'"<command-name>/clear</command-name>' not in head:
        return ""
    return "handoff" if f'"{AFTER_CLEAR}'.encode() in head else "clear"
