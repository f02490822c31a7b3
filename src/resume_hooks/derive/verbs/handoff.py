"""``handoff``: create a session that opens with a digest of this session and a next step.

For the size ``all``, the new session is a fork with the whole conversation.
"""

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
    FreshChildPlan,
    format_digest_reference,
    make_file_writer,
)
from resume_hooks.derive.opening_size import WHOLE_SESSION_SIZE, resolve_size_to_tokens
from resume_hooks.derive.outcome import AnyOpenedSession, NothingWritten, OpenedSession
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.fork import WHOLE_CONVERSATION_FORK_SPEC, fork
from resume_hooks.errors import ResumeHooksError, UsageError
from resume_hooks.paths import Where
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.reading.digest.entries import select_entries_about_code
from resume_hooks.reading.digest.opening import Opening, count_shown_entries
from resume_hooks.reading.digest.sections import CHANGED_FILES_SECTION, COMMANDS_SECTION
from resume_hooks.sessions.lineage_block import replace_block_markers
from resume_hooks.sessions.opening_layout import NEXT_STEP_HEADING, make_new_task_step
from resume_hooks.sessions.session import Session
from resume_hooks.system.text import format_count, plain_text

DIGEST_SECTIONS_WITH_ROW_COUNTS = ((CHANGED_FILES_SECTION, "file"), (COMMANDS_SECTION, "command"))
"""The sections of the digest whose entries the receipt counts, each with a noun for its entries."""

# Maximum number of characters of an edited digest. This is about 50,000 tokens.
MAX_EDITED_DIGEST_CHARACTERS = 200_000

DIGEST_EDITING_INSTRUCTIONS = """\
# The digest of the work so far. The new session reads it after its lineage and before your next step.
# Edit it and save. These lines at the top, which begin with #, and blank lines are removed.
# To cancel, delete the rest and save, or quit the editor with an error: then no session is made.
"""

DigestEditor = Callable[[str], AbstractContextManager[str]]
FileWriter = Callable[[Receipt | None], AccompanyingFiles]


class HandoffSpec(NamedTuple):
    """The options of a handoff.

    ``next_step`` is the new session's first task. If ``starts_new_task`` is true, this task does not
    belong to the work of the parent. ``size`` is a valid size, or ``""`` for the default size.
    ``target_agent`` is the name of another agent, or ``""`` for the parent's agent.

    ``edit_digest`` is called with the digest so that the user can change it, and yields the changed
    text. If ``writes_files`` is true, the handoff also writes the files that the settings and
    ``part_options`` request.
    """

    next_step: str = ""
    size: str = ""
    starts_new_task: bool = False
    target_agent: str = ""
    edit_digest: DigestEditor | None = None
    writes_files: bool = True
    part_options: object = None


def handoff(
    parent: Session, spec: HandoffSpec, caller: Caller
) -> AnyOpenedSession | NothingWritten[ChildPlan]:
    """Create a child of ``parent`` with a digest and a next step, and return the outcome.

    Raises UsageError and WriteFailed, and NothingToHandOff for a session without prompts.
    """
    with contextlib.ExitStack() as stack:
        if caller.reuses_child:
            stack.enter_context(lock_parent(parent, caller.where))
        if spec.size == WHOLE_SESSION_SIZE:
            return fork(parent, WHOLE_CONVERSATION_FORK_SPEC, caller)
        with caller.time_limit():
            if caller.reuses_child:
                existing = find_existing_handoff(parent, spec, caller.where)
                if existing is not None:
                    return OpenedSession(
                        existing, None, "already handed off", next_step=spec.next_step
                    )
            plan = plan_handoff(parent, spec, caller)
            caller.check_draft(plan.draft)
            # The writer is made before the user edits the digest, so that an unwritable file is
            # reported first.
            write_files = _make_file_writer(plan, spec, caller)
        if spec.edit_digest is not None:
            return _edit_and_write_handoff(parent, plan, spec, spec.edit_digest, caller)
        return _write_handoff(plan, write_files, spec, caller)


def find_existing_handoff(parent: Session, spec: HandoffSpec, where: Where) -> Receipt | None:
    """Return the receipt of an unused child that an identical earlier request created, or None.

    The child is unused if neither the child nor its parent has been continued since then.
    """
    if spec.starts_new_task:
        step = make_new_task_step(spec.next_step)
    else:
        step = spec.next_step
    tokens = resolve_size_to_tokens(spec.size, where)
    return find_existing_child(parent, "handoff", where, step, opening_tokens=tokens)


def plan_handoff(parent: Session, spec: HandoffSpec, caller: Caller) -> FreshChildPlan:
    """Plan a handoff. No files are written."""
    digest = build_digest(parent, caller.where)
    if spec.starts_new_task:
        digest = select_entries_about_code(digest)
    tokens = resolve_size_to_tokens(spec.size, caller.where)
    contents = ChildContents(digest, starts_new_task=spec.starts_new_task, opening_tokens=tokens)
    return agents.plan_fresh_child(
        parent,
        caller.where,
        kind="handoff",
        next_step=spec.next_step,
        output_dir=caller.output_dir,
        contents=contents,
        target_agent=spec.target_agent,
    )


