"""Images and documents, in prompts and in the outputs of tools."""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.derive.trim.material import Material
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.rules.rule import Pick, Rule
from resume_hooks.transcripts.content import MEDIA


def choose(material: Material, options: Options) -> Iterator[Pick]:  # noqa: ARG001 - the form of every rule
    """Every image and document."""
    for piece in material.pieces:
        if piece.kind == MEDIA:
            yield Pick(piece)


RULE = Rule("media", "images and documents", choose)
