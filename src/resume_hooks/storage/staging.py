"""What comes from elsewhere, in a private file of our own for as long as it is looked at.

Then it is gone.

Invariant: no more is read or written than was allowed, neither of what comes nor of what it unpacks
to.
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

MAX_BYTES = 200 * 1024 * 1024  # bytes that are taken in where nobody says how many
MAX_LINE = (
    64 * 1024 * 1024
)  # bytes of one line, which a parser may need thirty times; the longest known has 60 MB
MAX_LINES = 5_000_000  # lines, each of which costs a parser time, were it empty; 400,000 of sessions have 1.2 GB
PIECE = 256 * 1024  # bytes that are read, or unpacked, at a time
_GZIP = b"\x1f\x8b"
_WBITS = 31  # zlib's word for: with the head and the checksum of gzip


class StagedFile(NamedTuple):
    """A file of ours with ``size`` bytes, and their digest in hex."""

    path: str
    size: int
    sha256: str


@contextlib.contextmanager
def stage_chunks(chunks: Iterable[bytes], most: int, where: Where) -> Iterator[StagedFile]:
    """``chunks`` in a file of the state folder, unpacked where they are gzip, which is removed at the end.

    So is that folder where it was made for it and nothing else is there. ImportFailed past ``most``
    bytes, for a line past ``MAX_LINE`` of them, past ``MAX_LINES``, and for damaged gzip;
    WriteFailed where the disk refuses.
    """
    folder = where.state
    known, temporary = os.path.lexists(folder), temporary_in(folder)
    try:
        with convert_os_error(
            "What was to be imported could not be kept",
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
            with contextlib.suppress(OSError):  # something was kept in it
                removal.remove_empty(folder, os.path.dirname(folder), follow_root=True)


def file_chunks(path: str) -> Iterator[bytes]:
    """The bytes of a regular file, through links. ImportFailed where it can't be read."""
    try:
        with open_regular(path) as stream:
            while piece := stream.read(PIECE):
                yield piece
    except (OSError, ValueError) as error:  # the latter for a NUL in a name
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
                f"It is larger than {most:,} bytes, so it was not taken in",
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
                )  # which tapes are filled up with
        yield inflater.flush()
    except zlib.error as error:
        raise ImportFailed("Its gzip is damaged", "Unpack it yourself and import that.") from error
    if not inflater.eof:
        raise ImportFailed("Its gzip ends too early", "Fetch it again.")
