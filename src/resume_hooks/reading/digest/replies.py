"""Short replies, such as "3", "yes" or "the second", and the words of the previous answer that they refer to.

Replies are matched with the labels in the answer's lists and with its last question. A reply that
is clear by itself, or that matches nothing, refers to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from resume_hooks.reading.digest import prose
from resume_hooks.redaction.lazy_patterns import compile_lazily

LONGEST = 48  # the maximum characters of a short reply
MOST_WORDS = 7  # the maximum number of words of a short reply
SHOWN = 200  # the maximum characters of the words that a reply refers to
MARK = "[in answer to: "
"""The start of the row that quotes the words that a reply refers to."""

_WORD = compile_lazily(r"[^\W_]+(?:['\u2019]\w+)?")
_ITEM = compile_lazily(
    r"[\s>#*_(\-\u2022]*(?:(?:option|approach|choice|variant)\s+)?(\d{1,2}|[a-h])[*_]*[.):\]][*_]*\s*(\S.*)",
    re.IGNORECASE,
)
_LABEL = compile_lazily(r"\d{1,2}|[a-h]")
_ORDINALS = {"first": ("1", "a"), "second": ("2", "b"), "third": ("3", "c"), "fourth": ("4", "d")}
_FILLERS = frozenset({
    "yes", "ok", "okay", "sure", "please", "let's", "lets", "go", "with", "for", "do", "option", "options", "number",
    "the", "and", "one", "choice", "i", "want", "take", "prefer", "it", "then", "only", "just", "first",
})  # fmt: skip
_ASSENTS = frozenset({
    "y", "yes", "yep", "yeah", "yup", "n", "no", "nope", "nah", "ok", "okay", "sure", "go", "do", "please", "both",
    "all", "neither", "none", "correct", "right", "exactly", "proceed", "agreed", "approved", "absolutely",
    "definitely", "continue", "ja", "nein", "oui", "non", "si", "sí",
})  # fmt: skip
"""The first words of replies that answer a question."""


def with_answered_words(reply: str, before: str) -> str:
    """Return a short reply with an added row, which quotes the words of ``before`` that the reply answers."""
    words = answered_words(reply, before)
    if words:
        return f'{reply}\n{MARK}"{prose.cut_line(words, SHOWN)}"]'
    return reply


def without_answered_words(text: str) -> str:
    """Return a message without the added row: the user's own words."""
    return text.partition(f"\n{MARK}")[0]


def answered_words(reply: str, before: str) -> str:
    """Return the options of a text that a short reply names, or the question that it answers, or ``""``."""
    words = _WORD.findall(reply.lower())
    if not words or len(reply) > LONGEST or len(words) > MOST_WORDS:
        return ""
    if options := _options_named(words, before):
        return " / ".join(options)
    if words[0] in _ASSENTS or all(_LABEL.fullmatch(word) for word in words):
        return prose.question_at_end(before)
    return ""


def is_assent(reply: str) -> bool:
    """Check whether a text only agrees, refuses, or names an option."""
    words = set(_WORD.findall(reply.lower()))
    if not words or len(reply) > LONGEST:
        return False
    named = {word for word in words if _LABEL.fullmatch(word) or word in _ORDINALS}
    return words <= named | _FILLERS | _ASSENTS


def _options_named(words: Sequence[str], before: str) -> list[str]:
    """Return the options that a reply names, if the reply contains nothing else.

    If several labels are equal, the last one counts.
    """
    named = [word for word in words if _LABEL.fullmatch(word) or word in _ORDINALS]
    if not named or not {*words} <= {*named, *_FILLERS}:
        return []
    items: dict[str, str] = {}
    for row in before.split("\n"):
        if item := _ITEM.match(row):
            items[item[1].lower()] = row.strip()
    options: list[str] = []
    for word in named:
        labels = _ORDINALS.get(word, (word,))
        options += [items[label] for label in labels if label in items][:1]
    return options
