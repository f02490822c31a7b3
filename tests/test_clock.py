"""Tests that the engine's clock parses dates, times and durations that users type."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from resume_hooks import clock

TIMES_BY_TEXT = {
    "2026-01-31": datetime(2026, 1, 31, tzinfo=UTC),
    " 2026-01-31T09:30 ": datetime(2026, 1, 31, 9, 30, tzinfo=UTC),
    "2026-01-31T09:30:00.123Z": datetime(2026, 1, 31, 9, 30, 0, 123_000, tzinfo=UTC),
    "2026-01-31T10:30+01:00": datetime(2026, 1, 31, 9, 30, tzinfo=UTC),
}


@pytest.mark.parametrize("text", TIMES_BY_TEXT)
def test_dates_and_times_are_parsed(text: str) -> None:
    """``parse_user_time`` accepts dates and times; without a time zone it assumes UTC."""
    assert clock.parse_user_time(text) == TIMES_BY_TEXT[text]


SECONDS_BY_DURATION = {
    "30min": 1_800,
    "12h": 43_200,
    "3d": 259_200,
    " 2 W ": 1_209_600,
    "6m": 15_552_000,
    "1y": 31_536_000,
    "0h": 0,
}


@pytest.mark.parametrize("text", SECONDS_BY_DURATION)
def test_a_duration_is_parsed_as_time_ago(text: str) -> None:
    """``parse_user_time`` accepts durations in minutes, hours, days, weeks, months or years.

    It returns the time at this distance before now.
    """
    found = clock.parse_user_time(text)
    assert found is not None
    assert abs(
        (datetime.now(UTC) - found) - timedelta(seconds=SECONDS_BY_DURATION[text])
    ) < timedelta(seconds=60)


def test_a_very_long_duration_reaches_back_to_the_epoch() -> None:
    """A duration of thousands of years reaches back only to one second after the epoch."""
    assert clock.parse_user_time("9999y") == datetime.fromtimestamp(1, UTC)


@pytest.mark.parametrize(
    "text", ["", "h", "soon", "-1h", "1.5h", "12345h", "²h", "1x", "2026-13-01"]
)
def test_invalid_text_is_not_a_time(text: str) -> None:
    """``parse_user_time`` returns None for text that is not a date, a time or a duration."""
    assert clock.parse_user_time(text) is None
