"""``>trim``: ask about a trim, and handle the answers. ``/untrim``: create a copy with the originals.

Invariant: a session is written only after the exact answer "yes", and one question creates at most
one child. The last line of a card says in at most 40 columns what to do, because the client shows
no more of it while the model is working.
"""

from __future__ import annotations

import contextlib
import difflib
import time
from functools import partial

from resume_hooks import questions
from resume_hooks.derive.child.existing_child import find_existing_trim
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.outcome import (
    AnyOpenedSession,
    OpenedSession,
    Outcome,
    Question,
    format_remark_for_new_session,
    make_text_report,
)
from resume_hooks.derive.trim import in_client
from resume_hooks.derive.trim.options import TRIM_OPTIONS_HELP, parse_options
from resume_hooks.derive.trim.plan import (
    SessionScan,
    TrimDecision,
    TrimPlan,
    format_card,
    format_totals,
    list_remarks,
)
from resume_hooks.derive.verbs.trim import plan_trim, write_trim
from resume_hooks.errors import NothingToTrim, ResumeHooksError, UsageError
from resume_hooks.hooks import confirmations
from resume_hooks.hooks.confirmations import QUESTION_LIFETIME_SECONDS, StoredQuestion
from resume_hooks.hooks.plain_cards import (
    MAX_TITLE_COLUMNS,
    MIN_PERCENT_TO_SHRINK,
    NOTHING_CHANGED_TEXT,
    refusal_card,
)
from resume_hooks.hooks.request import Request
from resume_hooks.hooks.time_limit import TimeLimitExceeded, time_limit
from resume_hooks.hooks.triggers import BARE_SIGN, Trigger
from resume_hooks.paths import Where, find_session
from resume_hooks.seam import find_answers
from resume_hooks.sessions.link_log import read_links
from resume_hooks.sessions.open_sessions import RunningClients
from resume_hooks.sessions.session import Session
from resume_hooks.system.processes import find_client_pid
from resume_hooks.system.text import collapse_line

ANSWER_WORDS = frozenset({"yes", "cancel", "help"})
ANSWER_ALIASES = {"--help": "help", "-h": "help", "no": "cancel", "n": "cancel"}
"""Other spellings of the answers. The answer yes has none."""

_CONFIRM_HINT = "To confirm, type: >trim yes"

MAX_OPTIONS_CHARACTERS = 4_000  # the maximum number of characters of the options of a trim

MAX_READ_AND_WRITE_SECONDS = 4.5
"""Maximum number of seconds for reading and writing together.

A prompt may wait five seconds. The remaining time is needed for starting, and for copying to the
clipboard.
"""

WRITING_TIME_RATIO = 1.5
"""The time for writing and checking, divided by the time for reading and planning (measured: 0.7 to
1.3)."""


def answer_request(request: Request) -> Outcome:
    """Ask about a trim, handle the user's answer, or restore trimmed contents. Raise ResumeHooksError."""
    if request.trigger.verb == "untrim":
        return _answer_untrim(request)
    word = ANSWER_ALIASES.get(request.text.lower(), request.text.lower())
    if word in {"help", "cancel"}:
        question = confirmations.find_question(request.session_id)
        has_open_question = question is not None and question.is_open
        if word == "help":
            lines = [TRIM_OPTIONS_HELP]
            if request.trigger.sign == BARE_SIGN:
                for line in find_answers(questions.line_of_trim_help):
                    lines.append(line())
            return make_text_report(
                help_card("\n".join(lines), request.trigger, has_open_question=has_open_question)
            )
        confirmations.consume_question(request.session_id)
        return make_text_report(format_cancelled_card(had_question=has_open_question))
    if request.path is None and confirmations.find_question(request.session_id) is not None:
        raise NothingToTrim(
            "There is nothing to trim: this session's file was deleted after the question",
            "Restore the file, then type the trim command again.",
        )
    parent = request.session
    if word == "yes":
        return _confirm_trim(parent, request)
    return _ask_about_trim(parent, request)


def _answer_untrim(request: Request) -> Outcome:
    """Create a child with the trimmed contents restored, if their originals still exist."""
    # Imported late because a trim does not need it.
    from resume_hooks.derive.verbs.untrim import FULL_UNTRIM_SPEC, untrim

    return untrim(request.session, FULL_UNTRIM_SPEC, request.caller(f"{request.command} --all"))


