"""Long inputs of tools: contents of files that were written, texts that were edited, long commands."""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.derive.trim.material import Material
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.rules.rule import Pick, Rule
from resume_hooks.transcripts.content import INPUT


def choose(material: Material, options: Options) -> Iterator[Pick]:
    """Every input over its tool's threshold that was answered and that no file is restored from."""
    for piece in material.pieces:
        free = piece.call in material.answered and piece.call not in material.restored
        if piece.kind == INPUT and free and piece.characters > options.limit(material.tool(piece)):
            yield Pick(piece)


RULE = Rule("inputs", "file contents and long commands given to tools", choose)
