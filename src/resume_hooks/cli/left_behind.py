"""What an uninstall leaves on the disk, and what removes each of it."""

from __future__ import annotations

import glob
import os
import shlex
import shutil
from collections.abc import Collection
from typing import NamedTuple

from resume_hooks import seam
from resume_hooks.paths import Where
from resume_hooks.system import claude_cli
from resume_hooks.system.invocation import quoted, typed
from resume_hooks.system.plugin_files import MARKETPLACE, NAME

ORIGINALS = {
    "vault": "kept sessions, some of them the last copies",
    "trash": "deleted sessions",
    "backups": "files as they were before they were rewritten",
}
"""Folders in the state folder that no purge removes."""

FOLDERS = ("pending", "log")
"""Folders in the state folder that hold nothing but notes of ours; they go once they are empty."""

REMOVE_MARKETPLACE = ("claude", "plugin", "marketplace", "remove", MARKETPLACE)


class Left(NamedTuple):
    """A file or folder that stays, what it is, and how it goes."""

    path: str
    what: str
    way: str


def left_behind(where: Where, goes: Collection[str] | None, commands: Collection[Collection[str]]) -> list[Left]:
    """What stays once the ``commands`` of the client ran and the paths ``goes`` are gone (None: no purge).

    Only what is there: asked again after they ran, it tells what they left.
    """
    return [*_of_ours(where, goes), *_of_the_client(where, commands), *_the_program(where)]


def written_to(where: Where) -> str:
    """Sentences on where parts wrote into projects; ``""`` for nowhere.

    The question ``written into projects``: given is where things are; what comes back is a sentence, or ``""``.
    """
    return " ".join(filter(None, (answer(where) for answer in seam.answers("written into projects"))))


def left_in(state: str, goes: Collection[str]) -> list[str]:
    """The paths in the state folder that stay once these are gone; itself, where it can't be listed."""

    def others(folder: str) -> list[str]:
        paths = (os.path.join(folder, name) for name in sorted(os.listdir(folder)))
        return [path for path in paths if path not in goes]

    def stays(path: str) -> bool:
        return os.path.basename(path) not in FOLDERS or not os.path.isdir(path) or bool(others(path))

    try:
        return [path for path in others(state) if stays(path)] if os.path.isdir(state) else []
    except OSError:
        return [state]


def _of_ours(where: Where, goes: Collection[str] | None) -> list[Left]:
    state, purge = where.state, typed("uninstall --purge")
    left = left_in(state, goes or ())
    if goes is None:
        whole = [Left(state, "links, settings, index, notes", purge)] if os.path.isdir(state) else []
        return [*whole, *(_original(path) for path in left if os.path.basename(path) in ORIGINALS)]
    return [_original(path) for path in left]


def _original(path: str) -> Left:
    return Left(path, ORIGINALS.get(os.path.basename(path), "not among what a purge removes"), _by_hand(path))


def _of_the_client(where: Where, commands: Collection[Collection[str]]) -> list[Left]:
    plugins = os.path.join(where.config, "plugins")
    rows = [
        # 2.1.42 leaves it; recent clients do with the one of --plugin-dir.
        Left(folder, "the engine's packages", f"{_by_hand(folder)}, where Claude Code leaves it")
        for folder in sorted(glob.glob(os.path.join(glob.escape(plugins), "data", f"{NAME}*")))
        if os.path.isfile(os.path.join(folder, "install.json"))
    ]
    copy = os.path.join(plugins, "cache", MARKETPLACE)
    if os.path.isdir(copy):
        rows.append(Left(copy, "the client's copy of the plugin", "Claude Code removes it by itself"))
    if claude_cli.has_marketplace(MARKETPLACE) and list(REMOVE_MARKETPLACE) not in commands:
        known = os.path.join(plugins, "known_marketplaces.json")
        rows.append(Left(known, f"names the marketplace {MARKETPLACE}", shlex.join(REMOVE_MARKETPLACE)))
    return rows


def _the_program(where: Where) -> list[Left]:
    program = shutil.which(NAME, path=where.environ.get("PATH", ""))
    way = f"as it was installed: pipx, uv tool or pip uninstall {NAME}"
    return [Left(program, "this command", way)] if program else []


def _by_hand(path: str) -> str:
    return f"rm -r {quoted(path)}"
