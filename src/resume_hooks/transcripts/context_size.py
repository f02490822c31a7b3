"""The size of a session's context: the tokens that the client would send on a resume, from its live chain.

The caller, ``sessions.session.Session.context``, relates the size to the client's effective window.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from resume_hooks import clock
from resume_hooks.transcripts import records, tokens
from resume_hooks.transcripts.calibration import TokenScale, calibrate_tokens
from resume_hooks.transcripts.head_tail import HeadTail, parse_version
from resume_hooks.transcripts.lines import Line, SharedFile, open_transcript
from resume_hooks.transcripts.nodes import Node, make_node
from resume_hooks.transcripts.records import Record, counted_tokens, string
from resume_hooks.transcripts.tokens import (
    ADDED,
    CHARACTERS_PER_TOKEN,
    ESTIMATED,
    MAX_ESTIMATED_SHARE,
    MEASURED,
    USUAL_BASE,
    ContextSize,
    StatedSize,
    first_request,
    last_counted,
    read_stated_size,
    stated_window,
    tokens_after_trim,
    tokens_of_chain,
)
from resume_hooks.transcripts.transcript import (
    certain_chain,
    is_after_boundary,
    is_complete,
    scan_transcript,
    selects_same_branch,
)
from resume_hooks.transcripts.trimmable_pieces import Pieces

LATER = "much content follows the last counted answer"
CLEARED = "tool outputs that Claude Code cleared are sent again"
THOUGHTS = "thinking missing from the last count may be sent again"
MISSING_BEGINNING = "the last count includes records missing from the file's beginning"
COMPACTED = "no answer was counted since the compaction"
TRIMMED = "no answer was counted since the trim"
NOT_COUNTED_SINCE_CREATION = "no answer was counted since its creation"
UNCOUNTED = "no answer was counted"
"""Reasons for a size that is not measured."""

SEARCHED_END = 4 * 1024 * 1024  # bytes at the end of an old file to search for a clearing
SOUND_SINCE = (2, 1, 112)
"""The oldest client that is known to clear no outputs silently and to write the parents of all records."""

_PARENT = re.compile(rb'"parentUuid":"([^"]+)"')
_UUID = re.compile(rb'"uuid":"([^"]+)"')

# maximum ratio of the first count to a new session's base before the file's beginning counts as
# missing
FOREIGN_BEGINNING = 1.5


def size_of_chain(
    file: str | SharedFile, chain: list[Node], pieces: Pieces | None = None, window: int = 0
) -> tuple[ContextSize, TokenScale]:
    """Return the context size of a live chain, and the scale of its pieces.

    Without ``pieces`` content after the last count is estimated by the usual ratio. A ``window`` of
    0 is detected from the session.
    """
    stated = read_stated_size(file)
    default_ratio = stated.ratio if stated else CHARACTERS_PER_TOKEN
    if pieces is None:
        scale = TokenScale(default_ratio, {}, {})
    else:
        scale = calibrate_tokens(chain, pieces, default_ratio)
    window = window or stated_window(stated)
    counted, later = tokens_of_chain(chain, scale.ratio)
    if not counted:
        return _uncounted_size(file, chain, stated, window), scale
    added = later + scale.again
    # Only a whole file has a known beginning.
    tokens_before = 0 if pieces is None else _tokens_before_file(file, chain)
    count = counted + added - tokens_before
    is_cleared = any(node.subtype == records.CLEARED for node in chain)
    kind, reason = MEASURED, ""
    if tokens_before:
        kind, reason = ESTIMATED, MISSING_BEGINNING
    elif is_cleared and (pieces is None or scale.again > MAX_ESTIMATED_SHARE * count):
        kind, reason = ESTIMATED, CLEARED
    elif scale.dropped > MAX_ESTIMATED_SHARE * count:
        kind, reason = ESTIMATED, THOUGHTS
    elif added > MAX_ESTIMATED_SHARE * count:
        kind, reason = ADDED, LATER
    return ContextSize.of(count, window, kind, reason, added), scale


def size_of_tail(file: str | SharedFile, window: int = 0) -> ContextSize:
    """Return the context size from as little of the file's end as possible, for a live part too long to read.

    The end suffices if the client's branch ends there and was counted or compacted there. Unusual
    files (a branch chosen farther up, outputs cleared in the end) need a whole scan.
    """
    if records.CLEARED.encode() in _searched_end(HeadTail(file)):
        return size_of_chain(file, scan_transcript(file).chain, window=window)[0]
    for reach in tokens.TAIL_REACHES:
        tail = scan_transcript(file, reach)
        if tail.whole:
            return size_of_chain(file, tail.chain, window=window)[0]
        if selects_same_branch(tail):
            chain = certain_chain(tail)
            if is_complete(chain, tail) or (last_counted(chain) and is_after_boundary(chain, tail)):
                return size_of_chain(file, chain, window=window)[0]
    return size_of_chain(file, scan_transcript(file).chain, window=window)[0]


def size_from_last_records(last_records: Sequence[Record], window: int = 0) -> ContextSize | None:
    """Return the size from the records of a file's end, on any branch: the last count plus later content.

    Return None if nothing was counted since the last compaction, or if the client cleared outputs,
    because it sends them again.
    """
    later = 0
    for record in reversed(last_records):
        subtype = string(record, "subtype")
        if subtype in {records.COMPACTION, records.CLEARED}:
            return None
        if record.get("isSidechain"):
            continue
        if count := counted_tokens(record)[1]:
            added = round(later / CHARACTERS_PER_TOKEN)
            is_much = added > MAX_ESTIMATED_SHARE * (count + added)
            if is_much:
                return ContextSize.of(count + added, window, ADDED, LATER, added)
            return ContextSize.of(count + added, window, added=added)
        if records.kind(record) in records.MESSAGES:
            later += make_node(record, Line(0, 0, b"")).characters
    return None


def was_compacted(ends: HeadTail) -> bool:
    """Check whether the records of a file's end include a compaction or a clearing of outputs."""
    changes = {records.COMPACTION, records.CLEARED}
    return any(string(record, "subtype") in changes for record in ends.last_records)


