"""What was typed: words, "exact phrases", -what must not be there.

Anything can be typed; what means nothing is searched as words. No part of it is ever taken for syntax of an index.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from resume_hooks.errors import UsageError
from resume_hooks.search.index.tokenize import forms_of
from resume_hooks.search.when import Period, hint_in
from resume_hooks.system.text import one_line, plain_line

MOST_TERMS = 32
"""Terms of a query that are looked at; a pasted page has thousands, and its first words tell what it is about."""

MOST_TOKENS = 24  # tokens of a term that are looked up; of a longer phrase the texts decide
MOST_LETTERS = 1_000  # characters of a term that are cut into tokens
LONGEST_NAME = 60  # characters of a term where it is named in an answer
COMMON = frozenset(
    """a about again all also am an and any are as at be because been before but by can conversation could day did
    discussed do does doing earlier find for from get got had has have he how i if in into is it its just last me month
    my no not of on once one or our out over please really remember said say session sessions she should show so some
    something still talked tell than that the their them then there these they thing things this those time to today
    too up us very was we week were what when where which who why will with would yesterday you your""".split()  # noqa: SIM905
)
"""Words of questions that tell nothing of what is asked for; they count only where nothing else was typed."""

_PIECE = re.compile(r'(?P<minus>-(?!-))?(?:"(?P<phrase>[^"]*)"?|(?P<word>[^\s"]+))')
"""A piece of what was typed; two dashes begin an option of some program, which is a word like others."""

_QUOTES = str.maketrans("\u201c\u201d\u201e\u201f\u00ab\u00bb", '""""""')
"""What keyboards and editors make of quotation marks."""


@dataclass(frozen=True, slots=True)
class Term:
    """A word or phrase as it was typed, and its ``forms`` in the index: for each token the whole, then its parts."""

    text: str
    forms: tuple[tuple[str, ...], ...]
    exact: bool = False

    @property
    def name(self) -> str:
        """The term on a line, in quotes if it is a phrase, as answers name it."""
        short = one_line(plain_line(self.text), LONGEST_NAME)
        return f'"{short}"' if self.exact else short


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for, what must not be there, and when it may have been said."""

    text: str
    terms: tuple[Term, ...]
    excluded: tuple[Term, ...]
    when: Period | None = None


def parse(words: Sequence[str], now: float | None = None) -> Query:
    """The query that words of a command line make; a word with spaces among others was quoted in the shell.

    A single one with spaces is a whole question. UsageError where nothing in it can be looked up.
    """
    text = " ".join(_quoted(word.translate(_QUOTES), alone=len(words) == 1) for word in words).strip()
    told, when = hint_in(text, time.time() if now is None else now)
    wanted, excluded = _terms(told)
    if when and not wanted:  # then it is what is asked for, not a hint
        wanted, excluded = _terms(text)
    telling = _telling(wanted)[:MOST_TERMS]
    if text and not telling:
        what = (
            "Only what must not be there was given" if excluded else f"'{one_line(plain_line(text), 80)}' holds no word"
        )
        raise UsageError(what, 'Give some words, such as: resume-hooks search "connection pool" -redis')
    return Query(text, tuple(telling), tuple(excluded[:MOST_TERMS]), when)


def _quoted(word: str, *, alone: bool) -> str:
    """A word of the command line; one with spaces was quoted in the shell, unless it is the whole question."""
    if alone or '"' in word or len(word.split()) < 2:
        return word
    return f'-"{word[1:]}"' if re.match(r"-(?!-)", word) else f'"{word}"'


def _terms(text: str) -> tuple[list[Term], list[Term]]:
    """What is wanted and what must not be there, each once."""
    found: dict[bool, dict[tuple[bool, str], Term]] = {False: {}, True: {}}
    for piece in _PIECE.finditer(text):
        phrase, word = piece["phrase"], piece["word"]
        term = _term(phrase if phrase is not None else word, exact=phrase is not None)
        if term is not None:
            found[bool(piece["minus"])].setdefault((term.exact, term.text.casefold()), term)
    return list(found[False].values()), list(found[True].values())


def _term(text: str, *, exact: bool) -> Term | None:
    words = re.sub(r"\A\W+", "", text)
    forms = [tuple(forms) for forms in forms_of(words[:MOST_LETTERS])]
    if len(words) > MOST_LETTERS:
        forms = forms[:-1] or forms  # the last one may be cut
    return Term(text.strip(), tuple(forms[:MOST_TOKENS]), exact) if forms else None


def _telling(terms: list[Term]) -> list[Term]:
    """The terms that tell something; all of them where none does."""
    return [term for term in terms if term.exact or term.text.casefold().strip("?!.,;:'") not in COMMON] or terms
