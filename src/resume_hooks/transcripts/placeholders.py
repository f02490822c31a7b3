"""Write and recognize the placeholders that replace trimmed content.

Both models and people can read placeholders.
"""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from resume_hooks.paths import is_session_id, session_id_from_path
from resume_hooks.system.text import replace_surrogates
from resume_hooks.transcripts.records import Record, get_string

# Length of our shortest placeholder in characters. Content that is not longer is never trimmed.
MIN_PLACEHOLDER_CHARACTERS = 72

_OUR_PLACEHOLDER_PATTERN = re.compile(
    r"\[[^\[\]\n]{1,200} (?:suppressed|trimmed) - original (?:content )?was [\d,]+ (?:characters|tokens)"
)
"""Matches the start of a placeholder that this plugin or another trimming tool wrote."""

_OTHER_TOOLS_NOTICE_PATTERN = re.compile(
    r"\[\.\.\.truncated [^\n]*\]\Z|\(original was [\d,]+ chars\)\.\Z"
)
"""Matches the notice that another trimming tool writes at the end of a text that it cut."""

# A placeholder starts at most this number of characters after the start of a text.
MAX_PLACEHOLDER_START_OFFSET = 1_000
MAX_CHARACTERS_SEARCHED_FOR_NOTICE = (
    # This number of characters at the end of a text is searched for another tool's notice. The
    # notice may be long, because it contains a file name.
    4_500
)
_RESPONSE_PLACEHOLDER_BEGINNINGS = ("[Claude response trimmed - ", "[Assistant message trimmed - ")
MISSING_RESULT_TEXT = (
    "Interrupted: no result of this call was recorded. It may have taken effect; check "
    "before you repeat it."
)


class OriginalReference(NamedTuple):
    """The record that contains the original of trimmed content: its session and its line.

    ``line_number`` is counted from 0.
    """

    session_id: str
    line_number: int

    def __str__(self) -> str:
        """The short form of the reference, for example ``1a2b3c4d:56``.

        It contains only the first characters of the session's id, and so needs a fifth of the
        tokens that the full id needs. A version 7 id starts with its creation time, and its first
        eight characters are the same for all sessions created within a minute. For such ids, 13
        characters are used.
        """
        return f"{self.session_id[: 13 if self.session_id[14:15] == '7' else 8]}:{self.line_number}"


def result_placeholder(
    tool: str, character_count: int, original: OriginalReference, reason: str = ""
) -> str:
    """Return the placeholder for a tool's output."""
    return _format_placeholder(
        f"Results from {_replace_separators_in_tool_name(tool)} tool suppressed",
        f"content was {character_count:,} characters",
        original,
        reason,
    )


def input_placeholder(
    tool: str, character_count: int, original: OriginalReference, reason: str = ""
) -> str:
    """Return the placeholder for a tool's input."""
    return _format_placeholder(
        f"Input of {_replace_separators_in_tool_name(tool)} tool suppressed",
        f"content was {character_count:,} characters",
        original,
        reason,
    )


def response_placeholder(
    character_count: int, original: OriginalReference, reason: str = ""
) -> str:
    """Return the placeholder for a text of the model."""
    return _format_placeholder(
        "Claude response trimmed", f"was {character_count:,} characters", original, reason
    )


def media_placeholder(tokens: int, original: OriginalReference, reason: str = "") -> str:
    """Return the placeholder for an image or a document of ``tokens`` tokens."""
    return _format_placeholder(
        "Image or document suppressed", f"content was {tokens:,} tokens", original, reason
    )


def pasted_text_placeholder(
    character_count: int, original: OriginalReference, reason: str = ""
) -> str:
    """Return the placeholder for pasted text that was removed from the middle of a long prompt."""
    return _format_placeholder(
        "Pasted text suppressed", f"content was {character_count:,} characters", original, reason
    )


def attachment_placeholder(
    character_count: int, original: OriginalReference, reason: str = ""
) -> str:
    """Return the placeholder for an attachment that the client added."""
    return _format_placeholder(
        "Attachment suppressed", f"content was {character_count:,} characters", original, reason
    )


