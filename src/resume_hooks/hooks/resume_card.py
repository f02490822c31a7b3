"""``>resume``: the session, how full it is, and the ways to go on from it in one table.

The table serves the shell's ``resume`` and fits 80 columns; what it says is an estimate, and says so.
"""

from __future__ import annotations

import os

from resume_hooks import clock
from resume_hooks.clock import DAY, HOUR, MINUTE
from resume_hooks.derive.compare import GO_ON, HANDOFF, SMART_TRIM, TRIM, Advice, Comparison, Estimate, compare
from resume_hooks.hooks.plain_cards import ROW, id_line, offer, session_card
from resume_hooks.hooks.request import Request, TriggerAnswer, time_limit
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.system.clipboard import Copied
from resume_hooks.system.invocation import resume_command, typed
from resume_hooks.system.text import one_line, plain_line
from resume_hooks.transcripts.api_usage import FIVE_MINUTES
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.tokens import ContextUse

INCLUDED = "context after includes what every session starts with (system prompt, tools)"
"""What a figure of the table holds."""

BRANCH = 40
"""Columns that the name of a branch may fill."""

NAMES = {TRIM: "a trim", SMART_TRIM: "a smart trim", HANDOFF: "a handoff"}
"""How a way that is recommended is called in a sentence."""


def answer(request: Request) -> TriggerAnswer:
    """Copy the session's id and compare the ways to go on; without a transcript copy the id alone."""
    session_id, text = request.session_id, request.text
    if request.path is None:
        return TriggerAnswer(session_id, lambda copied: session_card(session_id, copied, text))
    with time_limit(request.command):
        comparison = compare(session_id, request.path, request.where, request.window, clock.now())
    return TriggerAnswer(session_id, lambda copied: resume_card(comparison, copied, text))


def resume_card(comparison: Comparison, copied: Copied, text: str) -> str:
    """Show the session, how full it is, what each way to go on leaves and costs, and its command."""
    session_id = comparison.session_id
    lines = [
        f"resume-hooks · {copied.sentence('session id')}",
        "",
        f"  {comparison.glance.title[:ROW]}",
        f"  {session_id}",
        f"  context {used(comparison.context)} · {size(comparison.glance)}",
        *(f"  {line}" for line in recommended(comparison)),
        "",
        *(f"  {line}" for line in table(comparison)),
        "",
        "  /resume-hooks:handoff [next step]   or  >handoff [next step]",
        "  /resume-hooks:rollover [focus]      or  >rollover [focus]",
        "  /resume-hooks:trim                  or  >trim",
        "  /resume-hooks:lineage               or  >lineage",
        "  to open this session again, in this client or in a shell:",
        f"      /resume {session_id}",
        f"      {resume_command(comparison.folder, session_id)}",
    ]
    return "\n".join(lines) + f"{offer(text)}\n\n{id_line(copied)}"


def used(context: ContextUse) -> str:
    """How full a context is: ``163,400 tokens, 82 % of 200,000``."""
    about = "" if context.measured else "about "
    return f"{about}{context.tokens:,} tokens, {context.percent} % of {context.window:,}"


def size(glance: HeadTail) -> str:
    """The size of its file, and the branch that it was on last: ``4.1 MB · main``."""
    branch = one_line(plain_line(glance.branch), BRANCH)
    return f"{size_text(glance.size)}{f' · {branch}' if branch else ''}"


def recommended(comparison: Comparison) -> list[str]:
    """What fits best, in one line or two; nothing while there is room."""
    advice = comparison.advice
    if advice is None:
        return []
    full = "Resuming it would compact at once" if comparison.context.compacts_at_once else "Nearly full"
    best = f"{full}: {NAMES[advice.strategy]} fits best ({advice.why})."
    return [best, f"    {command_of(advice, comparison.session_id)}"]


def command_of(advice: Advice, session_id: str) -> str:
    """What to type for a way that is recommended; a smart trim is for the shell."""
    if advice.strategy == SMART_TRIM:
        return f"in a shell: {typed(f'smart-trim {session_id[:8]}', os.environ)} (asks a model, costs tokens)"
    return f"/resume-hooks:{advice.strategy}"


def table(comparison: Comparison) -> list[str]:
    """The ways to go on, a line each, and what the estimates stand on."""
    rows = [f"{'estimated':<12}{'context after':>13}{'paid in full (not in the cache)':>33}   pays off"]
    ways = comparison.estimates
    rows += [f"{way.name:<12}{way.after:>13,}{way.uncached:>33,}   {_pays(way)}".rstrip() for way in ways]
    if not any(way.name == TRIM for way in ways):
        why = "nothing to trim" if comparison.trim_estimated else "too long to look at here: >trim does"
        rows.append(f"{TRIM:<12}{why}")
    return [*rows, INCLUDED, _cache(comparison), _habit(comparison)]


def _pays(estimate: Estimate) -> str:
    if estimate.name == GO_ON:
        return ""
    count = estimate.pays_after
    return "never" if count is None else f"after {count:,} turn{'s' if count != 1 else ''}"


def _cache(comparison: Comparison) -> str:
    """What of the session the API still has, as far as its own usage tells."""
    lifetime = comparison.traffic.lifetime
    if not lifetime:
        return "prompt cache: none, the requests of this session used none"
    kept = "5 minutes" if lifetime == FIVE_MINUTES else "1 hour"
    if comparison.age is None:
        return f"prompt cache: taken for cold, no request was counted here yet (it lasts {kept})"
    if comparison.warm:
        return f"prompt cache: warm for {span(lifetime - comparison.age)} more (it lasts {kept})"
    return f"prompt cache: cold (it lasts {kept}, last request {span(comparison.age)} ago)"


def _habit(comparison: Comparison) -> str:
    seen = comparison.traffic
    plural = "s" if seen.requests != 1 else ""
    return f"a turn here takes about {seen.requests:,} request{plural} and adds {seen.growth:,} tokens"


def span(seconds: int) -> str:
    """A length of time in a whole unit that it has two of: ``40 s``, ``3 min``, ``5 h``, ``2 days``."""
    for unit, size in (("days", DAY), ("h", HOUR), ("min", MINUTE)):
        if seconds >= 2 * size:
            return f"{seconds // size:,} {unit}"
    return f"{seconds} s"
