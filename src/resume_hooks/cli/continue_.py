"""``continue``: start the client on a session, or print the command that starts it.

The client starts on the session itself or on a child that another verb creates first. ``resume``
also uses the functions of this module.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import click

from resume_hooks import part_table, settings
from resume_hooks.cli import relocate
from resume_hooks.cli.ask_question import AnswerChoice, ask_question
from resume_hooks.cli.child import print_child_note
from resume_hooks.cli.options import FORK, GO_ON, WAYS_TO_CONTINUE
from resume_hooks.cli.output import print_text, redirect_stdout_to_stderr
from resume_hooks.cli.start_client import (
    ClientStart,
    find_client_start,
    replace_process_with_client,
)
from resume_hooks.cli.value_with_fields import ValueWithFields
from resume_hooks.cli.verb_table import load_command
from resume_hooks.cli.verbs.resume import ContinueOptions
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.compare import HANDOFF, ROLLOVER, TRIM, Comparison
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.fork import WHOLE_CONVERSATION_FORK_SPEC, fork
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.registry import agent_of_session
from resume_hooks.sessions.archived.sessions import is_archived_copy
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.sessions.open_sessions import RunningClients
from resume_hooks.sessions.project_folder import home_folder_of_session
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system import clipboard
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.transcript import is_live_part_within_bytes

# the maximum size in bytes of a file that the client reads completely
MAX_CLIENT_READ_BYTES = 50_000_000


def continue_session(options: ContinueOptions) -> None:
    """Start the client on a session, or print the command that starts the client."""
    session: SessionFile = options.locate_session_with_answers()
    # A fork can be made from the archived copy, so the archived session need not be restored.
    is_fork_of_archived = options.must_fork and is_archived_copy(session.path, options.where)
    if options.is_interactive and not is_fork_of_archived:
        session = prepare_session_for_client(session)
    elif (
        not is_fork_of_archived
        and (obstacle := relocate.find_start_obstacle(session, options.where)) is not None
    ):
        raise obstacle.make_cannot_start_error(session)
    child = fork_whole_session(session) if options.must_fork else None
    start = _find_start_of_session_or_child(session, child)
    if child is not None:
        notes = list(child.warnings)
    else:
        notes = list_notes_on_open_session(session, options.where)
    if options.as_json:
        commands = {"in_client": f"/resume {start.session_id}", "shell": start.command}
        parent = session.session_id if child else None
        data = ValueWithFields(start, {"parent_session_id": parent, "commands": commands})
        options.print_answer(data, str, notes)
        return
    mode = StartMode(prints_command=options.print_only or not options.is_interactive)
    if child is not None:
        print_child_note(child)
    for note in notes if child is None else []:
        print_text(f"note: {note}", err=True)
    if child is None and not mode.prints_command:
        _confirm_start(session, options.where, is_open=bool(notes))
    start_or_print(start, mode)


def _confirm_start(session: SessionFile, where: Where, *, is_open: bool) -> None:
    """Ask before a second client is started on a session that is open in a running client.

    Raise click.Abort if the user says no. If ``is_open`` is False but the session was written to a
    moment ago, only print a note.
    """
    if is_open:
        click.confirm("Start a second client in this session?", abort=True, err=True)
    elif reason := agent_of_session(session, where).describe_open_state(session):
        print_text(
            f"note: the session may be open in a client: {reason}. With --fork, each client writes to its own session.",
            err=True,
        )


def list_notes_on_open_session(session: SessionFile, where: Where) -> list[str]:
    """Return a list with a warning if a running client has the session open, else an empty list."""
    pid = RunningClients(where).find_client_of_session(session.session_id)
    if not pid:
        return []
    note = (
        f"The running client {pid} has the session open. Quit that client first, or make a fork: "
        "if two clients write to one session, a later resume shows the turns of only one client."
    )
    return [note]


def _find_start_of_session_or_child(session: SessionFile, child: Receipt | None) -> ClientStart:
    if child is not None:
        return find_client_start(child.session_id, child.file, child.folder, Where())
    return find_client_start(
        session.session_id,
        session.path,
        home_folder_of_session(HeadTail(session.path), Where()),
        Where(),
    )


class StartMode(NamedTuple):
    """What to do with the command that starts the client: print it, or copy it to the clipboard.

    If both fields are False, run the command.
    """

    prints_command: bool = False
    copies_command: bool = False


def prepare_session_for_client(session: SessionFile) -> SessionFile:
    """Return a session on which the client can start.

    An archived session is restored first. If the session's folder no longer exists, a child with
    another folder is created and returned.
    """
    obstacle = relocate.find_start_obstacle(session, Where())
    if obstacle is not None and obstacle.is_archived:
        session = relocate.restore_archived_session(session, obstacle, Where())
        obstacle = relocate.find_start_obstacle(session, Where())
    if obstacle is None:
        return session
    return relocate.copy_into_chosen_folder(session, obstacle, Where())


def continue_by_strategy(session: SessionFile, strategy: str, mode: StartMode) -> bool:
    """Continue a session in one of the ways in ``WAYS_TO_CONTINUE``. Return False if no child was created."""
    receipt = None if strategy == GO_ON else make_child_by_strategy(session, strategy)
    if receipt is not None and not receipt.session_id:
        return False
    start_or_print(_find_start_of_session_or_child(session, receipt), mode)
    return True


def start_or_print(start: ClientStart, mode: StartMode) -> None:
    """Print the command, or copy and print it, or replace this process with the client, as ``mode`` says.

    Only the command goes to stdout, because a shell may run the output.
    """
    if mode.prints_command:
        print_text(start.command)
    elif mode.copies_command:
        print_text(_copy_to_clipboard_and_report(start.command), err=True)
        print_text(start.command)
    else:
        replace_process_with_client(start)


def copy_command_to_clipboard(command: str) -> str:
    """Copy a command to the clipboard. Return a text with the result and the command."""
    return f"{_copy_to_clipboard_and_report(command)}\n{command}"


def _copy_to_clipboard_and_report(command: str) -> str:
    copied = clipboard.copy_text(
        command, method=str(settings.load_settings()["clipboard"].value), environ=os.environ
    )
    return copied.describe("the command")


def make_child_by_strategy(session: SessionFile, strategy: str) -> Receipt:
    """Create a child in one of the ways in ``WAYS_TO_CONTINUE``, such as "trim" or "rollover", and return its receipt.

    Print the receipt, or the reason why no child was created, on stderr.
    """
    if strategy == FORK:
        receipt = fork_whole_session(session)
        print_child_note(receipt)
        return receipt
    # The verb is loaded late, because a verb that asks a model takes 100 ms to load.
    verb, *flags = strategy.split()
    options = {flag.removeprefix("--"): True for flag in flags}
    with redirect_stdout_to_stderr():
        child: Receipt = click.get_current_context().invoke(
            load_command(verb), locator=session.path, **options
        )
    return child


def fork_whole_session(session: SessionFile) -> Receipt:
    """Create a child with a copy of a session's whole live conversation, and return its receipt."""
    return fork(
        Session.from_file(session, Where()), WHOLE_CONVERSATION_FORK_SPEC, Caller(Where())
    ).receipt


