"""The edits that may have written a line: found by the index, read from the transcripts."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from resume_hooks.parts.attribution.asked_line import AskedLine
from resume_hooks.parts.attribution.edits import Change, changes_of
from resume_hooks.parts.attribution.rule import Edit
from resume_hooks.paths import open_regular
from resume_hooks.search.hits import Sources
from resume_hooks.search.index.connect import OpenIndex
from resume_hooks.search.index.postings import Posting
from resume_hooks.search.index.tokenize import forms_of
from resume_hooks.search.query import Term
from resume_hooks.search.ranking import Lookup, Ranking, Terms
from resume_hooks.search.scope import Entered, Scope, limits
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import read_lines
from resume_hooks.transcripts.records import Record, string

MOST = 5_000
"""Calls that are read, the newest; what has more is no file that is written by hand."""


def name_of(asked: AskedLine) -> Term:
    """The file's own name as words, which a command that writes it holds."""
    name = os.path.basename(asked.path)
    return Term(name, tuple(map(tuple, forms_of(name))), exact=True)


class Candidates:
    """Finds edits by an open index, in files that were ``entered``; ``capped`` where there are more than it reads."""

    def __init__(self, index: OpenIndex, scope: Scope, entered: Entered, sources: Sources) -> None:
        self._index = index
        self._scope = scope
        self._entered = entered
        self._sources = sources
        self.capped = False

    def edits(self, asked: AskedLine) -> Iterator[Edit[Posting]]:
        """Every edit of the file that was asked about, and every look at it, as one that changes nothing."""
        calls = self._calls(self._scope)
        name = Terms(self._index.words).strictly(named) if (named := name_of(asked)).forms else None
        if name and name.known:
            calls += self._calls(replace(self._scope, file="", tool="Bash", role="call"), [name])
        by_file: dict[int, dict[int, Posting]] = defaultdict(dict)
        for call in calls:
            by_file[call.file][call.offset] = call
        for rows in by_file.values():
            file = self._sources.file(next(iter(rows.values())))
            if file is None:
                continue
            for row, record, made in _made(self._sources.readable(file), rows):
                folder = string(record, "cwd")
                if made.path and asked.is_named(made.path, folder):
                    path = os.path.normpath(os.path.join(folder, made.path))
                    branch, said = string(record, "gitBranch"), string(record, "timestamp")
                    yield Edit(row, file.session_id, path, branch, said, made.hunks, made.blind)

    def _calls(self, scope: Scope, having: Sequence[Lookup] = ()) -> list[Posting]:
        within = limits(self._index.db, self._index.words, scope, self._entered.files, self._entered.known)
        ranking = Ranking(self._index.words, within, (), None, 0)
        found = ranking.records(MOST, having)
        self.capped = self.capped or ranking.capped
        return found


def _made(path: str, rows: Mapping[int, Posting]) -> Iterator[tuple[Posting, Record, Change]]:
    """What calls in a transcript changed, each with its record, once answered; ``rows`` are by their offsets."""
    waiting: dict[str, tuple[Posting, Record, Record]] = {}
    last = max(rows)
    with contextlib.suppress(OSError), open_regular(path, follow=False) as stream:  # else it is gone since
        for line in read_lines(stream, stream.seek(min(rows))):
            row = rows.get(line.offset)
            if row or any(call_id.encode() in line.raw for call_id in waiting):
                record = records.parse(line.body) or {}
                waiting |= {string(block, "id"): (row, record, block) for block in records.calls(record) if row}
                for block in records.results(record):
                    if asked := waiting.pop(string(block, "tool_use_id"), None):
                        row, called, call = asked
                        for change in changes_of(call, block, records.tool_details(record)):
                            yield row, called, change
            if line.offset >= last and not waiting:
                return
