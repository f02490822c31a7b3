"""``>resume``: show the session's size and the best way to continue in one line.

The option ``--table`` adds a table with estimates for all ways to continue. The verb ``resume``
prints the same texts in a shell. The table has 48 columns, the width of the client's pane.
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
    SizeEstimate,
    StrategyEstimate,
    compare_strategies,
)
from resume_hooks.derive.opening_size import WHOLE_SESSION_SIZE
from resume_hooks.derive.outcome import Report, make_text_report
from resume_hooks.derive.size_table import HandoffSize
from resume_hooks.derive.trim.options import MIN_WORTHWHILE_SAVED_TOKENS
from resume_hooks.errors import UsageError
from resume_hooks.hooks.plain_cards import (
    MIN_PERCENT_TO_SHRINK,
    describe_handoff_offer,
    session_card,
)
from resume_hooks.hooks.request import Request
from resume_hooks.hooks.time_limit import time_limit
from resume_hooks.hooks.triggers import BARE_SIGN, Trigger
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.system.copy_result import CopyResult
from resume_hooks.system.text import collapse_line, format_count, plain_line
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.tokens import ContextSize, read_size_stated_in_first_line

TABLE_OPTION = "--table"  # the option that shows the table of all ways to continue
# the largest number of prompts that the card counts; longer sessions are unlikely
MAX_COUNTED_PROMPTS = 200
TABLE_COLUMNS = 48
MAX_LINE_COLUMNS = 68  # the maximum width in columns of a line after its indent
MAX_BRANCH_COLUMNS = 40  # the maximum width in columns of a branch's name
# The names of the recommended ways to continue, as they appear in sentences.
STRATEGY_NAMES = {TRIM: "a trim", HANDOFF: "a handoff"}


def answer_request(request: Request) -> Report:
    """Show the best way to continue, and copy the session's id. Without a transcript, only copy the id."""
    session_id, trigger = request.session_id, request.trigger
    option, *other_words = trigger.text.split(None, 1) or [""]
    with_table = option == TABLE_OPTION
    if option.startswith("--") and not with_table:
        raise UsageError(
            f"{collapse_line(option, MAX_LINE_COLUMNS)} is not an option here; the only option is {TABLE_OPTION}",
            f"Type: {request.typed_name} {TABLE_OPTION}",
        )
    trigger_without_option = trigger._replace(text="".join(other_words)) if with_table else trigger
    if not _session_has_turns(request):
        if trigger.sign == BARE_SIGN:
            if trigger_without_option.text:
                unsent_text = f"\n\n  Your text was not sent: {trigger_without_option.text}"
            else:
                unsent_text = ""
            return make_text_report(f"This session has no prompt yet. Nothing needed.{unsent_text}")
        return Report(
            lambda copied: session_card(session_id, copied, trigger_without_option),
            text_to_copy=session_id,
        )
    with time_limit(request.command):
        comparison = compare_strategies(request.session, request.where, clock.now())

    def make_resume_card(copied: CopyResult) -> str:
        return resume_card(comparison, copied, trigger_without_option, with_table=with_table)

    table_lines = () if trigger.text else tuple(build_ways_table(comparison))
    return Report(make_resume_card, text_to_copy=session_id, further_lines=table_lines)


def _session_has_turns(request: Request) -> bool:
    """Check whether the session has turns. A child counts, too, because it begins with a digest."""
    if request.path is None:
        return False
    session = request.session
    return (
        read_size_stated_in_first_line(session.file) is not None or session.head_tail.has_own_turns
    )


