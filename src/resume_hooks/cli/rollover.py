"""``rollover --quick``, and what ``handoff`` shares with it: write a child, print its receipt, start the client."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import TypedDict, Unpack

import click

from resume_hooks import quick_rollover
from resume_hooks.cli.output import dry_run_option, emit, json_option, located, locator_argument, table
from resume_hooks.errors import ResumeHooksError, UsageError
from resume_hooks.receipt import Receipt
from resume_hooks.store import SessionFile


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


def child_options(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the options of ``How``, in the order of its help."""
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb


@click.command("rollover")
@locator_argument
@click.option("--quick", is_flag=True, help="Lineage only, no model is asked.")
@child_options
def command(locator: str | None, quick: bool, **how: Unpack[How]) -> None:
    """Make a fresh session that holds the lineage of LOCATOR and nothing else.

    The session itself is only read. The child is checked as read back before its id is printed.

    \b
    Examples:
      resume-hooks rollover --quick
      resume-hooks rollover 5e12a303 --quick --dry-run
      resume-hooks rollover "Fix the parser" --quick --start
    """
    if not quick:
        raise UsageError("rollover needs --quick", "resume-hooks rollover --quick")
    carry_out(located(locator), "rollover", "", **how)


def carry_out(parent: SessionFile, kind: str, next_step: str, **how: Unpack[How]) -> None:
    """Plan a child, write it unless this is a dry run, print the receipt, and start the client where asked."""
    client = _client() if how["start"] and not how["dry_run"] else ""
    if client and how["output_dir"] is not None:
        raise UsageError("--start can't start a session in another folder", "Leave --start or --output-dir out.")
    decided = quick_rollover.plan(parent, os.environ, kind=kind, next_step=next_step, output_dir=how["output_dir"])
    if client and not os.path.isdir(decided.setting.cwd):
        raise ResumeHooksError(
            f"{decided.setting.cwd} is gone, so the client can't be started there and nothing was made",
            "Leave --start out.",
        )
    if how["dry_run"]:
        receipt = quick_rollover.receipt(decided, written=False)
    else:
        receipt = quick_rollover.write(decided, os.environ)
    emit(kind, receipt.data(), lambda: _render(receipt), as_json=how["as_json"], warnings=receipt.warnings)
    if client:
        os.chdir(receipt.folder)
        os.execv(client, [client, "--resume", receipt.session_id])


def _client() -> str:
    found = shutil.which("claude")
    if found is None:
        raise ResumeHooksError(
            "claude is not on PATH, so nothing was made", "Leave --start out, or install the client."
        )
    return found


def _render(receipt: Receipt) -> str:
    checked = f"{sum(check.ok for check in receipt.checks)} of {len(receipt.checks)} checks passed"
    return table(
        [
            ("would write" if not receipt.written else "wrote", receipt.title),
            ("id", receipt.session_id),
            ("file", receipt.file),
            ("parent", f"{receipt.parent_session_id} (unchanged)"),
            ("tokens", f"{receipt.tokens_before:,} -> about {receipt.tokens_after:,}"),
            ("checks", checked if receipt.written else "not run: nothing was written"),
            ("in Claude Code", receipt.in_client),
            ("in a shell", receipt.shell),
        ]
    )
