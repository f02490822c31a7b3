"""The only writer of files in a user's project, such as documents and restored files.

It writes a file completely or not at all.

The bytes go to a temporary file beside the target, which is synced, read back and only then
renamed. Symbolic links are never written through, and a file is replaced or removed only if it has
not changed since it was examined. ``within`` is the descriptor of an open folder (``safe_tree``):
the last component of a path is then relative to it, and the whole path serves only for messages.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

from resume_hooks.errors import WriteFailed
from resume_hooks.paths import open_regular
from resume_hooks.storage import removal
from resume_hooks.storage.atomic import name_exclusively
from resume_hooks.storage.state_file import sweep_spare_names, sync_folder, temporary_in


def state_of(
    path: str, within: int | None = None, *, read_only: bool = False
) -> os.stat_result | None:
    """Return the state of the regular file to replace at ``path``, or None if no file exists.

    Raise WriteFailed for a link, for anything else but a regular file, and, unless ``read_only``,
    for a write-protected file.
    """
    name = _seen_from(within, path)
    try:
        found = os.lstat(name, dir_fd=within)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:  # ValueError for a NUL in a name
        raise write_error(path, error) from error
    if not stat.S_ISREG(found.st_mode):
        if stat.S_ISLNK(found.st_mode):
            what = "a symbolic link"
        else:
            what = "not a regular file"
        raise WriteFailed(f"{path} is {what}, so it was left alone", "Name another file.")
    if not read_only and not os.access(name, os.W_OK, dir_fd=within):
        raise WriteFailed(
            f"{path} is read-only, so it was left alone",
            "Allow writing to it, or name another file.",
        )
    return found


def read_state(
    path: str, limit: int, within: int | None = None
) -> tuple[bytes, os.stat_result | None]:
    """Return a file's content and the state that ``write_project_file`` requires; ``b""`` and None without a file.

    Raise WriteFailed on failure.
    """
    if state_of(path, within, read_only=True) is None:
        return b"", None
    try:
        with open_regular(_seen_from(within, path), follow=False, within=within) as stream:
            found = os.fstat(stream.fileno())
            content = stream.read(limit + 1)
    except OSError as error:
        raise write_error(path, error) from error
    if len(content) > limit:
        raise WriteFailed(
            f"{path} is larger than {limit:,} bytes, so it was left alone", "Name another file."
        )
    return content, found


def write_project_file(
    path: str,
    content: bytes,
    over: os.stat_result | None,
    *,
    mode: int | None = None,
    within: int | None = None,
) -> None:
    """Write ``content`` to ``path``: a new file, or a replacement of the file with the state ``over``.

    A replacement keeps its mode.

    ``mode`` overrides the file's mode. After WriteFailed the folder is unchanged. A caller that
    writes many files ``within`` a folder sweeps temporary files once itself.
    """
    folder = os.path.dirname(path)
    if within is None:
        sweep_spare_names(folder)
    name, temporary = _seen_from(within, path), _seen_from(within, temporary_in(folder))
    try:
        _write_and_rename(temporary, content, over, mode, within)
        if over is None:
            name_exclusively(temporary, name, within)
        else:
            _require_same(name, over, within)
            os.replace(temporary, name, src_dir_fd=within, dst_dir_fd=within)
        sync_folder(folder)
    except (OSError, ValueError) as error:
        raise write_error(path, error) from error
    finally:
        with contextlib.suppress(OSError, ValueError):
            removal.remove_name(temporary, within)


def remove_project_file(path: str, over: os.stat_result, within: int | None = None) -> None:
    """Remove the file with the state ``over``. After WriteFailed it is unchanged."""
    name = _seen_from(within, path)
    try:
        _require_same(name, over, within)
        removal.remove_name(name, within)
        sync_folder(os.path.dirname(path))
    except (OSError, ValueError) as error:
        raise write_error(path, error) from error


@contextlib.contextmanager
def ensure_folder(folder: str) -> Iterator[None]:
    """Create ``folder``, but not its parents, if it is missing.

    Remove it again if the block fails. Raise WriteFailed.
    """
    made = False
    try:
        if not os.path.isdir(folder):
            os.mkdir(folder)
            made = True
    except (OSError, ValueError) as error:
        raise write_error(folder, error) from error
    try:
        yield
    except WriteFailed:
        if made:
            with contextlib.suppress(OSError):  # another program put a file into it
                removal.remove_empty(folder, os.path.dirname(folder), follow_root=True)
        raise


def write_error(path: str, error: OSError | ValueError) -> WriteFailed:
    """Return the error for a failed write, with its reason."""
    if isinstance(error, OSError) and error.strerror:
        why = error.strerror
    else:
        why = str(error)
    return WriteFailed(
        f"Could not write {path}: {why}", "Check free space and the permissions of the folder."
    )


def is_same_state(there: os.stat_result | None, over: os.stat_result | None) -> bool:
    """Check whether two states show the same unchanged file."""
    if there is None or over is None:
        return there is over
    same = (there.st_dev, there.st_ino, there.st_size, there.st_mtime_ns)
    return same == (over.st_dev, over.st_ino, over.st_size, over.st_mtime_ns)


def _seen_from(within: int | None, path: str) -> str:
    """Return a path's last component if it is relative to an open folder, else the whole path."""
    if within is None:
        return path
    return os.path.basename(path)


def _write_and_rename(
    path: str, content: bytes, over: os.stat_result | None, mode: int | None, within: int | None
) -> None:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # A project's file gets the mode that the user's umask allows.
    descriptor = os.open(path, flags, 0o666, dir_fd=within)
    with os.fdopen(descriptor, "w+b") as stream:
        stream.write(content)
        stream.flush()
        if over is not None:
            with contextlib.suppress(
                OSError
            ):  # fails for a colleague's file; as root it restores the owner
                os.chown(path, over.st_uid, over.st_gid, dir_fd=within)
        if mode is not None:
            kept = mode
        elif over is not None:
            kept = stat.S_IMODE(over.st_mode)
        else:
            kept = None
        if kept is not None:
            os.chmod(
                path, kept, dir_fd=within
            )  # after the owner, because a change of owner clears bits of the mode
        os.fsync(descriptor)
        stream.seek(0)
        if stream.read() != content:
            raise OSError(None, "its content differs after writing")


def _require_same(path: str, over: os.stat_result, within: int | None) -> None:
    if not is_same_state(os.lstat(path, dir_fd=within), over):
        raise OSError(None, "another program changed it meanwhile")
