"""Let the engine handle the threads of Codex like sessions of Claude Code.

The content of a thread is read from a copy in the format of Claude Code's transcripts.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Iterable, Iterator
from functools import cached_property

import orjson

from resume_hooks import clock
from resume_hooks.errors import NotATranscript, ResumeHooksError, SessionNotFound
from resume_hooks.parts.codex.sessions.copies import ThreadCopies
from resume_hooks.parts.codex.sessions.ends import RolloutEnds
from resume_hooks.parts.codex.sessions.files import (
    Rollout,
    Rollouts,
    is_archived,
    read_thread_cwd,
)
from resume_hooks.parts.codex.transcripts.as_records import build_first_record
from resume_hooks.parts.codex.transcripts.lines import read_first_lines
from resume_hooks.parts.codex.transcripts.meta import parse_rollout_name, read_meta
from resume_hooks.paths import Where, is_session_id, project_key
from resume_hooks.sessions.agents.claude import LaunchCommand, ResumeCommands
from resume_hooks.sessions.session_files import SessionFile, SessionStore, sort_newest_first
from resume_hooks.sessions.transcript_files import TranscriptFile
from resume_hooks.storage.locks import lock_descriptor
from resume_hooks.system.text import format_count, replace_surrogates
from resume_hooks.transcripts import provenance
from resume_hooks.transcripts.provenance import Parent
from resume_hooks.transcripts.records import get_string, parse_record

AGENT_NAME = "codex"
SETTINGS_FILE = "config.toml"
# The name of the folder in which Codex 0.150 and later create a lock file for each open thread.
LOCKS_FOLDER = "thread-writer-locks"
# The number of seconds for which a thread is considered open after a write. Older clients have no
# lock files.
MAX_OPEN_SECONDS_AFTER_WRITE = 60
# If a child was modified more than this number of seconds after its creation, the change may come
# from Codex and not from this plugin. The child is then considered open.
MAX_CHILD_WRITE_SECONDS = 2


class Codex:
    """The threads in the folder ``codex_home``. Their copies are in ``copies_folder``.

    The folder is scanned again each time ``store`` is read or ``list_files`` is called.
    """

    name = AGENT_NAME
    label = "Codex"

    def __init__(self, codex_home: str, copies_folder: str, where: Where) -> None:
        self._home = codex_home
        self._where = where
        self._copies = ThreadCopies(copies_folder, AGENT_NAME, where)

    @cached_property
    def rollouts(self) -> Rollouts:
        """The rollouts in the CODEX_HOME at the last scan."""
        return Rollouts(self._home)

    @cached_property
    def _names_by_thread_id(self) -> dict[str, str]:
        return read_thread_names(self._home)

    def _scan_rollouts(self) -> Rollouts:
        for cached_name in ("rollouts", "_names_by_thread_id"):
            self.__dict__.pop(cached_name, None)
        return self.rollouts

    @property
    def store(self) -> SessionStore:
        """The threads, grouped by the project of their working directory."""
        return ThreadStore(self._scan_rollouts())

    def read_ends(self, path: str) -> RolloutEnds:
        """Return what lists show about a thread. ``path`` is the thread's rollout or its copy."""
        rollout = self.original_path(path)
        parsed_name = parse_rollout_name(rollout)
        return RolloutEnds(
            rollout,
            AGENT_NAME,
            self._names_by_thread_id.get(parsed_name.thread_id, "") if parsed_name else "",
        )

    def read_title_lines(self, path: str) -> bytes:
        """Return two lines in lower case: the user's name for a thread, and the title that lists show."""
        try:
            ends = self.read_ends(path)
        except SessionNotFound:
            return b""  # The session was deleted after it was listed.
        return b"\n".join(orjson.dumps(title) for title in (ends.custom_title, ends.title)).lower()

    def open_session(self, path: str) -> SessionFile:
        """Return a thread as a session. ``path`` is its rollout or its copy.

        Raise SessionNotFound if it cannot be read.
        """
        try:
            rollout = os.path.abspath(self.original_path(path))
            meta = read_meta(rollout)
            status = os.stat(rollout)
        except (OSError, ValueError) as error:
            raise SessionNotFound(f"{path} can't be read: {error}", "Check the path.") from error
        return SessionFile(meta.thread_id, rollout, status.st_mtime, status.st_size, AGENT_NAME)

    def to_common_format(self, session: SessionFile) -> SessionFile:
        """Create or update the session's copy. Return the session with the path and size of the copy."""
        rollout = session.source_path or self.original_path(session.path)
        path = self._update_copy_and_get_path(rollout)
        return session._replace(path=path, size=os.stat(path).st_size, source_path=rollout)

    @contextlib.contextmanager
    def provide_copy_path(self, path: str) -> Iterator[str]:
        """Yield the path of a thread's copy.

        If the copy did not exist before, it is removed after the ``with`` block, so that a command
        that reads every thread does not leave copies of all threads on the disk.
        """
        copy_existed = os.path.lexists(
            self._copies.build_copy_path(read_thread_cwd(path), _parse_thread_id(path))
        )
        copy_path = self._update_copy_and_get_path(path)
        try:
            yield copy_path
        finally:
            if not copy_existed:
                self._copies.remove_copy(copy_path)

    def original_path(self, converted_path: str) -> str:
        """Return the rollout from which a copy was made. Return any other path unchanged."""
        if self._copies.contains_path(converted_path):
            return self._copies.read_original_path(converted_path) or converted_path
        return converted_path

    def find_file_by_id(self, file_id: str) -> str | None:
        """Return the path of the rollout whose id is ``file_id``, or None if there is no such rollout."""
        return self.rollouts.find_path(file_id) or self._scan_rollouts().find_path(file_id)

    def read_parent(self, path: str) -> Parent | None:
        """Return the parent of a thread, or None if the thread has no parent.

        If this plugin wrote the thread, the parent is in fields that only this plugin writes. If
        Codex forked the thread, the parent is in a field of Codex.
        """
        rollout = self.original_path(path)
        return provenance.parent_from_record(
            build_first_record(read_meta(rollout), read_first_lines(rollout)[0].record, AGENT_NAME)
        )

    def list_files(self) -> list[TranscriptFile]:
        """Return the newest file of each thread, and remove excess copies of threads.

        Files whose path is not valid Unicode are omitted.
        """
        self._copies.remove_excess_copies()
        newest_rollouts = self._scan_rollouts().threads.values()
        return [  # A negative inode tells the caller to read the file through a copy.
            TranscriptFile(
                path,
                _read_project_name(path),
                name.thread_id,
                "",
                -1 - status.st_ino,
                status.st_size,
                status.st_mtime_ns,
            )
            for path, name, status in newest_rollouts
            if replace_surrogates(path) == path
        ]

    def build_listing_notes(self) -> list[str]:
        """Return a note with the number of compressed rollouts that this Python cannot read, if there are any."""
        compressed_count = self.rollouts.compressed_count
        if not compressed_count:
            return []
        skipped_text = format_count(compressed_count, "compressed Codex session")
        return [f"{skipped_text} skipped; to read them, install the Python package zstandard"]

    def plugin_install_command(self, plugin: str) -> str:
        """Return the command that adds this plugin to Codex, or ``""`` if Codex's settings already enable it."""
        import tomllib  # Imported here because only the check of the installation needs it.

        plugins: object = None
        with (
            contextlib.suppress(OSError, ValueError),
            open(os.path.join(self._home, SETTINGS_FILE), "rb") as stream,
        ):
            plugins = tomllib.load(stream).get("plugins")
        entries = plugins.items() if isinstance(plugins, dict) else ()
        if any(
            plugin_name.split("@")[0] == plugin and isinstance(entry, dict) and entry.get("enabled")
            for plugin_name, entry in entries
        ):
            return ""
        return f'codex plugin marketplace add "$PWD" && codex plugin add {plugin}@{plugin}'

    def describe_open_state(self, session: SessionFile) -> str:
        """Return why a thread is considered open, or ``""`` if it is not open.

        A thread is considered open if its lock file is locked, or if it was written recently.
        """
        if _is_locked(os.path.join(self._home, LOCKS_FOLDER, f"{session.session_id}.lock")):
            return "Codex has the session open"
        try:
            age_seconds = time.time() - os.stat(session.original_path).st_mtime
        except OSError as error:
            return f"it is unknown whether Codex has the session open ({error.strerror})"
        if age_seconds >= MAX_OPEN_SECONDS_AFTER_WRITE or self._is_unchanged_child(session):
            return ""
        return f"it was written {max(0, round(age_seconds))} seconds ago"

    def _is_unchanged_child(self, session: SessionFile) -> bool:
        """Check whether a child is unchanged since this plugin wrote it.

        The check compares the modification time of the file with the timestamp in its first line.
        """
        try:
            first_record = read_first_lines(session.original_path)[0].record
            modified_time = os.stat(session.original_path).st_mtime
        except (OSError, NotATranscript):
            return False
        if "continue_metadata" in first_record:
            created_milliseconds = clock.to_milliseconds(get_string(first_record, "timestamp"))
        else:
            created_milliseconds = None
        return (
            created_milliseconds is not None
            and modified_time - created_milliseconds / 1_000 < MAX_CHILD_WRITE_SECONDS
        )

    def resume_commands(self, session_id: str, folder: str) -> ResumeCommands:
        """Return the commands that resume a thread, in the client and in a shell.

        An archived thread must be unarchived first. Codex requires the complete id of the thread.
        """
        change_folder = f"cd {shlex.quote(folder)} && " if folder else ""
        rollout = self.rollouts.threads.get(session_id)
        if rollout and is_archived(rollout.path):
            unarchive = f"codex unarchive {session_id}"
            return ResumeCommands(
                f"in a shell: {unarchive}",
                f"{change_folder}{unarchive} && codex resume {session_id}",
            )
        return ResumeCommands(f"/resume {session_id}", f"{change_folder}codex resume {session_id}")

    def launch_command(self, session_id: str) -> LaunchCommand:
        """Return the command line that opens a thread.

        Raise ResumeHooksError if the thread is archived, because Codex cannot open it.
        """
        from resume_hooks.system import (
            programs,
        )  # Imported here because the imported module is rarely needed.

        rollout = self.rollouts.threads.get(session_id)
        if rollout and is_archived(rollout.path):
            raise ResumeHooksError(
                f"{session_id} is archived in Codex", f"Run: codex unarchive {session_id}"
            )

        return LaunchCommand(
            AGENT_NAME,
            programs.find_program(AGENT_NAME, self._where.environ),
            ("resume", session_id),
        )

    def _update_copy_and_get_path(self, rollout: str) -> str:
        return self._copies.update_copy(
            rollout,
            self.find_file_by_id,
            self._names_by_thread_id.get(_parse_thread_id(rollout), ""),
        )


