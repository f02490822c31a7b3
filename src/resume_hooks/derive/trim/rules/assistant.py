"""Long answers of the model; only where asked for, since they are what the conversation is about."""

from __future__ import annotations

from collections.abc import Iterator

from resume_hooks.derive.trim.material import Material
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.rules.rule import Pick, Rule
from resume_hooks.transcripts.content import TEXT


def choose(material: Material, options: Options) -> Iterator[Pick]:
    """The first N long answers, those that were trimmed before among them; or all but the last N."""
    if not options.assistant:
        return
    long = [piece for piece in material.pieces if piece.kind == TEXT and piece.characters > options.limit("")]
    end = options.assistant if options.assistant < 0 else max(0, options.assistant - material.answers_gone)
    for piece in long[:end]:
        yield Pick(piece)


RULE = Rule("assistant", "long answers of the model (--assistant N)", choose)
