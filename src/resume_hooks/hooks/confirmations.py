"""The open questions of a session with their times, at most one question of each kind.

Each question is a small private file.

Invariant: a question is valid only if this user's engine wrote it for this session less than
``QUESTION_SECONDS`` seconds ago. Any other file is ignored.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from resume_hooks.hooks import hook_state
from resume_hooks.paths import Where, is_session_id

QUESTION_SECONDS = 600  # the number of seconds in which a question can be answered
# the number of seconds that a clock may go back before a question is rejected because its time
# is in the future
CLOCK_TOLERANCE_SECONDS = 5

TRIM_KIND = "trim"


class StoredQuestion(NamedTuple):
    """A question that waits for the user's answer, such as whether to trim after a preview.

    ``options`` are the options that the user typed for the trim. For a question of another
    ``kind``, the part that asks it defines their meaning.

    ``asked`` is in seconds since the epoch. ``child`` is the id of the session that the answer
    created, or ``""`` before the answer.
    """

    session_id: str
    options: str
    asked: float
    child: str = ""
    kind: str = TRIM_KIND

    @property
    def is_open(self) -> bool:
        """Whether the user can still answer yes."""
        return (
            not self.child
            and -CLOCK_TOLERANCE_SECONDS <= time.time() - self.asked <= QUESTION_SECONDS
        )


def store_question(question: StoredQuestion) -> None:
    """Store a question that replaces the session's last question, and delete expired questions.

    Raise OSError if the question cannot be written.
    """
    hook_state.delete_old_notes(f"{question.kind}-")
    hook_state.write_note(
        _question_note_name(question.session_id, question.kind), question._asdict()
    )


def describe_storage_error(error: OSError) -> str:
    """Return why a question cannot be answered: it could not be stored. Include a remedy."""
    return (
        f"The question could not be stored in {Where().state} ({error.strerror or error}), so it "
        "can't be answered. Check free space and the permissions of the folder, then repeat it."
    )


def find_question(session_id: str, kind: str = TRIM_KIND) -> StoredQuestion | None:
    """Return a session's last question, open or not, or None if there is no trusted question."""
    return _parse_question_note(
        hook_state.read_note(_question_note_name(session_id, kind)), session_id, kind
    )


def wait_for_question(session_id: str, kind: str = TRIM_KIND) -> StoredQuestion | None:
    """Return a session's last question.

    If another prompt is acting on the question, wait until the question has its child.

    Return None if that takes longer than ``hook_state.WAIT_SECONDS``.
    """
    hook_state.wait_for_note(
        _question_note_name(session_id, kind), lambda: find_question(session_id, kind) is not None
    )
    return find_question(session_id, kind)


def consume_question(session_id: str, kind: str = TRIM_KIND) -> bool:
    """Delete a session's question. Return False if it no longer exists, because another caller deleted it."""
    return hook_state.consume_note(_question_note_name(session_id, kind))


def claim_question(question: StoredQuestion) -> bool:
    """Claim a question in order to act on it.

    Of several callers only one succeeds; the others can see the claim.

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


def release_question(session_id: str, kind: str = TRIM_KIND) -> None:
    """Release a claim after the caller stored the question again, with its child."""
    hook_state.release_note(_question_note_name(session_id, kind))


def is_question_claimed(session_id: str, kind: str = TRIM_KIND) -> bool:
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
