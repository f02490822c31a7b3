"""The files that a session edited after a check, whose result may therefore no longer be valid."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from resume_hooks.reading.digest.facts import RecordPlace
from resume_hooks.reading.digest.file_states import FileEdit
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.system.text import format_count

_CLIENT_FILE = compile_lazily(r"\A(?:/|[A-Z]:).*/\.claude/")
"""A file of the client, such as a plan, which no check reads."""

_DOCUMENT = compile_lazily(r"\.(?:mdx?|rst|txt|log|out)\Z|/?\bLICENSE\Z")
"""A file that tests and builds do not read. A linter may read it."""


class EditedFiles:
    """The time of the last edit of each file, from edits of files that are not temporary."""

    def __init__(self, edits: Iterable[FileEdit]) -> None:
        orders: dict[str, int] = {}
        for edit in edits:
            orders[edit.path] = max(orders.get(edit.path, 0), edit.order)
        own_paths = [path for path in orders if _CLIENT_FILE.match(path) is None]
        code_paths = [path for path in own_paths if _DOCUMENT.search(path) is None]
        self._orders = sorted(orders[path] for path in own_paths)
        self._code_orders = sorted(orders[path] for path in code_paths)

    def describe_passed_check(self, result_place: RecordPlace) -> str:
        """Return how many files other than documents were edited after a check passed, or ``""``."""
        count = _count_after(self._code_orders, result_place)
        return f"{format_count(count, 'file')} edited since" if count else ""

    def describe_failed_check(self, result_place: RecordPlace) -> str:
        """Return how many files were edited after a check failed that did not run again, or ``""``."""
        count = _count_after(self._orders, result_place)
        return f"{format_count(count, 'file')} edited since, not rerun" if count else ""


def _count_after(sorted_orders: Sequence[int], place: RecordPlace) -> int:
    return len(sorted_orders) - bisect_right(sorted_orders, place.order)
