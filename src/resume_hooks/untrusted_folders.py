"""The project's folders, whose files must not decide which program runs or where our notes are stored.

The project is the client's folder and the working folder, each with the outermost repository around
it. The user's home folder and the folders above it never count, because some users keep their home,
with their own programs, in a repository. Standard library, Python 3.9.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

ROOT_FOLDER = os.path.abspath(os.sep)
"""The working folder of our programs: no project contains it, and no folder is above it."""


def project_roots(env: Mapping[str, str]) -> list[str]:
    """Return the real paths of the project's folders, each with a trailing slash."""
    folders = [env.get("CLAUDE_PROJECT_DIR", "")]
    try:
        folders.append(os.getcwd())
    except OSError:  # the folder was deleted
        folders.append(env.get("PWD", ""))
    home = os.path.join(os.path.realpath(user_home()), "")
    roots = []
    for folder in folders:
        if os.path.isabs(folder):
            root = _outermost_repository(os.path.realpath(folder), home)
            if root:
                roots.append(os.path.join(root, ""))
    return roots


def user_home() -> str:
    """Return the user's home folder from the system's user database, because the project may have set HOME."""
    try:
        import pwd  # does not exist on Windows

        return pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError):
        if os.name == "nt":
            return os.path.expanduser("~")
        return ROOT_FOLDER


def _outermost_repository(folder: str, home: str) -> str:
    """Return the outermost repository around a folder below the home, or the folder itself.

    Return ``""`` for the home and the folders above it.
    """
    if home.startswith(os.path.join(folder, "")):
        return ""
    repository, above = folder, os.path.dirname(folder)
    while not home.startswith(os.path.join(above, "")):
        if os.path.lexists(os.path.join(above, ".git")):
            repository = above
        if above == os.path.dirname(above):
            break
        above = os.path.dirname(above)
    return repository


def is_outside_projects(path: str, projects: Sequence[str]) -> bool:
    """Check whether a path is absolute and, with its links resolved, outside every project."""
    if not os.path.isabs(path):
        return False
    real = os.path.join(os.path.realpath(path), "")
    return not any(real.startswith(project) for project in projects)


def is_in_project_or_repository(folder: str, env: Mapping[str, str]) -> bool:
    """Check whether a folder, with its links resolved, is in the project or in any repository except the home's."""
    real = os.path.realpath(folder)
    home = os.path.join(os.path.realpath(user_home()), "")
    lies_in_repository = _outermost_repository(real, home) not in {"", real} or os.path.lexists(
        os.path.join(real, ".git")
    )
    return lies_in_repository or not is_outside_projects(folder, project_roots(env))
