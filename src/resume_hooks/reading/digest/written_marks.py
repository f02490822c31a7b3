"""Collect the open work in files that a session wrote: TODO comments, and unchecked boxes in plans.

Invariant: a text is listed only if the session's own tools wrote it and no later call removed it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from resume_hooks.reading.digest.facts import PendingCall, RecordPosition
from resume_hooks.reading.digest.later_edits import list_edits
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.transcripts.records import get_string

# The maximum number of characters in a plan. A longer plan is not searched.
MAX_PLAN_CHARACTERS = 200_000
PLAN_SUFFIXES = (".md", ".markdown")

_TODO_COMMENT_PATTERN = compile_lazily(r"(?:#|//|/\*|--|<!--|;|\*)\s*((?:TODO|FIXME|XXX)\b.{4,})")
_UNCHECKED_BOX_PATTERN = compile_lazily(r"(?:\A|\n)[ \t]*[-*][ \t]+\[ \][ \t]+(\S[^\n]*)")
_TODO_WORDS = ("TODO", "FIXME", "XXX")


class WrittenText(NamedTuple):
    """A text about open work, or a whole plan, that a call wrote into a file.

    ``path`` is the file's path, ``folder`` is the folder in which the call ran, and ``position`` is
    the position of the call.
    """

    text: str
    path: str
    folder: str
    position: RecordPosition


class WrittenTodosAndPlans:
    """The TODO comments and the plans that a session wrote."""

    def __init__(self) -> None:
        self._comments: dict[tuple[str, str], WrittenText] = {}
        self._plans: dict[str, WrittenText] = {}

    def process_call(self, call: PendingCall, *, is_new: bool) -> None:
        """Process a call that wrote a file. ``is_new`` means that the file did not exist before."""
        path, content = call.find_first_text("file_path"), call.find_first_text("content")
        for edit in list_edits({**call.inputs}):
            old_text, new_text = get_string(edit, "old_string"), get_string(edit, "new_string")
            if path.endswith(PLAN_SUFFIXES):
                self._process_plan(call, path, content, old_text, new_text)
            elif content:
                self._process_new_content(call, path, content, is_new=is_new)
            else:
                self._process_edit(call, path, old_text, new_text)

    def _process_new_content(
        self, call: PendingCall, path: str, content: str, *, is_new: bool
    ) -> None:
        """Process a call that wrote a whole file."""
        removed_comments = [
            comment for comment in self._list_comments_in_file(path) if comment not in content
        ]
        self._drop_comments(path, removed_comments)
        if is_new:
            self._add_comments(call, path, content, "")

    def _process_edit(self, call: PendingCall, path: str, old_text: str, new_text: str) -> None:
        """Process a call that replaced a text in a file."""
        touched_comments = [
            comment for comment in self._list_comments_in_file(path) if comment in old_text
        ]
        self._drop_comments(
            path, [comment for comment in touched_comments if comment not in new_text]
        )
        self._add_comments(call, path, new_text, old_text)

    def _list_comments_in_file(self, path: str) -> list[str]:
        """Return the texts of the known TODO comments in a file."""
        return [comment for file, comment in self._comments if file == path]

    def _drop_comments(self, path: str, removed_comments: Iterable[str]) -> None:
        for comment in removed_comments:
            del self._comments[path, comment]

    def _add_comments(self, call: PendingCall, path: str, text: str, old_text: str) -> None:
        if not any(word in text for word in _TODO_WORDS):
            return
        for row in text.split("\n"):
            comment = _TODO_COMMENT_PATTERN.search(row)
            if comment is not None and row not in old_text:
                comment_text = comment[1].strip()
                written_text = WrittenText(comment_text, path, call.folder, call.position)
                self._comments[path, comment_text] = written_text

    def _process_plan(
        self, call: PendingCall, path: str, content: str, old_text: str, new_text: str
    ) -> None:
        """Process a call that wrote a whole plan or replaced a text in a plan."""
        known_plan = self._plans.pop(path, None)
        text = content
        if not content and known_plan is not None and old_text in known_plan.text:
            text = known_plan.text.replace(old_text, new_text, 1)
        if text and len(text) <= MAX_PLAN_CHARACTERS:
            self._plans[path] = WrittenText(text, path, call.folder, call.position)

    def list_comments(self) -> list[WrittenText]:
        """Return the TODO comments that still exist, the latest first."""
        return sorted(
            self._comments.values(), key=lambda written_text: -written_text.position.order
        )

    def list_open_steps(self) -> list[WrittenText]:
        """Return the unchecked boxes in the last plan that contains any."""
        for plan in reversed(self._plans.values()):
            steps = [
                plan._replace(text=step.strip())
                for step in _UNCHECKED_BOX_PATTERN.findall(plan.text)
            ]
            if steps:
                return steps
        return []
