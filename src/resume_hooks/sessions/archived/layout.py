"""The locations of the vault and of unpacked sessions.

Symbolic links in them are never followed.
"""

from __future__ import annotations

import os

from resume_hooks.paths import FILE_HISTORY, TASKS, Where, is_session_id

FOLDER = "vault"
"""The folder with a subfolder per session, named by its id."""

UNPACKED = "unpacked"
"""The folder with unpacked copies for reading, which can be recreated."""

MANIFEST = "manifest.json"
"""The file in each session's folder, beside the lock and the pack."""

TRASH = "trash"
"""The folder of deleted sessions, with a subfolder per session, and in it one per deletion, named by its time."""

PROJECTS, HISTORY = "projects", FILE_HISTORY
"""The folders of the config home with files of a session.

Backups of files are archived under the second name.
"""

BY_ID = (HISTORY, TASKS)
"""The folders of the config home that have a subfolder per session id."""


def vault_folder(where: Where) -> str:
    """Return the vault's folder, which may not exist."""
    return os.path.join(where.state, FOLDER)


def unpacked_folder(where: Where) -> str:
    """Return the folder of unpacked sessions, which may not exist."""
    return os.path.join(where.state, UNPACKED)


def archive_folder(session_id: str, where: Where) -> str:
    """Return the folder of a session's archive, which may not exist."""
    return os.path.join(vault_folder(where), session_id)


def is_link(session_id: str, where: Where) -> str:
    """Return the vault, or a session's folder in it, if it is a symbolic link; else ``""``."""
    both = (vault_folder(where), archive_folder(session_id, where))
    return next((path for path in both if os.path.islink(path)), "")


def place_beside(place: str) -> str:
    """Return a file's relative path in a folder of archived files, the same as beside the client's transcript.

    ``place`` is its path relative to the config home.
    """
    first, _, rest = place.partition("/")
    below = rest.partition("/")[2]
    if first in BY_ID:
        return f"{first}/{below}"
    return below


def is_place(place: str, session_id: str) -> bool:
    """Check whether ``place`` is a valid path for a file of this session."""
    steps = place.split("/")
    if {"", ".", ".."} & set(steps) or "\0" in place or (os.sep != "/" and os.sep in place):
        return False
    if steps[0] in BY_ID:
        return len(steps) >= 3 and steps[1] == session_id
    if steps[0] != PROJECTS or len(steps) < 3:
        return False
    if len(steps) == 3:
        return steps[2] == f"{session_id}.jsonl" or steps[2].startswith("agent-")
    return steps[2] == session_id


def path_of_place(place: str, where: Where, home: str = "") -> str:
    """Return the absolute path of a place in the config home, or in another one."""
    return os.path.join(home or where.config, *place.split("/"))


def root_of(place: str, where: Where) -> str:
    """Return the folder of the config home that contains a place; the user may have made it a link."""
    return os.path.join(where.config, place.partition("/")[0])


def own_home(where: Where) -> str:
    """Return this config home's name in manifests; ``""`` if it contains the state folder, which it alone then uses."""
    home = where.config
    if where.state.startswith(os.path.join(home, "")):
        return ""
    return home


def is_foreign(home: str, where: Where) -> bool:
    """Check whether a manifest's config home is another one than this."""
    return home not in {"", own_home(where)} and bool(own_home(where))


def session_in(path: str, where: Where) -> str:
    """Return the session to whose archived or unpacked files ``path`` belongs, or ``""``."""
    first = _steps_to(path, where)[:1]
    if first and is_session_id(first[0]):
        return first[0]
    return ""


def path_below_project(path: str, where: Where) -> str:
    """Return a vault path's original path relative to its project folder; ``""`` for any other path."""
    return os.sep.join(_steps_to(path, where)[2:])  # <id>/<state>/...


def _steps_to(path: str, where: Where) -> list[str]:
    """Return a path's components below the vault or the folder of unpacked sessions.

    Return an empty list for any other path.
    """
    full = os.path.abspath(path)
    homes = (os.path.join(home, "") for home in (vault_folder(where), unpacked_folder(where)))
    return next((full[len(home) :].split(os.sep) for home in homes if full.startswith(home)), [])


MAX_FILES = 20_000
"""The most files in a session's folder; a folder with more is not a session's."""

MAX_DEPTH = 8
"""The most levels of folders below a session's own that are read."""
