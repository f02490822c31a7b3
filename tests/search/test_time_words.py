"""Tests of words about time in a question.

Such words are removed from the question and change the order of the hits.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.search.query import Period, split_time_hint
from tests.builders import ConfigHome
from tests.search.asking import search_home, session_numbers, write_talk

NOW_TIMESTAMP = datetime(2026, 8, 14, 15, 30, tzinfo=UTC).timestamp()  # This day is a Friday.

PERIODS_BY_TIME_WORDS = {
    "on 2026-03-04": "2026-03-04",
    "2026-03": "2026-03-01 to 2026-03-31",
    "in June": "2026-06-01 to 2026-06-30",
    "in August": "2026-08-01 to 2026-08-31",
    "in November": "2025-11-01 to 2025-11-30",
    "june, 2025": "2025-06-01 to 2025-06-30",
    "Sept 2025": "2025-09-01 to 2025-09-30",
    "end of June": "2026-06-01 to 2026-06-30",
    "in 2024": "2024-01-01 to 2024-12-31",
    "since 2026-08-01": "2026-08-01 to 2026-08-15",
    "since March": "2026-03-01 to 2026-08-15",
    "before March": "before 2026-03-01",
    "until 2026-03-04": "before 2026-03-04",
    "before yesterday": "before 2026-08-13",
    "today": "2026-08-14",
    "yesterday": "2026-08-13",
    "3 days ago": "2026-08-10 to 2026-08-12",
    "a week ago": "2026-08-03 to 2026-08-11",
    "two months ago": "2026-05-31 to 2026-06-30",
    "this week": "2026-08-07 to 2026-08-14",
    "last week": "2026-07-31 to 2026-08-14",
    "past month": "2026-06-15 to 2026-08-14",
    "last year": "2024-08-14 to 2026-08-14",
    "im M\u00e4rz": "2026-03-01 to 2026-03-31",
    "Anfang Mai": "2026-05-01 to 2026-05-31",
    "im Jahr 2024": "2024-01-01 to 2024-12-31",
    "seit Juni": "2026-06-01 to 2026-08-15",
    "vor Juni": "before 2026-06-01",
    "vor drei Tagen": "2026-08-10 to 2026-08-12",
    "vor einer Woche": "2026-08-03 to 2026-08-11",
    "letzte Woche": "2026-07-31 to 2026-08-14",
    "im letzten Monat": "2026-06-15 to 2026-08-14",
    "dieses Jahr": "2025-08-14 to 2026-08-14",
    "gestern": "2026-08-13",
}
"""Words about time, and the days to which they refer on 14 August 2026.

Vague words refer to more days.
"""


@pytest.mark.parametrize("words", PERIODS_BY_TIME_WORDS)
def test_words_about_time_are_removed_from_the_question(words: str) -> None:
    """Words about time at the beginning or end of a question are removed, in any letter case."""
    for typed in (words, words.upper(), words.capitalize()):
        for question in (f"drop redis {typed}?", f"{typed} drop redis"):
            rest, when = split_time_hint(question, NOW_TIMESTAMP)
            assert when is not None
            assert (rest.strip(" ?"), when.text) == ("drop redis", PERIODS_BY_TIME_WORDS[words])


@pytest.mark.parametrize(
    "question",
    [
        "drop redis",
        "redis 2026-02-31",
        "redis 2026-13",
        "redis 0000-00",
        "redis 9999-12-31",
        "9999999 days ago redis",
        "999 years ago redis",
        "before 0001-01-01 redis",
        "may I march on",
        "the second of redis",
        "v2024-01 id-2024-01-02-x 2024-01-02.log src/2024-01-02/a",
        "redis -yesterday",
        '"redis in June"',
        '"yesterday',
    ],
)
def test_other_words_are_not_about_time(question: str) -> None:
    """Impossible dates, parts of names, and quoted or excluded words are not treated as words about time."""
    assert split_time_hint(question, NOW_TIMESTAMP) == (question, None)


def test_a_question_with_only_time_words_is_searched() -> None:
    """If a question contains only words about time, the words are searched for."""
    rest, when = split_time_hint("yesterday", NOW_TIMESTAMP)
    assert (rest, when and when.text) == ("yesterday", "2026-08-13")


@given(
    st.lists(
        st.sampled_from(
            [
                *PERIODS_BY_TIME_WORDS,
                "redis",
                "2026-99-99",
                "0001-01",
                "-",
                ".",
                '"',
                "9" * 30,
                "\ud800",
            ]
        )
    )
)
def test_any_text_is_accepted_as_a_question(words: list[str]) -> None:
    """Any text is accepted as a question, and a period of time that is found in it is never empty."""
    _, when = split_time_hint(" ".join(words), NOW_TIMESTAMP)
    assert when is None or (when.start_time < when.end_time and when.text)


def test_a_period_excludes_its_end() -> None:
    """A period includes its start and excludes its end."""
    assert [Period(10, 20).contains(time) for time in (9, 10, 19, 20)] == [False, True, True, False]


def test_a_time_hint_only_changes_the_order(config_home: ConfigHome) -> None:
    """Hits from the time that a question mentions come first, and other hits are still found."""
    write_talk(config_home, 1, "tune the linter now", ts="2025-06-10T12:00:00Z")
    write_talk(config_home, 2, "tune the linter too", ts="2025-09-10T12:00:00Z")
    write_talk(config_home, 3, "tune the linter again")
    assert session_numbers(search_home(config_home, "tune the linter"))[-1] == 1
    for question, first in [("tune the linter in June 2025", 1), ("2025-09 tune the linter", 2)]:
        found = search_home(config_home, question)
        assert session_numbers(found)[0] == first
        assert set(session_numbers(found)) == {1, 2, 3}
    assert set(session_numbers(search_home(config_home, "tune the linter in May 2019"))) == {
        1,
        2,
        3,
    }
