"""Folders below a root, gone into one by one through open descriptors: no link on the way is followed, then or later.

What is open stays the same folder, whoever renames it or puts a link in its place meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence

from resume_hooks.errors import WriteFailed
from resume_hooks.paths import open_regular

SUPPORTED = (
    os.open in os.supports_dir_fd
)  # whether this system can open a name in an open folder; Windows can't
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)


@contextlib.contextmanager
def open_root(root: str) -> Iterator[int]:
    """The open folder at the top; links on the way are followed, as the user's own.

    OSError if it is not a folder.
    """
    descriptor = os.open(root, _FOLDER)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def open_folder(root: int, parts: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """The open folder that ``parts`` lead to from the open folder ``root``.

    With ``make``, missing ones are made.

    FileNotFoundError where one is missing, WriteFailed where one is a link or no folder.
    """
    descriptor = os.dup(root)
    try:
        for part in parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=descriptor)
            deeper = _open_step(descriptor, part)
            os.close(descriptor)
            descriptor = deeper
        yield descriptor
    finally:
        os.close(descriptor)


def missing_folders(root: int, parts: Sequence[str]) -> list[tuple[str, ...]]:
    """The folders on the way that are not there, the upper ones first.

    WriteFailed as for ``open_folder``.
    """
    for depth in range(1, len(parts) + 1):
        try:
            with open_folder(root, parts[:depth]):
                pass
        except FileNotFoundError:
            return [tuple(parts[:end]) for end in range(depth, len(parts) + 1)]
    return []


def takes_files(root: int, parts: Sequence[str]) -> bool:
    """Whether names may come and go in the folder, or in the last on the way that is there.

    WriteFailed.
    """
    there = len(parts) - len(missing_folders(root, parts))
    with open_folder(root, parts[:there]) as within:
        return os.access(os.curdir, os.W_OK | os.X_OK, dir_fd=within)


def read_file_below(root: str, parts: Sequence[str], limit: int) -> tuple[bytes, os.stat_result]:
    """A regular file's content and state, no link followed below ``root``.

    OSError beyond ``limit``, WriteFailed.
    """
    with (
        open_root(root) as top,
        open_folder(top, parts[:-1]) as within,
        open_regular(parts[-1], follow=False, within=within) as stream,
    ):
        content = stream.read(limit + 1)
        if len(content) > limit:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), parts[-1])
        return content, os.fstat(stream.fileno())


def _open_step(within: int, part: str) -> int:
    try:
        return os.open(part, _FOLDER | getattr(os, "O_NOFOLLOW", 0), dir_fd=within)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}:
            raise WriteFailed(
                f"{part} is a symbolic link, or not a folder, so nothing was looked for behind it"
            ) from error
        raise
