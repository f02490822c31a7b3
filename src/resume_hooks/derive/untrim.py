"""An untrim: find the trimmed records of a session, and plan a child with their original contents.

A record that a client rebuilt for a trim in place has no mark, only placeholders. It may combine
several original records, so each block is restored separately. Placeholders are untrusted: a
reference counts only if it leads to the same call, its result, or an answer of the model.
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
from resume_hooks.derive.child.bookkeeping import copy_lines_after_chain
from resume_hooks.derive.child.draft import make_draft
from resume_hooks.derive.child.rewrite_chain import Edit, find_opening, plan_chain_rewrite
from resume_hooks.derive.child.write import ChildPlan, Sizes, Watcher
from resume_hooks.derive.originals import (
    CONTENTS,
    Originals,
    Restoring,
    call_result_pairs,
    is_marked,
    origins_in,
)
from resume_hooks.derive.trim.plan import LEGEND
from resume_hooks.errors import NothingToTrim, SessionNotFound, UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.record_references import SHORT, RecordLine
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.storage.backups import backup_time
from resume_hooks.transcripts import records, tokens
from resume_hooks.transcripts.calibration import MIN_GROWTH, PLAUSIBLE, Scale
from resume_hooks.transcripts.chain import chain_to
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import Check
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node, node_of
from resume_hooks.transcripts.placeholders import is_placeholder, stands_for_answer
from resume_hooks.transcripts.provenance import ChildSize
from resume_hooks.transcripts.raw_edit import encode
from resume_hooks.transcripts.records import ASSISTANT, Record, message, string, with_content
from resume_hooks.transcripts.tokens import ContextSize
from resume_hooks.transcripts.transcript import Transcript, scan
from resume_hooks.transcripts.trimmable_pieces import MEDIA, THINKING, Pieces
from resume_hooks.transcripts.write_scan import WriteScan, mend

_PLACE = re.compile(
    r"; original: ([0-9a-f-]{8,36}):(\d{1,9})[^\[\]\n]{0,200}\]\Z"
)  # the end of our placeholders
_WORDS = (
    b'"truncated"',
    b"See line ",
    b"; original: ",
)  # every trimmed record contains at least one of these


def missing_originals(record: Record) -> dict[int, tuple[str, int]]:
    """Return the references of blocks that are only a placeholder, by the block's index."""
    content = message(record).get("content")
    found = {}
    for place, block in enumerate(content if isinstance(content, list) else ()):
        for text in _block_texts(block) if isinstance(block, dict) else ():
            if match := _PLACE.search(text[-300:]):
                found[place] = match.group(1), int(match.group(2))
    return found


def _block_texts(block: Record) -> Iterator[str]:
    kind = string(block, "type")
    if kind == records.RESULT:
        # A client joins the parts of a result into one text. A line of it may stand for a picture.
        yield from filter(is_placeholder, records.result_text(block).split("\n"))
    elif kind == records.CALL:
        for value in records.mapping(block, "input").values():
            if isinstance(value, str):
                yield value
    elif stands_for_answer(string(block, "text")):
        yield string(block, "text")


def originals_of(record: Record, originals: Originals) -> dict[int, RecordLine]:
    """Return the original record of each trimmed block, by the block's index.

    Raises SessionNotFound if an original is gone or different.
    """
    found = {}
    for place, reference in missing_originals(record).items():
        found[place] = originals.original_of_line(*reference)
    for place, line in found.items():
        if _original_block(message(record)["content"][place], line.record() or {}) is None:
            raise SessionNotFound(f"{line.reference} contains something else")
    return found


class Refilling:
    """The edit that restores a record's blocks, after the edit ``first``."""

    def __init__(self, found: Mapping[int, RecordLine], first: Edit | None = None) -> None:
        self._found = found
        self._first = first

    def __call__(self, record: Record) -> Record | None:
        """Return the record with its blocks restored.

        Raises SessionNotFound if an original has disappeared since the search.
        """
        edited = self._first(record) if self._first else record
        if edited is None:
            return None
        content = list(message(edited)["content"])
        for place, line in self._found.items():
            block = _original_block(content[place], line.record() or {})
            if block is None:
                raise SessionNotFound(
                    f"{line.file} changed while it was read", "Run the command again."
                )
            content[place] = block
        return mend(with_content(edited, content))


def _original_block(block: Record, original: Record) -> Record | None:
    kind, call = string(block, "type"), records.call_id(block)
    if kind == records.TEXT:
        if records.kind(original) == records.ASSISTANT:
            said = records.text(original)
        else:
            said = ""
        if said:
            return {**block, "text": said}
        return None
    return next(
        (
            one
            for one in records.blocks(original)
            if (one.get("type"), records.call_id(one)) == (kind, call)
        ),
        None,
    )


