"""A Codex session as a child takes it over, read once: what is sent of it, and what of its surroundings was told.

Memory is bounded by what would be sent; the rest of the files passes by. A trimmed child is sent what its parent is,
but for placeholders in the place of bulky contents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from resume_hooks import settings
from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.plan import ASSISTANT, BEFORE, USER, Decision, Words
from resume_hooks.derive.trim.rules import TrimMaterial
from resume_hooks.derive.trim.selection import Choice, Origins
from resume_hooks.errors import NotATranscript, SessionNotFound
from resume_hooks.parts.codex.derive import pieces as contents
from resume_hooks.parts.codex.derive.rollout import RolloutBody, item_record, told_body
from resume_hooks.parts.codex.transcripts import items as of_items
from resume_hooks.parts.codex.transcripts.history import History, Item
from resume_hooks.parts.codex.transcripts.lines import COMPACTED, CONTEXT, ITEM, WORLD, RolloutLine, rollout_lines
from resume_hooks.parts.codex.transcripts.meta import read_meta
from resume_hooks.parts.codex.transcripts.segments import Finder, chain_lines
from resume_hooks.paths import Where
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.text import one_line, plain_line
from resume_hooks.transcripts.calibration import Scale
from resume_hooks.transcripts.placeholders import MARKS, Origin, origin_of
from resume_hooks.transcripts.records import Record, mapping, objects
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN, ContextUse
from resume_hooks.transcripts.trimmable_pieces import Piece

WINDOW = 258_400  # tokens, where no response told the model's
READ, FIRST = 2_000, 200  # characters of a prompt that are looked at, and that its first words are
LIMIT = "fallback_token_limit_override"
"""How much of an output a client sends that does not know the model; it is the output's own, so it goes along."""


@dataclass(frozen=True, slots=True)
class CodexThread:
    """A thread: ``items`` are what is sent, oldest first, ``told`` the lines in which a child says each of them.

    ``meta`` is its first line, ``numbers`` are the lines of its items as references name them, by their ids.
    """

    session: SessionFile
    meta: Record
    items: tuple[Item, ...]
    told: tuple[Record, ...]
    surroundings: tuple[RolloutLine, ...]
    context: ContextUse
    numbers: Mapping[str, int] = field(default_factory=dict)

    @property
    def scale(self) -> Scale:
        """What its pieces weigh: the client counts what no file holds, too, so the count tells no ratio."""
        return Scale(CHARACTERS_PER_TOKEN, {}, {})

    @property
    def trimmed(self) -> dict[int, Origin]:
        """Where the originals are of the items that were trimmed before, by their places."""
        marks = ({key: record[key] for key in MARKS & record.keys()} for record in self.told)
        return {place: origin for place, own in enumerate(marks) if own and (origin := origin_of(own))}

    def material(self, options: Options) -> TrimMaterial:
        """What can be trimmed of its items."""
        return contents.material([item.payload for item in self.items], options)

    def origins(self, where: Where) -> Origins:  # noqa: ARG002 - as of any session
        """Its own lines, and for what was trimmed before what is said of it."""
        own = str(self.meta.get("id"))
        uuids = {place: item.uuid for place, item in enumerate(self.items)}
        file, lines = self.session.original, self.numbers
        here = {place: Origin(own, file, uuid, lines.get(uuid, 0)) for place, uuid in uuids.items()}
        return Origins(own, file, here | self.trimmed, uuids, lambda _: True)

    def values(self, pieces: Iterable[Piece]) -> Iterator[Any]:
        """The contents in its items."""
        return (contents.value(self.items[piece.number].payload, piece.address) for piece in pieces)

    def said(self) -> Iterator[Words]:
        """Prompts, answers and the summary of a compaction."""
        for place, item in enumerate(self.items):
            if who := _who(item.payload):
                text = of_items.request_text(item.payload) if who == USER else of_items.text(item.payload)
                yield Words(place, who, text, one_line(plain_line(text[:READ]), FIRST) if who == USER else text)

    def body(self, child: Draft, head: bytes, options: Options, decision: Decision) -> RolloutBody:  # noqa: ARG002
        """The same items, in which what was chosen is placeholders."""
        chosen: defaultdict[int, list[Choice]] = defaultdict(list)
        for choice in decision.choices:
            chosen[choice.piece.number].append(choice)
        edited = {
            place: {
                **self.told[place],
                "payload": contents.edited(self.items[place].payload, choices),
                **decision.origins.of(place).marks(0),
            }
            for place, choices in chosen.items()
        }
        return self.child_body(child, head, edited)

    def child_body(self, child: Draft, head: bytes, edited: Mapping[int, Record]) -> RolloutBody:
        """A child that is told its items, with those in their place that were edited."""
        told = [edited.get(place, record) for place, record in enumerate(self.told)]
        return told_body(child, head, self.meta, told, self.surroundings)


