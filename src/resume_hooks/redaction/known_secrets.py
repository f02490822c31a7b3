"""Remember secrets that the rules have found, and find them where nothing marks them as secrets.

For example, a title contains the text of a prompt, a file name may contain the input of a tool, and
a summary contains quotes. In these texts, no words before the secret mark it as a secret, so
``Redactor`` remembers its value. The result of ``Redactor.redact`` contains no remembered value in
any form that this module recognises, and no text that a rule matches.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from resume_hooks.redaction.false_positives import is_common_value, is_random_value
from resume_hooks.redaction.json_lines import (
    find_secrets_in_line,
    find_strings_and_keys,
    folder_of_record,
    is_exempt_from_redaction,
    is_json_object,
    replace_secrets_in_bytes,
)
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.redaction.spans import Span, merge_spans
from resume_hooks.redaction.texts import (
    Secret,
    convert_spans_to_secrets,
    find_secrets,
    remove_until_clean,
    replace_secrets,
)
from resume_hooks.redaction.unescape import (
    ESCAPED_CHARACTER_PATTERN,
    MAX_ESCAPE_LAYERS,
    Views,
    decode_layer,
    positions_of_invisible_characters,
    view_without_invisible_text,
)

MIN_VALUE_BYTES = 6
"""Minimum number of bytes in a value that is remembered. A shorter value is removed only where a
rule matches it."""

_MIN_RANDOM_BYTES = 8
"""Minimum number of bytes of a random value that is also searched for inside longer words."""

_MIN_LINE_BYTES = 16
"""Minimum number of bytes in a line of a longer secret, such as a private key. A line with this
size is also searched for without the other lines."""

_CUT_VALUE_EDGE_BYTES = 3
"""The number of bytes from the beginning or the end of a value that are enough to recognise it next
to an ellipsis."""

_MIN_CUT_VALUE_BYTES = 8
"""The minimum number of bytes in a part of a value that starts or ends inside a word.

