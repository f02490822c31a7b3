"""What earlier audits saw of each file, in one small file of the state folder: places and kinds, no text of any.

It is a cache: lost, damaged, or of other rules, and everything is looked at anew.
"""

from __future__ import annotations

import os
from typing import Any

import orjson

from resume_hooks.parts.secrets.audit.scan import FileScan, FoundSecret
from resume_hooks.paths import Where, is_private, read_regular
from resume_hooks.redaction.load_rules import rules
from resume_hooks.storage import state_file

FILE_NAME = "audit.json"
VERSION = 1
LARGEST = 64 * 1024 * 1024
"""Bytes of the file; a larger one is not ours."""

MOST_KEPT = 10_000
"""Findings of one file that are remembered; a file with more is looked at anew each time."""


class AuditCache:
    """The last look at every file, by path."""

    def __init__(self, where: Where) -> None:
        self._where = where
        self._path = os.path.join(where.state, FILE_NAME)
        self._files = self._read()
        self._seen: set[str] = set()
        self._changed = False

    def known(self, path: str) -> FileScan | None:
        """The last look at a file; None if there was none, or it can't be understood."""
        self._seen.add(path)
        try:
            inode, size, mtime_ns, offset, lines, edge, findings = self._files[path]
            return FileScan(
                inode, size, mtime_ns, offset, lines, edge, tuple(FoundSecret(*found) for found in findings)
            )
        except (KeyError, TypeError, ValueError):
            return None

    def note(self, path: str, scanned: FileScan) -> None:
        """Remember a look."""
        if len(scanned.findings) > MOST_KEPT:
            return
        row = [*scanned[:6], [list(found) for found in scanned.findings]]
        if self._files.get(path) != row:
            self._files[path] = row
            self._changed = True

    def store(self, *, everything: bool) -> str:
        """Write it down; after a look at ``everything`` without the files that are gone. A sentence where it failed."""
        if everything and self._files.keys() - self._seen:
            self._files = {path: row for path, row in self._files.items() if path in self._seen}
            self._changed = True
        if not self._changed:
            return ""
        try:
            state_file.replace(
                self._path,
                orjson.dumps({"version": VERSION, "rules": rules().version, "files": self._files}),
                self._where,
            )
        except (OSError, TypeError) as error:
            why = getattr(error, "strerror", "") or error
            return f"What was found could not be remembered, so the next audit looks at all of it again: {why}"
        return ""

    def _read(self) -> dict[str, Any]:
        if not is_private(os.path.dirname(self._path), self._where):
            return {}
        try:
            value = orjson.loads(read_regular(self._path, LARGEST))
        except (OSError, ValueError):
            return {}
        ours = isinstance(value, dict) and (value.get("version"), value.get("rules")) == (VERSION, rules().version)
        files = value.get("files") if ours else None
        return files if isinstance(files, dict) else {}
