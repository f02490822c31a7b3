"""The verbs that make children, whoever wrote the session and whoever shall go on in it.

Each agent has a writer, named in its row of ``sessions.agents.registry``: this client's is
``claude_writer``, that of another agent is in its part.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from resume_hooks import questions
from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.child.write import Body, Sizes
from resume_hooks.derive.fresh_child import (
    NOTHING,
    Contents,
    FreshOpening,
    FreshPlan,
    make_opening,
    plan_of_opening,
    usable_step,
)
from resume_hooks.derive.plan_of_work import plan_of_work
from resume_hooks.errors import NothingToFork, UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.sessions.agents.registry import (
    AgentRow,
    agent_named,
    agents,
    require_whole,
    row_of,
)
from resume_hooks.sessions.child_titles import Kind
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts import tokens
from resume_hooks.transcripts.api_usage import base_of
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.provenance import ChildSize
from resume_hooks.transcripts.transcript import scan

if TYPE_CHECKING:  # each verb loads its own alone
    from resume_hooks.derive.child.write import ChildPlan
    from resume_hooks.derive.cut_point import Truncator
    from resume_hooks.derive.fork import ForkPlan, SpokenText
    from resume_hooks.derive.trim.options import Options
    from resume_hooks.derive.trim.plan import Trimmable, TrimPlan
    from resume_hooks.derive.untrim import TrimmedSession, UntrimPlan


class Writer(Protocol):
    """Makes sessions that an agent resumes: children of its own sessions, and of others'.

    Errors as the verbs raise them.
    """

    def draft(
        self,
        session: SessionFile,
        ends: HeadTail,
        kind: Kind,
        output_dir: str | None = None,
        *,
        about: str = "",
    ) -> Draft:
        """A child to be of a session with these ``ends``, in the agent's folders."""

    def opening_body(self, opening: FreshOpening) -> Body:
        """What a child holds that opens with what we tell."""

    def conversation(self, made: Draft, head: bytes, told: str, said: Sequence[SpokenText]) -> Body:
        """A child that holds a conversation as text, behind what we tell; ``head`` are our fields of its first line."""

    def fork(
        self, session: SessionFile, cut: Truncator | None, home: str | None, output_dir: str | None
    ) -> ForkPlan:
        """A copy of a session of its own; only this client's is given another ``home``."""

    def scanned(self, session: SessionFile) -> Trimmable:
        """A session of its own as a trim reads it."""

    def untrim(
        self,
        reading: TrimmedSession,
        numbers: Collection[int] | None,
        *,
        strict: bool,
        output_dir: str | None,
    ) -> UntrimPlan:
        """A child of a trimmed session of its own."""


class ForeignWriter(Writer, Protocol):
    """The writer of an agent beside this client, for verbs that rewrite our form of record themselves."""

    def repair(self, session: SessionFile) -> ChildPlan:
        """A child that holds what can be read of a session of its own, and that the agent resumes."""

    def cleaned(
        self,
        session: SessionFile,
        clean: Callable[[bytes], bytes],
        kind: Kind,
        output_dir: str | None,
    ) -> ChildPlan:
        """A child of a session of its own, of each line as ``clean`` leaves it."""

    def rewound(self, opening: FreshOpening, kept: Sequence[str]) -> ChildPlan:
        """A child of what stands up to the last of some records, by their ids, and of what is told after them."""


def plan_fresh(  # noqa: PLR0913 - what a fresh child may be asked for
    parent: SessionFile,
    where: Where,
    *,
    kind: Kind = "rollover",
    next_step: str = "",
    output_dir: str | None = None,
    contents: Contents = NOTHING,
    child: Draft | None = None,
    to: str = "",
) -> FreshPlan:
    """Decide on a fresh child of ``parent`` for the agent ``to``, by default its own.

    ``kind`` is rollover or handoff, ``child`` a draft that was made before. NothingToHandOff where
    nobody asked anything there yet, UsageError for what can't be a parent or a step.
    """
    if kind != "handoff":
        require_whole(parent)
    parent = Session.of(parent, where)
    ends, writer = parent.ends, _writer_of_child(parent, to, where)
    step = usable_step(ends, next_step)
    if child is None:
        child = writer.draft(parent, ends, kind, output_dir, about=step)
    notes = [_origin_note(child, where)]
    if parent.agent == NAME and not child.subagent and not contents.new_task:
        notes.append(plan_of_work(ends, child.ancestors, where))
    note = "\n".join(filter(None, notes))
    opening = make_opening(parent, ends, child, step, contents, where, note)
    return plan_of_opening(opening, writer.opening_body(opening))


