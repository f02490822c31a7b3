"""Make hard links to each transcript and the files in its folder, so that they survive a deletion.

Clients have deleted sessions hours after their last write. A hard link takes no space. When the
client has deleted a file, so that only our link is left, the vault archives it. The links are in
the folder ``held`` of the state folder. ``held`` has the same layout as the client's ``projects``.
A shell script adds links at the end of a turn (``hooks/notice``). After a session has started, a
check compares the names in both folders and adds the missing links.

A link is removed only if the file also has another name, if the vault has the file, or if the user
deleted the file. A write through one name is visible through the other name, so a linked file has
the content that the client last wrote. Before our code replaces a transcript's file, it removes the
link.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from resume_hooks.archive.vault.permission import check_archiving_allowed, must_archiving_wait
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
from resume_hooks.sessions.archived.layout import (
    MAX_SESSION_FOLDER_DEPTH,
    TRASH_FOLDER,
    config_home_name,
)
from resume_hooks.sessions.held_links import is_same_file, links_folder
from resume_hooks.settings import remove_setting_variables
from resume_hooks.storage import removal
from resume_hooks.storage.append_carryover import begins_with_copy

if TYPE_CHECKING:
    from resume_hooks.archive.retention.archive_sessions import BackgroundArchiver

MAX_FAILED_LINKS = 100
"""After this number of failures, no more links are created.

