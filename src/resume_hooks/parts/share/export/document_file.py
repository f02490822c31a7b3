"""Write a document to a private file or to standard output.

A file is written completely or not at all.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from resume_hooks.errors import CheckFailed, WriteFailed
from resume_hooks.storage.atomic import BUFFER_BYTES, create_session
from resume_hooks.storage.project_files import is_same_state, make_write_error, read_file_state
from resume_hooks.storage.state_file import discard_temporary, sync_folder, temporary_path


class SizeAndDigest(NamedTuple):
    """The number of bytes and the digest of a written file."""

    byte_count: int
    sha256: str


class ChunkCounter:
    """Counts the bytes of chunks and computes their digest while the chunks are written."""

    def __init__(self) -> None:
        self.size = 0
        self._digest = hashlib.sha256()

    def yield_and_measure_chunks(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the chunks unchanged, and count them."""
        for chunk in chunks:
            self.size += len(chunk)
            self._digest.update(chunk)
            yield chunk

    @property
    def size_and_digest(self) -> SizeAndDigest:
        """The number of bytes and the digest of all chunks so far."""
        return SizeAndDigest(self.size, self._digest.hexdigest())


def measure_chunks(chunks: Iterable[bytes]) -> SizeAndDigest:
    """Return the number of bytes and the digest of chunks without writing them."""
    counter = ChunkCounter()
    for _ in counter.yield_and_measure_chunks(chunks):
        pass
    return counter.size_and_digest


def read_status_of_file_to_replace(path: str, *, force: bool) -> os.stat_result | None:
    """Return the state of the file at ``path``, or None if no file exists.

    Raise WriteFailed if the file exists and ``force`` is false, if the file is a link, or if its
    folder does not exist.
    """
    if not os.path.isdir(os.path.dirname(path)):
        raise WriteFailed(
            f"{os.path.dirname(path)} is not a folder", "Give -o a path in an existing folder."
        )
    state = read_file_state(path)
    if state is not None and not force:
        raise WriteFailed(
            f"{path} exists already, so it was not replaced",
            "Name another file with -o, or add --force.",
        )
    return state


def write_document(
    path: str, chunks: Iterable[bytes], replaced_file_status: os.stat_result | None
) -> SizeAndDigest:
    """Write a document to ``path``, and return the size and digest of the file.

    ``replaced_file_status`` is the state of the file to replace. If it is None, the file must not exist
    yet. After WriteFailed or CheckFailed, an existing file is unchanged, and no new file remains.
    """
    counter = ChunkCounter()

    def check_temporary_file(temporary_path: str) -> None:
        with open(temporary_path, "rb") as stream:
            read_back = measure_chunks(iter(lambda: stream.read(BUFFER_BYTES), b""))
        if read_back != counter.size_and_digest:
            raise CheckFailed(
                f"{path} does not contain what was written to it",
                "Nothing was changed. Check the disk.",
            )

    if replaced_file_status is None:
        create_session(path, counter.yield_and_measure_chunks(chunks), check_temporary_file)
        return counter.size_and_digest
    temporary_file = temporary_path(os.path.dirname(path))
    try:
        create_session(
            temporary_file, counter.yield_and_measure_chunks(chunks), check_temporary_file
        )
        if not is_same_state(read_file_state(path), replaced_file_status):
            raise OSError(None, "another program changed it in the meantime")  # noqa: TRY301 - said as any other refusal
        os.replace(temporary_file, path)
        sync_folder(os.path.dirname(path))
    except OSError as error:
        raise make_write_error(path, error) from error
    finally:
        discard_temporary(temporary_file)
    return counter.size_and_digest
