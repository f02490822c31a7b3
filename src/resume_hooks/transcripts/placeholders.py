"""Placeholders: the text that stands for trimmed content, readable by models and people, and how to know one again."""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from resume_hooks.paths import is_session_id, session_id_from_path
from resume_hooks.system.text import replace_surrogates
from resume_hooks.transcripts.records import Record, string

SHORTEST = (
    72  # characters that no placeholder of ours falls short of; what is not longer is never trimmed
)

_OURS = re.compile(
    r"\[[^\[\]\n]{1,200} (?:suppressed|trimmed) - original (?:content )?was [\d,]+ (?:characters|tokens)"
)
"""The opening of a placeholder, ours or another tool's of the field."""

_THEIRS = re.compile(r"\[\.\.\.truncated [^\n]*\]\Z|\(original was [\d,]+ chars\)\.\Z")
"""What another tool of the field puts at the end of a text that it cut."""

REACH = 1_000  # characters at the start of a text among which a placeholder of ours stands, none farther on
THEIR_REACH = (
    4_500  # characters at the end of a text that another tool's notice fits in; it names a file
)
_RESPONSE = ("[Claude response trimmed - ", "[Assistant message trimmed - ")
UNANSWERED = (
    "Interrupted: no result of this call was recorded. It may have taken effect; check "
    "before you repeat it."
)


class OriginalReference(NamedTuple):
    """Where the original is: the session that holds it, and its record (0-based line)."""

    session_id: str
    record: int

    def __str__(self) -> str:
        """The short form: the first characters of an id name a session, at a fifth of the tokens.

        An id of version 7 begins with the instant: eight characters are those of every session of
        the same minute.
        """
        return f"{self.session_id[: 13 if self.session_id[14:15] == '7' else 8]}:{self.record}"


def for_result(tool: str, characters: int, original: OriginalReference, why: str = "") -> str:
    """What stands for the output of a tool."""
    return _placeholder_text(
        f"Results from {_one_word(tool)} tool suppressed",
        f"content was {characters:,} characters",
        original,
        why,
    )


def for_input(tool: str, characters: int, original: OriginalReference, why: str = "") -> str:
    """What stands for an input of a tool."""
    return _placeholder_text(
        f"Input of {_one_word(tool)} tool suppressed",
        f"content was {characters:,} characters",
        original,
        why,
    )


def for_text(characters: int, original: OriginalReference, why: str = "") -> str:
    """What stands for something the model said."""
    return _placeholder_text(
        "Claude response trimmed", f"was {characters:,} characters", original, why
    )


def for_media(tokens: int, original: OriginalReference, why: str = "") -> str:
    """What stands for an image or a document; their cost is in tokens."""
    return _placeholder_text(
        "Image or document suppressed", f"content was {tokens:,} tokens", original, why
    )


def for_pasted(characters: int, original: OriginalReference, why: str = "") -> str:
    """What stands for the middle of a long prompt."""
    return _placeholder_text(
        "Pasted text suppressed", f"content was {characters:,} characters", original, why
    )


def for_attachment(characters: int, original: OriginalReference, why: str = "") -> str:
    """What stands for something that the client attached."""
    return _placeholder_text(
        "Attachment suppressed", f"content was {characters:,} characters", original, why
    )


def stands_for_something(text: str) -> bool:
    """Whether ``text`` holds a placeholder: such a text is never trimmed again, or its way back would be lost."""
    return _OURS.search(text, 0, REACH) is not None or was_cut(text)


def is_placeholder(text: str) -> bool:
    """Whether ``text`` is a placeholder and nothing else: a quick look, for contents that are replaced as a whole.

    A program can print a placeholder, too: what goes on behind it is its own.
    """
    if not text.startswith("[") or len(text) > REACH or "\n" in text.strip():
        return False
    return text.rstrip().endswith("]") and _OURS.match(text) is not None


def was_trimmed(text: str) -> bool:
    """Whether ``text`` is a placeholder, or another tool cut it: it is never trimmed again."""
    return is_placeholder(text) or was_cut(text)


def was_cut(text: str) -> bool:
    """Whether another tool of the field cut ``text`` and said so at its end."""
    return text.endswith((" chars).", "]")) and _THEIRS.search(text[-THEIR_REACH:]) is not None


def stands_for_answer(text: str) -> bool:
    """Whether ``text`` stands for something the model said."""
    return text.startswith(_RESPONSE) and is_placeholder(text)


def _placeholder_text(what: str, size: str, original: OriginalReference, why: str) -> str:
    return f"[{what} - original {size}; original: {original}{f'; {why}' if why else ''}]"


def _one_word(name: str) -> str:
    """A name out of a transcript as one word of a placeholder."""
    return re.sub(r"[\s\[\]]+", "_", name)[:80] or "a"


class Origin(NamedTuple):
    """The record that holds the original: its session (id and file), its uuid, its 0-based line."""

    session_id: str
    file: str
    uuid: str
    record: int

    @property
    def reference(self) -> OriginalReference:
        """What a placeholder names."""
        return OriginalReference(self.session_id, self.record)

    def marks(self, block: int) -> dict[str, Any]:
        """The fields of a trimmed record; ``block`` is the first one that was trimmed."""
        return {
            "truncated": True,
            "original_session": replace_surrogates(self.file),
            "original_session_id": self.session_id,
            "original_uuid": self.uuid,
            "original_index": self.record,
            "original_block": block,
        }


MARKS = frozenset(Origin("", "", "", 0).marks(0))
"""The fields that a trimmed record has, and a trimmed line of another agent's session."""


def origin_of(record: Record) -> Origin | None:
    """What a trimmed record says of its original, another tool's marks included.

    None if it can't be followed.

    The file is untrusted: it is never opened before it is found to be a session of that id.
    """
    said, file, index = (
        string(record, "original_session_id"),
        string(record, "original_session"),
        None,
    )
    if isinstance(record.get("original_index"), int) and not isinstance(
        record["original_index"], bool
    ):
        index = record["original_index"]
    named_so = (
        said == os.path.splitext(os.path.basename(file))[0]
    )  # a file that was trimmed by its path
    if is_session_id(said) or named_so:
        session_id = said
    else:
        session_id = session_id_from_path(file) or ""
    if index is None or index < 0 or not (file or session_id):
        return None
    return Origin(
        session_id, file, string(record, "original_uuid") or string(record, "uuid"), index
    )
