"""What people see and type of a team's sessions."""

from __future__ import annotations

import pytest

from resume_hooks.errors import AmbiguousLocator
from resume_hooks.parts.team.pushing import Pushed
from resume_hooks.parts.team.sessions import TeamSession, named
from resume_hooks.parts.team.verbs.team_answer import pushed_text
from tests.builders import SESSION, session_id


def listed(machine: str, own: str = SESSION) -> TeamSession:
    """A session of Bob's on one of his machines."""
    about = ("Fix the parser", "/src", "", "", "", "", "", "private", 1, 1, True, (), "")
    return TeamSession(len(machine), own, "bob", machine, *about)


def test_a_session_on_two_machines() -> None:
    """It is the one that went on last, or the one of the machine that is named."""
    both = [listed("desk"), listed("laptop")]
    assert named(SESSION[:8], both).machine == "desk"
    assert named(f"bob@laptop:{SESSION[:8]}", both).machine == "laptop"
    assert named("bob@desk:parser", both).machine == "desk"
    with pytest.raises(AmbiguousLocator):
        named("bob:parser", [*both, listed("desk", session_id(2))])


def test_secrets_of_many_kinds_fit_a_terminal() -> None:
    """They are counted in the row of the session, and their kinds stand below."""
    kinds = {f"kind-number-{number}": number for number in range(1, 60)}
    text = pushed_text([Pushed(SESSION, "t" * 80, "sent", 1, 2, 3, 4, kinds)], written=True)
    assert max(map(len, text.splitlines())) <= 130
    assert "1,770" in text
    assert "59 kind-number-59" in text.replace("\n", " ")
