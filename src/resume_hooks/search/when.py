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
_COUNTS = {"a": 1, "one": 1, "two": 2, "three": 3, "einem": 1, "einer": 1, "zwei": 2, "drei": 3}
_NAMES = "|".join(sorted(_MONTH, key=lambda name: -len(name)))
_WAYS = (
    "in|since|during|of|from|on|late|early|mid|end of|beginning of|start of|before|until|after"
    "|im|im jahr|seit|nach|ende|anfang|mitte|vor|bis"
).replace(" ", "[ ]")
_HINT = re.compile(
    rf"""
    "[^"]*"?  # what is quoted stays as it is
    |(?<![\w./:-])(?:
        (?:(?P<way>{_WAYS})[ ]+)?(?:
            (?P<day>\d{{4}}-\d\d-\d\d)
            |(?P<month>\d{{4}}-\d\d)
            |(?P<name>{_NAMES})[ ,]+(?P<year>20\d\d)
            |(?P<last>last|past|this|(?:letzt|vergangen|dies)e[nrs]?)[ ]+(?P<span>week|month|year|woche|monat|jahr)
            |(?P<near>today|heute|yesterday|gestern)
        )
        |(?P<way2>{_WAYS})[ ]+(?:(?P<alone>{_NAMES})|(?P<only>20\d\d))
        |(?P<count>\d+|a|one|two|three)[ ]+(?P<unit>day|week|month|year)s?[ ]+ago
        |vor[ ]+(?P<count2>\d+|einem|einer|zwei|drei)[ ]+(?P<unit2>tag|woche|monat|jahr)(?:e?n|e)?
    )(?![\w/:-]|\.\w)
    """,
    re.IGNORECASE | re.VERBOSE,
)


class Period(NamedTuple):
    """From ``start`` to before ``end``, seconds since the epoch."""

    start: float
    end: float

    def holds(self, time: int) -> bool:
        """Whether a time lies in it."""
        return self.start <= time < self.end

    @property
    def text(self) -> str:
        """The days of it, as an answer names them."""
        if not self.start:
            return f"before {datetime.fromtimestamp(self.end, UTC).date()}"
        first, last = (datetime.fromtimestamp(time, UTC).date() for time in (self.start, self.end - 1))
        return str(first) if first == last else f"{first} to {last}"


def hint_in(text: str, now: float) -> tuple[str, Period | None]:
    """A question without its words about time, and what they mean as of ``now``; None where there are none.

    What is quoted, and dates that are parts of names, are no words about time.
    """
    found = next((match for match in _HINT.finditer(text) if match.lastgroup), None)
    if found is None:
        return text, None
    try:
        span = _span({name: words.lower() for name, words in found.groupdict().items() if words}, now)
    except (ValueError, OverflowError):  # the 31st of February
        return text, None
    if span.end <= 0:
        return text, None
    rest = f"{text[: found.start()]} {text[found.end() :]}"
    return (rest, span) if rest.strip() else (text, span)


def _span(told: dict[str, str], now: float) -> Period:
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    span = _named(told, today) or _counted(told, today)
    way = told.get("way") or told.get("way2")
    if way in {"since", "after", "seit", "nach"}:
        return Period(span.start, now + DAY)
    return Period(0.0, span.start) if way in {"before", "until", "vor", "bis"} else span


def _named(told: dict[str, str], today: datetime) -> Period | None:
    """A day, a month or a year that is told by its name."""
    if day := told.get("day"):
        return _days(datetime.fromisoformat(day).replace(tzinfo=UTC), 1)
    if month := told.get("month"):
        return _month(int(month[:4]), int(month[5:]))
    if name := told.get("name"):
        return _month(int(told["year"]), _MONTH[name])
    if name := told.get("alone"):
        return _month(today.year - (_MONTH[name] > today.month), _MONTH[name])  # the last one that there was
    if year := told.get("only"):
        return Period(_month(int(year), 1).start, _month(int(year), 12).end)
    return None


def _counted(told: dict[str, str], today: datetime) -> Period:
    """Some days, about as long ago as is told."""
    if count := told.get("count") or told.get("count2"):
        days = _UNITS[told.get("unit") or told["unit2"]]
        return _days(today - timedelta(days=(_COUNTS.get(count) or int(count)) * days + days / 2), days + 1)
    if last := told.get("last"):
        days = _UNITS[told["span"]] * (1 if last.startswith(("this", "dies")) else 2)
        return _days(today - timedelta(days=days), days + 1)
    return _days(today - timedelta(days=told["near"] in {"yesterday", "gestern"}), 1)


def _days(start: datetime, count: float) -> Period:
    return Period(start.timestamp(), (start + timedelta(days=count)).timestamp())


def _month(year: int, month: int) -> Period:
    start = datetime(year, month, 1, tzinfo=UTC)
    return Period(start.timestamp(), (start + timedelta(days=32)).replace(day=1).timestamp())
