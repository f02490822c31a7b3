"""What a trim decides, whoever wrote the session: what can go is weighed, what goes is counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, Protocol

from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.child.write import Body, ChildPlan
from resume_hooks.derive.trim.calibration import Scale
from resume_hooks.derive.trim.candidates import TrimMaterial
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.savings import Savings, savings_of
from resume_hooks.derive.trim.selection import Choice, Origins, choose
from resume_hooks.paths import Where
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.transcripts import tokens
from resume_hooks.transcripts.tokens import ContextUse
from resume_hooks.transcripts.trimmable_pieces import RESULT, TEXT, THINKING, Piece

USER, ASSISTANT, BEFORE = "the user", "the assistant", "summary of what came before"


class Words(NamedTuple):
    """Something that was said: its place among the material's, who said it, its text, and how that begins."""

    place: int
    who: str
    text: str
    first: str


class Trimmable(Protocol):
    """A session as a trim reads it, whoever wrote it."""

    @property
    def session(self) -> SessionFile:
        """Which it is."""

    @property
    def context(self) -> ContextUse:
        """What the client would send of it."""

    @property
    def scale(self) -> Scale:
        """What its pieces weigh."""

    def material(self, options: Options) -> TrimMaterial:
        """What can be trimmed of it."""

    def origins(self, where: Where) -> Origins:
        """Where the originals of its records are."""

    def values(self, pieces: Iterable[Piece]) -> Iterator[Any]:
        """The contents of pieces of its material, as they stand in it."""

    def said(self) -> Iterator[Words]:
        """The words of both sides, oldest first."""

    def body(self, child: Draft, head: bytes, options: Options, decision: Decision) -> Body:
        """What a trimmed child holds behind its first line, ``head``."""


class Decision(NamedTuple):
    """What a trim takes out, and its numbers: ``before`` and ``after`` are what the client would send.

    ``thoughts`` are digests of the thinking that stays, ``unknown_tools`` those of the options that were never called.
    """

    choices: tuple[Choice, ...]
    savings: Savings
    before: ContextUse
    after: ContextUse
    thoughts: frozenset[int]
    origins: Origins
    unknown_tools: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimPlan(ChildPlan):
    """A trimmed child, and the numbers that a person decides by."""

    options: Options
    decision: Decision

    @property
    def choices(self) -> tuple[Choice, ...]:
        """What goes."""
        return self.decision.choices

    @property
    def savings(self) -> Savings:
        """What that saves."""
        return self.decision.savings

    @property
    def before(self) -> ContextUse:
        """What the client would send of the session."""
        return self.decision.before

    @property
    def after(self) -> ContextUse:
        """What it would send of the child."""
        return self.decision.after

    @property
    def pays(self) -> bool:
        """Whether the trim saves enough to be worth a new session."""
        return bool(self.options.screen) or (bool(self.choices) and self.savings.tokens >= self.options.min_savings)

    @property
    def is_idle(self) -> bool:
        """Whether the trim does not pay."""
        return not self.pays

    @property
    def rollover_tokens(self) -> int:
        """Tokens of a fresh child that holds the lineage alone."""
        return round(len(self.draft.block) / tokens.CHARACTERS_PER_TOKEN)


def decide(scanned: Trimmable, options: Options, where: Where) -> Decision:
    """Decide what goes, and count it. UsageError for options that can't be meant."""
    origins, trimmable = scanned.origins(where), scanned.material(options)
    choices = choose(trimmable, options, origins, scanned.scale, scanned.context.tokens)
    return decision_of(scanned, options, trimmable, choices, origins)


def decision_of(
    scanned: Trimmable, options: Options, trimmable: TrimMaterial, choices: Sequence[Choice], origins: Origins
) -> Decision:
    """Count what these ``choices`` among the material come to, whoever made them."""
    before = scanned.context
    savings = savings_of(choices, origins, scanned.scale, before.tokens)
    gone = {(choice.piece.number, choice.piece.address) for choice in choices}
    kept = (p for p in trimmable.pieces if p.kind == THINKING and (p.number, p.address) not in gone)
    return Decision(
        choices=tuple(choices),
        savings=savings,
        before=before,
        after=before._replace(tokens=before.tokens - savings.tokens),
        thoughts=frozenset(piece.digest for piece in kept),
        origins=origins,
        unknown_tools=_unknown(options.tools, trimmable),
    )


def parameters(options: Options) -> dict[str, object]:
    """How a trim was asked for, as its child tells it."""
    return {
        "target_tools": list(options.tools),
        "threshold": options.limit(""),
        "trim_assistant_messages": options.assistant or False,
        "keep_recent": options.usual_recent if options.keep_recent is None else options.keep_recent,
        "rules": options.rules(),
    }


def stats(decision: Decision) -> dict[str, int]:
    """What a trim came to, as its child tells it."""
    return {
        "original_tokens": decision.before.tokens,
        "trimmed_tokens": decision.after.tokens,
        "tools_trimmed": tools_trimmed(decision.choices),
        "assistant_trimmed": sum(choice.piece.kind == TEXT for choice in decision.choices),
        "chars_saved": decision.savings.characters,
    }


def _unknown(tools: tuple[str, ...], trimmable: TrimMaterial) -> tuple[str, ...]:
    called = {call.tool.lower() for call in trimmable.calls.values()}
    return tuple(pattern for pattern in tools if not any(fnmatchcase(name, pattern) for name in called))


def tools_trimmed(choices: tuple[Choice, ...]) -> int:
    """How many outputs of tools are trimmed."""
    return len({choice.piece.call for choice in choices if choice.piece.kind == RESULT})
