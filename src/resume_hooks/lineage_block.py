"""The lineage block: the text by which a fresh session knows its ancestors and how to reach them."""

from __future__ import annotations

from resume_hooks.clock import minute
from resume_hooks.lineage import Ancestor

OPENING = "[SESSION LINEAGE]"
CLOSING = "[/SESSION LINEAGE]"
FIRST, LAST = 2, 10
"""Ancestors that a long lineage names, from its two ends."""

_ADVICE = (
    "Context from parent sessions may be relevant: use the session-searcher agent or the session-search skill "
    "(outline, read, search --lineage); don't read these files whole."
)


def render(ancestors: list[Ancestor], *, title: str, session_id: str, file: str, created: str) -> str:
    """The block for a child whose ``ancestors`` are given oldest first; the child itself comes last."""
    lines = [OPENING, "This session continues from previous work (oldest first):"]
    for number, ancestor in enumerate(ancestors, 1):
        if len(ancestors) > FIRST + LAST and FIRST < number <= len(ancestors) - LAST:
            if number == FIRST + 1:
                lines.append(f"... and {len(ancestors) - FIRST - LAST} more")
            continue
        lines += [f"{number}. {_describe(ancestor)}", f"   {_escape(ancestor.session_file)}"]
    number = len(ancestors) + 1
    lines += [f"{number}. {_escape(title)} · {session_id} · {minute(created)} · current", f"   {_escape(file)}"]
    return "\n".join([*lines, _ADVICE, CLOSING])


def size_text(size: int) -> str:
    """Bytes for people: ``812 B``, ``4.1 KB``, ``52.4 MB``."""
    if size < 1_000:
        return f"{size} B"
    return f"{size / 1_000:.1f} KB" if size < 1_000_000 else f"{size / 1_000_000:.1f} MB"


def _describe(ancestor: Ancestor) -> str:
    if ancestor.status == "missing":
        return f"(file gone) · {ancestor.session_id} · {ancestor.derivation_type}"
    dates = f"{minute(ancestor.created)} .. {minute(ancestor.ended)}"
    facts = f"{dates} · {size_text(ancestor.size)} · {ancestor.derivation_type}"
    return f"{_escape(ancestor.title)} · {ancestor.session_id} · {facts}"


def _escape(text: str) -> str:
    """``text`` without the block's own markers: a title must not end the block."""
    flat = " ".join(text.split())
    return flat.replace(OPENING, "(SESSION LINEAGE)").replace(CLOSING, "(/SESSION LINEAGE)")
