"""Run ``search`` for a program that reads the answer, for example a model.

This module does not use click, because importing click takes a tenth of the time of a search. It
parses only the most common options. Click handles every other command line and reports failures.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from resume_hooks.cli.output import (
    COMPLETION_VARIABLE,
    DEFAULT_MAX_CHARACTERS,
    find_colour_preference,
    replace_unencodable_characters,
    show_work_progress,
)
from resume_hooks.cli.search_answer import MAX_INDEX_UPDATE_SECONDS, print_search_result
from resume_hooks.paths import Where, canonical_path
from resume_hooks.search.roles import DEFAULT_MAX_SEARCH_HITS, MAX_SEARCH_HITS
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import Scope, current_project_scope

SEARCH_VERB = "search"


class ParsedSearchCommand(NamedTuple):
    """A parsed command line of ``search``.

    ``words`` are the words of the question. ``other_wordings`` are the values of ``--or``.
    """

    words: tuple[str, ...]
    other_wordings: tuple[str, ...]
    covers_all_projects: bool
    as_json: bool
    max_hits: int


def answer_plain_search(arguments: Sequence[str]) -> bool:
    """Answer a plain search without click.

    Return False, without printing anything, if the arguments need click's parser.
    """
    request = parse_plain_search(arguments)
    if request is None or COMPLETION_VARIABLE in os.environ:
        return False
    if sys.stdout is None or sys.stdout.isatty() or find_colour_preference(os.environ):
        return False
    replace_unencodable_characters()
    try:
        _print_hits(request, arguments)
    except Exception:  # noqa: BLE001 - click's run meets the same failure, and reports or logs it
        return False
    return True


def parse_plain_search(arguments: Sequence[str]) -> ParsedSearchCommand | None:
    """Return the parsed command line, or None if it has an option that only click can parse."""
    if arguments[:1] != [SEARCH_VERB]:
        return None
    words, wordings, flags, max_hits = (
        list[str](),
        list[str](),
        set[str](),
        str(DEFAULT_MAX_SEARCH_HITS),
    )
    remaining_words = iter(arguments[1:])
    for word in remaining_words:
        if word == "--":
            words += remaining_words
        elif word in {"--all", "--json"}:
            flags.add(word)
        elif word == "--or":
            wordings.append(next(remaining_words, ""))
        elif word == "--limit":
            max_hits = next(remaining_words, "")
        elif word.startswith("-"):
            return None
        else:
            words.append(word)
    is_option = any(word.startswith("--") for word in words)
    is_number = max_hits.isascii() and max_hits.isdigit() and 1 <= int(max_hits) <= MAX_SEARCH_HITS
    if is_option or not is_number or not all(wordings):
        return None
    return ParsedSearchCommand(
        tuple(words), tuple(wordings), "--all" in flags, "--json" in flags, int(max_hits)
    )


def _print_hits(request: ParsedSearchCommand, arguments: Sequence[str]) -> None:
    where = Where()
    if request.covers_all_projects:
        scope, scope_name = Scope(), "all"
    else:
        scope_name = canonical_path(os.getcwd())
        scope = current_project_scope(scope_name, where)
    scope = scope._replace(asking_session_id=where.environ.get("CLAUDE_CODE_SESSION_ID", ""))
    with show_work_progress("Indexing", quiet=request.as_json) as progress:
        result = search_index(
            request.words,
            scope,
            where,
            other_wordings=request.other_wordings,
            max_hits=request.max_hits,
            max_seconds=MAX_INDEX_UPDATE_SECONDS,
            progress=progress,
        )
    print_search_result(
        result, scope_name, arguments, as_json=request.as_json, max_chars=DEFAULT_MAX_CHARACTERS
    )
