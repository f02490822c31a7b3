"""Whether to write in colour: what the user's environment asks for, before what the terminal can do."""

from __future__ import annotations

from collections.abc import Mapping

DUMB = "dumb"
"""The terminal that obeys no sequence."""


def wanted(environ: Mapping[str, str]) -> bool | None:
    """False for never, True for also into a pipe, None for only on a terminal.

    ``NO_COLOR`` stands above all, then ``FORCE_COLOR`` and ``CLICOLOR_FORCE``, then a dumb terminal and ``CLICOLOR=0``.
    """
    if environ.get("NO_COLOR"):
        return False
    if any(environ.get(name, "0").lower() not in {"", "0", "false"} for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    never = environ.get("TERM") == DUMB or environ.get("CLICOLOR") == "0" or environ.get("FORCE_COLOR") == "0"
    return False if never else None
