"""The agent Codex: its threads appear as sessions, which are read through copies in our record format."""

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
from resume_hooks.parts.codex.sessions.files import Rollout, Rollouts, is_archived, thread_folder
from resume_hooks.parts.codex.transcripts.as_records import first_record
from resume_hooks.parts.codex.transcripts.lines import read_first_lines
from resume_hooks.parts.codex.transcripts.meta import parse_rollout_name, read_meta
from resume_hooks.paths import Where, is_session_id, project_key
from resume_hooks.sessions.agents.claude import Launch, ResumeCommands
from resume_hooks.sessions.session_files import SessionFile, SessionStore, newest_first
from resume_hooks.sessions.transcript_files import TranscriptFile
from resume_hooks.storage.locks import lock_descriptor
from resume_hooks.system.text import format_count, replace_surrogates
from resume_hooks.transcripts import provenance
from resume_hooks.transcripts.provenance import Parent
from resume_hooks.transcripts.records import parse, string

NAME = "codex"
SETTINGS_FILE = "config.toml"
# a folder with one lock file per open thread, since Codex 0.150
LOCK_FOLDER = "thread-writer-locks"
# The number of seconds after a write during which a thread counts as open, because older clients
# have no lock files.
OPEN_SECONDS = 60
# The maximum number of seconds that writing a child should take. A slower child counts as open for
# a while.
WRITING_SECONDS = 2


