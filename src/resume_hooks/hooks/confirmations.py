"""Store the questions that wait for a user's answer, at most one of each kind for a session.

Each question is a small private file. Invariant: a question is valid for
``QUESTION_LIFETIME_SECONDS`` seconds, and only if the same user's engine wrote it for the same
session. All other files are ignored.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from resume_hooks.hooks import hook_state
from resume_hooks.paths import Where, is_session_id

QUESTION_LIFETIME_SECONDS = 600  # the number of seconds in which the user can answer a question
# the number of seconds by which the clock may be set back without making a question invalid
CLOCK_TOLERANCE_SECONDS = 5

TRIM_QUESTION_KIND = "trim"


class StoredQuestion(NamedTuple):
    """A question that waits for the user's answer, such as whether to trim after a preview.

    ``options`` are the options that the user typed. ``asked`` is the time in seconds since 1970.
    ``child`` is the id of the session that the answer created, or ``""`` before the answer.
    """

    session_id: str
    options: str
    asked: float
    child: str = ""
    kind: str = TRIM_QUESTION_KIND

    @property
    def is_open(self) -> bool:
        """Whether the user can still answer the question with yes."""
        return (
            not self.child
            and -CLOCK_TOLERANCE_SECONDS <= time.time() - self.asked <= QUESTION_LIFETIME_SECONDS
        )


def store_question(question: StoredQuestion) -> None:
    """Store a question in place of the session's last question. Also delete expired questions.

    Raise OSError if the question can't be written.
    """
    hook_state.delete_old_notes(f"{question.kind}-")
    hook_state.write_note(
        _question_note_name(question.session_id, question.kind), question._asdict()
    )


def describe_storage_error(error: OSError) -> str:
    """Return a sentence that says why a question could not be stored, with a remedy."""
    return (
        f"The question could not be stored in {Where().state} ({error.strerror or error}), so it "
        "can't be answered. Check free space and the permissions of the folder, then type the command again."
    )


def find_question(session_id: str, kind: str = TRIM_QUESTION_KIND) -> StoredQuestion | None:
    """Return the last question that was stored for a session, even if it was answered or has expired.

    Return None if no question was stored, or if another user may have written it.
    """
    return _parse_question_note(
        hook_state.read_note(_question_note_name(session_id, kind)), session_id, kind
    )


def wait_for_question(session_id: str, kind: str = TRIM_QUESTION_KIND) -> StoredQuestion | None:
    """Return a session's last question. If another prompt is answering the question, wait for its child.

    Return None if the wait takes longer than ``hook_state.MAX_WAIT_SECONDS``.
    """
    hook_state.wait_for_note(
        _question_note_name(session_id, kind), lambda: find_question(session_id, kind) is not None
    )
    return find_question(session_id, kind)


def consume_question(session_id: str, kind: str = TRIM_QUESTION_KIND) -> bool:
    """Delete a session's question. Return False if another process deleted it first."""
    return hook_state.consume_note(_question_note_name(session_id, kind))


def claim_question(question: StoredQuestion) -> bool:
    """Claim a question before acting on the user's answer. Return True only to the first caller.

    Return False if another process claimed the question first, or if the session has a different
    question now. The file of the question is deleted, and ``is_question_claimed`` is true until
    ``release_question_claim`` is called.
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


def release_question_claim(session_id: str, kind: str = TRIM_QUESTION_KIND) -> None:
    """Release the claim on a question. First store the question again, with the id of its child."""
    hook_state.release_note(_question_note_name(session_id, kind))


def is_question_claimed(session_id: str, kind: str = TRIM_QUESTION_KIND) -> bool:
    """Check whether another prompt is acting on the answer to a session's question."""
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