@dataclass(frozen=True, slots=True)
class TrimmedSession:
    """The result of one scan. ``trimmed`` are the trimmed records of the live chain.

    After trims in place by the running client the chain is the one without them. ``undone`` is
    their number, ``back`` the number of characters that return, and ``whole_tokens`` the resulting
    context (0 if nothing is undone). ``earlier`` is the number of trimmed records before the
    compaction.
    """

    session: SessionFile
    transcript: Transcript
    pieces: Pieces
    survey: WriteScan
    context: ContextSize
    scale: Scale
    trimmed: tuple[Node, ...]
    undone: int = 0
    back: int = 0
    whole_tokens: int = 0
    earlier: int = 0

    @property
    def nothing(self) -> NothingToTrim:
        """The error for a session in which nothing can be restored."""
        if not self.earlier:
            return NothingToTrim("Nothing in this session is trimmed")
        fork = f"resume-hooks fork {self.session.session_id[:SHORT]} --before-compaction"
        return NothingToTrim(
            "The trimmed contents are before the last compaction, so they are no longer sent",
            f"A fork from before it can be untrimmed: {fork}",
        )


def read_trimmed(session: SessionFile) -> TrimmedSession:
    """Scan a session for trimmed records."""
    pieces, survey, marked = Pieces(), WriteScan(), _Marked()
    transcript = scan(session.file, observers=(pieces, survey, marked))
    loaded, live = Session.of(session, Where()), transcript.chain
    context, scale = loaded.weigh(live, pieces)
    before, since, undone = _untrimmed(transcript)
    chain = [*before, *since]
    trimmed = tuple(node for node in chain if node.number in marked.numbers)
    if not undone:
        floor = live[0].number if live and live[0].boundary else 0
        earlier = sum(number < floor for number in marked.numbers)
        return TrimmedSession(
            session, transcript, pieces, survey, context, scale, trimmed, earlier=earlier
        )
    # Later counts of the client measure the trimmed context.
    counted, scale = loaded.weigh(before, pieces)
    added = sum(node.characters for node in since)
    return TrimmedSession(
        session, transcript.ending(chain), pieces, survey, context, scale, trimmed, undone,
        back=added + sum(node.characters for node in before) - sum(node.characters for node in live),
        whole_tokens=counted.tokens + round(added / scale.ratio),
    )  # fmt: skip


def _untrimmed(transcript: Transcript) -> tuple[list[Node], list[Node], int]:
    """Return the chain before the running client's trims, the records since then, and the number of these trims."""
    chain: list[Node] = transcript.chain
    later: list[Node] = []
    undone = 0
    said = [node for node in transcript.nodes if node.spoken and not node.sidechain]
    while chain and chain[0].boundary and any(node.copied for node in chain):
        number = chain[0].number
        before = next((node for node in reversed(said) if node.number < number), None)
        if before is None:
            break
        since = (node for node in chain[1:] if not node.copied)
        own = dropwhile(lambda node: not (node.prompt or node.kind == ASSISTANT), since)
        chain, later, undone = chain_to(transcript.nodes, before), [*own, *later], undone + 1
    return chain, later, undone


