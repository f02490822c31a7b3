"""Bytes whose escapes are decoded, and the mapping of positions to the original bytes.

Tool inputs are JSON inside JSON strings, and a transcript line adds another layer of escapes. Each
layer is a view of the same bytes. Positions are mapped only for matches, which are rare.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache

from resume_hooks.redaction.lazy_patterns import late

DEEPEST = 4
"""The maximum number of layers of escapes to decode."""

_SIMPLE = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"b": b"\b", b"f": b"\f", b'"': b'"', b"/": b"/"}
_PAIR = rb"u(?:[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|[0-9a-fA-F]{4})"
"""A character written by its code. Characters beyond the first 65,536 have two codes that must stay
together."""

_ESCAPE = late(rb"\\(?:" + _PAIR + rb"|[ntrbf\"/\\])")

_BACKSLASH = 92
_SLASHES = 64
_LONGEST = 12
"""The size in bytes of the longest escape."""

ESCAPED = late(
    rb"\\u(?:00(?:[2-7]|1b|0[0-8ef]|1[0-9ac-f]|[89][0-9a-f]|ad)|034f|061c|11(?:5f|60)|17b[45]|180[b-f]|"
    rb"20(?:0[b-f]|2[a-e]|6)|2800|3164|f(?:e(?:ff|0)|fa0|ff)|d8(?:2f|34)|db40)"
)
"""An ordinary character, a terminal's control sequence or an invisible character that is written by
its code."""

_CODE = rb"\x1b(?:\[[0-?]{0,64}[ -/]{0,4}[@-~]|[ -/]{1,4}[0-~]|[78=>DEHMNOZc\\])"
_CODES = late(_CODE + rb"|\x1b\][0-9]{0,4};?")
"""A terminal's control sequences, such as colours.

For links and titles only the delimiters match, because their content is text.
"""

_HIDDEN_BY_LEAD = (
    rb"\xc2[\x80-\x9f\xad]", rb"\xcd\x8f", rb"\xd8\x9c", rb"\xe1(?:\x85[\x9f\xa0]|\x9e[\xb4\xb5]|\xa0[\x8b-\x8f])",
    rb"\xe2(?:\x80[\x8b-\x8f\xaa-\xae]|\x81[\xa0-\xaf]|\xa0\x80)", rb"\xe3\x85\xa4",
    rb"\xef(?:\xb8[\x80-\x8f]|\xbb\xbf|\xbe\xa0|\xbf[\xb0-\xbb])",
    rb"\xf0(?:\x9b\xb2[\xa0-\xa3]|\x9d\x85[\xb3-\xba])", rb"\xf3\xa0[\x80-\x87][\x80-\xbf]",
)  # fmt: skip
_HIDDEN = rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]|" + rb"|".join(_HIDDEN_BY_LEAD)
"""Invisible characters: controls, joiners, separators, direction marks, variation selectors and tags."""

_HIDDEN_SIGNS = tuple(late(form) for form in _HIDDEN_BY_LEAD)
"""The distinct first bytes of these characters. Searching for them is ten times as fast as a
pattern for all characters."""

_HIDING = late(rb"(?:" + _HIDDEN + rb")+")
_CONTROLS = bytes([*range(9), *range(14, 27), *range(28, 32), 127])
_ASCII = 127
_SIGNS = frozenset(range(33, 127))
_UNSEEN = late(rb"\x1b\][^\x07\x1b]{0,4000}(?:\x07|\x1b\\)|" + _CODE + rb"|" + _HIDDEN)
"""Everything invisible, on a terminal or elsewhere, including whole links and titles."""


class View:
    """``text`` with one layer of escapes decoded; ``original`` contains the positions in the source bytes."""

    def __init__(self, raw: bytes, escapes: re.Pattern[bytes] = _ESCAPE) -> None:
        self._starts: list[int] = []
        self._escapes: list[tuple[int, int, int]] = []
        parts: list[bytes] = []
        size = place = 0
        for found in escapes.finditer(raw):
            start, end = found.span()
            if escapes is _ESCAPE:
                resolved = _text_of_escape(found[0])
            else:
                resolved = b""
            parts += [raw[place:start], resolved]
            size += start - place
            self._starts.append(size)
            size += len(resolved)
            self._escapes.append((size, start, end))
            place = end
        parts.append(raw[place:])
        self.text = b"".join(parts)

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Map the range from ``start`` to ``end`` to the original bytes.

        An escape is always mapped as a whole.
        """
        return self._place(start)[0], self._place(max(start, end - 1))[1]

    def _place(self, place: int) -> tuple[int, int]:
        """Return the start and end, in the original bytes, of the byte at ``place``."""
        number = bisect_right(self._starts, place) - 1
        if number >= 0:
            stop, origin, end = self._escapes[number]
        else:
            stop, origin, end = (0, 0, 0)
        there = end + place - stop
        if place < stop:
            return (origin, end)
        return (there, there + 1)


