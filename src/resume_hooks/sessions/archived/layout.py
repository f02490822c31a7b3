"""The locations of the vault and of unpacked sessions.

Symbolic links in them are never followed.
"""

from __future__ import annotations

import os

from resume_hooks.paths import FILE_HISTORY, TASKS, Where, is_session_id

VAULT_FOLDER = "vault"
"""The folder with a subfolder per session, named by its id."""

UNPACKED_FOLDER = "unpacked"
"""The folder with unpacked copies for reading, which can be recreated."""

MANIFEST = "manifest.json"
"""The file in each session's folder, next to the lock and the pack."""

TRASH_FOLDER = "trash"
"""The folder of deleted sessions, with a subfolder per session, and in it one per deletion, named by its time."""

REMOVED_SUFFIX = ".gone"
"""The suffix of a folder in the trash that is being removed permanently, or is still empty."""

PROJECTS, HISTORY = "projects", FILE_HISTORY
"""The folders of the config home with files of a session.

Backups of files are archived under the second name.
"""

FOLDERS_BY_ID = (HISTORY, TASKS)
"""The folders of the config home that have a subfolder per session id."""


def vault_folder(where: Where) -> str:
    """Return the vault's folder, which may not exist."""
    return os.path.join(where.state, VAULT_FOLDER)


def unpacked_folder(where: Where) -> str:
    """Return the folder of unpacked sessions, which may not exist."""
    return os.path.join(where.state, UNPACKED_FOLDER)


def archive_folder(session_id: str, where: Where) -> str:
    """Return the folder of a session's archive, which may not exist."""
    return os.path.join(vault_folder(where), session_id)


def find_archive_link(session_id: str, where: Where) -> str:
    """Return the vault, or a session's folder in it, if it is a symbolic link; else ``""``."""
    paths = (vault_folder(where), archive_folder(session_id, where))
    return next((path for path in paths if os.path.islink(path)), "")


def path_in_archive(place: str) -> str:
    """Return a file's relative path in a folder of archived files.

    The path is the same as in the folder of the client's transcript.

    ``place`` is its path relative to the config home.
    """
    top_folder, _, rest = place.partition("/")
    rest_below_id = rest.partition("/")[2]
    if top_folder in FOLDERS_BY_ID:
        return f"{top_folder}/{rest_below_id}"
    return rest_below_id


def is_valid_archive_path(place: str, session_id: str) -> bool:
    """Check whether ``place`` is a valid path for a file of this session."""
    steps = place.split("/")
    if {"", ".", ".."} & set(steps) or "\0" in place or (os.sep != "/" and os.sep in place):
        return False
    if steps[0] in FOLDERS_BY_ID:
        return len(steps) >= 3 and steps[1] == session_id
    if steps[0] != PROJECTS or len(steps) < 3:
        return False
    if len(steps) == 3:
        return steps[2] == f"{session_id}.jsonl" or steps[2].startswith("agent-")
    return steps[2] == session_id


def path_in_config_home(place: str, where: Where, config_home: str = "") -> str:
    """Return the absolute path of a place in our config home, or in ``config_home``."""
    return os.path.join(config_home or where.config, *place.split("/"))


def root_in_config_home(place: str, where: Where) -> str:
    """Return the folder of the config home that contains a place. The user may have made it a symbolic link."""
    return os.path.join(where.config, place.partition("/")[0])


def config_home_name(where: Where) -> str:
    """Return this config home's name in manifests; ``""`` if it contains the state folder, which it alone then uses."""
    home = where.config
    if where.state.startswith(os.path.join(home, "")):
        return ""
    return home


def is_of_other_home(home: str, where: Where) -> bool:
    """Check whether a manifest names another config home."""
    return home not in {"", config_home_name(where)} and bool(config_home_name(where))


def session_id_of_copy(path: str, where: Where) -> str:
    """Return the session to whose archived or unpacked files ``path`` belongs, or ``""``."""
    steps = _components_below_vault(path, where)[:1]
    if steps and is_session_id(steps[0]):
        return steps[0]
    return ""


def path_below_project(path: str, where: Where) -> str:
    """Return a vault path's original path relative to its project folder; ``""`` for any other path."""
    return os.sep.join(_components_below_vault(path, where)[2:])  # <id>/<state>/...


def _components_below_vault(path: str, where: Where) -> list[str]:
    """Return a path's components below the vault or the folder of unpacked sessions.

    Return an empty list for any other path.
    """
    absolute_path = os.path.abspath(path)
    homes = (os.path.join(home, "") for home in (vault_folder(where), unpacked_folder(where)))
    return next(
        (
            absolute_path[len(home) :].split(os.sep)
            for home in homes
            if absolute_path.startswith(home)
        ),
        [],
    )


MAX_FILES = 20_000
"""The maximum number of files in a session's folder; a folder with more is not a session's."""

MAX_DEPTH = 8
"""The maximum depth of subfolders to read in a session's folder."""
