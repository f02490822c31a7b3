"""``archive``: copy sessions to the vault before the client deletes them.

It also lists and verifies the copies, and removes copies that the vault should forget.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from resume_hooks import clock
from resume_hooks.archive.hold_sessions import archive_lost_sessions
from resume_hooks.archive.retention import archive_sessions
from resume_hooks.archive.retention.archive_sessions import ArchiveOutcome, ArchiveReport
from resume_hooks.archive.vault import permission, trash
from resume_hooks.archive.vault.commit import remove_archived
from resume_hooks.archive.vault.lookup import find_archived
from resume_hooks.archive.vault.packs import ArchiveFinding, find_unreadable, verify_archived
from resume_hooks.archive.vault.policy import (
    DroppedSession,
    read_removed_sessions,
    take_announcement,
)
from resume_hooks.cli.child import receipt_text
from resume_hooks.cli.options import current_folder, locate_session
from resume_hooks.cli.output import print_text, work_progress
from resume_hooks.cli.show_archived import archived_text
from resume_hooks.cli.verbs.archives import ArchiveOptions
from resume_hooks.errors import CheckFailed, UsageError, WriteFailed
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import path_of_place
from resume_hooks.sessions.archived.manifest import ArchivedSession, list_archived
from resume_hooks.sessions.archived.sessions import is_archived_copy
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.sessions.session_files import (
    SessionFile,
    all_sessions,
    belongs_to_folder,
    sessions_of,
)
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import format_count

EMPTY_DATA: dict[str, Any] = {
    "archived": [], "vault": [], "findings": [], "verified": 0, "unhashed": 0, "dropped": [], "slim": None,
    "written": False,
}  # fmt: skip
_RESULT_WORDS = {"kept": "archived"}
"""The words for results that are shown under another name."""


def archive(options: ArchiveOptions) -> int:
    """Archive sessions, or show, verify or forget their copies."""
    options.refuse_combination(
        "verifying", "listing", "forgetting", "slim", remedy="Give one of them."
    )
    is_mode = options.verifying or options.listing or options.forgetting
    selections = [bool(options.locators), options.project, options.everywhere]
    if sum(selections) > 1 or (is_mode and (options.project or options.everywhere)):
        raise UsageError(
            "Give either SESSIONs, --project or --all",
            "--verify and --list cover all archived copies.",
        )
    if options.slim and (len(options.locators) > 1 or options.project or options.everywhere):
        raise UsageError(
            "--slim makes a copy of one session", "Name one: resume-hooks archive --slim SESSION"
        )
    if options.forgetting and not options.locators:
        raise UsageError(
            "--forget needs a SESSION", "Name it: resume-hooks archive --forget SESSION"
        )
    if options.verifying:
        return _verify_archived(_archived_of_options(options), options)
    if options.listing:
        return _print_archived(_archived_of_options(options), options)
    if options.forgetting:
        return _forget_archived(_archived_of_options(options), options)
    if options.slim:
        return _archive_and_slim(
            locate_session(next(iter(options.locators), None), options.where), options
        )
    return _archive_all(_sessions_to_archive(options), options)


def _sessions_to_archive(options: ArchiveOptions) -> list[SessionFile]:
    if options.everywhere:
        return all_sessions(options.where)
    if options.project:
        folder = current_folder()
        return [
            each
            for each in sessions_of(folder, options.where)
            if belongs_to_folder(each.path, folder)
        ]
    sessions = []
    for locator in options.locators or [None]:
        sessions.append(locate_session(locator, options.where))
    return list({session.path: session for session in sessions}.values())


def _archived_of_options(options: ArchiveOptions) -> list[ArchivedSession]:
    where = options.where
    archive_lost_sessions(where)
    if options.locators:
        return [find_archived(locator, where) for locator in options.locators]
    return list_archived(where)


def _archive_all(sessions: Sequence[SessionFile], options: ArchiveOptions) -> int:
    if options.dry_run:
        outcomes = archive_sessions.preview_archive(sessions, options.where)
        data = EMPTY_DATA | {"archived": outcomes}
        options.emit(data, lambda: f"{_outcome_counts(outcomes)}\n\nNothing was written.")
        return 0
    with work_progress("Archiving", quiet=options.as_json) as advance:
        archived = archive_sessions.archive_sessions(sessions, options.where, advance)
    data = EMPTY_DATA | {
        "archived": archived.outcomes,
        "dropped": archived.dropped,
        "written": any(each.result in {"kept", "renewed"} for each in archived.outcomes),
    }
    if data["written"]:
        first_line = permission.describe_first_archive(options.where, current_folder())
    else:
        first_line = ""
    failed = []
    for each in archived.outcomes:
        if each.result == "failed":
            failed.append(each)
    notes = [each.sentence for each in archived.dropped] + [
        _failure_of_outcome(each) for each in failed
    ]
    notes += filter(None, [take_announcement(options.where)])
    options.emit(
        data, lambda: _outcome_text(archived), [*([first_line] if first_line else []), *notes]
    )
    return int(bool(failed))


def _archive_and_slim(session: SessionFile, options: ArchiveOptions) -> int:
    """Archive a session, verify its archived copy, and only then create the slim copy that refers to it."""
    # The modules that create children take 40 ms to load, and only a slim archive needs them.
    from resume_hooks.derive.child.write import write_unless_idle
    from resume_hooks.derive.trim.plan import plan_slim_copy

    plan = plan_slim_copy(session, options.where)
    if options.dry_run:
        outcomes = archive_sessions.preview_archive([session], options.where)
    else:
        with work_progress("Archiving", quiet=options.as_json) as advance:
            outcomes = list(
                archive_sessions.archive_sessions([session], options.where, advance).outcomes
            )
        outcome = outcomes[0]
        if outcome.archived is None or outcome.result == "failed":
            raise WriteFailed(
                f"It could not be archived, so no copy was made: {_failure_of_outcome(outcome)}",
                "Check free space.",
            )
        if findings := verify_archived(outcome.archived):
            raise CheckFailed(
                f"No copy was made: {findings[0].message}",
                "See what is wrong: resume-hooks archive --verify",
            )
    child = write_unless_idle(plan, options.where, dry_run=options.dry_run)
    data = EMPTY_DATA | {"archived": outcomes, "slim": child, "written": child.written}
    if child.written:
        size = format_bytes(os.path.getsize(child.file))
    else:
        size = "-"
    facts = [
        ("size", f"{format_bytes(session.size)} here; there {size}"),
        (
            "archived copy",
            outcomes[0].archived.folder
            if outcomes[0].archived and child.written
            else "would be made",
        ),
        ("the original", f"stays; to delete it: {shell_command(f'delete {session.session_id}')}"),
    ]
    options.emit(data, lambda: receipt_text(child, facts), child.warnings)
    return 0


def _failure_of_outcome(outcome: ArchiveOutcome) -> str:
    path = outcome.session.path
    if path in outcome.why:
        return outcome.why
    return f"{path}: {outcome.why}"


def _outcome_text(report: ArchiveReport) -> str:
    if len(report.outcomes) == 1 and (archived := report.outcomes[0].archived):
        path = report.outcomes[0].session.path
        own_path = path_of_place(archived.place, Where(), archived.home)
        differs = not is_archived_copy(path, Where()) and path != own_path
        earlier_text = f"{path} as an earlier state of\n" if differs else ""
        result_word = _RESULT_WORDS.get(report.outcomes[0].result, report.outcomes[0].result)
        return f"{result_word}: {earlier_text}{archived_text(archived, Where())}\n   in {archived.folder}"
    return _outcome_counts(report.outcomes)


def _outcome_counts(outcomes: Sequence[ArchiveOutcome]) -> str:
    counts = {}
    for result in ("kept", "renewed", "unchanged"):
        counts[result] = sum(each.result == result for each in outcomes)
    failed = sum(each.result == "failed" for each in outcomes)
    size = format_bytes(sum(each.session.size for each in outcomes))
    counts_text = (
        ", ".join(
            f"{count:,} {_RESULT_WORDS.get(result, result)}"
            for result, count in counts.items()
            if count
        )
        or "nothing to archive"
    )
    return f"{format_count(len(outcomes), 'session')}, {size}: {counts_text}" + (
        f", {failed:,} failed" if failed else ""
    )


def _print_archived(sessions: Sequence[ArchivedSession], options: ArchiveOptions) -> int:
    damaged = [finding.message for finding in find_unreadable(options.where)]
    removed = read_removed_sessions(options.where)
    data = EMPTY_DATA | {
        "vault": sessions,
        "dropped": [DroppedSession(each.session_id, "", each.stored, each.why) for each in removed],
    }

    def text() -> str:
        rows = [archived_text(each, options.where) for each in sessions]
        size = f"{format_count(len(sessions), 'session')}, {format_bytes(sum(each.size for each in sessions))}"
        stored_size = format_bytes(sum(each.stored for each in sessions))
        if rows:
            total_line = f"{size}; they take {stored_size}."
        else:
            total_line = "The vault is empty."
        removed_lines = []
        for each in removed:
            removed_lines.append(
                f"{each.session_id} was removed on {clock.format_minute(each.at)}: {each.why}."
            )
        return "\n".join([*rows, total_line, *removed_lines])

    options.emit(data, text, damaged)
    return 0


def _verify_archived(sessions: Sequence[ArchivedSession], options: ArchiveOptions) -> int:
    packed_deleted = []
    for each in trash.list_deleted(options.where):
        if each.transcript.where and not options.locators:
            packed_deleted.append(each)
    total, bytes_read = sum(each.size for each in (*sessions, *packed_deleted)), 0
    findings: list[ArchiveFinding] = find_unreadable(options.where) if not options.locators else []
    with work_progress("Verifying", quiet=options.as_json) as advance:

        def read(count: int) -> None:
            nonlocal bytes_read
            bytes_read += count
            advance(bytes_read, total)

        for each in (*sessions, *packed_deleted):
            findings += verify_archived(each, read)
    data = EMPTY_DATA | {"findings": findings, "verified": bytes_read, "vault": sessions}

    def text() -> str:
        lines = []
        for finding in findings:
            lines.append(f"{finding.session_id}: {finding.message}")
        session_count = format_count(len(sessions) + len(packed_deleted), "session")
        return "\n".join(
            [
                *lines,
                f"{session_count}, {format_bytes(bytes_read)} read: {len(findings) or 'no'} findings.",
            ]
        )

    options.emit(data, text)
    return int(bool(findings))


def _forget_archived(sessions: Sequence[ArchivedSession], options: ArchiveOptions) -> int:
    is_asking = options.asks("Forgetting")
    listing = "\n".join(archived_text(each, options.where) for each in sessions)
    if is_asking:
        print_text(listing)
    is_agreed = options.confirm_write("Remove that from the vault, for good?", is_asking=is_asking)
    if is_agreed:
        for each in sessions:
            remove_archived(each, options.where)
    if is_agreed:
        last_line = "Removed from the vault."
    else:
        last_line = "Nothing was removed."
    options.emit(
        EMPTY_DATA | {"vault": sessions, "written": is_agreed},
        lambda: last_line if is_asking else f"{listing}\n\n{last_line}",
    )
    return 0
