"""Packs: the files of a session, one behind the other, as one compressed stream; read and written piece by piece."""

from __future__ import annotations

import errno
import lzma
import os
from collections.abc import Iterable, Iterator, Sequence

from resume_hooks.paths import open_regular
from resume_hooks.sessions.archived.manifest import Kept, Part
from resume_hooks.storage.state_file import MODE

ENDING = ".xz"
PRESET = 1
PIECE = 1024 * 1024
"""Bytes that are read or written at a time."""


def write(path: str, pieces: Iterable[bytes]) -> int:
    """Write a new pack, synced; its size in bytes. OSError where it can't be written."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), MODE)
    with os.fdopen(descriptor, "wb") as stream:
        packer = lzma.LZMACompressor(preset=PRESET, check=lzma.CHECK_CRC64)
        for piece in pieces:
            stream.write(packer.compress(piece))
        stream.write(packer.flush())
        stream.flush()
        os.fsync(descriptor)
        return stream.tell()


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


def contents(kept: Kept, parts: Sequence[Part]) -> Iterator[tuple[Part, Iterator[bytes]]]:
    """Each of these parts of one pack with its content, which is to be read before the next; in their order within it.

    Each pack is read once. OSError where it ends before a part does.
    """
    ordered = sorted(parts, key=lambda part: (part.where, part.offset))
    for where in dict.fromkeys(part.where for part in ordered):
        stream = Stream(read(os.path.join(kept.folder, where)), where)
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
