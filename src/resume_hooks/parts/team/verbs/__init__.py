"""The command-line options of the team verbs."""

from __future__ import annotations

import click

from resume_hooks.cli.options import DRY_RUN_OPTION, YES_OPTION, VerbOptions, argument, flag, option


class InitOptions(VerbOptions, function="resume_hooks.parts.team.verbs.team_setup:create_schema"):
    """Set up a database for a team. Your role must be allowed to create roles and database objects.

    Each member then needs a role on the server: CREATE ROLE alice LOGIN; GRANT rh_member TO alice.

    \b
    Examples:
      resume-hooks team init work-admin
      resume-hooks team init work-admin --sql | psql -1 service=work-admin
      resume-hooks team init work-admin --upgrade
    """

    service: str = argument(metavar="SERVICE")
    upgrade: bool = flag(help="Upgrade a team's database to the schema of this version.")
    only_print_sql: bool = flag("--sql", help="Only print the SQL.")


class JoinOptions(
    VerbOptions, function="resume_hooks.parts.team.verbs.team_setup:join_team_of_service"
):
    """Join the team of a libpq service. To send sessions afterwards, add a project or push a session.

    \b
    Examples:
      resume-hooks team join work
    """

    service: str = argument(metavar="SERVICE")


class ProjectsOptions(
    VerbOptions, function="resume_hooks.parts.team.verbs.team_setup:run_projects_action"
):
    """List the projects that are pushed after each turn. Add or remove this folder's project, or admit a member to it.

    The name of a project is its git remote. The first member who adds a project owns it and can
    admit others. Admitted members can read only the sessions that are shared with the project.

    \b
    Examples:
      resume-hooks team projects
      resume-hooks team projects add
      resume-hooks team projects admit bob
    """

    action: str | None = argument(
        required=False, type=click.Choice(["add", "remove", "admit", "dismiss"])
    )
    member: str | None = argument(required=False)
    project: str | None = option(
        metavar="DIR", help="The project's folder; by default the current folder."
    )


class MemberOptions(
    VerbOptions, function="resume_hooks.parts.team.verbs.team_setup:record_member_change"
):
    """As the admin, record who a member is, or that a member left. A new role that reuses a name inherits no sessions.

    \b
    keep    the role with this name still belongs to the same person
    retire  the member left; the name becomes free, and shared sessions stay
    give    the same as retire, but another member gets the shared sessions
    remove  the same as retire, but the server permanently removes all of the member's data

    A member's private sessions are never given to anybody.

    \b
    Examples:
      resume-hooks team member keep carol
      resume-hooks team member give carol --to bob
      resume-hooks team member remove carol --yes
    """

    action: str = argument(type=click.Choice(["keep", "retire", "give", "remove"]))
    login: str = argument()
    to: str = option(
        metavar="LOGIN",
        default="",
        help="With give: the new owner. With keep: the role's new name.",
    )
    yes: bool = YES_OPTION


class StatusOptions(VerbOptions, function="resume_hooks.parts.team.verbs.team_setup:print_status"):
    """Show the team, the pushed projects and the sessions that wait for a push, without contacting the server.

    \b
    Examples:
      resume-hooks team status
    """


class LeaveOptions(
    VerbOptions, function="resume_hooks.parts.team.verbs.team_setup:leave_joined_team"
):
    """Remove the team and all fetched copies from this machine. The server keeps its data.

    \b
    Examples:
      resume-hooks team leave
    """


class PushOptions(VerbOptions, function="resume_hooks.parts.team.verbs.team:push_sessions"):
    """Send sessions to the server, without secrets, images and documents. Only new data is sent.

    SESSION defaults to the latest session of this folder. Sessions stay private to you until you
    share them.

    \b
    Examples:
      resume-hooks team push --dry-run
      resume-hooks team push
      resume-hooks team push --all
      resume-hooks team push 5e12a303 --rescan
    """

    locators: tuple[str, ...] = argument(nargs=-1, metavar="[SESSION]...")
    must_push_all_sessions: bool = flag("--all", help="Push every session of the added projects.")
    rescan: bool = flag(
        help="Redact the session again with the current rules, and replace the server's copy if it differs."
    )
    dry_run: bool = DRY_RUN_OPTION


class PullOptions(VerbOptions, function="resume_hooks.parts.team.verbs.team:pull_session_copy"):
    """Copy a session to this machine. Without SESSION, remove copies that you may no longer read.

    \b
    Examples:
      resume-hooks team pull bob:5e12a303
      resume-hooks team pull
    """

    locator: str | None = argument(metavar="[SESSION]", required=False)


