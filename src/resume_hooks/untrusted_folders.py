"""The folders of the project, which must not decide which program is started or where our notes lie.

The project is the client's folder and the working folder, each with the outermost repository around
it. The user's home folder and the folders above it never count: some users keep their home in a
repository, with their own programs in it. Standard library, Python 3.9.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

ROOT = os.path.abspath(os.sep)
"""Where programs run: nothing in it is a project's, and nothing is above it."""


def projects_of(env: Mapping[str, str]) -> list[str]:
    """The real folders of the project, each with a slash behind it."""
    folders = [env.get("CLAUDE_PROJECT_DIR", "")]
    try:
        folders.append(os.getcwd())
    except OSError:  # it is gone, and all that was in it
        folders.append(env.get("PWD", ""))
    home = os.path.join(os.path.realpath(users_home()), "")
    found = []
    for folder in folders:
        if os.path.isabs(folder):
            root = _outermost(os.path.realpath(folder), home)
            if root:
                found.append(os.path.join(root, ""))
    return found


def users_home() -> str:
    """The user's home folder, from the system's list of users: the project may have set HOME."""
    try:
        import pwd  # exists where there are users in our sense

        return pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError):
        if os.name == "nt":
            return os.path.expanduser("~")
        return ROOT


def _outermost(folder: str, home: str) -> str:
    """The outermost repository around a folder below the home, else the folder; ``""`` for the home, or one above."""
    if home.startswith(os.path.join(folder, "")):
        return ""
    found, above = folder, os.path.dirname(folder)
    while not home.startswith(os.path.join(above, "")):
        if os.path.lexists(os.path.join(above, ".git")):
            found = above
        if above == os.path.dirname(above):
            break
        above = os.path.dirname(above)
    return found


def is_outside(path: str, projects: Sequence[str]) -> bool:
    """Whether a path is absolute and, with its links resolved, lies in no project."""
    if not os.path.isabs(path):
        return False
    real = os.path.join(os.path.realpath(path), "")
    return not any(real.startswith(project) for project in projects)


def may_be_a_projects(folder: str, env: Mapping[str, str]) -> bool:
    """Whether a folder, with its links resolved, lies in the project or in any repository but the home folder's own."""
    real = os.path.realpath(folder)
    home = os.path.join(os.path.realpath(users_home()), "")
    lies_in_repository = _outermost(real, home) not in {"", real} or os.path.lexists(
        os.path.join(real, ".git")
    )
    return lies_in_repository or not is_outside(folder, projects_of(env))
