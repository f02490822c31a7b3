"""Run the actions of ``team`` on sessions: push, pull, resume, search, share and forget."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from resume_hooks.cli.options import current_folder, locate_session, parse_time_option
from resume_hooks.cli.output import facts_table, show_work_progress
from resume_hooks.cli.start_client import find_client_start, replace_process_with_client
from resume_hooks.clock import format_minute
from resume_hooks.errors import UsageError
from resume_hooks.parts.team import membership, sharing, team_file
from resume_hooks.parts.team.connect import MAX_PUSH_SECONDS, TeamRequestFailed, connect_to_team
from resume_hooks.parts.team.rows import Database
from resume_hooks.parts.team.sessions import (
    MAX_LISTED_SESSIONS,
    TeamSession,
    fetch_sessions_by_row_ids,
    find_team_session,
    list_team_sessions,
)
from resume_hooks.parts.team.team_file import Team
from resume_hooks.parts.team.verbs import (
    ForgetOptions,
    PullOptions,
    PushOptions,
    ResumeOptions,
    SearchOptions,
    SessionsOptions,
    ShareOptions,
    UnshareOptions,
)
from resume_hooks.parts.team.verbs.team_answer import (
    build_push_notes,
    format_push_results,
    format_sessions,
    print_team_answer,
    search_team_and_print_hits,
)
from resume_hooks.paths import Where, canonical_path
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import require_answers
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import format_count

if TYPE_CHECKING:  # Not imported at run time because the import takes 80 ms.
    from resume_hooks.parts.team.pushing import PushResult

_OLDER_SESSIONS_NOTE = (
    "Only the latest sessions are listed. There may be more. Every action also accepts the id or title of an "
    "older session."
)


def push_sessions(options: PushOptions) -> None:
    """Push sessions, or print what would be pushed."""
    # Imported here because the import takes 80 ms.
    from resume_hooks.parts.team import background, pushing

    team = membership.get_joined_team(options.where)
    if options.must_push_all_sessions and options.locators:
        raise UsageError("Sessions and --all can't be combined", "Give only one of them.")
    if options.must_push_all_sessions:
        to_push = background.find_pushable_sessions(team, options.where)
    else:
        to_push = []
        for locator in options.locators or [None]:
            to_push.append(_locate_pushable_session(locator, options.where))
    removed_ids: list[str] = []
    if options.dry_run:
        push_results = []
        for session in to_push:
            push_results.append(pushing.preview_push(session, options.where))
    else:
        with connect_to_team(team.service) as db:
            db.set_deadline(MAX_PUSH_SECONDS)
            removed_ids = sharing.remove_queued_sessions_and_expired_sessions(db, options.where)
            push_results = _push_sessions(to_push, team, db, options)
        team_file.record_push(options.where)
    data = {"pushed": push_results, "gone": removed_ids, "written": not options.dry_run}
    notes = [
        *build_push_notes(push_results),
        *(
            background.build_unsupported_agent_notes(team, options.where)
            if options.must_push_all_sessions
            else []
        ),
    ]
    print_team_answer(
        options,
        data,
        lambda: format_push_results(push_results, was_written=not options.dry_run),
        notes,
    )


def _push_sessions(
    sessions: list[SessionFile], team: Team, db: Database, options: PushOptions
) -> list[PushResult]:
    """Push the sessions and show the progress. Return the result for each session.

    Raise TeamRequestFailed if a push fails or takes longer than ``MAX_PUSH_SECONDS``.
    """
    from resume_hooks.parts.team import pushing  # Imported here because the import takes 80 ms.

    results: list[PushResult] = []
    total_bytes, done_bytes = sum(session.size for session in sessions), 0
    with show_work_progress("Pushing", quiet=options.as_json) as advance:
        for session in sessions:
            db.set_deadline(MAX_PUSH_SECONDS)
            try:
                result = pushing.push_session(
                    session, team, db, options.where, rescan=options.rescan
                )
            except TeamRequestFailed as error:
                if db.has_passed_deadline():
                    raise _build_push_timeout_error(session, len(results), len(sessions)) from error
                raise
            results.append(result)
            done_bytes += session.size
            advance(done_bytes, total_bytes)
    return results


def _build_push_timeout_error(
    session: SessionFile, pushed_count: int, session_count: int
) -> TeamRequestFailed:
    return TeamRequestFailed(
        f"The team's server took more than {MAX_PUSH_SECONDS:.0f} seconds for {session.session_id}. "
        f"Before it, {pushed_count:,} of {session_count:,} sessions were pushed",
        "Check the network and the server, and run the command again: it continues where it stopped.",
    )


def pull_session_copy(options: PullOptions) -> None:
    """Fetch a read-only copy of a session, and remove the copies that you may no longer read."""
    from resume_hooks.parts.team import fetching  # Imported here because the import takes 80 ms.

    team = membership.get_joined_team(options.where)
    with connect_to_team(team.service) as db:
        removed_ids = fetching.remove_copies_without_read_access(db, options.where)
        if options.locator:
            to_pull = [find_team_session(options.locator, db)]
        else:
            to_pull = []
        paths = []
        for session in to_pull:
            paths.append(fetching.pull_session(session, db, options.where))
    lines = [shell_command(f"outline {path}") for path in paths] + [
        f"Removed the pulled copy of {session_id}, which you may no longer read"
        for session_id in removed_ids
    ]
    data = {"files": paths, "gone": removed_ids, "written": bool(paths or removed_ids)}
    owner_notes = []
    for session in to_pull:
        if session.is_transferred:
            owner_notes.append(
                "The session belonged to a former member, and its text is unverified."
            )
    print_team_answer(
        options, data, lambda: "\n".join(lines) or "Nothing to do.", [*owner_notes, *db.notes]
    )


def print_sessions(options: SessionsOptions) -> None:
    """Print the sessions that you may see."""
    team = membership.get_joined_team(options.where)
    with connect_to_team(team.service) as db:
        team_sessions = list_team_sessions(db, only_own=options.only_own)
    notes = [
        *db.notes,
        *([_OLDER_SESSIONS_NOTE] if len(team_sessions) >= MAX_LISTED_SESSIONS else []),
    ]
    print_team_answer(
        options, {"sessions": team_sessions}, lambda: format_sessions(team_sessions), notes
    )


def print_search_hits(options: SearchOptions) -> None:
    """Search the team's sessions, and print the hits."""
    search_team_and_print_hits(options, only_own=options.only_own)


