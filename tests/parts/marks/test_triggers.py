"""The triggers of a mark and of the way back: which prompts are theirs."""

from __future__ import annotations

import pytest

from resume_hooks.hooks.triggers import recognise
from tests.hooks.test_triggers import ID, is_ours, is_pasted

OURS = [
    (">mark", "mark", ""),
    (">Mark try it", "mark", "try it"),
    ("/resume-hooks:mark YES", "mark", "YES"),
    (">mark try it>mark yes", "mark", "yes"),
    (">mark try it >mark YES\n", "mark", "YES"),
    (">mark>mark yes", "mark", "yes"),
    (">mark try it/resume-hooks:mark yes", "mark", "yes"),
    (">mark try it>mark another", "mark", "another"),
    (">mark test the >mark trigger", "mark", "test the >mark trigger"),
    (">mark see >mark yes please", "mark", "see >mark yes please"),
    (">back", "back", ""),
    (">back it was slower", "back", "it was slower"),
    ("/resume-hooks:back\nlong\nreport", "back", "long\nreport"),
    (">back>back it was slower", "back", "it was slower"),
    (">back>BACK>back", "back", ""),
    (">back/resume-hooks:back it", "back", "it"),
    (">back >handoff was tried", "back", ">handoff was tried"),
    (">back a >back b", "back", "a >back b"),
    (">back a>back b", "back", "a>back b"),
    (">mark>back it was slower", "back", "it was slower"),
]
FORMER = [
    (">checkpoint try it", "mark", "try it"),
    (">checkpoint try it>mark yes", "mark", "yes"),
    (">checkpoint try it>checkpoint yes", "mark", "yes"),
    (">Rewind it was slower", "back", "it was slower"),
]
PASTED = [
    (f">back it was slower/resume {ID}", "back"),
    (">back it was slower /clear", "back"),
    (f">back>back it /resume {ID}", "back"),
    (f">mark try it/resume {ID}", "mark"),
    (f">mark try it>mark yes /resume {ID}", "mark"),
]


@pytest.mark.parametrize(("prompt", "verb", "text"), [*OURS, *FORMER])
def test_ours(prompt: str, verb: str, text: str) -> None:
    """Recognised with its verb, its text as it was typed, and its form."""
    is_ours(prompt, verb, text)


@pytest.mark.parametrize(("prompt", "verb"), PASTED)
def test_pasted_over_left_over_text(prompt: str, verb: str) -> None:
    """A trigger that ends in a command of the client: nothing is to be made of it."""
    is_pasted(prompt, verb)


@pytest.mark.parametrize("prompt", [">mark" * 100_000 + " yes", ">mark " * 100_000 + "x"])
def test_a_long_prompt_is_decided(prompt: str) -> None:
    """A megabyte is one pass."""
    found = recognise(prompt)
    assert found is not None
    assert found.verb == "mark"
