"""Find and remove secrets in a text, by its long runs and by words that precede secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from resume_hooks.redaction.assignments import (
    ENDS,
    INDENTS,
    assigned_run_spans,
    continuing_spans,
    is_named,
)
from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.redaction.long_runs import (
    has_token_keyword,
    promising_runs,
    start_of_value,
    token_spans,
)
from resume_hooks.redaction.spans import Span, merge_spans
from resume_hooks.redaction.telling_words import word_spans, word_suspects
from resume_hooks.redaction.unescape import (
    ESCAPED,
    Views,
    blank_controls,
    places_of_hidden_signs,
    stretch_of_whole_escapes,
    view_as_shown,
)

_SHORTEST = 9
"""The size in bytes of the shortest text with a secret: a password of three characters in an address."""

_PLACEHOLDER = late(r"\[secret removed: [\w-]{1,60}\]")
TRIES = 4
"""The maximum number of passes over a text until no secret remains."""

Content = TypeVar("Content", str, bytes)


def suspect_places(raw: bytes) -> Iterator[int]:
    """Yield the positions in raw bytes, in any order, at or shortly after which a secret may begin.

    This first pass is fast and misses no secret. The bytes may have escapes of any depth, so
    backslashes may separate a name from its value, and the expressions are looser than the rules.
    """
    lower = raw.lower()
    coloured = raw.find(b"\x1b")
    if coloured >= 0:
        yield coloured
    yield from places_of_hidden_signs(raw)
    yield from (found.start() for found in ESCAPED.finditer(lower))
    yield from word_suspects(lower)
    for start, end in promising_runs(raw):
        if has_token_keyword(raw, lower, start, end) or is_named(lower, start_of_value(raw, start)):
            yield start


def spans_in_bytes(raw: bytes, *, in_json: bool = False) -> list[Span]:
    """Return every secret in UTF-8 text, in each layer of its escapes, with positions in ``raw``.

    The secrets do not overlap.

    If ``in_json``, ``raw`` is the encoded content of a JSON string.
    """
    if len(raw) < _SHORTEST:
        return []
    views = Views(raw, in_json=in_json)
    found: list[Span] = []
    for depth, text in views:
        for span in _spans_as_shown(text):
            if b"\\" in text:
                start, end = stretch_of_whole_escapes(text, span.start, span.end)
            else:
                start, end = span[1:3]
            found.append(Span(span.kind, *views.places_in_bytes(depth, start, end), span.rank))
    return merge_spans(found)


def _spans_as_shown(raw: bytes) -> Iterator[Span]:
    """Return every secret in ``raw``, ignoring a terminal's control sequences before, in or after the secret."""
    yield from _spans_as_written(blank_controls(raw))
    view = view_as_shown(raw)
    if view:
        yield from (
            Span(span.kind, *view.origin(span.start, span.end), span.rank)
            for span in _spans_as_written(view.text)
        )


def _spans_as_written(raw: bytes) -> Iterator[Span]:
    """Yield every match of a rule in unmodified ``raw``, in any order.

    Matches may overlap.
    """
    lower = raw.lower()
    runs = promising_runs(raw)
    yield from token_spans(raw, lower, runs)
    for start, _ in runs:
        first = start_of_value(raw, start)
        found = assigned_run_spans(raw, lower, first)
        yield from found
        if found and (
            raw[found[0].end : found[0].end + 1] in ENDS or raw[first - 2 : first] in INDENTS
        ):
            yield from continuing_spans(raw, first, found[0])
    yield from word_spans(raw, lower)


class Secret(NamedTuple):
    """A secret of a ``kind``, such as ``github-pat``, from ``start`` to ``end`` in a text (characters or bytes)."""

    kind: str
    start: int
    end: int


def find_secrets(text: str) -> list[Secret]:
    """Return every secret in ``text``, in order and without overlaps.

    JSON escapes in the text are decoded for the search.
    """
    raw = text.encode("utf-8", "surrogatepass")
    return secrets_in_characters(raw, text, spans_in_bytes(raw))


def secrets_in_characters(raw: bytes, text: str, spans: list[Span]) -> list[Secret]:
    """Convert ordered spans of ``raw`` to secrets in ``text``; ``raw`` are the bytes of ``text``."""
    if not spans or len(raw) == len(text):
        return [Secret(span.kind, span.start, span.end) for span in spans]
    edges: set[int] = set()
    for span in spans:
        edges.update((span.start, span.end))
    places: dict[int, int] = {}
    characters = before = 0
    for edge in sorted(edges):
        characters += len(raw[before:edge].decode("utf-8", "surrogatepass"))
        places[edge] = characters
        before = edge
    return [Secret(span.kind, places[span.start], places[span.end]) for span in spans]


def redact(text: str) -> tuple[str, list[Secret]]:
    """Replace each secret in ``text`` by ``[secret removed: <kind>]``. Also return the secrets of ``text``.

    The result contains no further secret. A text without secrets is returned unchanged.
    """
    return remove_until_clean(text, find_secrets, text_without)


def remove_until_clean(
    content: Content,
    search: Callable[[Content], list[Secret]],
    without: Callable[[Content, list[Secret]], Content],
) -> tuple[Content, list[Secret]]:
    """Remove secrets until a search finds none, because one secret may hide another.

    Also return the secrets of the first search.
    """
    found = first = search(content)
    for _ in range(TRIES):
        if not found:
            break
        content = without(content, found)
        found = search(content)
    return content, first


def text_without(text: str, secrets: list[Secret]) -> str:
    """Replace the secrets in ``text`` by placeholders."""
    parts, place = [], 0
    for secret in secrets:
        parts += [text[place : secret.start], placeholder_of_secret(secret.kind)]
        place = secret.end
    return "".join([*parts, text[place:]])


def placeholder_of_secret(kind: str) -> str:
    """Return the placeholder for a secret of a kind."""
    return f"[secret removed: {kind}]"


def count_placeholders(texts: Iterable[str]) -> int:
    """Return the number of placeholders for secrets in texts."""
    return sum(len(_PLACEHOLDER.findall(text)) for text in texts)
