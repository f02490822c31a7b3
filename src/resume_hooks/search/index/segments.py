"""The files that tantivy writes: whether they are as it wrote them, and nobody else's to read.

Each segment is a set of files that never change, each with a checksum at its end. Tantivy never looks at these, and
at what they are of only where a search comes by.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import zlib
from typing import Any, NamedTuple

from resume_hooks.errors import IndexDamaged
from resume_hooks.paths import open_regular
from resume_hooks.storage.state_file import MODE

META = "meta.json"
_PARTS = ("fast", "fieldnorm", "idx", "pos", "store", "term")
_TAIL = struct.Struct("<II")  # how many bytes of JSON are before it, and a number that is the same in every file
_MAGIC = 1337
_AT_A_TIME = 1024 * 1024  # bytes


class Segment(NamedTuple):
    """A segment by its files' common name: its documents, how many of them are gone, the mark of the list of these."""

    name: str
    documents: int
    gone: int
    mark: int

    @property
    def files(self) -> list[str]:
        """The names of its files."""
        return [f"{self.name}.{part}" for part in (*_PARTS, *([f"{self.mark}.del"] if self.gone else []))]


def segments(folder: str) -> list[Segment]:
    """The segments of an index. IndexDamaged where nothing tells what they are."""
    try:
        with open_regular(os.path.join(folder, META), follow=False) as stream:
            return [_segment(told) for told in json.load(stream)["segments"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IndexDamaged(f"The index is damaged: {error}") from error


def _segment(told: dict[str, Any]) -> Segment:
    deletes = told["deletes"] or {"num_deleted_docs": 0, "opstamp": 0}
    name = str(told["segment_id"]).replace("-", "")
    return Segment(name, int(told["max_doc"]), int(deletes["num_deleted_docs"]), int(deletes["opstamp"]))


def require_whole(folder: str) -> None:
    """Read all segments of an index. IndexDamaged where one is not as it was written."""
    for name in (name for segment in segments(folder) for name in segment.files):
        try:
            whole = _is_whole(os.path.join(folder, name))
        except (OSError, ValueError, KeyError, TypeError, struct.error) as error:
            raise IndexDamaged(f"The index is damaged: {name}: {error}") from error
        if not whole:
            raise IndexDamaged(f"The index is damaged: {name} is not as it was written")


def _is_whole(path: str) -> bool:
    """Whether a file has the checksum at its end. As many errors as there are ways not to have one."""
    with open_regular(path, follow=False) as stream:
        end = stream.seek(-_TAIL.size, os.SEEK_END)
        length, magic = _TAIL.unpack(stream.read())
        left = end - length
        stream.seek(left)
        told = json.loads(stream.read(length))["crc"]
        stream.seek(0)
        found = 0
        while left > 0 and (block := stream.read(min(left, _AT_A_TIME))):
            found = zlib.crc32(block, found)
            left -= len(block)
    return magic == _MAGIC and not left and found == told


def make_private(folder: str) -> None:
    """Take from others what the umask left them: tantivy asks for no mode of its own."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):  # another command tidied up
                if entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mode & 0o077:
                    os.chmod(entry.path, MODE)
