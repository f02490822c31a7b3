"""A new pack written from what is kept, through a change of its lines where one is wanted, and read back."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence

from resume_hooks.sessions.archived import packs
from resume_hooks.sessions.archived.manifest import Kept, Part, as_it_is, stored_path
from resume_hooks.sessions.archived.unpack import pieces_of

Change = Callable[[Part, Iterator[bytes]], Iterator[bytes]]
"""What becomes of a part's content."""


def written(
    kept: Kept,
    wanted: Sequence[Part],
    where: str,
    change: Change | None = None,
    *,
    go_on: Callable[[], None] = lambda: None,
) -> dict[Part, Part]:
    """Write a pack of these parts, as they are now, into a session's folder; where each of them lies then.

    OSError where one can't be read, or is not what its note says, or the pack is not read back as it was written; and
    whatever ``go_on`` raises, which is asked before every piece.
    """
    files = [part for part in wanted if not part.packed]
    packed = [part for part in wanted if part.packed]
    placed: dict[Part, Part] = {}
    path = os.path.join(kept.folder, where)
    packs.write(path, _asking(_through(_contents(kept, files, packed), placed, where, change), go_on))
    _require_same(path, list(placed.values()), go_on)
    return placed


def _asking(pieces: Iterator[bytes], go_on: Callable[[], None]) -> Iterator[bytes]:
    for piece in pieces:
        go_on()
        yield piece


def lines_of(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The lines of a content with their endings, whatever pieces it comes in."""
    left: list[bytes] = []
    for piece in pieces:
        *lines, rest = piece.split(b"\n")
        for line in lines:
            yield b"".join([*left, line, b"\n"])
            left = []
        left += [rest] if rest else []
    if left:
        yield b"".join(left)


def _contents(
    kept: Kept, files: Sequence[Part], packed: Sequence[Part]
) -> Iterator[tuple[Part, Part, Iterator[bytes]]]:
    """Each part as its note has it, as it is now, and its content. Packs are read once, in their own order."""
    for part in files:
        now = as_it_is(kept, part)
        yield part, now, pieces_of(stored_path(kept, part), now.size)
    for part, pieces in packs.contents(kept, packed):
        yield part, part, pieces


def _through(
    contents: Iterator[tuple[Part, Part, Iterator[bytes]]],
    placed: dict[Part, Part],
    where: str,
    change: Change | None,
) -> Iterator[bytes]:
    """The bytes of all parts, one behind the other; ``placed`` is told where each lies."""
    offset = 0
    for part, now, pieces in contents:
        before, after, size = hashlib.sha256(), hashlib.sha256(), 0
        hashed = _hashed(pieces, before)
        for piece in change(part, hashed) if change else hashed:
            after.update(piece)
            size += len(piece)
            yield piece
        if part.sha256 and before.hexdigest() != part.sha256:
            raise OSError(errno.EIO, "It is not what was kept: its hash differs", part.place)
        seen = now.size if part.linked else part.seen
        placed[part] = now._replace(
            size=size, sha256=after.hexdigest(), where=where, offset=offset, linked=False, seen=seen, seal=""
        )
        offset += size


def _hashed(pieces: Iterator[bytes], whole: hashlib._Hash) -> Iterator[bytes]:
    for piece in pieces:
        whole.update(piece)
        yield piece


def _require_same(path: str, parts: list[Part], go_on: Callable[[], None]) -> None:
    """Raise OSError unless the pack, read back, holds these parts and nothing else."""
    stream = packs.Stream(_asking(packs.read(path), go_on), path)
    for part in parts:
        whole = hashlib.sha256()
        for piece in stream.take(part.size):
            whole.update(piece)
        if whole.hexdigest() != part.sha256:
            raise OSError(errno.EIO, "It was read back otherwise than it was written", path)
    if not stream.at_end():
        raise OSError(errno.EIO, "It holds more than was written", path)
