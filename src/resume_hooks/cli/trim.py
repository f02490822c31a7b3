"""``trim``: a child whose bulky contents are placeholders; shows what it saves, and what it would not."""

from __future__ import annotations

import click

from resume_hooks import settings
from resume_hooks.cli.child import (
    answer,
    checks_text,
    make,
    receipt_text,
    require_client,
    require_folder,
)
from resume_hooks.cli.options import VerbOptions, as_one_value, child_options, locator_argument
from resume_hooks.cli.output import table
from resume_hooks.derive import agents
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.trim import in_place
from resume_hooks.derive.trim.in_place import InPlaceTrim
from resume_hooks.derive.trim.options import MIN_SAVINGS, Options, TypedOptions, options_of
from resume_hooks.derive.trim.plan import TrimPlan
from resume_hooks.derive.trim.preview import preview, remarks, savings_data
from resume_hooks.errors import UsageError
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.transcripts.head_tail import HeadTail


@click.command("trim")
@locator_argument
@click.option("--tools", help="Trim contents of these tools alone: Read,Bash,mcp__*.")
@click.option("--threshold", multiple=True, help="Characters an output may have: 500, or of one tool: Read=2000.")
@click.option("--keep-recent", type=click.IntRange(0), help="Turns at the end that stay as they are.")
@click.option("--assistant", type=int, default=0, help="Also trim the first N long answers; -N: all but the last N.")
@click.option(
    "--target-tokens", type=click.IntRange(1), help="Trim the least useful contents first, until this is reached."
)
@click.option("--only", help="Apply these rules alone (see below).")
@click.option("--skip", help="Leave these rules out.")
@click.option("--min-savings", type=click.IntRange(0), default=MIN_SAVINGS, show_default=True, help="Tokens.")
@click.option("--in-place", is_flag=True, help="Rewrite the session's own file, after a backup; no child is made.")
@click.option("--live", is_flag=True, help="With --in-place: even while a client has the session open.")
@child_options
@as_one_value
def command(options: VerbOptions) -> Receipt:
    """Make a child of SESSION in which old tool output and other long contents are placeholders.

    The session itself is only read, unless you say --in-place. Each placeholder says where its original is; nothing
    is lost. Without a --keep-recent the last turns stay as they are, and of a very long turn its last tool results.

    \b
    Rules, the least useful contents first:
      superseded   files that were read again or changed later
      repeats      outputs that came again word for word
      failures     failed attempts that later succeeded
      thinking     thinking of finished turns
      attachments  files and hook output that the client attached
      media        images and documents
      results      tool outputs over the threshold
      inputs       file contents and long commands given to tools
      pasted       the middle of long pastes in prompts
      assistant    long answers of the model, with --assistant

    \b
    Examples:
      resume-hooks trim --dry-run
      resume-hooks trim 5e12a303 --tools Read,Bash --threshold 300
      resume-hooks trim --threshold 500 --threshold Bash=2000 --keep-recent 3
      resume-hooks trim --target-tokens 60000 --start
      resume-hooks trim 5e12a303 --in-place --dry-run
    """
    _refuse(options)
    require_client(options)
    typed = TypedOptions(
        tools=options.tools,
        threshold=options.threshold,
        keep_recent=options.keep_recent,
        assistant=options.assistant,
        target_tokens=options.target_tokens,
        only=options.only,
        skip=options.skip,
        min_savings=options.min_savings,
    )
    trim = options_of(typed)
    return _in_place(trim, options) if options.in_place else _in_a_child(trim, options)


def _in_a_child(trim: Options, options: VerbOptions) -> Receipt:
    window = settings.number("context_window")
    decided = agents.trim(options.located(foreign=True), options.where, trim, window, output_dir=options.output_dir)
    made = make(options, decided)
    return answer(options, made, {"savings": savings_data(decided)}, lambda: _text(decided, made))


def _in_place(trim: Options, options: VerbOptions) -> Receipt:
    session, window = options.located(), settings.number("context_window")
    require_folder(options, home_folder(HeadTail(session.path), options.where))
    if options.dry_run:
        done = in_place.plan(session, options.where, trim, window)
    else:
        done = in_place.write(session, options.where, trim, window, live=options.live)
    more = {"savings": savings_data(done.decided), "in_place": True, "backup": done.backup or None}
    return answer(options, done.receipt, more, lambda: _text_in_place(done))


def _refuse(options: VerbOptions) -> None:
    """Refuse options that mean nothing together."""
    if options.live and not options.in_place:
        raise UsageError("--live belongs to --in-place", "A child can be made of a live session as it is.")
    if options.in_place and options.output_dir is not None:
        raise UsageError("--in-place rewrites the session where it lies", "Leave --output-dir or --in-place out.")
    if options.live and options.start:
        raise UsageError("--start would open a live session a second time", "Leave --start or --live out.")


def _text(decided: TrimPlan, made: Receipt) -> str:
    if not made.written:
        return f"{preview(decided)}\n\nNothing was written."
    return receipt_text(made, [("note", sentence) for sentence in remarks(decided)])


def _text_in_place(done: InPlaceTrim) -> str:
    made = done.receipt
    if not made.written:
        return f"{preview(done.decided)}\n\nNothing was written."
    return table(
        [
            ("rewrote", made.title),
            ("id", made.session_id),
            ("file", made.file),
            ("backup", done.backup),
            ("tokens", f"{made.tokens_before:,} -> about {made.tokens_after:,}"),
            *(("note", sentence) for sentence in remarks(done.decided)),
            ("checks", checks_text(made)),
            ("in Claude Code", made.in_client),
            ("in a shell", made.shell),
        ]
    )
