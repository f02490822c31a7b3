"""An untrim: a child of a trimmed session in which originals stand again, as they were."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from resume_hooks import clock
from resume_hooks.derive.child.bookkeeping import books_of
from resume_hooks.derive.child.draft import draft
from resume_hooks.derive.child.rewrite_chain import OPENING_REACH, ChainRewrite, Edit, chain_rewrite
from resume_hooks.derive.child.write import ChildPlan, Sizes, Watcher
from resume_hooks.derive.originals import CONTENTS, Originals, Restoring, is_marked, origins_in, pairs
from resume_hooks.derive.trim.plan import LEGEND
from resume_hooks.derive.trimmed_session import Refilling, TrimmedSession, lacking, originals_of
from resume_hooks.errors import SessionNotFound, UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.lineage_block import OPENING
from resume_hooks.sessions.record_references import RecordLine
from resume_hooks.storage.backups import instant_of
from resume_hooks.transcripts import tokens
from resume_hooks.transcripts.calibration import Scale
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import Check
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node, node_of
from resume_hooks.transcripts.provenance import ChildSize
from resume_hooks.transcripts.raw_edit import encode
from resume_hooks.transcripts.records import Record, message, with_content
from resume_hooks.transcripts.tokens import ContextUse
from resume_hooks.transcripts.transcript import Transcript
from resume_hooks.transcripts.trimmable_pieces import MEDIA, THINKING, Pieces

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

    ``after`` is what the client would send of the child, ``characters`` how many of what is sent come back. ``undone``
    are the trims of the running client that are taken back, ``digests`` are of restored contents as the child must hold
    them, by uuid.
    """

    restored: Sequence[object]
    missing: tuple[MissingOriginal, ...]
    trimmed: int
    after: ContextUse
    characters: int
    undone: int = 0
    digests: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def facts(self) -> list[str]:
        """What comes back, in words."""
        return [
            *(["the conversation is back as it was before it was trimmed in place"] if self.undone else []),
            *([f"{len(self.restored):,} of {self.trimmed:,} trimmed records are back"] if self.trimmed else []),
        ]

    @property
    def is_idle(self) -> bool:
        """Whether nothing is trimmed."""
        return not (self.restored or self.undone)

    def watchers(self) -> Sequence[Watcher]:
        """Whether what was restored is as it was."""
        return [_ContentsSeen(self.digests)]


def plan(
    reading: TrimmedSession,
    where: Where,
    numbers: Collection[int] | None = None,
    *,
    strict: bool = False,
    output_dir: str | None = None,
) -> UntrimPlan:
    """Decide on a child in which the trimmed records ``numbers`` (all of them: None) are whole again.

    UsageError for a record that is not trimmed. SessionNotFound where no original is left, or with ``strict`` where
    one is missing.
    """
    wanted = wanted_of(reading, numbers)
    restored, missing = _originals(reading, wanted, Originals(where))
    if missing and (strict or not restored):
        rest = " Without --strict the rest is restored." if restored else ""
        raise SessionNotFound(lost(missing, len(wanted)), f"Nothing was written.{rest}")
    session, transcript = reading.session, reading.transcript
    ends = HeadTail(session.path)
    child = draft(session, ends, KIND, where, output_dir)
    whole = len(restored) == len(reading.trimmed)
    before, after = _sizes(reading, restored, whole=whole)
    own = {piece.digest for piece in reading.pieces.found if piece.kind == THINKING}
    body = chain_rewrite(
        child,
        transcript,
        reading.survey,
        head=child.head(
            ChildSize(after.tokens, round(reading.scale.ratio, 2), tokens.window_shown(session.path, before.tokens))
        ),
        lineage=child.block if whole else f"{child.block}\n{LEGEND}",
        edits=_edits(transcript, restored, whole=whole),
        books=books_of(transcript, reading.survey, ends, child.session_id),
        shrunk=True,
        thoughts=frozenset(own.union(*(row.thoughts for row in restored))),
    )
    return UntrimPlan(
        draft=child,
        body=body,
        sizes=Sizes(before.tokens, after.tokens),
        remarks=tuple(sentences(missing)),
        restored=restored,
        missing=missing,
        trimmed=len(reading.trimmed),
        after=after,
        characters=reading.back + sum(row.characters for row in restored),
        digests=_digests(body, transcript, restored),
        undone=reading.undone,
    )


class _ContentsSeen:
    """A watcher: whether the records of these uuids have contents of these digests."""

    def __init__(self, wanted: Mapping[str, bytes]) -> None:
        self._wanted = wanted
        self._found: dict[str, bytes] = {}

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:  # noqa: ARG002 - an observer's form
        if node is not None and node.uuid in self._wanted:
            self._found[node.uuid] = _digest(record)

    def checks(self) -> list[Check]:
        return [Check("restored contents equal the originals", self._found == self._wanted)]


def _edits(transcript: Transcript, restored: Sequence[Restoration], *, whole: bool) -> dict[int, Edit]:
    """What comes back, by record; where the session is ``whole`` again, nothing explains placeholders any more."""
    edits: dict[int, Edit] = {row.node.number: row.edit for row in restored}
    if whole and (legend := _legend_of(transcript)) is not None:
        edits.setdefault(legend.number, _without_legend)
    return edits


