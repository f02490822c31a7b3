"""A repaired child: everything of a session that can be reached, in a form that every client and the API take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from resume_hooks.derive.child.bookkeeping import books_of
from resume_hooks.derive.child.chain_edits import Edit
from resume_hooks.derive.child.draft import draft
from resume_hooks.derive.child.rewrite_chain import ChainRewrite, chain_rewrite
from resume_hooks.derive.child.write import ChildPlan, Sizes, Watcher
from resume_hooks.errors import ResumeHooksError
from resume_hooks.maintenance.fsck.branches import LONGER, NEWER
from resume_hooks.maintenance.fsck.damaged_bytes import GARBAGE, TORN, UTF8, salvaged
from resume_hooks.maintenance.fsck.diagnose import diagnose
from resume_hooks.maintenance.fsck.findings import Defect, DefectReport
from resume_hooks.maintenance.fsck.links import MARKS_LOST, TWICE
from resume_hooks.maintenance.fsck.messages import ALTERED, without_thinking
from resume_hooks.maintenance.fsck.repaired_chain import repaired_chain
from resume_hooks.maintenance.fsck.sidecars import OUTPUT_GONE
from resume_hooks.paths import Where
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.transcripts import tokens
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import Check
from resume_hooks.transcripts.lines import Line, read_at
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.provenance import ChildSize
from resume_hooks.transcripts.records import Record, parse_strict
from resume_hooks.transcripts.transcript import Transcript
from resume_hooks.transcripts.write_scan import WriteScan

KIND: Final = "repair"

_LOSSES = frozenset({GARBAGE, TORN, UTF8, TWICE, MARKS_LOST, OUTPUT_GONE})
"""What was lost before anyone could repair it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairPlan(ChildPlan):
    """A repaired child; ``lost`` says in words what it can't hold."""

    body: ChainRewrite
    report: DefectReport
    lost: tuple[str, ...]

    def watchers(self) -> Sequence[Watcher]:
        """Whether nothing else is missing."""
        return [_RecordsSeen(self.body)]


def plan(session: SessionFile, where: Where, *, branch: str | None = None, output_dir: str | None = None) -> RepairPlan:
    """Decide on a repaired child. UsageError for a branch that isn't there; fails where nothing can be reached."""
    survey = WriteScan()
    transcript, report = diagnose(session, where, [survey])
    chain = repaired_chain(transcript, salvaged(transcript), branch)
    if not any(node.spoken for node in chain):
        raise ResumeHooksError("There is nothing to repair: no message of this session can be reached")
    whole = _with_chain(transcript, chain)
    _survey_salvaged(whole, survey)
    ends = HeadTail(session.path)
    child = draft(session, ends, KIND, where, output_dir)
    before, after = _tokens(session.path, transcript.chain, chain)
    stated = tokens.stated_size(session.path)
    body = chain_rewrite(
        child,
        whole,
        survey,
        head=child.head(ChildSize(after, stated.ratio) if stated else None),
        lineage=child.block,
        edits=_edits(report),
        books=books_of(whole, survey, ends, child.session_id),
        shrunk=False,
    )
    lost = tuple(_lost(report, body, chain))
    return RepairPlan(draft=child, body=body, sizes=Sizes(before, after), report=report, lost=lost)


class _RecordsSeen:
    """A watcher: whether every record is there that no edit could have left out."""

    def __init__(self, body: ChainRewrite) -> None:
        self._missing = {node.uuid for node in body.linear.nodes if node.number not in body.edits}

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:  # noqa: ARG002 - an observer's form
        """Take in one record."""
        if node is not None:
            self._missing.discard(node.uuid)

    def checks(self) -> list[Check]:
        """What was seen."""
        return [Check("every record that was to be kept is there", not self._missing)]


def _tokens(path: str, live: list[Node], chain: list[Node]) -> tuple[int, int]:
    """Tokens of a session and of its repaired child: what a trim stated differs by what the characters differ by."""
    after = tokens.context_of(chain)
    if not live:
        return 0, after.tokens
    before = tokens.session_context(path, live).tokens
    if after.measured:
        return before, after.tokens
    return before, max(0, before + after.tokens - tokens.context_of(live).tokens)


def _with_chain(transcript: Transcript, chain: list[Node]) -> Transcript:
    """The same file with another conversation."""
    whole = Transcript(transcript.path)
    whole.nodes, whole.size, whole.line_count = chain, transcript.size, transcript.line_count
    whole.chain, whole.lenient_lines = chain, set(transcript.lenient_lines)
    return whole


def _survey_salvaged(whole: Transcript, survey: WriteScan) -> None:
    """Have the survey see the records of bad lines too, under the numbers that they have in the chain."""
    with open(whole.path, "rb") as stream:
        for node in whole.chain:
            raw = read_at(stream, node.offset, node.length)
            if not raw.endswith(b"\n"):
                if parse_strict(raw) is None:
                    whole.lenient_lines.add(node.number)
                survey(Line(node.number, node.offset, raw), whole.read(node), node)


def _edits(report: DefectReport) -> dict[int, Edit]:
    """What must be done to single records beyond what every child gets."""
    edits: dict[int, Edit] = {}
    for group in report.groups:
        for finding in group.findings if group.kind == ALTERED else ():
            if finding.record is not None:
                edits[finding.record] = without_thinking
    return edits


def _lost(report: DefectReport, body: ChainRewrite, chain: Sequence[Node]) -> list[str]:
    """What the child can't hold, in words."""
    kept = {node.uuid for node in chain}
    lost = [
        told(finding)
        for group in report.groups
        for finding in group.findings
        if group.kind in _LOSSES or (group.kind in {LONGER, NEWER} and finding.uuid not in kept)
    ]
    for number, calls in body.linear.dropped.items():
        lost.append(f"record {number}: left out, for want of its counterpart: {', '.join(sorted(calls))}")
    return lost


def told(finding: Defect) -> str:
    """A finding in words, with its line."""
    return finding.message if finding.record is None else f"record {finding.record}: {finding.message}"
