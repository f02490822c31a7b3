"""The files that a session edited after a check, whose result may therefore no longer be valid."""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter

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
    """The time of the last edit of each file, from edits of files that are not temporary.

    ``find_checkout`` returns the checkout that contains a path or folder, or ``""`` if it is unknown.
    """

    def __init__(self, edits: Iterable[FileEdit], find_checkout: Callable[[str], str]) -> None:
        self.find_checkout = find_checkout
        orders: dict[str, int] = {}
        for edit in edits:
            orders[edit.path] = max(orders.get(edit.path, 0), edit.order)
        own_paths = [path for path in orders if _CLIENT_FILE.match(path) is None]
        own_paths.sort(key=lambda path: orders[path])
        self._edits = [(orders[path], path) for path in own_paths]
        self._edits_of_code = [edit for edit in self._edits if _DOCUMENT.search(edit[1]) is None]

    def describe_passed_check(self, result_place: RecordPlace, folder: str) -> str:
        """Return which files other than documents were edited after a check passed in ``folder``, or ``""``."""
        paths = _list_after(self._edits_of_code, result_place)
        return _describe_edits(self._select_checkout(paths, folder))

    def describe_failed_check(self, result_place: RecordPlace, folder: str) -> str:
        """Return which files were edited after a check failed in ``folder`` and did not run again, or ``""``."""
        paths = _list_after(self._edits, result_place)
        edits = _describe_edits(self._select_checkout(paths, folder))
        return f"{edits}, not rerun" if edits else ""

    def _select_checkout(self, paths: Sequence[str], folder: str) -> list[str]:
        """Return the files that a check in ``folder`` may read: all, without those of other checkouts."""
        checkout = self.find_checkout(folder) if folder else ""
        if not checkout:
            return list(paths)
        return [path for path in paths if self.find_checkout(path) in {"", checkout}]


def _list_after(edits: Sequence[tuple[int, str]], place: RecordPlace) -> list[str]:
    """Return the files that were edited after a record, the earliest first. ``edits`` are in order."""
    start = bisect_right(edits, place.order, key=itemgetter(0))
    return [path for _, path in edits[start:]]


def _describe_edits(paths: Sequence[str]) -> str:
    if not paths:
        return ""
    if len(paths) <= MAX_NAMED_FILES:
        return f"edited since: {', '.join(posixpath.basename(path) for path in paths)}"
    return f"{format_count(len(paths), 'file')} edited since"
