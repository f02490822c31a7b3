"""Held sessions: hard links to each transcript and to the files in its folder, so a deletion does not lose them.

Clients have deleted sessions hours after their last write. A link takes no space. Once it is the
last one, the vault archives its file. ``held`` in the state folder has the layout of the client's
``projects``: the shell adds links at a turn's end (``hooks/notice``), and a check after a start
adds the missing ones and compares names.

Invariant: a link is removed only if the file has another name, if the vault has the file, or if the
user deleted it. A write through one name is visible through the other, so a held file equals the
client's last version. Before our code replaces a transcript's file, it removes the link.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from resume_hooks.archive.vault.permission import archiving_allowed, copies_must_wait
from resume_hooks.clock import DAY
from resume_hooks.errors import ResumeHooksError
from resume_hooks.paths import (
    TRANSCRIPT_SUFFIX,
    Where,
    all_project_folders,
    find_session,
    is_private_folder,
    is_session_file,
    is_session_id,
    make_private_folder,
    open_regular,
    session_id_from_path,
)
from resume_hooks.sessions.archived.layout import MAX_DEPTH, TRASH, own_home
from resume_hooks.sessions.held_links import is_same, links_folder
from resume_hooks.settings import without_setting_variables
from resume_hooks.storage import removal
from resume_hooks.storage.append_carryover import begins_with_copy

if TYPE_CHECKING:
    from resume_hooks.archive.retention.archive_sessions import BackgroundArchiver

MOST_REFUSED = 100
"""The number of refused links after which we stop.

