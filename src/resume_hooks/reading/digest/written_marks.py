"""What a session itself wrote down as left to do: TODO comments in code, and open boxes in its plans.

Invariant: only what the session's own tools wrote, and what no later call of theirs took out again,
is told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from resume_hooks.reading.digest.facts import PendingCall, RecordPlace
from resume_hooks.redaction.lazy_patterns import late

LONGEST_PLAN = 200_000  # characters of a plan that are looked through
PLAN_ENDINGS = (".md", ".markdown")

_COMMENT = late(r"(?:#|//|/\*|--|<!--|;|\*)\s*((?:TODO|FIXME|XXX)\b.{4,})")
_OPEN_BOX = late(r"(?:\A|\n)[ \t]*[-*][ \t]+\[ \][ \t]+(\S[^\n]*)")
_WORDS = ("TODO", "FIXME", "XXX")


class Mark(NamedTuple):
    """A text that says what is left, in the file ``path`` of a call in ``folder``, and where it was written."""

    text: str
    path: str
    folder: str
    place: RecordPlace


class WrittenMarks:
    """The TODO comments and the plans with boxes that a session wrote."""

    def __init__(self) -> None:
        self._comments: dict[tuple[str, str], Mark] = {}
        self._plans: dict[str, Mark] = {}

    def take_call(self, call: PendingCall, *, is_new: bool) -> None:
        """Take in a call that wrote a file, which ``is_new`` where it was not there before."""
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
        """The words of the comments that stand in a file."""
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
        """Take in a plan as it was written whole, or a change of one."""
        known = self._plans.pop(path, None)
        text = written
        if not written and known is not None and removed in known.text:
            text = known.text.replace(removed, added, 1)
        if text and len(text) <= LONGEST_PLAN:
            self._plans[path] = Mark(text, path, call.folder, call.place)

    def comments(self) -> list[Mark]:
        """The TODO comments that stand, the latest first."""
        return sorted(self._comments.values(), key=lambda mark: -mark.place.order)

    def open_steps(self) -> list[Mark]:
        """The steps without a check of the last plan that has any."""
        for plan in reversed(self._plans.values()):
            steps = [plan._replace(text=step.strip()) for step in _OPEN_BOX.findall(plan.text)]
            if steps:
                return steps
        return []
