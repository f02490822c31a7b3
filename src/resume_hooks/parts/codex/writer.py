"""Write children that Codex can resume, from its own sessions and from those of other agents.

The children are self-contained rollouts in the old format, which every version of the CLI can
resume. A fork needs no other file, and its model receives the same history as the parent's. We only
ever add new files to the folder of Codex.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import orjson

from resume_hooks.derive import cut_point
from resume_hooks.derive.child.draft import ChildPlace, Draft, make_draft
from resume_hooks.derive.child.receipt import FRESH
from resume_hooks.derive.child.write import ChildPlan, Sizes
from resume_hooks.derive.cut_point import Cut, Truncator
from resume_hooks.derive.fork import ForkPlan, SpokenText
from resume_hooks.derive.fresh_child import FreshOpening
from resume_hooks.derive.untrim import (
    MissingOriginal,
    TrimmedSession,
    UntrimPlan,
    loss_text,
    loss_warnings,
    trimmed_nodes,
)
from resume_hooks.errors import NotATranscript, NothingToFork, SessionNotFound, UsageError
from resume_hooks.parts.codex.rollout import (
    RolloutBody,
    item_record,
    message,
    meta_without_parent,
    opening_body,
    told_body,
)
from resume_hooks.parts.codex.sessions.files import SESSIONS, Rollouts
from resume_hooks.parts.codex.sessions.strategy import NAME
from resume_hooks.parts.codex.thread import CodexThread, read, read_left
from resume_hooks.parts.codex.transcripts import items as of_items
from resume_hooks.parts.codex.transcripts.history import History
from resume_hooks.parts.codex.transcripts.lines import COMPACTED, OPENING
from resume_hooks.parts.codex.transcripts.meta import name_of, read_meta
from resume_hooks.parts.codex.transcripts.segments import chain_lines
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.registry import agent_of, ends_of
from resume_hooks.sessions.child_titles import Kind, child_title
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.transcripts import records
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import Check
from resume_hooks.transcripts.placeholders import MARKS, Origin
from resume_hooks.transcripts.provenance import ChildSize
from resume_hooks.transcripts.records import USER, Record, parse
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN
from resume_hooks.transcripts.transcript import scan


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanPlan(ChildPlan):
    """The plan for a rollout in which ``clean`` changes no line."""

    clean: Callable[[bytes], bytes]

    def checks(self, path: str) -> list[Check]:
        """Return the checks of any child, and that ``clean`` changes no line of the written file."""
        with open(path, "rb") as stream:
            left = any(self.clean(raw) != raw for raw in stream)
        return [*ChildPlan.checks(self, path), Check("no secret is found in it", not left)]


class CodexWriter:
    """Writes children into the ``sessions`` folder of a CODEX_HOME, and nothing else."""

    def __init__(self, home: str, where: Where) -> None:
        self._home = home
        self._where = where

    def draft(
        self,
        session: SessionFile,
        ends: HeadTail,
        kind: Kind,
        output_dir: str | None = None,
        *,
        about: str = "",
    ) -> Draft:
        """Return a draft in today's folder, with local time in its name as in Codex."""
        now = time.localtime()
        folder = os.path.join(
            self._home, SESSIONS, time.strftime("%Y", now), *time.strftime("%m %d", now).split()
        )
        started = time.strftime("%Y-%m-%dT%H-%M-%S", now)
        place = ChildPlace(NAME, folder, lambda session_id: name_of(session_id, started))
        made = make_draft(session, ends, kind, self._where, output_dir, about=about, place=place)
        count = 1 + sum(row.kind == kind for row in made.ancestors)
        return made._replace(
            own_title=child_title(made.root_title, kind, count) if kind in FRESH else ends.title
        )

    def opening_body(self, opening: FreshOpening) -> RolloutBody:
        """Return the content of a child that begins with our opening."""
        return opening_body(opening, self._meta(opening.child))

    def conversation(
        self, made: Draft, head: bytes, told: str, said: Sequence[SpokenText]
    ) -> RolloutBody:
        """Return the content of a child that starts with our message, followed by a conversation as text."""
        at, own = made.setting.at, str(uuid.uuid5(uuid.NAMESPACE_OID, f"{made.session_id}/told"))
        first = item_record(message(USER, told), at, own, {OPENING: True})
        rest = []
        for one in said:
            rest.append(item_record(message(one.role, one.text), one.at or at, one.uuid))
        return told_body(made, head, self._meta(made), [first, *rest])

    def fork(
        self,
        session: SessionFile,
        cut: Truncator | None,
        home: str | None,  # noqa: ARG002 - only this client's sessions get another
        output_dir: str | None,
    ) -> ForkPlan:
        """Plan a copy of the items that Codex sends, complete or up to a point."""
        made = self._draft_of_own(session, "fork", output_dir)
        if cut is not None:
            place = cut_point.cut_at(scan(self._readable(session)), cut)
        else:
            place = None
        return _fork_plan(self._read(session), made, place)

    def repair(self, session: SessionFile) -> ChildPlan:
        """Plan a self-contained child from the readable items, without outputs whose calls are missing."""
        made = self._draft_of_own(session, "repair")
        left = read_left(session, Rollouts(self._home).path_of)
        told = meta_without_parent(made, self._home) | {
            key: value for key, value in left.meta.items() if value
        }
        return _fork_plan(replace(left, meta=told), made, None)

    def cleaned(
        self,
        session: SessionFile,
        clean: Callable[[bytes], bytes],
        kind: Kind,
        output_dir: str | None,
    ) -> ChildPlan:
        """Plan a child whose items ``clean`` has processed.

        An encrypted item is left out if ``clean`` changes it.
        """
        parent, child = self._read(session), self._draft_of_own(session, kind, output_dir)

        def without(record: Record) -> Record:
            return parse(clean(orjson.dumps(record))) or record

        told = []
        for record in parent.told:
            payload = without(record["payload"])
            if payload == record["payload"] or of_items.kind(payload) not in {
                *of_items.ENCRYPTED,
                of_items.REASONING,
            }:
                told.append({**record, "payload": payload})
        surroundings = []
        for line in parent.surroundings:
            surroundings.append(line._replace(record=without(line.record)))
        child = child._replace(own_title=without({"title": child.own_title or child.stem})["title"])
        tokens = parent.context.tokens
        head = child.head(ChildSize(tokens, CHARACTERS_PER_TOKEN))
        body = told_body(
            child, head, without(parent.meta), told, surroundings, leaves_goal=parent.has_goal
        )
        return CleanPlan(draft=child, body=body, sizes=Sizes(tokens, tokens), clean=clean)

    def rewound(self, opening: FreshOpening, kept: Sequence[str]) -> ChildPlan:
        """Plan a child with the items up to the last of the ``kept`` ones, followed by our opening."""
        parent, child = self._read(opening.child.parent), opening.child
        closed = []
        for role, side, text in (
            (records.USER, "told", opening.text),
            (records.ASSISTANT, "card", opening.card),
        ):
            own = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{child.session_id}/{side}"))
            closed.append(item_record(message(role, text), child.setting.at, own, {OPENING: True}))
        items = [*parent.told[: _count(parent, kept)], *closed]
        body = told_body(child, opening.head, parent.meta, items, leaves_goal=parent.has_goal)
        return ChildPlan(draft=child, body=body, sizes=opening.sizes)

    def scanned(self, session: SessionFile) -> CodexThread:
        """Return a thread with its line numbers, ready for a trim."""
        numbers = {}
        for node in scan(self._readable(session)).nodes:
            numbers[node.uuid] = node.number
        return replace(self._read(session), numbers=numbers)

    def untrim(
        self,
        reading: TrimmedSession,
        numbers: Collection[int] | None,
        *,
        strict: bool,
        output_dir: str | None,
    ) -> UntrimPlan:
        """Plan a child in which trimmed items have their originals again, all of them or those at these lines.

        Raise SessionNotFound if no original exists, or with ``strict`` if any is missing.
        """
        parent, wanted = (
            self._read(reading.session),
            {node.uuid: node.number for node in trimmed_nodes(reading, numbers)},
        )
        originals = _originals(Rollouts(self._home), parent.trimmed_origins.values())
        child = self._draft_of_own(reading.session, "untrim", output_dir)
        trimmed = parent.trimmed_origins
        chosen = []
        for place in sorted(trimmed):
            if parent.items[place].uuid in wanted:
                chosen.append(place)
        edited, missing = dict[int, Record](), list[MissingOriginal]()
        for place in chosen:
            item, origin = parent.items[place], trimmed[place]
            original = originals.get((origin.session_id, origin.uuid))
            if original is None or _identity(original) != _identity(item.payload):
                if original is None:
                    why = "its original is gone"
                else:
                    why = f"{origin.reference} contains something else"
                missing.append(MissingOriginal(wanted[item.uuid], why))
                continue
            kept = {}
            for key, value in parent.told[place].items():
                if key not in MARKS:
                    kept[key] = value
            edited[place] = {**kept, "payload": original}
        if missing and (strict or not edited):
            raise SessionNotFound(loss_text(missing, len(chosen)), "Nothing was written.")
        back = sum(
            of_items.size(told["payload"]) - of_items.size(parent.items[at].payload)
            for at, told in edited.items()
        )
        before = parent.context
        after = before._replace(tokens=before.tokens + round(back / CHARACTERS_PER_TOKEN))
        head = child.head(ChildSize(after.tokens, CHARACTERS_PER_TOKEN))
        return UntrimPlan(
            draft=child,
            body=parent.child_body(child, head, edited),
            sizes=Sizes(before.tokens, after.tokens),
            remarks=tuple(loss_warnings(missing)),
            restored=tuple(edited),
            missing=tuple(missing),
            trimmed=len(trimmed),
            after=after,
            characters=back,
        )

    def _draft_of_own(
        self, session: SessionFile, kind: Kind, output_dir: str | None = None
    ) -> Draft:
        return self.draft(session, ends_of(session, self._where), kind, output_dir)

    def _meta(self, child: Draft) -> Record:
        """Return the fields of a child's first line, from a parent in Codex or else the settings."""
        foreign = child.parent_agent != NAME
        if foreign:
            return meta_without_parent(child, self._home)
        return read_meta(child.parent.path).payload

    def _read(self, session: SessionFile) -> CodexThread:
        return read(session, Rollouts(self._home).path_of)

    def _readable(self, session: SessionFile) -> str:
        return agent_of(session, self._where).readable(session).path