class _Marked:
    """An observer of ``transcript.scan`` that collects the numbers of trimmed records."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        if node is None or not any(word in line.raw for word in _WORDS):
            return
        if is_marked(record) or origins_in(record) or missing_originals(record):
            self.numbers.add(node.number)


KIND: Final = "untrim"

NAMED = 10  # records that a message lists individually


class MissingOriginal(NamedTuple):
    """A trimmed record (its line in the session) that cannot be restored, and the reason."""

    record: int
    why: str


class Restoration(NamedTuple):
    """A record, the ``edit`` that restores its contents, its ``original``, and the size of these contents."""

    node: Node
    original: RecordLine
    edit: Edit
    characters: int
    tokens: float
    thoughts: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class UntrimPlan(ChildPlan):
    """An untrim: the ``restored`` records, the ``missing`` originals, and the number of ``trimmed`` records.

    ``after`` is the context that the client would send for the child, ``characters`` the number of
    characters that return to it. ``undone`` is the number of the running client's trims that are
    undone. ``digests`` has the expected digest of each restored record, by uuid.
    """

    restored: Sequence[object]
    missing: tuple[MissingOriginal, ...]
    trimmed: int
    after: ContextSize
    characters: int
    undone: int = 0
    digests: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def facts(self) -> list[str]:
        """The restored contents, in words."""
        facts = []
        if self.undone:
            facts.append("the conversation from before the trim in place is back")
        if self.trimmed:
            facts.append(f"{len(self.restored):,} of {self.trimmed:,} trimmed records are back")
        return facts

    @property
    def is_idle(self) -> bool:
        """Whether nothing can be restored."""
        return not (self.restored or self.undone)

    def watchers(self) -> Sequence[Watcher]:
        """Return a check that the restored contents equal the originals."""
        return [_ContentsSeen(self.digests)]


def plan_untrim(
    reading: TrimmedSession,
    where: Where,
    numbers: Collection[int] | None = None,
    *,
    strict: bool = False,
    output_dir: str | None = None,
) -> UntrimPlan:
    """Plan a child with the trimmed records ``numbers`` restored, or all of them if None.

    Raises UsageError for a record that is not trimmed. Raises SessionNotFound if no original is
    left or, with ``strict``, if one is missing.
    """
    wanted = trimmed_nodes(reading, numbers)
    restored, missing = _find_restorations(reading, wanted, Originals(where))
    if missing and (strict or not restored):
        if restored:
            rest = " Without --strict the rest is restored."
        else:
            rest = ""
        raise SessionNotFound(loss_text(missing, len(wanted)), f"Nothing was written.{rest}")
    session, transcript = reading.session, reading.transcript
    ends = HeadTail(session.file)
    child = make_draft(session, ends, KIND, where, output_dir)
    whole = len(restored) == len(reading.trimmed)
    before, after = _sizes(reading, restored, whole=whole)
    own = set()
    for piece in reading.pieces.found:
        if piece.kind == THINKING:
            own.add(piece.digest)
    edits: dict[int, Edit] = {}
    for row in restored:
        edits[row.node.number] = row.edit
    if whole and (legend := find_opening(f"\n{LEGEND}", transcript.chain, transcript)) is not None:
        # without placeholders the legend is pointless
        edits.setdefault(legend.number, _without_legend)
    size = ChildSize(
        after.tokens,
        round(_ratio(reading, after), 2),
        tokens.window_shown(session.file, before.tokens),
    )
    body = plan_chain_rewrite(
        child,
        transcript,
        reading.survey,
        head=child.head(size),
        lineage=child.block if whole else f"{child.block}\n{LEGEND}",
        edits=edits,
        books=copy_lines_after_chain(transcript, reading.survey, ends, child.session_id),
        shrunk=True,
        thoughts=frozenset(own.union(*(row.thoughts for row in restored))),
    )
    digests = {}
    for row in restored:
        record = body.edited(row.node, transcript.read(row.node))
        if record is not None:
            digests[row.node.uuid] = _digest(record)
    return UntrimPlan(
        draft=child,
        body=body,
        sizes=Sizes(before.tokens, after.tokens),
        remarks=tuple(loss_warnings(missing)),
        restored=restored,
        missing=missing,
        trimmed=len(reading.trimmed),
        after=after,
        characters=reading.back + sum(row.characters for row in restored),
        digests=digests,
        undone=reading.undone,
    )


class _ContentsSeen:
    def __init__(self, wanted: Mapping[str, bytes]) -> None:
        self._wanted = wanted
        self._found: dict[str, bytes] = {}

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:  # noqa: ARG002 - an observer's form
        if node is not None and node.uuid in self._wanted:
            self._found[node.uuid] = _digest(record)

    def checks(self) -> list[Check]:
        return [Check("restored contents equal the originals", self._found == self._wanted)]


def trimmed_nodes(reading: TrimmedSession, numbers: Collection[int] | None) -> tuple[Node, ...]:
    """Return the trimmed records with these numbers, or all of them if None.

    Raises UsageError for a record that is not trimmed.
    """
    trimmed = {node.number for node in reading.trimmed}
    stray = sorted(set(numbers or ()) - trimmed)
    if stray:
        known = ", ".join(str(node.number) for node in reading.trimmed[:NAMED])
        if len(trimmed) > NAMED:
            more = f" and {len(trimmed) - NAMED:,} more"
        else:
            more = ""
        raise UsageError(
            f"Record {stray[0]} of this session's conversation is not trimmed",
            f"The trimmed records are: {known}{more}."
            if trimmed
            else "No record of this session is trimmed.",
        )
    return tuple(node for node in reading.trimmed if numbers is None or node.number in numbers)


def _find_restorations(
    reading: TrimmedSession, wanted: Sequence[Node], originals: Originals
) -> tuple[tuple[Restoration, ...], tuple[MissingOriginal, ...]]:
    """Return a restoration for each wanted record, and the records whose originals are missing."""
    media = Counter[int]()
    for piece in reading.pieces.found:
        media[piece.number] += piece.tokens if piece.kind == MEDIA else 0
    restorations, missing = [], []
    for node in wanted:
        record = reading.transcript.read(node)
        try:
            entry, edit = _edit_of(record, reading.session.path, originals)
            whole = edit(record)
        except SessionNotFound as error:
            missing.append(MissingOriginal(node.number, str(error)))
            continue
        if whole is None or not call_result_pairs(record) <= call_result_pairs(whole):
            missing.append(
                MissingOriginal(node.number, f"{entry.reference} contains something else")
            )
        else:
            restorations.append(
                _restoration_of(node, entry, edit, whole, reading.scale, media[node.number])
            )
    return tuple(restorations), tuple(missing)


def _edit_of(record: Record, file: str, originals: Originals) -> tuple[RecordLine, Edit]:
    """Return the original of a record, and the edit that restores the record.

    Raises SessionNotFound if the original is gone.
    """
    if not (is_marked(record) or origins_in(record)):
        found = originals_of(record, originals)
        return next(iter(found.values())), Refilling(found)
    entry = originals.of(record, file)
    if entry is None:
        raise SessionNotFound(f"its original is gone: {originals.where_it_was(record)}")
    edit = Restoring(entry)
    whole = edit(record)
    if whole is not None and missing_originals(whole):
        with contextlib.suppress(
            SessionNotFound
        ):  # contents of an earlier trim may be gone, so restore the others
            return entry, Refilling(originals_of(whole, originals), edit)
    return entry, edit


def _restoration_of(
    node: Node, entry: RecordLine, edit: Edit, whole: Record, scale: Scale, media: int
) -> Restoration:
    line, pieces = Line(node.number, 0, b""), Pieces()
    known = node_of({**whole, "uuid": node.uuid}, line)
    pieces(line, whole, known)
    characters = known.characters - node.characters
    weight = (
        characters / scale.ratio + sum(p.tokens for p in pieces.found if p.kind == MEDIA) - media
    )
    thoughts = frozenset(piece.digest for piece in pieces.found if piece.kind == THINKING)
    return Restoration(node, entry, edit, characters, weight, thoughts)


def _digest(record: Record) -> bytes:
    held = {}
    for key in CONTENTS[1:]:
        if key in record:
            held[key] = record[key]
    return hashlib.sha256(encode({"content": message(record).get("content"), **held})).digest()


def _sizes(
    reading: TrimmedSession, restored: Sequence[Restoration], *, whole: bool
) -> tuple[ContextSize, ContextSize]:
    """Return the context before and after. ``whole`` means that no record stays trimmed."""
    back = max(0, round(sum(row.tokens for row in restored)))
    now = reading.context
    if reading.undone:
        return now, now._replace(tokens=reading.whole_tokens + back)
    stated = tokens.stated_size(reading.session.file)
    if stated is not None and whole and not now.measured and stated.original > now.tokens:
        return now, now._replace(tokens=stated.original)
    if now.measured and _counted_before_trim(reading):
        return now._replace(tokens=max(0, now.tokens - back)), now
    return now, now._replace(tokens=now.tokens + back)


def _ratio(reading: TrimmedSession, after: ContextSize) -> float:
    """Return the child's characters per token, from the savings of the undone trim: a new trim saves the same."""
    stated = tokens.stated_size(reading.session.file)
    if stated is None or reading.undone or after.tokens != stated.original:
        return reading.scale.ratio
    saved = stated.original - stated.tokens
    if saved < MIN_GROWTH or not stated.saved:
        return reading.scale.ratio
    least, most = PLAUSIBLE
    return min(max(stated.saved / saved, least), most)


