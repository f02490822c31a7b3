"""What the rebuilding of a conversation needs of each record, and of the marks between them.

Values without behaviour of their own; the records stay on disk at ``offset``.
"""

from __future__ import annotations

from typing import NamedTuple


class Segment(NamedTuple):
    """Messages that a compaction kept: spliced in after the record ``anchor``.

    ``uuids`` is their order where the client wrote it down, and then it alone counts; None: walk from ``tail`` to
    ``head``.
    """

    anchor: str
    head: str
    tail: str
    uuids: tuple[str, ...] | None


class Node:
    """One linked record; ``number`` is its 0-based line, ``offset`` and ``length`` its bytes in the file.

    ``given_uuid``: the uuid is not the record's own but the one that it was sent under. ``characters`` reach the API.
    """

    __slots__ = (
        "broken",
        "calls",
        "characters",
        "context_tokens",
        "given_uuid",
        "input_tokens",
        "kind",
        "length",
        "message_id",
        "meta",
        "number",
        "offset",
        "parent",
        "prompt",
        "results",
        "segment",
        "session_id",
        "sidechain",
        "subtype",
        "summary",
        "time_ms",
        "uuid",
    )

    def __init__(self, uuid: str, parent: str | None, kind: str) -> None:
        self.uuid = uuid
        self.parent = parent
        self.kind = kind
        self.number = 0
        self.offset = 0
        self.length = 0
        self.session_id: str | None = None
        self.given_uuid = False
        self.subtype = ""
        self.sidechain = False
        self.summary = False
        self.prompt = False
        self.meta = False
        self.broken = False
        self.message_id = ""
        self.time_ms: int | None = None
        self.characters = 0
        self.context_tokens = 0
        self.input_tokens = 0
        self.calls: tuple[str, ...] = ()
        self.results: tuple[str, ...] = ()
        self.segment: Segment | None = None

    @property
    def boundary(self) -> bool:
        """Whether a compaction happened here."""
        return self.subtype == "compact_boundary"

    @property
    def spoken(self) -> bool:
        """Whether the record is a message of the user or the assistant; a conversation can end only at one."""
        return self.kind in {"user", "assistant"}

    @property
    def aside(self) -> bool:
        """Whether the record accompanies messages: an attachment, a system note, a remark of the client's own."""
        if self.kind == "system":
            return not self.boundary
        return self.kind == "attachment" or (self.meta and not self.results)


class Checkpoint:
    """The last ``last-prompt`` that counts: which record the client took for the end of the conversation.

    A compaction makes it forget; an ``explicit`` one (a rewind) is exact until something is said after it.
    """

    __slots__ = ("emptied", "ever_explicit", "explicit", "hinted", "uuid")

    def __init__(self) -> None:
        self.uuid = ""
        self.explicit = False
        self.ever_explicit = False
        self.emptied = False
        self.hinted = False

    def point(self, leaf: str | None, *, explicit: bool) -> None:
        """Take in a last-prompt record; ``leaf`` None with ``explicit`` is a rewind to the very beginning."""
        self.hinted = True
        if leaf:
            same = leaf == self.uuid
            self.explicit = explicit or (self.explicit and same)
            self.ever_explicit = explicit or (self.ever_explicit and same)
            self.uuid, self.emptied = leaf, False
        elif explicit:
            self.forget()
            self.emptied = True

    def pass_record(self, node: Node) -> None:
        """Take in a linked record of the file."""
        if not node.sidechain:
            self.explicit = self.emptied = False
        if node.boundary:
            self.forget()

    def forget(self) -> None:
        """Point nowhere."""
        self.uuid = ""
        self.explicit = self.ever_explicit = self.emptied = False
