"""How a kept session is told: as a row of ``--json``, and in a line or two for people."""

from __future__ import annotations

import os
from typing import Any

from resume_hooks import clock
from resume_hooks.archive.vault.lookup import instant, states
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import is_foreign, real
from resume_hooks.sessions.archived.manifest import ArchivedSession
from resume_hooks.sessions.lineage_block import size_text


def kept_row(kept: ArchivedSession, where: Where) -> dict[str, Any]:
    """A kept session in its documented JSON form."""
    file = real(kept.place, where, kept.home)
    return {
        "session_id": kept.session_id,
        "title": kept.title,
        "folder": kept.cwd,
        "file": file,
        "present": os.path.lexists(file),
        "kept_in": kept.folder,
        "form": "packed",
        "files": len(kept.parts),
        "size": kept.size,
        "stored": kept.stored,
        "ended": kept.ended,
        "kept_at": kept.kept_at,
        "complete": kept.complete,
        "earlier": [f"{kept.session_id}@{instant(state)}" for state in states(kept)],
    }


def kept_text(kept: ArchivedSession, where: Where) -> str:
    """The same for people."""
    gone = "" if os.path.lexists(real(kept.place, where, kept.home)) else ", only here"
    gone += f", of {kept.home}" if is_foreign(kept.home, where) else ""
    took = f"{size_text(kept.size)} packed to {size_text(kept.stored)}"
    when = f"last written {clock.minute(kept.ended)}"
    rows = [kept.title, f"   {kept.session_id} · {took} · {when}{gone}"]
    rows += [f"   before that: {kept.session_id}@{instant(state)}" for state in states(kept)]
    rows += [] if kept.complete else ["   some of its files could not be kept"]
    return "\n".join(rows)
