"""What counts of a model's answers: a number once, and only one that it was shown; failures leave nothing half done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from resume_hooks.derive.model.port import Spent
from resume_hooks.errors import HeadlessFailed
from resume_hooks.parts.smart_trim.ask import HINTED, TASK, ModelAnswer, ask, task
from tests.builders import ConfigHome
from tests.derive.trim.sessions import LONG, Chain, written
from tests.parts.smart_trim.models import Failing, Fake, asked_of, everything, offered, row, these


def session(home: ConfigHome, count: int = 3) -> Path:
    """A session with so many outputs."""
    chain = Chain()
    for number in range(count):
        chain.ask(f"do {number}").tool(f"t{number}", "Bash", f"{number} {LONG}", command=f"run {number}")
    return written(home, chain)


def test_what_was_chosen(config_home: ConfigHome) -> None:
    """A verdict on each content that was named, with the words of the model, and what it took."""
    what = offered(session(config_home), config_home)
    asked = asked_of(these(row(2, "a log", "read once")), what)
    (one,) = asked.verdicts
    assert (one.record, one.by, one.description, one.rationale) == (
        what.candidates[1].piece.number, "smart", "a log", "read once",
    )  # fmt: skip
    assert one.digest == what.candidates[1].digest
    assert asked.spent == Spent("fake-1", 1, 1_000, 100, 0.01, 1.5)


def test_numbers_that_were_not_shown(config_home: ConfigHome) -> None:
    """Out of range, negative, huge: dropped and counted; what is right beside them counts."""
    asked = asked_of(these(*map(row, [0, -1, 4, 10**30, 3])), offered(session(config_home), config_home))
    assert [one.description for one in asked.verdicts] == ["an old listing"]
    assert (asked.unknown, asked.twice) == (4, 0)


def test_a_number_counts_once(config_home: ConfigHome) -> None:
    """The first mention, however often it is named."""
    rows = [row(1, "first"), *(row(1, "again") for _ in range(9))]
    asked = asked_of(these(*rows), offered(session(config_home), config_home))
    assert [one.description for one in asked.verdicts] == ["first"]
    assert (asked.unknown, asked.twice) == (0, 9)


def test_a_huge_answer(config_home: ConfigHome) -> None:
    """100,000 choices and descriptions of megabytes come down to what was shown, in few words."""
    rows = [row(number % 7, "x" * 100) for number in range(100_000)] + [row(3, "y" * 5_000_000, "z" * 5_000_000)]
    asked = asked_of(these(*rows), offered(session(config_home), config_home))
    assert len(asked.verdicts) == 3
    assert all(len(one.description) <= 100 and len(one.rationale) <= 200 for one in asked.verdicts)
    assert asked.unknown + asked.twice + 3 == len(rows)


def test_nothing_is_an_answer(config_home: ConfigHome) -> None:
    """A model may find that all is needed."""
    assert asked_of(these(), offered(session(config_home), config_home)).verdicts == ()


def test_numbers_of_another_call_do_not_count(config_home: ConfigHome) -> None:
    """What stands in another part of the session was not in the text of this call."""
    what = offered(session(config_home, 90), config_home)
    model = these(row(1), row(90))
    asked = asked_of(model, what)
    assert len(model.asked) == 2
    assert {one.record for one in asked.verdicts} == {what.candidates[n].piece.number for n in (0, 89)}
    assert asked.unknown == 2


def test_all_calls_are_counted(config_home: ConfigHome) -> None:
    """Tokens, seconds and money add up; progress is told before each call."""
    told: list[tuple[int, int]] = []
    asked = ask(everything(), offered(session(config_home, 90), config_home), "", 60, lambda *at: told.append(at))
    assert told == [(1, 2), (2, 2)]
    assert asked.spent == Spent("fake-1", 2, 2_000, 200, 0.02, 3.0)
    assert len(asked.verdicts) == 90


@pytest.mark.parametrize("good", [0, 1])
def test_a_failed_call_fails_all(config_home: ConfigHome, good: int) -> None:
    """Half an answer is none, and the way without a model is named."""
    with pytest.raises(HeadlessFailed) as failed:
        asked_of(Failing(good), offered(session(config_home, 90), config_home))
    assert failed.value.message == "The model chose nothing: it refused" + " (0.0100 USD were spent)" * good
    assert "Nothing was written" in failed.value.remedy
    assert "resume-hooks trim" in failed.value.remedy


def test_the_time_is_for_all_calls(config_home: ConfigHome) -> None:
    """Each gets what is left; where nothing is, no further call is made."""
    limits: list[float] = []

    class Slow(Fake):
        def ask(self, instructions: str, text: str, form: type[Any], *, limit: float) -> Any:
            limits.append(limit)
            return super().ask(instructions, text, form, limit=limit)

    asked_of(Slow(lambda _numbers: []), offered(session(config_home, 90), config_home), limit=60)
    assert 60 >= limits[0] > limits[1] > 0
    model = everything()
    with pytest.raises(HeadlessFailed, match=r"0 of 2 calls"):
        asked_of(model, offered(session(config_home, 90), config_home), limit=0)
    assert model.asked == []


def test_wishes_stand_in_the_instructions(config_home: ConfigHome) -> None:
    """What the user typed is trusted; what the session says is in the text alone."""
    model = everything()
    asked_of(model, offered(session(config_home), config_home), "keep everything about run 2")
    ((instructions, text),) = model.asked
    assert instructions == task("keep everything about run 2")
    assert "keep everything about run 2" in instructions
    assert HINTED in instructions
    assert "keep everything" not in text
    assert task("  \n") == TASK


@pytest.mark.parametrize(
    "data",
    [
        {"choices": [{"number": "1", "description": "", "rationale": ""}]},
        {"choices": [{"number": 1.5, "description": "", "rationale": ""}]},
        {"choices": [{"number": True, "description": "", "rationale": ""}]},
        {"choices": [{"number": 1}]},
        {"choices": [1, 2]},
        {"choices": None},
        [1],
        {},
    ],
    ids=str,
)
def test_what_does_not_fit_the_form(data: Any) -> None:
    """Numbers as texts, missing fields, bare lists: the form refuses them, and the call has failed."""
    with pytest.raises(ValidationError):
        ModelAnswer.model_validate(data)
