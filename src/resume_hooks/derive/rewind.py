"""A rewind, planned and written: a child cut back to a checkpoint, which of what came after keeps a report alone.

Deciding and acting are apart: ``plan`` only reads, ``write`` applies a plan once and checks it. The records before
the cut are sent as they were, so that what an API has cached of them still counts: lineage and report follow them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from resume_hooks.derive import rollover
from resume_hooks.derive.checkpoint import Mark, refuse_subagent
from resume_hooks.derive.child import create as birth
from resume_hooks.derive.child.bookkeeping import books_of
from resume_hooks.derive.child.carried import carried_lines
from resume_hooks.derive.child.create import Birth
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.rewrite_chain import Closing, Succession, lines, succession
from resume_hooks.derive.rewind_text import LeftOut, card, told
from resume_hooks.derive.rollover import RolloverPlan
from resume_hooks.errors import UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.opening_records import opening_lines, title_line
from resume_hooks.sessions.references import names_of
from resume_hooks.system.text import encodable, plain
from resume_hooks.transcripts import invariants, tokens
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import ReadBack
from resume_hooks.transcripts.linearize import linear, settled
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.provenance import ChildSize, Rewound, continue_line
from resume_hooks.transcripts.records import Record, message
from resume_hooks.transcripts.tail_scan import scan_live
from resume_hooks.transcripts.transcript import Transcript
from resume_hooks.transcripts.write_scan import WriteScan

KIND = "rewind"

MAX_REPORT = 500_000
"""Characters of a report."""

EMPTY = "Report cannot be empty."


class Reading(NamedTuple):
    """A session as a rewind reads it, once; ``said`` are the calls and the thinking in it."""

    session: SessionFile
    transcript: Transcript
    survey: WriteScan
    said: ReadBack
    glance: HeadTail


class Sizes(NamedTuple):
    """Tokens of what the client would send of parent and child, and the characters to one of them."""

    before: int
    after: int
    ratio: float


@dataclass(frozen=True, slots=True)
class RewindPlan:
    """Everything that ``write`` needs: the records up to the mark, or a fresh child where the mark was ``lost``.

    ``thoughts`` are digests of the parent's thinking.
    """

    birth: Birth
    mark: Mark
    report: str
    left_out: LeftOut | None
    lost: str
    child: Succession | RolloverPlan
    thoughts: frozenset[int]
    sizes: Sizes


def checked_report(report: str) -> str:
    """A report without the white space around it. UsageError for one that is empty, or too long."""
    report = encodable(report.strip())
    if not plain(report).strip():
        raise UsageError(EMPTY, "Say in a few lines what was found out, and what came of it.")
    if len(report) > MAX_REPORT:
        raise UsageError(
            f"The report has {len(report):,} characters, more than {MAX_REPORT:,}",
            "Nothing is lost: arrow up brings it back. Put the long part into a file and name the file in the report.",
        )
    return report


def plan(session: SessionFile, mark: Mark, report: str, where: Where, output_dir: str | None = None) -> RewindPlan:
    """Decide on a child of ``session`` that stands at ``mark`` again.

    Where the mark does not resolve any more the child starts at the root, with a warning. InSubagent for a
    sub-agent's transcript, UsageError for what is no report.
    """
    refuse_subagent(session)
    report = checked_report(report)
    reading = _read(session)
    nodes = linear(reading.transcript.chain).nodes
    kept, lost, warnings = _kept(reading.transcript, mark)
    left_out = _left_out(reading, nodes[0 if lost else len(kept) :], mark.record + 1 if lost else None, where)
    expected = birth.expect(session, reading.glance, KIND, where, output_dir)
    expected = expected._replace(warnings=(*expected.warnings, *warnings))
    closing = Closing(told(expected.block, mark, report, left_out, lost), card(mark, report, left_out, lost))
    sizes = _sizes(reading, [] if lost else kept, closing)
    return RewindPlan(
        birth=expected,
        mark=mark,
        report=report,
        left_out=left_out,
        lost=lost,
        child=_fresh(reading, expected, mark, closing, sizes)
        if lost
        else _cut(reading, expected, mark, closing, sizes, kept),
        thoughts=frozenset(reading.said.thoughts),
        sizes=sizes,
    )


def write(decided: RewindPlan, where: Where) -> Receipt:
    """Apply a plan. WriteFailed or CheckFailed leave nothing behind."""
    child = decided.child
    if isinstance(child, RolloverPlan):
        return rollover.write(child, where)
    born = birth.bear(decided.birth, lines(child), lambda path: _checks(decided, child, path), where, books=child.books)
    return receipt(decided, born)


def receipt(decided: RewindPlan, born: birth.Born | None = None) -> Receipt:
    """The receipt of a plan, applied or not."""
    sizes = decided.sizes
    return birth.receipt_of(decided.birth, born, tokens_before=sizes.before, tokens_after=sizes.after)


def _read(session: SessionFile) -> Reading:
    transcript, (survey, said) = scan_live(session.path, lambda: (WriteScan(), ReadBack()))
    return Reading(session, transcript, survey, said, HeadTail(session.path))


def _kept(transcript: Transcript, mark: Mark) -> tuple[Sequence[Node], str, list[str]]:
    """The records up to the mark, or why there are none; and what a person should hear of it."""
    row = linear(transcript.chain)
    place = next((place for place, node in enumerate(row.nodes, 1) if node.uuid == mark.uuid), 0)
    kept = row.nodes[: settled(row, place)]
    if not any(node.spoken for node in kept):
        lost = _why_lost(transcript, mark, place)
        return (), lost, [f"The checkpoint does not resolve any more ({lost}): the new session starts at the root."]
    moved = any(node.spoken for node in row.nodes[len(kept) : place])
    return kept, "", ["The cut is a little before the checkpoint, so that no tool call is split."] if moved else []


def _sizes(reading: Reading, kept: Sequence[Node], closing: Closing) -> Sizes:
    chain = reading.transcript.chain
    ratio = tokens.characters_per_token(chain)
    after = round((len(closing.text) + len(closing.card)) / ratio)
    after += tokens.sent_context(list(kept), ratio).tokens if kept else 0
    return Sizes(tokens.session_context(reading.session.path, chain).tokens, after, round(ratio, 2))


def _head(expected: Birth, mark: Mark, sizes: Sizes) -> bytes:
    return continue_line(
        parent_id=expected.parent.session_id,
        parent_file=expected.parent_file,
        kind=KIND,
        at=expected.setting.at,
        size=ChildSize(sizes.after, sizes.ratio),
        rewound=Rewound(mark.started_at, expected.setting.at),
    )


def _cut(
    reading: Reading, expected: Birth, mark: Mark, closing: Closing, sizes: Sizes, kept: Sequence[Node]
) -> Succession:
    """The child that holds the records up to the mark."""
    part = reading.transcript.ending(kept)
    first = next(node for node in kept if node.spoken)
    return succession(
        part,
        reading.survey,
        expected.setting,
        title=expected.title,
        head=_head(expected, mark, sizes),
        # A conversation has to begin with a user's words; where it does, nothing is put before what is cached.
        lineage="" if first.kind == "user" and not first.results else expected.block,
        books=books_of(part, reading.survey, reading.glance, expected.session_id),
        # What was counted up to the mark is what the client sends again; counts from before a compaction are not.
        shrunk=not tokens.context_of(part.chain).measured,
        closing=closing,
    )


def _fresh(reading: Reading, expected: Birth, mark: Mark, closing: Closing, sizes: Sizes) -> RolloverPlan:
    """The child that starts at the root."""
    body = (
        _head(expected, mark, sizes),
        *opening_lines(expected.setting, closing.text, closing.card),
        title_line(expected.session_id, expected.title),
        *carried_lines(reading.glance, expected.session_id),
    )
    return RolloverPlan(expected, closing.text, body, sizes.before, sizes.after)


def _why_lost(transcript: Transcript, mark: Mark, place: int) -> str:
    """Why no record up to the mark can be kept."""
    if place:
        return "what was called there has no answer"
    chain = transcript.chain
    there = next((node for node in transcript.nodes if node.uuid == mark.uuid), None)
    compacted = bool(chain) and chain[0].boundary and (there.number if there else mark.record) < chain[0].number
    if compacted and (there is not None or not transcript.whole):
        return "it was compacted away"
    return "its record is gone" if there is None else "it lies on a branch that was left"


def _left_out(reading: Reading, nodes: Sequence[Node], after: int | None, where: Where) -> LeftOut | None:
    """What of the conversation the child does not hold; None where nobody said anything in it.

    ``after`` is where it begins if that is not among the ``nodes``: a compaction took it.
    """
    if not any(node.spoken for node in nodes):
        return None
    numbers = [node.number for node in nodes]
    kept = {snapshot.message for snapshot in reading.survey.snapshots}
    prompt = next((node.uuid for node in nodes if node.prompt and node.uuid in kept), "")
    first = min(numbers) if after is None else min(*numbers, after)
    return LeftOut(names_of(reading.session, where), first, max(numbers), prompt)


class _Ending:
    """An observer of a written child: its last user record's content."""

    def __init__(self) -> None:
        self.text: object = None

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:  # noqa: ARG002 - an observer's form
        """Take in one record."""
        if node is not None and node.kind == "user":
            self.text = message(record).get("content")


def _checks(decided: RewindPlan, child: Succession, path: str) -> list[invariants.Check]:
    """What a rewound child must hold beyond every session's invariants."""
    read_back, ending = ReadBack(), _Ending()
    found = invariants.check_session(path, decided.birth.session_id, [read_back, ending])
    told_whole = child.closing is not None and ending.text == child.closing.text
    return [
        *found,
        *read_back.checks(child.linear, decided.thoughts),
        invariants.Check("the report is whole", told_whole),
    ]
