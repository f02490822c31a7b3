"""A session as a child that takes its records over reads it, and what is looked for in a written child."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from resume_hooks.derive.child.draft import Draft
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.transcripts import tokens
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import Check, ReadBack
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.provenance import ChildSize
from resume_hooks.transcripts.records import USER, Record
from resume_hooks.transcripts.tail_scan import scan_live
from resume_hooks.transcripts.transcript import Transcript
from resume_hooks.transcripts.write_scan import WriteScan


class ParentScan(NamedTuple):
    """A session as a child that takes it over reads it, once; ``read_back`` are the calls and the thinking in it."""

    session: SessionFile
    transcript: Transcript
    survey: WriteScan
    read_back: ReadBack
    ends: HeadTail

    @property
    def ratio(self) -> float:
        """Characters to a token."""
        return tokens.characters_per_token(self.transcript.chain)

    @property
    def tokens(self) -> int:
        """Tokens of what the client would send of it."""
        return tokens.session_context(self.session.path, self.transcript.chain).tokens

    def size(self, after: int) -> ChildSize:
        """What a child of it that comes to so many tokens says of its size."""
        return ChildSize(after, round(self.ratio, 2))


def scan_parent(session: SessionFile) -> ParentScan:
    """Scan the live part of a session."""
    transcript, (survey, read_back) = scan_live(session.path, lambda: (WriteScan(), ReadBack()))
    return ParentScan(session, transcript, survey, read_back, HeadTail(session.path))


class EveryRecord:
    """A watcher: whether something holds for every line of a child."""

    def __init__(self, name: str, holds: Callable[[Line, Record, Node | None], bool]) -> None:
        self._name = name
        self._holds = holds
        self._sound = True

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        """Take in one record."""
        self._sound = self._sound and self._holds(line, record, node)

    def checks(self) -> list[Check]:
        """What was seen."""
        return [Check(self._name, self._sound)]


def lineage_if_needed(draft: Draft, transcript: Transcript) -> str:
    """The lineage block, ``""`` for none: a conversation that begins with a user's words needs none before it."""
    first = next(node for node in transcript.chain if node.spoken)
    return "" if first.kind == USER and not first.results else draft.block
