"""What the user typed: prompts, and those that were typed while the model was busy.

A queue says what became of the latter: sent as a prompt of its own (then it has a record), handed to the model
between two calls (clients up to 2.1.112 leave no other record of it), or taken back to be edited.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from itertools import islice

from resume_hooks.reading.digest.facts import Quote, RecordPlace
from resume_hooks.reading.digest.prose import typed_text
from resume_hooks.transcripts.records import Record, string

RECENT = 4  # prompts among which one that stood in the queue is looked for again
WAITING = 50  # prompts in a queue among which one is looked for by its text

_INSERTED = (
    "<task-notification",
    "<agent-notification",
    "<agent-message",
    "<teammate-message",
    "<local-command",
    "<bash-",
    "<command-name>",
    "[Request interrupted",
    "This session is being continued",
    "Another Claude session sent",
    "/resume-hooks:",  # asks us, not the model
)
_TRIGGER = re.compile(r">[a-z]+(?:-[a-z]+)*(?!\S)")
"""How a prompt for us begins in its other form: under `-p` clients keep blocked prompts like all others."""

"""How text begins that stands where prompts do and that nobody typed for the model."""

_FOR_CLIENT = re.compile(
    r"/(?:clear|compact|model|resume|continue|exit|quit|login|logout|help|cost|usage|status|config|doctor|memory|mcp|hooks|"
    r"permissions|context|export|rewind|branch|rename|plugin|agents|theme|ide|add-dir)(?!\S)"
)
"""Commands that the client carries out itself; some versions keep them like those that ask the model."""

_HANDED = frozenset({"", "attached", "delivered_as_tool_result"})
"""Why a prompt left the queue that the model then saw. Older clients give no reason; others are that it was
cancelled, or blocked by a hook."""

_FOR_US = ("/", ">")  # how what was queued begins that may be meant for the client, or for us


class Prompts:
    """The prompts of a lineage, oldest first."""

    def __init__(self) -> None:
        self.said: list[Quote] = []
        self._queue: deque[Quote] = deque()

    def take(self, said: Quote) -> bool:
        """Take in a prompt; False if it is none, or known from the queue."""
        text = typed_text(said.text)
        if not text or text.startswith(_INSERTED) or _FOR_CLIENT.match(text) or _TRIGGER.match(text):
            return False
        if any(not known.uuid and known.text == text for known in self.said[-RECENT:]):
            return False
        self.said.append(said._replace(text=text))
        return True

    def queued(self, record: Record, place: RecordPlace) -> Quote | None:
        """Take in what a queue did; what was handed to the model by it, if that is a prompt."""
        operation, content = string(record, "operation"), string(record, "content")
        if operation == "enqueue":
            self._queue.append(Quote(content, place))
        elif operation == "popAll":
            self._queue.clear()
        elif operation in {"dequeue", "remove"} and self._queue:
            first = islice(self._queue, WAITING) if content else ()
            found = next((said for said in first if said.text == content), self._queue[0])
            self._queue.remove(found)
            handed = operation == "remove" and string(record, "reason") in _HANDED
            return found if handed and self.take(found) else None
        return None

    def end_file(self, counts: Callable[[Quote], bool]) -> bool:
        """Keep what ``counts``; whether something was still in the queue that then is the latest prompt."""
        self.said = [said for said in self.said if counts(said)]
        left = [said for said in self._queue if not said.text.lstrip().startswith(_FOR_US)]
        self._queue.clear()
        return sum(self.take(said) for said in left) > 0
