"""Make a child from its parent's own records, with lines that every client accepts.

Invariant: a record without an edit is copied byte for byte. The only exceptions are the session id,
the link to the previous record, a time earlier than the previous record's, the token counts (if the
child is smaller than its parent), and the fields that ``line_edit`` adds.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import BinaryIO, NamedTuple

from resume_hooks import clock
from resume_hooks.derive.child.copy_files import copy_sidecar_files, find_backup_names
from resume_hooks.derive.child.draft import NO_PARENT, Draft
from resume_hooks.derive.child.write_child import ChildBody, ChildPlan
from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import Where
from resume_hooks.sessions import lineage_block
from resume_hooks.sessions.opening_layout import (
    ChildAttributes,
    closing_lines,
    lineage_line,
    missing_result_line,
)
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.shared_values import (
    COLD_CACHE_SENTENCE,
    PLUGIN_NAME,
    PROMPT_HELD_MESSAGE,
    PROMPT_IN_LIST_MESSAGE,
)
from resume_hooks.storage.atomic import BUFFER_BYTES
from resume_hooks.system.text import format_count
from resume_hooks.transcripts import tokens
from resume_hooks.transcripts.api_usage import measure_first_request
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import Check, ChildObserver, check_session
from resume_hooks.transcripts.linearize import (
    LinearChain,
    are_records_of_one_answer,
    linearize_chain,
)
from resume_hooks.transcripts.lines import Line, read_exactly
from resume_hooks.transcripts.nodes import Node, iterate_ancestors
from resume_hooks.transcripts.provenance import ChildSize
from resume_hooks.transcripts.raw_edit import clear_usage, encode_record, set_fields
from resume_hooks.transcripts.records import (
    ATTACHMENT,
    CALL,
    RESULT,
    USER,
    Record,
    call_id,
    get_mapping,
    get_message,
    get_string,
    parse_record,
    replace_content,
)
from resume_hooks.transcripts.tokens import ContextSize
from resume_hooks.transcripts.transcript import Transcript, scan_live_records
from resume_hooks.transcripts.trimmable_pieces import PieceCollector
from resume_hooks.transcripts.write_scan import CopyPreparationObserver, mend_record

# A function that returns a record as the child contains it, or None to omit the record.
Edit = Callable[[Record], Record | None]

DROPPED_PROMPT_PREFIX = "Prompt dropped by a hook: "
"""The start of the record that the client writes if the plugin's JavaScript module stops a prompt.

The rest of the record is the reason for which the module stopped the prompt.
"""

BLOCKED_PROMPT_PREFIX = "UserPromptSubmit operation blocked by hook"
"""The start of the record that the client writes if a hook blocks a prompt.

For example, a hook blocks a prompt in order to show a card instead. The client never sends this
record to the model.
"""

CHILD_CARD_LINES = ("in Claude Code   /resume ", "in this client   /resume ")
"""Lines that are found only in the card of a new child.