A part without an ellipsis beside it must have this many bytes too, unless it ends exactly at the
end of the text. A text may end with the beginning of a value, or start with the end of a value.
"""

_BASE64_RUN_PATTERN = compile_lazily(
    rb"(?<!\\)[A-Za-z0-9+/_-]{11,}+(?:(?<=[A-Za-z0-9+/_-]{60})\r?\n[A-Za-z0-9+/_-]{11,}+)*+"
)
"""Matches characters that may be a value in base64, also over several long lines. The minimum of 11
characters encodes eight bytes."""

_PRINTABLE_RUN_PATTERN = compile_lazily(rb"[!-~]{8,}")
"""Matches a value in decoded base64. Decoding a text that is not base64 hardly ever produces such a
value."""

_TO_URL_SAFE_BASE64_TABLE = bytes.maketrans(b"+/", b"-_")
_TO_STANDARD_BASE64_TABLE = bytes.maketrans(b"-_", b"+/")

_IGNORED_CHARACTERS = b" \t\r\n\\\"'`"
"""The characters of quotes, escapes and line breaks, which may interrupt a value."""

_GAP_EXPRESSION = rb"[\s\\\"'`]*"

_DIGIT_PATTERN = compile_lazily(rb"\d")
_NAMED_VALUE_PATTERN = compile_lazily(rb"[\w.-]{1,60}=([^=\s]{8,4000})")
_ELLIPSIS_PATTERN = compile_lazily(rb"\s{0,4}(?:\xe2\x80\xa6|\.\.\.|\[cut)\s{0,4}")
_MAX_ELLIPSES = 1_000
"""Maximum number of ellipses in a text next to which parts of values are searched for. Further
ellipses are ignored."""

_INDICATOR_WORD_PATTERN = compile_lazily(
    rb"(?i)pass|pwd|secret|token|credential|\bkey|_key|://|\bpw\b|\blogin\b|\bauth"
)
_CONTEXT_BYTES_BEFORE, _CONTEXT_BYTES_AFTER = 100, 40
"""The number of bytes before and after a plain word in which a word that indicates a password is
searched for."""

KNOWN_VALUE_RANK = 4
"""The rank of a remembered value. If a rule matches at the same position, the rule determines the
kind of the secret."""


class _KnownValue(NamedTuple):
    """A remembered value.

    ``compact_value`` is the value without line breaks, quotes and backslashes. ``pattern`` matches
    the value in a text.
    """

    kind: str
    compact_value: bytes
    pattern: re.Pattern[bytes]

    def spans_in_text(self, text: bytes) -> Iterator[Span]:
        """Return all occurrences of the value in a text."""
        return (
            Span(self.kind, *match.span(), KNOWN_VALUE_RANK)
            for match in self.pattern.finditer(text)
        )


class Redactor:
    """Removes every secret that the rules find in a text, or have found in an earlier text.

    Call ``learn_text`` and ``redact`` with original texts, not with texts that were cut or joined.
    How a remembered value is searched for depends on how likely the same characters are to have
    another meaning:

    - A random value of at least eight bytes is found anywhere: inside a word, quoted, escaped,
      percent-encoded, in base64, or over several lines. Next to an ellipsis or at the end of a text,
      three characters of its beginning or end are enough. At the start of a text, eight are enough.
    - A shorter random value or number is found if it is a whole word.
    - A plain word, such as ``sunshine``, is found if it is near a word that indicates a password.
    - A value of fewer than six bytes, and a word that is common in programs, such as ``postgres``, is
      only removed where a rule matches it.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._values_anywhere: dict[bytes, _KnownValue] = {}
        self._word_values: dict[bytes, _KnownValue] = {}
        self._context_values: dict[bytes, _KnownValue] = {}
        self._values_by_beginning: dict[bytes, list[_KnownValue]] = {}
        self._values_by_end: dict[bytes, list[_KnownValue]] = {}
        self._max_value_bytes = 0
        self._excluded_names: set[bytes] = set()
        self._folder = b""
        """The folder of the last record from which secrets were learned."""
        self._value_edges: tuple[bytes, ...] | None = None
        for text in texts:
            self.learn_text(text)

    @property
    def has_known_values(self) -> bool:
        """Whether any value is remembered, so that ``redact`` removes more than the rules match."""
        return bool(self._values_anywhere or self._word_values or self._context_values)

    def exclude_names(self, names: Iterable[str]) -> None:
        """Do not remember these names as secrets, for example session ids by which users find sessions."""
        self._excluded_names.update(name.encode("utf-8", "surrogatepass") for name in names)

    def learn_text(self, text: str) -> None:
        """Remember each secret that the rules find in a text. The text must not be cut or joined."""
        for secret in find_secrets(text):
            value = text[secret.start : secret.end]
            self._remember_secret(secret.kind, value.encode("utf-8", "surrogatepass"))

    def learn_line(self, line: bytes) -> None:
        """Remember each secret in a line of a transcript, including those in the name of the record's folder."""
        for secret in find_secrets_in_line(line):
            self._remember_secret(secret.kind, line[secret.start : secret.end])
        folder = folder_of_record(line)
        if folder and folder != self._folder:
            self._folder = folder
            self.learn_text(folder.decode("utf-8", "replace"))

    def redact(self, text: str) -> str:
        """Return ``text`` with ``[secret removed: <kind>]`` for each secret.

        If the text contains no secret, the same object is returned.
        """
        return self.redact_and_list_secrets(text)[0]

    def redact_and_list_secrets(self, text: str) -> tuple[str, list[Secret]]:
        """Return the result of ``redact``, and the secrets with their positions in ``text``.

        The positions are measured in characters.
        """
        return remove_until_clean(text, self._find_secrets_in_text, replace_secrets)

    def redact_line(self, line: bytes) -> tuple[bytes, list[Secret]]:
        """Return a line of a transcript without secrets, and the secrets with their positions in bytes.

        As in ``json_lines.redact_line``, some fields are kept unchanged. However, remembered values
        are also removed from keys, from ``cwd`` and from lists of files. The result is a JSON
        object with the same structure.
        """
        return remove_until_clean(line, self._find_secrets_in_line, replace_secrets_in_bytes)

    def _remember_secret(self, kind: str, match: bytes) -> None:
        value = _decode_all_layers(match)
        if view := view_without_invisible_text(value):
            value = view.text
        for part in (value, *_lines_to_find_alone(value), *_secret_parts(value)):
            self._remember_value(kind, part)

    def _remember_value(self, kind: str, value: bytes) -> None:
        compact_value = value.translate(None, _IGNORED_CHARACTERS)
        if (
            len(compact_value) < MIN_VALUE_BYTES
            or is_common_value(compact_value)
            or compact_value in self._excluded_names
        ):
            return
        self._value_edges = None
        if compact_value.isdigit() or (
            len(compact_value) < _MIN_RANDOM_BYTES and is_random_value(compact_value)
        ):
            self._word_values.setdefault(
                compact_value, _KnownValue(kind, compact_value, _whole_word_pattern(value))
            )
        elif is_random_value(compact_value):
            # Imported here because the import takes 3 ms and few texts contain a secret.
            from urllib.parse import quote_from_bytes

            quoted_values = [quote_from_bytes(each, safe="") for each in (compact_value, value)]
            for form in {compact_value, *map(str.encode, quoted_values)}:
                self._remember_random_value(_KnownValue(kind, form, _interruptible_pattern(form)))
        else:
            self._context_values.setdefault(
                compact_value, _KnownValue(kind, compact_value, _whole_word_pattern(value))
            )

    def _remember_random_value(self, value: _KnownValue) -> None:
        if value.compact_value in self._values_anywhere:
            return
        self._values_anywhere[value.compact_value] = value
        self._values_by_beginning.setdefault(
            value.compact_value[:_CUT_VALUE_EDGE_BYTES], []
        ).append(value)
        self._values_by_end.setdefault(value.compact_value[-_CUT_VALUE_EDGE_BYTES:], []).append(
            value
        )
        self._max_value_bytes = max(self._max_value_bytes, len(value.compact_value))

    def _find_secrets_in_text(self, text: str) -> list[Secret]:
        secrets = find_secrets(text)
        if not self.has_known_values:
            return secrets
        raw = text.encode("utf-8", "surrogatepass")
        known_secrets = convert_spans_to_secrets(
            raw, text, merge_spans(self._known_value_spans(raw))
        )
        spans = (Span(secret.kind, secret.start, secret.end, 0) for secret in secrets)
        known_spans = (
            Span(secret.kind, secret.start, secret.end, KNOWN_VALUE_RANK)
            for secret in known_secrets
        )
        return [Secret(*span[:3]) for span in merge_spans([*spans, *known_spans])]

    def _find_secrets_in_line(self, line: bytes) -> list[Secret]:
        secrets = find_secrets_in_line(line)
        if not self._may_contain_known_value(line):
            return secrets
        spans = [Span(secret.kind, secret.start, secret.end, 0) for secret in secrets]
        if not is_json_object(line):
            return [
                Secret(*span[:3]) for span in merge_spans([*spans, *self._known_value_spans(line)])
            ]
        for leaf, _ in find_strings_and_keys(line):
            if (
                leaf.path != (b"cwd",)
                and leaf.path[:1] != (b"snapshot",)
                and is_exempt_from_redaction(line, leaf)
            ):
                continue
            known_spans = self._known_value_spans(line[leaf.start : leaf.end], in_json=True)
            spans += [
                span._replace(start=span.start + leaf.start, end=span.end + leaf.start)
                for span in known_spans
            ]
        return [Secret(*span[:3]) for span in merge_spans(spans)]

    def _may_contain_known_value(self, line: bytes) -> bool:
        """Check whether a line may contain a remembered value. Most lines do not contain one.

        The check searches for the beginnings and ends of the values.
        """
        if self._value_edges is None:
            values = [*self._values_anywhere, *self._word_values, *self._context_values]
            edges = [
                edge
                for value in values
                for edge in (value[:_CUT_VALUE_EDGE_BYTES], value[-_CUT_VALUE_EDGE_BYTES:])
            ]
            self._value_edges = tuple(dict.fromkeys(edges))
        if not self._value_edges:
            return False
        compact_line = line.translate(None, _IGNORED_CHARACTERS)
        if any(edge in compact_line for edge in self._value_edges):
            return True
        if self._values_in_base64(line):
            return True
        return (
            ESCAPED_CHARACTER_PATTERN.search(line.lower()) is not None
            or next(positions_of_invisible_characters(line), None) is not None
        )

    def _known_value_spans(self, raw: bytes, *, in_json: bool = False) -> list[Span]:
        """Return the position in ``raw`` of every remembered value.

        Values are also found inside escapes, however deeply these are nested.
        """
        views = Views(raw, in_json=in_json)
        spans = []
        for depth, text in views:
            for span in self._spans_in_all_views(text):
                start, end = views.map_to_original_bytes(depth, span.start, span.end)
                spans.append(span._replace(start=start, end=end))
        return spans

    def _spans_in_all_views(self, text: bytes) -> Iterator[Span]:
        yield from self._spans_in_view(text)
        if view := view_without_invisible_text(text):
            for span in self._spans_in_view(view.text):
                start, end = view.map_to_original(span.start, span.end)
                yield span._replace(start=start, end=end)

    def _spans_in_view(self, text: bytes) -> Iterator[Span]:
        compact_value = text.translate(None, _IGNORED_CHARACTERS)
        for value in (*self._values_anywhere.values(), *self._word_values.values()):
            if value.compact_value in compact_value:
                yield from value.spans_in_text(text)
        for value in self._values_in_base64(text):
            for match in _base64_pattern(value.compact_value).finditer(text):
                yield Span(value.kind, *match.span(), KNOWN_VALUE_RANK)
        for value in self._context_values.values():
            if value.compact_value in compact_value:
                yield from (
                    span
                    for span in value.spans_in_text(text)
                    if _is_near_indicator_word(text, span)
                )
        yield from self._cut_value_spans(text)

    def _values_in_base64(self, text: bytes) -> list[_KnownValue]:
        """Return the remembered values that a text contains in base64."""
        decoded = b" ".join(map(_decode_base64, _BASE64_RUN_PATTERN.findall(text)))
        words = b" ".join(_PRINTABLE_RUN_PATTERN.findall(decoded))
        if not words:
            return []
        return [value for value in self._values_anywhere.values() if value.compact_value in words]

    def _cut_value_spans(self, text: bytes) -> Iterator[Span]:
        """Yield the parts of remembered values next to ellipses, and at the start and the end of the text."""
        yield from self._spans_cut_before(text, len(text))
        halves = (
            *self._spans_cut_before(text, len(text.rstrip())),
            *self._spans_cut_after(text, len(text) - len(text.lstrip())),
        )
        yield from (span for span in halves if span.end - span.start >= _MIN_CUT_VALUE_BYTES)
        for number, ellipsis in enumerate(_ELLIPSIS_PATTERN.finditer(text)):
            if number == _MAX_ELLIPSES:
                break
            yield from self._spans_cut_before(text, ellipsis.start())
            yield from self._spans_cut_after(text, ellipsis.end())

    def _spans_cut_before(self, text: bytes, end: int) -> Iterator[Span]:
        for start in range(max(0, end - self._max_value_bytes), end - _CUT_VALUE_EDGE_BYTES + 1):
            values = self._values_by_beginning.get(text[start : start + _CUT_VALUE_EDGE_BYTES])
            is_long = end - start >= _MIN_CUT_VALUE_BYTES
            if values and (is_long or not text[start - 1 : start].isalnum()):
                part = text[start:end].translate(None, _IGNORED_CHARACTERS)
                cut_values = (
                    value
                    for value in values
                    if value.compact_value.startswith(part) and value.compact_value != part
                )
                yield from (Span(value.kind, start, end, KNOWN_VALUE_RANK) for value in cut_values)

    def _spans_cut_after(self, text: bytes, start: int) -> Iterator[Span]:
        for end in range(
            start + _CUT_VALUE_EDGE_BYTES, min(len(text), start + self._max_value_bytes) + 1
        ):
            values = self._values_by_end.get(text[end - _CUT_VALUE_EDGE_BYTES : end])
            is_long = end - start >= _MIN_CUT_VALUE_BYTES
            if values and (is_long or not text[end : end + 1].isalnum()):
                part = text[start:end].translate(None, _IGNORED_CHARACTERS)
                cut_values = (
                    value
                    for value in values
                    if value.compact_value.endswith(part) and value.compact_value != part
                )
                yield from (Span(value.kind, start, end, KNOWN_VALUE_RANK) for value in cut_values)