def _fork_plan(parent: CodexThread, child: Draft, cut: Cut | None) -> ForkPlan:
    """Plan a child with the parent's items before the ``cut``.

    Raise NothingToFork if no message precedes it.
    """
    if cut is None:
        count = len(parent.items)
    else:
        count = _count(parent, [node.uuid for node in cut.nodes])
    if cut is not None and not count:
        raise UsageError(
            f"{cut.asked.capitalize()} lies before a compaction",
            "Codex can only be cut after the compaction.",
        )
    if not any(of_items.kind(item.payload) == of_items.MESSAGE for item in parent.items[:count]):
        raise NothingToFork(
            "There is nothing to fork: a client would send no message up to that point"
        )
    gone = sum(of_items.size(item.payload) for item in parent.items[count:])
    after = max(0, parent.context.tokens - round(gone / CHARACTERS_PER_TOKEN))
    head = child.head(ChildSize(after, CHARACTERS_PER_TOKEN))
    # After a cut, the client describes the environment again.
    surroundings = () if gone else parent.surroundings
    told = told_body(
        child, head, parent.meta, parent.told[:count], surroundings, leaves_goal=parent.has_goal
    )
    sizes = Sizes(parent.context.tokens, after)
    return ForkPlan(
        draft=child, body=told, sizes=sizes, remarks=cut.remarks if cut else (), cut=cut
    )


def _count(parent: CodexThread, kept: Sequence[str]) -> int:
    """Return the number of items up to the last of the ``kept`` ones."""
    wanted = set(kept)
    return max(
        (place for place, item in enumerate(parent.items, 1) if item.uuid in wanted), default=0
    )


def _originals(rollouts: Rollouts, origins: Iterable[Origin]) -> dict[tuple[str, str], Record]:
    """Return the original items by thread and id; each thread is read once."""
    wanted: defaultdict[str, set[str]] = defaultdict(set)
    for origin in origins:
        wanted[origin.session_id].add(origin.uuid)
    found: dict[tuple[str, str], Record] = {}
    for session_id, uuids in wanted.items():
        newest, history = rollouts.threads.get(session_id), History()
        with contextlib.suppress(SessionNotFound, NotATranscript):
            for line in chain_lines(newest.path, rollouts.path_of) if newest else ():
                history.take(line)
                for item in history.items if line.kind == COMPACTED else history.items[-1:]:
                    if item.uuid in uuids:
                        found.setdefault((session_id, item.uuid), item.payload)
    return found


def _identity(item: Record) -> tuple[str, object, str]:
    """Return the fields of an item that a trim does not change."""
    return of_items.kind(item), item.get("role"), of_items.call_id(item)
