"""Choose the pieces to trim by applying the rules, and make the edits that replace these pieces.

If several rules offer the same piece, the first rule that offers it is used. The module also counts
the savings.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from resume_hooks.derive.child.rewrite_chain import Edit
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.rules import RULES_BY_NAME, OfferedPiece, TrimMaterial
from resume_hooks.transcripts import placeholders
from resume_hooks.transcripts.calibration import TokenScale
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.placeholders import (
    MIN_PLACEHOLDER_CHARACTERS,
    Origin,
    OriginalReference,
)
from resume_hooks.transcripts.records import WRITING_TOOLS, Record
from resume_hooks.transcripts.trimmable_pieces import (
    ATTACHMENT_PIECE,
    INPUT_PIECE,
    MEDIA_PIECE,
    PROMPT_PIECE,
    RESULT_PIECE,
    TEXT_PIECE,
    THINKING_PIECE,
    Piece,
)

HEAD_CHARACTERS, TAIL_CHARACTERS = (
    500,
    300,
    # Number of characters that a trimmed prompt keeps at its start and at its end. The placeholder
    # is on a separate line between these two parts.
)
# Number of characters that are kept from the start of a trimmed command. A space and the
# placeholder follow them.
KEPT_COMMAND_HEAD_CHARACTERS = 120
KEPT_PROMPT_CHARACTERS, KEPT_COMMAND_CHARACTERS = (
    HEAD_CHARACTERS + TAIL_CHARACTERS + 2,
    KEPT_COMMAND_HEAD_CHARACTERS + 1,
)

MAX_LISTED_LARGEST_PIECES = 10  # At most this many pieces are listed individually.
TOOLS_WITH_DISPLAYED_RESULTS = WRITING_TOOLS | {"AskUserQuestion", "ExitPlanMode", "Skill"}
"""Tools whose ``toolUseResult`` is kept.