A single link may fail for its own reason, but so many failures suggest that the file system does
not support links.
"""

MAX_ARCHIVE_SECONDS = 2.0
"""After about this number of seconds, a verb does not start to archive another session."""


def find_reason_not_to_link(where: Where) -> str:
    """Return why sessions cannot be linked, as the end of a sentence, or ``""`` if they can."""
    if os.name == "nt":
        return "no links are made on Windows"
    if config_home_name(where):
        return f"{where.state} is outside {where.config}"
    with contextlib.suppress(OSError):
        if os.stat(where.state).st_dev != os.stat(where.projects).st_dev:
            return f"{where.state} and {where.projects} are on different file systems"
    return ""


def link_all_sessions(where: Where, is_time_up: Callable[[], bool]) -> None:
    """Archive the files that exist only as our links, then link every session.

    Stop when ``is_time_up`` returns true. For speed, a file's content is read only if the file was
    replaced. For other files, only the names are compared. If archiving is not allowed, all links
    are removed. No file is archived before the user has answered whether sessions may be archived.
    """
    if _are_links_allowed(where):
        archiver = _ProjectArchiver(where, is_time_up, is_user_waiting=False)
        make_private_folder(links_folder(where), where)
        for key in sorted(
            {*_list_folder(links_folder(where)), *map(os.path.basename, all_project_folders(where))}
        ):
            # If a folder cannot be read, its links stay unchanged.
            with contextlib.suppress(OSError):
                archiver.update_project_links(key, create_links=True)


def archive_lost_sessions(where: Where) -> None:
    """Archive the files that exist only as our links. Stop after ``MAX_ARCHIVE_SECONDS`` seconds."""
    if os.path.isdir(links_folder(where)) and _are_links_allowed(where):
        deadline = time.monotonic() + MAX_ARCHIVE_SECONDS
        archiver = _ProjectArchiver(
            where, lambda: time.monotonic() > deadline, is_user_waiting=True
        )
        for key in sorted(_list_folder(links_folder(where))):
            with contextlib.suppress(OSError):
                archiver.update_project_links(key, create_links=False)


def count_sessions_without_link(where: Where) -> int:
    """Count the sessions that have no link and were last written at least a day ago."""
    day_ago, count = time.time() - DAY, 0
    for project in all_project_folders(where):
        link_folder = os.path.join(links_folder(where), os.path.basename(project))
        for name, entry in _list_folder(project).items():
            if is_session_file(entry.path) and entry.stat().st_mtime < day_ago:
                count += not is_same_file(entry.path, os.path.join(link_folder, name))
    return count


def _are_links_allowed(where: Where) -> bool:
    """Check whether sessions may be linked. If archiving is not allowed, remove all links.

    The links are not removed if only an environment variable forbids archiving, because the
    variable may be set for a single command.
    """
    is_allowed = check_archiving_allowed(where).is_allowed
    if (
        not is_allowed
        and not check_archiving_allowed(remove_setting_variables(where)).is_allowed
        and is_private_folder(links_folder(where), where)
    ):
        removal.remove_permanently(links_folder(where), where.state)
    return is_allowed and not find_reason_not_to_link(where)


class _ProjectArchiver:
    """Links and archives the sessions in project folders.

    A session is archived from our links to its files, not from the client's files.
    """

    def __init__(
        self, where: Where, is_time_up: Callable[[], bool], *, is_user_waiting: bool
    ) -> None:
        self._where = where
        self._is_user_waiting = is_user_waiting
        self._is_time_up = is_time_up
        self._failed_link_count = 0
        self._archiver: BackgroundArchiver | None = None

    def update_project_links(self, project_name: str, *, create_links: bool) -> None:
        """Check the linked files of a project folder. If ``create_links``, also link all its sessions.

        Raises OSError if a folder is unreadable or a link cannot be changed.
        """
        link_folder, client_folder = (
            os.path.join(links_folder(self._where), project_name),
            os.path.join(self._where.projects, project_name),
        )
        if os.path.islink(client_folder) or (
            os.path.lexists(link_folder) and not is_private_folder(link_folder, self._where)
        ):
            return
        links, client_files = _list_folder(link_folder), _list_folder(client_folder)
        for name, entry in links.items():
            if self._is_time_up():
                return
            if session_id_from_path(name) and not _is_same_file(entry, client_files.get(name)):
                self._process_linked_transcript(entry.path, os.path.join(client_folder, name))
        for name, entry in client_files.items() if create_links else ():
            if self._is_time_up():
                return
            if session_id_from_path(name) and entry.is_file(follow_symlinks=False):
                has_folder = _session_folder(name) in links or _session_folder(name) in client_files
                self._link_session(entry, os.path.join(link_folder, name), has_folder=has_folder)
        for name, entry in links.items():
            transcript_paths = (
                entry.path + TRANSCRIPT_SUFFIX,
                os.path.join(client_folder, name + TRANSCRIPT_SUFFIX),
            )
            if is_session_id(name) and not any(map(os.path.lexists, transcript_paths)):
                # The client has deleted all files of this session, and only links are left.
                removal.remove_permanently(entry.path, self._where.state)
        with contextlib.suppress(OSError):
            removal.remove_empty_folder(link_folder, self._where.state)

    def _process_linked_transcript(self, link: str, client_file: str) -> None:
        """Archive a linked transcript if the client's file was deleted or replaced, and remove its link.

        The link is removed without archiving if the client's file was renamed, or if the file that
        replaced it begins with the old content.
        """
        status = os.lstat(link)
        if is_session_file(client_file):
            if os.path.samestat(os.lstat(client_file), status):
                # This is the same file: on some file systems, the inode number in a folder's list
                # differs from the one that ``stat`` reports.
                return
            if (
                status.st_nlink > 1
                or _begins_with_old_content(client_file, link)
                or self._archive_linked_session(link, client_file)
            ):
                removal.remove_file(link, self._where.state)
        elif (
            status.st_nlink > 1
            # The file still has another name: in another project, in our trash, or in a place to which
            # the user moved it.
        ):
            session_id = session_id_from_path(link) or ""
            current_path = find_session(session_id, self._where)
            if (current_path and is_same_file(current_path, link)) or os.path.isdir(
                os.path.join(self._where.state, TRASH_FOLDER, session_id)
            ):
                _remove_session_links(link, self._where)
        elif self._archive_linked_session(link, client_file):
            _remove_session_links(link, self._where)

    def _link_session(self, entry: os.DirEntry[str], link: str, *, has_folder: bool) -> None:
        """Link a session and the new files in its folder, and archive the files that the client deleted.

        An empty transcript is not linked.
        """
        if not os.path.lexists(link):
            if not entry.stat(follow_symlinks=False).st_size:
                return
            self._link_file(entry.path, link)
        if has_folder:
            lost_files = list(
                self._update_links_and_find_lost_files(
                    _session_folder(link), _session_folder(entry.path), MAX_SESSION_FOLDER_DEPTH
                )
            )
        else:
            lost_files = []
        if lost_files and self._archive_linked_session(link, entry.path):
            for path in lost_files:
                removal.remove_file(path, self._where.state)

    def _update_links_and_find_lost_files(
        self, link_folder: str, client_folder: str, depth: int
    ) -> Iterator[str]:
        """Link the new files of a folder and replace outdated links.

        Yield the files that exist only as our links.
        """
        if os.path.islink(client_folder):
            return
        links, client_files = _list_folder(link_folder), _list_folder(client_folder)
        for name, entry in (client_files | links).items():
            if entry.is_dir(follow_symlinks=False):
                if depth:
                    yield from self._update_links_and_find_lost_files(
                        os.path.join(link_folder, name),
                        os.path.join(client_folder, name),
                        depth - 1,
                    )
            elif name not in links:
                if entry.is_file(follow_symlinks=False):
                    self._link_file(entry.path, os.path.join(link_folder, name))
            elif self._update_link(entry, client_files.get(name)):
                yield entry.path
        if not client_files:
            with contextlib.suppress(OSError):
                removal.remove_empty_folder(link_folder, self._where.state)

    def _update_link(self, link: os.DirEntry[str], client_file: os.DirEntry[str] | None) -> bool:
        """Replace a link if the client has replaced the file.

        If only our link has the old content, keep the link and return True.
        """
        if client_file and (
            _is_same_file(link, client_file) or is_same_file(link.path, client_file.path)
        ):
            return False
        status = link.stat(follow_symlinks=False)
        if status.st_nlink == 1 and not (
            client_file and _begins_with_old_content(client_file.path, link.path)
        ):
            return True
        if client_file:
            removal.remove_file(link.path, self._where.state)
            self._link_file(client_file.path, link.path)
        return False

    def _archive_linked_session(self, link: str, client_file: str) -> bool:
        """Archive a session by reading its files through our links.

        Return whether the vault then has the session's current state.
        """
        # Imported here because most checks archive no session.
        from resume_hooks.archive.retention.archive_sessions import BackgroundArchiver

        if not self._is_user_waiting and must_archiving_wait(self._where):
            return False
        if self._archiver is None:
            link_locations = Where(self._where.environ)
            link_locations.projects = links_folder(self._where)
            self._archiver = BackgroundArchiver(link_locations)
        for _ in self._update_links_and_find_lost_files(
            _session_folder(link), _session_folder(client_file), MAX_SESSION_FOLDER_DEPTH
        ):
            # The iteration makes links to the files that the client still has. The files are then
            # archived through these links.
            pass
        try:
            old_status = os.lstat(link)
            archived = self._archiver.archive_path(link)
            new_status = os.lstat(link)
        except (ResumeHooksError, OSError):
            return False  # The link stays, so that the next check can try again.
        return archived and (new_status.st_size, new_status.st_mtime_ns) == (
            old_status.st_size,
            old_status.st_mtime_ns,
        )

    def _link_file(self, client_file: str, link: str) -> None:
        if self._failed_link_count < MAX_FAILED_LINKS:
            make_private_folder(os.path.dirname(link), self._where)
            try:
                os.link(client_file, link, follow_symlinks=False)
            except (FileExistsError, FileNotFoundError):
                pass  # Another check has made the link, or the client has deleted the file.
            except OSError:
                self._failed_link_count += 1


def _session_folder(path: str) -> str:
    """Return the folder with a session's other files. ``path`` is the path of the session's transcript."""
    return path[: -len(TRANSCRIPT_SUFFIX)]


def _list_folder(path: str) -> dict[str, os.DirEntry[str]]:
    """Return a folder's entries by name, or an empty dict if the folder does not exist.

    Hidden files are left out, because they never belong to a session. Raises OSError if the folder
    is unreadable.
    """
    try:
        with os.scandir(path) as entries:
            return {entry.name: entry for entry in entries if not entry.name.startswith(".")}
    except (FileNotFoundError, NotADirectoryError):
        return {}


def _is_same_file(link: os.DirEntry[str], client_file: os.DirEntry[str] | None) -> bool:
    """Check whether two directory entries have the same inode."""
    return client_file is not None and link.inode() == client_file.inode()


def _begins_with_old_content(replacement: str, link: str) -> bool:
    """Check whether ``replacement`` begins with the whole content of the linked file that it replaced."""
    with contextlib.suppress(OSError), open_regular(replacement, follow=False) as stream:
        return begins_with_copy(stream.fileno(), link)
    return False


def _remove_session_links(link: str, where: Where) -> None:
    """Remove the links to a session, the transcript's link last.

    If the removal is interrupted, the next check finds the transcript's link and continues. Raises
    OSError if a link cannot be removed.
    """
    with contextlib.suppress(FileNotFoundError):
        removal.remove_permanently(_session_folder(link), where.state)
    removal.remove_file(link, where.state)
