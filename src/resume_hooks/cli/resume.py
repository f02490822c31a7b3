"""``resume``: choose a session, compare the ways to continue it, take one, and start the client."""

from __future__ import annotations

import os

import click

from resume_hooks import clock, questions
from resume_hooks.cli import question, relocate
from resume_hooks.cli.continue_ import Finish, ask_way, continue_by_way, settle_session
from resume_hooks.cli.options import FORK, GO_ON, current_folder, locate_session, notes_of
from resume_hooks.cli.output import facts_table, print_text
from resume_hooks.cli.start_client import start_of_session
from resume_hooks.cli.verbs.resume import ResumeOptions
from resume_hooks.cli.with_fields import With
from resume_hooks.derive import compare
from resume_hooks.errors import AmbiguousLocator, ResumeHooksError, SessionNotFound, UsageError
from resume_hooks.hooks import resume_card
from resume_hooks.paths import Where
from resume_hooks.seam import answers
from resume_hooks.sessions import locate
from resume_hooks.sessions.agents.registry import agent_at, readable_session, require_whole
from resume_hooks.sessions.archived.sessions import is_archived_copy
from resume_hooks.sessions.locator_forms import RESOLVERS, by_part_of_title, is_one_form
from resume_hooks.sessions.session_files import SessionFile, session_file
from resume_hooks.system.invocation import shell_command
from resume_hooks.transcripts.transcript import QUICK_LIMIT

BARE = "true"  # the value from programs that pass ``--resume`` without a value
EXACT = tuple(
    resolver for resolver in RESOLVERS if resolver is not by_part_of_title
)  # other words filter the list


def resume(options: ResumeOptions) -> None:
    """Ask which session to continue and how, and start the client.

    Without a terminal, compare the ways.
    """
    if options.forks and options.way not in {None, FORK}:
        raise UsageError("--fork and --way exclude each other", "Leave one of them out.")
    options.refuse_together("copy", "show")
    way = FORK if options.forks else options.way
    if options.as_json and (way is not None or options.copy or options.show):
        raise UsageError(
            "--json only compares the ways", "The verbs that make a child print their own receipt."
        )
    if not options.watched:
        if options.everywhere:
            raise UsageError(
                "--all belongs to the list on a terminal", "Name a session, or leave --all out."
            )
        _print_comparison(way, options)
        return
    named = _import_page(options) or _session_by_name(options.locator)
    while True:
        session = named or _choose_session(options)
        try:
            _continue_session(session, way, options)
            break
        except question.Back:
            if named:
                raise


def _continue_session(session: SessionFile, way: str | None, options: ResumeOptions) -> None:
    """Ask how to continue a session unless a way is given, and start the client.

    Raise Back if the user presses Esc.
    """
    require_whole(session)
    # An archived copy can have children, too.
    if way in {None, GO_ON} or not is_archived_copy(session.path, options.where):
        session = settle_session(session)
    for note in notes_of(session.session_id, options.where):
        print_text(f"note: {note}")
    finish = Finish(options.show, options.copy)
    if way is not None:
        if not continue_by_way(session, way, finish):
            raise _nothing_made_error()
        return
    found = compare.compare_strategies(session, Where(), clock.now(), limit=QUICK_LIMIT)
    print_text(_comparison_card(found, whole=options.whole))
    while not continue_by_way(session, ask_way(session, found), finish):
        print_text("")  # no child was created, so the user can try another way


def _session_by_name(locator: str | None) -> SessionFile | None:
    """Return the session that a locator names exactly; ask if it names several.

    Return None if the words should be searched for.

    Raise SessionNotFound for a missing id, path, address or ``tag:x``, which cannot be search
    words.
    """
    if locator is None or not locator.strip():
        return None
    words = locator.strip()
    forms = RESOLVERS if words.lower().startswith("title:") else EXACT
    try:
        return locate.resolve(words, current_folder(), Where(), resolvers=forms, foreign=True)
    except AmbiguousLocator as error:
        row = question.ask_candidate(error)
        file = str(row["session_file"])
        if os.path.exists(file):
            return readable_session(file, Where())
        return locate_session(str(row["session_id"]), Where())
    except SessionNotFound:
        if is_one_form(words):
            raise
        return None


