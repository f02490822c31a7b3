"""Find what a short reply such as "3" or "yes" refers to in the previous answer.

A reply is compared with the labels in the answer's lists and with the answer's last question. It
refers to nothing if it is clear by itself or matches neither a label nor the question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from resume_hooks.reading.digest import prose
from resume_hooks.redaction.lazy_patterns import compile_lazily

MAX_REPLY_CHARACTERS = 48  # The maximum number of characters in a short reply.
MAX_REPLY_WORDS = 7  # The maximum number of words in a short reply.
# If a reply refers to a part of the answer, at most this many characters of that part are quoted.
MAX_QUOTED_CHARACTERS = 200
QUOTED_ANSWER_MARK = "[in answer to: "
"""The start of the row that quotes what a reply refers to."""

_WORD_PATTERN = compile_lazily(r"[^\W_]+(?:['\u2019]\w+)?")
_LIST_ITEM_PATTERN = compile_lazily(
    r"[\s>#*_(\-\u2022]*(?:(?:option|approach|choice|variant)\s+)?(\d{1,2}|[a-h])[*_]*[.):\]][*_]*\s*(\S.*)",
    re.IGNORECASE,
)
_LABEL_PATTERN = compile_lazily(r"\d{1,2}|[a-h]")
_LABELS_BY_ORDINAL = {
    "first": ("1", "a"),
    "second": ("2", "b"),
    "third": ("3", "c"),
    "fourth": ("4", "d"),
}
_FILLER_WORDS = frozenset({
    "yes", "ok", "okay", "sure", "please", "let's", "lets", "go", "with", "for", "do", "option", "options", "number",
    "the", "and", "one", "choice", "i", "want", "take", "prefer", "it", "then", "only", "just", "first",
})  # fmt: skip
_ASSENT_WORDS = frozenset({
    "y", "yes", "yep", "yeah", "yup", "n", "no", "nope", "nah", "ok", "okay", "sure", "go", "do", "please", "both",
    "all", "neither", "none", "correct", "right", "exactly", "proceed", "agreed", "approved", "absolutely",
    "definitely", "continue", "ja", "nein", "oui", "non", "si", "sí",
})  # fmt: skip
"""The first words of short replies that accept or reject a proposal, such as "yes" and "no"."""


def add_quote_of_answer(reply: str, answer: str) -> str:
    """Add a line to a reply that quotes the part of ``answer`` that the reply refers to.

    If the reply refers to nothing, return it unchanged.
    """
    words = find_referenced_words(reply, answer)
    if words:
        return f'{reply}\n{QUOTED_ANSWER_MARK}"{prose.cut_line(words, MAX_QUOTED_CHARACTERS)}"]'
    return reply


def remove_quote_of_answer(text: str) -> str:
    """Return the user's own words in a message, without the row that ``add_quote_of_answer`` added."""
    return text.partition(f"\n{QUOTED_ANSWER_MARK}")[0]


def may_refer_to_answer(text: str) -> bool:
    """Check whether a text is a short reply that may refer to part of the previous answer."""
    if len(text) > MAX_REPLY_CHARACTERS:
        return False
    words = _WORD_PATTERN.findall(text.lower())
    if not words or len(words) > MAX_REPLY_WORDS:
        return False
    return words[0] in _ASSENT_WORDS or bool(_find_mentioned_labels(words))


def find_referenced_words(reply: str, answer: str) -> str:
    """Return the part of ``answer`` that a short reply refers to, or ``""``.

    It consists of the options that the reply names, or of the question that the reply answers.
    """
    if not may_refer_to_answer(reply):
        return ""
    words = _WORD_PATTERN.findall(reply.lower())
    if options := _find_mentioned_options(words, answer):
        return " / ".join(options)
    if words[0] in _ASSENT_WORDS or all(_LABEL_PATTERN.fullmatch(word) for word in words):
        return _add_listed_items(prose.find_last_question(answer), answer)
    return ""


def _add_listed_items(question: str, answer: str) -> str:
    """If a question ends with a colon, return the question together with the list that follows it.

    Return any other question unchanged. If the question ends with a colon but no list follows,
    return ``""``.
    """
    if not question.endswith(":"):
        return question
    items: list[str] = []
    is_inside = False
    for row in answer.split("\n"):
        bare = prose.MARKUP_PATTERN.sub("", row).strip()
        if bare.endswith(question):
            items = []
            is_inside = True
        elif is_inside and bare and prose.MARKUP_PATTERN.match(row):
            items.append(bare)
    if items:
        return f"{question} {' / '.join(items)}"
    return ""


def is_simple_reply(reply: str) -> bool:
    """Check whether a reply only agrees, disagrees or names an option."""
    words = set(_WORD_PATTERN.findall(reply.lower()))
    if not words or len(reply) > MAX_REPLY_CHARACTERS:
        return False
    labels = {
        word for word in words if _LABEL_PATTERN.fullmatch(word) or word in _LABELS_BY_ORDINAL
    }
    return words <= labels | _FILLER_WORDS | _ASSENT_WORDS


def _find_mentioned_labels(words: Sequence[str]) -> list[str]:
    """Return the labels and ordinals in a reply, or none if the reply contains other meaningful words."""
    named = [word for word in words if _LABEL_PATTERN.fullmatch(word) or word in _LABELS_BY_ORDINAL]
    if set(words) <= {*named, *_FILLER_WORDS}:
        return named
    return []


def _find_mentioned_options(words: Sequence[str], answer: str) -> list[str]:
    """Return the options listed in ``answer`` that a reply names.

    If the reply contains anything besides options, return an empty list. If several options have
    the same label, the last of them is returned.
    """
    named = _find_mentioned_labels(words)
    if not named:
        return []
    items: dict[str, str] = {}
    for row in answer.split("\n"):
        if item := _LIST_ITEM_PATTERN.match(row):
            items[item[1].lower()] = row.strip()
    options: list[str] = []
    for word in named:
        labels = _LABELS_BY_ORDINAL.get(word, (word,))
        options += [items[label] for label in labels if label in items][:1]
    return options
