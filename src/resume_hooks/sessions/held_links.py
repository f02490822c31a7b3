"""Where our hard links to sessions lie, and how one is given up: ``archive/held`` makes them and looks after them."""

from __future__ import annotations

import contextlib
import os
import shutil

from resume_hooks.errors import WriteFailed
from resume_hooks.paths import ENDING, Where, is_private, private_folder
from resume_hooks.sessions.archived.layout import own_home

FOLDER = "held"


def folder(where: Where) -> str:
    """Where the links lie; it is there where sessions are held."""
    return os.path.join(where.state, FOLDER)


def why_not(where: Where) -> str:
    """Why no session can be held here, as the end of a sentence; ``""`` where links can be made."""
    if os.name == "nt":
        return "no links are made on Windows"
    if own_home(where):
        return f"{where.state} lies outside of {where.config}"
    with contextlib.suppress(OSError):
        if os.stat(where.state).st_dev != os.stat(where.projects).st_dev:
            return f"{where.state} and {where.projects} are on different file systems"
    return ""


def hold(session: str, where: Where) -> bool:
    """Hold the session of a transcript's path, and what is in its folder; whether all of it is held then."""
    if why_not(where):
        return False
    inside = (os.path.join(top, name) for top, _, names in os.walk(session.removesuffix(ENDING)) for name in names)
    try:
        return all(_is_held(path, where) for path in (session, *inside) if not os.path.islink(path))
    except OSError:
        return False


def _is_held(path: str, where: Where) -> bool:
    ours = os.path.join(folder(where), os.path.relpath(path, where.projects))
    for each in (folder(where), os.path.dirname(ours)):
        private_folder(each, where)
    with contextlib.suppress(FileExistsError):
        os.link(path, ours, follow_symlinks=False)
    return os.path.samestat(os.lstat(path), os.lstat(ours))


def release(path: str, where: Where) -> None:
    """Remove our link to a client's file, or those to all in a folder of a session; the next look makes them anew.

    A link to another file than the client's stays. WriteFailed where it can't be removed.
    """
    if not path.startswith(os.path.join(where.projects, "")):
        return
    ours = os.path.join(folder(where), os.path.relpath(path, where.projects))
    try:
        if os.path.isdir(path) and is_private(ours, where):
            shutil.rmtree(ours)
        elif os.path.samestat(os.lstat(path), os.lstat(ours)):
            os.unlink(ours)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise WriteFailed(
            f"{ours} could not be removed: {error.strerror or error}", "Nothing was changed. Check its permissions."
        ) from error
