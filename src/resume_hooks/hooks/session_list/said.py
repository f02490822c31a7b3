"""The turns in which some words were said, as a list of sessions shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from resume_hooks.clock import minute
from resume_hooks.errors import UsageError

if TYPE_CHECKING:
    from resume_hooks.search.engine import Searcher
    from resume_hooks.search.hits import Hit

SHORTEST = 2  # letters that are worth looking for
MOST = 20  # turns that are found for some words
MOST_READ = 100  # records that are read in search of an exact phrase

PATIENCE = 1.5
"""Seconds that the index is brought up to date for; what is left then is said."""


class Said(NamedTuple):
    """A turn that says what was typed: its sessions, the first one first, how sure that is, and the words in it.

    ``place`` is where in ``snippet`` the first of the words stands.
    """

    sessions: tuple[str, ...]
    strength: str
    about: str
    snippet: str
    place: int


def said_of(searcher: Searcher, text: str) -> list[Said]:
    """The best turns that say these words; none for words that are too short to be looked for."""
    from resume_hooks.search.query import parse

    if len(text.strip()) < SHORTEST:
        return []
    try:
        query = parse([text])
    except UsageError:  # there is no word in it yet
        return []
    return [_told(hit) for hit in searcher.search([query], MOST, reads=MOST_READ).hits] if query.terms else []


def _told(hit: Hit) -> Said:
    about = " · ".join(part for part in (hit.role, f"turn {hit.turn}", minute(hit.time)) if part)
    return Said(hit.sessions, hit.strength, about, hit.snippet, hit.marks[0][0] if hit.marks else 0)