def _counted_before_trim(reading: TrimmedSession) -> bool:
    """Check whether the last answer was counted before the trim in place.

    Its count then covers the whole context.
    """
    instants = (
        clock.to_milliseconds(backup_time(origin.file))
        for origin in reading.pieces.origins.values()
    )
    trimmed = max((at for at in instants if at is not None), default=None)
    counted = max(
        (node.time_ms or 0 for node in reading.transcript.chain if node.context_tokens), default=0
    )
    return trimmed is not None and counted < trimmed


def _without_legend(record: Record) -> Record:
    content = message(record)["content"].replace(f"\n{LEGEND}", "", 1)
    return with_content(record, content)


def loss_text(missing: Sequence[MissingOriginal], wanted: int) -> str:
    """Return a sentence on the records that cannot be restored."""
    first = missing[0]
    return (
        f"{len(missing):,} of {wanted:,} records can't be restored; record {first.record}: "
        f"{first.why}"
    )


def loss_warnings(missing: Sequence[MissingOriginal]) -> list[str]:
    """Return a warning for each record that stays trimmed."""
    sentences = []
    for row in missing[:NAMED]:
        sentences.append(f"Record {row.record} stays trimmed: {row.why}.")
    if len(missing) <= NAMED:
        return sentences
    return [*sentences, f"{len(missing) - NAMED:,} more records stay trimmed."]
