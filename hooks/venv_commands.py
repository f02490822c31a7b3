"""Owns the commands that make a venv: beside ``hooks/engine``'s ``uv run`` the only ones that use a network.

They get the environment without the client's secrets and without settings that would install elsewhere.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

CHECK = "import orjson, pydantic, pyperclip, click, rich"
LEND = """
import pathlib, sys, sysconfig
ours = sysconfig.get_path("purelib", vars={"base": sys.argv[1], "platbase": sys.argv[1]})
theirs = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
pathlib.Path(ours, "resume-hooks.pth").write_text("".join(f"{path}\\n" for path in theirs), encoding="utf-8")
"""
LIMIT_SECONDS = 600
REFUSED = ("ANTHROPIC", "CLAUDE", "PYTHON", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_REQUIRE")


class BuildError(Exception):
    """A step failed or took too long; the message names it, what it printed stands before."""


def step(name: str, *command: str) -> None:
    """Run `command` to its end, its output to ours (the log)."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(REFUSED)}
    try:
        subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, timeout=LIMIT_SECONDS, check=True)
    except subprocess.CalledProcessError as error:
        raise BuildError(f"{name} failed with exit status {error.returncode}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{name} failed: {type(error).__name__}") from error


def venv_python(venv: Path) -> Path:
    """Where a venv keeps its Python."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def fill(venv: Path, python: str, lock: Path) -> None:
    """Make `venv` with the lock's wheels."""
    if python == "uv":
        step("uv venv", "uv", "venv", "--quiet", "--python", ">=3.11", str(venv))
    else:
        step("python -m venv", python, "-I", "-m", "venv", str(venv))
    add(venv, python, lock, CHECK)


def add(venv: Path, python: str, lock: Path, check: str) -> None:
    """Install a lock's wheels into `venv`: hashes checked, nothing resolved, no build script run."""
    inside = str(venv_python(venv))
    locked = ("--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(lock))
    if python == "uv":
        step("uv pip install", "uv", "pip", "install", "--python", inside, *locked)
    else:
        step("pip install", inside, "-I", "-m", "pip", "install", "--no-input", *locked)
    step("the import check", inside, "-I", "-c", check)


def borrow(venv: Path, tool: str) -> None:
    """Make `venv` without packages of its own: it loads those of the venv that the Python `tool` belongs to."""
    step("python -m venv", tool, "-I", "-m", "venv", "--without-pip", str(venv))
    step("lending packages", tool, "-I", "-c", LEND, str(venv))
    step("the import check", str(venv_python(venv)), "-I", "-c", CHECK)


def is_damaged(venv: Path) -> bool:
    """Whether a venv can't load what was installed into it; takes as long as loading it."""
    command = [str(venv_python(venv)), "-I", "-c", CHECK]
    try:
        return subprocess.run(command, capture_output=True, timeout=LIMIT_SECONDS, check=False).returncode != 0
    except (OSError, subprocess.TimeoutExpired):
        return True
