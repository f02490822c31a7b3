"""The bundle that a page carries: found at its end, unpacked into a private file, refused where anything changed."""

from __future__ import annotations

import base64
import binascii
import contextlib
import mmap
import re
from collections.abc import Iterator

from resume_hooks.derive.imports.plan import is_page
from resume_hooks.errors import ImportFailed
from resume_hooks.parts.share.export.page.whole_page import CARRIES
from resume_hooks.parts.share.export.shared_page import BEGUN, ENDED, MARK
from resume_hooks.parts.share.export.writing import measured
from resume_hooks.paths import Where
from resume_hooks.storage.staging import PIECE, Taken, taken_in

AGAIN = "Have it sent again, as the file that it is."

_DIGEST = re.compile(rb"[0-9a-f]{64}")


@contextlib.contextmanager
def carried(taken: Taken, most: int, where: Where) -> Iterator[Taken]:
    """What a page carries, for the length of the block; of anything else, and of other pages, the file itself.

    ImportFailed where what it carries is cut short, changed, or unpacks to more than ``most`` bytes.
    """
    if not is_page(taken.path):
        yield taken
        return
    with open(taken.path, "rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as page:
        start = page.rfind(MARK.encode())
        if start < 0:
            if page.find(CARRIES.encode()) >= 0:
                raise ImportFailed("This page was cut short: the session that it carried is gone", AGAIN)
            yield taken
            return
        with taken_in(_packed(page, start + len(MARK)), most, where) as inner:
            yield inner


def _packed(page: mmap.mmap, start: int) -> Iterator[bytes]:
    """The packed bundle, a piece at a time. ImportFailed where it is not what its digest says."""
    sha256, at = page[start : start + 64], start + 64 + len(BEGUN)
    end = page.find(ENDED.encode(), at)
    if not _DIGEST.fullmatch(sha256) or page[start + 64 : at] != BEGUN.encode() or end < 0:
        raise ImportFailed("This page was cut short or changed: the session in it can't be read", AGAIN)
    if measured(_rows(page, at, end)).sha256 != sha256.decode():
        raise ImportFailed("This page was changed: the session in it is not what was shared", AGAIN)
    yield from _rows(page, at, end)


def _rows(page: mmap.mmap, at: int, end: int) -> Iterator[bytes]:
    """What the rows between two places hold; a mailer may have given them other endings."""
    rest = b""
    try:
        for place in range(at, end, PIECE):
            letters = rest + b"".join(page[place : min(place + PIECE, end)].split())
            whole = len(letters) // 4 * 4
            rest = letters[whole:]
            yield base64.b64decode(letters[:whole], validate=True)
        yield base64.b64decode(rest, validate=True)
    except binascii.Error as error:
        raise ImportFailed("This page was changed: the session in it can't be read", AGAIN) from error
