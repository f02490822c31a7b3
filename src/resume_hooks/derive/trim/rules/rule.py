"""What a rule is: a name, what it is about, and a choice among the pieces of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from resume_hooks.derive.trim.material import Material
from resume_hooks.derive.trim.options import Options
from resume_hooks.transcripts.content import Piece


class Pick(NamedTuple):
    """A piece that a rule gives up; ``why`` stands in the placeholder where the kind alone doesn't say it."""

    piece: Piece
    why: str = ""


class Rule(NamedTuple):
    """A rule. ``about`` is shown to people; ``choose`` names pieces anywhere, the plan leaves protected ones alone."""

    name: str
    about: str
    choose: Callable[[Material, Options], Iterator[Pick]]