def _decode_all_layers(value: bytes) -> bytes:
    """Return a value with all layers of its escapes decoded."""
    for _ in range(MAX_ESCAPE_LAYERS):
        decoded = decode_layer(value)
        if decoded is None:
            break
        value = decoded
    return value


def _lines_to_find_alone(value: bytes) -> list[bytes]:
    """Return those lines of a multi-line secret that are also removed where they occur alone.

    The first and the last line of a key are omitted.
    """
    lines = [line.strip() for line in value.splitlines()]
    if len(lines) < 2:
        return []
    return [
        line for line in lines if len(line) >= _MIN_LINE_BYTES and not line.startswith(b"-----")
    ]


def _secret_parts(value: bytes) -> list[bytes]:
    """Return the secret parts of a rule's match if the match also contains text that is not secret.

    Examples are a cookie with its name, and the address of a web hook.
    """
    if named_value := _NAMED_VALUE_PATTERN.fullmatch(value):
        return [named_value[1]]
    if not value.startswith((b"http://", b"https://")):
        return []
    segments = value.split(b"/")[3:]
    return [
        part
        for part in segments
        if len(part) >= _MIN_RANDOM_BYTES and _DIGIT_PATTERN.search(part) and is_random_value(part)
    ]


def _decode_base64(run: bytes) -> bytes:
    """Return the bytes that are encoded in base64, with or without padding."""
    characters = run.translate(_TO_STANDARD_BASE64_TABLE, b"\r\n")
    if len(characters) % 4 == 1:
        characters = characters[:-1]
    return binascii.a2b_base64(characters + b"=" * (-len(characters) % 4))


