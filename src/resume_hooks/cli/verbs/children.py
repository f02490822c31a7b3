"""The verbs that create a child of a session."""

from __future__ import annotations

from typing import Any

import click

from resume_hooks.cli.options import PART_OPTIONS, TO, ChildOptions, flag, option
from resume_hooks.derive.trim.options import MIN_SAVINGS
from resume_hooks.shared_values import MODEL_SECONDS


class HandoffOptions(ChildOptions, function="resume_hooks.cli.handoff:hand_off_session"):
    """Make a new session with the context of SESSION: its messages and work, and the next step.

    SESSION may be a sub-agent, <session>/agent-<id>.

    The session itself is only read. The new one is checked before its id is printed. A --size of 1k has the
    lists and the last answer, 12k usually the whole talk, 24k also the latest calls with their results, all
    is a copy. With the setting handoff_dir each handoff also writes a document.

    \b
    Examples:
      resume-hooks handoff -n "fix the tests"
      resume-hooks handoff 5e12a303 -n "write the changelog" --start
      resume-hooks handoff 5e12a303/agent-a63d21c -n "fix what it found"
      resume-hooks handoff --size 24k -n "finish the migration"
      resume-hooks handoff --new-task "write the release notes"
      resume-hooks handoff --print --full
      resume-hooks handoff --edit --out docs/
      resume-hooks handoff --dry-run --json
    """

    next_step: str = option("-n", default="", help="The first task of the fresh session.")
    new_task: str | None = option(
        metavar="TASK",
        help="A new task: goal, todos, plan and task list are not carried over.",
    )
    size: str | None = option(
        metavar="SIZE",
        help="The handoff's size: 1k to 48k tokens, or all; by default handoff_size.",
    )
    show: bool = flag("--print", help="Print the child's opening; write nothing.")
    full: bool = flag(help="With --print: the whole digest, without a size limit.")
    edit: bool = flag(help="Open your editor on the digest first; an empty text cancels.")
    part_options: Any = PART_OPTIONS
    to: str | None = TO


class RolloverOptions(ChildOptions, function="resume_hooks.cli.handoff:roll_over_session"):
    """Make a fresh session with the lineage of SESSION, a digest of it, and a summary by a model.

    The model is asked through the client, without tools and without a session. It reads SESSION in
    up to three parts; the session itself is only read. If the model gives no answer, the child has
    the digest alone, and the receipt says why. A dry run asks no model. The child is checked before
    its id is printed.

    \b
    Examples:
      resume-hooks rollover
      resume-hooks rollover 5e12a303 -p "focus on the parser" --start
      resume-hooks rollover 5e12a303 --dry-run
      resume-hooks rollover "Fix the parser" --quick
    """

    prompt: str = option("-p", default="", help="What the summary should stress, in your words.")
    quick: bool = flag(help="Only the lineage; ask no model.")
    with_summary: bool = flag(help="Ask a model, which is the default.")
    model: str | None = option(
        help="The model of the summary; by default summary_model, or another agent's own."
    )
    timeout: int | None = option(
        type=click.IntRange(1), help=f"Seconds for the summary; by default {MODEL_SECONDS}."
    )


