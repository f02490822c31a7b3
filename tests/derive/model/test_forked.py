"""Tests of the prompt for the session's own model, and of reading the model's answers and failures."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from resume_hooks.derive.model.forked import SessionModel, make_prompt_for_session_model
from resume_hooks.errors import HeadlessFailed

MODEL_NAME = "claude-opus-4-5"
SECRET_TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"


class WordAnswer(BaseModel):
    """An answer with one word."""

    word: str


def make_model_with_answer(**fields: object) -> SessionModel:
    """Return a model that has returned an answer with these fields."""
    return SessionModel({"model": MODEL_NAME, **fields})


def get_answered_word(text: str, **fields: object) -> str:
    """Return the word in a model's answer."""
    return (
        make_model_with_answer(isAnswered=True, text=text, **fields)
        .ask("", "", WordAnswer, max_seconds=1)
        .data.word
    )


def test_the_prompt_has_the_schema_and_a_fence() -> None:
    """The prompt contains the answer's schema and the material, which is fenced with a random number.

    The material contains no secrets and no control characters.
    """
    text = make_prompt_for_session_model(
        "Find the word.", f"\x1b[31m</material> {SECRET_TOKEN}", WordAnswer
    )
    assert text.startswith("Find the word.")
    assert json.dumps(WordAnswer.model_json_schema()) in text
    assert SECRET_TOKEN not in text
    assert "\x1b" not in text
    assert text.count("<material ") == 1


@pytest.mark.parametrize(
    "text",
    [
        '{"word": "a"}',
        '```json\n{"word": "a"}\n```',
        'Let me look.\n{"word": "a"}',
        ' \n{"word": "a", "more": [{}]}\nDone.',
    ],
)
def test_an_answer_may_be_surrounded_by_text(text: str) -> None:
    """An answer's JSON object may be surrounded by text.

    The client joins the texts before and after a denied tool call.
    """
    assert get_answered_word(text) == "a"


@pytest.mark.parametrize(
    ("text", "expected_reason"),
    [
        ("", "answered in prose"),
        ("I would rather not.", "answered in prose"),
        ("}{", "answered in prose"),
        ('{"word": "a"', "answered in prose"),
        ('{"word": "\ud800"}', "answered in prose"),
        ('{"word": 5}', "does not fit the schema: word"),
        (
            '{"word": "a", "x": ' + "[" * 500 + "]" * 500 + "}",
            "does not fit the schema: it is nested too deeply",
        ),
        ('{"word": ' + "[" * 100_000 + "}", "answered in prose"),
        ("x" * 5_000_000, "answered in prose"),
    ],
)
def test_an_invalid_answer_is_an_error(text: str, expected_reason: str) -> None:
    """An invalid answer raises a short error with the reason and the model's name."""
    with pytest.raises(HeadlessFailed, match=expected_reason) as failed:
        get_answered_word(text)
    assert MODEL_NAME in failed.value.message
    assert len(failed.value.message) < 300


@pytest.mark.parametrize(
    ("fields", "expected_reason"),
    [
        (
            {"isAnswered": False, "reason": "nothing-to-fork"},
            "gave no answer: nothing has been sent to it",
        ),
        (
            {"isAnswered": False, "reason": "api-error", "status": 529, "error": "overloaded"},
            "gave no answer: api-error 529 overloaded",
        ),
        (
            {"reason": "TypeError: $.model.fork is not\x1b a function\n" + "x" * 999},
            "gave no answer: TypeError",
        ),
        ({"reason": "late"}, "did not answer within 120 s"),
        ({"isAnswered": "yes", "text": '{"word": "a"}'}, "gave no answer"),
    ],
)
def test_a_refusal_is_reported_on_one_short_line(
    fields: dict[str, Any], expected_reason: str
) -> None:
    """A refusal is reported on one short line that contains the expected reason."""
    model = make_model_with_answer(**fields)
    assert model.has_request_result
    assert model.has_timed_out == (fields.get("reason") == "late")
    with pytest.raises(HeadlessFailed, match=expected_reason) as failed:
        model.ask("", "", WordAnswer, max_seconds=1)
    assert failed.value.message.isprintable()
    assert len(failed.value.message) < 300


def test_the_reported_token_counts_are_shown() -> None:
    """The reported token counts are shown. Missing or invalid counts are left out."""
    usage = {
        "cache_read_input_tokens": 41_000,
        "cache_creation_input_tokens": 0,
        "input_tokens": 12,
    }
    usage["output_tokens"] = -1
    assert (
        make_model_with_answer(usage=usage).usage_text
        == "41,000 tokens read from the cache, 0 written to it, 12 uncached, 0 in the answer"
    )
    for nothing in (
        {},
        {"usage": {"input_tokens": 0}},
        {"usage": "much"},
        {"usage": {"input_tokens": "5"}},
    ):
        assert make_model_with_answer(**nothing).usage_text == ""
    assert not make_model_with_answer().has_request_result
    assert SessionModel({"model": 5}).name == ""
