"""The rules of a trim: which contents each of them offers for replacement.

A rule names pieces anywhere in the conversation; ``selection`` leaves the protected ones alone. What is a piece at all
is said in ``transcripts.content``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from resume_hooks.derive.trim.candidates import TrimMaterial
from resume_hooks.derive.trim.options import Options
from resume_hooks.transcripts.records import READERS, WRITERS
from resume_hooks.transcripts.trimmable_pieces import (
    ATTACHMENT,
    INPUT,
    MEDIA,
    PROMPT,
    RESULT,
    TEXT,
    THINKING,
    Piece,
    ToolCall,
)

WHOLE_LINES = 2_000  # lines that a read of a whole file shows at most
PASTE_TIMES = 4  # a prompt of that many times the threshold is a paste: nobody types so much


class Pick(NamedTuple):
    """A piece that a rule gives up; ``why`` stands in the placeholder if the kind alone doesn't say it."""

    piece: Piece
    why: str = ""


Rule = Callable[[TrimMaterial, Options], Iterator[Pick]]


def _superseded(material: TrimMaterial, options: Options) -> Iterator[Pick]:  # noqa: ARG001 - the form of every rule
    """Reads of a file before its last whole read, before the same part was read again, or before a change of it."""
    latest: dict[tuple[str, tuple[object, ...]], int] = {}
    changed: dict[str, int] = {}
    for call_id, call in material.calls.items():
        if call_id in material.failed or call_id not in material.answered or not call.target:
            continue
        place = material.places[call.number]
        if call.tool in WRITERS:
            changed[call.target] = max(place, changed.get(call.target, 0))
        elif call.tool in READERS:
            for extent in {call.extent, () if all(part is None for part in call.extent) else call.extent}:
                latest[call.target, extent] = max(place, latest.get((call.target, extent), 0))
    for piece in material.pieces:
        read = material.calls.get(piece.call)
        if piece.kind != RESULT or read is None or read.tool not in READERS or piece.call in material.failed:
            continue
        place = material.places[read.number]
        if changed.get(read.target, -1) > place:
            yield Pick(piece, "the file was changed later")
        elif max(latest.get((read.target, extent), -1) for extent in _covered_by(read)) > place:
            yield Pick(piece, "the file was read again later")


def _covered_by(read: ToolCall) -> tuple[tuple[object, ...], ...]:
    """The extents whose reading shows all that ``read`` did: its own, and the whole file if that reaches so far."""
    offset, limit, pages = read.extent
    lines = (offset if isinstance(offset, int) else 1) + (limit if isinstance(limit, int) else WHOLE_LINES) - 1
    return (read.extent, ()) if pages is None and lines <= WHOLE_LINES else (read.extent,)


def _repeats(material: TrimMaterial, options: Options) -> Iterator[Pick]:  # noqa: ARG001
    """Outputs that the same tool gave again later, word for word; the last one stays."""
    results = [(piece, (material.tool(piece), piece.characters, piece.digest)) for piece in _of(RESULT, material)]
    last = {content: piece for piece, content in results}
    for piece, content in results:
        if last[content] is not piece:
            yield Pick(piece, "the same output came again later")


def _failures(material: TrimMaterial, options: Options) -> Iterator[Pick]:  # noqa: ARG001
    """Inputs and errors of failed calls after which the same tool succeeded on the same file, command or address."""
    succeeded: dict[tuple[str, str], int] = {}
    for call_id, call in material.calls.items():
        if call.target and call_id in material.answered and call_id not in material.failed:
            key = call.tool, call.target
            succeeded[key] = max(material.places[call.number], succeeded.get(key, 0))
    for call_id, failed in material.calls.items():
        if (
            call_id in material.failed
            and succeeded.get((failed.tool, failed.target), -1) > material.places[failed.number]
        ):
            for piece in material.by_call.get(call_id, ()):
                yield Pick(piece, "failed, and was done again with success")


def _thinking(material: TrimMaterial, options: Options) -> Iterator[Pick]:  # noqa: ARG001
    """Thinking before the last turn, whole blocks: the API refuses altered ones, and the last turn must keep its own.

    Answers that hold nothing but thinking are left alone: they are not sent, but empty ones would be.
    """
    for piece in _of(THINKING, material):
        if piece.number not in material.silent and material.places[piece.number] < material.last_turn:
            yield Pick(piece)


def _media(material: TrimMaterial, options: Options) -> Iterator[Pick]:  # noqa: ARG001
    """Images and documents, in prompts and in outputs of tools."""
    yield from map(Pick, _of(MEDIA, material))


def _long(kind: str, times: int = 1) -> Rule:
    """Contents of a kind that are longer than the threshold of their tool, or than so many times that."""

    def rule(material: TrimMaterial, options: Options) -> Iterator[Pick]:
        for piece in _of(kind, material):
            if piece.characters > times * options.limit(material.tool(piece)):
                yield Pick(piece)

    return rule


def _inputs(material: TrimMaterial, options: Options) -> Iterator[Pick]:
    """Long inputs of tools (files written, texts edited, commands), if answered and no file is restored from them."""
    for pick in _long(INPUT)(material, options):
        if pick.piece.call in material.answered and pick.piece.call not in material.restored:
            yield pick


def _assistant(material: TrimMaterial, options: Options) -> Iterator[Pick]:
    """If asked for: the first N long answers of the model, counting those trimmed before, or all but the last N."""
    if options.assistant:
        long = list(_long(TEXT)(material, options))
        end = options.assistant if options.assistant < 0 else max(0, options.assistant - material.answers_gone)
        yield from long[:end]


def _of(kind: str, material: TrimMaterial) -> Iterator[Piece]:
    return (piece for piece in material.pieces if piece.kind == kind)


RULES: dict[str, Rule] = {
    "superseded": _superseded,
    "repeats": _repeats,
    "failures": _failures,
    "thinking": _thinking,
    "attachments": _long(ATTACHMENT),
    "media": _media,
    "results": _long(RESULT),
    "inputs": _inputs,
    "pasted": _long(PROMPT, PASTE_TIMES),
    "assistant": _assistant,
}
"""The least useful contents first: a target size is met from the top."""
