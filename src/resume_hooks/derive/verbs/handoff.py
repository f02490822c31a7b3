"""``handoff``: a new session that opens with a digest of this one and a next step, or with the whole conversation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

from resume_hooks.derive import agents
from resume_hooks.derive.child.existing_child import find_existing_child, lock_parent
from resume_hooks.derive.child.receipt import AccompanyingFiles, Receipt
from resume_hooks.derive.child.write_child import ChildPlan, write_if_worthwhile
from resume_hooks.derive.fresh_child import (
    ChildContents,
    FreshPlan,
    digest_reference,
    make_file_writer,
)
from resume_hooks.derive.opening_size import WHOLE_SESSION, tokens_for_size
from resume_hooks.derive.outcome import AnyOpenedSession, NothingWritten, OpenedSession
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.fork import WHOLE, fork
from resume_hooks.errors import ResumeHooksError, UsageError
from resume_hooks.paths import Where
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.reading.digest.entries import select_knowledge
from resume_hooks.reading.digest.opening import Opening, count_shown_entries
from resume_hooks.reading.digest.sections import CHANGED, COMMANDS
from resume_hooks.sessions.lineage_block import remove_block_markers
from resume_hooks.sessions.opening_layout import NEXT_STEP_HEADING, task_step
from resume_hooks.sessions.session import Session
from resume_hooks.system.text import format_count, plain_text

COUNTED_SECTIONS = ((CHANGED, "file"), (COMMANDS, "command"))
"""The sections of a digest whose entries the receipt counts, with the noun for each section."""

MAX_EDITED_CHARACTERS = 200_000  # the maximum number of characters: about 50,000 tokens

EDITOR_NOTE = """\
# The digest of the work so far. The new session reads it after its lineage and before your next step.
# Edit it and save. These lines at the top, which begin with #, and blank lines are removed.
# To cancel, delete the rest and save, or quit the editor with an error: then no session is made.
"""

Edit = Callable[[str], AbstractContextManager[str]]
WriteFiles = Callable[[Receipt | None], AccompanyingFiles]


class HandoffSpec(NamedTuple):
    """The options of a handoff.

    ``next_step`` is the new session's first task. ``is_new_task`` means that the task does not
    belong to this session's work. ``size`` is a validated size, or ``""`` for the default. ``target_agent``
    names another agent. ``edit`` lets the user change the digest and yields the user's text.
    ``has_files`` means that the files that the settings and ``part_options`` request are written
    too.
    """

    next_step: str = ""
    size: str = ""
    is_new_task: bool = False
    target_agent: str = ""
    edit: Edit | None = None
    has_files: bool = True
    part_options: object = None


def handoff(
    parent: Session, spec: HandoffSpec, caller: Caller
) -> AnyOpenedSession | NothingWritten[ChildPlan]:
    """Hand a session off.

    Raises NothingToHandOff for a session without prompts, UsageError and WriteFailed.
    """
    with contextlib.ExitStack() as stack:
        if caller.reuses_child:
            stack.enter_context(lock_parent(parent, caller.where))
        if spec.size == WHOLE_SESSION:
            return fork(parent, WHOLE, caller)
        with caller.time_limit():
            if caller.reuses_child:
                existing = find_existing_handoff(parent, spec, caller.where)
                if existing is not None:
                    return OpenedSession(
                        existing, None, "already handed off", next_step=spec.next_step
                    )
            plan = plan_handoff(parent, spec, caller)
            caller.check_draft(plan.draft)
            # If a file is not writable, this fails before the user edits anything.
            write_files = _make_file_writer(plan, spec, caller)
        if spec.edit is not None:
            return _edit_and_write(parent, plan, spec, spec.edit, caller)
        return _write(plan, write_files, spec, caller)


def find_existing_handoff(parent: Session, spec: HandoffSpec, where: Where) -> Receipt | None:
    """Return the receipt of a child of the same request, or None. Neither the child nor its parent was continued."""
    if spec.is_new_task:
        step = task_step(spec.next_step)
    else:
        step = spec.next_step
    tokens = tokens_for_size(spec.size, where)
    return find_existing_child(parent, "handoff", where, step, opening_tokens=tokens)


def plan_handoff(parent: Session, spec: HandoffSpec, caller: Caller) -> FreshPlan:
    """Plan a handoff. Nothing is written."""
    digest = build_digest(parent, caller.where)
    if spec.is_new_task:
        digest = select_knowledge(digest)
    tokens = tokens_for_size(spec.size, caller.where)
    contents = ChildContents(digest, new_task=spec.is_new_task, tokens=tokens)
    return agents.plan_fresh(
        parent,
        caller.where,
        kind="handoff",
        next_step=spec.next_step,
        output_dir=caller.output_dir,
        contents=contents,
        target_agent=spec.target_agent,
    )


def _edit_and_write(
    parent: Session, first_plan: FreshPlan, spec: HandoffSpec, edit: Edit, caller: Caller
) -> OpenedSession[FreshPlan] | NothingWritten[FreshPlan]:
    """Write a handoff whose digest the user edited. Raises ResumeHooksError if the user cancels the edit."""
    with edit(text_for_editor(first_plan.digest_opening.text)) as text:
        edited = digest_from_editor(text)
        if edited:
            return _plan_again_and_write(parent, first_plan, edited, spec, caller)
    raise ResumeHooksError(
        "The text is empty, so the handoff was cancelled and nothing was written"
    )


def text_for_editor(opening: str) -> str:
    """Return the text for the editor."""
    return f"{EDITOR_NOTE}\n{opening}\n"


def digest_from_editor(text: str) -> str:
    """Return the digest from a saved text, or ``""`` if the user cancelled.

    Raises UsageError if the text is too long. Control characters, lineage block markers and blank
    lines are removed. A line that looks like the heading of the next step is indented, because a
    reader of the child expects that heading after the first blank line.
    """
    rows = [row.rstrip() for row in plain_text(text).split("\n")]
    first_index = next(
        (index for index, row in enumerate(rows) if row and not row.startswith("#")), len(rows)
    )
    used_rows = []
    for row in rows[first_index:]:
        if row:
            used_rows.append(remove_block_markers(row))
    edited_digest = "\n".join(f" {row}" if row == NEXT_STEP_HEADING else row for row in used_rows)
    if len(edited_digest) > MAX_EDITED_CHARACTERS:
        raise UsageError(
            (
                f"The text has {len(edited_digest):,} characters, more than {MAX_EDITED_CHARACTERS:,}, so no "
                "session was made"
            ),
            "Move the long part into a file and name the file.",
        )
    return edited_digest


def _plan_again_and_write(
    parent: Session, first_plan: FreshPlan, edited: str, spec: HandoffSpec, caller: Caller
) -> OpenedSession[FreshPlan] | NothingWritten[FreshPlan]:
    # Plan again: during the edit other children may have been written, and the parent may have
    # grown.
    parent = parent.read_again()
    child = agents.draft_child(
        parent, "handoff", caller.where, caller.output_dir, target_agent=spec.target_agent
    )
    old_id, new_id = first_plan.draft.session_id, child.session_id
    edited = edited.replace(digest_reference(old_id), digest_reference(new_id))
    plan = agents.plan_fresh(
        parent,
        caller.where,
        kind="handoff",
        next_step=spec.next_step,
        output_dir=caller.output_dir,
        contents=first_plan.contents._replace(edited=edited),
        child=child,
        target_agent=spec.target_agent,
    )
    write_files = _make_file_writer(plan, spec, caller)
    return _write(plan, write_files, spec, caller)


def _make_file_writer(plan: FreshPlan, spec: HandoffSpec, caller: Caller) -> WriteFiles:
    if spec.has_files:
        return make_file_writer(plan, caller.where, spec.part_options)
    return lambda _: AccompanyingFiles()


def _write(
    plan: FreshPlan, write_files: WriteFiles, spec: HandoffSpec, caller: Caller
) -> OpenedSession[FreshPlan] | NothingWritten[FreshPlan]:
    receipt = write_if_worthwhile(plan, caller.where, dry_run=caller.dry_run)
    if not receipt.written:
        return NothingWritten(receipt, plan, files=write_files(None))
    files = write_files(receipt)
    facts = _list_opening_facts(plan.digest_opening)
    for path in files.documents:
        facts.append(f"written: {path}")
    for warning in files.warnings:
        facts.append(f"note: {warning}")
    return OpenedSession(
        receipt, plan, "handed off", tuple(facts), next_step=spec.next_step, files=files
    )


def _list_opening_facts(digest: Opening) -> list[str]:
    """Return lines that count the contents of the new session: messages, list entries, and omitted messages."""
    counts = [(digest.message_count, "message")]
    for section, noun in COUNTED_SECTIONS:
        counts.append((count_shown_entries(digest.text, section), noun))
    phrases = []
    for count, noun in counts:
        if count:
            phrases.append(format_count(count, noun))
    facts = [f"contains {', '.join(phrases) or 'your prompts'}"]
    if digest.omitted_count:
        omission_text = format_count(digest.omitted_count, "message")
        facts.append(f"leaves out {omission_text}; a larger size includes more")
    return facts
