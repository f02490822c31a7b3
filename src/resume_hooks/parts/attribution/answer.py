"""The answer to ``which session wrote a line``: the record of the edit that left it, as the hit of a search."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from resume_hooks.errors import UsageError
from resume_hooks.parts.attribution.asked_line import AskedLine, asked_line
from resume_hooks.parts.attribution.candidates import Candidates, name_of
from resume_hooks.parts.attribution.rule import writer
from resume_hooks.paths import Where
from resume_hooks.search.engine import SearchResult, in_index, unsearched
from resume_hooks.search.hits import WIDTH, Hit, Hits, Sources, Wording, strength
from resume_hooks.search.index.connect import OpenIndex
from resume_hooks.search.index.postings import Posting, turn_key
from resume_hooks.search.index.unread import Sought
from resume_hooks.search.query import Query
from resume_hooks.search.ranking import Found, TurnHit
from resume_hooks.search.scope import Scope, enter, meant, unknown, unseen
from resume_hooks.system.text import one_line, plain_line

if TYPE_CHECKING:
    from resume_hooks.search.index.update import Progress

SURE = 0.99  # how likely a session that is named wrote the line, as benchmarks/attribution measures it


def answer(options: Any, scope: Scope, cwd: str, *, limit: float, progress: Progress | None) -> SearchResult | None:
    """As ``cli.search`` asks. UsageError for a line that is not there, and for options that a line has no use for."""
    where: Where = options.where
    asked = asked_line(options.file, cwd, where)
    if asked is None:
        return None
    if options.words or options.also or scope.tool or scope.role:
        raise UsageError("Words, --or, --tool and --role have no meaning for a line", "Leave them out, or the line.")
    # A headless run writes files, too, and so does the turn that asks.
    scope = replace(scope, file=asked.tail, helpers=True, asking="")
    sought = Sought((name_of(asked).forms,), meant(scope, where))

    def search(index: OpenIndex) -> SearchResult:
        return _search(index, asked, scope, Query(options.file, (), ()), where)

    return in_index(search, scope, where, sought, limit=limit, progress=progress)


def _search(index: OpenIndex, asked: AskedLine, scope: Scope, query: Query, where: Where) -> SearchResult:
    entered = enter(index.db, scope, where)
    sources = Sources(index, entered.files, where)
    candidates = Candidates(index, scope, entered, sources)
    found = writer(asked.lines, asked.number, candidates.edits(asked))
    hits = _hits(found.record, asked, query, sources) if found.record else []
    late = [file for file in index.unread if file.held != frozenset()]
    notes = [
        *index.notes,
        *([] if hits else unknown(index.words, scope)),
        *unsearched(len(entered.files) + len(index.unread), unseen(scope, where)),
    ]
    more = candidates.capped
    how = f"{found.why}; older edits were not looked at" if more and not hits else found.why
    return SearchResult((query,), hits, len(hits), more, how, notes, 0, [], len(late))


def _hits(record: Posting, asked: AskedLine, query: Query, sources: Sources) -> list[Hit]:
    """The record that holds the edit, where it was first said, shown by the line; none where it is gone since."""
    turn = TurnHit(turn_key(record.file, record.turn), [record], 0.0)
    found = Hits(sources, [Wording(query, [])]).best([[Found(0, turn)]], 1).hits
    text = one_line(plain_line(asked.lines[asked.number - 1]), WIDTH)
    marks = ((0, len(text)),)
    return [replace(hit, snippet=text, marks=marks, confidence=SURE, strength=strength(SURE)) for hit in found]
