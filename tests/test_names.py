"""Tests that names and sentences follow the style in CONTRIBUTING.md, as far as a test can check."""

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
"""Participles that are not allowed as the whole name of a function, constant or module.

Such a name does not say what was changed.
"""

BARE_NOUNS = frozenset(["answer", "card", "check", "gap", "text"])
"""Nouns that are not allowed as the whole name of a function outside a class.

They are part of so many other names that nobody could search for them.
"""

VAGUE_FIELD_NAMES = frozenset(["given", "mine", "pays", "unread", "voice"])
"""Words that are not allowed as a field's name. Option fields keep the names that users type."""

AWKWARD_PHRASE_PATTERN = re.compile(
    r"\b(?:(?<![Tt]here )(?:is no(?! longer\b)|are none|is none)|that which)\b"
)
"""Phrases that sound odd to a native reader. "There is no such session" and "is no longer needed"
are allowed."""

PRONOUN_START_PATTERN = re.compile(r"(?:It|They|Its|Their|Those|These|Otherwise|So|Then|And|But)\b")
"""A pattern for docstrings whose subject is clear only from the function's name."""

MODULE_PATHS = [
    path for folder in ("src", "hooks") for path in sorted((REPO / folder).rglob("*.py"))
]
PROGRAM_PATHS = [
    path for folder in ("tools", "benchmarks") for path in sorted((REPO / folder).rglob("*.py"))
]
"""The programs in the repository. Names in them follow the same rules as names in the package."""

TEST_PATHS = sorted((REPO / "tests").rglob("*.py"))

DOCUMENTED_MODULE_PATTERN = re.compile(r"schema|forms\.py")
"""Matches the paths of modules whose fields are part of the documented JSON."""

CLIENT_MODULES = sorted((REPO / "hooks").rglob("*.mjs"))

DECLARATION_PATTERN = re.compile(r"\b(?:const|let|var|function|class)\s+(\w+)")
"""A pattern for the start of a JavaScript declaration and its name.

A declaration that unpacks an object or an array does not match.
"""


def find_functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function except methods that return a bool.

    Such a method may be named with only a participle.
    """
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        returns = ast.unparse(node.returns) if node.returns else ""
        arguments = node.args.args
        is_method = bool(arguments) and arguments[0].arg == "self"
        if not (is_method and returns == "bool"):
            yield node


def find_constant_names(tree: ast.Module) -> Iterator[str]:
    """Yield the names that are assigned at the top level of a module."""
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


def find_plain_function_names(tree: ast.AST) -> Iterator[str]:
    """Yield the names of the functions that are not methods."""
    methods = {
        id(statement)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
    }
    for node in find_functions(tree):
        if id(node) not in methods:
            yield node.name


def find_field_names(tree: ast.AST) -> Iterator[str]:
    """Yield the names of the classes' fields, except those of verb options."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef) or node.name.endswith("Options"):
            continue
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                yield statement.target.id


@pytest.mark.parametrize(
    "path", [*MODULE_PATHS, *PROGRAM_PATHS], ids=lambda path: str(path.relative_to(REPO))
)
def test_names_are_not_bare_participles_or_nouns(path: Path) -> None:
    """No function, constant or module is named with only a participle, and no function with only a noun."""
    assert path.stem.strip("_") not in PARTICIPLES
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [*(node.name for node in find_functions(tree)), *find_constant_names(tree)]
    assert [name for name in names if name.strip("_").lower() in PARTICIPLES] == []
    assert [name for name in find_plain_function_names(tree) if name.strip("_") in BARE_NOUNS] == []


@pytest.mark.parametrize("path", MODULE_PATHS, ids=lambda path: str(path.relative_to(REPO)))
def test_a_field_names_its_content(path: Path) -> None:
    """No field has one of the names in ``VAGUE_FIELD_NAMES``."""
    if DOCUMENTED_MODULE_PATTERN.search(str(path.relative_to(REPO))):
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert [name for name in find_field_names(tree) if name in VAGUE_FIELD_NAMES] == []


@pytest.mark.parametrize("path", CLIENT_MODULES, ids=lambda path: path.name)
def test_no_name_in_the_clients_module_is_only_a_participle(path: Path) -> None:
    """No name of a function, constant or variable in the client's module is only a participle."""
    names = DECLARATION_PATTERN.findall(path.read_text(encoding="utf-8"))
    assert [name for name in names if name.lower() in PARTICIPLES] == []


@pytest.mark.parametrize("path", MODULE_PATHS, ids=lambda path: str(path.relative_to(REPO)))
def test_no_sentence_has_an_awkward_phrase(path: Path) -> None:
    """No text in the code contains an odd phrase, except the patterns that search for these phrases."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    awkward = [text for text in texts if AWKWARD_PHRASE_PATTERN.search(" ".join(text.split()))]
    assert [text for text in awkward if "(?" not in text] == []


def test_every_docstring_names_its_subject() -> None:
    """No docstring in the code or the tests begins with a pronoun or in the middle of a thought."""
    wrong = []
    for path in [*MODULE_PATHS, *PROGRAM_PATHS, *TEST_PATHS]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                docstring = ast.get_docstring(node) or ""
                if PRONOUN_START_PATTERN.match(docstring):
                    wrong.append(f"{path.relative_to(REPO)}: {docstring}")
    assert wrong == []
