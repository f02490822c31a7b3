"""A fork, planned and written: a child with its parent's live conversation, whole or cut, at home there or elsewhere.

Deciding and acting are apart: ``plan`` only reads, ``write`` applies a plan once and checks it. What is sent of a fork
is what is sent of its parent, byte for byte, so that what an API has cached of it still counts: no lineage is put
before it. A child with another home gets one, since with the folder the system prompt changes anyway.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from resume_hooks.derive import cut_point
from resume_hooks.derive.child import create as birth
from resume_hooks.derive.child.bookkeeping import books_of, replaced_of, snapshots_of
from resume_hooks.derive.child.create import Birth
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.relocate import Moving, moving
from resume_hooks.derive.child.rewrite_chain import Succession, lines, succession
from resume_hooks.derive.cut_point import Cut, Truncator
from resume_hooks.errors import NothingToFork, UsageError
from resume_hooks.paths import Where, canonical, project_folders
from resume_hooks.sessions.archived.sessions import project_folder_of
from resume_hooks.sessions.lineage_block import moved_note
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.transcripts import invariants, tokens
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import ReadBack
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.provenance import ChildSize, continue_line
from resume_hooks.transcripts.raw_edit import with_own
from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.tail_scan import scan_live
from resume_hooks.transcripts.transcript import Transcript, scan
from resume_hooks.transcripts.write_scan import WriteScan

FORK = "fork"
REHOMED = "rehome"


class Reading(NamedTuple):
    """A session as a fork reads it, once: ``transcript`` holds what stays of it, ``live`` what is resumed.

    ``said`` are the calls and the thinking in it.
    """

    session: SessionFile
    transcript: Transcript
    live: Sequence[Node]
    survey: WriteScan
    said: ReadBack
    glance: HeadTail
    cut: Cut | None


@dataclass(frozen=True, slots=True)
class ForkPlan:
    """Everything that ``write`` needs. ``cut`` is None where the whole live conversation stays.

    ``moving`` is None where the child has its parent's home. ``thoughts`` are digests of the parent's thinking,
    ``before`` and ``after`` tokens of what the client would send.
    """

    birth: Birth
    child: Succession
    cut: Cut | None
    moving: Moving | None
    thoughts: frozenset[int]
    before: int
    after: int


def plan(
    session: SessionFile,
    where: Where,
    *,
    cut: Truncator | None = None,
    home: str | None = None,
    output_dir: str | None = None,
) -> ForkPlan:
    """Decide on a copy of a session's live conversation; nothing is written.

    Kept are all of it or what stands before the ``cut``. With a ``home``, a folder that exists, the child is a session
    of that folder's project, unless it is its parent's own. NothingToFork where nothing was said, UsageError for a cut
    that is nowhere, and for what can't be a parent.
    """
    reading = _read(session, cut)
    move = _move(reading, home, where)
    kind, new_home = (REHOMED, move.new) if move else (FORK, "")
    expected = birth.expect(session, reading.glance, kind, where, output_dir, home=new_home)
    remarks = (*(reading.cut.remarks if reading.cut else ()), *_of_files(reading, move))
    expected = expected._replace(warnings=(*expected.warnings, *remarks))
    before, after, ratio = _sizes(reading)
    child = succession(
        reading.transcript,
        reading.survey,
        expected.setting,
        title=expected.title,
        head=continue_line(
            parent_id=session.session_id,
            parent_file=expected.parent_file,
            kind=kind,
            at=expected.setting.at,
            size=ChildSize(after, ratio),
        ),
        lineage=_lineage(reading, expected, move),
        books=_books(reading, expected.session_id, move),
        # Counts from before a compaction tell of a larger context.
        shrunk=not tokens.context_of(reading.transcript.chain).measured,
        mark=Marking(session.session_id, move),
    )
    return ForkPlan(expected, child, reading.cut, move, frozenset(reading.said.thoughts), before, after)


def write(decided: ForkPlan, where: Where) -> Receipt:
    """Apply a plan. WriteFailed or CheckFailed leave nothing behind."""
    born = birth.bear(
        decided.birth, lines(decided.child), lambda path: _checks(decided, path), where, books=decided.child.books
    )
    return receipt(decided, born)


def receipt(decided: ForkPlan, born: birth.Born | None = None) -> Receipt:
    """The receipt of a plan, applied or not."""
    return birth.receipt_of(decided.birth, born, tokens_before=decided.before, tokens_after=decided.after)


class Marking:
    """What a record of the parent is told in its line: where it came from, and its folder where that moved."""

    def __init__(self, parent_id: str, moving: Moving | None) -> None:
        self._parent_id = parent_id
        self._moving = moving

    def __call__(self, body: bytes, node: Node) -> bytes:
        """The line of ``node`` with its marks; ``forkedFrom`` is as the official SDK writes it."""
        if self._moving is not None:
            body = self._moving.line(body, first=node.boundary)  # before any other a lineage of ours stands
        return with_own(body, "forkedFrom", self.of(node.uuid))

    def of(self, uuid: str) -> dict[str, str]:
        """The mark of a record."""
        return {"sessionId": self._parent_id, "messageUuid": uuid}


class _Marks:
    """An observer of a written child: whether its records that were the parent's name what they came from."""

    def __init__(self, child: Succession, marking: Marking) -> None:
        self._kept = {node.uuid for node in child.linear.nodes}
        self._marking = marking
        self.sound = True

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:  # noqa: ARG002 - an observer's form
        """Take in one record."""
        if node is not None and node.uuid in self._kept:
            self.sound = self.sound and record.get("forkedFrom") == self._marking.of(node.uuid)


