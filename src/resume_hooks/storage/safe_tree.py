"""Open the folders on a path one after the other, so that no link below the root is ever followed.

An open descriptor still refers to its folder if someone renames the folder or replaces it with a
link.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence

from resume_hooks.errors import WriteFailed
from resume_hooks.paths import open_regular

# Whether the system can open a path relative to an open folder. Windows cannot.
CAN_OPEN_RELATIVE_PATHS = os.open in os.supports_dir_fd
_OPEN_FOLDER_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)


@contextlib.contextmanager
def open_root(root: str) -> Iterator[int]:
    """Open the root folder. Links on its path are followed, because the user put them there.

    Raise OSError if the root is not a folder.
    """
    descriptor = os.open(root, _OPEN_FOLDER_FLAGS)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def open_folder(root_fd: int, parts: Sequence[str], *, create: bool = False) -> Iterator[int]:
    """Open the folder at the path ``parts`` below the open folder ``root_fd``.

    If ``create`` is True, create missing folders. Otherwise raise FileNotFoundError for a missing
    folder. Raise WriteFailed if a part is a link or not a folder.
    """
    descriptor = os.dup(root_fd)
    try:
        for part in parts:
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=descriptor)
            deeper = _open_subfolder(descriptor, part)
            os.close(descriptor)
            descriptor = deeper
        yield descriptor
    finally:
        os.close(descriptor)


def list_missing_folders(root_fd: int, parts: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the missing folders on the path ``parts`` below ``root_fd``, from the top down.

    Raise WriteFailed if a part is a link or not a folder.
    """
    for depth in range(1, len(parts) + 1):
        try:
            with open_folder(root_fd, parts[:depth]):
                pass
        except FileNotFoundError:
            return [tuple(parts[:end]) for end in range(depth, len(parts) + 1)]
    return []


def is_writable_folder(root_fd: int, parts: Sequence[str]) -> bool:
    """Check whether files can be added to and removed from a folder.

    If the folder does not exist, its nearest existing parent is checked. Raise WriteFailed.
    """
    existing_depth = len(parts) - len(list_missing_folders(root_fd, parts))
    with open_folder(root_fd, parts[:existing_depth]) as dir_fd:
        return os.access(os.curdir, os.W_OK | os.X_OK, dir_fd=dir_fd)


def read_file_below(
    root: str, parts: Sequence[str], max_bytes: int
) -> tuple[bytes, os.stat_result]:
    """Return the content and the state of a regular file. Links below ``root`` are not followed.

    Raise OSError if the file is larger than ``max_bytes``, or WriteFailed if a part of the path is
    a link.
    """
    with (
        open_root(root) as top,
        open_folder(top, parts[:-1]) as dir_fd,
        open_regular(parts[-1], follow=False, dir_fd=dir_fd) as stream,
    ):
        content = stream.read(max_bytes + 1)
        if len(content) > max_bytes:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), parts[-1])
        return content, os.fstat(stream.fileno())


def _open_subfolder(dir_fd: int, part: str) -> int:
    try:
        return os.open(part, _OPEN_FOLDER_FLAGS | getattr(os, "O_NOFOLLOW", 0), dir_fd=dir_fd)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}:
            raise WriteFailed(
                f"{part} was not followed, because it is a symbolic link or is not a folder"
            ) from error
        raise
