"""The same handoff asked for twice makes one child."""

from __future__ import annotations

import pytest

from resume_hooks.derive import agents
from resume_hooks.derive.child.existing_child import find_existing_child
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.trim.plan import scan_session
from resume_hooks.sessions import locate
from resume_hooks.sessions.child_titles import Kind
from resume_hooks.sessions.opening_layout import extract_next_step
from resume_hooks.sessions.session import Session
from tests.builders import (
    ConfigHome,
    Record,
    assistant,
    conversation,
    result,
    session_bytes,
    session_id,
    user,
    write_session,
)

PARENT = session_id(1)
LONG_AGO = "2020-01-01T00:00:00.000Z"
LATER = "2999-01-01T00:00:00.000Z"


@pytest.fixture
def parent(config_home: ConfigHome) -> locate.SessionFile:
    """Write a session with an old conversation."""
    records = [
        user("do it", uuid="u1", ts=LONG_AGO),
        assistant("done", uuid="a1", parent="u1", ts=LONG_AGO),
    ]
    return locate.session_file(str(write_session(config_home.project(), PARENT, records)))


def loaded(parent: locate.SessionFile, home: ConfigHome) -> Session:
    """The parent as it is now."""
    return Session.from_file(parent, home.where)


def hand_off(
    parent: locate.SessionFile,
    home: ConfigHome,
    step: str = "fix the tests",
    kind: Kind = "handoff",
) -> str:
    """Make a child; its id."""
    plan = agents.plan_fresh(parent, home.where, kind=kind, next_step=step)
    return write_child(plan, home.where).session_id


@pytest.mark.parametrize(("step", "again"), [("fix the tests", " fix the tests\n"), ("", "")])
def test_the_same_step_again_gives_the_same_child(
    parent: locate.SessionFile, config_home: ConfigHome, step: str, again: str
) -> None:
    """With the commands that lead into it, and nothing claimed to have been written.

    No step at all counts as one.
    """
    child = hand_off(parent, config_home, step)
    found = find_existing_child(loaded(parent, config_home), "handoff", config_home.where, again)
    assert found is not None
    assert (found.session_id, found.written) == (child, False)


def test_one_figure_with_a_trim(config_home: ConfigHome) -> None:
    """A handoff's size of its parent, new or existing, includes content after the last count."""
    rows = [*conversation(2), user("x" * 40_000, uuid="z", parent="r3", ts=9)]
    parent = locate.session_file(str(write_session(config_home.project(), PARENT, rows)))
    sent = scan_session(parent).context.tokens
    assert sent > 6_000
    made = write_child(
        agents.plan_fresh(parent, config_home.where, kind="handoff"), config_home.where
    )
    found = find_existing_child(loaded(parent, config_home), "handoff", config_home.where)
    assert found is not None
    assert made.tokens_before == found.tokens_before == sent


def test_another_step_is_another_handoff(
    parent: locate.SessionFile, config_home: ConfigHome
) -> None:
    """Also one that only begins or ends alike.

    Nor does a rollover without a step answer for a handoff.
    """
    hand_off(parent, config_home)
    for step in ("", "fix", "the tests", "fix the tests now"):
        assert (
            find_existing_child(loaded(parent, config_home), "handoff", config_home.where, step)
            is None
        )
    hand_off(parent, config_home, "", kind="rollover")
    assert (
        find_existing_child(loaded(parent, config_home), "handoff", config_home.where, "") is None
    )


@pytest.mark.parametrize(
    "more",
    [
        [user("and this", uuid="u2", parent="a1", ts=LATER)],
        [assistant("and more", uuid="a2", parent="a1", ts=LATER)],
        [
            user("migrate to another database", uuid="u2", parent="a1", ts=LATER),
            *(
                user([result("t", "x" * 8_000)], uuid=f"w{n}", parent="u2", ts=LATER)
                for n in range(20)
            ),
        ],
    ],
    ids=[
        "a prompt",
        "answers to one from before",
        "a prompt farther from the end than a glance reaches",
    ],
)
def test_work_in_the_parent_since_makes_it_new(
    parent: locate.SessionFile, config_home: ConfigHome, more: list[Record]
) -> None:
    """There is more to hand off than before."""
    hand_off(parent, config_home)
    with open(parent.path, "ab") as stream:
        stream.write(session_bytes(more))
    assert (
        find_existing_child(
            loaded(parent, config_home), "handoff", config_home.where, "fix the tests"
        )
        is None
    )


def test_a_child_that_was_gone_on_in_or_is_gone(
    parent: locate.SessionFile, config_home: ConfigHome
) -> None:
    """Used, or deleted: the next handoff is a new one."""
    child = config_home.project() / f"{hand_off(parent, config_home)}.jsonl"
    untouched = child.read_bytes()
    write_session(config_home.project(), session_id(2), [user("hello", uuid="x", ts=LATER)])
    child.write_bytes(untouched + (config_home.project() / f"{session_id(2)}.jsonl").read_bytes())
    assert (
        find_existing_child(
            loaded(parent, config_home), "handoff", config_home.where, "fix the tests"
        )
        is None
    )
    child.unlink()
    assert (
        find_existing_child(
            loaded(parent, config_home), "handoff", config_home.where, "fix the tests"
        )
        is None
    )


@pytest.mark.parametrize("text", [None, 3, "", "hello", "[SESSION LINEAGE] without an end"])
def test_a_text_that_is_not_an_opening_has_no_step(text: object) -> None:
    """The step is None for foreign texts, and empty for a shortened opening."""
    assert not extract_next_step(text)