A file system may refuse a single file for other reasons.
"""

LIMIT = 2.0
"""Seconds after which a verb does not archive another session."""


def why_no_links(where: Where) -> str:
    """Return the reason why no session can be held here, as the end of a sentence, or ``""`` if links work."""
    if os.name == "nt":
        return "no links are made on Windows"
    if own_home(where):
        return f"{where.state} is outside {where.config}"
    with contextlib.suppress(OSError):
        if os.stat(where.state).st_dev != os.stat(where.projects).st_dev:
            return f"{where.state} and {where.projects} are on different file systems"
    return ""


def hold_sessions(where: Where, is_over: Callable[[], bool]) -> None:
    """Archive the files that exist only as our links, then hold every session, until time is over.

    Names are compared, and contents only of replaced files. If archiving is not allowed, all links
    are removed. Until the user has answered the question about archiving, nothing is archived.
    """
    if _may_hold(where):
        walk = _Walk(where, is_over, asked=False)
        make_private_folder(links_folder(where), where)
        for key in sorted(
            {*_entries(links_folder(where)), *map(os.path.basename, all_project_folders(where))}
        ):
            with contextlib.suppress(OSError):  # an unreadable folder stays unchanged
                walk.hold_project(key, linking=True)


def archive_lost(where: Where) -> None:
    """Archive the files that exist only as our links, within the time that a waiting user accepts."""
    if os.path.isdir(links_folder(where)) and _may_hold(where):
        until = time.monotonic() + LIMIT
        walk = _Walk(where, lambda: time.monotonic() > until, asked=True)
        for key in sorted(_entries(links_folder(where))):
            with contextlib.suppress(OSError):
                walk.hold_project(key, linking=False)


def count_sessions_without_link(where: Where) -> int:
    """Count the sessions without a link that were last written at least a day ago."""
    before, found = time.time() - DAY, 0
    for project in all_project_folders(where):
        ours = os.path.join(links_folder(where), os.path.basename(project))
        for name, entry in _entries(project).items():
            if is_session_file(entry.path) and entry.stat().st_mtime < before:
                found += not is_same(entry.path, os.path.join(ours, name))
    return found


def _may_hold(where: Where) -> bool:
    """Check whether sessions are held.

    If archiving is not allowed, remove all links, but keep them if links are impossible here.

    Also keep them if only an environment variable forbids archiving, because it may be set for a
    single start.
    """
    may = archiving_allowed(where)[0]
    if (
        not may
        and not archiving_allowed(without_setting_variables(where))[0]
        and is_private_folder(links_folder(where), where)
    ):
        removal.remove_for_good(links_folder(where), where.state)
    return may and not why_no_links(where)


class _Walk:
    """Processes project folders.

    A session is archived from its links, as if they were the client's files.
    """

    def __init__(self, where: Where, is_over: Callable[[], bool], *, asked: bool) -> None:
        self._where = where
        self._asked = asked
        self._is_over = is_over
        self._refused = 0
        self._archiver: BackgroundArchiver | None = None

    def hold_project(self, key: str, *, linking: bool) -> None:
        """Check the held files of a project folder. With ``linking``, hold all of its sessions.

        Raises OSError.
        """
        ours, theirs = (
            os.path.join(links_folder(self._where), key),
            os.path.join(self._where.projects, key),
        )
        if os.path.islink(theirs) or (
            os.path.lexists(ours) and not is_private_folder(ours, self._where)
        ):
            return
        held, present = _entries(ours), _entries(theirs)
        for name, entry in held.items():
            if self._is_over():
                return
            if session_id_from_path(name) and not _is_same_file(entry, present.get(name)):
                self._mend_held(entry.path, os.path.join(theirs, name))
        for name, entry in present.items() if linking else ():
            if self._is_over():
                return
            if session_id_from_path(name) and entry.is_file(follow_symlinks=False):
                has_folder = _session_folder(name) in held or _session_folder(name) in present
                self._hold(entry, os.path.join(ours, name), has_folder=has_folder)
        for name, entry in held.items():
            ends = (entry.path + TRANSCRIPT_SUFFIX, os.path.join(theirs, name + TRANSCRIPT_SUFFIX))
            if is_session_id(name) and not any(map(os.path.lexists, ends)):
                removal.remove_for_good(
                    entry.path, self._where.state
                )  # left over from a completely deleted session
        with contextlib.suppress(OSError):
            removal.remove_empty(ours, self._where.state)

    def _mend_held(self, ours: str, theirs: str) -> None:
        """Process a held transcript whose name in the client's folder has another file, or none."""
        status = os.lstat(ours)
        if is_session_file(theirs):
            if os.path.samestat(os.lstat(theirs), status):
                return  # some file systems list other inode numbers than ``stat`` returns
            if status.st_nlink > 1 or _continues(theirs, ours) or self._archive_held(ours, theirs):
                removal.remove_file(ours, self._where.state)
        elif (
            status.st_nlink > 1
        ):  # it was moved: to another project, to our trash, or elsewhere by the user
            session_id = session_id_from_path(ours) or ""
            there = find_session(session_id, self._where)
            if (there and is_same(there, ours)) or os.path.isdir(
                os.path.join(self._where.state, TRASH, session_id)
            ):
                _drop_links(ours, self._where)
        elif self._archive_held(ours, theirs):
            _drop_links(ours, self._where)

    def _hold(self, entry: os.DirEntry[str], ours: str, *, has_folder: bool) -> None:
        """Hold a session and the new files in its folder, and archive the files that its folder lost.

        Empty files of the client are ignored.
        """
        if not os.path.lexists(ours):
            if not entry.stat(follow_symlinks=False).st_size:
                return
            self._link_file(entry.path, ours)
        if has_folder:
            lost = list(self._inside(_session_folder(ours), _session_folder(entry.path), MAX_DEPTH))
        else:
            lost = []
        if lost and self._archive_held(ours, entry.path):
            for path in lost:
                removal.remove_file(path, self._where.state)

    def _inside(self, ours: str, theirs: str, depth: int) -> Iterator[str]:
        """Yield the held files of a folder that exist only as our links. New files are linked."""
        if os.path.islink(theirs):
            return
        held, present = _entries(ours), _entries(theirs)
        for name, entry in (present | held).items():
            if entry.is_dir(follow_symlinks=False):
                if depth:
                    yield from self._inside(
                        os.path.join(ours, name), os.path.join(theirs, name), depth - 1
                    )
            elif name not in held:
                if entry.is_file(follow_symlinks=False):
                    self._link_file(entry.path, os.path.join(ours, name))
            elif self._is_lost(entry, present.get(name)):
                yield entry.path
        if not present:
            with contextlib.suppress(OSError):
                removal.remove_empty(ours, self._where.state)

    def _is_lost(self, ours: os.DirEntry[str], theirs: os.DirEntry[str] | None) -> bool:
        """Check whether a file exists only as our link. An outdated link is replaced."""
        if theirs and (_is_same_file(ours, theirs) or is_same(ours.path, theirs.path)):
            return False
        status = ours.stat(follow_symlinks=False)
        if status.st_nlink == 1 and not (theirs and _continues(theirs.path, ours.path)):
            return True
        if theirs:
            removal.remove_file(ours.path, self._where.state)
            self._link_file(theirs.path, ours.path)
        return False

    def _archive_held(self, ours: str, theirs: str) -> bool:
        """Archive a session from our links. Return whether the vault has its current state."""
        from resume_hooks.archive.retention.archive_sessions import (
            BackgroundArchiver,
        )  # most checks archive nothing

        if not self._asked and copies_must_wait(self._where):
            return False
        if self._archiver is None:
            held = Where(self._where.environ)
            held.projects = links_folder(self._where)
            self._archiver = BackgroundArchiver(held)
        for _ in self._inside(_session_folder(ours), _session_folder(theirs), MAX_DEPTH):
            pass  # link the files that the client still has
        try:
            before = os.lstat(ours)
            archived = self._archiver.archive(ours)
            now = os.lstat(ours)
        except (ResumeHooksError, OSError):
            return False  # the link stays, and the next check tries again
        return archived and (now.st_size, now.st_mtime_ns) == (before.st_size, before.st_mtime_ns)

    def _link_file(self, theirs: str, ours: str) -> None:
        if self._refused < MOST_REFUSED:
            make_private_folder(os.path.dirname(ours), self._where)
            try:
                os.link(theirs, ours, follow_symlinks=False)
            except (FileExistsError, FileNotFoundError):
                pass  # another check or the client was faster
            except OSError:
                self._refused += 1


