"""What was typed: words, "exact phrases", -what must not be there.

Anything can be typed; what means nothing is searched as words. No part of it ever reaches SQLite as syntax.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from resume_hooks.errors import UsageError
from resume_hooks.index.words import forms_of

MOST_TERMS = 32
"""Terms of a query that are looked at; a pasted page has thousands, and its first words tell what it is about."""

COMMON = frozenset(
    """a about again all also am an and any are as at be because been before but by can conversation could day did
    discussed do does doing earlier find for from get got had has have he how i if in into is it its just last me month
    my no not of on once one or our out over please really remember said say session sessions she should show so some
    something still talked tell than that the their them then there these they thing things this those time to today
    too up us very was we week were what when where which who why will with would yesterday you your""".split()  # noqa: SIM905
)
"""Words of questions that tell nothing of what is asked for; they count only where nothing else was typed."""

_PIECE = re.compile(r'(?P<minus>-)?(?:"(?P<phrase>[^"]*)"?|(?P<word>[^\s"]+))')


@dataclass(frozen=True, slots=True)
class Term:
    """A word or phrase as it was typed, and its ``forms`` in the index: for each token the whole, then its parts."""

    text: str
    forms: tuple[tuple[str, ...], ...]
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for and what must not be there."""

    text: str
    terms: tuple[Term, ...]
    excluded: tuple[Term, ...]

    @property
    def phrases(self) -> list[str]:
        """What must stand in a record exactly so."""
        return [term.text for term in self.terms if term.exact]


def parse(words: Sequence[str]) -> Query:
    """The query that words of a command line make; a word with spaces among others was quoted in the shell.

    A single one with spaces is a whole question. UsageError where nothing in it can be looked up.
    """
    typed = [f'"{word}"' if len(words) > 1 and " " in word.strip() and '"' not in word else word for word in words]
    text = " ".join(typed).strip()
    wanted: dict[str, Term] = {}
    excluded: list[Term] = []
    for piece in _PIECE.finditer(text):
        phrase, word = piece["phrase"], piece["word"]
        term = _term(phrase if phrase is not None else word, exact=phrase is not None)
        if term is None:
            continue
        if piece["minus"]:
            excluded.append(term)
        else:
            wanted.setdefault(term.text.casefold(), term)
    kept = _telling(list(wanted.values()))[:MOST_TERMS]
    if text and not kept:
        what = "Only what must not be there was given" if excluded else f"'{text[:80]}' holds no word"
        raise UsageError(what, 'Give some words, such as: resume-hooks search "connection pool" -redis')
    return Query(text, tuple(kept), tuple(excluded[:MOST_TERMS]))


def _term(text: str, *, exact: bool) -> Term | None:
    forms = tuple(tuple(forms) for forms in forms_of(text))
    return Term(text.strip(), forms, exact) if forms else None


def _telling(terms: list[Term]) -> list[Term]:
    """The terms that tell something; all of them where none does."""
    return [term for term in terms if term.exact or term.text.casefold().strip("?!.,;:'") not in COMMON] or terms
