"""Token counts, from what the API itself counted wherever it did.

The last answer's usage is the true context size of a session; characters become tokens by the session's own ratio.
Contents before the last compaction count as nothing, since they are never sent again.
"""

from __future__ import annotations

from typing import NamedTuple

from resume_hooks.chain import Node, live_chain
from resume_hooks.errors import SessionNotFound
from resume_hooks.graph import SKIPPED_BYTES, Graph
from resume_hooks.records import parse
from resume_hooks.transcript import Transcript, scan

DEFAULT_WINDOW = 200_000
LARGE_WINDOW = 1_000_000
CHARACTERS_PER_TOKEN = 4.0
"""What stands in where a session is too short to tell its own ratio."""

RESERVED_OUTPUT = 33_000
"""Tokens that the client keeps free for an answer and a summary before it compacts by itself."""

TAIL_REACHES = (256 * 1024, 4 * 1024 * 1024)
"""Bytes of a file's end that ``recent_context`` tries before it scans the whole."""


MAX_FIRST_LINE = 64 * 1024
"""Bytes of a first line in which a trim's numbers are looked for."""

SEARCHED_BYTES = 1024 * 1024
"""Bytes that a search through a whole file holds at a time."""

_HINT = b'"last-prompt"'


class Context(NamedTuple):
    """Tokens in use and the window they are used of; ``measured`` is false where no answer told the count."""

    tokens: int
    window: int
    measured: bool

    @property
    def percent(self) -> int:
        """Used share of the window, 0 to 100 and more."""
        return round(100 * self.tokens / self.window)

    @property
    def compacts_at_once(self) -> bool:
        """Whether the client would compact before the next answer."""
        return self.tokens + RESERVED_OUTPUT > self.window


def context_of(chain: list[Node], window: int = 0) -> Context:
    """The context in use at the end of a live chain; ``window`` 0 means: told by the session."""
    node = _last_measured(chain)
    if node is not None:
        return Context(node.context_tokens, window or window_for(node.context_tokens), measured=True)
    estimate = round(sum(node.characters for node in chain) / CHARACTERS_PER_TOKEN)
    return Context(estimate, window or window_for(estimate), measured=False)


def _last_measured(chain: list[Node]) -> Node | None:
    """The last answer that was counted since the compaction; kept messages carry the counts from before it."""
    floor = chain[0].number if chain and chain[0].boundary else -1
    counted = [node for node in chain if node.context_tokens and node.number > floor]
    if not counted:
        return None
    # Of an answer in several records the one that was written last; the others may have come back from farther up.
    answer = counted[-1].message_id
    return max((node for node in counted if node.message_id == answer), key=lambda node: node.number)


def sent_context(chain: list[Node], ratio: float, window: int = 0) -> Context:
    """The context that the client would send on resume: what was counted last, and what came after at ``ratio``."""
    context = context_of(chain, window)
    last = _last_measured(chain)
    if last is None:
        return context
    after = sum(node.characters for node in chain[chain.index(last) + 1 :])
    return context._replace(tokens=context.tokens + round(after / ratio))


def characters_per_token(chain: list[Node]) -> float:
    """The session's own ratio, from what was added between its first and last measured answer."""
    measured = [index for index, node in enumerate(chain) if node.context_tokens]
    if len(measured) < 2:
        return CHARACTERS_PER_TOKEN
    first, last = measured[0], measured[-1]
    tokens = chain[last].context_tokens - chain[first].context_tokens
    added = sum(node.characters for node in chain[first + 1 : last + 1])
    ratio = added / tokens if tokens > 1_000 else CHARACTERS_PER_TOKEN
    return min(max(ratio, 1.5), 8.0)


def window_for(tokens: int) -> int:
    """The context window: a million once the use exceeded 200,000. Transcripts name no model's window."""
    return LARGE_WINDOW if tokens > DEFAULT_WINDOW else DEFAULT_WINDOW


def session_context(path: str, chain: list[Node], window: int = 0) -> Context:
    """The context in use in a session, whose live chain is ``chain``.

    A trimmed session that nobody went on in was never counted: what its trim came to stands in its first line.
    """
    context = context_of(chain, window)
    stated = 0 if context.measured else _stated(path)
    return Context(stated, window or window_for(stated), measured=False) if stated else context


