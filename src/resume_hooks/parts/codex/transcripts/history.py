"""Build the effective history that a resumed thread sends to its model: items, turns and size in tokens.

The rules are Codex's own: the newest compaction replaces everything before it, later items follow,
and rolled-back turns are removed. Lines are streamed, and replaced items are not kept in memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from resume_hooks.parts.codex.transcripts import items as codex_items
from resume_hooks.parts.codex.transcripts.lines import COMPACTED, EVENT, ITEM, META, RolloutLine
from resume_hooks.parts.codex.transcripts.meta import parse_meta
from resume_hooks.paths import is_session_id
from resume_hooks.transcripts.records import (
    Record,
    get_mapping,
    get_string,
    list_objects,
    positive_count,
)

CHARACTERS_PER_TOKEN = 2.84  # the median of 720 complete requests in public rollouts
# an extra key next to ``type`` in lines that we wrote; its value is the item's original id
OWN_ID_KEY = "uuid"


class Item(NamedTuple):
    """An item of the history: its ``payload``, time, id and location.

    ``part_index`` is its index in a compaction's ``replacement_history``, or -1 if the item has its
    own line. The id is the same in every run, and a fork has the ids of its parent.
    """

    payload: Record
    timestamp: str
    uuid: str
    file: str
    line_number: int
    part_index: int = -1


class ItemIds:
    """Assigns ids to items in line order. Each id depends on the previous id and on the item's content.

    The first id depends on the oldest ancestor thread. A fork names that thread in the first line
    that it copied from its parent, so items that two threads share have the same id in both.
    """

    def __init__(self) -> None:
        self._state = b""
        self._begun = False

    def read_meta_line(self, meta: RolloutLine) -> None:
        """Process a ``session_meta`` line. Only the last one before the first item is used."""
        if not self._begun:
            self._state = parse_meta(meta.payload).thread_id.encode()

    def next_id(self, payload: Record, line_id: object = None) -> str:
        """Return the next item's id; ``line_id`` is the id that its line contains, if any."""
        self._begun = True
        self._state = hashlib.blake2b(
            self._state + codex_items.dump_json(payload), digest_size=16
        ).digest()
        if isinstance(line_id, str) and is_session_id(line_id):
            return line_id
        return _format_uuid(self._state)

    def derive_id(self, kind: str) -> str:
        """Return an id for a record that is not an item; ``kind`` names the kind of record."""
        return _format_uuid(hashlib.blake2b(self._state + kind.encode(), digest_size=16).digest())


class History:
    """The effective history, built line by line.

    ``items`` are the items that Codex would send, and ``tokens`` is the current context size.
    ``has_client_count`` is true if the client has reported its token count since the last
    compaction. ``window`` is the model's context window, or 0 if unknown. ``own_file`` is the
    newest file. Only its token counts are used, because counts in other files precede a fork or a
    rewind. If ``own_file`` is ``""``, all counts are used.
    """

    def __init__(self, own_file: str = "") -> None:
        self.items: list[Item] = []
        self.window = 0
        self._counted = 0
        self._own = own_file
        self._ids = ItemIds()

    def add_line(self, line: RolloutLine) -> None:
        """Process the next line."""
        if line.kind == ITEM:
            if codex_items.item_type(line.payload):
                self._add_item(line.payload, line)
        elif line.kind == COMPACTED:
            previous_items, self.items, self._counted = [item.payload for item in self.items], [], 0
            for index, payload in enumerate(apply_compaction(line.payload, previous_items)):
                self._add_item(payload, line, index)
        elif line.kind == META:
            self._ids.read_meta_line(line)
        elif line.kind == EVENT:
            self._apply_event(line)

    @property
    def has_client_count(self) -> bool:
        """Whether the client reported the current context size."""
        return self._counted > 0

    @property
    def tokens(self) -> int:
        """The current context size in tokens: the client's last count, or an estimate from the items' characters."""
        return self._counted or round(
            sum(codex_items.count_item_characters(item.payload) for item in self.items)
            / CHARACTERS_PER_TOKEN
        )

    def _add_item(self, payload: Record, line: RolloutLine, part_index: int = -1) -> None:
        uuid = self._ids.next_id(payload, line.record.get(OWN_ID_KEY) if part_index < 0 else None)
        if codex_items.item_type(payload) != codex_items.UNSENT_TYPE:
            self.items.append(
                Item(payload, line.timestamp, uuid, line.file, line.line_number, part_index)
            )

    def _apply_event(self, line: RolloutLine) -> None:
        if line.event_type() == "thread_rolled_back":
            rolled_back_turns = positive_count(line.payload.get("num_turns"))
            turn_starts = []
            for index, item in enumerate(self.items):
                if codex_items.opens_turn(item.payload):
                    turn_starts.append(index)
            if turn_starts and rolled_back_turns:
                del self.items[turn_starts[max(0, len(turn_starts) - rolled_back_turns)] :]
        elif line.event_type() == "token_count" and self._own in ("", line.file):
            token_info = get_mapping(line.payload, "info")
            self._counted = (
                positive_count(get_mapping(token_info, "last_token_usage").get("total_tokens"))
                or self._counted
            )
            self.window = positive_count(token_info.get("model_context_window")) or self.window


def apply_compaction(compaction: Record, previous_items: Sequence[Record]) -> list[Record]:
    """Return the items after a compaction.

    Old clients recorded only the summary, so the remaining items are reconstructed by those clients'
    rules.
    """
    replacement_items = compaction.get("replacement_history")
    if isinstance(replacement_items, list):
        return [item for item in list_objects(replacement_items) if codex_items.item_type(item)]
    summary_text = get_string(compaction, "message")
    summary = {
        "type": codex_items.MESSAGE_TYPE,
        "role": "user",
        "content": [{"type": "input_text", "text": summary_text}],
    }
    return [
        *(item for item in previous_items if codex_items.is_prompt(item)),
        *([summary] if summary_text else []),
    ]


def _format_uuid(digest: bytes) -> str:
    digits = digest.hex()
    return f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
