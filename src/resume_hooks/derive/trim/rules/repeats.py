"""Outputs that came again word for word: the last one stays."""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.derive.trim.material import Material
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.rules.rule import Pick, Rule
from resume_hooks.transcripts.content import RESULT, Piece


def choose(material: Material, options: Options) -> Iterator[Pick]:  # noqa: ARG001 - the form of every rule
    """Every output of a tool that the same tool gave again later."""
    last: dict[tuple[str, int, int], Piece] = {}
    results = [piece for piece in material.pieces if piece.kind == RESULT]
    for piece in results:
        last[_same(material, piece)] = piece
    for piece in results:
        if last[_same(material, piece)] is not piece:
            yield Pick(piece, "the same output came again later")


def _same(material: Material, piece: Piece) -> tuple[str, int, int]:
    return material.tool(piece), piece.characters, piece.digest


RULE = Rule("repeats", "outputs that came again word for word", choose)
