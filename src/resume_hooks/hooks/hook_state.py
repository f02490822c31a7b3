"""Notes from one hook to a later hook: small JSON files in the state folder's ``pending``.

Invariant: a note is written completely or not at all. A note that another user could have written
is ignored, as is any other file. This module uses only the standard library and must run on Python
3.9.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from typing import Any, Callable, Dict, List

from resume_hooks.paths import Where, is_private_folder, open_regular
from resume_hooks.storage import removal, state_file

NOTE_VERSION = 1
NOTE_LIFETIME_SECONDS = (
    86_400  # the number of seconds after which notes that no hook used are deleted
)
# the number of seconds after which a claim expires, because its hook was probably killed
CLAIM_LIFETIME_SECONDS = 30
# the number of seconds that a prompt waits for another prompt that does the same work
MAX_WAIT_SECONDS = 1.0

POLL_SECONDS = 0.02
# The maximum number of bytes of a note. A pending handoff contains an opening, and each character
# of the opening may take 12 bytes.
MAX_NOTE_BYTES = 512 * 1024
_CLAIM_SUFFIX = ".begun"
# The last second of the year 9999. Larger times in a note are reduced to it, because a number in
# JSON may even be too large for a float.
_MAX_TIMESTAMP = 253_402_300_799


def note_path(name: str) -> str:
    """Return the path of the note with this name."""
    return os.path.join(Where().state, "pending", name)


def write_note(name: str, value: Dict[str, Any]) -> None:
    """Write a note, and replace an older note with the same name. Raise OSError if it can't be written."""
    state_file.replace_state_file(
        note_path(name), json.dumps({"version": NOTE_VERSION, **value}).encode(), Where()
    )


def read_note(name: str) -> Dict[str, Any]:
    """Return the contents of a note.

    Return ``{}`` if the note is missing or invalid, or if another user may have written it.
    """
    try:
        with open_regular(_safe_note_path(name), follow=False) as stream:
            if _is_writable_only_by_us(os.fstat(stream.fileno())):
                value = json.loads(stream.read(MAX_NOTE_BYTES))
            else:
                value = {}
    except (OSError, ValueError, RecursionError):
        return {}
    if isinstance(value, dict) and value.get("version") == NOTE_VERSION:
        return value
    return {}


def consume_note(name: str) -> bool:
    """Delete a note. Return False if another process deleted it first."""
    try:
        removal.remove_file(_safe_note_path(name), Where().state)
    except OSError:
        return False
    return True


def compaction_note_name(session_id: str) -> str:
    """Return the name of the note which says that the module, not the client, compacted a session.

    After such a compaction, no facts need to be restored.
    """
    return f"compacted-{session_id}.json"


def consume_fresh_note(name: str, max_age_seconds: float) -> bool:
    """Delete a note, and return whether it was written at most ``max_age_seconds`` seconds ago.

    The note's field ``at`` is the time at which it was written.
    """
    written_at = read_note(name).get("at", 0)
    return (
        consume_note(name)
        and is_valid_timestamp(written_at)
        and abs(time.time() - written_at) <= max_age_seconds
    )


def claim_note(name: str) -> bool:
    """Claim a note before doing the work that the note is about. Return True only to the first caller.

    Until the claim is released or expires, ``is_note_claimed`` is true for every process.
    """
    try:
        claim = _safe_note_path(name + _CLAIM_SUFFIX)
        if os.path.lexists(claim) and not is_note_claimed(name):
            release_note(name)  # The hook that made the claim was killed.
        os.close(os.open(claim, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:
        return False
    return True


def release_note(name: str) -> None:
    """Release the claim on a note. Do nothing if there is no claim."""
    with contextlib.suppress(OSError):
        removal.remove_file(_safe_note_path(name + _CLAIM_SUFFIX), Where().state)


def is_note_claimed(name: str) -> bool:
    """Check whether a process has claimed a note and the claim has not expired."""
    try:
        return (
            abs(time.time() - os.lstat(_safe_note_path(name + _CLAIM_SUFFIX)).st_mtime)
            <= CLAIM_LIFETIME_SECONDS
        )
    except OSError:
        return False


def wait_for_note(name: str, is_done: Callable[[], bool] = lambda: False) -> None:
    """Wait until the claim on a note ends or ``is_done`` returns True.

    Wait at most ``MAX_WAIT_SECONDS`` seconds.
    """
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    while is_note_claimed(name) and not is_done() and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def list_note_names(prefix: str) -> List[str]:
    """Return the sorted names of all notes whose name begins with ``prefix``."""
    try:
        return sorted(name for name in os.listdir(_safe_note_path("")) if name.startswith(prefix))
    except OSError:
        return []


def delete_old_notes(prefix: str, max_age_seconds: float = NOTE_LIFETIME_SECONDS) -> None:
    """Delete the notes that begin with ``prefix`` and are older than ``max_age_seconds`` seconds."""
    # Another process may delete a note first.
    with contextlib.suppress(OSError), os.scandir(_safe_note_path("")) as entries:
        for entry in entries:
            is_old = (
                entry.name.startswith(prefix)
                and time.time() - entry.stat(follow_symlinks=False).st_mtime > max_age_seconds
            )
            if is_old and not entry.is_dir(follow_symlinks=False):
                removal.remove_file(entry.path, Where().state)


def is_valid_timestamp(value: object) -> bool:
    """Check whether a value from a note is a number of seconds since 1970."""
    return isinstance(value, (int, float)) and 0 < value < _MAX_TIMESTAMP


def _safe_note_path(name: str) -> str:
    """Return the path of a note. Raise OSError if the notes folder is a link or belongs to another user."""
    path = note_path(name)
    if not is_private_folder(os.path.dirname(path), Where()):
        raise OSError(errno.ELOOP, f"{os.path.dirname(path)} is not a resume-hooks folder", path)
    return path


def _is_writable_only_by_us(status: os.stat_result) -> bool:
    """Check whether a file belongs to this user and no other user may write to it."""
    owner = os.geteuid() if hasattr(os, "geteuid") else status.st_uid
    return status.st_uid == owner and not status.st_mode & 0o022
