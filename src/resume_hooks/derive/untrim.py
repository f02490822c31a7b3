"""Find the trimmed records of a session, and plan a child with their original contents.

If a session was trimmed in place while a client had it open, the client rebuilt the records. A
rebuilt record has placeholders, but lacks the fields that name its original. It may combine several
original records, so each of its blocks is restored separately.

Placeholders are not trusted: a reference is used only if it leads to the same call, to the result
of that call, or to an answer of the model.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import Final, NamedTuple

from resume_hooks import clock
from resume_hooks.derive.child.draft import make_draft
from resume_hooks.derive.child.inherited_metadata import copy_lines_after_chain
from resume_hooks.derive.child.rewrite_chain import Edit, find_opening, plan_chain_rewrite
from resume_hooks.derive.child.write_child import ChildPlan, Sizes, Watcher
from resume_hooks.derive.originals import (
    CONTENT_FIELD_NAMES,
    OriginalFinder,
    RecordRestorationEdit,
    find_call_and_result_ids,
    find_origins,
    is_marked_as_trimmed,
)
from resume_hooks.derive.trim.plan import PLACEHOLDER_LEGEND
from resume_hooks.errors import NothingToTrim, SessionNotFound, UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.record_references import SHORT_ID_CHARACTERS, RecordLine
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.storage.backups import backup_time
from resume_hooks.transcripts import records, tokens
from resume_hooks.transcripts.calibration import (
    MIN_CONTEXT_GROWTH_TOKENS,
    PLAUSIBLE_CHARACTERS_PER_TOKEN_RANGE,
    TokenScale,
)
from resume_hooks.transcripts.chain import build_chain_to
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import Check
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node, make_node
from resume_hooks.transcripts.placeholders import is_placeholder, is_response_placeholder
from resume_hooks.transcripts.provenance import ChildSize
from resume_hooks.transcripts.raw_edit import encode_record
from resume_hooks.transcripts.records import (
    ASSISTANT,
    Record,
    get_message,
    get_string,
    replace_content,
)
from resume_hooks.transcripts.tokens import ContextSize
from resume_hooks.transcripts.transcript import Transcript, scan_transcript
from resume_hooks.transcripts.trimmable_pieces import MEDIA_PIECE, THINKING_PIECE, PieceCollector
from resume_hooks.transcripts.write_scan import CopyPreparationObserver, mend_record

# Matches the end of a placeholder that this plugin wrote.
_TRAILING_REFERENCE_PATTERN = re.compile(
    r"; original: ([0-9a-f-]{8,36}):(\d{1,9})[^\[\]\n]{0,200}\]\Z"
)
# Every trimmed record contains at least one of these strings.
_STRINGS_IN_TRIMMED_RECORDS = (
    b'"truncated"',
    b"See line ",
    b"; original: ",
)


def find_references_by_block_index(record: Record) -> dict[int, tuple[str, int]]:
    """Return the references in a record's placeholders, by the index of the placeholder's block.

    A reference consists of a session id and a line number. Only blocks that consist entirely of a
    placeholder have a reference.
    """
    content = get_message(record).get("content")
    references = {}
    for index, block in enumerate(content if isinstance(content, list) else ()):
        for text in _list_block_texts(block) if isinstance(block, dict) else ():
            if match := _TRAILING_REFERENCE_PATTERN.search(text[-300:]):
                references[index] = match.group(1), int(match.group(2))
    return references


def _list_block_texts(block: Record) -> Iterator[str]:
    kind = get_string(block, "type")
    if kind == records.RESULT:
        # When a client joins the parts of a result into one text, the placeholder of a picture
        # becomes a line of this text.
        yield from filter(is_placeholder, records.result_text(block).split("\n"))
    elif kind == records.CALL:
        for value in records.get_mapping(block, "input").values():
            if isinstance(value, str):
                yield value
    elif is_response_placeholder(get_string(block, "text")):
        yield get_string(block, "text")


def find_block_originals(record: Record, originals: OriginalFinder) -> dict[int, RecordLine]:
    """Map the index of each trimmed block to the line with the block's original.

    Raises SessionNotFound if an original no longer exists or has a different content.
    """
    originals_by_block = {}
    for index, reference in find_references_by_block_index(record).items():
        originals_by_block[index] = originals.find_original_of_line(*reference)
    for index, line in originals_by_block.items():
        if (
            _find_original_block(get_message(record)["content"][index], line.parse_record() or {})
            is None
        ):
            raise SessionNotFound(f"{line.reference} does not contain the original")
    return originals_by_block


class RestoreBlocksEdit:
    """An edit that restores the blocks of a record. It applies ``first_edit`` first, if that is given."""

    def __init__(
        self, originals_by_block: Mapping[int, RecordLine], first_edit: Edit | None = None
    ) -> None:
        self._originals_by_block = originals_by_block
        self._first_edit = first_edit

    def __call__(self, record: Record) -> Record | None:
        """Return the record with its original blocks.

        Raises SessionNotFound if an original no longer exists.
        """
        edited = self._first_edit(record) if self._first_edit else record
        if edited is None:
            return None
        content = list(get_message(edited)["content"])
        for index, line in self._originals_by_block.items():
            block = _find_original_block(content[index], line.parse_record() or {})
            if block is None:
                raise SessionNotFound(
                    f"{line.file_path} changed while it was read", "Run the command again."
                )
            content[index] = block
        return mend_record(replace_content(edited, content))


def _find_original_block(block: Record, original: Record) -> Record | None:
    kind, call = get_string(block, "type"), records.call_id(block)
    if kind == records.TEXT:
        if records.get_kind(original) == records.ASSISTANT:
            text = records.join_text_blocks(original)
        else:
            text = ""
        if text:
            return {**block, "text": text}
        return None
    return next(
        (
            candidate
            for candidate in records.list_blocks(original)
            if (candidate.get("type"), records.call_id(candidate)) == (kind, call)
        ),
        None,
    )


@dataclass(frozen=True, slots=True)
class TrimmedSession:
    """A scanned session with trimmed records in its live chain.

    If the running client trimmed the session in place, ``transcript`` contains the chain as it was
    before these trims, followed by the records that were added later. ``undone_trim_count`` is the
    number of these trims, and ``restored_character_count`` is the number of characters that they
    removed. ``tokens_without_trims`` is the size of the context without the trims, or 0 if there
    were none.

    ``earlier_record_count`` is the number of trimmed records before the last compaction.
    """

    session: SessionFile
    transcript: Transcript
    pieces: PieceCollector
    preparation_observer: CopyPreparationObserver
    context: ContextSize
    scale: TokenScale
    trimmed_nodes: tuple[Node, ...]
    undone_trim_count: int = 0
    restored_character_count: int = 0
    tokens_without_trims: int = 0
    earlier_record_count: int = 0

    def make_nothing_to_trim_error(self) -> NothingToTrim:
        """Return the error to raise if the session has no content that can be restored."""
        if not self.earlier_record_count:
            return NothingToTrim("Nothing in this session is trimmed")
        fork = (
            f"resume-hooks fork {self.session.session_id[:SHORT_ID_CHARACTERS]} --before-compaction"
        )
        return NothingToTrim(
            "The trimmed contents are before the last compaction, so they are no longer sent",
            f"To restore them, make a fork of the session as it was before this compaction, and untrim it: {fork}",
        )


def scan_trimmed_session(session: SessionFile) -> TrimmedSession:
    """Scan a session, and find the trimmed records of its live chain."""
    pieces, preparation_observer, collector = (
        PieceCollector(),
        CopyPreparationObserver(),
        _TrimmedRecordCollector(),
    )
    transcript = scan_transcript(session.file, observers=(pieces, preparation_observer, collector))
    loaded_session, live_chain = Session.from_file(session, Where()), transcript.chain
    context, scale = loaded_session.measure_chain(live_chain, pieces)
    chain_before, later_nodes, undone = _find_chain_before_trims(transcript)
    chain = [*chain_before, *later_nodes]
    trimmed = tuple(node for node in chain if node.line_number in collector.numbers)
    if not undone:
        compaction_number = (
            live_chain[0].line_number if live_chain and live_chain[0].is_boundary else 0
        )
        trimmed_earlier = sum(number < compaction_number for number in collector.numbers)
        return TrimmedSession(
            session,
            transcript,
            pieces,
            preparation_observer,
            context,
            scale,
            trimmed,
            earlier_record_count=trimmed_earlier,
        )
    # The API's counts after the trim refer to the trimmed context, so the untrimmed context is
    # measured only from the records before the trim.
    context_before, scale = loaded_session.measure_chain(chain_before, pieces)
    added_character_count = sum(node.character_count for node in later_nodes)
    characters_without_trims = (
        sum(node.character_count for node in chain_before) + added_character_count
    )
    return TrimmedSession(
        session,
        transcript.with_chain(chain),
        pieces,
        preparation_observer,
        context,
        scale,
        trimmed,
        undone,
        restored_character_count=characters_without_trims
        - sum(node.character_count for node in live_chain),
        tokens_without_trims=context_before.tokens
        + round(added_character_count / scale.characters_per_token),
    )


def _find_chain_before_trims(transcript: Transcript) -> tuple[list[Node], list[Node], int]:
    """Undo the trims that a running client made.

    Return the chain as it was before the first of these trims, the records that were added after
    the trims, and the number of trims.
    """
    chain: list[Node] = transcript.chain
    later_nodes: list[Node] = []
    trim_count = 0
    messages = [node for node in transcript.nodes if node.is_message and not node.is_sidechain]
    while chain and chain[0].is_boundary and any(node.is_copied for node in chain):
        start_number = chain[0].line_number
        last_before = next(
            (node for node in reversed(messages) if node.line_number < start_number), None
        )
        if last_before is None:
            break
        uncopied_nodes = (node for node in chain[1:] if not node.is_copied)
        own_nodes = dropwhile(
            lambda node: not (node.is_prompt or node.kind == ASSISTANT), uncopied_nodes
        )
        chain, later_nodes, trim_count = (
            build_chain_to(transcript.nodes, last_before),
            [*own_nodes, *later_nodes],
            trim_count + 1,
        )
    return chain, later_nodes, trim_count


class _TrimmedRecordCollector:
    """An observer of a scan that collects the line numbers of trimmed records."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        if node is None or not any(word in line.raw for word in _STRINGS_IN_TRIMMED_RECORDS):
            return
        if (
            is_marked_as_trimmed(record)
            or find_origins(record)
            or find_references_by_block_index(record)
        ):
            self.numbers.add(node.line_number)


