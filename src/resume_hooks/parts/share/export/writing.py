"""Where a document goes: a file that is created whole or not at all, for its owner alone, or the standard output."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from resume_hooks.errors import CheckFailed, WriteFailed
from resume_hooks.storage.atomic import BUFFER, create_session
from resume_hooks.storage.project_files import is_same, refused, state_of
from resume_hooks.storage.state_file import discard, sync_folder, temporary_in


class WrittenFile(NamedTuple):
    """What was written: bytes, and their digest."""

    size: int
    sha256: str


class Sink:
    """Counts and digests what passes."""

    def __init__(self) -> None:
        self.size = 0
        self._digest = hashlib.sha256()

    def through(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The same chunks."""
        for chunk in chunks:
            self.size += len(chunk)
            self._digest.update(chunk)
            yield chunk

    @property
    def written(self) -> WrittenFile:
        """What passed so far."""
        return WrittenFile(self.size, self._digest.hexdigest())


def measured(chunks: Iterable[bytes]) -> WrittenFile:
    """What chunks come to, written or not."""
    sink = Sink()
    for _ in sink.through(chunks):
        pass
    return sink.written


def require_place(path: str, *, force: bool) -> os.stat_result | None:
    """The file that may be replaced at ``path``, None if there is nothing.

    WriteFailed for a file where none may be replaced, for a link, and for a folder that is not there.
    """
    if not os.path.isdir(os.path.dirname(path)):
        raise WriteFailed(f"{os.path.dirname(path)} is no folder", "Name a folder that exists with -o.")
    there = state_of(path)
    if there is not None and not force:
        raise WriteFailed(
            f"{path} is there already, so it was left alone", "Name another file with -o, or add --force."
        )
    return there


def write(path: str, chunks: Iterable[bytes], over: os.stat_result | None) -> WrittenFile:
    """Write a document to ``path``: a new file, or in place of the one whose state ``over`` is.

    WriteFailed and CheckFailed leave what was there, and nothing else.
    """
    sink = Sink()

    def check(temporary: str) -> None:
        with open(temporary, "rb") as stream:
            read_back = measured(iter(lambda: stream.read(BUFFER), b""))
        if read_back != sink.written:
            raise CheckFailed(
                f"{path} was read back otherwise than it was written", "Nothing was changed. Check the disk."
            )

    if over is None:
        create_session(path, sink.through(chunks), check)
        return sink.written
    beside = temporary_in(os.path.dirname(path))
    try:
        create_session(beside, sink.through(chunks), check)
        if not is_same(state_of(path), over):
            raise OSError(None, "another program changed it meanwhile")  # noqa: TRY301 - said as any other refusal
        os.replace(beside, path)
        sync_folder(os.path.dirname(path))
    except OSError as error:
        raise refused(path, error) from error
    finally:
        discard(beside)
    return sink.written
