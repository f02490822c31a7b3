"""Restoring: a deleted session put back, byte for byte, where it was. What is there by now is never written over.

Its parts come first and the transcript last, so that no client sees half a session; interrupted, it can be run again.
Each file keeps its time, unless the client would delete it within days for its age.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from resume_hooks import trash
from resume_hooks.client_settings import kept_days
from resume_hooks.errors import PlaceTaken, SessionNotFound, WriteFailed
from resume_hooks.moving import inside, is_same, move, weigh
from resume_hooks.paths import private_folder
from resume_hooks.trash import PROJECTS, Entry

DAY = 24 * 60 * 60
"""Seconds."""

SPARE_DAYS = 7
"""Days that a restored session is left at least, before the client deletes it for its age."""

AGED = "It is older than the {kept} days that the client keeps sessions: it counts as newer, and has {left} days left."
LOST = "{place} is neither in the trash nor where it was: it did not come back."
CHANGED = "{name} was changed in the trash since the session was deleted."
THERE = "It was there already, byte for byte the same; it is no longer in the trash."


class Step(NamedTuple):
    """A file, or a whole folder, on its way back; ``there`` already, the same."""

    kept: str
    path: str
    there: bool


class Restoration(NamedTuple):
    """A restore to be, transcript last."""

    entry: Entry
    path: str
    steps: tuple[Step, ...]
    aged: bool
    warnings: tuple[str, ...]


def plan(entry: Entry, environ: Mapping[str, str]) -> Restoration:
    """Decide how a session comes back; nothing is moved.

    PlaceTaken where something else lies in its place, SessionNotFound where its transcript is gone from the trash.
    """
    transcript = entry.parts[0]
    path, warnings, steps = transcript.path(environ), [], []
    try:
        for part in (*entry.parts[1:], transcript):
            kept, place = entry.kept(part), part.path(environ)
            if os.path.lexists(kept) and not (part.size and _is_stub(kept)):
                if part.place.startswith(PROJECTS):  # the other folders may be links of the user's own
                    _require_real(os.path.dirname(place), os.path.dirname(place))
                if part.sha256 and not os.path.lexists(place) and weigh(kept).sha256 != part.sha256:
                    warnings.append(CHANGED.format(name=part.name))
                steps += list(_steps(kept, place))
            elif not os.path.lexists(place):
                if part is transcript:
                    raise SessionNotFound(f"{kept} is gone from the trash", "Somebody removed it there.")
                warnings.append(LOST.format(place=place))
        aged = _floor(entry.cwd, environ) > _written(entry.kept(transcript), path)
    except OSError as error:
        raise WriteFailed(f"{error.filename} can't be read: {error.strerror}", "Check its permissions.") from error
    days = kept_days(entry.cwd, environ)
    notes = [AGED.format(kept=days, left=_spare(days))] if aged and days is not None else []
    if all(step.there for step in steps):
        notes.insert(0, THERE)
    return Restoration(entry, path, tuple(steps), aged, (*notes, *warnings))


def write(decided: Restoration, environ: Mapping[str, str]) -> None:
    """Put a session back. WriteFailed where something can't be moved: what came back stays, and it can be run again."""
    entry = decided.entry
    floor = _floor(entry.cwd, environ)
    try:
        for step in decided.steps:
            if not step.there:
                _keep_from_expiring(step.kept, floor)
                private_folder(os.path.dirname(step.path))
                if _is_stub(step.path):
                    os.unlink(step.path)
                move(step.kept, step.path)
            else:
                _keep_from_expiring(step.path, floor)
        trash.drop(entry)
    except OSError as error:
        raise WriteFailed(
            f"{error.filename or entry.folder} could not be brought back: {error.strerror or error}",
            f"Nothing is lost. When the cause is mended, run it again: resume-hooks restore {entry.session_id}",
        ) from error


def _steps(kept: str, place: str) -> Iterator[Step]:
    """A part as a whole where its place is free, else file by file. PlaceTaken where something else is there."""
    if not os.path.lexists(place) or _is_stub(place):
        yield Step(kept, place, there=False)
        return
    for name in inside(kept):
        one, other = (os.path.join(root, name) if name else root for root in (kept, place))
        if name:
            _require_real(os.path.dirname(other), place)
        there = os.path.lexists(other) and not _is_stub(other)
        if there and not is_same(one, other):
            raise PlaceTaken(
                f"{other} is there again, and not the same", "Move that away, or delete that session, then try again."
            )
        yield Step(one, other, there=there)


def _is_stub(path: str) -> bool:
    """Whether an empty file lies there: clients leave such, and so does a move that was killed."""
    return os.path.isfile(path) and not os.path.islink(path) and not os.path.getsize(path)


def _require_real(folder: str, top: str) -> None:
    """Raise PlaceTaken where a folder, or one above it up to ``top``, is a link or anything else that is no folder."""
    if os.path.lexists(folder) and (os.path.islink(folder) or not os.path.isdir(folder)):
        raise PlaceTaken(f"{folder} is no folder", "Move it away, then try again.")
    if folder != top:
        _require_real(os.path.dirname(folder), top)


def _spare(kept: int) -> int:
    """Days that are left at least, where sessions are kept so many."""
    return min(SPARE_DAYS, (kept + 1) // 2)


def _floor(cwd: str, environ: Mapping[str, str]) -> float:
    """The oldest time, in seconds since the epoch, that a restored file may have; 0 where none is too old."""
    kept = kept_days(cwd, environ)
    return 0.0 if kept is None else time.time() - (kept - _spare(kept)) * DAY


def _written(*paths: str) -> float:
    return next((os.lstat(path).st_mtime for path in paths if os.path.lexists(path)), 0.0)


def _keep_from_expiring(path: str, floor: float) -> None:
    """Make what is too old as new as the floor; the client goes by the time of every file, and of some folders."""
    names = inside(path)
    folders = {os.path.dirname(os.path.join(path, name)) for name in names if name}
    for each in (path, *folders, *(os.path.join(path, name) for name in names if name)):
        status = os.lstat(each)
        if status.st_mtime < floor:
            os.utime(each, (status.st_atime, floor), follow_symlinks=False)
