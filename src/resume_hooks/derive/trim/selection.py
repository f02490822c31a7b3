"""Selection: which pieces a trim gives up, each by the first rule that names it, and what stands for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from resume_hooks.derive.trim.calibration import Scale
from resume_hooks.derive.trim.material import Material
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.rules.rule import Pick
from resume_hooks.derive.trim.rules.table import RULES
from resume_hooks.errors import UsageError
from resume_hooks.transcripts import placeholders
from resume_hooks.transcripts.content import ATTACHMENT, INPUT, MEDIA, PROMPT, RESULT, TEXT, THINKING, Piece
from resume_hooks.transcripts.original_ref import Origin
from resume_hooks.transcripts.placeholders import SHORTEST

OFF = frozenset({"assistant"})
"""Rules that act only where they are asked for."""

HEAD, TAIL = 500, 300
"""Characters of a long prompt that stay at its two ends, each on a line of its own."""

COMMAND_HEAD = 120
"""Characters of a long command that stay, and a space."""

KEPT_OF_PROMPT, KEPT_OF_COMMAND = HEAD + TAIL + 2, COMMAND_HEAD + 1


class Choice(NamedTuple):
    """A piece that is given up, the rule that named it, and the text that stands for what is taken out."""

    piece: Piece
    rule: str
    tool: str
    target: str
    placeholder: str
    kept: int

    def tokens_saved(self, scale: Scale) -> float:
        """Tokens less; below zero where the placeholder costs more than the piece ever did."""
        return scale.tokens(self.piece) - scale.tokens_of_text(self.piece.number, len(self.placeholder) + self.kept)


def choose(material: Material, options: Options, origins: Origins, scale: Scale, tokens: int) -> list[Choice]:
    """The choices of a trim, oldest first; with a target only as many as bring ``tokens`` down to it.

    Raises UsageError for a rule that does not exist.
    """
    choices = list(_choices(material, options, origins, scale))
    if options.target_tokens:
        choices = _until(choices, tokens - options.target_tokens, scale)
        if options.threshold is None and _missing(choices, tokens - options.target_tokens, scale) > 0:
            every = replace(options, threshold=SHORTEST)
            choices = _until(list(_choices(material, every, origins, scale)), tokens - options.target_tokens, scale)
    return sorted(choices, key=lambda choice: material.places[choice.piece.number])


class Origins:
    """Where the originals of a session's records are: in itself, or where a record that was trimmed before says."""

    def __init__(
        self,
        session_id: str,
        file: str,
        known: dict[int, Origin],
        uuids: dict[int, str],
        leads: Callable[[int], bool],
    ) -> None:
        self._session_id = session_id
        self._file = file
        self._known = known
        self._uuids = uuids
        self._leads = leads
        self._found: dict[int, Origin] = {}

    def of(self, number: int) -> Origin:
        """The origin of the record in line ``number``; one that is known counts as long as it leads somewhere."""
        if number not in self._found:
            own = Origin(self._session_id, self._file, self._uuids[number], number)
            known = self._known.get(number)
            self._found[number] = known if known is not None and self._leads(number) else own
        return self._found[number]


def rules_of(options: Options) -> list[str]:
    """The names of the rules that act, in their order. UsageError for one that does not exist, or could do nothing."""
    for name in (*options.only, *options.skip):
        if name not in RULES:
            raise UsageError(f"There is no rule '{name}'", f"Rules: {', '.join(RULES)}.")
    if "assistant" in options.only and not options.assistant:
        raise UsageError(
            "The rule 'assistant' needs to know how many", "Add --assistant N, or -N for all but the last N."
        )
    wanted = options.only or tuple(name for name in RULES if name not in OFF or options.assistant)
    return [name for name in RULES if name in wanted and name not in options.skip]


def _choices(material: Material, options: Options, origins: Origins, scale: Scale) -> Iterator[Choice]:
    taken: set[tuple[int, tuple[str | int, ...]]] = set()
    for name in rules_of(options):
        for pick in RULES[name].choose(material, options):
            piece = pick.piece
            key = piece.number, piece.address
            if key in taken or not is_free(material, options, piece, name):
                continue
            choice = choice_of(material, pick, name, origins)
            if choice is not None and choice.tokens_saved(scale) >= 0:  # zero: a thought that is not sent any more
                taken.add(key)
                yield choice


def is_free(material: Material, options: Options, piece: Piece, rule: str) -> bool:
    """Whether a piece may go: not recent, not a tool's that was not asked for."""
    if material.places[piece.number] >= material.protected:
        return False
    if piece.kind == THINKING and material.places[piece.number] >= material.last_turn:
        return False
    if not piece.call:
        return not options.tools or rule in options.only
    return options.allows(material.tool(piece))


def choice_of(material: Material, pick: Pick, rule: str, origins: Origins) -> Choice | None:
    """The choice of a piece; None where its placeholder would be no shorter than itself."""
    piece, tool = pick.piece, material.tool(pick.piece)
    text = _placeholder(piece, tool, origins, pick.why)
    kept = {PROMPT: KEPT_OF_PROMPT, INPUT: KEPT_OF_COMMAND if tool == "Bash" else 0}.get(piece.kind, 0)
    if len(text) + kept >= piece.characters + 4 * piece.tokens:
        return None
    return Choice(piece, rule, tool, material.target(piece), text, kept)


def _placeholder(piece: Piece, tool: str, origins: Origins, why: str) -> str:
    at = origins.of(piece.number).reference
    if piece.kind == RESULT:
        return placeholders.for_result(tool, piece.characters, at, why)
    if piece.kind == INPUT:
        return placeholders.for_input(tool, piece.characters, at, why)
    if piece.kind == MEDIA:
        return placeholders.for_media(piece.tokens, at, why)
    if piece.kind == PROMPT:
        return placeholders.for_pasted(piece.characters - HEAD - TAIL, at, why)
    if piece.kind == THINKING:
        return ""  # no client sends or shows what an empty answer stands for
    make = {ATTACHMENT: placeholders.for_attachment, TEXT: placeholders.for_text}
    return make[piece.kind](piece.characters, at, why)


def _until(choices: Sequence[Choice], excess: float, scale: Scale) -> list[Choice]:
    """As many choices from the front as save ``excess`` tokens, or all."""
    taken = []
    for choice in choices:
        if excess <= 0:
            break
        taken.append(choice)
        excess -= choice.tokens_saved(scale)
    return taken


def _missing(choices: Sequence[Choice], excess: float, scale: Scale) -> float:
    return excess - sum(choice.tokens_saved(scale) for choice in choices)
