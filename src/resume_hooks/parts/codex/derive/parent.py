"""A Codex session as a child takes it over, read once: what is sent of it, and what of its surroundings was told.

Memory is bounded by what would be sent; the rest of the files passes by.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from resume_hooks.errors import NotATranscript, SessionNotFound
from resume_hooks.parts.codex.derive.rollout import Context, Payload, Told
from resume_hooks.parts.codex.transcripts import items as of_items
from resume_hooks.parts.codex.transcripts.history import History, Item
from resume_hooks.parts.codex.transcripts.lines import COMPACTED, ITEM, RolloutLine, rollout_lines
from resume_hooks.parts.codex.transcripts.meta import parse_name, read_meta
from resume_hooks.parts.codex.transcripts.segments import Finder, chain_lines
from resume_hooks.transcripts.placeholders import MARKS, Origin, origin_of
from resume_hooks.transcripts.records import mapping, objects
from resume_hooks.transcripts.tokens import ContextUse

WINDOW = 258_400  # tokens, where no response told the model's
LIMIT = "fallback_token_limit_override"
"""How much of an output a client sends that does not know the model; it is the output's own, so it goes along."""


@dataclass(frozen=True, slots=True)
class CodexParent:
    """A thread: ``items`` are what is sent, oldest first, ``marks`` what a child says of each; ``meta`` its first line.

    ``origins`` say by an item's place where the original is of one that was trimmed before.
    """

    path: str
    meta: Payload
    items: tuple[Item, ...]
    marks: dict[int, dict[str, Any]]
    origins: dict[int, Origin]
    context: tuple[RolloutLine, ...]
    use: ContextUse

    def told(self, edited: dict[int, Told] | None = None) -> list[Told]:
        """The items as a child tells them, with those in their place that were edited."""
        edited = edited or {}
        return [
            edited.get(place) or Told(item.payload, item.timestamp, item.uuid, self.marks.get(place, {}))
            for place, item in enumerate(self.items)
        ]

    def origin(self, place: int) -> Origin:
        """Where an item stands, in the file of whichever thread holds it."""
        item = self.items[place]
        named = parse_name(item.file)
        return Origin(named.thread_id if named else "", item.file, item.uuid, item.number)


def read(path: str, find: Finder, window: int = 0) -> CodexParent:
    """The thread whose newest file lies at ``path``. SessionNotFound, NotATranscript as ``chain_lines``."""
    return _read(path, chain_lines(path, find), window)


def read_left(path: str, find: Finder) -> CodexParent:
    """As much as is there of a thread: its newest file alone where others are gone; no output without its call."""
    try:
        whole = read(path, find)
    except (NotATranscript, SessionNotFound):
        whole = _read(path, rollout_lines(path))
    items = [item.payload for item in whole.items]
    calls = {place for pair in of_items.pairs(items).values() for place in pair}
    kept = [place for place, item in enumerate(items) if of_items.kind(item) not in of_items.OUTPUTS or place in calls]
    places = {old: new for new, old in enumerate(kept)}
    return replace(
        whole,
        items=tuple(whole.items[place] for place in kept),
        marks={places[old]: own for old, own in whole.marks.items() if old in places},
        origins={places[old]: own for old, own in whole.origins.items() if old in places},
    )


def _read(path: str, lines: Iterable[RolloutLine], window: int = 0) -> CodexParent:
    history, context, extras = History(path), Context(), _Extras()
    for line in lines:
        history.take(line)
        context.take(line)
        extras.take(line)
    marks, origins = {}, {}
    for place, item in enumerate(history.items):
        if own := extras.of(item):
            marks[place] = own
            if origin := origin_of(own):
                origins[place] = origin
    use = ContextUse(history.tokens, window or history.window or WINDOW, history.measured)
    return CodexParent(path, read_meta(path).payload, tuple(history.items), marks, origins, tuple(context.lines), use)


class _Extras:
    """What lines say of their items beside the items themselves: our own marks, and how much of an output is sent."""

    def __init__(self) -> None:
        self._by_place: dict[tuple[str, int, int], dict[str, Any]] = {}

    def take(self, line: RolloutLine) -> None:
        """Take in the next line; a compaction makes all before it forgotten."""
        if line.kind == ITEM:
            own = {key: value for key, value in line.record.items() if key in MARKS}
            self._keep(line, -1, own, mapping(line.record, "metadata"))
        elif line.kind == COMPACTED:
            self._by_place.clear()
            for part, metadata in enumerate(objects(line.payload.get("replacement_history_metadata"))):
                self._keep(line, part, {}, metadata)

    def _keep(self, line: RolloutLine, part: int, own: dict[str, Any], metadata: dict[str, Any]) -> None:
        if isinstance(metadata.get(LIMIT), int):
            own["metadata"] = {LIMIT: metadata[LIMIT]}
        if own:
            self._by_place[line.file, line.number, part] = own

    def of(self, item: Item) -> dict[str, Any]:
        """What belongs to an item."""
        return self._by_place.get((item.file, item.number, item.part), {})
