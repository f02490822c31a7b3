"""Bulk that the client attached by itself: files, snippets, output of hooks."""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.derive.trim.material import Material
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.rules.rule import Pick, Rule
from resume_hooks.transcripts.content import ATTACHMENT


def choose(material: Material, options: Options) -> Iterator[Pick]:
    """Every attached text over the threshold."""
    for piece in material.pieces:
        if piece.kind == ATTACHMENT and piece.characters > options.limit(""):
            yield Pick(piece)


RULE = Rule("attachments", "files and hook output that the client attached", choose)
