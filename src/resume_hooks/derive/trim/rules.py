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
PASTE_THRESHOLD_MULTIPLE = 4


@dataclass(frozen=True)
class TrimMaterial:
    """The pieces of a conversation, oldest first.

    ``chain_indexes`` maps line numbers to indexes in the chain.

    Nothing is trimmed from the index ``protected_start`` on, and thinking is not trimmed from
    ``last_turn_start`` on. ``calls`` are the chain's calls by id, ``answered_calls`` the calls with a result,
    ``failed_calls`` the calls with an error, and ``needed_calls`` the calls whose inputs must stay.
    ``trimmed_answer_count`` is the number of answers from an earlier trim, ``silent_records`` the records of
    answers that contain only thinking. ``prompts`` are the indexes of the turns' prompts.
    """

    pieces: tuple[Piece, ...]
    chain_indexes: dict[int, int]
    protected_start: int
    last_turn_start: int
    calls: dict[str, ToolCall]
    answered_calls: frozenset[str]
    failed_calls: frozenset[str]
    needed_calls: frozenset[str] = frozenset()
    trimmed_answer_count: int = 0
    silent_records: frozenset[int] = frozenset()
    prompts: tuple[int, ...] = ()

    def find_turn_number(self, place: int) -> int:
        """Return the number of the turn at an index, counted in the live conversation, or 0 before the first prompt."""
        return bisect_right(self.prompts, place)

    def find_tool(self, piece: Piece) -> str:
        """Return the tool of a piece, or ``""``."""
        call = self.calls.get(piece.call)
        if call:
            return call.tool
        return ""

    def find_target(self, piece: Piece) -> str:
        """Return the subject of a piece's call (a file or a command), or ``""`` if it is unknown."""
        call = self.calls.get(piece.call)
        if call:
            return call.target
        return ""

    @cached_property
    def pieces_by_call(self) -> dict[str, list[Piece]]:
        """The pieces of each call: its inputs and its output."""
        pieces_by_call: dict[str, list[Piece]] = {}
        for piece in self.pieces:
            if piece.call:
                pieces_by_call.setdefault(piece.call, []).append(piece)
        return pieces_by_call