class Codex:
    """The threads of a CODEX_HOME; ``copies`` is the folder for their copies.

    Each call of ``store`` or ``files`` scans the CODEX_HOME again.
    """

    name = NAME
    label = "Codex"

    def __init__(self, home: str, copies: str, where: Where) -> None:
        self._home = home
        self._where = where
        self._copies = ThreadCopies(copies, NAME, where)

    @cached_property
    def rollouts(self) -> Rollouts:
        """The rollouts that the last scan found."""
        return Rollouts(self._home)

    @cached_property
    def _names(self) -> dict[str, str]:
        return thread_names(self._home)

    def _look(self) -> Rollouts:
        for cached_name in ("rollouts", "_names"):
            self.__dict__.pop(cached_name, None)
        return self.rollouts

    @property
    def store(self) -> SessionStore:
        """The threads, grouped by the project of their working directory."""
        return Threads(self._look())

    def ends(self, path: str) -> RolloutEnds:
        """Return the fields for listings, given the path of a rollout or of its copy."""
        rollout = self.original(path)
        parsed_name = parse_rollout_name(rollout)
        return RolloutEnds(
            rollout, NAME, self._names.get(parsed_name.thread_id, "") if parsed_name else ""
        )

    def naming(self, path: str) -> bytes:
        """Return the user's name for the session and its default title."""
        try:
            ends = self.ends(path)
        except SessionNotFound:
            return b""  # deleted after it was listed
        return b"\n".join(orjson.dumps(title) for title in (ends.custom_title, ends.title)).lower()

    def session(self, path: str) -> SessionFile:
        """Return the thread, given the path of a rollout or of its copy."""
        try:
            rollout = os.path.abspath(self.original(path))
            meta = read_meta(rollout)
            status = os.stat(rollout)
        except (OSError, ValueError) as error:
            raise SessionNotFound(f"{path} can't be read: {error}", "Check the path.") from error
        return SessionFile(meta.thread_id, rollout, status.st_mtime, status.st_size, NAME)

    def readable(self, session: SessionFile) -> SessionFile:
        """Return the session with the path of its up-to-date copy in our record format."""
        rollout = session.source or self.original(session.path)
        path = self._copy_of(rollout)
        return session._replace(path=path, size=os.stat(path).st_size, source=rollout)

    @contextlib.contextmanager
    def briefly(self, path: str) -> Iterator[str]:
        """Yield the path of a copy, and remove a newly created copy afterwards.

        Otherwise reading every thread once would double their size on disk.
        """
        existed = os.path.lexists(self._copies.path_of(thread_folder(path), _thread_id(path)))
        copy = self._copy_of(path)
        try:
            yield copy
        finally:
            if not existed:
                self._copies.discard(copy)

    def original(self, path: str) -> str:
        """Return the rollout of a copy. Any other path is returned unchanged."""
        if self._copies.holds(path):
            return self._copies.original(path) or path
        return path

    def file_of(self, name: str) -> str | None:
        """Return the rollout with this id."""
        return self.rollouts.path_of(name) or self._look().path_of(name)

    def parent(self, path: str) -> Parent | None:
        """Return the parent that one of our children names, or the thread that a fork names."""
        rollout = self.original(path)
        return provenance.parent_from_record(
            first_record(read_meta(rollout), read_first_lines(rollout)[0].record, NAME)
        )

    def files(self) -> list[TranscriptFile]:
        """Return the newest file of each readable thread."""
        self._copies.make_room()
        newest = self._look().threads.values()
        return [  # A negative inode marks a file that must be read through a copy.
            TranscriptFile(
                path,
                _project_of_rollout(path),
                name.thread_id,
                "",
                -1 - status.st_ino,
                status.st_size,
                status.st_mtime_ns,
            )
            for path, name, status in newest
            if replace_surrogates(path) == path
        ]

    def notes(self) -> list[str]:
        """Return a note with the number of compressed rollouts that were skipped."""
        packed = self.rollouts.packed
        if not packed:
            return []
        session_count = format_count(packed, "session")
        return [
            (
                f"{session_count} of Codex, compressed: skipped ({packed}); the Python package "
                "zstandard reads them"
            )
        ]

    def without_plugin(self, name: str) -> str:
        """Return the command that adds the plugin to Codex, or ``""`` if the user's settings enable it."""
        import tomllib  # only needed to check the installation

        plugins: object = None
        with (
            contextlib.suppress(OSError, ValueError),
            open(os.path.join(self._home, SETTINGS_FILE), "rb") as stream,
        ):
            plugins = tomllib.load(stream).get("plugins")
        entries = plugins.items() if isinstance(plugins, dict) else ()
        if any(
            plugin_name.split("@")[0] == name and isinstance(entry, dict) and entry.get("enabled")
            for plugin_name, entry in entries
        ):
            return ""
        return f'codex plugin marketplace add "$PWD" && codex plugin add {name}@{name}'

    def why_open(self, session: SessionFile) -> str:
        """Explain why a thread counts as open: because of its lock or a recent write."""
        if _is_locked(os.path.join(self._home, LOCK_FOLDER, f"{session.session_id}.lock")):
            return "Codex has it open"
        try:
            age = time.time() - os.stat(session.original).st_mtime
        except OSError as error:
            return f"it is unknown whether Codex has it open ({error.strerror})"
        if age >= OPEN_SECONDS or self._is_untouched(session):
            return ""
        return f"it was written {max(0, round(age))} seconds ago"

    def _is_untouched(self, session: SessionFile) -> bool:
        """Check by the time in its first line whether a child of ours is unchanged since we wrote it."""
        try:
            first = read_first_lines(session.original)[0].record
            modified = os.stat(session.original).st_mtime
        except (OSError, NotATranscript):
            return False
        if "continue_metadata" in first:
            created = clock.to_milliseconds(string(first, "timestamp"))
        else:
            created = None
        return created is not None and modified - created / 1_000 < WRITING_SECONDS

    def commands(self, session_id: str, folder: str) -> ResumeCommands:
        """Return the commands that resume a thread. Codex requires the complete id of an unarchived thread."""
        change_folder = f"cd {shlex.quote(folder)} && " if folder else ""
        thread = self.rollouts.threads.get(session_id)
        if thread and is_archived(thread.path):
            unarchive = f"codex unarchive {session_id}"
            return ResumeCommands(
                f"in a shell: {unarchive}",
                f"{change_folder}{unarchive} && codex resume {session_id}",
            )
        return ResumeCommands(f"/resume {session_id}", f"{change_folder}codex resume {session_id}")

    def launch(self, session_id: str) -> Launch:
        """Return the command line that opens a thread.

        Raise ResumeHooksError if the thread is archived, because Codex cannot open it.
        """
        from resume_hooks.system import programs  # rarely needed

        thread = self.rollouts.threads.get(session_id)
        if thread and is_archived(thread.path):
            raise ResumeHooksError(
                f"{session_id} is archived in Codex", f"Run: codex unarchive {session_id}"
            )

        return Launch(
            NAME, programs.find_program(NAME, self._where.environ), ("resume", session_id)
        )

    def _copy_of(self, rollout: str) -> str:
        return self._copies.update_copy(
            rollout, self.file_of, self._names.get(_thread_id(rollout), "")
        )


