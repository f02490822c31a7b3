"""Owns `venv` in the data folder: a link that always names a whole venv, checked before it is switched to."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from install_python import MissingPythonError, find_python
from install_steps import BuildError, fill, is_damaged, venv_python

__all__ = ["BuildError", "MissingPythonError", "build", "digest", "is_damaged", "is_ready"]
LOCK = Path(__file__).resolve().parent.parent / "requirements.lock"


def digest() -> str:
    """Name of the lock's content, 12 hex digits."""
    return hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]


def is_ready(data: Path) -> bool:
    """Whether the venv in use was built from this very lock and its Python is still there."""
    try:
        same = (data / "venv" / LOCK.name).read_bytes() == LOCK.read_bytes()
    except OSError:
        return False
    return same and os.access(venv_python(data / "venv"), os.X_OK)


def build(data: Path) -> None:
    """Build under a new name and switch; on MissingPythonError, BuildError, OSError the old venv stays."""
    python = find_python()
    fresh = data / f"venv-{digest()}-{os.getpid()}"
    try:
        fill(fresh, python, LOCK)
        shutil.copyfile(LOCK, fresh / LOCK.name)  # last: a venv without it is not whole
        switch(data, fresh)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def switch(data: Path, fresh: Path) -> None:
    """Make `venv` mean `fresh` in one step; the one before stays until the next: a hook may run in it."""
    venv = data / "venv"
    before = os.path.realpath(venv)
    if venv.is_dir() and not venv.is_symlink():
        before = str(data / f"venv-old-{os.getpid()}")
        os.rename(venv, before)
    if os.name == "nt":  # symlinks need a privilege there
        os.rename(fresh, venv)
    else:
        link = data / f"venv.{os.getpid()}"
        os.symlink(fresh.name, link)
        os.replace(link, venv)
    for other in data.glob("venv-*"):
        if str(other.resolve()) not in (before, str(fresh.resolve())):
            shutil.rmtree(other, ignore_errors=True)
