"""The verbs that create a child of a session."""

from __future__ import annotations

from typing import Any

import click

from resume_hooks.cli.options import PART_OPTIONS, TARGET_AGENT_OPTION, ChildOptions, flag, option
from resume_hooks.derive.trim.options import MIN_SAVED_TOKENS
from resume_hooks.shared_values import MODEL_TIMEOUT_SECONDS


class HandoffOptions(ChildOptions, function="resume_hooks.cli.handoff:hand_off_session"):
    """Create a new session that begins with what matters from SESSION: its messages, its work and the next step.

    SESSION may be a sub-agent, <session>/agent-<id>.

    SESSION is not changed. The new session is checked before its id is printed. With --size 1k it
    contains the last answer and lists of the work done; with 12k usually all messages; with 24k also
    the latest tool calls and their results. With --size all it is a complete copy of SESSION. If the
    setting handoff_dir names a folder, each handoff also writes a document to that folder.

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

    next_step: str = option("-n", default="", help="The first task of the new session.")
    new_task: str | None = option(
        metavar="TASK",
        help="A first task unrelated to SESSION. The goal, todos, plan and task list of SESSION are left out.",
    )
    size: str | None = option(
        metavar="SIZE",
        help="The size of the handoff: 1k to 48k tokens, or all. The default is the setting handoff_size.",
    )
    print_opening: bool = flag(
        "--print", help="Print the opening of the new session; write nothing."
    )
    print_whole_digest: bool = flag(
        "--full", help="With --print: print the whole digest, without a size limit."
    )
    must_edit: bool = flag(
        "--edit", help="Edit the digest in your editor first; an empty text cancels the handoff."
    )
    part_options: Any = PART_OPTIONS
    target_agent: str | None = TARGET_AGENT_OPTION


class RolloverOptions(ChildOptions, function="resume_hooks.cli.handoff:roll_over_session"):
    """Create a new session with the lineage of SESSION, a digest of it, and a summary by a model.

    The client asks the model, without tools, and keeps no session of it. The model reads SESSION in
    up to three parts. SESSION is not changed. If the model gives no answer, the child has only the
    digest, and the receipt says why. A dry run asks no model. The child is checked before its id is
    printed.

    \b
    Examples:
      resume-hooks rollover
      resume-hooks rollover 5e12a303 -p "focus on the parser" --start
      resume-hooks rollover 5e12a303 --dry-run
      resume-hooks rollover "Fix the parser" --quick
    """

    prompt: str = option(
        "-p", default="", help="What the summary should stress, in your own words."
    )
    quick: bool = flag(help="Write only the lineage; ask no model.")
    with_summary: bool = flag(help="Ask a model (the default).")
    model: str | None = option(
        help="The model that writes the summary. The default is the setting summary_model. "
        "For another agent's session, it is that agent's own model."
    )
    timeout: int | None = option(
        type=click.IntRange(1),
        help=f"The time limit for the summary in seconds. The default is {MODEL_TIMEOUT_SECONDS}.",
    )


class TrimOptions(ChildOptions, function="resume_hooks.cli.trim:trim_session"):
    """Create a child of SESSION with placeholders for old tool output and other long contents.

    SESSION itself is only read, unless you use --in-place. No content is lost, because each
    placeholder names its original. By default the last turns stay unchanged. If these turns are very
    long, only their last tool results stay unchanged.

    \b
    Rules, the least useful contents first:
      superseded   files that were read again or changed later
      repeats      outputs that were repeated word for word
      failures     failed attempts that later succeeded
      thinking     thinking blocks of finished turns
      attachments  files and hook output that the client attached
      media        images and documents
      results      tool outputs over the threshold
      inputs       file contents and long commands given to tools
      pasted       the middle of long pastes in prompts
      assistant    long answers of the model, with --assistant

    With --smart, rules first remove what is certainly unneeded: files read again or changed later,
    repeated outputs, failures that were fixed, thinking blocks of finished turns. A model chooses
    among the rest; it is asked through the client and has no tools. With -p the model makes every choice and
    follows your words. Your prompts, the recent turns and the last message of each turn stay. The plan is
    shown before the child is created; without a terminal, add --yes. A dry run also asks the model,
    which costs tokens. To use the plan of a dry run, save it with --json > plan.json and pass it
    with --plan plan.json.

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

    tool_names: str | None = option(
        "--tools", help="Trim only contents of these tools, for example Read,Bash,mcp__*."
    )
    thresholds: tuple[str, ...] = option(
        "--threshold",
        multiple=True,
        help="Trim outputs longer than this number of characters: 500, or Read=2000 for one tool.",
    )
    kept_turn_count: int | None = option(
        "--keep-recent",
        type=click.IntRange(0),
        help="Number of most recent turns that stay unchanged.",
    )
    trimmed_answer_count: int = option(
        "--assistant",
        type=int,
        default=0,
        help="Also trim the first N long answers, or with -N all but the last N.",
    )
    target_tokens: int | None = option(
        type=click.IntRange(1), help="Trim the least useful contents until this size is reached."
    )
    only_rules: str | None = option("--only", help="Apply only these rules from the list above.")
    skipped_rules: str | None = option(
        "--skip", help="Do not apply these rules from the list above."
    )
    min_saved_tokens: int = option(
        "--min-savings",
        type=click.IntRange(0),
        default=MIN_SAVED_TOKENS,
        show_default=True,
        help="Write nothing if the trim saves fewer tokens than this.",
    )
    in_place: bool = flag(help="Back up the session's own file and rewrite it; create no child.")
    force: bool = flag(
        help="With --in-place: rewrite the file even if a client has the session open."
    )
    part_options: Any = PART_OPTIONS


