"""Write the lineage block at the start of a fresh child.

The block begins with ``[SESSION LINEAGE]``, lists the child's ancestors, and says how to read them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from resume_hooks.clock import format_minute
from resume_hooks.sessions.child_titles import displayed_kind
from resume_hooks.system.text import (
    TAG_BRACKET,
    collapse_line,
    plain_line,
    plain_text,
    replace_matches,
)
from resume_hooks.transcripts.head_tail import MAX_TITLE_CHARACTERS

if TYPE_CHECKING:
    from resume_hooks.sessions.lineage import Ancestor

LINEAGE_START_MARKER = "[SESSION LINEAGE]"
LINEAGE_END_MARKER = "[/SESSION LINEAGE]"
# Maximum numbers of ancestors to list at the beginning and at the end of a long lineage.
MAX_FIRST_ANCESTORS, MAX_LAST_ANCESTORS = (
    2,
    10,
)
_MARKER_PATTERN = re.compile(r"\[\s*(?:(/)\s*)?(SESSION\s+LINEAGE)\s*\]", re.IGNORECASE)
_ANCESTOR_NUMBER_PATTERN = re.compile(r"\d+\. ")
_FILE_INDENT = "   "
_CLIENT_TAG_START_PATTERN = re.compile(
    r"<(?=\s*(?:/\s*)?(?:session\s+lineage|system-reminder|system|user-prompt-submit-hook|"
    r"local-command-\w+|command-(?:name|message|args)|bash-\w+|task-notification|agent-\w+|teammate-\w+|ide_\w+|function_\w+|invoke|antml:\w+)\b)",
    re.IGNORECASE,
)
_SEARCHER_ADVICE = "the session-searcher agent or "
_READING_ADVICE = (
    "Context from parent sessions may be relevant: use {}the session-search skill "
    "(outline, read, search --lineage); don't read these files whole."
)


def render_lineage_block(
    ancestors: Sequence[Ancestor],
    *,
    title: str,
    session_id: str,
    file: str,
    created_at: str,
    has_searcher: bool = True,
) -> str:
    """Return the lineage block of a child.

    ``ancestors`` are listed in the given order, which is oldest first, followed by the child
    itself. ``title``, ``session_id``, ``file`` and ``created_at`` describe the child.
    ``has_searcher`` is true if the child's client can run the plugin's session-searcher agent.
    """
    lines = [LINEAGE_START_MARKER, "This session continues from previous work (oldest first):"]
    for number, ancestor in enumerate(ancestors, 1):
        if (
            len(ancestors) > MAX_FIRST_ANCESTORS + MAX_LAST_ANCESTORS
            and MAX_FIRST_ANCESTORS < number <= len(ancestors) - MAX_LAST_ANCESTORS
        ):
            if number == MAX_FIRST_ANCESTORS + 1:
                lines.append(
                    f"... and {len(ancestors) - MAX_FIRST_ANCESTORS - MAX_LAST_ANCESTORS} more"
                )
            continue
        lines.append(f"{number}. {_describe_ancestor(ancestor)}")
        if ancestor.session_file:
            lines.append(f"{_FILE_INDENT}{_make_line_safe_for_block(ancestor.session_file)}")
    current_row = f"{_make_title_safe_for_block(title)} · {session_id} · {format_minute(created_at)} · this session"
    lines += [
        f"{len(ancestors) + 1}. {current_row}",
        f"{_FILE_INDENT}{_make_line_safe_for_block(file)}",
    ]
    advice = _READING_ADVICE.format(_SEARCHER_ADVICE if has_searcher else "")
    return "\n".join([*lines, advice, LINEAGE_END_MARKER])


def describe_move(old_home: str, new_home: str) -> str:
    """Return the sentence that tells the model that the session was moved to another folder.

    The sentence names both folders and follows the lineage block.
    """
    old_folder, new_folder = map(_make_line_safe_for_block, (old_home, new_home))
    return (
        f"Its project was {old_folder} and is {new_folder} now: read a path below the "
        "old folder as the same path below the new one."
    )


def shorten_lineage_block(block: str, max_characters: int) -> str:
    """Shorten a block to ``max_characters``, which must be at least 1,000.

    Ancestors in the middle are left out first. If that is not enough, the paths of the files are
    also left out.
    """
    lines = block.split("\n")
    rows = []
    for index, line in enumerate(lines):
        if _ANCESTOR_NUMBER_PATTERN.match(line):
            rows.append(index)
    for row_index in rows[2:-1]:
        if len(block) <= max_characters:
            break
        omitted_count = int(lines[row_index].partition(".")[0]) - 2
        block = "\n".join([*lines[: rows[1]], f"... and {omitted_count} more", *lines[row_index:]])
    # Without paths, a reader can still find the sessions by their ids.
    if len(block) > max_characters:
        block = "\n".join(line for line in block.split("\n") if not line.startswith(_FILE_INDENT))
    return block


def format_bytes(size: int) -> str:
    """Return a size for people: ``812 B``, ``4.1 KB`` or ``52.4 MB``."""
    if size < 1_000:
        return f"{size} B"
    if size < 1_000_000:
        return f"{size / 1_000:.1f} KB"
    return f"{size / 1_000_000:.1f} MB"


def _describe_ancestor(ancestor: Ancestor) -> str:
    # Imported here because the import takes 3 ms, and a search does not need it.
    from resume_hooks.sessions.lineage import MISSING_STATUS, REMARKS_BY_STATUS

    session_id = _make_line_safe_for_block(ancestor.session_id) or "(id unknown)"
    if ancestor.status == MISSING_STATUS:
        return f"(file gone) · {session_id} · {displayed_kind(ancestor.derivation_type)}"
    creation_minute = _make_line_safe_for_block(format_minute(ancestor.created_at))
    dates = f"{creation_minute} .. {_make_line_safe_for_block(format_minute(ancestor.ended_at))}"
    remark = REMARKS_BY_STATUS.get(ancestor.status, "")
    size, derivation = format_bytes(ancestor.size), displayed_kind(ancestor.derivation_type)
    return f"{_make_title_safe_for_block(ancestor.title)} · {session_id} · {dates} · {size} · {derivation}{remark}"


def _make_title_safe_for_block(text: str) -> str:
    return _make_line_safe_for_block(collapse_line(plain_text(text), MAX_TITLE_CHARACTERS))


def replace_block_markers(text: str) -> str:
    """Replace the brackets of the block's markers and of tags that resemble the client's.

    Text from a session must not end the block or pretend to be from the client. Markers and tags
    are also found if they are disguised with full-width letters, spaces or invisible characters. In
    that case, the whole text is reduced to plain letters.
    """
    if text.isascii() and "[" not in text and "<" not in text:
        return text  # Most texts contain no marker, so this check saves time.
    return replace_matches(
        text, ((_MARKER_PATTERN, r"(\1\2)"), (_CLIENT_TAG_START_PATTERN, TAG_BRACKET))
    )


def _make_line_safe_for_block(text: str) -> str:
    return replace_block_markers(plain_line(text))
