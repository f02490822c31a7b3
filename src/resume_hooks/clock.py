"""Instants in the one form transcripts use: ISO 8601, UTC, milliseconds, ``Z``."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> str:
    """The current instant, such as ``2026-01-31T09:30:00.123Z``."""
    return stamp(datetime.now(UTC))


def stamp(moment: datetime) -> str:
    """Write an aware ``moment`` in the form of the transcripts."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_epoch(seconds: float) -> str:
    """Write an epoch time (a file's mtime) in the form of the transcripts."""
    return stamp(datetime.fromtimestamp(seconds, UTC))


def parse(text: object) -> datetime | None:
    """Read an instant; None for anything that is not one (real input holds any JSON there)."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def minute(text: str) -> str:
    """The day and minute of an instant for people, ``2026-01-31 09:30``; unreadable input as it is."""
    return text[:16].replace("T", " ")
