"""Find the texts that the client inserts into a prompt.

The client inserts reminders, opened files, the output of commands, and pasted texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_OPENING_TAG_PATTERN = (
    r"<(system-reminder|ide_\w{1,40}|local-command-\w{1,20}|command-\w{1,20}|pasted_content)"
    r"\b[^<>]*>"
)
_PASTE_TAG_NAME = "pasted_content"
# After this many unclosed tags, the remaining text is treated as the user's own text.
_MAX_UNCLOSED_TAGS = 20


def remove_inserted_texts(text: str, replace_pasted_text: Callable[[str], str]) -> str:
    """Return a prompt without the texts that the client inserted.

    ``replace_pasted_text`` is called with each text that the user pasted, and returns its replacement.
    """
    if "<" not in text:
        return text.strip()
    parts, position, unclosed_tags = [], 0, 0
    for tag in _compile_opening_tag_pattern().finditer(text):
        if tag.start() < position:
            continue
        closing_tag = f"</{tag[1]}>"
        end = text.find(closing_tag, tag.end())
        if end >= 0:
            parts.append(text[position : tag.start()])
            if tag[1] == _PASTE_TAG_NAME:
                parts.append(replace_pasted_text(text[tag.end() : end]))
            position = end + len(closing_tag)
        else:
            unclosed_tags += 1
            if unclosed_tags > _MAX_UNCLOSED_TAGS:
                break
    return "".join([*parts, text[position:]]).strip()


def remove_insertions(text: str) -> str:
    """Return a prompt with the user's words and pasted texts, but without other inserted texts."""
    return remove_inserted_texts(text, str)


@lru_cache(maxsize=1)
def _compile_opening_tag_pattern() -> re.Pattern[str]:
    return re.compile(_OPENING_TAG_PATTERN)
