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
from resume_hooks.paths import Where, open_regular, private_folder
from resume_hooks.storage import removal
from resume_hooks.storage.state_file import (
    MODE,
    convert_os_error,
    discard_spare,
    sweep_spare_names,
    temporary_in,
)

MAX_BYTES = 200 * 1024 * 1024  # bytes; the default limit of an import
MAX_LINE = (
    64 * 1024 * 1024
)  # of one line, which a parser may expand thirtyfold; the longest known line has 60 MB
MAX_LINES = 5_000_000  # even empty lines cost a parser time; 400,000 lines of sessions have 1.2 GB
PIECE = 256 * 1024  # bytes to read or unpack at a time
_GZIP = b"\x1f\x8b"
_WBITS = 31  # zlib's code for a gzip header and checksum


class StagedFile(NamedTuple):
    """A temporary file with its size in bytes and its digest in hex."""

    path: str
    size: int
    sha256: str


@contextlib.contextmanager
def stage_chunks(chunks: Iterable[bytes], most: int, where: Where) -> Iterator[StagedFile]:
    """Write ``chunks``, unpacked if they are gzip, to a file in the state folder that is removed after the block.

    Also remove the state folder if it was created for the file and is empty. Raise ImportFailed
    beyond ``most`` bytes, ``MAX_LINE`` bytes in a line, or ``MAX_LINES`` lines, and for damaged
    gzip; raise WriteFailed if the disk refuses.
    """
    folder = where.state
    known, temporary = os.path.lexists(folder), temporary_in(folder)
    try:
        with convert_os_error(
            "The import could not be stored",
            "Nothing was changed. Check free space and the permissions of the state folder.",
        ):
            private_folder(folder, where)
            sweep_spare_names(folder)
            digest = hashlib.sha256()
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
            with os.fdopen(descriptor, "wb") as stream:
                for chunk in _limit_lines(
                    _limit_size(_decompress(_limit_size(chunks, most)), most)
                ):
                    digest.update(chunk)
                    stream.write(chunk)
                size = stream.tell()
            taken = StagedFile(temporary, size, digest.hexdigest())
        yield taken
    finally:
        discard_spare(temporary)
        if not known:
            with contextlib.suppress(OSError):  # other files were stored in it
                removal.remove_empty(folder, os.path.dirname(folder), follow_root=True)


def file_chunks(path: str) -> Iterator[bytes]:
    """Yield the bytes of a regular file, through links. Raise ImportFailed if it can't be read."""
    try:
        with open_regular(path) as stream:
            while piece := stream.read(PIECE):
                yield piece
    except (OSError, ValueError) as error:  # ValueError for a NUL in a name
        if isinstance(error, OSError) and error.strerror:
            why = error.strerror
        else:
            why = str(error)
        raise ImportFailed(
            f"{path} can't be read: {why}", "Give the path of a .jsonl file."
        ) from error


def _limit_size(chunks: Iterable[bytes], most: int) -> Iterator[bytes]:
    count = 0
    for chunk in chunks:
        count += len(chunk)
        if count > most:
            raise ImportFailed(
                f"It is larger than {most:,} bytes, so it was not imported",
                "--max-bytes allows more.",
            )
        yield chunk


def _limit_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    begun = lines = 0
    for chunk in chunks:
        lines += chunk.count(b"\n")
        if lines > MAX_LINES:
            raise ImportFailed(
                f"It has more than {MAX_LINES:,} lines", "No transcript has so many."
            )
        ended = chunk.find(b"\n")
        if begun + (ended if ended >= 0 else len(chunk)) > MAX_LINE:
            raise ImportFailed(
                f"A line of it is longer than {MAX_LINE:,} bytes", "No transcript has such lines."
            )
        if ended < 0:
            begun = begun + len(chunk)
        else:
            begun = len(chunk) - chunk.rfind(b"\n") - 1
        yield chunk


def _decompress(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rows, first = iter(chunks), b""
    while len(first) < len(_GZIP) and (row := next(rows, b"")):
        first += row
    whole = chain((first,), rows)
    if first.startswith(_GZIP):
        return _decompress_gzip(whole)
    return whole


def _decompress_gzip(chunks: Iterable[bytes]) -> Iterator[bytes]:
    inflater = zlib.decompressobj(_WBITS)
    try:
        for chunk in chunks:
            left = chunk
            while left:
                if inflater.eof:
                    inflater = zlib.decompressobj(_WBITS)
                yield inflater.decompress(left, PIECE)
                left = inflater.unconsumed_tail or inflater.unused_data.lstrip(
                    b"\0"
                )  # the padding of tapes
        yield inflater.flush()
    except zlib.error as error:
        raise ImportFailed("Its gzip is damaged", "Unpack it yourself and import that.") from error
    if not inflater.eof:
        raise ImportFailed("Its gzip ends too early", "Fetch it again.")
