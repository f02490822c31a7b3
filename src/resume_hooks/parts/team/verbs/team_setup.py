"""Manage a team: set it up, join it, choose its projects, show its status, and leave it."""

from __future__ import annotations

from typing import NamedTuple

from resume_hooks.cli.options import find_project_folder
from resume_hooks.cli.output import facts_table
from resume_hooks.errors import UsageError
from resume_hooks.parts.team import membership, rows, sharing, team_file
from resume_hooks.parts.team.connect import (
    SCHEMA_VERSION,
    connect_to_team,
    read_schema_sql,
    read_schema_version,
    validate_service_name,
)
from resume_hooks.parts.team.verbs import (
    InitOptions,
    JoinOptions,
    LeaveOptions,
    MemberOptions,
    ProjectsOptions,
    StatusOptions,
)
from resume_hooks.parts.team.verbs.team_answer import print_team_answer
from resume_hooks.system.text import format_count

_LOCKED_SESSIONS_QUERY = (
    "select detail->>'held', detail->>'as' from team.audit where login = session_user and act = %s"
    " order by id desc limit 1"
)


def create_schema(options: InitOptions) -> None:
    """Create or upgrade the team's database schema, or print the SQL that would do so."""
    service, version = validate_service_name(options.service), 0
    if options.upgrade:
        with connect_to_team(service, allows_any_version=True) as db:
            version = read_schema_version(db)
    sql = read_schema_sql(version)
    if sql and not options.only_print_sql:
        with connect_to_team(service, allows_any_version=True) as db, db.transaction():
            if not version and db.fetch_value(
                "select (to_regclass('team.about') is not null)::text", (), rows.parse_boolean
            ):
                raise UsageError(
                    f"{service} is already a team's database",
                    f"Join it: resume-hooks team join {service}, or bring it up to date: "
                    f"resume-hooks team init {service} --upgrade",
                )
            db.run_statement(sql)
    if options.upgrade:
        # This raises an error if the schema version of the database is too new.
        with connect_to_team(service, allows_any_version=options.only_print_sql):
            if sql:
                text = f"The database now has schema version {SCHEMA_VERSION}."
            else:
                text = "The database needs no upgrade."
    elif not options.only_print_sql:
        membership.join_team(service, options.where)
        text = f"{service} is now a team's database, and you are its first member."
    data = {
        "sql": sql if options.only_print_sql else "",
        "written": bool(sql) and not options.only_print_sql,
    }
    print_team_answer(options, data, lambda: sql if options.only_print_sql else text)


def join_team_of_service(options: JoinOptions) -> None:
    """Join the team that a libpq service describes, and print the result."""
    team = membership.join_team(options.service, options.where)
    print_team_answer(
        options,
        {"written": True},
        lambda: f"Joined {team.service} as {team.login}. Nothing is sent yet.",
    )


def run_projects_action(options: ProjectsOptions) -> None:
    """Change the pushed projects or the members of a project if an action is given.

    Then print the pushed projects.
    """
    team = membership.get_joined_team(options.where)
    key, change, text = (
        membership.read_project_name(find_project_folder(options.project)),
        options.action,
        "",
    )
    notes: list[str] = []
    if change in {"admit", "dismiss"}:
        if not options.member:
            raise UsageError(f"Whom to {change}?", f"resume-hooks team projects {change} MEMBER")
        with connect_to_team(team.service) as db:
            db.run_statement(
                "select team.project_admit(%s, %s, %s)", (key, options.member, change == "admit")
            )
        text = (
            f"{options.member} can {'' if change == 'admit' else 'no longer '}read what is "
            f"shared with {key}."
        )
    elif change:
        other_projects = tuple(name for name in team.projects if name != key)
        if change == "add":
            with connect_to_team(team.service) as db:
                first_owner = db.fetch_value(
                    "select team.project_add(%s)::text", (key,), rows.parse_login_or_empty
                )
                is_member = bool(first_owner) and sharing.fetch_project_readers(key, db) is not None
            if is_member:
                notes = [
                    (
                        f"{first_owner} was the first to add the project {key}, and has admitted you to it. Everyone "
                        f"whom {first_owner} admits can read what you share with this project."
                    )
                ]
            elif first_owner:
                notes = [
                    f"{first_owner} was the first to add the project {key}, and can admit you to it."
                ]
        team = team._replace(projects=(*other_projects, key) if change == "add" else other_projects)
        membership.record_team(team, options.where)
    text += (
        "\n".join(team.projects) or "No project's sessions are pushed automatically after turns."
    )
    print_team_answer(
        options, {"written": bool(change), "projects": list(team.projects)}, lambda: text, notes
    )


