"""The offer of a smart trim: contents that rules drop without a question, and numbered contents for a model to judge.

Invariant: prompts, recent turns, the last long answer of every turn, the user's answers to
questions, and contents that an ordinary trim keeps are never offered, so they are never dropped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.plan import Trimmable
from resume_hooks.derive.trim.rules import RULES, TrimMaterial
from resume_hooks.derive.trim.selection import Choice, Origins, choose_pieces, may_go
from resume_hooks.paths import Where
from resume_hooks.reading.render import block_text
from resume_hooks.system.text import format_count, plain_text
from resume_hooks.transcripts.raw_edit import encode
from resume_hooks.transcripts.trimmable_pieces import ATTACHMENT, INPUT, MEDIA, RESULT, TEXT, Piece

CERTAIN = ("superseded", "repeats", "failures", "thinking")
"""Rules that only drop contents that are repeated elsewhere, were superseded, or are hardly ever sent.

They apply without asking the model.
"""

UNJUDGED = ("thinking",)
"""The rules that apply if the user gave instructions.

A model cannot judge thinking, but the user may want anything else.
"""

RULE = "smart"  # the rule name for the model's choices
# minimum characters of an offered content, since a placeholder with a description takes up to 300
LEAST = 400
# maximum number of offered contents, largest first: four calls fit into the usual time (up to 110
# in the corpus)
MOST = 240
HEAD, TAIL = 400, 200  # characters from a content's beginning and end that the model sees

_KINDS = frozenset({RESULT, INPUT, MEDIA, ATTACHMENT, TEXT})

Key = tuple[
    int, tuple[str | int, ...]
]  # the key of a content: its record's line, and its address in the record


class Candidate(NamedTuple):
    """A content for the model to judge, shown under its ``number``; ``excerpt`` is foreign text.

    ``turn`` counts within the live conversation. ``notes`` describe a failure or a later version.
    ``digest`` covers its whole value.
    """

    number: int
    piece: Piece
    tool: str
    target: str
    turn: int
    tokens: int
    notes: tuple[str, ...]
    excerpt: str
    digest: str


@dataclass(frozen=True, slots=True)
class Offer:
    """The contents to decide on; ``taken`` are dropped by rules, ``unshown`` counts those beyond the offer's limit."""

    scanned: Trimmable
    options: Options
    material: TrimMaterial
    origins: Origins
    taken: tuple[Choice, ...]
    candidates: tuple[Candidate, ...]
    unshown: int


def smart_options(keep_recent: int | None, rules: Iterable[str]) -> Options:
    """Return the options of a smart trim in which ``rules`` apply before the model."""
    return Options(threshold=LEAST, keep_recent=keep_recent, only=tuple(rules))


def acting_rules(instructions: str) -> tuple[str, ...]:
    """Return the rules that apply with these instructions of the user."""
    if instructions.strip():
        return UNJUDGED
    return CERTAIN


def make_offer(
    scanned: Trimmable,
    options: Options,
    where: Where,
    wanted: AbstractSet[Key] | None = None,
    most: int = MOST,
) -> Offer:
    """Return an offer: contents that the rules drop, and contents to judge.

    The latter are the ``most`` largest or the ``wanted`` ones. The latter are the ``most`` largest
    or the ``wanted`` ones. Raise SessionNotFound if the file has changed since it was read.
    """
    material, origins = scanned.material(options), scanned.origins(where)
    taken = choose_pieces(material, options, origins, scanned.scale, scanned.context.tokens)
    free = list(_free_pieces(material, options, {key_of(choice.piece) for choice in taken}))
    if wanted is None:
        wanted = set()
        for piece in sorted(free, key=scanned.scale.tokens, reverse=True)[:most]:
            wanted.add(key_of(piece))
    candidates = tuple(
        _candidates_of_pieces(
            scanned, options, material, [piece for piece in free if key_of(piece) in wanted]
        )
    )
    return Offer(
        scanned, options, material, origins, tuple(taken), candidates, len(free) - len(candidates)
    )


def key_of(piece: Piece) -> Key:
    """Return the key of a content within its session."""
    return piece.number, piece.address


def digest_of_content(value: object) -> str:
    """Return a digest that is equal for equal contents in any process."""
    return hashlib.sha256(encode({"content": value})).hexdigest()


def _free_pieces(material: TrimMaterial, options: Options, taken: set[Key]) -> Iterator[Piece]:
    """Yield the remaining contents that are worth an offer, oldest first."""
    # The last long answer of each turn is its result. Shorter answers after it are never offered.
    said = []
    for piece in material.pieces:
        if piece.kind == TEXT:
            said.append(piece)
    last_words = set(
        {material.turn(material.places[piece.number]): piece for piece in said}.values()
    )
    for piece in material.pieces:
        large = piece.characters >= LEAST or piece.tokens * 4 >= LEAST
        if piece.kind not in _KINDS or not large or key_of(piece) in taken or piece in last_words:
            continue
        if piece.kind == INPUT and (
            piece.call not in material.answered or piece.call in material.restored
        ):
            continue
        if may_go(material, options, piece, RULE):
            yield piece


def _candidates_of_pieces(
    scanned: Trimmable, options: Options, material: TrimMaterial, pieces: Sequence[Piece]
) -> Iterator[Candidate]:
    # Rules that do not apply here become hints for the model.
    hints = (RULES[name] for name in CERTAIN if name not in options.only)
    fates = {}
    for rule in hints:
        for pick in rule(material, options):
            fates[key_of(pick.piece)] = pick.why
    calls: dict[str, list[int]] = {}  # indexes of calls by their file, command or address
    for call in material.calls.values():
        calls.setdefault(call.target, []).append(material.places[call.number])
    for number, (piece, value) in enumerate(zip(pieces, scanned.values(pieces), strict=True), 1):
        place, target = material.places[piece.number], material.target(piece)
        failed = "failed" if piece.call in material.failed else ""
        if target:
            later = []
            for other in calls.get(target, ()):
                if other > place:
                    later.append(other)
        else:
            later = []
        if later:
            again = f"{format_count(len(later), 'later call')} on the same, the last in turn "
        else:
            again = ""
        fate = fates.get(key_of(piece)) or (again and f"{again}{material.turn(max(later))}")
        said = value if isinstance(value, str) else block_text(value)
        if len(said) > HEAD + TAIL:  # shorten first: an output may have 60 MB
            hidden = f"[{len(said) - HEAD - TAIL:,} characters are not shown]"
            excerpt = f"{plain_text(said[:HEAD])}\n{hidden}\n{plain_text(said[-TAIL:])}"
        else:
            excerpt = plain_text(said)
        yield Candidate(
            number=number,
            piece=piece,
            tool=material.tool(piece),
            target=target,
            turn=material.turn(place),
            tokens=round(scanned.scale.tokens(piece)),
            notes=tuple(note for note in (failed, fate) if note),
            excerpt=excerpt,
            digest=digest_of_content(value),
        )
