"""Thinking of finished turns, whole blocks only: the API refuses altered ones, and the last turn must keep its own."""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.trimming.material import Material
from resume_hooks.trimming.options import Options
from resume_hooks.trimming.pieces import THINKING
from resume_hooks.trimming.rules.rule import Pick, Rule


def choose(material: Material, options: Options) -> Iterator[Pick]:  # noqa: ARG001 - the form of every rule
    """Every thought before the last turn of an answer that says more: others are not sent, but empty ones would be."""
    for piece in material.pieces:
        voiced = piece.kind == THINKING and piece.number not in material.silent
        if voiced and material.places[piece.number] < material.last_turn:
            yield Pick(piece)


RULE = Rule("thinking", "thinking of finished turns", choose)
