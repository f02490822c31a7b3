"""Token counts for lists and cards, based on the API's own counts wherever they exist.

The last answer's usage is a session's true context size; characters are converted to tokens by the
session's own ratio. Contents before the last compaction count as nothing, because they are never
sent again. An image costs width x height / 750 tokens after scaling to the API's bounds (1,568
pixels a side, about 1,600 tokens), whatever the length of its encoding. A PDF page is sent as its
text and an image.
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
from resume_hooks.transcripts.lines import Line, SharedFile, open_transcript
from resume_hooks.transcripts.nodes import Node, make_node
from resume_hooks.transcripts.records import (
    DOCUMENT,
    Record,
    mapping,
    parse,
    positive_count,
    string,
)

MAX_SIDE = 1_568
MAX_IMAGE_TOKENS = 1_600
PIXELS_A_TOKEN = 750
# of a PDF page: the API's guide gives 1,500 to 3,000 for its text, plus the image
PAGE_TOKENS = 2_000

_TRIMMED = re.compile(r"resume-hooks: .*?\btokens(?: before, about|, now about) ([\d,]+)(k?)")
"""The client's copy of our remark on a trim in place, with the remaining tokens, or thousands of tokens."""

_PAGE = re.compile(rb"/Type\s*/Page\b")
_HEAD = 64 * 1024  # characters of base64 to decode for an image's size; a multiple of four

DEFAULT_WINDOW = 200_000
LARGE_WINDOW = 1_000_000
CHARACTERS_PER_TOKEN = 4.0  # for a session that is too short to determine its own ratio
# tokens of a first request without its prompt: the median of 82 sessions (mostly 28,000 to 44,000)
USUAL_BASE = 30_000
# the part that is already cached: the median of 47 sessions (16,000 to 25,000)
USUAL_SHARED = 18_000
# tokens of the window that the client reserves for an answer; its percentages refer to the rest
ANSWER_RESERVE = 20_000
# tokens that the client keeps free for an answer and a summary before it compacts automatically
RESERVED_OUTPUT = 33_000
MAX_ESTIMATED_SHARE = 0.02  # a larger share of estimated tokens makes the sum an estimate
TAIL_REACHES = (256 * 1024, 4 * 1024 * 1024)  # bytes at the end to try before a whole scan
MAX_FIRST_LINE = 64 * 1024  # bytes of a first line to search for a trim's numbers


class FirstRequest(NamedTuple):
    """The base of every new session, in tokens: the client's instructions, the tools, and files of the project.

    ``shared`` of them are read from the cache while any similar session keeps it warm.
    """

    tokens: int
    shared: int


class ImageSize(NamedTuple):
    """An image's size in pixels."""

    width: int
    height: int


def media_tokens(block: Record) -> int:
    """Return the token cost of an image or document block.

    An image of unknown size counts as the most expensive one.
    """
    source = mapping(block, "source")
    if not source:
        return 0
    data = string(source, "data")
    if block.get("type") == DOCUMENT:
        if source.get("type") != "base64":
            return len(data) // 4
        return PAGE_TOKENS * max(
            1, len(_PAGE.findall(_decode_base64(data)))
        )  # compressed pages may be invisible
    size = image_size(_decode_base64(data[:_HEAD]))
    if size:
        return image_tokens(size)
    return MAX_IMAGE_TOKENS


def image_tokens(size: ImageSize) -> int:
    """Return the tokens of an image of this size, scaled down as the API does."""
    scale = min(1.0, MAX_SIDE / max(size.width, size.height, 1))
    return min(MAX_IMAGE_TOKENS, round(size.width * scale * size.height * scale / PIXELS_A_TOKEN))


def image_size(head: bytes) -> ImageSize | None:
    """Return the size of a PNG, GIF, WebP or JPEG image from its first bytes.

    Return None for other or incomplete images.
    """
    try:
        if head.startswith(b"\x89PNG"):
            return ImageSize(*struct.unpack(">II", head[16:24]))
        if head.startswith(b"GIF8"):
            return ImageSize(*struct.unpack("<HH", head[6:10]))
        if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
            return _webp_size(head)
        if head.startswith(b"\xff\xd8"):
            return _jpeg_size(head)
        return None
    except struct.error:
        return None