def may_change_in_middle(ends: HeadTail) -> bool:
    """Check whether the middle of a file may contain a change of its size that the ends don't show.

    Old clients cleared outputs, and wrote records without writing their parents, where a resume
    then stops.
    """
    region = _searched_end(ends)
    if records.CLEARED.encode() in region:
        return True
    # The parent of the first record may precede the searched end.
    lacking_above = int(ends.size > SEARCHED_END)
    lacking = set(_PARENT.findall(region)).difference(_UUID.findall(region))
    return len(lacking) > lacking_above


def _searched_end(ends: HeadTail) -> bytes:
    """Return the end of a file in which an old client may have left such a change; ``b""`` for newer clients."""
    if ends.small:
        return ends.head
    if parse_version(ends.first_version) >= SOUND_SINCE:
        return b""
    with open_transcript(ends.file) as stream:
        stream.seek(max(0, ends.size - SEARCHED_END))
        return stream.read(SEARCHED_END)


def _uncounted_size(
    file: str | SharedFile, chain: list[Node], stated: StatedSize | None, window: int
) -> ContextSize:
    """Return the size of a chain without a counted answer: the child's stated size, or an estimate from characters.

    Between a compaction and the next answer, use the size reported by our trim in place. Otherwise
    add the base of every request, since no count includes it.
    """
    count = stated.tokens if stated else 0
    reason = NOT_COUNTED_SINCE_CREATION if count else UNCOUNTED
    spoken = tokens_of_chain(chain)[1]
    if chain and chain[0].boundary:
        ends = HeadTail(file)
        if not count or (chain[0].time_ms or 0) > (clock.to_milliseconds(ends.derived_at) or 0):
            first = first_request(ends)
            trimmed = _tokens_after_last_trim(ends)
            count = trimmed or spoken + (first.tokens if first else USUAL_BASE)
            reason = TRIMMED if trimmed else COMPACTED
    return ContextSize.of(count or spoken, window, ESTIMATED, reason)


def _tokens_before_file(file: str | SharedFile, chain: list[Node]) -> int:
    """Return the counted tokens of unsent content before the file's beginning, if the file lacks its start."""
    if chain[0].boundary or not chain[0].parent:
        return 0
    characters = 0
    for node in chain:
        if node.input_tokens:
            tokens_before = node.input_tokens - round(characters / CHARACTERS_PER_TOKEN)
            break
        characters += node.characters
    else:
        return 0
    first = first_request(HeadTail(file))
    base = first.tokens if first else USUAL_BASE
    if tokens_before > FOREIGN_BEGINNING * base:
        return tokens_before - base
    return 0


def _tokens_after_last_trim(ends: HeadTail) -> int:
    """Return the remaining tokens reported by our last trim in place; 0 if there was none, or only in the parent.

    The compaction may be out of reach, because a client writes all remaining records between it and
    the remark.
    """
    for record in reversed(ends.last_records):
        if string(record, "subtype") == records.COMPACTION:
            break
        if left := tokens_after_trim(record):
            if clock.normalize_timestamp(record.get("timestamp")) > ends.derived_at:
                return left
            return 0
    return 0
