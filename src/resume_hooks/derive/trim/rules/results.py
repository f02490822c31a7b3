"""Outputs of tools that are longer than the threshold."""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.derive.trim.material import Material
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.rules.rule import Pick, Rule
from resume_hooks.transcripts.content import RESULT


def choose(material: Material, options: Options) -> Iterator[Pick]:
    """Every output over its tool's threshold."""
    for piece in material.pieces:
        if piece.kind == RESULT and piece.characters > options.limit(material.tool(piece)):
            yield Pick(piece)


RULE = Rule("results", "tool outputs over the threshold", choose)
