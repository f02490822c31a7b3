"""Timestamps in the format of transcripts: ISO 8601, UTC, milliseconds, ``Z``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

MINUTE, HOUR, DAY = 60, 3_600, 86_400  # seconds

_LAST_SECOND = 253_402_300_799  # the last second that datetime supports, counted from the epoch
_UNITS = {"min": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY, "m": 30 * DAY, "y": 365 * DAY}

TIME_EXAMPLES = "Such as 2026-01-31, 2026-01-31T09:30 (UTC), 30min, 12h, 3d, 2w, 6m or 1y."


def now() -> str:
    """Return the current time, such as ``2026-01-31T09:30:00.123Z``."""
    return format_timestamp(datetime.now(UTC))


def format_timestamp(moment: datetime) -> str:
    """Format an aware ``moment`` as a transcript's timestamp."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def add_millisecond(text: str) -> str:
    """Return the timestamp one millisecond after ``text``, the smallest step in a transcript.

    Return unreadable input unchanged.
    """
    moment = parse_timestamp(text)
    if moment:
        return format_timestamp(moment + timedelta(milliseconds=1))
    return text


def timestamp_from_epoch(seconds: float) -> str:
    """Format an epoch time, such as a file's mtime, as a transcript's timestamp.

    Clamp a time past the calendar to its last second.
    """
    return format_timestamp(datetime.fromtimestamp(min(max(seconds, 0), _LAST_SECOND), UTC))


def parse_timestamp(text: object) -> datetime | None:
    """Parse a timestamp into UTC; return None for any other JSON value."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            return moment.replace(tzinfo=UTC)
        if moment.tzinfo is UTC:
            return moment
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):  # OverflowError at either end of the calendar
        return None


def parse_user_time(text: str) -> datetime | None:
    """Parse a user's time: a date, a timestamp (UTC by default), or an age such as ``12h``."""
    lower_text = text.strip().lower()
    amount = lower_text.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = _UNITS.get(lower_text[len(amount) :])
    number = amount.strip()
    if unit is None or not (number.isascii() and number.isdigit() and len(number) <= 4):
        return parse_timestamp(text.strip())
    return datetime.fromtimestamp(max(1, datetime.now(UTC).timestamp() - int(number) * unit), UTC)


def to_milliseconds(text: object) -> int | None:
    """Return a timestamp as milliseconds since the epoch, or None for anything else."""
    moment = parse_timestamp(text)
    if moment is None:
        return None
    return round(moment.timestamp() * 1000)


def timestamp_from_milliseconds(count: int) -> str:
    """Format milliseconds since the epoch as a transcript's timestamp.

    Clamp a time past the calendar to its last second.
    """
    return timestamp_from_epoch(count / 1000)


def normalize_timestamp(text: object) -> str:
    """Convert an ISO timestamp to the format of transcripts, which sorts by time; return ``""`` for anything else."""
    moment = parse_timestamp(text)
    if moment:
        return format_timestamp(moment)
    return ""


def format_minute(text: str) -> str:
    """Format a timestamp's day and minute for people, such as ``2026-01-31 09:30``.

    Leave unreadable input as it is.
    """
    return text[:16].replace("T", " ")


def format_duration(seconds: int) -> str:
    """Format a duration in the largest unit of which it contains at least two: ``40 s``, ``3 min``, ``2 days``."""
    for unit, size in (("days", DAY), ("h", HOUR), ("min", MINUTE)):
        if seconds >= 2 * size:
            return f"{seconds // size:,} {unit}"
    return f"{seconds} s"
