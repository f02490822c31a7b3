"""Decode the escapes in bytes, and map positions in the result to positions in the original bytes.

The input of a tool is JSON inside a JSON string, and a line of a transcript adds another layer of
escapes. The result of decoding some of these layers is called a view. Positions are only mapped for
matches, which are rare.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache

from resume_hooks.redaction.lazy_patterns import compile_lazily

MAX_ESCAPE_LAYERS = 4
"""Maximum number of layers of escapes that are decoded."""

_CHARACTER_BY_ESCAPE_LETTER = {
    b"n": b"\n",
    b"t": b"\t",
    b"r": b"\r",
    b"b": b"\b",
    b"f": b"\f",
    b'"': b'"',
    b"/": b"/",
}
_NUMERIC_ESCAPE_EXPRESSION = (
    rb"u(?:[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|[0-9a-fA-F]{4})"
)
"""Matches a character that is written as a code. Characters outside Unicode's basic plane are
written as two codes, which must not be separated."""

_ESCAPE_PATTERN = compile_lazily(rb"\\(?:" + _NUMERIC_ESCAPE_EXPRESSION + rb"|[ntrbf\"/\\])")

_BACKSLASH_BYTE = 92
_BACKSLASH_SEARCH_BYTES = 64
_MAX_ESCAPE_BYTES = 12
"""Number of bytes in the longest escape."""

ESCAPED_CHARACTER_PATTERN = compile_lazily(
    rb"\\u(?:00(?:[2-7]|1b|0[0-8ef]|1[0-9ac-f]|[89][0-9a-f]|ad)|034f|061c|11(?:5f|60)|17b[45]|180[b-f]|"
    rb"20(?:0[b-f]|2[a-e]|6)|2800|3164|f(?:e(?:ff|0)|fa0|ff)|d8(?:2f|34)|db40)"
)
"""Matches the code of an ordinary character, of a terminal control sequence, or of an invisible
character."""

_CONTROL_SEQUENCE_EXPRESSION = (
    rb"\x1b(?:\[[0-?]{0,64}[ -/]{0,4}[@-~]|[ -/]{1,4}[0-~]|[78=>DEHMNOZc\\])"
)
_BLANKED_SEQUENCE_PATTERN = compile_lazily(_CONTROL_SEQUENCE_EXPRESSION + rb"|\x1b\][0-9]{0,4};?")
"""Matches terminal control sequences, for example for colours.

For links and titles, it matches only the delimiters, because their content is text.
"""

_INVISIBLE_CHARACTER_GROUP_EXPRESSIONS = (
    rb"\xc2[\x80-\x9f\xad]", rb"\xcd\x8f", rb"\xd8\x9c", rb"\xe1(?:\x85[\x9f\xa0]|\x9e[\xb4\xb5]|\xa0[\x8b-\x8f])",
    rb"\xe2(?:\x80[\x8b-\x8f\xaa-\xae]|\x81[\xa0-\xaf]|\xa0\x80)", rb"\xe3\x85\xa4",
    rb"\xef(?:\xb8[\x80-\x8f]|\xbb\xbf|\xbe\xa0|\xbf[\xb0-\xbb])",
    rb"\xf0(?:\x9b\xb2[\xa0-\xa3]|\x9d\x85[\xb3-\xba])", rb"\xf3\xa0[\x80-\x87][\x80-\xbf]",
)  # fmt: skip
_INVISIBLE_CHARACTER_EXPRESSION = rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]|" + rb"|".join(
    _INVISIBLE_CHARACTER_GROUP_EXPRESSIONS
)
"""Matches an invisible character: a control character, joiner, separator, direction mark, variation
selector or tag."""

_INVISIBLE_BYTES_AND_PATTERNS = tuple(
    (bytes.fromhex(form[2:4].decode()), compile_lazily(form))
    for form in _INVISIBLE_CHARACTER_GROUP_EXPRESSIONS
)
"""The first byte and the pattern of each group of invisible characters. Most texts contain only one
or two of these bytes, so searching for one group at a time is ten times as fast as searching for
all."""

_INVISIBLE_RUN_PATTERN = compile_lazily(rb"(?:" + _INVISIBLE_CHARACTER_EXPRESSION + rb")+")
_CONTROL_CHARACTERS = bytes([*range(9), *range(14, 27), *range(28, 32), 127])
_LAST_ASCII_BYTE = 127
_VISIBLE_CHARACTERS = frozenset(range(33, 127))
_INVISIBLE_TEXT_PATTERN = compile_lazily(
    rb"\x1b\][^\x07\x1b]{0,4000}(?:\x07|\x1b\\)|"
    + _CONTROL_SEQUENCE_EXPRESSION
    + rb"|"
    + _INVISIBLE_CHARACTER_EXPRESSION
)
"""Matches invisible characters and terminal control sequences.

