"""Private temporary copies of foreign data for an import.

They are removed after the import.

Invariant: neither the input nor its unpacked form exceeds the allowed size.
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

MAX_IMPORT_BYTES = 200 * 1024 * 1024  # the default size limit of an import in bytes
# the maximum size of a line, which a parser may expand thirtyfold; the longest known line has 60 MB
MAX_LINE_BYTES = 64 * 1024 * 1024
# the maximum number of lines, because even empty lines cost a parser time; 400,000 lines of
# sessions have 1.2 GB
MAX_LINES = 5_000_000
CHUNK_BYTES = 256 * 1024  # the number of bytes to read or unpack at a time
_GZIP_MAGIC = b"\x1f\x8b"
_WBITS = 31  # zlib's code for the gzip format


class StagedFile(NamedTuple):
    """A temporary file with its size in bytes and its digest in hex."""

    path: str
    size: int
    sha256: str


@contextlib.contextmanager
def stage_chunks(chunks: Iterable[bytes], max_bytes: int, where: Where) -> Iterator[StagedFile]:
    """Write ``chunks``, unpacked if they are gzip, to a temporary file in the state folder during the block.

    If the state folder was created for the file and is empty, also remove the folder. Raise
    ImportFailed for damaged gzip, or if the content exceeds ``max_bytes`` bytes, ``MAX_LINE_BYTES``
    bytes in a line, or ``MAX_LINES`` lines. Raise WriteFailed if the disk refuses.
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
                    _limit_size(_decompress(_limit_size(chunks, max_bytes)), max_bytes)
                ):
                    digest.update(chunk)
                    stream.write(chunk)
                size = stream.tell()
            staged = StagedFile(temporary, size, digest.hexdigest())
        yield staged
    finally:
        discard_temporary(temporary)
        if not folder_existed:
            with contextlib.suppress(OSError):  # other files were stored in the folder
                removal.remove_empty(folder, os.path.dirname(folder), follow_root=True)


def file_chunks(path: str) -> Iterator[bytes]:
    """Yield the bytes of a regular file; links are followed. Raise ImportFailed if the file cannot be read."""
    try:
        with open_regular(path) as stream:
            while chunk := stream.read(CHUNK_BYTES):
                yield chunk
    except (OSError, ValueError) as error:  # ValueError is raised for a NUL in a name
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
                f"It has more than {MAX_LINES:,} lines", "No transcript has so many."
            )
        line_end = chunk.find(b"\n")
        if line_length + (line_end if line_end >= 0 else len(chunk)) > MAX_LINE_BYTES:
            raise ImportFailed(
                f"A line of it is longer than {MAX_LINE_BYTES:,} bytes",
                "No transcript has such lines.",
            )
        if line_end < 0:
            line_length = line_length + len(chunk)
        else:
            line_length = len(chunk) - chunk.rfind(b"\n") - 1
        yield chunk


def _decompress(chunks: Iterable[bytes]) -> Iterator[bytes]:
    remaining_chunks, first_bytes = iter(chunks), b""
    while len(first_bytes) < len(_GZIP_MAGIC) and (chunk := next(remaining_chunks, b"")):
        first_bytes += chunk
    all_chunks = chain((first_bytes,), remaining_chunks)
    if first_bytes.startswith(_GZIP_MAGIC):
        return _decompress_gzip(all_chunks)
    return all_chunks


def _decompress_gzip(chunks: Iterable[bytes]) -> Iterator[bytes]:
    inflater = zlib.decompressobj(_WBITS)
    try:
        for chunk in chunks:
            remaining = chunk
            while remaining:
                if inflater.eof:
                    inflater = zlib.decompressobj(_WBITS)
                yield inflater.decompress(remaining, CHUNK_BYTES)
                # zero bytes that pad a tape
                remaining = inflater.unconsumed_tail or inflater.unused_data.lstrip(b"\0")
        yield inflater.flush()
    except zlib.error as error:
        raise ImportFailed("Its gzip is damaged", "Unpack it yourself and import that.") from error
    if not inflater.eof:
        raise ImportFailed("Its gzip ends too early", "Fetch it again.")