def _webp_size(head: bytes) -> ImageSize | None:
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


def _jpeg_size(head: bytes) -> ImageSize | None:
    """Read a JPEG's frame header by walking its segments, because a thumbnail inside has its own."""
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker, length = head[at + 1], int.from_bytes(head[at + 2 : at + 4])
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack(">HH", head[at + 5 : at + 9])
            return ImageSize(width, height)
        at += 2 + length
    return None


def _decode_base64(data: str) -> bytes:
    try:
        return base64.b64decode(data[: len(data) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


MEASURED, ADDED, ESTIMATED, UNKNOWN = "measured", "added", "estimated", "unknown"
"""The kinds of a context's size. Measured: counted with an answer. Added: an answer's count plus much later content.

Estimated: without a count, or uncertain in part. Unknown: no information.
"""


class ContextSize(NamedTuple):
    """A session's context size: the tokens in use and their window.

    ``kind`` is one of the kinds above; ``reason`` explains why it is not measured. ``added`` are
    estimated tokens after the last answer's count. If ``window_known`` is false, ``window`` is the
    smallest possible window, for decisions, and no percentage can be displayed.
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
        """Create a size. With a ``window`` of 0, only a count above the default window proves a large one."""
        known = window > 0 or tokens > DEFAULT_WINDOW
        return cls(tokens, window or default_window(tokens), kind, reason, known, added)

    @property
    def limit(self) -> int:
        """The base of the client's own percentages (2.1.330): its window without the reserved answer."""
        return max(self.window // 2, self.window - ANSWER_RESERVE, 1)

    @property
    def percent(self) -> int | None:
        """The used share of the limit in per cent, possibly above 100; None if the window is unknown."""
        if self.window_known:
            return self.most_percent
        return None

    @property
    def measured(self) -> bool:
        """Whether the size is based on a counted answer, apart from later content."""
        return self.kind in {MEASURED, ADDED}

    @property
    def is_estimate(self) -> bool:
        """Whether it may be wrong by more than two per cent, so that the figure is displayed with "about"."""
        return self.kind != MEASURED

    @property
    def most_percent(self) -> int:
        """The share in per cent, or its maximum if the window is unknown, for decisions."""
        return round(100 * self.tokens / self.limit)

    @property
    def share(self) -> str:
        """The share in words, ``18 % of 980,000``, or a statement that the window is unknown."""
        if self.window_known:
            return f"{self.most_percent} % of {self.limit:,}"
        return "of an unknown window"

    @property
    def compacts_at_once(self) -> bool:
        """Whether the client would compact before the next answer."""
        return self.tokens + RESERVED_OUTPUT > self.window


def last_counted(chain: Sequence[Node]) -> Node | None:
    """Return the last counted answer since the compaction.

    Kept messages have counts from before it.
    """
    floor = chain[0].number if chain and chain[0].boundary else -1
    counted = [node for node in chain if node.context_tokens and node.number > floor]
    if not counted:
        return None
    # If an answer has several records, use the one written last; the others may have been restored
    # from farther up.
    answer = counted[-1].message_id
    return max(
        (node for node in counted if node.message_id == answer), key=lambda node: node.number
    )


def tokens_of_chain(chain: list[Node], ratio: float = CHARACTERS_PER_TOKEN) -> tuple[int, int]:
    """Return the last answer's count (0 without one), and an estimate by ``ratio`` for the content after it."""
    last = last_counted(chain)
    if last is None:
        return 0, round(sum(node.characters for node in chain) / ratio)
    after = sum(node.characters for node in chain[chain.index(last) + 1 :])
    return last.context_tokens, round(after / ratio)


def characters_per_token(chain: list[Node]) -> float:
    """Return the session's own ratio, from the content between its first and last counted answer."""
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


def default_window(tokens: int) -> int:
    """Return the context window: a million tokens if the use exceeded 200,000.

    Transcripts do not contain the model's window.
    """
    if tokens > DEFAULT_WINDOW:
        return LARGE_WINDOW
    return DEFAULT_WINDOW


def first_request(ends: HeadTail) -> FirstRequest | None:
    """Return the first request without the messages before it, but with attachments, which new sessions get as well.

    Instructions before the first prompt count as well, although they are messages. Return None for
    a file without the session's beginning.
    """
    if ends.lacks_beginning:
        return None
    near = _find_first_request(ends.first_records)
    if near or ends.small:
        if near:
            return near[0]
        return None
    far = _find_first_request(ends.early_records)
    # Messages are estimated, so if they make up most of a request, the rest is too uncertain.
    if far and far[1] <= far[0].tokens:
        return far[0]
    return None


def _find_first_request(early: Iterable[Record]) -> tuple[FirstRequest, int] | None:
    """Return the first request, as in ``first_request``, and the tokens of the messages before it.

    Return None if no request was counted.
    """
    said = 0
    for record in early:
        if records.kind(record) not in records.MESSAGES or not isinstance(record.get("uuid"), str):
            continue
        node = make_node(record, Line(0, 0, b""))
        if node.sidechain:
            continue
        if node.input_tokens and records.model(record):
            before = round(said / CHARACTERS_PER_TOKEN)
            count = max(0, node.input_tokens - before)
            shared = (
                positive_count(records.usage(record).get("cache_read_input_tokens")) or USUAL_SHARED
            )
            return FirstRequest(count, min(shared, count)), before
        if records.kind(record) == records.ASSISTANT and records.model(record):
            return None  # a copied answer: the next count does not belong to a first request
        if said or not record.get("isMeta"):
            said += node.characters
    return None


def tokens_after_trim(record: Record) -> int:
    """Return the remaining tokens in our remark on a trim in place; 0 for any other record."""
    if string(record, "subtype") == "informational":
        found = _TRIMMED.match(string(record, "content"))
    else:
        found = None
    if found:
        return min(
            int(found[1][:20].replace(",", "")) * (1_000 if found[2] else 1), records.MAX_TOKENS
        )
    return 0


def stated_window(stated: StatedSize | None) -> int:
    """Return the stated window, or the large window that a trim's original needed.

    Otherwise return 0.
    """
    if stated and stated.window:
        return stated.window
    if stated and default_window(stated.original) == LARGE_WINDOW:
        return LARGE_WINDOW
    return 0


def large_window(file: str | SharedFile, count: int) -> int:
    """Return the large window that a session states or needs for this number of tokens, or 0."""
    window = stated_window(read_stated_size(file)) or default_window(count)
    if window > DEFAULT_WINDOW:
        return window
    return 0


class StatedSize(NamedTuple):
    """A child's size according to its first line, used until an answer is counted.

    ``original`` is the size in tokens of a trim's original (0 if not a trim), and ``saved`` the
    characters that the trim saved. ``ratio`` is in characters per token. ``window`` is the model's
    window from another agent, or the parent's large window, or 0. ``tokens`` is 0 if only the
    window is stated.
    """

    tokens: int
    original: int
    ratio: float
    window: int = 0
    saved: int = 0


def read_stated_size(file: str | SharedFile) -> StatedSize | None:
    """Return the size stated in a session's first line, or None.

    The line is untrusted.
    """
    with open_transcript(file) as stream:
        first = stream.readline(MAX_FIRST_LINE)
    if b'_metadata"' in first or b'"context_window"' in first:
        return stated_size_from_record(parse(first) or {})
    return None


def stated_size_from_record(record: Record) -> StatedSize | None:
    """Return the size stated in a session's first record, as in ``read_stated_size``."""
    said, trimmed = mapping(record, "continue_metadata"), mapping(record, "trim_metadata")
    counted = mapping(trimmed, "stats")
    count = positive_count(said.get("context_tokens")) or positive_count(
        counted.get("trimmed_tokens")
    )
    window = positive_count(record.get("context_window"))
    if not count and not window:
        return None
    ratio = said.get("characters_per_token")
    if isinstance(ratio, float) and 1 <= ratio <= 10:
        sound = ratio
    else:
        sound = CHARACTERS_PER_TOKEN
    original, saved = (
        positive_count(counted.get("original_tokens")),
        positive_count(counted.get("chars_saved")),
    )
    return StatedSize(count, original, sound, window, saved)