A card that contains one of these lines is recognized even if it does not name this plugin. Version
0.2.0 of the plugin wrote the second line.
"""

# This number of records at the start of a chain is searched for a lineage block.
MAX_OPENING_RECORDS = 4


def collect_edits(
    chain: LinearChain,
    transcript: Transcript,
    preparation_observer: CopyPreparationObserver,
    requested_edits: Mapping[int, Edit],
) -> dict[int, list[Edit]]:
    """Return the edits of each record by line number, in the order in which to apply them.

    The requested edits come first: they find blocks by index, and the other edits may remove
    blocks. The other edits repair records, and remove calls and results that the API would reject.
    If the session was headless, its first record gets the entrypoint of the interactive client.
    Otherwise clients would not list the child.
    """
    by_record: dict[int, list[Edit]] = {}
    for node in chain.nodes:
        edits: list[Edit] = []
        if node.line_number in requested_edits:
            edits.append(requested_edits[node.line_number])
        if node.line_number in preparation_observer.records_to_mend:
            edits.append(mend_record)
        if node.line_number in chain.dropped_call_ids:
            edits.append(_CallRemover(chain.dropped_call_ids[node.line_number]))
        if node.line_number in transcript.lenient_lines:
            # The record contains invalid characters, whose bytes the API rejects. This edit makes
            # the writer serialize the parsed record, in which U+FFFD replaces them.
            edits.append(_copy_record)
        edits += _list_edits_for_record_kind(node)
        if edits:
            by_record[node.line_number] = edits
    if chain.nodes and get_string(transcript.read_record(chain.nodes[0]), "entrypoint").startswith(
        "sdk"
    ):
        by_record.setdefault(chain.nodes[0].line_number, []).append(
            lambda record: {**record, "entrypoint": "cli"}
        )
    return by_record


def _list_edits_for_record_kind(node: Node) -> list[Edit]:
    """Return the edits that remove notices and fields which a child must not contain.

    The kind of the record decides which edits are needed.
    """
    edits: list[Edit] = []
    if node.is_boundary and node.kept_segment is not None:
        edits.append(_remove_preserved_message_fields)
    if node.subtype == "informational":
        edits.append(_drop_notice)
    if node.kind == ATTACHMENT:
        edits.append(_drop_cold_cache_notice)
    return edits


def _copy_record(record: Record) -> Record:
    """Return a copy of the record, so that the writer serializes it.

    The writer copies the original bytes only if no edit replaced the record.
    """
    return dict(record)


class _CallRemover:
    """An edit that removes unpaired calls and results.

    ``call_ids`` contains the ids of calls without a result, and of results without a call.
    """

    def __init__(self, call_ids: frozenset[str]) -> None:
        self._call_ids = call_ids

    def __call__(self, record: Record) -> Record | None:
        content = get_message(record).get("content")
        if isinstance(content, list):
            kept_blocks = []
            for block in content:
                if not self._belongs_to_dropped_call(block):
                    kept_blocks.append(block)
        else:
            kept_blocks = []
        if kept_blocks:
            return replace_content(record, kept_blocks)
        return None

    def _belongs_to_dropped_call(self, block: object) -> bool:
        return (
            isinstance(block, dict)
            and block.get("type") in (CALL, RESULT)
            and call_id(block) in self._call_ids
        )


def _drop_notice(record: Record) -> Record | None:
    """Return None for a notice that does not apply to a child, and any other record unchanged.

    These notices are a trigger's card, the record of a stopped prompt, and the notice that the
    cache is cold.
    """
    text = get_string(record, "content")
    is_our_notice = "resume-hooks" in text or any(line in text for line in CHILD_CARD_LINES)
    if is_our_notice and text.startswith(BLOCKED_PROMPT_PREFIX):
        return None
    if text in (
        DROPPED_PROMPT_PREFIX + PROMPT_HELD_MESSAGE,
        DROPPED_PROMPT_PREFIX + PROMPT_IN_LIST_MESSAGE,
    ) or _is_cold_cache_notice(text):
        return None
    return record


def _drop_cold_cache_notice(record: Record) -> Record | None:
    """Return the record unchanged, or None if it is a hook's notice that the cache is cold."""
    if _is_cold_cache_notice(get_string(get_mapping(record, "attachment"), "content")):
        return None
    return record


def _is_cold_cache_notice(text: str) -> bool:
    return text.startswith(f"{PLUGIN_NAME}: ") and COLD_CACHE_SENTENCE in text


def _remove_preserved_message_fields(record: Record) -> Record:
    """Return a compaction's boundary record without the fields that name preserved messages.

    In a child, the preserved messages are part of the chain.
    """
    metadata = get_mapping(record, "compactMetadata")
    kept_metadata = {}
    for key, value in metadata.items():
        if not key.startswith("preserved"):
            kept_metadata[key] = value
    return {**record, "compactMetadata": kept_metadata}


def find_opening(required_text: str, nodes: Sequence[Node], transcript: Transcript) -> Node | None:
    """Return the node of the opening that this plugin wrote, or None.

    The opening is a record that begins with a lineage block and contains ``required_text``. A
    record that is the user's own prompt is never the opening.
    """
    for node in nodes[:MAX_OPENING_RECORDS]:
        if node.is_meta or node.is_summary:
            content = get_message(transcript.read_record(node)).get("content")
        else:
            content = None
        if (
            isinstance(content, str)
            and content.startswith(lineage_block.LINEAGE_START_MARKER)
            and required_text in content
        ):
            return node
    return None


