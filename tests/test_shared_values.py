"""Values that several programs share: what is written by hand says the same."""

from __future__ import annotations

import pytest

from resume_hooks.shared_values import COLD_TOKENS, MODEL_MINUTES, MODEL_SECONDS, MODEL_TIME
from tests.needs import REPO


def test_the_words_for_the_time_of_a_model() -> None:
    """A number and a word stand next to each other."""
    assert {1: "a minute", 2: "two minutes", 3: "three minutes"}[MODEL_MINUTES] == MODEL_TIME


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("guide", f"It costs tokens and up to {MODEL_TIME}"),
        ("contracts", f"after {MODEL_SECONDS} seconds"),
    ],
)
def test_pages_name_the_time_of_a_model(page: str, text: str) -> None:
    """Sentences of docs/ are written by hand."""
    assert text in (REPO / "docs" / f"{page}.md").read_text(encoding="utf-8")


def test_the_shell_counts_the_digits_of_a_large_context() -> None:
    """``hooks/session-start`` can't compare numbers in a text without a process."""
    digits = "[1-9]" + "[0-9]" * (len(str(COLD_TOKENS)) - 1)
    text = (REPO / "hooks" / "session-start").read_text(encoding="utf-8")
    assert f"'\"context_tokens\":'{digits}*" in text
    assert 10 ** (len(str(COLD_TOKENS)) - 1) == COLD_TOKENS
