"""``archive``: keeps sessions beyond the client's period; shows, verifies and forgets what is kept."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from resume_hooks import clock
from resume_hooks.archive.retention import archive_now
from resume_hooks.archive.retention.archive_now import ArchiveOutcome, ArchiveReport
from resume_hooks.archive.vault import first_use_notice
from resume_hooks.archive.vault.commit import forget
from resume_hooks.archive.vault.lookup import find
from resume_hooks.archive.vault.policy_state import Gone, went
from resume_hooks.archive.vault.verify import ArchiveFinding, unreadable, verify
from resume_hooks.cli.archived_text import kept_row, kept_text
from resume_hooks.cli.output import complete_locator, current_folder, dry_run_option, emit, json_option, located, say
from resume_hooks.cli.progress import at_work
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions import locate
from resume_hooks.sessions.archived.layout import real
from resume_hooks.sessions.archived.manifest import ArchivedSession, held
from resume_hooks.sessions.archived.sessions import is_kept
from resume_hooks.sessions.files import SessionFile, belongs
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.system.text import counted

NOTHING: dict[str, Any] = {
    "archived": [],
    "vault": [],
    "findings": [],
    "verified": 0,
    "unhashed": 0,
    "dropped": [],
    "written": False,
}


@click.command("archive")
@click.argument("locators", nargs=-1, metavar="[LOCATOR]...", shell_complete=complete_locator)
@click.option("--project", is_flag=True, help="Every session of this project.")
@click.option("--all", "everywhere", is_flag=True, help="Every session of every project.")
@click.option(
    "--verify", "verifying", is_flag=True, help="Read what is kept and compare it; 1 where something is wrong."
)
@click.option("--list", "listing", is_flag=True, help="Show what is kept.")
@click.option("--forget", "forgetting", is_flag=True, help="Remove what is kept of LOCATOR; the client's files stay.")
@click.option("--yes", is_flag=True, help="With --forget: do not ask.")
@dry_run_option
@json_option
def command(  # noqa: PLR0913, PLR0917 - one word an option
    locators: tuple[str, ...],
    project: bool,
    everywhere: bool,
    verifying: bool,
    listing: bool,
    forgetting: bool,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Keep sessions in the vault, with all that belongs to them, for longer than the client does.

    LOCATOR defaults to the latest session of this folder. What is kept is a compressed copy, an eighth of the size.
    ``restore`` brings a session back; the other verbs read what is kept where it is. With --verify, --list and
    --forget, LOCATOR names a kept session.

    \b
    Examples:
      resume-hooks archive
      resume-hooks archive --project
      resume-hooks archive 5e12a303 "Fix the parser"
      resume-hooks archive --list
      resume-hooks archive --verify
      resume-hooks archive --forget 5e12a303
    """
    _refuse(locators, [verifying, listing, forgetting], project=project, everywhere=everywhere)
    if verifying:
        return _verify(_kept(locators), whole=not locators, as_json=as_json)
    if listing:
        return _list(_kept(locators), as_json=as_json)
    if forgetting:
        return _forget(_kept(locators), asks=not (yes or dry_run), dry_run=dry_run, as_json=as_json)
    return _archive(_sessions(locators, project=project, everywhere=everywhere), dry_run=dry_run, as_json=as_json)


def _refuse(locators: Sequence[str], modes: Sequence[bool], *, project: bool, everywhere: bool) -> None:
    if sum(modes) > 1:
        raise UsageError("--verify, --list and --forget are three things", "Give one of them.")
    if sum([bool(locators), project, everywhere]) > 1 or (any(modes) and (project or everywhere)):
        raise UsageError("Give either LOCATORs, --project or --all", "--verify and --list go over all that is kept.")
    if modes[2] and not locators:
        raise UsageError("--forget takes no session for granted", "Name it: resume-hooks archive --forget LOCATOR")


def _sessions(locators: Sequence[str], *, project: bool, everywhere: bool) -> list[SessionFile]:
    if everywhere:
        return locate.all_sessions(Where())
    if project:
        folder = current_folder()
        return [each for each in locate.sessions_of(folder, Where()) if belongs(each.path, folder)]
    found = [located(locator) for locator in locators] if locators else [located(None)]
    return list({session.path: session for session in found}.values())


def _kept(locators: Sequence[str]) -> list[ArchivedSession]:
    return [find(locator, Where()) for locator in locators] if locators else held(Where())


def _archive(sessions: Sequence[SessionFile], *, dry_run: bool, as_json: bool) -> int:
    if dry_run:
        would = archive_now.preview(sessions, Where())
        data = NOTHING | {"archived": [_outcome(each) for each in would]}
        emit("archive", data, lambda: f"{_counted(would)}\n\nNothing was written.", as_json=as_json)
        return 0
    with at_work("Archiving", quiet=as_json) as advance:
        done = archive_now.archive(sessions, Where(), advance)
    data = NOTHING | {
        "archived": [_outcome(each) for each in done.outcomes],
        "dropped": [each._asdict() for each in done.dropped],
        "written": any(each.result in {"kept", "renewed"} for each in done.outcomes),
    }
    told = first_use_notice.line(Where(), current_folder()) if data["written"] else ""
    failed = [each for each in done.outcomes if each.result == "failed"]
    notes = [each.sentence for each in done.dropped] + [_failure(each) for each in failed]
    emit("archive", data, lambda: _told(done), as_json=as_json, warnings=[*([told] if told else []), *notes])
    return int(bool(failed))


