"""The texts that triggers show. Each ends in its useful line of at most 40 columns: a busy client shows no more."""

from __future__ import annotations

import os
from collections.abc import Sequence

from resume_hooks.clock import minute
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.rollover import RolloverPlan, digest_reference
from resume_hooks.sessions.lineage import KEPT, MISSING, Ancestor
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.system.clipboard import Copied

ROW = 68
"""Columns that a title may fill."""

CLEARED = "/clear instead of the paste works too: it opens with the same, shorter where that is long"
"""The fact of a child that waits for ``/clear``."""

COUNTED = {
    "constraints": ("constraint", "constraints"),
    "changed": ("file", "files"),
    "commands": ("command", "commands"),
    "failures": ("failure", "failures"),
    "decisions": ("decision", "decisions"),
}
"""What a card counts of a digest, one and several."""


def holds(decided: RolloverPlan) -> list[str]:
    """What the digest of a fresh child holds, and where all of it is read; nothing without one."""
    digest = decided.contents.digest
    if digest is None:
        return []
    counts = {name: len(digest.of(name)) + digest.omitted.get(name, 0) for name in COUNTED}
    said = ", ".join(f"{count} {COUNTED[name][count != 1]}" for name, count in counts.items() if count)
    return [
        f"digest: {said or 'your prompts'}",
        f"  all of it: resume-hooks read {digest_reference(decided.birth.session_id)}",
    ]


def handoff_card(
    receipt: Receipt, copied: Copied, next_step: str, facts: Sequence[str] = (), *, slash: bool, waits: bool = False
) -> str:
    """``>handoff``: the child, what it holds (``facts``), the ways into it; ``waits``: ``/clear`` is one of them."""
    done = "handed off" if receipt.written else "already handed off"
    step = f"next step: {' '.join(next_step.split())[: ROW * 2]}" if next_step else "no next step given"
    return child_card(done, receipt, copied, [step, *facts, *([CLEARED] if waits else [])], slash=slash)


def child_card(done: str, receipt: Receipt, copied: Copied, facts: Sequence[str], *, slash: bool) -> str:
    """A child that was made: ``done`` says how, ``facts`` are lines of what it holds."""
    # Beside a working model, client 2.1.329 shows 40 columns: of the last line, or of the first where one is wide.
    lines = [
        f"{done}{'' if slash else ' · Ctrl+C once, paste'} · {copied.sentence(receipt.in_client)}",
        "",
        f"  {receipt.title}",
        f"  {receipt.sizes}; this session stays as it is",
        *(f"  {fact}" for fact in facts),
        *(f"  note: {warning}" for warning in receipt.warnings),
        *([] if os.path.isdir(receipt.folder) else [f"  note: {receipt.folder} is gone: use the first of these"]),
        "",
        f"  in this client   {receipt.in_client}",
        f"  in a shell       {receipt.shell}",
        "",
    ]
    return "\n".join([*lines, _paste_line(copied, slash=slash)])


def lineage_card(rows: list[Ancestor]) -> str:
    """``>lineage``: the ancestors, oldest first, each with what resumes it."""
    count = len(rows)
    lines = [f"resume-hooks · lineage, oldest first ({count} session{'s' if count != 1 else ''})", ""]
    for number, row in enumerate(rows, 1):
        here = " · this session" if number == count else ""
        title = f"{row.title[:ROW]}{' (kept copy)' if row.status == KEPT else ''}"
        name = "(file gone)" if row.status == MISSING else title
        lines.append(f"  {number}. {name} · {row.derivation_type}{here}")
        dates = f" · {minute(row.created)} .. {minute(row.ended)} · {size_text(row.size)}" if row.created else ""
        lines.append(f"     {row.session_id or '(id unknown)'}{dates}")
    kept = [row.session_id for row in rows if row.status == KEPT]
    back = [f"A kept copy has to come back first: resume-hooks restore {kept[0]}"] if kept else []
    return "\n".join([*lines, "", *back, "/resume <id> opens one of them."])


def _paste_line(copied: Copied, *, slash: bool) -> str:
    """How to get into the child; a ``>`` prompt comes back into the input box, a slash command leaves it empty."""
    if copied.how == "not copied":
        return "Type the /resume line above." if slash else "Ctrl+C once, type the /resume line."
    done = "Copied" if copied.how == "copied" else "Sent"
    return f"{done}: paste it, press Enter." if slash else f"{done}: Ctrl+C once, paste, Enter."
