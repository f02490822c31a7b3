"""``>resume``: the session's size and the best way to continue, in one line.

``--table`` adds the table of all ways to continue.

The shell's ``resume`` uses both. The table has 48 columns, the width of the client's pane; its
numbers are estimates, as its heading says.
"""

from __future__ import annotations

from collections.abc import Callable
from textwrap import wrap

from resume_hooks import clock
from resume_hooks.clock import format_duration
from resume_hooks.derive.compare import (
    COLD_CACHE_REASON,
    COMPACT,
    FRESH_STRATEGIES,
    GO_ON,
    HANDOFF,
    ROLLOVER,
    TRIM,
    Comparison,
    Estimate,
    SizeEstimate,
    compare_strategies,
)
from resume_hooks.derive.dial import DialSize
from resume_hooks.derive.opening_size import WHOLE_SESSION
from resume_hooks.derive.outcome import Report, report_on_text
from resume_hooks.derive.trim.options import WORTH
from resume_hooks.errors import UsageError
from resume_hooks.hooks.plain_cards import LITTLE, offer_as_handoff, session_card
from resume_hooks.hooks.request import Request, time_limit
from resume_hooks.hooks.triggers import BARE, Trigger
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.system.copy_result import CopyResult
from resume_hooks.system.text import collapse_line, format_count, plain_line
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.tokens import ContextSize, stated_size

TABLE = "--table"  # typed to see the table of all ways to continue
MOST_TURNS = 200  # turns after which savings are no longer shown; no session is that long
TABLE_COLUMNS = 48
COLUMNS = 68  # the columns of a line after its indent
BRANCH = 40  # the columns of a branch's name
NAMES = {
    TRIM: "a trim",
    HANDOFF: "a handoff",
}  # the names of the recommended ways in a sentence


def answer(request: Request) -> Report:
    """Copy the session's id and compare the ways to continue.

    Without a transcript, only copy the id.
    """
    session_id, trigger = request.session_id, request.trigger
    first, *rest = trigger.text.split(None, 1) or [""]
    whole = first == TABLE
    if first.startswith("--") and not whole:
        raise UsageError(
            f"{collapse_line(first, COLUMNS)} is not an option here: there is {TABLE}",
            f"Type: {request.typed_name} {TABLE}",
        )
    asked = trigger._replace(text="".join(rest)) if whole else trigger
    if not _has_turns(request):
        if trigger.sign == BARE:
            if asked.text:
                unsent = f"\n\n  Your text was not sent: {asked.text}"
            else:
                unsent = ""
            return report_on_text(f"This session has no prompt yet. Nothing needed.{unsent}")
        return Report(lambda copied: session_card(session_id, copied, asked), to_copy=session_id)
    with time_limit(request.command):
        comparison = compare_strategies(request.session, request.where, clock.now())

    def card(copied: CopyResult) -> str:
        return resume_card(comparison, copied, asked, whole=whole)

    more = () if trigger.text else tuple(table(comparison))
    return Report(card, to_copy=session_id, more=more)


def _has_turns(request: Request) -> bool:
    """Check whether the session has turns, or is a child of ours, which begins with a digest."""
    if request.path is None:
        return False
    session = request.session
    return stated_size(session.file) is not None or session.head_tail.own_turns


def resume_card(
    comparison: Comparison, copied: CopyResult, trigger: Trigger, *, whole: bool = False
) -> str:
    """Return the card: the recommendation and the session, with the table if ``whole``."""
    filled = f"context {used(comparison.context)} · "
    lines = [
        headline(comparison, trigger.name),
        *([] if trigger.sign == BARE else [f"session {copied.sentence(comparison.session_id)}"]),
        f"  {filled}{collapse_line(comparison.glance.title, COLUMNS - len(filled))}",
        *(f"  {line}" for line in _ways(comparison, trigger.name)),
        *(f"  {line}" for line in (table(comparison) if whole else [])),
    ]
    if comparison.advice:
        advised = trigger.name(comparison.advice.strategy)
    else:
        advised = GO_ON
    if whole:
        last = f"Best: {advised}"
    else:
        last = f"Table: {trigger.name('resume')} {TABLE}"
    return "\n".join(lines) + offer_as_handoff(trigger) + f"\n{last}"


