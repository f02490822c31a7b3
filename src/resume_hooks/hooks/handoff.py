"""``>handoff``: create a fresh child, or show the child of an earlier handoff with the same words.

This module adds the lines about the next step and ``/clear`` to the card. The verb provides the
other lines.
"""

from __future__ import annotations

import functools
import os
import time

from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.fresh_child import (
    DIGEST_LINE_NUMBER,
    OPENING_RECORD_LINE_NUMBER,
    read_opening,
)
from resume_hooks.derive.opening_size import WHOLE_SESSION_SIZE, split_off_size
from resume_hooks.derive.outcome import AnyOpenedSession, OpenedSession, Outcome
from resume_hooks.derive.verbs.handoff import HandoffSpec, handoff
from resume_hooks.errors import UsageError
from resume_hooks.hooks import hook_replies, pending_handoff
from resume_hooks.hooks.pending_handoff import MAX_OPENING_CHARACTERS, PendingHandoff
from resume_hooks.hooks.plain_cards import MAX_TITLE_COLUMNS
from resume_hooks.hooks.request import Request, refuse_option
from resume_hooks.reading.digest.entries import read_digest
from resume_hooks.reading.digest.opening import format_opening as digest_opening
from resume_hooks.sessions.opening_layout import shorten_opening
from resume_hooks.sessions.record_references import SHORT_ID_CHARACTERS
from resume_hooks.system.processes import find_client_pid, read_process_start_time
from resume_hooks.transcripts.metadata_records import DIGEST_BEGINNING

SLASH_CLEAR_HINT = "or type /clear in an empty box: this also starts a session with the digest"
"""The line of the card which says that the client's next ``/clear`` opens the child."""

# the option that is typed before a new task, which has nothing to do with the session's old task
NEW_TASK_OPTION = "--new-task"
# the minimum number of characters of a shortened digest; a digest that would become shorter is
# replaced by the beginning of the full digest
MIN_DIGEST_CHARACTERS = 600


def parse_handoff_words(text: str) -> HandoffSpec:
    """Parse the words after the trigger: a size, and a next step or a new task.

    Raise UsageError for an invalid size.
    """
    size, next_step = split_off_size(text)
    first_word, *remaining_words = next_step.split(None, 1) or [""]
    if first_word.lower() == NEW_TASK_OPTION:
        return HandoffSpec("".join(remaining_words), size, starts_new_task=True)
    return HandoffSpec(next_step, size)


def answer_request(request: Request) -> Outcome:
    """Hand the session off. Raise ResumeHooksError if this is not possible."""
    parent = request.session
    spec = parse_handoff_words(request.text)
    if spec.starts_new_task and not spec.next_step:
        raise UsageError(
            f"{NEW_TASK_OPTION} needs a task",
            f"For example: {request.typed_name} {NEW_TASK_OPTION} write the release notes",
        )
    if not spec.starts_new_task:
        other_options = "More options, in a shell: resume-hooks handoff --help"
        remedy = f"Here you can type {NEW_TASK_OPTION} before a new task, and a size such as 4k. {other_options}"
        refuse_option(spec.next_step, remedy)
    outcome = handoff(parent, spec, request.caller())
    if spec.size == WHOLE_SESSION_SIZE or not isinstance(outcome, OpenedSession):
        return outcome
    outcome = add_next_step_lines(outcome)
    if request.trigger.is_hooked and prepare_next_clear(outcome.receipt):
        outcome = outcome._replace(facts=(*outcome.facts, SLASH_CLEAR_HINT))
    return outcome


def add_next_step_lines(outcome: AnyOpenedSession) -> AnyOpenedSession:
    """Return a handoff's outcome with a line about its next step. The line comes before other facts."""
    lines = _describe_next_step(outcome.next_step, outcome.receipt.title)
    return outcome._replace(facts=(*lines, *outcome.facts))


def _describe_next_step(next_step: str, title: str) -> list[str]:
    """Return a line about the next step. Return no line if the child's title contains the whole step."""
    step_text = " ".join(next_step.split())
    if step_text and step_text in title:
        return []
    if step_text:
        return [f"next step: {step_text[:MAX_TITLE_COLUMNS]}"]
    return ["no next step given"]


def prepare_next_clear(receipt: Receipt) -> bool:
    """Make the client's next ``/clear`` start with the opening of a child.

    Return False if that is not possible: outside a client, in a headless client, or if the state
    folder can't be written. If the child is rewritten later, call this function again.
    """
    pid = find_client_pid()
    if pid is None:
        return False
    reference = f"{receipt.session_id[:SHORT_ID_CHARACTERS]}:{OPENING_RECORD_LINE_NUMBER}"
    try:
        opening = read_opening(receipt.file)
        size = os.path.getsize(receipt.file)
        shorten = functools.partial(_shorten_opening, receipt)
        if not isinstance(opening, str) or not (
            text := shorten_opening(opening, MAX_OPENING_CHARACTERS, reference, shorten)
        ):
            return False
        child = (receipt.parent_session_id, receipt.session_id, receipt.file, size)
        pending_handoff.store_handoff(
            PendingHandoff(
                pid, read_process_start_time(pid), *child, time.time(), text, receipt.kind
            )
        )
    except OSError:
        return False
    # A headless client (``-p``) ends before its user can type /clear.
    return not hook_replies.is_headless()


def _shorten_opening(receipt: Receipt, middle_text: str, max_characters: int) -> str:
    """Return the part of the child's opening between lineage and next step, with the digest shortened.

    The part has at most ``max_characters`` characters. Return ``""`` if the digest would become too
    short.
    """
    digest, (summary, digest_head, _) = (
        read_digest(receipt.file),
        middle_text.partition(DIGEST_BEGINNING),
    )
    max_digest = max_characters - len(summary)
    if digest is None or not digest_head or max_digest < MIN_DIGEST_CHARACTERS:
        return ""
    reference = f"{receipt.session_id}:{DIGEST_LINE_NUMBER}"
    return f"{summary}{digest_opening(digest, max_digest, record_ref=reference).text}"
