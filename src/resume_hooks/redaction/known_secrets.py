"""Values that the rules found once, and their other occurrences without a context that identifies them as secrets.

A title is a prompt's text on one line, a file's name may contain a tool's input, and a summary
contains quotes. In these texts, nothing before the value identifies it, so ``Redactor`` remembers
the value itself. Invariant: the result of ``redact`` contains no learned value in any form that
this module recognises, and no match of a rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from resume_hooks.redaction.false_positives import is_common, is_made_by_chance
from resume_hooks.redaction.json_lines import (
    find_in_line,
    folder_of,
    is_kept,
    is_record,
    strings_with_paths,
    without_secrets,
)
from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.redaction.spans import Span, merge_spans
from resume_hooks.redaction.texts import (
    Secret,
    find_secrets,
    remove_until_clean,
    secrets_in_characters,
    text_without,
)
from resume_hooks.redaction.unescape import (
    DEEPEST,
    ESCAPED,
    Views,
    places_of_hidden_signs,
    resolve_layer,
    view_as_shown,
)

SHORTEST = 6
"""The minimum size in bytes of a value to search for. A shorter value is removed only if a rule
matches it."""

_ALONE = 8
"""The minimum size in bytes of a random value that is also found inside a longer word."""

_LINE = 16
"""The minimum size in bytes of a line of a longer secret, such as a private key, that is found
without the rest."""

_CUT_LENGTH = 3
"""The number of bytes at a value's beginning or end that identify it beside an ellipsis."""

_FOLDS = b" \t\r\n\\\"'`"
"""Characters that quoting, escaping and line wrapping insert into a value."""

_BETWEEN = rb"[\s\\\"'`]*"

_DIGIT = late(rb"\d")
_NAMED = late(rb"[\w.-]{1,60}=([^=\s]{8,4000})")
_ELLIPSIS = late(rb"\s{0,4}(?:\xe2\x80\xa6|\.\.\.|\[cut)\s{0,4}")
_MOST_ELLIPSES = 1_000
"""The maximum number of ellipses in a text beside which parts of values are searched for."""

_TELLING = late(rb"(?i)pass|pwd|secret|token|credential|\bkey|_key|://|\bpw\b|\blogin\b|\bauth")
_BEFORE, _BEHIND = 100, 40
"""The number of bytes before and after a plain word to search for another word that indicates a
password."""

KNOWN = 4
"""The rank of a known value. If a rule matches at the same position, the rule determines the
kind."""


class _Value(NamedTuple):
    """A learned value, also without wrapping and quoting characters (``squeezed``), and its pattern in a text."""

    kind: str
    squeezed: bytes
    pattern: re.Pattern[bytes]

    def spans(self, text: bytes) -> Iterator[Span]:
        """Return the value's occurrences in a text."""
        return (Span(self.kind, *match.span(), KNOWN) for match in self.pattern.finditer(text))


