"""The rules of a trim: their input, and the pieces that each rule offers for replacement.

A rule may offer pieces anywhere in the conversation; ``selection`` removes the protected ones.
``transcripts.trimmable_pieces`` defines the pieces.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from resume_hooks.derive.trim.options import DEFAULT_KEEP_RECENT, MAX_PROTECTED_RESULTS, Options
from resume_hooks.transcripts.records import ASSISTANT, READING_TOOLS, WRITING_TOOLS
from resume_hooks.transcripts.transcript import Transcript
from resume_hooks.transcripts.trimmable_pieces import (
    ATTACHMENT_PIECE,
    INPUT_PIECE,
    MEDIA_PIECE,
    PROMPT_PIECE,
    RESULT_PIECE,
    TEXT_PIECE,
    THINKING_PIECE,
    Piece,
    PieceCollector,
    ToolCall,
)

MAX_WHOLE_LINES = 2_000  # the maximum number of lines that a read of a whole file shows
# a prompt longer than this many times the threshold is a paste, because nobody types that much
PASTE_MULTIPLE = 4


@dataclass(frozen=True)
class TrimMaterial:
    """The pieces of a conversation, oldest first.

    ``places`` maps line numbers to indexes in the chain.

    Nothing is trimmed from the index ``protected`` on, and thinking is not trimmed from
    ``last_turn`` on. ``calls`` are the chain's calls by id, ``answered`` the calls with a result,
    ``failed`` the calls with an error, and ``restored`` the calls whose inputs must stay.
    ``answers_gone`` is the number of answers from an earlier trim, ``silent`` the records of
    answers that contain only thinking. ``prompts`` are the indexes of the turns' prompts.
    """

    pieces: tuple[Piece, ...]
    places: dict[int, int]
    protected: int
    last_turn: int
    calls: dict[str, ToolCall]
    answered: frozenset[str]
    failed: frozenset[str]
    restored: frozenset[str] = frozenset()
    answers_gone: int = 0
    silent: frozenset[int] = frozenset()
    prompts: tuple[int, ...] = ()

    def turn(self, place: int) -> int:
        """Return the number of the turn at an index, counted in the live conversation, or 0 before the first prompt."""
        return bisect_right(self.prompts, place)

    def tool(self, piece: Piece) -> str:
        """Return the tool of a piece, or ``""``."""
        call = self.calls.get(piece.call)
        if call:
            return call.tool
        return ""

    def target(self, piece: Piece) -> str:
        """Return the subject of a piece's call (a file or a command), or ``""`` if it is unknown."""
        call = self.calls.get(piece.call)
        if call:
            return call.target
        return ""

    @cached_property
    def by_call(self) -> dict[str, list[Piece]]:
        """The pieces of each call: its inputs and its output."""
        by_call: dict[str, list[Piece]] = {}
        for piece in self.pieces:
            if piece.call:
                by_call.setdefault(piece.call, []).append(piece)
        return by_call


def collect_material(
    transcript: Transcript, pieces: PieceCollector, options: Options, folders: Sequence[str] = ()
) -> TrimMaterial:
    """Return the trimmable pieces of the live chain.

    Files in ``folders`` are checked for changes since their last Write.
    """
    chain = transcript.chain
    places = {node.number: place for place, node in enumerate(chain)}
    live = [piece for piece in pieces.pieces if piece.number in places]
    live.sort(key=lambda piece: places[piece.number])
    calls = {}
    for call_id, call in pieces.calls.items():
        if call.number in places:
            calls[call_id] = call
    answered = frozenset(call for call, number in pieces.result_lines.items() if number in places)
    times: dict[int, int | None] = {}
    prompts: list[int] = []
    results: list[int] = []
    last_answer = 0
    for place, node in enumerate(chain):
        times[node.number] = node.time_ms
        if node.prompt:
            prompts.append(place)
        if node.results:
            results.append(place)
        if node.kind == ASSISTANT:
            last_answer = place
    # A prompt after the last answer was queued, and may be sent together with tool results.
    last_turn = 0
    for place in prompts:
        if place <= last_answer:
            last_turn = place
    return TrimMaterial(
        pieces=tuple(live),
        places=places,
        protected=find_protected_start(prompts, results, len(chain), options),
        last_turn=last_turn,
        calls=calls,
        answered=answered,
        failed=answered & pieces.failed_calls,
        restored=find_restored_writes(calls, answered - pieces.failed_calls, times, folders),
        silent=_find_silent_answers(pieces, places),
        answers_gone=sum(number in places for number in pieces.placeholder_answers),
        prompts=tuple(prompts),
    )


