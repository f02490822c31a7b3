"""Owns the choice of the Python that the engine's venv is made with; asks each candidate, trusts no name."""

from __future__ import annotations

import shutil
import subprocess
import sys

NEEDS = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))"
NAMES = ("python3.14", "python3.13", "python3.12", "python3.11", "python3")


class MissingPythonError(Exception):
    """Neither a Python >= 3.11 that can make a venv nor uv is on PATH."""


def makes_venvs(python: str) -> bool:
    """Whether it runs, is new enough and is whole: a pyenv shim may name nothing, Debian splits venv off."""
    return subprocess.run([python, "-I", "-c", NEEDS], capture_output=True, check=False).returncode == 0


def find_python() -> str:
    """The first Python >= 3.11 that can make a venv, else "uv", which brings one."""
    for name in (sys.executable, *NAMES):
        found = shutil.which(name)
        if found and makes_venvs(found):
            return found
    if shutil.which("uv"):
        return "uv"
    raise MissingPythonError("install Python 3.11 or newer (on Debian also python3-venv), or uv")
