"""Token counts, from what the API itself counted wherever it did.

The last answer's usage is the true context size of a session; characters become tokens by the session's own ratio.
Contents before the last compaction count as nothing, since they are never sent again.
"""

from __future__ import annotations

import mmap
from typing import NamedTuple

from resume_hooks.chain import Node
from resume_hooks.transcript import scan

DEFAULT_WINDOW = 200_000
LARGE_WINDOW = 1_000_000
CHARACTERS_PER_TOKEN = 4.0
"""What stands in where a session is too short to tell its own ratio."""

RESERVED_OUTPUT = 33_000
"""Tokens that the client keeps free for an answer and a summary before it compacts by itself."""

TAIL_REACHES = (256 * 1024, 4 * 1024 * 1024)
"""Bytes of a file's end that ``recent_context`` tries before it scans the whole."""


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
    for node in reversed(chain):
        if node.context_tokens:
            return Context(node.context_tokens, window or window_for(node.context_tokens), measured=True)
    estimate = round(sum(node.characters for node in chain) / CHARACTERS_PER_TOKEN)
    return Context(estimate, window or window_for(estimate), measured=False)


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


def window_for(tokens: int, model: str = "") -> int:
    """The context window: a million where the model's name or the use says so, else 200,000."""
    return LARGE_WINDOW if "[1m]" in model.lower() or tokens > DEFAULT_WINDOW else DEFAULT_WINDOW


def recent_context(path: str, window: int = 0) -> Context:
    """The context in use at the end of a session's live chain, from as little of the file's end as tells it.

    The end tells where the branch that the client would choose ends there and was measured there; what is unusual
    (a branch chosen farther up, no answer since a compaction) is left to a whole scan.
    """
    for reach in TAIL_REACHES:
        tail = scan(path, reach)
        if not tail.leaf_hints and _hinted(path):
            continue
        if tail.leaf_hints and tail.leaf_hints[-1] not in {node.uuid for node in tail.nodes}:
            continue
        found = context_of(tail.chain, window)
        if found.measured:
            return found
    return context_of(scan(path).chain, window)


def _hinted(path: str) -> bool:
    """Whether any line of the file may choose the branch; a search for bytes, far cheaper than a scan."""
    with open(path, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as view:
        return view.rfind(b'"last-prompt"') >= 0
