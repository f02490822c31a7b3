"""Owns `venv` in the data folder: a link that always names a whole venv, checked before it is switched to."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

from install_python import MissingPythonError, find_venv_maker
from venv_commands import (
    BuildError,
    create_borrowing_venv,
    create_venv,
    install_lock,
    is_damaged,
    venv_python,
)

__all__ = [
    "BuildError",
    "MissingPythonError",
    "build_venv",
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


def build_venv(data: Path, locks: list[Path]) -> None:
    """Build under a new name and switch.

    On MissingPythonError, BuildError, OSError the old venv stays.

    A team's driver that can't be had keeps no engine from being built: then BuildError comes after
    the switch. Where nothing else is missing it is added to the venv in use.
    """
    fresh = data / f"venv-{digest(locks)}-{os.getpid()}"
    wants_driver = TEAM_LOCK in locks
    driver_error: BuildError | None = None
    try:
        tool = lending_python(data)
        if tool and not wants_driver and borrow_packages(fresh, tool):
            switch_venv(data, fresh)
            return
        maker = find_venv_maker()
        if lacks_only_driver(data):
            add_driver(data / "venv", maker)
            return
        create_venv(fresh, maker, LOCK)
        if wants_driver:
            try:
                add_driver(fresh, maker)
            except BuildError as error:
                driver_error = error
        shutil.copyfile(LOCK, fresh / LOCK.name)  # last: a venv without it is not whole
        switch_venv(data, fresh)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    if driver_error:
        raise driver_error


def lacks_only_driver(data: Path) -> bool:
    """Whether a venv that is due has all of the engine's packages, and they are its own."""
    venv = data / "venv"
    return is_ready(data, [LOCK]) and not lending_python(venv) and not is_damaged(venv)


def lending_python(folder: Path) -> str:
    """The Python that lends its packages to a venv, or to the venvs of the data folder; "" for none."""
    try:
        return (folder / TOOL).read_text(encoding="utf-8")
    except OSError:
        return ""


def borrow_packages(fresh: Path, tool: str) -> bool:
    """Make `fresh` without packages of its own, from those that `tool` loads; False if it can't be made whole."""
    try:
        create_borrowing_venv(fresh, tool)
    except BuildError:  # it is gone since, or broken
        shutil.rmtree(fresh, ignore_errors=True)
        return False
    (fresh / TOOL).write_text(tool, encoding="utf-8")
    shutil.copyfile(LOCK, fresh / LOCK.name)
    return True


def add_driver(venv: Path, maker: str) -> None:
    """Install what speaks to a team's database."""
    try:
        install_lock(venv, maker, TEAM_LOCK, "import psycopg")
    except BuildError as error:
        raise BuildError(f"the team's driver: {error}") from error
    shutil.copyfile(TEAM_LOCK, venv / TEAM_LOCK.name)


def switch_venv(data: Path, fresh: Path) -> None:
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
