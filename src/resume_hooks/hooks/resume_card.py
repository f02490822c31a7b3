"""``>resume``: the session, how full it is, and the ways to go on from it in one table.

The table serves the shell's ``resume`` and fits 80 columns; what it says is an estimate, and says so.
"""

from __future__ import annotations

from resume_hooks import clock
from resume_hooks.clock import span
from resume_hooks.derive.compare import GO_ON, HANDOFF, TRIM, Advice, Comparison, Estimate, compare
from resume_hooks.hooks.plain_cards import offer, session_card
from resume_hooks.hooks.request import Request, TriggerAnswer, time_limit
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.system.clipboard import Copied
from resume_hooks.system.invocation import typed
from resume_hooks.system.text import one_line, plain_line
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.tokens import ContextUse

NEXT = "To go on: /resume-hooks:handoff, or trim"

MOST_TURNS = 200
"""Turns after which something may be said to pay off; no session has as many."""

COLUMNS = 68
"""Columns of a line behind its indent."""

BRANCH = 40
"""Columns that the name of a branch may fill."""

NAMES = {TRIM: "a trim", HANDOFF: "a handoff"}
"""How a way that is recommended is called in a sentence."""


def answer(request: Request) -> TriggerAnswer:
    """Copy the session's id and compare the ways to go on; without a transcript copy the id alone."""
    session_id, text = request.session_id, request.text
    if request.path is None:
        return TriggerAnswer(session_id, lambda copied: session_card(session_id, copied, text))
    with time_limit(request.command):
        comparison = compare(request.session, request.where, request.window, clock.now())
    return TriggerAnswer(session_id, lambda copied: resume_card(comparison, copied, text))


def resume_card(comparison: Comparison, copied: Copied, text: str) -> str:
    """Show in ten lines how full the session is, and what each way to go on leaves and costs.

    The last says what to type: where it is nearly full, what fits best.
    """
    advice = comparison.advice
    filled = f"context {used(comparison.context)} · "
    lines = [
        f"session {copied.sentence(comparison.session_id)}",
        f"  {filled}{one_line(comparison.glance.title, COLUMNS - len(filled))}",
        *(f"  {line}" for line in ways(comparison)),
        f"  {best(advice, comparison) if advice else _cache(comparison)}{offer(text)}",
        f"Best: {command_of(advice)}" if advice else NEXT,
    ]
    return "\n".join(lines)


def used(context: ContextUse) -> str:
    """How full a context is: ``163,400 tokens, 82 % of 200,000``."""
    about = "" if context.measured else "about "
    return f"{about}{context.tokens:,} tokens, {context.percent} % of {context.window:,}"


def size(glance: HeadTail) -> str:
    """The size of its file, and the branch that it was on last: ``4.1 MB · main``."""
    branch = one_line(plain_line(glance.branch), BRANCH)
    return f"{size_text(glance.size)}{f' · {branch}' if branch else ''}"


def recommended(comparison: Comparison) -> list[str]:
    """What fits best and how it is typed in a shell, in two lines; nothing while there is room."""
    advice = comparison.advice
    if advice is None:
        return []
    return [best(advice, comparison), f"    {typed(f'{advice.strategy} {comparison.session_id[:8]}')}"]


def best(advice: Advice, comparison: Comparison) -> str:
    """What fits best, and why."""
    full = "Compacts at once" if comparison.context.compacts_at_once else "Nearly full"
    return f"{full}: {NAMES[advice.strategy]} fits best ({advice.why})."


def command_of(advice: Advice) -> str:
    """What to type in the client for a way that is recommended."""
    return f"/resume-hooks:{advice.strategy}"


def table(comparison: Comparison) -> list[str]:
    """The ways to go on, a line each, and what the estimates stand on."""
    return [*ways(comparison), _cache(comparison), _habit(comparison)]


def ways(comparison: Comparison) -> list[str]:
    """The ways to go on under their heads, a line each, by what they leave."""
    rows = [f"{'estimated':<12}{'context after':>13}{'at full price':>15}   cheaper than going on"]
    ways = comparison.estimates
    rows += [f"{way.name:<12}{way.after:>13,}{way.uncached:>15,}   {_pays(way)}".rstrip() for way in ways]
    if not any(way.name == TRIM for way in ways):
        why = "nothing to trim" if comparison.trim_estimated else "too long to look at here: >trim does"
        rows.insert(2, f"{TRIM:<12}{why}")
    return rows


def _pays(estimate: Estimate) -> str:
    if estimate.name == GO_ON:
        return ""
    count = estimate.pays_after
    return "never" if count is None or count > MOST_TURNS else f"after {count} turn{'s' if count != 1 else ''}"


def _cache(comparison: Comparison) -> str:
    """What all of the figures hold, and what of the session the API still has, as far as its own usage tells."""
    return f"all include {comparison.base.tokens:,} that any session starts with · cache: {_cached(comparison)}"


def _cached(comparison: Comparison) -> str:
    lifetime = comparison.traffic.lifetime
    if not lifetime:
        return "unused"
    if comparison.warm and comparison.age is not None:
        return f"{span(lifetime - comparison.age)} left"
    return "cold"


def _habit(comparison: Comparison) -> str:
    seen = comparison.traffic
    plural = "s" if seen.requests != 1 else ""
    return f"a turn here takes about {seen.requests:,} request{plural} and adds {seen.growth:,} tokens"
