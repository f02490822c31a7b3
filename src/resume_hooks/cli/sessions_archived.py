"""``sessions --archived``: the sessions that are gone from the client's folders and kept in the vault."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from itertools import islice

import click

from resume_hooks.cli.archived_text import kept_row
from resume_hooks.cli.output import emit
from resume_hooks.cli.text_width import fitted
from resume_hooks.clock import minute
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.manifest import ArchivedSession
from resume_hooks.sessions.archived.sessions import all_vaulted
from resume_hooks.sessions.files import all_sessions
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.sessions.references import SHORT
from resume_hooks.system.git_worktrees import Project
from resume_hooks.system.text import plain_line

HEADS = ("ID", "LAST WRITTEN", "SIZE", "KEPT", "SINCE", "TITLE")


def answer(project: Project | None, scope: str, *, limit: int, offset: int, as_json: bool) -> None:
    """Print ``limit`` of them (0: all) after the first ``offset``, of a project or of all; the last written first."""
    present = {session.session_id for session in all_sessions(Where())}
    gone = all_vaulted(Where(), present)
    wanted = [kept for kept in gone if project is None or project.holds([kept.cwd], kept.project)]
    shown = list(islice(wanted, offset, offset + limit if limit else None))
    more = len(wanted) > offset + len(shown)
    data = {
        "scope": scope,
        "offset": offset,
        "more": more,
        "files": len(gone),
        "sessions": [],
        "archived": [kept_row(kept, Where()) for kept in shown],
    }
    emit("sessions", data, lambda: _text(shown, offset, more=more), as_json=as_json)


def _text(shown: Sequence[ArchivedSession], offset: int, *, more: bool) -> str:
    if not shown:
        return "The vault holds no session here that is gone from the client's folders. archive --list shows the rest."
    rows = [HEADS, *map(_cells, shown)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(HEADS) - 1)]
    room = max(len(HEADS[-1]), shutil.get_terminal_size().columns - sum(widths) - 2 * len(widths))
    lines = [
        "  ".join([*(cell.ljust(wide) for cell, wide in zip(row, widths, strict=False)), fitted(row[-1], room)])
        for row in rows
    ]
    next_page = [f"More: --offset {offset + len(shown)}, or --limit 0 for all."] if more else []
    return "\n".join(
        [
            click.style(lines[0].rstrip(), dim=True),
            *lines[1:],
            *next_page,
            "Back to the client: resume-hooks restore ID",
        ]
    )


def _cells(kept: ArchivedSession) -> tuple[str, ...]:
    written, since = minute(kept.ended), minute(kept.kept_at)[:10]
    sizes = size_text(kept.size), size_text(kept.stored)
    return kept.session_id[:SHORT], written, *sizes, since, plain_line(kept.title)
