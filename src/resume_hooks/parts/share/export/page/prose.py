"""What the model wrote, as HTML: Markdown is parsed by markdown-it and written here, element by element.

Only the elements of a table reach the page, HTML in the text is text, images are links in words, and links lead to the
web or to a mailbox.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from resume_hooks.parts.share.export.page.code import code
from resume_hooks.parts.share.export.page.markup import Html, element, escape, opening, visible

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MOST = 30_000  # characters of a text that are read as Markdown; a longer one is shown as it was typed

ELEMENTS = {
    "p": "p", "blockquote": "blockquote", "ul": "ul", "ol": "ol", "li": "li", "em": "em", "strong": "strong", "s": "s",
    "table": "table", "thead": "thead", "tbody": "tbody", "tr": "tr", "th": "th", "td": "td",
    "h1": "h4", "h2": "h4", "h3": "h5", "h4": "h5", "h5": "h6", "h6": "h6",
}  # fmt: skip
"""What becomes of the parser's elements; headings go below those of the page."""

_ALLOWED = re.compile(r"(?:https?://|mailto:)[^\s\x00-\x1f]+", re.IGNORECASE)


def prose(text: str) -> Html:
    """A text as it was meant."""
    if len(text) > MOST:
        return verbatim(text)
    return element("div", Html("".join(_written(_parser().parse(visible(text))))), class_="prose", dir="auto")


def verbatim(text: str) -> Html:
    """A text as it was typed."""
    return element("div", text, class_="typed", dir="auto")


@cache
def _parser() -> MarkdownIt:
    # markdown-it takes 40 ms to load, which only a page has to spend.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "typographer": False})
    return parser.enable(["table", "strikethrough"]).disable(["image", "html_block", "html_inline"])


def _written(tokens: Sequence[Token]) -> list[Html]:
    """The markup of tokens; what is not known is its text."""
    parts: list[Html] = []
    for token in tokens:
        if token.type == "inline":
            parts += _written(token.children or [])
        elif token.type in {"fence", "code_block"}:
            parts.append(code(token.content.removesuffix("\n"), token.info.split(" ")[0]))
        elif token.type == "code_inline":
            parts.append(element("code", token.content))
        elif token.type == "link_open":  # one that leads elsewhere is marked text
            target = str(token.attrGet("href") or "")
            led = {"href": target, "rel": "noreferrer noopener nofollow", "target": "_blank", "title": target}
            parts.append(opening("a", **led if _ALLOWED.fullmatch(target) else {}))
        elif token.type == "link_close":
            parts.append(Html("</a>"))
        elif token.tag in {"br", "hr"}:
            parts.append(element(token.tag))
        elif token.type == "softbreak":
            parts.append(Html("\n"))
        elif token.nesting and token.tag in ELEMENTS:
            parts.append(_element(token))
        else:
            parts.append(escape(token.content))
    return parts


def _element(token: Token) -> Html:
    name = ELEMENTS[token.tag]
    if token.hidden:  # a paragraph in a list whose rows stand close together
        return Html("\n")
    if token.nesting < 0:
        end = "</table></div>" if name == "table" else f"</{name}>"
        return Html(f"{end}\n") if token.block else Html(end)
    start = str(token.attrGet("start") or "")
    align = str(token.attrGet("style") or "").partition(":")[2]
    made = opening(
        name,
        start=start if start.isdecimal() and len(start) < 9 else False,
        class_=align if align in {"center", "right"} else False,
    )
    return Html(f'<div class="wide" tabindex="0">{made}') if name == "table" else made
