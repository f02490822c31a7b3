"""Print the answer to ``search``, as text or JSON."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

from resume_hooks.cli.output import SchemaData, print_answer
from resume_hooks.search.hits import Hit
from resume_hooks.search.result import ProvisionalSession, SearchResult
from resume_hooks.search.result_text import Style, leave_unstyled, result_text
from resume_hooks.system.invocation import is_in_model_shell, shell_command

# the maximum number of characters of a command that the answer repeats
MAX_COMMAND_CHARACTERS = 120
# the time limit in seconds for updating the index; after this time, search uses the index as it is
MAX_INDEX_UPDATE_SECONDS = 1.5


def print_search_result(
    result: SearchResult,
    scope: str,
    arguments: Sequence[str],
    *,
    as_json: bool,
    max_chars: int,
    mark_style: Style = leave_unstyled,
    title_style: Style = leave_unstyled,
) -> None:
    """Print the turns that a search found, as text or as a JSON document.

    ``scope`` names the searched sessions in the JSON document. ``arguments`` are the command line's
    arguments. The text repeats them in the command that shows more hits. ``max_chars`` is 0
    for no limit.
    """
    max_characters = 0
    if max_chars:
        max_characters = max(1, max_chars - 1)  # The limit includes the line feed at the end.
    command = _make_command_without_output_limits(arguments)

    def format_search_result() -> str:
        return result_text(
            result,
            max_characters,
            mark_style=mark_style,
            title_style=title_style,
            command=command,
            for_model=is_in_model_shell(),
        )

    print_answer(
        "search",
        _make_json_data(result, scope),
        format_search_result,
        as_json=as_json,
        warnings=result.notes,
    )


def _make_command_without_output_limits(arguments: Sequence[str]) -> str:
    """Return the typed command without ``--limit`` and ``--max-chars``.

    Return ``""`` if the command is too long to repeat.
    """
    command = re.sub(r" --(limit|max-chars)[ =]\d+", "", shlex.join(arguments))
    if 0 < len(command) <= MAX_COMMAND_CHARACTERS:
        return shell_command(command)
    return ""


def _make_json_data(result: SearchResult, scope: str) -> SchemaData:
    query, *other_wordings = result.wordings
    return SchemaData(
        {
            "query": query,
            "also": other_wordings,
            "scope": scope,
            "how": result.interpretation,
            "nothing_close": result.has_only_weak_hits,
            "total": result.matching_turn_count,
            "more": result.has_more,
            "hits": [_make_hit_data(hit) for hit in result.hits],
            "helpers_left_out": result.omitted_run_count,
            "provisional": [
                _make_provisional_session_data(session) for session in result.provisional_sessions
            ],
            "unread": result.unindexed_file_count,
        }
    )


def _make_hit_data(hit: Hit) -> dict[str, Any]:
    return {
        "reference": hit.reference,
        "agent": hit.agent,
        "session_id": hit.session_id,
        "session_file": hit.session_file,
        "file": hit.file,
        "folder": hit.folder,
        "title": hit.title,
        "turn": hit.turn_number,
        "role": hit.role,
        "tool": hit.tool,
        "time": hit.time,
        "snippet": hit.snippet,
        "words": hit.words,
        "missing": hit.missing_words,
        "sessions": hit.session_ids,
        "same": hit.repetition_count,
        "score": hit.score,
        "confidence": hit.confidence,
        "strength": hit.strength,
        "found_by": hit.wording_numbers,
        "headless": hit.is_headless,
        "commands": {
            "read": f"resume-hooks read {shlex.quote(hit.reference)}",
            "resume": hit.resume_command,
            "handoff": f"resume-hooks handoff {hit.session_id}",
        },
    }


def _make_provisional_session_data(session: ProvisionalSession) -> dict[str, Any]:
    return {
        "session_id": session.session_id,
        "file": session.file,
        "title": session.title,
        "words": session.words,
        "missing": session.missing_words,
    }
