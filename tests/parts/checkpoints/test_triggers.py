"""The triggers of a mark and of the way back: which prompts are theirs."""

from __future__ import annotations

import pytest

from resume_hooks.hooks.triggers import recognise
from tests.hooks.test_triggers import ID, is_ours, is_pasted

OURS = [
    (">checkpoint", "checkpoint", ""),
    (">Checkpoint try it", "checkpoint", "try it"),
    ("/resume-hooks:checkpoint YES", "checkpoint", "YES"),
    (">checkpoint try it>checkpoint yes", "checkpoint", "yes"),
    (">checkpoint try it >checkpoint YES\n", "checkpoint", "YES"),
    (">checkpoint>checkpoint yes", "checkpoint", "yes"),
    (">checkpoint try it/resume-hooks:checkpoint yes", "checkpoint", "yes"),
    (">checkpoint try it>checkpoint another", "checkpoint", "another"),
    (">checkpoint test the >checkpoint trigger", "checkpoint", "test the >checkpoint trigger"),
    (">checkpoint see >checkpoint yes please", "checkpoint", "see >checkpoint yes please"),
    (">rewind", "rewind", ""),
    (">rewind it was slower", "rewind", "it was slower"),
    ("/resume-hooks:rewind\nlong\nreport", "rewind", "long\nreport"),
    (">rewind>rewind it was slower", "rewind", "it was slower"),
    (">rewind>REWIND>rewind", "rewind", ""),
    (">rewind/resume-hooks:rewind it", "rewind", "it"),
    (">rewind >handoff was tried", "rewind", ">handoff was tried"),
    (">rewind a >rewind b", "rewind", "a >rewind b"),
    (">rewind a>rewind b", "rewind", "a>rewind b"),
    (">checkpoint>rewind it was slower", "rewind", "it was slower"),
]
PASTED = [
    (f">rewind it was slower/resume {ID}", "rewind"),
    (">rewind it was slower /clear", "rewind"),
    (f">rewind>rewind it /resume {ID}", "rewind"),
    (f">checkpoint try it/resume {ID}", "checkpoint"),
    (f">checkpoint try it>checkpoint yes /resume {ID}", "checkpoint"),
]


@pytest.mark.parametrize(("prompt", "verb", "text"), OURS)
def test_ours(prompt: str, verb: str, text: str) -> None:
    """Recognised with its verb, its text as it was typed, and its form."""
    is_ours(prompt, verb, text)


@pytest.mark.parametrize(("prompt", "verb"), PASTED)
def test_pasted_over_left_over_text(prompt: str, verb: str) -> None:
    """A trigger that ends in a command of the client: nothing is to be made of it."""
    is_pasted(prompt, verb)


@pytest.mark.parametrize("prompt", [">checkpoint" * 100_000 + " yes", ">checkpoint " * 100_000 + "x"])
def test_a_long_prompt_is_decided(prompt: str) -> None:
    """A megabyte is one pass."""
    found = recognise(prompt)
    assert found is not None
    assert found.verb == "checkpoint"
