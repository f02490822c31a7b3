"""Tests of token costs: an image's cost depends on its pixels, and a document's cost on its pages.

Damaged data has the maximum cost.
"""

from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.transcripts.tokens import (
    MAX_IMAGE_TOKENS,
    TOKENS_PER_PAGE,
    ImageSize,
    image_size,
    image_tokens,
    media_tokens,
)
from tests.builders import Record

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480) + b"\x08\x02\0\0\0"
GIF = b"GIF89a" + struct.pack("<HH", 640, 480) + b"\0\0\0"
JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF" + b"\0" * 10
    + b"\xff\xe1\x00\x14Exif\0\0\xff\xd8\xff\xc0\x00\x0b\x08\0\x10\0\x10\0"  # A thumbnail that has its own size.
    + b"\xff\xc2\x00\x0b\x08" + struct.pack(">HH", 480, 640) + b"\x03\0\0\0"
)  # fmt: skip
WEBP_EXTENDED = (
    b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0"
    + (639).to_bytes(3, "little")
    + (479).to_bytes(3, "little")
)
WEBP_LOSSLESS = (
    b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + (639 | 479 << 14).to_bytes(4, "little") + b"\0" * 8
)
WEBP_LOSSY = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\x30\x01\0\x9d\x01\x2a" + struct.pack("<HH", 640, 480)
IMAGES_BY_FORMAT = {
    "png": PNG,
    "gif": GIF,
    "jpeg": JPEG,
    "webp extended": WEBP_EXTENDED,
    "webp lossless": WEBP_LOSSLESS,
    "webp lossy": WEBP_LOSSY,
}


def media_block(data: bytes, kind: str = "image") -> Record:
    """Return an image or document block with ``data``."""
    return {
        "type": kind,
        "source": {"type": "base64", "media_type": "x", "data": base64.b64encode(data).decode()},
    }


@pytest.mark.parametrize("form", IMAGES_BY_FORMAT)
def test_the_size_of_each_image_format_is_read(form: str) -> None:
    """The size of an image is read from its first bytes. An image of 640 x 480 pixels costs 410 tokens."""
    assert image_size(IMAGES_BY_FORMAT[form] + b"rest") == ImageSize(640, 480)
    assert media_tokens(media_block(IMAGES_BY_FORMAT[form] + b"rest")) == 410


@pytest.mark.parametrize("form", IMAGES_BY_FORMAT)
def test_truncated_images_have_the_maximum_cost(form: str) -> None:
    """An image whose data ends before the numbers that state its size has the maximum cost."""
    for end in (0, 3, 8):
        assert image_size(IMAGES_BY_FORMAT[form][:end]) is None
        assert media_tokens(media_block(IMAGES_BY_FORMAT[form][:end])) == MAX_IMAGE_TOKENS


@pytest.mark.parametrize(
    ("size", "tokens"),
    [(ImageSize(1, 1), 0), (ImageSize(750, 1), 1), (ImageSize(1_000, 1_000), 1_333), (ImageSize(4_000, 400), 328),
     (ImageSize(8_000, 8_000), 1_600), (ImageSize(0, 0), 0), (ImageSize(4_294_967_295, 1), 0)],
)  # fmt: skip
def test_images_are_scaled_as_the_api_does(size: ImageSize, tokens: int) -> None:
    """Images are scaled as the API scales them: to at most 1,568 pixels per side and about 1,600 tokens."""
    assert image_tokens(size) == tokens


@pytest.mark.parametrize(
    ("form", "end"), [("png", 20), ("jpeg", 40), ("webp extended", 25), ("webp lossless", 20)]
)
def test_the_size_of_a_truncated_image_is_none(form: str, end: int) -> None:
    """The size of an image is None if the data ends before the numbers that state the size."""
    assert image_size(IMAGES_BY_FORMAT[form][:end]) is None


def test_the_cost_of_a_document_depends_on_its_pages() -> None:
    """The cost of a PDF depends on its number of pages, and that of a plain text on its length.

    A PDF has at least one page.
    """
    pages = b"%PDF-1.4 /Type /Pages /Type /Page /Type/Page\n /Type /Page>>"
    assert media_tokens(media_block(pages, "document")) == 3 * TOKENS_PER_PAGE
    assert media_tokens(media_block(b"%PDF-1.7 compressed", "document")) == TOKENS_PER_PAGE
    text = {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "x" * 400},
    }
    assert media_tokens(text) == 100


@pytest.mark.parametrize(
    "source", [None, "x", {}, {"type": "url", "url": "https://x"}, {"data": 5}, {"data": "\u00e4!"}]
)
def test_invalid_sources_are_accepted(source: object) -> None:
    """An image or document with an invalid source has a cost, and no error is raised."""
    assert media_tokens({"type": "image", "source": source}) in {0, MAX_IMAGE_TOKENS}
    assert media_tokens({"type": "document", "source": source}) in {0, TOKENS_PER_PAGE}


@given(
    start=st.sampled_from(
        [form[:end] for form in IMAGES_BY_FORMAT.values() for end in (2, 8, 16, 30)]
    ),
    rest=st.binary(max_size=90),
)
def test_any_bytes_have_a_finite_cost(start: bytes, rest: bytes) -> None:
    """Whatever bytes follow the beginning of an image, the cost is between 0 and ``MAX_IMAGE_TOKENS``."""
    assert 0 <= media_tokens(media_block(start + rest)) <= MAX_IMAGE_TOKENS