def resume_card(
    comparison: Comparison, copied: CopyResult, trigger: Trigger, *, with_table: bool = False
) -> str:
    """Return the card of ``>resume``, with the best way to continue and facts about the session.

    With ``with_table``, the card also contains the table of all ways to continue.
    """
    context_part = f"context {format_context(comparison.context)} · "
    lines = [
        describe_comparison(comparison, trigger.name_of_verb),
        *(
            []
            if trigger.sign == BARE_SIGN
            else [f"session {copied.describe(comparison.session_id)}"]
        ),
        f"  {context_part}{collapse_line(comparison.head_tail.title, MAX_LINE_COLUMNS - len(context_part))}",
        *(f"  {line}" for line in _describe_ways_to_shrink(comparison, trigger.name_of_verb)),
        *(f"  {line}" for line in (build_ways_table(comparison) if with_table else [])),
    ]
    if comparison.advice:
        recommended_way = trigger.name_of_verb(comparison.advice.strategy)
    else:
        recommended_way = GO_ON
    if with_table:
        last_line = f"Best: {recommended_way}"
    else:
        last_line = f"Table: {trigger.name_of_verb('resume')} {TABLE_OPTION}"
    return "\n".join(lines) + describe_handoff_offer(trigger) + f"\n{last_line}"


def describe_comparison(comparison: Comparison, name_verb: Callable[[str], str]) -> str:
    """Return a sentence with the session's size and the best way to continue.

    The sentence also gives the session's size after a handoff or a trim. ``name_verb`` returns the
    name of a verb to show, for example "/trim".
    """
    context, advice, remaining_prompts = (
        comparison.context,
        comparison.advice,
        comparison.prompts_left,
    )
    prompts_text = _describe_prompt_count(remaining_prompts or 0)
    if advice is None and context.max_percent < MIN_PERCENT_TO_SHRINK:
        percent_text = f"{context.max_percent} % full (of {context.usable_tokens:,} tokens)"
        if context.is_window_known:
            size_text = percent_text
        else:
            size_text = f"{format_context(context)} {context.size_in_percent_text}"
        return f"{size_text}. Nothing needed{'' if remaining_prompts is None else f': room for {prompts_text}'}."
    if context.is_window_known:
        size_text = context.size_in_percent_text
    else:
        size_text = f"{format_context(context)} {context.size_in_percent_text}"
    after_handoff, after_trim = (
        comparison.find_tokens_after_strategy(HANDOFF),
        comparison.find_tokens_after_strategy(TRIM),
    )
    at_most_text = "" if comparison.is_handoff_planned else "at most "
    if 0 < after_handoff < context.tokens:
        result_texts = [
            f"{name_verb(HANDOFF)} leaves {at_most_text}{format_rounded_tokens(after_handoff)} tokens"
        ]
    else:
        result_texts = []
    if after_trim and context.tokens - after_trim >= MIN_WORTHWHILE_SAVED_TOKENS:
        result_texts.append(
            f"{name_verb(TRIM)} "
            f"{'' if result_texts else 'leaves '}{format_rounded_tokens(after_trim)}{'' if result_texts else ' tokens'}"
        )
    if advice is None:
        recommendation = _advise_to_continue(comparison, prompts_text, name_verb)
    else:
        if advice.reason == COLD_CACHE_REASON:
            reason = advice.reason
        else:
            reason = _reason_to_shrink(context, remaining_prompts, prompts_text)
        recommendation = f"{name_verb(advice.strategy)} fits best: {reason}"
    sentence = _make_recommendation_sentence(
        result_texts, recommendation, starts_with_command=advice is not None
    )
    return f"{size_text}. {sentence}."


def _make_recommendation_sentence(
    result_texts: list[str], recommendation: str, *, starts_with_command: bool
) -> str:
    """Join the sizes and the recommendation into one sentence.

    A recommendation at the beginning gets a capital letter, unless it begins with a command.
    """
    if result_texts:
        return f"{', '.join(result_texts)}; {recommendation}"
    if starts_with_command:
        return recommendation
    return recommendation[:1].upper() + recommendation[1:]


def _describe_prompt_count(prompt_count: int) -> str:
    if prompt_count > MAX_COUNTED_PROMPTS:
        return f"more than {MAX_COUNTED_PROMPTS} prompts"
    return f"about {format_count(prompt_count, 'prompt')}"


