"""A fork: a child with its parent's live conversation, whole or cut, at home there or elsewhere.

What is sent of a fork is what is sent of its parent, byte for byte, so that what an API has cached
of it still counts: no lineage is put before it. A child with another home gets one, since with the
folder the system prompt changes anyway. For an agent that it was not held in a conversation is
text: who said what, calls in short, no thinking. The form of calls is the one in which one of them
shows its models what another did.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import orjson

from resume_hooks import clock
from resume_hooks.derive import cut_point
from resume_hooks.derive.child.bookkeeping import (
    Relocation,
    books_of,
    relocation,
    replaced_of,
    snapshots_of,
)
from resume_hooks.derive.child.draft import Draft, make_draft, owner_of
from resume_hooks.derive.child.rewrite_chain import (
    ChainRewrite,
    EveryRecord,
    ParentScan,
    chain_rewrite,
    lineage_if_needed,
    scan_parent,
    weigh_session,
)
from resume_hooks.derive.child.write import ChildPlan, Sizes, Watcher
from resume_hooks.derive.cut_point import Cut, Truncator
from resume_hooks.derive.fresh_child import FreshLines
from resume_hooks.errors import NothingToFork, UsageError
from resume_hooks.paths import Where, canonical, project_folders
from resume_hooks.sessions.archived.sessions import project_folder_of
from resume_hooks.sessions.lineage_block import moved_note
from resume_hooks.sessions.opening_layout import lineage_line, spoken_line
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.sessions.record_references import SHORT
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.text import encodable
from resume_hooks.transcripts import records
from resume_hooks.transcripts.invariants import Check, ReadBack
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.raw_edit import with_own
from resume_hooks.transcripts.records import Record, string
from resume_hooks.transcripts.transcript import Transcript, scan
from resume_hooks.transcripts.trimmable_pieces import Pieces
from resume_hooks.transcripts.write_scan import WriteScan

FORK: Final = "fork"
REHOMED: Final = "rehome"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkPlan(ChildPlan):
    """A fork; ``cut`` is None if the whole live conversation stays, ``relocation`` if its home stays."""

    cut: Cut | None = None
    relocation: Relocation | None = None

    def watchers(self) -> Sequence[Watcher]:
        """Whether every record of the parent says where it came from, and the child is at home where it shall be."""
        if isinstance(self.body, ChainRewrite):
            nodes = self.body.linear.nodes
        else:
            nodes = ()
        parent_id, uuids = self.draft.parent.session_id, {node.uuid for node in nodes}

        def is_marked(_: Line, record: Record, node: Node | None) -> bool:
            return (
                node is None
                or node.uuid not in uuids
                or record.get("forkedFrom") == _mark(parent_id, node.uuid)
            )

        return [
            EveryRecord("every record names the one that it was", is_marked),
            _HomeSeen(self.relocation),
        ]


class _HomeSeen:
    """A watcher: whether the first record that tells a folder tells the one that the session moved to."""

    def __init__(self, move: Relocation | None) -> None:
        self._move = move
        self._home = ""

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:  # noqa: ARG002 - an observer's form
        self._home = self._home or string(record, "cwd")

    def checks(self) -> list[Check]:
        return [
            Check("it is at home in its folder", self._move is None or self._home == self._move.new)
        ]


def plan_fork(
    session: SessionFile,
    where: Where,
    *,
    cut: Truncator | None = None,
    home: str | None = None,
    output_dir: str | None = None,
) -> ForkPlan:
    """Decide on a copy of a session's live conversation.

    It holds all of it, or what stands before the ``cut``. With a ``home``, a folder that exists,
    the child is a session of that folder's project, unless it is its parent's own. NothingToFork
    where nothing was said, UsageError for a cut that is nowhere, and for what can't be a parent.
    """
    parent, place = scan_and_cut(session, cut)
    if place:
        part = parent.transcript.ending(place.nodes)
    else:
        part = parent.transcript
    if not any(node.spoken for node in part.chain):
        raise NothingToFork(
            "There is nothing to fork: this session holds no conversation",
            (
                "Send a prompt first. Where one was answered here, this shows what is "
                "broken: resume-hooks fsck"
            ),
        )
    move = _relocation_for(parent, home, where)
    child = make_draft(
        session,
        parent.ends,
        REHOMED if move else FORK,
        where,
        output_dir,
        home=move.new if move else "",
    )
    lineage = child.block if move else lineage_if_needed(child, part)
    if move and move.roots and move.new not in move.roots:
        lineage += f"\n{moved_note(move.old, move.new)}"
    before, snapshots = parent.context.tokens, snapshots_of(part, parent.survey)
    after = parent.tokens_sent(part.chain, where) if place else before
    return ForkPlan(
        draft=child,
        body=chain_rewrite(
            child,
            part,
            parent.survey,
            head=child.head(parent.size(after)),
            lineage=lineage,
            books=[
                *replaced_of(part, parent.survey, child.session_id),
                *books_of(part, parent.survey, parent.ends, child.session_id, move),
            ],
            mark=_Marking(child.parent.session_id, move),
            thoughts=frozenset(parent.read_back.thoughts),
        ),
        sizes=Sizes(before, after),
        remarks=(
            *(place.remarks if place else ()),
            *(_on_snapshots(move) if move and snapshots else []),
        ),
        cut=place,
        relocation=move,
    )


class _Marking:
    """Adds to a record of the parent where it came from, and moves its folder where the session moves."""

    def __init__(self, parent_id: str, moving: Relocation | None) -> None:
        self._parent_id = parent_id
        self._moving = moving

    def __call__(self, body: bytes, node: Node) -> bytes:
        """The line of ``node`` with its marks; ``forkedFrom`` is as the official SDK writes it."""
        if self._moving is not None:
            body = self._moving.line(
                body, first=node.boundary
            )  # before any other a lineage of ours stands
        return with_own(body, "forkedFrom", _mark(self._parent_id, node.uuid))


def _mark(parent_id: str, uuid: str) -> dict[str, str]:
    return {"sessionId": parent_id, "messageUuid": uuid}


def scan_and_cut(
    session: SessionFile, truncator: Truncator | None
) -> tuple[ParentScan, Cut | None]:
    """Scan a session, as much as tells what is to be cut, and cut it.

    UsageError for a cut that is nowhere.
    """
    parent = scan_parent(session)
    if truncator is None:
        return parent, None
    place = cut_point.cut_at(parent.transcript, truncator)
    if place is None:
        survey, read_back, pieces = WriteScan(), ReadBack(), Pieces()
        whole = scan(session.file, observers=(survey, read_back, pieces))
        parent = weigh_session(session, whole, survey, read_back, pieces)
        place = cut_point.cut_at(whole, truncator)
    return parent, place


def _relocation_for(parent: ParentScan, home: str | None, where: Where) -> Relocation | None:
    """What moves to a ``home`` that was asked for; None if the session is at home there."""
    if home is None:
        return None
    new = canonical(home)
    if not home or not os.path.isdir(home):
        raise UsageError(
            f"{home} is not a folder", "Name the folder that the session shall be at home in."
        )
    current, seen = home_folder(parent.ends, where), parent.ends.folders
    old = current if current in seen or not seen else seen[0]
    at_home = project_folder_of(owner_of(parent.session).path, where) in project_folders(new, where)
    if at_home and canonical(old) == new:
        return None
    return relocation(old, new)


def _on_snapshots(move: Relocation) -> list[str]:
    if move.with_files:
        return [
            (
                f"Its file backups now are those of the files below {move.new}, where "
                "rewind-files puts them back."
            )
        ]
    return [
        (
            f"Its file backups stay behind: they are those of the files below {move.old}, "
            "which is still there."
        )
    ]


MOST_OF_CALL, MOST_OF_RESULT = (
    600,
    1_500,
)  # characters of a call and of its result; the whole is a reference away


class SpokenText(NamedTuple):
    """What one side said in a turn, when it began, and the id of its first record."""

    role: str
    text: str
    at: str
    uuid: str


def conversation_as_text(transcript: Transcript, session_id: str) -> list[SpokenText]:
    """The live conversation of a session, the sides by turns.

    What the client added by itself is left out.
    """
    told: list[SpokenText] = []
    tools: dict[str, str] = {}
    for node in transcript.chain:
        record = transcript.read(node)
        if node.sidechain or record.get("isMeta") is True or not node.spoken:
            continue
        reference = f"{session_id[: 13 if session_id[14:15] == '7' else SHORT]}:{node.number}"
        answers = bool(records.results(record))
        if answers or node.kind == records.ASSISTANT:
            role = records.ASSISTANT
        else:
            role = records.USER
        texts = (_block_text(block, tools, reference) for block in records.blocks(record))
        text = "\n\n".join(filter(None, texts))
        if not text.strip():
            continue
        if told and told[-1].role == role:
            told[-1] = told[-1]._replace(text=f"{told[-1].text}\n\n{text}")
        else:
            told.append(SpokenText(role, encodable(text), string(record, "timestamp"), node.uuid))
    return told


def conversation_lines(
    child: Draft, head: bytes, told: str, said: Sequence[SpokenText]
) -> FreshLines:
    """The lines of a child of this client that holds it; ``told`` stands before, where the screen doesn't show it."""
    setting, last = child.setting, str(uuid.uuid4())
    bodies = [head, lineage_line(setting, None, last, told)]
    for one in said:
        setting = setting._replace(at=clock.later(setting.at))
        own = str(uuid.uuid4())
        bodies.append(spoken_line(setting, last, own, one.role, one.text))
        last = own
    return FreshLines(tuple(bodies))


def _block_text(block: Record, tools: dict[str, str], reference: str) -> str:
    kind = string(block, "type")
    if kind == records.TEXT:
        return string(block, "text")
    if kind == records.CALL:
        tools[string(block, "id")] = name = string(block, "name")
        given = orjson.dumps(block.get("input")).decode()
        return (
            "[external_agent_tool_call: "
            f"{name}]\n{_cut_long(given, MOST_OF_CALL, reference)}\n[/external_agent_tool_call]"
        )
    if kind == records.RESULT:
        told = block.get("content")
        parts = []
        for part in records.objects(told):
            parts.append(string(part, "text") or f"[{string(part, 'type')}]")
        said = _cut_long(
            told if isinstance(told, str) else "\n".join(parts), MOST_OF_RESULT, reference
        )
        return f"[external_agent_tool_result]\n{said}\n[/external_agent_tool_result]"
    if kind in records.MEDIA:
        return f"[{kind}, see {reference}]"
    return ""


def _cut_long(text: str, most: int, reference: str) -> str:
    if len(text) <= most:
        return text
    return f"{text[:most]}… ({len(text):,} characters, whole: {reference})"
