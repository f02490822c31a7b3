"""A scrubbed child: the live conversation of a session without its secrets; the session itself is only read.

What was large and lies in files of its own comes along without them, too, as files of the child's own.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from resume_hooks.derive.child import create as birth
from resume_hooks.derive.child.bookkeeping import books_of, replaced_of
from resume_hooks.derive.child.create import Birth
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.rewrite_chain import Edit, Succession, lines, succession
from resume_hooks.errors import NothingToFork
from resume_hooks.maintenance.scrub.cleaner import Cleaner
from resume_hooks.maintenance.scrub.inspect import cleaned_of
from resume_hooks.maintenance.scrub.locations import COMPANION, Place, files_in
from resume_hooks.maintenance.scrub.related_sessions import OWN
from resume_hooks.maintenance.scrub.replace import replace
from resume_hooks.paths import ENDING, TOOL_RESULTS, Where
from resume_hooks.sessions.archived.layout import HISTORY
from resume_hooks.sessions.files import SessionFile
from resume_hooks.transcripts import invariants, tokens
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import ReadBack
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.provenance import ChildSize, continue_line
from resume_hooks.transcripts.records import Record, blocks, with_content
from resume_hooks.transcripts.tail_scan import scan_live
from resume_hooks.transcripts.transcript import scan
from resume_hooks.transcripts.write_scan import WriteScan

KIND = "scrub"


BACKUPS_LEFT = (
    "Copies of your files that hold secrets did not come along, and no rewind in the child puts them back: {count}."
)


@dataclass(frozen=True, slots=True)
class ScrubPlan:
    """Everything that ``write`` needs. ``thoughts`` are digests of the parent's thinking, ``tokens`` what is sent.

    ``chain`` are the ids of the records that the child takes over.
    """

    birth: Birth
    child: Succession
    cleaner: Cleaner
    thoughts: frozenset[int]
    chain: tuple[str, ...]
    tokens: int


def plan(session: SessionFile, where: Where, cleaner: Cleaner, *, output_dir: str | None = None) -> ScrubPlan:
    """Decide on a child; nothing is written. NothingToFork where nothing was said, UsageError for what is no parent."""
    transcript, (survey, said, thoughts) = scan_live(
        session.path, lambda: (WriteScan(), ReadBack(), _Thoughts(cleaner))
    )
    if not any(node.spoken for node in transcript.chain):
        raise NothingToFork(
            "There is nothing to copy: this session holds no conversation",
            "Its file is rewritten all the same by: resume-hooks scrub --in-place",
        )
    glance = HeadTail(session.path)
    expected = birth.expect(session, glance, KIND, where, output_dir)
    expected = expected._replace(title=cleaner.words(expected.title), block=cleaner.words(expected.block))
    count = tokens.session_context(session.path, transcript.chain).tokens
    size = ChildSize(count, round(tokens.characters_per_token(transcript.chain), 2))
    named, own = session.session_id, expected.session_id
    books = [*replaced_of(transcript, survey, own), *books_of(transcript, survey, glance, own)]
    marking = _Marking(cleaner, named, own)
    row = succession(
        transcript,
        survey,
        expected.setting,
        title=expected.title,
        head=continue_line(
            parent_id=named, parent_file=expected.parent_file, kind=KIND, at=expected.setting.at, size=size
        ),
        lineage="",
        edits=thoughts.edits,
        books=[marking.line(body) for body in books],
        shrunk=not tokens.context_of(transcript.chain).measured,
        mark=marking,
    )
    chain = tuple(node.uuid for node in row.linear.nodes if node.number not in thoughts.gone)
    return ScrubPlan(expected, row, cleaner, frozenset(said.thoughts), chain, count)


def write(decided: ScrubPlan, where: Where) -> Receipt:
    """Apply a plan. WriteFailed or CheckFailed leave nothing behind."""
    left: list[str] = []

    def check(path: str) -> Sequence[invariants.Check]:
        left.extend(_clean_companions(decided, where))
        return _checks(decided, path)

    born = birth.bear(decided.birth, lines(decided.child), check, where, books=decided.child.books)
    if left:
        born = born._replace(warnings=(*born.warnings, BACKUPS_LEFT.format(count=f"{len(left):,}")))
    return receipt(decided, born)


def receipt(decided: ScrubPlan, born: birth.Born | None = None) -> Receipt:
    """The receipt of a plan, applied or not."""
    return birth.receipt_of(decided.birth, born, tokens_before=decided.tokens, tokens_after=decided.tokens)


class _Thoughts:
    """An observer: the records whose thinking holds a secret, ``gone`` those that say nothing else."""

    def __init__(self, cleaner: Cleaner) -> None:
        self.edits: dict[int, Edit] = {}
        self.gone: set[int] = set()
        self._cleaner = cleaner

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:  # noqa: ARG002 - an observer's form
        """Take in one record."""
        if node is None or node.kind != "assistant":
            return
        content = blocks(record)
        kept = [block for block in content if not self._cleaner.tells(block, [])]
        if len(kept) < len(content):
            self.edits[node.number] = self._without
            self.gone |= set() if kept else {node.number}

    def _without(self, record: Record) -> Record | None:
        kept = [block for block in blocks(record) if not self._cleaner.tells(block, [])]
        return with_content(record, kept) if kept else None


class _Marking:
    """What a line of the parent becomes in the child: without secrets, and naming the child's own large outputs."""

    def __init__(self, cleaner: Cleaner, parent_id: str, session_id: str) -> None:
        self._cleaner = cleaner
        self._old, self._new = (f"/{each}/{TOOL_RESULTS}/".encode() for each in (parent_id, session_id))

    def __call__(self, body: bytes, node: Node) -> bytes:  # noqa: ARG002 - a mark's form
        """The line of a record."""
        return self.line(body)

    def line(self, body: bytes) -> bytes:
        """Any line; thinking, which fits its signature, as it is."""
        cleaned = self._cleaner.line(body).raw
        return cleaned if b'"thinking"' in cleaned else cleaned.replace(self._old, self._new)


def _clean_companions(decided: ScrubPlan, where: Where) -> list[str]:
    """Take the secrets out of the child's own files; the copies of the user's files that held some, and are gone."""
    own = decided.birth.session_id
    for path in files_in(decided.birth.path.removesuffix(ENDING)):
        replace(Place(COMPANION, path, own, OWN), decided.cleaner, where)
    gone = []
    for path in files_in(os.path.join(where.config, HISTORY, own)):
        if any(each.found or each.stuck for each in cleaned_of(path, decided.cleaner, lines=False)):
            os.unlink(path)
            gone.append(path)
    return gone


def _checks(decided: ScrubPlan, path: str) -> list[invariants.Check]:
    """What a scrubbed child must hold beyond every session's invariants."""
    read_back = ReadBack()
    found = invariants.check_session(path, decided.birth.session_id, [read_back])
    wanted = set(decided.chain)
    chain = tuple(node.uuid for node in scan(path).chain if node.uuid in wanted)
    clean = not any(each.found for each in cleaned_of(path, decided.cleaner, lines=True))
    return [
        *found,
        *read_back.checks(decided.child.linear, decided.thoughts),
        invariants.Check("no secret is found in it", clean),
        invariants.Check("every record of the conversation is in its place", chain == decided.chain),
    ]
