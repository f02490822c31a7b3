"""``index``: update, show or rebuild the search index."""

from __future__ import annotations

from resume_hooks.cli.output import table
from resume_hooks.cli.progress import at_work
from resume_hooks.cli.verbs.search import IndexOptions
from resume_hooks.search.index.connect import opened_index
from resume_hooks.search.index.status import Status, status_of
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.system.text import counted


def index(options: IndexOptions) -> None:
    """Update the index, or look at it."""
    options.refuse_together("looking", "rebuild")
    if options.looking:
        status, read, notes = status_of(options.where), 0, []
    else:
        with (
            at_work("Indexing", quiet=options.as_json) as progress,
            opened_index(options.where, progress=progress, rebuild=options.rebuild) as index,
        ):
            read, notes = index.outcome.size, index.notes
        status = status_of(options.where)
    options.emit({**status._asdict(), "bytes_read": read}, lambda: _text(status, read), notes)


def _text(status: Status, read: int) -> str:
    share = f" ({100 * status.size / status.transcripts_size:.1f} %)" if status.transcripts_size else ""
    rows: list[tuple[str, object]] = [
        ("index", status.file),
        ("state", status.state if not status.behind else f"{status.state}, {counted(status.behind, 'file')} behind"),
        ("transcripts", f"{counted(status.transcripts, 'file')}, {size_text(status.transcripts_size)}"),
        ("holds", f"{counted(status.sessions, 'session')}, {counted(status.records, 'record')}"),
        *([("vault", f"{status.vaulted:,} of the sessions are archived copies")] if status.vaulted else []),
        ("size", f"{size_text(status.size)}{share}"),
    ]
    return table([*rows, *([("read now", size_text(read))] if read else [])])