def _outcome(outcome: ArchiveOutcome) -> dict[str, Any]:
    return {
        "session_id": outcome.session.session_id,
        "file": outcome.session.path,
        "result": outcome.result,
        "why": outcome.why,
        "packed": outcome.result in {"kept", "renewed"},
        "kept": kept_row(outcome.kept, Where()) if outcome.kept else None,
    }


def _failure(outcome: ArchiveOutcome) -> str:
    path = outcome.session.path
    return outcome.why if path in outcome.why else f"{path}: {outcome.why}"


def _told(done: ArchiveReport) -> str:
    if len(done.outcomes) == 1 and (kept := done.outcomes[0].kept):
        path = done.outcomes[0].session.path
        other = not is_kept(path, Where()) and path != real(kept.place, Where(), kept.home)
        state = f"{path} as an earlier state of\n" if other else ""
        return f"{done.outcomes[0].result}: {state}{kept_text(kept, Where())}\n   in {kept.folder}"
    return _counted(done.outcomes)


def _counted(outcomes: Sequence[ArchiveOutcome]) -> str:
    counts = {result: sum(each.result == result for each in outcomes) for result in ("kept", "renewed", "unchanged")}
    failed = sum(each.result == "failed" for each in outcomes)
    size = size_text(sum(each.session.size for each in outcomes))
    said = ", ".join(f"{count:,} {result}" for result, count in counts.items() if count) or "nothing to keep"
    return f"{counted(len(outcomes), 'session')}, {size}: {said}" + (f", {failed:,} failed" if failed else "")


def _list(kept: Sequence[ArchivedSession], *, as_json: bool) -> int:
    damaged = [finding.message for finding in unreadable(Where())]
    gone = went(Where())
    data = NOTHING | {"vault": [kept_row(each, Where()) for each in kept]}
    data["dropped"] = [{"session_id": each.session_id, "title": "", **_why(each)} for each in gone]

    def text() -> str:
        rows = [kept_text(each, Where()) for each in kept]
        size = f"{counted(len(kept), 'session')}, {size_text(sum(each.size for each in kept))}"
        room = size_text(sum(each.stored for each in kept))
        held_now = f"{size}; they take {room}." if rows else "The vault is empty."
        away = [f"{each.session_id} went on {clock.minute(each.at)}: {each.why}." for each in gone]
        return "\n".join([*rows, held_now, *away])

    emit("archive", data, text, as_json=as_json, warnings=damaged)
    return 0


def _why(gone: Gone) -> dict[str, Any]:
    return {"stored": gone.stored, "why": gone.why}


def _verify(kept: Sequence[ArchivedSession], *, whole: bool, as_json: bool) -> int:
    total, done = sum(each.size for each in kept), 0
    findings: list[ArchiveFinding] = unreadable(Where()) if whole else []
    with at_work("Verifying", quiet=as_json) as advance:

        def read(count: int) -> None:
            nonlocal done
            done += count
            advance(done, total)

        for each in kept:
            findings += verify(each, read)
    rows = [finding._asdict() for finding in findings]
    data = NOTHING | {"findings": rows, "verified": done, "unhashed": 0}
    data["vault"] = [kept_row(each, Where()) for each in kept]

    def text() -> str:
        said = [f"{finding.session_id}: {finding.message}" for finding in findings]
        return "\n".join(
            [*said, f"{counted(len(kept), 'session')}, {size_text(done)} read: {len(findings) or 'no'} findings."]
        )

    emit("archive", data, text, as_json=as_json)
    return int(bool(findings))


def _forget(kept: Sequence[ArchivedSession], *, asks: bool, dry_run: bool, as_json: bool) -> int:
    if asks and (as_json or not (sys.stdin.isatty() and sys.stdout.isatty())):
        raise UsageError("Forgetting asks first, and here nobody can be asked", "Add --yes, or --dry-run.")
    rows = [kept_row(each, Where()) for each in kept]
    listed = "\n".join(kept_text(each, Where()) for each in kept)
    if asks:
        say(listed)
    agreed = not dry_run and (not asks or click.confirm("\nRemove that from the vault, for good?", err=True))
    if agreed:
        for each in kept:
            forget(each, Where())
    data = NOTHING | {"vault": rows, "written": agreed}
    last = "Removed from the vault." if agreed else "Nothing was removed."
    emit("archive", data, lambda: last if asks else f"{listed}\n\n{last}", as_json=as_json)
    return 0
