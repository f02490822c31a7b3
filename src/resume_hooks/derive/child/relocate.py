"""A session that gets another home: which folder stands for which, in its records and in what is kept of files.

Invariant: only folders below the old home change; what was said stays as it was said.
"""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

from resume_hooks.paths import canonical
from resume_hooks.transcripts.raw_edit import with_field, with_own
from resume_hooks.transcripts.records import Record, parse, string

_SEPARATORS = re.compile(r"[/\\]+")


def relocation(old: str, new: str) -> Relocation:
    """The move from one home to another; ``old`` is ``""`` where no record tells it, and then nothing moves."""
    real = canonical(old) if os.path.isabs(old) else old
    roots = tuple(dict.fromkeys(root for root in (old, real) if root not in {"", os.sep}))
    return Relocation(old, new, roots, real == new or not os.path.isdir(real))


class Relocation(NamedTuple):
    """The ``old`` home, which may be gone or of another system, and the ``new`` one, a real path.

    ``roots`` are the names of the old one: as it was written, and as links lead there. ``with_files``: the old one is
    gone, so that its files are taken to be in the new one. Where it is still there, what was kept of its files speaks
    of those, and would be put over others that happen to be called alike.
    """

    old: str
    new: str
    roots: tuple[str, ...]
    with_files: bool

    def path(self, path: str) -> str:
        """A path below the old home as one below the new; any other as it is."""
        for root in self.roots:
            if path == root:
                return self.new
            if path.startswith(root) and path[len(root)] in "/\\":
                return os.path.join(self.new, *(part for part in _SEPARATORS.split(path[len(root) :]) if part))
        return path

    def line(self, body: bytes, *, first: bool = False) -> bytes:
        """A record's line with its working directory moved; the ``first`` one's is in the new home in any case."""
        record = parse(body) or {}
        folder = string(record, "cwd")
        moved = self.path(folder)
        if first and moved == folder:
            moved = self.new
        if moved == folder:
            return body
        if "cwd" not in record:
            return with_own(body, "cwd", moved)
        return with_field(body, record, "cwd", moved) or with_own(body, "cwd", moved)

    def snapshot(self, record: Record) -> Record:
        """A file-history snapshot or delta that speaks of the same files below the new home.

        Tracked files are named relative to the home (measured on 2.1.329), others by their whole path; a folder that
        is not the one a backup names is not written to.
        """
        changed = dict(record)
        if isinstance(record.get("trackingPath"), str):
            changed["trackingPath"] = self._tracked(record["trackingPath"])
        if "backup" in record:
            changed["backup"] = self._backup(record["backup"])
        snapshot = record.get("snapshot")
        if isinstance(snapshot, dict) and isinstance(files := snapshot.get("trackedFileBackups"), dict):
            moved = {self._tracked(path): self._backup(backup) for path, backup in files.items()}
            changed["snapshot"] = {**snapshot, "trackedFileBackups": moved}
        return changed

    def _tracked(self, path: str) -> str:
        """A tracked file's name; one that leaves the old home by ``..`` is named whole, since it did not move."""
        if path.startswith(("../", "..\\")):
            return os.path.normpath(os.path.join(self.old, path))
        return self.path(path)

    def _backup(self, backup: Any) -> Any:
        folder = backup.get("realParentDir") if isinstance(backup, dict) else None
        return {**backup, "realParentDir": self.path(folder)} if isinstance(folder, str) else backup
