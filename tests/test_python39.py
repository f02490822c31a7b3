"""Tests that code which may run before the engine is installed works with Python 3.9.

This is the version that macOS contains.
"""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

from resume_hooks import part_table, questions, seam
from tests.needs import REPO, python39_path

SOURCE_FOLDER = REPO / "src" / "resume_hooks"
PRE_INSTALL_MODULE_NAMES = [
    "errors", "part", "paths", "part_table", "untrusted_folders", "questions", "seam", "shared_values",
    "archive.__init__", "archive.retention.__init__", "archive.retention.pending",
    "hooks.__init__", "hooks.end_process", "hooks.fallback", "hooks.hook_state", "hooks.pending_handoff",
    "hooks.plain_cards", "hooks.hook_replies", "hooks.session", "hooks.start_parts", "hooks.triggers",
    "parts.__init__",
    "sessions.__init__", "sessions.link_log",
    "storage.__init__", "storage.append_carryover", "storage.atomic",
    "storage.locks", "storage.removal", "storage.state_file", "system.__init__", "system.bug_log",
    "system.bytecode",
    "system.clipboard", "system.clipboard_tools", "system.copy_result", "system.invocation",
    "system.processes", "system.programs",
    "system.subprocesses",
    "system.terminal", "system.text", "transcripts.__init__", "transcripts.metadata_records",
    "transcripts.lines", "transcripts.parted_text",
]  # fmt: skip
PRE_INSTALL_QUESTIONS = (questions.session_start_notice, questions.find_reason_for_database_driver)
"""Questions to the parts that may be asked before the engine is installed."""

PRE_INSTALL_FUNCTIONS = [
    *((part, value) for part, _, value in part_table.HOSTS.values()),
    *(
        answer
        for question in PRE_INSTALL_QUESTIONS
        for answer in part_table.FUNCTIONS_BY_QUESTION.get(question.name, ())
    ),
]
PRE_INSTALL_MODULE_NAMES += sorted(
    {
        f"parts.{part}.{module}"
        for part, function in PRE_INSTALL_FUNCTIONS
        if seam.is_installed(part)
        for module in ("__init__", function.partition(":")[0])
    }
)
PRE_INSTALL_FILE_PATHS = [
    *(SOURCE_FOLDER / f"{name.replace('.', '/')}.py" for name in PRE_INSTALL_MODULE_NAMES),
    *sorted((REPO / "hooks").glob("*.py")),
]


@pytest.mark.parametrize(
    "path", PRE_INSTALL_FILE_PATHS, ids=lambda path: str(path.relative_to(REPO))
)
def test_the_syntax_is_valid_in_python_3_9(path: Path) -> None:
    """Code that runs before the engine is installed uses only the syntax of Python 3.9."""
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))


@pytest.mark.parametrize("module", PRE_INSTALL_MODULE_NAMES)
def test_each_module_loads_in_python_3_9(module: str) -> None:
    """Python 3.9 can import each module that is used before the engine is installed."""
    python, folder = python39_path(), str(SOURCE_FOLDER.parent)
    name = f"resume_hooks.{module}".removesuffix(".__init__")
    script = f"import sys; sys.path.insert(0, {folder!r}); import {name}; assert sys.version_info < (3, 10)"
    done = subprocess.run(
        [python, "-I", "-S", "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_modules_imported_before_the_installation_are_tested() -> None:
    """Every module that a module in ``PRE_INSTALL_MODULE_NAMES`` imports is also in this list.

    The test contains a few exceptions.
    """
    missing = set()
    for path in PRE_INSTALL_FILE_PATHS:
        if path.stem == "questions":  # This module imports types, but only for mypy.
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("resume_hooks"):
                inner = (node.module or "").removeprefix("resume_hooks").removeprefix(".")
                for alias in node.names:
                    for name in (inner, f"{inner}.{alias.name}".removeprefix(".")):
                        if (
                            SOURCE_FOLDER / f"{name.replace('.', '/')}.py"
                        ).is_file() and name not in PRE_INSTALL_MODULE_NAMES:
                            missing.add(name)
    assert missing <= {
        "__main__", "derive.child.copy_files", "hooks.after_compaction", "hooks.background", "hooks.context_notice",
        "hooks.expiring_sessions", "hooks.client_module", "hooks.prompt", "parts.codex.events",
        "sessions.session", "sessions.session_files", "transcripts.tokens",
    }, "the hooks do without those where they don't load"  # fmt: skip
