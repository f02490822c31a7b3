"""Format code and prose for the page.

Pygments colours code if it knows the language and the code is short. Each code box has a copy
button. The model's prose is parsed by markdown-it, and only elements from a fixed table appear on
the page. HTML in the prose is shown as text, images become text links, and links lead only to web
or mail addresses.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from resume_hooks.parts.share.export.page.markup import (
    Html,
    build_element,
    build_start_tag,
    escape_html,
    join_markup,
    show_control_characters,
)
from resume_hooks.parts.share.export.parts import MediaPart
from resume_hooks.transcripts.records import IMAGE

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_COLOURED_CHARACTERS, MAX_COLOURED_LINES, MAX_COLOURED_LINE_CHARACTERS = 8_000, 300, 400
"""The maximum number of characters, of lines, and of characters per line in coloured code.

Longer code is not coloured, because some lexers would be slow. For example, a long run of the same
character can take seconds.
"""

LEXERS_BY_LANGUAGE = {
    "bash": "bash", "c": "c", "console": "bash", "cpp": "cpp", "css": "css", "diff": "diff", "go": "go",
    "html": "html", "ini": "ini", "java": "java", "javascript": "javascript", "js": "javascript", "json": "json",
    "jsx": "javascript", "py": "python", "python": "python", "rs": "rust", "rust": "rust", "sh": "bash",
    "shell": "bash", "sql": "sql", "toml": "toml", "ts": "typescript", "tsx": "typescript",
    "typescript": "typescript", "yaml": "yaml", "yml": "yaml", "zsh": "bash", "h": "c", "hpp": "cpp", "cc": "cpp",
    "cfg": "ini", "mjs": "javascript", "pyi": "python", "xml": "html",
}  # fmt: skip
"""Maps the language of a fence or the extension of a file to the lexer for it."""

CSS_CLASSES_BY_TOKEN_TYPE = (
    ("Token.Comment", "tc"),
    ("Token.Literal.String", "ts"),
    ("Token.Literal.Number", "tn"),
    ("Token.Keyword", "tk"),
    ("Token.Name.Function", "tf"),
    ("Token.Name.Class", "tf"),
    ("Token.Name.Tag", "tk"),
    ("Token.Name.Attribute", "tf"),
    ("Token.Name.Builtin", "tb"),
    ("Token.Name.Decorator", "tb"),
    ("Token.Name.Variable", "tb"),
    ("Token.Generic.Deleted", "td"),
    ("Token.Generic.Inserted", "ti"),
)
"""Maps each kind of token to its CSS class."""

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The types of images that contain only pixels and no code."""

_BASE64_PATTERN = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")
# The maximum number of lines in each of two texts that are compared line by line. If one of the
# texts is longer, all lines are shown as changed.
MAX_COMPARED_LINES = 400
CONTEXT_LINE_COUNT = 3  # The number of unchanged lines that are shown before and after a change.
DIFFERENCE_SIGNS = {"del": "-", "ins": "+", "same": " ", "gap": ""}

# A text with more characters is shown as it was typed, not as Markdown.
MAX_PROSE_CHARACTERS = 30_000

HTML_ELEMENTS_BY_PARSER_TAG = {
    "p": "p", "blockquote": "blockquote", "ul": "ul", "ol": "ol", "li": "li", "em": "em", "strong": "strong", "s": "s",
    "table": "table", "thead": "thead", "tbody": "tbody", "tr": "tr", "th": "th", "td": "td",
    "h1": "h4", "h2": "h4", "h3": "h5", "h4": "h5", "h5": "h6", "h6": "h6",
}  # fmt: skip
"""Maps each of the parser's tags to an HTML element. Headings become smaller than the headings of
the page."""

_ALLOWED_LINK_PATTERN = re.compile(r"(?:https?://|mailto:)[^\s\x00-\x1f]+", re.IGNORECASE)


def build_code_markup(text: str, language: str = "", description: str = "") -> Html:
    """Return a box with code. ``language`` may be any text, because it may come from a Markdown fence."""
    coloured_code = _colour_code(text, LEXERS_BY_LANGUAGE.get(language.strip().lower(), ""))
    return build_element(
        "div",
        build_element("pre", build_element("code", coloured_code), tabindex="0"),
        class_="code",
        data_about=description or False,
    )


def find_language(path: str) -> str:
    """Return the language of a file according to its extension, or ``""`` if it is unknown."""
    return os.path.splitext(path)[1][1:].lower()


def _colour_code(text: str, lexer_name: str) -> str:
    if not lexer_name or not text or len(text) > MAX_COLOURED_CHARACTERS:
        return text
    lines = text.split("\n")
    if len(lines) > MAX_COLOURED_LINES or max(map(len, lines)) > MAX_COLOURED_LINE_CHARACTERS:
        return text
    # Imported here because the import takes 30 ms and only a page with code needs it.
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name(lexer_name)
    parts: list[str] = []
    for _, kind, text_of_token in lexer.get_tokens_unprocessed(show_control_characters(text)):
        name = next(
            (
                name
                for beginning, name in CSS_CLASSES_BY_TOKEN_TYPE
                if str(kind).startswith(beginning)
            ),
            "",
        )
        parts.append(
            build_element("span", text_of_token, class_=name)
            if name and text_of_token.strip()
            else text_of_token
        )
    return join_markup(parts)