def _advise_to_continue(
    comparison: Comparison, prompts_text: str, name_verb: Callable[[str], str]
) -> str:
    """Return a text that says how many prompts still fit, and when a handoff or a trim costs less.

    ``prompts_text`` says how many prompts still fit. If a handoff or a trim pays off within this
    number of prompts, the text says after how many prompts it costs less than going on.
    """
    remaining_prompts = comparison.prompts_left
    if remaining_prompts is None:
        return "going on is fine"
    cheaper_ways = []
    for way in comparison.estimates:
        is_worthwhile = comparison.context.tokens - way.tokens_after >= MIN_WORTHWHILE_SAVED_TOKENS
        if (
            way.name in {HANDOFF, TRIM}
            and is_worthwhile
            and 0 < (way.turns_to_pay_off or 0) <= remaining_prompts
        ):
            cheaper_ways.append(way)
    if not cheaper_ways:
        return f"going on is fine for {prompts_text}"
    way = min(cheaper_ways, key=lambda candidate: candidate.turns_to_pay_off or 0)
    count_text = format_count(way.turns_to_pay_off or 0, "prompt")
    return f"there is room for {prompts_text}; {name_verb(way.name)} costs less than going on after {count_text}"


def _reason_to_shrink(
    context: ContextSize, remaining_prompts: int | None, prompts_text: str
) -> str:
    """Return why a session must soon become smaller. ``prompts_text`` says how many prompts still fit."""
    if context.compacts_at_once:
        return "it is about to be compacted"
    if remaining_prompts:
        return f"{prompts_text} left"
    return "nearly full"


def _describe_ways_to_shrink(comparison: Comparison, name_verb: Callable[[str], str]) -> list[str]:
    """Return lines with the ways to shrink a session, or no lines if the card's first line names a way."""
    if comparison.advice is not None or comparison.context.max_percent >= MIN_PERCENT_TO_SHRINK:
        return []
    descriptions = {
        HANDOFF: "continue in a new session that knows this one",
        TRIM: "continue without old tool output",
    }
    ways = []
    for strategy, description in descriptions.items():
        if comparison.find_tokens_after_strategy(strategy):
            ways.append(f"{name_verb(strategy)}: {description}")
    return ways


def format_rounded_tokens(tokens: int) -> str:
    """Return a number rounded to thousands, for example ``107,000``.

    A number below 10,000 is rounded to two significant digits, for example ``1,200``.
    """
    return f"{round(tokens, max(-3, 2 - len(str(tokens)))):,}"


def format_context(context: ContextSize) -> str:
    """Return the size of a context, for example ``163,400 tokens``."""
    return f"{'about ' if context.is_estimate else ''}{context.tokens:,} tokens"


def format_size_and_branch(head_tail: HeadTail) -> str:
    """Return the size of the session's file and its last branch, for example ``4.1 MB · main``."""
    branch = collapse_line(plain_line(head_tail.branch), MAX_BRANCH_COLUMNS)
    return f"{format_bytes(head_tail.size)}{f' · {branch}' if branch else ''}"


def build_ways_table(comparison: Comparison) -> list[str]:
    """Return the table with a line for each way to continue.

    A line has the resulting size, the cost of the first request, and what the session then
    contains. Ways that do not make the session smaller are left out, except for a copy.
    """
    rows = [f"{'estimated':<11}{'leaves':>6}{'warm':>5}{'cold':>5}  contents"]
    tokens_now = comparison.context.tokens
    for way in comparison.estimates:
        if way.name == HANDOFF and comparison.handoff_sizes:
            shown_sizes = []
            for size in comparison.handoff_sizes:
                if (
                    size.measured_size.tokens_after < tokens_now
                    or size.measured_size.size == WHOLE_SESSION_SIZE
                ):
                    shown_sizes.append(size)
            for size in shown_sizes:
                rows.append(_format_size_row(size))
        elif way.name not in FRESH_STRATEGIES or way.tokens_after < tokens_now:
            rows.append(
                _format_way_row(way.name, way.tokens_after, way, _CONTENT_TEXTS_BY_WAY[way.name])
            )
    if not any(way.name == TRIM for way in comparison.estimates):
        if comparison.is_trim_estimated:
            reason = "nothing to trim"
        else:
            reason = "too large for an estimate; try a trim"
        rows.insert(2, f"{TRIM:<11}{reason}")
    pay_lines = wrap(_describe_payoff(comparison), TABLE_COLUMNS, subsequent_indent="  ")
    base_line = f"{comparison.base_request.tokens:,} tokens a request: instructions and tools"
    return [
        *rows,
        "warm, cold: input tokens of the first request",
        *pay_lines,
        base_line,
        *_format_cache_and_prompt_lines(comparison),
    ]


