"""Markup: the one place where foreign text becomes HTML.

Every text that is not ``Html`` already is escaped here.

Names of elements and attributes are ours; their values and contents may be anybody's.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from resume_hooks.system.text import remove_escape_sequences

_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Control characters, and those that reorder or hide text, but not the joiners that scripts and emoji need."""

_VOID = frozenset({"br", "hr", "img", "input", "meta"})


class Html(str):
    """Markup that was made here, and nowhere else."""

    __slots__ = ()


def visible(text: str) -> str:
    """A text without hidden characters: a terminal's colours are removed, other controls spelled out."""
    lines = remove_escape_sequences(text).replace("\r\n", "\n").replace("\r", "\n")
    return _UNSEEN.sub(lambda match: f"[U+{ord(match[0]):04X}]", lines)


def escape_html(text: str) -> Html:
    """A text as markup that shows it, fit for content and for attributes in double quotes."""
    if isinstance(text, Html):
        return text
    return Html(html.escape(visible(text), quote=True))


def join_markup(parts: Iterable[str]) -> Html:
    """The concatenated parts, each escaped unless it is markup."""
    return Html("".join([escape_html(part) for part in parts]))


def start_tag(name: str, /, **attributes: str | bool) -> Html:
    """The start of an element. An underscore at the end of an attribute's name is dropped, others become hyphens.

    True stands for an attribute without a value, False for none.
    """
    said = []
    for key, value in attributes.items():
        if value is False:
            continue
        word = key.rstrip("_").replace("_", "-")
        said.append(f" {word}" if value is True else f' {word}="{escape_html(value)}"')
    return Html(f"<{name}{''.join(said)}>")


def element(name: str, /, *content: str, **attributes: str | bool) -> Html:
    """An element with its content."""
    start = start_tag(name, **attributes)
    if name in _VOID:
        return start
    return Html(f"{start}{join_markup(content)}</{name}>")
