"""Owns the session hooks' tests: they say nothing, wait for nothing, and link only across /clear."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest

from tests.hooks.plugin_copy import PluginCopy

STARTUP = b'{"session_id":"a","hook_event_name":"SessionStart","source":"startup"}'


def make_ready(plugin: PluginCopy) -> None:
    """A venv that fits the lock; its Python writes down that it was started."""
    python = plugin.data / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{plugin.env["RESUME_HOOKS_PYTHON"]}" "$@"\n')
    python.chmod(0o755)
    shutil.copy(plugin.root / "requirements.lock", plugin.data / "venv")


def stand_in_installer(plugin: PluginCopy, seconds: int) -> Path:
    """Replace the installer by one that only takes its time; returns the file that it writes at its end."""
    done = plugin.data / "installed"
    (plugin.root / "hooks" / "install.py").write_text(
        f"import os, sys, time\nos.setsid()\ntime.sleep({seconds})\n"
        f"to = {str(done)!r}\nopen(to + '.new', 'w').write(sys.argv[-1])\nos.rename(to + '.new', to)\n"
    )
    return done


def wait_for(file: Path, seconds: float = 20) -> bool:
    """Whether the file appears in time."""
    end = time.monotonic() + seconds
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.05)
    return file.exists()


@pytest.mark.parametrize(("event", "key"), [("SessionStart", "source"), ("SessionEnd", "reason")])
def test_only_clear_reaches_the_recorder(plugin: PluginCopy, event: str, key: str) -> None:
    """/clear is the one event whose two halves are parent and child."""
    for value in ("startup", "resume", "compact", "fork", "logout", "prompt_input_exit", "other"):
        done = plugin.hook(event, json.dumps({key: value, "title": f'"{key}":"clear"'}).encode())
        assert (done.returncode, done.stdout, done.stderr, plugin.reached) == (0, b"", b"", b""), value
    for body in (json.dumps({key: "clear"}), json.dumps({key: "clear"}, separators=(",", ":"))):
        plugin.forget()
        plugin.hook(event, body.encode())
        assert plugin.reached.split(b"\n", 1)[1] == body.encode() + b"\n"


def test_a_ready_engine_starts_no_python(plugin: PluginCopy) -> None:
    """The lock equals the venv's copy and its Python is there: nothing to do."""
    make_ready(plugin)
    installed = stand_in_installer(plugin, 0)
    done = plugin.hook("SessionStart", STARTUP, RESUME_HOOKS_PYTHON="")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not wait_for(installed, 1)


@pytest.mark.parametrize("change", ["no venv", "other lock", "dangling python"])
def test_whatever_differs_starts_the_install_and_does_not_wait(plugin: PluginCopy, change: str) -> None:
    """The hook is back, its output closed, long before an install of four seconds ends."""
    make_ready(plugin)
    if change == "no venv":
        shutil.rmtree(plugin.data / "venv")
    elif change == "other lock":
        (plugin.root / "requirements.lock").write_text("# newer\n")
    else:
        (plugin.data / "venv" / "bin" / "python").unlink()
    installed = stand_in_installer(plugin, 4)
    began = time.monotonic()
    done = plugin.hook("SessionStart", STARTUP, RESUME_HOOKS_PYTHON="")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert time.monotonic() - began < 3
    assert not installed.exists()
    assert wait_for(installed)
    assert installed.read_text() == str(plugin.data)


@pytest.mark.parametrize("own", ["named", "checkout"])
def test_a_users_own_python_is_not_installed_over(plugin: PluginCopy, own: str) -> None:
    """With RESUME_HOOKS_PYTHON, or a .venv beside the plugin, there is nothing to install."""
    installed = stand_in_installer(plugin, 0)
    if own == "checkout":
        python = plugin.root / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.symlink_to(plugin.env["RESUME_HOOKS_PYTHON"])
        plugin.hook("SessionStart", STARTUP, RESUME_HOOKS_PYTHON="")
    else:
        plugin.hook("SessionStart", STARTUP)
    assert not wait_for(installed, 1)


def test_a_client_without_data_folder_gets_one(plugin: PluginCopy, tmp_path: Path) -> None:
    """Client 2.1.42 sets no CLAUDE_PLUGIN_DATA: the same place by our own name."""
    installed = stand_in_installer(plugin, 0)
    plugin.hook("SessionStart", STARTUP, RESUME_HOOKS_PYTHON="", CLAUDE_PLUGIN_DATA="")
    assert wait_for(installed)
    assert installed.read_text() == str(tmp_path / "config" / "plugins" / "data" / "resume-hooks-resume-hooks")
