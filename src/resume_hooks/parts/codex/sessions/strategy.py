"""Codex as an agent: its threads as sessions, read through copies in our form of record."""

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
from resume_hooks.parts.codex.sessions.files import Rollout, Rollouts, folder_of, is_archived
from resume_hooks.parts.codex.transcripts.as_records import first_record
from resume_hooks.parts.codex.transcripts.lines import first_lines
from resume_hooks.parts.codex.transcripts.meta import parse_name, read_meta
from resume_hooks.paths import Where, is_session_id, project_key
from resume_hooks.sessions.agents.claude import Launch, ResumeCommands
from resume_hooks.sessions.session_files import SessionFile, SessionStore, newest_first
from resume_hooks.sessions.transcript_files import TranscriptFile
from resume_hooks.storage.locks import lock
from resume_hooks.system.text import encodable, plural
from resume_hooks.transcripts import provenance
from resume_hooks.transcripts.provenance import Parent
from resume_hooks.transcripts.records import parse, string

NAME = "codex"
SETTINGS = "config.toml"
LOCKS = "thread-writer-locks"  # a lock an open thread, from 0.150 on
FRESH = 60  # seconds after a write during which a thread counts as open, since older clients lock nothing
WRITING = 2  # seconds that we take to write a child at most; one that took longer counts as open for a while


class Codex:
    """The threads of a CODEX_HOME; ``copies`` is a folder of ours.

    ``store`` and ``files`` look at it anew.
    """

    name = NAME
    label = "Codex"

    def __init__(self, home: str, copies: str, where: Where) -> None:
        self._home = home
        self._where = where
        self._copies = ThreadCopies(copies, NAME, where)

    @cached_property
    def rollouts(self) -> Rollouts:
        """What lies there, as it was last looked at."""
        return Rollouts(self._home)

    @cached_property
    def _names(self) -> dict[str, str]:
        return thread_names(self._home)

    def _look(self) -> Rollouts:
        for seen in ("rollouts", "_names"):
            self.__dict__.pop(seen, None)
        return self.rollouts

    @property
    def store(self) -> SessionStore:
        """The threads by the projects that their folders belong to."""
        return Threads(self._look())

    def ends(self, path: str) -> RolloutEnds:
        """What a listing shows of a rollout, or of what a copy was made of."""
        rollout = self.original(path)
        named = parse_name(rollout)
        return RolloutEnds(rollout, NAME, self._names.get(named.thread_id, "") if named else "")

    def naming(self, path: str) -> bytes:
        """The name that the user gave, and the title that stands in for one."""
        try:
            ends = self.ends(path)
        except SessionNotFound:
            return b""  # gone since it was listed
        return b"\n".join(orjson.dumps(title) for title in (ends.custom_title, ends.title)).lower()

    def session(self, path: str) -> SessionFile:
        """The thread that the rollout, or copy, at a path is of."""
        try:
            rollout = os.path.abspath(self.original(path))
            meta = read_meta(rollout)
            status = os.stat(rollout)
        except (OSError, ValueError) as error:
            raise SessionNotFound(f"{path} can't be read: {error}", "Check the path.") from error
        return SessionFile(meta.thread_id, rollout, status.st_mtime, status.st_size, NAME)

    def readable(self, session: SessionFile) -> SessionFile:
        """A copy of the thread in our form of record, as it is now."""
        rollout = session.source or self.original(session.path)
        path = self._copy_of(rollout)
        return session._replace(path=path, size=os.stat(path).st_size, source=rollout)

    @contextlib.contextmanager
    def briefly(self, path: str) -> Iterator[str]:
        """A copy; one that was made for this goes again, so that a run through all threads doesn't double them."""
        known = os.path.lexists(self._copies.path_of(folder_of(path), _thread_id(path)))
        copy = self._copy_of(path)
        try:
            yield copy
        finally:
            if not known:
                self._copies.discard(copy)

    def original(self, path: str) -> str:
        """The rollout that a copy was made of; any other path as it is."""
        if self._copies.holds(path):
            return self._copies.original(path) or path
        return path

    def file_of(self, name: str) -> str | None:
        """The rollout of an id."""
        return self.rollouts.path_of(name) or self._look().path_of(name)

    def parent(self, path: str) -> Parent | None:
        """What a child of ours says, else the thread that a fork names."""
        rollout = self.original(path)
        return provenance.parent_in(
            first_record(read_meta(rollout), first_lines(rollout)[0].record, NAME)
        )

    def files(self) -> list[TranscriptFile]:
        """The threads that can be read, each by its newest file."""
        self._copies.make_room()
        newest = self._look().threads.values()
        return [  # an inode below zero, as of all that is not read where it lies
            TranscriptFile(
                path, _project(path), name.thread_id, "", -1 - at.st_ino, at.st_size, at.st_mtime_ns
            )
            for path, name, at in newest
            if encodable(path) == path
        ]

    def notes(self) -> list[str]:
        """How many compressed rollouts are passed over."""
        packed = self.rollouts.packed
        if not packed:
            return []
        said = plural(packed, "session")
        return [
            (
                f"{said} of Codex, compressed: skipped ({packed}); the Python package "
                "zstandard reads them"
            )
        ]

    def without_plugin(self, name: str) -> str:
        """As the user's settings have it."""
        import tomllib  # only whoever looks into the installation waits for it

        plugins: object = None
        with (
            contextlib.suppress(OSError, ValueError),
            open(os.path.join(self._home, SETTINGS), "rb") as stream,
        ):
            plugins = tomllib.load(stream).get("plugins")
        named = plugins.items() if isinstance(plugins, dict) else ()
        if any(
            one.split("@")[0] == name and isinstance(said, dict) and said.get("enabled")
            for one, said in named
        ):
            return ""
        return f'codex plugin marketplace add "$PWD" && codex plugin add {name}@{name}'

    def why_open(self, session: SessionFile) -> str:
        """By the lock of the thread, else by the time of its last write."""
        if _is_locked(os.path.join(self._home, LOCKS, f"{session.session_id}.lock")):
            return "Codex has it open"
        try:
            age = time.time() - os.stat(session.original).st_mtime
        except OSError as error:
            return f"it can't be told whether Codex has it open ({error.strerror})"
        if age >= FRESH or self._is_untouched(session):
            return ""
        return f"it was written {max(0, round(age))} seconds ago"

    def _is_untouched(self, session: SessionFile) -> bool:
        """Whether a child of ours is as we wrote it: nothing was added since the instant that it names."""
        try:
            first = first_lines(session.original)[0].record
            written = os.stat(session.original).st_mtime
        except (OSError, NotATranscript):
            return False
        if "continue_metadata" in first:
            made = clock.milliseconds(string(first, "timestamp"))
        else:
            made = None
        return made is not None and written - made / 1_000 < WRITING

    def commands(self, session_id: str, folder: str) -> ResumeCommands:
        """Codex takes whole ids alone, and none of an archived thread."""
        go = f"cd {shlex.quote(folder)} && " if folder else ""
        thread = self.rollouts.threads.get(session_id)
        if thread and is_archived(thread.path):
            back = f"codex unarchive {session_id}"
            return ResumeCommands(f"in a shell: {back}", f"{go}{back} && codex resume {session_id}")
        return ResumeCommands(f"/resume {session_id}", f"{go}codex resume {session_id}")

    def launch(self, session_id: str) -> Launch:
        """By its id. ResumeHooksError for an archived thread, which Codex would refuse."""
        from resume_hooks.system import programs  # programs are looked for by few

        thread = self.rollouts.threads.get(session_id)
        if thread and is_archived(thread.path):
            raise ResumeHooksError(
                f"{session_id} is archived in Codex", f"Run: codex unarchive {session_id}"
            )

        return Launch(
            NAME, programs.find_program(NAME, self._where.environ), ("resume", session_id)
        )

    def _copy_of(self, rollout: str) -> str:
        return self._copies.of(rollout, self.file_of, self._names.get(_thread_id(rollout), ""))


