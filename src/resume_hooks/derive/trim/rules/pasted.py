"""Long pastes within prompts: the beginning and the end stay, since the question stands there."""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.derive.trim.material import Material
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.rules.rule import Pick, Rule
from resume_hooks.transcripts.content import PROMPT

TIMES = 4
"""A prompt is a paste when it is that many times the threshold: nobody types so much."""


def choose(material: Material, options: Options) -> Iterator[Pick]:
    """Every prompt that is far over the threshold."""
    for piece in material.pieces:
        if piece.kind == PROMPT and piece.characters > TIMES * options.limit(""):
            yield Pick(piece)


RULE = Rule("pasted", "the middle of long pastes in prompts", choose)
