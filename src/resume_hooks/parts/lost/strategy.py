"""Present sessions of which only the prompts remain as if they were sessions of another agent.

The prompts of each session are in a copy that has the format of a transcript.
"""

from __future__ import annotations

import contextlib
import functools
import os
import shlex
import time
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING

import orjson

from resume_hooks import clock
from resume_hooks.parts.lost.history import HISTORY_FILE_NAME as HISTORY
from resume_hooks.parts.lost.history import (
    HistoryContent,
    HistoryEntry,
    SessionPrompts,
    read_entries,
    read_history,
)
from resume_hooks.paths import (
    TRANSCRIPT_SUFFIX,
    Where,
    all_project_folders,
    is_session_id,
    make_private_folder,
    project_key,
    session_id_from_path,
)
from resume_hooks.sessions import session_files, transcript_files
from resume_hooks.sessions.agents.claude import Claude, ResumeCommands
from resume_hooks.sessions.agents.registry import OTHER_AGENT_ROWS, READ_STATE_FILE_NAME
from resume_hooks.sessions.session_files import SessionFile, SessionStore, sort_newest_first
from resume_hooks.sessions.transcript_files import TranscriptFile
from resume_hooks.storage import removal
from resume_hooks.storage.state_file import (
    create_file,
    discard_temporary,
    remove_stale_temporaries,
    temporary_path,
)
from resume_hooks.system import invocation
from resume_hooks.system.text import format_count
from resume_hooks.transcripts.head_tail import HeadTail

if TYPE_CHECKING:
    from resume_hooks.maintenance.doctor import Finding

AGENT_NAME = "prompts"
# Folders in the state folder that contain sessions that can be restored.
RESTORABLE_FOLDERS = ("vault", "trash")
# The number of milliseconds after a session's last prompt during which the client may still create
# the session's transcript.
MAX_TRANSCRIPT_DELAY_MILLISECONDS = 60_000


# Cached because each call makes system calls.
@functools.lru_cache(maxsize=4096)
def _get_project_key(folder: str) -> str:
    return project_key(folder)


