"""Define the interface to an agent's sessions, and implement it for Claude Code.

Claude Code's transcripts already have the common record format. The sessions of other agents are
converted to this format.
"""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from functools import cached_property
from typing import NamedTuple, Protocol

from resume_hooks.paths import Where
from resume_hooks.sessions import session_files, transcript_files
from resume_hooks.sessions.session_files import DEFAULT_AGENT, LocalStore, SessionFile, SessionStore
from resume_hooks.sessions.transcript_files import TranscriptFile
from resume_hooks.system.invocation import resume_command
from resume_hooks.transcripts import provenance
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.provenance import Parent


class ResumeCommands(NamedTuple):
    """The commands that continue a session: one to type in the agent, and one for a shell."""

    client_command: str
    shell_command: str


class LaunchCommand(NamedTuple):
    """The command that opens a session.

    ``program`` is the program's name. ``program_path`` is None if the program is not installed.
    """

    program: str
    program_path: str | None
    arguments: tuple[str, ...]


class Agent(Protocol):
    """An agent with sessions on this machine. The methods that have a body are Claude Code's."""

    @property
    def name(self) -> str:
        """The agent's name in one word, as in ``--agent`` and in lists."""

    @property
    def label(self) -> str:
        """The agent's full name for sentences."""

    @property
    def store(self) -> SessionStore:
        """The agent's sessions, which can be listed by project and found by id."""

    def read_ends(self, path: str) -> HeadTail:
        """Return the beginning and the end of a session without converting the whole session.

        Raise SessionNotFound if the session can't be read.
        """
        return HeadTail(path)

    def read_title_lines(self, path: str) -> bytes:
        """Return the lines that may contain the session's title, in lower case.

        Only the parts of the file that may contain these lines are read.
        """
        return self.read_ends(path).title.lower().encode()

    def open_session(self, path: str) -> SessionFile:
        """Return the session at a path. Raise SessionNotFound or NotATranscript."""
        return session_files.session_file(path)

    def to_common_format(self, session: SessionFile) -> SessionFile:
        """Return the session in the common record format.

        The result is the session itself, or a converted copy at another path. Raise SessionNotFound
        or WriteFailed.
        """
        return session

    def provide_copy_path(self, path: str) -> AbstractContextManager[str]:
        """Return a context manager that makes a file from ``list_files`` readable in a ``with`` block.

        The context manager yields the path at which the file can be read. Entering the block may
        raise the errors of ``to_common_format``.
        """
        return contextlib.nullcontext(path)

    def original_path(self, converted_path: str) -> str:
        """Return the path of the agent's own file for a path from ``to_common_format``."""
        return converted_path

    def find_file_by_id(self, file_id: str) -> str | None:  # noqa: ARG002 - for those whose sessions are several files
        """Return the path of a file that contains an earlier part of a session.

        ``file_id`` is the id by which the session refers to the file. Return None if the file does
        not exist.
        """
        return None

    def read_parent(self, path: str) -> Parent | None:
        """Return the parent that the session's file records, or None if the file records none.

        Raise OSError or SessionNotFound if the file can't be read.
        """
        return provenance.read_parent(path)

    def list_files(self) -> list[TranscriptFile]:
        """Return the transcripts of all sessions of the agent."""

    def build_listing_notes(self) -> list[str]:
        """Return a sentence about each problem that hides sessions from a list.

        Project folders that can't be listed are reported elsewhere.
        """
        return []

    def plugin_install_command(self, name: str) -> str:  # noqa: ARG002 - for those whose settings we don't look at elsewhere
        """Return the shell command that installs a plugin, or ``""`` if the plugin is already enabled.

        The command must be run in the plugin's folder.
        """
        return ""

    def describe_open_state(self, session: SessionFile) -> str:
        """Return why a session counts as open, worded as the end of a sentence.

        Return ``""`` if the session is closed.
        """

    def resume_commands(self, session_id: str, folder: str) -> ResumeCommands:
        """Return the commands that continue a session that worked in ``folder``."""

    def launch_command(self, session_id: str) -> LaunchCommand:
        """Return the command that continues a session. It must be run in the session's folder."""


CLAUDE_NAME = DEFAULT_AGENT


class Claude(Agent):
    """Claude Code and its sessions in a config home, which already have the common record format."""

    name = CLAUDE_NAME
    label = "Claude Code"

    def __init__(self, home: str, copies: str, where: Where) -> None:  # noqa: ARG002 - as of all agents
        self._where = where

    @cached_property
    def store(self) -> SessionStore:
        """The sessions in the project folders."""
        return LocalStore(self._where)

    def list_files(self) -> list[TranscriptFile]:
        """Return the transcripts of sessions and sub-agents."""
        return transcript_files.list_transcripts(self._where)

    def describe_open_state(self, session: SessionFile) -> str:
        """Return why a session counts as open, according to the running clients and the last write."""
        from resume_hooks.sessions.open_sessions import (
            describe_open_session,  # Imported here because few callers inspect processes.
        )

        return describe_open_session(session, self._where)

    def resume_commands(self, session_id: str, folder: str) -> ResumeCommands:
        """Return the commands that resume a session: one for the client's prompt, and one for a shell."""
        return ResumeCommands(f"/resume {session_id}", resume_command(folder, session_id))

    def launch_command(self, session_id: str) -> LaunchCommand:
        """Return the command that resumes a session by its id."""
        # Imported here because few callers search for programs.
        from resume_hooks.system.claude_cli import find_client

        return LaunchCommand("claude", find_client(self._where), ("--resume", session_id))
