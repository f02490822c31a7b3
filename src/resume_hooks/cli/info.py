"""``info`` scans a session and prints its facts. ``rename`` changes a session's title or tag."""

from __future__ import annotations

import os
from typing import Any

from resume_hooks.cli.options import list_part_notes
from resume_hooks.cli.output import facts_table, show_scan_progress
from resume_hooks.cli.verbs.sessions import InfoOptions, RenameOptions
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions import rename
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import (
    agent_name_of_path,
    agent_with_name,
    original_path,
    row_of_agent,
)
from resume_hooks.sessions.archived.sessions import archive_fields
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.sessions.record_references import RecordLines
from resume_hooks.sessions.session import Session
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import format_count
from resume_hooks.transcripts import tokens
from resume_hooks.transcripts.lines import (
    MIN_GIANT_FILE_BYTES,
    MIN_GIANT_LINE_BYTES,
    measure_longest_line,
)
from resume_hooks.transcripts.transcript import Transcript, scan_transcript
from resume_hooks.transcripts.trimmable_pieces import PieceCollector


def print_session_info(options: InfoOptions) -> None:
    """Scan a session and print its facts: title, dates, size, tokens, turns and damage."""
    session = options.locate_session(allow_other_agents=True)
    piece_counts = PieceCollector()
    with show_scan_progress(session.path, quiet=options.as_json) as observers:
        transcript = scan_transcript(session.path, observers=[*observers, piece_counts])
    data = collect_session_facts(
        Session.from_file(session, options.where), transcript, piece_counts
    )
    data["longest_line"] = measure_longest_line(data["session_file"])
    limitation = row_of_agent(session.agent).loss_note
    notes = [
        *([limitation] if limitation else []),
        *list_part_notes(session.session_id, options.where),
    ]
    options.print_answer(data, lambda: facts_table(_make_info_rows(data)), notes)


def collect_session_facts(
    session: Session, transcript: Transcript, pieces: PieceCollector
) -> dict[str, Any]:
    """Return a session's facts in the form that the JSON schema of ``info`` describes.

    ``transcript`` and ``pieces`` come from the same scan of the session's file.
    """
    ends = session.head_tail
    file, agent = (
        original_path(ends.path, session.where),
        agent_name_of_path(ends.path, session.where),
    )
    if file == ends.path:
        line_count = transcript.line_count
    else:
        line_count = len(RecordLines(file, session.session_id))
    return {
        "session_id": session.session_id,
        "agent": agent,
        "session_file": file,
        "title": ends.title,
        "tag": ends.tag,
        "cwd": ends.cwd,
        "branch": ends.branch,
        "client_version": ends.version,
        "created": ends.created_at,
        "ended": ends.ended_at,
        "size": ends.size if file == ends.path else os.path.getsize(file),
        **archive_fields(ends.path, session.where),
        "lines": line_count,
        "bad_lines": transcript.damaged_lines,
        "torn": transcript.is_torn,
        "records": len(transcript.nodes),
        "live_records": len(transcript.chain),
        "turns": max(
            sum(node.is_prompt and not node.is_copied for node in transcript.nodes),
            len(transcript.turns),
        ),
        "live_turns": len(transcript.turns),
        "tool_calls": len(transcript.nodes_by_call_id),
        "unanswered_calls": sum(
            answer is None for _, answer in transcript.nodes_by_call_id.values()
        ),
        "models": transcript.models,
        "context": session.measure_chain(transcript.chain, pieces)[0],
        "characters_per_token": round(tokens.measure_characters_per_token(transcript.chain), 2),
    }


def _make_info_rows(data: dict[str, Any]) -> list[tuple[str, object]]:
    context: tokens.ContextSize = data["context"]
    is_giant = data["agent"] == CLAUDE_NAME and (
        data["size"] >= MIN_GIANT_FILE_BYTES or data["longest_line"] >= MIN_GIANT_LINE_BYTES
    )
    about_text = "about " if context.is_estimate else ""
    if context.is_estimate:
        context_note = f", {context.uncertainty_reason}"
    elif context.added_tokens > 0:
        context_note = f", {context.added_tokens:,} of them since the last answer"
    else:
        context_note = ""
    bad_lines = len(data["bad_lines"])
    if bad_lines:
        damage_text = format_count(bad_lines, "unreadable line")
    else:
        damage_text = "no unreadable line; fsck checks more"
    return [
        ("title", data["title"]),
        ("id", data["session_id"]),
        *(
            [("agent", agent_with_name(data["agent"], Where()).label)]
            if data["agent"] != CLAUDE_NAME
            else []
        ),
        ("file", data["session_file"]),
        ("folder", data["cwd"] or "unknown"),
        ("branch", data["branch"] or "none"),
        ("client", data["client_version"] or "unknown"),
        ("dates", f"{data['created']} .. {data['ended']}"),
        (
            "size",
            (
                f"{format_bytes(data['size'])}, {data['lines']:,} lines, the longest "
                f"{format_bytes(data['longest_line'])}"
            ),
        ),
        *(
            [
                (
                    "giant",
                    (
                        "the client may hang on this session: "
                        f"{shell_command('archive --slim ' + data['session_id'])}"
                    ),
                )
            ]
            if is_giant
            else []
        ),
        *(
            [
                (
                    "archived copy",
                    f"{data['form']}, since {data['kept_at']}: Claude Code no longer has the session",
                )
            ]
            if data["kept"]
            else []
        ),
        (
            "context",
            f"{about_text}{context.tokens:,} tokens, {context.size_in_percent_text}{context_note}",
        ),
        (
            "turns",
            (
                f"{data['turns']:,}, {data['live_turns']:,} of them live, with "
                f"{data['tool_calls']:,} tool calls"
            ),
        ),
        ("records", f"{data['records']:,} linked, {data['live_records']:,} of them live"),
        ("damage", damage_text + (", torn last line" if data["torn"] else "")),
    ]


def rename_session(options: RenameOptions) -> None:
    """Change a session's title or tag, or remove its tag, and print the old and the new value.

    A dry run only prints the two values.
    """
    if (options.title is not None) + (options.tag is not None) + options.remove_tag != 1:
        raise UsageError(
            "Give exactly one of TITLE, --tag and --no-tag", "resume-hooks rename --help"
        )
    if options.tag is not None and not options.tag.strip():
        raise UsageError("The tag is empty", "Give at least one visible character, or --no-tag.")
    label = "tag" if options.title is None else "title"
    if options.title is None:
        change = rename.plan_tag(options.locate_session(), options.tag or "", options.where)
    else:
        change = rename.plan_title(
            options.locate_session(), options.title, options.where, force=options.force
        )
    is_written = bool(change.records) and not options.dry_run
    if is_written:
        rename.write_label(change)
    data = {
        "session_id": change.session.session_id,
        "file": change.session.path,
        "old": change.old_label,
        "new": change.new_label,
        "written": is_written,
    }

    def format_label_change() -> str:
        if not change.records:
            return f"The session's {label} is {change.new_label or 'none'} already. Nothing was written."
        facts = [
            (f"new {label}", change.new_label or "none"),
            (f"old {label}", change.old_label or "none"),
        ]
        facts += [("id", change.session.session_id), ("file", change.session.path)]
        return facts_table(facts) + ("" if is_written else "\n\nNothing was written.")

    options.print_answer(data, format_label_change, change.warnings)
