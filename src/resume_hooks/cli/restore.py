"""``restore``: bring a deleted or an archived session back; without SESSION, or with ``--list``, list them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import click

from resume_hooks import clock
from resume_hooks.archive.trash import contents, restore
from resume_hooks.archive.trash.contents import StrayFolder
from resume_hooks.archive.trash.manifest import TrashEntry
from resume_hooks.archive.vault import lookup
from resume_hooks.archive.vault import restore as retrieval
from resume_hooks.archive.vault.lookup import states
from resume_hooks.cli.archived import kept_row, kept_text
from resume_hooks.cli.output import table
from resume_hooks.cli.verbs.archives import RestoreOptions
from resume_hooks.errors import SessionNotFound, UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import real
from resume_hooks.sessions.archived.manifest import ArchivedSession, all_archived
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.system.invocation import resume_command
from resume_hooks.system.text import counted

NOTHING: dict[str, Any] = {"session": None, "kept": None, "trash": [], "vault": [], "strays": [], "written": False}
INTERRUPTED = "the delete was interrupted: restore joins both halves"


def restore_session(options: RestoreOptions) -> None:
    """Bring a session back, or list what could be."""
    if options.listing and options.locator is not None:
        raise UsageError("--list shows everything that can be restored", "Leave SESSION or --list out.")
    if options.locator is None:
        _list(options)
        return
    found = _found(options.locator, options.where)
    if isinstance(found, ArchivedSession):
        _from_vault(found, options)
        return
    decided = restore.plan(found, options.where)
    if not options.dry_run:
        decided = restore.write(decided, options.where)
    row = deleted_row(decided.entry, options.where)
    data = NOTHING | {"session": row if options.dry_run else row | {"kept_in": ""}, "written": not options.dry_run}
    entry = decided.entry
    facts = [
        (_done(options), entry.title),
        ("id", entry.session_id),
        ("file", decided.path),
        ("holds", held_text(entry)),
    ]
    options.emit(data, lambda: _text(facts, entry.session_id, entry.cwd, options), decided.warnings)


def _found(locator: str, where: Where) -> TrashEntry | ArchivedSession:
    """Find a session in the trash, else in the vault. SessionNotFound if it is in neither."""
    try:
        return contents.find(locator, where)
    except SessionNotFound:
        try:
            return lookup.find(locator, where)
        except SessionNotFound as error:
            said = f"Neither the trash nor the vault holds a session '{locator.strip()}'"
            if not (contents.all_deleted(where) or all_archived(where)):
                raise SessionNotFound(f"{said}: both are empty", "See: resume-hooks sessions") from error
            raise SessionNotFound(said, "See what can be restored: resume-hooks restore --list") from error


def _from_vault(kept: ArchivedSession, options: RestoreOptions) -> None:
    decided = retrieval.plan(kept, options.where)
    if not options.dry_run:
        decided = retrieval.write(decided, options.where)
    count = len(decided.pieces)
    row = {
        "session_id": decided.session_id,
        "file": decided.path,
        "files": count,
        "kept": kept_row(decided.archived, options.where),
    }
    data = NOTHING | {"kept": row, "written": count > 0 and not options.dry_run}
    done = _done(options) if count or options.dry_run else "is there"
    facts = [
        (done, decided.archived.title),
        ("id", decided.session_id),
        ("file", decided.path),
        ("files", f"{count:,}"),
    ]
    options.emit(data, lambda: _text(facts, decided.session_id, kept.cwd, options), decided.warnings)


def _done(options: RestoreOptions) -> str:
    return "would restore" if options.dry_run else "restored"


def _text(facts: Sequence[tuple[str, object]], session_id: str, cwd: str, options: RestoreOptions) -> str:
    """What came back, and how to go on in it."""
    if options.dry_run:
        return f"{table(facts)}\n\nNothing was written."
    shell = resume_command(cwd, session_id)
    return table([*facts, ("in Claude Code", f"/resume {session_id}"), ("in a shell", shell)])


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


def stray_lines(strays: Sequence[StrayFolder]) -> list[str]:
    """Folders in the trash that are not sessions, for people: counted if half removed, else one by one."""
    gone = [stray for stray in strays if stray.gone]
    size = size_text(sum(stray.size for stray in gone))
    lines = [f"{len(gone):,} half-removed, {size}: resume-hooks delete --empty-trash finishes that."] if gone else []
    return lines + [
        f"1 unknown folder, {size_text(stray.size)}: its manifest is missing or damaged: {stray.folder}"
        for stray in strays
        if not stray.gone
    ]


def held_text(entry: TrashEntry) -> str:
    """What a session takes, for people."""
    return f"{size_text(entry.size)} in {counted(entry.files, 'file')}"


def _list(options: RestoreOptions) -> None:
    where = options.where
    found, strays = contents.all_deleted(where), contents.strays(where)
    archived = all_archived(where)
    kept = [each for each in archived if states(each) or not os.path.lexists(real(each.place, where, each.home))]
    data = NOTHING | {"trash": [deleted_row(entry, where) for entry in found], "strays": strays}
    data["vault"] = [kept_row(each, where) for each in kept]

    def text() -> str:
        gone = "\n".join([*map(_row, found), *stray_lines(strays)]) or "The trash is empty."
        return "\n".join([gone, "", "In the vault:", *(kept_text(each, where) for each in kept)] if kept else [gone])

    options.emit(data, text)


def _row(entry: TrashEntry) -> str:
    when = f"deleted {clock.minute(entry.deleted_at)}, last written {clock.minute(entry.ended)}"
    note = "" if entry.complete else f"\n   {click.style(INTERRUPTED, fg='yellow')}"
    return f"{entry.title}\n   {entry.locator} · {size_text(entry.size)} · {when}{note}"