class TrimOptions(ChildOptions, function="resume_hooks.cli.trim:trim_session"):
    """Make a child of SESSION with placeholders for old tool output and other long contents.

    The session itself is only read, unless you use --in-place. Each placeholder names its original;
    nothing is lost. By default the last turns stay unchanged, or only their last tool results if
    they are very long.

    \b
    Rules, the least useful contents first:
      superseded   files that were read again or changed later
      repeats      outputs that were repeated word for word
      failures     failed attempts that later succeeded
      thinking     thinking of finished turns
      attachments  files and hook output that the client attached
      media        images and documents
      results      tool outputs over the threshold
      inputs       file contents and long commands given to tools
      pasted       the middle of long pastes in prompts
      assistant    long answers of the model, with --assistant

    With --smart, rules first remove what is certainly unneeded: files read again or changed later,
    repeated outputs, failures that were fixed, thinking of finished turns. A model, asked through
    the client without tools, chooses among the rest. With -p the model chooses everything, as your
    words say. Your prompts, the recent turns and the last words of each turn stay. The plan is
    shown first; without a terminal nothing is written unless you add --yes. A dry run also asks the
    model, which costs tokens. To write the plan that it showed: --json > plan.json, then --plan
    plan.json.

    \b
    Examples:
      resume-hooks trim --dry-run
      resume-hooks trim 5e12a303 --tools Read,Bash --threshold 300
      resume-hooks trim --threshold 500 --threshold Bash=2000 --keep-recent 3
      resume-hooks trim --target-tokens 60000 --start
      resume-hooks trim 5e12a303 --in-place --dry-run
      resume-hooks trim 5e12a303 --smart -p "keep everything about the parser"
      resume-hooks trim 5e12a303 --smart --dry-run --json > plan.json
      resume-hooks trim --smart --plan plan.json --yes --start
    """

    tools: str | None = option(help="Trim only contents of these tools: Read,Bash,mcp__*.")
    threshold: tuple[str, ...] = option(
        multiple=True, help="Maximum characters of an output: 500, or for one tool: Read=2000."
    )
    keep_recent: int | None = option(
        type=click.IntRange(0), help="Turns at the end that stay as they are."
    )
    assistant: int = option(
        type=int, default=0, help="Also trim the first N long answers; -N: all but the last N."
    )
    target_tokens: int | None = option(
        type=click.IntRange(1), help="Trim the least useful contents until this size is reached."
    )
    only: str | None = option(help="Apply only these rules (listed above).")
    skip: str | None = option(help="Leave these rules out.")
    min_savings: int = option(
        type=click.IntRange(0), default=MIN_SAVINGS, show_default=True, help="Tokens."
    )
    in_place: bool = flag(help="Rewrite the session's own file, after a backup; no child is made.")
    force: bool = flag(help="With --in-place: even while a client has the session open.")
    part_options: Any = PART_OPTIONS


class ForkOptions(ChildOptions, function="resume_hooks.cli.fork:fork_session"):
    """Make a copy of SESSION's live conversation under a new id, whole or up to a point.

    SESSION may be a sub-agent, <session>/agent-<id>, which then becomes a session of its own.

    The session itself is only read. The client sends the same messages for the copy as for the
    session. A cut never separates a tool call from its answer: it moves to the nearest possible
    place and says so. A record from before a compaction, or on an abandoned branch, gives the
    conversation as it was there. File backups and large outputs are linked, so that rewind-files
    works in the copy.

    With --here or --home the copy belongs to that folder, for example if its own folder moved or is
    gone. With --to it continues in the other agent: turns and calls as text, without thinking.

    \b
    Examples:
      resume-hooks fork 5e12a303
      resume-hooks fork 5e12a303 --turn 4
      resume-hooks fork --at 5e12a303:41 --start
      resume-hooks fork 5e12a303 --before 2026-01-31T09:30 --dry-run
      resume-hooks fork 5e12a303 --before-compaction --start
      resume-hooks fork 5e12a303 --here
      resume-hooks fork 5e12a303 --to codex
    """

    at: str | None = option(
        metavar="REF",
        help="Up to and including this: line, uuid, session and line, or answer (msg_...).",
    )
    before: str | None = option(
        metavar="TIME", help="Up to this time: a date, a time (UTC), or 30min, 2h, 3d ago."
    )
    turn: int | None = option(
        type=int, metavar="N", help="Up to the end of turn N; -2: of the last but one."
    )
    before_compaction: bool = flag(help="Fork the session as it was before the last compaction.")
    here: bool = flag(help="Make the fork a session of the current folder.")
    home: str | None = option(metavar="FOLDER", help="Make the fork a session of this folder.")
    to: str | None = TO


class UntrimOptions(ChildOptions, function="resume_hooks.cli.trim:untrim_session"):
    """Make a child of SESSION with the trimmed contents restored.

    The originals are read from the session that has them, even if it was moved, or from the backup
    of an in-place trim. Messages, tool results, inputs, images and thinking return unchanged.
    SESSION defaults to the last trim in this folder, until it or another session is continued.

    \b
    Examples:
      resume-hooks untrim 5e12a303 --all
      resume-hooks untrim 5e12a303 --record 41 --record 57
      resume-hooks untrim --all --dry-run
    """

    record: tuple[int, ...] = option(
        multiple=True,
        type=click.IntRange(0),
        metavar="N",
        help="Restore this line of SESSION's file.",
    )
    everything: bool = flag("--all", help="Restore every trimmed record.")
    strict: bool = flag(help="Write nothing if an original can't be found.")
