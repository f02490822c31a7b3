"""Find the session that wrote a line of a file, and return the record of the edit as a hit.

The line must be in the current file. If its text occurs several times, the lines around it are also
compared. The search index finds the calls that may have written the line. Then the edits in these
calls are read from the transcripts.
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
from resume_hooks.parts.attribution.edits import FileChange, read_file_changes_of_call, split_lines
from resume_hooks.parts.attribution.match_edits import FileEdit, find_edit_that_wrote_line
from resume_hooks.paths import (
    Where,
    canonical_path,
    open_regular,
    project_folders,
    read_regular_file,
)
from resume_hooks.search.hits import (
    MAX_SNIPPET_CHARACTERS,
    Hit,
    HitMaker,
    Wording,
    strength_of_confidence,
)
from resume_hooks.search.index.changed_files import FileSearch
from resume_hooks.search.index.connect import OpenIndex
from resume_hooks.search.index.postings import Posting, make_key_from_file_and_number
from resume_hooks.search.index.tokenize import forms_of_word
from resume_hooks.search.query import Query, Term
from resume_hooks.search.ranking import Lookup, Ranking, TermLookups, TurnHit, WordingTurn
from resume_hooks.search.result import SearchResult, notes_on_unsearched_folders
from resume_hooks.search.run_search import search_updated_index
from resume_hooks.search.scope import (
    FilesInScope,
    Scope,
    conditions_of_scope,
    find_files_in_scope,
    make_file_filter,
    notes_on_unknown_values,
    unlistable_folders_in_scope,
)
from resume_hooks.search.sources import Sources
from resume_hooks.system.git_worktrees import project_of_folder, repository_root
from resume_hooks.system.invocation import is_in_model_shell
from resume_hooks.system.text import collapse_line, format_count, plain_line
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import read_lines
from resume_hooks.transcripts.records import Record, get_string

if TYPE_CHECKING:
    from resume_hooks.search.index.update import ProgressCallback

# The fraction of correct answers, as measured by benchmarks/attribution.
LINE_SEARCH_CONFIDENCE = 0.99
MAX_CALLS_TO_READ = 5_000
"""Maximum number of calls to read, newest first. A file with more calls is not written by hand."""

MAX_FILE_BYTES = 16 * 1024 * 1024
"""Maximum number of bytes in the file that contains the line. Nobody edits a larger file by hand.
"""

_PATH_AND_LINE_PATTERN = re.compile(r"(.+):(\d{1,9})", re.DOTALL)
_OMIT_LINE_NUMBER_REMEDY = "To see who read or wrote the file, omit the line number."


class RequestedLine(NamedTuple):
    """A line of a file. ``line_number`` counts from 1, and ``file_lines`` are all lines without line ends.

    ``path`` is the path without links. ``relative_path`` is the path of the file in each checkout
    of its project, and ``checkout_folders`` are these checkouts.
    """

    path: str
    relative_path: str
    checkout_folders: frozenset[str]
    file_lines: list[str]
    line_number: int

    def matches_path(self, recorded_path: str, cwd: str) -> bool:
        """Check whether a path that a session recorded is the path of this file.

        ``cwd`` is the working directory of the session at that time. The path of the file may have
        changed since then, because its checkout was moved.
        """
        full_path = os.path.normpath(os.path.join(cwd, recorded_path))
        if not os.path.isabs(full_path) or canonical_path(full_path) == self.path:
            return os.path.isabs(full_path)
        repository = full_path.removesuffix(f"{os.sep}{self.relative_path}")
        if repository == full_path:
            return False
        return canonical_path(repository) in self.checkout_folders or (
            f"{cwd}{os.sep}".startswith(f"{repository}{os.sep}") and not os.path.isdir(repository)
        )


def parse_requested_line(path_and_line: str, cwd: str, where: Where) -> RequestedLine | None:
    """Return the file and line for ``path:42``, or None for a path without a line number.

    The path is relative to ``cwd``. Raise UsageError if the line does not exist.
    """
    match = _PATH_AND_LINE_PATTERN.fullmatch(path_and_line)
    # The colon may be part of the name of an existing file.
    if match is None or os.path.lexists(os.path.join(cwd, path_and_line)):
        return None
    path = os.path.normpath(os.path.join(cwd, os.path.expanduser(match[1])))
    shown_path = plain_line(path)
    # A model is allowed to search without asking the user. A search must therefore not let it read
    # the lines of arbitrary files.
    if is_in_model_shell() and not _has_sessions_in_project_of_file(path, where):
        raise UsageError(
            f"No session worked in a folder that contains {shown_path}",
            f"Give the path of a file in a project. {_OMIT_LINE_NUMBER_REMEDY}",
        )
    lines, line_number = _read_file_lines(path), int(match[2])
    if not 0 < line_number <= len(lines):
        raise UsageError(
            f"{shown_path} has no line {line_number}",
            f"It has {format_count(len(lines), 'line')}, counted from 1.",
        )
    if "\ufffd" in lines[line_number - 1]:
        raise UsageError(
            f"Line {line_number} of {shown_path} is not UTF-8",
            f"Sessions contain no such text. {_OMIT_LINE_NUMBER_REMEDY}",
        )
    path = canonical_path(path)
    repository = repository_root(os.path.dirname(path)) or os.path.dirname(path)
    return RequestedLine(
        path,
        os.path.relpath(path, repository),
        frozenset(project_of_folder(repository, where).folders),
        lines,
        line_number,
    )


def _has_sessions_in_project_of_file(file_path: str, where: Where) -> bool:
    """Check whether a session ran in a folder above the file or in another checkout of its repository."""
    folder = os.path.dirname(canonical_path(file_path))
    folders = {folder}
    while (parent := os.path.dirname(folder)) != folder:
        folder = parent
        folders.add(folder)
    if repository := repository_root(os.path.dirname(canonical_path(file_path))):
        folders |= set(project_of_folder(repository, where).folders)
    project_paths = chain.from_iterable(project_folders(checkout, where) for checkout in folders)
    return any(map(os.path.isdir, project_paths))


def _read_file_lines(path: str) -> list[str]:
    shown_path = plain_line(path)
    if os.path.isdir(path):
        raise UsageError(
            f"{shown_path} is a folder, which has no lines",
            "Give the path of a file in the folder.",
        )
    try:
        raw = read_regular_file(path, MAX_FILE_BYTES)
    except OSError as error:
        raise UsageError(
            f"{shown_path} can't be read: {error.strerror}",
            f"Give the path of an existing file. {_OMIT_LINE_NUMBER_REMEDY}",
        ) from error
    if b"\0" in raw:
        raise UsageError(
            f"{shown_path} is a binary file, which has no lines", _OMIT_LINE_NUMBER_REMEDY
        )
    return split_lines(raw.decode("utf-8-sig", "replace"))


def answer_line_search(
    options: Any, scope: Scope, cwd: str, *, max_seconds: float, progress: ProgressCallback | None
) -> SearchResult | None:
    """Return the result of a search for a line, or None if the value of ``--file`` has no line number.

    Raise UsageError if options of a text search are given.
    """
    where: Where = options.where
    requested_line = parse_requested_line(options.file, cwd, where)
    if requested_line is None:
        return None
    if options.words or options.other_wordings or scope.tool or scope.role:
        raise UsageError(
            "Words, --or, --tool and --role can't be combined with a line number",
            "Omit these options or the line number.",
        )
    # Also search the session of the current turn, and the sessions of headless runs. A text search
    # leaves these sessions out, but they may contain the edit that wrote the line.
    scope = scope._replace(
        file=requested_line.relative_path, include_helpers=True, asking_session_id=""
    )
    sought = FileSearch(
        (build_file_name_search_term(requested_line).forms,), make_file_filter(scope, where)
    )

    def search_index_for_line(index: OpenIndex) -> SearchResult:
        return _search_edits_of_line(
            index, requested_line, scope, Query(options.file, (), ()), where
        )

    return search_updated_index(
        search_index_for_line, scope, where, sought, max_seconds=max_seconds, progress=progress
    )


def _search_edits_of_line(
    index: OpenIndex, requested_line: RequestedLine, scope: Scope, query: Query, where: Where
) -> SearchResult:
    files_in_scope = find_files_in_scope(index.db, scope, where)
    sources = Sources(index, files_in_scope.file_ids, where)
    candidates = EditFinder(index, scope, files_in_scope, sources)
    verdict = find_edit_that_wrote_line(
        requested_line.file_lines, requested_line.line_number, candidates.find_edits(requested_line)
    )
    if verdict.edit_record:
        hits = _make_hits(verdict.edit_record, requested_line, query, sources)
    else:
        hits = []
    unread_files = []
    for file in index.unindexed_files:
        if file.term_numbers != frozenset():
            unread_files.append(file)
    notes = [
        *index.notes,
        *([] if hits else notes_on_unknown_values(index.postings, scope)),
        *notes_on_unsearched_folders(
            len(files_in_scope.file_ids) + len(index.unindexed_files),
            unlistable_folders_in_scope(scope, where),
        ),
    ]
    is_capped = candidates.has_too_many_calls
    if is_capped and not hits:
        explanation = f"{verdict.reason}; older edits were not searched"
    else:
        explanation = verdict.reason
    return SearchResult(
        (query,), hits, len(hits), is_capped, explanation, notes, 0, [], len(unread_files)
    )


def _make_hits(
    posting: Posting, requested_line: RequestedLine, query: Query, sources: Sources
) -> list[Hit]:
    """Return a list with one hit: the record of the edit, with the requested line as its snippet.

    Return [] if the record no longer exists.
    """
    turn = TurnHit(
        make_key_from_file_and_number(posting.file_id, posting.turn_number), [posting], 0.0
    )
    hits = HitMaker(sources, [Wording(query, [])]).best_hits([[WordingTurn(0, turn)]], 1).hits
    text = collapse_line(
        plain_line(requested_line.file_lines[requested_line.line_number - 1]),
        MAX_SNIPPET_CHARACTERS,
    )
    highlights = ((0, len(text)),)
    return [
        hit._replace(
            snippet=text,
            marks=highlights,
            confidence=LINE_SEARCH_CONFIDENCE,
            strength=strength_of_confidence(LINE_SEARCH_CONFIDENCE),
        )
        for hit in hits
    ]


def build_file_name_search_term(requested_line: RequestedLine) -> Term:
    """Return the file's name as a search term. The term also finds commands that write the file."""
    name = os.path.basename(requested_line.path)
    return Term(name, tuple(map(tuple, forms_of_word(name))), is_phrase=True)