UNTRIM_KIND: Final = "untrim"

MAX_LISTED_RECORDS = 10  # Maximum number of records that a message lists individually.


class MissingOriginal(NamedTuple):
    """A trimmed record that cannot be restored, with the reason.

    ``line_number`` is the line number of the record in the session.
    """

    line_number: int
    reason: str


class Restoration(NamedTuple):
    """A trimmed record, and the edit that restores its contents.

    ``added_character_count`` and ``added_tokens`` tell how much larger the restored record is.
    """

    node: Node
    original: RecordLine
    edit: Edit
    added_character_count: int
    added_tokens: float
    thinking_hashes: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class UntrimPlan(ChildPlan):
    """The plan of an untrim.

    ``context_after`` is the context that the client would send for the child.
    ``restored_character_count`` is the number of characters that return to the context.
    ``trimmed_record_count`` is the number of trimmed records. ``undone_trim_count`` is the number of trims
    by a running client that are undone. ``original_digests`` maps the uuid of each restored record
    to the digest of its original contents.
    """

    restored_records: Sequence[object]
    missing_originals: tuple[MissingOriginal, ...]
    trimmed_record_count: int
    context_after: ContextSize
    restored_character_count: int
    undone_trim_count: int = 0
    original_digests: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def facts(self) -> list[str]:
        """Lines for the receipt that describe the restored contents."""
        facts = []
        if self.undone_trim_count:
            facts.append("the conversation is as it was before the trim in place")
        if self.trimmed_record_count:
            facts.append(
                f"{len(self.restored_records):,} of {self.trimmed_record_count:,} trimmed records were restored"
            )
        return facts

    @property
    def is_child_unneeded(self) -> bool:
        """Whether no content can be restored."""
        return not (self.restored_records or self.undone_trim_count)

    def watchers(self) -> Sequence[Watcher]:
        """Return an observer that checks whether the restored contents equal the originals."""
        return [_RestoredContentsWatcher(self.original_digests)]


