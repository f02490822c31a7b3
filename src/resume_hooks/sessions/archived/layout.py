"""Define the locations of the vault, the trash and the unpacked sessions.

A symbolic link in these locations is never followed.
"""

from __future__ import annotations

import os

from resume_hooks.paths import FILE_HISTORY_FOLDER_NAME, TASKS_FOLDER_NAME, Where, is_session_id

VAULT_FOLDER = "vault"
"""The folder of the vault. It contains a subfolder for each session, named after the session's id.
"""

UNPACKED_FOLDER = "unpacked"
"""The folder with unpacked copies of sessions. It can be deleted and is then filled again as
needed."""

MANIFEST_NAME = "manifest.json"
"""The name of the manifest in each session's folder. The folder also contains the lock and the
packs."""

TRASH_FOLDER = "trash"
"""The folder of deleted sessions.

It contains a subfolder for each session. In this subfolder, each deletion of the session has a
folder that is named after the time of the deletion.
"""

REMOVED_FOLDER_SUFFIX = ".gone"
"""The suffix of a folder in the trash. A folder with this suffix is either still empty or being
removed permanently."""

PROJECTS_FOLDER, HISTORY_FOLDER = "projects", FILE_HISTORY_FOLDER_NAME
"""Folders of the config home that contain a session's files: the first contains transcripts, and
the second contains backups of changed files."""

FOLDERS_WITH_ID_SUBFOLDERS = (HISTORY_FOLDER, TASKS_FOLDER_NAME)
"""Folders of the config home in which each session has a subfolder named after its id."""


def vault_folder(where: Where) -> str:
    """Return the vault's folder, which may not exist."""
    return os.path.join(where.state, VAULT_FOLDER)


def unpacked_folder(where: Where) -> str:
    """Return the folder of unpacked sessions, which may not exist."""
    return os.path.join(where.state, UNPACKED_FOLDER)


def archive_folder(session_id: str, where: Where) -> str:
    """Return the path of a session's folder in the vault. The folder may not exist."""
    return os.path.join(vault_folder(where), session_id)


def find_archive_link(session_id: str, where: Where) -> str:
    """Return the vault or the session's folder in it if one of them is a symbolic link, else ``""``."""
    paths = (vault_folder(where), archive_folder(session_id, where))
    return next((path for path in paths if os.path.islink(path)), "")


def path_in_archive(relative_path: str) -> str:
    """Return the path of a session's file relative to the folder with its unpacked files.

    ``relative_path`` is the file's path relative to the config home. For example,
    ``projects/-work/<id>/x.txt`` becomes ``<id>/x.txt``, and ``file-history/<id>/x`` becomes
    ``file-history/x``.
    """
    top_folder, _, rest = relative_path.partition("/")
    rest_below_id = rest.partition("/")[2]
    if top_folder in FOLDERS_WITH_ID_SUBFOLDERS:
        return f"{top_folder}/{rest_below_id}"
    return rest_below_id


def is_valid_archive_path(relative_path: str, session_id: str) -> bool:
    """Check whether ``relative_path`` is a possible path of a session's file in the config home."""
    steps = relative_path.split("/")
    if (
        {"", ".", ".."} & set(steps)
        or "\0" in relative_path
        or (os.sep != "/" and os.sep in relative_path)
    ):
        return False
    if steps[0] in FOLDERS_WITH_ID_SUBFOLDERS:
        return len(steps) >= 3 and steps[1] == session_id
    if steps[0] != PROJECTS_FOLDER or len(steps) < 3:
        return False
    if len(steps) == 3:
        return steps[2] == f"{session_id}.jsonl" or steps[2].startswith("agent-")
    return steps[2] == session_id


def path_in_config_home(relative_path: str, where: Where, config_home: str = "") -> str:
    """Return the absolute path for a path relative to the config home.

    If ``config_home`` is empty, our own config home is used.
    """
    return os.path.join(config_home or where.config, *relative_path.split("/"))


def top_folder_in_config_home(relative_path: str, where: Where) -> str:
    """Return the top folder in the config home that contains a path, for example ``projects``.

    ``relative_path`` is relative to the config home. The user may have replaced the top folder with
    a symbolic link.
    """
    return os.path.join(where.config, relative_path.partition("/")[0])


def config_home_name(where: Where) -> str:
    """Return the path by which manifests refer to this config home.

    Return ``""`` if the state folder is inside the config home, because no other config home then
    uses the vault.
    """
    home = where.config
    if where.state.startswith(os.path.join(home, "")):
        return ""
    return home


def is_other_config_home(home: str, where: Where) -> bool:
    """Check whether ``home``, a path from a manifest, is a different config home from ours."""
    return home not in {"", config_home_name(where)} and bool(config_home_name(where))


def session_id_of_copy(path: str, where: Where) -> str:
    """Return the id of the session to which an archived or unpacked file belongs.

    Return ``""`` if ``path`` is neither in the vault nor in the folder of unpacked sessions.
    """
    steps = _components_below_vault(path, where)[:1]
    if steps and is_session_id(steps[0]):
        return steps[0]
    return ""


def path_below_project(path: str, where: Where) -> str:
    """Return the path of an unpacked file relative to the project folder that contained the client's file.

    Return ``""`` for any path that is not in the vault or the folder of unpacked sessions.
    """
    return os.sep.join(_components_below_vault(path, where)[2:])  # <id>/<state>/...


def _components_below_vault(path: str, where: Where) -> list[str]:
    """Return the components of a path below the vault or below the folder of unpacked sessions.

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


MAX_SESSION_FILES = 20_000
"""The maximum number of files in a session's folder. A folder with more files cannot belong to a
session."""

MAX_SESSION_FOLDER_DEPTH = 8
"""The maximum depth of subfolders that are read in a session's folder."""