A sequence for a link or a title is matched together with the address or the title in it.
"""


class View:
    """The result of decoding one layer of the escapes in some bytes (``text``).

    The view also maps positions in ``text`` to positions in the original bytes.
    """

    def __init__(self, raw: bytes, escapes: re.Pattern[bytes] = _ESCAPE_PATTERN) -> None:
        self._starts: list[int] = []
        self._escapes: list[tuple[int, int, int]] = []
        parts: list[bytes] = []
        text_size = position = 0
        for match in escapes.finditer(raw):
            start, end = match.span()
            if escapes is _ESCAPE_PATTERN:
                resolved = _decode_escape(match[0])
            else:
                resolved = b""
            parts += [raw[position:start], resolved]
            text_size += start - position
            self._starts.append(text_size)
            text_size += len(resolved)
            self._escapes.append((text_size, start, end))
            position = end
        parts.append(raw[position:])
        self.text = b"".join(parts)

    def map_to_original(self, start: int, end: int) -> tuple[int, int]:
        """Return the positions in the original bytes for a range of ``text``.

        If the range starts or ends inside an escape, the result is extended to the whole escape.
        """
        return self._find_original_range(start)[0], self._find_original_range(max(start, end - 1))[
            1
        ]

    def _find_original_range(self, position: int) -> tuple[int, int]:
        """Return the start and end, in the original bytes, of the byte at ``position`` in ``text``."""
        escape_number = bisect_right(self._starts, position) - 1
        if escape_number >= 0:
            escape_end, original_start, original_end = self._escapes[escape_number]
        else:
            escape_end, original_start, original_end = (0, 0, 0)
        original_position = original_end + position - escape_end
        if position < escape_end:
            return (original_start, original_end)
        return (original_position, original_position + 1)


class Views:
    """Some bytes, and the results of repeatedly decoding one layer of their escapes.

    The last view contains no escapes, or has the maximum depth. If ``in_json`` is true, the bytes
    are the encoded content of a JSON string. If this content contains escapes, the views do not
    include the undecoded bytes.
    """

    def __init__(self, raw: bytes, *, in_json: bool = False) -> None:
        self._texts = [raw]
        self._layers: dict[int, View] = {}
        self._in_json = in_json

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Yield the depth and the text of each view. A view is decoded only when it is needed."""
        for depth in range(MAX_ESCAPE_LAYERS + 1):
            is_json_string = self._in_json and depth == 0
            deeper = (_decode_json_string if is_json_string else decode_layer)(self._texts[depth])
            if depth or deeper is None or not self._in_json:
                yield depth, self._texts[depth]
            if deeper is None:
                return
            self._texts.append(deeper)

    def map_to_original_bytes(self, depth: int, start: int, end: int) -> tuple[int, int]:
        """Return the positions in the original bytes for a range of the view at ``depth``."""
        for layer in range(depth - 1, -1, -1):
            if layer not in self._layers:
                self._layers[layer] = View(self._texts[layer])
            start, end = self._layers[layer].map_to_original(start, end)
        return start, end


def range_of_whole_escapes(raw: bytes, start: int, end: int) -> tuple[int, int]:
    """Shorten or extend a range so that it contains no partial escape.

    A partial escape at the beginning is left out, and a partial escape at the end is completed.
    """
    return _end_of_escape(raw, start), _end_of_escape(raw, end)


