"""``delete``: moves a session to the trash; ``--empty-trash`` removes for good what lies there."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from resume_hooks import clock
from resume_hooks.archive.trash import contents, delete
from resume_hooks.archive.trash.contents import StrayFolder, TrashEntry
from resume_hooks.archive.trash.delete import Deletion
from resume_hooks.cli.output import complete_locator, dry_run_option, emit, json_option, located, say, table
from resume_hooks.cli.restore import deleted_line, deleted_row, held_text, stray_lines, stray_rows
from resume_hooks.clock import DAY
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.manifest import find
from resume_hooks.sessions.lineage_block import size_text

STAYS = "The vault keeps a copy of {title}; to remove that, too: resume-hooks archive --forget {session_id}"
SHOWN = 10
"""Derived sessions that are named one by one."""


@click.command("delete")
@click.argument("locator", required=False, shell_complete=complete_locator)
@click.option("--empty-trash", is_flag=True, help="Remove what lies in the trash, for good.")
@click.option("--older-than", type=click.IntRange(0), metavar="DAYS", help="With --empty-trash: deleted so long ago.")
@click.option("--damaged", is_flag=True, help="With --empty-trash: also what can't be told, of any age.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--force", is_flag=True, help="Even if the session is live.")
@dry_run_option
@json_option
def command(  # noqa: PLR0913, PLR0917 - one word an option
    locator: str | None,
    empty_trash: bool,
    older_than: int | None,
    damaged: bool,
    yes: bool,
    force: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Move LOCATOR to the trash, with its sub-agents, tool outputs and file backups.

    The trash lies in the state folder; ``restore`` brings a session back as it was. Only --empty-trash removes anything
    for good.

    \b
    Examples:
      resume-hooks delete 5e12a303
      resume-hooks delete "Fix the parser" --yes
      resume-hooks delete --empty-trash --older-than 30
    """
    if empty_trash is (locator is not None):
        raise UsageError("Give either a LOCATOR or --empty-trash", "Deleting takes no session for granted.")
    if (older_than is not None or damaged) and not empty_trash:
        raise UsageError("--older-than and --damaged belong to --empty-trash", "Leave them out, or LOCATOR.")
    asks = not (yes or dry_run)
    if asks and (as_json or not (sys.stdin.isatty() and sys.stdout.isatty())):
        raise UsageError(
            "Deleting asks first, and here nobody can be asked", "Add --yes, or --dry-run to see what would go."
        )
    if locator is None:
        _empty(older_than, damaged=damaged, asks=asks, dry_run=dry_run, as_json=as_json)
    else:
        _delete(delete.plan(located(locator), Where()), asks, force=force, dry_run=dry_run, as_json=as_json)


def _delete(decided: Deletion, asks: bool, *, force: bool, dry_run: bool, as_json: bool) -> None:
    if not (force or dry_run):
        delete.require_quiet(decided.session, Where())
    if asks:
        say(_facts(decided))
    agreed = not dry_run and (not asks or click.confirm("\nMove it to the trash?", err=True))
    entry = delete.write(decided, Where(), force=force) if agreed else decided.entry
    data = {
        "session": deleted_row(entry, Where()),
        "live": decided.live,
        "derived": [
            {"session_id": child.row.session_id, "title": child.row.title, "kind": child.row.kind}
            for child in decided.derived
        ],
        "emptied": [],
        "strays": [],
        "written": agreed,
    }

    def text() -> str:
        if agreed:
            facts = [("deleted", entry.title), ("id", entry.session_id), ("file", decided.session.path)]
            facts += [("project", entry.cwd or "unknown"), ("held", held_text(entry))]
            return f"{table(facts)}\n\nBring it back: resume-hooks restore {entry.locator}"
        return "Nothing was deleted." if asks else f"{_facts(decided)}\n\nNothing was deleted."

    emit("delete", data, text, as_json=as_json, warnings=_still_kept([entry]) if agreed else [])


