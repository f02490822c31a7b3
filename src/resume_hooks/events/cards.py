"""The texts that triggers show. Each ends in its useful line of at most 40 columns: a busy client shows no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from resume_hooks.clipboard import Copied
from resume_hooks.clock import minute
from resume_hooks.events.plain_cards import id_line, offer
from resume_hooks.glance import Glance
from resume_hooks.lineage import Ancestor
from resume_hooks.lineage_block import size_text
from resume_hooks.receipt import Receipt, resume_command
from resume_hooks.tokens import Context

NEARLY_FULL = 80
"""Per cent of the window from which on the card recommends something."""

ROOMY = 50
"""Per cent of the window below which a trimmed session is worth going on in."""

ROW = 68
"""Columns that a title may fill."""


class Leaves(NamedTuple):
    """Tokens that each way on would leave; ``trim`` None where that would take too long to tell."""

    trim: Context | None
    handoff: int


def resume_card(
    glance: Glance, session_id: str, folder: str, context: Context, leaves: Leaves, copied: Copied, text: str
) -> str:
    """``>resume``: the session, how full it is, and the choices with what each leaves and its command."""
    trimmed = f", about {leaves.trim.tokens:,} tokens" if leaves.trim else ""
    lines = [
        f"resume-hooks · {copied.sentence('session id')}",
        "",
        f"  {glance.title[:ROW]}",
        f"  {session_id}",
        f"  {_context(context)} · {size_text(glance.size)}{f' · {glance.branch}' if glance.branch else ''}",
        *(f"  {line}" for line in _advice(context, leaves.trim)),
        "",
        f"  a fresh, linked session, about {leaves.handoff:,} tokens",
        "      /resume-hooks:handoff [next step]   or  >handoff [next step]",
        f"  the same without its bulk{trimmed}",
        "      /resume-hooks:trim                  or  >trim",
        "  this session as it is, in this client, or in a shell",
        f"      /resume {session_id}",
        f"      {resume_command(folder, session_id)}",
        "  its ancestors",
        "      /resume-hooks:lineage               or  >lineage",
    ]
    return "\n".join(lines) + f"{offer(text)}\n\n{id_line(copied)}"


def handoff_card(receipt: Receipt, copied: Copied, next_step: str, *, slash: bool) -> str:
    """``>handoff``: the child, what it holds, and the two ways into it."""
    done = "handed off" if receipt.written else "already handed off"
    step = f"next step: {' '.join(next_step.split())[: ROW * 2]}" if next_step else "no next step given"
    return child_card(done, receipt, copied, [step], slash=slash)


def child_card(done: str, receipt: Receipt, copied: Copied, facts: Sequence[str], *, slash: bool) -> str:
    """A child that was made: ``done`` says how, ``facts`` are lines of what it holds."""
    # Beside a working model, client 2.1.329 shows 40 columns: of the last line, or of the first where one is wide.
    lines = [
        f"{done}{'' if slash else ' · Ctrl+C once, paste'} · {copied.sentence(receipt.in_client)}",
        "",
        f"  {receipt.title}",
        f"  {receipt.tokens_before:,} tokens here, about {receipt.tokens_after:,} there; this session stays as it is",
        *(f"  {fact}" for fact in facts),
        *(f"  note: {warning}" for warning in receipt.warnings),
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
        name = "(file gone)" if row.status == "missing" else row.title[:ROW]
        lines.append(f"  {number}. {name} · {row.derivation_type}{here}")
        dates = f" · {minute(row.created)} .. {minute(row.ended)} · {size_text(row.size)}" if row.created else ""
        lines.append(f"     {row.session_id or '(id unknown)'}{dates}")
    return "\n".join([*lines, "", "/resume <id> opens one of them."])


def _context(context: Context) -> str:
    about = "" if context.measured else "about "
    return f"context {about}{context.tokens:,} tokens, {context.percent} % of {context.window:,}"


def _advice(context: Context, trimmed: Context | None) -> list[str]:
    """What fits best, once there is something to decide."""
    if context.percent < NEARLY_FULL and not context.compacts_at_once:
        return []
    full = "Resuming it would compact at once" if context.compacts_at_once else "Nearly full"
    if trimmed is not None and trimmed.percent <= ROOMY:
        return [f"{full}: mostly bulk, a trim leaves {trimmed.percent} %."]
    return [f"{full}: a handoff leaves the most room."]


def _paste_line(copied: Copied, *, slash: bool) -> str:
    """How to get into the child; a ``>`` prompt comes back into the input box, a slash command leaves it empty."""
    if copied.how == "not copied":
        return "Type the /resume line above." if slash else "Ctrl+C once, type the /resume line."
    done = "Copied" if copied.how == "copied" else "Sent"
    return f"{done}: paste it, press Enter." if slash else f"{done}: Ctrl+C once, paste, Enter."
