"""Thinking of finished turns, whole blocks only: the API refuses altered ones, and the last turn must keep its own."""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.derive.trim.material import Material
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.rules.rule import Pick, Rule
from resume_hooks.transcripts.content import THINKING


def choose(material: Material, options: Options) -> Iterator[Pick]:  # noqa: ARG001 - the form of every rule
    """Every thought before the last turn of an answer that says more: others are not sent, but empty ones would be."""
    for piece in material.pieces:
        voiced = piece.kind == THINKING and piece.number not in material.silent
        if voiced and material.places[piece.number] < material.last_turn:
            yield Pick(piece)


RULE = Rule("thinking", "thinking of finished turns", choose)