class SessionsOptions(VerbOptions, function="resume_hooks.parts.team.verbs.team:print_sessions"):
    """List the sessions that you may see, newest first: your own from every machine, and shared ones.

    \b
    Examples:
      resume-hooks team sessions
      resume-hooks team sessions --mine --json
    """

    only_own: bool = flag("--mine", help="List only your own sessions.")


class SearchOptions(
    VerbOptions,
    function="resume_hooks.parts.team.verbs.team:print_search_hits",
    context_settings={"ignore_unknown_options": True},
):
    """Search all sessions that you may see. A query has the same form as for `resume-hooks search`.

    \b
    Examples:
      resume-hooks team search why did we drop redis
      resume-hooks team search '"connection pool" -redis' --since 2w
    """

    words: tuple[str, ...] = argument(nargs=-1, required=True, type=click.UNPROCESSED)
    only_own: bool = flag("--mine", help="Search only your own sessions.")
    project: str | None = option(metavar="DIR", help="Search only the project in this folder.")
    since: str | None = option(
        metavar="WHEN",
        help="Find only turns since a date such as 2026-01-31, or from the last 12h, 3d, 2w or 6m.",
    )
    limit: int = option(
        type=click.IntRange(1, 100), default=10, show_default=True, help="Maximum number of hits."
    )


class ResumeOptions(VerbOptions, function="resume_hooks.parts.team.verbs.team:resume_from_team"):
    """Continue one of the team's sessions here. From a colleague's session, only the conversation is imported.

    Your own session is copied into this folder together with its ancestors. Later turns of the copy
    are pushed as a fork of the session.

    \b
    Examples:
      resume-hooks team resume 5e12a303
      resume-hooks team resume "bob:Fix the parser" --home ~/src/app --start
    """

    locator: str = argument(metavar="SESSION")
    target_folder: str | None = option(
        "--home",
        type=click.Path(exists=True, file_okay=False),
        help="The new session's folder; by default the current folder.",
    )
    force: bool = flag(help="Create a new session even if this one was already imported here.")
    must_start_client: bool = flag("--start", help="Open the new session in the client.")
    dry_run: bool = DRY_RUN_OPTION


class ShareOptions(VerbOptions, function="resume_hooks.parts.team.verbs.team:share_own_session"):
    """Let others read one of your sessions, including its later turns.

    \b
    Examples:
      resume-hooks team share 5e12a303 --with project
      resume-hooks team share "Fix the parser" --with bob --until 2027-01-31
    """

    locator: str = argument(metavar="SESSION")
    audience: str = option(
        "--with",
        metavar="project|team|MEMBER",
        required=True,
        help="Who may read and resume the session.",
    )
    until: str | None = option(metavar="DATE", help="For a member: the last day of access.")
    dry_run: bool = DRY_RUN_OPTION


class UnshareOptions(
    VerbOptions, function="resume_hooks.parts.team.verbs.team:unshare_own_session"
):
    """Make one of your sessions private again. Members who fetched it lose their copies at their next pull.

    \b
    Examples:
      resume-hooks team unshare 5e12a303
    """

    locator: str = argument(metavar="SESSION")
    dry_run: bool = DRY_RUN_OPTION


class ForgetOptions(VerbOptions, function="resume_hooks.parts.team.verbs.team:forget_own_session"):
    """Permanently remove one of your sessions from the server. The server never accepts the session again.

    All that you pushed of the session is removed, whichever machine it came from. The files on this
    machine stay. Backups of the server and copies on other machines cannot be removed.

    \b
    Examples:
      resume-hooks team forget 5e12a303
    """

    locator: str = argument(metavar="SESSION")
    yes: bool = YES_OPTION
    dry_run: bool = DRY_RUN_OPTION


_SUBCOMMANDS = (
    InitOptions,
    JoinOptions,
    ProjectsOptions,
    MemberOptions,
    StatusOptions,
    LeaveOptions,
    PushOptions,
    PullOptions,
    SessionsOptions,
    SearchOptions,
    ResumeOptions,
    ShareOptions,
    UnshareOptions,
    ForgetOptions,
)


class TeamOptions(VerbOptions, subcommands=_SUBCOMMANDS):
    """Share sessions with a team, and between your own machines, in your own PostgreSQL database.

    Everything is private to you until you share it. Known secrets, images and documents stay on
    this machine. The name of a team is a libpq service, which ~/.pg_service.conf describes. The
    password is in ~/.pgpass, and never in the settings of resume-hooks.

    \b
    Examples:
      resume-hooks team join work
      resume-hooks team projects add
      resume-hooks team push --all
      resume-hooks team resume 5e12a303 --start
      resume-hooks team share "Fix the parser" --with project
      resume-hooks team search why did we drop redis
    """