def resume_from_team(options: ResumeOptions) -> None:
    """Create a local session from one of the team's sessions, and optionally start the client."""
    # Imported here because only this action needs it.
    from resume_hooks.cli.child import refuse_start_in_other_folder, refuse_start_without_client
    from resume_hooks.derive.verbs.caller import Caller
    from resume_hooks.derive.verbs.import_ import ImportSpec
    from resume_hooks.parts.team import fetching

    team = membership.get_joined_team(options.where)
    refuse_start_in_other_folder(options)
    home = canonical_path(options.target_folder or current_folder())
    refuse_start_without_client(options, home)
    with connect_to_team(team.service) as db:
        team_session = find_team_session(options.locator, db)
        imported_sessions, notes = fetching.resume_team_session(
            team_session,
            ImportSpec(home, imports_all_records=True, force=options.force),
            db,
            Caller(options.where, dry_run=options.dry_run),
        )
    imported = imported_sessions[-1]
    receipt = imported.receipt
    facts = [
        (
            "known"
            if imported.existed_before
            else "brought in"
            if receipt.written
            else "would bring in",
            receipt.title,
        ),
        ("from", f"{team_session.owner} on {team_session.machine}"),
        ("as of", f"{format_minute(team_session.push_time)} UTC, when that machine last pushed"),
        ("id", imported.session_id),
        ("file", receipt.file or receipt.parent_file),
        ("generations", str(len(imported_sessions))),
        ("in Claude Code", receipt.client_command),
        ("in a shell", receipt.shell_command),
    ]
    data = {"sessions": [team_session], "receipt": receipt, "written": receipt.written}
    print_team_answer(
        options, data, lambda: facts_table(facts), [*receipt.warnings, *notes, *db.notes]
    )
    if options.must_start_client and not options.dry_run:
        replace_process_with_client(
            find_client_start(
                imported.session_id, receipt.file or receipt.parent_file, home, options.where
            )
        )


