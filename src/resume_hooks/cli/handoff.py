"""``handoff``: a fresh child that knows its lineage, what was done before, and the next step."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import click

from resume_hooks.cli.child import How, answer, child_options, client_to_start, receipt_text, require_start
from resume_hooks.cli.editor import edited, require_terminal
from resume_hooks.cli.output import emit, located, locator_argument
from resume_hooks.derive import digest_edit, rollover
from resume_hooks.derive.child.draft import Draft, draft
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write import receipt as child_receipt
from resume_hooks.derive.child.write import write
from resume_hooks.derive.handoff_files import HandoffFiles, out_path, wanted_for, write_for
from resume_hooks.derive.rollover import Contents, RolloverPlan, digest_reference, opening_tier
from resume_hooks.errors import ResumeHooksError, UsageError
from resume_hooks.paths import Where
from resume_hooks.reading.digest import as_text
from resume_hooks.reading.digest.build import digest_of
from resume_hooks.reading.digest.entries import Digest
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.opening_records import next_step_of, opening_text
from resume_hooks.transcripts.head_tail import HeadTail


class HandoffHow(How):
    """The options of a handoff."""

    next_step: str
    show: bool
    full: bool
    edit: bool
    out: str | None
    force: bool


class Made(NamedTuple):
    """What came of a handoff: the child's receipt, and the files beside it."""

    receipt: Receipt
    files: HandoffFiles


@click.command("handoff")
@locator_argument
@click.option("-n", "--next-step", default="", help="What the fresh session is to do first.")
@click.option("--print", "show", is_flag=True, help="Print what a child would be told; write nothing.")
@click.option("--full", is_flag=True, help="With --print: the whole digest instead of its best lines.")
@click.option("--edit", is_flag=True, help="Open your editor on the digest first; an empty text cancels.")
@click.option("--out", help="Also write a handoff document: a .md file, or a folder for one.")
@click.option("--force", is_flag=True, help="With --out: overwrite the file.")
@child_options
def command(locator: str | None, **how: Unpack[HandoffHow]) -> Receipt | None:
    """Make a fresh session that holds the lineage of LOCATOR, a digest of its work, and the next step.

    The session itself is only read. The child is checked as read back before its id is printed. With the settings
    handoff_dir and ledger_file each handoff also writes a document, and renews the line "current session:" of a file.

    \b
    Examples:
      resume-hooks handoff -n "fix the tests"
      resume-hooks handoff 5e12a303 -n "write the changelog" --start
      resume-hooks handoff --print --full
      resume-hooks handoff --edit --out docs/
      resume-hooks handoff --dry-run --json
    """
    _require_sense(how)
    parent = located(locator)
    if how["show"]:
        _show(_plan(parent, Contents(digest_of(parent, Where())), how), how)
        return None
    client = client_to_start(how)
    decided = _plan(parent, Contents(digest_of(parent, Where())), how)
    require_start(client, decided.draft)
    made = _make_edited(parent, decided, how) if how["edit"] else _make(decided, how)
    files = made.files
    return answer(
        "handoff",
        made.receipt._replace(warnings=(*made.receipt.warnings, *files.warnings)),
        how,
        client,
        more={"documents": list(files.documents), "ledger": files.ledger or None},
        text=lambda: _text(made),
    )


def _require_sense(how: HandoffHow) -> None:
    """UsageError for options that say two things at once, or nothing."""
    if how["out"] == "":
        raise UsageError("--out names no file", "Name a .md file, or a folder.")
    if how["full"] and not how["show"]:
        raise UsageError("--full needs --print", "resume-hooks handoff --print --full")
    if how["show"] and (how["start"] or how["edit"] or how["out"]):
        raise UsageError("--print makes nothing", "Leave out --print, or --start, --edit and --out.")
    if how["force"] and not how["out"]:
        raise UsageError("--force needs --out", "It is for a document that is there already.")
    if how["edit"]:
        require_terminal()


def _plan(parent: SessionFile, contents: Contents, how: HandoffHow, child: Draft | None = None) -> RolloverPlan:
    return rollover.plan(
        parent,
        Where(),
        kind="handoff",
        next_step=how["next_step"],
        output_dir=how["output_dir"],
        contents=contents,
        child=child,
    )


def _show(decided: RolloverPlan, how: HandoffHow) -> None:
    """Print what a child would be told."""
    digest = decided.contents.digest or Digest()
    whole = as_text.full(digest)

    def text() -> str:
        if not how["full"]:
            return decided.opening
        return opening_text(decided.draft.block, next_step_of(decided.opening) or "", digest=whole)

    data = {"opening": decided.opening, "digest": _digest_data(digest), "full": whole}
    emit("handoff", data, text, as_json=how["as_json"], warnings=decided.draft.warnings)


def _digest_data(digest: Digest) -> dict[str, Any]:
    sections = {name: [entry._asdict() for entry in entries] for name, entries in digest.sections.items()}
    return {"sections": sections, "omitted": dict(digest.omitted), "git": digest.git, "unread": digest.unread}


def _make_edited(parent: SessionFile, first: RolloverPlan, how: HandoffHow) -> Made:
    """Let the user change what the child is told, then make it. ResumeHooksError where they cancel."""
    if how["out"]:
        out_path(how["out"], first, force=how["force"])  # before anybody has written a word in vain
    old = first.draft.session_id
    with edited(digest_edit.to_edit(opening_tier(first.contents.digest, old))) as text:
        if told := digest_edit.saved(text):
            # Decided on anew: while somebody writes others are born, and the parent goes on.
            child = draft(parent, HeadTail(parent.path), "handoff", Where(), how["output_dir"])
            told = told.replace(digest_reference(old), digest_reference(child.session_id))
            return _make(_plan(parent, first.contents._replace(edited=told), how, child), how)
    raise ResumeHooksError("The text is empty, so the handoff was cancelled and nothing was made")


def _make(decided: RolloverPlan, how: HandoffHow) -> Made:
    """Write a child and what it is to leave in the project, or only say so."""
    out = out_path(how["out"], decided, force=how["force"]) if how["out"] else ""
    if how["dry_run"]:
        return Made(child_receipt(decided), wanted_for(decided, Where(), out))
    receipt = write(decided, Where())
    return Made(receipt, write_for(decided, receipt, Where(), out, force=how["force"]))


def _text(made: Made) -> str:
    files = made.files
    more = [*(("document", path) for path in files.documents), *([("ledger", files.ledger)] if files.ledger else [])]
    return receipt_text(made.receipt, more)