For these tools, the field is small, or it contains the coloured diff that the screen shows.
"""


class Choice(NamedTuple):
    """A piece to trim, the rule that chose it, and the placeholder that replaces it.

    ``kept_character_count`` is the number of characters of the piece that are kept next to the
    placeholder.
    """

    piece: Piece
    rule: str
    tool: str
    call_target: str
    placeholder: str
    kept_character_count: int

    def count_saved_tokens(self, scale: TokenScale) -> float:
        """Return the number of tokens that trimming this piece saves.

        The result is negative if the placeholder needs more tokens than the piece.
        """
        return scale.tokens_of_piece(self.piece) - scale.tokens_of_text(
            self.piece.line_number, len(self.placeholder) + self.kept_character_count
        )


@dataclass(slots=True)
class RecordOrigins:
    """Finds the original of each record of a session.

    A record that was not trimmed is its own original. The original of a trimmed record is named in
    the fields that the trim added.
    """

    _session_id: str
    _file_path: str
    _origins_by_line_number: dict[int, Origin]
    _uuids_by_line_number: dict[int, str]
    _does_original_exist: Callable[[int], bool]
    _origins: dict[int, Origin] = field(default_factory=dict)

    def find_origin_of_record(self, line_number: int) -> Origin:
        """Return the original of the record in line ``line_number``.

        If a trimmed record names an original that no longer exists, the record itself is returned.
        """
        if line_number not in self._origins:
            own_origin = Origin(
                self._session_id,
                self._file_path,
                self._uuids_by_line_number[line_number],
                line_number,
            )
            named_origin = self._origins_by_line_number.get(line_number)
            self._origins[line_number] = (
                named_origin
                if named_origin is not None and self._does_original_exist(line_number)
                else own_origin
            )
        return self._origins[line_number]


def choose_pieces(
    material: TrimMaterial,
    options: Options,
    origins: RecordOrigins,
    scale: TokenScale,
    context_tokens: int,
) -> list[Choice]:
    """Return the pieces to trim, oldest first.

    ``context_tokens`` is the size of the context. If there is a target size, only as many pieces are
    returned as are needed to reach it. Raises UsageError for an unknown rule.
    """
    choices = list(_choose_by_rules(material, options, origins, scale))
    if options.target_tokens:
        excess_tokens = context_tokens - options.target_tokens
        choices = _select_choices_until_saved(choices, excess_tokens, scale)
        if (
            options.threshold is None
            and sum(choice.count_saved_tokens(scale) for choice in choices) < excess_tokens
        ):
            all_pieces_options = replace(options, threshold=MIN_PLACEHOLDER_CHARACTERS)
            choices = _select_choices_until_saved(
                list(_choose_by_rules(material, all_pieces_options, origins, scale)),
                excess_tokens,
                scale,
            )
    return sorted(
        choices, key=lambda choice: material.chain_indexes_by_line_number[choice.piece.line_number]
    )


def _choose_by_rules(
    material: TrimMaterial, options: Options, origins: RecordOrigins, scale: TokenScale
) -> Iterator[Choice]:
    chosen_keys: set[tuple[int, tuple[str | int, ...]]] = set()
    for name in options.rules():
        for offered_piece in RULES_BY_NAME[name](material, options):
            key = offered_piece.piece.line_number, offered_piece.piece.address
            if key in chosen_keys or not is_trimmable(material, options, offered_piece.piece, name):
                continue
            choice = make_trim_choice(material, offered_piece, name, origins)
            # Clients no longer send certain pieces, for example some thinking. Trimming these saves
            # 0 tokens.
            if choice is not None and choice.count_saved_tokens(scale) >= 0:
                chosen_keys.add(key)
                yield choice


def _select_choices_until_saved(
    choices: Sequence[Choice], excess_tokens: float, scale: TokenScale
) -> list[Choice]:
    """Return the first choices that together save ``excess_tokens`` tokens.

    If all choices together save less, return all of them.
    """
    limited_choices = []
    for choice in choices:
        if excess_tokens <= 0:
            break
        limited_choices.append(choice)
        excess_tokens -= choice.count_saved_tokens(scale)
    return limited_choices


def is_trimmable(material: TrimMaterial, options: Options, piece: Piece, rule: str) -> bool:
    """Check whether a piece may be trimmed: it is not recent, and the options allow its tool."""
    if material.chain_indexes_by_line_number[piece.line_number] >= material.protected_start_index:
        return False
    if (
        piece.kind == THINKING_PIECE
        and material.chain_indexes_by_line_number[piece.line_number]
        >= material.last_turn_start_index
    ):
        return False
    if not piece.call_id:
        return not options.tools or rule in options.only
    return options.allows_tool(material.find_tool_name(piece))


def make_trim_choice(
    material: TrimMaterial, offered_piece: OfferedPiece, rule: str, origins: RecordOrigins
) -> Choice | None:
    """Return a ``Choice`` that replaces the offered piece by a placeholder.

    Return None if the placeholder would not be shorter than the piece.
    """
    piece, tool = offered_piece.piece, material.find_tool_name(offered_piece.piece)
    text = _make_placeholder(piece, tool, origins, offered_piece.reason)
    kept_character_count = {
        PROMPT_PIECE: KEPT_PROMPT_CHARACTERS,
        INPUT_PIECE: KEPT_COMMAND_CHARACTERS if tool == "Bash" else 0,
    }.get(piece.kind, 0)
    if len(text) + kept_character_count >= piece.character_count + 4 * piece.tokens:
        return None
    return Choice(piece, rule, tool, material.find_call_target(piece), text, kept_character_count)


def _make_placeholder(piece: Piece, tool: str, origins: RecordOrigins, reason: str) -> str:
    original = origins.find_origin_of_record(piece.line_number).original_reference
    if piece.kind == RESULT_PIECE:
        return placeholders.result_placeholder(tool, piece.character_count, original, reason)
    if piece.kind == INPUT_PIECE:
        return placeholders.input_placeholder(tool, piece.character_count, original, reason)
    if piece.kind == MEDIA_PIECE:
        return placeholders.media_placeholder(piece.tokens, original, reason)
    if piece.kind == PROMPT_PIECE:
        return placeholders.pasted_text_placeholder(
            piece.character_count - HEAD_CHARACTERS - TAIL_CHARACTERS, original, reason
        )
    if piece.kind == THINKING_PIECE:
        return ""  # An empty answer is neither sent nor shown. A placeholder would be both.
    makers = {
        ATTACHMENT_PIECE: placeholders.attachment_placeholder,
        TEXT_PIECE: placeholders.response_placeholder,
    }
    return makers[piece.kind](piece.character_count, original, reason)


def make_trim_edits(choices: Sequence[Choice], origins: RecordOrigins) -> dict[int, Edit]:
    """Return a dict from line numbers to the edits that trim the records in these lines."""
    by_record: defaultdict[int, list[Choice]] = defaultdict(list)
    for choice in choices:
        by_record[choice.piece.line_number].append(choice)
    return {
        number: TrimEdit(tuple(chosen), origins.find_origin_of_record(number))
        for number, chosen in by_record.items()
    }


class TrimEdit:
    """An edit that replaces the chosen pieces of one record with placeholders.

    It also adds fields that name the original of the record.
    """

    def __init__(self, choices: tuple[Choice, ...], origin: Origin) -> None:
        self._choices = choices
        self._origin = origin

    def __call__(self, record: Record) -> Record:
        """Return the trimmed record. The edit also modifies the dict ``record`` itself."""
        for choice in self._choices:
            _apply_choice_to_record(record, choice)
        if any(choice.piece.kind == THINKING_PIECE for choice in self._choices):
            # A record that contained only thinking becomes empty. Clients skip an empty record if
            # the same answer has other records. A placeholder would look like the model's own
            # words.
            record["message"]["content"] = [
                block for block in record["message"]["content"] if block is not None
            ]
        if any(
            choice.piece.kind in {RESULT_PIECE, MEDIA_PIECE}
            and choice.tool not in TOOLS_WITH_DISPLAYED_RESULTS
            for choice in self._choices
        ):
            # This is the record's copy of the output, which only the screen needs.
            record.pop("toolUseResult", None)
        return {
            **record,
            **self._origin.make_trim_fields(
                min(choice.piece.block_index for choice in self._choices)
            ),
        }


def add_edits_of_large_results(
    edits: Mapping[int, Edit], chain: Iterable[Node], origins: RecordOrigins, max_record_bytes: int
) -> dict[int, Edit]:
    """Return edits that also remove the screen's copy of a result from large records.

    A record is large if it has more than ``max_record_bytes`` bytes.
    """
    return {
        node.line_number: _ResultCopyRemovalEdit(
            edits.get(node.line_number), origins.find_origin_of_record(node.line_number)
        )
        for node in chain
        if node.answered_call_ids and node.line_length > max_record_bytes
    }


class _ResultCopyRemovalEdit:
    """An edit that removes ``toolUseResult`` from a record, after applying another edit if there is one.

    Without another edit, it also adds the fields that name the record's original.
    """

    def __init__(self, first: Edit | None, origin: Origin) -> None:
        self._first_edit = first
        self._origin = origin

    def __call__(self, record: Record) -> Record | None:
        edited = self._first_edit(record) if self._first_edit else record
        if edited is None or "toolUseResult" not in edited:
            return edited
        kept = {}
        for key, value in edited.items():
            if key != "toolUseResult":
                kept[key] = value
        if self._first_edit:
            return kept
        return {**kept, **self._origin.make_trim_fields(0)}


def _apply_choice_to_record(record: Record, choice: Choice) -> None:
    *path, last_key = choice.piece.address
    container: Any = record
    for key in path:
        container = container[key]
    if choice.piece.kind == THINKING_PIECE:
        container[last_key] = None
    elif choice.piece.kind == MEDIA_PIECE:
        container[last_key] = {"type": "text", "text": choice.placeholder}
    elif choice.piece.kind == PROMPT_PIECE:
        prompt = container[last_key]
        container[last_key] = (
            f"{prompt[:HEAD_CHARACTERS]}\n{choice.placeholder}\n{prompt[-TAIL_CHARACTERS:]}"
        )
    elif choice.piece.kind == INPUT_PIECE and choice.tool == "Bash":
        container[last_key] = (
            f"{container[last_key][:KEPT_COMMAND_HEAD_CHARACTERS]} {choice.placeholder}"
        )
    else:
        container[last_key] = choice.placeholder


class SavingsRow(NamedTuple):
    """The savings of one rule or one tool.

    ``piece_count`` is the number of trimmed pieces. ``tokens_before`` is the size of these pieces,
    and ``tokens_after`` is the size of their placeholders.
    """

    name: str
    piece_count: int
    tokens_before: int
    tokens_after: int


class LargestPiece(NamedTuple):
    """One of the largest trimmed pieces, with a reference to its original."""

    original_reference: OriginalReference
    rule: str
    tool: str
    target: str
    tokens: int


class Savings(NamedTuple):
    """The savings of a trim.

    ``saved_character_count`` is the number of characters that the trim removes. ``characters_per_token`` was
    measured in this session.
    """

    tokens: int
    saved_character_count: int
    characters_per_token: float
    savings_by_rule: tuple[SavingsRow, ...]
    savings_by_tool: tuple[SavingsRow, ...]
    largest_pieces: tuple[LargestPiece, ...]


def count_savings(
    choices: Sequence[Choice], origins: RecordOrigins, scale: TokenScale, max_tokens: int
) -> Savings:
    """Count the savings of ``choices``.

    ``max_tokens`` is the size of the context. The savings cannot exceed this size.
    """
    largest = sorted(choices, key=lambda choice: scale.tokens_of_piece(choice.piece), reverse=True)[
        :MAX_LISTED_LARGEST_PIECES
    ]
    return Savings(
        tokens=min(max_tokens, round(sum(choice.count_saved_tokens(scale) for choice in choices))),
        saved_character_count=sum(
            max(
                0,
                choice.piece.character_count
                - len(choice.placeholder)
                - choice.kept_character_count,
            )
            for choice in choices
        ),
        characters_per_token=round(scale.characters_per_token, 2),
        savings_by_rule=_group_savings(choices, scale, lambda choice: choice.rule),
        savings_by_tool=_group_savings(
            [choice for choice in choices if choice.tool], scale, lambda choice: choice.tool
        ),
        largest_pieces=tuple(
            LargestPiece(
                origins.find_origin_of_record(choice.piece.line_number).original_reference,
                choice.rule,
                choice.tool,
                choice.call_target,
                round(scale.tokens_of_piece(choice.piece)),
            )
            for choice in largest
        ),
    )


def _group_savings(
    choices: Sequence[Choice], scale: TokenScale, get_name: Callable[[Choice], str]
) -> tuple[SavingsRow, ...]:
    groups: dict[str, list[Choice]] = {}
    for choice in choices:
        groups.setdefault(get_name(choice), []).append(choice)
    rows = []
    for name, chosen in groups.items():
        before = sum(scale.tokens_of_piece(choice.piece) for choice in chosen)
        saved = sum(choice.count_saved_tokens(scale) for choice in chosen)
        rows.append(SavingsRow(name, len(chosen), round(before), round(before - saved)))
    return tuple(sorted(rows, key=lambda row: row.tokens_after - row.tokens_before))