class EditFinder:
    """Finds the edits of a file in an index.

    Only sessions in ``files_in_scope`` are searched. ``has_too_many_calls`` is true if some calls
    were not read.
    """

    def __init__(
        self, index: OpenIndex, scope: Scope, files_in_scope: FilesInScope, sources: Sources
    ) -> None:
        self._index = index
        self._scope = scope
        self._files_in_scope = files_in_scope
        self._sources = sources
        self.has_too_many_calls = False

    def find_edits(self, requested_line: RequestedLine) -> Iterator[FileEdit[Posting]]:
        """Yield every edit of the file. A read of the file is yielded as an edit without changes."""
        calls = self._find_calls(self._scope)
        if (name_term := build_file_name_search_term(requested_line)).forms:
            name = TermLookups(self._index.postings).look_up_exact_words(name_term)
        else:
            name = None
        if name and name.is_in_index:
            calls += self._find_calls(
                self._scope._replace(file="", tool="Bash", role="call"), [name]
            )
        postings_by_file: dict[int, dict[int, Posting]] = defaultdict(dict)
        for call in calls:
            postings_by_file[call.file_id][call.offset] = call
        for postings in postings_by_file.values():
            file = self._sources.indexed_file(next(iter(postings.values())))
            if file is None:
                continue
            for posting, record, change in _read_changes_with_calls(
                self._sources.readable_path(file), postings
            ):
                folder = get_string(record, "cwd")
                if change.path and requested_line.matches_path(change.path, folder):
                    path = os.path.normpath(os.path.join(folder, change.path))
                    branch, timestamp = (
                        get_string(record, "gitBranch"),
                        get_string(record, "timestamp"),
                    )
                    yield FileEdit(
                        posting,
                        file.session_id,
                        path,
                        branch,
                        timestamp,
                        change.hunks,
                        change.is_content_unknown,
                    )

    def _find_calls(self, scope: Scope, lookups: Sequence[Lookup] = ()) -> list[Posting]:
        search_limits = conditions_of_scope(
            self._index.db,
            self._index.postings,
            scope,
            self._files_in_scope.file_ids,
            self._files_in_scope.file_count,
        )
        ranking = Ranking(self._index.postings, search_limits, (), None)
        postings = ranking.matching_records(MAX_CALLS_TO_READ, lookups)
        self.has_too_many_calls = self.has_too_many_calls or ranking.has_unread_records
        return postings


def _read_changes_with_calls(
    path: str, postings: Mapping[int, Posting]
) -> Iterator[tuple[Posting, Record, FileChange]]:
    """Yield the changes that the calls in a transcript made.

    Each change comes with the posting and the record of its call. ``postings`` maps offsets in the
    transcript to postings. A call without a result is skipped.
    """
    open_calls: dict[str, tuple[Posting, Record, Record]] = {}
    last_offset = max(postings)
    # Ignore errors, because the file may have been deleted.
    with contextlib.suppress(OSError), open_regular(path, follow=False) as stream:
        for line in read_lines(stream, stream.seek(min(postings))):
            posting = postings.get(line.offset)
            if posting or any(call_id.encode() in line.raw for call_id in open_calls):
                record = records.parse_record(line.body) or {}
                for block in records.list_calls(record):
                    if posting:
                        open_calls[get_string(block, "id")] = (posting, record, block)
                for block in records.list_results(record):
                    if waiting_call := open_calls.pop(get_string(block, "tool_use_id"), None):
                        posting, call_posting, call = waiting_call
                        for change in read_file_changes_of_call(
                            call, block, records.tool_details(record)
                        ):
                            yield posting, call_posting, change
            if line.offset >= last_offset and not open_calls:
                return
