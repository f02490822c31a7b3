"""Run ``import``: create a session of this folder from a file or from standard input."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from resume_hooks.cli.child import (
    check_results_text,
    print_child,
    refuse_start_in_other_folder,
    refuse_start_without_client,
)
from resume_hooks.cli.options import current_folder
from resume_hooks.cli.output import facts_table
from resume_hooks.cli.value_with_fields import ValueWithFields
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.imports.plan_import import ImportSource
from resume_hooks.derive.imports.read_bundle import is_bundle, unpack_bundle
from resume_hooks.derive.verbs import import_
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.import_ import (
    ImportedSession,
    ImportOutcome,
    ImportSpec,
    import_sessions,
)
from resume_hooks.errors import ImportFailed, UsageError
from resume_hooks.parts.share.export.shared_page import unpack_embedded_bundle
from resume_hooks.parts.share.verbs import ImportOptions
from resume_hooks.paths import Where, canonical_path
from resume_hooks.sessions.locator_forms import IMPORT_REMEDY, is_address
from resume_hooks.storage.staging import CHUNK_BYTES, MAX_IMPORT_BYTES, file_chunks, stage_chunks
from resume_hooks.system.text import format_count, plain_line

STDIN_NAME = "-"
UNVERIFIED_CONTENT_NOTE = "The file's content is unverified: its author could write anything."
NO_BACKUPS_NOTE = (
    "A bundle has no file backups, so rewind-files can't restore files from before the import."
)


def import_transcript(options: ImportOptions) -> None:
    """Import the file or standard input, and print the result."""
    refuse_start_in_other_folder(options)
    if options.source == STDIN_NAME and options.start:
        raise UsageError(
            "--start needs a terminal as its standard input, so - can't read the session from there",
            "Leave --start out.",
        )
    home = options.home or current_folder()
    refuse_start_without_client(options, home)
    spec = ImportSpec(canonical_path(home), options.imports_every_record, options.force)
    caller = Caller(options.where, dry_run=options.dry_run)
    with _open_source(options.source, options.max_bytes) as source:
        if is_bundle(source.path):
            sessions, warnings = _import_bundle(source, spec, caller)
            # The last session of a bundle is the session that was exported. The sessions before it
            # are its ancestors.
            receipt = sessions[-1].receipt
            receipt = receipt._replace(warnings=(*receipt.warnings, *warnings))
            fields = {"imported": None, "bundle": sessions}
            print_child(
                options,
                receipt,
                fields,
                lambda: _format_bundle_import(
                    source, sessions, is_whole=options.imports_every_record
                ),
            )
            return
        outcome = import_.import_transcript(source, spec, caller)
    existing = outcome.plan.earlier_import
    existing_id = None if existing is None else existing.session_id
    facts = ValueWithFields(outcome.plan, {"existing": existing_id})
    print_child(
        options,
        outcome.receipt,
        {"imported": facts, "bundle": []},
        lambda: _format_import(outcome),
    )


def import_file(source: str, home: str) -> tuple[Receipt, str]:
    """Import a file into the folder ``home``. Return the receipt, and the text that describes the result.

    The core calls this function to answer ``questions.import_file``. The receipt for a bundle
    describes its last session.
    """
    spec, caller = ImportSpec(canonical_path(home)), Caller(Where())
    with _open_source(source, MAX_IMPORT_BYTES) as import_source:
        if is_bundle(import_source.path):
            receipt = _import_bundle(import_source, spec, caller)[0][-1].receipt
        else:
            receipt = import_.import_transcript(import_source, spec, caller).receipt
    return receipt, UNVERIFIED_CONTENT_NOTE


@contextlib.contextmanager
def _open_source(source: str, max_bytes: int) -> Iterator[ImportSource]:
    """Yield a private copy of a file or of standard input, and delete it after the ``with`` block."""
    if is_address(source):
        raise UsageError("Web addresses are not supported", IMPORT_REMEDY)
    if source == STDIN_NAME:
        path = ""
    else:
        path = os.path.abspath(os.path.expanduser(source))
    if path and os.path.realpath(path).startswith(os.path.realpath(Where().projects) + os.sep):
        raise UsageError(
            f"{path} is a session of this machine", "resume-hooks fork makes a linked copy of it."
        )
    chunks = file_chunks(path) if path else _read_stdin()
    with (
        stage_chunks(chunks, max_bytes, Where()) as staged,
        unpack_embedded_bundle(staged, max_bytes, Where()) as unpacked_file,
    ):
        yield ImportSource(
            unpacked_file.path,
            path or "the standard input",
            unpacked_file.sha256,
            unpacked_file.size,
        )


def _read_stdin() -> Iterator[bytes]:
    """Yield the bytes of standard input. Raise ImportFailed if it cannot be read."""
    try:
        yield from iter(lambda: sys.stdin.buffer.read(CHUNK_BYTES), b"")
    except OSError as error:
        raise ImportFailed(
            f"The standard input can't be read: {error.strerror}", "Give the path of a file."
        ) from error


def _format_import(outcome: ImportOutcome) -> str:
    plan, receipt = outcome.plan, outcome.receipt
    if plan.earlier_import is not None:
        return facts_table(
            [
                (
                    "known",
                    "the same file was imported before, so nothing was written (--force creates another)",
                ),
                ("title", receipt.title),
                ("id", receipt.parent_session_id),
                ("file", receipt.parent_file),
                ("in Claude Code", receipt.client_command),
                ("in a shell", receipt.shell_command),
            ]
        )
    extent = (
        f"{format_count(plan.record_count, 'record')} of {format_count(plan.line_count, 'line')}"
    )
    if plan.damaged_line_count:
        extent += f", {plan.damaged_line_count:,} damaged"
    if plan.hidden_record_count:
        extent += (
            f"; {plan.hidden_record_count:,} of them visible to the model but not on the screen"
        )
    facts = [
        ("imported" if receipt.written else "would import", receipt.title),
        ("from", plain_line(plan.source.name)),
        ("sha256", plan.source.sha256),
    ]
    if receipt.written:
        facts += [("id", receipt.session_id), ("file", receipt.file)]
    facts += [
        ("took over", extent),
        ("tokens", f"about {receipt.tokens_after:,}"),
        ("checks", check_results_text(receipt)),
        ("note", UNVERIFIED_CONTENT_NOTE),
    ]
    if receipt.written:
        facts += [("in Claude Code", receipt.client_command), ("in a shell", receipt.shell_command)]
    return facts_table(facts)


def _import_bundle(
    source: ImportSource, spec: ImportSpec, caller: Caller
) -> tuple[list[ImportedSession], list[str]]:
    """Import all sessions of a bundle. Return the imported sessions, and notes for the user."""
    with unpack_bundle(source.path, caller.where) as bundled_sessions:
        imported_sessions = import_sessions(bundled_sessions, source.name, spec, caller)
        damaged_count = sum(session.checksums.damaged for session in bundled_sessions)
        missing_file_count = sum(
            session.checksums.left_out + session.rejected_file_count for session in bundled_sessions
        )
    notes = []
    if damaged_count:
        damaged_text = format_count(damaged_count, "damaged line")
        notes.append(f"{damaged_text} left out: a bundle can't contain them.")
    if missing_file_count:
        files_text = format_count(missing_file_count, "file")
        notes.append(f"{files_text} of the sessions could not be imported.")
    if spec.imports_all_records:
        notes.append(NO_BACKUPS_NOTE)
    return imported_sessions, notes


def _format_bundle_import(
    import_source: ImportSource, imported_sessions: list[ImportedSession], *, is_whole: bool
) -> str:
    last_receipt = imported_sessions[-1].receipt
    if any(session.receipt.written for session in imported_sessions):
        action = "brought in"
    else:
        action = "would bring in"
    facts: list[tuple[str, object]] = []
    for session in imported_sessions:
        heading = "known" if session.existed_before else action
        names = (session.receipt.title, session.session_id)
        facts.append((heading, " · ".join(filter(None, names))))
    if is_whole:
        extent_phrase = "complete, with their files"
    else:
        extent_phrase = "only the conversations (add --whole if the bundle is your own)"
    check_count = sum(len(session.receipt.checks) for session in imported_sessions)
    checks = f"{check_count} passed" if last_receipt.written else "not run: nothing was written"
    facts += [
        ("from", plain_line(import_source.name)),
        ("taken over", extent_phrase),
        ("at home in", last_receipt.folder),
        ("checks", checks),
    ]
    if imported_sessions[-1].session_id:
        facts += [
            ("in Claude Code", last_receipt.client_command),
            ("in a shell", last_receipt.shell_command),
        ]
    return facts_table(facts)
