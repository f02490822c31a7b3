"""``export``: write a session as a document for people, or as a bundle for another machine."""

from __future__ import annotations

import os
import sys
from typing import Any

from resume_hooks.cli.options import current_folder
from resume_hooks.cli.output import facts_table, print_text, scan_progress
from resume_hooks.errors import OutputFailed, UsageError
from resume_hooks.parts.share.export import FORMATS, HTML, JSON
from resume_hooks.parts.share.export.document import Document, DocumentOptions, sessions_of_lineage
from resume_hooks.parts.share.export.select_records import ALL_RECORDS, CONVERSATION, LIVE_ONLY
from resume_hooks.parts.share.export.writing import (
    WrittenFile,
    check_replaceable,
    measure_chunks,
    write_document,
)
from resume_hooks.parts.share.verbs import ExportOptions, ShareOptions
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.sessions.locate import SessionFile, resolve_transcript
from resume_hooks.sessions.transcript_files import subagent_name

STDOUT = "-"


def export_session(options: ExportOptions) -> None:
    """Write the document."""
    document_options = _document_options(options)
    session = resolve_transcript(options.locator, current_folder(), options.where, foreign=True)
    if document_options.form == JSON and session.agent != CLAUDE_NAME:
        raise UsageError(
            "A bundle only contains sessions of Claude Code",
            "Write a page or Markdown, or bundle a fork: resume-hooks fork --to claude",
        )
    sessions, warnings = lineage_or_alone(session, options)
    with scan_progress(session.path, quiet=options.as_json) as watching:
        document = Document(sessions, document_options, options.where, watching)
    if not document_options.redact:
        warnings.append("Nothing was removed: check for secrets before you share it.")
    if options.output == STDOUT and not options.dry_run:
        _print_document(document, warnings)
        return
    path = output_path(options.output, document.name)
    over = check_replaceable(path, force=options.force)
    if options.dry_run:
        written = measure_chunks(document.chunks())
    else:
        written = write_document(path, document.chunks(), over)
    data = export_receipt(document, path, written, is_written=not options.dry_run)
    options.emit(data, lambda: _export_text(data), warnings)


def _document_options(options: ExportOptions) -> DocumentOptions:
    """Return the document's options. Raise UsageError if they contradict each other."""
    options.refuse_combination("everything", "live")
    if options.as_json and options.output == STDOUT:
        raise UsageError(
            "--json and -o - both need the standard output",
            "Name a file with -o, or leave --json out.",
        )
    ending = os.path.splitext(options.output or "")[1][1:].lower()
    format_name = options.form or (ending if ending in FORMATS else HTML)
    if format_name == JSON and (options.everything or options.live or not options.thinking):
        raise UsageError(
            "A bundle contains complete sessions", "Leave --all, --live and --no-thinking out."
        )
    if options.everything:
        record_range = ALL_RECORDS
    elif options.live:
        record_range = LIVE_ONLY
    else:
        record_range = CONVERSATION
    return DocumentOptions(
        format_name, options.redact, options.thinking, record_range, options.max_chars
    )


def lineage_or_alone(
    session: SessionFile, options: ExportOptions | ShareOptions
) -> tuple[list[SessionFile], list[str]]:
    """Return the sessions for ``--lineage``, oldest first, and notes about deleted ancestors."""
    if not options.lineage or subagent_name(session.path) is not None:
        return [session], []
    sessions, deleted_ids = sessions_of_lineage(session, options.where)
    return sessions, [f"An ancestor is gone: {session_id}" for session_id in deleted_ids]


def output_path(output: str | None, name: str) -> str:
    """Return the absolute path of the output file."""
    path = os.path.join(current_folder(), os.path.expanduser(output or ""))
    return os.path.abspath(
        os.path.join(path, name) if output is None or os.path.isdir(path) else path
    )


def _print_document(document: Document, warnings: list[str]) -> None:
    """Print the document to standard output, and notes to standard error."""
    try:
        for chunk in document.chunks():
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(
            f"The document could not be printed: {error.strerror}", "Nothing else was done."
        ) from error
    for note in (left_out_text(document.left_out), *warnings):
        print_text(f"note: {note}", err=True)


def export_receipt(
    document: Document, path: str, written: WrittenFile, *, is_written: bool
) -> dict[str, Any]:
    """Return the receipt of a document in its JSON format."""
    session = document.sessions[-1]
    return {
        "session_id": session.session_id,
        "session_file": session.original,
        "document": path,
        "format": document.choice.form,
        "written": is_written,
        "size": written.size,
        "sha256": written.sha256,
        "sessions": [member.session_id for member in document.sessions],
        "turns": document.turns,
        "redacted": document.left_out,
        "images": document.pictures,
        "cut": document.cut_count,
    }


def _export_text(data: dict[str, Any]) -> str:
    facts: list[tuple[str, object]] = [
        ("document" if data["written"] else "would be", data["document"]),
        ("size", format_bytes(data["size"])),
        ("sessions", len(data["sessions"])),
        ("secrets", left_out_text(data["redacted"])),
    ]
    if data["format"] != JSON:
        facts.insert(3, ("turns", f"{data['turns']:,}"))
    if data["images"] and data["format"] == HTML:
        facts.append(("images", f"{data['images']:,}, not looked into"))
    if data["cut"]:
        facts.append(
            (
                "cut",
                f"{data['cut']:,} long texts, each with a notice (--max-chars 0 for all of them)",
            )
        )
    return facts_table(facts) + ("" if data["written"] else "\n\nNothing was written.")


def left_out_text(secrets: dict[str, int] | None) -> str:
    """Return a description of the removed secrets."""
    if secrets is None:
        return "not looked for"
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in sorted(secrets.items()))
    if kinds:
        return f"{sum(secrets.values()):,} taken out ({kinds})"
    return "none found"
