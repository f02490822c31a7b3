"""The open questions of a session, one of each kind: what was asked, and when.

A small private file each.

Invariant: a question counts only if this user's own engine wrote it, for this very session, within
``OPEN`` seconds; anything else in its place is ignored.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from resume_hooks.hooks import hook_state
from resume_hooks.paths import is_session_id

OPEN = 600  # seconds for which a question can be answered
SKEW = 5  # seconds that a clock may step back without a question counting as one from the future

TRIM = "trim"


class StoredQuestion(NamedTuple):
    """What was asked: a trim that was previewed, with its ``options`` as typed.

    In another ``kind`` a part's own words.

    ``asked`` is when, in seconds since the epoch; ``child`` the session that came of it, ``""``
    while it is unanswered.
    """

    session_id: str
    options: str
    asked: float
    child: str = ""
    kind: str = TRIM

    @property
    def is_open(self) -> bool:
        """Whether it can still be answered with yes."""
        return not self.child and -SKEW <= time.time() - self.asked <= OPEN


def store_question(question: StoredQuestion) -> None:
    """Store a question in place of the session's last one; sweeps old ones.

    OSError where that can't be done.
    """
    hook_state.sweep_notes(f"{question.kind}-")
    hook_state.write_note(
        _question_note_name(question.session_id, question.kind), question._asdict()
    )


def find_question(session_id: str, kind: str = TRIM) -> StoredQuestion | None:
    """The last question of a session, open or not; None without one that can be trusted."""
    return _parse_question_note(
        hook_state.read_note(_question_note_name(session_id, kind)), session_id, kind
    )


def wait_for_question(session_id: str, kind: str = TRIM) -> StoredQuestion | None:
    """The last question of a session.

    If another prompt is acting on it, wait until it has its child.

    None if that takes longer than ``hook_state.WAIT``.
    """
    hook_state.wait_for_note(
        _question_note_name(session_id, kind), lambda: find_question(session_id, kind) is not None
    )
    return find_question(session_id, kind)


def consume_question(session_id: str, kind: str = TRIM) -> bool:
    """Consume a session's question; False if it is gone already. Of two callers one succeeds."""
    return hook_state.consume_note(_question_note_name(session_id, kind))


def claim_question(question: StoredQuestion) -> bool:
    """Consume a question to act on it.

    Of several callers one succeeds, and the others can see that.

    False also if the session's question has been answered, or replaced.
    """
    name = _question_note_name(question.session_id, question.kind)
    if not hook_state.claim_note(name):
        return False
    if find_question(question.session_id, question.kind) == question and hook_state.consume_note(
        name
    ):
        return True
    hook_state.release_note(name)
    return False


def release_question(session_id: str, kind: str = TRIM) -> None:
    """End a claim; the question was stored again before, with its child."""
    hook_state.release_note(_question_note_name(session_id, kind))


def is_question_claimed(session_id: str, kind: str = TRIM) -> bool:
    """Whether another prompt is acting on the confirmed question."""
    return hook_state.is_note_claimed(_question_note_name(session_id, kind))


def _question_note_name(session_id: str, kind: str) -> str:
    return f"{kind}-{session_id}.json"


def _parse_question_note(
    found: dict[str, Any], session_id: str, kind: str
) -> StoredQuestion | None:
    options, asked, child = found.get("options"), found.get("asked"), found.get("child")
    if found.get("session_id") != session_id or not hook_state.is_instant(asked):
        return None
    if not isinstance(options, str) or not (child == "" or is_session_id(child)):
        return None
    return StoredQuestion(session_id, options, found["asked"], str(child), kind)
