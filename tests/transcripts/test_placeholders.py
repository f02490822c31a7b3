"""Tests of placeholders: their documented wording, their recognition and their length."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.transcripts import placeholders
from resume_hooks.transcripts.placeholders import (
    MIN_PLACEHOLDER_CHARACTERS,
    OriginalReference,
    contains_placeholder,
    is_placeholder,
    is_response_placeholder,
    was_trimmed,
)
from tests.builders import SESSION, ConfigHome
from tests.derive.trim.sessions import (
    Chain,
    plan_trim_of_file,
    read_records_by_uuid,
    trim_file,
    write_project_session,
)

ORIGINAL_REFERENCE = OriginalReference("5e12a303-c989-4291-a42d-bc1eb620afea", 42)

PLACEHOLDER_MAKERS: dict[str, Callable[..., str]] = {
    "result": lambda *rest: placeholders.result_placeholder("Read", *rest),
    "input": lambda *rest: placeholders.input_placeholder("Write", *rest),
    "text": placeholders.response_placeholder,
    "media": placeholders.media_placeholder,
    "pasted": placeholders.pasted_text_placeholder,
    "attachment": placeholders.attachment_placeholder,
}

AICHAT_PLACEHOLDERS = {
    "result": "head of the output\n\n[...truncated - original content was 9,000 characters, showing first 500. "
    "See line 3 of /home/u/.claude/projects/-x/a.jsonl for full content]",
    "result without a file": "head\n\n[...truncated - original content was 9,000 characters, showing first 500]",
    "input": "head\n\n[...truncated content - was 9,000 chars. See line 3 of /home/u/a.jsonl]",
    "answer": "[Assistant message trimmed - original content was 9,000 characters. "
    "See line 3 of /a.jsonl for full content]",
    "old result": "[Results from Read tool suppressed - original content was 9,000 characters]",
    "chosen by a model": "First 300 chars: x... [truncated]\n"
    "See line 3 of /a.jsonl for full content (original was 9,000 chars).",
}
"""Placeholders of aichat 1.x, by the content that they replace."""


def test_placeholders_have_the_documented_wording() -> None:
    """A placeholder names the tool and size, then the original's reference, and a reason if there is one."""
    assert placeholders.result_placeholder("Read", 12_345, ORIGINAL_REFERENCE) == (
        "[Results from Read tool suppressed - original content was 12,345 characters; original: 5e12a303:42]"
    )
    assert placeholders.response_placeholder(1_234, ORIGINAL_REFERENCE) == (
        "[Claude response trimmed - original was 1,234 characters; original: 5e12a303:42]"
    )
    assert placeholders.media_placeholder(1_600, ORIGINAL_REFERENCE, "seen") == (
        "[Image or document suppressed - original content was 1,600 tokens; original: 5e12a303:42; seen]"
    )


@pytest.mark.parametrize("kind", PLACEHOLDER_MAKERS)
def test_each_kind_of_placeholder_is_recognized(kind: str) -> None:
    """Each kind of placeholder is recognized on its own and within a paste or a command.

    No placeholder is shorter than ``MIN_PLACEHOLDER_CHARACTERS``.
    """
    for size in (1, 999, 12_345_678):
        text = PLACEHOLDER_MAKERS[kind](size, ORIGINAL_REFERENCE, "why")
        assert is_placeholder(text)
        assert contains_placeholder(f"{'x' * 500}\n{text}\n{'y' * 300}")
        assert (
            len(PLACEHOLDER_MAKERS[kind](size, OriginalReference("12345678", 0)))
            >= MIN_PLACEHOLDER_CHARACTERS
        )


@pytest.mark.parametrize("kind", AICHAT_PLACEHOLDERS)
def test_placeholders_of_another_tool_are_recognized(kind: str) -> None:
    """Placeholders of aichat are recognized so that they are not trimmed again."""
    assert contains_placeholder(AICHAT_PLACEHOLDERS[kind])
    assert was_trimmed(AICHAT_PLACEHOLDERS[kind])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "[Results from Read tool]",
        "a log that says: original content was 12 characters",
        "x" * 2_000 + placeholders.response_placeholder(900, ORIGINAL_REFERENCE) + "y" * 2_000,
        "[1, 2, [3]]",
        "[...truncated by less(1)]\n and then more output",
        "the original was long (original was blue).",
    ],
)
def test_false_placeholders_are_not_recognized(text: str) -> None:
    """A text that only quotes or resembles a placeholder is not recognized as one."""
    assert not contains_placeholder(text)
    assert not is_placeholder(text)


@pytest.mark.parametrize(
    "following_text",
    ["\nprinted behind it", " printed behind it", "\n]", "x" * 2_000 + "]"],
)
def test_a_placeholder_with_text_after_it_is_not_recognized(following_text: str) -> None:
    """A placeholder with text after it is not recognized, because a program may have printed it."""
    assert not is_placeholder(
        f"{placeholders.result_placeholder('Bash', 12_345, ORIGINAL_REFERENCE)}{following_text}"
    )


@given(name=st.text(max_size=300))
def test_any_tool_name_gives_a_valid_placeholder(name: str) -> None:
    """A placeholder with any tool name is one line in brackets and is recognized."""
    text = placeholders.result_placeholder(name, 5, ORIGINAL_REFERENCE)
    assert is_placeholder(text)
    assert text.count("[") == text.count("]") == 1
    assert "\n" not in text


def test_placeholders_of_answers_are_distinguished_from_those_of_results() -> None:
    """``is_response_placeholder`` returns true only for placeholders that replace the model's texts."""
    assert is_response_placeholder(placeholders.response_placeholder(900, ORIGINAL_REFERENCE))
    assert is_response_placeholder(AICHAT_PLACEHOLDERS["answer"])
    assert not is_response_placeholder(
        placeholders.result_placeholder("Read", 900, ORIGINAL_REFERENCE)
    )


@pytest.mark.parametrize("size", range(60, 120))
def test_a_placeholder_is_never_longer_than_its_content(config_home: ConfigHome, size: int) -> None:
    """A trim without a threshold makes every text shorter or leaves it unchanged."""
    chain = (
        Chain()
        .ask("p" * (800 + size))
        .call_with_result("t1", "Bash", "o" * size, command="c" * (120 + size))
        .answer("a" * size)
    )
    path = write_project_session(config_home, chain)
    before, after = (
        read_records_by_uuid(path),
        read_records_by_uuid(trim_file(config_home, path, threshold=0, assistant=9)),
    )
    for uuid, row in before.items():
        old, new = str(row["message"]["content"]), str(after[uuid]["message"]["content"])
        assert len(new) < len(old) or new == old


@pytest.mark.parametrize("kind", ["result", "answer"])
def test_placeholders_of_another_tool_are_not_trimmed(config_home: ConfigHome, kind: str) -> None:
    """A trim leaves the placeholders of aichat unchanged."""
    chain = (
        Chain()
        .ask()
        .call_with_result("t1", "Read", AICHAT_PLACEHOLDERS[kind])
        .answer(AICHAT_PLACEHOLDERS[kind])
        .add_short_turns(1)
    )
    path = write_project_session(config_home, chain, SESSION)
    assert plan_trim_of_file(config_home, path, threshold=0, assistant=9).choices == ()