def record_member_change(options: MemberOptions) -> None:
    """After the user has confirmed it, record who a member is, or that the member has left."""
    if (options.action == "give") is not bool(options.to) and options.action != "keep":
        raise UsageError(
            '--to is required with "give", optional with "keep", and not allowed otherwise',
            "See: resume-hooks team member --help",
        )
    ask_first = options.action != "keep" and options.must_ask("This")
    status_text = {
        "keep": "is",
        "retire": "is retired",
        "give": "is retired",
        "remove": "is removed",
    }[options.action]
    is_confirmed = options.confirm_write(
        f"{options.action.title()} {options.login}?", ask_first=ask_first
    )
    text = "Nothing was changed."
    if is_confirmed:
        with connect_to_team(membership.get_joined_team(options.where).service) as db:
            values = (options.login, options.action, options.to)
            count = db.fetch_value(
                "select team.settle_member(%s, %s, %s)::text", values, rows.parse_count
            )
            locked_sessions = db.fetch_row(
                _LOCKED_SESSIONS_QUERY,
                (options.action,),
                rows.RowFormat(_LockedSessions, (rows.parse_count, rows.parse_login)),
            )
        text = f"{options.login} {status_text}"
        text += f" the role {options.to or options.login}." if options.action == "keep" else "."
        text += f" Sessions: {count}." if options.action in {"give", "remove"} else ""
        text += (
            _describe_unfinished_transaction(locked_sessions)
            if locked_sessions and locked_sessions.session_count
            else ""
        )
    print_team_answer(options, {"written": is_confirmed}, lambda: text)


class _LockedSessions(NamedTuple):
    """A former member's sessions that are still locked by an open transaction.

    ``session_count`` is the number of these sessions. ``login`` is the new name of the former
    member's database role, which was renamed.
    """

    session_count: int
    login: str


def _describe_unfinished_transaction(locked_sessions: _LockedSessions) -> str:
    session_count = format_count(locked_sessions.session_count, "session")
    return (
        f"\n{session_count} could not be changed because of an open transaction. End the transaction, "
        f"and run this command again for the member '{locked_sessions.login}'."
    )


def print_status(options: StatusOptions) -> None:
    """Print the joined team, the pushed projects, and how many sessions are still to be pushed."""
    from resume_hooks.parts.team import background  # Imported here because the import takes 80 ms.

    team = membership.get_joined_team(options.where)
    unsent_sessions = background.find_unsent_sessions(team, options.where)
    failure = team_file.read_push_failure(options.where)
    data = {
        "projects": list(team.projects),
        "behind": len(unsent_sessions),
        "failing": failure.report_sentence if failure else "",
    }
    facts = [
        ("team", f"{team.service} as {team.login}"),
        ("projects", ", ".join(team.projects) or "none"),
        ("behind", format_count(len(unsent_sessions), "session")),
        ("last push", team_file.format_last_push(options.where)),
    ]
    facts += (
        [("not pushed", failure.report_sentence), ("remedy", failure.remedy)] if failure else []
    )
    print_team_answer(options, data, lambda: facts_table(facts))


def leave_joined_team(options: LeaveOptions) -> None:
    """Remove the team from this machine."""
    membership.get_joined_team(options.where)
    membership.leave_team(options.where)
    print_team_answer(
        options,
        {"written": True},
        lambda: (
            "You left the team. To remove a session from the team's server, run team forget on any machine."
        ),
    )
