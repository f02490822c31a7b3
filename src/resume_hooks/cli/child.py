"""Functions for the verbs that create a child: check options, print the receipt, start the client."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import click

from resume_hooks import settings
from resume_hooks.cli.options import VerbOptions
from resume_hooks.cli.output import facts_table, print_text
from resume_hooks.cli.start_client import find_client_start, replace_process_with_client
from resume_hooks.cli.value_with_fields import ValueWithFields
from resume_hooks.derive.child.draft import OUTSIDE_PROJECT_WARNING, Draft
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.model.port import HeadlessModel
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.errors import ResumeHooksError, UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import agent_with_name
from resume_hooks.sessions.child_titles import displayed_kind
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.shared_values import MODEL_TIMEOUT_SECONDS


def refuse_start_in_other_folder(options: VerbOptions) -> None:
    """Raise UsageError if ``--start`` and ``--output-dir`` were both given.

    The client can't find a child in another folder.
    """
    if _is_start_requested(options) and options.output_dir is not None:
        raise UsageError(
            "--start can't start a session in another folder", "Leave --start or --output-dir out."
        )


def refuse_start_without_client(
    options: VerbOptions, folder: str, agent: str = CLAUDE_NAME
) -> None:
    """Raise an error if ``--start`` was given but the agent is not installed or ``folder`` does not exist.

    Call this function before the verb creates the child.
    """
    if not _is_start_requested(options):
        return
    client = agent_with_name(agent, options.where).launch_command("")
    if client.program_path is None:
        raise ResumeHooksError(
            f"{client.program} is not on PATH, so no session was created",
            "Leave --start out, or install the client.",
        )
    if not os.path.isdir(folder):
        raise ResumeHooksError(
            f"{folder} no longer exists, so the client can't start there and no session was created",
            "Leave --start out.",
        )


def refuse_start_outside_project(options: VerbOptions, child: Draft) -> None:
    """Raise an error if ``--start`` was given but the client can't be started on the planned child.

    The client finds a child only if the child's file is in the client's folder for the project.
    """
    if _is_start_requested(options) and OUTSIDE_PROJECT_WARNING in child.warnings:
        raise UsageError(
            "--start can't start a session outside its project's folder", "Leave --start out."
        )
    refuse_start_without_client(options, child.attributes.cwd, child.agent)


def make_caller_for_new_child(options: VerbOptions) -> Caller:
    """Return a Caller with the verb's options for the new child, such as its folder and ``--dry-run``.

    If ``--start`` was given, the Caller refuses to create a child that the client couldn't open.
    """
    check_draft = partial(refuse_start_outside_project, options)
    return Caller(options.where, options.output_dir, options.dry_run, check_draft=check_draft)


def print_child(
    options: VerbOptions,
    receipt: Receipt,
    fields: dict[str, Any] | None = None,
    text: Callable[[], str] | None = None,
) -> Receipt:
    """Print the receipt of a child and return the receipt. If ``--start`` was given, start the client.

    ``fields`` are added to the receipt in the JSON output. ``text`` returns the text output, by
    default the receipt as text.
    """
    options.print_answer(
        ValueWithFields(receipt, fields or {}),
        text or (lambda: receipt_text(receipt)),
        receipt.warnings,
    )
    start_client_if_requested(options, receipt)
    return receipt


def start_client_if_requested(options: VerbOptions, receipt: Receipt) -> None:
    """If ``--start`` was given and the child exists, replace this process with the client on that child."""
    if receipt.session_id and _is_start_requested(options):
        # Release the verb's files and locks now, because no code runs after the client has replaced
        # this process.
        click.get_current_context().close()
        replace_process_with_client(
            find_client_start(receipt.session_id, receipt.file, receipt.folder, options.where)
        )


def _is_start_requested(options: VerbOptions) -> bool:
    return options.start and not options.dry_run


def find_requested_model(name: str | None, session: SessionFile, where: Where) -> HeadlessModel:
    """Return the model for a summary: the model given with ``--model``, or the model in the settings.

    Raise UsageError if the name is not valid.
    """
    try:
        if name:
            model_name = str(settings.SETTING_DEFINITIONS["summary_model"].parse(name))
        else:
            model_name = ""
    except ValueError as error:
        raise UsageError(f"--model must be {error}, not '{name}'") from error
    # Imported late because only a verb that asks a model needs it.
    from resume_hooks.derive.model.headless import choose_model

    return choose_model(session, where, model_name)


def get_model_time_limit(seconds: int | None) -> float:
    """Return the time limit for a model in seconds: the value of ``--timeout``, or the default."""
    return seconds or MODEL_TIMEOUT_SECONDS


def make_model_call_reporter(name: str, *, quiet: bool) -> Callable[[int, int], None]:
    """Return a function that prints which model call is running, for example "Asking opus, 2 of 3 ...".

    The function takes the number of the current call and the number of all calls. It prints nothing
    if ``quiet`` or if stderr is not a terminal.
    """
    if quiet or not sys.stderr.isatty():
        return lambda _number, _count: None
    return lambda number, count: print_text(f"Asking {name}, {number} of {count} ...", err=True)


def print_child_note(receipt: Receipt) -> None:
    """Print the child's title, id and warnings on stderr, so that stdout contains only a command."""
    print_text(
        f"{displayed_kind(receipt.kind)}: {receipt.title} · {receipt.session_id} · {receipt.sizes_text}",
        err=True,
    )
    has_other_config = bool(
        find_client_start(receipt.session_id, receipt.file, receipt.folder, Where()).config_home
    )
    for warning in receipt.warnings:
        # The warning says that ``--resume`` does not find the child. This is not true if the
        # printed command sets the client's configuration folder.
        if warning != OUTSIDE_PROJECT_WARNING or not has_other_config:
            print_text(f"note: {warning}", err=True)


def receipt_text(receipt: Receipt, further_rows: Sequence[tuple[str, object]] = ()) -> str:
    """Return a receipt as a table. ``further_rows`` precede the commands that open the child."""
    facts = [
        ("parent", f"{receipt.parent_session_id} (unchanged)"),
        ("tokens", receipt.sizes_text),
        *further_rows,
    ]
    checks_row = ("checks", check_results_text(receipt))
    if not receipt.session_id:
        return facts_table([("would write", receipt.title), *facts, checks_row])
    if receipt.written:
        done, check_rows = "wrote", [checks_row]
    else:
        done, check_rows = "exists", []
    return facts_table(
        [
            (done, receipt.title),
            ("id", receipt.session_id),
            ("file", receipt.file),
            *facts,
            *check_rows,
            (f"in {agent_with_name(receipt.agent, Where()).label}", receipt.client_command),
            ("in a shell", receipt.shell_command),
        ]
    )


def check_results_text(receipt: Receipt) -> str:
    """Return a text that says how many of the child's checks passed."""
    if not receipt.written:
        return "not run: nothing was written"
    return f"{sum(check.ok for check in receipt.checks)} of {len(receipt.checks)} checks passed"
