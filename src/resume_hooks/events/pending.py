"""The open question of a session: which trim was previewed, and when; one small private file a session.

Invariant: a question counts only if this user's own engine wrote it, for this very session, within ``OPEN`` seconds;
anything else that lies in its place is no question.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import Any, NamedTuple

from resume_hooks.paths import is_session_id, open_regular, private_folder, state_home

VERSION = 1
OPEN = 600
"""Seconds for which a question can be answered."""

SKEW = 5
"""Seconds that a clock may step back without a question counting as one from the future."""

KEPT = 86_400
"""Seconds after which the questions of other sessions are swept."""

MAKING = 30
"""Seconds after which nobody is still making what was confirmed: its hook was ended."""

MAX_BYTES = 64 * 1024
_LAST = 253_402_300_799  # the last second that a calendar holds; JSON has numbers that no float does
_PREFIX = "trim-"
_BEGUN = ".begun"


class Question(NamedTuple):
    """A trim that was previewed: its options as typed, and when, in seconds since the epoch.

    ``child`` is the session that came of it, ``""`` while it is unanswered.
    """

    session_id: str
    options: str
    asked: float
    child: str = ""

    @property
    def is_open(self) -> bool:
        """Whether it can still be answered with yes."""
        return not self.child and -SKEW <= time.time() - self.asked <= OPEN


def keep(question: Question) -> None:
    """Store a question in place of the session's last one; sweeps old ones. OSError where that can't be done."""
    path = _file(question.session_id)
    private_folder(state_home())
    private_folder(os.path.dirname(path))
    _sweep(os.path.dirname(path))
    temporary = f"{path}.{os.getpid()}-{time.time_ns()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            json.dump({"version": VERSION, **question._asdict()}, stream)
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def find(session_id: str) -> Question | None:
    """The last question of a session, open or not; None where there is none that can be trusted."""
    try:
        found = json.loads(_read(_file(session_id)))
    except (OSError, ValueError, RecursionError):
        return None
    return _question(found, session_id) if isinstance(found, dict) else None


def take(session_id: str) -> bool:
    """Use a session's question up; False where it is gone already. Of two takers one gets it."""
    try:
        os.unlink(_file(session_id))
    except OSError:
        return False
    return True


def begin(question: Question) -> bool:
    """Use a question up to make what it asks for; of several one gets it, and others can tell that.

    False also where it is not the session's question any more: answered, or another one.
    """
    mark = _file(question.session_id) + _BEGUN
    if os.path.lexists(mark) and not is_begun(question.session_id):
        end(question.session_id)  # left by a hook that was ended
    try:
        os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:
        return False
    if find(question.session_id) == question and take(question.session_id):
        return True
    end(question.session_id)
    return False


def end(session_id: str) -> None:
    """Whoever began is done; its question was kept again before."""
    with contextlib.suppress(OSError):
        os.unlink(_file(session_id) + _BEGUN)


def is_begun(session_id: str) -> bool:
    """Whether another prompt is making what was confirmed."""
    try:
        return abs(time.time() - os.lstat(_file(session_id) + _BEGUN).st_mtime) <= MAKING
    except OSError:
        return False


def _file(session_id: str) -> str:
    return os.path.join(state_home(), "pending", f"{_PREFIX}{session_id}.json")


def _read(path: str) -> bytes:
    """The start of a file of ours, ``b""`` for anything else. OSError where it can't be read."""
    with open_regular(path, follow=False) as stream:
        return stream.read(MAX_BYTES) if _is_ours(os.fstat(stream.fileno())) else b""


def _is_ours(status: os.stat_result) -> bool:
    """Whether a file is one that this user alone can have written."""
    owner = os.geteuid() if hasattr(os, "geteuid") else status.st_uid
    return status.st_uid == owner and not status.st_mode & 0o022


def _question(found: dict[str, Any], session_id: str) -> Question | None:
    options, asked, child = found.get("options"), found.get("asked"), found.get("child")
    if found.get("version") != VERSION or found.get("session_id") != session_id:
        return None
    if not isinstance(options, str) or not (child == "" or is_session_id(child)):
        return None
    if not isinstance(asked, (int, float)) or not 0 < asked < _LAST:
        return None
    return Question(session_id, options, asked, str(child))


def _sweep(folder: str) -> None:
    """Remove what sessions that ended left behind, and what a writer that was killed did."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:  # another sweep may be faster
        for entry in entries:
            old = entry.name.startswith(_PREFIX) and time.time() - entry.stat(follow_symlinks=False).st_mtime > KEPT
            if old and not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