def _end_of_escape(raw: bytes, position: int) -> int:
    """Return the end of the escape that contains ``position``.

    Return ``position`` itself if no escape contains it.
    """
    for start in range(position - 1, max(-1, position - _MAX_ESCAPE_BYTES), -1):
        if (
            raw[start] == _BACKSLASH_BYTE
            and (escape := _ESCAPE_PATTERN.match(raw, start))
            and escape.end() > position
        ):
            before = raw[max(0, start - _BACKSLASH_SEARCH_BYTES) : start]
            if (len(before) - len(before.rstrip(b"\\"))) % 2 == 0:
                return escape.end()
    return position


def blank_control_sequences(raw: bytes) -> bytes:
    """Return ``raw`` with spaces in place of terminal control sequences.

    Without the spaces, the last letter of a control sequence would become part of a word.
    """
    if b"\x1b" in raw:
        return _BLANKED_SEQUENCE_PATTERN.sub(lambda match: b" " * len(match[0]), raw)
    return raw


def view_without_invisible_text(raw: bytes) -> View | None:
    """Return a view of ``raw`` without colours and invisible characters, as people see the text.

    Return None if there are no such characters inside or before a word.
    """
    has_control_sequences = b"\x1b" in raw and _INVISIBLE_TEXT_PATTERN.search(raw) is not None
    if has_control_sequences or next(positions_of_invisible_characters(raw), None) is not None:
        return View(raw, _INVISIBLE_TEXT_PATTERN)
    return None


def positions_of_invisible_characters(raw: bytes) -> Iterator[int]:
    """Yield the positions of invisible characters inside or before a word.

    Invisible characters in an emoji are omitted.
    """
    has_controls = len(raw.translate(None, _CONTROL_CHARACTERS)) < len(raw)
    if not has_controls and (
        raw.isascii()
        or not any(
            first in raw and pattern.search(raw) for first, pattern in _INVISIBLE_BYTES_AND_PATTERNS
        )
    ):
        return  # Most texts contain no invisible characters.
    for match in _INVISIBLE_RUN_PATTERN.finditer(raw):
        start, end = match.span()
        if end == len(raw):
            return
        follows_visible_byte = start > 0 and raw[start - 1] in _VISIBLE_CHARACTERS
        if raw[end] in _VISIBLE_CHARACTERS or (
            follows_visible_byte and raw[end] > _LAST_ASCII_BYTE
        ):
            yield start


def decode_layer(raw: bytes) -> bytes | None:
    """Return ``raw`` with one layer of its JSON escapes decoded, or None if it contains no escapes."""
    if b"\\" not in raw:
        return None
    text = View(raw).text if b"\\u" in raw else _decode_simple_escapes(raw)
    if text == raw:
        return None
    return text


def _decode_json_string(raw: bytes) -> bytes | None:
    """Return the decoded content of a JSON string, or None if it has no escapes.

    This function is faster than ``decode_layer``, because ``json`` is written in C.
    """
    if b"\\" not in raw:
        return None
    try:
        text = json.loads(f'"{raw.decode("utf-8", "surrogatepass")}"')
        return str(text).encode("utf-8", "surrogatepass")
    except ValueError:
        return decode_layer(raw)


def _decode_simple_escapes(raw: bytes) -> bytes:
    """Return ``raw`` with its one-letter escapes decoded.

    Splitting the text at its backslashes takes half as long as replacing each escape.
    """
    decoded: list[bytes] = []
    for section in raw.split(b"\\\\"):
        first, *parts = section.split(b"\\") if b"\\" in section else (section,)
        decoded += (b"\\", first)
        for part in parts:
            letter = part[:1]
            if letter in _CHARACTER_BY_ESCAPE_LETTER:
                decoded += (_CHARACTER_BY_ESCAPE_LETTER[letter], part[1:])
            else:
                decoded += (b"\\", part)
    return b"".join(decoded[1:])


@lru_cache(maxsize=4096)
def _decode_escape(escape: bytes) -> bytes:
    if escape[1:2] != b"u":
        return _CHARACTER_BY_ESCAPE_LETTER.get(escape[1:], escape[1:])
    codes = (int(code, 16) for code in escape.translate(None, b"\\").split(b"u")[1:])
    text = b"".join(code.to_bytes(2, "big") for code in codes)
    return text.decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass")
