"""An untrim: which records of a session lack contents, and a child in which their originals stand again.

Records that a client built anew in a trim in place have no mark that says so, their placeholders
alone do. One such record may hold what were several, so each block comes back by itself. What a
placeholder names is untrusted: it counts only where it leads to the same call, its result, or
something that the model said.
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
from resume_hooks.derive.child.bookkeeping import books_of
from resume_hooks.derive.child.draft import make_draft
from resume_hooks.derive.child.rewrite_chain import Edit, chain_rewrite, opening_with
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
)  # the end of a placeholder of ours
_WORDS = (
    b'"truncated"',
    b"See line ",
    b"; original: ",
)  # one of which stands in every record that lacks contents


def missing_originals(record: Record) -> dict[int, tuple[str, int]]:
    """Where the originals of blocks are of which a placeholder is all that is left, by the block's place."""
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
        # What was several parts is one text, a line of which may stand for a picture.
        yield from filter(is_placeholder, records.result_text(block).split("\n"))
    elif kind == records.CALL:
        for value in records.mapping(block, "input").values():
            if isinstance(value, str):
                yield value
    elif stands_for_answer(string(block, "text")):
        yield string(block, "text")


def originals_of(record: Record, originals: Originals) -> dict[int, RecordLine]:
    """The records that hold what each block lacks.

    SessionNotFound where one is gone or holds something else.
    """
    found = {}
    for place, reference in missing_originals(record).items():
        found[place] = originals.original_of_line(*reference)
    for place, line in found.items():
        if _original_block(message(record)["content"][place], line.record() or {}) is None:
            raise SessionNotFound(f"{line.reference} contains something else")
    return found


class Refilling:
    """The edit of one record: its blocks as in the originals, after ``first``, another edit."""

    def __init__(self, found: Mapping[int, RecordLine], first: Edit | None = None) -> None:
        self._found = found
        self._first = first

    def __call__(self, record: Record) -> Record | None:
        """The record with its blocks back.

        SessionNotFound if an original is gone since it was found.
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
    """What one scan tells; ``trimmed`` are the records of the live chain that lack contents.

    Where the running client was trimmed in place the chain is what it would be without that:
    ``undone`` times, which brings ``back`` so many characters, and makes of the context
    ``whole_tokens`` (0 where nothing is undone). ``earlier`` are those before the compaction.
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
        """What is said where nothing can come back."""
        if not self.earlier:
            return NothingToTrim("Nothing in this session is trimmed")
        fork = f"resume-hooks fork {self.session.session_id[:SHORT]} --before-compaction"
        return NothingToTrim(
            "What was trimmed here lies before the last compaction, and is not sent any more",
            f"A fork from before it can be untrimmed: {fork}",
        )


def read_trimmed(session: SessionFile) -> TrimmedSession:
    """Scan a session for what is trimmed in it."""
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
    # Counts that the client wrote since are of what the trim left.
    counted, scale = loaded.weigh(before, pieces)
    added = sum(node.characters for node in since)
    return TrimmedSession(
        session, transcript.ending(chain), pieces, survey, context, scale, trimmed, undone,
        back=added + sum(node.characters for node in before) - sum(node.characters for node in live),
        whole_tokens=counted.tokens + round(added / scale.ratio),
    )  # fmt: skip