def build_picture_markup(picture: MediaPart) -> Html:
    """Return an image as markup. If it has no data or an unsafe type, return its description instead."""
    if (
        picture.kind == IMAGE
        and picture.media_type in IMAGE_TYPES
        and _BASE64_PATTERN.fullmatch(picture.data)
    ):
        source = Html(f"data:{picture.media_type};base64,{picture.data}")
        return build_element(
            "p", build_element("img", src=source, alt=picture.description, loading="lazy")
        )
    return build_element("p", f"[{picture.description}]", class_="note")


def build_difference_markup(old_text: str, new_text: str) -> Html:
    """Return the difference between two texts as markup."""
    rows = [build_element("span", f"{DIFFERENCE_SIGNS[kind]} {line}\n" if DIFFERENCE_SIGNS[kind] else f"{line}\n",
                    class_=f"d-{kind}")
            for kind, line in _build_diff_rows(old_text, new_text)]  # fmt: skip
    return build_element(
        "div",
        build_element("pre", build_element("code", join_markup(rows)), tabindex="0"),
        class_="code diff",
    )


def count_changed_lines(old_text: str, new_text: str) -> tuple[int, int]:
    """Return the number of removed lines and the number of added lines."""
    kinds = [kind for kind, _ in _build_diff_rows(old_text, new_text)]
    return kinds.count("del"), kinds.count("ins")


# Cached because the page first needs the counts of changed lines and then the lines themselves.
@lru_cache(maxsize=8)
def _build_diff_rows(old_text: str, new_text: str) -> tuple[tuple[str, str], ...]:
    return tuple(
        _iterate_diff_rows(
            *(text.removesuffix("\n").split("\n") if text else [] for text in (old_text, new_text))
        )
    )


def _iterate_diff_rows(old_lines: list[str], new_lines: list[str]) -> Iterator[tuple[str, str]]:
    if max(len(old_lines), len(new_lines)) > MAX_COMPARED_LINES or not old_lines:
        yield from (("del", line) for line in old_lines)
        yield from (("ins", line) for line in new_lines)
        return
    matcher = SequenceMatcher(None, old_lines, new_lines, autojunk=False)
    for index, group in enumerate(matcher.get_grouped_opcodes(CONTEXT_LINE_COUNT)):
        if index:
            yield "gap", "⋯"
        for operation, a, b, c, d in group:
            if operation == "equal":
                yield from (("same", line) for line in old_lines[a:b])
            else:
                yield from (("del", line) for line in old_lines[a:b])
                yield from (("ins", line) for line in new_lines[c:d])


def build_prose_markup(text: str) -> Html:
    """Return the markup for a text in Markdown."""
    if len(text) > MAX_PROSE_CHARACTERS:
        return build_verbatim_markup(text)
    return build_element(
        "div",
        Html(
            "".join(_build_token_markup(_build_prose_parser().parse(show_control_characters(text))))
        ),
        class_="prose",
        dir="auto",
    )


def build_verbatim_markup(text: str) -> Html:
    """Return the markup for a text that must be shown exactly as it was typed."""
    return build_element("div", text, class_="typed", dir="auto")


@cache
def _build_prose_parser() -> MarkdownIt:
    # Imported here because the import takes 40 ms and only pages need it.
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "linkify": False, "typographer": False})
    return parser.enable(["table", "strikethrough"]).disable(["image", "html_block", "html_inline"])


def _build_token_markup(tokens: Sequence[Token]) -> list[Html]:
    """Return the markup for the parser's tokens. For an unknown token, the markup contains only its text."""
    parts: list[Html] = []
    for token in tokens:
        if token.type == "inline":
            parts += _build_token_markup(token.children or [])
        elif token.type in {"fence", "code_block"}:
            parts.append(
                build_code_markup(token.content.removesuffix("\n"), token.info.split(" ")[0])
            )
        elif token.type == "code_inline":
            parts.append(build_element("code", token.content))
        # A link that does not lead to a web or mail address is shown as text, without an href.
        elif token.type == "link_open":
            target = str(token.attrGet("href") or "")
            attributes = {
                "href": target,
                "rel": "noreferrer noopener nofollow",
                "target": "_blank",
                "title": target,
            }
            parts.append(
                build_start_tag(
                    "a", **attributes if _ALLOWED_LINK_PATTERN.fullmatch(target) else {}
                )
            )
        elif token.type == "link_close":
            parts.append(Html("</a>"))
        elif token.tag in {"br", "hr"}:
            parts.append(build_element(token.tag))
        elif token.type == "softbreak":
            parts.append(Html("\n"))
        elif token.nesting and token.tag in HTML_ELEMENTS_BY_PARSER_TAG:
            parts.append(_build_token_element(token))
        else:
            parts.append(escape_html(token.content))
    return parts


def _build_token_element(token: Token) -> Html:
    name = HTML_ELEMENTS_BY_PARSER_TAG[token.tag]
    if token.hidden:  # In a list without blank lines, the parser marks the paragraphs as hidden.
        return Html("\n")
    if token.nesting < 0:
        end_tag = "</table></div>" if name == "table" else f"</{name}>"
        if token.block:
            return Html(f"{end_tag}\n")
        return Html(end_tag)
    start_number = str(token.attrGet("start") or "")
    alignment = str(token.attrGet("style") or "").partition(":")[2]
    opening_tag = build_start_tag(
        name,
        start=start_number if start_number.isdecimal() and len(start_number) < 9 else False,
        class_=alignment if alignment in {"center", "right"} else False,
    )
    if name == "table":
        return Html(f'<div class="wide" tabindex="0">{opening_tag}')
    return opening_tag
