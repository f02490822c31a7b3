"""What all verbs that make a child share: their options, the receipt in words, the start of the client."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import click

from resume_hooks.cli.output import dry_run_option, emit, json_option, say, table
from resume_hooks.cli.start_client import start, start_of
from resume_hooks.derive.child.draft import OUTSIDE, Draft
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.errors import ResumeHooksError, UsageError
from resume_hooks.paths import Where
from resume_hooks.system.claude_cli import executable


class How(TypedDict):
    """The options that every verb shares that makes a child."""

    output_dir: str | None
    start: bool
    dry_run: bool
    as_json: bool


_OPTIONS = (
    click.option("--output-dir", type=click.Path(exists=True, file_okay=False), help="Write the child there instead."),
    click.option("--start", is_flag=True, help="Start the client on the child."),
    dry_run_option,
    json_option,
)


def child_options(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the options of ``How``, in the order of its help."""
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb


def client_to_start(how: How) -> str:
    """The client that ``--start`` asks for, ``""`` for none. Refused before anything is made, where it can't be."""
    if not how["start"] or how["dry_run"]:
        return ""
    found = executable(Where())
    if found is None:
        raise ResumeHooksError(
            "claude is not on PATH, so nothing was made", "Leave --start out, or install the client."
        )
    if how["output_dir"] is not None:
        raise UsageError("--start can't start a session in another folder", "Leave --start or --output-dir out.")
    return found


def require_start(client: str, draft: Draft) -> None:
    """Refuse to make a child that the client could not be started on."""
    if client and OUTSIDE in draft.warnings:
        raise UsageError("--start can't start a session outside of its project's folder", "Leave --start out.")
    require_folder(client, draft.setting.cwd)


def require_folder(client: str, folder: str) -> None:
    """Refuse a folder that the client could not be started in."""
    if client and not os.path.isdir(folder):
        raise ResumeHooksError(
            f"{folder} is gone, so the client can't be started there and nothing was made", "Leave --start out."
        )


def answer(
    verb: str,
    receipt: Receipt,
    how: How,
    client: str,
    *,
    more: dict[str, Any] | None = None,
    text: Callable[[], str] | None = None,
) -> Receipt:
    """Print a receipt (with ``more`` fields, or as ``text``); start the client on the child where asked.

    The receipt comes back where it was not: for whoever calls a verb of ours.
    """
    data = {**receipt.data(), **(more or {})}
    emit(verb, data, text or (lambda: receipt_text(receipt)), as_json=how["as_json"], warnings=receipt.warnings)
    if client and receipt.written:
        start(start_of(receipt.session_id, receipt.file, receipt.folder, Where()))
    return receipt


def tell(receipt: Receipt) -> None:
    """Say in a line what was made on the way to something else: on stderr, where no command is caught."""
    say(f"{receipt.kind}: {receipt.title} · {receipt.session_id} · {receipt.sizes}", err=True)
    found = bool(start_of(receipt.session_id, receipt.file, receipt.folder, Where()).config)
    for warning in receipt.warnings:
        if warning != OUTSIDE or not found:  # the command names the other config home
            say(f"note: {warning}", err=True)


def receipt_text(receipt: Receipt, more: Sequence[tuple[str, object]] = ()) -> str:
    """A receipt for people, with ``more`` facts before its commands."""
    checked = f"{sum(check.ok for check in receipt.checks)} of {len(receipt.checks)} checks passed"
    return table(
        [
            ("would write" if not receipt.written else "wrote", receipt.title),
            ("id", receipt.session_id),
            ("file", receipt.file),
            ("parent", f"{receipt.parent_session_id} (unchanged)"),
            ("tokens", receipt.sizes),
            *more,
            ("checks", checked if receipt.written else "not run: nothing was written"),
            ("in Claude Code", receipt.in_client),
            ("in a shell", receipt.shell),
        ]
    )
