"""The typed question: words, "exact phrases", -excluded words, and words about time ("in June", "last week").

Any text is valid. Text without a special meaning is searched as words, and never read as the
index's query syntax. Words about time only hint at the time of the turn.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from resume_hooks.clock import DAY
from resume_hooks.errors import UsageError
from resume_hooks.search.index.tokenize import forms_of
from resume_hooks.system.text import collapse_line, plain_line

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
_MONTH_NUMBERS = {name: number for number, names in enumerate(_MONTHS, 1) for name in names}
_UNITS = {
    "day": 1,
    "tag": 1,
    "week": 7,
    "woche": 7,
    "month": 30,
    "monat": 30,
    "year": 365,
    "jahr": 365,
}
_COUNTS = {"a": 1, "one": 1, "two": 2, "three": 3, "einem": 1, "einer": 1, "zwei": 2, "drei": 3}
_NAMED_TIMES = (*_UNITS, "heute", "gestern")
_NAMES = "|".join(sorted(_MONTH_NUMBERS, key=lambda name: -len(name)))
_TIME_PREPOSITIONS = (
    "in|since|during|of|from|on|late|early|mid|end of|beginning of|start of|before|until|after"
    "|im|im jahr|seit|nach|ende|anfang|mitte|vor|bis"
).replace(" ", "[ ]")
_TIME_HINT = rf"""
    "[^"]*"?  # what is quoted stays as it is
    |(?<![\w./:-])(?:
        (?:(?P<way>{_TIME_PREPOSITIONS})[ ]+)?(?:
            (?P<day>\d{{4}}-\d\d-\d\d)
            |(?P<month>\d{{4}}-\d\d)
            |(?P<name>{_NAMES})[ ,]+(?P<year>20\d\d)
            |(?P<last>last|past|this|(?:letzt|vergangen|dies)e[nrs]?)[ ]+(?P<span>week|month|year|woche|monat|jahr)
            |(?P<near>today|heute|yesterday|gestern)
        )
        |(?P<way2>{_TIME_PREPOSITIONS})[ ]+(?:(?P<alone>{_NAMES})|(?P<only>20\d\d))
        |(?P<count>\d+|a|one|two|three)[ ]+(?P<unit>day|week|month|year)s?[ ]+ago
        |vor[ ]+(?P<count2>\d+|einem|einer|zwei|drei)[ ]+(?P<unit2>tag|woche|monat|jahr)(?:e?n|e)?
    )(?![\w/:-]|\.\w)
    """

MAX_TERMS = 32
"""The maximum number of terms in a query.

A pasted page has thousands of terms, and its first words show its topic.
"""

# the maximum number of tokens of a term to look up; a longer phrase is verified in the texts
MAX_TOKENS = 24
MAX_LETTERS = 1_000  # the maximum number of characters of a term to split into tokens
MAX_NAME = 60  # the maximum number of characters of a term in an answer
COMMON_WORDS = frozenset(
    """a about again all also am an and any are as at be because been before but by can conversation could day did
    discussed do does doing earlier find for from get got had has have he how i if in into is it its just last me month
    my no not of on once one or our out over please really remember said say session sessions she should show so some
    something still talked tell than that the their them then there these they thing things this those time to today
    too up us very was we week were what when where which who why will with would yesterday you your""".split()  # noqa: SIM905
)
"""Words of questions that say nothing about their topic.

They count only if the question has no other words.
"""

_PIECE = re.compile(r'(?P<minus>-(?!-))?(?:"(?P<phrase>[^"]*)"?|(?P<word>[^\s"]+))')
"""A token of the typed question.

