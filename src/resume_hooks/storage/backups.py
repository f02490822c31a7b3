"""Backups of sessions that are rewritten in place: exact copies in the state folder, one folder a session.

Copies, not links: a program that still has the old file open would go on writing into a link.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from resume_hooks import clock
from resume_hooks.errors import WriteFailed
from resume_hooks.paths import Where, open_regular
from resume_hooks.storage.append_carryover import begins_with
from resume_hooks.storage.locks import leads_to, locked_folder
from resume_hooks.storage.state_file import (
    convert_os_error,
    create_file,
    discard_spare,
    read_open,
    sweep_spare_names,
    temporary_in,
)

FOLDER = "backups"
FILES = "files"  # below it: copies of what a rewind of a project's files overwrote


def backup_folder(session_id: str, where: Where) -> str:
    """Where the backups of a session lie; it may not exist."""
    return os.path.join(where.state, FOLDER, session_id)


@contextlib.contextmanager
def lock_rewrite(session_id: str, where: Where) -> Iterator[None]:
    """While the block runs nobody else rewrites this session in place.

    SessionOpen where somebody does.
    """
    busy, failed = (
        "This session is being trimmed in place already",
        "The session was not backed up to",
    )
    with locked_folder(backup_folder(session_id, where), where, busy, failed):
        yield


@contextlib.contextmanager
def hold_for_rewrite(
    session_id: str, path: str, where: Where, *, stays: bool = False
) -> Iterator[tuple[int, str]]:
    """Hold a session for a rewrite in place: locked, open to be read, with the path of its copy.

    SessionOpen while another process rewrites it.
    """
    with lock_rewrite(session_id, where):
        folder = backup_folder(session_id, where)
        sweep_spare_names(folder)
        if stays:
            copy = os.path.join(folder, f"{clock.now().replace(':', '-')}.jsonl")
        else:
            copy = temporary_in(folder)
        with hold_beside_copy(path, copy, stays=stays) as original:
            yield original, copy


@contextlib.contextmanager
def hold_beside_copy(path: str, copy: str, *, stays: bool = False) -> Iterator[int]:
    """Hold a file open while an exact copy of it is there, which ``stays`` only if the file is replaced.

    A copy that is to stay is on disk. WriteFailed where it can't be made; nothing is left of it
    then.
    """
    with convert_os_error(f"{path} can't be read", "Nothing was changed."):
        stream = open_regular(path, follow=False)
    with stream:
        original, made, whole = stream.fileno(), not os.path.lexists(copy), False
        try:
            with convert_os_error(f"{path} could not be copied to {copy}"):
                create_file(copy, read_open(original, os.fstat(original).st_size), lasting=stays)
                whole = begins_with(original, copy)
            if not whole:
                raise WriteFailed(
                    f"{path} changed while it was copied",
                    "Nothing was changed. Run the command again.",
                )
            yield original
        finally:
            if made and (not (stays and whole) or leads_to(path, original)):
                discard_spare(copy)


def backup_time(path: str) -> str:
    """The instant that a backup is named by; ``""`` for any other file."""
    name = os.path.basename(path).removesuffix(".jsonl")
    if name[10:11] == "T" and name.endswith("Z"):
        return f"{name[:11]}{name[11:].replace('-', ':')}"
    return ""
