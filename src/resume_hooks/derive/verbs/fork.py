"""``fork``: copy a session's live conversation, or a part of it, to a child.

The child can belong to a different folder or a different agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from resume_hooks.derive import agents
from resume_hooks.derive.child.write_child import Sizes
from resume_hooks.derive.outcome import NothingWritten, OpenedSession, format_remark_for_new_session
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.errors import NothingToFork, UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import require_answers
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts import tokens
from resume_hooks.transcripts.api_usage import measure_first_request
from resume_hooks.transcripts.provenance import ChildSize
from resume_hooks.transcripts.transcript import scan_transcript

if TYPE_CHECKING:
    from resume_hooks.derive.cut_point import CutSelector
    from resume_hooks.derive.fork import ForkPlan


class ForkSpec(NamedTuple):
    """The options of a fork.

    ``cut`` selects the record at which the copied part of the conversation ends, and ``home`` is
    the child's folder. By default, the whole conversation is copied to a child in the session's own
    folder and for the session's own agent.
    """

    cut: CutSelector | None = None
    home: str | None = None
    target_agent: str = ""


WHOLE_CONVERSATION_FORK_SPEC = ForkSpec()


def fork(
    session: Session, spec: ForkSpec, caller: Caller
) -> OpenedSession[ForkPlan] | NothingWritten[ForkPlan]:
    """Write a fork and return its outcome. Raises the errors of ``plan_fork`` and ``write_child``."""
    with caller.time_limit():
        plan = plan_fork(session, caller.where, spec, output_dir=caller.output_dir)
    receipt = caller.write_child(plan)
    if not receipt.written:
        return NothingWritten(receipt, plan)
    facts = ("contains the whole conversation",) if plan.cut is None else ()
    return OpenedSession(
        receipt, plan, "forked", facts, remark=format_remark_for_new_session(receipt)
    )


def plan_fork(
    session: SessionFile,
    where: Where,
    spec: ForkSpec = WHOLE_CONVERSATION_FORK_SPEC,
    *,
    output_dir: str | None = None,
) -> ForkPlan:
    """Plan a fork with the writer of the target agent.

    A fork for another agent contains the conversation as text. Raises UsageError for options that
    exclude each other, NothingToFork for a session without messages, and the errors of the writer.
    """
    # Imported here because only a fork needs these modules.
    from resume_hooks.derive.fork import ForkPlan, convert_conversation_to_text

    require_answers(session)
    # The session is loaded only once, because both the draft and the sizes need it.
    session = Session.from_file(session, where)
    source_agent, target_agent = session.agent, spec.target_agent or session.agent
    if spec.home is not None and not source_agent == target_agent == CLAUDE_NAME:
        raise UsageError(
            "Only a Claude Code session can be moved to another home",
            "Leave out --here and --home.",
        )
    writer = agents.load_writer(target_agent, where)
    if source_agent == target_agent:
        return writer.plan_fork(session, spec.cut, spec.home, output_dir)
    if spec.cut is not None:
        raise UsageError(
            "A fork can't have both a cut and another agent",
            "Fork it with the cut first. Then fork the new session with --to.",
        )
    messages = convert_conversation_to_text(scan_transcript(session.file), session.session_id)
    if not messages:
        raise NothingToFork("There is nothing to fork: this session has no conversation")
    draft = agents.draft_child(session, "fork", where, output_dir, target_agent=spec.target_agent)
    introduction = (
        f"{draft.lineage_text}\n\n{agents.describe_parent_agent(draft, where)} The conversation follows as text, "
        "without the assistant's thinking."
    )
    tokens_before = session.context.tokens
    tokens_after = min(measure_first_request(session.ends, where).tokens, tokens_before)
    tokens_after += round(
        (len(introduction) + sum(len(message.text) for message in messages))
        / tokens.CHARACTERS_PER_TOKEN
    )
    head = draft.make_first_line(ChildSize(tokens_after, tokens.CHARACTERS_PER_TOKEN))
    body = writer.make_conversation_body(draft, head, introduction, messages)
    return ForkPlan(draft=draft, body=body, sizes=Sizes(tokens_before, tokens_after))
