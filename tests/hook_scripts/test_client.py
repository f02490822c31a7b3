"""Tests in the real client: what a prompt costs, and an installation that outlives its client."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e.harness.client import (
    NEWEST_VERSION,
    OLDEST_VERSION,
    VERSIONS,
    ClientHome,
    find_client,
    run_print,
)
from tests.e2e.harness.mock_api import MockApi
from tests.hook_scripts.plugin_copy import PluginCopy
from tests.hook_scripts.test_session import WAITING_INSTALLER, end_installer, wait_for_file
from tests.needs import require_for_test

SLOW_INSTALLER_SOURCE = f"""
{WAITING_INSTALLER}
os.makedirs(sys.argv[-1], exist_ok=True)
open(os.path.join(sys.argv[-1], "installed"), "w").close()
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[ClientHome]:
    """Return a fresh home for the client. After the test, end all processes that still run in it."""
    fresh = ClientHome(tmp_path / "home")
    yield fresh
    fresh.end_processes()


@pytest.fixture
def loadable_plugin(plugin: PluginCopy) -> PluginCopy:
    """Return a copy of the plugin that a client can load. Its engine blocks every prompt."""
    (plugin.root / ".claude-plugin").mkdir()
    (plugin.root / ".claude-plugin" / "plugin.json").write_text('{"name": "resume-hooks"}')
    (plugin.root / "src/resume_hooks/hooks/prompt.py").write_text(
        "import json\ndef main(): print(json.dumps({'decision': 'block', 'reason': 'the card'}))\n"
    )
    return plugin


def programs_started_by(trace: str, script: str) -> list[str]:
    """Return the programs that a hook's shell and its child processes started, according to strace's log."""
    rows = [(pid, call) for pid, _, call in (line.partition(" ") for line in trace.splitlines())]
    born = {}  # A child process may run before the call that created the child has returned.
    for pid, call in rows:
        if child := re.search(r"(?:fork|clone\d?)[( ].*= (\d+)$", call):
            born[child.group(1)] = pid
    descendants = {pid for pid, call in rows if "execve(" in call and script in call}
    while grown := {child for child, parent in born.items() if parent in descendants} - descendants:
        descendants |= grown
    programs, begun = [], False
    for pid, call in rows:
        begun = begun or ("execve(" in call and script in call)
        program = re.search(r'execve\("([^"]+)"', call)
        if begun and pid in descendants and program and "ENOENT" not in call:
            programs.append(Path(program.group(1)).name)
    return programs


def test_an_ordinary_prompt_costs_two_processes(
    loadable_plugin: PluginCopy, home: ClientHome, tmp_path: Path
) -> None:
    """If a prompt has no trigger, it is sent to the API unchanged, and the hook runs one sh and one cat."""
    require_for_test(
        "strace", shutil.which("strace") is not None, "install the system package strace"
    )
    client, trace = find_client(NEWEST_VERSION), tmp_path / "trace"
    strace = ("strace", "-f", "-qq", "-s", "300", "-e", "trace=process", "-o", str(trace))
    prompt = 'fix "prompt":">resume" > please'
    traced = replace(client, command=(*strace, *client.command))
    env = {"RESUME_HOOKS_PYTHON": loadable_plugin.env["RESUME_HOOKS_PYTHON"]}
    with MockApi() as api:
        run_print(traced, home, api, prompt, plugin_dir=loadable_plugin.root, extra_env=env)
        assert json.dumps(prompt)[1:-1] in json.dumps(api.main_requests()).replace("\\\\", "\\")
    assert programs_started_by(trace.read_text(errors="replace"), "hooks/guard") == ["sh", "cat"]


@pytest.mark.parametrize(
    "version",
    [
        pytest.param(
            each, marks=[] if each in {OLDEST_VERSION, NEWEST_VERSION} else pytest.mark.wide
        )
        for each in VERSIONS
    ],
)
def test_an_installation_continues_after_the_client_has_ended(
    loadable_plugin: PluginCopy, home: ClientHome, version: str
) -> None:
    """If a session's start began an installation, it continues after ``claude -p`` has ended.

    A trigger is answered without a request to the API.
    """
    env = {"RESUME_HOOKS_PYTHON": loadable_plugin.env["RESUME_HOOKS_PYTHON"]}
    (loadable_plugin.root / "hooks" / "install.py").write_text(SLOW_INSTALLER_SOURCE)
    with MockApi() as api:
        run_print(
            find_client(version),
            home,
            api,
            ">resume",
            plugin_dir=loadable_plugin.root,
            extra_env=env,
        )
        assert not api.main_requests()
        run_print(find_client(version), home, api, "hello", plugin_dir=loadable_plugin.root)
        assert len(api.main_requests()) == 1
    installed = home.config / "plugins" / "data" / "resume-hooks-inline" / "installed"
    assert not installed.exists()
    end_installer(loadable_plugin)
    assert wait_for_file(installed)
