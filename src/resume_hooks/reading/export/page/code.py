"""Code on the page: coloured by Pygments where that is cheap and its language is known, with a button to copy it."""

from __future__ import annotations

import os

from resume_hooks.reading.export.page.markup import Html, element, joined, seen

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
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415

    lexer = get_lexer_by_name(lexer_name)
    parts: list[str] = []
    for _, kind, said in lexer.get_tokens_unprocessed(seen(text)):
        name = _class_of(str(kind))
        parts.append(element("span", said, class_=name) if name and said.strip() else said)
    return joined(parts)


def _class_of(kind: str) -> str:
    return next((name for beginning, name in CLASSES if kind.startswith(beginning)), "")