def _edit_and_write_handoff(
    parent: Session,
    first_plan: FreshChildPlan,
    spec: HandoffSpec,
    edit_digest: DigestEditor,
    caller: Caller,
) -> OpenedSession[FreshChildPlan] | NothingWritten[FreshChildPlan]:
    """Write a handoff whose digest the user edits first.

    Raises ResumeHooksError if the user cancels the edit.
    """
    with edit_digest(format_opening_for_editor(first_plan.digest_opening.text)) as text:
        edited_digest = parse_edited_digest(text)
        if edited_digest:
            return _write_handoff_with_edited_digest(
                parent, first_plan, edited_digest, spec, caller
            )
    raise ResumeHooksError(
        "The text is empty, so the handoff was cancelled and nothing was written"
    )


def format_opening_for_editor(opening: str) -> str:
    """Return the text that the editor shows: a note that explains editing, and the digest."""
    return f"{DIGEST_EDITING_INSTRUCTIONS}\n{opening}\n"


def parse_edited_digest(text: str) -> str:
    """Return the digest from a text that the user edited, or ``""`` if the user cancelled.

    Raises UsageError if the text is too long. The note at the top, control characters, lineage
    block markers and blank lines are removed. A line that equals the heading of the next step is
    indented: without an indent, readers of the child would take it for the real heading.
    """
    rows = [row.rstrip() for row in plain_text(text).split("\n")]
    first_index = next(
        (index for index, row in enumerate(rows) if row and not row.startswith("#")), len(rows)
    )
    used_rows = []
    for row in rows[first_index:]:
        if row:
            used_rows.append(replace_block_markers(row))
    edited_digest = "\n".join(f" {row}" if row == NEXT_STEP_HEADING else row for row in used_rows)
    if len(edited_digest) > MAX_EDITED_DIGEST_CHARACTERS:
        raise UsageError(
            (
                f"The text has {len(edited_digest):,} characters, more than {MAX_EDITED_DIGEST_CHARACTERS:,}, so no "
                "session was made"
            ),
            "Move the long part into a file and name the file.",
        )
    return edited_digest


def _write_handoff_with_edited_digest(
    parent: Session,
    first_plan: FreshChildPlan,
    edited_digest: str,
    spec: HandoffSpec,
    caller: Caller,
) -> OpenedSession[FreshChildPlan] | NothingWritten[FreshChildPlan]:
    # The handoff is planned again, because while the user edited the digest, other children may
    # have been written, and the parent may have grown.
    parent = parent.reload()
    child = agents.draft_child(
        parent, "handoff", caller.where, caller.output_dir, target_agent=spec.target_agent
    )
    old_id, new_id = first_plan.draft.session_id, child.session_id
    edited_digest = edited_digest.replace(
        format_digest_reference(old_id), format_digest_reference(new_id)
    )
    plan = agents.plan_fresh_child(
        parent,
        caller.where,
        kind="handoff",
        next_step=spec.next_step,
        output_dir=caller.output_dir,
        contents=first_plan.contents._replace(edited_digest=edited_digest),
        child=child,
        target_agent=spec.target_agent,
    )
    write_files = _make_file_writer(plan, spec, caller)
    return _write_handoff(plan, write_files, spec, caller)


def _make_file_writer(plan: FreshChildPlan, spec: HandoffSpec, caller: Caller) -> FileWriter:
    if spec.writes_files:
        return make_file_writer(plan, caller.where, spec.part_options)
    return lambda _: AccompanyingFiles()


def _write_handoff(
    plan: FreshChildPlan, write_files: FileWriter, spec: HandoffSpec, caller: Caller
) -> OpenedSession[FreshChildPlan] | NothingWritten[FreshChildPlan]:
    receipt = write_if_worthwhile(plan, caller.where, dry_run=caller.dry_run)
    if not receipt.written:
        return NothingWritten(receipt, plan, accompanying_files=write_files(None))
    files = write_files(receipt)
    facts = _list_opening_facts(plan.digest_opening)
    for path in files.documents:
        facts.append(f"written: {path}")
    for warning in files.warnings:
        facts.append(f"note: {warning}")
    return OpenedSession(
        receipt,
        plan,
        "handed off",
        tuple(facts),
        next_step=spec.next_step,
        accompanying_files=files,
    )


def _list_opening_facts(digest_opening: Opening) -> list[str]:
    """Return the lines of the receipt that tell how much the new session contains and how much it omits."""
    counts = [(digest_opening.message_count, "message")]
    for section, noun in DIGEST_SECTIONS_WITH_ROW_COUNTS:
        counts.append((count_shown_entries(digest_opening.text, section), noun))
    phrases = []
    for count, noun in counts:
        if count:
            phrases.append(format_count(count, noun))
    facts = [f"contains {', '.join(phrases) or 'your prompts'}"]
    if digest_opening.omitted_message_count:
        omission_text = format_count(digest_opening.omitted_message_count, "message")
        facts.append(f"leaves out {omission_text}; a larger size includes more")
    return facts