class Threads(SessionStore):
    """The threads of a CODEX_HOME as a session store.

    A project folder has the same name as in Claude Code.
    """

    def __init__(self, rollouts: Rollouts) -> None:
        self._threads = rollouts.threads

    def projects(self) -> list[str]:
        """Return the projects in which threads were started."""
        return sorted(set(self._projects.values()) - {""})

    def sessions(
        self, projects: Iterable[str] | None = None, prefix: str = ""
    ) -> list[SessionFile]:
        """Return the threads of these projects, newest first."""
        wanted = None if projects is None else set(projects)
        threads = {}
        for thread_id, rollout in self._threads.items():
            if thread_id.startswith(prefix):
                threads[thread_id] = rollout
        return newest_first(
            _session_of_rollout(rollout)
            for thread_id, rollout in threads.items()
            if wanted is None or self._projects[thread_id] in wanted
        )

    def find(self, session_id: str) -> SessionFile | None:
        """Return the thread with this id."""
        if is_session_id(session_id):
            thread = self._threads.get(session_id)
        else:
            thread = None
        if thread:
            return _session_of_rollout(thread)
        return None

    @cached_property
    def _projects(self) -> dict[str, str]:
        projects = {}
        for thread_id, rollout in self._threads.items():
            projects[thread_id] = _project_of_rollout(rollout.path)
        return projects


def _project_of_rollout(path: str) -> str:
    folder = thread_folder(path)
    if folder:
        return project_key(folder)
    return ""


def _session_of_rollout(rollout: Rollout) -> SessionFile:
    status = rollout.status
    return SessionFile(rollout.name.thread_id, rollout.path, status.st_mtime, status.st_size, NAME)


def _thread_id(path: str) -> str:
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


NAME_LIST, NAME_DATABASE = "session_index.jsonl", "state_5.sqlite"
MAX_LIST_BYTES = 64 * 1024 * 1024  # the maximum number of bytes to read from the list of names


def thread_names(home: str) -> dict[str, str]:
    """Return the names of threads by thread id. If the list has several names for a thread, the last one counts."""
    names: dict[str, str] = {}
    path = os.path.join(home, NAME_DATABASE)
    if os.path.isfile(path):
        import sqlite3  # takes 10 ms to import, and is only needed if a database exists
        from urllib.parse import quote

        # The database may be locked or have another schema.
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(
                sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, timeout=0.2)
            ) as db,
        ):
            rows = db.execute("SELECT id, name FROM threads WHERE name <> ''").fetchall()
            names = {}
            for one, said in rows:
                if isinstance(one, str) and isinstance(said, str) and said.strip():
                    names[one] = said
    with contextlib.suppress(OSError), open(os.path.join(home, NAME_LIST), "rb") as stream:
        for raw in stream.read(MAX_LIST_BYTES).split(b"\n"):
            row = parse(raw) or {}
            thread_id, name = row.get("id"), string(row, "thread_name")
            if isinstance(thread_id, str) and is_session_id(thread_id) and name.strip():
                names[thread_id] = name
    return names