def replace_lineage_block(record: Record, lineage: str) -> Record:
    """Return the opening record of a child, with ``lineage`` in place of its lineage block.

    The text after the block is unchanged.
    """
    _, _, after_block = lineage.partition(lineage_block.LINEAGE_END_MARKER)
    _, _, rest = get_message(record)["content"].partition(lineage_block.LINEAGE_END_MARKER)
    return replace_content(record, lineage + rest.removeprefix(after_block))


# The year 2100 in milliseconds. Later times are invalid, because new records need times that are
# later still.
MAX_VALID_TIME_MS = 4_102_444_800_000

LOST_RECORDS_WARNING = (
    "{count} directly after another answer: the records between the two are lost, and the "
    "API treats the two as one."
)


class ParentScan(NamedTuple):
    """The results of scanning a parent once, from which a child with the parent's records is made.

    ``child_observer`` has collected the calls and the thinking of the session. ``context`` is the
    size of the context that the client would send. ``characters_per_token`` was measured in this
    session.
    """

    session: SessionFile
    transcript: Transcript
    preparation_observer: CopyPreparationObserver
    child_observer: ChildObserver
    head_tail: HeadTail
    context: ContextSize
    characters_per_token: float

    def count_sent_tokens(self, chain: list[Node], where: Where) -> int:
        """Return the number of tokens that the client would send for ``chain``.

        ``chain`` is the beginning of this session's chain. The number includes the tokens that
        every request contains. If the API's counts for ``chain`` are missing, the number is
        estimated from the records.
        """
        counted_tokens, uncounted_tokens = tokens.count_and_estimate_tokens(
            chain, self.characters_per_token
        )
        if not counted_tokens:
            counted_tokens = min(
                measure_first_request(self.head_tail, where).tokens, self.context.tokens
            )
        return counted_tokens + uncounted_tokens

    def make_child_size(self, tokens_after: int) -> ChildSize:
        """Return the size to record in the first line of a child with ``tokens_after`` tokens."""
        window = tokens.detect_large_window(self.session.file, self.context.tokens)
        return ChildSize(tokens_after, round(self.characters_per_token, 2), window)


def scan_parent(session: SessionFile) -> ParentScan:
    """Scan the live part of a session before a child is made from its records."""
    transcript, (preparation_observer, child_observer, pieces) = scan_live_records(
        session.file, lambda: (CopyPreparationObserver(), ChildObserver(), PieceCollector())
    )
    return make_parent_scan(session, transcript, preparation_observer, child_observer, pieces)


def make_parent_scan(
    session: SessionFile,
    transcript: Transcript,
    preparation_observer: CopyPreparationObserver,
    child_observer: ChildObserver,
    pieces: PieceCollector,
) -> ParentScan:
    """Combine the results of a scan with the session's measured size."""
    loaded_session = Session.from_file(session, Where())
    context, scale = loaded_session.measure_chain(transcript.chain, pieces)
    return ParentScan(
        session,
        transcript,
        preparation_observer,
        child_observer,
        loaded_session.head_tail,
        context,
        scale.characters_per_token,
    )


class RecordWatcher:
    """An observer that checks every line of a child. ``name`` says what is checked."""

    def __init__(self, name: str, is_valid: Callable[[Line, Record, Node | None], bool]) -> None:
        self._name = name
        self._is_valid_line = is_valid
        self._are_all_valid = True

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        """Check whether one line of the child meets the condition of this observer."""
        self._are_all_valid = self._are_all_valid and self._is_valid_line(line, record, node)

    def run_checks(self) -> list[Check]:
        """Return one check, which is passed if all lines fulfil the condition."""
        return [Check(self._name, self._are_all_valid)]


def make_lineage_if_needed(draft: Draft, transcript: Transcript) -> str:
    """Return the lineage block, or ``""`` if the live conversation begins with a user's prompt."""
    first = next(node for node in transcript.chain if node.is_message)
    if first.kind == USER and not first.answered_call_ids:
        return ""
    return draft.lineage_text


# The type of a function that adds the child's own fields to a line of the parent.
LineEdit = Callable[[bytes, Node], bytes]