def _ask_about_trim(parent: Session, request: Request) -> Outcome:
    """Ask whether to trim, and show the numbers.

    If an installed part handles the options, return its answer.
    """
    if len(request.text) > MAX_OPTIONS_CHARACTERS:
        message = f"The options have {len(request.text):,} characters, more than {MAX_OPTIONS_CHARACTERS:,}"
        raise UsageError(message, "See >trim help.")
    for answer_smart_trim in find_answers(questions.answer_smart_trim):
        smart_trim_outcome = answer_smart_trim(request)
        if smart_trim_outcome is not None:
            return smart_trim_outcome
    _refuse_misplaced_answer(request.text, request.trigger)
    with time_limit(request.command):
        trim_plan = _plan_trim_of_request(parent, request.text, request)
    if (
        not (request.text or trim_plan.choices)
        and trim_plan.context_before.max_percent < MIN_PERCENT_TO_SHRINK
    ):
        raise NothingToTrim("There is nothing to trim yet")
    # Delete an older question, so that the answer yes to the new question can't answer the older
    # one.
    confirmations.consume_question(parent.session_id)
    if not trim_plan.is_worthwhile:
        return make_text_report(
            not_worthwhile_card(format_card(trim_plan), request.trigger.name_of_verb("handoff"))
        )
    store_error = ""
    try:
        confirmations.store_question(StoredQuestion(parent.session_id, request.text, time.time()))
    except OSError as error:
        store_error = (
            f"{confirmations.describe_storage_error(error)} Or in a shell: {request.command}"
        )
    card = question_card(format_card(trim_plan), request.text, store_error, request.typed_name)
    in_place = _decide_on_trim_in_place(trim_plan, request)
    if store_error:
        return make_text_report(card)
    return Question(
        short_question(trim_plan, in_place), card, offers_trim_in_place=in_place is not None
    )


def _decide_on_trim_in_place(trim_plan: TrimPlan, request: Request) -> TrimDecision | None:
    """Return the decision for a trim in place with the options of ``trim_plan``, for the client's dialog.

    Return None if this trim frees too little, or if the client can't trim in place.
    """
    if request.trigger.is_hooked or not isinstance(trim_plan.trimmable_parent, SessionScan):
        return None
    decision = in_client.decide_trim_in_client(
        trim_plan.trimmable_parent, trim_plan.options, request.where
    )
    if in_client.is_worthwhile_in_client(decision, trim_plan.options):
        return decision
    return None


def _confirm_trim(parent: Session, request: Request) -> Outcome:
    start_time = time.monotonic()
    question = confirmations.wait_for_question(parent.session_id)
    if question is None or not (
        question.is_open or _is_answered_elsewhere(question, request.where)
    ):
        return _answer_yes_without_question(parent, question, request)
    with time_limit(request.command):
        plan = _plan_trim_of_request(parent, question.options, request)

    def claim_if_in_time(_: TrimPlan) -> bool:
        if (time.monotonic() - start_time) * (1 + WRITING_TIME_RATIO) > MAX_READ_AND_WRITE_SECONDS:
            raise TimeLimitExceeded(
                "This would take longer than a prompt may wait, so no session was created",
                request.command,
            )
        return confirmations.claim_question(question)

    outcome = write_trim(
        plan, request.caller(), claim_if_in_time, partial(_write_confirmed_trim, question)
    )
    if isinstance(outcome, OpenedSession):
        return add_savings(outcome, question.options)
    if not plan.is_worthwhile:
        confirmations.consume_question(parent.session_id)
        return make_text_report(
            not_worthwhile_card(format_card(plan), request.trigger.name_of_verb("handoff"))
        )
    # Another hook, in this client or another one, claimed the question first.
    later_question = confirmations.wait_for_question(parent.session_id)
    if later_question is not None and _is_answered_elsewhere(later_question, request.where):
        return _confirm_trim(parent, request)
    return _answer_yes_without_question(parent, later_question, request)


