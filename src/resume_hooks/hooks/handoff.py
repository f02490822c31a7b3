"""``>handoff``: make a fresh child of some size, or show the one that the same words made.

The lines of its card.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from resume_hooks.derive import agents
from resume_hooks.derive.child.existing import existing_child, one_at_a_time
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write import write
from resume_hooks.derive.fresh_child import (
    DIGEST_LINE,
    OPENING_LINE,
    Contents,
    file_writer,
    opening_of,
)
from resume_hooks.derive.opening_size import ALL, split_size, tokens_of
from resume_hooks.derive.outcome import Opened
from resume_hooks.errors import UsageError
from resume_hooks.hooks import pending_handoff, reply
from resume_hooks.hooks.child_cards import opened_child_text
from resume_hooks.hooks.pending_handoff import MOST, PendingHandoff
from resume_hooks.hooks.plain_cards import ROW
from resume_hooks.hooks.request import Request, refuse_option, time_limit
from resume_hooks.reading.digest.build import digest_of
from resume_hooks.reading.digest.entries import digest_at, knowledge
from resume_hooks.reading.digest.opening import Opening, shown_entries
from resume_hooks.reading.digest.opening import opening as digest_opening
from resume_hooks.reading.digest.sections import CHANGED, COMMANDS
from resume_hooks.sessions.opening_layout import short_opening, task_step
from resume_hooks.sessions.record_references import SHORT
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.processes import client_pid, start_of_process
from resume_hooks.system.text import plural
from resume_hooks.transcripts.bookkeeping import DIGEST_HEAD

BY_CLEAR = "or type /clear: the new session starts with this digest, too"
"""The fact of a child that waits for ``/clear``."""

ANEW = "--new-task"  # typed before what is a new task, and no next step of the old one
LEAST = 600  # characters that a digest needs to be worth more than the front of the longer one

COUNTED = ((CHANGED, "file"), (COMMANDS, "command"))
"""The sections whose entries a card counts, each with its noun."""


class HandoffWords(NamedTuple):
    """What was typed behind the trigger: a ``step``, a ``size`` (``""``: the usual one), whether it is a new task."""

    step: str
    size: str = ""
    is_new_task: bool = False


def parse_handoff_words(text: str) -> HandoffWords:
    """The words behind the trigger. UsageError for a size that a handoff can't have."""
    size, rest = split_size(text)
    first, *more = rest.split(None, 1) or [""]
    is_new_task = first.lower() == ANEW
    return HandoffWords("".join(more) if is_new_task else rest, size, is_new_task)


def step_of(text: str) -> str:
    """The step that was typed."""
    return parse_handoff_words(text).step


def answer(request: Request) -> Opened:
    """Hand the session off. Raises ResumeHooksError."""
    parent, where = request.session, request.where
    step, size, is_new_task = parse_handoff_words(request.text)
    if is_new_task and not step:
        raise UsageError(
            f"{ANEW} names no task", f"{request.typed_name} {ANEW} write the release notes"
        )
    if not is_new_task:
        others = "Others, in a shell: resume-hooks handoff --help"
        refuse_option(step, f"There is {ANEW}, before a new task, and a size, such as 4k. {others}")
    if size == ALL:
        return _answer_with_fork(parent, request)
    tokens = tokens_of(size, where)
    with one_at_a_time(parent, where):
        with time_limit(request.command):
            asked = task_step(step) if is_new_task else step
            standing = existing_child(parent, "handoff", where, asked, opening_tokens=tokens)
            if standing is not None:
                return _answer_with_handoff(standing, request)
            digest = digest_of(parent, where)
            digest = knowledge(digest) if is_new_task else digest
            contents = Contents(digest, new_task=is_new_task, tokens=tokens)
            plan = agents.fresh(parent, where, kind="handoff", next_step=step, contents=contents)
            write_files = file_writer(plan, where)
        # Outside the limit: writing a few kilobytes is never cut in two, so there is a whole child
        # or none.
        receipt = write(plan, where)
    files = write_files(receipt)
    notes = [
        *(f"written: {path}" for path in files.documents),
        *(f"note: {warning}" for warning in files.warnings),
    ]
    return _answer_with_handoff(receipt, request, [*_contents_lines(plan.carried), *notes])


def _answer_with_fork(parent: SessionFile, request: Request) -> Opened:
    """Answer with a copy of the whole conversation: a handoff that leaves nothing out, and has no next step."""
    with one_at_a_time(parent, request.where):
        with time_limit(request.command):
            plan = agents.fork(parent, request.where)
        receipt = write(plan, request.where)
    facts = ("carries the whole conversation",)
    return Opened(receipt, "forked", facts, remark=opened_child_text(receipt))


def _answer_with_handoff(receipt: Receipt, request: Request, facts: Sequence[str] = ()) -> Opened:
    shown = [*facts]
    if request.trigger.hooked and offer_clear(receipt):
        shown.append(BY_CLEAR)
    return opened_handoff(receipt, step_of(request.text), shown)


def opened_handoff(receipt: Receipt, next_step: str, facts: Sequence[str] = ()) -> Opened:
    """The outcome of a handoff; ``facts`` are lines on what it holds."""
    if receipt.written:
        done = "handed off"
    else:
        done = "already handed off"
    shown = (*_step_lines(next_step, receipt.title), *facts)
    return Opened(receipt, done, shown, next_step=next_step)


def _step_lines(next_step: str, title: str) -> list[str]:
    """The line on the next step; none where the child's title says a short one already."""
    said = " ".join(next_step.split())
    if said and said in title:
        return []
    if said:
        return [f"next step: {said[:ROW]}"]
    return ["no next step given"]


def _contents_lines(digest: Opening) -> Iterator[str]:
    """Lines on what the child carries (messages and list entries) and what it leaves out."""
    counts = (
        (digest.messages, "message"),
        *((shown_entries(digest.text, each), noun) for each, noun in COUNTED),
    )
    said = [plural(count, noun) for count, noun in counts if count]
    yield f"carries {', '.join(said) or 'your prompts'}"
    if digest.left_out:
        yield f"leaves out {plural(digest.left_out, 'message')}; a larger size holds more"


def offer_clear(receipt: Receipt) -> bool:
    """Let the client's next ``/clear`` open with the contents of the child of ``receipt``, as they are now.

    False outside a client, and if the state folder can't be written. Call it again after rewriting
    a child.
    """
    pid = client_pid()
    if pid is None:
        return False
    whole = f"{receipt.session_id[:SHORT]}:{OPENING_LINE}"
    try:
        opening = opening_of(receipt.file)
        size = os.path.getsize(receipt.file)
        shorter = functools.partial(_shorter_opening, receipt)
        if not isinstance(opening, str) or not (
            text := short_opening(opening, MOST, whole, shorter)
        ):
            return False
        child = (receipt.parent_session_id, receipt.session_id, receipt.file, size)
        pending_handoff.leave_handoff(
            PendingHandoff(pid, start_of_process(pid), *child, time.time(), text, receipt.kind)
        )
    except OSError:
        return False
    return not reply.is_headless()  # `-p` ends before anybody clears


def _shorter_opening(receipt: Receipt, between: str, room: int) -> str:
    """The child's text between its lineage and its next step, with a smaller digest."""
    digest, (summary, head, _) = digest_at(receipt.file), between.partition(DIGEST_HEAD)
    left = room - len(summary)
    if digest is None or not head or left < LEAST:
        return ""
    return (
        f"{summary}{digest_opening(digest, left, whole=f'{receipt.session_id}:{DIGEST_LINE}').text}"
    )