class Redactor:
    """Removes every match of the rules from texts, and every value that the rules matched before.

    Learn from the original texts, and redact the originals, before anything is cut or joined. How a
    value is searched for depends on how likely the same characters mean something else:

    - Random values of at least eight bytes are found anywhere, even inside a word, quoted, escaped,
      percent-encoded, or over several lines. Three characters of the beginning or the end are
      enough beside an ellipsis, or at the end of a cut text.
    - Shorter random values and digits are found as a whole word.
    - Words, such as ``sunshine``, are found as a whole word near a word that indicates a password.
    - Values below six bytes, and words that are common in programs (``postgres``), are removed only
      if a rule matches.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._anywhere: dict[bytes, _Value] = {}
        self._as_words: dict[bytes, _Value] = {}
        self._near_telling_words: dict[bytes, _Value] = {}
        self._by_beginning: dict[bytes, list[_Value]] = {}
        self._by_end: dict[bytes, list[_Value]] = {}
        self._longest = 0
        self._spared: set[bytes] = set()
        self._folder = b""
        """The folder of the last record that was learned."""
        self._parts: tuple[bytes, ...] | None = None
        for text in texts:
            self.learn(text)

    @property
    def knows_any(self) -> bool:
        """Whether any value was learned. If so, more than the rules' matches is removed."""
        return bool(self._anywhere or self._as_words or self._near_telling_words)

    def spare(self, names: Iterable[str]) -> None:
        """Never learn these names, such as the ids of sessions, because users find sessions by them."""
        self._spared.update(name.encode("utf-8", "surrogatepass") for name in names)

    def learn(self, text: str) -> None:
        """Learn each secret that the rules find in an original text."""
        for secret in find_secrets(text):
            value = text[secret.start : secret.end]
            self._remember(secret.kind, value.encode("utf-8", "surrogatepass"))

    def learn_line(self, line: bytes) -> None:
        """Learn each secret in a transcript line, and in the name of its folder."""
        for secret in find_in_line(line):
            self._remember(secret.kind, line[secret.start : secret.end])
        folder = folder_of(line)
        if folder and folder != self._folder:
            self._folder = folder
            self.learn(folder.decode("utf-8", "replace"))

    def redact(self, text: str) -> str:
        """Replace each secret in ``text`` by ``[secret removed: <kind>]``.

        Return the same object if it contains no secret.
        """
        return self.redact_and_tell(text)[0]

    def redact_and_tell(self, text: str) -> tuple[str, list[Secret]]:
        """Return the result of ``redact``, and the secrets with character positions in ``text``."""
        return remove_until_clean(text, self._find, text_without)

    def redact_line(self, line: bytes) -> tuple[bytes, list[Secret]]:
        """Return a transcript line without secrets, and the secrets with their byte positions in the line.

        The fields that ``json_lines.redact_line`` keeps are also kept here, except folders and file
        names: known values are also removed from keys, from ``cwd`` and from lists of files. The
        result is still a JSON object with the same structure.
        """
        return remove_until_clean(line, self._find_in_line, without_secrets)

    def _remember(self, kind: str, found: bytes) -> None:
        value = _resolve_all_layers(found)
        if view := view_as_shown(value):
            value = view.text
        for part in (value, *_long_lines_of(value), *_telling_parts(value)):
            self._remember_value(kind, part)

    def _remember_value(self, kind: str, value: bytes) -> None:
        squeezed = value.translate(None, _FOLDS)
        if len(squeezed) < SHORTEST or is_common(squeezed) or squeezed in self._spared:
            return
        self._parts = None
        if squeezed.isdigit() or (len(squeezed) < _ALONE and is_made_by_chance(squeezed)):
            self._as_words.setdefault(squeezed, _Value(kind, squeezed, _whole_word_pattern(value)))
        elif is_made_by_chance(squeezed):
            # the check takes 3 ms, and few texts contain a secret
            from urllib.parse import quote_from_bytes

            for form in {squeezed, quote_from_bytes(squeezed, safe="").encode()}:
                self._remember_anywhere(_Value(kind, form, _folded_pattern(form)))
        else:
            self._near_telling_words.setdefault(
                squeezed, _Value(kind, squeezed, _whole_word_pattern(value))
            )

    def _remember_anywhere(self, value: _Value) -> None:
        if value.squeezed in self._anywhere:
            return
        self._anywhere[value.squeezed] = value
        self._by_beginning.setdefault(value.squeezed[:_CUT_LENGTH], []).append(value)
        self._by_end.setdefault(value.squeezed[-_CUT_LENGTH:], []).append(value)
        self._longest = max(self._longest, len(value.squeezed))

    def _find(self, text: str) -> list[Secret]:
        found = find_secrets(text)
        if not self.knows_any:
            return found
        raw = text.encode("utf-8", "surrogatepass")
        known = secrets_in_characters(raw, text, merge_spans(self._in_text(raw)))
        spans = (Span(secret.kind, secret.start, secret.end, 0) for secret in found)
        again = (Span(secret.kind, secret.start, secret.end, KNOWN) for secret in known)
        return [Secret(*span[:3]) for span in merge_spans([*spans, *again])]

    def _find_in_line(self, line: bytes) -> list[Secret]:
        found = find_in_line(line)
        if not self._may_hold_known(line):
            return found
        spans = [Span(secret.kind, secret.start, secret.end, 0) for secret in found]
        if not is_record(line):
            return [Secret(*span[:3]) for span in merge_spans([*spans, *self._in_text(line)])]
        for leaf, _ in strings_with_paths(line):
            if leaf.path != (b"cwd",) and leaf.path[:1] != (b"snapshot",) and is_kept(line, leaf):
                continue
            known = self._in_text(line[leaf.start : leaf.end], in_json=True)
            spans += [
                span._replace(start=span.start + leaf.start, end=span.end + leaf.start)
                for span in known
            ]
        return [Secret(*span[:3]) for span in merge_spans(spans)]

    def _may_hold_known(self, line: bytes) -> bool:
        """Check whether a line contains the beginning or end of a known value. This test alone skips most lines."""
        if self._parts is None:
            values = [*self._anywhere, *self._as_words, *self._near_telling_words]
            parts = [
                part for value in values for part in (value[:_CUT_LENGTH], value[-_CUT_LENGTH:])
            ]
            self._parts = tuple(dict.fromkeys(parts))
        if not self._parts:
            return False
        squeezed = line.translate(None, _FOLDS)
        if any(part in squeezed for part in self._parts):
            return True
        return (
            ESCAPED.search(line.lower()) is not None
            or next(places_of_hidden_signs(line), None) is not None
        )

    def _in_text(self, raw: bytes, *, in_json: bool = False) -> list[Span]:
        """Return every known value in UTF-8 text, in each layer of its escapes, with positions in ``raw``."""
        views = Views(raw, in_json=in_json)
        found = []
        for depth, text in views:
            for span in self._in_view_and_as_shown(text):
                start, end = views.places_in_bytes(depth, span.start, span.end)
                found.append(span._replace(start=start, end=end))
        return found

    def _in_view_and_as_shown(self, text: bytes) -> Iterator[Span]:
        yield from self._in_view(text)
        if view := view_as_shown(text):
            for span in self._in_view(view.text):
                start, end = view.origin(span.start, span.end)
                yield span._replace(start=start, end=end)

    def _in_view(self, text: bytes) -> Iterator[Span]:
        squeezed = text.translate(None, _FOLDS)
        for value in (*self._anywhere.values(), *self._as_words.values()):
            if value.squeezed in squeezed:
                yield from value.spans(text)
        for value in self._near_telling_words.values():
            if value.squeezed in squeezed:
                yield from (span for span in value.spans(text) if _is_near_telling_word(text, span))
        yield from self._cut_values(text)

    def _cut_values(self, text: bytes) -> Iterator[Span]:
        """Return the parts of known values beside ellipses and at the end of the text."""
        yield from self._cut_before(text, len(text))
        for number, ellipsis in enumerate(_ELLIPSIS.finditer(text)):
            if number == _MOST_ELLIPSES:
                break
            yield from self._cut_before(text, ellipsis.start())
            yield from self._cut_behind(text, ellipsis.end())

    def _cut_before(self, text: bytes, end: int) -> Iterator[Span]:
        for start in range(max(0, end - self._longest), end - _CUT_LENGTH + 1):
            values = self._by_beginning.get(text[start : start + _CUT_LENGTH])
            if values and not text[start - 1 : start].isalnum():
                part = text[start:end]
                cut = (
                    value
                    for value in values
                    if value.squeezed.startswith(part) and value.squeezed != part
                )
                yield from (Span(value.kind, start, end, KNOWN) for value in cut)

    def _cut_behind(self, text: bytes, start: int) -> Iterator[Span]:
        for end in range(start + _CUT_LENGTH, min(len(text), start + self._longest) + 1):
            values = self._by_end.get(text[end - _CUT_LENGTH : end])
            if values and not text[end : end + 1].isalnum():
                part = text[start:end]
                cut = (
                    value
                    for value in values
                    if value.squeezed.endswith(part) and value.squeezed != part
                )
                yield from (Span(value.kind, start, end, KNOWN) for value in cut)


