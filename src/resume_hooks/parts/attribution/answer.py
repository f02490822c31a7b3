"""Find the session that wrote a line, and return the record of its edit as a search hit.

The line must be in the current file. If its text is not unique, the lines around it are also
compared. The index finds the edits that may have written it, and these edits are read from the
transcripts.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from resume_hooks.errors import UsageError
from resume_hooks.parts.attribution.edits import FileChange, changes_by_call, split_lines
from resume_hooks.parts.attribution.rule import FileEdit, find_writer
from resume_hooks.paths import Where, canonical_path, open_regular, project_folders, read_regular
from resume_hooks.search.engine import search_updated_index
from resume_hooks.search.hits import (
    SNIPPET_CHARACTERS,
    Hit,
    HitMaker,
    Wording,
    strength_of_confidence,
)
from resume_hooks.search.index.changes import FileSearch
from resume_hooks.search.index.connect import OpenIndex
from resume_hooks.search.index.postings import Posting, turn_key
from resume_hooks.search.index.tokenize import forms_of_word
from resume_hooks.search.query import Query, Term
from resume_hooks.search.ranking import Lookup, Ranking, TermLookups, TurnHit, WordingTurn
from resume_hooks.search.result import SearchResult, notes_on_unsearched_folders
from resume_hooks.search.scope import (
    FilesInScope,
    Scope,
    conditions_of_scope,
    file_filter,
    find_files_in_scope,
    notes_on_unknown_values,
    unlistable_folders_in_scope,
)
from resume_hooks.search.sources import Sources
from resume_hooks.system.git_worktrees import project_of_folder, repository_root
from resume_hooks.system.invocation import is_model_shell
from resume_hooks.system.text import collapse_line, format_count, plain_line
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import read_lines
from resume_hooks.transcripts.records import Record, string

if TYPE_CHECKING:
    from resume_hooks.search.index.update import Progress

CONFIDENCE = 0.99  # the fraction of correct answers, measured by benchmarks/attribution
MOST_CALLS = 5_000
"""The maximum number of calls to read, newest first. A file with more calls is not written by hand."""

LARGEST_FILE = 16 * 1024 * 1024
"""The maximum size of the file in bytes. Nobody edits a larger file by hand."""

_PATH_AND_LINE = re.compile(r"(.+):(\d{1,9})", re.DOTALL)
_WITHOUT_LINE = "To see who read or wrote it, leave the line out."


class RequestedLine(NamedTuple):
    """Line ``number`` (from 1) in the file at ``path``, with links resolved; ``lines`` have no line ends.

    ``tail`` is the file's path in every checkout of its project, and ``folders`` are these
    checkouts.
    """

    path: str
    tail: str
    folders: frozenset[str]
    lines: list[str]
    number: int

    def is_named(self, recorded: str, cwd: str) -> bool:
        """Check whether a path that a session in ``cwd`` recorded is this file, even if its checkout has moved."""
        full_path = os.path.normpath(os.path.join(cwd, recorded))
        if not os.path.isabs(full_path) or canonical_path(full_path) == self.path:
            return os.path.isabs(full_path)
        root = full_path.removesuffix(f"{os.sep}{self.tail}")
        if root == full_path:
            return False
        return canonical_path(root) in self.folders or (
            f"{cwd}{os.sep}".startswith(f"{root}{os.sep}") and not os.path.isdir(root)
        )


def parse_requested_line(path_and_line: str, cwd: str, where: Where) -> RequestedLine | None:
    """Parse ``path:42``, relative to ``cwd``, or return None for a path without a line.

    Raise UsageError if the line does not exist.
    """
    match = _PATH_AND_LINE.fullmatch(path_and_line)
    # the colon may be part of the name
    if match is None or os.path.lexists(os.path.join(cwd, path_and_line)):
        return None
    path = os.path.normpath(os.path.join(cwd, os.path.expanduser(match[1])))
    shown_path = plain_line(path)
    # a model may run a search without permission, but it must not read arbitrary files
    if is_model_shell() and not _is_worked_in(path, where):
        raise UsageError(
            f"No session worked in a folder of {shown_path}",
            f"Name a file of a project. {_WITHOUT_LINE}",
        )
    lines, number = _read_lines_of_file(path), int(match[2])
    if not 0 < number <= len(lines):
        raise UsageError(
            f"{shown_path} has no line {number}",
            f"It has {format_count(len(lines), 'line')}, counted from 1.",
        )
    if "\ufffd" in lines[number - 1]:
        raise UsageError(
            f"Line {number} of {shown_path} is not UTF-8",
            f"Sessions contain no such text. {_WITHOUT_LINE}",
        )
    path = canonical_path(path)
    root = repository_root(os.path.dirname(path)) or os.path.dirname(path)
    return RequestedLine(
        path,
        os.path.relpath(path, root),
        frozenset(project_of_folder(root, where).folders),
        lines,
        number,
    )


def _is_worked_in(path: str, where: Where) -> bool:
    """Check whether sessions ran in a parent folder of a file, or in another checkout of its project."""
    folder = os.path.dirname(canonical_path(path))
    folders = {folder}
    while (parent := os.path.dirname(folder)) != folder:
        folder = parent
        folders.add(folder)
    if root := repository_root(os.path.dirname(canonical_path(path))):
        folders |= set(project_of_folder(root, where).folders)
    places = chain.from_iterable(project_folders(checkout, where) for checkout in folders)
    return any(map(os.path.isdir, places))


def _read_lines_of_file(path: str) -> list[str]:
    shown_path = plain_line(path)
    if os.path.isdir(path):
        raise UsageError(f"{shown_path} is a folder, which has no lines", "Name a file in it.")
    try:
        raw = read_regular(path, LARGEST_FILE)
    except OSError as error:
        raise UsageError(
            f"{shown_path} can't be read: {error.strerror}",
            f"Name an existing file. {_WITHOUT_LINE}",
        ) from error
    if b"\0" in raw:
        raise UsageError(f"{shown_path} is binary, which has no lines", _WITHOUT_LINE)
    return split_lines(raw.decode("utf-8-sig", "replace"))


def answer_line_search(
    options: Any, scope: Scope, cwd: str, *, limit: float, progress: Progress | None
) -> SearchResult | None:
    """Return the result of a search for a line, as in ``cli.search``, or None if no line is given.

    Raise UsageError for options of a text search.
    """
    where: Where = options.where
    requested = parse_requested_line(options.file, cwd, where)
    if requested is None:
        return None
    if options.words or options.also or scope.tool or scope.role:
        raise UsageError(
            "Words, --or, --tool and --role have no meaning for a line",
            "Leave them out, or the line.",
        )
    # Headless runs and the current turn also write files.
    scope = scope._replace(file=requested.tail, include_helpers=True, asking_session="")
    words = FileSearch((file_name_term(requested).forms,), file_filter(scope, where))

    def search_line(index: OpenIndex) -> SearchResult:
        return _search_edits_of_line(index, requested, scope, Query(options.file, (), ()), where)

    return search_updated_index(
        search_line, scope, where, words, max_seconds=limit, progress=progress
    )


def _search_edits_of_line(
    index: OpenIndex, requested: RequestedLine, scope: Scope, query: Query, where: Where
) -> SearchResult:
    entered = find_files_in_scope(index.db, scope, where)
    sources = Sources(index, entered.files, where)
    candidates = EditFinder(index, scope, entered, sources)
    verdict = find_writer(requested.lines, requested.number, candidates.edits_of_file(requested))
    if verdict.record:
        hits = _make_hits(verdict.record, requested, query, sources)
    else:
        hits = []
    unread_files = []
    for file in index.unread:
        if file.term_numbers != frozenset():
            unread_files.append(file)
    notes = [
        *index.notes,
        *([] if hits else notes_on_unknown_values(index.words, scope)),
        *notes_on_unsearched_folders(
            len(entered.files) + len(index.unread), unlistable_folders_in_scope(scope, where)
        ),
    ]
    is_capped = candidates.capped
    if is_capped and not hits:
        explanation = f"{verdict.why}; older edits were not searched"
    else:
        explanation = verdict.why
    return SearchResult(
        (query,), hits, len(hits), is_capped, explanation, notes, 0, [], len(unread_files)
    )


def _make_hits(
    record: Posting, requested: RequestedLine, query: Query, sources: Sources
) -> list[Hit]:
    """Return the edit's record as a hit, with the line as its snippet.

    Return [] if the record no longer exists.
    """
    turn = TurnHit(turn_key(record.file, record.turn), [record], 0.0)
    hits = HitMaker(sources, [Wording(query, [])]).best_hits([[WordingTurn(0, turn)]], 1).hits
    text = collapse_line(plain_line(requested.lines[requested.number - 1]), SNIPPET_CHARACTERS)
    marks = ((0, len(text)),)
    return [
        hit._replace(
            snippet=text,
            marks=marks,
            confidence=CONFIDENCE,
            strength=strength_of_confidence(CONFIDENCE),
        )
        for hit in hits
    ]


def file_name_term(requested: RequestedLine) -> Term:
    """Return the file's name as a search term; a command that writes the file contains it."""
    name = os.path.basename(requested.path)
    return Term(name, tuple(map(tuple, forms_of_word(name))), is_phrase=True)


