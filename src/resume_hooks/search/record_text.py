"""Texts of records as the index heard them, read from the transcripts, on one line; and the phrases in them.

What a file holds by now may not be what was indexed: a record that is no longer where it was has no text.
"""

from __future__ import annotations

import os
import re
import sqlite3
import unicodedata
from typing import NamedTuple

from resume_hooks.paths import open_regular
from resume_hooks.search.index.archived import TranscriptPaths
from resume_hooks.search.index.extract import RecordTexts, TextExtractor
from resume_hooks.search.index.tokenize import folded
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.system.text import plain
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import Line

_NUMBERED = re.compile(r" *\d+(?:→|\t)")
_NUMBERS = re.compile(r"(?:\A|\n) *\d+(?:→|\t)")
"""What the client puts before each line of a file that it shows to the model; no phrase goes over it."""

_PLACE = (
    "SELECT f.path, f.session, f.agent, f.inode, r.offset, r.length FROM records r JOIN files f ON f.id=r.file"
    " WHERE r.id=?"
)


LARGEST = 64 * 1024 * 1024
"""Bytes of a record that is read to be shown; the text of a larger one takes ten times as much memory."""


class Text(NamedTuple):
    """A text on one line without controls; ``bare`` is the same, letter by letter, without accents."""

    shown: str
    bare: str


class _Bare(dict[int, str]):
    """Each letter without its accent, where that is one letter too; worked out once."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        low = folded(letter)
        upper = low.upper() if letter.isupper() else low
        self[code] = upper if len(upper) == 1 else letter
        return self[code]


_bare = _Bare()


def text_of(words: str) -> Text:
    """Words as they are shown and compared."""
    shown = " ".join(plain(words).split())
    if shown.isascii():
        return Text(shown, shown)
    shown = unicodedata.normalize("NFC", shown)
    return Text(shown, shown.translate(_bare))


def phrase_of(words: str) -> re.Pattern[str]:
    """What finds a phrase in a ``bare`` text: its words whole, whatever their case."""
    bare = text_of(words).bare.lower()
    start = r"(?<![0-9a-z_])" if re.match("[0-9a-z_]", bare) else ""
    end = r"(?![0-9a-z_])" if re.search("[0-9a-z_]$", bare) else ""
    return re.compile(f"{start}{re.escape(bare)}{end}")


class Texts:
    """Reads the texts of records; ``size`` is how many bytes that were."""

    def __init__(self, db: sqlite3.Connection, opening: TranscriptPaths) -> None:
        self._db = db
        self._opening = opening
        self.size = 0

    def of(self, record: int) -> Text | None:
        """The text of a record; None where it is no longer what was indexed."""
        row = self._db.execute(_PLACE, (record,)).fetchone()
        if row and row[5] > LARGEST:
            large = f"(a record of {size_text(row[5])}, too large to be shown here)"
            return Text(large, large)
        raw = _raw(self._opening.path_of(*row[:2]), *row[3:]) if row else b""
        self.size += len(raw)
        found = records.parse(Line(0, 0, raw).body)
        said = TextExtractor(subagent=bool(row[2]), sifting=False).said(found) if found is not None else None
        return None if said is None else text_of(_joined(said))


def _raw(path: str, inode: int, offset: int, length: int) -> bytes:
    """A line of a file, if it is still the file that was indexed and the line begins there; else nothing."""
    try:
        with open_regular(path, follow=False) as stream:
            if inode > 0 and inode != os.fstat(stream.fileno()).st_ino:
                return b""
            stream.seek(max(0, offset - 1))
            before = stream.read(1) if offset else b"\n"
            return stream.read(length) if before == b"\n" else b""
    except OSError:
        return b""


def _joined(said: RecordTexts) -> str:
    """What a record says; files without the numbers of their lines, as they are indexed."""
    outer = (text for text in (said.prompt, said.reply) if text)
    inner = (_NUMBERS.sub("\n", text) if _NUMBERED.match(text) else text for text in (said.input, said.result) if text)
    return "\n".join([*outer, *inner])