def _untrimmed(transcript: Transcript) -> tuple[list[Node], list[Node], int]:
    """What stood before the trims of the running client, what was said since, and how many these were."""
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
    """An observer of ``transcript.scan``: the numbers of records that lack contents by their own words."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        if node is None or not any(word in line.raw for word in _WORDS):
            return
        if is_marked(record) or origins_in(record) or missing_originals(record):
            self.numbers.add(node.number)


KIND: Final = "untrim"

NAMED = 10  # records that a message names one by one


class MissingOriginal(NamedTuple):
    """A trimmed record (its line in the session) that stays as it is, and why."""

    record: int
    why: str


class Restoration(NamedTuple):
    """A record that gets its contents back by ``edit``, where its ``original`` is, and what they weigh."""

    node: Node
    original: RecordLine
    edit: Edit
    characters: int
    tokens: float
    thoughts: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class UntrimPlan(ChildPlan):
    """An untrim: the records that are ``restored`` and that can't be, of those that are ``trimmed``.

    ``after`` is what the client would send of the child, ``characters`` how many of what is sent
    come back. ``undone`` are the trims of the running client that are taken back, ``digests`` are
    of restored contents as the child must hold them, by uuid.
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
        """What comes back, in words."""
        facts = []
        if self.undone:
            facts.append("the conversation is back as it was before it was trimmed in place")
        if self.trimmed:
            facts.append(f"{len(self.restored):,} of {self.trimmed:,} trimmed records are back")
        return facts

    @property
    def is_idle(self) -> bool:
        """Whether nothing is trimmed."""
        return not (self.restored or self.undone)

    def watchers(self) -> Sequence[Watcher]:
        """Whether what was restored is as it was."""
        return [_ContentsSeen(self.digests)]


def plan_untrim(
    reading: TrimmedSession,
    where: Where,
    numbers: Collection[int] | None = None,
    *,
    strict: bool = False,
    output_dir: str | None = None,
) -> UntrimPlan:
    """Decide on a child in which the trimmed records ``numbers`` (all of them: None) are whole again.

    UsageError for a record that is not trimmed. SessionNotFound where no original is left, or with
    ``strict`` where one is missing.
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
    if whole and (legend := opening_with(f"\n{LEGEND}", transcript.chain, transcript)) is not None:
        edits.setdefault(legend.number, _without_legend)  # nothing explains placeholders any more
    size = ChildSize(
        after.tokens,
        round(_ratio(reading, after), 2),
        tokens.window_shown(session.file, before.tokens),
    )
    body = chain_rewrite(
        child,
        transcript,
        reading.survey,
        head=child.head(size),
        lineage=child.block if whole else f"{child.block}\n{LEGEND}",
        edits=edits,
        books=books_of(transcript, reading.survey, ends, child.session_id),
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
    """The trimmed records of these numbers, all for None.

    UsageError for a record that is not trimmed.
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
            f"Trimmed are: {known}{more}." if trimmed else "Nothing in this session is.",
        )
    return tuple(node for node in reading.trimmed if numbers is None or node.number in numbers)


def _find_restorations(
    reading: TrimmedSession, wanted: Sequence[Node], originals: Originals
) -> tuple[tuple[Restoration, ...], tuple[MissingOriginal, ...]]:
    """How each wanted record comes back, and those of which the original is missing."""
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
    """What brings the contents of a record back, and where they are.

    SessionNotFound where they are gone.
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
        ):  # what was trimmed before may be gone: the rest comes back
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
    """What the client would send before and after; ``whole``: nothing stays trimmed."""
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
    """Characters a token of the child: of all that a trim took out, as that counted it: another one saves as much."""
    stated = tokens.stated_size(reading.session.file)
    if stated is None or reading.undone or after.tokens != stated.original:
        return reading.scale.ratio
    saved = stated.original - stated.tokens
    if saved < MIN_GROWTH or not stated.saved:
        return reading.scale.ratio
    least, most = PLAUSIBLE
    return min(max(stated.saved / saved, least), most)


def _counted_before_trim(reading: TrimmedSession) -> bool:
    """Whether the last answer was counted before the session was trimmed in place: then its count is of the whole."""
    instants = (
        clock.milliseconds(backup_time(origin.file)) for origin in reading.pieces.origins.values()
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
    """What can't be restored, in a sentence."""
    first = missing[0]
    return (
        f"{len(missing):,} of {wanted:,} records can't be restored; record {first.record}: "
        f"{first.why}"
    )


def loss_warnings(missing: Sequence[MissingOriginal]) -> list[str]:
    """Warnings on what stays trimmed."""
    sentences = []
    for row in missing[:NAMED]:
        sentences.append(f"Record {row.record} stays trimmed: {row.why}.")
    if len(missing) <= NAMED:
        return sentences
    return [*sentences, f"{len(missing) - NAMED:,} more records stay trimmed."]
