"""Define the rules of a trim. Each rule offers pieces that placeholders can replace.

A rule may offer any piece of the conversation. ``selection`` then removes the offered pieces that
are protected. ``transcripts.trimmable_pieces`` explains what a piece is.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from resume_hooks.derive.trim.options import DEFAULT_KEPT_TURN_COUNT, MAX_PROTECTED_RESULTS, Options
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

# When the Read tool reads a whole file, it shows at most this number of lines.
MAX_READ_TOOL_LINES = 2_000
# A prompt counts as pasted text if it is longer than the threshold times this number.
PASTE_TO_TRIM_THRESHOLD_RATIO = 4


@dataclass(frozen=True)
class TrimMaterial:
    """The pieces of a conversation, oldest first, with the information that rules need about them.

    ``chain_indexes_by_line_number`` maps the line number of a record to its index in the chain. No
    piece at or after the index ``protected_start_index`` is trimmed. No thinking at or after the
    index ``last_turn_start_index`` is trimmed. ``prompt_indexes`` contains the index of each prompt
    that starts a turn.

    ``calls`` maps the id of each call in the chain to the call. Three sets contain ids of calls:
    ``answered_call_ids`` if the call has a result, ``failed_call_ids`` if it ended with an error,
    and ``ids_of_calls_with_needed_inputs`` if its input must stay.

    ``already_trimmed_answer_count`` is the number of answers that an earlier trim replaced.
    ``thinking_only_line_numbers`` contains the line numbers of answers that consist only of
    thinking.
    """

    pieces: tuple[Piece, ...]
    chain_indexes_by_line_number: dict[int, int]
    protected_start_index: int
    last_turn_start_index: int
    calls: dict[str, ToolCall]
    answered_call_ids: frozenset[str]
    failed_call_ids: frozenset[str]
    ids_of_calls_with_needed_inputs: frozenset[str] = frozenset()
    already_trimmed_answer_count: int = 0
    thinking_only_line_numbers: frozenset[int] = frozenset()
    prompt_indexes: tuple[int, ...] = ()

    def find_turn_number(self, chain_index: int) -> int:
        """Return the number of the turn to which the record at an index belongs.

        Turns of the live conversation are counted from 1. Before the first prompt, the number is 0.
        """
        return bisect_right(self.prompt_indexes, chain_index)

    def find_tool_name(self, piece: Piece) -> str:
        """Return the name of the tool to whose call a piece belongs, or ``""`` if it belongs to no call."""
        call = self.calls.get(piece.call_id)
        if call:
            return call.tool
        return ""

    def find_call_target(self, piece: Piece) -> str:
        """Return the file or command of the call to which a piece belongs, or ``""`` if it is unknown."""
        call = self.calls.get(piece.call_id)
        if call:
            return call.target
        return ""

    @cached_property
    def pieces_by_call(self) -> dict[str, list[Piece]]:
        """Maps the id of each call to the pieces of the call: its inputs and its output."""
        pieces_by_call: dict[str, list[Piece]] = {}
        for piece in self.pieces:
            if piece.call_id:
                pieces_by_call.setdefault(piece.call_id, []).append(piece)
        return pieces_by_call


def collect_trim_material(
    transcript: Transcript, pieces: PieceCollector, options: Options, folders: Sequence[str] = ()
) -> TrimMaterial:
    """Return the pieces of the live chain that can be trimmed.

    ``folders`` are the session's folders. If a call wrote a file in one of them, the function
    checks whether the file has changed since then.
    """
    chain = transcript.chain
    chain_indexes_by_line_number = {
        node.line_number: record_index for record_index, node in enumerate(chain)
    }
    live_pieces = [
        piece for piece in pieces.pieces if piece.line_number in chain_indexes_by_line_number
    ]
    live_pieces.sort(key=lambda piece: chain_indexes_by_line_number[piece.line_number])
    calls = {}
    for call_id, call in pieces.calls.items():
        if call.line_number in chain_indexes_by_line_number:
            calls[call_id] = call
    answered_call_ids = frozenset(
        call
        for call, number in pieces.result_lines.items()
        if number in chain_indexes_by_line_number
    )
    times: dict[int, int | None] = {}
    prompts: list[int] = []
    results: list[int] = []
    last_answer = 0
    for record_index, node in enumerate(chain):
        times[node.line_number] = node.time_ms
        if node.is_prompt:
            prompts.append(record_index)
        if node.answered_call_ids:
            results.append(record_index)
        if node.kind == ASSISTANT:
            last_answer = record_index
    # A prompt after the last answer is still queued. It may be sent together with tool results, so
    # it does not start the last turn.
    last_turn = 0
    for record_index in prompts:
        if record_index <= last_answer:
            last_turn = record_index
    return TrimMaterial(
        pieces=tuple(live_pieces),
        chain_indexes_by_line_number=chain_indexes_by_line_number,
        protected_start_index=find_start_of_protected_records(
            prompts, results, len(chain), options
        ),
        last_turn_start_index=last_turn,
        calls=calls,
        answered_call_ids=answered_call_ids,
        failed_call_ids=answered_call_ids & pieces.failed_calls,
        ids_of_calls_with_needed_inputs=find_ids_of_needed_writes(
            calls, answered_call_ids - pieces.failed_calls, times, folders
        ),
        thinking_only_line_numbers=_find_thinking_only_answers(
            pieces, chain_indexes_by_line_number
        ),
        already_trimmed_answer_count=sum(
            number in chain_indexes_by_line_number for number in pieces.placeholder_answers
        ),
        prompt_indexes=tuple(prompts),
    )


def _find_thinking_only_answers(
    pieces: PieceCollector, chain_indexes_by_line_number: Mapping[int, int]
) -> frozenset[int]:
    """Return the line numbers of thinking records whose answers have no other content.

    An answer may have several records. Only its records in the chain are considered.
    """
    silent = set()
    for number, answer in pieces.answers_of_thinking.items():
        if chain_indexes_by_line_number.keys().isdisjoint(
            pieces.lines_of_other_content.get(answer, ())
        ):
            silent.add(number)
    return frozenset(silent)


def find_start_of_protected_records(
    prompt_indexes: Sequence[int],
    result_indexes: Sequence[int],
    chain_length: int,
    options: Options,
) -> int:
    """Return the index in the chain at which the protected part of the conversation starts.

    ``prompt_indexes`` and ``result_indexes`` are the indexes of prompts and tool results in the
    chain.
    """
    if options.keep_recent is not None:
        return _find_start_of_last_turns(prompt_indexes, chain_length, options.keep_recent)
    if len(result_indexes) > MAX_PROTECTED_RESULTS:
        capped_start = result_indexes[-MAX_PROTECTED_RESULTS]
    else:
        capped_start = 0
    return max(
        capped_start,
        _find_start_of_last_turns(prompt_indexes, chain_length, DEFAULT_KEPT_TURN_COUNT),
    )


def _find_start_of_last_turns(
    prompt_indexes: Sequence[int], chain_length: int, turn_count: int
) -> int:
    """Return the index at which the last ``turn_count`` turns start.

    If ``turn_count`` is 0, return the length of the chain. If there are fewer turns, return 0.
    """
    if not turn_count:
        return chain_length
    if len(prompt_indexes) >= turn_count:
        return prompt_indexes[-turn_count]
    return 0


def find_ids_of_needed_writes(
    calls: Mapping[str, ToolCall],
    successful_call_ids: Iterable[str],
    times_ms: Mapping[int, int | None],
    folders: Iterable[str],
) -> frozenset[str]:
    """Return the ids of Write calls whose inputs must stay because their files have since changed on disk.

    Only the last change of each file is considered. If this change is a Write and the file is now
    newer, a client that resumes the session compares the file with the call's input. If they
    differ, it sends up to 8,600 characters of the file to the model (measured on 2.1.42 to
    2.1.329). With a placeholder as input, they would always differ.

    ``times_ms`` maps line numbers to the times of records. Only files in ``folders`` are checked,
    because a transcript may name any path.
    """
    last_writes: dict[str, str] = {}
    for call_id in successful_call_ids:
        call = calls.get(call_id)
        if call is not None and call.tool in {"Write", "Edit", "MultiEdit"} and call.target:
            earlier_call = calls.get(last_writes.get(call.target, ""))
            if earlier_call is None or earlier_call.line_number < call.line_number:
                last_writes[call.target] = call_id
    roots = tuple(os.path.join(folder, "") for folder in folders if os.path.isabs(folder))
    return frozenset(
        call_id
        for target, call_id in last_writes.items()
        if calls[call_id].tool == "Write"
        and os.path.normpath(target).startswith(roots)
        and _get_modification_time_ms(target) > (times_ms.get(calls[call_id].line_number) or 0)
    )


def _get_modification_time_ms(path: str) -> float:
    try:
        return os.stat(path).st_mtime * 1000
    except (OSError, ValueError):
        return 0.0


class OfferedPiece(NamedTuple):
    """A piece that a rule offers for trimming.

    ``reason`` is the reason that the placeholder states. It is empty if the kind of the piece is a
    sufficient explanation.
    """

    piece: Piece
    reason: str = ""


TrimRule = Callable[[TrimMaterial, Options], Iterator[OfferedPiece]]


def _offer_superseded_outputs(material: TrimMaterial, options: Options) -> Iterator[OfferedPiece]:  # noqa: ARG001 - the form of every rule
    """Offer outdated outputs of file reads.

    An output is outdated if a later call changed the file, read the whole file, or read the same
    part.
    """
    latest_reads: dict[tuple[str, tuple[object, ...]], int] = {}
    latest_changes: dict[str, int] = {}
    for call_id, call in material.calls.items():
        if (
            call_id in material.failed_call_ids
            or call_id not in material.answered_call_ids
            or not call.target
        ):
            continue
        record_index = material.chain_indexes_by_line_number[call.line_number]
        if call.tool in WRITING_TOOLS:
            latest_changes[call.target] = max(record_index, latest_changes.get(call.target, 0))
        elif call.tool in READING_TOOLS:
            for read_range in {
                call.read_range,
                () if all(part is None for part in call.read_range) else call.read_range,
            }:
                latest_reads[call.target, read_range] = max(
                    record_index, latest_reads.get((call.target, read_range), 0)
                )
    for piece in material.pieces:
        read_call = material.calls.get(piece.call_id)
        if (
            piece.kind != RESULT_PIECE
            or read_call is None
            or read_call.tool not in READING_TOOLS
            or piece.call_id in material.failed_call_ids
        ):
            continue
        record_index = material.chain_indexes_by_line_number[read_call.line_number]
        if latest_changes.get(read_call.target, -1) > record_index:
            yield OfferedPiece(piece, "the file was changed later")
        elif (
            max(
                latest_reads.get((read_call.target, read_range), -1)
                for read_range in _list_ranges_covering_read(read_call)
            )
            > record_index
        ):
            yield OfferedPiece(piece, "the file was read again later")


def _list_ranges_covering_read(read_call: ToolCall) -> tuple[tuple[object, ...], ...]:
    """Return the ranges of reads that would show all lines that ``read_call`` showed.

    A read range consists of offset, limit and pages, and ``()`` stands for a read of the whole
    file. The result contains the call's own read range. It also contains ``()``, unless the Read
    tool might cut a read of the whole file before the last of these lines.
    """
    offset, limit, pages = read_call.read_range
    lines = (
        (offset if isinstance(offset, int) else 1)
        + (limit if isinstance(limit, int) else MAX_READ_TOOL_LINES)
        - 1
    )
    if pages is None and lines <= MAX_READ_TOOL_LINES:
        return (read_call.read_range, ())
    return (read_call.read_range,)


def _offer_repeated_outputs(material: TrimMaterial, options: Options) -> Iterator[OfferedPiece]:  # noqa: ARG001
    """Offer outputs that equal a later output of the same tool. The last of the equal outputs is kept."""
    results = []
    for piece in _select_pieces_of_kind(RESULT_PIECE, material):
        results.append(
            (piece, (material.find_tool_name(piece), piece.character_count, piece.content_hash))
        )
    last_pieces = {content: piece for piece, content in results}
    for piece, content in results:
        if last_pieces[content] is not piece:
            yield OfferedPiece(piece, "the same output was repeated later")


def _offer_superseded_failures(material: TrimMaterial, options: Options) -> Iterator[OfferedPiece]:  # noqa: ARG001
    """Offer inputs and errors of failed calls that later succeeded.

    The later call must use the same tool on the same file, command or address.
    """
    succeeded: dict[tuple[str, str], int] = {}
    for call_id, call in material.calls.items():
        if (
            call.target
            and call_id in material.answered_call_ids
            and call_id not in material.failed_call_ids
        ):
            key = call.tool, call.target
            succeeded[key] = max(
                material.chain_indexes_by_line_number[call.line_number], succeeded.get(key, 0)
            )
    for call_id, failed_call in material.calls.items():
        success_index = succeeded.get((failed_call.tool, failed_call.target), -1)
        if (
            call_id in material.failed_call_ids
            and success_index > material.chain_indexes_by_line_number[failed_call.line_number]
        ):
            for piece in material.pieces_by_call.get(call_id, ()):
                yield OfferedPiece(piece, "failed, and later succeeded")


def _offer_thinking(material: TrimMaterial, options: Options) -> Iterator[OfferedPiece]:  # noqa: ARG001
    """Offer the thinking blocks of all turns before the last one. Each block is offered as a whole.

    The API rejects changed thinking, and needs the thinking of the last turn. An answer that
    contains only thinking is not offered: clients leave such an answer out of requests, but would
    send it if its thinking were removed.
    """
    for piece in _select_pieces_of_kind(THINKING_PIECE, material):
        if (
            piece.line_number not in material.thinking_only_line_numbers
            and material.chain_indexes_by_line_number[piece.line_number]
            < material.last_turn_start_index
        ):
            yield OfferedPiece(piece)


def _make_length_rule(kind: str, threshold_multiple: int = 1) -> TrimRule:
    """Return a rule that offers the long pieces of one kind.

    A piece is long if it has more characters than the threshold of its tool times
    ``threshold_multiple``.
    """

    def offer_long_contents(material: TrimMaterial, options: Options) -> Iterator[OfferedPiece]:
        for piece in _select_pieces_of_kind(kind, material):
            if piece.character_count > threshold_multiple * options.get_threshold_of_tool(
                material.find_tool_name(piece)
            ):
                yield OfferedPiece(piece)

    return offer_long_contents


def _offer_inputs(material: TrimMaterial, options: Options) -> Iterator[OfferedPiece]:
    """Offer long inputs of calls with a result: file contents, edits and commands.

    Inputs that the client needs to resume the session are not offered.
    """
    for offered_piece in _make_length_rule(INPUT_PIECE)(material, options):
        if (
            offered_piece.piece.call_id in material.answered_call_ids
            and offered_piece.piece.call_id not in material.ids_of_calls_with_needed_inputs
        ):
            yield offered_piece


def _offer_answers(material: TrimMaterial, options: Options) -> Iterator[OfferedPiece]:
    """Offer long answers if the options request this: the first N, or all except the last N.

    The first N also include answers that earlier trims replaced.
    """
    if options.assistant:
        long_answers = list(_make_length_rule(TEXT_PIECE)(material, options))
        if options.assistant < 0:
            end = options.assistant
        else:
            end = max(0, options.assistant - material.already_trimmed_answer_count)
        yield from long_answers[:end]


def _select_pieces_of_kind(kind: str, material: TrimMaterial) -> Iterator[Piece]:
    return (piece for piece in material.pieces if piece.kind == kind)


RULES_BY_NAME: dict[str, TrimRule] = {
    "superseded": _offer_superseded_outputs,
    "repeats": _offer_repeated_outputs,
    "failures": _offer_superseded_failures,
    "thinking": _offer_thinking,
    "attachments": _make_length_rule(ATTACHMENT_PIECE),
    "media": lambda material, _: map(OfferedPiece, _select_pieces_of_kind(MEDIA_PIECE, material)),
    "results": _make_length_rule(RESULT_PIECE),
    "inputs": _offer_inputs,
    "pasted": _make_length_rule(PROMPT_PIECE, PASTE_TO_TRIM_THRESHOLD_RATIO),
    "assistant": _offer_answers,
}
"""The rules in the order in which they are applied. The first rules offer the least useful contents.

If there is a target size, the later rules are applied only until it is reached.
"""
