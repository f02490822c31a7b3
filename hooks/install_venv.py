"""Owns `venv` in the data folder: a link that always names a whole venv, checked before it is switched to."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

from install_python import MissingPythonError, find_python
from venv_commands import BuildError, add, borrow, fill, is_damaged, venv_python

__all__ = [
    "BuildError",
    "MissingPythonError",
    "build",
    "digest",
    "is_damaged",
    "is_ready",
    "wanted_locks",
]
ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
TEAM_LOCK = ROOT / "requirements-team.lock"
TOOL = "tool"
"""The file that names the Python of a command that pipx or uv installed.

In a venv, the one that lends it packages.
"""


def wanted_locks(*, team: bool) -> list[Path]:
    """The locks that the venv is to hold: the engine's and, where a team was joined or is about to be, the driver's."""
    sys.path.insert(0, str(ROOT / "src"))
    from resume_hooks import questions, seam  # of ours only what any Python >= 3.9 loads
    from resume_hooks.paths import Where

    if team or any(needs_driver(Where()) for needs_driver in seam.answers(questions.needs_driver)):
        return [LOCK, TEAM_LOCK]
    return [LOCK]


def digest(locks: list[Path]) -> str:
    """Name of the locks' content, 12 hex digits."""
    return hashlib.sha256(b"".join(lock.read_bytes() for lock in locks)).hexdigest()[:12]


def is_ready(data: Path, locks: list[Path]) -> bool:
    """Whether the venv in use was built from these very locks and its Python is still there."""
    try:
        same = all((data / "venv" / lock.name).read_bytes() == lock.read_bytes() for lock in locks)
    except OSError:
        return False
    return same and os.access(venv_python(data / "venv"), os.X_OK)


def build(data: Path, locks: list[Path]) -> None:
    """Build under a new name and switch.

    On MissingPythonError, BuildError, OSError the old venv stays.

    A team's driver that can't be had keeps no engine from being built: then BuildError comes after
    the switch. Where nothing else is missing it is added to the venv in use.
    """
    fresh = data / f"venv-{digest(locks)}-{os.getpid()}"
    missing: BuildError | None = None
    try:
        tool = lender(data)
        if tool and TEAM_LOCK not in locks and borrowed(fresh, tool):
            switch(data, fresh)
            return
        python = find_python()
        if is_ready(data, [LOCK]) and not lender(data / "venv") and not is_damaged(data / "venv"):
            add_driver(data / "venv", python)
            return
        fill(fresh, python, LOCK)
        if TEAM_LOCK in locks:
            try:
                add_driver(fresh, python)
            except BuildError as error:
                missing = error
        shutil.copyfile(LOCK, fresh / LOCK.name)  # last: a venv without it is not whole
        switch(data, fresh)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    if missing:
        raise missing


def lender(folder: Path) -> str:
    """The Python that lends its packages to a venv, or to the venvs of the data folder; "" for none."""
    try:
        return (folder / TOOL).read_text(encoding="utf-8")
    except OSError:
        return ""


def borrowed(fresh: Path, tool: str) -> bool:
    """Whether `fresh` was made whole without packages of its own, from those that `tool` loads."""
    try:
        borrow(fresh, tool)
    except BuildError:  # it is gone since, or broken
        shutil.rmtree(fresh, ignore_errors=True)
        return False
    (fresh / TOOL).write_text(tool, encoding="utf-8")
    shutil.copyfile(LOCK, fresh / LOCK.name)
    return True


def add_driver(venv: Path, python: str) -> None:
    """Install what speaks to a team's database."""
    try:
        add(venv, python, TEAM_LOCK, "import psycopg")
    except BuildError as error:
        raise BuildError(f"the team's driver: {error}") from error
    shutil.copyfile(TEAM_LOCK, venv / TEAM_LOCK.name)


def switch(data: Path, fresh: Path) -> None:
    """Make `venv` mean `fresh` in one step.

    The one before stays until the next: a hook may run in it.
    """
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
