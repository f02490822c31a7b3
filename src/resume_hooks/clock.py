"""Parse and format timestamps as in transcripts: ISO 8601 in UTC with milliseconds and ``Z``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

MINUTE, HOUR, DAY = 60, 3_600, 86_400  # seconds

# The last second of the year 9999, which is the maximum for datetime.
_MAX_EPOCH_SECONDS = 253_402_300_799
_DURATION_UNITS = {"min": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY, "m": 30 * DAY, "y": 365 * DAY}

TIME_EXAMPLES = "Examples: 2026-01-31, 2026-01-31T09:30 (UTC), 30min, 12h, 3d, 2w, 6m or 1y."


def now() -> str:
    """Return the current time, for example ``2026-01-31T09:30:00.123Z``."""
    return format_timestamp(datetime.now(UTC))


def format_timestamp(moment: datetime) -> str:
    """Return a datetime, which must have a time zone, in the format of transcripts."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def add_millisecond(text: str) -> str:
    """Return the timestamp one millisecond after ``text``, or ``text`` itself if it is not a timestamp.

    A millisecond is the smallest difference between two timestamps in a transcript.
    """
    moment = parse_timestamp(text)
    if moment:
        return format_timestamp(moment + timedelta(milliseconds=1))
    return text


def timestamp_from_epoch(seconds: float) -> str:
    """Return a time in seconds since 1970 in the format of transcripts.

    For a time after the year 9999, return the last second of that year.
    """
    return format_timestamp(datetime.fromtimestamp(min(max(seconds, 0), _MAX_EPOCH_SECONDS), UTC))


def parse_timestamp(text: object) -> datetime | None:
    """Return a timestamp as a datetime in UTC, or None if the JSON value is not a timestamp."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            return moment.replace(tzinfo=UTC)
        if moment.tzinfo is UTC:
            return moment
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        # A time zone can move a time beyond the first or the last year that datetime supports.
        return None


def parse_user_time(text: str) -> datetime | None:
    """Return the time that a user typed: a date, a timestamp (UTC by default), or an age such as ``12h``.

    Return None if the text is in none of these forms.
    """
    lower_text = text.strip().lower()
    amount = lower_text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = _DURATION_UNITS.get(lower_text[len(amount) :])
    number = amount.strip()
    if unit is None or not (number.isascii() and number.isdigit() and len(number) <= 4):
        return parse_timestamp(text.strip())
    return datetime.fromtimestamp(max(1, datetime.now(UTC).timestamp() - int(number) * unit), UTC)


def to_milliseconds(text: object) -> int | None:
    """Return a timestamp in milliseconds since 1970, or None if the value is not a timestamp."""
    moment = parse_timestamp(text)
    if moment is None:
        return None
    return round(moment.timestamp() * 1000)


def timestamp_from_milliseconds(milliseconds: int) -> str:
    """Return a time in milliseconds since 1970 in the format of transcripts.

    For a time after the year 9999, return the last second of that year.
    """
    return timestamp_from_epoch(milliseconds / 1000)


def normalize_timestamp(text: object) -> str:
    """Return an ISO timestamp in the format of transcripts. Texts in this format sort by time.

    Return ``""`` if the value is not an ISO timestamp.
    """
    moment = parse_timestamp(text)
    if moment:
        return format_timestamp(moment)
    return ""


def format_minute(text: str) -> str:
    """Return the day and minute of a timestamp for people, for example ``2026-01-31 09:30``.

    Return the text unchanged if it is not a timestamp.
    """
    return text[:16].replace("T", " ")


def format_duration(seconds: int) -> str:
    """Return a duration in the largest unit that fits at least twice: ``40 s``, ``3 min``, ``2 days``."""
    for unit, size in (("days", DAY), ("h", HOUR), ("min", MINUTE)):
        if seconds >= 2 * size:
            return f"{seconds // size:,} {unit}"
    return f"{seconds} s"
