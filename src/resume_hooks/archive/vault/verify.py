"""Verifying: everything in the vault read and compared with its manifests; nothing is changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import NamedTuple

from resume_hooks.paths import Where
from resume_hooks.sessions.archived import manifest, unpack
from resume_hooks.sessions.archived.layout import vault
from resume_hooks.sessions.archived.manifest import ArchivedSession, why_unreadable


class ArchiveFinding(NamedTuple):
    """Something wrong in the vault: ``name`` is missing, damaged or unreadable."""

    session_id: str
    name: str
    place: str
    message: str


def verify(archived: ArchivedSession, read: Callable[[int], None] = lambda _: None) -> list[ArchiveFinding]:
    """What is wrong with a session's archived copy. ``read`` is called with the size of each piece that was read."""
    packs_used = dict.fromkeys(part.where for part in archived.all_parts)
    return [finding for where in packs_used for finding in _in_pack(archived, where, read)]


def unreadable(where: Where) -> list[ArchiveFinding]:
    """What in the vault is no session that can be told."""
    found = []
    for path in manifest.unreadable(where):
        own = path != vault(where)
        session_id = os.path.basename(path) if own else ""
        left = f"{path} has no manifest: it is left of something interrupted"
        why = why_unreadable(session_id, where) or left if own else f"{path} is a symbolic link, or can't be listed"
        found.append(ArchiveFinding(session_id, "unreadable", "", why))
    return found


def _in_pack(archived: ArchivedSession, where: str, read: Callable[[int], None]) -> Iterator[ArchiveFinding]:
    path = os.path.join(archived.folder, where)
    try:
        own = [part for part in archived.all_parts if part.where == where]
        for part, pieces in unpack.pack_contents(archived.folder, own):
            if unpack.sha_of_all(_told(pieces, read)) != part.sha256:
                message = f"{path} does not hold what was stored of {part.place}: its hash differs"
                yield ArchiveFinding(archived.session_id, "damaged", part.place, message)
    except FileNotFoundError:
        yield ArchiveFinding(archived.session_id, "missing", archived.place, f"{path} is gone")
    except OSError as error:
        message = f"{path} can't be read: {error.strerror or error}"
        yield ArchiveFinding(archived.session_id, "damaged", archived.place, message)


def _told(pieces: Iterator[bytes], read: Callable[[int], None]) -> Iterator[bytes]:
    """Pieces as they are, of each of which ``read`` is told."""
    for piece in pieces:
        read(len(piece))
        yield piece