def _is_answered_elsewhere(question: StoredQuestion, where: Where) -> bool:
    """Check whether a user has answered this question in another running client.

    This client then creates its own child, because it must not open the other client's child.
    """
    open_question = question._replace(child="")
    creator_pid = next(
        (row.client_pid for row in reversed(read_links(where)) if row.child_id == question.child),
        None,
    )
    return (
        open_question.is_open
        and bool(question.child)
        and not RunningClients(where).may_open_child(find_client_pid(), question.child, creator_pid)
    )


def _plan_trim_of_request(parent: Session, text: str, request: Request) -> TrimPlan:
    """Return the plan of a trim with the options in ``text``."""
    for plan_confirmed_trim in find_answers(questions.plan_confirmed_trim):
        trim_plan = plan_confirmed_trim(text, request)
        if trim_plan is not None:
            return trim_plan
    options = parse_options(text)
    return plan_trim(parent, request.where, options)


def _write_confirmed_trim(question: StoredQuestion, plan: TrimPlan, where: Where) -> Receipt:
    """Create the child of a confirmed trim. No time limit applies, because it could interrupt the writing.

    Afterwards the question stays stored, together with the id of the child.
    """
    try:
        receipt = write_child(plan, where)
        # If the question can't be stored, a second yes finds no question.
        with contextlib.suppress(OSError):
            confirmations.store_question(question._replace(child=receipt.session_id))
    except ResumeHooksError:
        with contextlib.suppress(OSError):
            confirmations.store_question(question)  # No child exists, so the user can answer again.
        raise
    finally:
        confirmations.release_question_claim(question.session_id)
    return receipt


def _answer_yes_without_question(
    parent: Session, question: StoredQuestion | None, request: Request
) -> Outcome:
    """Return the answer to a yes without an open question: the earlier child, or what to type instead."""
    if question is not None and question.child:
        with time_limit(request.command):
            existing_child = find_existing_trim(parent, question.child, request.where)
        if existing_child is not None:
            remark = format_remark_for_new_session(existing_child)
            outcome = OpenedSession(existing_child, None, "already trimmed", remark=remark)
            return add_savings(outcome, question.options)
    if question is None or question.is_open:
        if question is not None or confirmations.is_question_claimed(parent.session_id):
            return make_text_report(busy_card(request.typed_name))
        return make_text_report(missing_question_card(request.typed_name))
    is_deleted = bool(question.child) and find_session(question.child, request.where) is None
    return make_text_report(answered_card(question, request.typed_name, is_deleted=is_deleted))


def add_savings(outcome: AnyOpenedSession, options: str) -> AnyOpenedSession:
    """Return a trim's outcome with lines about the saved tokens and the options that the user typed."""
    receipt = outcome.receipt
    saved_tokens = receipt.tokens_before - receipt.tokens_after
    lines = [f"about {saved_tokens:,} tokens replaced by placeholders; each names its original"]
    if options:
        lines.append(f"options: {collapse_line(options, MAX_TITLE_COLUMNS)}")
    return outcome._replace(facts=(*lines, *outcome.facts))


def _refuse_misplaced_answer(text: str, trigger: Trigger) -> None:
    if text.lower() == "y":
        raise UsageError("'y' is not enough: type yes", f"{_CONFIRM_HINT}.")
    word = text.partition(" ")[0].lower()
    if trigger.sign == BARE_SIGN and (
        word == "--in-place" or difflib.get_close_matches(word, ["here"])
    ):
        raise UsageError(
            f"'{word}' is not an option here",
            f"To trim in place: {trigger.name_of_verb('trim')} here",
        )
    if ANSWER_WORDS & set(text.lower().split()):
        raise UsageError(
            f"'{collapse_line(text, 80)}' is not a confirmation",
            f"{_CONFIRM_HINT}, and nothing more.",
        )


_ANSWER_LIST_TEXT = """\
  create the copy    {trim} yes
  other options      {trim} [options]
  list the options   {trim} help
  cancel             {trim} cancel"""


