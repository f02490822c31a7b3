"""A page that contains its session: one file for any browser and for ``import``.

The bundle is at the end of the page, compressed with gzip and encoded as base64, in a script
element that browsers neither run nor show. Its digest precedes it. Secrets and home folders are
removed from both. On import, the bundle is unpacked into a private file and rejected if anything
changed.
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

from resume_hooks.derive.imports.plan import is_web_page
from resume_hooks.errors import ImportFailed, WriteFailed
from resume_hooks.parts.share.export import HTML, LIMIT
from resume_hooks.parts.share.export.document import Document, DocumentOptions
from resume_hooks.parts.share.export.page import CARRIES
from resume_hooks.parts.share.export.parts import Carried, EndPart
from resume_hooks.parts.share.export.select_records import WHOLE
from resume_hooks.parts.share.export.writing import Sink, measure_chunks
from resume_hooks.paths import Where, make_private_folder
from resume_hooks.reading.bundle import BundleRedactor, HomeFolders, export_bundle
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.storage.staging import PIECE, StagedFile, stage_chunks

PAGE = DocumentOptions(HTML, redact=True, thoughts=True, what=WHOLE, limit=LIMIT)
"""The page shows all records that led to the session's end."""

MARK = '\n<script type="application/x-resume-hooks-bundle+gzip" data-sha256="'
"""The text before the digest.

The page's text is escaped, so nothing in the conversation can look like this.
"""

BEGUN = '">'
ENDED = "</script>"
AGAIN = "Ask for the file again, sent unchanged."

_DIGEST = re.compile(rb"[0-9a-f]{64}")
_ROW = 3 * 1024  # bytes per row before base64
_GZIP = 31  # zlib's wbits for the gzip format


class PackedBundle(NamedTuple):
    """A session's compressed bundle in an unnamed file; ``size`` is in bytes, ``taken`` counts the removed content."""

    stream: BinaryIO
    sha256: str
    size: int
    taken: BundleRedactor

    def chunks(self, document: Document) -> Iterator[bytes]:
        """Yield the page of the same sessions, with the bundle inside.

        Raise the errors of ``Document.chunks``.
        """
        end = EndPart(dict(self.taken.kinds), self.taken.pictures, 0, self.taken.folders)
        return document.chunks(Carried(end, self._encoded_rows()))

    def _encoded_rows(self) -> Iterator[str]:
        yield f"{MARK}{self.sha256}{BEGUN}\n"
        self.stream.seek(0)
        while piece := self.stream.read(_ROW):
            yield f"{base64.b64encode(piece).decode()}\n"
        yield f"{ENDED}\n"


@contextlib.contextmanager
def pack_bundle(document: Document, where: Where) -> Iterator[PackedBundle]:
    """Pack the bundle of a document's sessions for the duration of the block.

    A crash leaves no file behind.

    Raise SessionNotFound if a session cannot be read, and WriteFailed on a disk error.
    """
    taken = BundleRedactor(document.known or Redactor(), HomeFolders(where, document.folders))
    sink = Sink()
    with contextlib.ExitStack() as stack:
        try:
            stream = stack.enter_context(
                tempfile.TemporaryFile(dir=make_private_folder(where.state, where))
            )
            packer, plain = (
                zlib.compressobj(wbits=_GZIP),
                export_bundle(document.sessions, where, taken),
            )
            stream.writelines(sink.pass_through(map(packer.compress, plain)))
            stream.writelines(sink.pass_through([packer.flush()]))
            stream.flush()
        except OSError as error:
            raise WriteFailed(
                f"The bundle could not be packed: {error.strerror or error}",
                "Nothing was written. Check free space and the permissions of the state folder.",
            ) from error
        yield PackedBundle(stream, sink.written_file.sha256, sink.size, taken)


@contextlib.contextmanager
def unpack_carried(taken: StagedFile, most: int, where: Where) -> Iterator[StagedFile]:
    """Unpack the session inside a page for the duration of the block.

    Any other file is returned unchanged.

    Raise ImportFailed if the bundle was truncated or changed, or unpacks to more than ``most``
    bytes.
    """
    if not is_web_page(taken.path):
        yield taken
        return
    with (
        open(taken.path, "rb") as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as page,
    ):
        start = page.rfind(MARK.encode())
        if start < 0:
            if page.find(CARRIES.encode()) >= 0:
                raise ImportFailed("This page was truncated: its session is missing", AGAIN)
            yield taken
            return
        with stage_chunks(_packed_bytes_in(page, start + len(MARK)), most, where) as inner:
            yield inner


def _packed_bytes_in(page: mmap.mmap, start: int) -> Iterator[bytes]:
    """Yield the packed bundle in pieces. Raise ImportFailed if its digest does not match."""
    sha256, at = page[start : start + 64], start + 64 + len(BEGUN)
    end = page.find(ENDED.encode(), at)
    if not _DIGEST.fullmatch(sha256) or page[start + 64 : at] != BEGUN.encode() or end < 0:
        raise ImportFailed("This page was truncated or changed: its session can't be read", AGAIN)
    if measure_chunks(_decode_rows(page, at, end)).sha256 != sha256.decode():
        raise ImportFailed("This page was changed: its session is not the shared one", AGAIN)
    yield from _decode_rows(page, at, end)


def _decode_rows(page: mmap.mmap, at: int, end: int) -> Iterator[bytes]:
    """Yield the decoded bytes of the rows between two offsets.

    A mail program may have changed their line endings.
    """
    rest = b""
    try:
        for place in range(at, end, PIECE):
            letters = rest + b"".join(page[place : min(place + PIECE, end)].split())
            whole = len(letters) // 4 * 4
            rest = letters[whole:]
            yield base64.b64decode(letters[:whole], validate=True)
        yield base64.b64decode(rest, validate=True)
    except binascii.Error as error:
        raise ImportFailed("This page was changed: its session can't be read", AGAIN) from error
