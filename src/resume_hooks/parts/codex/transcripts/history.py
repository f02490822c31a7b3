"""Build the history that Codex sends to the model when it resumes a thread.

The history follows Codex's own rules: the newest compaction replaces all items before it, and turns
that were rolled back are removed. The lines are read one by one, and replaced items are not kept in
memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from resume_hooks.parts.codex.transcripts import items as codex_items
from resume_hooks.parts.codex.transcripts.lines import (
    COMPACTION_LINE,
    EVENT_LINE,
    ITEM_LINE,
    META_LINE,
    RolloutLine,
)
from resume_hooks.parts.codex.transcripts.meta import parse_meta
from resume_hooks.paths import is_session_id
from resume_hooks.transcripts.records import (
    Record,
    get_mapping,
    get_string,
    list_objects,
    parse_positive_count,
)

# The median number of characters per token in 720 complete requests of public rollouts.
CHARACTERS_PER_TOKEN = 2.84
# The key of an item's original id, which is the id that the item had in the parent. This plugin
# writes the key next to ``type`` in the line's JSON object, outside the item.
ORIGINAL_ID_KEY = "uuid"


class HistoryItem(NamedTuple):
    """An item of the history, with its ``payload``, its time, its id, and the location of its line.

    ``part_index`` is the index of the item in the ``replacement_history`` of a compaction, or -1 if
    the item has a line of its own. The id of an item never changes. If a fork copied an item from
    its parent, the item has the same id in both threads.
    """

    payload: Record
    timestamp: str
    uuid: str
    file_path: str
    line_number: int
    part_index: int = -1


class ItemIdAssigner:
    """Assigns ids to the items of a thread in the order of their lines.

    Each id depends on the previous id and on the content of the item. The first id depends on the
    id of the oldest ancestor, which a fork copies from its parent. An item therefore has the same
    id in a thread and in the thread's forks.
    """

    def __init__(self) -> None:
        self._state = b""
        self._has_begun = False

    def add_meta_line(self, meta: RolloutLine) -> None:
        """Process a ``session_meta`` line.

        If several such lines precede the first item, the ids of the items depend on the last one.
        """
        if not self._has_begun:
            self._state = parse_meta(meta.payload).thread_id.encode()

    def assign_next_id(self, payload: Record, recorded_id: object = None) -> str:
        """Return the id of the next item. If its line contains a valid id (``recorded_id``), return that id."""
        self._has_begun = True
        self._state = hashlib.blake2b(
            self._state + codex_items.dump_json(payload), digest_size=16
        ).digest()
        if isinstance(recorded_id, str) and is_session_id(recorded_id):
            return recorded_id
        return _format_uuid(self._state)

    def derive_record_id(self, record_kind: str) -> str:
        """Return an id for a record that is not made from an item, for example for a compaction boundary.

        ``record_kind`` identifies the kind of record.
        """
        return _format_uuid(
            hashlib.blake2b(self._state + record_kind.encode(), digest_size=16).digest()
        )


class ThreadHistory:
    """The history that Codex sends to the model when it resumes a thread, built line by line.

    ``items`` are the items of the history, and ``window`` is the size of the model's context window
    in tokens, or 0 if it is unknown. ``own_file`` is the newest file of the thread. The token
    counts in other files are ignored, because they are older than the fork or rewind that created
    ``own_file``. If ``own_file`` is ``""``, the token counts in all files are used.
    """

    def __init__(self, own_file: str = "") -> None:
        self.items: list[HistoryItem] = []
        self.window = 0
        self._client_count = 0
        self._own_file = own_file
        self._ids = ItemIdAssigner()

    def add_line(self, line: RolloutLine) -> None:
        """Process the next line of the thread."""
        if line.kind == ITEM_LINE:
            if codex_items.item_type(line.payload):
                self._add_item(line.payload, line)
        elif line.kind == COMPACTION_LINE:
            previous_items, self.items, self._client_count = (
                [item.payload for item in self.items],
                [],
                0,
            )
            for index, payload in enumerate(apply_compaction(line.payload, previous_items)):
                self._add_item(payload, line, index)
        elif line.kind == META_LINE:
            self._ids.add_meta_line(line)
        elif line.kind == EVENT_LINE:
            self._apply_event(line)

    @property
    def has_token_count_from_client(self) -> bool:
        """Whether the client has reported a token count since the last compaction."""
        return self._client_count > 0

    @property
    def token_count(self) -> int:
        """The size of the history in tokens.

        This is the client's last token count or, without a count since the last compaction, an
        estimate from the number of characters.
        """
        return self._client_count or round(
            sum(codex_items.count_item_characters(item.payload) for item in self.items)
            / CHARACTERS_PER_TOKEN
        )

    def _add_item(self, payload: Record, line: RolloutLine, part_index: int = -1) -> None:
        uuid = self._ids.assign_next_id(
            payload, line.record.get(ORIGINAL_ID_KEY) if part_index < 0 else None
        )
        if codex_items.item_type(payload) != codex_items.ITEM_TYPE_NOT_SENT_TO_MODEL:
            self.items.append(
                HistoryItem(
                    payload, line.timestamp, uuid, line.file_path, line.line_number, part_index
                )
            )

    def _apply_event(self, line: RolloutLine) -> None:
        if line.event_type() == "thread_rolled_back":
            rolled_back_turns = parse_positive_count(line.payload.get("num_turns"))
            turn_starts = []
            for index, item in enumerate(self.items):
                if codex_items.opens_turn(item.payload):
                    turn_starts.append(index)
            if turn_starts and rolled_back_turns:
                del self.items[turn_starts[max(0, len(turn_starts) - rolled_back_turns)] :]
        elif line.event_type() == "token_count" and self._own_file in ("", line.file_path):
            token_info = get_mapping(line.payload, "info")
            self._client_count = (
                parse_positive_count(
                    get_mapping(token_info, "last_token_usage").get("total_tokens")
                )
                or self._client_count
            )
            self.window = (
                parse_positive_count(token_info.get("model_context_window")) or self.window
            )


def apply_compaction(compaction: Record, previous_items: Sequence[Record]) -> list[Record]:
    """Return the items of the history after a compaction.

    An old client's compaction contains only a summary. After it, the history consists of the
    earlier prompts and the summary.
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
