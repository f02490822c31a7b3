"""Back up sessions that are rewritten in place.

The backups are exact copies in the state folder, which contains a subfolder for each session. They
are not hard links, because a program that has the old file open would also write to a hard link.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from resume_hooks import clock
from resume_hooks.errors import WriteFailed
from resume_hooks.paths import Where, open_regular
from resume_hooks.storage.append_carryover import begins_with_copy
from resume_hooks.storage.locks import is_path_of_descriptor, lock_folder
from resume_hooks.storage.state_file import (
    convert_os_error,
    create_file,
    discard_temporary,
    read_chunks,
    remove_stale_temporaries,
    temporary_path,
)

BACKUPS_FOLDER = "backups"
# The subfolder for copies of the project files that a rewind overwrote.
REWIND_COPIES_FOLDER = "files"


def backup_folder(session_id: str, where: Where) -> str:
    """Return the path of the folder for a session's backups. The folder may not exist."""
    return os.path.join(where.state, BACKUPS_FOLDER, session_id)


@contextlib.contextmanager
def lock_rewrite(session_id: str, where: Where) -> Iterator[None]:
    """Prevent other processes from rewriting this session in place while the ``with`` block runs.

    Raise SessionInUse if another process is already rewriting the session.
    """
    busy, failed = (
        "This session is already being trimmed in place",
        "The session was not backed up to",
    )
    with lock_folder(backup_folder(session_id, where), where, busy, failed):
        yield


@contextlib.contextmanager
def open_and_copy_for_rewrite(
    session_id: str, path: str, where: Where, *, keep_copy: bool = False
) -> Iterator[tuple[int, str]]:
    """Lock, open and copy a session that the ``with`` block rewrites in place.

    The lock ends with the block. Yield the session's descriptor, open for reading, and the path of
    the copy. Unless ``keep_copy`` is True, the copy is removed after the block. Raise SessionInUse
    if another process is rewriting the session.
    """
    with lock_rewrite(session_id, where):
        folder = backup_folder(session_id, where)
        remove_stale_temporaries(folder)
        if keep_copy:
            copy = os.path.join(folder, f"{clock.now().replace(':', '-')}.jsonl")
        else:
            copy = temporary_path(folder)
        with open_and_copy(path, copy, keep_copy=keep_copy) as original:
            yield original, copy


@contextlib.contextmanager
def open_and_copy(path: str, copy_path: str, *, keep_copy: bool = False) -> Iterator[int]:
    """Open a file and make an exact copy of it. Yield the descriptor of the open file.

    The copy is removed after the ``with`` block, unless ``keep_copy`` is True and the file was
    replaced. With ``keep_copy``, the copy is synced. If the copy cannot be made, raise WriteFailed
    and leave no part of the copy.
    """
    with convert_os_error(f"{path} can't be read", "Nothing was changed."):
        stream = open_regular(path, follow=False)
    with stream:
        original_fd, is_new, is_complete = stream.fileno(), not os.path.lexists(copy_path), False
        try:
            with convert_os_error(f"{path} could not be copied to {copy_path}"):
                create_file(
                    copy_path,
                    read_chunks(original_fd, os.fstat(original_fd).st_size),
                    sync=keep_copy,
                )
                is_complete = begins_with_copy(original_fd, copy_path)
            if not is_complete:
                raise WriteFailed(
                    f"{path} changed while it was copied",
                    "Nothing was changed. Run the command again.",
                )
            yield original_fd
        finally:
            if is_new and (
                not (keep_copy and is_complete) or is_path_of_descriptor(path, original_fd)
            ):
                discard_temporary(copy_path)


def backup_time(path: str) -> str:
    """Return the time in a backup's name as a timestamp, or ``""`` if the file is not a backup."""
    name = os.path.basename(path).removesuffix(".jsonl")
    if name[10:11] == "T" and name.endswith("Z"):
        return f"{name[:11]}{name[11:].replace('-', ':')}"
    return ""
