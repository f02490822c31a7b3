"""Backups of sessions that are rewritten in place: exact copies in the state folder, one folder a session.

Copies, not links: a program that still has the old file open would go on writing into a link.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.errors import WriteFailed
from resume_hooks.paths import Where
from resume_hooks.storage.append_carryover import begins_with
from resume_hooks.storage.locks import leads_to, locked_folder
from resume_hooks.storage.state_file import create, read_open

FOLDER = "backups"
FILES = "files"  # below it: copies of what a rewind of a project's files overwrote
NOT_KEPT = "The session was not backed up to"


def folder_of(session_id: str, where: Where) -> str:
    """Where the backups of a session lie; it may not exist."""
    return os.path.join(where.state, FOLDER, session_id)


@contextlib.contextmanager
def only_one(session_id: str, where: Where) -> Iterator[None]:
    """While the block runs nobody else rewrites this session in place; SessionLive where somebody does."""
    busy = "This session is being trimmed in place already"
    with locked_folder(folder_of(session_id, where), where, busy, NOT_KEPT):
        yield


def back_up(session_id: str, descriptor: int, where: Where) -> str:
    """Copy the open file as it is now, compared as read back; the path. WriteFailed leaves no copy."""
    path = os.path.join(folder_of(session_id, where), f"{clock.now().replace(':', '-')}.jsonl")
    whole = False
    try:
        create(path, read_open(descriptor, os.fstat(descriptor).st_size))
        whole = begins_with(descriptor, path)
    except OSError as error:
        raise WriteFailed(
            f"{NOT_KEPT} {path}: {error.strerror or error}",
            "Nothing was changed. Check free space and the permissions of the folder.",
        ) from error
    finally:
        if not whole:
            drop(path)
    if not whole:
        raise WriteFailed("The session changed while its backup was made", "Nothing was changed. Run it again.")
    return path


class Held(NamedTuple):
    """A session's file, open for reading, and its backup."""

    original: int
    backup: str


@contextlib.contextmanager
def held(session_id: str, path: str, where: Where) -> Iterator[Held]:
    """Hold a session locked, open and backed up, for good if its file is replaced. SessionLive, WriteFailed."""
    with only_one(session_id, where):
        try:
            original = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except OSError as error:
            raise WriteFailed(f"{path} can't be read: {error.strerror}", "Nothing was changed.") from error
        try:
            backup = back_up(session_id, original, where)
            try:
                yield Held(original, backup)
            finally:
                if leads_to(path, original):  # it was not replaced
                    drop(backup)
        finally:
            os.close(original)


def instant_of(path: str) -> str:
    """The instant that a backup is named by; ``""`` for any other file."""
    name = os.path.basename(path).removesuffix(".jsonl")
    return f"{name[:11]}{name[11:].replace('-', ':')}" if name[10:11] == "T" and name.endswith("Z") else ""


def drop(path: str) -> None:
    """Remove a backup that stands for nothing."""
    with contextlib.suppress(OSError):
        os.unlink(path)
