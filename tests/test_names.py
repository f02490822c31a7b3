"""Names and sentences follow CONTRIBUTING's style as far as a test can check it."""

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

BARE_NOUNS = frozenset(["answer", "card", "check", "gap", "text"])
"""What no function outside a class is called: a search for it finds every other answer or text, too."""

VAGUE_FIELDS = frozenset(["given", "mine", "pays", "unread", "voice"])
"""What no field of ours is called. An option has the name that the user types."""

PHRASES = re.compile(r"\b(?:(?<![Tt]here )(?:is no(?! longer\b)|are none|is none)|that which)\b")
"""Turns of words that trip a native reader; "there is no such session" and "is no longer needed" are plain English."""

MODULES = [path for folder in ("src", "hooks") for path in sorted((REPO / folder).rglob("*.py"))]
PROGRAMS = [
    path for folder in ("tools", "benchmarks") for path in sorted((REPO / folder).rglob("*.py"))
]
"""The programs of the repository, which follow the rules of names."""

DOCUMENTED = re.compile(r"schema|forms\.py")
"""The modules whose fields are those of the documented JSON."""

CLIENT_MODULES = sorted((REPO / "hooks").rglob("*.mjs"))

DECLARATION = re.compile(r"\b(?:const|let|var|function|class)\s+(\w+)")
"""The start of a JavaScript declaration, with its name. A destructuring, whose names are fields, has none."""


def functions_of(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function except methods that return a bool: ``node.said`` is a sentence."""
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


def plain_functions_of(tree: ast.AST) -> Iterator[str]:
    """Yield the names of the functions that are not methods, whose class would name the object."""
    methods = {
        id(statement)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
    }
    for node in functions_of(tree):
        if id(node) not in methods:
            yield node.name


def fields_of(tree: ast.AST) -> Iterator[str]:
    """Yield the names of the fields of classes, except the options of a verb."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef) or node.name.endswith("Options"):
            continue
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                yield statement.target.id


@pytest.mark.parametrize(
    "path", [*MODULES, *PROGRAMS], ids=lambda path: str(path.relative_to(REPO))
)
def test_a_name_includes_its_object(path: Path) -> None:
    """No function, constant or module is called by a participle alone, no function by a bare noun."""
    assert path.stem.strip("_") not in PARTICIPLES
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [*(node.name for node in functions_of(tree)), *constants_of(tree)]
    assert [name for name in names if name.strip("_").lower() in PARTICIPLES] == []
    assert [name for name in plain_functions_of(tree) if name.strip("_") in BARE_NOUNS] == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(REPO)))
def test_a_field_names_its_content(path: Path) -> None:
    """No field is called by a word that a reader has to look up."""
    if DOCUMENTED.search(str(path.relative_to(REPO))):
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert [name for name in fields_of(tree) if name in VAGUE_FIELDS] == []


@pytest.mark.parametrize("path", CLIENT_MODULES, ids=lambda path: path.name)
def test_a_name_in_the_client_includes_its_object(path: Path) -> None:
    """No function, constant or variable of the client's module is called by a participle alone."""
    names = DECLARATION.findall(path.read_text(encoding="utf-8"))
    assert [name for name in names if name.lower() in PARTICIPLES] == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(REPO)))
def test_no_sentence_has_an_awkward_phrase(path: Path) -> None:
    """This applies to docstrings and messages, but not to patterns that look for such words."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert [text for text in texts if PHRASES.search(text) and "(?" not in text] == []
