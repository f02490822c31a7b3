"""The calls of a model: one for a small session; one per part and one more for a long session."""

from __future__ import annotations

import pytest

from resume_hooks.derive.model.port import ModelCalls
from resume_hooks.derive.summary import (
    WISH_INTRODUCTION,
    Summary,
    SummaryMaterial,
    SummaryPart,
    ask_for_summary,
)
from resume_hooks.errors import HeadlessFailed
from tests.builders import SESSION
from tests.derive.summary.models import PLAIN, Scripted

ONE = SummaryMaterial(SESSION, 2, (SummaryPart("ONLY PART", frozenset({1, 2})),))
THREE = SummaryMaterial(
    SESSION, 3, tuple(SummaryPart(f"PART {n}", frozenset({n})) for n in (1, 2, 3))
)


def run(
    model: Scripted, material: SummaryMaterial, wish: str = "", limit: float = 100.0
) -> tuple[Summary, list[str]]:
    """Return the summary, and the reported progress."""
    told: list[str] = []

    def progress(number: int, count: int) -> None:
        told.append(f"{number}/{count}")

    return ask_for_summary(ModelCalls(model, limit, progress), material, "THE DIGEST", wish), told


def test_a_small_session_costs_one_call() -> None:
    """Records and digest together."""
    model = Scripted()
    found, told = run(model, ONE)
    (call,) = model.calls
    assert found == Summary.model_validate(PLAIN)
    assert call.text == "ONLY PART\n\nTHE DIGEST"
    assert 99 < call.limit <= 100
    assert told == ["1/1"]


def test_a_long_one_is_read_in_parts_and_joined() -> None:
    """Oldest first; the last call gets the parts' results with their references, and the digest."""
    answers = [
        {"goal": f"goal {n}", "state": "", "done": [{"text": "It.", "records": [n, 99]}]}
        for n in (1, 2, 3)
    ]
    model = Scripted([*answers, PLAIN])
    found, told = run(model, THREE)
    assert [call.text for call in model.calls[:3]] == ["PART 1", "PART 2", "PART 3"]
    assert "part 2 of 3" in model.calls[1].instructions
    last = model.calls[3].text
    assert last.endswith("THE DIGEST")
    assert last.index("goal 1") < last.index("goal 2") < last.index("goal 3")
    assert "  - It. (:2)" in last
    assert found.goal == "Mend the parser."
    assert told == ["1/4", "2/4", "3/4", "4/4"]


def test_the_users_words_are_instructions() -> None:
    """They are in every call, and never in the material."""
    model = Scripted()
    run(model, THREE, "focus on auth")
    assert all(
        call.instructions.endswith(f"{WISH_INTRODUCTION}\nfocus on auth") for call in model.calls
    )
    assert not any("focus on auth" in call.text for call in model.calls)


def test_one_failure_is_the_whole_one() -> None:
    """Half a session is not a summary of it."""
    with pytest.raises(HeadlessFailed, match="broke"):
        run(Scripted([PLAIN, HeadlessFailed("it broke")]), THREE)


def test_the_limit_is_for_all_calls() -> None:
    """No call begins after the limit."""
    model = Scripted()
    with pytest.raises(HeadlessFailed, match="it took over 0 s: 0 of 1 call answered"):
        run(model, ONE, limit=0)
    assert model.calls == []


def test_nothing_to_summarise() -> None:
    """No model is asked."""
    with pytest.raises(HeadlessFailed, match="nothing to summarise"):
        run(Scripted(), SummaryMaterial(SESSION, 0, ()))
