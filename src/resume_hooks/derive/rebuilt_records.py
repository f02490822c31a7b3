"""Records that a client built anew in a trim in place: no mark says what they lack, their placeholders alone do.

One such record may hold what were several, so each block comes back by itself. What a placeholder names is untrusted:
it counts only where it leads to the same call, its result, or something that the model said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from resume_hooks.derive.child.chain_edits import Edit
from resume_hooks.derive.originals import Originals
from resume_hooks.errors import SessionNotFound
from resume_hooks.sessions.record_references import RecordLine
from resume_hooks.transcripts import records
from resume_hooks.transcripts.placeholders import is_placeholder, stands_for_answer
from resume_hooks.transcripts.records import Record, message, string, with_content
from resume_hooks.transcripts.write_scan import mend

_PLACE = re.compile(r"; original: ([0-9a-f-]{8,36}):(\d{1,9})[^\[\]\n]{0,200}\]\Z")
"""The end of a placeholder of ours."""


def lacking(record: Record) -> dict[int, tuple[str, int]]:
    """Where the originals of blocks are of which a placeholder is all that is left, by the block's place."""
    content = message(record).get("content")
    found = {}
    for place, block in enumerate(content if isinstance(content, list) else ()):
        for text in _texts(block) if isinstance(block, dict) else ():
            if match := _PLACE.search(text[-300:]):
                found[place] = match.group(1), int(match.group(2))
    return found


def _texts(block: Record) -> Iterator[str]:
    """The texts of a block that a trim in place may have replaced."""
    kind = string(block, "type")
    if kind == records.RESULT:
        # What was several parts is one text, a line of which may stand for a picture.
        yield from filter(is_placeholder, records.result_text(block).split("\n"))
    elif kind == records.CALL:
        yield from (value for value in records.mapping(block, "input").values() if isinstance(value, str))
    elif stands_for_answer(string(block, "text")):
        yield string(block, "text")


def originals_of(record: Record, originals: Originals) -> dict[int, RecordLine]:
    """The records that hold what each block lacks; SessionNotFound where one is gone or holds something else."""
    found = {place: originals.named(*reference) for place, reference in lacking(record).items()}
    for place, line in found.items():
        if _original(message(record)["content"][place], line.record() or {}) is None:
            raise SessionNotFound(f"{line.reference} holds something else")
    return found


class Refilling:
    """The edit of one record: its blocks as in the originals, after ``first``, another edit."""

    def __init__(self, found: Mapping[int, RecordLine], first: Edit | None = None) -> None:
        self._found = found
        self._first = first

    def __call__(self, record: Record) -> Record | None:
        """The record with its blocks back. SessionNotFound if an original is gone since it was found."""
        edited = self._first(record) if self._first else record
        if edited is None:
            return None
        content = list(message(edited)["content"])
        for place, line in self._found.items():
            block = _original(content[place], line.record() or {})
            if block is None:
                raise SessionNotFound(f"{line.file} changed while it was read", "Run the command again.")
            content[place] = block
        return mend(with_content(edited, content))


def _original(block: Record, original: Record) -> Record | None:
    """The block that ``block`` was made of, in the record that holds it."""
    kind, call = string(block, "type"), records.call_id(block)
    if kind == records.TEXT:
        said = records.text(original) if records.kind(original) == records.ASSISTANT else ""
        return {**block, "text": said} if said else None
    return next(
        (one for one in records.blocks(original) if (one.get("type"), records.call_id(one)) == (kind, call)), None
    )