def ask_how_to_continue(session: SessionFile, comparison: Comparison) -> str:
    """Ask the user how to continue, and return the chosen way from ``WAYS_TO_CONTINUE``.

    The recommended way is marked "fits best". It is also the default answer, unless the session may
    be open in a client: then the default is a fork.
    """
    open_reason = agent_of_session(session, Where()).describe_open_state(session)
    if open_reason:
        print_text(
            f"The session may be open in a client: {open_reason}. Two clients in one session mix "
            "up their turns; a fork keeps the turns apart."
        )
    recommended_way = comparison.advice.strategy if comparison.advice else ""
    ends = comparison.head_tail
    is_fork_smaller = ends.size > MAX_CLIENT_READ_BYTES and is_live_part_within_bytes(
        ends.path, MAX_CLIENT_READ_BYTES
    )
    if open_reason:
        default_way = FORK
    else:
        default_way = recommended_way or (FORK if is_fork_smaller else GO_ON)
    descriptions = _describe_ways_to_continue(comparison, is_fork_smaller=is_fork_smaller)
    answers = []
    for strategy in WAYS_TO_CONTINUE:
        answers.append(
            AnswerChoice(
                strategy,
                f"{descriptions[strategy]}{'  <- fits best' if strategy == recommended_way else ''}",
            )
        )
    return WAYS_TO_CONTINUE[
        ask_question("How do you want to continue?", answers, WAYS_TO_CONTINUE.index(default_way))
    ]


def _describe_ways_to_continue(comparison: Comparison, *, is_fork_smaller: bool) -> dict[str, str]:
    tokens_text = {}
    for row in comparison.estimates:
        tokens_text[row.name] = f"about {row.tokens_after:,} tokens"
    model = settings.load_settings()["summary_model"].value
    if comparison.context.compacts_at_once:
        full_text = "; the client would compact the session immediately"
    else:
        full_text = ""
    if is_fork_smaller:
        fork_text = (
            f"; the client reads only 50 MB of its {format_bytes(comparison.head_tail.size)}"
        )
    else:
        fork_text = ""
    return {
        GO_ON: f"{comparison.context.tokens:,} tokens{full_text}",
        TRIM: f"a copy without old tool output, {tokens_text.get(TRIM, 'size not estimated')}",
        HANDOFF: f"a fresh session with a digest, {tokens_text[HANDOFF]}",
        ROLLOVER: f"a handoff with a summary by {model}, {tokens_text[ROLLOVER]}; asking it costs tokens",
        FORK: f"a copy of only the live conversation, under a new id{fork_text}",
        **{
            name: about.format(model=model)
            for name, (_, about, _) in part_table.WAYS_TO_CONTINUE.items()
        },
    }
