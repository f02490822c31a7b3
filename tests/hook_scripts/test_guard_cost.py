"""Tests of how many processes hooks start, and of a missing or damaged plugin."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from typing import NamedTuple

import pytest

from tests.hook_scripts.plugin_copy import PluginCopy
from tests.hook_scripts.test_guard import installed_shells
from tests.needs import REPO, require_for_test

SCRIPTS_BY_EVENT = {
    "UserPromptSubmit": "guard",
    "SessionStart": "session-start",
    "SessionEnd": "session-end",
    "Stop": "notice",
    "PreToolUse": "allow",
}
"""The events for which the plugin has hooks, each with the script that the client waits for."""


def test_hooks_use_only_events_that_every_client_knows() -> None:
    """hooks.json contains only events and fields that every client knows.

    An unknown event would disable all hooks in older clients. Older clients also ignore "args", and
    version 2.1.42 ignores "if".
    """
    hooks = json.loads((REPO / "hooks" / "hooks.json").read_text(encoding="utf-8"))["hooks"]
    assert sorted(hooks) == sorted(SCRIPTS_BY_EVENT)
    for groups in hooks.values():
        for hook in (hook for group in groups for hook in group["hooks"]):
            assert sorted(set(hook) - {"if", "async"}) == ["command", "timeout", "type"]
            # The variable's name is not in braces, because older clients insert the value of
            # ``${...}``.
            assert '"$CLAUDE_PLUGIN_ROOT/' in hook["command"]
        assert not groups[0]["hooks"][0].get("async"), "somebody waits for the first"


def started_programs(trace: str) -> list[str]:
    """Return the programs in strace's log in the order in which they were started.

    If another process runs during a call, strace writes the call on two lines.
    """
    found, begun = [], {}
    for row in trace.splitlines():
        pid, _, call = row.partition(" ")
        if named := re.match(r'\s*execve\("[^"]*/(\w+)"', call):
            begun[pid] = named.group(1)
        if "execve" in call and call.endswith(" = 0"):
            found.append(begun[pid])
    return found


class HookTrace(NamedTuple):
    """What ``strace`` recorded about a hook: its output, the started programs, the process count."""

    output: bytes
    programs: list[str]
    process_count: int


def trace_hook(plugin: PluginCopy, event: str, body: bytes, **env: str) -> HookTrace:
    """Run the hook of an event under ``strace``."""
    require_for_test(
        "strace", shutil.which("strace") is not None, "install the system package strace"
    )
    log = plugin.data_folder / "trace"
    calls = ("-e", "trace=execve,fork,vfork,clone,clone3")
    done = plugin.run_hook(
        event, body, "strace", "-f", "-qq", *calls, "-o", str(log), "/bin/sh", **env
    )
    assert (done.returncode, done.stderr) == (0, b"")
    trace = log.read_text()
    return HookTrace(
        done.stdout,
        started_programs(trace),
        len({line.split()[0] for line in trace.splitlines()}),
    )


@pytest.mark.parametrize("size", [2, 200, 64 << 10, 1 << 20])
def test_a_prompt_without_trigger_costs_one_shell_and_one_child_process(
    plugin: PluginCopy, size: int
) -> None:
    """If a prompt has no trigger, only the client's /bin/sh and one ``cat`` run."""
    body = json.dumps({"prompt": '<a href="x"> ' * (size // 13)}).encode()
    assert trace_hook(plugin, "UserPromptSubmit", body) == (b"", ["sh", "cat"], 2)


@pytest.mark.parametrize("event", SCRIPTS_BY_EVENT)
@pytest.mark.parametrize("shell", installed_shells(), ids="-".join)
def test_a_missing_or_broken_plugin_lets_prompts_pass(
    plugin: PluginCopy, shell: list[str], event: str
) -> None:
    """If a script is damaged or the plugin is missing, hooks print nothing and do not block the prompt.

    This happens if an update has removed the folder or written only a part of it. The exit code is
    never 2. If /bin/sh is zsh and cannot read a file, it exits with 1, which does not block a
    prompt.
    """
    for broken in ("if true; then\n case", "exit 2", "set -e; false", "f() {"):
        (plugin.root / "hooks" / SCRIPTS_BY_EVENT[event]).write_text(broken)
        done = plugin.run_hook(event, b'{"prompt":">resume"}', *shell)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), broken
    shutil.rmtree(plugin.root)
    done = plugin.run_hook(event, b'{"prompt":">resume"}', *shell)
    assert (done.returncode, done.stdout, done.stderr) == (int(shell[0] == "zsh"), b"", b"")


def test_a_guard_without_launcher_lets_the_prompt_pass(plugin: PluginCopy) -> None:
    """If only the guard exists, as during an update, the prompt passes."""
    (plugin.root / "hooks" / "engine").unlink()
    done = plugin.run_hook("UserPromptSubmit", b'{"prompt":">resume"}')
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_shellcheck_accepts_the_scripts() -> None:
    """Shellcheck finds no problem in the scripts."""
    require_for_test(
        "shellcheck",
        shutil.which("shellcheck") is not None,
        "install the system package shellcheck",
    )
    scripts = [
        str(path) for path in (REPO / "hooks").iterdir() if path.is_file() and not path.suffix
    ]
    done = subprocess.run(
        ["shellcheck", "-s", "sh", "-x", *scripts], cwd=REPO, check=False, capture_output=True
    )
    assert (done.returncode, done.stdout) == (0, b"")


def test_the_launcher_is_executable() -> None:
    """The launcher is executable, because skill, agent and slash commands run it by its path."""
    assert os.access(REPO / "hooks" / "engine", os.X_OK)
