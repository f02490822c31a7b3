"""What a compaction takes that is worth having back: the lineage, the user's constraints, the commands that worked.

The first message, and with it the lineage, is gone from the context then; a summary keeps little of the rest. What
was cleared away by the user is not given back.
"""

from __future__ import annotations

from collections.abc import Sequence

from resume_hooks.errors import ResumeHooksError
from resume_hooks.hooks.request import time_limit
from resume_hooks.paths import Where, find_session, named_session
from resume_hooks.reading.digest.as_text import facts, fills
from resume_hooks.reading.digest.build import digest_of
from resume_hooks.reading.digest.entries import Digest, DigestEntry
from resume_hooks.sessions import lineage_block, session_files
from resume_hooks.sessions.lineage import Ancestor, Family
from resume_hooks.transcripts.head_tail import HeadTail

LIMIT = 2.0  # seconds; the client waits
MOST = 3_900  # characters of all of it

MOST_LINEAGE = 1_900
NEAR = 12_000_000
"""Bytes at the end of a session that are read at first: some eight compactions back. As a rule they fill the room."""

SECTIONS = ("constraints", "commands")
_HEAD = "Facts about this session from before it was compacted:"


def given_back(
    session_id: str, transcript_path: str, sections: Sequence[str] = SECTIONS, most: int = MOST, limit: float = LIMIT
) -> str:
    """The facts, ``""`` where there are none, or where they can't be told in time. ``sections`` are a digest's."""
    path = named_session(transcript_path, session_id, Where()) or find_session(session_id, Where())
    if path is None:
        return ""
    try:
        with time_limit(seconds=limit):
            return _facts(path, sections, most)
    except (ResumeHooksError, OSError):
        return ""


def _facts(path: str, sections: Sequence[str], most: int) -> str:
    session = session_files.session_file(path)
    lineage = Family(Where()).lineage(path)
    rows = lineage[_cleared(lineage) :]
    block = _block(rows, path) if len(rows) > 1 else ""
    cleared = {row.session_id for row in lineage[: _cleared(lineage)]}
    room = most - len(_HEAD) - len(block) - len("\n\n") * 2
    for reach in (NEAR, None):
        whole = digest_of(session, Where(), sections, reach=reach)
        digest = _without(whole, sections, cleared)
        if not whole.passed_over or fills(digest, sections, room):
            break  # what stands farther back would not be shown
    known = facts(digest, sections, room)
    return "\n\n".join([_HEAD, *filter(None, (block, known))]) if block or known else ""


def _cleared(lineage: Sequence[Ancestor]) -> int:
    """How many of a lineage lie before its last ``/clear``: what was said there is none of the session's own."""
    return next((at for at in range(len(lineage) - 1, 0, -1) if lineage[at].kind == "clear"), 0)


def _block(rows: Sequence[Ancestor], path: str) -> str:
    glance = HeadTail(path)
    block = lineage_block.render(
        rows[:-1], title=glance.title, session_id=rows[-1].session_id, file=path, created=glance.created
    )
    return lineage_block.shortened(block, MOST_LINEAGE)


def _without(digest: Digest, sections: Sequence[str], sessions: set[str]) -> Digest:
    """The sections that are given back, without the entries out of some ``sessions`` and of their sub-agents."""

    def stays(entry: DigestEntry) -> bool:
        return entry.ref.partition(":")[0].partition("/")[0] not in sessions

    return Digest({name: tuple(filter(stays, digest.of(name))) for name in sections})