def plan_untrim(
    trimmed_session: TrimmedSession,
    where: Where,
    line_numbers: Collection[int] | None = None,
    *,
    strict: bool = False,
    output_dir: str | None = None,
) -> UntrimPlan:
    """Plan a child in which trimmed records are restored.

    ``line_numbers`` names these records. If it is None, all trimmed records are restored. Raises
    UsageError if one of the records is not trimmed. Raises SessionNotFound if no original exists, or
    if ``strict`` is true and at least one original is missing.
    """
    requested_nodes = select_trimmed_nodes(trimmed_session, line_numbers)
    restorations, missing = _find_restorations(
        trimmed_session, requested_nodes, OriginalFinder(where)
    )
    if missing and (strict or not restorations):
        if restorations:
            strict_hint = " Without --strict the rest is restored."
        else:
            strict_hint = ""
        raise SessionNotFound(
            describe_missing_originals(missing, len(requested_nodes)),
            f"Nothing was written.{strict_hint}",
        )
    session, transcript = trimmed_session.session, trimmed_session.transcript
    head_tail = HeadTail(session.file)
    child = make_draft(session, head_tail, UNTRIM_KIND, where, output_dir)
    is_complete = len(restorations) == len(trimmed_session.trimmed_nodes)
    context_before, context_after = _estimate_sizes_before_and_after(
        trimmed_session, restorations, is_complete=is_complete
    )
    thoughts = set()
    for piece in trimmed_session.pieces.pieces:
        if piece.kind == THINKING_PIECE:
            thoughts.add(piece.content_hash)
    edits: dict[int, Edit] = {}
    for restoration in restorations:
        edits[restoration.node.line_number] = restoration.edit
    if (
        is_complete
        and (legend := find_opening(f"\n{PLACEHOLDER_LEGEND}", transcript.chain, transcript))
        is not None
    ):
        # If the child contains no placeholders, it needs no explanation of them.
        edits.setdefault(legend.line_number, _remove_legend)
    size = ChildSize(
        context_after.tokens,
        round(_estimate_characters_per_token(trimmed_session, context_after), 2),
        tokens.detect_large_window(session.file, context_before.tokens),
    )
    body = plan_chain_rewrite(
        child,
        transcript,
        trimmed_session.preparation_observer,
        first_line=child.make_first_line(size),
        lineage=child.lineage_text
        if is_complete
        else f"{child.lineage_text}\n{PLACEHOLDER_LEGEND}",
        edits=edits,
        metadata_lines=copy_lines_after_chain(
            transcript, trimmed_session.preparation_observer, head_tail, child.session_id
        ),
        clears_token_counts=True,
        allowed_thinking_hashes=frozenset(
            thoughts.union(*(restoration.thinking_hashes for restoration in restorations))
        ),
    )
    original_digests = {}
    for restoration in restorations:
        record = body.edit_record(restoration.node, transcript.read_record(restoration.node))
        if record is not None:
            original_digests[restoration.node.uuid] = _compute_contents_digest(record)
    return UntrimPlan(
        draft=child,
        body=body,
        sizes=Sizes(context_before.tokens, context_after.tokens),
        remarks=tuple(format_missing_originals(missing)),
        restored_records=restorations,
        missing_originals=missing,
        trimmed_record_count=len(trimmed_session.trimmed_nodes),
        context_after=context_after,
        restored_character_count=trimmed_session.restored_character_count
        + sum(restoration.added_character_count for restoration in restorations),
        original_digests=original_digests,
        undone_trim_count=trimmed_session.undone_trim_count,
    )