class Views:
    """All views of some bytes, beginning with the bytes themselves.

    The last view has no escapes left, or has the maximum depth.

    If ``in_json``, the bytes are the encoded content of a JSON string, which differs from its value
    if it has escapes.
    """

    def __init__(self, raw: bytes, *, in_json: bool = False) -> None:
        self._texts = [raw]
        self._layers: dict[int, View] = {}
        self._in_json = in_json

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Yield the views by depth. Each view is created on demand."""
        for depth in range(DEEPEST + 1):
            deeper = resolve_layer(self._texts[depth])
            if depth or deeper is None or not self._in_json:
                yield depth, self._texts[depth]
            if deeper is None:
                return
            self._texts.append(deeper)

    def places_in_bytes(self, depth: int, start: int, end: int) -> tuple[int, int]:
        """Map a range in the view at ``depth`` to positions in the bytes themselves."""
        for layer in range(depth - 1, -1, -1):
            if layer not in self._layers:
                self._layers[layer] = View(self._texts[layer])
            start, end = self._layers[layer].origin(start, end)
        return start, end


def stretch_of_whole_escapes(raw: bytes, start: int, end: int) -> tuple[int, int]:
    """Drop a partial escape at the beginning of a range, and include the whole escape at its end."""
    return _end_of_escape(raw, start), _end_of_escape(raw, end)


def _end_of_escape(raw: bytes, place: int) -> int:
    """Return the end of the escape around ``place``, or ``place`` itself if it is not inside an escape."""
    for start in range(place - 1, max(-1, place - _LONGEST), -1):
        if (
            raw[start] == _BACKSLASH
            and (escape := _ESCAPE.match(raw, start))
            and escape.end() > place
        ):
            before = raw[max(0, start - _SLASHES) : start]
            if (len(before) - len(before.rstrip(b"\\"))) % 2 == 0:
                return escape.end()
    return place


def blank_controls(raw: bytes) -> bytes:
    """Replace a terminal's control sequences in ``raw`` by spaces. Their last letter would otherwise join a word."""
    if b"\x1b" in raw:
        return _CODES.sub(lambda found: b" " * len(found[0]), raw)
    return raw


def view_as_shown(raw: bytes) -> View | None:
    """Return ``raw`` as people see it if it contains colours or invisible characters inside a word.

    Otherwise return None.
    """
    has_codes = b"\x1b" in raw and _UNSEEN.search(raw) is not None
    if has_codes or next(places_of_hidden_signs(raw), None) is not None:
        return View(raw, _UNSEEN)
    return None


def places_of_hidden_signs(raw: bytes) -> Iterator[int]:
    """Yield the positions of invisible characters in ``raw`` inside or before a word.

    Omit those that belong to an emoji.
    """
    has_controls = len(raw.translate(None, _CONTROLS)) < len(raw)
    if not has_controls and (raw.isascii() or not any(sign.search(raw) for sign in _HIDDEN_SIGNS)):
        return  # true of most texts
    for found in _HIDING.finditer(raw):
        start, end = found.span()
        if end == len(raw):
            return
        is_behind_sign = start > 0 and raw[start - 1] in _SIGNS
        if raw[end] in _SIGNS or (is_behind_sign and raw[end] > _ASCII):
            yield start


def resolve_layer(raw: bytes) -> bytes | None:
    """Decode one layer of JSON escapes in ``raw``, as in a ``View``.

    Return None if there are no escapes.
    """
    if b"\\" not in raw:
        return None
    if b"\\u" in raw or b"\0" in raw:
        text = View(raw).text
    else:
        text = raw.replace(b"\\\\", b"\0")
        for sign, plain in _SIMPLE.items():
            text = text.replace(b"\\" + sign, plain)
        text = text.replace(b"\0", b"\\")
    if text == raw:
        return None
    return text


@lru_cache(maxsize=4096)
def _text_of_escape(escape: bytes) -> bytes:
    if escape[1:2] != b"u":
        return _SIMPLE.get(escape[1:], escape[1:])
    codes = (int(code, 16) for code in escape.translate(None, b"\\").split(b"u")[1:])
    text = b"".join(code.to_bytes(2, "big") for code in codes)
    return text.decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass")