class LostPromptsAgent(Claude):
    """The sessions of which only the prompts remain. ``copies`` is the folder with their copies.

    Each process searches for these sessions only once. A copy is read like one of the client's
    transcripts.
    """

    name = AGENT_NAME
    label = "prompts only"

    def __init__(self, home: str, copies: str, where: Where) -> None:
        super().__init__(home, copies, where)
        self._copies = copies
        self._root = removal.find_folder_limiting_removal(copies, where.state)

    @cached_property
    def store(self) -> SessionStore:
        """The lost sessions, grouped by the project in which their prompts were typed."""
        return LostSessionStore(self)

    @cached_property
    def lost_sessions(self) -> list[SessionFile]:
        """The lost sessions, newest first. Their copies are updated before they are returned.

        The list is empty if the copies cannot be written.
        """
        try:
            make_private_folder(self._copies, self._where)
            prompts_by_session, was_only_appended_to = self._find_lost_sessions()
            if not was_only_appended_to:
                _remove_copies((session.path for session in self._list_copies()), self._root)
            return sort_newest_first(self._update_copies(prompts_by_session))
        except OSError:
            return []

    def open_session(self, path: str) -> SessionFile:
        """Return the session whose copy is at ``path``."""
        return super().open_session(path)._replace(agent=AGENT_NAME)

    def read_title_lines(self, path: str) -> bytes:
        """Return the title of a session in lower case. The title is the first prompt."""
        return orjson.dumps(HeadTail(path).title).lower()

    def list_files(self) -> list[TranscriptFile]:
        """Return the copies of all sessions."""
        folders = {os.path.dirname(session.path) for session in self.lost_sessions}
        files: list[TranscriptFile] = []
        for folder in sorted(folders):
            files.extend(transcript_files.transcripts_in_folder(folder))
        return files

    def describe_open_state(self, session: SessionFile) -> str:  # noqa: ARG002
        """Return ``""``, because a session without a transcript cannot be open."""
        return ""

    def resume_commands(self, session_id: str, folder: str) -> ResumeCommands:
        """Return the commands that continue a session in a fresh child."""
        if os.path.isdir(folder):
            change_folder = f"cd {shlex.quote(folder)} && "
        else:
            change_folder = ""
        handoff_command = invocation.shell_command(f"handoff {session_id}")
        return ResumeCommands(
            f"in a shell: {handoff_command}", f"{change_folder}{handoff_command} --start"
        )

    def _find_lost_sessions(self) -> HistoryContent:
        """Return the prompts of the lost sessions, which exist only in the history.

        Raise OSError if the history cannot be read.
        """
        try:
            prompts_by_session, was_only_appended_to = read_history(
                os.path.join(self._copies, READ_STATE_FILE_NAME), self._where
            )
        except FileNotFoundError:
            return HistoryContent({}, was_only_appended_to=False)
        present_ids, unlisted_projects = self._find_existing_ids_and_unlisted_projects()
        latest_prompt = time.time() * 1000 - MAX_TRANSCRIPT_DELAY_MILLISECONDS
        lost_prompts = {
            session_id: session_prompts
            for session_id, session_prompts in prompts_by_session.items()
            if session_prompts.prompt_count
            and session_prompts.last_time_ms < latest_prompt
            and session_id not in present_ids
            and _get_project_key(session_prompts.project) not in unlisted_projects
        }
        return HistoryContent(lost_prompts, was_only_appended_to)

    def _find_existing_ids_and_unlisted_projects(self) -> tuple[set[str], set[str]]:
        """Return the ids of sessions that have a transcript or an archived copy.

        Also return the names of project folders that cannot be listed.
        """
        present_ids, unlisted_projects = (
            set[str](),
            {os.path.basename(project) for project in session_files.linked_projects(self._where)},
        )
        for restorable in RESTORABLE_FOLDERS:
            with contextlib.suppress(OSError):
                present_ids |= set(os.listdir(os.path.join(self._where.state, restorable)))
        for folder in all_project_folders(self._where):
            try:
                present_ids |= {
                    session_id
                    for name in os.listdir(folder)
                    if (session_id := session_id_from_path(name))
                }
            except OSError:
                unlisted_projects.add(os.path.basename(folder))
        if os.path.isdir(self._where.projects):
            # If this folder cannot be listed, raise OSError. Otherwise all sessions would seem to
            # be lost.
            os.listdir(self._where.projects)
        return present_ids, unlisted_projects

    def _list_copies(self) -> list[SessionFile]:
        """Return the sessions that have a copy. Raise OSError if a folder cannot be listed."""
        folders = (os.path.join(self._copies, name) for name in os.listdir(self._copies))
        copies = []
        for folder in folders:
            for session in session_files.sessions_in_project_folder(folder):
                copies.append(session._replace(agent=AGENT_NAME))
        return copies

    def _update_copies(self, prompts_by_session: dict[str, SessionPrompts]) -> list[SessionFile]:
        """Write missing and outdated copies, and remove the copies of sessions that are no longer lost.

        Return all sessions with a copy.
        """
        paths = {
            session_id: os.path.join(
                self._copies,
                _get_project_key(session_prompts.project),
                f"{session_id}{TRANSCRIPT_SUFFIX}",
            )
            for session_id, session_prompts in prompts_by_session.items()
        }
        existing_copies = self._list_copies()
        outdated_paths = [
            session.path
            for session in existing_copies
            if session.path != paths.get(session.session_id)
        ]
        _remove_copies(outdated_paths, self._root)
        current_copies = (
            session for session in existing_copies if session.path == paths.get(session.session_id)
        )
        fresh_ids = set()
        for copy in current_copies:
            if round(copy.mtime * 1000) == prompts_by_session[copy.session_id].last_time_ms:
                fresh_ids.add(copy.session_id)
        entries_by_session: dict[str, list[HistoryEntry]] = {
            session_id: [] for session_id in prompts_by_session.keys() - fresh_ids
        }
        for entry in read_entries(entries_by_session, self._where) if entries_by_session else ():
            if entry.is_prompt:
                entries_by_session[entry.session_id].append(entry)
        for folder in {os.path.dirname(paths[session_id]) for session_id in entries_by_session}:
            remove_stale_temporaries(make_private_folder(folder, self._where))
        for session_id, entries in entries_by_session.items():
            temporary_file, modified_ns = (
                temporary_path(os.path.dirname(paths[session_id])),
                prompts_by_session[session_id].last_time_ms * 10**6,
            )
            try:
                create_file(temporary_file, _build_copy_lines(entries, self._where), sync=False)
                os.utime(temporary_file, ns=(modified_ns, modified_ns))
                os.replace(temporary_file, paths[session_id])
            finally:
                discard_temporary(temporary_file)
        if entries_by_session or outdated_paths:
            return self._list_copies()
        return existing_copies


