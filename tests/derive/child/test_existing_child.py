"""Tests that repeating a handoff returns the existing child."""

from __future__ import annotations

import pytest

from resume_hooks.derive import agents
from resume_hooks.derive.child.existing_child import find_existing_child
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.trim.plan import scan_session
from resume_hooks.sessions import locate
from resume_hooks.sessions.child_titles import ChildKind
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

PARENT_ID = session_id(1)
OLD_TIME = "2020-01-01T00:00:00.000Z"
FAR_FUTURE_TIME = "2999-01-01T00:00:00.000Z"


@pytest.fixture
def parent(config_home: ConfigHome) -> locate.SessionFile:
    """Write a session with an old conversation."""
    records = [
        user("do it", uuid="u1", ts=OLD_TIME),
        assistant("done", uuid="a1", parent="u1", ts=OLD_TIME),
    ]
    return locate.session_file(str(write_session(config_home.project(), PARENT_ID, records)))


def load_parent(parent: locate.SessionFile, home: ConfigHome) -> Session:
    """Read the parent's file again and return the session."""
    return Session.from_file(parent, home.where)


def write_handoff(
    parent: locate.SessionFile,
    home: ConfigHome,
    step: str = "fix the tests",
    kind: ChildKind = "handoff",
) -> str:
    """Write a handoff and return the id of the child."""
    plan = agents.plan_fresh_child(parent, home.where, kind=kind, next_step=step)
    return write_child(plan, home.where).session_id


@pytest.mark.parametrize(("step", "second_step"), [("fix the tests", " fix the tests\n"), ("", "")])
def test_the_same_next_step_finds_the_existing_child(
    parent: locate.SessionFile, config_home: ConfigHome, step: str, second_step: str
) -> None:
    """A second handoff with the same next step returns the existing child and writes no file.

    This also holds if neither handoff has a next step.
    """
    child = write_handoff(parent, config_home, step)
    found = find_existing_child(
        load_parent(parent, config_home), "handoff", config_home.where, second_step
    )
    assert found is not None
    assert (found.session_id, found.written) == (child, False)


def test_a_handoff_and_a_trim_report_the_same_size(config_home: ConfigHome) -> None:
    """A new handoff, an existing handoff and a trim report the same number of tokens for the parent.

    The number includes content that was added after the client's last token count.
    """
    rows = [*conversation(2), user("x" * 40_000, uuid="z", parent="r3", ts=9)]
    parent = locate.session_file(str(write_session(config_home.project(), PARENT_ID, rows)))
    sent = scan_session(parent).context.tokens
    assert sent > 6_000
    made = write_child(
        agents.plan_fresh_child(parent, config_home.where, kind="handoff"), config_home.where
    )
    found = find_existing_child(load_parent(parent, config_home), "handoff", config_home.where)
    assert found is not None
    assert made.tokens_before == found.tokens_before == sent


def test_a_handoff_with_a_different_next_step_does_not_reuse_a_child(
    parent: locate.SessionFile, config_home: ConfigHome
) -> None:
    """A handoff with a different next step does not return the existing child.

    A handoff never returns an existing rollover.
    """
    write_handoff(parent, config_home)
    for step in ("", "fix", "the tests", "fix the tests now"):
        assert (
            find_existing_child(
                load_parent(parent, config_home), "handoff", config_home.where, step
            )
            is None
        )
    write_handoff(parent, config_home, "", kind="rollover")
    assert (
        find_existing_child(load_parent(parent, config_home), "handoff", config_home.where, "")
        is None
    )


@pytest.mark.parametrize(
    "new_records",
    [
        [user("and this", uuid="u2", parent="a1", ts=FAR_FUTURE_TIME)],
        [assistant("and more", uuid="a2", parent="a1", ts=FAR_FUTURE_TIME)],
        [
            user("migrate to another database", uuid="u2", parent="a1", ts=FAR_FUTURE_TIME),
            *(
                user([result("t", "x" * 8_000)], uuid=f"w{n}", parent="u2", ts=FAR_FUTURE_TIME)
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
def test_a_child_that_lacks_new_work_of_its_parent_is_not_found(
    parent: locate.SessionFile, config_home: ConfigHome, new_records: list[Record]
) -> None:
    """After a new prompt or answer in the parent, the existing child is no longer found."""
    write_handoff(parent, config_home)
    with open(parent.path, "ab") as stream:
        stream.write(session_bytes(new_records))
    assert (
        find_existing_child(
            load_parent(parent, config_home), "handoff", config_home.where, "fix the tests"
        )
        is None
    )


def test_a_continued_or_deleted_child_is_not_found(
    parent: locate.SessionFile, config_home: ConfigHome
) -> None:
    """``find_existing_child`` does not find a child that the user continued or deleted."""
    child = config_home.project() / f"{write_handoff(parent, config_home)}.jsonl"
    untouched = child.read_bytes()
    write_session(
        config_home.project(), session_id(2), [user("hello", uuid="x", ts=FAR_FUTURE_TIME)]
    )
    child.write_bytes(untouched + (config_home.project() / f"{session_id(2)}.jsonl").read_bytes())
    assert (
        find_existing_child(
            load_parent(parent, config_home), "handoff", config_home.where, "fix the tests"
        )
        is None
    )
    child.unlink()
    assert (
        find_existing_child(
            load_parent(parent, config_home), "handoff", config_home.where, "fix the tests"
        )
        is None
    )


@pytest.mark.parametrize("text", [None, 3, "", "hello", "[SESSION LINEAGE] without an end"])
def test_a_text_without_an_opening_has_no_next_step(text: object) -> None:
    """A text without a complete opening has no next step."""
    assert not extract_next_step(text)
