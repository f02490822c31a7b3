"""``resume``: let the user choose a session and a way to continue it, and start the client."""

from __future__ import annotations

import contextlib
import os

import click

from resume_hooks import clock, questions
from resume_hooks.cli import ask_question, relocate
from resume_hooks.cli.continue_ import (
    StartMode,
    ask_how_to_continue,
    continue_by_strategy,
    list_notes_on_open_session,
    prepare_session_for_client,
)
from resume_hooks.cli.options import FORK, GO_ON, current_folder, list_part_notes, locate_session
from resume_hooks.cli.output import facts_table, print_text
from resume_hooks.cli.start_client import find_client_start
from resume_hooks.cli.value_with_fields import ValueWithFields
from resume_hooks.cli.verbs.resume import ResumeOptions
from resume_hooks.derive import compare
from resume_hooks.errors import (
    AmbiguousLocator,
    ResumeHooksError,
    SessionDeleted,
    SessionNotFound,
    UsageError,
)
from resume_hooks.hooks import resume_card
from resume_hooks.paths import Where
from resume_hooks.seam import find_answers
from resume_hooks.sessions import locate
from resume_hooks.sessions.agents.registry import agent_of_path, readable_session, require_answers
from resume_hooks.sessions.archived.sessions import is_archived_copy
from resume_hooks.sessions.locator_forms import RESOLVERS, has_unmistakable_form, resolve_title_part
from resume_hooks.sessions.session_files import SessionFile, session_file
from resume_hooks.system.invocation import shell_command
from resume_hooks.transcripts.transcript import MAX_QUICK_SCAN_BYTES

# the argument that some launchers of the client pass if the user named no session
EMPTY_OPTION_VALUE = "true"
# the resolvers for arguments that name a session; any other argument filters the list of sessions
SESSION_RESOLVERS = tuple(resolver for resolver in RESOLVERS if resolver is not resolve_title_part)


def resume_session(options: ResumeOptions) -> None:
    """Ask which session to continue and how, and start the client.

    Without a terminal, print a comparison of the ways to continue.
    """
    if options.must_fork and options.way_to_continue not in {None, FORK}:
        raise UsageError("--fork and --way can't be combined", "Give only one of them.")
    options.refuse_combination("copy_command", "print_only")
    strategy = FORK if options.must_fork else options.way_to_continue
    if options.as_json and (strategy is not None or options.copy_command or options.print_only):
        raise UsageError(
            "--json only compares the ways to continue",
            "To get a receipt as JSON, use a verb such as trim --json.",
        )
    if not options.is_interactive:
        if options.everywhere:
            raise UsageError(
                "--all only works on a terminal, with the list of sessions",
                "Name a session, or leave --all out.",
            )
        _print_comparison_or_continue(strategy, options)
        return
    session_by_name = _import_session_from_page(options) or _find_session_by_name(options.locator)
    if session_by_name:
        _continue_session(session_by_name, strategy, options)
    else:
        _choose_and_continue_session(strategy, options)


def _choose_and_continue_session(strategy: str | None, options: ResumeOptions) -> None:
    """Let the user choose a session from the list, and continue the session.

    If the user presses Esc at the next question, show the list again, with the search text kept.
    """
    # Imported late: the screen takes 100 ms to load, and is not needed if the user named a session.
    from resume_hooks.cli.picker.choose import ListView, choose_session

    typed_text = "" if options.locator in {None, EMPTY_OPTION_VALUE} else str(options.locator)
    view, is_continued = ListView(typed_text, options.everywhere), False
    while not is_continued:
        session, view = choose_session(view)
        with contextlib.suppress(ask_question.BackRequested):
            _continue_session(session, strategy, options)
            is_continued = True


def _continue_session(session: SessionFile, strategy: str | None, options: ResumeOptions) -> None:
    """Start the client on a session. Ask how to continue it if ``strategy`` is None.

    Raise BackRequested if the user presses Esc at the question.
    """
    require_answers(session)
    # A child can be created from an archived copy, so only "go on" needs a restored session.
    if strategy in {None, GO_ON} or not is_archived_copy(session.path, options.where):
        session = prepare_session_for_client(session)
    for note in _list_session_notes(session, options.where):
        print_text(f"note: {note}")
    mode = StartMode(options.print_only, options.copy_command)
    if strategy is not None:
        if not continue_by_strategy(session, strategy, mode):
            raise _make_missing_child_error()
        return
    comparison = compare.compare_strategies(
        session, Where(), clock.now(), max_live_bytes=MAX_QUICK_SCAN_BYTES
    )
    print_text(_comparison_card(comparison, with_table=options.show_table))
    while not continue_by_strategy(session, ask_how_to_continue(session, comparison), mode):
        # No child was created. The blank line separates this attempt from the next one.
        print_text("")


def _list_session_notes(session: SessionFile, where: Where) -> list[str]:
    """Return the notes of installed parts, and a note if a running client has the session open."""
    return [
        *list_notes_on_open_session(session, where),
        *list_part_notes(session.session_id, where),
    ]


