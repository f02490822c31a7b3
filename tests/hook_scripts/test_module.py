"""Tests of the module's source: its texts, its requests to the client, and its event handlers."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hook_scripts.plugin_copy import PluginCopy
from tests.needs import REPO

MODULE_FILES = sorted(
    path
    for path in (REPO / "hooks").glob("*.mjs")
    if path.name not in {"commands.mjs", "shared_values.mjs"}
)
CODE_BY_FILE_NAME = {
    path.name: re.sub(r"(^|\s)//.*", "", path.read_text(encoding="utf-8")) for path in MODULE_FILES
}
REGISTER_FILE_CODE = CODE_BY_FILE_NAME["register.mjs"]
MAX_MODULE_LINES = 820


def test_the_module_has_no_text_for_users() -> None:
    """The module contains no text for users, except in generated files, so no literal contains a space.

    The total number of lines in its files is limited.
    """
    assert (
        sum(len(path.read_text(encoding="utf-8").splitlines()) for path in MODULE_FILES)
        <= MAX_MODULE_LINES
    )
    code = "".join(CODE_BY_FILE_NAME.values())
    literals = [found[0][1:-1] for found in re.finditer(r"'([^']*)'|\"([^\"]*)\"|`([^`]*)`", code)]
    assert [each for each in literals if " " in each] == []


def test_no_prompt_waits_for_the_module() -> None:
    """The module handles only a fixed list of events, so that prompts do not wait for it.

    Prompts wait only while another session is being opened.
    """
    heard = re.findall(r"\bon\('([A-Za-z.]+)'(?:, \{ \w+: (\S+) \})?", REGISTER_FILE_CODE)
    assert heard == [
        ("session.start", ""),
        ("command.run", "name"),
        ("command.run", "name"),
        ("command.run", "'resume-hooks:recover-context'"),
        ("ui.render", "'Pane'"),
        ("ui.render", "'AbovePrompt'"),
        ("ui.focus", "'Pane'"),
        ("prompt.submit", ""),
        ("prompt.edit", ""),
        ("prompt.change", ""),
        ("turn.start", ""),
        ("session.measure", ""),
        ("session.compact", ""),
        ("classic.SessionStart", ""),
        ("tool.call", "'mcp__resume-hooks__handoff'"),
        ("turn.complete", ""),
        ("classic.Stop", ""),
        ("classic.StopFailure", ""),
    ]


def test_the_module_does_not_replace_the_classic_hooks() -> None:
    """hooks.json contains both the module and the hooks; plugin.json contains no hooks.

    Clients that do not support modules accept only this form.
    """
    document = json.loads((REPO / "hooks" / "hooks.json").read_text(encoding="utf-8"))
    assert document["modules"] == ["./register.mjs"]
    assert "UserPromptSubmit" in document["hooks"]
    assert "hooks" not in json.loads(
        (REPO / ".claude-plugin" / "plugin.json").read_text(encoding="utf-8")
    )


@pytest.mark.skipif(shutil.which("node") is None, reason="node is missing")
def test_the_module_is_valid_javascript(tmp_path: Path) -> None:
    """Node accepts the files of the client's module as JavaScript."""
    for path in MODULE_FILES:
        done = subprocess.run(
            ["node", "--check", shutil.copy(path, tmp_path)],
            capture_output=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize(
    ("settings", "env", "is_requested"),
    [
        ("", {}, False),
        ('{"handoff_dir": "_handoffs"}', {}, False),
        ('{"handoff_tool": "on"}', {}, True),
        ("", {"RESUME_HOOKS_HANDOFF_TOOL": "on"}, True),
    ],
)
def test_a_start_requests_tools_only_if_a_setting_turns_one_on(
    plugin: PluginCopy, tmp_path: Path, settings: str, env: dict[str, str], is_requested: bool
) -> None:
    """When a client starts, the module asks the engine for tools only if a setting turns a tool on.

    Asking the engine costs a process.
    """
    state = tmp_path / "state"
    (state / "pending").mkdir(parents=True)
    (state / "settings.json").write_text(settings)
    python = plugin.root.parent / "bin" / "python"
    python.write_text("#!/bin/sh\necho asked\n")
    python.chmod(0o755)
    done = subprocess.run(
        ["sh", str(plugin.root / "hooks" / "offered"), "--module"],
        input="{}", capture_output=True, encoding="utf-8", check=False, timeout=60,
        env=plugin.env | env | {
            "RESUME_HOOKS_PYTHON": str(python), "RESUME_HOOKS_HOME": str(state), "CLAUDE_PLUGIN_ROOT": str(plugin.root),
        },
    )  # fmt: skip
    assert done.stdout == ("asked\n" if is_requested else "{}\n")


def test_the_launcher_replaces_itself_with_the_engine(plugin: PluginCopy) -> None:
    """``engine --module`` replaces its own process with Python, so that the caller is Python's parent.

    It does the same in the model's shell.
    """
    python = plugin.root.parent / "bin" / "python"
    python.write_text(
        f"#!{sys.executable}\nimport os, sys\nprint(os.getppid(), sys.argv[1:], sys.stdin.read())\n"
    )
    python.chmod(0o755)
    for env in ({}, {"CLAUDECODE": "1"}):
        with subprocess.Popen(
            [str(plugin.root / "hooks" / "engine"), "--module"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=plugin.env | env | {"RESUME_HOOKS_PYTHON": str(python)},
        ) as launcher:  # fmt: skip
            out, _ = launcher.communicate(b"the event", timeout=60)
        said = out.decode()
        assert said.startswith(str(os.getpid()))
        assert f"['-I', '{plugin.root}/hooks/start_module.py'] the event".replace(
            "'", '"'
        ) in said.replace("'", '"')


def test_the_launcher_without_any_python_names_an_installer(
    plugin: PluginCopy, tmp_path: Path
) -> None:
    """Without Python, ``engine --module`` prints a line with the command that installs the engine.

    The exit code is 1.
    """
    (tmp_path / "bare").mkdir()
    for tool in ("sh", "cmp", "cat", "sed"):
        (tmp_path / "bare" / tool).symlink_to(shutil.which(tool) or tool)
    done = plugin.run_engine(
        "--module", stdin="{}", RESUME_HOOKS_PYTHON="", PATH=str(tmp_path / "bare")
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "--install" in done.stderr
