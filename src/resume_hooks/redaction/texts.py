"""Find and remove secrets in a text.

Some secrets are found because they contain long runs of letters and digits, others because of the
words before them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from resume_hooks.redaction.assignments import (
    CHARACTERS_AFTER_CONTINUED_VALUE,
    NEXT_LINE_INDENTS,
    assigned_run_spans,
    continuation_spans,
    may_have_secret_name,
)
from resume_hooks.redaction.indicator_words import (
    positions_of_indicator_words,
    spans_after_indicator_words,
)
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.redaction.long_runs import (
    has_token_keyword,
    runs_of_possible_secrets,
    start_of_value,
    token_spans,
)
from resume_hooks.redaction.spans import Span, merge_spans
from resume_hooks.redaction.unescape import (
    ESCAPED_CHARACTER_PATTERN,
    Views,
    blank_control_sequences,
    positions_of_invisible_characters,
    range_of_whole_escapes,
    view_without_invisible_text,
)

_MIN_TEXT_BYTES = 9
"""Minimum number of bytes in a text that can contain a secret. The shortest example is an address
with a password of three characters."""

_PLACEHOLDER_PATTERN = compile_lazily(r"\[secret removed: [\w-]{1,60}\]")
MAX_REDACTION_PASSES = 4
"""Maximum number of passes that remove secrets from a text. Passes end earlier if no secret
remains."""

Content = TypeVar("Content", str, bytes)


def positions_of_possible_secrets(raw: bytes) -> Iterator[int]:
    """Yield positions at which, or shortly after which, a secret may begin. The order is not defined.

    This check is fast and misses no secret. ``raw`` may contain escapes of any depth, so there may
    be backslashes between a name and its value. Therefore this check matches more than the rules
    do.
    """
    lower = raw.lower()
    first_escape = raw.find(b"\x1b")
    if first_escape >= 0:
        yield first_escape
    yield from positions_of_invisible_characters(raw)
    yield from (match.start() for match in ESCAPED_CHARACTER_PATTERN.finditer(lower))
    yield from positions_of_indicator_words(lower)
    for start, end in runs_of_possible_secrets(raw):
        if has_token_keyword(raw, lower, start, end) or may_have_secret_name(
            lower, start_of_value(raw, start)
        ):
            yield start


def spans_in_bytes(raw: bytes, *, in_json: bool = False) -> list[Span]:
    """Return every secret in UTF-8 text, in each layer of its escapes, with positions in ``raw``.

    The secrets do not overlap. If ``in_json`` is true, ``raw`` is the encoded content of a JSON
    string.
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
            spans.append(
                Span(span.kind, *views.map_to_original_bytes(depth, start, end), span.rank)
            )
    return merge_spans(spans)


def _spans_in_visible_text(raw: bytes) -> Iterator[Span]:
    """Yield every secret in ``raw``, even if terminal control sequences are inside or next to it."""
    yield from _spans_in_text(blank_control_sequences(raw))
    view = view_without_invisible_text(raw)
    if view:
        yield from (
            Span(span.kind, *view.map_to_original(span.start, span.end), span.rank)
            for span in _spans_in_text(view.text)
        )


def _spans_in_text(raw: bytes) -> Iterator[Span]:
    """Yield every match of a rule in ``raw``, without decoding escapes. The order is not defined.

    Matches may overlap.
    """
    lower = raw.lower()
    runs = runs_of_possible_secrets(raw)
    yield from token_spans(raw, lower, runs)
    for start, _ in runs:
        value_start = start_of_value(raw, start)
        spans = assigned_run_spans(raw, lower, value_start)
        yield from spans
        if spans and (
            raw[spans[0].end : spans[0].end + 1] in CHARACTERS_AFTER_CONTINUED_VALUE
            or raw[value_start - 2 : value_start] in NEXT_LINE_INDENTS
        ):
            yield from continuation_spans(raw, value_start, spans[0])
    yield from spans_after_indicator_words(raw, lower)


class Secret(NamedTuple):
    """A secret in a text. An example of ``kind`` is ``github-pat``.

    ``start`` and ``end`` are measured in characters in a string, and in bytes in a ``bytes``
    object.
    """

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
    """Convert ``spans`` of a text's bytes ``raw`` to secrets of ``text``. The spans must be in order."""
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
    """Return ``text`` with ``[secret removed: <kind>]`` for each secret, and the secrets of ``text``.

    If the result is redacted again, it does not change. A text without secrets is returned
    unchanged.
    """
    return remove_until_clean(text, find_secrets, replace_secrets)


def remove_until_clean(
    content: Content,
    search: Callable[[Content], list[Secret]],
    replace: Callable[[Content, list[Secret]], Content],
) -> tuple[Content, list[Secret]]:
    """Remove secrets until ``search`` finds no more. A removed secret may reveal another secret.

    Return the content without secrets, and the secrets that the first search found.
    """
    secrets = first_secrets = search(content)
    for _ in range(MAX_REDACTION_PASSES):
        if not secrets:
            break
        content = replace(content, secrets)
        secrets = search(content)
    return content, first_secrets


def replace_secrets(text: str, secrets: list[Secret]) -> str:
    """Return ``text`` with a placeholder for each of ``secrets``."""
    parts, position = [], 0
    for secret in secrets:
        parts += [text[position : secret.start], placeholder_of_secret(secret.kind)]
        position = secret.end
    return "".join([*parts, text[position:]])


def placeholder_of_secret(kind: str) -> str:
    """Return the placeholder for a secret of the given kind."""
    return f"[secret removed: {kind}]"


def count_placeholders(texts: Iterable[str]) -> int:
    """Return the number of placeholders for removed secrets in the texts."""
    return sum(len(_PLACEHOLDER_PATTERN.findall(text)) for text in texts)
