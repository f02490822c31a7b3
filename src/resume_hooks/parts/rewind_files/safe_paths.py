"""Resolve a tracked path to a path in the project, or refuse the path with a reason.

The paths in a transcript are not trusted. If a path could lead out of the project, or to files from
which git runs programs, it is refused before the disk is read.
"""

from __future__ import annotations

import os
import re
import unicodedata
from typing import NamedTuple

from resume_hooks.paths import Where

MAX_PATH_DEPTH = 100
"""Maximum number of parts in a path. A longer path is refused."""

_WINDOWS_PATH_PATTERN = re.compile(r"[A-Za-z]:[\\/]|\\\\")


class ProjectPath(NamedTuple):
    """A tracked path.

    ``parts`` are the parts of the path, relative to the root of the project. If the path is
    refused, ``refusal_reason`` says why, in words that can end a sentence.
    """

    path: str
    parts: tuple[str, ...]
    refusal_reason: str = ""


class ProjectRoot(NamedTuple):
    """The root of a project.

    ``folder`` is the path that sessions name, and ``real_path`` is this path with symbolic links
    resolved. ``protected_folders`` belong to the client and to this plugin. They are never changed,
    even if the project is the user's whole home folder.
    """

    folder: str
    real_path: str
    protected_folders: tuple[str, ...] = ()

    @classmethod
    def from_folder(cls, folder: str, where: Where) -> ProjectRoot:
        """Return the root of the project in ``folder``. The folder need not exist."""
        protected_folders = (os.path.realpath(where.config), os.path.realpath(where.state))
        return cls(os.path.normpath(folder), os.path.realpath(folder), protected_folders)

    def resolve_path(self, path: str) -> ProjectPath:
        """Convert a tracked path to a path in the project. The result may have a reason for refusal."""
        if path.startswith("/"):
            roots = [f"{root.rstrip('/')}/" for root in (self.folder, self.real_path)]
        else:
            roots = [""]
        relative_path = next((path[len(root) :] for root in roots if path.startswith(root)), None)
        if relative_path is None:
            return ProjectPath(path, (), "it is outside the project")
        parts, real_path = (
            tuple(relative_path.split("/")),
            os.path.join(self.real_path, relative_path),
        )
        reason = _find_refusal_reason(relative_path, parts)
        if not reason and any(
            f"{real_path}/".startswith(f"{folder}/") for folder in self.protected_folders
        ):
            reason = "it belongs to the client"
        if reason:
            return ProjectPath(path, (), reason)
        return ProjectPath(relative_path, parts)

    def was_reached_through_link(self, path_in_project: ProjectPath, recorded_folder: str) -> bool:
        """Check whether a file was reached through a symbolic link when it was backed up.

        ``recorded_folder`` is the file's folder at that time, without symbolic links. If it does
        not end with the folder part of ``path_in_project``, there was a link.
        """
        parent_path = "/".join(path_in_project.parts[:-1])
        return bool(recorded_folder and parent_path) and not recorded_folder.endswith(
            f"/{parent_path}"
        )


def _find_refusal_reason(relative_path: str, parts: tuple[str, ...]) -> str:
    """Return the reason for refusing a path, or ``""`` if the path is accepted."""
    if ".." in parts:
        return "it is outside the project"
    if (
        not relative_path
        or {"", "."} & set(parts)
        or "\0" in relative_path
        or len(parts) > MAX_PATH_DEPTH
    ):
        return "it is not the path of a file"
    if _WINDOWS_PATH_PATTERN.match(relative_path):
        return "it is a path of another operating system"
    # Some file systems ignore formatting characters in file names.
    visible_parts = (
        "".join(letter for letter in part if unicodedata.category(letter) != "Cf") for part in parts
    )
    if any(part.casefold() == ".git" for part in visible_parts):
        return "it belongs to git"
    try:
        os.fsencode(relative_path)
    except UnicodeEncodeError:
        return "it is not the path of a file"
    return ""
