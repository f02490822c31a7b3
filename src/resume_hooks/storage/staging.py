"""Store the data that a user imports in private temporary files, which are removed after the import.

Invariant: neither the data nor its unpacked form is larger than the allowed size.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from resume_hooks.errors import ImportFailed
from resume_hooks.paths import Where, make_private_folder, open_regular
from resume_hooks.storage import removal
from resume_hooks.storage.state_file import (
    PRIVATE_MODE,
    convert_os_error,
    discard_temporary,
    remove_stale_temporaries,
    temporary_path,
)

MAX_IMPORT_BYTES = 200 * 1024 * 1024  # The default for the maximum size of an import, in bytes.
# The maximum number of bytes in a line. Parsing a line may take thirty times as much memory as the
# line itself. The longest known line is 60 MB long.
MAX_LINE_BYTES = 64 * 1024 * 1024
# The maximum number of lines. Parsing even an empty line takes time. The file of a session with
# 400,000 lines is about 1.2 GB large.
MAX_LINES = 5_000_000
CHUNK_BYTES = 256 * 1024  # The number of bytes that are read or unpacked at a time.
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WBITS = 31  # The value of zlib's ``wbits`` for the gzip format.


class StagedFile(NamedTuple):
    """A temporary file, its size in bytes, and its SHA-256 in hex."""

    path: str
    size: int
    sha256: str


@contextlib.contextmanager
def stage_chunks(chunks: Iterable[bytes], max_bytes: int, where: Where) -> Iterator[StagedFile]:
    """Write ``chunks`` to a temporary file in the state folder. Unpack them if they are gzip data.

    The file is removed after the ``with`` block. If the state folder was created for the file and
    is empty, it is removed too. Raise ImportFailed if the gzip data is damaged, or if there are
    more than ``max_bytes`` bytes, ``MAX_LINE_BYTES`` bytes in a line, or ``MAX_LINES`` lines. Raise
    WriteFailed if the file cannot be written.
    """
    folder = where.state
    folder_existed, temporary = os.path.lexists(folder), temporary_path(folder)
    try:
        with convert_os_error(
            "The import could not be stored",
            "Nothing was changed. Check free space and the permissions of the state folder.",
        ):
            make_private_folder(folder, where)
            remove_stale_temporaries(folder)
            digest = hashlib.sha256()
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_MODE)
            with os.fdopen(descriptor, "wb") as stream:
                for chunk in _limit_lines(
                    _limit_size(_decompress_if_gzip(_limit_size(chunks, max_bytes)), max_bytes)
                ):
                    digest.update(chunk)
                    stream.write(chunk)
                size = stream.tell()
            staged = StagedFile(temporary, size, digest.hexdigest())
        yield staged
    finally:
        discard_temporary(temporary)
        if not folder_existed:
            # The folder is not empty if another process stored files in it.
            with contextlib.suppress(OSError):
                removal.remove_empty_folder(folder, os.path.dirname(folder), follow_root=True)


def file_chunks(path: str) -> Iterator[bytes]:
    """Yield the bytes of a regular file, following links. Raise ImportFailed if it can't be read."""
    try:
        with open_regular(path) as stream:
            while chunk := stream.read(CHUNK_BYTES):
                yield chunk
    except (OSError, ValueError) as error:  # Python raises ValueError if a name contains a NUL.
        if isinstance(error, OSError) and error.strerror:
            reason = error.strerror
        else:
            reason = str(error)
        raise ImportFailed(
            f"{path} can't be read: {reason}", "Give the path of a .jsonl file."
        ) from error


def _limit_size(chunks: Iterable[bytes], max_bytes: int) -> Iterator[bytes]:
    count = 0
    for chunk in chunks:
        count += len(chunk)
        if count > max_bytes:
            raise ImportFailed(
                f"It is larger than {max_bytes:,} bytes, so it was not imported",
                "--max-bytes allows more.",
            )
        yield chunk


def _limit_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    line_length = lines = 0
    for chunk in chunks:
        lines += chunk.count(b"\n")
        if lines > MAX_LINES:
            raise ImportFailed(
                f"It has more than {MAX_LINES:,} lines", "No transcript has so many lines."
            )
        line_end = chunk.find(b"\n")
        if line_length + (line_end if line_end >= 0 else len(chunk)) > MAX_LINE_BYTES:
            raise ImportFailed(
                f"It has a line that is longer than {MAX_LINE_BYTES:,} bytes",
                "No transcript contains lines of this kind.",
            )
        if line_end < 0:
            line_length = line_length + len(chunk)
        else:
            line_length = len(chunk) - chunk.rfind(b"\n") - 1
        yield chunk


def _decompress_if_gzip(chunks: Iterable[bytes]) -> Iterator[bytes]:
    remaining_chunks, first_bytes = iter(chunks), b""
    while len(first_bytes) < len(_GZIP_MAGIC) and (chunk := next(remaining_chunks, b"")):
        first_bytes += chunk
    all_chunks = chain((first_bytes,), remaining_chunks)
    if first_bytes.startswith(_GZIP_MAGIC):
        return _decompress_gzip(all_chunks)
    return all_chunks


def _decompress_gzip(chunks: Iterable[bytes]) -> Iterator[bytes]:
    inflater = zlib.decompressobj(_GZIP_WBITS)
    try:
        for chunk in chunks:
            remaining = chunk
            while remaining:
                if inflater.eof:
                    inflater = zlib.decompressobj(_GZIP_WBITS)
                yield inflater.decompress(remaining, CHUNK_BYTES)
                # Zero bytes may follow, for example in a file from a tape.
                remaining = inflater.unconsumed_tail or inflater.unused_data.lstrip(b"\0")
        yield inflater.flush()
    except zlib.error as error:
        raise ImportFailed(
            "Its gzip data is damaged", "Unpack it yourself, and import the unpacked file."
        ) from error
    if not inflater.eof:
        raise ImportFailed("The gzip data ends too early", "Fetch it again.")