class ThreadStore(SessionStore):
    """The threads in a CODEX_HOME, grouped by project.

    The name of a project is the name that Claude Code would give to its project folder.
    """

    def __init__(self, rollouts: Rollouts) -> None:
        self._threads = rollouts.threads

    def projects(self) -> list[str]:
        """Return the names of the projects in which threads were started."""
        return sorted(set(self._project_names_by_thread_id.values()) - {""})

    def sessions(
        self, projects: Iterable[str] | None = None, prefix: str = ""
    ) -> list[SessionFile]:
        """Return the threads of the given projects, newest first. By default, return those of all projects."""
        project_names = None if projects is None else set(projects)
        sessions_by_id = {}
        for thread_id, rollout in self._threads.items():
            if thread_id.startswith(prefix):
                sessions_by_id[thread_id] = rollout
        return sort_newest_first(
            _build_session_file(rollout)
            for thread_id, rollout in sessions_by_id.items()
            if project_names is None or self._project_names_by_thread_id[thread_id] in project_names
        )

    def find(self, session_id: str) -> SessionFile | None:
        """Return the thread with this id, or None if it does not exist."""
        if is_session_id(session_id):
            thread = self._threads.get(session_id)
        else:
            thread = None
        if thread:
            return _build_session_file(thread)
        return None

    @cached_property
    def _project_names_by_thread_id(self) -> dict[str, str]:
        projects = {}
        for thread_id, rollout in self._threads.items():
            projects[thread_id] = _read_project_name(rollout.path)
        return projects


