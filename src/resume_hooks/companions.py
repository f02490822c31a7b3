"""What lies beside a transcript and belongs to it: large tool outputs, backups of the user's files.

A child gets them under its own id, as hard links where the file system can, so that they outlive the parent.
Invariant: either the child's file comes into being, or its companions go again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from resume_hooks.paths import config_home, private_folder
from resume_hooks.rewrite import MODE
from resume_hooks.store import SessionFile

MAX_FILES = 20_000
"""Files that a folder of companions may hold; more are no session's."""


@contextlib.contextmanager
def link_companions(parent: SessionFile, session_id: str, path: str, environ: Mapping[str, str]) -> Iterator[list[str]]:
    """Link the companions of ``parent`` under ``session_id`` while its file ``path`` is written.

    Yields sentences on what could not be linked: the conversation does not depend on it. If the block fails, they are
    removed.
    """
    missed: list[str] = []
    made: list[str] = []
    history = os.path.join(config_home(environ), "file-history")
    pairs = (
        (os.path.join(parent.path.removesuffix(".jsonl"), "tool-results"), _beside(path)),
        (os.path.join(history, parent.session_id), os.path.join(history, session_id)),
    )
    born = False
    try:
        for source, target in pairs:
            try:
                _link_files(source, target, made)
            except OSError as error:
                missed.append(f"{source} could not be linked to the new session: {error.strerror}.")
        yield missed
        born = True
    finally:
        for folder in () if born else (*made, path.removesuffix(".jsonl")):
            _remove(folder)


def _beside(path: str) -> str:
    return os.path.join(path.removesuffix(".jsonl"), "tool-results")


def _link_files(source: str, target: str, made: list[str]) -> None:
    """Link the regular files of a folder and note the folder as made. Links and folders in it could lead anywhere."""
    try:
        with os.scandir(source) as entries:
            names = [entry.name for entry in entries if entry.is_file(follow_symlinks=False)][:MAX_FILES]
    except OSError:
        return
    if not names or os.path.islink(source):
        return
    private_folder(os.path.dirname(target))
    os.mkdir(target, 0o700)  # an id of our own making: what is there already is not ours to touch
    made.append(target)
    for name in names:
        _link(os.path.join(source, name), os.path.join(target, name))


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another file system, or one without links
        with open(source, "rb") as old, open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE), "wb") as new:
            while piece := old.read(1024 * 1024):
                new.write(piece)


def _remove(folder: str) -> None:
    """Take a folder of files away that we made; what can't be removed does no harm."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
