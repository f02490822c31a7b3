"""Tests that programs are started in one way only.

Python starts them only in ``system.programs``, and shell scripts only with ``hooks/programs``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needs import REPO

PROGRAMS_MODULE_PATH = REPO / "src" / "resume_hooks" / "system" / "programs.py"
PYTHON_FILES = sorted([*(REPO / "src").rglob("*.py"), *(REPO / "hooks").glob("*.py")])
SHELL_SCRIPTS = sorted(
    path for path in (REPO / "hooks").iterdir() if path.is_file() and not path.suffix
)

FORBIDDEN_CALL_PATTERN = re.compile(
    r"subprocess\.(Popen|run|call|check_call|check_output|getoutput|getstatusoutput)"
    r"|os\.(system|popen|startfile|exec\w+|spawn\w+|posix_spawnp?)"
    r"|(asyncio\.|loop\.)?(create_subprocess\w+|subprocess_exec|subprocess_shell)"
    r"|pty\.(spawn|fork)|shutil\.which|webbrowser\.\w+|pydoc\.(pager|pipepager)|runpy\.\w+"
    r"|click\.(edit|launch|echo_via_pager)|multiprocessing\.(Process|Pool|get_context|Manager)"
    r"|concurrent\.futures\.ProcessPoolExecutor|_posixsubprocess\.\w+"
)
ALLOWED_CALLS_BY_FILE = {
    # This module only finds a command; it does not start it.
    "src/resume_hooks/maintenance/uninstall.py": {"shutil.which"},
    # This module forks the engine itself.
    "src/resume_hooks/search/index/read_transcript.py": {"multiprocessing.get_context"},
}
"""The calls that are allowed in files other than ``system.programs``. The keys are the files'
paths."""


def remove_annotations(tree: ast.AST) -> ast.AST:
    """Return the syntax tree without type annotations, because they call nothing."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign):
            node.annotation = ast.Constant(None)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
    return tree


def find_dotted_names(source: str) -> Iterator[str]:
    """Yield every dotted name in a source, with imported names resolved. Annotations are left out."""
    tree = remove_annotations(ast.parse(source))
    meant = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                meant[alias.asname or alias.name] = alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                meant[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield f"{node.module}.{alias.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            first, _, rest = ast.unparse(node).partition(".")
            yield f"{meant.get(first, first)}.{rest}"


@pytest.mark.parametrize("path", PYTHON_FILES, ids=lambda path: str(path.relative_to(REPO)))
def test_python_starts_programs_in_one_place(path: Path) -> None:
    """No module but ``system.programs`` uses a function that starts a program, even under another name."""
    if path == PROGRAMS_MODULE_PATH:
        return
    found = {
        name
        for name in find_dotted_names(path.read_text(encoding="utf-8"))
        if FORBIDDEN_CALL_PATTERN.fullmatch(name)
    }
    assert found <= ALLOWED_CALLS_BY_FILE.get(str(path.relative_to(REPO)), set())


@pytest.mark.parametrize(
    "source",
    [
        "import subprocess as s\ns.run(['x'])",
        "from subprocess import Popen as P\nP(['x'])",
        "import os\nos.execvp('x', ['x'])",
        "def f():\n    from asyncio import create_subprocess_exec\n",
        "import asyncio\nasyncio.create_subprocess_shell('x')",
        "import pty\npty.spawn('x')",
        "import click\nclick.edit()",
    ],
)
def test_the_check_finds_forbidden_launches_in_python(source: str) -> None:
    """The check finds Python code that starts a program in a forbidden way."""
    assert any(FORBIDDEN_CALL_PATTERN.fullmatch(name) for name in find_dotted_names(source))


SOURCED_SCRIPT_NAMES = {"claim", "near-end", "new-folder", "programs", "where"}
"""Scripts that other scripts source after hooks/programs."""

CHOSEN_PYTHON_PATTERN = re.compile(r'"\$(?:any_python|python)"(?= )(?! \])')
"""A pattern for a command that runs the Python chosen by the plugin's scripts.

``[ -x "$any_python" ]`` does not match, because it does not run the Python.
"""

PROGRAM_IN_FOLDER_PATTERN = re.compile(
    r"(?:^|[;&|({!]|\b(?:then|else|elif|if|do|exec|env)\b)\s*(?:[A-Z_]+=\S*\s+)*(?:uv|git|python[\d.]*|pip|node|claude|tmux)(?![\w=])"
)
"""A pattern for a command that runs a program without ``run_isolated``.

The programs are those that use files in their working folder.
"""


def lines_without_comments(script: str) -> list[str]:
    """Return the lines of a shell script without comments."""
    lines = (re.sub(r"(?:^|\s)#.*", "", line).strip() for line in script.splitlines())
    return [line for line in lines if line]


def lines_with_forbidden_launches(script: str) -> list[str]:
    """Return the lines that start Python without ``-I``, or other programs without ``run_isolated``."""
    found = []
    for line in lines_without_comments(script):
        behind = [line[ours.end() :] for ours in CHOSEN_PYTHON_PATTERN.finditer(line)]
        if not all(re.match(r' -I (?:"\$here/|"\$@"|-c )', words) for words in behind):
            found.append(line)
        if PROGRAM_IN_FOLDER_PATTERN.search(re.sub(r"""'[^']*'|"[^"]*\"""", "", line)):
            found.append(line)
    return found


@pytest.mark.parametrize("path", SHELL_SCRIPTS, ids=lambda path: path.name)
def test_scripts_start_programs_only_in_isolation(path: Path) -> None:
    """Scripts source hooks/programs first and run other programs with ``run_isolated``.

    They run Python with ``-I``.
    """
    script = path.read_text(encoding="utf-8")
    if path.name != "programs":
        assert lines_with_forbidden_launches(script) == []
    if path.name not in SOURCED_SCRIPT_NAMES:
        before = script.partition('/programs"\n')[0]
        assert [
            line
            for line in lines_without_comments(before)
            if not line.startswith(("case $0 in", ". "))
        ] == []


@pytest.mark.parametrize(
    "line",
    [
        "uv run python x",
        "x && git status",
        "exec python3 -I x",
        '"$any_python" install.py',
        '[ -x "$python" ] && "$python" "$here/x.py"',
        "if PATH=x uv; then",
    ],
)
def test_the_check_finds_forbidden_launches_in_a_script(line: str) -> None:
    """The check finds a line of a script that starts a program in a forbidden way."""
    assert lines_with_forbidden_launches(line)


def test_hooks_start_only_our_scripts() -> None:
    """The commands in hooks.json and codex.json do nothing but source a script of the plugin.

    The client's module sources its script in the same way.
    """
    for name in ("hooks.json", "codex.json"):
        for command in re.findall(
            r'"command": "(trap .*)"', (REPO / "hooks" / name).read_text(encoding="utf-8")
        ):
            assert re.fullmatch(
                r"trap 'exit 0' EXIT; ((part|others)=\d; |asked=[a-z]+; )?"
                r"\. \\\"\$CLAUDE_PLUGIN_ROOT/hooks/[a-z-]+\\\" 2>/dev/null",
                command,
            )
    modules = "".join(path.read_text(encoding="utf-8") for path in (REPO / "hooks").glob("*.mjs"))
    assert re.findall(r"process\.run\(\['([^']*)'", modules) == ["/bin/sh"]
    assert "child_process" not in modules