def contains_placeholder(text: str) -> bool:
    """Check whether ``text`` contains a placeholder.

    A text with a placeholder must not be trimmed again, because the reference to the original would
    be lost.
    """
    return _OUR_PLACEHOLDER_PATTERN.search(
        text, 0, MAX_PLACEHOLDER_START_OFFSET
    ) is not None or was_cut_by_other_tool(text)


def is_placeholder(text: str) -> bool:
    """Check whether ``text`` consists of one placeholder.

    A trim replaces content as a whole, so a placeholder must be the whole text. If a program
    printed a placeholder and then other output, the result is false.
    """
    if not text.startswith("[") or len(text) > MAX_PLACEHOLDER_START_OFFSET or "\n" in text.strip():
        return False
    return text.rstrip().endswith("]") and _OUR_PLACEHOLDER_PATTERN.match(text) is not None


def was_trimmed(text: str) -> bool:
    """Check whether ``text`` is a placeholder or was cut by another tool.

    In both cases the text must not be trimmed again.
    """
    return is_placeholder(text) or was_cut_by_other_tool(text)


def was_cut_by_other_tool(text: str) -> bool:
    """Check whether ``text`` ends with a notice of another trimming tool."""
    return (
        text.endswith((" chars).", "]"))
        and _OTHER_TOOLS_NOTICE_PATTERN.search(text[-MAX_CHARACTERS_SEARCHED_FOR_NOTICE:])
        is not None
    )


def is_response_placeholder(text: str) -> bool:
    """Check whether ``text`` is the placeholder for a text that the model wrote."""
    return text.startswith(_RESPONSE_PLACEHOLDER_BEGINNINGS) and is_placeholder(text)


def _format_placeholder(
    content_name: str, size: str, original: OriginalReference, reason: str
) -> str:
    return (
        f"[{content_name} - original {size}; original: {original}{f'; {reason}' if reason else ''}]"
    )


def _replace_separators_in_tool_name(name: str) -> str:
    """Return a tool's name as one word, without characters that could end a placeholder."""
    return re.sub(r"[\s\[\]]+", "_", name)[:80] or "a"


class Origin(NamedTuple):
    """The record that contains the original of trimmed content.

    ``session_id`` and ``file_path`` are the id and the file of the session that contains the
    record. ``line_number`` is counted from 0.
    """

    session_id: str
    file_path: str
    uuid: str
    line_number: int

    @property
    def original_reference(self) -> OriginalReference:
        """The short reference to the original, in the form used in placeholders."""
        return OriginalReference(self.session_id, self.line_number)

    def make_trim_fields(self, block_index: int) -> dict[str, Any]:
        """Return the fields to add to a trimmed record.

        ``block_index`` is the index of the first trimmed block.
        """
        return {
            "truncated": True,
            "original_session": replace_surrogates(self.file_path),
            "original_session_id": self.session_id,
            "original_uuid": self.uuid,
            "original_index": self.line_number,
            "original_block": block_index,
        }


TRIM_FIELD_NAMES = frozenset(Origin("", "", "", 0).make_trim_fields(0))
"""The names of the fields that are added to a trimmed record.

The fields are also added to the trimmed lines of another agent's session.
"""


def read_origin(record: Record) -> Origin | None:
    """Return the origin that a trimmed record names, in our fields or in those of another tool.

    Return None if the fields are invalid. The named file is not trusted: before you open it, check
    that it is a session with the named id.
    """
    recorded_id, file, index = (
        get_string(record, "original_session_id"),
        get_string(record, "original_session"),
        None,
    )
    if isinstance(record.get("original_index"), int) and not isinstance(
        record["original_index"], bool
    ):
        index = record["original_index"]
    # If a transcript was trimmed by its path, its file name may not be a session id.
    is_name_of_file = recorded_id == os.path.splitext(os.path.basename(file))[0]
    if is_session_id(recorded_id) or is_name_of_file:
        session_id = recorded_id
    else:
        session_id = session_id_from_path(file) or ""
    if index is None or index < 0 or not (file or session_id):
        return None
    return Origin(
        session_id, file, get_string(record, "original_uuid") or get_string(record, "uuid"), index
    )