def plan_fork(
    session: SessionFile,
    where: Where,
    *,
    cut: Truncator | None = None,
    home: str | None = None,
    output_dir: str | None = None,
    to: str = "",
) -> ForkPlan:
    """As ``fork.plan_fork``; for another agent than the session's own its conversation as text."""
    from resume_hooks.derive import fork as forking

    require_whole(session)
    session = Session.of(session, where)  # read once for the draft and the sizes
    own, target = session.agent, to or session.agent
    if home is not None and not own == target == NAME:
        raise UsageError(
            "Only a session of Claude Code gets another home", "Leave --here and --home out."
        )
    writer = writer_of(target, where)
    if own == target:
        return writer.fork(session, cut, home, output_dir)
    if cut is not None:
        raise UsageError(
            "A cut and another agent exclude each other",
            "Fork it with the cut, then the fork with --to.",
        )
    said = forking.conversation_as_text(scan(session.file), session.session_id)
    if not said:
        raise NothingToFork("There is nothing to fork: this session holds no conversation")
    made = draft_of(session, "fork", where, output_dir, to=to)
    told = (
        f"{made.block}\n\n{_origin_note(made, where)} The conversation follows as text, "
        "without its thinking."
    )
    before = session.context.tokens
    after = min(base_of(session.ends, where).tokens, before)
    after += round((len(told) + sum(len(one.text) for one in said)) / tokens.CHARACTERS_PER_TOKEN)
    head = made.head(ChildSize(after, tokens.CHARACTERS_PER_TOKEN))
    body = writer.conversation(made, head, told, said)
    return forking.ForkPlan(draft=made, body=body, sizes=Sizes(before, after))


def plan_trim(
    session: SessionFile, where: Where, options: Options, *, output_dir: str | None = None
) -> TrimPlan:
    """Decide on a trimmed child.

    UsageError for options that can't be meant, or what can't be a parent.
    """
    from resume_hooks.derive.trim.plan import decide, plan_of

    found = scan_for_trim(session, where)
    decision = decide(found, options, where)
    return plan_of(found, draft_of(session, "trim", where, output_dir), options, decision, "rules")


def scan_for_trim(session: SessionFile, where: Where) -> Trimmable:
    """As ``trim.plan.scan_session``."""
    require_whole(session)
    return writer_of(session.agent, where).scanned(session)


def plan_untrim(
    reading: TrimmedSession,
    where: Where,
    numbers: Collection[int] | None = None,
    *,
    strict: bool = False,
    output_dir: str | None = None,
) -> UntrimPlan:
    """As ``untrim.plan_untrim``."""
    writer = _writer_of_child(reading.session, "", where)
    return writer.untrim(reading, numbers, strict=strict, output_dir=output_dir)


def draft_of(
    parent: SessionFile, kind: Kind, where: Where, output_dir: str | None = None, *, to: str = ""
) -> Draft:
    """A child to be, for the agent ``to``, by default the session's own."""
    writer = _writer_of_child(parent, to, where)
    return writer.draft(parent, Session.of(parent, where).ends, kind, output_dir)


def _origin_note(made: Draft, where: Where) -> str:
    """Whose the session before was; ``""`` where it is the same agent's own."""
    whose = ""
    if made.subagent:
        whose = (
            f"What is told of here is the work of {made.subagent}, a sub-agent that the session before this one "
            "started: its prompt came from there, and so it had no user of its own."
        )
    if made.agent == made.parent_agent:
        return whose
    if left := row_of(made.parent_agent).left:
        return f"{left}: what was done there can be seen in the files alone."
    own = agent_named(made.parent_agent, where).label
    return (
        f"{whose} The session before this one was held in {own}, with {own}'s own tools: what it did there is done, "
        f"and its tools are not yours."
    ).strip()


def _writer_of_child(parent: SessionFile, to: str, where: Where) -> Writer:
    """The writer for a child for the agent ``to``, by default the parent's own.

    This client goes on from a session that its own agent does not resume.
    """
    name = to or parent.agent
    return writer_of(name if row_of(name).writer else NAME, where)


def writer_of(name: str, where: Where) -> Writer:
    """The writer of an agent. UsageError if it has none, or no folder here."""
    row = _row_with_writer(name, where)
    make_writer = questions.agent_writer.load(row.part, row.writer)
    return make_writer(row.home_in(where), where)


def foreign_writer_of(name: str, where: Where) -> ForeignWriter:
    """The writer of an agent beside this client. UsageError if it has none, or no folder here."""
    row = _row_with_writer(name, where)
    make_writer = questions.foreign_agent_writer.load(row.part, row.writer)
    return make_writer(row.home_in(where), where)


def _row_with_writer(name: str, where: Where) -> AgentRow:
    row = row_of(name)
    if not row.writer:
        raise UsageError(f"Nothing here writes sessions of {name}", "Name another session.")
    agents(where, row.name)  # UsageError for one without a home
    return row
