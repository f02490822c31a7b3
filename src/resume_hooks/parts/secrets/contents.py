"""What a place holds, piece by piece: lines of records, and other texts whole: a secret may go over several lines.

Audit looks for secrets in each piece, scrub makes one without them. Nothing is written here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.archive.vault import trash
from resume_hooks.archive.vault.packs import lines_of
from resume_hooks.archive.vault.rewrite import HEAD, LARGEST_TEXT
from resume_hooks.parts.secrets.locations import KEPT, TRASHED, Location
from resume_hooks.paths import ENDING, Where, open_regular
from resume_hooks.sessions.archived import manifest, unpack
from resume_hooks.sessions.archived.manifest import ArchivedSession
from resume_hooks.storage.atomic import BUFFER
from resume_hooks.transcripts.lines import read_lines

LINE, TEXT, BINARY = "line", "text", "binary"
"""The forms of a piece."""


class Piece(NamedTuple):
    """A piece of a file. Of a kept file ``part`` is its place in the config home.

    A line of one has a 0-based ``number`` and begins at ``offset``.
    """

    raw: bytes
    form: str
    part: str = ""
    number: int = 0
    offset: int = 0


def archived_at(place: Location, where: Where) -> ArchivedSession | None:
    """What the vault or the trash holds at a place; None where that is a file, or can't be told."""
    if place.kind == TRASHED:
        return trash.entry_in(place.path, where)
    return manifest.find(place.session_id, where) if place.kind == KEPT else None


def is_lines(path: str) -> bool:
    """Whether a file is lines of records, by its name."""
    return ENDING in os.path.basename(path)


def pieces_of_file(path: str, *, lines: bool) -> Iterator[Piece]:
    """The pieces of a file, which is ``lines`` or a text. OSError."""
    with open_regular(path, follow=False) as stream:
        binary = b"\0" in stream.read(HEAD)
        stream.seek(0)
        if binary:
            yield from (Piece(raw, BINARY) for raw in iter(lambda: stream.read(BUFFER), b""))
        elif lines or os.fstat(stream.fileno()).st_size > LARGEST_TEXT:
            yield from (Piece(line.raw, LINE) for line in read_lines(stream))
        else:
            yield Piece(stream.read(), TEXT)


def pieces_of_kept(kept: ArchivedSession) -> Iterator[Piece]:
    """The pieces of all files that the vault keeps of a session. OSError where one can't be read."""
    for part, chunks in unpack.pack_contents(kept.folder, list(kept.all_parts)):
        if not is_lines(part.place) and part.size <= LARGEST_TEXT:
            yield Piece(b"".join(chunks), TEXT, part.place)
            continue
        offset = 0
        for number, line in enumerate(lines_of(chunks)):
            yield Piece(line, LINE, part.place, number, offset)
            offset += len(line)