def _read(session: SessionFile, truncator: Truncator | None) -> Reading:
    """Scan a session: its live part, or the whole where that alone tells what is to be cut."""
    transcript, (survey, said) = scan_live(session.path, lambda: (WriteScan(), ReadBack()))
    found = cut_point.cut(transcript, truncator) if truncator else None
    if truncator and found is None:
        survey, said = WriteScan(), ReadBack()
        transcript = scan(session.path, observers=(survey, said))
        found = cut_point.cut(transcript, truncator)
    kept = transcript.ending(found.nodes) if found else transcript
    if not any(node.spoken for node in kept.chain):
        raise NothingToFork(
            "There is nothing to fork: this session holds no conversation",
            "If it should hold one, see what is broken: resume-hooks fsck.",
        )
    return Reading(session, kept, transcript.chain, survey, said, HeadTail(session.path), found)


def _move(reading: Reading, home: str | None, where: Where) -> Moving | None:
    """What moves to a ``home`` that was asked for; None where the session is at home there."""
    if home is None:
        return None
    new = canonical(home)
    if not home or not os.path.isdir(home):
        raise UsageError(f"{home} is no folder", "Name the folder that the session shall be at home in.")
    found, seen = home_folder(reading.glance), reading.glance.folders
    old = found if found in seen or not seen else seen[0]
    at_home = project_folder_of(reading.session.path, where) in project_folders(new, where)
    return None if at_home and canonical(old) == new else moving(old, new)


def _of_files(reading: Reading, move: Moving | None) -> list[str]:
    """What a person should hear of the copies that the client kept of files, where the session gets another home."""
    if move is None or not snapshots_of(reading.transcript, reading.survey):
        return []
    if move.with_files:
        return [f"Its file checkpoints now speak of the files below {move.new}: rewinding files there puts them back."]
    return [f"Its file checkpoints stay behind: they speak of the files below {move.old}, which is still there."]


def _books(reading: Reading, session_id: str, move: Moving | None) -> list[bytes]:
    """What of the parent's bookkeeping goes along."""
    survey, kept = reading.survey, reading.transcript
    return [*replaced_of(kept, survey, session_id), *books_of(kept, survey, reading.glance, session_id, move)]


def _lineage(reading: Reading, expected: Birth, move: Moving | None) -> str:
    """What is told of the lineage, ``""`` for nothing: a conversation that begins with a user's words needs none."""
    if move is not None:
        named = move.roots and move.new not in move.roots
        return f"{expected.block}\n{moved_note(move.old, move.new)}" if named else expected.block
    first = next(node for node in reading.transcript.chain if node.spoken)
    return "" if first.kind == "user" and not first.results else expected.block


def _sizes(reading: Reading) -> tuple[int, int, float]:
    """Tokens of what the client would send of parent and child, and the characters to one of them."""
    live = list(reading.live)
    ratio = tokens.characters_per_token(live)
    before = tokens.session_context(reading.session.path, live).tokens
    after = tokens.sent_context(reading.transcript.chain, ratio).tokens if reading.cut else before
    return before, after, round(ratio, 2)


def _checks(decided: ForkPlan, path: str) -> list[invariants.Check]:
    """What a fork must hold beyond every session's invariants."""
    read_back, marks = ReadBack(), _Marks(decided.child, Marking(decided.birth.parent.session_id, None))
    found = invariants.check_session(path, decided.birth.session_id, [read_back, marks])
    at_home = decided.moving is None or HeadTail(path).cwd == decided.moving.new
    return [
        *found,
        *read_back.checks(decided.child.linear, decided.thoughts),
        invariants.Check("every record names the one that it was", marks.sound),
        invariants.Check("it is at home in its folder", at_home),
    ]
