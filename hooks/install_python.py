"""Find the Python that creates the engine's venv.

Each candidate is started, because its name does not tell whether it works.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
from resume_hooks.system import programs

VERSION_CHECK_CODE = """
import os, sys, venv, ensurepip
sys.exit(1) if sys.version_info < (3, 11) else os.write(1, os.fsencode(sys.executable))
"""
PYTHON_NAMES = ("python3.14", "python3.13", "python3.12", "python3.11", "python3")


class MissingPythonError(Exception):
    """PATH has neither uv nor a Python >= 3.11 that can create a venv."""


def find_python_with_venv(name: str) -> str:
    """Return the path of the Python with this name, or "" if it can't create the engine's venv.

    The Python may be too old, or may not start at all: a pyenv shim may start no Python, or a
    different one in each folder. On Debian, venv is in a separate package.
    """
    try:
        completed = programs.run_program(
            [name, "-I", "-c", VERSION_CHECK_CODE],
            os.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return ""
    return os.fsdecode(completed.stdout) if completed.returncode == 0 else ""


def find_venv_creator() -> str:
    """Return the path of the first Python >= 3.11 that can create a venv, or "uv", which downloads one.

    Raise MissingPythonError if there is neither.
    """
    for name in (sys.executable, *PYTHON_NAMES):
        if python := find_python_with_venv(name):
            return python
    if programs.find_program("uv", os.environ):
        return "uv"
    raise MissingPythonError("install Python 3.11 or newer (on Debian also python3-venv), or uv")
