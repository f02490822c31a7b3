"""``restore``: brings a deleted or a kept session back; without a locator, or with ``--list``, what could come."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import click

from resume_hooks import clock
from resume_hooks.archive.trash import contents, restore
from resume_hooks.archive.trash.contents import StrayFolder, TrashEntry
from resume_hooks.archive.trash.restore import Restoration
from resume_hooks.archive.vault import lookup
from resume_hooks.archive.vault import restore as retrieval
from resume_hooks.archive.vault.lookup import states
from resume_hooks.cli.archived_text import kept_row, kept_text
from resume_hooks.cli.output import dry_run_option, emit, json_option, locator_argument, table
from resume_hooks.errors import SessionNotFound, UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import real
from resume_hooks.sessions.archived.manifest import ArchivedSession, held
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.system.invocation import resume_command

NOTHING: dict[str, Any] = {"session": None, "kept": None, "trash": [], "vault": [], "strays": [], "written": False}
INTERRUPTED = "the delete was interrupted: restore joins both halves"


@click.command("restore")
@locator_argument
@click.option("--list", "listing", is_flag=True, help="Show what could come back; so does no LOCATOR.")
@dry_run_option
@json_option
def command(locator: str | None, listing: bool, dry_run: bool, as_json: bool) -> None:
    """Bring a session back, byte for byte, where it was: out of the trash, else out of the vault.

    LOCATOR: its id or four or more of the first characters, its exact title, or the path that its file had; of a
    session that was deleted more than once, or of an earlier state in the vault, ID@INSTANT, as --list shows it. What
    lies in its place by now is never written over: out of the vault it comes under a new id then.

    \b
    Examples:
      resume-hooks restore
      resume-hooks restore 5e12a303
      resume-hooks restore "Fix the parser" --dry-run
      resume-hooks restore 5e12a303@2026-11-22T09-30-00.000Z
    """
    if listing and locator is not None:
        raise UsageError("--list shows all that could come back", "Leave LOCATOR or --list out.")
    if locator is None:
        _list(as_json=as_json)
        return
    found = _found(locator)
    if isinstance(found, ArchivedSession):
        _from_vault(found, dry_run=dry_run, as_json=as_json)
        return
    decided = restore.plan(found, Where())
    if not dry_run:
        decided = restore.write(decided, Where())
    row = deleted_row(decided.entry, Where())
    data = NOTHING | {"session": row if dry_run else row | {"kept_in": ""}, "written": not dry_run}
    emit("restore", data, lambda: _text(decided, dry_run=dry_run), as_json=as_json, warnings=decided.warnings)


def _found(locator: str) -> TrashEntry | ArchivedSession:
    """What a locator names: in the trash, else in the vault. SessionNotFound where it is in neither."""
    try:
        return contents.find(locator, Where())
    except SessionNotFound:
        try:
            return lookup.find(locator, Where())
        except SessionNotFound as error:
            raise SessionNotFound(
                f"Neither the trash nor the vault holds a session '{locator.strip()}'",
                "See what could come back: resume-hooks restore --list",
            ) from error


def _from_vault(kept: ArchivedSession, *, dry_run: bool, as_json: bool) -> None:
    decided = retrieval.plan(kept, Where())
    if not dry_run:
        decided = retrieval.write(decided, Where())
    row = {
        "session_id": decided.session_id,
        "file": decided.path,
        "files": len(decided.pieces),
        "kept": kept_row(decided.kept, Where()),
    }
    data = NOTHING | {"kept": row, "written": bool(decided.pieces) and not dry_run}

    def text() -> str:
        done = "would restore" if dry_run else "restored" if decided.pieces else "is there"
        facts = [(done, decided.kept.title), ("id", decided.session_id), ("file", decided.path)]
        facts += [("files", f"{len(decided.pieces):,}")]
        if not dry_run:
            facts += [("in Claude Code", f"/resume {decided.session_id}")]
            facts += [("in a shell", resume_command(kept.cwd, decided.session_id))]
        return table(facts) + ("\n\nNothing was written." if dry_run else "")

    emit("restore", data, text, as_json=as_json, warnings=decided.warnings)


def deleted_row(entry: TrashEntry, where: Where) -> dict[str, Any]:
    """A session in the trash, or on its way there or back, in its documented JSON form."""
    return {
        "session_id": entry.session_id,
        "locator": entry.locator if entry.folder else "",
        "title": entry.title,
        "folder": entry.cwd,
        "file": entry.parts[0].path(where),
        "kept_in": entry.folder,
        "files": entry.files,
        "size": entry.size,
        "ended": entry.ended,
        "deleted_at": entry.deleted_at,
        "complete": entry.complete,
    }


def deleted_line(entry: TrashEntry) -> str:
    """The same as one line for people."""
    return f"{entry.title} · {entry.session_id} · {size_text(entry.size)}"


def stray_rows(strays: Iterable[StrayFolder]) -> list[dict[str, Any]]:
    """What lies in the trash and is no session, in its documented JSON form."""
    return [stray._asdict() for stray in strays]


def stray_lines(strays: Sequence[StrayFolder]) -> list[str]:
    """The same for people: counted where it was half removed, else one by one."""
    gone = [stray for stray in strays if stray.gone]
    size = size_text(sum(stray.size for stray in gone))
    lines = [f"{len(gone):,} half-removed, {size}: resume-hooks delete --empty-trash finishes that."] if gone else []
    return lines + [
        f"1 that can't be told, {size_text(stray.size)}: its note is missing or damaged: {stray.folder}"
        for stray in strays
        if not stray.gone
    ]


def held_text(entry: TrashEntry) -> str:
    """What a session takes, for people."""
    return f"{size_text(entry.size)} in {'1 file' if entry.files == 1 else f'{entry.files:,} files'}"


def _list(*, as_json: bool) -> None:
    found, strays = contents.held(Where()), contents.strays(Where())
    kept = [each for each in held(Where()) if states(each) or not os.path.lexists(real(each.place, Where(), each.home))]
    rows = [deleted_row(entry, Where()) for entry in found]
    data = NOTHING | {"trash": rows, "strays": stray_rows(strays)}
    data["vault"] = [kept_row(each, Where()) for each in kept]

    def text() -> str:
        gone = "\n".join([*map(_row, found), *stray_lines(strays)]) or "The trash is empty."
        return "\n".join([gone, "", "In the vault:", *(kept_text(each, Where()) for each in kept)] if kept else [gone])

    emit("restore", data, text, as_json=as_json)


def _row(entry: TrashEntry) -> str:
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
