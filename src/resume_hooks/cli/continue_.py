"""``continue``: start the client on a session without questions, with the code shared with ``resume``.

The client continues the session itself, or a child that another verb's code creates first.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import click

from resume_hooks import part_table, settings
from resume_hooks.cli import relocate
from resume_hooks.cli.child import tell_child_made
from resume_hooks.cli.options import FORK, GO_ON, WAYS
from resume_hooks.cli.output import on_stderr, print_text
from resume_hooks.cli.question import AnswerChoice, ask_question
from resume_hooks.cli.start_client import Start, become_client, start_of_session
from resume_hooks.cli.verb_table import command_of_verb
from resume_hooks.cli.verbs.resume import ContinueOptions
from resume_hooks.cli.with_fields import With
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.compare import HANDOFF, ROLLOVER, TRIM, Comparison
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.fork import WHOLE, fork
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.registry import agent_of
from resume_hooks.sessions.archived.sessions import is_archived_copy
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system import clipboard
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.transcript import is_live_part_within

READ_BY_CLIENTS = 50_000_000  # bytes of a file; the client's readers give up above this


def continue_session(options: ContinueOptions) -> None:
    """Start the client on a session, or print the command for it."""
    session: SessionFile = options.locate_whole_session()
    whole = options.forks and is_archived_copy(
        session.path, options.where
    )  # an archived copy can be forked, too
    if options.watched and not whole:
        session = settle_session(session)
    elif not whole and (lost := relocate.find_loss(session, options.where)) is not None:
        raise lost.refusal(session)
    made = make_fork(session) if options.forks else None
    begun = _start_of_child(session, made)
    if options.as_json:
        commands = {"in_client": f"/resume {begun.session_id}", "shell": begun.command}
        parent = session.session_id if made else None
        data = With(begun, {"parent_session_id": parent, "commands": commands})
        options.emit(data, str, made.warnings if made else ())
        return
    if made is not None:
        tell_child_made(made)
    elif (
        options.watched
        and not options.show
        and (why := agent_of(session, options.where).why_open(session))
    ):
        print_text(
            f"note: it may be open in a client: {why}. --fork keeps two clients apart.", err=True
        )
    start_or_print(begun, Finish(show=options.show or not options.watched))


def _start_of_child(session: SessionFile, made: Receipt | None) -> Start:
    if made is not None:
        return start_of_session(made.session_id, made.file, made.folder, Where())
    return start_of_session(
        session.session_id, session.path, home_folder(HeadTail(session.path), Where()), Where()
    )


class Finish(NamedTuple):
    """How to continue a session: print the command, or copy it.

    Otherwise start the client.
    """

    show: bool = False
    copy: bool = False


def settle_session(session: SessionFile) -> SessionFile:
    """Return the session, restored if archived, or a child of it if the client cannot start on it."""
    found = relocate.find_loss(session, Where())
    if found is not None and found.kept:
        session = relocate.bring_back(session, found, Where())
        found = relocate.find_loss(session, Where())
    if found is None:
        return session
    return relocate.make_child_in_new_home(session, found, Where())


def continue_by_way(session: SessionFile, way: str, how: Finish) -> bool:
    """Continue a session in this ``way``. Return False if the way's verb created no child."""
    receipt = None if way == GO_ON else child_by_way(session, way)
    if receipt is not None and not receipt.written:
        return False
    start_or_print(_start_of_child(session, receipt), how)
    return True


def start_or_print(begun: Start, how: Finish) -> None:
    """Print the command, copy it, or become the client. Only the command goes to stdout."""
    if how.show:
        print_text(begun.command)
    elif how.copy:
        print_text(_copy_outcome(begun.command), err=True)
        print_text(begun.command)
    else:
        become_client(begun)


def copy_command(command: str) -> str:
    """Copy a command; return the result and the command."""
    return f"{_copy_outcome(command)}\n{command}"


def _copy_outcome(command: str) -> str:
    done = clipboard.copy_text(
        command, method=str(settings.load_settings()["clipboard"].value), environ=os.environ
    )
    return done.sentence("the command")


def child_by_way(session: SessionFile, way: str) -> Receipt:
    """Create a child with the verb and the flags of a way.

    Report on stderr what was created, or why nothing was.
    """
    if way == FORK:
        receipt = make_fork(session)
        tell_child_made(receipt)
        return receipt
    # Import the verb only now: a verb that asks a model takes 100 ms to load.
    verb, *flags = way.split()
    given = {flag.removeprefix("--"): True for flag in flags}
    with on_stderr():
        made: Receipt = click.get_current_context().invoke(
            command_of_verb(verb), locator=session.path, **given
        )
    return made


def make_fork(session: SessionFile) -> Receipt:
    """Copy a session's whole live conversation."""
    return fork(Session.of(session, Where()), WHOLE, Caller(Where())).receipt


def ask_way(session: SessionFile, found: Comparison) -> str:
    """Ask how to continue; mark the recommended answer, and point at the default."""
    why_open = agent_of(session, Where()).why_open(session)
    if why_open:
        print_text(
            f"It may be open in a client: {why_open}. Two clients in one session mix it "
            "up; a fork keeps them apart."
        )
    advised = found.advice.strategy if found.advice else ""
    glance = found.glance
    leaner = glance.size > READ_BY_CLIENTS and is_live_part_within(glance.path, READ_BY_CLIENTS)
    if why_open:
        usual = FORK
    else:
        usual = advised or (FORK if leaner else GO_ON)
    words = _words_for_ways(found, leaner=leaner)
    answers = []
    for way in WAYS:
        answers.append(
            AnswerChoice(way, f"{words[way]}{'  <- fits best' if way == advised else ''}")
        )
    return WAYS[ask_question("How do you want to continue?", answers, WAYS.index(usual))]


def _words_for_ways(found: Comparison, *, leaner: bool) -> dict[str, str]:
    tokens = {}
    for row in found.estimates:
        tokens[row.name] = f"about {row.after:,} tokens"
    model = settings.load_settings()["summary_model"].value
    if found.context.compacts_at_once:
        full = ", which would compact at once"
    else:
        full = ""
    if leaner:
        large = f"; the client reads only 50 MB of its {size_text(found.glance.size)}"
    else:
        large = ""
    return {
        GO_ON: f"{found.context.tokens:,} tokens{full}",
        TRIM: f"a copy without old tool output, {tokens.get(TRIM, 'size not estimated')}",
        HANDOFF: f"a fresh session with a digest, {tokens[HANDOFF]}",
        ROLLOVER: f"a handoff with a summary by {model}, {tokens[ROLLOVER]}; asking it costs tokens",
        FORK: f"a copy of the live conversation alone, under a new id{large}",
        **{name: about.format(model=model) for name, (_, about, _) in part_table.WAYS.items()},
    }