class _RestoredContentsWatcher:
    def __init__(self, expected_digests: Mapping[str, bytes]) -> None:
        self._expected_digests = expected_digests
        self._found_digests: dict[str, bytes] = {}

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:  # noqa: ARG002 - an observer's form
        if node is not None and node.uuid in self._expected_digests:
            self._found_digests[node.uuid] = _compute_contents_digest(record)

    def run_checks(self) -> list[Check]:
        return [
            Check(
                "restored contents equal the originals",
                self._found_digests == self._expected_digests,
            )
        ]


def select_trimmed_nodes(
    trimmed_session: TrimmedSession, line_numbers: Collection[int] | None
) -> tuple[Node, ...]:
    """Return the trimmed records in the given lines, or all trimmed records if ``line_numbers`` is None.

    Raises UsageError if one of these records is not trimmed.
    """
    trimmed_numbers = {node.line_number for node in trimmed_session.trimmed_nodes}
    unknown_numbers = sorted(set(line_numbers or ()) - trimmed_numbers)
    if unknown_numbers:
        listed_numbers = ", ".join(
            str(node.line_number) for node in trimmed_session.trimmed_nodes[:MAX_LISTED_RECORDS]
        )
        if len(trimmed_numbers) > MAX_LISTED_RECORDS:
            more_text = f" and {len(trimmed_numbers) - MAX_LISTED_RECORDS:,} more"
        else:
            more_text = ""
        raise UsageError(
            f"Record {unknown_numbers[0]} of this session's conversation has not been trimmed",
            f"The trimmed records are: {listed_numbers}{more_text}."
            if trimmed_numbers
            else "No record of this session is trimmed.",
        )
    return tuple(
        node
        for node in trimmed_session.trimmed_nodes
        if line_numbers is None or node.line_number in line_numbers
    )


