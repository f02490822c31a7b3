"""Collect the content that rules choose for a smart trim, and the content that a model must judge.

Invariant: the following is never offered, and therefore never trimmed: prompts, recent turns, the
last long answer of every turn, the user's answers to questions, and everything that a trim without
a model would keep.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.plan import TrimmableSession
from resume_hooks.derive.trim.rules import RULES_BY_NAME, TrimMaterial
from resume_hooks.derive.trim.selection import Choice, RecordOrigins, choose_pieces, is_trimmable
from resume_hooks.paths import Where
from resume_hooks.reading.render import render_block_text
from resume_hooks.system.text import format_count, plain_text
from resume_hooks.transcripts.raw_edit import encode_record
from resume_hooks.transcripts.trimmable_pieces import (
    ATTACHMENT_PIECE,
    INPUT_PIECE,
    MEDIA_PIECE,
    RESULT_PIECE,
    TEXT_PIECE,
    Piece,
)

DEFAULT_RULE_NAMES = ("superseded", "repeats", "failures", "thinking")
"""The rules that apply if the user gave no instructions.

They choose only content that is repeated, superseded, or rarely sent to the model. The model is not
asked about this content.
"""

RULE_NAMES_FOR_USER_INSTRUCTIONS = ("thinking",)
"""The rules that apply if the user gave instructions.

Only thinking is chosen by a rule, because a model cannot judge it. Everything else is left to the
model, because the user may want to keep it.
"""

MODEL_RULE_NAME = "smart"  # The model's choices have this name in place of a rule's name.
# Minimum number of characters of an offered piece of content. Its placeholder, which contains a
# description, can have 300 characters.
MIN_CONTENT_CHARACTERS = 400
# Maximum number of pieces of content to offer, largest first. This many pieces need four calls to
# the model, for which there is usually enough time. Sessions of the benchmarks have up to 110
# pieces.
MAX_CANDIDATES = 240
# The numbers of characters that the model sees from the start and from the end of each offered
# piece.
HEAD_CHARACTERS, TAIL_CHARACTERS = (
    400,
    200,
)

_OFFERED_PIECE_KINDS = frozenset(
    {RESULT_PIECE, INPUT_PIECE, MEDIA_PIECE, ATTACHMENT_PIECE, TEXT_PIECE}
)

# Identifies a piece of content by the line number of its record and its address in the record.
ContentKey = tuple[int, tuple[str | int, ...]]


class Candidate(NamedTuple):
    """A piece of content that the model must judge.

    ``number`` identifies it in the text for the model. ``turn_number`` is the number of its turn in
    the live conversation. ``notes`` say, for example, that a call failed or that a later version
    exists. ``excerpt`` is quoted from the session. ``content_hash`` is the hash of the whole content.
    """

    number: int
    piece: Piece
    tool: str
    target: str
    turn_number: int
    token_count: int
    notes: tuple[str, ...]
    excerpt: str
    content_hash: str


@dataclass(frozen=True, slots=True)
class OfferedContents:
    """The pieces of content about which a smart trim decides.

    Rules have already chosen ``rule_choices``, and the model must judge ``candidates``.
    ``omitted_content_count`` is the number of pieces that were left out because there were too
    many.
    """

    trimmable: TrimmableSession
    options: Options
    material: TrimMaterial
    origins: RecordOrigins
    rule_choices: tuple[Choice, ...]
    candidates: tuple[Candidate, ...]
    omitted_content_count: int


def build_smart_options(keep_recent: int | None, rules: Iterable[str]) -> Options:
    """Return the options of a smart trim.

    ``rules`` choose some pieces of content before the model is asked. The model judges only the
    other pieces.
    """
    return Options(threshold=MIN_CONTENT_CHARACTERS, keep_recent=keep_recent, only=tuple(rules))


def select_rule_names(instructions: str) -> tuple[str, ...]:
    """Return the names of the rules for a trim. ``instructions`` are the user's instructions, or ``""``."""
    if instructions.strip():
        return RULE_NAMES_FOR_USER_INSTRUCTIONS
    return DEFAULT_RULE_NAMES


def build_offer(
    trimmable: TrimmableSession,
    options: Options,
    where: Where,
    wanted_keys: AbstractSet[ContentKey] | None = None,
    max_candidates: int = MAX_CANDIDATES,
) -> OfferedContents:
    """Return the content that the rules would trim, and the content that the model must judge.

    The model must judge the pieces with the keys ``wanted_keys`` or, if ``wanted_keys`` is None,
    the ``max_candidates`` largest pieces. Raises SessionNotFound if the file has changed since it
    was read.
    """
    material, origins = trimmable.collect_trim_material(options), trimmable.find_origins(where)
    rule_choices = choose_pieces(
        material, options, origins, trimmable.scale, trimmable.context.tokens
    )
    offerable_pieces = list(
        _select_offerable_pieces(
            material, options, {build_content_key(choice.piece) for choice in rule_choices}
        )
    )
    if wanted_keys is None:
        wanted_keys = set()
        for piece in sorted(offerable_pieces, key=trimmable.scale.tokens_of_piece, reverse=True)[
            :max_candidates
        ]:
            wanted_keys.add(build_content_key(piece))
    candidates = tuple(
        _build_candidates(
            trimmable,
            options,
            material,
            [piece for piece in offerable_pieces if build_content_key(piece) in wanted_keys],
        )
    )
    return OfferedContents(
        trimmable,
        options,
        material,
        origins,
        tuple(rule_choices),
        candidates,
        len(offerable_pieces) - len(candidates),
    )


