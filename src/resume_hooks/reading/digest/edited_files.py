"""The files that a session edited after a check, whose result may therefore no longer be valid."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence

from resume_hooks.reading.digest.facts import RecordPlace
from resume_hooks.reading.digest.file_states import FileEdit
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.system.text import format_count

_CLIENT_FILE = compile_lazily(r"\A(?:/|[A-Z]:).*/\.claude/")
"""A file of the client, such as a plan, which no check reads."""

_DOCUMENT = compile_lazily(r"\.(?:mdx?|rst|txt|log|out)\Z|/?\bLICENSE\Z")
"""A file that tests and builds do not read. A linter may read it."""


MAX_NAMED_FILES = 2  # if more files were edited, their number is shown instead of their names


class EditedFiles:
    """The time of the last edit of each file, from edits of files that are not temporary."""

    def __init__(self, edits: Iterable[FileEdit]) -> None:
        orders: dict[str, int] = {}
        for edit in edits:
            orders[edit.path] = max(orders.get(edit.path, 0), edit.order)
        own_paths = [path for path in orders if _CLIENT_FILE.match(path) is None]
        own_paths.sort(key=lambda path: orders[path])
        self._orders = {path: orders[path] for path in own_paths}

    def describe_passed_check(self, result_place: RecordPlace) -> str:
        """Return which files other than documents were edited after a check passed, or ``""``."""
        paths = self._list_after(result_place)
        return _describe_edits([path for path in paths if _DOCUMENT.search(path) is None])

    def describe_failed_check(self, result_place: RecordPlace) -> str:
        """Return which files were edited after a check failed that did not run again, or ``""``."""
        edits = _describe_edits(self._list_after(result_place))
        return f"{edits}, not rerun" if edits else ""

    def _list_after(self, place: RecordPlace) -> list[str]:
        """Return the files that were edited after a record, the earliest first."""
        return [path for path, order in self._orders.items() if order > place.order]


def _describe_edits(paths: Sequence[str]) -> str:
    if not paths:
        return ""
    if len(paths) <= MAX_NAMED_FILES:
        return f"edited since: {', '.join(posixpath.basename(path) for path in paths)}"
    return f"{format_count(len(paths), 'file')} edited since"
