"""Helpers for the search tests, which write sessions, search them, and read the hits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from resume_hooks.search.result import SearchResult
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import Scope
from tests.builders import CWD, ConfigHome, Record, assistant, session_id, user, write_session
from tests.search.index.probe import OLD_FILE_TIME, uuid_of_text


def write_talk(
    home: ConfigHome, session_number: int, *messages: str | Record, cwd: str = CWD, **fields: Any
) -> Path:
    """Write a session in which a user and the model speak in turn, a minute apart.

    A record in ``messages`` is written unchanged.
    """
    records: list[Record | bytes] = []
    for place, words in enumerate(messages):
        if isinstance(words, dict):
            records.append(words)
            continue
        make = assistant if place % 2 else user
        where: dict[str, Any] = {
            "ts": 60 * place,
            "session_id": session_id(session_number),
            "cwd": cwd,
            **fields,
        }
        records.append(make(words, uuid=uuid_of_text(f"{session_number}-{place}"), **where))
    return Path(
        write_session(home.project(cwd), session_id(session_number), records, mtime=OLD_FILE_TIME)
    )


def search_home(
    home: ConfigHome,
    *words: str,
    other_wordings: Sequence[str] = (),
    max_hits: int = 10,
    **scope: Any,
) -> SearchResult:
    """Return the result of a search, which covers all sessions unless ``scope`` limits it.

    ``other_wordings`` has further wordings of the question.
    """
    return search_index(
        words, Scope(**scope), home.where, other_wordings=other_wordings, max_hits=max_hits
    )


def session_numbers(result: SearchResult) -> list[int]:
    """Return the number of each hit's session, the best hit first."""
    return [int(hit.session_id[:8], 16) for hit in result.hits]


def session_and_line_numbers_of_hits(result: SearchResult) -> list[tuple[int, int]]:
    """Return the hits as pairs of session number and line number, sorted."""
    return sorted(
        (int(hit.session_id[:8], 16), int(hit.reference.rpartition(":")[2])) for hit in result.hits
    )


def marked_words(result: SearchResult) -> set[str]:
    """Return the words that are marked in the hits' snippets."""
    return {hit.snippet[start:end] for hit in result.hits for start, end in hit.marks}


def session_ids(numbers: Iterable[int]) -> frozenset[str]:
    """Return the session ids that belong to these numbers."""
    return frozenset(map(session_id, numbers))
