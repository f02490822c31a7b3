"""Tests of asking a model for a summary.

A small session needs one call. A long session needs one call for each part, and a final call.
"""

from __future__ import annotations

import pytest

from resume_hooks.derive.model.port import ModelCalls
from resume_hooks.derive.summary import (
    FOCUS_INTRODUCTION,
    Summary,
    SummaryMaterial,
    SummaryPart,
    ask_for_summary,
)
from resume_hooks.errors import HeadlessFailed
from tests.builders import SESSION
from tests.derive.summary.models import MINIMAL_SUMMARY, ScriptedModel

ONE_PART_MATERIAL = SummaryMaterial(SESSION, 2, (SummaryPart("ONLY PART", frozenset({1, 2})),))
THREE_PART_MATERIAL = SummaryMaterial(
    SESSION, 3, tuple(SummaryPart(f"PART {n}", frozenset({n})) for n in (1, 2, 3))
)


def summarize(
    model: ScriptedModel, material: SummaryMaterial, focus: str = "", max_seconds: float = 100.0
) -> tuple[Summary, list[str]]:
    """Return the summary and the reported progress."""
    told: list[str] = []

    def record_progress(part_number: int, part_count: int) -> None:
        told.append(f"{part_number}/{part_count}")

    return ask_for_summary(
        ModelCalls(model, max_seconds, record_progress), material, "THE DIGEST", focus
    ), told


def test_a_small_session_needs_one_call() -> None:
    """A small session is summarized in one call with its records and the digest."""
    model = ScriptedModel()
    found, told = summarize(model, ONE_PART_MATERIAL)
    (call,) = model.calls
    assert found == Summary.model_validate(MINIMAL_SUMMARY)
    assert call.text == "ONLY PART\n\nTHE DIGEST"
    assert 99 < call.max_seconds <= 100
    assert told == ["1/1"]


def test_a_long_session_is_summarized_in_parts() -> None:
    """A long session is summarized in parts. The last call gets the notes on all parts and the digest.

    References in a part's notes to records of that part are kept.
    """
    answers = [
        {"goal": f"goal {n}", "state": "", "done": [{"text": "It.", "records": [n, 99]}]}
        for n in (1, 2, 3)
    ]
    model = ScriptedModel([*answers, MINIMAL_SUMMARY])
    found, told = summarize(model, THREE_PART_MATERIAL)
    assert [call.text for call in model.calls[:3]] == ["PART 1", "PART 2", "PART 3"]
    assert "part 2 of 3" in model.calls[1].instructions
    last = model.calls[3].text
    assert last.endswith("THE DIGEST")
    assert last.index("goal 1") < last.index("goal 2") < last.index("goal 3")
    assert "  - It. (:2)" in last
    assert found.goal == "Mend the parser."
    assert told == ["1/4", "2/4", "3/4", "4/4"]


def test_the_users_focus_is_in_the_instructions() -> None:
    """The user's focus is in the instructions of every call and never in the material."""
    model = ScriptedModel()
    summarize(model, THREE_PART_MATERIAL, "focus on auth")
    assert all(
        call.instructions.endswith(f"{FOCUS_INTRODUCTION}\nfocus on auth") for call in model.calls
    )
    assert not any("focus on auth" in call.text for call in model.calls)


def test_one_failed_part_fails_the_summary() -> None:
    """If the call for one part fails, the whole summary fails."""
    with pytest.raises(HeadlessFailed, match="broke"):
        summarize(ScriptedModel([MINIMAL_SUMMARY, HeadlessFailed("it broke")]), THREE_PART_MATERIAL)


def test_the_time_limit_covers_all_calls() -> None:
    """The time limit applies to all calls together, so no call begins after the time is up."""
    model = ScriptedModel()
    with pytest.raises(
        HeadlessFailed, match="it took more than 0 s, and only 0 of 1 call finished"
    ):
        summarize(model, ONE_PART_MATERIAL, max_seconds=0)
    assert model.calls == []


def test_no_model_is_asked_about_a_session_without_material() -> None:
    """A session without material raises an error and asks no model."""
    with pytest.raises(HeadlessFailed, match="nothing to summarize"):
        summarize(ScriptedModel(), SummaryMaterial(SESSION, 0, ()))
