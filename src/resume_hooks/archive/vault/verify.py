"""Verifying: everything in the vault read and compared with its notes; nothing is changed.

A file that is still a link has no hash: it may grow with the client's own. Of it the size is compared, and what it had
at both ends, which tells that it was cut short or rewritten in place; that stays in the note, also once it is packed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from resume_hooks.archive.vault.tamper_seal import looked_at, told
from resume_hooks.paths import Where, open_regular
from resume_hooks.sessions.archived import manifest, packs
from resume_hooks.sessions.archived.layout import vault
from resume_hooks.sessions.archived.manifest import CUT, REWRITTEN, Kept, Part, stored_path, why_unreadable
from resume_hooks.sessions.archived.unpack import pieces_of


class Finding(NamedTuple):
    """Something wrong in the vault: ``name`` is missing, damaged, cut-short, rewritten or unreadable."""

    session_id: str
    name: str
    place: str
    message: str


def verify(kept: Kept, where: Where, read: Callable[[int], None] = lambda _: None) -> list[Finding]:
    """What is wrong with what is kept of a session. ``read`` is told the bytes of each piece that was read."""
    del where
    files = [part for part in kept.all_parts if not part.packed]
    packed = [part for part in kept.all_parts if part.packed]
    harmed = [
        Finding(kept.session_id, part.harm, part.place, said)
        for part in kept.all_parts
        if not part.linked and (said := told(part))
    ]
    return [*_files(kept, files, read), *_packs(kept, packed, read), *harmed]


def unreadable(where: Where) -> list[Finding]:
    """What in the vault is no session that can be told."""
    found = []
    for path in manifest.unreadable(where):
        own = path != vault(where)
        session_id = os.path.basename(path) if own else ""
        left = f"{path} has no note: it is left of something interrupted"
        why = why_unreadable(session_id, where) or left if own else f"{path} is a symbolic link, or can't be listed"
        found.append(Finding(session_id, "unreadable", "", why))
    return found


def _files(kept: Kept, parts: Iterable[Part], read: Callable[[int], None]) -> Iterator[Finding]:
    for part in parts:
        path = stored_path(kept, part)
        try:
            with open_regular(path, follow=False) as stream:
                size = os.fstat(stream.fileno()).st_size
            if part.linked and (harmed := looked_at(kept, part)).harm == REWRITTEN:
                yield Finding(kept.session_id, REWRITTEN, part.place, told(harmed))
            elif part.linked and size >= part.size and part.harm:
                yield Finding(kept.session_id, part.harm, part.place, told(part))
            elif size < part.size:
                yield _cut_short(kept, part, path, size)
            elif part.sha256 and _sha256(pieces_of(path, part.size), read) != part.sha256:
                yield Finding(kept.session_id, "damaged", part.place, f"{path} is not what was kept: its hash differs")
            elif not part.linked and size > part.size:
                yield Finding(kept.session_id, "damaged", part.place, f"{path} holds more than was kept")
        except FileNotFoundError:
            yield Finding(kept.session_id, "missing", part.place, f"{path} is gone from the vault")
        except OSError as error:
            yield Finding(kept.session_id, "damaged", part.place, f"{path} can't be read: {error.strerror}")


def _cut_short(kept: Kept, part: Part, path: str, size: int) -> Finding:
    how = "somebody cut the client's file short in place, and it is a link to that" if part.linked else "it is damaged"
    message = f"{path} holds {size:,} bytes and had {part.size:,}: {how}"
    return Finding(kept.session_id, CUT, part.place, message)


def _packs(kept: Kept, parts: Iterable[Part], read: Callable[[int], None]) -> Iterator[Finding]:
    by_pack: dict[str, list[Part]] = {}
    for part in parts:
        by_pack.setdefault(part.where, []).append(part)
    for where, own in by_pack.items():
        path = os.path.join(kept.folder, where)
        try:
            for part, pieces in packs.contents(kept, own):
                if _sha256(pieces, read) != part.sha256:
                    message = f"{path} does not hold what was kept of {part.place}: its hash differs"
                    yield Finding(kept.session_id, "damaged", part.place, message)
        except FileNotFoundError:
            yield Finding(kept.session_id, "missing", kept.place, f"{path} is gone from the vault")
        except OSError as error:
            yield Finding(kept.session_id, "damaged", kept.place, f"{path} can't be read: {error.strerror or error}")


def _sha256(pieces: Iterator[bytes], read: Callable[[int], None]) -> str:
    whole = hashlib.sha256()
    for piece in pieces:
        whole.update(piece)
        read(len(piece))
    return whole.hexdigest()
