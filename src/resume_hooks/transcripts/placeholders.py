"""Placeholders: the text that stands for trimmed content, readable by models and people, and how to know one again."""

from __future__ import annotations

import re
from typing import NamedTuple

SHORTEST = 72
"""Characters that no placeholder of ours falls short of; what is not longer is never trimmed."""

_OURS = re.compile(
    r"\[[^\[\]\n]{1,200} (?:suppressed|trimmed) - original (?:content )?was [\d,]+ (?:characters|tokens)"
)
"""The opening of a placeholder, ours or another tool's of the field."""

_THEIRS = re.compile(r"\[\.\.\.truncated [^\n]*\]\Z|\(original was [\d,]+ chars\)\.\Z")
"""What another tool of the field puts at the end of a text that it cut."""

REACH = 1_000
"""Characters at the start of a text among which a placeholder of ours stands; what is quoted farther on is none."""

THEIR_REACH = 4_500
"""Characters at the end of a text that another tool's notice fits in; it names a file."""

_RESPONSE = ("[Claude response trimmed - ", "[Assistant message trimmed - ")


class Reference(NamedTuple):
    """Where the original is: the session that holds it, and its record (0-based line)."""

    session_id: str
    record: int

    def __str__(self) -> str:
        """The short form: the first eight characters of an id name a session, at a fifth of the tokens."""
        return f"{self.session_id[:8]}:{self.record}"


def for_result(tool: str, characters: int, original: Reference, why: str = "") -> str:
    """What stands for the output of a tool."""
    return _text(f"Results from {_word(tool)} tool suppressed", f"content was {characters:,} characters", original, why)


def for_input(tool: str, characters: int, original: Reference, why: str = "") -> str:
    """What stands for an input of a tool."""
    return _text(f"Input of {_word(tool)} tool suppressed", f"content was {characters:,} characters", original, why)


def for_text(characters: int, original: Reference, why: str = "") -> str:
    """What stands for something the model said."""
    return _text("Claude response trimmed", f"was {characters:,} characters", original, why)


def for_media(tokens: int, original: Reference, why: str = "") -> str:
    """What stands for an image or a document; their cost is in tokens."""
    return _text("Image or document suppressed", f"content was {tokens:,} tokens", original, why)


def for_pasted(characters: int, original: Reference, why: str = "") -> str:
    """What stands for the middle of a long prompt."""
    return _text("Pasted text suppressed", f"content was {characters:,} characters", original, why)


def for_attachment(characters: int, original: Reference, why: str = "") -> str:
    """What stands for something that the client attached."""
    return _text("Attachment suppressed", f"content was {characters:,} characters", original, why)


def stands_for_something(text: str) -> bool:
    """Whether ``text`` holds a placeholder: such a text is never trimmed again, or its way back would be lost."""
    return _OURS.search(text, 0, REACH) is not None or _was_cut(text)


def is_placeholder(text: str) -> bool:
    """Whether ``text`` is a placeholder from its start: a quick look, for contents that are replaced as a whole."""
    return (text.startswith("[") and _OURS.match(text) is not None) or _was_cut(text)


def stands_for_answer(text: str) -> bool:
    """Whether ``text`` stands for something the model said."""
    return text.startswith(_RESPONSE) and is_placeholder(text)


def _was_cut(text: str) -> bool:
    return text.endswith((" chars).", "]")) and _THEIRS.search(text[-THEIR_REACH:]) is not None


def _text(what: str, size: str, original: Reference, why: str) -> str:
    return f"[{what} - original {size}; original: {original}{f'; {why}' if why else ''}]"


def _word(name: str) -> str:
    """A name out of a transcript as one word of a placeholder."""
    return re.sub(r"[\s\[\]]+", "_", name)[:80] or "a"


UNANSWERED = "Interrupted: no result of this call was recorded. It may have taken effect; check before you repeat it."