Two dashes begin a program's option, which is an ordinary word.
"""

_QUOTES = str.maketrans("\u201c\u201d\u201e\u201f\u00ab\u00bb", '""""""')
"""Quotation marks of keyboards and editors, mapped to their plain form."""


class Period(NamedTuple):
    """A period from ``start`` to just before ``end``, in seconds since the epoch."""

    start: float
    end: float

    def holds(self, time: int) -> bool:
        """Check whether a time is in the period."""
        return self.start <= time < self.end

    @property
    def text(self) -> str:
        """The days of the period, as shown in an answer."""
        if not self.start:
            return f"before {datetime.fromtimestamp(self.end, UTC).date()}"
        first, last = (
            datetime.fromtimestamp(time, UTC).date() for time in (self.start, self.end - 1)
        )
        if first == last:
            return str(first)
        return f"{first} to {last}"


def split_time_hint(text: str, now: float) -> tuple[str, Period | None]:
    """Return a question without its words about time, and the period that these words mean at the time ``now``.

    Return None as the period if there are no such words.

    Quoted words, and dates in names, are not words about time.
    """
    if not _may_mention_time(text):
        return text, None
    hints = re.compile(_TIME_HINT, re.IGNORECASE | re.VERBOSE)
    found = next((match for match in hints.finditer(text) if match.lastgroup), None)
    if found is None:
        return text, None
    try:
        span = _named_span(
            {name: words.lower() for name, words in found.groupdict().items() if words}, now
        )
    except (ValueError, OverflowError):  # an impossible date, such as the 31st of February
        return text, None
    if span.end <= 0:
        return text, None
    other_words = f"{text[: found.start()]} {text[found.end() :]}"
    if other_words.strip():
        return (other_words, span)
    return (text, span)


def _may_mention_time(text: str) -> bool:
    """Check whether a question contains a word about time, or a number.

    If not, the pattern, which takes 3 ms to compile, is not needed.
    """
    folded_text = text.casefold()
    is_dated = any(letter.isdigit() for letter in folded_text) or any(
        name in folded_text for name in _NAMED_TIMES
    )
    return is_dated or not _MONTH_NUMBERS.keys().isdisjoint(re.findall(r"[^\W\d_]+", folded_text))


def _named_span(groups: dict[str, str], now: float) -> Period:
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    span = _named_period(groups, today) or _counted_period(groups, today)
    preposition = groups.get("way") or groups.get("way2")
    if preposition in {"since", "after", "seit", "nach"}:
        return Period(span.start, now + DAY)
    if preposition in {"before", "until", "vor", "bis"}:
        return Period(0.0, span.start)
    return span


def _named_period(groups: dict[str, str], today: datetime) -> Period | None:
    if day := groups.get("day"):
        return _days(datetime.fromisoformat(day).replace(tzinfo=UTC), 1)
    if month := groups.get("month"):
        return _month(int(month[:4]), int(month[5:]))
    if name := groups.get("name"):
        return _month(int(groups["year"]), _MONTH_NUMBERS[name])
    if name := groups.get("alone"):
        return _month(
            today.year - (_MONTH_NUMBERS[name] > today.month), _MONTH_NUMBERS[name]
        )  # the most recent such day or month
    if year := groups.get("only"):
        return Period(_month(int(year), 1).start, _month(int(year), 12).end)
    return None


def _counted_period(groups: dict[str, str], today: datetime) -> Period:
    """Return the days around a number of days or weeks ago."""
    if count := groups.get("count") or groups.get("count2"):
        days = _UNITS[groups.get("unit") or groups["unit2"]]
        return _days(
            today - timedelta(days=(_COUNTS.get(count) or int(count)) * days + days / 2), days + 1
        )
    if last := groups.get("last"):
        days = _UNITS[groups["span"]] * (1 if last.startswith(("this", "dies")) else 2)
        return _days(today - timedelta(days=days), days + 1)
    return _days(today - timedelta(days=groups["near"] in {"yesterday", "gestern"}), 1)


def _days(start: datetime, count: float) -> Period:
    return Period(start.timestamp(), (start + timedelta(days=count)).timestamp())


def _month(year: int, month: int) -> Period:
    start = datetime(year, month, 1, tzinfo=UTC)
    return Period(start.timestamp(), (start + timedelta(days=32)).replace(day=1).timestamp())


class Term(NamedTuple):
    """A word or phrase as typed, and its ``forms`` in the index: for each token the whole token, then its parts."""

    text: str
    forms: tuple[tuple[str, ...], ...]
    exact: bool = False

    @property
    def name(self) -> str:
        """The term as shown in an answer, in quotes if it is a phrase."""
        short = collapse_line(plain_line(self.text), MAX_NAME)
        if self.exact:
            return f'"{short}"'
        return short


class Query(NamedTuple):
    """The words to look for, the excluded words, and the time that the question hints at."""

    text: str
    terms: tuple[Term, ...]
    excluded: tuple[Term, ...]
    when: Period | None = None


def parse_query(words: Sequence[str], now: float | None = None) -> Query:
    """Parse the words of a command line into a query.

    If there are several words, a word with spaces was quoted in the shell.

    A single word with spaces is a whole question. Raise UsageError if no word can be looked up.
    """
    text = " ".join(
        _quote_shell_word(word.translate(_QUOTES), alone=len(words) == 1) for word in words
    ).strip()
    question, period = split_time_hint(text, time.time() if now is None else now)
    wanted_terms, excluded = _terms(question)
    if period and not wanted_terms:  # in that case the time itself is the question, not a hint
        wanted_terms, excluded = _terms(text)
    telling_terms = []
    for term in wanted_terms:
        if term.exact or term.text.casefold().strip("?!.,;:'") not in COMMON_WORDS:
            telling_terms.append(term)
    telling_terms = (telling_terms or wanted_terms)[:MAX_TERMS]
    if text and not telling_terms:
        if excluded:
            problem = "Only what must not be there was given"
        else:
            problem = f"'{collapse_line(plain_line(text), 80)}' holds no word"
        raise UsageError(
            problem, 'Give some words, such as: resume-hooks search "connection pool" -redis'
        )
    return Query(text, tuple(telling_terms), tuple(excluded[:MAX_TERMS]), period)


def _quote_shell_word(word: str, *, alone: bool) -> str:
    """Return a word of the command line.

    Put a word with spaces in quotes, because it was quoted in the shell, unless it is the whole
    question.
    """
    if alone or '"' in word or len(word.split()) < 2:
        return word
    if re.match(r"-(?!-)", word):
        return f'-"{word[1:]}"'
    return f'"{word}"'


def _terms(text: str) -> tuple[list[Term], list[Term]]:
    """Return the terms to look for and the excluded terms, each without repetitions."""
    terms_by_kind: dict[bool, dict[tuple[bool, str], Term]] = {False: {}, True: {}}
    for piece in _PIECE.finditer(text):
        phrase, word = piece["phrase"], piece["word"]
        term = _term(phrase if phrase is not None else word, exact=phrase is not None)
        if term is not None:
            terms_by_kind[bool(piece["minus"])].setdefault((term.exact, term.text.casefold()), term)
    return list(terms_by_kind[False].values()), list(terms_by_kind[True].values())


def _term(text: str, *, exact: bool) -> Term | None:
    words = re.sub(r"\A\W+", "", text)
    forms = [tuple(forms) for forms in forms_of(words[:MAX_LETTERS])]
    if len(words) > MAX_LETTERS:
        forms = forms[:-1] or forms  # the last token may be cut
    if forms:
        return Term(text.strip(), tuple(forms[:MAX_TOKENS]), exact)
    return None