def _find_silent_answers(pieces: PieceCollector, places: Mapping[int, int]) -> frozenset[int]:
    """Return the records with thinking whose answers have nothing else in the chain."""
    silent = set()
    for number, answer in pieces.thinking_in.items():
        if places.keys().isdisjoint(pieces.voiced.get(answer, ())):
            silent.add(number)
    return frozenset(silent)


def find_protected_start(
    prompts: Sequence[int], results: Sequence[int], length: int, options: Options
) -> int:
    """Return the index at which the protected end of a conversation starts.

    It is computed from the indexes of prompts and tool results.
    """
    if options.keep_recent is not None:
        return _find_turn_start(prompts, length, options.keep_recent)
    if len(results) > MAX_PROTECTED_RESULTS:
        capped = results[-MAX_PROTECTED_RESULTS]
    else:
        capped = 0
    return max(capped, _find_turn_start(prompts, length, DEFAULT_KEEP_RECENT))


def _find_turn_start(prompts: Sequence[int], length: int, count: int) -> int:
    """Return the index of the first of the last ``count`` turns.

    If ``count`` is 0, it is the end of the conversation. If there are fewer turns, it is the start.
    """
    if not count:
        return length
    if len(prompts) >= count:
        return prompts[-count]
    return 0


def find_restored_writes(
    calls: Mapping[str, ToolCall],
    done: Iterable[str],
    times_ms: Mapping[int, int | None],
    folders: Iterable[str],
) -> frozenset[str]:
    """Return the last Write of each file in ``folders`` that is newer on disk.

    The inputs of these calls must stay. On resume the client compares such a file with the input.
    If they differ, it sends the whole file as changed, up to 8,600 characters for each file
    (measured on 2.1.42 to 2.1.329). ``done`` are the ids of successful calls, ``times_ms`` the
    times of records. Files in other folders are not checked, because a transcript may name any
    path.
    """
    last: dict[str, str] = {}
    for call_id in done:
        call = calls.get(call_id)
        if call is not None and call.tool in {"Write", "Edit", "MultiEdit"} and call.target:
            earlier = calls.get(last.get(call.target, ""))
            if earlier is None or earlier.number < call.number:
                last[call.target] = call_id
    roots = tuple(os.path.join(folder, "") for folder in folders if os.path.isabs(folder))
    return frozenset(
        call_id
        for target, call_id in last.items()
        if calls[call_id].tool == "Write"
        and os.path.normpath(target).startswith(roots)
        and _modification_time_ms(target) > (times_ms.get(calls[call_id].number) or 0)
    )


def _modification_time_ms(path: str) -> float:
    try:
        return os.stat(path).st_mtime * 1000
    except (OSError, ValueError):
        return 0.0


class Pick(NamedTuple):
    """A piece that a rule offers.

    ``why`` is the reason in its placeholder, if the kind of the piece does not explain it.
    """

    piece: Piece
    why: str = ""


Rule = Callable[[TrimMaterial, Options], Iterator[Pick]]


def _offer_superseded(material: TrimMaterial, options: Options) -> Iterator[Pick]:  # noqa: ARG001 - the form of every rule
    """Offer reads of a file before its last whole read, before another read of the same part, or before a change."""
    latest: dict[tuple[str, tuple[object, ...]], int] = {}
    changed: dict[str, int] = {}
    for call_id, call in material.calls.items():
        if call_id in material.failed or call_id not in material.answered or not call.target:
            continue
        place = material.places[call.number]
        if call.tool in WRITING_TOOLS:
            changed[call.target] = max(place, changed.get(call.target, 0))
        elif call.tool in READING_TOOLS:
            for extent in {
                call.extent,
                () if all(part is None for part in call.extent) else call.extent,
            }:
                latest[call.target, extent] = max(place, latest.get((call.target, extent), 0))
    for piece in material.pieces:
        read = material.calls.get(piece.call)
        if (
            piece.kind != RESULT_PIECE
            or read is None
            or read.tool not in READING_TOOLS
            or piece.call in material.failed
        ):
            continue
        place = material.places[read.number]
        if changed.get(read.target, -1) > place:
            yield Pick(piece, "the file was changed later")
        elif (
            max(latest.get((read.target, extent), -1) for extent in _covering_extents(read)) > place
        ):
            yield Pick(piece, "the file was read again later")


