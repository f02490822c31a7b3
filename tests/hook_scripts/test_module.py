"""The module inside the client, as text: what it says, what it asks of the client, and who else hears a prompt."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from resume_hooks.hooks.inside import COMMANDS
from tests.hook_scripts.plugin_copy import PluginCopy
from tests.needs import REPO

SOURCE = (REPO / "hooks" / "register.mjs").read_text(encoding="utf-8")
CODE = re.sub(r"(^|\s)//.*", "", SOURCE)
TABLE = re.compile(
    r"^  \['([a-z-]+)', '([a-z-]+)', (?:'([^']*)'|\"([^\"]*)\"), '([^']*)'(, READING)?\],$", re.MULTILINE
)
PREFIXED = re.search(r"^const PREFIXED = \[(.*)\]$", SOURCE, re.MULTILINE)
MOST_LINES = 200
AT_ONCE = {"search", "find", "recall", "lineage", "sessions"}
"""What only reads, and so may be typed while the model works."""


def test_the_menu_says_what_the_engine_says() -> None:
    """The client wants names before a process could be asked, so they stand here too; a test keeps them one."""
    rows = {row[1]: (row[2], row[5], row[3] or row[4]) for row in TABLE.finditer(SOURCE)}
    assert rows == COMMANDS
    assert list(rows) == list(COMMANDS)
    assert {row[1] for row in TABLE.finditer(SOURCE) if row[6]} == AT_ONCE


def test_there_is_no_other_word_for_people() -> None:
    """Beyond that table each literal is a name of the client's, of ours or of the answer; all words are Python's."""
    assert len(SOURCE.splitlines()) <= MOST_LINES
    code = TABLE.sub("", CODE)
    literals = [found[0][1:-1] for found in re.finditer(r"'([^']*)'|\"([^\"]*)\"|`([^`]*)`", code)]
    assert [each for each in literals if " " in each] == []


def test_no_prompt_waits_for_it() -> None:
    """It hears its own commands, the client's start, a compaction, and that a turn failed; nothing else of a turn."""
    heard = re.findall(r"\bon\('([A-Za-z.]+)'(?:, \{ command: (\S+) \})?", CODE)
    assert heard == [
        ("session.start", ""),
        ("command.run", "name"),
        ("command.run", "`resume-hooks:${verb}`"),
        ("command.run", "'resume-hooks:recover-context'"),
        ("session.measure", ""),
        ("session.compact", ""),
        ("classic.StopFailure", ""),
    ]
    assert PREFIXED is not None
    assert re.findall(r"'(\w+)'", PREFIXED[1]) == sorted(path.stem for path in (REPO / "commands").glob("*.md"))


def test_it_stands_beside_the_classic_hooks() -> None:
    """The one form that clients bear which know nothing of modules."""
    document = json.loads((REPO / "hooks" / "hooks.json").read_text(encoding="utf-8"))
    assert document["modules"] == ["./register.mjs"]
    assert "UserPromptSubmit" in document["hooks"]
    assert "hooks" not in json.loads((REPO / ".claude-plugin" / "plugin.json").read_text(encoding="utf-8"))


@pytest.mark.skipif(shutil.which("node") is None, reason="node is missing")
def test_it_is_javascript(tmp_path: Path) -> None:
    """As any reader of modules takes it."""
    copy = shutil.copy(REPO / "hooks" / "register.mjs", tmp_path)
    done = subprocess.run(["node", "--check", copy], capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr.decode()


def test_the_launcher_gives_way_to_the_engine(plugin: PluginCopy) -> None:
    """By exec, so that the engine's parent is whoever asked, with the model's shell's variable or without."""
    python = plugin.root.parent / "bin" / "python"
    python.write_text(f"#!{sys.executable}\nimport os, sys\nprint(os.getppid(), sys.argv[1:], sys.stdin.read())\n")
    python.chmod(0o755)
    for env in ({}, {"CLAUDECODE": "1"}):
        with subprocess.Popen(
            [str(plugin.root / "hooks" / "engine"), "--module"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=plugin.env | env | {"RESUME_HOOKS_PYTHON": str(python)},
        ) as launcher:  # fmt: skip
            out, _ = launcher.communicate(b"the event", timeout=60)
        said = out.decode()
        assert said.startswith(str(os.getpid()))
        assert f"['-I', '{plugin.root}/hooks/module.py'] the event".replace("'", '"') in said.replace("'", '"')


def test_without_any_python_it_says_what_installs_one(plugin: PluginCopy, tmp_path: Path) -> None:
    """One line, exit status 1: the module shows it."""
    (tmp_path / "bare").mkdir()
    for tool in ("sh", "cmp"):
        (tmp_path / "bare" / tool).symlink_to(shutil.which(tool) or tool)
    done = plugin.engine("--module", stdin="{}", RESUME_HOOKS_PYTHON="", PATH=str(tmp_path / "bare"))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "--install" in done.stderr
