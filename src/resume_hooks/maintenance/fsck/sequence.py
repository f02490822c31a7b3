"""The order of the live conversation: whose turn it is, and what the clock says."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from resume_hooks.maintenance.fsck.findings import Finding, Kind
from resume_hooks.transcripts.linearize import answers_meet
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.transcript import Transcript

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


def of_sequence(transcript: Transcript, session_id: str | None) -> Iterator[Finding]:
    """What is out of order; ``session_id`` is the one that the file is named after, None where it is not."""
    chain = transcript.chain
    spoken = [node for node in chain if node.spoken]
    if not spoken:
        if transcript.nodes or transcript.bad_lines:
            yield Finding(EMPTY, f"None of {transcript.line_count} lines leads to a conversation")
        return
    yield from _of_start(spoken[0])
    for before, node in pairwise(spoken):
        if answers_meet(before, node):
            yield Finding(ANSWERS_MEET, f"It follows the answer in record {before.number}", node.number, node.uuid)
    yield from _of_clock(transcript, spoken)
    for node in transcript.nodes:
        if node.sidechain:
            yield Finding(SIDECHAIN, "A sub-agent's record", node.number, node.uuid)
        elif session_id and node.session_id and node.session_id != session_id:
            yield Finding(FOREIGN_ID, f"It names session {node.session_id}", node.number, node.uuid)


def _of_start(first: Node) -> Iterator[Finding]:
    if first.kind == "assistant":
        yield Finding(NO_PROMPT_FIRST, "The conversation begins with an answer", first.number, first.uuid)
    elif first.results:
        yield Finding(RESULT_FIRST, "The conversation begins with a tool result", first.number, first.uuid)


def _of_clock(transcript: Transcript, spoken: list[Node]) -> Iterator[Finding]:
    end = spoken[-1]
    if end.time_ms is None:
        yield Finding(UNTIMED_END, "The last message has no timestamp", end.number, end.uuid)
    for node in spoken[:-1]:
        if node.time_ms is None:
            yield Finding(UNTIMED, "The message has no timestamp", node.number, node.uuid)
    for before, node in pairwise(node for node in transcript.chain if node.time_ms is not None):
        if node.number > before.number and (node.time_ms or 0) < (before.time_ms or 0):
            yield Finding(BACKWARD, f"It is earlier than record {before.number}", node.number, node.uuid)
    talk = (node for node in transcript.nodes if node.spoken and not node.sidechain and not node.broken)
    latest = max(talk, key=lambda node: node.time_ms or 0, default=end)
    if end.time_ms is not None and (latest.time_ms or 0) > end.time_ms:
        yield Finding(
            NOT_LATEST, f"Record {end.number}, where the conversation ends, is earlier", latest.number, latest.uuid
        )
