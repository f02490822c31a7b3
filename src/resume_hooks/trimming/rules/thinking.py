"""Thinking of finished turns, whole blocks only: the API refuses altered ones, and the last turn must keep its own."""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.trimming.material import Material
from resume_hooks.trimming.options import Options
from resume_hooks.trimming.pieces import THINKING
from resume_hooks.trimming.rules.rule import Pick, Rule


def choose(material: Material, options: Options) -> Iterator[Pick]:  # noqa: ARG001 - the form of every rule
    """Every thought before the last turn."""
    for piece in material.pieces:
        if piece.kind == THINKING and material.places[piece.number] < material.last_turn:
            yield Pick(piece)


RULE = Rule("thinking", "thinking of finished turns", choose)
