"""Small private notes from one hook to a later one, a JSON object each, in ``pending`` of the state folder.

Invariant: a note is written whole or not at all, and counts only if this user alone can have
written it; anything else in its place is ignored. Standard library, Python 3.9.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from typing import Any, Callable, Dict, List

from resume_hooks.paths import Where, is_private, open_regular
from resume_hooks.storage import removal, state_file

VERSION = 1
KEPT = 86_400  # seconds after which notes that nobody took are swept
MAKING = (
    30  # seconds after which nobody is still at work on what a note asks for: its hook was ended
)
WAIT = 1.0  # seconds that a prompt waits for another one that is at the same work

PAUSE = 0.02
MAX_BYTES = (
    512 * 1024
)  # of a note; a handoff that waits has an opening, each letter of which may take 12
_BEGUN = ".begun"
_LAST = (
    253_402_300_799  # the last second that a calendar holds; JSON has numbers that no float does
)


def note_path(name: str) -> str:
    """The path of a note."""
    return os.path.join(Where().state, "pending", name)


def write_note(name: str, value: Dict[str, Any]) -> None:
    """Write a note in place of the last one of its name. OSError where that can't be done."""
    state_file.replace_state_file(
        note_path(name), json.dumps({"version": VERSION, **value}).encode(), Where()
    )


def read_note(name: str) -> Dict[str, Any]:
    """The contents of a note, ``{}`` without one that can be trusted and understood."""
    try:
        with open_regular(_safe_note_path(name), follow=False) as stream:
            if _is_ours(os.fstat(stream.fileno())):
                value = json.loads(stream.read(MAX_BYTES))
            else:
                value = {}
    except (OSError, ValueError, RecursionError):
        return {}
    if isinstance(value, dict) and value.get("version") == VERSION:
        return value
    return {}


def consume_note(name: str) -> bool:
    """Consume a note; False if it is gone already. Of two callers one succeeds."""
    try:
        removal.remove_file(_safe_note_path(name), Where().state)
    except OSError:
        return False
    return True


def compaction_note(session_id: str) -> str:
    """The name of the note that we answered a session's compaction, so that nothing was lost."""
    return f"compacted-{session_id}.json"


def consume_fresh_note(name: str, seconds: float) -> bool:
    """Consume a note that has its time in ``at``; whether that was within the last ``seconds``."""
    at = read_note(name).get("at", 0)
    return consume_note(name) and is_instant(at) and abs(time.time() - at) <= seconds


def claim_note(name: str) -> bool:
    """Claim the work that a note asks for. Of several callers one succeeds.

    Others can see the claim until it ends.
    """
    try:
        claim = _safe_note_path(name + _BEGUN)
        if os.path.lexists(claim) and not is_note_claimed(name):
            release_note(name)  # left by a hook that was ended
        os.close(os.open(claim, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:
        return False
    return True


def release_note(name: str) -> None:
    """End a claim."""
    with contextlib.suppress(OSError):
        removal.remove_file(_safe_note_path(name + _BEGUN), Where().state)


def is_note_claimed(name: str) -> bool:
    """Whether a note is claimed."""
    try:
        return abs(time.time() - os.lstat(_safe_note_path(name + _BEGUN)).st_mtime) <= MAKING
    except OSError:
        return False


def wait_for_note(name: str, is_settled: Callable[[], bool] = lambda: False) -> None:
    """Wait until the claim on a note ends, or ``is_settled`` says so; for ``WAIT`` at most."""
    deadline = time.monotonic() + WAIT
    while is_note_claimed(name) and not is_settled() and time.monotonic() < deadline:
        time.sleep(PAUSE)


def note_names(prefix: str) -> List[str]:
    """The names of all notes with a prefix, sorted."""
    try:
        return sorted(name for name in os.listdir(_safe_note_path("")) if name.startswith(prefix))
    except OSError:
        return []


def sweep_notes(prefix: str, kept: float = KEPT) -> None:
    """Remove notes with a prefix that are older than ``kept`` seconds."""
    with (
        contextlib.suppress(OSError),
        os.scandir(_safe_note_path("")) as entries,
    ):  # another sweep may be faster
        for entry in entries:
            old = (
                entry.name.startswith(prefix)
                and time.time() - entry.stat(follow_symlinks=False).st_mtime > kept
            )
            if old and not entry.is_dir(follow_symlinks=False):
                removal.remove_file(entry.path, Where().state)


def is_instant(value: object) -> bool:
    """Whether a value of a note can be seconds since the epoch."""
    return isinstance(value, (int, float)) and 0 < value < _LAST


def _safe_note_path(name: str) -> str:
    """The path of a note. OSError if its folder is not ours, but behind a link, say."""
    path = note_path(name)
    if not is_private(os.path.dirname(path), Where()):
        raise OSError(errno.ELOOP, f"{os.path.dirname(path)} is not a resume-hooks folder", path)
    return path


def _is_ours(status: os.stat_result) -> bool:
    """Whether a file is one that this user alone can have written."""
    owner = os.geteuid() if hasattr(os, "geteuid") else status.st_uid
    return status.st_uid == owner and not status.st_mode & 0o022