def question_card(preview: str, options: str, store_error: str, trim_name: str) -> str:
    """Return the card that asks about a trim, with the numbers and the possible answers.

    ``store_error`` is the reason why the user can't answer, if there is one.
    """
    if store_error:
        heading = (
            f"trim · nothing is written\n{_format_options_line(options)}{_indent_text(preview)}"
        )
        return f"{heading}\n\n  {store_error}\n\n{NOTHING_CHANGED_TEXT}"
    confirm_command = f"{trim_name} yes"
    # The first line repeats the command, because client 2.1.329 shows only this line if another
    # line is too wide while the model is working.
    first_line = f"trim · type {confirm_command} · nothing is written yet"
    answers_text = _ANSWER_LIST_TEXT.format(trim=trim_name)
    return (
        f"{first_line}\n{_format_options_line(options)}{_indent_text(preview)}\n"
        f"{answers_text}\nTo create it: {confirm_command}"
    )


def short_question(trim_plan: TrimPlan, in_place: TrimDecision | None) -> str:
    """Return the question for the client's dialog, in at most four lines.

    ``in_place`` describes the trim in place, or is None if the dialog does not offer a trim in
    place.
    """
    in_place_lines = []
    if in_place is not None and in_client.do_savings_differ(
        trim_plan.savings.tokens, in_place.savings.tokens
    ):
        difference = "thinking and images are removed from the last turns, too"
        if in_place.savings.tokens < trim_plan.savings.tokens:
            difference = "pasted and attached text stays"
        in_place_lines.append(f"in place about {in_place.context_after.tokens:,}: {difference}")
    return "\n".join([*format_totals(trim_plan), *in_place_lines, *list_remarks(trim_plan)[-1:]])


def not_worthwhile_card(preview: str, handoff_name: str) -> str:
    """Return the card for a trim that would save too little: the numbers, and a trigger to type instead."""
    heading = f"trim · not worth a new session\n{_indent_text(preview)}"
    return f"{heading}\n\n{NOTHING_CHANGED_TEXT}\n\nInstead: {handoff_name}"


def help_card(options: str, trigger: Trigger, *, has_open_question: bool) -> str:
    """Return the card with the options of a trim. Add the answers if a question is open."""
    trim = trigger.name_of_verb("trim")
    rows = []
    if trigger.sign == BARE_SIGN:
        rows.append(f"  in place           {trim} here [options]")
    if has_open_question:
        rows.append(_ANSWER_LIST_TEXT.format(trim=trim))
    answers_text = "\n".join(rows)
    return "\n\n".join(filter(None, [f"{trim} {options}", answers_text, f"Type: {trim}"]))


def format_cancelled_card(*, had_question: bool) -> str:
    """Return the card of ``>trim cancel``."""
    if had_question:
        return refusal_card("Cancelled")
    return refusal_card("no question about a trim is open")


def missing_question_card(trim_name: str) -> str:
    """Return the card of ``>trim yes`` if there was no question."""
    reason = "there is nothing to confirm: no question about a trim is open"
    return refusal_card(reason, last_line=f"First: {trim_name}")


def answered_card(question: StoredQuestion, trim_name: str, *, is_deleted: bool) -> str:
    """Return the card that answers ``>trim yes`` if the question has expired or was already answered.

    ``is_deleted`` means that the child which the earlier answer created has been deleted.
    """
    reason = f"there is nothing to confirm: the question is older than {QUESTION_LIFETIME_SECONDS // 60} minutes"
    if question.child:
        if is_deleted:
            later_state = "its file is gone"
        else:
            later_state = "it has been continued since"
        reason = f"this trim was confirmed already and created {question.child}; {later_state}"
    retry_line = f"  To be asked again:  {trim_name} {question.options}".rstrip()
    return refusal_card(reason, retry_line, last_line=f"First: {trim_name}")


def busy_card(trim_name: str) -> str:
    """Return the card of ``>trim yes`` while another prompt is creating the child."""
    return refusal_card(
        "another prompt is creating this copy right now", last_line=f"In a moment: {trim_name} yes"
    )


def _format_options_line(options: str) -> str:
    if options:
        return f"  options: {collapse_line(options, MAX_TITLE_COLUMNS)}\n"
    return ""


def _indent_text(text: str) -> str:
    """Return a text with two spaces before each line that is not empty."""
    lines = []
    for line in text.split("\n"):
        if line:
            lines.append(f"  {line}")
        else:
            lines.append("")
    return "\n".join(lines)
