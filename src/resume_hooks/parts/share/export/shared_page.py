"""Write and read a page that contains its session.

The same file can be read in a browser and imported with ``import``. The session is a bundle at the
end of the page, compressed with gzip and encoded as base64. It is in a script element that browsers
neither run nor show, and an attribute of this element contains the digest of the bundle. Secrets
and home folders are removed from the page and from the bundle. An import unpacks the bundle into a
private file, and rejects a bundle that does not match its digest.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import mmap
import re
import tempfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from resume_hooks.derive.imports.plan_import import is_web_page
from resume_hooks.errors import ImportFailed, WriteFailed
from resume_hooks.parts.share.export import HTML, MAX_TEXT_CHARACTERS
from resume_hooks.parts.share.export.document import Document, DocumentOptions
from resume_hooks.parts.share.export.document_file import ChunkCounter, measure_chunks
from resume_hooks.parts.share.export.page import EMBEDDED_SESSION_NOTICE
from resume_hooks.parts.share.export.parts import EmbeddedSession, EndPart
from resume_hooks.parts.share.export.select_records import CONVERSATION
from resume_hooks.paths import Where, make_private_folder
from resume_hooks.reading.bundle import BundleRedactor, HomeFolders, export_bundle
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.storage.staging import CHUNK_BYTES, StagedFile, stage_chunks

PAGE_OPTIONS = DocumentOptions(
    HTML,
    must_redact=True,
    includes_thinking=True,
    record_range=CONVERSATION,
    max_text_characters=MAX_TEXT_CHARACTERS,
)
"""The options for the page, which shows all records that led to the session's end."""

BUNDLE_START_TEXT = '\n<script type="application/x-resume-hooks-bundle+gzip" data-sha256="'
"""The text before the digest of the bundle.

The conversation on the page cannot contain this text, because all text on the page is escaped.
"""

BUNDLE_DATA_START_TEXT = '">'
BUNDLE_END_TEXT = "</script>"
UNCHANGED_COPY_REMEDY = "Ask the sender for an unchanged copy of the file."

_SHA256_DIGEST_PATTERN = re.compile(rb"[0-9a-f]{64}")
_BYTES_PER_LINE = 3 * 1024  # The number of bytes that are encoded in each line of base64.
_GZIP_WINDOW_BITS = 31  # The value of zlib's ``wbits`` for the gzip format.


class PackedBundle(NamedTuple):
    """The compressed bundle of one or more sessions, in a temporary file without a name.

    ``redactor`` counts the secrets and other contents that were removed from the sessions.
    """

    stream: BinaryIO
    sha256: str
    byte_count: int
    redactor: BundleRedactor

    def build_chunks(self, document: Document) -> Iterator[bytes]:
        """Yield the page of a document, with the bundle at its end.

        Raise SessionNotFound if a session's file has changed since its records were selected.
        """
        end_part = EndPart(
            dict(self.redactor.counts_by_kind),
            self.redactor.media_count,
            0,
            self.redactor.folder_count,
        )
        return document.build_chunks(EmbeddedSession(end_part, self._encode_rows()))

    def _encode_rows(self) -> Iterator[str]:
        yield f"{BUNDLE_START_TEXT}{self.sha256}{BUNDLE_DATA_START_TEXT}\n"
        self.stream.seek(0)
        while row_bytes := self.stream.read(_BYTES_PER_LINE):
            yield f"{base64.b64encode(row_bytes).decode()}\n"
        yield f"{BUNDLE_END_TEXT}\n"


