"""Words about time in a question, "in June", "last week", "2023-04", as a hint about when something was said."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from resume_hooks.clock import DAY

_MONTHS = (
    ("january", "jan", "januar"),
    ("february", "feb", "februar"),
    ("march", "mar", "märz"),
    ("april", "apr"),
    ("may", "mai"),
    ("june", "jun", "juni"),
    ("july", "jul", "juli"),
    ("august", "aug"),
    ("september", "sept", "sep"),
    ("october", "oct", "oktober", "okt"),
    ("november", "nov"),
    ("december", "dec", "dezember", "dez"),
)
_MONTH = {name: number for number, names in enumerate(_MONTHS, 1) for name in names}
_UNITS = {"day": 1, "tag": 1, "week": 7, "woche": 7, "month": 30, "monat": 30, "year": 365, "jahr": 365}
_NAMES = "|".join(sorted(_MONTH, key=lambda name: -len(name)))
_BEFORE = (
    "(?:in|since|during|of|from|on|late|early|mid|end of|beginning of|start of|before|until|after"
    "|im|seit|ende|anfang|mitte|vor)"
)
_HINT = re.compile(
    rf"""\b(?:
    (?:(?P<way>{_BEFORE})[ ]+)?(?P<day>\d{{4}}-\d\d-\d\d)
    |(?:(?P<way2>{_BEFORE})[ ]+)?(?P<month>\d{{4}}-\d\d)
    |(?:(?P<way3>{_BEFORE})[ ]+)?(?P<name>{_NAMES})[ ,]+(?P<year>20\d\d)
    |(?P<way4>{_BEFORE})[ ]+(?P<alone>{_NAMES})
    |(?P<way5>in|since|during|of|before|after|im jahr|seit)[ ]+(?P<only>20\d\d)
    |(?P<number>\d+|a|one|two|three|einem?r?|zwei|drei)[ ](?P<unit>day|week|month|year)s?[ ]ago
    |(?P<last>last|past|this|letzten?|vergangenen?|diesen?)[ ]+(?P<unit2>week|month|year|woche|monat|jahr)
    |(?P<near>today|heute|yesterday|gestern)
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_COUNTS = {"a": 1, "one": 1, "two": 2, "three": 3, "zwei": 2, "drei": 3}


class Span(NamedTuple):
    """From ``start`` to before ``end``, seconds since the epoch."""

    start: float
    end: float

    def holds(self, time: int) -> bool:
        """Whether a time lies in it."""
        return self.start <= time < self.end

    @property
    def text(self) -> str:
        """The days of it, as an answer names them."""
        first, last = (datetime.fromtimestamp(time, UTC).date() for time in (self.start, self.end - 1))
        if not self.start:
            return f"before {last + timedelta(days=1)}"
        return str(first) if first == last else f"{first} to {last}"


def hint_in(text: str, now: float) -> tuple[str, Span | None]:
    """A question without its words about time, and what they mean as of ``now``; None where there are none."""
    found = _HINT.search(text)
    if found is None:
        return text, None
    try:
        span = _span(found, now)
    except (ValueError, OverflowError):  # the 31st of February
        return text, None
    rest = f"{text[: found.start()]} {text[found.end() :]}"
    return (rest, span) if rest.strip() else (text, span)


def _span(found: re.Match[str], now: float) -> Span:
    way = next((found[name] for name in ("way", "way2", "way3", "way4", "way5") if found[name]), "").lower()
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if found["day"]:
        start = datetime.fromisoformat(found["day"]).replace(tzinfo=UTC)
        span = _days(start, 1)
    elif found["month"]:
        span = _month(int(found["month"][:4]), int(found["month"][5:]))
    elif found["name"]:
        span = _month(int(found["year"]), _MONTH[found["name"].lower()])
    elif found["alone"]:
        number = _MONTH[found["alone"].lower()]
        span = _month(today.year - (number > today.month), number)  # the last one that there was
    elif found["only"]:
        span = Span(_month(int(found["only"]), 1).start, _month(int(found["only"]), 12).end)
    elif found["number"]:
        count = _COUNTS.get(found["number"].lower(), 0) or int(found["number"])
        days = _UNITS[found["unit"].lower()]
        span = _days(today - timedelta(days=count * days + days / 2), days + 1)
    elif found["last"]:
        days = _UNITS[found["unit2"].lower()]
        this = found["last"].lower() in {"this", "diese", "diesen", "dieser"}
        span = _days(today - timedelta(days=days if this else 2 * days), days + 1 if this else 2 * days + 1)
    else:
        span = _days(today - timedelta(days=found["near"].lower() in {"yesterday", "gestern"}), 1)
    if way in {"since", "after", "seit"}:
        return Span(span.start, now + DAY)
    return Span(0.0, span.start) if way in {"before", "until", "vor"} else span


def _days(start: datetime, count: float) -> Span:
    return Span(start.timestamp(), (start + timedelta(days=count)).timestamp())


def _month(year: int, month: int) -> Span:
    start = datetime(year, month, 1, tzinfo=UTC)
    return Span(start.timestamp(), (start + timedelta(days=32)).replace(day=1).timestamp())
