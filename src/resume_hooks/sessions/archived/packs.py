"""Packs: the files of a session, one behind the other, as one compressed stream; read piece by piece."""

from __future__ import annotations

import errno
import lzma
import os
from collections.abc import Iterator, Sequence

from resume_hooks.paths import open_regular
from resume_hooks.sessions.archived.manifest import ArchivedFile

ENDING = ".xz"
PIECE = 1024 * 1024
"""Bytes that are read or written at a time."""


def read(path: str, offset: int = 0) -> Iterator[bytes]:
    """What a pack holds from an offset on. OSError where it can't be read, or is damaged."""
    with open_regular(path, follow=False) as packed:
        unpacker = lzma.LZMADecompressor(memlimit=128 * 1024 * 1024)
        try:
            while not unpacker.eof:
                raw = packed.read(PIECE // 4) if unpacker.needs_input else b""
                if unpacker.needs_input and not raw:
                    raise OSError(errno.EIO, "The pack ends too early", path)
                piece = unpacker.decompress(raw, PIECE)
                if offset < len(piece):
                    yield piece[offset:]
                offset = max(0, offset - len(piece))
        except lzma.LZMAError as error:
            raise OSError(errno.EIO, f"The pack is damaged: {error}", path) from error


def contents(folder: str, parts: Sequence[ArchivedFile]) -> Iterator[tuple[ArchivedFile, Iterator[bytes]]]:
    """Each of these files with its content, which is to be read before the next, in the order of their packs.

    ``folder`` is the session's own in the vault. Each pack is read once. OSError where it ends before a file does.
    """
    ordered = sorted(parts, key=lambda part: (part.where, part.offset))
    for where in dict.fromkeys(part.where for part in ordered):
        stream = Stream(read(os.path.join(folder, where)), where)
        for part in (part for part in ordered if part.where == where):
            for _ in stream.take(part.offset - stream.offset):
                pass
            yield part, stream.take(part.size)
            for _ in stream.take(part.offset + part.size - stream.offset):
                pass


class Stream:
    """A stream that is read in pieces of any length."""

    def __init__(self, pieces: Iterator[bytes], name: str) -> None:
        self.offset = 0
        self._pieces = pieces
        self._left = b""
        self._name = name

    def at_end(self) -> bool:
        """Whether nothing is left."""
        self._left = self._left or next(self._pieces, b"")
        return not self._left

    def take(self, size: int) -> Iterator[bytes]:
        """The next bytes. OSError where there are not so many."""
        while size > 0:
            if not self._left:
                self._left = next(self._pieces, b"")
            if not self._left:
                raise OSError(errno.EIO, "The pack ends too early", self._name)
            piece, self._left = self._left[:size], self._left[size:]
            size -= len(piece)
            self.offset += len(piece)
            yield piece
