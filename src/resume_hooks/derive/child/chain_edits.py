"""What becomes of a parent's records in a child that takes them over: the edits of each, in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from resume_hooks.sessions import lineage_block
from resume_hooks.transcripts.linearize import Linear
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import CALL, RESULT, Record, call_id, mapping, message, string, with_content
from resume_hooks.transcripts.transcript import Transcript
from resume_hooks.transcripts.write_scan import WriteScan, mend

Edit = Callable[[Record], Record | None]  # a record as it shall stand in the child; None leaves it out

BLOCKED = "UserPromptSubmit operation blocked by hook"
"""How the record begins that a client keeps of a card; the model is never sent it."""

CHILD_LINES = ("in Claude Code   /resume ", "in this client   /resume ")
"""What a card of a child holds that need not name us; the second is that of 0.2.0."""

OPENING_REACH = 4  # records at the start of a chain among which a lineage block of ours may stand


def edits_of(
    row: Linear, transcript: Transcript, survey: WriteScan, wanted: Mapping[int, Edit]
) -> dict[int, list[Edit]]:
    """The edits of each record: what the caller wants, what must be mended, what no API takes.

    In that order: the caller's go by the places of blocks, and mending takes blocks out. The first record of a headless
    session is made one of the interactive client, or pickers hide the child.
    """
    by_record: dict[int, list[Edit]] = {}
    for node in row.nodes:
        number = node.number
        each: list[Edit] = [
            *([wanted[number]] if number in wanted else []),
            *([mend] if number in survey.mends else []),
            *([_without_segment] if node.boundary and node.segment is not None else []),
            *([_Dropping(row.dropped[number])] if number in row.dropped else []),
            *([_as_parsed] if number in transcript.lenient_lines else []),
            *([_without_cards] if node.subtype == "informational" else []),
        ]
        if each:
            by_record[number] = each
    if row.nodes and string(transcript.read(row.nodes[0]), "entrypoint").startswith("sdk"):
        by_record.setdefault(row.nodes[0].number, []).append(lambda record: {**record, "entrypoint": "cli"})
    return by_record


class _Dropping:
    """Leaves out calls that nobody answered, and answers that nobody asked for."""

    def __init__(self, calls: frozenset[str]) -> None:
        self._calls = calls

    def __call__(self, record: Record) -> Record | None:
        content = message(record).get("content")
        kept = [block for block in content if not self._named(block)] if isinstance(content, list) else []
        return with_content(record, kept) if kept else None

    def _named(self, block: object) -> bool:
        return isinstance(block, dict) and block.get("type") in (CALL, RESULT) and call_id(block) in self._calls


def _as_parsed(record: Record) -> Record:
    """The record as it was parsed: U+FFFD stands for what is no character, and the API refuses."""
    return record


def _without_cards(record: Record) -> Record | None:
    """None for what the screen showed of a trigger: in a child its commands are about another session."""
    said = string(record, "content")
    ours = "resume-hooks" in said or any(line in said for line in CHILD_LINES)
    return None if ours and said.startswith(BLOCKED) else record


def _without_segment(record: Record) -> Record:
    """A boundary without its marks of kept messages: they stand in the chain now."""
    metadata = mapping(record, "compactMetadata")
    kept = {key: value for key, value in metadata.items() if not key.startswith("preserved")}
    return {**record, "compactMetadata": kept}


def opening_with_block(row: Linear, transcript: Transcript) -> Node | None:
    """The opening of ours that tells a lineage already, and no prompt of a person's; None where there is none."""
    openings = (node for node in row.nodes[:OPENING_REACH] if node.meta or node.summary)
    return next((node for node in openings if _has_block(transcript.read(node))), None)


def _has_block(record: Record) -> bool:
    content = message(record).get("content")
    return isinstance(content, str) and content.startswith(lineage_block.OPENING) and lineage_block.CLOSING in content


def with_block(record: Record, lineage: str) -> Record:
    """An opening of ours with its block renewed; what stands after the block stays."""
    _, _, after_block = lineage.partition(lineage_block.CLOSING)
    _, _, rest = message(record)["content"].partition(lineage_block.CLOSING)
    return with_content(record, lineage + rest.removeprefix(after_block))
