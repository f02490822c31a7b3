"""Format the cards of ``>mark`` and ``>back``.

The last line of a card is the most useful line, and has at most 40 columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from resume_hooks import clock
from resume_hooks.clock import DAY, HOUR, MINUTE
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.hooks.confirmations import QUESTION_LIFETIME_SECONDS
from resume_hooks.hooks.plain_cards import MAX_TITLE_COLUMNS, NOTHING_CHANGED_TEXT, refusal_card
from resume_hooks.hooks.triggers import Trigger
from resume_hooks.parts.marks.state import NO_MARK_MESSAGE, Mark, PlacedMark
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import collapse_line, plain_text

# Imported only for types, because setting a mark does not need the code that plans children.
if TYPE_CHECKING:
    from resume_hooks.parts.marks.plan_back import BackCommandPlan, OmittedRecords

_UNCHANGED_FILES_NOTE = (
    "that brings back the conversation up to here; files, git and processes stay as they are"
)
_INPUT_BOX_NOTE = (
    "if the input box still holds the command: one Ctrl+C clears it, a second one quits"
)
_AGE_UNITS = (("day", DAY), ("hour", HOUR), ("minute", MINUTE))


def format_mark_card(
    placed_mark: PlacedMark, trigger: Trigger, *, has_replaced_mark: bool, is_already_set: bool
) -> str:
    """Return the card of ``>mark``, which shows the new mark and how to go back to it."""
    is_slash_command = trigger.is_slash
    if is_already_set:
        action = "already set here"
    elif has_replaced_mark:
        action = "replaced"
    else:
        action = "set"
    mark_lines = list(_format_mark_lines(placed_mark.mark))
    if placed_mark.is_step_unfinished and not is_already_set:
        mark_lines.append("the answer is not finished: the mark is after the last complete step")
    # Ctrl+C clears the input box. However, while the model is working, Ctrl+C ends the turn.
    if placed_mark.is_step_unfinished and not is_slash_command:
        key_hint = "continue once the answer ends"
    else:
        key_hint = "go on"
    if not is_slash_command and not placed_mark.is_step_unfinished:
        closing_text = "Set. Clear the input box: Ctrl+C once."
    else:
        closing_text = f"{'' if is_slash_command else 'Set. '}{key_hint.capitalize()}."
    input_box_lines = (
        [f"  {_INPUT_BOX_NOTE}"]
        if not is_slash_command and not placed_mark.is_step_unfinished
        else []
    )
    lines = [
        f"mark {action}{'' if is_slash_command else f' · {key_hint}'}",
        "",
        *(f"  {line}" for line in mark_lines),
        "",
        f"  back to here   {trigger.name_of_verb('back')} what you found out",
        f"  {_UNCHANGED_FILES_NOTE}",
        *input_box_lines,
        "",
        closing_text,
    ]
    return "\n".join(lines)


def format_replacement_question(
    active_mark: Mark, goal: str, storage_error: str, trigger: Trigger
) -> str:
    """Return the card of ``>mark`` for a session with an active mark.

    The card shows the command that replaces the mark. If no mark can be stored, ``storage_error``
    is the reason.
    """
    confirm_command = f"{trigger.name_of_verb('mark')} yes"
    if goal:
        goal_lines = [f"new goal: {collapse_line(plain_text(goal), MAX_TITLE_COLUMNS * 2)}"]
    else:
        goal_lines = []
    replace_lines = [storage_error or f"set a new mark instead    {confirm_command}"]
    lines = [
        f"mark not set · another mark is active; it was set {format_mark_age(active_mark)}",
        "",
        *(
            f"  {line}"
            for line in (*_format_mark_lines(active_mark, says_its_goal=True), *goal_lines)
        ),
        "",
        *(f"  {line}" for line in replace_lines),
        f"  go back to that mark      {trigger.name_of_verb('back')} what you found out",
        "",
        NOTHING_CHANGED_TEXT
        if storage_error
        else f"{'Replace' if trigger.is_slash else 'To replace it'}: {confirm_command}",
    ]
    return "\n".join(lines)


def format_cancelled_card(active_mark: Mark | None, trigger: Trigger, *, had_question: bool) -> str:
    """Return the card of ``>mark cancel``.

    The command discards an open question about a mark or, if there is none, the mark.
    """
    if active_mark is None:
        return refusal_card(
            NO_MARK_MESSAGE, last_line=f"To set one: {trigger.name_of_verb('mark')} [goal]"
        )
    action = "stays" if had_question else "forgotten"
    return "\n".join(
        [
            f"mark {action}, set {format_mark_age(active_mark)}",
            *(f"  {line}" for line in _format_mark_lines(active_mark)),
        ]
    )


def format_no_question_card(active_mark: Mark | None, trigger: Trigger, *, is_expired: bool) -> str:
    """Return the card of ``>mark yes`` if no question is open."""
    if is_expired:
        reason = f"the question is older than {QUESTION_LIFETIME_SECONDS // 60} minutes"
    else:
        reason = "no question about a mark is waiting for an answer"
    words, commands = (
        f"there is nothing to confirm: {reason}",
        f"{trigger.name_of_verb('mark')} [goal]",
    )
    if active_mark is None:
        return refusal_card(words, f"  {NO_MARK_MESSAGE}", last_line=f"First: {commands}")
    mark_text = "\n".join(
        f"  {line}"
        for line in (
            f"a mark is active, set {format_mark_age(active_mark)}:",
            *_format_mark_lines(active_mark),
        )
    )
    return refusal_card(words, mark_text, last_line=f"Replace: {commands}")


def format_child_lines(receipt: Receipt, back_plan: BackCommandPlan) -> tuple[str, ...]:
    """Return lines about the child of ``>back``: what it contains, and what stays unchanged."""
    mark, goal = (
        back_plan.mark,
        f": {collapse_line(plain_text(back_plan.mark.goal), MAX_TITLE_COLUMNS)}"
        if back_plan.mark.goal
        else "",
    )
    place_text = f"back to the mark, set {format_mark_age(mark)}{goal}"
    if mark.left_parent_id:
        place_text = (
            f"back to where this fork branched off from {mark.left_parent_id}; "
            "the new session contains the fork's findings"
        )
    elif back_plan.missing_mark_reason:
        place_text = f"only the report is loaded: not {place_text}"
    facts = [place_text]
    if back_plan.report:
        facts.append(
            f"report: {collapse_line(plain_text(back_plan.report), MAX_TITLE_COLUMNS * 2)}"
        )
    facts.extend(describe_what_stays_unchanged(receipt, back_plan.omitted_records))
    return tuple(facts)


def describe_what_stays_unchanged(
    receipt: Receipt, omitted_records: OmittedRecords | None, old_session: str = "this one"
) -> list[str]:
    """Return lines about what ``back`` leaves unchanged, and how to restore files.

    ``old_session`` is the phrase that the lines use for the session that the user is leaving.
    """
    facts = ["files, git and processes stay as they are"]
    if omitted_records is None:
        return facts
    if omitted_records.prompt_id:
        facts[0] += "; to restore files, run this in a shell (it asks before it writes):"
        facts.append(
            f"    {shell_command(f'rewind-files {receipt.parent_session_id} --to {omitted_records.prompt_id}')}"
        )
    else:
        facts[0] += "; Claude Code has no file copies to restore"
    return [
        f"left out of the new session, but still in {old_session}: {omitted_records.reference_range_text}",
        *facts,
    ]


def describe_repeated_back(trigger: Trigger) -> tuple[str, ...]:
    """Return lines for a repeated ``>back``: the mark was already used, and a new report is ignored.

    The second line appears only after a slash command, because the client removes a slash command
    from the input box. A command with ``>`` stays there, so the user may have sent the same report
    again by pressing Enter accidentally.
    """
    facts = [f"{NO_MARK_MESSAGE} It was used by the last {trigger.name_of_verb('back')}."]
    if trigger.is_slash and trigger.text:
        facts.append(f"Your new report was not used: {trigger.text}")
    return tuple(facts)


def format_no_mark_card(trigger: Trigger) -> str:
    """Return the card of ``>back`` if the session has no mark."""
    return refusal_card(
        NO_MARK_MESSAGE,
        trigger.text and f"  Your text: {trigger.text}",
        last_line=f"First: {trigger.name_of_verb('mark')} [goal]",
    )


def format_mark_age(mark: Mark) -> str:
    """Return the age of a mark in days, hours or minutes."""
    set_at = clock.parse_timestamp(mark.started_at)
    if set_at:
        seconds = max(0, round((datetime.now(UTC) - set_at).total_seconds()))
    else:
        seconds = 0
    for name, unit_seconds in _AGE_UNITS:
        if unit_count := seconds // unit_seconds:
            return f"{unit_count} {name}{'s' * (unit_count > 1)} ago"
    return "just now"


def _format_mark_lines(mark: Mark, *, says_its_goal: bool = False) -> Sequence[str]:
    if mark.goal:
        goal = f"{'its ' * says_its_goal}goal: {collapse_line(plain_text(mark.goal), MAX_TITLE_COLUMNS * 2)}"
    else:
        goal = "no goal given"
    return goal, f"after record {mark.session_id[:8]}:{mark.record}"
