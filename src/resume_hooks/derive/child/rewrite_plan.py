"""A child that takes its parent's conversation over: what is read of the parent, and what each such child must hold."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from resume_hooks.derive.child.copy_sidecars import backups_named, sidecars_of
from resume_hooks.derive.child.draft import NOBODY, Draft
from resume_hooks.derive.child.rewrite_chain import ChainRewrite
from resume_hooks.derive.child.write import ChildPlan
from resume_hooks.paths import Where
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.system.text import counted
from resume_hooks.transcripts import tokens
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import Check, ReadBack, check_session
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.provenance import ChildSize
from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.tail_scan import scan_live
from resume_hooks.transcripts.transcript import Transcript
from resume_hooks.transcripts.write_scan import WriteScan

MEETINGS = "{count} directly after another: what stood between is lost, and the API takes them for one."
"""The warning of a child of a damaged session."""


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


class Watcher(Protocol):
    """An observer of a written child, and what it found."""

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        """Take in one record."""

    def checks(self) -> list[Check]:
        """What must hold once the whole file was read."""


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


@dataclass(frozen=True, slots=True)
class RewritePlan(ChildPlan):
    """A child that holds its parent's records; ``thoughts`` are digests of the thinking that it may hold, None: any."""

    body: ChainRewrite
    thoughts: frozenset[int] | None = None

    def watchers(self) -> Sequence[Watcher]:
        """Fresh observers of what this kind of child promises beyond that."""
        return ()

    def checks(self, path: str) -> list[Check]:
        """Every session's invariants, every call, no thinking but the parent's, and what the watchers saw."""
        read_back, watchers = ReadBack(), self.watchers()
        checks = check_session(path, self.draft.session_id, [read_back, *watchers])
        known = read_back.thoughts if self.thoughts is None else self.thoughts
        checks += read_back.checks(self.body.linear, known)
        return checks + [check for watcher in watchers for check in watcher.checks()]

    def sidecars(self, where: Where) -> contextlib.AbstractContextManager[list[str]]:
        """The parent's large tool outputs, and the file backups that the child's lines name, under its own id."""
        if self.draft.parent is NOBODY:
            return contextlib.nullcontext([])
        return sidecars_of(self.draft, backups_named(self.body.books), where)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should hear of it: also where what was said between two answers is lost."""
        meetings = [MEETINGS.format(count=counted(count, "answer"))] if (count := self.body.meetings) else []
        return (*self.draft.warnings, *self.remarks, *meetings)


def lineage_if_needed(draft: Draft, transcript: Transcript) -> str:
    """The lineage block, ``""`` for none: a conversation that begins with a user's words needs none before it."""
    first = next(node for node in transcript.chain if node.spoken)
    return "" if first.kind == "user" and not first.results else draft.block
