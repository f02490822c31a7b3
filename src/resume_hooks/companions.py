"""What lies beside a transcript and belongs to it: large tool outputs, backups of the user's files.

A child gets them under its own id, so that they outlive the parent: outputs as hard links where the file system can,
backups as copies, since clients before 2.1.329 write a new version of a backup into the file that has its name.
Invariant: either the child's file comes into being, or its companions go again.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from resume_hooks.paths import config_home, open_regular, private_folder
from resume_hooks.rewrite import MODE
from resume_hooks.store import SessionFile

MAX_FILES = 20_000
"""Files that a folder of companions may hold; more are no session's."""


_BACKUP = re.compile(rb'"backupFileName":\s*"([^"\\/]+)"')
"""The name of a backup in a line about the user's files."""


def backups_named(lines: Iterable[bytes]) -> frozenset[str]:
    """The backups that a session's lines about the user's files speak of."""
    return frozenset(name.decode("utf-8", "replace") for line in lines for name in _BACKUP.findall(line))


@contextlib.contextmanager
def companions_of(
    parent: SessionFile, session_id: str, path: str, backups: Collection[str], environ: Mapping[str, str]
) -> Iterator[list[str]]:
    """Put the companions of ``parent`` under ``session_id`` while its file ``path`` is written.

    Of its backups those of these names. Yields sentences on what could not be: the conversation does not depend on it.
    If the block fails, they are removed.
    """
    missed: list[str] = []
    made: list[str] = []
    history = os.path.join(config_home(environ), "file-history")
    steps = (
        (os.path.join(parent.path.removesuffix(".jsonl"), "tool-results"), _beside(path), None, _link),
        (os.path.join(history, parent.session_id), os.path.join(history, session_id), backups, _copy),
    )
    born = False
    try:
        for source, target, wanted, put in steps:
            try:
                _put_files(source, target, wanted, put, made)
            except OSError as error:
                missed.append(f"{source} could not be put beside the new session: {error.strerror}.")
        yield missed
        born = True
    finally:
        for folder in () if born else (*made, path.removesuffix(".jsonl")):
            _remove(folder)


def _beside(path: str) -> str:
    return os.path.join(path.removesuffix(".jsonl"), "tool-results")


def _put_files(
    source: str, target: str, wanted: Collection[str] | None, put: Callable[[str, str], None], made: list[str]
) -> None:
    """Put the regular files of a folder (None: all) into a new one, which is noted as made.

    Links and folders in it could lead anywhere.
    """
    try:
        with os.scandir(source) as entries:
            found = (entry for entry in entries if wanted is None or entry.name in wanted)
            names = [entry.name for entry in found if entry.is_file(follow_symlinks=False)][:MAX_FILES]
    except OSError:
        return
    if not names or os.path.islink(source):
        return
    private_folder(os.path.dirname(target))
    os.mkdir(target, 0o700)  # an id of our own making: what is there already is not ours to touch
    made.append(target)
    for name in names:
        put(os.path.join(source, name), os.path.join(target, name))


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another file system, or one without links
        _copy(source, target)


def _copy(source: str, target: str) -> None:
    """A copy that keeps mode and times.

    A restored file gets the mode; one of the same size that is older than its backup clients take for unchanged.
    """
    with open_regular(source, follow=False) as old:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(os.open(target, flags, MODE), "wb") as new:
            while piece := old.read(1024 * 1024):
                new.write(piece)
        was = os.fstat(old.fileno())
        os.chmod(target, stat.S_IMODE(was.st_mode))
        os.utime(target, ns=(was.st_atime_ns, was.st_mtime_ns))


def _remove(folder: str) -> None:
    """Take a folder of files away that we made; what can't be removed does no harm."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
