"""``archive``: copy sessions to the vault before the client deletes them.

The verb also lists the archived copies, verifies them, and removes copies from the vault.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from resume_hooks import clock
from resume_hooks.archive.link_sessions import archive_lost_sessions
from resume_hooks.archive.retention import archive_sessions
from resume_hooks.archive.retention.archive_sessions import ArchiveOutcome, ArchiveReport
from resume_hooks.archive.vault import permission, trash
from resume_hooks.archive.vault.commit import remove_archived
from resume_hooks.archive.vault.locate_archived import find_archived
from resume_hooks.archive.vault.packs import ArchiveDefect, find_unreadable_folders, verify_archived
from resume_hooks.archive.vault.policy import (
    RemovedSession,
    read_removed_sessions,
    take_pending_removal_announcement,
)
from resume_hooks.cli.child import receipt_text
from resume_hooks.cli.options import current_folder, locate_session
from resume_hooks.cli.output import print_text, show_work_progress
from resume_hooks.cli.show_archived import archived_session_text
from resume_hooks.cli.verbs.archives import ArchiveOptions
from resume_hooks.derive.child.write_child import write_if_worthwhile
from resume_hooks.errors import CheckFailed, ExitCode, UsageError, WriteFailed
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import path_in_config_home
from resume_hooks.sessions.archived.manifest import ArchivedSession, list_archived
from resume_hooks.sessions.archived.sessions import is_archived_copy
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.sessions.session_files import (
    SessionFile,
    all_sessions,
    belongs_to_folder,
    sessions_of_directory,
)
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import format_count

DEFAULT_ARCHIVE_ANSWER_FIELDS: dict[str, Any] = {
    "archived": [], "vault": [], "findings": [], "verified": 0, "unhashed": 0, "dropped": [], "slim": None,
    "written": False,
}  # fmt: skip
_ARCHIVE_RESULT_DISPLAY_NAMES = {"kept": "archived"}
"""Names of results in the text output, where they differ from the names in the code and in JSON."""


def archive_or_list_sessions(options: ArchiveOptions) -> ExitCode:
    """Archive sessions, or list, verify or remove archived copies. Return the exit code."""
    options.refuse_combination(
        "must_verify",
        "must_list",
        "must_forget",
        "must_slim",
        remedy="Give only one of these options.",
    )
    acts_on_archived_copies = options.must_verify or options.must_list or options.must_forget
    selections = [bool(options.locators), options.whole_project, options.everywhere]
    if sum(selections) > 1:
        raise UsageError("Give either SESSIONs, --project or --all", "Give only one of them.")
    if acts_on_archived_copies and (options.whole_project or options.everywhere):
        raise UsageError(
            "--verify, --list and --forget take SESSIONs, not --project or --all",
            "Without a SESSION, --verify and --list cover all archived copies.",
        )
    if options.must_slim and (
        len(options.locators) > 1 or options.whole_project or options.everywhere
    ):
        raise UsageError(
            "--slim needs exactly one SESSION",
            "Name the session: resume-hooks archive --slim SESSION",
        )
    if options.must_forget and not options.locators:
        raise UsageError(
            "--forget needs a SESSION", "Name the session: resume-hooks archive --forget SESSION"
        )
    if options.must_verify:
        return _verify_archived_sessions(_find_archived_sessions(options), options)
    if options.must_list:
        return _print_archived_sessions(_find_archived_sessions(options), options)
    if options.must_forget:
        return _remove_archived_copies(_find_archived_sessions(options), options)
    if options.must_slim:
        return _archive_and_slim_session(
            locate_session(next(iter(options.locators), None), options.where), options
        )
    return _archive_sessions(_list_sessions_to_archive(options), options)


def _list_sessions_to_archive(options: ArchiveOptions) -> list[SessionFile]:
    if options.everywhere:
        return all_sessions(options.where)
    if options.whole_project:
        folder = current_folder()
        return [
            candidate
            for candidate in sessions_of_directory(folder, options.where)
            if belongs_to_folder(candidate.path, folder)
        ]
    sessions = []
    for locator in options.locators or [None]:
        sessions.append(locate_session(locator, options.where))
    return list({session.path: session for session in sessions}.values())


def _find_archived_sessions(options: ArchiveOptions) -> list[ArchivedSession]:
    where = options.where
    archive_lost_sessions(where)
    if options.locators:
        return [find_archived(locator, where) for locator in options.locators]
    return list_archived(where)


def _archive_sessions(sessions: Sequence[SessionFile], options: ArchiveOptions) -> ExitCode:
    if options.dry_run:
        outcomes = archive_sessions.preview_archive(sessions, options.where)
        data = DEFAULT_ARCHIVE_ANSWER_FIELDS | {"archived": outcomes}
        options.print_answer(
            data, lambda: f"{_describe_outcome_counts(outcomes)}\n\nNothing was written."
        )
        return 0
    with show_work_progress("Archiving", quiet=options.as_json) as advance:
        archived = archive_sessions.archive_sessions(sessions, options.where, advance)
    data = DEFAULT_ARCHIVE_ANSWER_FIELDS | {
        "archived": archived.outcomes,
        "dropped": archived.removed_sessions,
        "written": any(outcome.result in {"kept", "renewed"} for outcome in archived.outcomes),
    }
    if data["written"]:
        announcement_line = permission.make_first_archive_notice(options.where, current_folder())
    else:
        announcement_line = ""
    failed_outcomes = []
    for outcome in archived.outcomes:
        if outcome.result == "failed":
            failed_outcomes.append(outcome)
    notes = [outcome.describe_removal() for outcome in archived.removed_sessions] + [
        _describe_failure(outcome) for outcome in failed_outcomes
    ]
    notes += _list_remedies(failed_outcomes)
    notes += filter(None, [take_pending_removal_announcement(options.where)])
    options.print_answer(
        data,
        lambda: _describe_report(archived),
        [*([announcement_line] if announcement_line else []), *notes],
    )
    return int(bool(failed_outcomes))


def _archive_and_slim_session(session: SessionFile, options: ArchiveOptions) -> ExitCode:
    """Archive a session, verify its archived copy, and then create a slim copy of the session.

    If one of the first two steps fails, no slim copy is created, because the slim copy refers to
    the archived copy.
    """
    # Imported late: the modules that create children take 40 ms to load, and only ``--slim`` needs
    # them.
    from resume_hooks.derive.trim.plan import plan_slim_copy

    plan = plan_slim_copy(session, options.where)
    if options.dry_run:
        outcomes = archive_sessions.preview_archive([session], options.where)
    else:
        with show_work_progress("Archiving", quiet=options.as_json) as advance:
            outcomes = list(
                archive_sessions.archive_sessions([session], options.where, advance).outcomes
            )
        outcome = outcomes[0]
        if outcome.archived_session is None or outcome.result == "failed":
            raise WriteFailed(
                f"The session could not be archived, so no slim copy was made: {_describe_failure(outcome)}",
                outcome.remedy,
            )
        if findings := verify_archived(outcome.archived_session):
            raise CheckFailed(
                f"No slim copy was made: {findings[0].message}",
                "See what is wrong: resume-hooks archive --verify",
            )
    child = write_if_worthwhile(plan, options.where, dry_run=options.dry_run)
    data = DEFAULT_ARCHIVE_ANSWER_FIELDS | {
        "archived": outcomes,
        "slim": child,
        "written": child.written,
    }
    if child.written:
        size = format_bytes(os.path.getsize(child.file))
    else:
        size = "-"
    facts = [
        ("size", f"{format_bytes(session.size)}; the slim copy: {size}"),
        (
            "archived copy",
            outcomes[0].archived_session.folder
            if outcomes[0].archived_session and child.written
            else "would be made",
        ),
        ("the original", f"stays; to delete it: {shell_command(f'delete {session.session_id}')}"),
    ]
    options.print_answer(data, lambda: receipt_text(child, facts), child.warnings)
    return 0


def _list_remedies(failed_outcomes: Sequence[ArchiveOutcome]) -> list[str]:
    """Return the remedies for the failures, without duplicates.

    For example, if the disk is full, archiving fails for every session with the same remedy.
    """
    remedies = (outcome.remedy for outcome in failed_outcomes if outcome.remedy)
    return list(dict.fromkeys(remedies))


def _describe_failure(outcome: ArchiveOutcome) -> str:
    path = outcome.session.path
    if path in outcome.reason:
        return outcome.reason
    return f"{path}: {outcome.reason}"


def _describe_report(report: ArchiveReport) -> str:
    if len(report.outcomes) == 1 and (archived := report.outcomes[0].archived_session):
        path = report.outcomes[0].session.path
        own_path = path_in_config_home(archived.place, Where(), archived.home)
        is_other_state = not is_archived_copy(path, Where()) and path != own_path
        earlier_state_text = f"{path} as an earlier state of\n" if is_other_state else ""
        result_word = _ARCHIVE_RESULT_DISPLAY_NAMES.get(
            report.outcomes[0].result, report.outcomes[0].result
        )
        return f"{result_word}: {earlier_state_text}{archived_session_text(archived, Where())}\n   in {archived.folder}"
    return _describe_outcome_counts(report.outcomes)


def _describe_outcome_counts(outcomes: Sequence[ArchiveOutcome]) -> str:
    counts = {}
    for result in ("kept", "renewed", "unchanged"):
        counts[result] = sum(outcome.result == result for outcome in outcomes)
    counts["failed"] = sum(outcome.result == "failed" for outcome in outcomes)
    size_text_of_sessions = format_bytes(sum(outcome.session.size for outcome in outcomes))
    counts_text = (
        ", ".join(
            f"{count:,} {_ARCHIVE_RESULT_DISPLAY_NAMES.get(result, result)}"
            for result, count in counts.items()
            if count
        )
        or "nothing to archive"
    )
    return f"{format_count(len(outcomes), 'session')}, {size_text_of_sessions}: {counts_text}"


def _print_archived_sessions(
    sessions: Sequence[ArchivedSession], options: ArchiveOptions
) -> ExitCode:
    warnings = [finding.message for finding in find_unreadable_folders(options.where)]
    removed_sessions = read_removed_sessions(options.where)
    data = DEFAULT_ARCHIVE_ANSWER_FIELDS | {
        "vault": sessions,
        "dropped": [
            RemovedSession(session.session_id, "", session.stored_bytes, session.reason)
            for session in removed_sessions
        ],
    }

    def format_archived_sessions() -> str:
        rows = [archived_session_text(session, options.where) for session in sessions]
        total_size = format_bytes(sum(session.size for session in sessions))
        size_line = f"{format_count(len(sessions), 'session')}, {total_size}"
        stored_size = format_bytes(sum(session.stored for session in sessions))
        if rows:
            total_line = f"{size_line}. The archived copies take {stored_size}."
        else:
            total_line = "The vault is empty."
        removed_lines = []
        for session in removed_sessions:
            removed_lines.append(
                f"{session.session_id} was removed on {clock.format_minute(session.removed_at)}: {session.reason}."
            )
        return "\n".join([*rows, total_line, *removed_lines])

    options.print_answer(data, format_archived_sessions, warnings)
    return 0


def _verify_archived_sessions(
    sessions: Sequence[ArchivedSession], options: ArchiveOptions
) -> ExitCode:
    packed_sessions = []
    for session in trash.list_trashed_sessions(options.where):
        if session.transcript.where and not options.locators:
            packed_sessions.append(session)
    total_bytes, bytes_read = sum(session.size for session in (*sessions, *packed_sessions)), 0
    findings: list[ArchiveDefect] = (
        find_unreadable_folders(options.where) if not options.locators else []
    )
    with show_work_progress("Verifying", quiet=options.as_json) as advance:

        def count_bytes_read(byte_count: int) -> None:
            nonlocal bytes_read
            bytes_read += byte_count
            advance(bytes_read, total_bytes)

        for session in (*sessions, *packed_sessions):
            findings += verify_archived(session, count_bytes_read)
    data = DEFAULT_ARCHIVE_ANSWER_FIELDS | {
        "findings": findings,
        "verified": bytes_read,
        "vault": sessions,
    }

    def format_findings() -> str:
        lines = []
        for finding in findings:
            lines.append(f"{finding.session_id}: {finding.message}")
        session_count = format_count(len(sessions) + len(packed_sessions), "session")
        return "\n".join(
            [
                *lines,
                f"{session_count}, {format_bytes(bytes_read)} read: {len(findings) or 'no'} findings.",
            ]
        )

    options.print_answer(data, format_findings)
    return int(bool(findings))


def _remove_archived_copies(
    sessions: Sequence[ArchivedSession], options: ArchiveOptions
) -> ExitCode:
    ask_first = options.must_ask("Forgetting")
    listing = "\n".join(archived_session_text(session, options.where) for session in sessions)
    if ask_first:
        print_text(listing)
    is_confirmed = options.confirm_write(
        "Remove these archived copies for good?", ask_first=ask_first
    )
    if is_confirmed:
        for session in sessions:
            remove_archived(session, options.where)
    if is_confirmed:
        last_line = "Removed from the vault."
    else:
        last_line = "Nothing was removed."
    options.print_answer(
        DEFAULT_ARCHIVE_ANSWER_FIELDS | {"vault": sessions, "written": is_confirmed},
        lambda: last_line if ask_first else f"{listing}\n\n{last_line}",
    )
    return 0
