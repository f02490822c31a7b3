"""The verbs that make children, whoever wrote the session and whoever shall go on in it.

Claude Code's own form is that of the packages beside this module; every other agent is a folder
here that has its name, the writing half of ``sessions.agents``: its module ``writer`` has a
function ``writer`` that makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from resume_hooks import questions
from resume_hooks.derive import fresh_child
from resume_hooks.derive.child.draft import Draft, draft
from resume_hooks.derive.child.write import Body, Sizes
from resume_hooks.derive.fresh_child import NOTHING, Contents, Opening, RolloverPlan, plan_of_work
from resume_hooks.errors import NothingToFork, UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.sessions.agents.registry import (
    OTHERS,
    agents,
    ends_of,
    label_of,
    left_of,
    require_whole,
)
from resume_hooks.sessions.child_titles import Kind
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts import tokens
from resume_hooks.transcripts.api_usage import base_of
from resume_hooks.transcripts.calibration import quick_context
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
    """Makes what an agent resumes: children of its own sessions, and of others'.

    Errors as the verbs raise them.
    """

    def draft(
        self, session: SessionFile, kind: Kind, output_dir: str | None = None, *, about: str = ""
    ) -> Draft:
        """A child to be, in the agent's folders."""

    def opening(self, told: Opening) -> Body:
        """A child that opens with what we tell."""

    def conversation(self, made: Draft, head: bytes, told: str, said: Sequence[SpokenText]) -> Body:
        """A child that holds a conversation as text, behind what we tell; ``head`` are our fields of its first line."""

    def fork(self, session: SessionFile, cut: Truncator | None, output_dir: str | None) -> ForkPlan:
        """A copy of a session of its own."""

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

    def rewound(self, told: Opening, kept: Sequence[str]) -> ChildPlan:
        """A child of what stands up to the last of some records, by their ids, and of what is told after them."""

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


def fresh(  # noqa: PLR0913 - what a fresh child may be asked for
    parent: SessionFile,
    where: Where,
    *,
    kind: Kind = "rollover",
    next_step: str = "",
    output_dir: str | None = None,
    contents: Contents = NOTHING,
    child: Draft | None = None,
    to: str = "",
) -> RolloverPlan:
    """Decide on a fresh child of ``parent`` for the agent ``to``, by default its own.

    ``kind`` is rollover or handoff, ``child`` a draft that was made before. NothingToHandOff where
    nobody asked anything there yet, UsageError for what can't be a parent or a step.
    """
    if kind != "handoff":
        require_whole(parent)
    ends, writes = ends_of(parent, where), _writer(to or parent.agent, where)
    step = fresh_child.usable_step(ends, next_step)
    if child is None and writes is not None:
        child = writes.draft(parent, kind, output_dir, about=step)
    made = child or draft(parent, ends, kind, where, output_dir, about=step)
    own = parent.agent == NAME and not made.subagent and not contents.new_task
    planned = plan_of_work(ends, made.ancestors, where) if own else ""
    note = "\n".join(filter(None, (_origin_note(made, where), planned)))
    told = fresh_child.opening(parent, ends, made, step, contents, where, note)
    return fresh_child.fresh(told, writes.opening(told) if writes else None)


def fork(
    session: SessionFile,
    where: Where,
    *,
    cut: Truncator | None = None,
    home: str | None = None,
    output_dir: str | None = None,
    to: str = "",
) -> ForkPlan:
    """As ``fork.plan``; for another agent than the session's own its conversation as text."""
    from resume_hooks.derive import fork as forking

    require_whole(session)
    own, target = session.agent, to or session.agent
    if own == target == NAME:
        return forking.plan(session, where, cut=cut, home=home, output_dir=output_dir)
    if home is not None:
        raise UsageError(
            "Only a session of Claude Code gets another home", "Leave --here and --home out."
        )
    writes = _writer(target, where)
    if own == target and writes is not None:
        return writes.fork(session, cut, output_dir)
    if cut is not None:
        raise UsageError(
            "A cut and another agent exclude each other",
            "Fork it with the cut, then the fork with --to.",
        )
    said = forking.conversation(scan(session.path), session.session_id)
    if not said:
        raise NothingToFork("There is nothing to fork: this session holds no conversation")
    made = draft_of(session, "fork", where, output_dir, to=to)
    told = (
        f"{made.block}\n\n{_origin_note(made, where)} The conversation follows as text, "
        "without its thinking."
    )
    before = quick_context(session.path).tokens
    after = min(base_of(ends_of(session, where), where).tokens, before)
    after += round((len(told) + sum(len(one.text) for one in said)) / tokens.CHARACTERS_PER_TOKEN)
    head = made.head(ChildSize(after, tokens.CHARACTERS_PER_TOKEN))
    write = writes.conversation if writes else forking.conversation_lines
    return forking.ForkPlan(
        draft=made, body=write(made, head, told, said), sizes=Sizes(before, after)
    )


def trim(
    session: SessionFile, where: Where, options: Options, *, output_dir: str | None = None
) -> TrimPlan:
    """Decide on a trimmed child.

    UsageError for options that can't be meant, or what can't be a parent.
    """
    from resume_hooks.derive.trim.plan import decide, plan_of

    found = scanned(session, where)
    decision = decide(found, options, where)
    return plan_of(found, draft_of(session, "trim", where, output_dir), options, decision, "rules")


def scanned(session: SessionFile, where: Where) -> Trimmable:
    """As ``trim.plan.read``."""
    require_whole(session)
    writes = _writer(session.agent, where)
    if writes is not None:
        return writes.scanned(session)
    from resume_hooks.derive.trim import plan as trimming

    return trimming.read(session)


def untrim(
    reading: TrimmedSession,
    where: Where,
    numbers: Collection[int] | None = None,
    *,
    strict: bool = False,
    output_dir: str | None = None,
) -> UntrimPlan:
    """As ``untrim.plan``."""
    writes = _writer(reading.session.agent, where)
    if writes is None:
        from resume_hooks.derive import untrim as untrimming

        return untrimming.plan(reading, where, numbers, strict=strict, output_dir=output_dir)
    return writes.untrim(reading, numbers, strict=strict, output_dir=output_dir)


def draft_of(
    parent: SessionFile, kind: Kind, where: Where, output_dir: str | None = None, *, to: str = ""
) -> Draft:
    """A child to be, for the agent ``to``, by default the session's own."""
    writes = _writer(to or parent.agent, where)
    if writes is not None:
        return writes.draft(parent, kind, output_dir)
    return draft(parent, ends_of(parent, where), kind, where, output_dir)


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
    if left := left_of(made.parent_agent):
        return f"{left}: what was done there can be seen in the files alone."
    own = label_of(made.parent_agent, where)
    return (
        f"{whose} The session before this one was held in {own}, with {own}'s own tools: what it did there is done, "
        f"and its tools are not yours."
    ).strip()


def _writer(name: str, where: Where) -> Writer | None:
    """The writer for an agent; None for Claude Code, which needs none.

    UsageError if the agent has no folder here.
    """
    known = OTHERS.get(name)
    if known is None or not known.writer:
        return None
    agents(where, name)  # UsageError for one without a home
    make_writer = questions.agent_writer.load(known.part, known.writer)
    return make_writer(known.home_in(where), where)


def writer_of(agent: str, where: Where) -> Writer:
    """The writer for another agent than this client. UsageError if there is none."""
    writes = _writer(agent, where)
    if writes is None:
        raise UsageError(f"Nothing here writes sessions of {agent}", "Name another session.")
    return writes
