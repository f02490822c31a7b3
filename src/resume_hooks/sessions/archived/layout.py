"""Where the vault and what is unpacked from it lie.

Nothing in it is reached through a symbolic link.
"""

from __future__ import annotations

import os

from resume_hooks.paths import FILE_HISTORY, TASKS, Where, is_session_id

FOLDER = "vault"
"""One folder a session, named by its id."""

UNPACKED = "unpacked"
"""Copies of packed sessions that somebody reads; they can be made anew."""

MANIFEST = "manifest.json"
"""In each session's folder, beside the lock and the pack."""

TRASH = "trash"
"""Deleted sessions: a folder a session, in it one a delete, named by its instant."""

PROJECTS, HISTORY = "projects", FILE_HISTORY
"""The folders of the config home that parts come from.

Backups of files are archived under the second name, too.
"""

BY_ID = (HISTORY, TASKS)
"""Folders of the config home that have a folder a session, so that all sessions of that id share it."""


def vault_folder(where: Where) -> str:
    """The folder of the vault; it may not exist."""
    return os.path.join(where.state, FOLDER)


def unpacked_folder(where: Where) -> str:
    """The folder of what was unpacked; it may not exist."""
    return os.path.join(where.state, UNPACKED)


def archive_folder(session_id: str, where: Where) -> str:
    """Where a session is archived; it may not be."""
    return os.path.join(vault_folder(where), session_id)


def is_link(session_id: str, where: Where) -> str:
    """The vault, or a session's folder in it, where that is a symbolic link; ``""`` where neither is."""
    both = (vault_folder(where), archive_folder(session_id, where))
    return next((path for path in both if os.path.islink(path)), "")


def place_beside(place: str) -> str:
    """Where a part lies within a folder of archived files: as the client has it beside the transcript.

    ``place`` is where it belongs, from the config home on.
    """
    first, _, rest = place.partition("/")
    below = rest.partition("/")[2]
    if first in BY_ID:
        return f"{first}/{below}"
    return below


def is_place(place: str, session_id: str) -> bool:
    """Whether a part of this session can belong there."""
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
    """The path of a place in the config home, or in another one."""
    return os.path.join(home or where.config, *place.split("/"))


def root_of(place: str, where: Where) -> str:
    """The folder of the config home that a place lies in; the user may have made it a link."""
    return os.path.join(where.config, place.partition("/")[0])


def own_home(where: Where) -> str:
    """What manifests name this config home by; ``""`` where the state folder lies in it, since that serves no other."""
    home = where.config
    if where.state.startswith(os.path.join(home, "")):
        return ""
    return home


def is_foreign(home: str, where: Where) -> bool:
    """Whether what manifests name so is another config home than this one."""
    return home not in {"", own_home(where)} and bool(own_home(where))


def session_in(path: str, where: Where) -> str:
    """The session whose archived or unpacked files ``path`` is one of; ``""`` for any other path."""
    first = _steps_to(path, where)[:1]
    if first and is_session_id(first[0]):
        return first[0]
    return ""


def path_below_project(path: str, where: Where) -> str:
    """What a path in the vault names, as it lay in its project folder; ``""`` for any other path."""
    return os.sep.join(_steps_to(path, where)[2:])  # <id>/<state>/...


def _steps_to(path: str, where: Where) -> list[str]:
    """The names that lead to a path from the folder of archived or of unpacked sessions.

    None for any other path.
    """
    full = os.path.abspath(path)
    homes = (os.path.join(home, "") for home in (vault_folder(where), unpacked_folder(where)))
    return next((full[len(home) :].split(os.sep) for home in homes if full.startswith(home)), [])


MAX_FILES = 20_000
"""Files that a folder of sidecars may hold; more are no session's."""

MAX_DEPTH = 8
"""Folders below a session's own that are looked into."""