def _base64_pattern(value: bytes) -> re.Pattern[bytes]:
    """Return a pattern that matches a value in base64, at any position in a longer encoded text.

    The pattern matches the characters that depend only on the value, and one additional character
    on each side.
    """
    forms = set()
    for offset in range(3):
        encoded = binascii.b2a_base64(bytes(offset) + value, newline=False)
        start, end = (offset * 8 + 5) // 6, (offset + len(value)) * 8 // 6
        forms |= {encoded[start:end], encoded[start:end].translate(_TO_URL_SAFE_BASE64_TABLE)}
    return re.compile(
        rb"[A-Za-z0-9+/_-]?(?:"
        + b"|".join(map(_build_interruptible_expression, forms))
        + rb")[A-Za-z0-9+/_-]?"
    )


def _interruptible_pattern(value: bytes) -> re.Pattern[bytes]:
    return compile_lazily(_build_interruptible_expression(value))


def _build_interruptible_expression(value: bytes) -> bytes:
    """Return an expression that matches a value even if quotes, escapes or line breaks occur inside it."""
    return _GAP_EXPRESSION.join(re.escape(bytes([sign])) for sign in value)


def _whole_word_pattern(value: bytes) -> re.Pattern[bytes]:
    return compile_lazily(rb"(?<![A-Za-z0-9])" + re.escape(value) + rb"(?![A-Za-z0-9])")


def _is_near_indicator_word(text: bytes, span: Span) -> bool:
    word_before = _INDICATOR_WORD_PATTERN.search(
        text, max(0, span.start - _CONTEXT_BYTES_BEFORE), span.start
    )
    return (
        word_before is not None
        or _INDICATOR_WORD_PATTERN.search(text, span.end, span.end + _CONTEXT_BYTES_AFTER)
        is not None
    )
