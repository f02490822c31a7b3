"""What each trigger that reads a transcript does: something to copy, and the card that says so."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from typing import NamedTuple

from resume_hooks import clock, lineage_block, quick_rollover, store
from resume_hooks.clipboard import Copied
from resume_hooks.errors import NothingToHandOff, NothingToTrim, ResumeHooksError, SessionNotFound
from resume_hooks.events import cards
from resume_hooks.events.plain_cards import session_card
from resume_hooks.events.triggers import Trigger
from resume_hooks.glance import Glance
from resume_hooks.home import home_folder
from resume_hooks.lineage import Family
from resume_hooks.receipt import Receipt
from resume_hooks.standing import standing_handoff
from resume_hooks.tails import live_bytes
from resume_hooks.tokens import CHARACTERS_PER_TOKEN, Context, recent_context

LIMIT = 3.0
"""Seconds that reading may take; the clipboard has its own two."""


LOOKED_AT = 8 * 1024 * 1024
"""Bytes of a live conversation up to which ``>resume`` tells what a trim would leave: a tenth of a second."""


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
        return _handoff(store.session_file(path), trigger)
    with time_limit():
        return _lineage(path) if trigger.verb == "lineage" else _resume(path, session_id, trigger.text, window)


def _handoff(parent: store.SessionFile, trigger: Trigger) -> Answer:
    with time_limit():
        standing = standing_handoff(parent, trigger.text, os.environ)
        if standing is not None:
            return _answer_of(standing, trigger)
        decided = quick_rollover.plan(parent, os.environ, kind="handoff", next_step=trigger.text)
    # Outside the limit: writing a few kilobytes is never cut in two, so there is a whole child or none.
    return _answer_of(quick_rollover.write(decided, os.environ), trigger)


def _answer_of(receipt: Receipt, trigger: Trigger) -> Answer:

    def card(copied: Copied) -> str:
        return cards.handoff_card(receipt, copied, trigger.text, slash=trigger.slash)

    return Answer(receipt.in_client, card)


def _resume(path: str, session_id: str, text: str, window: int) -> Answer:
    glance = Glance(path)
    context = recent_context(path, window)
    folder = home_folder(glance)
    leaves = cards.Leaves(_trimmed(path, window), _handed_off(path, glance))
    return Answer(
        session_id, lambda copied: cards.resume_card(glance, session_id, folder, context, leaves, copied, text)
    )


def _trimmed(path: str, window: int) -> Context | None:
    """What a trim with the usual options would leave, where the live part is small enough to be looked at."""
    if live_bytes(path) > LOOKED_AT:
        return None
    # The rules of a trim are nothing to the other lanes.
    from resume_hooks.trimming import plan as trimming  # noqa: PLC0415
    from resume_hooks.trimming.words import options_of  # noqa: PLC0415

    try:
        reading = trimming.read(store.session_file(path), window)
    except NothingToTrim:
        return None
    return trimming.decide(reading, options_of(), os.environ).after


def _handed_off(path: str, glance: Glance) -> int:
    """What a handoff without a next step would hold."""
    ancestors = Family(os.environ).lineage(path)
    block = lineage_block.render(ancestors, title=glance.title, session_id="-" * 36, file=path, created=clock.now())
    return round(len(block) / CHARACTERS_PER_TOKEN)


def _lineage(path: str) -> Answer:
    rows = Family(os.environ).lineage(path)
    return Answer("", lambda _: cards.lineage_card(rows))


def _without_transcript(trigger: Trigger, session_id: str) -> Answer:
    if trigger.verb == "handoff":
        raise NothingToHandOff("There is nothing to hand off: this session has no transcript yet")
    if trigger.verb == "lineage":
        raise SessionNotFound("There are no ancestors to show: this session has no transcript yet")
    return Answer(session_id, lambda copied: session_card(session_id, copied, trigger.text))


@contextlib.contextmanager
def time_limit(command: str = "resume-hooks --help") -> Iterator[None]:
    """Raise TimeLimit in the block once it takes too long, where the platform can; ``command`` is its way out."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: object) -> None:
        raise TimeLimit(f"It took longer than {LIMIT:g} s, so nothing was made", command)

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
