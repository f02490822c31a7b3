"""Tool calls and their results on the live chain: each call answered once, in the turn after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from resume_hooks.maintenance.fsck.findings import Defect, Kind
from resume_hooks.transcripts.linearize import answers_meet
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import ASSISTANT, USER
from resume_hooks.transcripts.transcript import Transcript

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


def of_pairs(chain: Sequence[Node]) -> Iterator[Defect]:
    """Walk the live chain once and name every call and result without its counterpart."""
    ledger = _CallLedger()
    for node in chain:
        if node.spoken and not node.results:
            ledger.pass_by(node)
        for call in node.calls:
            yield from ledger.called(node, call)
        for call in node.results:
            yield from ledger.answered(node, call)
    yield from ledger.closed()


class _CallLedger:
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
            if node.kind == USER:
                if not node.meta:
                    self.passed.add(call)
            elif node.message_id != caller.message_id or not node.message_id:
                self.late[call] = self.waiting.pop(call)

    def called(self, node: Node, call: str) -> Iterator[Defect]:
        if call in self.waiting or call in self.late or call in self.done:
            self.repeated.add(call)
            yield REPEATED_CALL.at(node, f"The call {call} was made before")
        else:
            self.waiting[call] = node

    def answered(self, node: Node, call: str) -> Iterator[Defect]:
        if self.waiting.pop(call, None) is not None:
            self.done.add(call)
        elif self.late.pop(call, None) is not None:
            self.done.add(call)
            yield LATE.at(node, f"The result of {call} comes after a later answer")
        elif call in self.repeated:
            self.repeated.discard(call)  # it came with its call and goes with it
        elif call in self.done:
            yield REPEATED_RESULT.at(node, f"The call {call} was answered before")
        else:
            yield ORPHAN.at(node, f"Nothing called {call}")

    def closed(self) -> Iterator[Defect]:
        for call, node in {**self.late, **self.waiting}.items():
            kind = UNANSWERED if call in self.late or call in self.passed else OPEN
            yield kind.at(node, f"The call {call} has no result")


EMPTY = Kind("conversation-empty", "error", "Clients say that no conversation was found.", repairable=False)
UNTIMED_END = Kind("timestamp-missing-at-end", "error", "Client 2.1.329 says that no conversation was found.")
UNTIMED = Kind("timestamp-missing", "warning", "Client 2.1.42 takes another record for the end of the conversation.")
BACKWARD = Kind("timestamp-backward", "note", "Clients write it so themselves.")
NOT_LATEST = Kind(
    "end-not-latest",
    "warning",
    "Client 2.1.42 resumes at the record with the latest timestamp and loses what follows it.",
)
NO_PROMPT_FIRST = Kind(
    "starts-without-prompt",
    "error",
    "The API refuses a conversation that doesn't begin with the user (2.1.329 sends it).",
)
RESULT_FIRST = Kind(
    "starts-with-result", "error", "Client 2.1.42 sends it, and the API refuses; 2.1.329 puts a placeholder there."
)
ANSWERS_MEET = Kind(
    "answer-after-answer", "warning", "Clients send both; the API takes them for one.", repairable=False
)
SIDECHAIN = Kind("sidechain-inline", "note", "Old clients keep sub-agents in the same file; clients leave them out.")
FOREIGN_ID = Kind("session-id-foreign", "note", "Clients go by the name of the file.")


def of_sequence(transcript: Transcript, session_id: str | None) -> Iterator[Defect]:
    """What is out of order; ``session_id`` is the one that the file is named after, None if it is not."""
    chain = transcript.chain
    spoken = [node for node in chain if node.spoken]
    if not spoken:
        if transcript.nodes or transcript.bad_lines:
            yield Defect(EMPTY, f"None of {transcript.line_count} lines leads to a conversation")
        return
    yield from _of_start(spoken[0])
    for before, node in pairwise(spoken):
        if answers_meet(before, node):
            yield ANSWERS_MEET.at(node, f"It follows the answer in record {before.number}")
    yield from _of_clock(transcript, spoken)
    for node in transcript.nodes:
        if node.sidechain:
            yield SIDECHAIN.at(node, "A sub-agent's record")
        elif session_id and node.session_id and node.session_id != session_id:
            yield FOREIGN_ID.at(node, f"It names session {node.session_id}")


def _of_start(first: Node) -> Iterator[Defect]:
    if first.kind == ASSISTANT:
        yield NO_PROMPT_FIRST.at(first, "The conversation begins with an answer")
    elif first.results:
        yield RESULT_FIRST.at(first, "The conversation begins with a tool result")


def _of_clock(transcript: Transcript, spoken: list[Node]) -> Iterator[Defect]:
    end = spoken[-1]
    if end.time_ms is None:
        yield UNTIMED_END.at(end, "The last message has no timestamp")
    for node in spoken[:-1]:
        if node.time_ms is None:
            yield UNTIMED.at(node, "The message has no timestamp")
    for before, node in pairwise(node for node in transcript.chain if node.time_ms is not None):
        if node.number > before.number and (node.time_ms or 0) < (before.time_ms or 0):
            yield BACKWARD.at(node, f"It is earlier than record {before.number}")
    talk = (node for node in transcript.nodes if node.spoken and not node.sidechain and not node.broken)
    latest = max(talk, key=lambda node: node.time_ms or 0, default=end)
    if end.time_ms is not None and (latest.time_ms or 0) > end.time_ms:
        yield NOT_LATEST.at(latest, f"Record {end.number}, where the conversation ends, is earlier")
