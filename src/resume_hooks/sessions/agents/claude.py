"""What an agent tells of its sessions.

And Claude Code, whose transcripts are our form of record.
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
    """How a session is gone on in: what to type inside the agent, and in a shell."""

    in_client: str
    shell: str


class Launch(NamedTuple):
    """What opens a session: the program's name, where it is (None: not installed), and its words."""

    program: str
    path: str | None
    words: tuple[str, ...]


class Agent(Protocol):
    """An agent whose sessions lie on this machine; what it does not say is as with Claude Code.

    ``name`` is one word, ``label`` what people call it.
    """

    @property
    def name(self) -> str:
        """What ``--agent`` takes and lists show."""

    @property
    def label(self) -> str:
        """What people call it."""

    @property
    def store(self) -> SessionStore:
        """Its sessions by project and id."""

    def ends(self, path: str) -> HeadTail:
        """What the two ends of a session tell; nothing is converted.

        SessionNotFound if it can't be read.
        """
        return HeadTail(path)

    def naming(self, path: str) -> bytes:
        """The lines of a session that it may be named by, in small letters, by as little reading as it takes."""
        return self.ends(path).title.lower().encode()

    def session(self, path: str) -> SessionFile:
        """The session at a path. SessionNotFound, NotATranscript."""
        return session_files.session_file(path)

    def readable(self, session: SessionFile) -> SessionFile:
        """The session in our form of record: itself, or a copy at another path.

        SessionNotFound, WriteFailed.
        """
        return session

    def briefly(self, path: str) -> AbstractContextManager[str]:
        """A path that can be read as long as the block lasts, for one that ``files`` lists.

        Errors as ``readable``.
        """
        return contextlib.nullcontext(path)

    def original(self, path: str) -> str:
        """Where the agent has what lies at a path that ``readable`` gave."""
        return path

    def file_of(self, name: str) -> str | None:  # noqa: ARG002 - for those whose sessions are several files
        """The file that another file of the agent's names, where one session goes on from several.

        None for none.
        """
        return None

    def parent(self, path: str) -> Parent | None:
        """The parent that a session names. OSError, or SessionNotFound."""
        return provenance.read_parent(path)

    def files(self) -> list[TranscriptFile]:
        """Every transcript, for whoever goes through all of them."""

    def notes(self) -> list[str]:
        """What can't be listed, a sentence each, unless the store tells what is hidden."""
        return []

    def without_plugin(self, name: str) -> str:  # noqa: ARG002 - for those whose settings we don't look at elsewhere
        """What installs the plugin of that name, typed in its folder; ``""`` where the agent has it switched on."""
        return ""

    def why_open(self, session: SessionFile) -> str:
        """Why a session counts as open, as the end of a sentence; ``""`` where it is not."""

    def commands(self, session_id: str, folder: str) -> ResumeCommands:
        """How to go on in a session of a working directory."""

    def launch(self, session_id: str) -> Launch:
        """What is executed to go on in a session, in its folder."""


NAME = OWN_AGENT


class Claude(Agent):
    """The sessions of a config home, which need no copies in our form of record."""

    name = NAME
    label = "Claude Code"

    def __init__(self, home: str, copies: str, where: Where) -> None:  # noqa: ARG002 - as of all agents
        self._where = where

    @cached_property
    def store(self) -> SessionStore:
        """The project folders."""
        return LocalStore(self._where)

    def files(self) -> list[TranscriptFile]:
        """Those of sub-agents, too."""
        return transcript_files.all_files(self._where)

    def why_open(self, session: SessionFile) -> str:
        """By the clients that run."""
        from resume_hooks.sessions.open_sessions import (
            why_session_is_open,  # processes are looked at by few
        )

        return why_session_is_open(session, self._where)

    def commands(self, session_id: str, folder: str) -> ResumeCommands:
        """The client's own."""
        return ResumeCommands(f"/resume {session_id}", resume_command(folder, session_id))

    def launch(self, session_id: str) -> Launch:
        """By its id."""
        from resume_hooks.system.claude_cli import (
            client_executable,
        )  # programs are looked for by few

        return Launch("claude", client_executable(self._where), ("--resume", session_id))
