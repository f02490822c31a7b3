"""The receipt: the result of a write, and the checks that passed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from resume_hooks.paths import Where
from resume_hooks.sessions.agents.claude import CLAUDE_NAME, ResumeCommands
from resume_hooks.sessions.agents.registry import agent_with_name

if TYPE_CHECKING:  # a comparison of strategies runs no checks
    from resume_hooks.transcripts.invariants import Check

FRESH_KINDS = frozenset(
    {"handoff", "rollover"}
)  # the kinds of children that do not contain records of their parent


class Receipt(NamedTuple):
    """The child that a verb wrote, or would write if ``written`` is false.

    Sizes are tokens of the live chain. After a trim in place, the receipt names the session itself,
    and ``backup`` is the copy of its former file.

    If nothing was written, ``session_id`` and ``file`` are those of an unused child of the same
    request, or empty. If they are empty, the commands continue the parent. A script that deletes the
    named file must never delete the user's own session.
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
    agent: str = CLAUDE_NAME
    backup: str = ""

    @property
    def sizes(self) -> str:
        """The sizes of the session and its child, in words."""
        return f"{self.tokens_before:,} tokens here, about {self.tokens_after:,} in the new session"

    @property
    def commands(self) -> ResumeCommands:
        """The commands to continue the child, or the parent if there is no child."""
        return agent_with_name(self.agent, Where()).resume_commands(
            self.session_id or self.parent_session_id, self.folder
        )

    @property
    def in_client(self) -> str:
        """The command for the running client."""
        return self.commands.in_client

    @property
    def shell(self) -> str:
        """The command for a shell."""
        return self.commands.shell


class AccompanyingFiles(NamedTuple):
    """The documents that were or would be written, and a warning for each document that failed."""

    documents: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
