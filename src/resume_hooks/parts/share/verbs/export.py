"""Run ``export``: write a session as a document for people, or as a bundle for another machine."""

from __future__ import annotations

import os
import sys
from typing import Any

from resume_hooks.cli.options import current_folder
from resume_hooks.cli.output import facts_table, print_text, show_scan_progress
from resume_hooks.errors import OutputFailed, UsageError
from resume_hooks.parts.share.export import DOCUMENT_FORMATS, HTML, JSON
from resume_hooks.parts.share.export.document import (
    Document,
    DocumentOptions,
    find_lineage_sessions,
)
from resume_hooks.parts.share.export.document_file import (
    SizeAndDigest,
    measure_chunks,
    read_status_of_file_to_replace,
    write_document,
)
from resume_hooks.parts.share.export.select_records import ALL_RECORDS, CONVERSATION, LIVE_ONLY
from resume_hooks.parts.share.verbs import ExportOptions, ShareOptions
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.sessions.locate import SessionFile, resolve_transcript
from resume_hooks.sessions.transcript_files import subagent_name

STDOUT_NAME = "-"


def export_session(options: ExportOptions) -> None:
    """Write the document, and print the result."""
    document_options = _build_document_options(options)
    session = resolve_transcript(
        options.locator, current_folder(), options.where, allow_other_agents=True
    )
    if document_options.format == JSON and session.agent != CLAUDE_NAME:
        raise UsageError(
            "A bundle only contains Claude Code sessions",
            "Write a page or Markdown. For a bundle, first make a fork: resume-hooks fork --to claude",
        )
    sessions, warnings = select_sessions(session, options)
    with show_scan_progress(session.path, quiet=options.as_json) as progress_observers:
        document = Document(sessions, document_options, options.where, progress_observers)
    if not document_options.must_redact:
        warnings.append("Nothing was removed: check for secrets before you share the file.")
    if options.output == STDOUT_NAME and not options.dry_run:
        _print_document(document, warnings)
        return
    path = resolve_output_path(options.output, document.name)
    replaced_file_status = read_status_of_file_to_replace(path, force=options.force)
    if options.dry_run:
        written_file = measure_chunks(document.build_chunks())
    else:
        written_file = write_document(path, document.build_chunks(), replaced_file_status)
    receipt_data = build_receipt(document, path, written_file, is_written=not options.dry_run)
    options.print_answer(receipt_data, lambda: _format_receipt(receipt_data), warnings)


def _build_document_options(options: ExportOptions) -> DocumentOptions:
    """Return the options of the document. Raise UsageError if the given options cannot be combined."""
    options.refuse_combination("includes_all_branches", "includes_only_live_records")
    if options.as_json and options.output == STDOUT_NAME:
        raise UsageError(
            "--json and -o - both need the standard output",
            "Name a file with -o, or leave --json out.",
        )
    file_extension = os.path.splitext(options.output or "")[1][1:].lower()
    format_name = options.document_format or (
        file_extension if file_extension in DOCUMENT_FORMATS else HTML
    )
    if format_name == JSON and (
        options.includes_all_branches or options.includes_only_live_records or not options.thinking
    ):
        raise UsageError(
            "A bundle always contains complete sessions", "Omit --all, --live and --no-thinking."
        )
    if options.includes_all_branches:
        record_range = ALL_RECORDS
    elif options.includes_only_live_records:
        record_range = LIVE_ONLY
    else:
        record_range = CONVERSATION
    return DocumentOptions(
        format_name, options.redact, options.thinking, record_range, options.max_chars
    )


def select_sessions(
    session: SessionFile, options: ExportOptions | ShareOptions
) -> tuple[list[SessionFile], list[str]]:
    """Return the sessions to export, oldest first, and notes for the user about deleted ancestors.

    The option ``--lineage`` adds the session's ancestors.
    """
    if not options.lineage or subagent_name(session.path) is not None:
        return [session], []
    sessions, deleted_ids = find_lineage_sessions(session, options.where)
    return sessions, [f"An ancestor is gone: {session_id}" for session_id in deleted_ids]


def resolve_output_path(output: str | None, file_name: str) -> str:
    """Return the absolute path of the file to write.

    ``output`` is the path of a file, the path of a folder, or None. If it is a folder or None, the
    name of the file is ``file_name``.
    """
    path = os.path.join(current_folder(), os.path.expanduser(output or ""))
    return os.path.abspath(
        os.path.join(path, file_name) if output is None or os.path.isdir(path) else path
    )


def _print_document(document: Document, warnings: list[str]) -> None:
    """Print the document to standard output, and the notes to standard error."""
    try:
        for chunk in document.build_chunks():
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputFailed(
            f"The document could not be printed: {error.strerror}", "Nothing else was done."
        ) from error
    for note in (format_removed_secrets(document.removed_secret_counts), *warnings):
        print_text(f"note: {note}", err=True)


def build_receipt(
    document: Document, path: str, written_file: SizeAndDigest, *, is_written: bool
) -> dict[str, Any]:
    """Return the result of an export as a dictionary with the fields of its JSON output."""
    session = document.sessions[-1]
    return {
        "session_id": session.session_id,
        "session_file": session.original_path,
        "document": path,
        "format": document.options.format,
        "written": is_written,
        "size": written_file.byte_count,
        "sha256": written_file.sha256,
        "sessions": [member.session_id for member in document.sessions],
        "turns": document.turns,
        "redacted": document.removed_secret_counts,
        "images": document.picture_count,
        "cut": document.shortened_text_count,
    }


def _format_receipt(data: dict[str, Any]) -> str:
    facts: list[tuple[str, object]] = [
        ("document" if data["written"] else "would be", data["document"]),
        ("size", format_bytes(data["size"])),
        ("sessions", len(data["sessions"])),
        ("secrets", format_removed_secrets(data["redacted"])),
    ]
    if data["format"] != JSON:
        facts.insert(3, ("turns", f"{data['turns']:,}"))
    if data["images"] and data["format"] == HTML:
        facts.append(("images", f"{data['images']:,}, not searched"))
    if data["cut"]:
        facts.append(
            (
                "cut",
                f"{data['cut']:,} long texts, each with a notice (--max-chars 0 shows them in full)",
            )
        )
    return facts_table(facts) + ("" if data["written"] else "\n\nNothing was written.")


def format_removed_secrets(secrets: dict[str, int] | None) -> str:
    """Return the number of removed secrets of each kind as text."""
    if secrets is None:
        return "not searched for"
    kind_counts = ", ".join(f"{kind} {count:,}" for kind, count in sorted(secrets.items()))
    if kind_counts:
        return f"{sum(secrets.values()):,} removed ({kind_counts})"
    return "none found"
