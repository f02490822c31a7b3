"""Find the calls on which the new session must act.

There are two kinds: an unanswered call, and the last call that the user refused. The arguments of
these calls become messages, because an edit, a plan or a question does not fit into one line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import MessageKind
from resume_hooks.reading.digest.facts import PendingCall, RecordPosition, Refusal
from resume_hooks.transcripts.placeholders import is_placeholder
from resume_hooks.transcripts.records import WRITING_TOOLS, Record, get_string, list_objects

PLAN_TOOL = "ExitPlanMode"
_TOOLS_WITH_ARGUMENTS = WRITING_TOOLS | {PLAN_TOOL, "AskUserQuestion", "Bash", "Task", "Agent"}
"""Tools whose arguments are shown, because the digest's single line about a call does not say
enough."""

# The maximum number of prompts after a refusal. With more prompts, the refusal is ignored.
MAX_PROMPTS_AFTER_REFUSAL = 2


class OpenCall(NamedTuple):
    """A call and its position. ``text`` is the tool's name, followed by each argument below its name."""

    kind: MessageKind
    position: RecordPosition
    text: str


def find_open_calls(facts: LineageFacts) -> Iterator[OpenCall]:
    """Yield the unanswered call, and the last edit or plan that the user refused.

    A refused call is left out if a later call replaced it.
    """
    if (
        facts.unanswered_call is not None
        and facts.unanswered_call.tool_name in _TOOLS_WITH_ARGUMENTS
    ):
        call = facts.unanswered_call
        yield OpenCall(MessageKind.PENDING, call.position, _format_call(call))
    refusal = _find_open_refusal(facts)
    if refusal is not None:
        call = refusal.call
        if call.tool_name == PLAN_TOOL and refusal.quote.text:
            # The user may have written "write it down", which is not a refusal.
            kind = MessageKind.RETURNED
        else:
            kind = MessageKind.REFUSED
        yield OpenCall(kind, call.position, _format_call(call))


def _find_open_refusal(facts: LineageFacts) -> Refusal | None:
    """Return the last refusal of an edit or plan if it is recent and the refused call was not replaced."""
    refusals: Sequence[Refusal] = facts.refusals[::-1]
    for refusal in refusals:
        call = refusal.call
        if not refusal.is_by_user or call.tool_name not in {*WRITING_TOOLS, PLAN_TOOL}:
            continue
        later_prompt_count = sum(
            prompt.position.order > refusal.quote.position.order for prompt in facts.prompts.quotes
        )
        if later_prompt_count > MAX_PROMPTS_AFTER_REFUSAL or was_call_replaced(call, facts):
            return None
        return refusal
    return None


def find_newest_open_plan(facts: LineageFacts) -> PendingCall | None:
    """Return the last plan that the user refused or has not answered."""
    if facts.unanswered_call is not None and facts.unanswered_call.tool_name == PLAN_TOOL:
        return facts.unanswered_call
    for refusal in reversed(facts.refusals):
        call: PendingCall = refusal.call
        if call.tool_name == PLAN_TOOL:
            return call
    return None


def was_call_replaced(call: PendingCall, facts: LineageFacts) -> bool:
    """Check whether a later change to the same file, or a later plan, replaces a refused call."""
    if call.tool_name == PLAN_TOOL:
        return any(plan.position.order > call.position.order for plan in facts.plans)
    later_paths = set()
    for change in facts.changes:
        if change.position.order > call.position.order:
            later_paths.add(change.path)
    return not later_paths.isdisjoint(call.list_paths())


def _format_call(call: PendingCall) -> str:
    """Return the name of a call's tool, followed by the call's arguments, which are not shortened."""
    rows = [call.tool_name]
    for name, value in call.inputs.items():
        if isinstance(value, str) and value.strip() and not is_placeholder(value):
            rows += [f"[{name}:]", value.strip("\n")]
    for edit in list_objects(call.inputs.get("edits")):
        rows += ["[old_string:]", get_string(edit, "old_string")]
        rows += ["[new_string:]", get_string(edit, "new_string")]
    for question in list_objects(call.inputs.get("questions")):
        rows += _format_question(question)
    return "\n".join(rows)


def _format_question(question: Record) -> Iterator[str]:
    """Yield a question with its options."""
    yield "[question:]"
    yield get_string(question, "question")
    for option in list_objects(question.get("options")):
        yield "[option:]"
        yield get_string(option, "label")
        yield get_string(option, "description")
