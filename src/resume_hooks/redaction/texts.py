"""Secrets in a text, and the text without them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from resume_hooks.redaction.scanner import seen

_PLACEHOLDER = re.compile(r"\[secret removed: [\w-]{1,60}\]")
TRIES = 4
"""Times that a text is looked at again after secrets were taken out of it, until none is left."""


class Secret(NamedTuple):
    """A secret of a ``kind``, such as ``github-pat``, in a text from ``start`` up to ``end`` (characters, or bytes)."""

    kind: str
    start: int
    end: int


def find(text: str) -> list[Secret]:
    """Every secret in ``text``, in order, none over another; escapes of JSON inside it are looked through."""
    raw = text.encode("utf-8", "surrogatepass")
    found = seen(raw)
    if not found or len(raw) == len(text):
        return [Secret(span.kind, span.start, span.end) for span in found]
    places, characters, before = {}, 0, 0
    for place in sorted({place for span in found for place in (span.start, span.end)}):
        characters += len(raw[before:place].decode("utf-8", "surrogatepass"))
        places[place], before = characters, place
    return [Secret(span.kind, places[span.start], places[span.end]) for span in found]


def redact(text: str) -> tuple[str, list[Secret]]:
    """``text`` with each secret replaced by ``[secret removed: <kind>]``, and the secrets, placed as in ``text``.

    Nothing is found in what is returned; a text without secrets is returned as it is.
    """
    return until_clean(text, find, _without)


Content = TypeVar("Content", str, bytes)


def until_clean(
    content: Content, search: Callable[[Content], list[Secret]], without: Callable[[Content, list[Secret]], Content]
) -> tuple[Content, list[Secret]]:
    """Take secrets out until a search finds none: one may stand behind another. The first search's secrets, too."""
    found = first = search(content)
    for _ in range(TRIES):
        if not found:
            break
        content = without(content, found)
        found = search(content)
    return content, first


def _without(text: str, secrets: list[Secret]) -> str:
    parts, place = [], 0
    for secret in secrets:
        parts += [text[place : secret.start], placeholder(secret.kind)]
        place = secret.end
    return "".join([*parts, text[place:]])


def placeholder(kind: str) -> str:
    """The words that stand where a secret of a kind was."""
    return f"[secret removed: {kind}]"


def left_out(texts: Iterable[str]) -> int:
    """How many placeholders of secrets stand in texts."""
    return sum(len(_PLACEHOLDER.findall(text)) for text in texts)
