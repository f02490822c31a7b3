"""``share``: write a session as one file that a colleague reads in a browser and continues with ``import``."""

from __future__ import annotations

import os

from resume_hooks.cli.output import facts_table, print_text, scan_progress
from resume_hooks.derive.untrim import read_trimmed
from resume_hooks.parts.share.export.document import Document
from resume_hooks.parts.share.export.shared_page import PAGE_OPTIONS, PackedBundle, pack_bundle
from resume_hooks.parts.share.export.writing import (
    check_replaceable,
    measure_chunks,
    write_document,
)
from resume_hooks.parts.share.verbs import ShareOptions
from resume_hooks.parts.share.verbs.export import (
    export_receipt,
    left_out_text,
    lineage_or_alone,
    output_path,
)
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.system.git_worktrees import repository_root
from resume_hooks.system.invocation import quote_word, shell_command
from resume_hooks.system.text import format_count

TRIMMED_NOTE = (
    "Trimmed content of this session is shared as placeholders. To share the originals: {command}, then share the new "
    "session."
)

REPOSITORY_NOTE = "The file is in the repository {root}: take care not to commit it."


def share_session(options: ShareOptions) -> None:
    """Show the counts of removed content, ask for confirmation, and write the file."""
    asks = options.asks("Sharing")
    session = options.locate_session()
    sessions, warnings = lineage_or_alone(session, options)
    trimmed = read_trimmed(session)
    if (trimmed.trimmed or trimmed.undone) and len(sessions) == 1:
        warnings = [
            *warnings,
            TRIMMED_NOTE.format(command=shell_command(f"untrim {session.session_id[:8]} --all")),
        ]
    with scan_progress(session.path, quiet=options.as_json) as watching:
        document = Document(sessions, PAGE_OPTIONS, options.where, watching)
    path = output_path(options.output, document.name)
    over = check_replaceable(path, force=options.force)
    with pack_bundle(document, options.where) as bundle:
        if asks:
            print_text(facts_table(_removed_counts(bundle)))
        agreed = options.confirm_write(f"Write that to {path}?", is_asking=asks)
        if agreed:
            written = write_document(path, bundle.chunks(document), over)
        else:
            written = measure_chunks(bundle.chunks(document))
    if agreed and (root := repository_root(os.path.dirname(path))):
        warnings = [*warnings, REPOSITORY_NOTE.format(root=root)]
    data = export_receipt(document, path, written, is_written=agreed) | {
        "redacted": dict(bundle.taken.kinds),
        "folders": bundle.taken.folders,
        "images": bundle.taken.pictures,
        "packed": bundle.size,
    }
    facts: list[tuple[str, object]] = [
        ("file" if agreed else "would be", path),
        (
            "size",
            f"{format_bytes(written.size)}, of it {format_bytes(bundle.size)} the session, packed",
        ),
        *([] if asks else _removed_counts(bundle)),
        ("to read it", "open it in a browser"),
        (
            "to go on",
            f"resume-hooks import {quote_word(path.rpartition('/')[2])}",
        ),  # for the recipient's shell
    ]
    last = "" if agreed else "\n\nNothing was written."
    options.emit(data, lambda: facts_table(facts) + last, warnings)


def _removed_counts(bundle: PackedBundle) -> list[tuple[str, object]]:
    """Return the counts of removed content, never the content itself."""
    redactor = bundle.taken
    rows: list[tuple[str, object]] = [
        ("secrets", left_out_text(dict(redactor.kinds))),
        ("home folders", f"{format_count(redactor.folders, 'place')}, shown as ~"),
    ]
    return rows + (
        [("images", f"{redactor.pictures:,}, not looked into")] if redactor.pictures else []
    )
