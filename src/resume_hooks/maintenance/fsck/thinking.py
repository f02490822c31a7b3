"""Thinking that the API won't take back: it must return byte for byte, with its signature, or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from resume_hooks.maintenance.fsck.findings import Finding, Kind
from resume_hooks.transcripts import records
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import Record, string

UNSIGNED = Kind(
    "thinking-unsigned", "error", "It is sent as it is; the API refuses every request of the session from then on."
)
TEXTLESS = Kind("thinking-textless", "error", "Client 2.1.112 refuses the whole session, and the API what others send.")
REDACTED = Kind(
    "thinking-redacted-empty", "error", "Client 2.1.112 refuses the whole session, and the API what others send."
)
ALTERED = Kind(
    "thinking-altered",
    "error",
    "A signature fits one text only: the API refuses the other one, and every request with it.",
)
ALONE = Kind("thinking-alone", "note", "Clients drop it: an answer that was interrupted while the model thought.")


class Thoughts:
    """The thinking of a file; ``alone`` are numbers of records that hold nothing else."""

    def __init__(self) -> None:
        self.alone: set[int] = set()
        self._signed: dict[str, tuple[int, Node]] = {}

    def take(self, record: Record, node: Node) -> Iterator[Finding]:
        """What is wrong with the thinking of one answer's record."""
        found = records.blocks(record)
        if found and all(string(block, "type") in records.THOUGHTS for block in found):
            self.alone.add(node.number)
        for block in found:
            if string(block, "type") in records.THOUGHTS:
                yield from self._of_block(block, node)

    def _of_block(self, block: Record, node: Node) -> Iterator[Finding]:
        if block["type"] == records.REDACTED_THINKING:
            if not string(block, "data"):
                yield Finding(REDACTED, "Redacted thinking without its data", node.number, node.uuid)
            return
        signature, text = string(block, "signature"), block.get("thinking")
        if not signature:
            how = "Empty thinking" if not text else "Thinking"
            yield Finding(UNSIGNED, f"{how} without a signature", node.number, node.uuid)
        elif not isinstance(text, str):
            yield Finding(TEXTLESS, "Thinking without its text", node.number, node.uuid)
        else:
            known, first = self._signed.setdefault(signature, (hash(text), node))
            if known != hash(text):
                for each, other in ((first, node), (node, first)):
                    told = f"The signature of this thinking stands under another text in record {other.number}"
                    yield Finding(ALTERED, told, each.number, each.uuid)


def of_alone(chain: Sequence[Node], alone: set[int]) -> Iterator[Finding]:
    """Answers of the live chain that are nothing but thinking."""
    answers: dict[str, list[Node]] = {}
    for node in chain:
        if node.kind == records.ASSISTANT:
            answers.setdefault(node.message_id or node.uuid, []).append(node)
    for nodes in answers.values():
        if all(node.number in alone for node in nodes):
            yield Finding(ALONE, "An answer of thinking alone", nodes[0].number, nodes[0].uuid)


def without_thinking(record: Record) -> Record | None:
    """The record with its thinking gone, whole blocks at once; None where it held nothing else."""
    kept = [block for block in records.blocks(record) if string(block, "type") not in records.THOUGHTS]
    return records.with_content(record, kept) if kept else None
