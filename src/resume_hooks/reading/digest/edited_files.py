"""Find the files that a session edited after a check. The result of the check may be outdated."""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from collections.abc import Callable, Iterable
from operator import itemgetter

from resume_hooks.reading.digest.facts import RecordPosition
from resume_hooks.reading.digest.file_states import FileEdit
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.system.text import format_count

_CLIENT_FILE = compile_lazily(r"\A(?:/|[A-Z]:).*/\.claude/")
"""A file of the client, such as a plan. Checks do not read these files."""

_DOCUMENT = compile_lazily(r"\.(?:mdx?|rst|txt|log|out)\Z|/?\bLICENSE\Z")
"""A file that tests and builds do not read. A linter may read it."""


# If more files were edited, the note gives their number instead of their names.
MAX_NAMED_FILES = 2


class EditedFiles:
    """The time of the last edit of each file, without temporary files.

    ``find_checkout`` returns the checkout that contains a path or folder, or ``""`` if it is
    unknown.
    """

    def __init__(self, edits: Iterable[FileEdit], find_checkout: Callable[[str], str]) -> None:
        self.find_checkout = find_checkout
        orders: dict[str, int] = {}
        for edit in edits:
            orders[edit.path] = max(orders.get(edit.path, 0), edit.order)
        own_paths = [path for path in orders if _CLIENT_FILE.match(path) is None]
        own_paths.sort(key=lambda path: orders[path])
        code_paths = [path for path in own_paths if _DOCUMENT.search(path) is None]
        self._edits = _EditTimes([(orders[path], path) for path in own_paths], find_checkout)
        self._edits_of_code = _EditTimes(
            [(orders[path], path) for path in code_paths], find_checkout
        )

    def describe_edits_after_pass(self, result_position: RecordPosition, folder: str) -> str:
        """Return a note on the files that were edited after a check passed in ``folder``, or ``""``.

        Documents are ignored.
        """
        checkout = self.find_checkout(folder) if folder else ""
        return self._edits_of_code.describe_later_edits(result_position, checkout)

    def describe_edits_after_failure(self, result_position: RecordPosition, folder: str) -> str:
        """Return a note on the files that were edited after a check failed in ``folder``, or ``""``."""
        checkout = self.find_checkout(folder) if folder else ""
        edits = self._edits.describe_later_edits(result_position, checkout)
        return f"{edits}, not rerun" if edits else ""


class _EditTimes:
    """Edits of files, each with its order and path, sorted by order, and also grouped by checkout.

    A long session has thousands of checks and edits, so the edits after a check are found without
    looking at every edit.
    """

    def __init__(self, edits: list[tuple[int, str]], find_checkout: Callable[[str], str]) -> None:
        self._edits = edits
        self._edits_by_checkout: dict[str, list[tuple[int, str]]] = {}
        for edit in edits:
            self._edits_by_checkout.setdefault(find_checkout(edit[1]), []).append(edit)

    def describe_later_edits(self, position: RecordPosition, checkout: str) -> str:
        """Return a note on the files that were edited after a record, or ``""``.

        Files of other checkouts are ignored, unless ``checkout`` is empty. Files of unknown
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
