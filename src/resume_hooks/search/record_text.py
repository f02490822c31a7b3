"""Texts of records, read from the transcripts as they were indexed.

What a file holds by now may not be what was indexed: a record that is no longer where it was has no text.
"""

from __future__ import annotations

import os
import re
import unicodedata
from typing import NamedTuple

from resume_hooks.paths import open_regular
from resume_hooks.search.index.extract import RecordTexts, TextExtractor
from resume_hooks.search.index.postings import Posting
from resume_hooks.search.index.tokenize import folded
from resume_hooks.sessions.lineage_block import size_text
from resume_hooks.system.text import plain
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import Line

_NUMBERED = re.compile(r" *\d+(?:→|\t)")
_NUMBERS = re.compile(r"(?:\A|\n) *\d+(?:→|\t)")
"""What the client puts before each line of a file that it shows to the model; no phrase goes over it."""

LARGEST = 64 * 1024 * 1024
"""Bytes of a record that is read to be shown; the text of a larger one takes ten times as much memory."""


class Text(NamedTuple):
    """A text on one line without controls; ``low`` is the same, letter by letter, without capitals and accents."""

    shown: str
    low: str


class _Low(dict[int, str]):
    """Each letter without its accent, where that is one letter too; worked out once."""

    def __missing__(self, code: int) -> str:
        letter = chr(code)
        low = folded(letter)
        self[code] = low if len(low) == 1 else letter.lower()
        return self[code]


_low = _Low()
_FOREIGN = re.compile(r"[^\x00-\x7f]+")  # of most texts only these letters are looked at one by one


def text_of(words: str) -> Text:
    """Words as they are shown and compared."""
    shown = " ".join(plain(words).split())
    if shown.isascii():
        return Text(shown, shown.lower())
    shown = unicodedata.normalize("NFC", shown)
    return Text(shown, _FOREIGN.sub(lambda run: run[0].translate(_low), shown).lower())


def text_at(path: str, inode: int, record: Posting, *, subagent: bool) -> tuple[Text | None, int]:
    """The text of a record in a file, and how many bytes were read; None where it is no longer what was indexed."""
    if record.length > LARGEST:
        large = f"(a record of {size_text(record.length)}, too large to be shown here)"
        return Text(large, large), 0
    raw = _raw(path, inode, record.offset, record.length)
    parsed = records.parse(Line(0, 0, raw).body)
    texts = TextExtractor(subagent=subagent, sifting=False).texts_of(parsed) if parsed is not None else None
    return None if texts is None else text_of(said_text(texts)), len(raw)


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


def said_text(texts: RecordTexts) -> str:
    """What a record says; files without the numbers of their lines, as they are indexed."""
    outer = (text for text in (texts.prompt, texts.reply) if text)
    inner = (
        _NUMBERS.sub("\n", text) if _NUMBERED.match(text) else text for text in (texts.input, texts.result) if text
    )
    return "\n".join([*outer, *inner])
