"""The sessions that share a secret: the one that was named, those that came from it, and those that it came from.

A child holds its parent's own records. Gone ones count, too: the vault or the trash may still hold them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from resume_hooks.archive.trash import contents
from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import Where
from resume_hooks.sessions.archived import manifest
from resume_hooks.sessions.files import SessionFile
from resume_hooks.sessions.lineage import Family
from resume_hooks.sessions.link_log import read_links
from resume_hooks.transcripts.provenance import read_parent

OWN, CHILD, PARENT, OTHER = "own", "child", "parent", "other"
"""How a session stands to the one that was named."""


def family(session: SessionFile, where: Where) -> dict[str, str]:
    """The ids of the family's sessions, each with how it stands to the one that was named."""
    known = Family(where)
    above: list[str] = []
    with contextlib.suppress(SessionNotFound):  # gone since it was named
        above = [row.session_id for row in known.lineage(session.path)[:-1] if row.session_id]
    below = [each.row.session_id for each in known.descendants(session.session_id)]
    children = [*below, *_told([session.session_id, *below], where)]
    return dict.fromkeys(above, PARENT) | dict.fromkeys(children, CHILD) | {session.session_id: OWN}


def _told(found: list[str], where: Where) -> list[str]:
    """The children of these, and theirs, that only our links, the vault or the trash tell of."""
    pairs = list(_pairs(where))
    seen, waiting, more = set(found), list(found), []
    while waiting:
        parent = waiting.pop()
        new = [child for above, child in pairs if above == parent and child not in seen]
        seen.update(new)
        waiting += new
        more += new
    return more


def _pairs(where: Where) -> Iterator[tuple[str, str]]:
    """Parents and their children."""
    yield from ((link.parent_id, link.child_id) for link in read_links(where))
    yield from ((kept.about.parent[0], kept.session_id) for kept in manifest.held(where) if kept.about.parent)
    for entry in contents.held(where):
        try:
            parent = read_parent(entry.kept(entry.parts[0]))
        except OSError:
            continue  # an interrupted delete left it where it was
        if parent is not None:
            yield parent.session_id, entry.session_id
