"""Parse a typed question.

A question has words, "exact phrases", -excluded words, and words about time such as "in June" or
"last week". Any text is valid. Words without a special meaning are searched for as they are, so the
index's query syntax has no effect. Words about time are only a hint: turns from that time come
first, but other turns are also found.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from resume_hooks.clock import DAY
from resume_hooks.errors import UsageError
from resume_hooks.search.index.tokenize import forms_of_word
from resume_hooks.system.text import collapse_line, plain_line

_MONTH_NAMES_BY_NUMBER = (
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
_MONTH_NUMBERS = {
    name: number for number, names in enumerate(_MONTH_NAMES_BY_NUMBER, 1) for name in names
}
_DAYS_PER_UNIT = {
    "day": 1,
    "tag": 1,
    "week": 7,
    "woche": 7,
    "month": 30,
    "monat": 30,
    "year": 365,
    "jahr": 365,
}
_NUMBER_WORDS = {
    "a": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "einem": 1,
    "einer": 1,
    "zwei": 2,
    "drei": 3,
}
_TIME_WORDS = (*_DAYS_PER_UNIT, "heute", "gestern")
_MONTH_NAMES = "|".join(sorted(_MONTH_NUMBERS, key=lambda name: -len(name)))
_TIME_PREPOSITIONS = (
    "in|since|during|of|from|on|late|early|mid|end of|beginning of|start of|before|until|after"
    "|im|im jahr|seit|nach|ende|anfang|mitte|vor|bis"
).replace(" ", "[ ]")
_TIME_HINT_PATTERN = rf"""
    "[^"]*"?  # what is quoted stays as it is
    |(?<![\w./:-])(?:
        (?:(?P<way>{_TIME_PREPOSITIONS})[ ]+)?(?:
            (?P<day>\d{{4}}-\d\d-\d\d)
            |(?P<month>\d{{4}}-\d\d)
            |(?P<name>{_MONTH_NAMES})[ ,]+(?P<year>20\d\d)
            |(?P<last>last|past|this|(?:letzt|vergangen|dies)e[nrs]?)[ ]+(?P<span>week|month|year|woche|monat|jahr)
            |(?P<near>today|heute|yesterday|gestern)
        )
        |(?P<way2>{_TIME_PREPOSITIONS})[ ]+(?:(?P<alone>{_MONTH_NAMES})|(?P<only>20\d\d))
        |(?P<count>\d+|a|one|two|three)[ ]+(?P<unit>day|week|month|year)s?[ ]+ago
        |vor[ ]+(?P<count2>\d+|einem|einer|zwei|drei)[ ]+(?P<unit2>tag|woche|monat|jahr)(?:e?n|e)?
    )(?![\w/:-]|\.\w)
    """

MAX_TERMS = 32
"""The maximum number of terms in a query.

A pasted page may have thousands of terms, but its first words show its topic.
"""

# Maximum number of a term's tokens that are looked up in the index. Whether a record contains the
# whole phrase is then checked in the record's text.
MAX_TERM_TOKENS = 24
MAX_TERM_CHARACTERS = 1_000  # at most this number of a term's characters are split into tokens
MAX_DISPLAY_NAME_CHARACTERS = 60  # maximum number of characters of a term that an answer shows
COMMON_WORDS = frozenset(
    """a about again all also am an and any are as at be because been before but by can conversation could day did
    discussed do does doing earlier find for from get got had has have he how i if in into is it its just last me month
    my no not of on once one or our out over please really remember said say session sessions she should show so some
    something still talked tell than that the their them then there these they thing things this those time to today
    too up us very was we week were what when where which who why will with would yesterday you your""".split()  # noqa: SIM905
)
"""Words that say nothing about the topic of a question.

They are searched for only if the question has no other words.
"""

_TERM_PATTERN = re.compile(r'(?P<minus>-(?!-))?(?:"(?P<phrase>[^"]*)"?|(?P<word>[^\s"]+))')
"""Matches a term of the typed question.