class LostSessionStore(SessionStore):
    """The lost sessions, grouped by project. No file is read before a method is called."""

    def __init__(self, prompts: LostPromptsAgent) -> None:
        self._prompts = prompts

    def projects(self) -> list[str]:
        """Return the names of the projects in which the prompts were typed."""
        return sorted(
            {_get_project_folder_name(session) for session in self._prompts.lost_sessions}
        )

    def sessions(
        self, projects: Iterable[str] | None = None, prefix: str = ""
    ) -> list[SessionFile]:
        """Return the sessions of the given projects, newest first. By default, return those of all projects."""
        project_names = None if projects is None else set(projects)
        lost_sessions = (
            session
            for session in self._prompts.lost_sessions
            if session.session_id.startswith(prefix)
        )
        sessions = []
        for session in lost_sessions:
            if project_names is None or _get_project_folder_name(session) in project_names:
                sessions.append(session)
        return sessions

    def find(self, session_id: str) -> SessionFile | None:
        """Return the session with this id, or None."""
        if is_session_id(session_id):
            lost_sessions = self._prompts.lost_sessions
        else:
            lost_sessions = []
        return next(
            (session for session in lost_sessions if session.session_id == session_id), None
        )


def _get_project_folder_name(session: SessionFile) -> str:
    return os.path.basename(os.path.dirname(session.path))


def _remove_copies(paths: Iterable[str], root: str) -> None:
    for path in list(paths):
        with contextlib.suppress(OSError):
            removal.remove_file(path, root)
            # This succeeds only if the removed copy was the last in the folder.
            removal.remove_empty_folder(os.path.dirname(path), root)


def _build_copy_lines(entries: list[HistoryEntry], where: Where) -> Iterator[bytes]:
    """Yield the lines of a copy: an introductory record, and one record for each prompt.

    The ids of the prompts are the same in every run.
    """
    first_entry = entries[0]
    first_record = {
        "type": "agent-session",
        "agent": AGENT_NAME,
        "sessionId": first_entry.session_id,
    }
    yield orjson.dumps({**first_record, "file": os.path.join(where.config, HISTORY)}) + b"\n"
    parent_id = None
    for number, entry in enumerate(entries):
        uuid = f"{first_entry.session_id[:24]}{number:012x}"
        record = {
            "parentUuid": parent_id,
            "isSidechain": False,
            "userType": "external",
            "cwd": entry.project,
            "sessionId": first_entry.session_id,
            "type": "user",
            "message": {"role": "user", "content": entry.read_text_with_pastes(where)},
            "uuid": uuid,
            "timestamp": clock.timestamp_from_milliseconds(entry.time_ms),
        }
        parent_id = uuid
        yield orjson.dumps(record) + b"\n"


def describe_lost_prompts(where: Where, *, is_user_waiting: bool = False) -> str:
    """Return a phrase with the numbers of lost sessions and their prompts, or ``""`` if there are none.

    If ``is_user_waiting`` is true, a large history that was never read before is not read now
    either. The phrase then only says that lost sessions may exist.
    """
    agent = OTHER_AGENT_ROWS.get(AGENT_NAME)
    if agent is None or not agent.has_sessions(where):
        return ""
    if is_user_waiting and not agent.is_quick_to_list(where):
        return "prompts of lost sessions may still exist"
    lost_sessions, prompt_count = agent.load_agent(where).store.sessions(), 0
    for session in lost_sessions:
        with contextlib.suppress(OSError), open(session.path, "rb") as stream:
            prompt_count += sum(1 for _ in stream) - 1
    if lost_sessions:
        verb = "exists" if prompt_count == 1 else "exist"
        session_phrase = format_count(len(lost_sessions), "lost session")
        return f"{format_count(prompt_count, 'prompt')} of {session_phrase} still {verb}"
    return ""


def build_note_on_lost_sessions(where: Where) -> str:
    """Return a note about lost sessions, which is shown once at the start of a session.

    Return ``""`` if there are no lost sessions.
    """
    lost = describe_lost_prompts(where, is_user_waiting=True)
    if lost:
        command = invocation.shell_command(f"sessions --all --agent {AGENT_NAME}")
        return f"{lost[0].upper()}{lost[1:]}; list them: {command}"
    return ""


def check_for_lost_prompts(_: str) -> Finding:
    """Return the finding of ``doctor`` about lost sessions whose prompts remain."""
    # Imported here because only ``doctor`` needs it. The start of a session should not be slowed
    # down.
    from resume_hooks.maintenance.doctor import make_ok_finding

    if description := describe_lost_prompts(Where()):
        lists = invocation.shell_command(f"sessions --all --agent {AGENT_NAME}")
        return make_ok_finding(
            f"{description}, in history.jsonl. To see them, use search or {lists}", "found"
        )
    return make_ok_finding("no prompts of lost sessions were found")
