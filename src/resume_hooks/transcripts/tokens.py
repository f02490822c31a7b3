"""Token counts, as every list and card shows them, from what the API itself counted wherever it did.

The last answer's usage is the true context size of a session; characters become tokens by the
session's own ratio. Contents before the last compaction count as nothing, since they are never sent
again. An image costs width x height / 750 tokens once it fits the API's bounds (1,568 pixels a
side, about 1,600 tokens), whatever the length of its encoding; a page of a PDF is sent as its text
and an image.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from resume_hooks.transcripts import records
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import Line, OneOpen, open_transcript
from resume_hooks.transcripts.nodes import Node, node_of
from resume_hooks.transcripts.records import (
    DOCUMENT,
    Record,
    mapping,
    parse,
    positive,
    string,
)

MAX_SIDE = 1_568
MAX_IMAGE_TOKENS = 1_600
PIXELS_A_TOKEN = 750
PAGE_TOKENS = (
    2_000  # of a PDF page: the API's guide says 1,500 to 3,000 for its text, and the image on top
)

_TRIMMED = re.compile(r"resume-hooks: .*?\btokens(?: before, about|, now about) ([\d,]+)(k?)")
"""What the client keeps of our remark on a trim in place, which says what is left in tokens, or in thousands."""

_PAGE = re.compile(rb"/Type\s*/Page\b")
_HEAD = (
    64 * 1024
)  # characters of base64 that are decoded in search of an image's size; multiple of four

DEFAULT_WINDOW = 200_000
LARGE_WINDOW = 1_000_000
CHARACTERS_PER_TOKEN = 4.0  # what stands in where a session is too short to tell its own ratio
USUAL_BASE = 30_000  # tokens of a first request but its prompt: the median of 82 sessions (28,000 to 44,000 mostly)
USUAL_SHARED = 18_000  # of these, cached already: the median of 47 sessions (16,000 to 25,000)
ANSWER = 20_000  # tokens of a window that the client keeps for an answer; its own per cent are of the rest
RESERVED_OUTPUT = 33_000  # tokens that the client keeps free for an answer and a summary before it compacts by itself
MUCH = 0.02  # of a counted context: what is estimated beside it makes an estimate of the sum
TAIL_REACHES = (256 * 1024, 4 * 1024 * 1024)  # bytes of the end that are tried before a whole scan
MAX_FIRST_LINE = 64 * 1024  # bytes of a first line in which a trim's numbers are looked for


class FirstRequest(NamedTuple):
    """What every new session here begins with, in tokens: the client's own instructions, tools, files of the project.

    ``shared`` of them come out of the cache as long as any session of that kind keeps it warm.
    """

    tokens: int
    shared: int


class ImageSize(NamedTuple):
    """Pixels."""

    width: int
    height: int


def media_tokens(block: Record) -> int:
    """Tokens that an image or document block costs.

    The most an image can where its size can't be told.
    """
    source = mapping(block, "source")
    if not source:
        return 0
    data = string(source, "data")
    if block.get("type") == DOCUMENT:
        if source.get("type") != "base64":
            return len(data) // 4
        return PAGE_TOKENS * max(
            1, len(_PAGE.findall(_decoded(data)))
        )  # pages may be compressed away
    size = image_size(_decoded(data[:_HEAD]))
    if size:
        return image_tokens(size)
    return MAX_IMAGE_TOKENS


def image_tokens(size: ImageSize) -> int:
    """Tokens of an image of that size, scaled down as the API does."""
    scale = min(1.0, MAX_SIDE / max(size.width, size.height, 1))
    return min(MAX_IMAGE_TOKENS, round(size.width * scale * size.height * scale / PIXELS_A_TOKEN))


def image_size(head: bytes) -> ImageSize | None:
    """The size of a PNG, GIF, WebP or JPEG image from its first bytes.

    None for others and torn ones.
    """
    try:
        if head.startswith(b"\x89PNG"):
            return ImageSize(*struct.unpack(">II", head[16:24]))
        if head.startswith(b"GIF8"):
            return ImageSize(*struct.unpack("<HH", head[6:10]))
        if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
            return _webp(head)
        if head.startswith(b"\xff\xd8"):
            return _jpeg(head)
        return None
    except struct.error:
        return None


def _webp(head: bytes) -> ImageSize | None:
    kind = head[12:16]
    if len(head) < 30:
        return None
    if kind == b"VP8X":
        width, height = (int.from_bytes(head[at : at + 3], "little") + 1 for at in (24, 27))
        return ImageSize(width, height)
    if kind == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        return ImageSize((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    width, height = struct.unpack("<HH", head[26:30])
    return ImageSize(width & 0x3FFF, height & 0x3FFF)


def _jpeg(head: bytes) -> ImageSize | None:
    """The frame header of a JPEG: segments are walked, since a thumbnail inside has one of its own."""
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker, length = head[at + 1], int.from_bytes(head[at + 2 : at + 4])
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return ImageSize(width, height)
        at += 2 + length
    return None


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data[: len(data) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


MEASURED, ADDED, ESTIMATED, UNKNOWN = "measured", "added", "estimated", "unknown"
"""The kinds of a context's size: an answer counted it; much came after that answer, which is estimated; it is
estimated as a whole, or in a part of which nothing is certain; nothing tells it."""


class ContextSize(NamedTuple):
    """How full a session is: tokens in use, and the window that they are used of.

    ``kind`` is one of the kinds above, ``reason`` says why it is not measured. ``added`` are tokens
    that are estimated beside what the last answer counted. Where ``window_known`` is false nothing
    tells the window: ``window`` is the smallest that it can be, to decide by, and no share can be
    shown.
    """

    tokens: int
    window: int
    kind: str = MEASURED
    reason: str = ""
    window_known: bool = True
    added: int = 0

    @classmethod
    def of(
        cls, tokens: int, window: int = 0, kind: str = MEASURED, reason: str = "", added: int = 0
    ) -> ContextSize:
        """So many tokens in a ``window``; of 0 only a count above the usual one tells that it is a large one."""
        known = window > 0 or tokens > DEFAULT_WINDOW
        return cls(tokens, window or window_for(tokens), kind, reason, known, added)

    @property
    def limit(self) -> int:
        """What the client's own per cent are of (2.1.330): its window without its answer."""
        return max(self.window // 2, self.window - ANSWER, 1)

    @property
    def percent(self) -> int | None:
        """Used share of the limit, 0 to 100 and more; None where the window is not known."""
        if self.window_known:
            return self.most_percent
        return None

    @property
    def measured(self) -> bool:
        """Whether an answer counted it, but for what came after."""
        return self.kind in {MEASURED, ADDED}

    @property
    def is_estimate(self) -> bool:
        """Whether it may be off by more than two per cent: a figure shown of it says "about"."""
        return self.kind != MEASURED

    @property
    def most_percent(self) -> int:
        """The share, or the most that it can be where the window is not known: what decisions go by."""
        return round(100 * self.tokens / self.limit)

    @property
    def share(self) -> str:
        """The share in words: ``18 % of 980,000``, or that nothing tells it."""
        if self.window_known:
            return f"{self.most_percent} % of {self.limit:,}"
        return "of an unknown window"

    @property
    def compacts_at_once(self) -> bool:
        """Whether the client would compact before the next answer."""
        return self.tokens + RESERVED_OUTPUT > self.window


def last_counted(chain: Sequence[Node]) -> Node | None:
    """The last answer that was counted since the compaction.

    Kept messages carry the counts from before it.
    """
    floor = chain[0].number if chain and chain[0].boundary else -1
    counted = [node for node in chain if node.context_tokens and node.number > floor]
    if not counted:
        return None
    # Of an answer in several records the one that was written last; the others may have come back
    # from farther up.
    answer = counted[-1].message_id
    return max(
        (node for node in counted if node.message_id == answer), key=lambda node: node.number
    )


def tokens_of_chain(chain: list[Node], ratio: float = CHARACTERS_PER_TOKEN) -> tuple[int, int]:
    """Tokens that the last answer counted, 0 for none, and by ``ratio`` those that came after it, or all."""
    last = last_counted(chain)
    if last is None:
        return 0, round(sum(node.characters for node in chain) / ratio)
    after = sum(node.characters for node in chain[chain.index(last) + 1 :])
    return last.context_tokens, round(after / ratio)


def characters_per_token(chain: list[Node]) -> float:
    """The session's own ratio, from what was added between its first and last measured answer."""
    measured = []
    for index, node in enumerate(chain):
        if node.context_tokens:
            measured.append(index)
    if len(measured) < 2:
        return CHARACTERS_PER_TOKEN
    first, last = measured[0], measured[-1]
    tokens = chain[last].context_tokens - chain[first].context_tokens
    added = sum(node.characters for node in chain[first + 1 : last + 1])
    ratio = added / tokens if tokens > 1_000 else CHARACTERS_PER_TOKEN
    return min(max(ratio, 1.5), 8.0)


def window_for(tokens: int) -> int:
    """The context window: a million once the use exceeded 200,000.

    Transcripts name no model's window.
    """
    if tokens > DEFAULT_WINDOW:
        return LARGE_WINDOW
    return DEFAULT_WINDOW


def first_request(ends: HeadTail) -> FirstRequest | None:
    """The first request less what was said before it: attachments stay in, since a new session is given its own.

    So do instructions that stand before the first prompt as messages. A file that begins within a
    session tells nothing of that.
    """
    if ends.begins_within:
        return None
    near = _first_counted(ends.first_records)
    if near or ends.small:
        if near:
            return near[0]
        return None
    far = _first_counted(ends.early_records)
    # What was said is estimated: where it is most of a request, that tells too little of the rest.
    if far and far[1] <= far[0].tokens:
        return far[0]
    return None


def _first_counted(early: Iterable[Record]) -> tuple[FirstRequest, int] | None:
    """The first request as ``first_request`` has it, and the tokens that were said before it.

    None for none.
    """
    said = 0
    for record in early:
        if records.kind(record) not in records.MESSAGES or not isinstance(record.get("uuid"), str):
            continue
        node = node_of(record, Line(0, 0, b""))
        if node.sidechain:
            continue
        if node.input_tokens and records.model(record):
            before = round(said / CHARACTERS_PER_TOKEN)
            count = max(0, node.input_tokens - before)
            shared = positive(records.usage(record).get("cache_read_input_tokens")) or USUAL_SHARED
            return FirstRequest(count, min(shared, count)), before
        if records.kind(record) == records.ASSISTANT and records.model(record):
            return None  # an answer that was copied: the count behind it is not a first request
        if said or not record.get("isMeta"):
            said += node.characters
    return None


def left_by_trim(record: Record) -> int:
    """The tokens that our remark on a trim in place says are left; 0 for any other record."""
    if string(record, "subtype") == "informational":
        found = _TRIMMED.match(string(record, "content"))
    else:
        found = None
    if found:
        return min(
            int(found[1][:20].replace(",", "")) * (1_000 if found[2] else 1), records.MAX_TOKENS
        )
    return 0


def window_of_parent(stated: StatedSize | None) -> int:
    """The window that is stated, or of what a child is a trim of, where that needed a large one.

    Else 0.
    """
    if stated and stated.window:
        return stated.window
    if stated and window_for(stated.original) == LARGE_WINDOW:
        return LARGE_WINDOW
    return 0


def window_shown(file: str | OneOpen, count: int) -> int:
    """The large window that a session states, or needs for so many tokens; 0 for none."""
    window = window_of_parent(stated_size(file)) or window_for(count)
    if window > DEFAULT_WINDOW:
        return window
    return 0


class StatedSize(NamedTuple):
    """What a child of ours says of itself in its first line, until an answer counts it.

    ``original`` are the tokens of the session that it is a trim of, 0 for none, and ``saved`` the
    characters that this saved; ``ratio`` is characters a token. ``window`` is that of the model
    where another agent told it, or a large one that its parent showed, else 0. ``tokens`` is 0
    where only that is stated.
    """

    tokens: int
    original: int
    ratio: float
    window: int = 0
    saved: int = 0


def stated_size(file: str | OneOpen) -> StatedSize | None:
    """What the first line of a session states of its size; None if it states nothing.

    Anybody may have edited it.
    """
    with open_transcript(file) as stream:
        first = stream.readline(MAX_FIRST_LINE)
    if b'_metadata"' in first or b'"context_window"' in first:
        return stated_size_in(parse(first) or {})
    return None


def stated_size_in(record: Record) -> StatedSize | None:
    """What the first record of a session states, as ``stated_size`` has it."""
    said, trimmed = mapping(record, "continue_metadata"), mapping(record, "trim_metadata")
    counted = mapping(trimmed, "stats")
    count = positive(said.get("context_tokens")) or positive(counted.get("trimmed_tokens"))
    window = positive(record.get("context_window"))
    if not count and not window:
        return None
    ratio = said.get("characters_per_token")
    if isinstance(ratio, float) and 1 <= ratio <= 10:
        sound = ratio
    else:
        sound = CHARACTERS_PER_TOKEN
    original, saved = positive(counted.get("original_tokens")), positive(counted.get("chars_saved"))
    return StatedSize(count, original, sound, window, saved)
