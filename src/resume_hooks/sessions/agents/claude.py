"""The interface to an agent's sessions.

Also Claude Code's implementation, whose transcripts are the common record format.
"""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from functools import cached_property
from typing import NamedTuple, Protocol

from resume_hooks.paths import Where
from resume_hooks.sessions import session_files, transcript_files
from resume_hooks.sessions.session_files import OWN_AGENT, LocalStore, SessionFile, SessionStore
from resume_hooks.sessions.transcript_files import TranscriptFile
from resume_hooks.system.invocation import resume_command
from resume_hooks.transcripts import provenance
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.provenance import Parent


class ResumeCommands(NamedTuple):
    """The commands that continue a session, inside the agent and in a shell."""

    in_client: str
    shell: str


class LaunchCommand(NamedTuple):
    """The command that opens a session: the program's name, its path (None: not installed), and its arguments."""

    program: str
    path: str | None
    arguments: tuple[str, ...]


class Agent(Protocol):
    """An agent with sessions on this machine. The defaults are Claude Code's.

    ``name`` is one word, ``label`` the name in texts.
    """

    @property
    def name(self) -> str:
        """The name for ``--agent`` and in lists."""

    @property
    def label(self) -> str:
        """The agent's name in texts."""

    @property
    def store(self) -> SessionStore:
        """The agent's sessions by project and id."""

    def read_ends(self, path: str) -> HeadTail:
        """Return a session's head and tail without converting it.

        Raise SessionNotFound if it can't be read.
        """
        return HeadTail(path)

    def read_naming_lines(self, path: str) -> bytes:
        """Return the lines that may name a session, in lower case. Read as little as possible."""
        return self.read_ends(path).title.lower().encode()

    def open_session(self, path: str) -> SessionFile:
        """Return the session at a path. Raise SessionNotFound or NotATranscript."""
        return session_files.session_file(path)

    def to_common_format(self, session: SessionFile) -> SessionFile:
        """Return the session in the common record format: itself, or a copy at another path.

        Raise SessionNotFound or WriteFailed.
        """
        return session

    def open_briefly(self, path: str) -> AbstractContextManager[str]:
        """Return a context manager that makes a path of ``list_files`` readable and yields the readable path.

        On entry it raises the errors of ``to_common_format``.
        """
        return contextlib.nullcontext(path)

    def original_path(self, path: str) -> str:
        """Return the agent's own path for a path from ``to_common_format``."""
        return path

    def find_file(self, name: str) -> str | None:  # noqa: ARG002 - for those whose sessions are several files
        """Return the path of another file that a session continues from, by its name in the session.

        Return None if it is unknown.
        """
        return None

    def read_parent(self, path: str) -> Parent | None:
        """Return the parent that a session names. Raise OSError or SessionNotFound."""
        return provenance.read_parent(path)

    def list_files(self) -> list[TranscriptFile]:
        """Return every transcript."""

    def listing_notes(self) -> list[str]:
        """Return a sentence on each problem that hides sessions from a list, except for hidden folders."""
        return []

    def plugin_install_command(self, name: str) -> str:  # noqa: ARG002 - for those whose settings we don't look at elsewhere
        """Return the command, for the plugin's folder, that installs a plugin; ``""`` if it is already enabled."""
        return ""

    def describe_open_state(self, session: SessionFile) -> str:
        """Return the reason why a session counts as open, as the end of a sentence; ``""`` if it is closed."""

    def resume_commands(self, session_id: str, folder: str) -> ResumeCommands:
        """Return the commands that continue a session of a working directory."""

    def launch_command(self, session_id: str) -> LaunchCommand:
        """Return the command that continues a session, to be run in its folder."""


CLAUDE_NAME = OWN_AGENT


class Claude(Agent):
    """The sessions of a config home, which are already in the common record format."""

    name = CLAUDE_NAME
    label = "Claude Code"

    def __init__(self, home: str, copies: str, where: Where) -> None:  # noqa: ARG002 - as of all agents
        self._where = where

    @cached_property
    def store(self) -> SessionStore:
        """The project folders."""
        return LocalStore(self._where)

    def list_files(self) -> list[TranscriptFile]:
        """Return the transcripts of sessions and sub-agents."""
        return transcript_files.list_transcripts(self._where)

    def describe_open_state(self, session: SessionFile) -> str:
        """Return why a session counts as open, according to the running clients and the last write."""
        from resume_hooks.sessions.open_sessions import (
            describe_open_session,  # imported late, because few callers inspect processes
        )

        return describe_open_session(session, self._where)

    def resume_commands(self, session_id: str, folder: str) -> ResumeCommands:
        """Return the client's own commands."""
        return ResumeCommands(f"/resume {session_id}", resume_command(folder, session_id))

    def launch_command(self, session_id: str) -> LaunchCommand:
        """Return the command that resumes a session by its id."""
        from resume_hooks.system.claude_cli import (
            find_client,
        )  # imported late, because few callers search for programs

        return LaunchCommand("claude", find_client(self._where), ("--resume", session_id))