def _format_size_row(size: SizeEstimate) -> str:
    return _format_way_row(
        f"{HANDOFF} {size.measured_size.size}",
        size.measured_size.tokens_after,
        size,
        _describe_size_content(size.measured_size),
    )


def _format_way_row(
    name: str, tokens_after: int, costs: StrategyEstimate | SizeEstimate, content: str
) -> str:
    after, warm, cold = map(
        _format_short_number,
        (tokens_after, costs.warm_cache_cost_tokens, costs.cold_cache_cost_tokens),
    )
    return f"{name:<11}{after:>6}{warm:>5}{cold:>5}  {content}"


def _format_short_number(tokens: int) -> str:
    """Return a number of tokens in at most four characters, for example ``980``, ``42k`` or ``1.2M``."""
    if tokens < 1_000:
        return str(tokens)
    thousands = round(tokens / 1_000)
    if thousands < 1_000:
        return f"{thousands}k"
    return f"{tokens / 1_000_000:.1f}M"


_CONTENT_TEXTS_BY_WAY = {
    GO_ON: "everything",
    TRIM: "less tool output",
    HANDOFF: "nothing was asked",
    ROLLOVER: "and a summary",
    COMPACT: "a summary",
}


def _describe_size_content(size: HandoffSize) -> str:
    """Return a short description of what a handoff of this size contains."""
    if size.size == WHOLE_SESSION_SIZE:
        return "everything, a copy"
    if size.omitted_tokens is None:
        return "as much as fits"
    if size.consists_mainly_of_lists:
        return "lists, last answer"
    if size.omitted_tokens:
        loaded_text = _format_short_number(size.full_opening_tokens - size.omitted_tokens)
        return f"{loaded_text} of {_format_short_number(size.full_opening_tokens)} tokens"
    if size.includes_calls:
        return "talk, latest calls"
    return "the whole talk"


def _describe_payoff(comparison: Comparison) -> str:
    """Return a line that says, for each alternative, after how many prompts it costs less than going on."""
    counts = ((way.name, way.turns_to_pay_off or 0) for way in comparison.estimates)
    pay_texts = []
    for name, count in counts:
        if 0 < count <= MAX_COUNTED_PROMPTS:
            pay_texts.append(f"{name} {count}")
    if pay_texts:
        return f"pays off after prompts: {', '.join(pay_texts)}"
    return f"none pays off within {MAX_COUNTED_PROMPTS} prompts"


def _format_cache_and_prompt_lines(comparison: Comparison) -> list[str]:
    recent_requests, cache_text = comparison.recent_requests, "cold"
    if not recent_requests.cache_seconds:
        cache_text = "unused"
    elif comparison.is_cache_warm and comparison.seconds_since_request is not None:
        cache_text = f"{format_duration(recent_requests.cache_seconds - comparison.seconds_since_request)} left"
    plural_ending = "s" if recent_requests.median_requests_per_turn != 1 else ""
    if recent_requests.median_tokens_per_turn:
        growth_text = f"adds {recent_requests.median_tokens_per_turn:,} tokens"
    else:
        growth_text = "added tokens unknown"
    prompt = f"a prompt: about {recent_requests.median_requests_per_turn:,} request{plural_ending}, {growth_text}"
    return [f"cache: {cache_text}", prompt]