def recent_context(path: str, window: int = 0) -> Context:
    """The context in use at the end of a session's live chain, from as little of the file's end as tells it.

    The end tells where the branch that the client would choose ends there and was measured there, or was compacted
    there; what is unusual (a branch chosen farther up) is left to a whole scan.
    """
    for reach in TAIL_REACHES:
        tail = scan(path, reach)
        if tail.whole:
            return session_context(path, tail.chain, window)
        if _chooses_alike(tail):
            chain = _certain_chain(tail)
            if _is_complete(chain, tail) or (_last_measured(chain) and _stays_after_boundary(chain, tail)):
                return context_of(chain, window)
    return session_context(path, scan(path).chain, window)


def _stated(path: str) -> int:
    """Tokens that a trim left, as the first line of the trimmed session states them; 0 for none."""
    try:
        with open(path, "rb") as stream:
            first = stream.readline(MAX_FIRST_LINE)
    except OSError as error:
        raise SessionNotFound(f"{path} can't be read: {error.strerror}", "Check the path.") from error
    record = parse(first) if b'"trim_metadata"' in first else None
    trimmed = record.get("trim_metadata") if record else None
    stats = trimmed.get("stats") if isinstance(trimmed, dict) else None
    count = stats.get("trimmed_tokens") if isinstance(stats, dict) else None
    return count if isinstance(count, int) and count > 0 else 0


def _chooses_alike(tail: Transcript) -> bool:
    """Whether the records of a file's end point at the same branch as those of the whole file."""
    known = {node.uuid: node for node in tail.nodes}
    for node in tail.nodes:
        if node.segment and not known.keys() >= set(node.segment.uuids or (node.segment.head, node.segment.tail)):
            return False  # kept messages lie farther up
    if tail.checkpoint.uuid:
        pointed = known.get(tail.checkpoint.uuid)
        return pointed is not None and pointed.number > _last_boundary(tail)
    if tail.checkpoint.hinted:
        return True
    rows = [node for node in tail.nodes if not node.sidechain and node.time_ms is not None]
    if rows and max(rows, key=lambda node: node.time_ms or 0) is not rows[-1]:
        return False  # written out of order, where without a hint time decides
    return _last_boundary(tail) >= 0 or not _hinted(tail.path)


def _certain_chain(tail: Transcript) -> list[Node]:
    """The end of the live chain, as far as the end of the file tells it; empty where it doesn't."""
    chain = live_chain(tail.nodes, tail.checkpoint, tail.size, bridging=False)
    rows = [node for node in tail.nodes if not node.sidechain and not node.broken and node.kind != "progress"]
    # A branch that is not the last one may stand back where a compaction farther up kept messages.
    told = tail.checkpoint.explicit or _last_boundary(tail) >= 0 or (rows and rows[-1] in chain)
    return chain if told else []


def _is_complete(chain: list[Node], tail: Transcript) -> bool:
    """Whether nothing before the last boundary can belong to the chain: clients drop that for good in these cases."""
    if not chain or chain[0].number != _last_boundary(tail) or chain[0].parent is not None:
        return False
    return tail.size > SKIPPED_BYTES if chain[0].segment is None else Graph(tail.nodes, tail.size).spliced


def _stays_after_boundary(chain: list[Node], tail: Transcript) -> bool:
    """Whether no record is from before the last boundary: which of those count, the whole file decides."""
    last = _last_boundary(tail)
    return all(node.number >= last for node in chain)


def _last_boundary(tail: Transcript) -> int:
    return max((node.number for node in tail.nodes if node.boundary), default=-1)


def _hinted(path: str) -> bool:
    """Whether any line of the file may choose the branch; a search for bytes, far cheaper than a scan."""
    try:
        with open(path, "rb") as stream:
            before = b""
            while piece := stream.read(SEARCHED_BYTES):
                if _HINT in before + piece[: len(_HINT)] or _HINT in piece:
                    return True
                before = piece[-len(_HINT) :]
    except OSError as error:
        raise SessionNotFound(f"{path} can't be read: {error.strerror}", "Check the path.") from error
    return False
