"""Names and sentences in the field's terms, as CONTRIBUTING's style asks for: what a test can tell of that."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needs import REPO

PARTICIPLES = frozenset([
    "answered", "asked", "chosen", "copied", "counted", "cut", "done", "found", "given", "held", "joined", "kept",
    "known", "left", "listed", "located", "made", "named", "opened", "quoted", "read_back", "resolved", "rounded",
    "said", "seen", "sent", "shown", "taken", "told", "trimmed", "typed", "written",
    "apart", "compared", "hashed", "refused", "renamed", "restored", "tagged", "unheld", "unlistable", "vaulted",
    "weighed",
])  # fmt: skip
"""What no function and no module is called by itself: it says that something was done, not to what and what for."""

PHRASES = re.compile(r"\b(?:(?<![Tt]here )(?:is no(?! longer\b)|are none|is none)|that which)\b")
"""Turns of words that trip a native reader; "there is no such session" and "is no longer needed" are plain English."""

MODULES = [path for folder in ("src", "hooks") for path in sorted((REPO / folder).rglob("*.py"))]


def functions_of(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function, but a method that answers yes or no: ``node.said`` is a sentence."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        returns = ast.unparse(node.returns) if node.returns else ""
        arguments = node.args.args
        is_method = bool(arguments) and arguments[0].arg == "self"
        if not (is_method and returns == "bool"):
            yield node


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(REPO)))
def test_a_name_includes_its_object(path: Path) -> None:
    """No function and no module is called by a participle alone."""
    assert path.stem.strip("_") not in PARTICIPLES
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert [node.name for node in functions_of(tree) if node.name.strip("_") in PARTICIPLES] == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(REPO)))
def test_a_sentence_is_read_once(path: Path) -> None:
    """In docstrings and messages; a pattern that looks for such words in a text is none."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert [text for text in texts if PHRASES.search(text) and "(?" not in text] == []
