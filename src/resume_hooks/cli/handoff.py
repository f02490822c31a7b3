"""The verbs that make a fresh child: ``handoff``, and ``rollover``, whose summary stands apart."""

from __future__ import annotations

import re
import shlex

from resume_hooks.cli.child import answer, make, receipt_text, require_client, require_start
from resume_hooks.cli.editor import edit, require_terminal
from resume_hooks.cli.verbs.children import HandoffOptions, RolloverOptions
from resume_hooks.derive import agents
from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write import carry_out, write
from resume_hooks.derive.fresh_child import (
    Contents,
    FilesBeside,
    RolloverPlan,
    digest_reference,
    digest_to_edit,
    edited_digest,
    file_writer,
    opening_tier,
)
from resume_hooks.errors import ResumeHooksError, SessionNotFound, UsageError
from resume_hooks.reading.digest import as_text
from resume_hooks.reading.digest.build import digest_of
from resume_hooks.reading.digest.entries import Digest, knowledge
from resume_hooks.sessions.opening_layout import next_step_of, opening_text
from resume_hooks.sessions.session_files import SessionFile

Made = tuple[Receipt, FilesBeside]  # a child's receipt, and the files beside it


def handoff(options: HandoffOptions) -> Receipt | None:
    """Make the child, or print what it would be told."""
    _require_sense(options)
    parent = _parent(options)
    if not options.show:
        require_client(options)
    digest = digest_of(parent, options.where)
    contents = Contents(digest) if options.new_task is None else Contents(knowledge(digest), new_task=True)
    decided = _plan(parent, contents, options)
    if options.show:
        _show(decided, options)
        return None
    require_start(options, decided.draft)
    receipt, files = _make_edited(parent, decided, options) if options.edit else _make(decided, options)
    rows = [*(("document", path) for path in files.documents), *([("ledger", files.ledger)] if files.ledger else [])]
    return answer(
        options,
        receipt._replace(warnings=(*receipt.warnings, *files.warnings)),
        {"documents": files.documents, "ledger": files.ledger or None},
        lambda: receipt_text(receipt, rows),
    )


def _parent(options: HandoffOptions) -> SessionFile:
    """The session that is named, where it is one; words that name none may have been meant for the next step."""
    try:
        return options.located_parent()
    except SessionNotFound as error:
        words = options.locator or ""
        if " " not in words:
            raise
        raise SessionNotFound(error.message, f"As a next step: resume-hooks handoff -n {shlex.quote(words)}") from error


def _require_sense(options: HandoffOptions) -> None:
    """UsageError for options that say two things at once, or nothing.

    A part's option, which is for a child that is made, refuses what it has no sense with: given is what was asked.
    """
    if options.new_task is not None and (options.next_step or not options.new_task.strip()):
        raise UsageError("--new-task needs a task, and takes the place of a next step", 'Say it: --new-task "..."')
    of_parts = options.asked_of_parts()
    for require_sense in of_parts:
        require_sense(options)
    if options.full and not options.show:
        raise UsageError("--full needs --print", "resume-hooks handoff --print --full")
    if options.show and (options.start or options.edit or of_parts):
        raise UsageError("--print makes nothing", "Leave out --print, or --start, --edit and --out.")
    if options.edit:
        require_terminal()


def _plan(parent: SessionFile, contents: Contents, options: HandoffOptions, child: Draft | None = None) -> RolloverPlan:
    return agents.fresh(
        parent,
        options.where,
        kind="handoff",
        next_step=options.new_task or options.next_step,
        output_dir=options.output_dir,
        contents=contents,
        child=child,
        to=options.to or "",
    )


def _show(decided: RolloverPlan, options: HandoffOptions) -> None:
    digest = decided.contents.digest or Digest()
    whole = as_text.full(digest)
    unmade = f"; all of it: {decided.draft.command('read')} {digest_reference(decided.draft.session_id)}"
    # Nor is the child of its own row in the lineage ever made.
    own = re.compile(rf" · {decided.draft.session_id}|\n +[^\n]*{decided.draft.session_id}[^\n]*")
    opening = own.sub("", decided.opening.replace(unmade, ""))

    def text() -> str:
        if not options.full:
            return opening
        return opening_text(own.sub("", decided.draft.block), next_step_of(decided.opening) or "", digest=whole)

    data = {"opening": opening, "digest": digest, "full": whole}
    options.emit(data, text, decided.draft.warnings)


def _make_edited(parent: SessionFile, first: RolloverPlan, options: HandoffOptions) -> Made:
    """Let the user change what the child is told, then make it. ResumeHooksError where they cancel."""
    file_writer(first, options.where, options)  # refuses before anybody has written a word in vain
    old = first.draft.session_id
    with edit(digest_to_edit(opening_tier(first.contents.digest, first.draft))) as text:
        if edited_text := edited_digest(text):
            # Planned again: meanwhile other children may be made, and the parent may grow.
            child = agents.draft_of(parent, "handoff", options.where, options.output_dir, to=options.to or "")
            edited_text = edited_text.replace(digest_reference(old), digest_reference(child.session_id))
            return _make(_plan(parent, first.contents._replace(edited=edited_text), options, child), options)
    raise ResumeHooksError("The text is empty, so the handoff was cancelled and nothing was made")


def _make(decided: RolloverPlan, options: HandoffOptions) -> Made:
    """Write a child and what it is to leave in the project, or only say so."""
    write_files = file_writer(decided, options.where, options)
    if options.dry_run:
        return carry_out(decided, options.where, dry_run=True), write_files(None)
    receipt = write(decided, options.where)
    return receipt, write_files(receipt)


def rollover(options: RolloverOptions) -> Receipt:
    """Make the child, with a summary unless ``--quick``."""
    if not options.quick:
        # What asks a model takes 100 ms to load, which a quick rollover need not wait for.
        from resume_hooks.cli.rollover_summary import roll_over

        return roll_over(options)
    if options.with_summary or options.prompt or options.model or options.timeout:
        raise UsageError("--quick asks no model", "Leave out --quick, or --with-summary, -p, --model and --timeout.")
    require_client(options)
    return answer(
        options,
        make(options, agents.fresh(options.located(foreign=True), options.where, output_dir=options.output_dir)),
    )