def collect_material(
    transcript: Transcript, pieces: PieceCollector, options: Options, folders: Sequence[str] = ()
) -> TrimMaterial:
    """Return the trimmable pieces of the live chain.

    Files in ``folders`` are checked for changes since their last Write.
    """
    chain = transcript.chain
    chain_indexes = {node.number: place for place, node in enumerate(chain)}
    live_pieces = [piece for piece in pieces.pieces if piece.number in chain_indexes]
    live_pieces.sort(key=lambda piece: chain_indexes[piece.number])
    calls = {}
    for call_id, call in pieces.calls.items():
        if call.number in chain_indexes:
            calls[call_id] = call
    answered_calls = frozenset(
        call for call, number in pieces.result_lines.items() if number in chain_indexes
    )
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
        pieces=tuple(live_pieces),
        chain_indexes=chain_indexes,
        protected_start=find_protected_start(prompts, results, len(chain), options),
        last_turn_start=last_turn,
        calls=calls,
        answered_calls=answered_calls,
        failed_calls=answered_calls & pieces.failed_calls,
        needed_calls=find_restored_writes(
            calls, answered_calls - pieces.failed_calls, times, folders
        ),
        silent_records=_find_silent_answers(pieces, chain_indexes),
        trimmed_answer_count=sum(number in chain_indexes for number in pieces.placeholder_answers),
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

    The index is computed from the indexes of prompts and tool results.
    """
    if options.keep_recent is not None:
        return _find_turn_start(prompts, length, options.keep_recent)
    if len(results) > MAX_PROTECTED_RESULTS:
        capped_start = results[-MAX_PROTECTED_RESULTS]
    else:
        capped_start = 0
    return max(capped_start, _find_turn_start(prompts, length, DEFAULT_KEEP_RECENT))


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
    successful_calls: Iterable[str],
    times_ms: Mapping[int, int | None],
    folders: Iterable[str],
) -> frozenset[str]:
    """Return the call ids of the last Write of each file in ``folders`` that is newer on disk.

    The inputs of these calls must stay. On resume the client compares the file with the input. If
    they differ, it sends the whole file as changed, up to 8,600 characters for each file (measured
    on 2.1.42 to 2.1.329). ``successful_calls`` are the ids of successful calls, ``times_ms`` the
    times of records. Files in other folders are not checked, because a transcript may name any
    path.
    """
    last_writes: dict[str, str] = {}
    for call_id in successful_calls:
        call = calls.get(call_id)
        if call is not None and call.tool in {"Write", "Edit", "MultiEdit"} and call.target:
            earlier_call = calls.get(last_writes.get(call.target, ""))
            if earlier_call is None or earlier_call.number < call.number:
                last_writes[call.target] = call_id
    roots = tuple(os.path.join(folder, "") for folder in folders if os.path.isabs(folder))
    return frozenset(
        call_id
        for target, call_id in last_writes.items()
        if calls[call_id].tool == "Write"
        and os.path.normpath(target).startswith(roots)
        and _modification_time_ms(target) > (times_ms.get(calls[call_id].number) or 0)
    )


def _modification_time_ms(path: str) -> float:
    try:
        return os.stat(path).st_mtime * 1000
    except (OSError, ValueError):
        return 0.0


class OfferedPiece(NamedTuple):
    """A piece that a rule offers.

    ``reason`` is the reason in its placeholder, if the kind of the piece does not explain it.
    """

    piece: Piece
    reason: str = ""


Rule = Callable[[TrimMaterial, Options], Iterator[OfferedPiece]]


def _offer_superseded(material: TrimMaterial, options: Options) -> Iterator[OfferedPiece]:  # noqa: ARG001 - the form of every rule
    """Offer reads of a file before its last whole read, before another read of the same part, or before a change."""
    latest_reads: dict[tuple[str, tuple[object, ...]], int] = {}
    latest_changes: dict[str, int] = {}
    for call_id, call in material.calls.items():
        if (
            call_id in material.failed_calls
            or call_id not in material.answered_calls
            or not call.target
        ):
            continue
        place = material.chain_indexes[call.number]
        if call.tool in WRITING_TOOLS:
            latest_changes[call.target] = max(place, latest_changes.get(call.target, 0))
        elif call.tool in READING_TOOLS:
            for extent in {
                call.extent,
                () if all(part is None for part in call.extent) else call.extent,
            }:
                latest_reads[call.target, extent] = max(
                    place, latest_reads.get((call.target, extent), 0)
                )
    for piece in material.pieces:
        read_call = material.calls.get(piece.call)
        if (
            piece.kind != RESULT_PIECE
            or read_call is None
            or read_call.tool not in READING_TOOLS
            or piece.call in material.failed_calls
        ):
            continue
        place = material.chain_indexes[read_call.number]
        if latest_changes.get(read_call.target, -1) > place:
            yield OfferedPiece(piece, "the file was changed later")
        elif (
            max(
                latest_reads.get((read_call.target, extent), -1)
                for extent in _list_covering_extents(read_call)
            )
            > place
        ):
            yield OfferedPiece(piece, "the file was read again later")


def _list_covering_extents(read_call: ToolCall) -> tuple[tuple[object, ...], ...]:
    """Return the extents that cover the lines ``read_call`` read: its own, and ``()``, a read of the whole file.

    The whole file is left out if one read may not return all these lines.
    """
    offset, limit, pages = read_call.extent
    lines = (
        (offset if isinstance(offset, int) else 1)
        + (limit if isinstance(limit, int) else MAX_WHOLE_LINES)
        - 1
    )
    if pages is None and lines <= MAX_WHOLE_LINES:
        return (read_call.extent, ())
    return (read_call.extent,)


def _offer_repeats(material: TrimMaterial, options: Options) -> Iterator[OfferedPiece]:  # noqa: ARG001
    """Offer outputs that the same tool later repeated word for word. The last output stays."""
    results = []
    for piece in _select_kind(RESULT_PIECE, material):
        results.append((piece, (material.find_tool(piece), piece.characters, piece.digest)))
    last_pieces = {content: piece for piece, content in results}
    for piece, content in results:
        if last_pieces[content] is not piece:
            yield OfferedPiece(piece, "the same output was repeated later")


def _offer_superseded_failures(material: TrimMaterial, options: Options) -> Iterator[OfferedPiece]:  # noqa: ARG001
    """Offer inputs and errors of failed calls if the same tool later succeeded on the same file, command or address."""
    succeeded: dict[tuple[str, str], int] = {}
    for call_id, call in material.calls.items():
        if (
            call.target
            and call_id in material.answered_calls
            and call_id not in material.failed_calls
        ):
            key = call.tool, call.target
            succeeded[key] = max(material.chain_indexes[call.number], succeeded.get(key, 0))
    for call_id, failed_call in material.calls.items():
        success_index = succeeded.get((failed_call.tool, failed_call.target), -1)
        if (
            call_id in material.failed_calls
            and success_index > material.chain_indexes[failed_call.number]
        ):
            for piece in material.pieces_by_call.get(call_id, ()):
                yield OfferedPiece(piece, "failed, and later succeeded")


def _offer_thinking(material: TrimMaterial, options: Options) -> Iterator[OfferedPiece]:  # noqa: ARG001
    """Offer whole thinking blocks before the last turn. The API refuses changed blocks, and needs the last turn's.

    Answers that contain only thinking are kept: clients do not send them, but would send empty
    ones.
    """
    for piece in _select_kind(THINKING_PIECE, material):
        if (
            piece.number not in material.silent_records
            and material.chain_indexes[piece.number] < material.last_turn_start
        ):
            yield OfferedPiece(piece)


def _make_length_rule(kind: str, threshold_multiple: int = 1) -> Rule:
    """Return a rule that offers contents longer than ``threshold_multiple`` times their tool's threshold."""

    def offer_long_contents(material: TrimMaterial, options: Options) -> Iterator[OfferedPiece]:
        for piece in _select_kind(kind, material):
            if piece.characters > threshold_multiple * options.limit(material.find_tool(piece)):
                yield OfferedPiece(piece)

    return offer_long_contents


