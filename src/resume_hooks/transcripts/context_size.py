"""Measure a session's context: the number of tokens that the client would send on a resume.

``sessions.session.Session.context`` compares this size with the client's window.
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
from resume_hooks.transcripts.records import Record, get_string, read_token_counts
from resume_hooks.transcripts.tokens import (
    ADDED,
    CHARACTERS_PER_TOKEN,
    ESTIMATED,
    MAX_ESTIMATED_FRACTION_OF_SIZE,
    MEASURED,
    USUAL_FIRST_REQUEST_TOKENS,
    ContextSize,
    StatedContextSize,
    count_and_estimate_tokens,
    find_last_answer_with_token_count,
    read_first_request,
    read_size_stated_in_first_line,
    stated_window,
    tokens_after_trim,
)
from resume_hooks.transcripts.transcript import (
    build_chain_if_tail_suffices,
    can_find_branch_in_tail,
    has_complete_beginning,
    is_chain_after_boundary,
    scan_transcript,
)
from resume_hooks.transcripts.trimmable_pieces import PieceCollector

CONTENT_SINCE_COUNT_REASON = "a lot of content follows the last answer with a token count"
OUTPUTS_CLEARED_REASON = "tool outputs that Claude Code cleared are sent again"
THINKING_UNCOUNTED_REASON = "the last token count excludes some thinking, which may be sent again"
MISSING_BEGINNING_REASON = (
    "the last count includes records that are missing at the start of the file"
)
NO_ANSWER_COUNTED_SINCE_COMPACTION_REASON = "no answer has been counted since the compaction"
NO_ANSWER_COUNTED_SINCE_TRIM_REASON = "no answer has been counted since the trim"
NO_ANSWER_COUNTED_SINCE_CREATION_REASON = "no answer has been counted since its creation"
NO_ANSWER_COUNTED_REASON = "no answer has been counted"
"""A reason why a size was not measured, as a text for users. The constants above are such reasons,
too."""

# In files of old clients, only the last bytes of a file, up to this number, are searched for signs
# that outputs were cleared.
MAX_BYTES_SEARCHED_AT_END = 4 * 1024 * 1024
MIN_VERSION_WITH_CLEARING_RECORDS = (2, 1, 112)
"""The first version that always records the clearing of outputs and the parents of records."""

_PARENT_FIELD_PATTERN = re.compile(rb'"parentUuid":"([^"]+)"')
_UUID_FIELD_PATTERN = re.compile(rb'"uuid":"([^"]+)"')

# If the first count is more than this many times the usual size of a first request, the start of
# the file is missing.
MIN_SIZE_FACTOR_IF_START_IS_MISSING = 1.5


def measure_chain(
    file: str | SharedFile, chain: list[Node], pieces: PieceCollector | None = None, window: int = 0
) -> tuple[ContextSize, TokenScale]:
    """Return the context size of a live chain, and the token scale of its pieces.

    If ``pieces`` is None, the content after the last answer with a token count is estimated with
    the default ratio. If ``window`` is 0, the window is detected from the session.
    """
    stated_size = read_size_stated_in_first_line(file)
    default_ratio = stated_size.characters_per_token if stated_size else CHARACTERS_PER_TOKEN
    if pieces is None:
        scale = TokenScale(default_ratio, {}, {})
    else:
        scale = calibrate_tokens(chain, pieces, default_ratio)
    window = window or stated_window(stated_size)
    counted_tokens, later_tokens = count_and_estimate_tokens(chain, scale.characters_per_token)
    if not counted_tokens:
        return _measure_without_token_count(file, chain, stated_size, window), scale
    added_tokens = later_tokens + scale.uncounted_tokens
    # If ``pieces`` are given, the whole file was scanned. Only then is the first token count of the
    # file known.
    tokens_before = 0 if pieces is None else _count_tokens_before_file_start(file, chain)
    count = counted_tokens + added_tokens - tokens_before
    is_cleared = any(node.subtype == records.OUTPUTS_CLEARED_SUBTYPE for node in chain)
    kind, reason = MEASURED, ""
    if tokens_before:
        kind, reason = ESTIMATED, MISSING_BEGINNING_REASON
    elif is_cleared and (
        pieces is None or scale.uncounted_tokens > MAX_ESTIMATED_FRACTION_OF_SIZE * count
    ):
        kind, reason = ESTIMATED, OUTPUTS_CLEARED_REASON
    elif scale.dropped_thinking_tokens > MAX_ESTIMATED_FRACTION_OF_SIZE * count:
        kind, reason = ESTIMATED, THINKING_UNCOUNTED_REASON
    elif added_tokens > MAX_ESTIMATED_FRACTION_OF_SIZE * count:
        kind, reason = ADDED, CONTENT_SINCE_COUNT_REASON
    return ContextSize.from_count(count, window, kind, reason, added_tokens), scale


def measure_context_from_tail(file: str | SharedFile, window: int = 0) -> ContextSize:
    """Return the context size of a session whose live part is too long to read.

    The function reads as little as possible of the file's end. This is enough if the client's
    branch ends there and contains a token count or a compaction. The function reads the whole file
    if the user chose a branch that ends farther up, or if an old client cleared outputs near the
    end.
    """
    if records.OUTPUTS_CLEARED_SUBTYPE.encode() in _read_end_if_client_is_old(HeadTail(file)):
        return measure_chain(file, scan_transcript(file).chain, window=window)[0]
    for tail_bytes in tokens.TAIL_SIZES_BYTES:
        tail = scan_transcript(file, tail_bytes)
        if tail.is_whole:
            return measure_chain(file, tail.chain, window=window)[0]
        if can_find_branch_in_tail(tail):
            chain = build_chain_if_tail_suffices(tail)
            if has_complete_beginning(chain, tail) or (
                find_last_answer_with_token_count(chain) and is_chain_after_boundary(chain, tail)
            ):
                return measure_chain(file, chain, window=window)[0]
    return measure_chain(file, scan_transcript(file).chain, window=window)[0]


def measure_last_records(last_records: Sequence[Record], window: int = 0) -> ContextSize | None:
    """Return the context size from the records at the end of a file, whatever their branch.

    The size is the last token count plus the content after it. Return None if no answer was counted
    since the last compaction. Also return None if the client cleared outputs from its memory: after
    a resume, it sends them again, so the last count would be too low.
    """
    later_characters = 0
    for record in reversed(last_records):
        subtype = get_string(record, "subtype")
        if subtype in {records.COMPACTION, records.OUTPUTS_CLEARED_SUBTYPE}:
            return None
        if record.get("isSidechain"):
            continue
        if count := read_token_counts(record)[1]:
            added_tokens = round(later_characters / CHARACTERS_PER_TOKEN)
            is_much = added_tokens > MAX_ESTIMATED_FRACTION_OF_SIZE * (count + added_tokens)
            if is_much:
                return ContextSize.from_count(
                    count + added_tokens,
                    window,
                    ADDED,
                    CONTENT_SINCE_COUNT_REASON,
                    added_tokens,
                )
            return ContextSize.from_count(count + added_tokens, window, added_tokens=added_tokens)
        if records.get_kind(record) in records.MESSAGE_KINDS:
            later_characters += make_node(record, Line(0, 0, b"")).character_count
    return None


def was_compacted(ends: HeadTail) -> bool:
    """Check whether the end of a file contains a compaction or a record about cleared outputs."""
    subtypes = {records.COMPACTION, records.OUTPUTS_CLEARED_SUBTYPE}
    return any(get_string(record, "subtype") in subtypes for record in ends.last_records)


def could_unread_middle_change_context_size(ends: HeadTail) -> bool:
    """Check whether the middle of the file, which is not read, may have changed the context size.

    This is possible with old clients. They cleared outputs, and they wrote records whose parents
    are missing, at which a resume stops.
    """
    region = _read_end_if_client_is_old(ends)
    if records.OUTPUTS_CLEARED_SUBTYPE.encode() in region:
        return True
    # The first record that was read may have its parent in the part of the file that was not read.
    allowed_missing = int(ends.size > MAX_BYTES_SEARCHED_AT_END)
    missing_parents = set(_PARENT_FIELD_PATTERN.findall(region)).difference(
        _UUID_FIELD_PATTERN.findall(region)
    )
    return len(missing_parents) > allowed_missing


def _read_end_if_client_is_old(ends: HeadTail) -> bytes:
    """Return the end of the file if an old client wrote it, else ``b""``.

    Old clients may have cleared outputs or omitted parents.
    """
    if ends.is_whole_file:
        return ends.head
    if parse_version(ends.first_client_version) >= MIN_VERSION_WITH_CLEARING_RECORDS:
        return b""
    with open_transcript(ends.file) as stream:
        stream.seek(max(0, ends.size - MAX_BYTES_SEARCHED_AT_END))
        return stream.read(MAX_BYTES_SEARCHED_AT_END)


def _measure_without_token_count(
    file: str | SharedFile, chain: list[Node], stated_size: StatedContextSize | None, window: int
) -> ContextSize:
    """Return the size of a chain in which the API counted no answer.

    The size is taken from the file's first line or, after a compaction, from the report of a trim
    in place. If neither states the size, it is estimated from the number of characters. After a
    compaction, the estimate also includes the part that every request contains before its messages.
    """
    count = stated_size.tokens if stated_size else 0
    reason = NO_ANSWER_COUNTED_SINCE_CREATION_REASON if count else NO_ANSWER_COUNTED_REASON
    message_tokens = count_and_estimate_tokens(chain)[1]
    if chain and chain[0].is_boundary:
        ends = HeadTail(file)
        if not count or (chain[0].time_ms or 0) > (clock.to_milliseconds(ends.derived_at) or 0):
            first_request_size = read_first_request(ends)
            tokens_after_trim = _read_tokens_remaining_after_last_trim(ends)
            count = tokens_after_trim or message_tokens + (
                first_request_size.tokens if first_request_size else USUAL_FIRST_REQUEST_TOKENS
            )
            reason = (
                NO_ANSWER_COUNTED_SINCE_TRIM_REASON
                if tokens_after_trim
                else NO_ANSWER_COUNTED_SINCE_COMPACTION_REASON
            )
    return ContextSize.from_count(count or message_tokens, window, ESTIMATED, reason)


def _count_tokens_before_file_start(file: str | SharedFile, chain: list[Node]) -> int:
    """Return the number of tokens in the API's first count that come from content missing in the file.

    The result is greater than 0 if the start of the file is missing.
    """
    if chain[0].is_boundary or not chain[0].parent_uuid:
        return 0
    character_count = 0
    for node in chain:
        if node.input_tokens:
            tokens_before = node.input_tokens - round(character_count / CHARACTERS_PER_TOKEN)
            break
        character_count += node.character_count
    else:
        return 0
    first_request_size = read_first_request(HeadTail(file))
    base_tokens = first_request_size.tokens if first_request_size else USUAL_FIRST_REQUEST_TOKENS
    if tokens_before > MIN_SIZE_FACTOR_IF_START_IS_MISSING * base_tokens:
        return tokens_before - base_tokens
    return 0


def _read_tokens_remaining_after_last_trim(ends: HeadTail) -> int:
    """Return the number of tokens that remained after this plugin last trimmed the session in place, or 0.

    The result is 0 if there was no such trim, or if only the session's parent was trimmed in place.
    The trim's boundary record may be missing from ``last_records``, because the client writes all
    remaining records after it.
    """
    for record in reversed(ends.last_records):
        if get_string(record, "subtype") == records.COMPACTION:
            break
        if remaining_tokens := tokens_after_trim(record):
            if clock.normalize_timestamp(record.get("timestamp")) > ends.derived_at:
                return remaining_tokens
            return 0
    return 0
