"""The prompt of a smart trim: an outline of the session, how it ends, and the offered contents, in bounded parts.

Every foreign line is indented, so that none can pass for the number of a content.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from resume_hooks.derive.trim.plan import ASSISTANT, BEFORE, USER, Trimmable
from resume_hooks.parts.smart_trim.offer import Candidate, Offer
from resume_hooks.reading.char_budget import fit_ends, indent_text
from resume_hooks.system.text import counted, one_line, plain, plain_line
from resume_hooks.transcripts.trimmable_pieces import ATTACHMENT, INPUT, MEDIA, RESULT, TEXT

MAX_CHARACTERS = 60_000  # of the contents in one part, some 17,000 tokens: small models choose worse among more
MAX_PIECES = 60  # contents in one part: each that is chosen takes some 60 tokens of the answer
OUTLINE = 8_000  # characters of the outline, which every part has
ENDING = 1_500  # characters of the last prompt and of the last answer
SUMMARY = 3_000  # characters of a compaction's summary: all that is known of what came before
WORDS = 200  # characters of anything else that was said
TARGET = 160  # characters of the file or command that a content is about
BETWEEN = 3  # messages shown right before a content, at most

_ABOUT = {
    RESULT: "output of",
    INPUT: "input of",
    MEDIA: "image or document",
    ATTACHMENT: "attached by the client",
    TEXT: "said by the assistant",
}


class PromptPart(NamedTuple):
    """A text for one call of the model, and the numbers of the contents in it."""

    text: str
    numbers: frozenset[int]


class _Message(NamedTuple):
    """A message: its place in the conversation, its turn, who said it, and its beginning."""

    place: int
    turn: int
    who: str
    words: str


def parts(offer: Offer) -> list[PromptPart]:
    """The parts in which the offer is shown; none if nothing is offered."""
    scanned = offer.scanned
    messages = list(_messages(offer))
    opening = "\n".join(
        [_outline(scanned, messages), _ending(scanned), "", "PIECES, in order, with what was said between:"]
    )
    done: list[PromptPart] = []
    blocks: list[str] = []
    numbers: list[int] = []
    for candidate, block in zip(offer.candidates, _blocks(offer, messages), strict=True):
        if blocks and (len(blocks) == MAX_PIECES or sum(map(len, blocks)) + len(block) > MAX_CHARACTERS):
            done.append(PromptPart("\n".join([opening, *blocks]), frozenset(numbers)))
            blocks, numbers = [], []
        blocks.append(block)
        numbers.append(candidate.number)
    return [*done, PromptPart("\n".join([opening, *blocks]), frozenset(numbers))] if blocks else done


def _messages(offer: Offer) -> Iterator[_Message]:
    for said in offer.scanned.said():
        limit = SUMMARY if said.who == BEFORE else WORDS
        words = said.first if said.who == USER else one_line(plain_line(said.first[: 10 * limit]), limit)
        if words:
            yield _Message(said.place, offer.material.turn(said.place), said.who, words)


def _outline(scanned: Trimmable, messages: Sequence[_Message]) -> str:
    prompts = [row for row in messages if row.who != ASSISTANT]
    opening = f"OUTLINE of the conversation, {counted(scanned.context.tokens, 'token')}, in the user's words:"
    rows = [_line(row) for row in prompts]
    return fit_ends(opening, rows, OUTLINE, lambda first, last: f"... {last - first + 1} turns are left out")


def _ending(scanned: Trimmable) -> str:
    """The last prompt and the last answer at greater length: what the work is about now."""
    last: dict[str, str] = {}
    for said in scanned.said():
        if said.who == USER or (said.who == ASSISTANT and said.text.strip()):
            last[said.who] = _ends(said.text)
    told = [line for who in (USER, ASSISTANT) if who in last for line in (who, indent_text(plain(last[who])))]
    return "\n".join(["", "HOW IT ENDS (this stays as it is):", *told])


def _ends(text: str) -> str:
    """The two ends of a long text."""
    return text if len(text) <= ENDING else f"{text[: ENDING // 2]}\n...\n{text[-ENDING // 2 :]}"


def _blocks(offer: Offer, messages: Sequence[_Message]) -> Iterator[str]:
    """Each content with what was said right before it."""
    waiting = [row for row in messages if row.who != BEFORE]
    for candidate in offer.candidates:
        place = offer.material.places[candidate.piece.number]
        before = [row for row in waiting if row.place < place]
        waiting = waiting[len(before) :]
        yield "\n".join([*(_line(row) for row in before[-BETWEEN:]), _block(candidate)])


def _line(row: _Message) -> str:
    return f"turn {row.turn} · {row.who}\n{indent_text(row.words)}"


def _block(candidate: Candidate) -> str:
    """A content: its number, what it is, its size, what became of it, and its two ends."""
    piece = candidate.piece
    about = _ABOUT[piece.kind]
    named = one_line(plain_line(f"{about} {candidate.tool} {candidate.target}"[: 10 * TARGET]), TARGET)
    characters = f"{piece.characters:,} characters, " if piece.characters else ""
    size = f"{characters}about {candidate.tokens:,} tokens"
    head = " · ".join([f"#{candidate.number}", f"turn {candidate.turn}", named, size, *candidate.notes])
    return f"{head}\n{indent_text(candidate.excerpt)}"