def _read_project_name(path: str) -> str:
    folder = read_thread_cwd(path)
    if folder:
        return project_key(folder)
    return ""


def _build_session_file(rollout: Rollout) -> SessionFile:
    status = rollout.file_status
    return SessionFile(
        rollout.name.thread_id, rollout.path, status.st_mtime, status.st_size, AGENT_NAME
    )


def _parse_thread_id(path: str) -> str:
    parsed_name = parse_rollout_name(path)
    if parsed_name:
        return parsed_name.thread_id
    return ""


def _is_locked(path: str) -> bool:
    try:
        descriptor = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
        )
    except OSError:
        return False
    try:
        return lock_descriptor(descriptor) is False
    finally:
        os.close(descriptor)


NAME_LIST_FILE, NAME_DATABASE_FILE = "session_index.jsonl", "state_5.sqlite"
MAX_NAME_LIST_BYTES = 64 * 1024 * 1024  # Maximum number of bytes to read from the list of names.


def read_thread_names(codex_home: str) -> dict[str, str]:
    """Return a dictionary of the names that the user gave to threads, by thread id.

    If a thread was given several names, the last one is returned.
    """
    names_by_id: dict[str, str] = {}
    path = os.path.join(codex_home, NAME_DATABASE_FILE)
    if os.path.isfile(path):
        import sqlite3  # Imported here because the import takes 10 ms and is only needed if a database exists.
        from urllib.parse import quote

        # Ignore errors, because the database may be locked or have another schema.
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(
                sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=0.2)
            ) as db,
        ):
            rows = db.execute("SELECT id, name FROM threads WHERE name <> ''").fetchall()
            names_by_id = {}
            for thread_id_value, name_value in rows:
                if (
                    isinstance(thread_id_value, str)
                    and isinstance(name_value, str)
                    and name_value.strip()
                ):
                    names_by_id[thread_id_value] = name_value
    with (
        contextlib.suppress(OSError),
        open(os.path.join(codex_home, NAME_LIST_FILE), "rb") as stream,
    ):
        for raw in stream.read(MAX_NAME_LIST_BYTES).split(b"\n"):
            row = parse_record(raw) or {}
            thread_id, name = row.get("id"), get_string(row, "thread_name")
            if isinstance(thread_id, str) and is_session_id(thread_id) and name.strip():
                names_by_id[thread_id] = name
    return names_by_id