def _find_restorations(
    trimmed_session: TrimmedSession, requested_nodes: Sequence[Node], originals: OriginalFinder
) -> tuple[tuple[Restoration, ...], tuple[MissingOriginal, ...]]:
    """Find the originals of the requested records, and return the edits that restore them.

    The second tuple contains the records that have no original.
    """
    media_tokens = Counter[int]()
    for piece in trimmed_session.pieces.pieces:
        media_tokens[piece.line_number] += piece.tokens if piece.kind == MEDIA_PIECE else 0
    restorations, missing = [], []
    for node in requested_nodes:
        record = trimmed_session.transcript.read_record(node)
        try:
            original, edit = _find_restoring_edit(record, trimmed_session.session.path, originals)
            restored_record = edit(record)
        except SessionNotFound as error:
            missing.append(MissingOriginal(node.line_number, str(error)))
            continue
        if restored_record is None or not find_call_and_result_ids(
            record
        ) <= find_call_and_result_ids(restored_record):
            missing.append(
                MissingOriginal(
                    node.line_number, f"{original.reference} does not contain the original"
                )
            )
        else:
            restorations.append(
                _make_restoration(
                    node,
                    original,
                    edit,
                    restored_record,
                    trimmed_session.scale,
                    media_tokens[node.line_number],
                )
            )
    return tuple(restorations), tuple(missing)


def _find_restoring_edit(
    record: Record, file: str, originals: OriginalFinder
) -> tuple[RecordLine, Edit]:
    """Return the line with a record's original, and the edit that restores the record.

    Raises SessionNotFound if the original no longer exists.
    """
    if not (is_marked_as_trimmed(record) or find_origins(record)):
        block_originals = find_block_originals(record, originals)
        return next(iter(block_originals.values())), RestoreBlocksEdit(block_originals)
    original = originals.find_original(record, file)
    if original is None:
        raise SessionNotFound(
            f"its original is gone: {originals.describe_original_location(record)}"
        )
    edit = RecordRestorationEdit(original)
    restored_record = edit(record)
    if restored_record is not None and find_references_by_block_index(restored_record):
        # The original of the whole record exists, even if the originals of some blocks do not.
        with contextlib.suppress(SessionNotFound):
            return original, RestoreBlocksEdit(
                find_block_originals(restored_record, originals), edit
            )
    return original, edit


def _make_restoration(
    node: Node,
    original: RecordLine,
    edit: Edit,
    restored_record: Record,
    scale: TokenScale,
    media_tokens: int,
) -> Restoration:
    line, pieces = Line(node.line_number, 0, b""), PieceCollector()
    restored_node = make_node({**restored_record, "uuid": node.uuid}, line)
    pieces(line, restored_record, restored_node)
    characters = restored_node.character_count - node.character_count
    token_difference = (
        characters / scale.characters_per_token
        + sum(p.tokens for p in pieces.pieces if p.kind == MEDIA_PIECE)
        - media_tokens
    )
    thoughts = frozenset(
        piece.content_hash for piece in pieces.pieces if piece.kind == THINKING_PIECE
    )
    return Restoration(node, original, edit, characters, token_difference, thoughts)