def _still_kept(entries: Sequence[TrashEntry]) -> list[str]:
    """What to say of sessions that are gone and that the vault has all the same."""
    kept = (entry for entry in entries if find(entry.session_id, Where()))
    return [STAYS.format(title=entry.title, session_id=entry.session_id) for entry in kept]


def _empty(older_than: int | None, *, damaged: bool, asks: bool, dry_run: bool, as_json: bool) -> None:
    limit = (clock.milliseconds(clock.now()) or 0) - (older_than or 0) * 1000 * DAY
    found = [entry for entry in contents.held(Where()) if (clock.milliseconds(entry.deleted_at) or 0) <= limit]
    wanted = [entry for entry in found if entry.complete]
    strays = contents.strays(Where())
    also = [stray for stray in strays if stray.gone or damaged]
    what = _all(wanted, also)
    if asks and what:
        say("\n".join([*map(deleted_line, wanted), *stray_lines(also)]))
    agreed = bool(what) and not dry_run
    if agreed and asks:
        agreed = click.confirm(f"\nRemove {what}, for good?", err=True)
    gone = delete.empty(wanted, Where(), also) if agreed else wanted
    data: dict[str, Any] = {"session": None, "live": "", "derived": [], "written": agreed}
    data |= {"emptied": [deleted_row(entry, Where()) for entry in gone], "strays": stray_rows(also)}

    def text() -> str:
        if agreed:
            return f"Removed for good: {_all(gone, also) or 'nothing; another command was faster'}."
        if not what:
            return "There is nothing in the trash" + (
                f" that was deleted {older_than} days ago." if older_than else "."
            )
        return f"{what}, would go for good. Nothing was removed."

    told = [f"{line} --damaged removes it." for line in stray_lines([stray for stray in strays if stray not in also])]
    if skipped := len(found) - len(wanted):
        told.append(f"{skipped:,} interrupted deletes stay: restore them first. resume-hooks restore --list")
    emit("delete", data, text, as_json=as_json, warnings=[*told, *(_still_kept(gone) if agreed else [])])


def _all(entries: Sequence[TrashEntry], strays: Sequence[StrayFolder]) -> str:
    """What goes for good, counted; ``""`` for nothing."""
    damaged = sum(not stray.gone for stray in strays)
    half = len(strays) - damaged
    said = [_count(entries)] if entries else []
    said += [f"{half:,} half-removed"] if half else []
    said += [f"{damaged:,} that can't be told"] if damaged else []
    size = size_text(sum(entry.size for entry in entries) + sum(stray.size for stray in strays))
    return f"{' and '.join(said)}, {size}" if said else ""


def _count(entries: Sequence[TrashEntry]) -> str:
    return "1 session" if len(entries) == 1 else f"{len(entries):,} sessions"


def _facts(decided: Deletion) -> str:
    """What a person should know before a session goes."""
    entry = decided.entry
    facts = [
        ("session", entry.title),
        ("id", entry.session_id),
        ("file", decided.session.path),
        ("project", entry.cwd or "unknown"),
        ("last written", clock.minute(entry.ended)),
        ("takes", held_text(entry)),
    ]
    if decided.live:
        facts.append(("live", decided.live))
    return table(facts) + _depending(decided)


def _depending(decided: Deletion) -> str:
    """The sessions that came from it, and what they lose."""
    if not decided.derived:
        return ""
    count = len(decided.derived)
    lines = [f"\n\n{'1 session' if count == 1 else f'{count:,} sessions'} came from it and will miss it:"]
    lines += [f"  {child.row.session_id}  {child.row.kind}  {child.row.title}" for child in decided.derived[:SHOWN]]
    lines += [f"  and {count - SHOWN:,} more"] if count > SHOWN else []
    kept = find(decided.session.session_id, Where()) is not None
    lines.append(f"Their lineage will say {'(kept copy): the vault has one' if kept else '(file gone)'}.")
    if any(child.row.derivation_type == "trimmed" for child in decided.derived):
        lines.append("What was trimmed from them lies in it: until it is restored, read and untrim can't find that.")
    return "\n".join(lines)
