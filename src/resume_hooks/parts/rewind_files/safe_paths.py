"""Map a tracked path to a path in the project, or to the reason why it is refused.

The paths in a transcript are untrusted. A path that could lead outside the project, or to files
from which git runs programs, is refused before the disk is read.
"""

from __future__ import annotations

import os
import re
import unicodedata
from typing import NamedTuple

from resume_hooks.paths import Where

MAX_DEPTH = 100
"""The maximum number of folders in a path."""

_OTHER_SYSTEM = re.compile(r"[A-Za-z]:[\\/]|\\\\")


class ProjectPath(NamedTuple):
    """A tracked path: ``parts`` relative to the root, or ``why`` it is refused, as the end of a sentence."""

    path: str
    parts: tuple[str, ...]
    why: str = ""


class ProjectRoot(NamedTuple):
    """A project: the ``folder`` that sessions name, and its ``real`` path.

    ``closed`` are the client's and our own folders, which are never changed, even if the project is
    a whole home folder.
    """

    folder: str
    real: str
    closed: tuple[str, ...] = ()

    @classmethod
    def of_folder(cls, folder: str, where: Where) -> ProjectRoot:
        """Return the project in a folder. The folder may not exist."""
        closed = (os.path.realpath(where.config), os.path.realpath(where.state))
        return cls(os.path.normpath(folder), os.path.realpath(folder), closed)

    def place_of_path(self, path: str) -> ProjectPath:
        """Return the place in the project for a tracked path."""
        if path.startswith("/"):
            roots = [f"{root.rstrip('/')}/" for root in (self.folder, self.real)]
        else:
            roots = [""]
        inner = next((path[len(root) :] for root in roots if path.startswith(root)), None)
        if inner is None:
            return ProjectPath(path, (), "it is outside the project")
        parts, real = tuple(inner.split("/")), os.path.join(self.real, inner)
        why = _path_objection(inner, parts)
        if not why and any(f"{real}/".startswith(f"{folder}/") for folder in self.closed):
            why = "it belongs to the client"
        if why:
            return ProjectPath(path, (), why)
        return ProjectPath(inner, parts)

    def was_behind_link(self, place: ProjectPath, folder: str) -> bool:
        """Check whether a file was behind a link: its resolved ``folder`` differs from the folder of its path."""
        above = "/".join(place.parts[:-1])
        return bool(folder and above) and not folder.endswith(f"/{above}")


def _path_objection(inner: str, parts: tuple[str, ...]) -> str:
    """Return the reason why a path is refused, or ``""``."""
    if ".." in parts:
        return "it is outside the project"
    if not inner or {"", "."} & set(parts) or "\0" in inner or len(parts) > MAX_DEPTH:
        return "it is not the path of a file"
    if _OTHER_SYSTEM.match(inner):
        return "it is a path of another system"
    # Some file systems ignore formatting characters in names.
    visible = (
        "".join(letter for letter in part if unicodedata.category(letter) != "Cf") for part in parts
    )
    if any(part.casefold() == ".git" for part in visible):
        return "it belongs to git"
    try:
        os.fsencode(inner)
    except UnicodeEncodeError:
        return "it is not the path of a file"
    return ""
