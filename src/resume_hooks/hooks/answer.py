"""What each trigger that reads a transcript does: something to copy, and the card that says so."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from resume_hooks import clock, settings
from resume_hooks.derive import rollover
from resume_hooks.derive.child.existing import standing_handoff
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.rollover import Contents, RolloverPlan
from resume_hooks.errors import NothingToHandOff, ResumeHooksError, SessionNotFound
from resume_hooks.hooks import cards
from resume_hooks.hooks.offer_clear import let_wait
from resume_hooks.hooks.plain_cards import session_card
from resume_hooks.hooks.triggers import Trigger
from resume_hooks.paths import Where
from resume_hooks.reading.digest.build import digest_of
from resume_hooks.sessions import locate
from resume_hooks.sessions.lineage import Family
from resume_hooks.system.clipboard import Copied

LIMIT = 3.0
"""Seconds that reading may take; the clipboard has its own two."""


class TimeLimit(ResumeHooksError):
    """The work behind a trigger took longer than a prompt may wait."""

    code = "too-slow"

    def __init__(self, message: str, command: str) -> None:
        super().__init__(message, f"In a shell there is no limit: {command}")


class Answer(NamedTuple):
    """What goes to the clipboard (``""`` for nothing), and the card once that was tried."""

    to_copy: str
    card: Callable[[Copied], str]


def answer(trigger: Trigger, path: str | None, session_id: str, window: int) -> Answer:
    """Do what a trigger asks of the session at ``path`` (None: no transcript yet). Raises ResumeHooksError."""
    if path is None:
        return _without_transcript(trigger, session_id)
    if trigger.verb == "handoff":
        return _handoff(locate.session_file(path), trigger)
    with time_limit(f"resume-hooks {trigger.verb} {session_id}"):
        return _lineage(path) if trigger.verb == "lineage" else _resume(path, session_id, trigger.text, window)


def _handoff(parent: locate.SessionFile, trigger: Trigger) -> Answer:
    with time_limit(f"resume-hooks handoff {parent.session_id}"):
        standing = standing_handoff(parent, trigger.text, Where())
        if standing is not None:
            return _answer_of(standing, trigger)
        contents = Contents(digest_of(parent, Where()))
        decided = rollover.plan(parent, Where(), kind="handoff", next_step=trigger.text, contents=contents)
    # Outside the limit: writing a few kilobytes is never cut in two, so there is a whole child or none.
    receipt = rollover.write(decided, Where())
    return _answer_of(receipt, trigger, [*cards.holds(decided), *_files(decided, receipt)])


def _files(decided: RolloverPlan, receipt: Receipt) -> list[str]:
    """What was written into the project, where the user's settings ask for that, in lines for the card."""
    chosen = settings.load()
    if not (chosen["handoff_dir"].value or chosen["ledger_file"].value):
        return []
    # Only who asked for files waits for what writes them.
    from resume_hooks.derive.handoff_files import write_for  # noqa: PLC0415

    files = write_for(decided, receipt, Where())
    written = [*files.documents, *filter(None, [files.ledger])]
    return [*(f"written: {path}" for path in written), *(f"note: {warning}" for warning in files.warnings)]


def _answer_of(receipt: Receipt, trigger: Trigger, facts: Sequence[str] = ()) -> Answer:
    waits = trigger.hooked and let_wait(receipt)

    def card(copied: Copied) -> str:
        return cards.handoff_card(receipt, copied, trigger.text, facts, slash=trigger.slash, waits=waits)

    return Answer(receipt.in_client, card)


def _resume(path: str, session_id: str, text: str, window: int) -> Answer:
    # The rules of a trim, which it compares, are nothing to the other lanes.
    from resume_hooks.derive.compare import compare  # noqa: PLC0415
    from resume_hooks.hooks.resume_card import resume_card  # noqa: PLC0415

    found = compare(session_id, path, Where(), window, clock.now())
    return Answer(session_id, lambda copied: resume_card(found, copied, text))


def _lineage(path: str) -> Answer:
    rows = Family(Where()).lineage(path)
    return Answer("", lambda _: cards.lineage_card(rows))


def _without_transcript(trigger: Trigger, session_id: str) -> Answer:
    if trigger.verb == "handoff":
        raise NothingToHandOff("There is nothing to hand off: this session has no transcript yet")
    if trigger.verb == "lineage":
        raise SessionNotFound("There are no ancestors to show: this session has no transcript yet")
    return Answer(session_id, lambda copied: session_card(session_id, copied, trigger.text))


def said(text: str) -> Answer:
    """An answer that copies nothing."""
    return Answer("", lambda _: text)


@contextlib.contextmanager
def time_limit(command: str = "resume-hooks --help", seconds: float | None = None) -> Iterator[None]:
    """Raise TimeLimit in the block once it takes too long, where the platform can; ``command`` is its way out.

    ``seconds`` are ``LIMIT`` unless given.
    """
    most = LIMIT if seconds is None else seconds
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: object) -> None:
        raise TimeLimit(f"It took longer than {most:g} s, so nothing was made", command)

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