class ForkOptions(ChildOptions, function="resume_hooks.cli.fork:fork_session"):
    """Copy SESSION's live conversation, or only its beginning, into a new session.

    SESSION may be a sub-agent, <session>/agent-<id>, which then becomes a session of its own.

    SESSION itself is only read. The client sends the same messages for the copy as for SESSION. If
    the copy would end between a tool call and its result, the end moves to the nearest possible
    record, and the receipt says so. If you name a record from before a compaction or on an
    abandoned branch, the copy has the conversation as it was at that record. File backups and
    large outputs are linked, so that rewind-files works in the copy.

    With --here the copy belongs to the current folder, with --home to FOLDER, for example because
    SESSION's own folder was moved or deleted. With --to the copy is a session of the other agent:
    it has turns and tool calls as text, and no thinking.

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

    last_record: str | None = option(
        "--at",
        metavar="REF",
        help="Copy up to and including this record: a line, <session>:<line>, a uuid, or an answer's id (msg_...).",
    )
    end_time: str | None = option(
        "--before",
        metavar="TIME",
        help="Copy up to this time: a date, a time (UTC), or an age such as 30min, 2h or 3d.",
    )
    last_turn_number: int | None = option(
        "--turn",
        type=int,
        metavar="N",
        help="Copy up to the end of turn N. Negative numbers count from the end: -1 is the last turn.",
    )
    before_compaction: bool = flag(
        help="Copy the conversation as it was before the last compaction."
    )
    in_current_folder: bool = flag("--here", help="Make the copy a session of the current folder.")
    target_folder: str | None = option(
        "--home", metavar="FOLDER", help="Make the copy a session of this folder."
    )
    target_agent: str | None = TARGET_AGENT_OPTION


class UntrimOptions(ChildOptions, function="resume_hooks.cli.trim:untrim_session"):
    """Create a child of SESSION with the trimmed contents restored.

    The originals are read from the session that has them, even if it was moved, or from the backup
    of an in-place trim. Messages, tool results, inputs, images and thinking are restored unchanged.
    SESSION defaults to the last trim in this folder until you continue that trim or another session.

    \b
    Examples:
      resume-hooks untrim 5e12a303 --all
      resume-hooks untrim 5e12a303 --record 41 --record 57
      resume-hooks untrim --all --dry-run
    """

    record_numbers: tuple[int, ...] = option(
        "--record",
        multiple=True,
        type=click.IntRange(0),
        metavar="N",
        help="Restore this line of SESSION's file.",
    )
    everything: bool = flag("--all", help="Restore every trimmed record.")
    strict: bool = flag(help="Write nothing if an original can't be found.")
