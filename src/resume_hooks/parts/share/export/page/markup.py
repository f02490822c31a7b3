"""Convert texts from a session to HTML.

This is the only module that creates markup. It escapes every text that is not ``Html``. The names
of elements and attributes are constants in the code. The values of attributes and the contents of
elements may come from a session, so they are not trusted.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from resume_hooks.system.text import remove_escape_sequences

_CONTROL_CHARACTERS_PATTERN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Matches control characters, and characters that reorder or hide text. It does not match joiners,
because some scripts and emoji need them."""

_VOID_ELEMENTS = frozenset({"br", "hr", "img", "input", "meta"})


class Html(str):
    """Markup in which all text from outside this package is escaped. Only this package creates it."""

    __slots__ = ()


def show_control_characters(text: str) -> str:
    """Return a text in which every character is visible.

    Colour codes are removed, and each other control character is replaced with its code point, such
    as ``[U+0007]``.
    """
    lines = remove_escape_sequences(text).replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL_CHARACTERS_PATTERN.sub(lambda match: f"[U+{ord(match[0]):04X}]", lines)


def escape_html(text: str) -> Html:
    """Return a text as markup that is safe inside an element and inside a double-quoted attribute."""
    if isinstance(text, Html):
        return text
    return Html(html.escape(show_control_characters(text), quote=True))


def join_markup(parts: Iterable[str]) -> Html:
    """Join the parts into one piece of markup. Each part that is not ``Html`` is escaped."""
    return Html("".join([escape_html(part) for part in parts]))


def build_start_tag(name: str, /, **attributes: str | bool) -> Html:
    """Return the start tag of an element.

    In the name of an attribute, a trailing underscore is removed and other underscores become
    hyphens. An attribute whose value is True is written without its value, and an attribute whose
    value is False is omitted.
    """
    attribute_texts = []
    for key, value in attributes.items():
        if value is False:
            continue
        word = key.rstrip("_").replace("_", "-")
        attribute_texts.append(f" {word}" if value is True else f' {word}="{escape_html(value)}"')
    return Html(f"<{name}{''.join(attribute_texts)}>")


def build_element(name: str, /, *content: str, **attributes: str | bool) -> Html:
    """Return an element with its attributes and its content. Content that is not ``Html`` is escaped."""
    opening_tag = build_start_tag(name, **attributes)
    if name in _VOID_ELEMENTS:
        return opening_tag
    return Html(f"{opening_tag}{join_markup(content)}</{name}>")
