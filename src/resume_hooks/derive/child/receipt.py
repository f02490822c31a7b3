"""Define the receipt of a written child: its id, its file, its sizes, and the checks that passed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from resume_hooks.paths import Where
from resume_hooks.sessions.agents.claude import CLAUDE_NAME, ResumeCommands
from resume_hooks.sessions.agents.registry import agent_with_name

if TYPE_CHECKING:  # Imported only for types, so that comparing strategies does not load the checks.
    from resume_hooks.transcripts.invariants import Check

# Children of these kinds contain no records of their parent.
FRESH_CHILD_KINDS = frozenset({"handoff", "rollover"})


class Receipt(NamedTuple):
    """The child that a verb wrote or, if ``written`` is false, would have written.

    ``tokens_before`` and ``tokens_after`` are the sizes of the live chains of parent and child.
    After a trim in place, the receipt names the trimmed session itself, and ``backup`` is the path
    of a copy of the file before the trim.

    If an identical earlier request created a child that is still unused, nothing is written, and
    ``session_id`` and ``file`` name that child. After a dry run, ``session_id`` and ``file`` are
    empty, and the commands in the receipt continue the parent. After a dry run, ``file`` is not the
    parent's path, because a script that deletes ``file`` must not delete the user's own session.
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
    def sizes_text(self) -> str:
        """The numbers of tokens in the session and in its child, as text."""
        return f"{self.tokens_before:,} tokens here, about {self.tokens_after:,} in the new session"

    @property
    def commands(self) -> ResumeCommands:
        """The commands that continue the child or, if there is no child, the parent."""
        return agent_with_name(self.agent, Where()).resume_commands(
            self.session_id or self.parent_session_id, self.folder
        )

    @property
    def client_command(self) -> str:
        """The command that continues the child in the running client."""
        return self.commands.client_command

    @property
    def shell_command(self) -> str:
        """The command that continues the child in a new client. The user types it in a shell."""
        return self.commands.shell_command


class AccompanyingFiles(NamedTuple):
    """The documents that were or would be written, and a warning for each document that cannot be written."""

    documents: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
