"""The open questions of a session, at most one of each kind, with their times.

Each question is a small private file.

Invariant: a question is valid only if this user's engine wrote it for this session less than
``OPEN`` seconds ago; any other file is ignored.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from resume_hooks.hooks import hook_state
from resume_hooks.paths import is_session_id

OPEN_SECONDS = 600  # seconds in which a question can be answered
CLOCK_TOLERANCE = (
    5  # seconds that a clock may go back before a question counts as one from the future
)

TRIM = "trim"


class StoredQuestion(NamedTuple):
    """A question to the user: a previewed trim with its ``options`` as typed.

    In a question of another ``kind``, ``options`` belongs to the part that asks.

    ``asked`` is in seconds since the epoch. ``child`` is the id of the session that the answer
    created, or ``""`` while the question is unanswered.
    """

    session_id: str
    options: str
    asked: float
    child: str = ""
    kind: str = TRIM

    @property
    def is_open(self) -> bool:
        """Whether the user can still answer yes."""
        return not self.child and -CLOCK_TOLERANCE <= time.time() - self.asked <= OPEN_SECONDS


def store_question(question: StoredQuestion) -> None:
    """Store a question in place of the session's last one, and delete expired ones.

    Raise OSError if the question cannot be written.
    """
    hook_state.sweep_notes(f"{question.kind}-")
    hook_state.write_note(
        _question_note_name(question.session_id, question.kind), question._asdict()
    )


def find_question(session_id: str, kind: str = TRIM) -> StoredQuestion | None:
    """Return a session's last question, open or not, or None without a trusted one."""
    return _parse_question_note(
        hook_state.read_note(_question_note_name(session_id, kind)), session_id, kind
    )


def wait_for_question(session_id: str, kind: str = TRIM) -> StoredQuestion | None:
    """Return a session's last question.

    If another prompt is acting on it, wait until it has its child.

    Return None if that takes longer than ``hook_state.WAIT_SECONDS``.
    """
    hook_state.wait_for_note(
        _question_note_name(session_id, kind), lambda: find_question(session_id, kind) is not None
    )
    return find_question(session_id, kind)


def consume_question(session_id: str, kind: str = TRIM) -> bool:
    """Delete a session's question; return False if it no longer exists. One of two callers succeeds."""
    return hook_state.consume_note(_question_note_name(session_id, kind))


def claim_question(question: StoredQuestion) -> bool:
    """Claim a question to act on it.

    One of several callers succeeds, and the others can see the claim.

    Return False if the session's question was answered or replaced.
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
    """Release a claim; the caller has stored the question again, with its child."""
    hook_state.release_note(_question_note_name(session_id, kind))


def is_question_claimed(session_id: str, kind: str = TRIM) -> bool:
    """Check whether another prompt is acting on a session's question."""
    return hook_state.is_note_claimed(_question_note_name(session_id, kind))


def _question_note_name(session_id: str, kind: str) -> str:
    return f"{kind}-{session_id}.json"


def _parse_question_note(note: dict[str, Any], session_id: str, kind: str) -> StoredQuestion | None:
    options, asked_at, child = note.get("options"), note.get("asked"), note.get("child")
    if note.get("session_id") != session_id or not hook_state.is_valid_timestamp(asked_at):
        return None
    if not isinstance(options, str) or not (child == "" or is_session_id(child)):
        return None
    return StoredQuestion(session_id, options, note["asked"], str(child), kind)