class ClosingTexts(NamedTuple):
    """The texts of the records that end a child, after the parent's records.

    The model reads ``text``, and the screen shows ``screen_text``.
    """

    text: str
    screen_text: str


@dataclass(frozen=True, slots=True)
class ChainRewrite(ChildBody):
    """The lines of a child, made from the live chain of the file ``source_path``.

    ``edits`` maps a line number in ``source_path`` to the edits of that record, in the order in
    which they are applied. ``lineage`` becomes a separate record before the node at index
    ``lineage_index``. An empty ``lineage`` adds no record. The records of ``closing`` are the end
    of the chain, and ``metadata_lines`` follow the chain. ``line_edit`` is applied to each line of
    the parent after all other changes.

    If ``clears_token_counts`` is true, the token counts in the records become zero. These counts
    describe a context that is larger than the child's, and old clients would compact the child
    immediately.

    ``allowed_thinking_hashes`` contains hashes of the thinking that the child may contain. If it is
    None, all thinking is allowed.
    """

    source_path: str
    attributes: ChildAttributes
    first_line: bytes
    lineage: str
    lineage_index: int
    linear_chain: LinearChain
    edits: Mapping[int, Sequence[Edit]]
    metadata_lines: tuple[bytes, ...]
    clears_token_counts: bool
    closing: ClosingTexts | None
    line_edit: LineEdit | None
    allowed_thinking_hashes: frozenset[int] | None
    unlinked_answer_count: int
    """The number of answers that directly follow another answer because the records between them are lost.

    The API treats two consecutive answers as one answer.
    """

    def edit_record(self, node: Node, record: Record) -> Record | None:
        """Return a node's record as the child contains it, or None if the child omits it."""
        result: Record | None = record
        for edit in self.edits.get(node.line_number, ()):
            result = edit(result) if result is not None else None
        return result

    def lines(self) -> Iterator[bytes]:
        """Yield the child's lines with their line endings.

        Raises SessionNotFound if ``source_path`` no longer exists or changes while it is read.
        """
        yield self.first_line + b"\n"
        chain_writer = _ChainWriter(self)
        try:
            with open(self.source_path, "rb", buffering=BUFFER_BYTES) as stream:
                kept_records = self._read_kept_records(stream)
                kept_record = next(kept_records, None)
                while kept_record is not None:
                    # Read ahead by one record, because the last kept record must get the latest
                    # time. The source may end with records that are omitted.
                    next_record = next(kept_records, None)
                    index, node, body = kept_record
                    if (
                        self.lineage
                        and index >= self.lineage_index
                        and not chain_writer.has_written_lineage
                    ):
                        yield chain_writer.make_lineage_line(node) + b"\n"
                    yield (
                        chain_writer.make_record_line(node, body, is_last=next_record is None)
                        + b"\n"
                    )
                    kept_record = next_record
        except OSError as error:
            raise SessionNotFound(
                f"{self.source_path} can't be read: {error.strerror}", "Check the path."
            ) from error
        for body in (*chain_writer.make_closing_lines(), *self.metadata_lines):
            yield body + b"\n"

    def run_checks(self, path: str, plan: ChildPlan) -> list[Check]:
        """Read the child's file, check it, and return the checks.

        The checks are: the invariants of every session, the pairs of calls and results, the
        conditions of the plan's watchers, and that all thinking comes from the parent.
        """
        child_observer, watchers = ChildObserver(), plan.watchers()
        checks = check_session(path, plan.draft.session_id, [child_observer, *watchers])
        checks += child_observer.run_checks(
            self.linear_chain,
            child_observer.thinking_hashes
            if self.allowed_thinking_hashes is None
            else self.allowed_thinking_hashes,
        )
        return checks + [check for watcher in watchers for check in watcher.run_checks()]

    def write_sidecars(
        self, draft: Draft, where: Where
    ) -> contextlib.AbstractContextManager[list[str]]:
        """Copy the parent's large tool outputs, and the file backups that the child's lines name."""
        if draft.parent is NO_PARENT:
            return contextlib.nullcontext([])
        return copy_sidecar_files(draft, find_backup_names(self.metadata_lines), where)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Contains a warning if records between two answers were lost."""
        if self.unlinked_answer_count:
            return (
                LOST_RECORDS_WARNING.format(
                    count=format_count(self.unlinked_answer_count, "answer")
                ),
            )
        return ()

    def _read_kept_records(self, stream: BinaryIO) -> Iterator[tuple[int, Node, bytes]]:
        """Yield the index, the node and the edited line of each record that the child keeps."""
        for index, node in enumerate(self.linear_chain.nodes):
            body = Line(
                node.line_number, node.offset, read_exactly(stream, node.offset, node.line_length)
            ).body
            # If the line does not contain the record's id as plain text, the line is parsed,
            # because the id may be written with escapes.
            if node.uuid.encode("utf-8", "replace") not in body and not node.was_made_from(
                parse_record(body)
            ):
                raise SessionNotFound(
                    "The session changed while it was read", "Run the command again."
                )
            if node.line_number in self.edits:
                record = parse_record(body)
                if record is not None:
                    edited_record = self.edit_record(node, record)
                else:
                    edited_record = None
                if edited_record is None:
                    continue
                if edited_record is not record:
                    body = encode_record(edited_record)
            yield index, node, body


def plan_chain_rewrite(  # noqa: PLR0913 - what a child is made of
    draft: Draft,
    transcript: Transcript,
    preparation_observer: CopyPreparationObserver,
    *,
    first_line: bytes,
    lineage: str = "",
    edits: Mapping[int, Edit] | None = None,
    metadata_lines: Sequence[bytes] = (),
    clears_token_counts: bool | None = None,
    closing: ClosingTexts | None = None,
    line_edit: LineEdit | None = None,
    allowed_thinking_hashes: frozenset[int] | None = None,
) -> ChainRewrite:
    """Plan a child with the live chain of ``transcript``. The function writes no files.

    If no ``lineage`` is given, an existing lineage block stays unchanged, so that the child's
    requests begin like those in the API's cache. If ``clears_token_counts`` is None, the token
    counts are kept only if the API counted the tokens of an answer after the last compaction. Older
    counts belong to a larger context.
    """
    chain = linearize_chain(transcript.chain)
    by_record = collect_edits(chain, transcript, preparation_observer, edits or {})
    if lineage:
        older_opening = find_opening(lineage_block.LINEAGE_END_MARKER, chain.nodes, transcript)
    else:
        older_opening = None
    if older_opening is not None:
        by_record.setdefault(older_opening.line_number, []).append(
            lambda record: replace_lineage_block(record, lineage)
        )
    lineage_index = 0
    # A compaction's summary must directly follow the boundary record.
    if chain.nodes and chain.nodes[0].is_boundary:
        lineage_index = next(
            (
                index + 1
                for index, node in enumerate(chain.nodes[:MAX_OPENING_RECORDS])
                if node.is_summary
            ),
            1,
        )
    rewrite = ChainRewrite(
        source_path=transcript.path,
        attributes=draft.attributes,
        first_line=first_line,
        lineage="" if older_opening is not None else lineage,
        lineage_index=lineage_index,
        linear_chain=chain,
        edits=by_record,
        metadata_lines=tuple(metadata_lines),
        clears_token_counts=tokens.find_last_answer_with_token_count(transcript.chain) is None
        if clears_token_counts is None
        else clears_token_counts,
        closing=closing,
        line_edit=line_edit,
        allowed_thinking_hashes=allowed_thinking_hashes,
        unlinked_answer_count=0,
    )
    return replace(
        rewrite,
        unlinked_answer_count=_count_newly_adjacent_answers(
            rewrite, transcript, preparation_observer
        ),
    )


def _count_newly_adjacent_answers(
    rewrite: ChainRewrite, transcript: Transcript, preparation_observer: CopyPreparationObserver
) -> int:
    """Count the answers that follow another answer directly in the child, but not in the parent."""

    def is_kept(node: Node) -> bool:
        is_edited = (
            node.line_number in rewrite.linear_chain.dropped_call_ids
            or node.line_number in preparation_observer.records_to_mend
        )
        return not is_edited or rewrite.edit_record(node, transcript.read_record(node)) is not None

    nodes_by_id = {node.uuid: node for node in rewrite.linear_chain.nodes}

    def find_parent(node: Node) -> Node | None:
        return nodes_by_id.get(node.parent_uuid or "")

    def is_linked(previous: Node, node: Node) -> bool:
        ancestors = iterate_ancestors(find_parent(node), find_parent)
        return (
            next((node_above for node_above in ancestors if node_above.is_message), None)
            is previous
        )

    kept_messages = [
        node for node in rewrite.linear_chain.nodes if node.is_message and is_kept(node)
    ]
    pairs = (
        (previous, node)
        for previous, node in pairwise(kept_messages)
        if are_records_of_one_answer(previous, node)
    )
    return sum(not is_linked(previous, node) for previous, node in pairs)


class _ChainWriter:
    """Writes the lines of the chain. Remembers the id and the time of the last record that was written."""

    def __init__(self, child: ChainRewrite) -> None:
        self._child = child
        self._last_uuid: str | None = None
        # No record gets a time before the first valid time in the parent.
        self._last_time_ms = next(filter(None, map(_get_time_ms, child.linear_chain.nodes)), 0)
        self.has_written_lineage = False

    def make_lineage_line(self, node: Node) -> bytes:
        self._last_time_ms = max(self._last_time_ms, _get_time_ms(node))
        self.has_written_lineage = True
        return self._make_inserted_line(
            lambda setting, above, own: lineage_line(setting, above, own, self._child.lineage)
        )

    def make_closing_lines(self) -> Iterator[bytes]:
        """Yield a result for each last call that has none, and then the closing records."""
        for call in self._child.linear_chain.open_call_ids:
            self._last_time_ms += 1
            yield self._make_inserted_line(partial(missing_result_line, call_id=call))
        closing_texts = self._child.closing
        if closing_texts is None:
            return
        self._last_time_ms = max(
            self._last_time_ms + 1, clock.to_milliseconds(self._child.attributes.created_at) or 0
        )
        attributes = self._child.attributes._replace(
            created_at=clock.timestamp_from_milliseconds(self._last_time_ms)
        )
        yield from closing_lines(
            attributes, self._last_uuid, closing_texts.text, closing_texts.screen_text
        )

    def make_record_line(self, node: Node, body: bytes, *, is_last: bool) -> bytes:
        """Return a record of the parent as a line of the child.

        ``is_last`` is true for the last record of the chain, which gets a later time than all others.
        """
        time_ms = max(
            self._last_time_ms + (is_last and self._last_uuid is not None), _get_time_ms(node)
        )
        body = self._link_record(node, body, time_ms)
        if self._child.clears_token_counts and node.context_tokens:
            body = clear_usage(body)
        if self._child.line_edit is not None:
            body = self._child.line_edit(body, node)
        self._last_uuid, self._last_time_ms = node.uuid, time_ms
        return body

    def _link_record(self, node: Node, body: bytes, time_ms: int) -> bytes:
        session_id = self._child.attributes.session_id
        new_fields = {
            "parentUuid": None if node.is_boundary else self._last_uuid,
            "sessionId": session_id,
        }
        if time_ms == node.time_ms and node.session_id and not node.has_uuid_sent_to_api:
            return set_fields(
                body, {"parentUuid": node.parent_uuid, "sessionId": node.session_id}, new_fields
            )
        record = parse_record(body) or {}
        if "sessionId" not in record:
            del new_fields["sessionId"]
        if time_ms != node.time_ms:
            new_fields["timestamp"] = clock.timestamp_from_milliseconds(time_ms)
        if node.has_uuid_sent_to_api:
            new_fields["uuid"] = node.uuid
        return set_fields(body, {key: record.get(key) for key in new_fields}, new_fields)

    def _make_inserted_line(
        self, write_record: Callable[[ChildAttributes, str | None, str], bytes]
    ) -> bytes:
        own_id = str(uuid.uuid4())
        body = write_record(
            self._child.attributes._replace(
                created_at=clock.timestamp_from_milliseconds(self._last_time_ms)
            ),
            self._last_uuid,
            own_id,
        )
        self._last_uuid = own_id
        return body


def _get_time_ms(node: Node) -> int:
    """Return a record's time in milliseconds, or 0 if the time is missing or invalid."""
    if node.time_ms is not None and 0 < node.time_ms < MAX_VALID_TIME_MS:
        return node.time_ms
    return 0