def _session_folder(path: str) -> str:
    """Return the folder of the session with this transcript path."""
    return path[: -len(TRANSCRIPT_SUFFIX)]


def _entries(path: str) -> dict[str, os.DirEntry[str]]:
    """Return a folder's entries by name, without hidden files, which never belong to a session.

    Raises OSError if the folder is unreadable.

    The result is empty if the folder does not exist.
    """
    try:
        with os.scandir(path) as entries:
            return {entry.name: entry for entry in entries if not entry.name.startswith(".")}
    except (FileNotFoundError, NotADirectoryError):
        return {}


def _is_same_file(ours: os.DirEntry[str], theirs: os.DirEntry[str] | None) -> bool:
    """Check whether two directory entries are the same file, without reading its status."""
    return theirs is not None and ours.inode() == theirs.inode()


def _continues(theirs: str, ours: str) -> bool:
    """Check whether a replacement file begins with the whole old file, as after a copy or a rewrite."""
    with contextlib.suppress(OSError), open_regular(theirs, follow=False) as stream:
        return begins_with_copy(stream.fileno(), ours)
    return False


def _drop_links(ours: str, where: Where) -> None:
    """Remove the links to a session.

    The transcript's link is removed last, so an interrupted removal is found again. Raises OSError.
    """
    with contextlib.suppress(FileNotFoundError):
        removal.remove_for_good(_session_folder(ours), where.state)
    removal.remove_file(ours, where.state)
