"""Tests of the verbs that make a child, called as the interfaces call them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.outcome import NothingWritten, OpenedSession, Outcome
from resume_hooks.derive.trim.options import make_options
from resume_hooks.derive.trim.plan import TrimPlan
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.derive.verbs.fork import WHOLE_CONVERSATION_FORK_SPEC, fork
from resume_hooks.derive.verbs.handoff import HandoffSpec, handoff
from resume_hooks.derive.verbs.rollover import make_quick_rollover
from resume_hooks.derive.verbs.trim import trim, write_trim
from resume_hooks.derive.verbs.untrim import FULL_UNTRIM_SPEC, untrim
from resume_hooks.errors import UsageError
from resume_hooks.sessions.session import Session
from tests.builders import SESSION, ConfigHome, conversation, write_session
from tests.hooks.conftest import list_children
from tests.hooks.test_trim import turns_with_large_files

VerbCall = Callable[[Session, Caller], Outcome]

VERB_CALLS: dict[str, VerbCall] = {
    "handoff": lambda session, caller: handoff(session, HandoffSpec("fix it"), caller),
    "handoff of all": lambda session, caller: handoff(session, HandoffSpec(size="all"), caller),
    "rollover": make_quick_rollover,
    "fork": lambda session, caller: fork(session, WHOLE_CONVERSATION_FORK_SPEC, caller),
    "trim": lambda session, caller: trim(session, make_options(), caller),
}
"""The tested calls of verbs, by name."""


@pytest.fixture
def parent(config_home: ConfigHome) -> Path:
    """Write a session for which a trim is worthwhile."""
    return Path(write_session(config_home.project(), SESSION, turns_with_large_files()))


@pytest.fixture(params=VERB_CALLS)
def verb_call(request: pytest.FixtureRequest) -> VerbCall:
    """Return each call in ``VERB_CALLS``, one in each run of a test."""
    return VERB_CALLS[request.param]


def test_each_verb_writes_one_child(
    verb_call: VerbCall, parent: Path, config_home: ConfigHome
) -> None:
    """Each verb that makes a child writes one child. The verb's outcome has the child's id and plan."""
    outcome = verb_call(
        Session.open_path(str(parent), config_home.where), Caller(config_home.where)
    )
    assert isinstance(outcome, OpenedSession)
    (child,) = list_children(parent)
    assert outcome.receipt.session_id == child.stem
    assert outcome.plan is not None
    assert outcome.plan.draft.session_id == child.stem


def test_a_dry_run_of_a_verb_writes_nothing(
    verb_call: VerbCall, parent: Path, config_home: ConfigHome
) -> None:
    """A dry run of a verb writes nothing, and its receipt names no session."""
    outcome = verb_call(
        Session.open_path(str(parent), config_home.where), Caller(config_home.where, dry_run=True)
    )
    assert isinstance(outcome, NothingWritten)
    assert (outcome.receipt.session_id, outcome.receipt.file) == ("", "")
    assert list_children(parent) == []


def test_a_caller_can_refuse_the_draft(
    verb_call: VerbCall, parent: Path, config_home: ConfigHome
) -> None:
    """If the caller refuses the draft, no child is written."""

    def refuse_draft(_: Draft) -> None:
        raise UsageError("There is no client")

    with pytest.raises(UsageError, match="no client"):
        verb_call(
            Session.open_path(str(parent), config_home.where),
            Caller(config_home.where, check_draft=refuse_draft),
        )
    assert list_children(parent) == []


def test_a_child_is_reused_only_on_request(parent: Path, config_home: ConfigHome) -> None:
    """With ``reuses_child``, a second handoff returns the existing child.

    Without ``reuses_child``, a second handoff writes a new child.
    """
    session, spec = Session.open_path(str(parent), config_home.where), HandoffSpec("fix it")
    first = handoff(session, spec, Caller(config_home.where, reuses_child=True))
    again = handoff(session, spec, Caller(config_home.where, reuses_child=True))
    assert isinstance(again, OpenedSession)
    assert (again.action_phrase, again.plan, again.receipt.written) == (
        "already handed off",
        None,
        False,
    )
    assert again.receipt.session_id == first.receipt.session_id
    handoff(session, spec, Caller(config_home.where))
    assert len(list_children(parent)) == 2


@pytest.mark.parametrize("does_agree", [True, False])
def test_a_trim_is_written_only_if_its_caller_agrees(
    does_agree: bool, parent: Path, config_home: ConfigHome
) -> None:
    """The caller is asked once before a trim is written. The child is written only if the caller agrees."""
    asked: list[TrimPlan] = []

    def confirm_trim(plan: TrimPlan) -> bool:
        asked.append(plan)
        return does_agree

    preview = trim(
        Session.open_path(str(parent), config_home.where),
        make_options(),
        Caller(config_home.where, dry_run=True),
    )
    outcome = write_trim(preview.plan, Caller(config_home.where), confirm_trim)
    assert asked == [preview.plan]
    assert isinstance(outcome, OpenedSession) is does_agree
    assert len(list_children(parent)) == does_agree


def test_an_untrim_of_a_session_without_trimmed_content_gives_a_reason(
    config_home: ConfigHome,
) -> None:
    """An untrim of a session without trimmed content writes nothing and gives the reason."""
    path = Path(write_session(config_home.project(), SESSION, conversation(2)))
    outcome = untrim(
        Session.open_path(str(path), config_home.where),
        FULL_UNTRIM_SPEC,
        Caller(config_home.where),
    )
    assert isinstance(outcome, NothingWritten)
    assert outcome.reason is not None
    assert "Nothing in this session is trimmed" in outcome.reason.message
    assert list_children(path) == []
