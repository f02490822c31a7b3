"""The acts of ``team`` that are about the team itself: set it up, join it, say what is pushed, leave it."""

from __future__ import annotations

import click

from resume_hooks.cli.options import VerbOptions, folder_of, yes_option
from resume_hooks.cli.output import table
from resume_hooks.errors import UsageError
from resume_hooks.parts.team import joined, team_file
from resume_hooks.parts.team.connect import VERSION, connected, form_of, schema, service_named
from resume_hooks.parts.team.verbs.team_answer import act, answer
from resume_hooks.system.text import counted

SERVICE = click.argument("service", metavar="SERVICE")


@act(
    "init",
    SERVICE,
    click.option("--upgrade", is_flag=True, help="Bring a team's database to the form that this version needs."),
    click.option("--sql", is_flag=True, help="Print what would be run, run nothing."),
)
def init(options: VerbOptions) -> None:
    """Make a database a team's; run by whoever may create roles, and objects in it.

    Each member then needs a role of the server: CREATE ROLE alice LOGIN; GRANT rh_member TO alice.

    \b
    Examples:
      resume-hooks team init work-admin
      resume-hooks team init work-admin --sql | psql -1 service=work-admin
      resume-hooks team init work-admin --upgrade
    """
    service, form = service_named(options.service), 0
    if options.upgrade:
        with connected(service, any_form=True) as db:
            form = form_of(db)
    sql = schema(form)
    if sql and not options.sql:
        with connected(service, any_form=True) as db, db.transaction():
            if not form and db.execute("select to_regclass('team.about')::text").fetchone() != (None,):
                raise UsageError(
                    f"{service} is a team's already",
                    f"Join it: resume-hooks team join {service}, or bring it up to date: "
                    f"resume-hooks team init {service} --upgrade",
                )
            db.execute(sql.encode())
    if options.upgrade:
        with connected(service, any_form=options.sql):  # one that is too new is refused
            done = f"The database has form {VERSION} now." if sql else "The database needs no upgrade."
    elif not options.sql:
        joined.join(service, options.where)
        done = f"{service} is a team's now, and you are its first member."
    data = {"sql": sql if options.sql else "", "written": bool(sql) and not options.sql}
    answer(options, data, lambda: sql if options.sql else done)


@act("join", SERVICE)
def join(options: VerbOptions) -> None:
    """Join the team of a libpq service. Nothing is sent by that: add a project, or push a session.

    \b
    Examples:
      resume-hooks team join work
    """
    team = joined.join(options.service, options.where)
    answer(options, {"written": True}, lambda: f"Joined {team.service} as {team.login}. Nothing is sent yet.")


@act(
    "projects",
    click.argument("change", required=False, type=click.Choice(["add", "remove", "admit", "dismiss"])),
    click.argument("member", required=False),
    click.option("--project", metavar="DIR", help="The project of another folder."),
)
def projects(options: VerbOptions) -> None:
    """List the projects that turns' ends push; add or remove this folder's, or admit a member to it.

    A project is what its git remote is called. Whoever adds it first admits others; that lets them read what is shared
    with the project, and nothing else.

    \b
    Examples:
      resume-hooks team projects
      resume-hooks team projects add
      resume-hooks team projects admit bob
    """
    team = joined.required(options.where)
    key, change, text = joined.project_of(folder_of(options.project)), options.change, ""
    if change in {"admit", "dismiss"}:
        if not options.member:
            raise UsageError(f"Whom to {change}?", f"resume-hooks team projects {change} MEMBER")
        with connected(team.service) as db:
            db.execute("select team.project_admit(%s, %s, %s)", (key, options.member, change == "admit"))
        text = f"{options.member} {'reads' if change == 'admit' else 'no longer reads'} what is shared with {key}."
    elif change:
        others = tuple(name for name in team.projects if name != key)
        if change == "add":
            with connected(team.service) as db:
                row = db.execute("select team.project_add(%s)", (key,)).fetchone()
            if row and row[0]:
                text = f"{row[0]} added {key} first, and can admit you to what is shared with it.\n"
        team = team._replace(projects=(*others, key) if change == "add" else others)
        joined.keep(team, options.where)
    text += "\n".join(team.projects) or "No project is pushed at turns' ends."
    answer(options, {"written": bool(change), "projects": list(team.projects)}, lambda: text)


@act(
    "member",
    click.argument("change", type=click.Choice(["keep", "retire", "give", "remove"])),
    click.argument("login"),
    click.option("--to", metavar="LOGIN", default="", help="Whose it is to be; with keep: the role's new name."),
    yes_option,
)
def member(options: VerbOptions) -> None:
    """Say as the admin who a member is, or that he left: a role made anew inherits nothing by its name.

    \b
    keep    the role that has the name today is the same person
    retire  the member left; his name is free, what he shared stays
    give    the same, and what he shared is another member's
    remove  the same, and all that was his goes from the server, for good

    Nobody is given what a member kept private.

    \b
    Examples:
      resume-hooks team member keep carol
      resume-hooks team member give carol --to bob
      resume-hooks team member remove carol --yes
    """
    if (options.change == "give") is not bool(options.to) and options.change != "keep":
        raise UsageError("--to goes with give, which needs it, and with keep", "See: resume-hooks team member --help")
    asks = options.change != "keep" and options.asks("This")
    said = {"keep": "is", "retire": "is retired", "give": "is retired", "remove": "is removed"}[options.change]
    agreed = options.agreed(f"{options.change.title()} {options.login}?", asks=asks)
    text = "Nothing was changed."
    if agreed:
        with connected(joined.required(options.where).service) as db:
            told = (options.login, options.change, options.to)
            row = db.execute("select team.settle_member(%s, %s, %s)", told).fetchone()
        text = f"{options.login} {said}"
        text += f" the role {options.to or options.login}." if options.change == "keep" else "."
        text += f" Sessions: {row[0]}." if row and options.change in {"give", "remove"} else ""
    answer(options, {"written": agreed}, lambda: text)


@act("status")
def status(options: VerbOptions) -> None:
    """Show the team, what is pushed and how far behind it is; asks the server nothing.

    \b
    Examples:
      resume-hooks team status
    """
    from resume_hooks.parts.team import background  # with what reads sessions: 80 ms

    team = joined.required(options.where)
    waiting = background.behind(team, options.where)
    failing = team_file.failing(options.where)
    data = {"projects": list(team.projects), "behind": len(waiting), "failing": failing.sentence if failing else ""}
    facts = [
        ("team", f"{team.service} as {team.login}"),
        ("projects", ", ".join(team.projects) or "none"),
        ("behind", counted(len(waiting), "session")),
        ("last push", team_file.last_push(options.where)),
    ]
    facts += [("not pushed", failing.sentence), ("remedy", failing.remedy)] if failing else []
    answer(options, data, lambda: table(facts))


@act("leave")
def leave(options: VerbOptions) -> None:
    """Forget the team on this machine, with what was fetched to read; what the server has stays there.

    \b
    Examples:
      resume-hooks team leave
    """
    joined.required(options.where)
    joined.leave(options.where)
    answer(options, {"written": True}, lambda: "Left. What the server has is removed by: team forget, on any machine.")


ACTS = (init, join, projects, member, status, leave)
