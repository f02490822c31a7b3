"""The card of ``>resume``: the session, how full it is, and the ways on from it in one table.

The table serves the shell's ``resume`` and fits 80 columns; what it says is an estimate, and says so.
"""

from __future__ import annotations

from resume_hooks.clock import DAY, HOUR, MINUTE
from resume_hooks.derive.compare import GO_ON, HANDOFF, SMART_TRIM, TRIM, Advice, Comparison, Estimate
from resume_hooks.hooks.cards import ROW
from resume_hooks.hooks.plain_cards import id_line, offer
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.system.clipboard import Copied
from resume_hooks.system.invocation import resume_command
from resume_hooks.system.text import one_line, plain_line
from resume_hooks.transcripts.api_usage import FIVE_MINUTES
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.tokens import ContextUse

BRANCH = 40
"""Columns that the name of a branch may fill."""

NAMES = {TRIM: "a trim", SMART_TRIM: "a smart trim", HANDOFF: "a handoff"}
"""How a way on that is recommended is spoken of."""


def resume_card(found: Comparison, copied: Copied, text: str) -> str:
    """``>resume``: the session, how full it is, what each way on leaves and costs, and its command."""
    lines = [
        f"resume-hooks · {copied.sentence('session id')}",
        "",
        f"  {found.glance.title[:ROW]}",
        f"  {found.session_id}",
        f"  context {used(found.context)} · {size(found.glance)}",
        *(f"  {line}" for line in recommended(found)),
        "",
        *(f"  {line}" for line in table(found)),
        "",
        "  /resume-hooks:handoff [next step]   or  >handoff [next step]",
        "  /resume-hooks:rollover [focus]      or  >rollover [focus]",
        "  /resume-hooks:trim                  or  >trim",
        "  this session as it is, in this client, or in a shell",
        f"      /resume {found.session_id}",
        f"      {resume_command(found.folder, found.session_id)}",
        "  its ancestors",
        "      /resume-hooks:lineage           or  >lineage",
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


def recommended(found: Comparison) -> list[str]:
    """What fits best, in one line or two; nothing while there is room."""
    if found.advice is None:
        return []
    full = "Resuming it would compact at once" if found.context.compacts_at_once else "Nearly full"
    lines = [f"{full}: {NAMES[found.advice.strategy]} fits best ({found.advice.why})."]
    return [*lines, f"    {command_of(found.advice, found.session_id)}"]


def command_of(advice: Advice, session_id: str) -> str:
    """What to type for a way that is recommended; a smart trim is for the shell."""
    if advice.strategy == SMART_TRIM:
        return f"in a shell: resume-hooks smart-trim {session_id[:8]}"
    return f"/resume-hooks:{advice.strategy}"


def table(found: Comparison) -> list[str]:
    """The ways on, a line each, and what the estimates stand on."""
    rows = [f"{'estimated':<12}{'tokens after':>12}{'sent past the cache':>21}   cheaper than going on"]
    rows += [f"{row.name:<12}{row.after:>12,}{row.uncached:>21,}   {_pays(row)}".rstrip() for row in found.estimates]
    if not any(estimate.name == TRIM for estimate in found.estimates):
        rows.append(f"{TRIM:<12}{'nothing to trim' if found.trim_estimated else 'too much to tell here: >trim does'}")
    return [*rows, _cache(found), _habit(found)]


def _pays(estimate: Estimate) -> str:
    if estimate.name == GO_ON:
        return ""
    count = estimate.pays_after
    return "never" if count is None else f"after {count:,} turn{'s' if count != 1 else ''}"


def _cache(found: Comparison) -> str:
    """What of the session the API still has, as far as its own usage tells."""
    lifetime = found.traffic.lifetime
    if not lifetime:
        return "nothing of this session is cached: its requests used no cache"
    kept = "5 minutes" if lifetime == FIVE_MINUTES else "1 hour"
    if found.age is None:
        return f"no request was counted here yet; its cache is taken for cold (kept {kept})"
    if found.warm:
        return f"its cache is warm for {span(lifetime - found.age)} more (kept {kept})"
    return f"its cache is cold (kept {kept}, last request {span(found.age)} ago)"


def _habit(found: Comparison) -> str:
    seen = found.traffic
    plural = "s" if seen.requests != 1 else ""
    return f"a turn here is about {seen.requests:,} request{plural} and {seen.growth:,} tokens more"


def span(seconds: int) -> str:
    """A length of time in a whole unit that it has two of: ``40 s``, ``3 min``, ``5 h``, ``2 days``."""
    for unit, size in (("days", DAY), ("h", HOUR), ("min", MINUTE)):
        if seconds >= 2 * size:
            return f"{seconds // size:,} {unit}"
    return f"{seconds} s"
