"""``>trim``: a preview that asks, and what ``yes``, ``cancel`` and ``help`` say to it.

Invariant: nothing is written into a project but on the exact word, and one question makes one child at most.
"""

from __future__ import annotations

import contextlib
import time

from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.trim import plan
from resume_hooks.derive.trim.options import HELP, parse
from resume_hooks.derive.trim.plan import TrimPlan
from resume_hooks.derive.trim.preview import preview, remarks
from resume_hooks.errors import NothingToTrim, ResumeHooksError, UsageError
from resume_hooks.hooks import confirmations, trim_cards
from resume_hooks.hooks.answer import Answer, TimeLimit, said, time_limit
from resume_hooks.hooks.confirmations import Question
from resume_hooks.hooks.existing_trim import standing_trim
from resume_hooks.hooks.triggers import Trigger
from resume_hooks.paths import Where, find_session
from resume_hooks.sessions import locate
from resume_hooks.system.text import one_line

WORDS = frozenset({"yes", "cancel", "help"})
SAME = {"--help": "help", "-h": "help", "no": "cancel", "n": "cancel"}
"""What is taken for one of the words; nothing is taken for yes."""

_TO_CONFIRM = "To confirm, type /resume-hooks:trim yes or >trim yes"

MAX_OPTIONS = 4_000
"""Characters of options that a question keeps."""

WHOLE = 4.5
"""Seconds that reading and writing may take together: the rest of five is for starting and for the clipboard."""

WAIT = 1.0
"""Seconds that a second yes waits for the child that the first one is making."""

PAUSE = 0.02
WRITING = 1.5
"""How many times as long as reading and planning, writing and checking take at most (0.7 to 1.3 measured)."""


def answer(trigger: Trigger, path: str | None, session_id: str, window: int) -> Answer:
    """Preview a trim of the session at ``path`` (None: no transcript yet), or act on the word that was given.

    Raises ResumeHooksError.
    """
    word = SAME.get(trigger.text.lower(), trigger.text.lower())
    if word == "help":
        return said(trim_cards.help_card(HELP, slash=trigger.slash))
    if word == "cancel":
        question = confirmations.find(session_id)
        confirmations.take(session_id)
        return said(trim_cards.cancelled_card(asked=question is not None and question.is_open))
    if path is None:
        raise _without_transcript(session_id)
    parent = locate.session_file(path)
    return _confirm(parent, trigger, window) if word == "yes" else _ask(parent, trigger, window)


def _ask(parent: locate.SessionFile, trigger: Trigger, window: int) -> Answer:
    _refuse(trigger.text)
    with time_limit(_shell(parent)):
        decided = _decide(parent, trigger.text, window)
    confirmations.take(parent.session_id)  # a yes to this preview never answers an older one
    if not decided.pays:
        return said(trim_cards.no_use_card(preview(decided)))
    unkept = ""
    try:
        confirmations.keep(Question(parent.session_id, trigger.text, time.time()))
    except OSError as error:
        unkept = f"A yes can't be waited for ({error.strerror}). In a shell: {_shell(parent)}"
    return said(trim_cards.question_card(preview(decided), trigger.text, unkept, slash=trigger.slash))


def _confirm(parent: locate.SessionFile, trigger: Trigger, window: int) -> Answer:
    started = time.monotonic()
    question = _settled(parent.session_id)
    if question is None or not question.is_open:
        return _without_question(parent, question, trigger)
    with time_limit(_shell(parent)):
        decided = _decide(parent, question.options, window)
    if decided.pays and (time.monotonic() - started) * (1 + WRITING) > WHOLE:
        raise TimeLimit("It would take longer than a prompt may wait, so nothing was made", _shell(parent))
    if not decided.pays:
        confirmations.take(parent.session_id)
        return said(trim_cards.no_use_card(preview(decided)))
    if not confirmations.begin(question):
        return _without_question(parent, _settled(parent.session_id), trigger)  # another hook was faster
    try:
        receipt = _write(decided, question)
    finally:
        confirmations.end(parent.session_id)
    return _answer_of(receipt, [*remarks(decided)], question, trigger)


def _write(decided: TrimPlan, question: Question) -> Receipt:
    """Make the child, out of any time limit: what is written is never cut in two. Its question stays, answered."""
    try:
        receipt = plan.write(decided, Where())
    except ResumeHooksError:
        with contextlib.suppress(OSError):
            confirmations.keep(question)  # nothing was made, so it can be tried again
        raise
    with contextlib.suppress(OSError):  # then a second yes finds no question
        confirmations.keep(question._replace(child=receipt.session_id))
    return receipt


def _settled(session_id: str) -> Question | None:
    """The session's question; one that another prompt is acting on is waited for, since it comes back with its child.

    A session whose child takes longer than ``WAIT`` has none yet.
    """
    deadline = time.monotonic() + WAIT
    while (question := confirmations.find(session_id)) is None:
        if not confirmations.is_begun(session_id):
            return confirmations.find(session_id)  # it may have come back between the two looks
        if time.monotonic() >= deadline:
            return None
        time.sleep(PAUSE)
    return question


def _without_transcript(session_id: str) -> NothingToTrim:
    if confirmations.find(session_id) is None:
        return NothingToTrim("There is nothing to trim: this session has no transcript yet")
    return NothingToTrim(
        "There is nothing to trim: the file of this session is gone since the preview",
        "Put it back where it was, then preview the trim again.",
    )


def _without_question(parent: locate.SessionFile, question: Question | None, trigger: Trigger) -> Answer:
    """What a yes gets to which nothing is open: the child that the last one made, or what to do."""
    if question is not None and question.child:
        with time_limit(_shell(parent)):
            standing = standing_trim(parent, question.child)
        if standing is not None:
            return _answer_of(standing, [], question, trigger)
    if question is None or question.is_open:
        if question is not None or confirmations.is_begun(parent.session_id):
            return said(trim_cards.busy_card(slash=trigger.slash))
        return said(trim_cards.unasked_card(slash=trigger.slash))
    gone = bool(question.child) and find_session(question.child, Where()) is None
    return said(trim_cards.answered_card(question, gone=gone, slash=trigger.slash))


def _answer_of(receipt: Receipt, notes: list[str], question: Question, trigger: Trigger) -> Answer:
    return Answer(
        receipt.in_client,
        lambda copied: trim_cards.trimmed_card(receipt, copied, question.options, notes, slash=trigger.slash),
    )


def _decide(parent: locate.SessionFile, text: str, window: int) -> TrimPlan:
    options = parse(text)
    return plan.plan(plan.read(parent, window), Where(), options)


def _refuse(text: str) -> None:
    """UsageError for what is neither options nor one of the words."""
    if len(text) > MAX_OPTIONS:
        raise UsageError(f"The options have {len(text):,} characters, more than {MAX_OPTIONS:,}", "See >trim help.")
    if text.lower() == "y":
        raise UsageError("'y' confirms nothing: the word is yes", f"{_TO_CONFIRM}.")
    if WORDS & set(text.lower().split()):
        raise UsageError(
            f"'{one_line(text, 80)}' confirms nothing",
            f"{_TO_CONFIRM}, and nothing more.",
        )


def _shell(parent: locate.SessionFile) -> str:
    return f"resume-hooks trim {parent.session_id}"
