"""What images and documents cost in tokens; the length of their encoding says nothing about it.

An image costs width x height / 750 tokens once it fits the API's bounds (1,568 pixels a side, about 1,600 tokens);
a page of a PDF is sent as its text and an image.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from typing import NamedTuple

from resume_hooks.transcripts.records import DOCUMENT, Record, mapping, string

MAX_SIDE = 1_568
MAX_IMAGE_TOKENS = 1_600
PIXELS_A_TOKEN = 750
PAGE_TOKENS = 2_000
"""Tokens of a PDF page: the API's own guide says 1,500 to 3,000 for its text; the image comes on top."""

_PAGE = re.compile(rb"/Type\s*/Page\b")
_HEAD = 64 * 1024  # characters of base64 that are decoded in search of an image's size; multiple of four


class ImageSize(NamedTuple):
    """Pixels."""

    width: int
    height: int


def media_tokens(block: Record) -> int:
    """Tokens that an image or document block costs; the most an image can where its size can't be told."""
    source = mapping(block, "source")
    if not source:
        return 0
    data = string(source, "data")
    if block.get("type") == DOCUMENT:
        return PAGE_TOKENS * max(1, _pages(data)) if source.get("type") == "base64" else len(data) // 4
    size = image_size(_decoded(data[:_HEAD]))
    return image_tokens(size) if size else MAX_IMAGE_TOKENS


def image_tokens(size: ImageSize) -> int:
    """Tokens of an image of that size, scaled down as the API does."""
    scale = min(1.0, MAX_SIDE / max(size.width, size.height, 1))
    return min(MAX_IMAGE_TOKENS, round(size.width * scale * size.height * scale / PIXELS_A_TOKEN))


def image_size(head: bytes) -> ImageSize | None:
    """The size of a PNG, GIF, WebP or JPEG image from its first bytes; None for others and torn ones."""
    try:
        if head.startswith(b"\x89PNG"):
            return ImageSize(*struct.unpack(">II", head[16:24]))
        if head.startswith(b"GIF8"):
            return ImageSize(*struct.unpack("<HH", head[6:10]))
        if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
            return _webp(head)
        return _jpeg(head) if head.startswith(b"\xff\xd8") else None
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


def _pages(data: str) -> int:
    """Pages of a PDF as far as it names them in the open; 0 if they are compressed away."""
    return len(_PAGE.findall(_decoded(data)))


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data[: len(data) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""