def build_content_key(piece: Piece) -> ContentKey:
    """Return the key that identifies the content of a piece in its session."""
    return piece.line_number, piece.address


def hash_content(value: object) -> str:
    """Return a hash of ``value``, the content of a piece. Every process computes the same hash."""
    return hashlib.sha256(encode_record({"content": value})).hexdigest()


def _select_offerable_pieces(
    material: TrimMaterial, options: Options, taken_keys: set[ContentKey]
) -> Iterator[Piece]:
    """Yield the contents that the rules have not chosen and that are worth offering, oldest first."""
    # The last long answer of a turn is the turn's result. Shorter answers after it are never
    # offered for trimming.
    texts = []
    for piece in material.pieces:
        if piece.kind == TEXT_PIECE:
            texts.append(piece)
    last_words = set(
        {
            material.find_turn_number(
                material.chain_indexes_by_line_number[piece.line_number]
            ): piece
            for piece in texts
        }.values()
    )
    for piece in material.pieces:
        is_large = (
            piece.character_count >= MIN_CONTENT_CHARACTERS
            or piece.tokens * 4 >= MIN_CONTENT_CHARACTERS
        )
        if (
            piece.kind not in _OFFERED_PIECE_KINDS
            or not is_large
            or build_content_key(piece) in taken_keys
            or piece in last_words
        ):
            continue
        if piece.kind == INPUT_PIECE and (
            piece.call_id not in material.answered_call_ids
            or piece.call_id in material.ids_of_calls_with_needed_inputs
        ):
            continue
        if is_trimmable(material, options, piece, MODEL_RULE_NAME):
            yield piece


def _build_candidates(
    trimmable: TrimmableSession, options: Options, material: TrimMaterial, pieces: Sequence[Piece]
) -> Iterator[Candidate]:
    # The rules that this trim does not apply are still evaluated. Their results become notes for
    # the model.
    hints = (RULES_BY_NAME[name] for name in DEFAULT_RULE_NAMES if name not in options.only)
    outcome_notes = {}
    for rule in hints:
        for pick in rule(material, options):
            outcome_notes[build_content_key(pick.piece)] = pick.reason
    # Maps each file, command or address to the indexes in the chain of the calls with this target.
    call_positions: dict[str, list[int]] = {}
    for call in material.calls.values():
        call_positions.setdefault(call.target, []).append(
            material.chain_indexes_by_line_number[call.line_number]
        )
    for number, (piece, value) in enumerate(
        zip(pieces, trimmable.read_contents(pieces), strict=True), 1
    ):
        position, target = (
            material.chain_indexes_by_line_number[piece.line_number],
            material.find_call_target(piece),
        )
        failure_note = "failed" if piece.call_id in material.failed_call_ids else ""
        if target:
            later_turns = []
            for later_position in call_positions.get(target, ()):
                if later_position > position:
                    later_turns.append(later_position)
        else:
            later_turns = []
        if later_turns:
            later_note = f"{format_count(len(later_turns), 'later call')} with the same target, the last in turn "
        else:
            later_note = ""
        outcome_note = outcome_notes.get(build_content_key(piece)) or (
            later_note and f"{later_note}{material.find_turn_number(max(later_turns))}"
        )
        text = value if isinstance(value, str) else render_block_text(value)
        # The text is shortened first, because an output may be 60 MB long.
        if len(text) > HEAD_CHARACTERS + TAIL_CHARACTERS:
            hidden_note = (
                f"[{len(text) - HEAD_CHARACTERS - TAIL_CHARACTERS:,} characters are not shown]"
            )
            excerpt = f"{plain_text(text[:HEAD_CHARACTERS])}\n{hidden_note}\n{plain_text(text[-TAIL_CHARACTERS:])}"
        else:
            excerpt = plain_text(text)
        yield Candidate(
            number=number,
            piece=piece,
            tool=material.find_tool_name(piece),
            target=target,
            turn_number=material.find_turn_number(position),
            token_count=round(trimmable.scale.tokens_of_piece(piece)),
            notes=tuple(note for note in (failure_note, outcome_note) if note),
            excerpt=excerpt,
            content_hash=hash_content(value),
        )
