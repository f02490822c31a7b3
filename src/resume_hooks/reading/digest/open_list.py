"""What is still to be done: the todo list as it was written last, and the tasks that nobody finished."""

from __future__ import annotations

import re
from typing import NamedTuple

from resume_hooks.reading.digest.facts import Call, Place
from resume_hooks.transcripts.records import objects, string

_NUMBER = re.compile(r"#(\w{1,20})")
_DONE = frozenset({"completed", "deleted", "cancelled"})


class Item(NamedTuple):
    """Something to be done, its status in the client's word, and where it was written down."""

    text: str
    status: str
    place: Place


class OpenList:
    """Todos and tasks of a story. Tasks are numbered within their session."""

    def __init__(self) -> None:
        self.used = False
        """Whether anything was ever written down."""
        self._todos: list[Item] = []
        self._tasks: dict[tuple[str, str], Item] = {}
        self._latest: dict[str, tuple[str, str]] = {}

    def write(self, call: Call) -> None:
        """The todo list was written anew."""
        self.used = True
        self._todos = [
            Item(string(row, "content"), string(row, "status"), call.place)
            for row in objects(call.given.get("todos"))
            if string(row, "content")
        ]

    def create(self, call: Call, answer: str) -> None:
        """A task was created; the answer tells its number."""
        self.used = True
        number = _NUMBER.search(answer)
        key = call.place.session_id, number[1] if number else str(len(self._tasks) + 1)
        self._tasks[key] = Item(call.text("subject", "description"), "pending", call.place)
        self._latest[key[1]] = key

    def update(self, call: Call) -> None:
        """A task got another status: the session's own of that number, else the latest of its ancestors'."""
        number = call.given.get("taskId")
        own = call.place.session_id, str(number) if isinstance(number, (str, int)) else ""
        key = own if own in self._tasks else self._latest.get(own[1])
        if key and (status := call.text("status")):
            self._tasks[key] = self._tasks[key]._replace(status=status)

    def left(self) -> list[Item]:
        """What was still to be done, in the order in which it was written down."""
        rows = (*self._tasks.values(), *self._todos)
        return [row for row in rows if row.text and row.status not in _DONE]