def _covering_extents(read: ToolCall) -> tuple[tuple[object, ...], ...]:
    """Return the extents that contain all lines of ``read``: its own, and the whole file if that is short enough."""
    offset, limit, pages = read.extent
    lines = (
        (offset if isinstance(offset, int) else 1)
        + (limit if isinstance(limit, int) else MAX_WHOLE_LINES)
        - 1
    )
    if pages is None and lines <= MAX_WHOLE_LINES:
        return (read.extent, ())
    return (read.extent,)


def _offer_repeats(material: TrimMaterial, options: Options) -> Iterator[Pick]:  # noqa: ARG001
    """Offer outputs that the same tool later repeated word for word. The last output stays."""
    results = []
    for piece in _select_kind(RESULT_PIECE, material):
        results.append((piece, (material.tool(piece), piece.characters, piece.digest)))
    last = {content: piece for piece, content in results}
    for piece, content in results:
        if last[content] is not piece:
            yield Pick(piece, "the same output came again later")


def _offer_failures(material: TrimMaterial, options: Options) -> Iterator[Pick]:  # noqa: ARG001
    """Offer inputs and errors of failed calls if the same tool later succeeded on the same file, command or address."""
    succeeded: dict[tuple[str, str], int] = {}
    for call_id, call in material.calls.items():
        if call.target and call_id in material.answered and call_id not in material.failed:
            key = call.tool, call.target
            succeeded[key] = max(material.places[call.number], succeeded.get(key, 0))
    for call_id, failed in material.calls.items():
        later = succeeded.get((failed.tool, failed.target), -1)
        if call_id in material.failed and later > material.places[failed.number]:
            for piece in material.by_call.get(call_id, ()):
                yield Pick(piece, "failed, and was done again with success")


def _offer_thinking(material: TrimMaterial, options: Options) -> Iterator[Pick]:  # noqa: ARG001
    """Offer whole thinking blocks before the last turn: the API refuses changed blocks, and requires the last turn's.

    Answers that contain only thinking are kept: clients do not send them, but would send empty
    ones.
    """
    for piece in _select_kind(THINKING_PIECE, material):
        if (
            piece.number not in material.silent
            and material.places[piece.number] < material.last_turn
        ):
            yield Pick(piece)


def _make_length_rule(kind: str, times: int = 1) -> Rule:
    """Return a rule that offers contents of a kind if they are longer than ``times`` the threshold of their tool."""

    def rule(material: TrimMaterial, options: Options) -> Iterator[Pick]:
        for piece in _select_kind(kind, material):
            if piece.characters > times * options.limit(material.tool(piece)):
                yield Pick(piece)

    return rule


def _offer_inputs(material: TrimMaterial, options: Options) -> Iterator[Pick]:
    """Offer long inputs of answered calls (file contents, edits, commands), unless a resume needs them."""
    for pick in _make_length_rule(INPUT_PIECE)(material, options):
        if pick.piece.call in material.answered and pick.piece.call not in material.restored:
            yield pick


def _offer_answers(material: TrimMaterial, options: Options) -> Iterator[Pick]:
    """If requested, offer the first N long answers, or all long answers except the last N.

    The first N include answers from earlier trims.
    """
    if options.assistant:
        long = list(_make_length_rule(TEXT_PIECE)(material, options))
        if options.assistant < 0:
            end = options.assistant
        else:
            end = max(0, options.assistant - material.answers_gone)
        yield from long[:end]


def _select_kind(kind: str, material: TrimMaterial) -> Iterator[Piece]:
    return (piece for piece in material.pieces if piece.kind == kind)


RULES: dict[str, Rule] = {
    "superseded": _offer_superseded,
    "repeats": _offer_repeats,
    "failures": _offer_failures,
    "thinking": _offer_thinking,
    "attachments": _make_length_rule(ATTACHMENT_PIECE),
    "media": lambda material, _: map(Pick, _select_kind(MEDIA_PIECE, material)),
    "results": _make_length_rule(RESULT_PIECE),
    "inputs": _offer_inputs,
    "pasted": _make_length_rule(PROMPT_PIECE, PASTE_MULTIPLE),
    "assistant": _offer_answers,
}
"""The rules, the least useful contents first. They apply in this order until the target size is
reached."""
