"""Load the writer that makes children for an agent, and plan a fresh child for any agent.

The table of agents, ``sessions.agents.registry``, names the writer of each agent. Claude Code's
writer is ``claude_writer``. The writer of any other agent is a module in the part for that agent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from resume_hooks import questions
from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.child.write_child import ChildBody
from resume_hooks.derive.fresh_child import (
    EMPTY_CHILD_CONTENTS,
    ChildContents,
    FreshChildPlan,
    FreshOpening,
    find_line_about_plan,
    make_opening,
    plan_fresh_opening,
    validate_next_step,
)
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import (
    AgentRow,
    agent_with_name,
    list_agents,
    require_answers,
    row_of_agent,
)
from resume_hooks.sessions.child_titles import ChildKind
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts.head_tail import HeadTail

# Imported only for types, so that each verb loads only the modules that it needs.
if TYPE_CHECKING:
    from resume_hooks.derive.child.write_child import ChildPlan
    from resume_hooks.derive.cut_point import CutSelector
    from resume_hooks.derive.fork import ConversationText, ForkPlan
    from resume_hooks.derive.trim.plan import TrimmableSession
    from resume_hooks.derive.untrim import TrimmedSession, UntrimPlan


class Writer(Protocol):
    """A writer of sessions that a certain agent can resume.

    It makes children of this agent's sessions, and children of other agents' sessions. Its methods
    can raise the same errors as the verbs that call them.
    """

    def draft_child(
        self,
        session: SessionFile,
        parent_ends: HeadTail,
        kind: ChildKind,
        output_dir: str | None = None,
        *,
        subject: str = "",
    ) -> Draft:
        """Return the draft of a child of ``session``, in the folders of the writer's agent."""

    def make_opening_body(self, opening: FreshOpening) -> ChildBody:
        """Return the body of a child that starts with ``opening``."""

    def make_conversation_body(
        self,
        draft: Draft,
        first_line: bytes,
        introduction: str,
        messages: Sequence[ConversationText],
    ) -> ChildBody:
        """Return the body of a child that contains an introduction and a conversation as text.

        ``first_line`` is the child's first line in Claude Code's format, which names the parent.
        """

    def plan_fork(
        self,
        session: SessionFile,
        cut: CutSelector | None,
        home: str | None,
        output_dir: str | None,
    ) -> ForkPlan:
        """Plan a copy of one of this agent's sessions, as ``fork.plan_fork`` does.

        Only Claude Code's writer accepts a ``home``.
        """

    def read_trimmable_session(self, session: SessionFile) -> TrimmableSession:
        """Scan one of this agent's sessions for a trim."""

    def plan_untrim(
        self,
        trimmed_session: TrimmedSession,
        line_numbers: Collection[int] | None,
        *,
        strict: bool,
        output_dir: str | None,
    ) -> UntrimPlan:
        """Plan a child of one of this agent's sessions in which the original contents are restored."""


class ForeignWriter(Writer, Protocol):
    """A writer for an agent other than Claude Code.

    It also has methods for the verbs that edit the records of a session directly.
    """

    def plan_repair(self, session: SessionFile) -> ChildPlan:
        """Plan a child with every readable record of one of this agent's sessions.

        The agent can resume this child even if it cannot resume the damaged parent.
        """

    def plan_cleaned_copy(
        self,
        session: SessionFile,
        clean_line: Callable[[bytes], bytes],
        kind: ChildKind,
        output_dir: str | None,
    ) -> ChildPlan:
        """Plan a copy of one of this agent's sessions, with ``clean_line`` applied to each line."""

    def plan_child_with_rewound_records(
        self, opening: FreshOpening, record_ids: Sequence[str]
    ) -> ChildPlan:
        """Plan a child with the records up to the last of ``record_ids``, followed by ``opening``."""


