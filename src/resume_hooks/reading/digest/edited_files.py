"""Find the files that a session edited after a check, because the check's result may then be outdated."""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from collections.abc import Callable, Iterable
from operator import itemgetter

from resume_hooks.reading.digest.facts import RecordPosition
from resume_hooks.reading.digest.file_states import FileEdit
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.system.text import format_count

_CLIENT_INTERNAL_FILE_PATTERN = compile_lazily(r"\A(?:/|[A-Z]:).*/\.claude/")
"""A file that belongs to the client, such as a plan. Checks do not read it."""

_DOCUMENT_PATTERN = compile_lazily(r"\.(?:mdx?|rst|txt|log|out)\Z|/?\bLICENSE\Z")
"""A file that tests and builds do not read. A linter may read it."""


# A note on edited files contains at most this number of file names. For more files, it contains
# only the number of files.
MAX_NAMED_FILES = 2


class EditedFiles:
    """The last edit of each file and the time of that edit. Temporary files are not included.

    ``find_checkout`` returns the checkout that contains a path or folder, or ``""`` if it is
    unknown.
    """

    def __init__(self, edits: Iterable[FileEdit], find_checkout: Callable[[str], str]) -> None:
        self.find_checkout = find_checkout
        orders: dict[str, int] = {}
        for edit in edits:
            orders[edit.path] = max(orders.get(edit.path, 0), edit.order)
        own_paths = [path for path in orders if _CLIENT_INTERNAL_FILE_PATTERN.match(path) is None]
        own_paths.sort(key=lambda path: orders[path])
        code_paths = [path for path in own_paths if _DOCUMENT_PATTERN.search(path) is None]
        self._edits = _SortedEdits([(orders[path], path) for path in own_paths], find_checkout)
        self._edits_of_code = _SortedEdits(
            [(orders[path], path) for path in code_paths], find_checkout
        )

    def describe_edits_after_passed_check(
        self, result_position: RecordPosition, folder: str
    ) -> str:
        """Return a note on the files that were edited after a check passed in ``folder``, or ``""``.

        Documents are ignored, because tests and builds do not read them.
        """
        checkout = self.find_checkout(folder) if folder else ""
        return self._edits_of_code.describe_later_edits(result_position, checkout)

    def describe_edits_after_failure(self, result_position: RecordPosition, folder: str) -> str:
        """Return a note on the files that were edited after a check failed in ``folder``, or ``""``."""
        checkout = self.find_checkout(folder) if folder else ""
        edits = self._edits.describe_later_edits(result_position, checkout)
        return f"{edits}, not rerun" if edits else ""


class _SortedEdits:
    """Pairs of an edit's sequence number and the file's path, sorted, and also grouped by checkout.

    A long session contains thousands of checks and edits, so the edits after a check are found with
    a binary search.
    """

    def __init__(self, edits: list[tuple[int, str]], find_checkout: Callable[[str], str]) -> None:
        self._edits = edits
        self._edits_by_checkout: dict[str, list[tuple[int, str]]] = {}
        for edit in edits:
            self._edits_by_checkout.setdefault(find_checkout(edit[1]), []).append(edit)

    def describe_later_edits(self, position: RecordPosition, checkout: str) -> str:
        """Return a note on the files that were edited after the record at ``position``, or ``""``.

        If ``checkout`` is not empty, files in other checkouts are ignored, but files in unknown
        checkouts are included.
        """
        if checkout:
            edit_lists = [self._edits_by_checkout.get(name, []) for name in ("", checkout)]
        else:
            edit_lists = [self._edits]
        file_count = 0
        first_edits: list[tuple[int, str]] = []
        for edits in edit_lists:
            start = bisect_right(edits, position.order, key=itemgetter(0))
            file_count += len(edits) - start
            first_edits += edits[start : start + MAX_NAMED_FILES]
        if file_count > MAX_NAMED_FILES:
            return f"{format_count(file_count, 'file')} edited since"
        first_edits.sort(key=itemgetter(0))
        names = [posixpath.basename(path) for _, path in first_edits]
        return f"edited since: {', '.join(names)}" if names else ""
