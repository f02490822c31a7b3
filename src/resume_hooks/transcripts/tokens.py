"""Measure contexts in tokens, with the API's own counts where there are any.

The count of the last answer is the size of the context. Content after that answer is converted from
characters to tokens by the session's own ratio. Content before the last compaction is not counted,
because it is never sent again.

An image has width x height / 750 tokens, after it is scaled down to the API's limits: 1,568 pixels
per side, and about 1,600 tokens. The length of its encoding does not matter. A page of a PDF is
sent as text and as an image.
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
    get_mapping,
    get_string,
    parse_positive_count,
    parse_record,
)

MAX_IMAGE_SIDE_PIXELS = 1_568
MAX_IMAGE_TOKENS = 1_600
PIXELS_PER_TOKEN = 750
# Number of tokens for a PDF page. According to the API's guide, the text takes 1,500 to 3,000
# tokens, and an image of the page is sent as well.
TOKENS_PER_PAGE = 2_000

_TRIM_REMARK_PATTERN = re.compile(
    r"resume-hooks: .*?\btokens(?: before, about|, now about) ([\d,]+)(k?)"
)
"""Matches the line that we print after a trim in place, as the client records it.

The line contains the number of remaining tokens, either in full or in thousands with a ``k``.
"""

_PDF_PAGE_PATTERN = re.compile(rb"/Type\s*/Page\b")
# Number of base64 characters from which the size of an image is read. It is a multiple of four.
_IMAGE_HEAD_CHARACTERS = 64 * 1024

DEFAULT_WINDOW_TOKENS = 200_000
LARGE_WINDOW_TOKENS = 1_000_000
# Usual number of characters per token, for sessions that are too short to have their own ratio.
CHARACTERS_PER_TOKEN = 4.0
# Typical number of tokens in the first request of a session, not counting the prompt: the median of
# 82 sessions. Most of them had 28,000 to 44,000 tokens.
USUAL_FIRST_REQUEST_TOKENS = 30_000
# Of ``USUAL_FIRST_REQUEST_TOKENS``, this number is already in the cache: the median of 47 sessions,
# which had 16,000 to 25,000 cached tokens.
USUAL_CACHED_TOKENS = 18_000
# The client reserves this number of tokens of the window for an answer. Its percentages refer to
# the remaining tokens.
ANSWER_RESERVE_TOKENS = 20_000
# The client compacts automatically as soon as less than this number of tokens is left for an answer
# and a summary.
OUTPUT_RESERVE_TOKENS = 33_000
# If more than this fraction of the tokens is estimated, the whole size is reported as an estimate.
MAX_ESTIMATED_FRACTION_OF_SIZE = 0.02
# Before a whole file is read, its end is read with each of these sizes in turn, until one of them
# is enough.
TAIL_SIZES_BYTES = (256 * 1024, 4 * 1024 * 1024)
# To find the sizes that a trim recorded, only this number of bytes at the start of the first line
# is searched.
MAX_FIRST_LINE_BYTES = 64 * 1024


class FirstRequest(NamedTuple):
    """The size of a session's first request in tokens, not counting the prompt.

    The request contains the client's instructions, its tools and the project's files.
    ``tokens_shared_with_other_sessions`` is the number of tokens that the first requests of other
    sessions also contain. While the cache is warm, these tokens are read from the cache.
    """

    tokens: int
    tokens_shared_with_other_sessions: int


class ImageSize(NamedTuple):
    """The size of an image in pixels."""

    width: int
    height: int


def media_tokens(block: Record) -> int:
    """Return the number of tokens of an image or a document.

    If the size of an image cannot be read, return the maximum for an image.
    """
    source = get_mapping(block, "source")
    if not source:
        return 0
    data = get_string(source, "data")
    if block.get("type") == DOCUMENT:
        if source.get("type") != "base64":
            return len(data) // 4
        # Pages in compressed parts of the file cannot be counted, so at least one page is assumed.
        return TOKENS_PER_PAGE * max(1, len(_PDF_PAGE_PATTERN.findall(_decode_base64(data))))
    size = image_size(_decode_base64(data[:_IMAGE_HEAD_CHARACTERS]))
    if size:
        return image_tokens(size)
    return MAX_IMAGE_TOKENS


def image_tokens(size: ImageSize) -> int:
    """Return the number of tokens of an image with this size. The API scales large images down."""
    scale = min(1.0, MAX_IMAGE_SIDE_PIXELS / max(size.width, size.height, 1))
    return min(MAX_IMAGE_TOKENS, round(size.width * scale * size.height * scale / PIXELS_PER_TOKEN))


def image_size(head: bytes) -> ImageSize | None:
    """Return the size of a PNG, GIF, WebP or JPEG image from its first bytes.

    Return None for other formats and for incomplete images.
    """
    try:
        if head.startswith(b"\x89PNG"):
            return ImageSize(*struct.unpack(">II", head[16:24]))
        if head.startswith(b"GIF8"):
            return ImageSize(*struct.unpack("<HH", head[6:10]))
        if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
            return _read_webp_size(head)
        if head.startswith(b"\xff\xd8"):
            return _read_jpeg_size(head)
        return None
    except struct.error:
        return None


def _read_webp_size(head: bytes) -> ImageSize | None:
    kind = head[12:16]
    if len(head) < 30:
        return None
    if kind == b"VP8X":
        width, height = (
            int.from_bytes(head[offset : offset + 3], "little") + 1 for offset in (24, 27)
        )
        return ImageSize(width, height)
    if kind == b"VP8L":
        size_bits = int.from_bytes(head[21:25], "little")
        return ImageSize((size_bits & 0x3FFF) + 1, (size_bits >> 14 & 0x3FFF) + 1)
    width, height = struct.unpack("<HH", head[26:30])
    return ImageSize(width & 0x3FFF, height & 0x3FFF)


def _read_jpeg_size(head: bytes) -> ImageSize | None:
    """Return the size in the frame header of a JPEG image.

    The header is found segment by segment, because an embedded thumbnail has its own frame header.
    """
    offset = 2
    while offset + 9 <= len(head) and head[offset] == 0xFF:
        marker, length = head[offset + 1], int.from_bytes(head[offset + 2 : offset + 4])
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack(">HH", head[offset + 5 : offset + 9])
            return ImageSize(width, height)
        offset += 2 + length
    return None


def _decode_base64(data: str) -> bytes:
    try:
        return base64.b64decode(data[: len(data) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


MEASURED, ADDED, ESTIMATED, UNKNOWN = "measured", "added", "estimated", "unknown"
"""The ways in which the size of a context is known.

