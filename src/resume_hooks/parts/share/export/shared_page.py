"""A page that carries its session: what any browser opens and what ``import`` takes are one file.

The bundle stands at the page's end, packed by gzip and in base64, as data that no browser runs or shows; its digest
stands before it. Secrets and home folders are in neither of the two.
"""

from __future__ import annotations

import base64
import contextlib
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple

from resume_hooks.errors import WriteFailed
from resume_hooks.parts.share.export.document import Document, DocumentOptions, folders_of
from resume_hooks.parts.share.export.forms import HTML, LIMIT
from resume_hooks.parts.share.export.parts import Carried, EndPart
from resume_hooks.parts.share.export.select_records import WHOLE
from resume_hooks.parts.share.export.writing import Sink
from resume_hooks.paths import Where, private_folder
from resume_hooks.reading.bundle import BundleRedactor, export
from resume_hooks.reading.homes import Homes

PAGE = DocumentOptions(HTML, redact=True, thoughts=True, what=WHOLE, limit=LIMIT)
"""What the page tells: everything that led to the session's end."""

MARK = '\n<script type="application/x-resume-hooks-bundle+gzip" data-sha256="'
"""What stands before the digest. A page escapes what was said, so that nothing in it reads like this."""

BEGUN = '">'
ENDED = "</script>"
_ROW = 3 * 1024  # bytes that a row holds, before base64
_GZIP = 31  # zlib's word for: with the head and the checksum of gzip


class PackedBundle(NamedTuple):
    """A session's bundle, packed in a file without a name; ``size`` in bytes, ``taken`` is what it goes without."""

    stream: BinaryIO
    sha256: str
    size: int
    taken: BundleRedactor

    def chunks(self, document: Document) -> Iterator[bytes]:
        """The page of the same sessions, with the bundle in it. Errors as of ``Document.chunks``."""
        taken = self.taken
        end = EndPart(dict(taken.kinds), taken.pictures, 0, taken.folders)
        return document.chunks(Carried(end, self._rows()))

    def _rows(self) -> Iterator[str]:
        yield f"{MARK}{self.sha256}{BEGUN}\n"
        self.stream.seek(0)
        while piece := self.stream.read(_ROW):
            yield f"{base64.b64encode(piece).decode()}\n"
        yield f"{ENDED}\n"


@contextlib.contextmanager
def packed(document: Document, where: Where) -> Iterator[PackedBundle]:
    """The bundle of a document's sessions, for the length of the block; no crash leaves anything of it.

    SessionNotFound if one can't be read, WriteFailed where the disk refuses.
    """
    taken = BundleRedactor(Homes(where, folders_of(document.sessions, where)))
    sink = Sink()
    with contextlib.ExitStack() as stack:
        try:
            stream = stack.enter_context(tempfile.TemporaryFile(dir=private_folder(where.state, where)))
            stream.writelines(sink.through(_gzipped(export(document.sessions, where, taken))))
            stream.flush()
        except OSError as error:
            raise WriteFailed(
                f"The bundle could not be packed: {error.strerror or error}",
                "Nothing was written. Check free space and the permissions of the state folder.",
            ) from error
        yield PackedBundle(stream, sink.written.sha256, sink.size, taken)


def _gzipped(pieces: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(wbits=_GZIP)
    yield from map(packer.compress, pieces)
    yield packer.flush()
