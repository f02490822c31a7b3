"""``team``: sessions on the team's PostgreSQL: push, pull, resume, search, share, forget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from resume_hooks.cli.options import (
    VerbOptions,
    current_folder,
    dry_run_option,
    located,
    time_of,
    yes_option,
)
from resume_hooks.cli.output import table
from resume_hooks.cli.start_client import start, start_of
from resume_hooks.clock import minute
from resume_hooks.errors import UsageError
from resume_hooks.parts.team import joined, sharing, team_file
from resume_hooks.parts.team.connect import connected
from resume_hooks.parts.team.sessions import TeamSession, listed, named
from resume_hooks.parts.team.verbs.team_answer import act, answer, answer_search, push_notes, pushed_text, sessions_text
from resume_hooks.parts.team.verbs.team_setup import ACTS
from resume_hooks.paths import Where, canonical
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.sessions.agents.registry import require_whole
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.invocation import typed
from resume_hooks.system.text import counted

_locator = click.argument("locator", metavar="SESSION")


@act(
    "push",
    click.argument("locators", nargs=-1, metavar="[SESSION]..."),
    click.option("--all", "everything", is_flag=True, help="Every session of the projects that were added."),
    click.option("--rescan", is_flag=True, help="Compare all that was sent with today's rules; replace what differs."),
    dry_run_option,
)
def push(options: VerbOptions) -> None:
    """Send sessions, without secrets, images and documents; what was sent before is not sent again.

    SESSION defaults to the latest session of this folder. They stay private to you until they are shared.

    \b
    Examples:
      resume-hooks team push --dry-run
      resume-hooks team push
      resume-hooks team push --all
      resume-hooks team push 5e12a303 --rescan
    """
    from resume_hooks.parts.team import background, pushing  # what reads and imports sessions takes 80 ms to load

    team = joined.required(options.where)
    if options.everything and options.locators:
        raise UsageError("Give either SESSIONs or --all", "Leave one of them out.")
    if options.everything:
        wanted = background.pushable(team, options.where)
    else:
        wanted = [_sent(locator, options.where) for locator in options.locators or [None]]
    gone: list[str] = []
    if options.dry_run:
        done = [pushing.preview(session, options.where) for session in wanted]
    else:
        with connected(team.service) as db:
            gone = sharing.remove_gone(db, options.where)
            done = [pushing.push(each, team, db, options.where, rescan=options.rescan) for each in wanted]
        team_file.note_pushed(options.where)
    data = {"pushed": done, "gone": gone, "written": not options.dry_run}
    notes = [*push_notes(done), *(background.not_taken(team, options.where) if options.everything else [])]
    answer(options, data, lambda: pushed_text(done, written=not options.dry_run), notes)


@act("pull", click.argument("locator", metavar="[SESSION]", required=False))
def pull(options: VerbOptions) -> None:
    """Fetch a session to read it here; without SESSION drop copies that were forgotten or are no longer shared.

    \b
    Examples:
      resume-hooks team pull bob:5e12a303
      resume-hooks team pull
    """
    from resume_hooks.parts.team import fetching  # as above

    team = joined.required(options.where)
    with connected(team.service) as db:
        gone = fetching.drop_gone(db, options.where)
        paths = [fetching.pull(named(str(options.locator), listed(db)), db, options.where)] if options.locator else []
    lines = [typed(f"outline {path}") for path in paths] + [f"{session_id} is gone" for session_id in gone]
    data = {"files": paths, "gone": gone, "written": bool(paths or gone)}
    answer(options, data, lambda: "\n".join(lines) or "Nothing to do.")


@act("sessions", click.option("--mine", is_flag=True, help="Only one's own."))
def sessions(options: VerbOptions) -> None:
    """List what one may see, the newest first: one's own on every machine, and what was shared.

    \b
    Examples:
      resume-hooks team sessions
      resume-hooks team sessions --mine --json
    """
    team = joined.required(options.where)
    with connected(team.service) as db:
        found = [session for session in listed(db) if session.mine or not options.mine]
    answer(options, {"sessions": found}, lambda: sessions_text(found))


@act(
    "search",
    click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED),
    click.option("--mine", is_flag=True, help="Only one's own sessions."),
    click.option("--project", metavar="DIR", help="Only the project of a folder."),
    click.option("--since", metavar="WHEN", help="Said since: a date, or 12h, 3d, 2w, 6m ago."),
    click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="Hits."),
)
def search(options: VerbOptions) -> None:
    """Find what was said in every session that one may see; the words are those of `resume-hooks search`.

    \b
    Examples:
      resume-hooks team search why did we drop redis
      resume-hooks team search '"connection pool" -redis' --since 2w
    """
    answer_search(options)


@act(
    "resume",
    _locator,
    click.option("--home", type=click.Path(exists=True, file_okay=False), help="Its folder; by default this one."),
    click.option("--force", is_flag=True, help="Make another where the same is here already."),
    click.option("--start", is_flag=True, help="Start the client on it."),
    dry_run_option,
)
def resume(options: VerbOptions) -> None:
    """Go on here in a session of the team's: one's own whole, a colleague's as a conversation under a fresh id.

    One's own comes with its ancestors, at home in this folder, and what follows is pushed as a fork of it.

    \b
    Examples:
      resume-hooks team resume 5e12a303
      resume-hooks team resume "bob:Fix the parser" --home ~/src/app --start
    """
    from resume_hooks.cli.child import require_client, require_folder  # as above
    from resume_hooks.derive.imports.bundle.bring_in import BundleOptions  # as above
    from resume_hooks.parts.team import fetching

    team = joined.required(options.where)
    require_client(options)
    home = canonical(options.home or current_folder())
    require_folder(options, home)
    with connected(team.service) as db:
        wanted = named(str(options.locator), listed(db))
        wish = BundleOptions(home, whole=True, force=options.force, dry_run=options.dry_run)
        found = fetching.resume(wanted, wish, db, options.where)
    came = found.came[-1]
    made = came.receipt
    facts = [
        ("known" if came.existing else "brought in" if made.written else "would bring in", made.title),
        ("from", f"{wanted.owner} on {wanted.machine}"),
        ("as of", f"{minute(wanted.pushed)} UTC, when that machine last sent of it"),
        ("id", came.session_id),
        ("file", made.file or made.parent_file),
        ("generations", str(len(found.came))),
        ("in Claude Code", made.in_client),
        ("in a shell", made.shell),
    ]
    receipt = {key: value for key, value in made.data().items() if key != "warnings"}
    data = {"sessions": [wanted], "receipt": receipt, "written": made.written}
    answer(options, data, lambda: table(facts), [*made.warnings, *found.notes])
    if options.start and not options.dry_run:
        start(start_of(came.session_id, made.file or made.parent_file, home, options.where))


@act(
    "share",
    _locator,
    click.option("--with", "whom", metavar="project|team|MEMBER", required=True, help="Who may read it, and go on."),
    click.option("--until", metavar="DATE", help="For a member: the day on which it ends."),
    dry_run_option,
)
def share(options: VerbOptions) -> None:
    """Let others read one of your sessions, with what it will still say.

    \b
    Examples:
      resume-hooks team share 5e12a303 --with project
      resume-hooks team share "Fix the parser" --with bob --until 2027-01-31
    """
    if options.until and options.whom in {"project", "team"}:
        raise UsageError("--until is for a single member", "Unshare a session to end what all may see.")
    until = time_of(options.until) if options.until else None
    _on_own(options, lambda db, session: sharing.share(session, options.whom, until, db), f"with {options.whom}")


@act("unshare", _locator, dry_run_option)
def unshare(options: VerbOptions) -> None:
    """Make one of your sessions private again. What somebody fetched meanwhile goes at his next pull.

    \b
    Examples:
      resume-hooks team unshare 5e12a303
    """
    _on_own(options, lambda db, session: sharing.unshare(session, db), "private again")


@act("forget", _locator, yes_option, dry_run_option)
def forget(options: VerbOptions) -> None:
    """Remove one of your sessions from the server for good, of all your machines; it is never taken again.

    The files here stay. Beyond reach are backups of the server, and what somebody copied elsewhere.

    \b
    Examples:
      resume-hooks team forget 5e12a303
    """
    asks = options.asks("Forgetting")
    team = joined.required(options.where)
    with connected(team.service) as db:
        session = named(str(options.locator), [each for each in listed(db) if each.mine])
        agreed = options.agreed(f"Forget '{session.title}' ({session.session_id}), for good?", asks=asks)
        copies = sharing.forget(session.session_id, db, options.where) if agreed else 0
    text = f"Forgotten: {session.title}, of {counted(copies, 'machine')}." if agreed else "Nothing was forgotten."
    answer(options, {"sessions": [session], "copies": copies, "written": agreed}, lambda: text)


def _sent(locator: str | None, where: Where) -> SessionFile:
    """The session that a locator names. UsageError for another agent's."""
    session = located(locator, where, foreign=bool(locator))
    require_whole(session)
    if session.agent != NAME:
        remedy = f"A fork is sent: resume-hooks fork {session.session_id} --to claude"
        raise UsageError("A team takes the sessions of Claude Code alone", remedy)
    return session


