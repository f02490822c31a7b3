"""Build the engine's venv in the data folder. In that folder, `venv` is a link to a complete venv.

The link is changed only when the new venv has passed its check.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

from install_python import MissingPythonError, find_venv_creator
from venv_commands import (
    BuildError,
    create_venv,
    create_venv_with_borrowed_packages,
    install_locked_packages,
    is_venv_damaged,
    venv_python,
)

__all__ = [
    "BuildError",
    "MissingPythonError",
    "build_venv",
    "digest_lock_files",
    "is_venv_damaged",
    "is_venv_ready",
    "list_needed_lock_files",
]
PLUGIN_FOLDER = Path(__file__).resolve().parent.parent
ENGINE_LOCK_FILE = PLUGIN_FOLDER / "requirements.lock"
TEAM_LOCK_FILE = PLUGIN_FOLDER / "requirements-team.lock"
TOOL_FILE_NAME = "tool"
"""Name of a file in a venv. The file contains the path of the Python whose packages the venv uses.

This is the Python of a command ``resume-hooks`` that pipx or uv installed.
"""


def list_needed_lock_files(*, has_team: bool) -> list[Path]:
    """Return the lock files to install: the engine's, and for a team also that of the database driver."""
    sys.path.insert(0, str(PLUGIN_FOLDER / "src"))
    from resume_hooks import questions, seam  # Our own modules, which run on any Python >= 3.9.
    from resume_hooks.paths import Where

    if has_team or any(
        find_reason(Where())
        for find_reason in seam.find_answers(questions.find_reason_for_database_driver)
    ):
        return [ENGINE_LOCK_FILE, TEAM_LOCK_FILE]
    return [ENGINE_LOCK_FILE]


def digest_lock_files(lock_files: list[Path]) -> str:
    """Return a digest of the lock files' contents, with 12 hexadecimal digits."""
    return hashlib.sha256(b"".join(lock.read_bytes() for lock in lock_files)).hexdigest()[:12]


def is_venv_ready(data_folder: Path, lock_files: list[Path]) -> bool:
    """Check that the current venv was built from these lock files and that its Python exists."""
    try:
        has_same_locks = all(
            (data_folder / "venv" / lock.name).read_bytes() == lock.read_bytes()
            for lock in lock_files
        )
    except OSError:
        return False
    return has_same_locks and os.access(venv_python(data_folder / "venv"), os.X_OK)


def build_venv(data_folder: Path, lock_files: list[Path]) -> None:
    """Build a venv under a new name, and make the link `venv` point to it.

    If only the database driver for a team is missing, add the driver to the current venv instead.
    If only the driver fails, the new venv is used without it, and BuildError is raised. After any
    other BuildError, MissingPythonError or OSError, the old venv stays in use.
    """
    new_venv = data_folder / f"venv-{digest_lock_files(lock_files)}-{os.getpid()}"
    wants_driver = TEAM_LOCK_FILE in lock_files
    driver_error: BuildError | None = None
    try:
        tool = find_lending_python(data_folder)
        if tool and not wants_driver and borrow_packages(new_venv, tool):
            switch_venv(data_folder, new_venv)
            return
        creator = find_venv_creator()
        if lacks_only_database_driver(data_folder):
            install_database_driver(data_folder / "venv", creator)
            return
        create_venv(new_venv, creator, ENGINE_LOCK_FILE)
        if wants_driver:
            try:
                install_database_driver(new_venv, creator)
            except BuildError as error:
                driver_error = error
        # Copied last, because this file marks the venv as complete.
        shutil.copyfile(ENGINE_LOCK_FILE, new_venv / ENGINE_LOCK_FILE.name)
        switch_venv(data_folder, new_venv)
    except BaseException:
        shutil.rmtree(new_venv, ignore_errors=True)
        raise
    if driver_error:
        raise driver_error


def lacks_only_database_driver(data_folder: Path) -> bool:
    """Return whether the current venv works and has all of the engine's packages itself.

    If such a venv is outdated, it lacks only the database driver for a team.
    """
    venv = data_folder / "venv"
    return (
        is_venv_ready(data_folder, [ENGINE_LOCK_FILE])
        and not find_lending_python(venv)
        and not is_venv_damaged(venv)
    )


def find_lending_python(folder: Path) -> str:
    """Return the path of the Python whose packages the venv in a folder uses.

    Return "" if the venv has its own packages. For the data folder, return the Python that new
    venvs must use.
    """
    try:
        return (folder / TOOL_FILE_NAME).read_text(encoding="utf-8")
    except OSError:
        return ""


def borrow_packages(new_venv: Path, tool_python: str) -> bool:
    """Create the venv `new_venv` with the packages of the Python `tool_python`.

    Return False if `tool_python` does not work.
    """
    try:
        create_venv_with_borrowed_packages(new_venv, tool_python)
    except BuildError:  # The Python was removed or does not work.
        shutil.rmtree(new_venv, ignore_errors=True)
        return False
    (new_venv / TOOL_FILE_NAME).write_text(tool_python, encoding="utf-8")
    shutil.copyfile(ENGINE_LOCK_FILE, new_venv / ENGINE_LOCK_FILE.name)
    return True


def install_database_driver(venv: Path, creator: str) -> None:
    """Install the database driver for a team into a venv."""
    try:
        install_locked_packages(venv, creator, TEAM_LOCK_FILE, "import psycopg")
    except BuildError as error:
        raise BuildError(f"the database driver for a team: {error}") from error
    shutil.copyfile(TEAM_LOCK_FILE, venv / TEAM_LOCK_FILE.name)


def switch_venv(data_folder: Path, new_venv: Path) -> None:
    """Make the link `venv` point to `new_venv`, in one step.

    The previous venv is kept until the next switch, because a hook may be running in it.
    """
    venv = data_folder / "venv"
    previous_venv = os.path.realpath(venv)
    if venv.is_dir() and not venv.is_symlink():
        previous_venv = str(data_folder / f"venv-old-{os.getpid()}")
        os.rename(venv, previous_venv)
    if os.name == "nt":  # On Windows, creating a link needs a privilege.
        os.rename(new_venv, venv)
    else:
        link = data_folder / f"venv.{os.getpid()}"
        os.symlink(new_venv.name, link)
        os.replace(link, venv)
    for old_venv in data_folder.glob("venv-*"):
        if str(old_venv.resolve()) not in (previous_venv, str(new_venv.resolve())):
            shutil.rmtree(old_venv, ignore_errors=True)