def _who(item: Record) -> str:
    """Who said a message; "" for any other item, and for what the harness said."""
    if of_items.is_prompt(item):
        return USER
    if of_items.is_summary(item):
        return BEFORE
    return ASSISTANT if of_items.kind(item) == of_items.MESSAGE and item.get("role") == "assistant" else ""


def read(session: SessionFile, find: Finder) -> CodexThread:
    """The thread that a session is. SessionNotFound, NotATranscript as ``chain_lines``."""
    return _read(session, chain_lines(session.original, find))


def read_left(session: SessionFile, find: Finder) -> CodexThread:
    """As much as is there of a thread: its newest file alone where others are gone; no output without its call."""
    try:
        whole = read(session, find)
    except (NotATranscript, SessionNotFound):
        whole = _read(session, rollout_lines(session.original))
    items = [item.payload for item in whole.items]
    calls = {place for pair in of_items.pairs(items).values() for place in pair}
    kept = [place for place, item in enumerate(items) if of_items.kind(item) not in of_items.OUTPUTS or place in calls]
    return replace(whole, items=tuple(whole.items[at] for at in kept), told=tuple(whole.told[at] for at in kept))


def _read(session: SessionFile, lines: Iterable[RolloutLine]) -> CodexThread:
    history, marks, window = History(session.original), _Marks(), settings.number("context_window")
    # What the client believes to have told of its surroundings: the last whole state, what changed since, a turn's own.
    world, turn = list[RolloutLine](), list[RolloutLine]()
    for line in lines:
        history.take(line)
        marks.take(line)
        if line.kind == CONTEXT:
            turn = [line]
        elif line.kind == WORLD:
            if line.payload.get("full"):
                world.clear()
            world.append(line)
    return CodexThread(
        session=session,
        meta=read_meta(session.original).payload,
        items=tuple(history.items),
        told=tuple(item_record(item.payload, item.timestamp, item.uuid, marks.of(item)) for item in history.items),
        surroundings=(*world, *turn),
        context=ContextUse(history.tokens, window or history.window or WINDOW, history.measured),
    )


class _Marks:
    """What lines say of their items beside the items themselves: our own marks, and how much of an output is sent."""

    def __init__(self) -> None:
        self._by_place: dict[tuple[str, int, int], Record] = {}

    def take(self, line: RolloutLine) -> None:
        """Take in the next line; a compaction makes all before it forgotten."""
        if line.kind == ITEM:
            own = {key: value for key, value in line.record.items() if key in MARKS}
            self._keep(line, -1, own, mapping(line.record, "metadata"))
        elif line.kind == COMPACTED:
            self._by_place.clear()
            for part, metadata in enumerate(objects(line.payload.get("replacement_history_metadata"))):
                self._keep(line, part, {}, metadata)

    def _keep(self, line: RolloutLine, part: int, own: Record, metadata: Record) -> None:
        if isinstance(metadata.get(LIMIT), int):
            own["metadata"] = {LIMIT: metadata[LIMIT]}
        if own:
            self._by_place[line.file, line.number, part] = own

    def of(self, item: Item) -> Record:
        """What belongs to an item."""
        return self._by_place.get((item.file, item.number, item.part), {})