def _find_session_by_name(locator: str | None) -> SessionFile | None:
    """Return the session that a locator names, or None if the locator is only words to search for.

    If the locator names several sessions, ask the user to choose one. Raise SessionNotFound if the
    locator is an id, a path, a web address or ``tag:x``, and no such session exists.
    """
    if locator is None or not locator.strip():
        return None
    locator_text = locator.strip()
    resolvers = RESOLVERS if locator_text.lower().startswith("title:") else SESSION_RESOLVERS
    try:
        return locate.resolve_locator(
            locator_text, current_folder(), Where(), resolvers=resolvers, allow_other_agents=True
        )
    except AmbiguousLocator as error:
        row = ask_question.ask_which_session(error)
        file = str(row["session_file"])
        if os.path.exists(file):
            return readable_session(file, Where())
        return locate_session(str(row["session_id"]), Where())
    except SessionNotFound as error:
        if has_unmistakable_form(locator_text) or isinstance(error, SessionDeleted):
            raise
        return None


def _import_session_from_page(options: ResumeOptions) -> SessionFile | None:
    """If the locator is the path of an HTML page, import the session in the page after asking the user.

    Return the imported session, or None if the locator is not such a path. Raise click.Abort if the
    user says no, and ImportFailed, NotATranscript or UsageError if the import fails.
    """
    locator = options.locator or ""
    if not locator.lower().endswith((".html", ".htm")) or not os.path.isfile(
        os.path.expanduser(locator)
    ):
        return None
    import_file = next(find_answers(questions.import_file), None)
    if import_file is None:
        raise UsageError(
            f"The part that imports {locator} is not installed", "Reinstall resume-hooks."
        )
    click.confirm(f"Import {locator} into {current_folder()}?", default=True, abort=True)
    receipt, remark = import_file(locator, current_folder())
    print_text(
        f"{'imported' if receipt.session_id else 'already imported'}: {receipt.title}. {remark}",
        err=True,
    )
    return session_file(receipt.file or receipt.parent_file)


def _print_comparison_or_continue(strategy: str | None, options: ResumeOptions) -> None:
    """Print a comparison of the ways to continue a session, for a shell without a terminal.

    The last line is the command that starts the client. If ``strategy``, ``--print`` or ``--copy``
    was given, continue the session instead.
    """
    if options.locator == EMPTY_OPTION_VALUE:
        session = _find_session_by_name(EMPTY_OPTION_VALUE) or locate_session(
            None, Where(), allow_other_agents=True
        )
    else:
        session = locate_session(options.locator, Where(), allow_other_agents=True)
    require_answers(session)
    obstacle = relocate.find_start_obstacle(session, options.where)
    if strategy is not None or options.print_only or options.copy_command:
        if obstacle is not None and not (obstacle.is_archived and strategy not in {None, GO_ON}):
            raise obstacle.make_cannot_start_error(session)
        if not continue_by_strategy(
            session, strategy or GO_ON, StartMode(not options.copy_command, options.copy_command)
        ):
            raise _make_missing_child_error()
        return
    comparison = compare.compare_strategies(
        session, Where(), clock.now(), max_live_bytes=compare.MAX_QUICK_SCAN_BYTES_IN_SHELL
    )
    start = find_client_start(comparison.session_id, session.path, comparison.folder, options.where)
    command = obstacle.command_to_continue(session) if obstacle else start.command
    notes = [*([obstacle.reason] if obstacle else []), *_list_session_notes(session, options.where)]
    commands = {"in_client": f"/resume {comparison.session_id}", "shell": command}
    options.print_answer(
        ValueWithFields(comparison, {"commands": commands}),
        lambda: f"{comparison_text(comparison, with_table=options.show_table)}\n\n{command}",
        notes,
    )


def _make_missing_child_error() -> ResumeHooksError:
    return ResumeHooksError(
        "No child was made, so there is nothing to continue",
        f"To continue the session itself: --way '{GO_ON}'",
    )


def comparison_text(comparison: compare.Comparison, *, with_table: bool) -> str:
    """Return a comparison as text, followed by the command for each way to continue."""
    short_id = comparison.session_id[:8]
    commands = facts_table(
        [
            (
                "go on",
                (
                    f"/resume {comparison.session_id}   in {agent_of_path(comparison.head_tail.path, Where()).label}"
                ),
            ),
            *(
                (strategy, shell_command(f"{strategy} {short_id}"))
                for strategy in (compare.TRIM, compare.HANDOFF, compare.ROLLOVER)
            ),
        ]
    )
    return f"{_comparison_card(comparison, with_table=with_table)}\n\n{commands}"


def _comparison_card(comparison: compare.Comparison, *, with_table: bool) -> str:
    facts = facts_table(
        [
            ("title", comparison.head_tail.title),
            ("id", comparison.session_id),
            ("size", resume_card.format_size_and_branch(comparison.head_tail)),
            ("context", resume_card.format_context(comparison.context)),
        ]
    )
    rows = "\n".join(resume_card.build_ways_table(comparison)) if with_table else ""
    return "\n\n".join(
        filter(None, [resume_card.describe_comparison(comparison, str), facts, rows])
    )
