"""Run ``share``: write a session as one file for a colleague.

The colleague reads the file in a browser and continues the session with ``import``.
"""

from __future__ import annotations

import os

from resume_hooks.cli.output import facts_table, print_text, show_scan_progress
from resume_hooks.derive.untrim import scan_trimmed_session
from resume_hooks.parts.share.export.document import Document
from resume_hooks.parts.share.export.document_file import (
    measure_chunks,
    read_status_of_file_to_replace,
    write_document,
)
from resume_hooks.parts.share.export.shared_page import (
    PAGE_OPTIONS,
    PackedBundle,
    open_packed_bundle,
)
from resume_hooks.parts.share.verbs import ShareOptions
from resume_hooks.parts.share.verbs.export import (
    build_receipt,
    format_removed_secrets,
    resolve_output_path,
    select_sessions,
)
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.system.git_worktrees import repository_root
from resume_hooks.system.invocation import quote_word, shell_command
from resume_hooks.system.text import format_count

TRIMMED_CONTENT_NOTE = (
    "Trimmed content of this session is shared as placeholders. To share the originals: {command}, then share the new "
    "session."
)

FILE_IN_REPOSITORY_NOTE = "The file is in the repository {root}: take care not to commit it."


def share_session(options: ShareOptions) -> None:
    """Show what will be removed, ask for confirmation, and write the file to share."""
    ask_first = options.must_ask("Sharing")
    session = options.locate_session()
    sessions, warnings = select_sessions(session, options)
    trimmed_session = scan_trimmed_session(session)
    if (trimmed_session.trimmed_nodes or trimmed_session.undone_trim_count) and len(sessions) == 1:
        warnings = [
            *warnings,
            TRIMMED_CONTENT_NOTE.format(
                command=shell_command(f"untrim {session.session_id[:8]} --all")
            ),
        ]
    with show_scan_progress(session.path, quiet=options.as_json) as progress_observers:
        document = Document(sessions, PAGE_OPTIONS, options.where, progress_observers)
    path = resolve_output_path(options.output, document.name)
    replaced_file_status = read_status_of_file_to_replace(path, force=options.force)
    with open_packed_bundle(document, options.where) as bundle:
        if ask_first:
            print_text(facts_table(_build_removed_content_rows(bundle)))
        is_confirmed = options.confirm_write(f"Write that to {path}?", ask_first=ask_first)
        if is_confirmed:
            written_file = write_document(path, bundle.build_chunks(document), replaced_file_status)
        else:
            written_file = measure_chunks(bundle.build_chunks(document))
    if is_confirmed and (repository := repository_root(os.path.dirname(path))):
        warnings = [*warnings, FILE_IN_REPOSITORY_NOTE.format(root=repository)]
    receipt_data = build_receipt(document, path, written_file, is_written=is_confirmed) | {
        "redacted": dict(bundle.redactor.counts_by_kind),
        "folders": bundle.redactor.folder_count,
        "images": bundle.redactor.media_count,
        "packed": bundle.byte_count,
    }
    facts: list[tuple[str, object]] = [
        ("file" if is_confirmed else "would be", path),
        (
            "size",
            (
                f"{format_bytes(written_file.byte_count)}, including the compressed session of "
                f"{format_bytes(bundle.byte_count)}"
            ),
        ),
        *([] if ask_first else _build_removed_content_rows(bundle)),
        ("to read it", "open it in a browser"),
        # The recipient runs this command in a shell.
        (
            "to go on",
            f"resume-hooks import {quote_word(path.rpartition('/')[2])}",
        ),
    ]
    closing_text = "" if is_confirmed else "\n\nNothing was written."
    options.print_answer(receipt_data, lambda: facts_table(facts) + closing_text, warnings)


def _build_removed_content_rows(bundle: PackedBundle) -> list[tuple[str, object]]:
    """Return table rows that count removed secrets, replaced home folders and images."""
    redactor = bundle.redactor
    rows: list[tuple[str, object]] = [
        ("secrets", format_removed_secrets(dict(redactor.counts_by_kind))),
        ("home folders", f"replaced by ~ in {format_count(redactor.folder_count, 'place')}"),
    ]
    return rows + (
        [("images", f"{redactor.media_count:,}, not searched")] if redactor.media_count else []
    )
