"""Images and documents, in prompts and in the outputs of tools."""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.trimming.material import Material
from resume_hooks.trimming.options import Options
from resume_hooks.trimming.pieces import MEDIA
from resume_hooks.trimming.rules.rule import Pick, Rule


def choose(material: Material, options: Options) -> Iterator[Pick]:  # noqa: ARG001 - the form of every rule
    """Every image and document."""
    for piece in material.pieces:
        if piece.kind == MEDIA:
            yield Pick(piece)


RULE = Rule("media", "images and documents", choose)
