"""Open work that a session itself recorded: TODO comments in code, and unchecked boxes in its plans.

Invariant: a text is listed only if the session's own tools wrote it and no later call removed it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from resume_hooks.reading.digest.facts import PendingCall, RecordPlace
from resume_hooks.redaction.lazy_patterns import compile_lazily

LONGEST_PLAN = 200_000  # the maximum characters of a plan that are searched
PLAN_ENDINGS = (".md", ".markdown")

_COMMENT = compile_lazily(r"(?:#|//|/\*|--|<!--|;|\*)\s*((?:TODO|FIXME|XXX)\b.{4,})")
_OPEN_BOX = compile_lazily(r"(?:\A|\n)[ \t]*[-*][ \t]+\[ \][ \t]+(\S[^\n]*)")
_WORDS = ("TODO", "FIXME", "XXX")


class Mark(NamedTuple):
    """A text about open work, its position, and the file ``path`` that a call in ``folder`` wrote."""

    text: str
    path: str
    folder: str
    place: RecordPlace


class WrittenMarks:
    """The TODO comments, and the plans with boxes, that a session wrote."""

    def __init__(self) -> None:
        self._comments: dict[tuple[str, str], Mark] = {}
        self._plans: dict[str, Mark] = {}

    def take_call(self, call: PendingCall, *, is_new: bool) -> None:
        """Process a call that wrote a file. ``is_new`` means that the file did not exist before."""
        path = call.first_text("file_path")
        written, added = call.first_text("content"), call.first_text("new_string")
        removed = call.first_text("old_string")
        if path.endswith(PLAN_ENDINGS):
            self._take_plan(call, path, written, removed, added)
            return
        if written:
            gone = [words for words in self._words_in(path) if words not in written]
            self._drop_comments(path, gone)
            if is_new:
                self._add_comments(call, path, written, "")
            return
        cut = [words for words in self._words_in(path) if words in removed]
        self._drop_comments(path, [words for words in cut if words not in added])
        self._add_comments(call, path, added, removed)

    def _words_in(self, path: str) -> list[str]:
        """Return the words of the comments in a file."""
        return [words for file, words in self._comments if file == path]

    def _drop_comments(self, path: str, gone: Iterable[str]) -> None:
        for words in gone:
            del self._comments[path, words]

    def _add_comments(self, call: PendingCall, path: str, text: str, before: str) -> None:
        if not any(word in text for word in _WORDS):
            return
        for row in text.split("\n"):
            comment = _COMMENT.search(row)
            if comment is not None and row not in before:
                words = comment[1].strip()
                mark = Mark(words, path, call.folder, call.place)
                self._comments[path, words] = mark

    def _take_plan(
        self, call: PendingCall, path: str, written: str, removed: str, added: str
    ) -> None:
        """Process a plan that was written as a whole, or a change of a plan."""
        known = self._plans.pop(path, None)
        text = written
        if not written and known is not None and removed in known.text:
            text = known.text.replace(removed, added, 1)
        if text and len(text) <= LONGEST_PLAN:
            self._plans[path] = Mark(text, path, call.folder, call.place)

    def comments(self) -> list[Mark]:
        """Return the TODO comments that still exist, the latest first."""
        return sorted(self._comments.values(), key=lambda mark: -mark.place.order)

    def open_steps(self) -> list[Mark]:
        """Return the unchecked steps of the last plan that has unchecked steps."""
        for plan in reversed(self._plans.values()):
            steps = [plan._replace(text=step.strip()) for step in _OPEN_BOX.findall(plan.text)]
            if steps:
                return steps
        return []