def _offer_inputs(material: TrimMaterial, options: Options) -> Iterator[OfferedPiece]:
    """Offer long inputs of answered calls (file contents, edits, commands), unless a resume needs them."""
    for pick in _make_length_rule(INPUT_PIECE)(material, options):
        if (
            pick.piece.call in material.answered_calls
            and pick.piece.call not in material.needed_calls
        ):
            yield pick


def _offer_answers(material: TrimMaterial, options: Options) -> Iterator[OfferedPiece]:
    """If requested, offer the first N long answers, or all long answers except the last N.

    The first N include answers from earlier trims.
    """
    if options.assistant:
        long_answers = list(_make_length_rule(TEXT_PIECE)(material, options))
        if options.assistant < 0:
            end = options.assistant
        else:
            end = max(0, options.assistant - material.trimmed_answer_count)
        yield from long_answers[:end]


def _select_kind(kind: str, material: TrimMaterial) -> Iterator[Piece]:
    return (piece for piece in material.pieces if piece.kind == kind)


RULES: dict[str, Rule] = {
    "superseded": _offer_superseded,
    "repeats": _offer_repeats,
    "failures": _offer_superseded_failures,
    "thinking": _offer_thinking,
    "attachments": _make_length_rule(ATTACHMENT_PIECE),
    "media": lambda material, _: map(OfferedPiece, _select_kind(MEDIA_PIECE, material)),
    "results": _make_length_rule(RESULT_PIECE),
    "inputs": _offer_inputs,
    "pasted": _make_length_rule(PROMPT_PIECE, PASTE_THRESHOLD_MULTIPLE),
    "assistant": _offer_answers,
}
"""The rules, the least useful contents first. They apply in this order until the target size is reached."""
