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
    "known", "left", "listed", "located", "made", "named", "opened", "prefixed", "quoted", "read_back", "resolved",
    "rounded",
    "said", "seen", "sent", "shown", "taken", "told", "trimmed", "typed", "written",
    "apart", "compared", "hashed", "refused", "renamed", "restored", "tagged", "unheld", "unlistable", "vaulted",
    "weighed",
])  # fmt: skip
"""What no function, constant or module is called by itself: it says that something was done, not to what."""

PHRASES = re.compile(r"\b(?:(?<![Tt]here )(?:is no(?! longer\b)|are none|is none)|that which)\b")
"""Turns of words that trip a native reader; "there is no such session" and "is no longer needed" are plain English."""

MODULES = [path for folder in ("src", "hooks") for path in sorted((REPO / folder).rglob("*.py"))]
CLIENT_MODULES = sorted((REPO / "hooks").rglob("*.mjs"))

DECLARATION = re.compile(r"\b(?:const|let|var|function|class)\s+(\w+)")
"""The start of a JavaScript declaration, with its name. A destructuring, whose names are fields, has none."""


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


def constants_of(tree: ast.Module) -> Iterator[str]:
    """Yield the names of a module's constants. A member of an enumeration has its class's name too."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        else:
            targets = []
        for target in targets:
            for node in ast.walk(target):
                if isinstance(node, ast.Name):
                    yield node.id


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(REPO)))
def test_a_name_includes_its_object(path: Path) -> None:
    """No function, constant or module is called by a participle alone."""
    assert path.stem.strip("_") not in PARTICIPLES
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [*(node.name for node in functions_of(tree)), *constants_of(tree)]
    assert [name for name in names if name.strip("_").lower() in PARTICIPLES] == []


@pytest.mark.parametrize("path", CLIENT_MODULES, ids=lambda path: path.name)
def test_a_name_in_the_client_includes_its_object(path: Path) -> None:
    """No function, constant or variable of the client's module is called by a participle alone."""
    names = DECLARATION.findall(path.read_text(encoding="utf-8"))
    assert [name for name in names if name.lower() in PARTICIPLES] == []


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
