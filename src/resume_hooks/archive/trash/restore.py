"""Restoring: a deleted session put back, byte for byte, where it was. What is there by now is never written over.

Its parts come first and the transcript last, so that no client sees half a session; interrupted, it can be run again.
Each file keeps its time, unless the client would delete it within days for its age.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.archive.trash import contents
from resume_hooks.archive.trash.contents import BY_ID, TrashEntry, TrashPart
from resume_hooks.clock import DAY
from resume_hooks.errors import PlaceTaken, SessionNotFound, WriteFailed
from resume_hooks.paths import ENDING, Where, find_session, private_folder
from resume_hooks.sessions.archived.layout import PROJECTS
from resume_hooks.storage.move import inside, is_same, is_stub, move, pairs, remove, weigh
from resume_hooks.system.claude_settings import kept_days
from resume_hooks.system.text import counted

SPARE_DAYS = 7
"""Days that a restored session is left at least, before the client deletes it for its age."""

AGED = "It is older than the {kept} that the client keeps sessions: it counts as newer, and has {left} left."
LOST = "{place} is neither in the trash nor where it was: it did not come back."
CHANGED = "{name} was changed in the trash since the session was deleted."
LEFT = "{path} is left of an interrupted delete, and is not what came back: look at it."
TWICE = "{path} has the same id: clients since 2.1.223 resume no id that lies in two folders. Delete one of them."
THERE = "It was there already, byte for byte the same; it is no longer in the trash."


class Step(NamedTuple):
    """A file, or a whole folder, on its way back; ``there`` already, the same."""

    kept: str
    path: str
    there: bool


class TrashRestoration(NamedTuple):
    """A restore to be, transcript last."""

    entry: TrashEntry
    path: str
    steps: tuple[Step, ...]
    warnings: tuple[str, ...]


def plan(entry: TrashEntry, where: Where) -> TrashRestoration:
    """Decide how a session comes back; nothing is moved.

    PlaceTaken where something else lies in its place, SessionNotFound where its transcript is gone from the trash.
    """
    transcript = entry.parts[0]
    path, warnings, steps = transcript.path(where), list[str](), list[Step]()
    try:
        for part in (*entry.parts[1:], transcript):
            kept, place = entry.lies(part, where), part.path(where)
            if kept:
                if part.place.startswith(PROJECTS):  # the other folders may be links of the user's own
                    require_real(os.path.dirname(place), os.path.dirname(place))
                if part.sha256 and not os.path.lexists(place) and weigh(kept).sha256 != part.sha256:
                    warnings.append(CHANGED.format(name=part.name))
                steps += _steps(entry, part, where)
            elif not os.path.lexists(place):
                if part is transcript:
                    raise SessionNotFound(
                        f"{entry.kept(part)} is gone from the trash",
                        f"It is not at {place} either: somebody removed it.",
                    )
                lent = _lent(entry, part.place, where)
                steps += lent
                warnings += [] if lent else [LOST.format(place=place)]
        aged = floor(entry.cwd, where) > _written(entry.lies(transcript, where), path)
        by_id = {f"{home}/{entry.session_id}" for home in BY_ID} - {part.place for part in entry.parts}
        shared = [step for place in sorted(by_id) for step in _lent(entry, place, where)]
    except OSError as error:
        raise WriteFailed(f"{error.filename} can't be read: {error.strerror}", "Check its permissions.") from error
    days = kept_days(entry.cwd, where)
    notes = (
        [AGED.format(kept=counted(days, "day"), left=counted(spare(days), "day"))] if aged and days is not None else []
    )
    if all(step.there for step in steps):
        notes.insert(0, THERE)
    other = find_session(entry.session_id, where)
    if other is not None and other != path:
        notes.append(TWICE.format(path=other))
    return TrashRestoration(entry, path, (*shared, *steps), (*notes, *warnings))


def write(decided: TrashRestoration, where: Where) -> TrashRestoration:
    """Put a session back; what was done, as things stood then.

    WriteFailed where something can't be moved: what came back stays, and it can be run again. SessionNotFound where
    another command took it from the trash.
    """
    with contents.only_one(where):
        if not os.path.isdir(decided.entry.folder):
            there = os.path.lexists(decided.path)
            raise SessionNotFound(
                f"{decided.entry.locator} is no longer in the trash: another command was faster",
                f"{decided.path} is in its place." if there else "It is not in its place: was the trash emptied?",
            )
        now = plan(decided.entry, where)
        _write(now, where)
        left = [LEFT.format(path=path) for path in _swept(now.entry, where)]
        with contextlib.suppress(OSError):  # the session is back; what is left of it in the trash is told there
            contents.drop(now.entry.folder)
    return now._replace(warnings=(*now.warnings, *left))


def leave_companions(entry: TrashEntry, where: Where) -> None:
    """Put what belongs to an id, and lies with an entry that is to be removed, to a session of that id that is there.

    Nothing that is there is touched. OSError, PlaceTaken.
    """
    if find_session(entry.session_id, where) is not None:
        for part in entry.parts:
            for step in _steps(entry, part, where, lent=True) if part.name in BY_ID else ():
                private_folder(os.path.dirname(step.path), where)
                move(step.kept, step.path)


def _write(decided: TrashRestoration, where: Where) -> None:
    entry = decided.entry
    oldest = floor(entry.cwd, where)
    try:
        for step in decided.steps:
            if not step.there:
                keep_from_expiring(step.kept, oldest)
                private_folder(os.path.dirname(step.path), where)
                if is_stub(step.path):
                    os.unlink(step.path)
                move(step.kept, step.path)
            else:
                keep_from_expiring(step.path, oldest)
    except OSError as error:
        gone = entry.missing(where)
        again = f"When the cause is mended, run it again: resume-hooks restore {entry.locator}"
        raise WriteFailed(
            f"{error.filename or entry.folder} could not be brought back: {error.strerror or error}",
            f"{gone[0]} is neither in {entry.folder} nor in its place." if gone else f"Nothing is lost. {again}",
        ) from error


def _swept(entry: TrashEntry, where: Where) -> list[str]:
    """Remove what an interrupted delete left beside the places, where it is back; what differs from that stays."""
    left = []
    for part in entry.parts:
        hidden, place = entry.hidden(part, where), part.path(where)
        if os.path.lexists(hidden):
            try:
                same = is_stub(hidden) or all(is_same(*pair) for pair in pairs(hidden, place))
                if same:
                    remove(hidden)
            except OSError:
                same = False
            left += [] if same else [hidden]
    return left


def _lent(entry: TrashEntry, place: str, where: Where) -> list[Step]:
    """A part that went with another delete of the session, as far as its place is free."""
    others = (other for other in contents.all_deleted(where) if other.session_id == entry.session_id)
    parts = ((other, part) for other in others if other.folder != entry.folder for part in other.parts)
    lent = (list(_steps(other, part, where, lent=True)) for other, part in parts if part.place == place)
    return next(filter(None, lent), [])


def _steps(entry: TrashEntry, part: TrashPart, where: Where, *, lent: bool = False) -> Iterator[Step]:
    """What an entry has of a part: as a whole where its place is free, else file by file; if ``lent``, what is free.

    PlaceTaken where something else is there.
    """
    kept, place = entry.lies(part, where), part.path(where)
    if not kept:
        return
    if not os.path.lexists(place) or (is_stub(place) and not lent):
        yield Step(kept, place, there=False)
        return
    for one, other in pairs(kept, place):
        if other != place:
            require_real(os.path.dirname(other), place)
        if lent and os.path.lexists(other):
            continue
        there = os.path.lexists(other) and not is_stub(other)
        if there and not is_same(one, other):
            whole = os.path.basename(other) == f"{entry.session_id}{ENDING}"
            way = "First: resume-hooks delete" if whole else "First move that away:"
            raise PlaceTaken(
                f"{other} is there again, and not the same",
                f"{way} {shlex.quote(other)}, then: resume-hooks restore {entry.locator}",
            )
        yield Step(one, other, there=there)


def require_real(folder: str, top: str) -> None:
    """Raise PlaceTaken where a folder, or one above it up to ``top``, is a link or anything else that is no folder."""
    if os.path.lexists(folder) and (os.path.islink(folder) or not os.path.isdir(folder)):
        raise PlaceTaken(f"{folder} is a symbolic link or no folder", "Move it away, then try again.")
    if folder != top:
        require_real(os.path.dirname(folder), top)


def spare(kept: int) -> int:
    """Days that are left at least, where sessions are kept so many."""
    return min(SPARE_DAYS, (kept + 1) // 2)


def floor(cwd: str, where: Where) -> float:
    """The oldest time, in seconds since the epoch, that a restored file may have; 0 where none is too old."""
    kept = kept_days(cwd, where)
    return 0.0 if kept is None else time.time() - (kept - spare(kept)) * DAY


def _written(*paths: str) -> float:
    return next((os.lstat(path).st_mtime for path in paths if os.path.lexists(path)), 0.0)


def keep_from_expiring(path: str, oldest: float) -> None:
    """Make what is too old as new as the floor; the client goes by the time of every file, and of some folders."""
    names = inside(path)
    folders = {os.path.dirname(os.path.join(path, name)) for name in names if name}
    for each in (path, *folders, *(os.path.join(path, name) for name in names if name)):
        status = os.lstat(each)
        if status.st_mtime < oldest:
            os.utime(each, (status.st_atime, oldest), follow_symlinks=False)