A word that begins with two dashes is a program's option, not an excluded word.
"""

_PLAIN_QUOTE_TABLE = str.maketrans("\u201c\u201d\u201e\u201f\u00ab\u00bb", '""""""')
"""Typographic quotation marks, mapped to the plain quotation mark."""


class Period(NamedTuple):
    """A period from ``start_time`` to just before ``end_time``, in seconds since the epoch."""

    start_time: float
    end_time: float

    def contains(self, time: int) -> bool:
        """Check whether a time, in seconds since the epoch, is in the period."""
        return self.start_time <= time < self.end_time

    @property
    def text(self) -> str:
        """The first and last day of the period, in the form in which they are shown to the user."""
        if not self.start_time:
            return f"before {datetime.fromtimestamp(self.end_time, UTC).date()}"
        first_day, last_day = (
            datetime.fromtimestamp(time, UTC).date()
            for time in (self.start_time, self.end_time - 1)
        )
        if first_day == last_day:
            return str(first_day)
        return f"{first_day} to {last_day}"


def split_time_hint(text: str, now: float) -> tuple[str, Period | None]:
    """Return a question without its words about time, and the period that these words refer to.

    ``now`` is the current time. The period is None if there are no words about time. Quoted words,
    and dates in file names, do not count as words about time. If the question has no other words,
    return the whole question with the period.
    """
    if not _may_mention_time(text):
        return text, None
    hint_pattern = re.compile(_TIME_HINT_PATTERN, re.IGNORECASE | re.VERBOSE)
    hint = next((match for match in hint_pattern.finditer(text) if match.lastgroup), None)
    if hint is None:
        return text, None
    try:
        period = _parse_period(
            {name: words.lower() for name, words in hint.groupdict().items() if words}, now
        )
    except (ValueError, OverflowError):  # The date does not exist, such as the 31st of February.
        return text, None
    if period.end_time <= 0:
        return text, None
    other_words = f"{text[: hint.start()]} {text[hint.end() :]}"
    if other_words.strip():
        return (other_words, period)
    return (text, period)


def _may_mention_time(text: str) -> bool:
    """Check whether a question contains a number or a word about time.

    If it contains neither, the pattern for periods need not be compiled, which takes 3 ms.
    """
    folded_text = text.casefold()
    has_number_or_time_word = any(letter.isdigit() for letter in folded_text) or any(
        name in folded_text for name in _TIME_WORDS
    )
    return has_number_or_time_word or not _MONTH_NUMBERS.keys().isdisjoint(
        re.findall(r"[^\W\d_]+", folded_text)
    )


def _parse_period(groups: dict[str, str], now: float) -> Period:
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    period = _parse_named_period(groups, today) or _parse_counted_period(groups, today)
    preposition = groups.get("way") or groups.get("way2")
    if preposition in {"since", "after", "seit", "nach"}:
        return Period(period.start_time, now + DAY)
    if preposition in {"before", "until", "vor", "bis"}:
        return Period(0.0, period.start_time)
    return period


def _parse_named_period(groups: dict[str, str], today: datetime) -> Period | None:
    if day := groups.get("day"):
        return _period_of_days(datetime.fromisoformat(day).replace(tzinfo=UTC), 1)
    if month := groups.get("month"):
        return _period_of_month(int(month[:4]), int(month[5:]))
    if name := groups.get("name"):
        return _period_of_month(int(groups["year"]), _MONTH_NUMBERS[name])
    if name := groups.get("alone"):
        # The latest month of this name that is not in the future.
        return _period_of_month(
            today.year - (_MONTH_NUMBERS[name] > today.month), _MONTH_NUMBERS[name]
        )
    if year := groups.get("only"):
        return Period(
            _period_of_month(int(year), 1).start_time, _period_of_month(int(year), 12).end_time
        )
    return None


def _parse_counted_period(groups: dict[str, str], today: datetime) -> Period:
    """Parse words about a time relative to today, such as "two weeks ago" or "last month"."""
    if count := groups.get("count") or groups.get("count2"):
        days = _DAYS_PER_UNIT[groups.get("unit") or groups["unit2"]]
        return _period_of_days(
            today - timedelta(days=(_NUMBER_WORDS.get(count) or int(count)) * days + days / 2),
            days + 1,
        )
    if time_word := groups.get("last"):
        days = _DAYS_PER_UNIT[groups["span"]] * (1 if time_word.startswith(("this", "dies")) else 2)
        return _period_of_days(today - timedelta(days=days), days + 1)
    return _period_of_days(today - timedelta(days=groups["near"] in {"yesterday", "gestern"}), 1)


def _period_of_days(start: datetime, day_count: float) -> Period:
    return Period(start.timestamp(), (start + timedelta(days=day_count)).timestamp())


def _period_of_month(year: int, month: int) -> Period:
    start = datetime(year, month, 1, tzinfo=UTC)
    return Period(start.timestamp(), (start + timedelta(days=32)).replace(day=1).timestamp())


class Term(NamedTuple):
    """A typed word or phrase.

    ``forms`` contains one tuple for each token of the term. The tuple contains the whole token,
    followed by the token's parts.
    """

    text: str
    forms: tuple[tuple[str, ...], ...]
    is_phrase: bool = False

    @property
    def display_name(self) -> str:
        """The term as an answer shows it: shortened, and in quotes if it is a phrase."""
        short_text = collapse_line(plain_line(self.text), MAX_DISPLAY_NAME_CHARACTERS)
        if self.is_phrase:
            return f'"{short_text}"'
        return short_text


class Query(NamedTuple):
    """A parsed question: the terms to look for, the excluded terms, and the period to which it refers."""

    text: str
    terms: tuple[Term, ...]
    excluded_terms: tuple[Term, ...]
    period: Period | None = None


def parse_query(words: Sequence[str], now: float | None = None) -> Query:
    """Parse the words of a command line into a query.

    If there is only one argument, it is the whole question, even if it contains spaces. Among
    several arguments, one with spaces is a phrase, because the user quoted it in the shell. Raise
    UsageError if there is no word to look up.
    """
    text = " ".join(
        _quote_shell_word(word.translate(_PLAIN_QUOTE_TABLE), is_whole_question=len(words) == 1)
        for word in words
    ).strip()
    question, period = split_time_hint(text, time.time() if now is None else now)
    included_terms, excluded_terms = _parse_included_and_excluded_terms(question)
    # If the question consists only of words about time, search for these words.
    if period and not included_terms:
        included_terms, excluded_terms = _parse_included_and_excluded_terms(text)
    topic_terms = []
    for term in included_terms:
        if term.is_phrase or term.text.casefold().strip("?!.,;:'") not in COMMON_WORDS:
            topic_terms.append(term)
    topic_terms = (topic_terms or included_terms)[:MAX_TERMS]
    if text and not topic_terms:
        if excluded_terms:
            problem = "The query has only excluded words"
        else:
            problem = f"'{collapse_line(plain_line(text), 80)}' contains no word"
        raise UsageError(
            problem, 'Give some words, such as: resume-hooks search "connection pool" -redis'
        )
    return Query(text, tuple(topic_terms), tuple(excluded_terms[:MAX_TERMS]), period)


def _quote_shell_word(word: str, *, is_whole_question: bool) -> str:
    """Put quotes around a word that contains spaces, because the user quoted it in the shell.

    Return a word without spaces unchanged, and also a word that is the whole question.
    """
    if is_whole_question or '"' in word or len(word.split()) < 2:
        return word
    if re.match(r"-(?!-)", word):
        return f'-"{word[1:]}"'
    return f'"{word}"'


def _parse_included_and_excluded_terms(text: str) -> tuple[list[Term], list[Term]]:
    """Return the terms to look for and the excluded terms, each term once."""
    terms_by_kind: dict[bool, dict[tuple[bool, str], Term]] = {False: {}, True: {}}
    for token in _TERM_PATTERN.finditer(text):
        phrase, word = token["phrase"], token["word"]
        term = _parse_term(phrase if phrase is not None else word, is_phrase=phrase is not None)
        if term is not None:
            terms_by_kind[bool(token["minus"])].setdefault(
                (term.is_phrase, term.text.casefold()), term
            )
    return list(terms_by_kind[False].values()), list(terms_by_kind[True].values())


def _parse_term(text: str, *, is_phrase: bool) -> Term | None:
    words = re.sub(r"\A\W+", "", text)
    forms = [tuple(forms) for forms in forms_of_word(words[:MAX_TERM_CHARACTERS])]
    if len(words) > MAX_TERM_CHARACTERS:
        forms = forms[:-1] or forms  # The last token may be cut, so leave it out.
    if forms:
        return Term(text.strip(), tuple(forms[:MAX_TERM_TOKENS]), is_phrase)
    return None