def wanted_of(reading: TrimmedSession, numbers: Collection[int] | None) -> tuple[Node, ...]:
    """The trimmed records of these numbers, all for None. UsageError for a record that is not trimmed."""
    trimmed = {node.number for node in reading.trimmed}
    stray = sorted(set(numbers or ()) - trimmed)
    if stray:
        known = ", ".join(str(node.number) for node in reading.trimmed[:NAMED])
        more = f" and {len(trimmed) - NAMED:,} more" if len(trimmed) > NAMED else ""
        raise UsageError(
            f"Record {stray[0]} of this session's conversation is not trimmed",
            f"Trimmed are: {known}{more}." if trimmed else "Nothing in this session is.",
        )
    return tuple(node for node in reading.trimmed if numbers is None or node.number in numbers)


def _originals(
    reading: TrimmedSession, wanted: Sequence[Node], originals: Originals
) -> tuple[tuple[Restoration, ...], tuple[MissingOriginal, ...]]:
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
        if whole is None or not pairs(record) <= pairs(whole):
            missing.append(MissingOriginal(node.number, f"{entry.reference} holds something else"))
        else:
            restorations.append(_weighed(node, entry, edit, whole, reading.scale, media[node.number]))
    return tuple(restorations), tuple(missing)


def _edit_of(record: Record, file: str, originals: Originals) -> tuple[RecordLine, Edit]:
    """What brings the contents of a record back, and where they are. SessionNotFound where they are gone."""
    if not (is_marked(record) or origins_in(record)):
        found = originals_of(record, originals)
        return next(iter(found.values())), Refilling(found)
    entry = originals.of(record, file)
    if entry is None:
        raise SessionNotFound(f"its original is gone: {originals.where_it_was(record)}")
    edit = Restoring(entry)
    whole = edit(record)
    if whole is None or not lacking(whole):
        return entry, edit
    with contextlib.suppress(SessionNotFound):  # what was trimmed before may be gone: the rest comes back
        return entry, Refilling(originals_of(whole, originals), edit)
    return entry, edit


def _weighed(node: Node, entry: RecordLine, edit: Edit, whole: Record, scale: Scale, media: int) -> Restoration:
    line, pieces = Line(node.number, 0, b""), Pieces()
    known = node_of({**whole, "uuid": node.uuid}, line)
    pieces(line, whole, known)
    characters = known.characters - node.characters
    weight = characters / scale.ratio + sum(p.tokens for p in pieces.found if p.kind == MEDIA) - media
    thoughts = frozenset(piece.digest for piece in pieces.found if piece.kind == THINKING)
    return Restoration(node, entry, edit, characters, weight, thoughts)


def _digests(body: ChainRewrite, transcript: Transcript, restored: Sequence[Restoration]) -> dict[str, bytes]:
    edited = ((row.node, body.edited(row.node, transcript.read(row.node))) for row in restored)
    return {node.uuid: _digest(record) for node, record in edited if record is not None}


def _digest(record: Record) -> bytes:
    held = {key: record[key] for key in CONTENTS[1:] if key in record}
    return hashlib.sha256(encode({"content": message(record).get("content"), **held})).digest()


def _sizes(reading: TrimmedSession, restored: Sequence[Restoration], *, whole: bool) -> tuple[ContextUse, ContextUse]:
    """What the client would send before and after; ``whole``: nothing stays trimmed."""
    back = max(0, round(sum(row.tokens for row in restored)))
    now = reading.context
    if reading.undone:
        trimmed = reading.whole_tokens - round(reading.back / reading.scale.ratio)
        counted = now if now.measured else now._replace(tokens=max(now.tokens, trimmed))
        return counted, now._replace(tokens=reading.whole_tokens + back)
    stated = tokens.stated_size(reading.session.path)
    if stated is not None and whole and not now.measured and stated.original > now.tokens:
        return now, now._replace(tokens=stated.original)
    if now.measured and _counted_before_trim(reading):
        return now._replace(tokens=max(0, now.tokens - back)), now
    return now, now._replace(tokens=now.tokens + back)


def _counted_before_trim(reading: TrimmedSession) -> bool:
    """Whether the last answer was counted before the session was trimmed in place: then its count is of the whole."""
    instants = (clock.milliseconds(instant_of(origin.file)) for origin in reading.pieces.origins.values())
    trimmed = max((at for at in instants if at is not None), default=None)
    counted = max((node.time_ms or 0 for node in reading.transcript.chain if node.context_tokens), default=0)
    return trimmed is not None and counted < trimmed


def _legend_of(transcript: Transcript) -> Node | None:
    """The record that explains placeholders to the model: the lineage of a trimmed child."""
    for node in transcript.chain[:OPENING_REACH]:
        content = message(transcript.read(node)).get("content") if node.meta or node.summary else None
        if isinstance(content, str) and content.startswith(OPENING) and f"\n{LEGEND}" in content:
            return node
    return None


def _without_legend(record: Record) -> Record:
    content = message(record)["content"].replace(f"\n{LEGEND}", "", 1)
    return with_content(record, content)


def lost(missing: Sequence[MissingOriginal], wanted: int) -> str:
    """What can't be restored, in a sentence."""
    first = missing[0]
    return f"{len(missing):,} of {wanted:,} records can't be restored; record {first.record}: {first.why}"


def sentences(missing: Sequence[MissingOriginal]) -> list[str]:
    """Warnings on what stays trimmed."""
    sentences = [f"Record {row.record} stays trimmed: {row.why}." for row in missing[:NAMED]]
    return sentences if len(missing) <= NAMED else [*sentences, f"{len(missing) - NAMED:,} more records stay trimmed."]
