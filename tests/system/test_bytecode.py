"""Tests that a compiled module which a full disk truncated is loaded from source and compiled again."""

from __future__ import annotations

import json
import marshal
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import SESSION, ConfigHome
from tests.needs import REPO

DISK_BLOCK_BYTES = 4_096
"""A disk block, which is written in full or not at all."""


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """Return a copy of the plugin without compiled modules."""
    for name in ("src", "hooks"):
        shutil.copytree(
            REPO / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "_plugin")
        )
    return tmp_path


def run_hook_script(
    plugin: Path, home: ConfigHome, script: str, *words: str, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run a script of ``hooks`` as the shell scripts run it."""
    return subprocess.run(
        [sys.executable, "-I", str(plugin / "hooks" / script), *words],
        input=stdin,
        env={**home.environ, "RESUME_HOOKS_CLIPBOARD": "none"},
        cwd=home.root,
        capture_output=True,
        check=False,
        timeout=60,
    )


def truncate_large_files(plugin: Path) -> list[Path]:
    """Truncate each compiled module after its first block, as a full disk does.

    Return the changed files.
    """
    cut = []
    for path in plugin.rglob("*.pyc"):
        if path.stat().st_size > DISK_BLOCK_BYTES:
            os.truncate(path, DISK_BLOCK_BYTES)
            cut.append(path)
    return cut


@pytest.mark.parametrize(
    ("script", "words", "event"),
    [
        ("cli.py", ["sessions"], None),
        ("cli.py", ["search", "parser"], None),
        ("prompt.py", [], {"session_id": SESSION, "prompt": ">session"}),
        ("fallback.py", [], {"session_id": SESSION, "prompt": ">session"}),
        ("session.py", [], {"session_id": SESSION, "hook_event_name": "SessionEnd"}),
        ("notice.py", [], {"session_id": SESSION, "hook_event_name": "Stop"}),
        ("later.py", [], {"session_id": SESSION, "hook_event_name": "SessionStart"}),
    ],
)
def test_each_script_survives_truncated_modules(
    plugin: Path,
    config_home: ConfigHome,
    script: str,
    words: list[str],
    event: dict[str, str] | None,
) -> None:
    """Each script gives the same answer with truncated modules, and repairs them."""
    stdin = b"" if event is None else json.dumps(event).encode()
    whole = run_hook_script(plugin, config_home, script, *words, stdin=stdin)
    assert whole.returncode == 0
    cut = truncate_large_files(plugin)
    assert cut
    again = run_hook_script(plugin, config_home, script, *words, stdin=stdin)
    assert (again.returncode, again.stdout, again.stderr) == (0, whole.stdout, whole.stderr)
    assert run_hook_script(plugin, config_home, script, *words, stdin=stdin).stdout == whole.stdout
    for path in cut:
        marshal.loads(path.read_bytes()[16:])


def test_the_installer_survives_truncated_modules(
    plugin: Path, config_home: ConfigHome, tmp_path: Path
) -> None:
    """The installer runs with truncated modules, as after a full disk."""
    for name in ("requirements.lock", "requirements-team.lock"):
        shutil.copy(REPO / name, plugin)
    data = tmp_path / "data"
    data.mkdir()
    (data / "install.lock").touch()
    for _ in range(2):
        (data / "venv" / "bin").mkdir(parents=True, exist_ok=True)
        shutil.copy(REPO / "requirements.lock", data / "venv")
        (data / "venv" / "bin" / "python").write_text("#!/bin/sh\n")
        (data / "venv" / "bin" / "python").chmod(0o755)
        done = run_hook_script(plugin, config_home, "install.py", str(data))
        assert (done.returncode, done.stderr) == (0, b"")
        truncate_large_files(plugin)


def test_modules_loaded_before_the_repair_fit_into_a_block(
    plugin: Path, config_home: ConfigHome
) -> None:
    """A module that is loaded before the repair is so small that a full disk can't truncate it."""
    run_hook_script(plugin, config_home, "cli.py", "--version")
    run_hook_script(plugin, config_home, "prompt.py")
    names = ("__init__", "__main__", "system/__init__", "system/bytecode", "hooks/__init__")
    for name in (*names, "hooks/end_process"):
        folder, _, stem = f"/{name}".rpartition("/")
        tag = sys.implementation.cache_tag
        compiled = plugin / f"src/resume_hooks{folder}/__pycache__/{stem}.{tag}.pyc"
        assert compiled.stat().st_size <= DISK_BLOCK_BYTES, name