@contextlib.contextmanager
def open_packed_bundle(document: Document, where: Where) -> Iterator[PackedBundle]:
    """Yield a file with the packed sessions of a document, and close it after the ``with`` block.

    The file has no name, so a crash leaves no file behind. Raise SessionNotFound if a session
    cannot be read, and WriteFailed if the file cannot be written.
    """
    redactor = BundleRedactor(document.redactor or Redactor(), HomeFolders(where, document.folders))
    counter = ChunkCounter()
    with contextlib.ExitStack() as stack:
        try:
            stream = stack.enter_context(
                tempfile.TemporaryFile(dir=make_private_folder(where.state, where))
            )
            compressor, bundle = (
                zlib.compressobj(wbits=_GZIP_WINDOW_BITS),
                export_bundle(document.sessions, where, redactor),
            )
            stream.writelines(counter.yield_and_measure_chunks(map(compressor.compress, bundle)))
            stream.writelines(counter.yield_and_measure_chunks([compressor.flush()]))
            stream.flush()
        except OSError as error:
            # The buffer could not be written, so closing the file fails as well.
            with contextlib.suppress(OSError):
                stack.close()
            raise WriteFailed(
                f"The bundle could not be packed: {error.strerror or error}",
                "Nothing was written. Check free space and the permissions of the state folder.",
            ) from error
        yield PackedBundle(stream, counter.size_and_digest.sha256, counter.size, redactor)


@contextlib.contextmanager
def unpack_embedded_bundle(
    staged: StagedFile, max_bytes: int, where: Where
) -> Iterator[StagedFile]:
    """Yield the unpacked bundle of a page. The unpacked file is deleted after the ``with`` block.

    Any other file is yielded unchanged. Raise ImportFailed if the bundle was truncated or changed,
    or if it has more than ``max_bytes`` bytes after unpacking.
    """
    if not is_web_page(staged.path):
        yield staged
        return
    with (
        open(staged.path, "rb") as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as page,
    ):
        start = page.rfind(BUNDLE_START_TEXT.encode())
        if start < 0:
            if page.find(EMBEDDED_SESSION_NOTICE.encode()) >= 0:
                raise ImportFailed(
                    "This page was truncated: its session is missing", UNCHANGED_COPY_REMEDY
                )
            yield staged
            return
        with stage_chunks(
            _read_packed_chunks(page, start + len(BUNDLE_START_TEXT)), max_bytes, where
        ) as inner_file:
            yield inner_file


def _read_packed_chunks(page: mmap.mmap, start: int) -> Iterator[bytes]:
    """Yield the compressed bundle in a page. Raise ImportFailed if its digest does not match."""
    sha256, position = page[start : start + 64], start + 64 + len(BUNDLE_DATA_START_TEXT)
    end = page.find(BUNDLE_END_TEXT.encode(), position)
    if (
        not _SHA256_DIGEST_PATTERN.fullmatch(sha256)
        or page[start + 64 : position] != BUNDLE_DATA_START_TEXT.encode()
        or end < 0
    ):
        raise ImportFailed(
            "This page was truncated or changed: its session can't be read", UNCHANGED_COPY_REMEDY
        )
    if measure_chunks(_decode_base64_lines(page, position, end)).sha256 != sha256.decode():
        raise ImportFailed(
            "This page was changed: it no longer contains the session that was shared",
            UNCHANGED_COPY_REMEDY,
        )
    yield from _decode_base64_lines(page, position, end)


def _decode_base64_lines(page: mmap.mmap, start: int, end: int) -> Iterator[bytes]:
    """Decode the lines of base64 between two offsets of a page. Raise ImportFailed if they are invalid.

    The line ends are ignored, because a mail program may have changed them.
    """
    remainder = b""
    try:
        for position in range(start, end, CHUNK_BYTES):
            base64_letters = remainder + b"".join(
                page[position : min(position + CHUNK_BYTES, end)].split()
            )
            decodable_count = len(base64_letters) // 4 * 4
            remainder = base64_letters[decodable_count:]
            yield base64.b64decode(base64_letters[:decodable_count], validate=True)
        yield base64.b64decode(remainder, validate=True)
    except binascii.Error as error:
        raise ImportFailed(
            "This page was changed: its session can't be read", UNCHANGED_COPY_REMEDY
        ) from error