def _compute_contents_digest(record: Record) -> bytes:
    fields = {}
    for key in CONTENT_FIELD_NAMES[1:]:
        if key in record:
            fields[key] = record[key]
    return hashlib.sha256(
        encode_record({"content": get_message(record).get("content"), **fields})
    ).digest()


def _estimate_sizes_before_and_after(
    trimmed_session: TrimmedSession, restorations: Sequence[Restoration], *, is_complete: bool
) -> tuple[ContextSize, ContextSize]:
    """Return the context sizes before and after the untrim.

    ``is_complete`` is true if all trimmed records are restored.
    """
    restored_tokens = max(0, round(sum(row.added_tokens for row in restorations)))
    context = trimmed_session.context
    if trimmed_session.undone_trim_count:
        return context, context._replace(
            tokens=trimmed_session.tokens_without_trims + restored_tokens
        )
    recorded_size = tokens.read_size_stated_in_first_line(trimmed_session.session.file)
    if (
        recorded_size is not None
        and is_complete
        and not context.is_measured
        and recorded_size.original_tokens > context.tokens
    ):
        return context, context._replace(tokens=recorded_size.original_tokens)
    if context.is_measured and _is_count_from_before_trim(trimmed_session):
        return context._replace(tokens=max(0, context.tokens - restored_tokens)), context
    return context, context._replace(tokens=context.tokens + restored_tokens)


def _estimate_characters_per_token(trimmed_session: TrimmedSession, after: ContextSize) -> float:
    """Return the number of characters per token to record in the child.

    It is computed from the savings of the trim that is being undone, so that trimming the same
    pieces again is expected to save the same number of tokens.
    """
    recorded_size = tokens.read_size_stated_in_first_line(trimmed_session.session.file)
    if (
        recorded_size is None
        or trimmed_session.undone_trim_count
        or after.tokens != recorded_size.original_tokens
    ):
        return trimmed_session.scale.characters_per_token
    saved_tokens = recorded_size.original_tokens - recorded_size.tokens
    if saved_tokens < MIN_CONTEXT_GROWTH_TOKENS or not recorded_size.saved_characters:
        return trimmed_session.scale.characters_per_token
    lowest, highest = PLAUSIBLE_CHARACTERS_PER_TOKEN_RANGE
    return min(max(recorded_size.saved_characters / saved_tokens, lowest), highest)


def _is_count_from_before_trim(trimmed_session: TrimmedSession) -> bool:
    """Check whether the last token count was recorded before the trim in place.

    Such a count includes the content that the trim removed.
    """
    instants = (
        clock.to_milliseconds(backup_time(origin.file_path))
        for origin in trimmed_session.pieces.origins.values()
    )
    trimmed_ms = max((instant for instant in instants if instant is not None), default=None)
    counted_ms = max(
        (node.time_ms or 0 for node in trimmed_session.transcript.chain if node.context_tokens),
        default=0,
    )
    return trimmed_ms is not None and counted_ms < trimmed_ms


def _remove_legend(record: Record) -> Record:
    content = get_message(record)["content"].replace(f"\n{PLACEHOLDER_LEGEND}", "", 1)
    return replace_content(record, content)


def describe_missing_originals(missing: Sequence[MissingOriginal], requested_count: int) -> str:
    """Return a phrase that tells how many records cannot be restored, and why the first one cannot."""
    first = missing[0]
    return (
        f"{len(missing):,} of {requested_count:,} records can't be restored; record {first.line_number}: "
        f"{first.reason}"
    )


def format_missing_originals(missing: Sequence[MissingOriginal]) -> list[str]:
    """Return a warning for each record that stays trimmed. Only the first few are listed individually."""
    sentences = []
    for row in missing[:MAX_LISTED_RECORDS]:
        sentences.append(f"Record {row.line_number} stays trimmed: {row.reason}.")
    if len(missing) <= MAX_LISTED_RECORDS:
        return sentences
    return [*sentences, f"{len(missing) - MAX_LISTED_RECORDS:,} more records stay trimmed."]