def headline(comparison: Comparison, command: Callable[[str], str]) -> str:
    """Return the session's size, the sizes after a handoff and a trim, and the best way; ``command`` names a verb."""
    context, advice, left = comparison.context, comparison.advice, comparison.prompts_left
    many = _prompts_in_words(left or 0)
    if advice is None and context.most_percent < LITTLE:
        full = f"{context.most_percent} % full (of {context.limit:,} tokens)"
        if context.window_known:
            filled = full
        else:
            filled = f"{used(context)} {context.share}"
        return f"{filled}. Nothing needed{'' if left is None else f': room for {many}'}."
    if context.window_known:
        filled = context.share
    else:
        filled = f"{used(context)} {context.share}"
    handoff, trimmed = (
        comparison.tokens_after_strategy(HANDOFF),
        comparison.tokens_after_strategy(TRIM),
    )
    most = "" if comparison.planned else "at most "
    if 0 < handoff < context.tokens:
        leaves = [f"{command(HANDOFF)} leaves {most}{round_tokens(handoff)} tokens"]
    else:
        leaves = []
    if trimmed and context.tokens - trimmed >= WORTH:
        leaves.append(
            f"{command(TRIM)} "
            f"{'' if leaves else 'leaves '}{round_tokens(trimmed)}{'' if leaves else ' tokens'}"
        )
    if advice is None:
        best = _going_on(comparison, many, command)
    else:
        if advice.why == COLD_CACHE_REASON:
            why = advice.why
        else:
            why = _pressure(context, left, many)
        best = f"{command(advice.strategy)} fits best: {why}"
    said = f"{', '.join(leaves)}; " if leaves else ""
    return f"{filled}. {said}{best}."


def _prompts_in_words(left: int) -> str:
    if left > MOST_TURNS:
        return f"more than {MOST_TURNS} prompts"
    return f"about {format_count(left, 'prompt')}"


def _going_on(comparison: Comparison, many: str, command: Callable[[str], str]) -> str:
    """Say how many prompts fit, and which way would cost less by then; ``many`` is the number in words."""
    left = comparison.prompts_left
    if left is None:
        return "going on is fine"
    sooner = []
    for way in comparison.estimates:
        is_worth = comparison.context.tokens - way.after >= WORTH
        if way.name in {HANDOFF, TRIM} and is_worth and 0 < (way.pays_after or 0) <= left:
            sooner.append(way)
    if not sooner:
        return f"going on is fine for {many}"
    way = min(sooner, key=lambda each: each.pays_after or 0)
    after = format_count(way.pays_after or 0, "prompt")
    return f"there is room for {many}; {command(way.name)} costs less after {after}"


def _pressure(context: ContextSize, left: int | None, many: str) -> str:
    """Say why a session needs to become smaller soon; ``many`` is the number of prompts left, in words."""
    if context.compacts_at_once:
        return "it is about to be compacted"
    if left:
        return f"{many} left"
    return "nearly full"


def _ways(comparison: Comparison, command: Callable[[str], str]) -> list[str]:
    """Return the ways to shrink a session if the headline names none."""
    if comparison.advice is not None or comparison.context.most_percent >= LITTLE:
        return []
    means = {
        HANDOFF: "continue in a new session, with what was said here",
        TRIM: "continue without old tool output",
    }
    ways = []
    for way, what in means.items():
        if comparison.tokens_after_strategy(way):
            ways.append(f"{command(way)}: {what}")
    return ways


def round_tokens(tokens: int) -> str:
    """Return a number rounded to thousands, below ten thousand to two digits: ``107,000``, ``1,200``."""
    return f"{round(tokens, max(-3, 2 - len(str(tokens)))):,}"


def used(context: ContextSize) -> str:
    """Return the size of the context: ``163,400 tokens``."""
    return f"{'about ' if context.is_estimate else ''}{context.tokens:,} tokens"