``MEASURED``: the size is the API's count for the last answer. ``ADDED``: the size is the API's
count for an answer plus an estimate for the large content after that answer. ``ESTIMATED``: the API
did not count the context, or part of the size is uncertain. ``UNKNOWN``: the session does not show
the size.
"""


class ContextSize(NamedTuple):
    """The size of a session's context, and of the context window.

    ``kind`` is ``MEASURED``, ``ADDED``, ``ESTIMATED`` or ``UNKNOWN``. If it is not ``MEASURED``,
    ``uncertainty_reason`` explains why. ``added_tokens`` is the estimated number of tokens after the
    last answer with a token count. If ``is_window_known`` is false, ``window`` is the smallest
    possible window. This window is used for decisions, but no percentage is shown to the user.
    """

    tokens: int
    window: int
    kind: str = MEASURED
    uncertainty_reason: str = ""
    is_window_known: bool = True
    added_tokens: int = 0

    @classmethod
    def from_count(
        cls,
        tokens: int,
        window: int = 0,
        kind: str = MEASURED,
        uncertainty_reason: str = "",
        added_tokens: int = 0,
    ) -> ContextSize:
        """Return the size for a number of tokens.

        If ``window`` is 0, the window stays unknown unless ``tokens`` exceed the default window.
        """
        is_known = window > 0 or tokens > DEFAULT_WINDOW_TOKENS
        return cls(
            tokens,
            window or guess_context_window(tokens),
            kind,
            uncertainty_reason,
            is_known,
            added_tokens,
        )

    @property
    def usable_tokens(self) -> int:
        """The number of tokens that client 2.1.330 counts as 100 percent.

        This is the window minus the tokens that the client reserves for an answer.
        """
        return max(self.window // 2, self.window - ANSWER_RESERVE_TOKENS, 1)

    @property
    def percent(self) -> int | None:
        """The size in percent of ``usable_tokens``, or None if the window is unknown. It may exceed 100."""
        if self.is_window_known:
            return self.max_percent
        return None

    @property
    def is_measured(self) -> bool:
        """Whether the API counted the tokens of an answer.

        If it did, at most the content after that answer is estimated.
        """
        return self.kind in {MEASURED, ADDED}

    @property
    def is_estimate(self) -> bool:
        """Whether the size may be wrong by more than two percent, so that it must be shown with "about"."""
        return self.kind != MEASURED

    @property
    def max_percent(self) -> int:
        """The size of the context as a percentage of ``usable_tokens``.

        If the window is unknown, this is the highest percentage that is possible.
        """
        return round(100 * self.tokens / self.usable_tokens)

    @property
    def size_in_percent_text(self) -> str:
        """The size in percent as text, for example ``18 % of 980,000``.

        If the window is unknown, the text states this.
        """
        if self.is_window_known:
            return f"{self.max_percent} % of {self.usable_tokens:,}"
        return "of an unknown window"

    @property
    def compacts_at_once(self) -> bool:
        """Whether the client would compact the session before its next answer."""
        return self.tokens + OUTPUT_RESERVE_TOKENS > self.window


def find_last_answer_with_token_count(chain: Sequence[Node]) -> Node | None:
    """Return the last answer after the last compaction that has a token count, or None.

    Messages that the compaction kept are ignored, because their counts are older than the
    compaction.
    """
    boundary_line = chain[0].line_number if chain and chain[0].is_boundary else -1
    counted_nodes = [
        node for node in chain if node.context_tokens and node.line_number > boundary_line
    ]
    if not counted_nodes:
        return None
    # An answer may consist of several records. Return the record that was written last, because the
    # others may have been put back into the chain from earlier lines of the file.
    answer = counted_nodes[-1].message_id
    return max(
        (node for node in counted_nodes if node.message_id == answer),
        key=lambda node: node.line_number,
    )


def count_and_estimate_tokens(
    chain: list[Node], characters_per_token: float = CHARACTERS_PER_TOKEN
) -> tuple[int, int]:
    """Return the token count of the last answer, and the estimated tokens of the content after it.

    If no answer has a count, the first number is 0.
    """
    last_answer = find_last_answer_with_token_count(chain)
    if last_answer is None:
        return 0, round(sum(node.character_count for node in chain) / characters_per_token)
    later_characters = sum(node.character_count for node in chain[chain.index(last_answer) + 1 :])
    return last_answer.context_tokens, round(later_characters / characters_per_token)


def measure_characters_per_token(chain: list[Node]) -> float:
    """Return the average number of characters per token in a session.

    Only the content between the first and the last answer with a token count is measured.
    """
    counted_indexes = []
    for index, node in enumerate(chain):
        if node.context_tokens:
            counted_indexes.append(index)
    if len(counted_indexes) < 2:
        return CHARACTERS_PER_TOKEN
    first_index, last_index = counted_indexes[0], counted_indexes[-1]
    tokens = chain[last_index].context_tokens - chain[first_index].context_tokens
    added_characters = sum(node.character_count for node in chain[first_index + 1 : last_index + 1])
    ratio = added_characters / tokens if tokens > 1_000 else CHARACTERS_PER_TOKEN
    return min(max(ratio, 1.5), 8.0)


def guess_context_window(tokens: int) -> int:
    """Return the usual context window, or the large one if ``tokens`` do not fit into the usual one.

    Transcripts do not contain the window of the model.
    """
    if tokens > DEFAULT_WINDOW_TOKENS:
        return LARGE_WINDOW_TOKENS
    return DEFAULT_WINDOW_TOKENS


def read_first_request(ends: HeadTail) -> FirstRequest | None:
    """Return the tokens of a session's first request without the session's messages, or None.

    Attachments and instructions before the first prompt are counted, because a new session gets
    them too. Return None if the file lacks the start of the session, or if no request was counted.
    """
    if ends.lacks_beginning:
        return None
    near_request = _find_first_request(ends.first_records)
    if near_request or ends.is_whole_file:
        if near_request:
            return near_request.request
        return None
    far_request = _find_first_request(ends.early_records)
    # The size of messages is only estimated. If messages are the larger part of a request, the size
    # of the remaining part is too uncertain.
    if far_request and far_request.tokens_of_earlier_messages <= far_request.request.tokens:
        return far_request.request
    return None


class _FoundFirstRequest(NamedTuple):
    request: FirstRequest
    tokens_of_earlier_messages: int


def _find_first_request(early_records: Iterable[Record]) -> _FoundFirstRequest | None:
    """Return the first request, and the estimated tokens of the messages before its answer.

    Return None if the first request was not counted.
    """
    message_characters = 0
    for record in early_records:
        if records.get_kind(record) not in records.MESSAGE_KINDS or not isinstance(
            record.get("uuid"), str
        ):
            continue
        node = make_node(record, Line(0, 0, b""))
        if node.is_sidechain:
            continue
        if node.input_tokens and records.answering_model(record):
            message_tokens = round(message_characters / CHARACTERS_PER_TOKEN)
            count = max(0, node.input_tokens - message_tokens)
            cached_tokens = (
                parse_positive_count(records.token_usage(record).get("cache_read_input_tokens"))
                or USUAL_CACHED_TOKENS
            )
            request = FirstRequest(count, min(cached_tokens, count))
            return _FoundFirstRequest(request, message_tokens)
        if records.get_kind(record) == records.ASSISTANT and records.answering_model(record):
            # The answer is a copy and has no token count. The next count would belong to a later
            # request, not to the first one.
            return None
        if message_characters or not record.get("isMeta"):
            message_characters += node.character_count
    return None


def tokens_after_trim(record: Record) -> int:
    """Return the number of remaining tokens that a trim in place reported, or 0.

    The record must contain the line that this plugin prints after such a trim. For other records,
    the result is 0.
    """
    if get_string(record, "subtype") == "informational":
        match = _TRIM_REMARK_PATTERN.match(get_string(record, "content"))
    else:
        match = None
    if match:
        return min(
            int(match[1][:20].replace(",", "")) * (1_000 if match[2] else 1),
            records.MAX_CONTEXT_TOKENS,
        )
    return 0


def stated_window(stated: StatedContextSize | None) -> int:
    """Return the context window stated in a session's first line, or 0 if there is none.

    If the line was written by a trim and states no window, but the parent needed the large window,
    return the large window.
    """
    if stated and stated.window:
        return stated.window
    if stated and guess_context_window(stated.original_tokens) == LARGE_WINDOW_TOKENS:
        return LARGE_WINDOW_TOKENS
    return 0


def detect_large_window(file: str | SharedFile, tokens: int) -> int:
    """Return the large context window that a session states or ``tokens`` tokens require.

    If there is neither, return 0.
    """
    window = stated_window(read_size_stated_in_first_line(file)) or guess_context_window(tokens)
    if window > DEFAULT_WINDOW_TOKENS:
        return window
    return 0


class StatedContextSize(NamedTuple):
    """The size of a child, as stated in its first line. It is used until an answer is counted.

    ``tokens`` is the size of the context, or 0 if only the window is stated.
    ``characters_per_token`` is the session's number of characters per token. ``window`` is the
    model's context window as another agent stated it, or the large window of the parent, or 0 if
    neither is known.

    For a trim, ``original_tokens`` is the size of the parent in tokens, and ``saved_characters`` is
    the number of characters that the trim removed. For other children, both are 0.
    """

    tokens: int
    original_tokens: int
    characters_per_token: float
    window: int = 0
    saved_characters: int = 0


def read_size_stated_in_first_line(file: str | SharedFile) -> StatedContextSize | None:
    """Return the size that the first line of a session states, or None.

    The line is not trusted.
    """
    with open_transcript(file) as stream:
        first_line = stream.readline(MAX_FIRST_LINE_BYTES)
    if b'_metadata"' in first_line or b'"context_window"' in first_line:
        return read_size_stated_in_record(parse_record(first_line) or {})
    return None


def read_size_stated_in_record(record: Record) -> StatedContextSize | None:
    """Return the size that the first record of a session states, or None."""
    child_fields, trim_fields = (
        get_mapping(record, "continue_metadata"),
        get_mapping(record, "trim_metadata"),
    )
    trim_stats = get_mapping(trim_fields, "stats")
    count = parse_positive_count(child_fields.get("context_tokens")) or parse_positive_count(
        trim_stats.get("trimmed_tokens")
    )
    window = parse_positive_count(record.get("context_window"))
    if not count and not window:
        return None
    ratio = child_fields.get("characters_per_token")
    if isinstance(ratio, float) and 1 <= ratio <= 10:
        valid_ratio = ratio
    else:
        valid_ratio = CHARACTERS_PER_TOKEN
    original, saved = (
        parse_positive_count(trim_stats.get("original_tokens")),
        parse_positive_count(trim_stats.get("chars_saved")),
    )
    return StatedContextSize(count, original, valid_ratio, window, saved)
