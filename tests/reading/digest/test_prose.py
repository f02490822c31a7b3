"""Tests of sentences in prose: how text is split, and which sentences are demands or announcements."""

from __future__ import annotations

import pytest

from resume_hooks.reading.digest.prose import (
    MAX_SENTENCE_CHARACTERS,
    cut_line,
    is_announcement,
    is_question,
    join_wrapped_rows,
    keep_typed_text,
    split_sentences,
)
from resume_hooks.reading.digest.statements import is_demand, only_looks_like_demand

SENTENCES = [
    ("One. Two!  Three? four", ["One.", "Two!", "Three? four"]),
    (
        "- item one\n* item two\n1. item three\n## Head\n> quoted",
        ["item one", "item two", "item three", "Head", "quoted"],
    ),
    ("See v1.2.3 and a.b. Then go", ["See v1.2.3 and a.b.", "Then go"]),
    ("Before\n```py\nnever = 1\n```\nAfter", ["Before", "After"]),
    ("Before\n~~~\nnever\n", ["Before"]),
    ("| A | B |\n|---|---|\n| x | y |", ["A | B |", "x | y |"]),
    ("하나다. 둘이다. 셋이다", ["하나다.", "둘이다.", "셋이다"]),
    ("一です。二です。", ["一です。", "二です。"]),
    ("**Bold.** Next", ["**Bold.", "Next"]),
    ("\n \n-\n3.\n", []),
    ("", []),
]


LONG_ROW = "A row that was wrapped at the margin of a document and"


@pytest.mark.parametrize(
    ("text", "joined"),
    [
        (f"{LONG_ROW}\n  goes on", f"{LONG_ROW} goes on"),
        (f"- {LONG_ROW}\ngoes on\n- next", f"- {LONG_ROW} goes on\n- next"),
        ("A short row\nand another", "A short row\nand another"),
        (f"{LONG_ROW}.\nNext", f"{LONG_ROW}.\nNext"),
        (f"{LONG_ROW}\n\nNext", f"{LONG_ROW}\n\nNext"),
        (f"## {LONG_ROW}\nNext", f"## {LONG_ROW}\nNext"),
        (f"| {LONG_ROW} |\nNext", f"| {LONG_ROW} |\nNext"),
    ],
)
def test_wrapped_rows_are_joined(text: str, joined: str) -> None:
    """A long line that ends inside a sentence is joined with the next line.

    A heading or a row of a table is not joined.
    """
    assert join_wrapped_rows(text) == joined


@pytest.mark.parametrize(("text", "expected"), SENTENCES)
def test_text_is_split_into_sentences(text: str, expected: list[str]) -> None:
    """Text is split at punctuation and line ends, without markup and code blocks."""
    assert [row for row in split_sentences(text) if len(row) > 2] == expected


def test_a_long_sentence_is_cut() -> None:
    """A long sentence is cut to ``MAX_SENTENCE_CHARACTERS`` and ends in an ellipsis."""
    (found,) = split_sentences("x" * 5_000)
    assert len(found) == MAX_SENTENCE_CHARACTERS
    assert found.endswith("…")
    assert cut_line("a \n b", 10) == "a b"
    assert cut_line("abcdef", 4) == "abc…"


@pytest.mark.parametrize(
    "text",
    [
        "Never commit to main", "don't use tabs", "Use spaces instead", "keep it small", "항상 이렇게", "必ず", "nunca",
        "As lightweight as possible please.", "Write tests first (TDD).", "Delete the dir, don't archive",
        "also use the linter", "yes, but we don't need to commit", "The bug must be fixed before merging.",
        "Run make lint before considering it complete.", "commit only the first part for now",
        "/go keep each commit working",
        "I'd rather have one file", "we explicitly don't want mocks", "the config should be the source of truth",
    ],
)  # fmt: skip
def test_sentences_with_a_constraint_are_found(text: str) -> None:
    """A sentence that says how the work must be done is a demand."""
    assert is_demand(text)
    assert not only_looks_like_demand(text)


@pytest.mark.parametrize(
    "text",
    [
        "hello there", "what is this?", "nevertheless fine", "done", "thanks", "actually stuff it, never mind tests 😂",
        "lol - we should use COBOL", "should we keep it?", "do we not have tests for that",
        "tell me what we should add",
        "I don't understand.", "I wonder if it should be renamed", "158.5 npm error Exit handler never called!",
        "// Always written as a number.", '"Connection": "keep-alive",',
        "the edits after the commit are never captured",
        "Agent: I need to ask before I use it.", "keep the console log, ensure it exists, and avoid the",
        '"How should we detect that?"', "it always lists these", "we could use tabs instead",
    ],
)  # fmt: skip
def test_sentences_without_a_constraint_are_ignored(text: str) -> None:
    """Questions, jokes, doubts, log lines, code and descriptions are not demands."""
    assert only_looks_like_demand(text) or not is_demand(text)


@pytest.mark.parametrize(
    "text",
    [
        "Let me check the tests",
        "Now let me look",
        "I'll also run it",
        "First, I need to see",
        "Here is what I found:",
        "I\u2019ll run the tests",
        "I\u2019m pushing the branch, then the PR follows.",
        "Next I'm checking its status",
        "I\u2019m rerunning the full lint command now.",
        "First I'm re-running the tests",
        "I'm still running the rebase",
        "I\u2019m using the GitHub publishing workflow for the commit, push, and PR.",
        "I'm going to trace the loading of tasks next.",
    ],
)
def test_announcements_of_the_next_step_are_found(text: str) -> None:
    """A sentence that says what the assistant will do next is an announcement."""
    assert is_announcement(text)


@pytest.mark.parametrize(
    "text",
    [
        "Let me use tabs instead",
        "I kept it as is",
        "The fix: a lock.",
        "Checked all of it.",
        "I\u2019m keeping the old name.",
        "I'm editing the helper, because two callers need it.",
        "I'm going to trace it here instead of in the parser.",
        "I'm going to keep the change in the constructor.",
        "I'm using the old parser.",
    ],
)
def test_reports_of_finished_work_are_not_announcements(text: str) -> None:
    """A sentence about finished work or a choice is not an announcement."""
    assert not is_announcement(text)


@pytest.mark.parametrize(
    ("text", "ask_first"),
    [("Shall I?", True), ("**Which?**", True), ("いい\uff1f", True), ("No. Yes.", False)],
)
def test_sentences_that_end_in_a_question_mark_are_questions(text: str, ask_first: bool) -> None:
    """A sentence that ends in a question mark, possibly followed by ``**``, is a question."""
    assert is_question(text) is ask_first


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a <system-reminder>x</system-reminder> b", "a  b"),
        ("<ide_selection>x</ide_selection><ide_opened_file>y</ide_opened_file>go", "go"),
        ("<system-reminder>a <system-reminder>b</system-reminder> c", "c"),
        ("what is <system-reminder> for", "what is <system-reminder> for"),
        ("a < b and c > d", "a < b and c > d"),
        ('<pasted_content file="x">y</pasted_content> go', "go"),
    ],
)
def test_only_typed_words_are_kept(text: str, expected: str) -> None:
    """Text that the client inserted into a prompt is removed. A tag that is never closed is kept."""
    assert keep_typed_text(text) == expected
