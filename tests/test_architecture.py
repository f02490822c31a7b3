"""Tests of rules that import-linter cannot check.

The rules are about modules that are loaded by name, about prints, and about broad excepts.
"""

from __future__ import annotations

import ast
import re
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from resume_hooks import part_table, questions, seam
from resume_hooks.cli.options import VerbOptions
from resume_hooks.cli.verb_table import VERBS, load_command
from resume_hooks.hooks.triggers import TRIGGER_TABLE
from resume_hooks.parts import PART_NAMES
from tests.needs import REPO

SOURCE_FOLDER = REPO / "src" / "resume_hooks"

ALLOWED_PACKAGES = {
    "archive", "cli", "derive", "hooks", "maintenance", "parts", "reading", "redaction", "search", "sessions",
    "storage", "system", "transcripts",
}  # fmt: skip

ALLOWED_ROOT_MODULES = {
    "__init__", "__main__", "api", "clock", "errors", "part", "part_table", "paths", "untrusted_folders",
    "questions", "seam", "settings", "shared_values", "team", "version",
}  # fmt: skip


def paths_of_modules() -> dict[str, Path]:
    """Return the path of each module. The keys are module names without ``resume_hooks.``.

    The key of the package itself is "".
    """
    return {
        ".".join(path.relative_to(SOURCE_FOLDER).with_suffix("").parts)
        .removesuffix("__init__")
        .rstrip("."): path
        for path in sorted(SOURCE_FOLDER.rglob("*.py"))
    }


MODULE_PATHS = paths_of_modules()


def _syntax_tree(module: str) -> ast.Module:
    return ast.parse(MODULE_PATHS[module].read_text(encoding="utf-8"))


def test_the_root_contains_only_listed_packages_and_modules() -> None:
    """The root package contains only the listed packages and modules, so that it stays small.

    New modules belong in one of the listed packages.
    """
    here = {path.name for path in SOURCE_FOLDER.iterdir() if (path / "__init__.py").exists()}
    assert here == ALLOWED_PACKAGES
    assert {path.stem for path in SOURCE_FOLDER.glob("*.py")} == ALLOWED_ROOT_MODULES


@pytest.mark.parametrize("package", sorted(ALLOWED_PACKAGES))
def test_every_package_lists_its_allowed_imports(package: str) -> None:
    """The docstring of every package states what the package may import.

    docs/architecture.md is generated from these docstrings.
    """
    text = ast.get_docstring(_syntax_tree(package)) or ""
    assert "import" in text.lower()
    assert "must not" in text.lower() or "may import" in text.lower()


@pytest.mark.parametrize("verb", [*VERBS, "slash"])
def test_every_verb_is_declared(verb: str) -> None:
    """Every verb can be loaded by its name, and its help begins with an ordinary word.

    The command line loads verbs by name, so import-linter does not see these imports.
    """
    assert re.match(r"[A-Z][a-z]+[ :]", load_command(verb).help or "")


def test_every_verb_has_a_function() -> None:
    """The function of every verb exists. It is loaded by name, so import-linter cannot check it."""
    for verb in VERBS:
        load_command(verb)
    bodies = [
        options._function_path.split(":")
        for options in _subclasses_of(VerbOptions)
        if options._function_path and options.__module__ in sys.modules
    ]
    assert len(bodies) > len(VERBS)
    assert all(callable(getattr(import_module(module), function)) for module, function in bodies)


def _subclasses_of(parent_class: type[VerbOptions]) -> list[type[VerbOptions]]:
    return [each for one in parent_class.__subclasses__() for each in (one, *_subclasses_of(one))]


@pytest.mark.parametrize(
    "name", sorted({row.module for row in TRIGGER_TABLE.values() if row.module})
)
def test_every_module_of_a_trigger_exists(name: str) -> None:
    """Every module that the prompt hook loads by name exists."""
    assert find_spec(name)


@pytest.mark.parametrize(
    ("part", "function"),
    sorted(
        {(part, function) for part, function, _ in part_table.CHECKS.values()}
        | {
            (part, function)
            for rows in part_table.OPTIONS.values()
            for part, _, _, function, _ in rows
        }
        | {row for rows in part_table.FUNCTIONS_BY_QUESTION.values() for row in rows}
    ),
)
def test_every_function_of_a_part_exists(part: str, function: str) -> None:
    """If the core loads a function of a part by name, the function exists."""
    assert not seam.is_installed(part) or callable(seam.load_part_object(part, function))


def test_every_question_is_asked_and_answered() -> None:
    """Every question to the parts is asked somewhere and is answered by a function."""
    texts = [
        path.read_text(encoding="utf-8")
        for path in (*MODULE_PATHS.values(), *(REPO / "hooks").glob("*.py"))
        if path.parent.parent.name != "parts" or path.stem != "__init__"
    ]
    asked = {name for text in texts for name in re.findall(r"\bquestions\.(\w+)", text)}
    # This question is not written in the code, because it is asked with the names of triggers'
    # modules.
    asked.add("answer_trigger")
    checked = re.findall(r"questions\.(\w+)", (REPO / "tests" / "part_functions.py").read_text())
    there = {
        name for name, value in vars(questions).items() if isinstance(value, seam.PartQuestion)
    }
    assert there == set(checked)
    # Parts ask questions, too. If a part is missing, some questions are not asked.
    assert there <= asked or not all(seam.is_installed(part) for part in PART_NAMES)


def test_the_questions_import_only_types() -> None:
    """The module ``questions`` imports only modules that its types need.

    lint-imports ignores this module.
    """
    for node in _syntax_tree("questions").body:
        if isinstance(node, ast.ImportFrom):
            assert node.module in {"__future__", "typing", "collections.abc", "resume_hooks.seam"}
        assert not isinstance(node, ast.Import)


def test_the_package_imports_the_api_only_on_request() -> None:
    """The package's ``__init__`` imports nothing but types, because its imports slow down every module."""
    imports = [
        node for node in _syntax_tree("").body if isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    assert {ast.unparse(node) for node in imports} == {
        "from __future__ import annotations",
        "from typing import TYPE_CHECKING",
    }


@pytest.mark.parametrize(
    "module",
    [
        name
        for name in MODULE_PATHS
        if name.partition(".")[0] not in {"cli", "hooks"} and ".verbs" not in name
    ],
)
def test_only_cli_and_hooks_print_or_exit(module: str) -> None:
    """Only the packages ``cli`` and ``hooks`` and the verbs print, read input or exit."""
    if module == "__main__":
        return
    called = {
        ast.unparse(node.func)
        for node in ast.walk(_syntax_tree(module))
        if isinstance(node, ast.Call)
    }
    assert called.isdisjoint({"print", "exit", "sys.exit", "quit", "input"})


def test_only_listed_modules_catch_every_exception() -> None:
    """Only the listed modules catch every exception. They report bugs or errors from Rust code."""
    broad = {
        module
        for module in MODULE_PATHS
        for node in ast.walk(_syntax_tree(module))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"})
    }
    assert broad <= {
        "cli.main",
        "cli.plain_search",
        "hooks.prompt",
        "search.index.postings",
        "parts.team.background",
    }