def _resolve_all_layers(value: bytes) -> bytes:
    """Remove the escapes of the surrounding text from a value."""
    for _ in range(DEEPEST):
        plain = resolve_layer(value)
        if plain is None:
            break
        value = plain
    return value


def _long_lines_of(value: bytes) -> list[bytes]:
    """Return the lines of a multi-line secret that would each reveal a part of it.

    The first and last line of a key are omitted.
    """
    lines = [line.strip() for line in value.splitlines()]
    if len(lines) < 2:
        return []
    return [line for line in lines if len(line) >= _LINE and not line.startswith(b"-----")]


def _telling_parts(value: bytes) -> list[bytes]:
    """Return the secret parts of a longer match, such as a cookie with its name, or a web hook's address."""
    if named := _NAMED.fullmatch(value):
        return [named[1]]
    if not value.startswith((b"http://", b"https://")):
        return []
    segments = value.split(b"/")[3:]
    return [
        part
        for part in segments
        if len(part) >= _ALONE and _DIGIT.search(part) and is_made_by_chance(part)
    ]


def _folded_pattern(value: bytes) -> re.Pattern[bytes]:
    return late(_BETWEEN.join(re.escape(bytes([sign])) for sign in value))


def _whole_word_pattern(value: bytes) -> re.Pattern[bytes]:
    return late(rb"(?<![A-Za-z0-9])" + re.escape(value) + rb"(?![A-Za-z0-9])")


def _is_near_telling_word(text: bytes, span: Span) -> bool:
    before = _TELLING.search(text, max(0, span.start - _BEFORE), span.start)
    return before is not None or _TELLING.search(text, span.end, span.end + _BEHIND) is not None
