"""Long inputs of tools: contents of files that were written, texts that were edited, long commands."""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.trim.material import Material
from resume_hooks.trim.options import Options
from resume_hooks.trim.pieces import INPUT
from resume_hooks.trim.rules.rule import Pick, Rule


def choose(material: Material, options: Options) -> Iterator[Pick]:
    """Every input over its tool's threshold, once its call was answered."""
    for piece in material.pieces:
        answered = piece.call in material.answered
        if piece.kind == INPUT and answered and piece.characters > options.limit(material.tool(piece)):
            yield Pick(piece)


RULE = Rule("inputs", "file contents and long commands given to tools", choose)
