"""Write files in a user's project, such as documents and restored files.

This is the only code that writes such files. A file is written completely or not at all: the bytes
are written to a temporary file beside the target. The temporary file is synced and read back, and
only then renamed. Symbolic links are never followed. A file is replaced or removed only if it has
not changed since it was examined.

Some functions accept ``dir_fd``, the descriptor of an open folder (see ``safe_tree``). With
``dir_fd``, only the last component of a path is used, relative to this folder. The whole path then
only appears in messages.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

from resume_hooks.errors import WriteFailed
from resume_hooks.paths import open_regular
from resume_hooks.storage import removal
from resume_hooks.storage.atomic import link_exclusively
from resume_hooks.storage.state_file import remove_stale_temporaries, sync_folder, temporary_path


def read_file_state(
    path: str, dir_fd: int | None = None, *, read_only: bool = False
) -> os.stat_result | None:
    """Return the state of the regular file at ``path``, or None if the file does not exist.

    Raise WriteFailed if ``path`` is not a regular file but, for example, a link. Also raise
    WriteFailed if the file is write-protected, unless ``read_only`` is True.
    """
    name = _choose_name(dir_fd, path)
    try:
        status = os.lstat(name, dir_fd=dir_fd)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:  # Python raises ValueError if a name contains a NUL.
        raise make_write_error(path, error) from error
    if not stat.S_ISREG(status.st_mode):
        if stat.S_ISLNK(status.st_mode):
            kind = "a symbolic link"
        else:
            kind = "not a regular file"
        raise WriteFailed(f"{path} is {kind}, so it was left alone", "Name another file.")
    if not read_only and not os.access(name, os.W_OK, dir_fd=dir_fd):
        raise WriteFailed(
            f"{path} is read-only, so it was left alone",
            "Allow writing to it, or name another file.",
        )
    return status


def read_file_and_state(
    path: str, max_bytes: int, dir_fd: int | None = None
) -> tuple[bytes, os.stat_result | None]:
    """Return a file's content and state, or ``b""`` and None if the file does not exist.

    The caller passes the state to ``write_project_file``. Raise WriteFailed if the file cannot be
    read or is larger than ``max_bytes``.
    """
    if read_file_state(path, dir_fd, read_only=True) is None:
        return b"", None
    try:
        with open_regular(_choose_name(dir_fd, path), follow=False, dir_fd=dir_fd) as stream:
            status = os.fstat(stream.fileno())
            content = stream.read(max_bytes + 1)
    except OSError as error:
        raise make_write_error(path, error) from error
    if len(content) > max_bytes:
        raise WriteFailed(
            f"{path} is larger than {max_bytes:,} bytes, so it was left alone", "Name another file."
        )
    return content, status


def write_project_file(
    path: str,
    content: bytes,
    expected_state: os.stat_result | None,
    *,
    mode: int | None = None,
    dir_fd: int | None = None,
) -> None:
    """Write a new file, or replace the file if it is still in the state ``expected_state``.

    For a new file, ``expected_state`` is None. A replaced file keeps its mode unless ``mode`` is
    given. If WriteFailed is raised, the folder is unchanged. Stale temporary files are not removed
    here, so a caller that writes many files into a folder must remove them once.
    """
    folder = os.path.dirname(path)
    if dir_fd is None:
        remove_stale_temporaries(folder)
    name, temporary = (
        _choose_name(dir_fd, path),
        _choose_name(dir_fd, temporary_path(folder)),
    )
    try:
        _write_and_rename(temporary, content, expected_state, mode, dir_fd)
        if expected_state is None:
            link_exclusively(temporary, name, dir_fd)
        else:
            _require_unchanged(name, expected_state, dir_fd)
            os.replace(temporary, name, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
        sync_folder(folder)
    except (OSError, ValueError) as error:
        raise make_write_error(path, error) from error
    finally:
        with contextlib.suppress(OSError, ValueError):
            removal.remove_file_from_folder(temporary, dir_fd)


def remove_project_file(
    path: str, expected_state: os.stat_result, dir_fd: int | None = None
) -> None:
    """Remove a file if it is still in the state ``expected_state``.

    If WriteFailed is raised, the file is unchanged.
    """
    name = _choose_name(dir_fd, path)
    try:
        _require_unchanged(name, expected_state, dir_fd)
        removal.remove_file_from_folder(name, dir_fd)
        sync_folder(os.path.dirname(path))
    except (OSError, ValueError) as error:
        raise make_write_error(path, error) from error


@contextlib.contextmanager
def ensure_folder(folder: str) -> Iterator[None]:
    """Create ``folder`` if it is missing, but not its parents. Raise WriteFailed on failure.

    If the ``with`` block raises WriteFailed, a folder that was created is removed.
    """
    is_new = False
    try:
        if not os.path.isdir(folder):
            os.mkdir(folder)
            is_new = True
    except (OSError, ValueError) as error:
        raise make_write_error(folder, error) from error
    try:
        yield
    except WriteFailed:
        if is_new:
            # The folder is not empty if another program created a file in it.
            with contextlib.suppress(OSError):
                removal.remove_empty_folder(folder, os.path.dirname(folder), follow_root=True)
        raise


def make_write_error(path: str, error: OSError | ValueError) -> WriteFailed:
    """Return a WriteFailed error for a failed write, with the system's reason."""
    if isinstance(error, OSError) and error.strerror:
        reason = error.strerror
    else:
        reason = str(error)
    return WriteFailed(
        f"Could not write {path}: {reason}", "Check free space and the permissions of the folder."
    )


def is_same_state(
    current_state: os.stat_result | None, expected_state: os.stat_result | None
) -> bool:
    """Check whether two states belong to the same file and show no change."""
    if current_state is None or expected_state is None:
        return current_state is expected_state
    identity = (
        current_state.st_dev,
        current_state.st_ino,
        current_state.st_size,
        current_state.st_mtime_ns,
    )
    return identity == (
        expected_state.st_dev,
        expected_state.st_ino,
        expected_state.st_size,
        expected_state.st_mtime_ns,
    )


def _choose_name(dir_fd: int | None, path: str) -> str:
    """Return the last component of a path if ``dir_fd`` is given, else the whole path."""
    if dir_fd is None:
        return path
    return os.path.basename(path)


def _write_and_rename(
    path: str,
    content: bytes,
    expected_state: os.stat_result | None,
    mode: int | None,
    dir_fd: int | None,
) -> None:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # A file in a project gets the mode that the user's umask allows.
    descriptor = os.open(path, flags, 0o666, dir_fd=dir_fd)
    with os.fdopen(descriptor, "w+b") as stream:
        stream.write(content)
        stream.flush()
        if expected_state is not None:
            # This fails if the file belongs to another user, unless this program runs as root.
            with contextlib.suppress(OSError):
                os.chown(path, expected_state.st_uid, expected_state.st_gid, dir_fd=dir_fd)
        if mode is not None:
            new_mode = mode
        elif expected_state is not None:
            new_mode = stat.S_IMODE(expected_state.st_mode)
        else:
            new_mode = None
        if new_mode is not None:
            # The mode is set after the owner, because changing the owner clears bits of the mode.
            os.chmod(path, new_mode, dir_fd=dir_fd)
        os.fsync(descriptor)
        stream.seek(0)
        if stream.read() != content:
            raise OSError(None, "its content differs after writing")


def _require_unchanged(path: str, expected_state: os.stat_result, dir_fd: int | None) -> None:
    if not is_same_state(os.lstat(path, dir_fd=dir_fd), expected_state):
        raise OSError(None, "another program changed it in the meantime")