def share_own_session(options: ShareOptions) -> None:
    """Share one of your sessions with the team, its project or a member."""
    if options.until and options.audience in {"project", "team"}:
        raise UsageError(
            "--until works only when sharing with a single member",
            "Unshare the session to end access for all.",
        )
    until = parse_time_option(options.until) if options.until else None
    _change_own_session(
        options,
        lambda db, session: sharing.share_session(session, options.audience, until, db),
        f"with {options.audience}",
    )


def unshare_own_session(options: UnshareOptions) -> None:
    """Make one of your sessions private again."""
    _change_own_session(
        options, lambda db, session: sharing.unshare_session(session, db), "private again"
    )


def forget_own_session(options: ForgetOptions) -> None:
    """Ask for confirmation, and then remove one of your sessions from the server permanently."""
    ask_first = options.must_ask("Forgetting")
    team = membership.get_joined_team(options.where)
    with connect_to_team(team.service) as db:
        session = find_team_session(options.locator, db, only_own=True)
        is_confirmed = options.confirm_write(
            f"Forget '{session.title}' ({session.session_id}), for good?", ask_first=ask_first
        )
        if is_confirmed:
            copy_count = sharing.forget_session_and_count_copies(
                session.session_id, db, options.where
            )
        else:
            copy_count = 0
    if is_confirmed:
        text = f"Forgotten: {session.title}, of {format_count(copy_count, 'machine')}."
    else:
        text = "Nothing was forgotten."
    print_team_answer(
        options,
        {"sessions": [session], "copies": copy_count, "written": is_confirmed},
        lambda: text,
    )


def _locate_pushable_session(locator: str | None, where: Where) -> SessionFile:
    """Return the session that matches a locator. Without a locator, return this folder's latest session.

    Raise UsageError if the session belongs to an agent other than Claude Code.
    """
    session = locate_session(locator, where, allow_other_agents=bool(locator))
    require_answers(session)
    if session.agent != CLAUDE_NAME:
        remedy = f"You can push a fork: resume-hooks fork {session.session_id} --to claude"
        raise UsageError("A team accepts only Claude Code sessions", remedy)
    return session


def _build_notes_on_project_readers(project: str, login: str, db: Database) -> list[str]:
    """Return a list with one note on a project's owner and on the number of members who can read it.

    Return an empty list if you are not a member of the project.
    """
    readers = sharing.fetch_project_readers(project, db)
    if readers is None:
        return []
    if readers.owner == login:
        owner_text = "you decide who joins it"
    else:
        owner_text = f"its owner, {readers.owner}, decides who joins it"
    reader_phrase = format_count(readers.reader_count, "other member")
    return [
        f"In the project {project}, {owner_text}; {reader_phrase} can read what you share with it."
    ]


def _change_own_session(
    options: ShareOptions | UnshareOptions,
    change: Callable[[Database, TeamSession], None],
    outcome: str,
) -> None:
    team = membership.get_joined_team(options.where)
    with connect_to_team(team.service) as db:
        session = find_team_session(options.locator, db, only_own=True)
        if outcome == "with project":
            notes = _build_notes_on_project_readers(session.project, team.login, db)
        else:
            notes = []
        if not options.dry_run:
            change(db, session)
            session = next(iter(fetch_sessions_by_row_ids(db, [session.row_id])), session)
    verb_phrase = "would be" if options.dry_run else "is"
    text = (
        f"{session.title} ({session.session_id}) {verb_phrase} "
        f"{'' if 'again' in outcome else 'shared '}{outcome}."
    )
    print_team_answer(
        options, {"sessions": [session], "written": not options.dry_run}, lambda: text, notes
    )
