"""How full a session is: what the client would send on a resume, by its live chain.

``sessions.session.Session.context`` is the one who asks: it puts the size into the window that the
client acts on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from resume_hooks import clock
from resume_hooks.transcripts import records, tokens
from resume_hooks.transcripts.calibration import Scale, calibrate
from resume_hooks.transcripts.head_tail import HeadTail, version_numbers
from resume_hooks.transcripts.lines import Line, OneOpen, open_transcript
from resume_hooks.transcripts.nodes import Node, node_of
from resume_hooks.transcripts.records import Record, counted_tokens, string
from resume_hooks.transcripts.tokens import (
    ADDED,
    CHARACTERS_PER_TOKEN,
    ESTIMATED,
    MEASURED,
    MUCH,
    USUAL_BASE,
    ContextSize,
    StatedSize,
    first_request,
    last_counted,
    left_by_trim,
    stated_size,
    tokens_of_chain,
    window_of_parent,
)
from resume_hooks.transcripts.transcript import (
    certain_chain,
    chooses_alike,
    is_complete,
    scan,
    stays_after_boundary,
)
from resume_hooks.transcripts.trimmable_pieces import Pieces

LATER = "much came after the last answer that was counted"
CLEARED = "tool outputs that Claude Code cleared are sent again"
THOUGHTS = "thinking that the last count lacks may be sent again"
BEGUN_WITHIN = "the last count includes a beginning that the file lacks"
COMPACTED = "no answer was counted since the compaction"
TRIMMED = "no answer was counted since the trim"
MADE = "no answer was counted since it was made"
UNCOUNTED = "no answer was counted"
"""Reasons of a size that is not measured."""

SEARCHED_END = 4 * 1024 * 1024  # bytes of an old file's end that a list looks through for a change
SOUND_SINCE = (2, 1, 112)
"""The oldest client that is known to note no clearing, and to write all records that others follow."""

_PARENT = re.compile(rb'"parentUuid":"([^"]+)"')
_UUID = re.compile(rb'"uuid":"([^"]+)"')

FOREIGN_BEGINNING = 1.5  # of what a session begins with: what its first count may have before its beginning is missing


def size_of_chain(
    file: str | OneOpen, chain: list[Node], pieces: Pieces | None = None, window: int = 0
) -> tuple[ContextSize, Scale]:
    """What the client would send of a live chain, and the scale of its pieces.

    Without ``pieces`` what came after the last count goes by the usual ratio. A ``window`` of 0 is
    told by the session.
    """
    stated = stated_size(file)
    usual = stated.ratio if stated else CHARACTERS_PER_TOKEN
    if pieces is None:
        scale = Scale(usual, {}, {})
    else:
        scale = calibrate(chain, pieces, usual)
    window = window or window_of_parent(stated)
    counted, later = tokens_of_chain(chain, scale.ratio)
    if not counted:
        return _uncounted_size(file, chain, stated, window), scale
    added = later + scale.again
    # The end of a file alone may begin anywhere.
    lacking = 0 if pieces is None else _tokens_before_file(file, chain)
    count = counted + added - lacking
    is_cleared = any(node.subtype == records.CLEARED for node in chain)
    kind, reason = MEASURED, ""
    if lacking:
        kind, reason = ESTIMATED, BEGUN_WITHIN
    elif is_cleared and (pieces is None or scale.again > MUCH * count):
        kind, reason = ESTIMATED, CLEARED
    elif scale.dropped > MUCH * count:
        kind, reason = ESTIMATED, THOUGHTS
    elif added > MUCH * count:
        kind, reason = ADDED, LATER
    return ContextSize.of(count, window, kind, reason, added), scale


def size_of_tail(file: str | OneOpen, window: int = 0) -> ContextSize:
    """The same from as little of the file's end as tells it, where its live part is too long to read.

    The end tells where the branch that the client would choose ends there and was measured there,
    or was compacted there; what is unusual (a branch chosen farther up, outputs cleared there) is
    left to a whole scan.
    """
    if records.CLEARED.encode() in _searched_end(HeadTail(file)):
        return size_of_chain(file, scan(file).chain, window=window)[0]
    for reach in tokens.TAIL_REACHES:
        tail = scan(file, reach)
        if tail.whole:
            return size_of_chain(file, tail.chain, window=window)[0]
        if chooses_alike(tail):
            chain = certain_chain(tail)
            if is_complete(chain, tail) or (
                last_counted(chain) and stays_after_boundary(chain, tail)
            ):
                return size_of_chain(file, chain, window=window)[0]
    return size_of_chain(file, scan(file).chain, window=window)[0]


def size_at_end(found: Sequence[Record], window: int = 0) -> ContextSize | None:
    """What the records of a file's end say, on whatever branch: what was counted last, and what came after.

    None where nothing was counted since the last compaction, or the end can't tell: a client that
    cleared outputs sends them again.
    """
    later = 0
    for record in reversed(found):
        subtype = string(record, "subtype")
        if subtype in {records.COMPACTION, records.CLEARED}:
            return None
        if record.get("isSidechain"):
            continue
        if count := counted_tokens(record)[1]:
            added = round(later / CHARACTERS_PER_TOKEN)
            is_much = added > MUCH * (count + added)
            if is_much:
                return ContextSize.of(count + added, window, ADDED, LATER, added)
            return ContextSize.of(count + added, window, added=added)
        if records.kind(record) in records.MESSAGES:
            later += node_of(record, Line(0, 0, b"")).characters
    return None


def was_compacted(ends: HeadTail) -> bool:
    """Whether a compaction, or a clearing of outputs, is among the records of a file's end."""
    changes = {records.COMPACTION, records.CLEARED}
    return any(string(record, "subtype") in changes for record in ends.last_records)


