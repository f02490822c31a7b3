"""Find the project's folders. Their files must not decide which programs run or where notes go.

The project is the client's folder and the current folder, each with the outermost repository that
contains it. The user's home and the folders above it are never part of the project, because some
users keep their home and their own programs in a repository. This module uses only the standard
library and must run on Python 3.9.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

ROOT_FOLDER = os.path.abspath(os.sep)
"""The current folder of the programs that we start. No project contains it."""


def project_roots(environ: Mapping[str, str]) -> list[str]:
    """Return the paths of the project's folders, with links resolved and a slash at the end."""
    folders = [environ.get("CLAUDE_PROJECT_DIR", "")]
    try:
        folders.append(os.getcwd())
    except OSError:  # The current folder was deleted.
        folders.append(environ.get("PWD", ""))
    home = os.path.join(os.path.realpath(user_home()), "")
    roots = []
    for folder in folders:
        if os.path.isabs(folder):
            root = _outermost_repository(os.path.realpath(folder), home)
            if root:
                roots.append(os.path.join(root, ""))
    return roots


def user_home() -> str:
    """Return the user's home folder from the system's list of users.

    The variable HOME is not used, because the project may have set it.
    """
    try:
        import pwd  # Windows has no such module.

        return pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError):
        if os.name == "nt":
            return os.path.expanduser("~")
        return ROOT_FOLDER


def _outermost_repository(folder: str, home: str) -> str:
    """Return the outermost repository in the user's home that contains a folder.

    If no repository contains it, return the folder itself. Return ``""`` for the home itself and
    for the folders above it.
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
    """Check whether a path is absolute and, even after its links are resolved, outside every project."""
    if not os.path.isabs(path):
        return False
    real = os.path.join(os.path.realpath(path), "")
    return not any(real.startswith(project) for project in projects)


def is_in_project_or_repository(folder: str, environ: Mapping[str, str]) -> bool:
    """Check whether a folder, as given or with its links resolved, is in the project or a repository.

    A repository that contains the user's home is ignored.
    """
    real = os.path.realpath(folder)
    home = os.path.join(os.path.realpath(user_home()), "")
    is_in_repository = _outermost_repository(real, home) not in {"", real} or os.path.lexists(
        os.path.join(real, ".git")
    )
    return is_in_repository or not is_outside_projects(folder, project_roots(environ))
