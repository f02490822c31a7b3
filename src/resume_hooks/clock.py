"""Instants in the one form transcripts use: ISO 8601, UTC, milliseconds, ``Z``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

MINUTE, HOUR, DAY = 60, 3_600, 86_400  # seconds

_LAST = 253_402_300_799  # the last second that datetime can hold, since the epoch
_UNITS = {"min": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY, "m": 30 * DAY, "y": 365 * DAY}

WHEN = "Such as 2026-01-31, 2026-01-31T09:30 (UTC), 30min, 12h, 3d, 2w, 6m or 1y."


def now() -> str:
    """The current instant, such as ``2026-01-31T09:30:00.123Z``."""
    return stamp(datetime.now(UTC))


def stamp(moment: datetime) -> str:
    """Write an aware ``moment`` in the form of the transcripts."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def later(text: str) -> str:
    """The instant a millisecond after ``text``, the smallest step of a transcript.

    Unreadable input as it is.
    """
    moment = parse(text)
    if moment:
        return stamp(moment + timedelta(milliseconds=1))
    return text


def from_epoch(seconds: float) -> str:
    """Write an epoch time (a file's mtime) in the form of the transcripts.

    One past the calendar as its end.
    """
    return stamp(datetime.fromtimestamp(min(max(seconds, 0), _LAST), UTC))


def parse(text: object) -> datetime | None:
    """Read an instant, in UTC; None for anything that is not one (real input holds any JSON there)."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            return moment.replace(tzinfo=UTC)
        if moment.tzinfo is UTC:
            return moment
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):  # the latter at either end of the calendar
        return None


def point(text: str) -> datetime | None:
    """The instant that a person means: a date, an instant (in UTC unless it says more), or so long ago (``12h``)."""
    wanted = text.strip().lower()
    count = wanted.rstrip("abcdefghijklmnopqrstuvwxyz")
    unit = _UNITS.get(wanted[len(count) :])
    number = count.strip()
    if unit is None or not (number.isascii() and number.isdigit() and len(number) <= 4):
        return parse(text.strip())
    return datetime.fromtimestamp(max(1, datetime.now(UTC).timestamp() - int(number) * unit), UTC)


def milliseconds(text: object) -> int | None:
    """An instant as milliseconds since the epoch; None for anything that is not one."""
    moment = parse(text)
    if moment is None:
        return None
    return round(moment.timestamp() * 1000)


def from_milliseconds(count: int) -> str:
    """Write milliseconds since the epoch in the form of the transcripts.

    One past the calendar as its end.
    """
    return from_epoch(count / 1000)


def normal(text: object) -> str:
    """An instant in whatever ISO form as transcripts write it, so that text order is time order; ``""`` for none."""
    moment = parse(text)
    if moment:
        return stamp(moment)
    return ""


def minute(text: str) -> str:
    """The day and minute of an instant for people, ``2026-01-31 09:30``.

    Unreadable input as it is.
    """
    return text[:16].replace("T", " ")


def span(seconds: int) -> str:
    """A length of time in a whole unit that it has two of: ``40 s``, ``3 min``, ``5 h``, ``2 days``."""
    for unit, size in (("days", DAY), ("h", HOUR), ("min", MINUTE)):
        if seconds >= 2 * size:
            return f"{seconds // size:,} {unit}"
    return f"{seconds} s"
