"""Tests that values which several programs share are equal wherever they are written by hand."""

from __future__ import annotations

from resume_hooks.shared_values import (
    COLD_CACHE_NOTICE_TOKENS,
    MODEL_TIMEOUT_MINUTES,
    MODEL_TIMEOUT_TEXT,
)
from tests.needs import REPO


def test_the_models_time_limit_is_the_same_in_words_and_minutes() -> None:
    """The time limit for a model is the same in words and in minutes."""
    assert {1: "a minute", 2: "two minutes", 3: "three minutes"}[
        MODEL_TIMEOUT_MINUTES
    ] == MODEL_TIMEOUT_TEXT


def test_the_guide_states_the_time_limit_of_a_model() -> None:
    """The guide's sentence about the duration of a rollover states the present time limit."""
    guide = (REPO / "docs" / "guide.md").read_text(encoding="utf-8")
    assert f"This costs tokens and takes up to {MODEL_TIMEOUT_TEXT}" in guide


def test_the_hooks_pattern_agrees_with_the_token_limit() -> None:
    """The pattern in ``hooks/session-start`` matches the counts from ``COLD_CACHE_NOTICE_TOKENS`` upwards.

    The script needs a pattern because it cannot compare numbers in a text without starting a
    process.
    """
    digits = "[1-9]" + "[0-9]" * (len(str(COLD_CACHE_NOTICE_TOKENS)) - 1)
    text = (REPO / "hooks" / "session-start").read_text(encoding="utf-8")
    assert f"'\"context_tokens\":'{digits}*" in text
    assert 10 ** (len(str(COLD_CACHE_NOTICE_TOKENS)) - 1) == COLD_CACHE_NOTICE_TOKENS