def may_differ_within(ends: HeadTail) -> bool:
    """Whether something between the ends of a file may change its size, which these don't show.

    Old clients cleared outputs, and let records follow others that they never wrote: a resume ends
    its way up there.
    """
    region = _searched_end(ends)
    if records.CLEARED.encode() in region:
        return True
    # The first of these records may follow one that stands above.
    lacking_above = int(ends.size > SEARCHED_END)
    lacking = set(_PARENT.findall(region)).difference(_UUID.findall(region))
    return len(lacking) > lacking_above


def _searched_end(ends: HeadTail) -> bytes:
    """The end of a file in which an old client may have left such a change; nothing of a newer client's."""
    if ends.small:
        return ends.head
    if version_numbers(ends.first_version) >= SOUND_SINCE:
        return b""
    with open_transcript(ends.file) as stream:
        stream.seek(max(0, ends.size - SEARCHED_END))
        return stream.read(SEARCHED_END)


def _uncounted_size(
    file: str | OneOpen, chain: list[Node], stated: StatedSize | None, window: int
) -> ContextSize:
    """The size of a chain in which no answer was counted: what a child states, or its characters.

    Between a compaction and the next answer it is what our trim in place said; else nothing has
    counted what every request begins with, so that is added.
    """
    count = stated.tokens if stated else 0
    reason = MADE if count else UNCOUNTED
    spoken = tokens_of_chain(chain)[1]
    if chain and chain[0].boundary:
        ends = HeadTail(file)
        if not count or (chain[0].time_ms or 0) > (clock.to_milliseconds(ends.derived_at) or 0):
            first = first_request(ends)
            trimmed = _left_by_last_trim(ends)
            count = trimmed or spoken + (first.tokens if first else USUAL_BASE)
            reason = TRIMMED if trimmed else COMPACTED
    return ContextSize.of(count or spoken, window, ESTIMATED, reason)


def _tokens_before_file(file: str | OneOpen, chain: list[Node]) -> int:
    """Tokens that were counted of what stood before a file that begins within a session, and is not sent."""
    if chain[0].boundary or not chain[0].parent:
        return 0
    said = 0
    for node in chain:
        if node.input_tokens:
            before = node.input_tokens - round(said / CHARACTERS_PER_TOKEN)
            break
        said += node.characters
    else:
        return 0
    first = first_request(HeadTail(file))
    base = first.tokens if first else USUAL_BASE
    if before > FOREIGN_BEGINNING * base:
        return before - base
    return 0


def _left_by_last_trim(ends: HeadTail) -> int:
    """What our last trim in place said is left; 0 where none was since, or only in the session that it is a child of.

    The compaction itself may be out of reach: a client writes all that is left between that and the
    remark.
    """
    for record in reversed(ends.last_records):
        if string(record, "subtype") == records.COMPACTION:
            break
        if left := left_by_trim(record):
            if clock.normalize_timestamp(record.get("timestamp")) > ends.derived_at:
                return left
            return 0
    return 0