class EditFinder:
    """Finds edits in the ``entered`` files of an open index; ``capped`` is true if there are too many to read."""

    def __init__(
        self, index: OpenIndex, scope: Scope, entered: FilesInScope, sources: Sources
    ) -> None:
        self._index = index
        self._scope = scope
        self._entered = entered
        self._sources = sources
        self.capped = False

    def edits_of_file(self, requested: RequestedLine) -> Iterator[FileEdit[Posting]]:
        """Yield every edit of the file. Also yield every read of the file, as an edit without changes."""
        calls = self._find_calls(self._scope)
        if (name_term := file_name_term(requested)).forms:
            name = TermLookups(self._index.words).look_up_strictly(name_term)
        else:
            name = None
        if name and name.is_in_index:
            calls += self._find_calls(
                self._scope._replace(file="", tool="Bash", role="call"), [name]
            )
        by_file: dict[int, dict[int, Posting]] = defaultdict(dict)
        for call in calls:
            by_file[call.file][call.offset] = call
        for postings in by_file.values():
            file = self._sources.indexed_file(next(iter(postings.values())))
            if file is None:
                continue
            for posting, record, change in _read_changes(
                self._sources.readable_path(file), postings
            ):
                folder = string(record, "cwd")
                if change.path and requested.is_named(change.path, folder):
                    path = os.path.normpath(os.path.join(folder, change.path))
                    branch, timestamp = string(record, "gitBranch"), string(record, "timestamp")
                    yield FileEdit(
                        posting,
                        file.session_id,
                        path,
                        branch,
                        timestamp,
                        change.hunks,
                        change.blind,
                    )

    def _find_calls(self, scope: Scope, lookups: Sequence[Lookup] = ()) -> list[Posting]:
        search_limits = conditions_of_scope(
            self._index.db, self._index.words, scope, self._entered.files, self._entered.file_count
        )
        ranking = Ranking(self._index.words, search_limits, (), None)
        postings = ranking.matching_records(MOST_CALLS, lookups)
        self.capped = self.capped or ranking.has_unread_records
        return postings


def _read_changes(
    path: str, postings: Mapping[int, Posting]
) -> Iterator[tuple[Posting, Record, FileChange]]:
    """Yield a transcript's changes by answered calls, with posting and record; ``postings`` are keyed by offset."""
    open_calls: dict[str, tuple[Posting, Record, Record]] = {}
    last = max(postings)
    # the file may have been deleted
    with contextlib.suppress(OSError), open_regular(path, follow=False) as stream:
        for line in read_lines(stream, stream.seek(min(postings))):
            posting = postings.get(line.offset)
            if posting or any(call_id.encode() in line.raw for call_id in open_calls):
                record = records.parse(line.body) or {}
                for block in records.calls(record):
                    if posting:
                        open_calls[string(block, "id")] = (posting, record, block)
                for block in records.results(record):
                    if waiting_call := open_calls.pop(string(block, "tool_use_id"), None):
                        posting, called, call = waiting_call
                        for change in changes_by_call(call, block, records.tool_details(record)):
                            yield posting, called, change
            if line.offset >= last and not open_calls:
                return
