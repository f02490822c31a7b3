"""Write Claude Code sessions.

To load quickly, each method imports only the modules that it needs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from resume_hooks.derive.child.draft import Draft, make_draft
from resume_hooks.derive.child.write_child import ChildBody
from resume_hooks.derive.fresh_child import FreshOpening, make_opening_lines
from resume_hooks.paths import Where
from resume_hooks.sessions.child_titles import ChildKind
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts.head_tail import HeadTail

if TYPE_CHECKING:
    from resume_hooks.derive.cut_point import CutSelector
    from resume_hooks.derive.fork import ConversationText, ForkPlan
    from resume_hooks.derive.trim.plan import TrimmableSession
    from resume_hooks.derive.untrim import TrimmedSession, UntrimPlan


class ClaudeWriter:
    """Writes sessions to the project folders of one config folder. Has the methods of ``agents.Writer``."""

    def __init__(self, home: str, where: Where) -> None:  # noqa: ARG002 - as of all agents
        self._where = where

    def draft_child(
        self,
        session: SessionFile,
        head_tail: HeadTail,
        kind: ChildKind,
        output_dir: str | None = None,
        *,
        subject: str = "",
    ) -> Draft:
        """Return the draft of a child in the project folder to which the parent belongs."""
        return make_draft(session, head_tail, kind, self._where, output_dir, subject=subject)

    def make_opening_body(self, opening: FreshOpening) -> ChildBody:
        """Return the body of a child that starts with an opening."""
        return make_opening_lines(opening)

    def make_conversation_body(
        self,
        draft: Draft,
        first_line: bytes,
        introduction: str,
        messages: Sequence[ConversationText],
    ) -> ChildBody:
        """Return the body of a child that contains a conversation as text."""
        from resume_hooks.derive.fork import make_conversation_lines

        return make_conversation_lines(draft, first_line, introduction, messages)

    def plan_fork(
        self,
        session: SessionFile,
        cut: CutSelector | None,
        home: str | None,
        output_dir: str | None,
    ) -> ForkPlan:
        """Plan a copy of the live conversation. If ``home`` is given, the copy belongs to the folder ``home``."""
        from resume_hooks.derive import fork

        return fork.plan_fork(session, self._where, cut=cut, home=home, output_dir=output_dir)

    def read_trimmable_session(self, session: SessionFile) -> TrimmableSession:
        """Scan the session for a trim."""
        from resume_hooks.derive.trim import plan

        return plan.scan_session(session)

    def plan_untrim(
        self,
        trimmed_session: TrimmedSession,
        line_numbers: Collection[int] | None,
        *,
        strict: bool,
        output_dir: str | None,
    ) -> UntrimPlan:
        """Plan a child in which the original contents are restored."""
        from resume_hooks.derive import untrim

        return untrim.plan_untrim(
            trimmed_session, self._where, line_numbers, strict=strict, output_dir=output_dir
        )
