"""What the model gets back when a thread is resumed: the effective history, its turns and its size in tokens.

As Codex rebuilds it: the newest compaction replaces what was before, later items follow, and turns
that were rolled back go. Everything is taken from the lines as they come; what a compaction
replaced is held no longer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

from resume_hooks.parts.codex.transcripts import items as of_items
from resume_hooks.parts.codex.transcripts.lines import COMPACTED, EVENT, ITEM, META, RolloutLine
from resume_hooks.parts.codex.transcripts.meta import meta_of
from resume_hooks.paths import is_session_id
from resume_hooks.transcripts.records import Record, mapping, objects, positive, string

CHARACTERS_PER_TOKEN = 2.84  # the median of 720 public rollouts, whole requests
OWN_ID = "uuid"  # a key beside ``type`` in lines that we wrote: the id that the item had where it was taken from


class Item(NamedTuple):
    """An item of the history: its ``payload``, when it was written, its id, and where it stands.

    ``part`` is its place in a compaction's ``replacement_history``, -1 for a line of its own. The
    id is the same from run to run, and in a fork the same as in the thread that it was forked from.
    """

    payload: Record
    timestamp: str
    uuid: str
    file: str
    number: int
    part: int = -1


class Ids:
    """Gives items their ids, in the order of the lines: each follows from the one before it and from what is said.

    The first follows from the thread that all began with: of a fork that copied its parent the
    copied first line tells it. So what two threads share has one id in both.
    """

    def __init__(self) -> None:
        self._state = b""
        self._begun = False

    def begin(self, meta: RolloutLine) -> None:
        """Take in a ``session_meta``; only those before the first item count, the last of them."""
        if not self._begun:
            self._state = meta_of(meta.payload).thread_id.encode()

    def of(self, payload: Record, given: object = None) -> str:
        """The id of the next item; ``given`` is one that its line tells."""
        self._begun = True
        self._state = hashlib.blake2b(self._state + of_items.dump(payload), digest_size=16).digest()
        if isinstance(given, str) and is_session_id(given):
            return given
        return _as_uuid(self._state)

    def beside(self, what: str) -> str:
        """An id for a record here that is not an item: one for each kind of record."""
        return _as_uuid(hashlib.blake2b(self._state + what.encode(), digest_size=16).digest())


class History:
    """The history as it grows line by line; ``items`` is what would be sent, ``tokens`` the context in use.

    ``measured`` tells whether the client counted the tokens since the last compaction; ``window``
    is the model's, 0 for unknown. Counts in another file, at the beginning of a fork or before a
    rewind, do not count: ``own`` is the newest file, "" where the counts of all lines count.
    """

    def __init__(self, own: str = "") -> None:
        self.items: list[Item] = []
        self.window = 0
        self._counted = 0
        self._own = own
        self._ids = Ids()

    def take(self, line: RolloutLine) -> None:
        """Take in the next line."""
        if line.kind == ITEM:
            if of_items.kind(line.payload):
                self._add(line.payload, line)
        elif line.kind == COMPACTED:
            before, self.items, self._counted = [item.payload for item in self.items], [], 0
            for place, payload in enumerate(replacement(line.payload, before)):
                self._add(payload, line, place)
        elif line.kind == META:
            self._ids.begin(line)
        elif line.kind == EVENT:
            self._hear(line)

    @property
    def measured(self) -> bool:
        """Whether the client told the tokens in use."""
        return self._counted > 0

    @property
    def tokens(self) -> int:
        """The context in use: as the client counted it last, else by the characters of the items."""
        return self._counted or round(
            sum(of_items.size(item.payload) for item in self.items) / CHARACTERS_PER_TOKEN
        )

    def _add(self, payload: Record, line: RolloutLine, part: int = -1) -> None:
        uuid = self._ids.of(payload, line.record.get(OWN_ID) if part < 0 else None)
        if of_items.kind(payload) != of_items.NEVER_SENT:
            self.items.append(Item(payload, line.timestamp, uuid, line.file, line.number, part))

    def _hear(self, line: RolloutLine) -> None:
        if line.event() == "thread_rolled_back":
            turns = positive(line.payload.get("num_turns"))
            starts = []
            for place, item in enumerate(self.items):
                if of_items.opens_turn(item.payload):
                    starts.append(place)
            if starts and turns:
                del self.items[starts[max(0, len(starts) - turns)] :]
        elif line.event() == "token_count" and self._own in ("", line.file):
            info = mapping(line.payload, "info")
            self._counted = (
                positive(mapping(info, "last_token_usage").get("total_tokens")) or self._counted
            )
            self.window = positive(info.get("model_context_window")) or self.window


def replacement(compacted: Record, before: Sequence[Record]) -> list[Record]:
    """What a compaction left; of one of an old client, which tells its summary alone, what that client made of it."""
    left = compacted.get("replacement_history")
    if isinstance(left, list):
        return [item for item in objects(left) if of_items.kind(item)]
    message = string(compacted, "message")
    said = {
        "type": of_items.MESSAGE,
        "role": "user",
        "content": [{"type": "input_text", "text": message}],
    }
    return [*(item for item in before if of_items.is_prompt(item)), *([said] if message else [])]


def _as_uuid(state: bytes) -> str:
    digits = state.hex()
    return f"{digits[:8]}-{digits[8:12]}-8{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
