"""Code on the page: coloured by Pygments where that is cheap and its language is known, with a button to copy it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import lru_cache

from resume_hooks.parts.share.export.page.markup import Html, element, join, visible
from resume_hooks.parts.share.export.parts import MediaPart
from resume_hooks.transcripts.records import IMAGE

MOST, MOST_LINES, LONGEST_LINE = 8_000, 300, 400
"""Characters, lines, and characters of one line up to which code is coloured.

Patterns of lexers are not to be trusted with more: on long runs of one sign some take seconds.
"""

LANGUAGES = {
    "bash": "bash", "c": "c", "console": "bash", "cpp": "cpp", "css": "css", "diff": "diff", "go": "go",
    "html": "html", "ini": "ini", "java": "java", "javascript": "javascript", "js": "javascript", "json": "json",
    "jsx": "javascript", "py": "python", "python": "python", "rs": "rust", "rust": "rust", "sh": "bash",
    "shell": "bash", "sql": "sql", "toml": "toml", "ts": "typescript", "tsx": "typescript",
    "typescript": "typescript", "yaml": "yaml", "yml": "yaml", "zsh": "bash", "h": "c", "hpp": "cpp", "cc": "cpp",
    "cfg": "ini", "mjs": "javascript", "pyi": "python", "xml": "html",
}  # fmt: skip
"""The lexer of a language, by the word behind a fence and by the ending of a file."""

CLASSES = (
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
"""How a kind of token is coloured."""

KINDS = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Kinds that hold pixels and nothing that runs."""

_BASE64 = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")
MOST_COMPARED = 400  # lines on either side that are compared; of longer texts all goes and all comes
AROUND = 3  # equal lines that are shown on either side of a change
SIGNS = {"del": "-", "ins": "+", "same": " ", "gap": ""}


def code(text: str, language: str = "", about: str = "") -> Html:
    """A box of code; ``language`` is the word behind a fence, which may be anything."""
    shown = _coloured(text, LANGUAGES.get(language.strip().lower(), ""))
    return element(
        "div", element("pre", element("code", shown), tabindex="0"), class_="code", data_about=about or False
    )


def language_of(path: str) -> str:
    """The language of a file by its name, ``""`` for an unknown one."""
    return os.path.splitext(path)[1][1:].lower()


def _coloured(text: str, lexer_name: str) -> str:
    if not lexer_name or not text or len(text) > MOST:
        return text
    lines = text.split("\n")
    if len(lines) > MOST_LINES or max(map(len, lines)) > LONGEST_LINE:
        return text
    # Pygments takes 30 ms to load, which only a page with code has to spend.
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name(lexer_name)
    parts: list[str] = []
    for _, kind, said in lexer.get_tokens_unprocessed(visible(text)):
        name = next((name for beginning, name in CLASSES if str(kind).startswith(beginning)), "")
        parts.append(element("span", said, class_=name) if name and said.strip() else said)
    return join(parts)


def picture(found: MediaPart) -> Html:
    """An image, or what it is in words."""
    if found.kind == IMAGE and found.media_type in KINDS and _BASE64.fullmatch(found.data):
        source = Html(f"data:{found.media_type};base64,{found.data}")
        return element("p", element("img", src=source, alt=found.about, loading="lazy"))
    return element("p", f"[{found.about}]", class_="note")


def difference(old: str, new: str) -> Html:
    """The change from one text to another."""
    rows = [element("span", f"{SIGNS[kind]} {line}\n" if SIGNS[kind] else f"{line}\n", class_=f"d-{kind}")
            for kind, line in _compared(old, new)]  # fmt: skip
    return element("div", element("pre", element("code", join(rows)), tabindex="0"), class_="code diff")


def changed(old: str, new: str) -> tuple[int, int]:
    """How many lines went and how many came."""
    kinds = [kind for kind, _ in _compared(old, new)]
    return kinds.count("del"), kinds.count("ins")


@lru_cache(maxsize=8)  # a call asks for what changed, then for the change
def _compared(old: str, new: str) -> tuple[tuple[str, str], ...]:
    return tuple(_rows(_split(old), _split(new)))


def _split(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _rows(old: list[str], new: list[str]) -> Iterator[tuple[str, str]]:
    if max(len(old), len(new)) > MOST_COMPARED or not old:
        yield from (("del", line) for line in old)
        yield from (("ins", line) for line in new)
        return
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for place, group in enumerate(matcher.get_grouped_opcodes(AROUND)):
        if place:
            yield "gap", "⋯"
        for what, a, b, c, d in group:
            if what == "equal":
                yield from (("same", line) for line in old[a:b])
            else:
                yield from (("del", line) for line in old[a:b])
                yield from (("ins", line) for line in new[c:d])