def plan_fresh_child(  # noqa: PLR0913 - what a fresh child may be asked for
    parent: SessionFile,
    where: Where,
    *,
    kind: ChildKind = "rollover",
    next_step: str = "",
    output_dir: str | None = None,
    contents: ChildContents = EMPTY_CHILD_CONTENTS,
    child: Draft | None = None,
    target_agent: str = "",
) -> FreshChildPlan:
    """Plan a fresh child of ``parent`` for ``target_agent``, by default the parent's agent.

    ``kind`` is ``rollover`` or ``handoff``. If ``child`` is given, it is used as the child's draft.
    Raises NothingToHandOff if the session has no prompt, and UsageError if the parent or the next
    step cannot be used.
    """
    if kind != "handoff":
        require_answers(parent)
    parent = Session.from_file(parent, where)
    parent_ends, writer = parent.ends, load_writer_for_child(parent, target_agent, where)
    step = validate_next_step(parent_ends, next_step)
    if child is None:
        child = writer.draft_child(parent, parent_ends, kind, output_dir, subject=step)
    notes = [describe_parent_agent(child, where)]
    if parent.agent == CLAUDE_NAME and not child.subagent and not contents.starts_new_task:
        notes.append(find_line_about_plan(parent_ends, child.ancestors, where))
    note = "\n".join(filter(None, notes))
    opening = make_opening(parent, parent_ends, child, step, contents, where, note)
    return plan_fresh_opening(opening, writer.make_opening_body(opening))


def read_trimmable_session(session: SessionFile, where: Where) -> TrimmableSession:
    """Scan a session of any agent for a trim. Raises the errors of ``trim.plan.scan_session``."""
    require_answers(session)
    return load_writer(session.agent, where).read_trimmable_session(session)


def draft_child(
    parent: SessionFile,
    kind: ChildKind,
    where: Where,
    output_dir: str | None = None,
    *,
    target_agent: str = "",
) -> Draft:
    """Return a draft of a child for ``target_agent``, by default the parent's agent."""
    writer = load_writer_for_child(parent, target_agent, where)
    return writer.draft_child(parent, Session.from_file(parent, where).ends, kind, output_dir)


def describe_parent_agent(draft: Draft, where: Where) -> str:
    """Return a note for the child's model if the parent is a sub-agent or belongs to another agent.

    For any other parent, return ``""``.
    """
    subagent_note = ""
    if draft.subagent:
        subagent_note = (
            f"The digest is about the work of {draft.subagent}, a sub-agent of the previous session. Its "
            "prompts were written by that session, not by a user."
        )
    if draft.agent == draft.parent_agent:
        return subagent_note
    if missing_reason := row_of_agent(draft.parent_agent).loss_note:
        return f"{missing_reason}: only the changed files show what that session did."
    parent_label = agent_with_name(draft.parent_agent, where).label
    return (
        f"{subagent_note} The previous session ran in {parent_label} and used {parent_label}'s own tools. "
        f"That session has done its work, and its tools are not available here."
    ).strip()


def load_writer_for_child(parent: SessionFile, target_agent: str, where: Where) -> Writer:
    """Return the writer for a child of ``target_agent``, by default the parent's agent.

    If sessions of that agent cannot be resumed, return the writer of Claude Code.
    """
    name = target_agent or parent.agent
    return load_writer(name if row_of_agent(name).writer_entry_point else CLAUDE_NAME, where)


def load_writer(name: str, where: Where) -> Writer:
    """Return the writer of the agent ``name``.

    Raises UsageError if the agent has no writer, or has no folder on this machine.
    """
    row = _get_agent_with_writer(name, where)
    make_writer = questions.agent_writer.load_function(row.part, row.writer_entry_point)
    return make_writer(row.agent_home(where), where)


def load_foreign_writer(name: str, where: Where) -> ForeignWriter:
    """Return the writer of an agent other than Claude Code.

    Raises UsageError if the agent has no writer, or has no folder on this machine.
    """
    row = _get_agent_with_writer(name, where)
    make_writer = questions.foreign_agent_writer.load_function(row.part, row.writer_entry_point)
    return make_writer(row.agent_home(where), where)


def _get_agent_with_writer(name: str, where: Where) -> AgentRow:
    row = row_of_agent(name)
    if not row.writer_entry_point:
        raise UsageError(f"resume-hooks can't write sessions of {name}", "Name another session.")
    # This raises UsageError if the agent has no folder on this machine.
    list_agents(where, row.name)
    return row
