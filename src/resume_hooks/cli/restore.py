"""``restore``: brings a deleted session back; without a locator, or with ``--list``, what could come back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from resume_hooks import clock, restoring, trash
from resume_hooks.cli.output import dry_run_option, emit, json_option, locator_argument, table
from resume_hooks.errors import UsageError
from resume_hooks.lineage_block import size_text
from resume_hooks.receipt import resume_command
from resume_hooks.restoring import Restoration
from resume_hooks.trash import Entry, Stray

INTERRUPTED = "the delete was interrupted: restore joins both halves"


@click.command("restore")
@locator_argument
@click.option("--list", "listing", is_flag=True, help="Show what could come back; so does no LOCATOR.")
@dry_run_option
@json_option
def command(locator: str | None, listing: bool, dry_run: bool, as_json: bool) -> None:
    """Bring a deleted session back, byte for byte, where it was.

    LOCATOR: its id or four or more of the first characters, its exact title, or the path that its file had; of a
    session that was deleted more than once ID@INSTANT, as --list shows it. What lies in its place by now is never
    written over.

    \b
    Examples:
      resume-hooks restore
      resume-hooks restore 5e12a303
      resume-hooks restore "Fix the parser" --dry-run
      resume-hooks restore 5e12a303@2026-11-22T09-30-00.000Z
    """
    if listing and locator is not None:
        raise UsageError("--list shows the whole trash", "Leave LOCATOR or --list out.")
    if locator is None:
        _list(as_json=as_json)
        return
    decided = restoring.plan(trash.find(locator, os.environ), os.environ)
    if not dry_run:
        decided = restoring.write(decided, os.environ)
    row = deleted_row(decided.entry, os.environ)
    data = {"session": row if dry_run else row | {"kept_in": ""}, "trash": [], "strays": [], "written": not dry_run}
    emit("restore", data, lambda: _text(decided, dry_run=dry_run), as_json=as_json, warnings=decided.warnings)


def deleted_row(entry: Entry, environ: Mapping[str, str]) -> dict[str, Any]:
    """A session in the trash, or on its way there or back, in its documented JSON form."""
    return {
        "session_id": entry.session_id,
        "locator": entry.locator if entry.folder else "",
        "title": entry.title,
        "folder": entry.cwd,
        "file": entry.parts[0].path(environ),
        "kept_in": entry.folder,
        "files": entry.files,
        "size": entry.size,
        "ended": entry.ended,
        "deleted_at": entry.deleted_at,
        "complete": entry.complete,
    }


def deleted_line(entry: Entry) -> str:
    """The same as one line for people."""
    return f"{entry.title} · {entry.session_id} · {size_text(entry.size)}"


def stray_rows(strays: Iterable[Stray]) -> list[dict[str, Any]]:
    """What lies in the trash and is no session, in its documented JSON form."""
    return [stray._asdict() for stray in strays]


def stray_lines(strays: Sequence[Stray]) -> list[str]:
    """The same for people: counted where it was half removed, else one by one."""
    gone = [stray for stray in strays if stray.gone]
    size = size_text(sum(stray.size for stray in gone))
    lines = [f"{len(gone):,} half-removed, {size}: resume-hooks delete --empty-trash finishes that."] if gone else []
    return lines + [
        f"1 that can't be told, {size_text(stray.size)}: its note is missing or damaged: {stray.folder}"
        for stray in strays
        if not stray.gone
    ]


def held_text(entry: Entry) -> str:
    """What a session takes, for people."""
    return f"{size_text(entry.size)} in {'1 file' if entry.files == 1 else f'{entry.files:,} files'}"


def _list(*, as_json: bool) -> None:
    found, strays = trash.held(os.environ), trash.strays(os.environ)
    rows = [deleted_row(entry, os.environ) for entry in found]
    data = {"session": None, "trash": rows, "strays": stray_rows(strays), "written": False}

    def text() -> str:
        return "\n".join([*map(_row, found), *stray_lines(strays)]) or "The trash is empty."

    emit("restore", data, text, as_json=as_json)


def _row(entry: Entry) -> str:
    when = f"deleted {clock.minute(entry.deleted_at)}, last written {clock.minute(entry.ended)}"
    note = "" if entry.complete else f"\n   {click.style(INTERRUPTED, fg='yellow')}"
    return f"{entry.title}\n   {entry.locator} · {size_text(entry.size)} · {when}{note}"


def _text(decided: Restoration, *, dry_run: bool) -> str:
    entry = decided.entry
    facts = [
        ("would restore" if dry_run else "restored", entry.title),
        ("id", entry.session_id),
        ("file", decided.path),
        ("holds", held_text(entry)),
    ]
    if not dry_run:
        facts += [("in Claude Code", f"/resume {entry.session_id}")]
        facts += [("in a shell", resume_command(entry.cwd, entry.session_id))]
    return table(facts) + ("\n\nNothing was moved." if dry_run else "")
