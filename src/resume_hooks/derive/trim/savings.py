"""What a trim saves, in tokens of what the client would send: in all, by rule, by tool, and the largest items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from resume_hooks.derive.trim.calibration import Scale
from resume_hooks.derive.trim.selection import Choice, Origins
from resume_hooks.transcripts.placeholders import OriginalReference

LARGEST = 10  # pieces that are named one by one


class SavingsRow(NamedTuple):
    """What goes by one name: how many pieces, and their tokens before and after."""

    name: str
    pieces: int
    tokens_before: int
    tokens_after: int


class LargestPiece(NamedTuple):
    """One of the largest pieces and where its original is."""

    original: OriginalReference
    rule: str
    tool: str
    target: str
    tokens: int


class Savings(NamedTuple):
    """The numbers of a trim. ``characters`` less in what is sent; ``ratio`` characters a token, the session's own."""

    tokens: int
    characters: int
    ratio: float
    rules: tuple[SavingsRow, ...]
    tools: tuple[SavingsRow, ...]
    largest: tuple[LargestPiece, ...]


def savings_of(choices: Sequence[Choice], origins: Origins, scale: Scale, most: int) -> Savings:
    """Count what ``choices`` save; at most ``most`` tokens, what is sent in all."""
    largest = sorted(choices, key=lambda choice: scale.tokens(choice.piece), reverse=True)[:LARGEST]
    return Savings(
        tokens=min(most, round(sum(choice.tokens_saved(scale) for choice in choices))),
        characters=sum(max(0, choice.piece.characters - len(choice.placeholder) - choice.kept) for choice in choices),
        ratio=round(scale.ratio, 2),
        rules=_rows(choices, scale, lambda choice: choice.rule),
        tools=_rows([choice for choice in choices if choice.tool], scale, lambda choice: choice.tool),
        largest=tuple(
            LargestPiece(
                origins.of(choice.piece.number).reference,
                choice.rule,
                choice.tool,
                choice.target,
                round(scale.tokens(choice.piece)),
            )
            for choice in largest
        ),
    )


def _rows(choices: Sequence[Choice], scale: Scale, name_of: Callable[[Choice], str]) -> tuple[SavingsRow, ...]:
    groups: dict[str, list[Choice]] = {}
    for choice in choices:
        groups.setdefault(name_of(choice), []).append(choice)
    rows = []
    for name, chosen in groups.items():
        before = sum(scale.tokens(choice.piece) for choice in chosen)
        saved = sum(choice.tokens_saved(scale) for choice in chosen)
        rows.append(SavingsRow(name, len(chosen), round(before), round(before - saved)))
    return tuple(sorted(rows, key=lambda row: row.tokens_after - row.tokens_before))
