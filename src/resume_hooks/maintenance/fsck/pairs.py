"""Tool calls and their results on the live chain: each call answered once, in the turn after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from resume_hooks.maintenance.fsck.findings import Finding, Kind
from resume_hooks.transcripts.nodes import Node

REPEATED_CALL = Kind(
    "tool-call-repeated",
    "error",
    "Clients up to 2.1.42 send both, and the API refuses; later ones drop the second call with its result.",
)
REPEATED_RESULT = Kind(
    "tool-result-repeated", "error", "Clients up to 2.1.42 send both, and the API refuses; later ones drop the second."
)
LATE = Kind(
    "tool-result-late",
    "warning",
    "It stands behind a later answer: clients drop it and send an error message in its place.",
)
UNANSWERED = Kind(
    "tool-call-unanswered", "warning", "Clients drop the call on resume; programs that don't get a 400 from the API."
)
ORPHAN = Kind(
    "tool-result-orphan", "warning", "Clients drop the result on resume; programs that don't get a 400 from the API."
)
OPEN = Kind("tool-call-open", "note", "The session ended during the call; clients answer it with an error.")


def of_pairs(chain: Sequence[Node]) -> Iterator[Finding]:
    """Walk the live chain once and name every call and result without its counterpart."""
    ledger = _Ledger()
    for node in chain:
        if node.spoken and not node.results:
            ledger.pass_by(node)
        for call in node.calls:
            yield from ledger.called(node, call)
        for call in node.results:
            yield from ledger.answered(node, call)
    yield from ledger.closed()


class _Ledger:
    """``waiting``: calls whose results may still come; ``late``: those that something else was said after."""

    def __init__(self) -> None:
        self.waiting: dict[str, Node] = {}
        self.late: dict[str, Node] = {}
        self.passed: set[str] = set()
        self.done: set[str] = set()
        self.repeated: set[str] = set()

    def pass_by(self, node: Node) -> None:
        """Take in a message that answers no call."""
        for call, caller in list(self.waiting.items()):
            if node.kind == "user":
                if not node.meta:
                    self.passed.add(call)
            elif node.message_id != caller.message_id or not node.message_id:
                self.late[call] = self.waiting.pop(call)

    def called(self, node: Node, call: str) -> Iterator[Finding]:
        if call in self.waiting or call in self.late or call in self.done:
            self.repeated.add(call)
            yield Finding(REPEATED_CALL, f"The call {call} was made before", node.number, node.uuid)
        else:
            self.waiting[call] = node

    def answered(self, node: Node, call: str) -> Iterator[Finding]:
        if self.waiting.pop(call, None) is not None:
            self.done.add(call)
        elif self.late.pop(call, None) is not None:
            self.done.add(call)
            yield Finding(LATE, f"The result of {call} comes after a later answer", node.number, node.uuid)
        elif call in self.repeated:
            self.repeated.discard(call)  # it came with its call and goes with it
        elif call in self.done:
            yield Finding(REPEATED_RESULT, f"The call {call} was answered before", node.number, node.uuid)
        else:
            yield Finding(ORPHAN, f"Nothing called {call}", node.number, node.uuid)

    def closed(self) -> Iterator[Finding]:
        for call, node in {**self.late, **self.waiting}.items():
            kind = UNANSWERED if call in self.late or call in self.passed else OPEN
            yield Finding(kind, f"The call {call} has no result", node.number, node.uuid)
