"""The receipt: what a write did, and which checks it passed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from resume_hooks.paths import Where
from resume_hooks.sessions.agents.claude import NAME, ResumeCommands
from resume_hooks.sessions.agents.registry import agent_named

if TYPE_CHECKING:  # who compares ways to go on checks no session
    from resume_hooks.transcripts.invariants import Check

FRESH = frozenset(
    {"handoff", "rollover"}
)  # the kinds of children that hold none of their parent's records


class Receipt(NamedTuple):
    """What a verb wrote, or would write where ``written`` is false.

    Sizes are tokens of the live chain.

    Where nothing was written, ``session_id`` and ``file`` are empty and the way on is the parent: a
    script that removes what it was told of must never be given the user's own file.
    """

    session_id: str
    file: str
    title: str
    parent_session_id: str
    parent_file: str
    kind: str
    written: bool
    folder: str
    tokens_before: int
    tokens_after: int
    chars_saved: int = 0
    tools_trimmed: int = 0
    checks: tuple[Check, ...] = ()
    warnings: tuple[str, ...] = ()
    agent: str = NAME

    @property
    def sizes(self) -> str:
        """What the session takes and what its child does, in words."""
        return f"{self.tokens_before:,} tokens here, about {self.tokens_after:,} in the new session"

    @property
    def commands(self) -> ResumeCommands:
        """How to go on in the child, or without a child in the parent."""
        return agent_named(self.agent, Where()).commands(
            self.session_id or self.parent_session_id, self.folder
        )

    @property
    def in_client(self) -> str:
        """What to type in the running client."""
        return self.commands.in_client

    @property
    def shell(self) -> str:
        """What to type in a shell."""
        return self.commands.shell


class FilesBeside(NamedTuple):
    """Documents that were written, or would be; warnings about the others."""

    documents: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
