"""``continue``: start the client on a session without asking, with code that is shared with ``resume``.

The client continues the session itself, or a child that another verb's code creates first.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import click

from resume_hooks import part_table, settings
from resume_hooks.cli import relocate
from resume_hooks.cli.child import print_child_note
from resume_hooks.cli.options import FORK, GO_ON, WAYS
from resume_hooks.cli.output import on_stderr, print_text
from resume_hooks.cli.question import AnswerChoice, ask_question
from resume_hooks.cli.start_client import ClientStart, become_client, client_start
from resume_hooks.cli.verb_table import command_of_verb
from resume_hooks.cli.verbs.resume import ContinueOptions
from resume_hooks.cli.with_fields import WithFields
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.compare import HANDOFF, ROLLOVER, TRIM, Comparison
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.fork import WHOLE, fork
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.registry import agent_of
from resume_hooks.sessions.archived.sessions import is_archived_copy
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system import clipboard
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.transcript import is_live_part_within

# the size of a file in bytes above which the client's readers give up
CLIENT_READ_BYTES = 50_000_000


def continue_session(options: ContinueOptions) -> None:
    """Start the client on a session, or print the command for it."""
    session: SessionFile = options.locate_whole_session()
    # an archived copy can also be forked
    forks_archived = options.forks and is_archived_copy(session.path, options.where)
    if options.is_interactive and not forks_archived:
        session = prepare_session(session)
    elif (
        not forks_archived
        and (loss := relocate.find_session_loss(session, options.where)) is not None
    ):
        raise loss.refusal(session)
    child = make_fork(session) if options.forks else None
    start = _start_of_child(session, child)
    if options.as_json:
        commands = {"in_client": f"/resume {start.session_id}", "shell": start.command}
        parent = session.session_id if child else None
        data = WithFields(start, {"parent_session_id": parent, "commands": commands})
        options.emit(data, str, child.warnings if child else ())
        return
    if child is not None:
        print_child_note(child)
    elif (
        options.is_interactive
        and not options.show
        and (why := agent_of(session, options.where).why_open(session))
    ):
        print_text(
            f"note: it may be open in a client: {why}. --fork keeps two clients apart.", err=True
        )
    start_or_print(start, StartMode(show=options.show or not options.is_interactive))


def _start_of_child(session: SessionFile, child: Receipt | None) -> ClientStart:
    if child is not None:
        return client_start(child.session_id, child.file, child.folder, Where())
    return client_start(
        session.session_id, session.path, home_folder(HeadTail(session.path), Where()), Where()
    )


class StartMode(NamedTuple):
    """The options for continuing a session: print the command, or copy it.

    Otherwise the client is started.
    """

    show: bool = False
    copy: bool = False


def prepare_session(session: SessionFile) -> SessionFile:
    """Return the session, restored if it was archived, or a child of it if the client cannot start on the session."""
    loss = relocate.find_session_loss(session, Where())
    if loss is not None and loss.kept:
        session = relocate.restore_archived(session, loss, Where())
        loss = relocate.find_session_loss(session, Where())
    if loss is None:
        return session
    return relocate.make_child_in_new_home(session, loss, Where())


def continue_in_way(session: SessionFile, way: str, mode: StartMode) -> bool:
    """Continue a session in this ``way``. Return False if the way's verb created no child."""
    receipt = None if way == GO_ON else make_child_in_way(session, way)
    if receipt is not None and not receipt.written:
        return False
    start_or_print(_start_of_child(session, receipt), mode)
    return True


def start_or_print(start: ClientStart, mode: StartMode) -> None:
    """Print the command, copy it, or replace this process by the client. Only the command goes to stdout."""
    if mode.show:
        print_text(start.command)
    elif mode.copy:
        print_text(_copy_outcome(start.command), err=True)
        print_text(start.command)
    else:
        become_client(start)


def copy_command(command: str) -> str:
    """Copy a command. Return the result of the copy and the command."""
    return f"{_copy_outcome(command)}\n{command}"


def _copy_outcome(command: str) -> str:
    copied = clipboard.copy_text(
        command, method=str(settings.load_settings()["clipboard"].value), environ=os.environ
    )
    return copied.sentence("the command")


def make_child_in_way(session: SessionFile, way: str) -> Receipt:
    """Create a child with the verb and the flags of a way.

    Report on stderr which child was created, or why none was created.
    """
    if way == FORK:
        receipt = make_fork(session)
        print_child_note(receipt)
        return receipt
    # The verb is imported late, because a verb that asks a model takes 100 ms to load.
    verb, *flags = way.split()
    options = {flag.removeprefix("--"): True for flag in flags}
    with on_stderr():
        made: Receipt = click.get_current_context().invoke(
            command_of_verb(verb), locator=session.path, **options
        )
    return made


def make_fork(session: SessionFile) -> Receipt:
    """Copy a session's whole live conversation."""
    return fork(Session.of(session, Where()), WHOLE, Caller(Where())).receipt


def ask_way(session: SessionFile, comparison: Comparison) -> str:
    """Ask how to continue. Mark the recommended answer, and preselect the default answer."""
    why_open = agent_of(session, Where()).why_open(session)
    if why_open:
        print_text(
            f"It may be open in a client: {why_open}. Two clients in one session mix it "
            "up; a fork keeps them apart."
        )
    advised_way = comparison.advice.strategy if comparison.advice else ""
    ends = comparison.glance
    is_fork_smaller = ends.size > CLIENT_READ_BYTES and is_live_part_within(
        ends.path, CLIENT_READ_BYTES
    )
    if why_open:
        usual_way = FORK
    else:
        usual_way = advised_way or (FORK if is_fork_smaller else GO_ON)
    descriptions = _descriptions_of_ways(comparison, is_fork_smaller=is_fork_smaller)
    answers = []
    for way in WAYS:
        answers.append(
            AnswerChoice(
                way, f"{descriptions[way]}{'  <- fits best' if way == advised_way else ''}"
            )
        )
    return WAYS[ask_question("How do you want to continue?", answers, WAYS.index(usual_way))]


def _descriptions_of_ways(comparison: Comparison, *, is_fork_smaller: bool) -> dict[str, str]:
    tokens = {}
    for row in comparison.estimates:
        tokens[row.name] = f"about {row.after:,} tokens"
    model = settings.load_settings()["summary_model"].value
    if comparison.context.compacts_at_once:
        full_text = ", which would compact at once"
    else:
        full_text = ""
    if is_fork_smaller:
        size_text_of_fork = (
            f"; the client reads only 50 MB of its {format_bytes(comparison.glance.size)}"
        )
    else:
        size_text_of_fork = ""
    return {
        GO_ON: f"{comparison.context.tokens:,} tokens{full_text}",
        TRIM: f"a copy without old tool output, {tokens.get(TRIM, 'size not estimated')}",
        HANDOFF: f"a fresh session with a digest, {tokens[HANDOFF]}",
        ROLLOVER: f"a handoff with a summary by {model}, {tokens[ROLLOVER]}; asking it costs tokens",
        FORK: f"a copy of the live conversation alone, under a new id{size_text_of_fork}",
        **{name: about.format(model=model) for name, (_, about, _) in part_table.WAYS.items()},
    }
