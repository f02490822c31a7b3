"""Bulk that the client attached by itself: files, snippets, output of hooks."""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.trimming.material import Material
from resume_hooks.trimming.options import Options
from resume_hooks.trimming.pieces import ATTACHMENT
from resume_hooks.trimming.rules.rule import Pick, Rule


def choose(material: Material, options: Options) -> Iterator[Pick]:
    """Every attached text over the threshold."""
    for piece in material.pieces:
        if piece.kind == ATTACHMENT and piece.characters > options.limit(""):
            yield Pick(piece)


RULE = Rule("attachments", "files and hook output that the client attached", choose)
