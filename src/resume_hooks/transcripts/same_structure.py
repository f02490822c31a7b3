"""Whether a file that was rewritten line by line is the same session still: its records, links, live chain."""

from __future__ import annotations

from resume_hooks.transcripts.invariants import Check
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.transcript import Transcript


def shape_checks(old: Transcript, found: Transcript) -> list[Check]:
    """What must be in ``found``, as read back, as it was in ``old``: everything but what the records say."""
    return [
        Check("every line is in its place", _form(found) == _form(old)),
        Check("ids, links, instants and token counts are as they were", _links(found) == _links(old)),
        Check("the live chain is as it was", [node.uuid for node in found.chain] == [node.uuid for node in old.chain]),
        Check("no tool call or result was lost or added", _pairs(found) == _pairs(old)),
    ]


def _form(transcript: Transcript) -> tuple[object, ...]:
    return transcript.line_count, transcript.bad_lines, transcript.torn, transcript.bookkeeping


def _links(transcript: Transcript) -> list[tuple[object, ...]]:
    return [_link(node) for node in transcript.nodes]


def _link(node: Node) -> tuple[object, ...]:
    return (
        *(node.number, node.uuid, node.parent, node.kind, node.subtype, node.sidechain, node.session_id),
        *(node.time_ms, node.message_id, node.prompt, node.context_tokens, node.input_tokens),
    )


def _pairs(transcript: Transcript) -> list[tuple[object, ...]]:
    return [(node.number, node.calls, node.results) for node in transcript.nodes]