def _on_own(options: VerbOptions, change: Callable[[Any, TeamSession], None], done: str) -> None:
    team = joined.required(options.where)
    with connected(team.service) as db:
        session = named(str(options.locator), [each for each in listed(db) if each.mine])
        if not options.dry_run:
            change(db, session)
            session = next(each for each in listed(db, [session.row]))
    verb = "would be" if options.dry_run else "is"
    text = f"{session.title} ({session.session_id}) {verb} {'' if 'again' in done else 'shared '}{done}."
    answer(options, {"sessions": [session], "written": not options.dry_run}, lambda: text)


@click.group("team")
def command() -> None:
    """Share sessions with a team, and with your own other machines, over a PostgreSQL of yours.

    Everything is private to you until you share it. Secrets that are known, images and documents stay here. A team is
    named by a service of libpq (~/.pg_service.conf, the password in ~/.pgpass); nothing of it is in our settings.

    \b
    Examples:
      resume-hooks team join work
      resume-hooks team projects add
      resume-hooks team push --all
      resume-hooks team resume 5e12a303 --start
      resume-hooks team share "Fix the parser" --with project
      resume-hooks team search why did we drop redis
    """


for each in (*ACTS, push, pull, sessions, search, resume, share, unshare, forget):
    command.add_command(each)
