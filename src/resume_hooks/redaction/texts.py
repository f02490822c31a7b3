"""Find and remove secrets in a text, by its long runs and by words that precede secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from resume_hooks.redaction.assignments import (
    CONTINUED_VALUE_ENDS,
    NEXT_LINE_INDENTS,
    assigned_run_spans,
    continuation_spans,
    may_have_secret_name,
)
from resume_hooks.redaction.indicator_words import indicated_positions, indicated_spans
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.redaction.long_runs import (
    has_token_keyword,
    start_of_value,
    suspect_runs,
    token_spans,
)
from resume_hooks.redaction.spans import Span, merge_spans
from resume_hooks.redaction.unescape import (
    ESCAPED_CHARACTER,
    Views,
    blank_control_sequences,
    positions_of_invisible_characters,
    range_of_whole_escapes,
    view_without_invisible_text,
)

_MIN_TEXT_BYTES = 9
"""The size in bytes of the shortest text with a secret: an address with a password of three characters."""

_PLACEHOLDER = compile_lazily(r"\[secret removed: [\w-]{1,60}\]")
MAX_PASSES = 4
"""The maximum number of passes over a text until no secret remains."""

Content = TypeVar("Content", str, bytes)


def suspect_positions(raw: bytes) -> Iterator[int]:
    """Yield positions in raw bytes, in any order. A secret may begin at each position or shortly after it.

    This first pass is fast and misses no secret. The bytes may have escapes of any depth, so
    backslashes may separate a name from its value, and the expressions are looser than the rules.
    """
    lower = raw.lower()
    first_escape = raw.find(b"\x1b")
    if first_escape >= 0:
        yield first_escape
    yield from positions_of_invisible_characters(raw)
    yield from (match.start() for match in ESCAPED_CHARACTER.finditer(lower))
    yield from indicated_positions(lower)
    for start, end in suspect_runs(raw):
        if has_token_keyword(raw, lower, start, end) or may_have_secret_name(
            lower, start_of_value(raw, start)
        ):
            yield start


def spans_in_bytes(raw: bytes, *, in_json: bool = False) -> list[Span]:
    """Return every secret in UTF-8 text, in each layer of its escapes, with positions in ``raw``.

    The secrets do not overlap.

    If ``in_json``, ``raw`` is the encoded content of a JSON string.
    """
    if len(raw) < _MIN_TEXT_BYTES:
        return []
    views = Views(raw, in_json=in_json)
    spans: list[Span] = []
    for depth, text in views:
        for span in _spans_in_visible_text(text):
            if b"\\" in text:
                start, end = range_of_whole_escapes(text, span.start, span.end)
            else:
                start, end = span[1:3]
            spans.append(Span(span.kind, *views.map_to_bytes(depth, start, end), span.rank))
    return merge_spans(spans)


def _spans_in_visible_text(raw: bytes) -> Iterator[Span]:
    """Return every secret in ``raw``, ignoring a terminal's control sequences before, in or after the secret."""
    yield from _spans_in_text(blank_control_sequences(raw))
    view = view_without_invisible_text(raw)
    if view:
        yield from (
            Span(span.kind, *view.map_to_original(span.start, span.end), span.rank)
            for span in _spans_in_text(view.text)
        )


def _spans_in_text(raw: bytes) -> Iterator[Span]:
    """Yield every match of a rule in unmodified ``raw``, in any order.

    Matches may overlap.
    """
    lower = raw.lower()
    runs = suspect_runs(raw)
    yield from token_spans(raw, lower, runs)
    for start, _ in runs:
        value_start = start_of_value(raw, start)
        spans = assigned_run_spans(raw, lower, value_start)
        yield from spans
        if spans and (
            raw[spans[0].end : spans[0].end + 1] in CONTINUED_VALUE_ENDS
            or raw[value_start - 2 : value_start] in NEXT_LINE_INDENTS
        ):
            yield from continuation_spans(raw, value_start, spans[0])
    yield from indicated_spans(raw, lower)


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
    return convert_spans_to_secrets(raw, text, spans_in_bytes(raw))


def convert_spans_to_secrets(raw: bytes, text: str, spans: list[Span]) -> list[Secret]:
    """Convert ordered spans of ``raw`` to secrets in ``text``; ``raw`` are the bytes of ``text``."""
    if not spans or len(raw) == len(text):
        return [Secret(span.kind, span.start, span.end) for span in spans]
    edges: set[int] = set()
    for span in spans:
        edges.update((span.start, span.end))
    characters_by_edge: dict[int, int] = {}
    characters = previous_edge = 0
    for edge in sorted(edges):
        characters += len(raw[previous_edge:edge].decode("utf-8", "surrogatepass"))
        characters_by_edge[edge] = characters
        previous_edge = edge
    return [
        Secret(span.kind, characters_by_edge[span.start], characters_by_edge[span.end])
        for span in spans
    ]


def redact(text: str) -> tuple[str, list[Secret]]:
    """Replace each secret in ``text`` by ``[secret removed: <kind>]``. Also return the secrets of ``text``.

    The result contains no further secret. A text without secrets is returned unchanged.
    """
    return remove_until_clean(text, find_secrets, replace_secrets)


def remove_until_clean(
    content: Content,
    search: Callable[[Content], list[Secret]],
    replace: Callable[[Content, list[Secret]], Content],
) -> tuple[Content, list[Secret]]:
    """Remove secrets until a search finds none, because one secret may hide another.

    Also return the secrets of the first search.
    """
    secrets = first_secrets = search(content)
    for _ in range(MAX_PASSES):
        if not secrets:
            break
        content = replace(content, secrets)
        secrets = search(content)
    return content, first_secrets


def replace_secrets(text: str, secrets: list[Secret]) -> str:
    """Replace the secrets in ``text`` by placeholders."""
    parts, position = [], 0
    for secret in secrets:
        parts += [text[position : secret.start], placeholder_of_secret(secret.kind)]
        position = secret.end
    return "".join([*parts, text[position:]])


def placeholder_of_secret(kind: str) -> str:
    """Return the placeholder for a secret of a kind."""
    return f"[secret removed: {kind}]"


def count_placeholders(texts: Iterable[str]) -> int:
    """Return the number of placeholders for secrets in texts."""
    return sum(len(_PLACEHOLDER.findall(text)) for text in texts)