def _import_page(options: ResumeOptions) -> SessionFile | None:
    """Import the session of a page if the user agrees; return None for any other locator.

    Raise ImportFailed, NotATranscript or UsageError.
    """
    locator = options.locator or ""
    if not locator.lower().endswith((".html", ".htm")) or not os.path.isfile(
        os.path.expanduser(locator)
    ):
        return None
    import_file = next(answers(questions.import_file), None)
    if import_file is None:
        raise UsageError(f"What imports {locator} is not installed here", "Reinstall resume-hooks.")
    click.confirm(f"Import {locator} into {current_folder()}?", default=True, abort=True)
    made, remark = import_file(locator, current_folder())
    print_text(
        f"{'imported' if made.session_id else 'already imported'}: {made.title}. {remark}", err=True
    )
    return session_file(made.file or made.parent_file)


def _choose_session(options: ResumeOptions) -> SessionFile:
    # The screen takes 100 ms to load; a session that was named does not need it.
    from resume_hooks.cli.picker.choose import choose

    return choose(
        "" if options.locator in {None, BARE} else str(options.locator),
        everywhere=options.everywhere,
    )


def _print_comparison(way: str | None, options: ResumeOptions) -> None:
    """Print the comparison of the ways, or continue as requested, without a terminal.

    The command comes last.
    """
    if options.locator == BARE:
        session = _session_by_name(BARE) or locate_session(None, Where(), foreign=True)
    else:
        session = locate_session(options.locator, Where(), foreign=True)
    require_whole(session)
    lost = relocate.find_loss(session, options.where)
    if way is not None or options.show or options.copy:
        if lost is not None and not (lost.kept and way not in {None, GO_ON}):
            raise lost.refusal(session)
        if not continue_by_way(session, way or GO_ON, Finish(not options.copy, options.copy)):
            raise _nothing_made_error()
        return
    found = compare.compare_strategies(
        session, Where(), clock.now(), limit=compare.SHELL_LIVE_BYTES
    )
    begun = start_of_session(found.session_id, session.path, found.folder, options.where)
    last = lost.command(session) if lost else begun.command
    notes = [*([lost.why] if lost else []), *notes_of(session.session_id, options.where)]
    commands = {"in_client": f"/resume {found.session_id}", "shell": last}
    options.emit(
        With(found, {"commands": commands}),
        lambda: f"{comparison_text(found, whole=options.whole)}\n\n{last}",
        notes,
    )


def _nothing_made_error() -> ResumeHooksError:
    return ResumeHooksError(
        "No child was made, so there is nothing to continue",
        f"To continue the session itself: --way '{GO_ON}'",
    )


def comparison_text(found: compare.Comparison, *, whole: bool) -> str:
    """Return a comparison as text, with the command for each way."""
    short = found.session_id[:8]
    commands = facts_table(
        [
            (
                "go on",
                (f"/resume {found.session_id}   in {agent_at(found.glance.path, Where()).label}"),
            ),
            *(
                (way, shell_command(f"{way} {short}"))
                for way in (compare.TRIM, compare.HANDOFF, compare.ROLLOVER)
            ),
        ]
    )
    return f"{_comparison_card(found, whole=whole)}\n\n{commands}"


def _comparison_card(found: compare.Comparison, *, whole: bool) -> str:
    shown = facts_table(
        [
            ("title", found.glance.title),
            ("id", found.session_id),
            ("size", resume_card.size_and_branch(found.glance)),
            ("context", resume_card.used(found.context)),
        ]
    )
    rows = "\n".join(resume_card.table(found)) if whole else ""
    return "\n\n".join(filter(None, [resume_card.headline(found, str), shown, rows]))
