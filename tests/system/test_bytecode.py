"""Compiled modules that a full disk cut off: loaded from their source, and compiled anew."""

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

MAX_WHOLE_BYTES = 4_096
"""A compiled module of this size is in one block of a disk, which is written whole or not at all."""


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A copy of the plugin without compiled modules."""
    for name in ("src", "hooks"):
        shutil.copytree(
            REPO / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "_plugin")
        )
    return tmp_path


def run(
    plugin: Path, home: ConfigHome, script: str, *words: str, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """A script of hooks/, run as the shell scripts run it."""
    return subprocess.run(
        [sys.executable, "-I", str(plugin / "hooks" / script), *words],
        input=stdin,
        env={**home.environ, "RESUME_HOOKS_CLIPBOARD": "none"},
        cwd=home.root,
        capture_output=True,
        check=False,
        timeout=60,
    )


def cut_large_files(plugin: Path) -> list[Path]:
    """Cut each compiled module off after its first block, as a full disk does. Return those that were cut."""
    cut = []
    for path in plugin.rglob("*.pyc"):
        if path.stat().st_size > MAX_WHOLE_BYTES:
            os.truncate(path, MAX_WHOLE_BYTES)
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
def test_each_entry_survives_modules_that_were_cut_off(
    plugin: Path,
    config_home: ConfigHome,
    script: str,
    words: list[str],
    event: dict[str, str] | None,
) -> None:
    """It answers as before, and the next run finds whole files again."""
    stdin = b"" if event is None else json.dumps(event).encode()
    whole = run(plugin, config_home, script, *words, stdin=stdin)
    assert whole.returncode == 0
    cut = cut_large_files(plugin)
    assert cut
    again = run(plugin, config_home, script, *words, stdin=stdin)
    assert (again.returncode, again.stdout, again.stderr) == (0, whole.stdout, whole.stderr)
    assert run(plugin, config_home, script, *words, stdin=stdin).stdout == whole.stdout
    for path in cut:
        marshal.loads(path.read_bytes()[16:])


def test_the_installer_survives_it(plugin: Path, config_home: ConfigHome, tmp_path: Path) -> None:
    """It is what a user runs after they made room."""
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
        done = run(plugin, config_home, "install.py", str(data))
        assert (done.returncode, done.stderr) == (0, b"")
        cut_large_files(plugin)


def test_what_repairs_fits_into_a_block(plugin: Path, config_home: ConfigHome) -> None:
    """Everything that is loaded before the repair; else it could be cut off itself."""
    run(plugin, config_home, "cli.py", "--version")
    run(plugin, config_home, "prompt.py")
    names = ("__init__", "__main__", "system/__init__", "system/bytecode", "hooks/__init__")
    for name in (*names, "hooks/end_process"):
        folder, _, stem = f"/{name}".rpartition("/")
        tag = sys.implementation.cache_tag
        compiled = plugin / f"src/resume_hooks{folder}/__pycache__/{stem}.{tag}.pyc"
        assert compiled.stat().st_size <= MAX_WHOLE_BYTES, name
