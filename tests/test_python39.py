"""Code that runs before the engine is installed runs on Python 3.9, the version of macOS."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

import pytest

from resume_hooks import part_table, questions, seam
from tests.needs import REPO, python39

SOURCE = REPO / "src" / "resume_hooks"
MODULES = [
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
EARLY_QUESTIONS = (questions.line_at_start, questions.needs_driver)
"""The questions to the parts that are asked before the engine is installed."""

EARLY = [
    *((part, value) for part, _, value in part_table.HOSTS.values()),
    *(
        answer
        for question in EARLY_QUESTIONS
        for answer in part_table.ANSWERS.get(question.name, ())
    ),
]
MODULES += sorted(
    {
        f"parts.{part}.{module}"
        for part, function in EARLY
        if seam.is_installed(part)
        for module in ("__init__", function.partition(":")[0])
    }
)
FILES = [
    *(SOURCE / f"{name.replace('.', '/')}.py" for name in MODULES),
    *sorted((REPO / "hooks").glob("*.py")),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(REPO)))
def test_the_syntax_is_valid_in_python_3_9(path: Path) -> None:
    """The files have no syntax that Python 3.9 lacks, such as ``match``."""
    ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))


@pytest.mark.parametrize("module", MODULES)
def test_each_module_loads_in_python_3_9(module: str) -> None:
    """Python 3.9 can import each of the modules without any package."""
    python = python39()
    name = f"resume_hooks.{module}".removesuffix(".__init__")
    script = f"import sys; sys.path.insert(0, {str(SOURCE.parent)!r}); import {name}; assert sys.version_info < (3, 10)"
    done = subprocess.run(
        [python, "-I", "-S", "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_imported_modules_are_in_the_list() -> None:
    """Every module that these files import is in the list too, or is an exception."""
    missing = set()
    for path in FILES:
        if path.stem == "questions":  # It imports types only for mypy.
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("resume_hooks"):
                inner = (node.module or "").removeprefix("resume_hooks").removeprefix(".")
                for alias in node.names:
                    for name in (inner, f"{inner}.{alias.name}".removeprefix(".")):
                        if (
                            SOURCE / f"{name.replace('.', '/')}.py"
                        ).is_file() and name not in MODULES:
                            missing.add(name)
    assert missing <= {
        "__main__", "derive.child.copy_files", "hooks.after_compaction", "hooks.background", "hooks.context_notice",
        "hooks.expiring_sessions", "hooks.client_module", "hooks.prompt", "parts.codex.events",
        "sessions.session", "sessions.session_files", "transcripts.tokens",
    }, "the hooks do without those where they don't load"  # fmt: skip