class Threads(SessionStore):
    """The threads of a CODEX_HOME as a store of sessions.

    A project's name is that of its folder here, too.
    """

    def __init__(self, rollouts: Rollouts) -> None:
        self._threads = rollouts.threads

    def projects(self) -> list[str]:
        """The projects that threads were started in."""
        return sorted(set(self._projects.values()) - {""})

    def sessions(
        self, projects: Iterable[str] | None = None, prefix: str = ""
    ) -> list[SessionFile]:
        """The threads of these projects, the last written first."""
        wanted = None if projects is None else set(projects)
        threads = {}
        for own, each in self._threads.items():
            if own.startswith(prefix):
                threads[own] = each
        return newest_first(
            _session(each)
            for own, each in threads.items()
            if wanted is None or self._projects[own] in wanted
        )

    def find(self, session_id: str) -> SessionFile | None:
        """The thread of an id."""
        if is_session_id(session_id):
            thread = self._threads.get(session_id)
        else:
            thread = None
        if thread:
            return _session(thread)
        return None

    @cached_property
    def _projects(self) -> dict[str, str]:
        projects = {}
        for own, each in self._threads.items():
            projects[own] = _project(each.path)
        return projects


def _project(path: str) -> str:
    folder = folder_of(path)
    if folder:
        return project_key(folder)
    return ""


def _session(rollout: Rollout) -> SessionFile:
    status = rollout.status
    return SessionFile(rollout.name.thread_id, rollout.path, status.st_mtime, status.st_size, NAME)


def _thread_id(path: str) -> str:
    named = parse_name(path)
    if named:
        return named.thread_id
    return ""


def _is_locked(path: str) -> bool:
    try:
        descriptor = os.open(
            path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
        )
    except OSError:
        return False
    try:
        return lock(descriptor) is False
    finally:
        os.close(descriptor)


LIST, DATABASE = "session_index.jsonl", "state_5.sqlite"
MAX_LIST = 64 * 1024 * 1024  # bytes of the list that are read


def thread_names(home: str) -> dict[str, str]:
    """The name of each thread that has one, by its id; the last one in the list wins."""
    names: dict[str, str] = {}
    path = os.path.join(home, DATABASE)
    if os.path.isfile(path):
        import sqlite3  # 10 ms, which only whoever has a database pays
        from urllib.parse import quote

        # It may be locked, or of another form.
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
    with contextlib.suppress(OSError), open(os.path.join(home, LIST), "rb") as stream:
        for raw in stream.read(MAX_LIST).split(b"\n"):
            row = parse(raw) or {}
            thread_id, name = row.get("id"), string(row, "thread_name")
            if isinstance(thread_id, str) and is_session_id(thread_id) and name.strip():
                names[thread_id] = name
    return names