def size_and_branch(glance: HeadTail) -> str:
    """Return the size of the session's file and its last branch: ``4.1 MB · main``."""
    branch = collapse_line(plain_line(glance.branch), BRANCH)
    return f"{size_text(glance.size)}{f' · {branch}' if branch else ''}"


def table(comparison: Comparison) -> list[str]:
    """Return a line for each way to continue: the size after it, the cost of its first request, and its content.

    A way that does not shrink the session is omitted, except for a copy.
    """
    rows = [f"{'estimated':<11}{'leaves':>6}{'warm':>5}{'cold':>5}  carries"]
    most = comparison.context.tokens
    for way in comparison.estimates:
        if way.name == HANDOFF and comparison.dial:
            sizes = []
            for each in comparison.dial:
                if each.dial_size.after < most or each.dial_size.size == WHOLE_SESSION:
                    sizes.append(each)
            for each in sizes:
                rows.append(_size_row(each))
        elif way.name not in FRESH_STRATEGIES or way.after < most:
            rows.append(_way_row(way.name, way.after, way, _WAY_CARRIES[way.name]))
    if not any(way.name == TRIM for way in comparison.estimates):
        if comparison.trim_estimated:
            why = "nothing to trim"
        else:
            why = "too large for an estimate; try a trim"
        rows.insert(2, f"{TRIM:<11}{why}")
    paid = wrap(_pay_line(comparison), TABLE_COLUMNS, subsequent_indent="  ")
    base = f"{comparison.base.tokens:,} of each: instructions and tools"
    return [
        *rows,
        "warm, cold: its first request, in input tokens",
        *paid,
        base,
        *_habit(comparison),
    ]


def _size_row(size: SizeEstimate) -> str:
    return _way_row(
        f"{HANDOFF} {size.dial_size.size}",
        size.dial_size.after,
        size,
        _size_carries(size.dial_size),
    )


def _way_row(name: str, after: int, costs: Estimate | SizeEstimate, carries: str) -> str:
    return f"{name:<11}{_short(after):>6}{_short(costs.warm):>5}{_short(costs.cold):>5}  {carries}"


def _short(tokens: int) -> str:
    """Return a number of tokens in four characters: ``980``, ``42k``, ``1.2M``."""
    if tokens < 1_000:
        return str(tokens)
    thousands = round(tokens / 1_000)
    if thousands < 1_000:
        return f"{thousands}k"
    return f"{tokens / 1_000_000:.1f}M"


_WAY_CARRIES = {
    GO_ON: "everything",
    TRIM: "less tool output",
    HANDOFF: "nothing was asked",
    ROLLOVER: "and a summary",
    COMPACT: "a summary",
}


def _size_carries(size: DialSize) -> str:
    """Describe the content of a handoff of some size in words that fit the table."""
    if size.size == WHOLE_SESSION:
        return "everything, a copy"
    if size.cut is None:
        return "as much as fits"
    if size.is_lists:
        return "lists, last answer"
    if size.cut:
        return f"cuts {_short(size.cut)} of {_short(size.whole)}"
    if size.has_calls:
        return "talk, latest calls"
    return "the whole talk"


def _pay_line(comparison: Comparison) -> str:
    """Return the number of prompts after which each way costs less than continuing."""
    counts = ((way.name, way.pays_after or 0) for way in comparison.estimates)
    paid = []
    for name, count in counts:
        if 0 < count <= MOST_TURNS:
            paid.append(f"{name} {count}")
    if paid:
        return f"pays off after prompts: {', '.join(paid)}"
    return f"none pays off within {MOST_TURNS} prompts"


def _habit(comparison: Comparison) -> list[str]:
    seen, cached = comparison.traffic, "cold"
    if not seen.lifetime:
        cached = "unused"
    elif comparison.warm and comparison.age is not None:
        cached = f"{format_duration(seen.lifetime - comparison.age)} left"
    plural = "s" if seen.requests != 1 else ""
    if seen.growth:
        added = f"adds {seen.growth:,} tokens"
    else:
        added = "added tokens unknown"
    prompt = f"a prompt: about {seen.requests:,} request{plural}, {added}"
    return [f"cache: {cached}", prompt]
