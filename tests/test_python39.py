"""What runs before the engine is installed must run on Python 3.9, which macOS ships."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

from tests.needs import REPO, python39

SOURCE = REPO / "src" / "resume_hooks"
MODULES = [
    "errors", "links", "log", "paths", "plain", "processes", "rewrite", "splice", "clipboard", "clipboard_tools",
    "programs", "terminal", "tmux", "events.__init__", "events.triggers", "events.reply", "events.plain_cards",
    "events.session", "events.fallback", "events.handed_off", "events.notes", "events.damage",
    "expiry.__init__", "expiry.wanted",
]  # fmt: skip
FILES = [*(SOURCE / f"{name.replace('.', '/')}.py" for name in MODULES), *sorted((REPO / "hooks").glob("*.py"))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(REPO)))
def test_the_syntax_is_that_of_3_9(path: Path) -> None:
    """No match, no ``except*``, no type statement."""
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))


@pytest.mark.parametrize("module", MODULES)
def test_each_module_loads_on_3_9(module: str) -> None:
    """Names and annotations that are evaluated are there in 3.9; nothing but the standard library is asked for."""
    python = python39()
    name = f"resume_hooks.{module}".removesuffix(".__init__")
    script = f"import sys; sys.path.insert(0, {str(SOURCE.parent)!r}); import {name}; assert sys.version_info < (3, 10)"
    done = subprocess.run([python, "-I", "-S", "-c", script], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_these_modules_import_is_in_the_list() -> None:
    """A module of ours that one of them needs has to run on 3.9 as well."""
    missing = set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("resume_hooks"):
                inner = (node.module or "").removeprefix("resume_hooks").removeprefix(".")
                for alias in node.names:
                    for name in (inner, f"{inner}.{alias.name}".removeprefix(".")):
                        if (SOURCE / f"{name.replace('.', '/')}.py").is_file() and name not in MODULES:
                            missing.add(name)
    assert missing <= {"events.prompt", "events.compacted", "events.near_end", "events.later", "events.notice"}, (
        "the hooks do without those where they don't load"
    )
