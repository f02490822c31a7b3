"""Write children that Codex can resume, from Codex sessions or from sessions of other agents.

The children are self-contained rollouts in the old format, which every version of the Codex CLI can
resume. A fork needs no other file, and its model receives the parent's history. We never change or
delete files in Codex's folder; we only add new ones.
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
from resume_hooks.derive.child.receipt import FRESH_KINDS
from resume_hooks.derive.child.write import ChildPlan, Sizes
from resume_hooks.derive.cut_point import Cut, CutSelector
from resume_hooks.derive.fork import ForkPlan, SpokenText
from resume_hooks.derive.fresh_child import FreshOpening
from resume_hooks.derive.untrim import (
    MissingOriginal,
    TrimmedSession,
    UntrimPlan,
    describe_loss,
    list_losses,
    select_trimmed_nodes,
)
from resume_hooks.errors import NotATranscript, NothingToFork, SessionNotFound, UsageError
from resume_hooks.parts.codex.rollout import (
    RolloutBody,
    build_body,
    build_opening_body,
    item_record,
    message_item,
    new_child_meta,
)
from resume_hooks.parts.codex.sessions.files import SESSIONS, Rollouts
from resume_hooks.parts.codex.sessions.strategy import NAME
from resume_hooks.parts.codex.thread import CodexThread, read_partial_thread, read_thread
from resume_hooks.parts.codex.transcripts import items as codex_items
from resume_hooks.parts.codex.transcripts.history import History
from resume_hooks.parts.codex.transcripts.lines import COMPACTED, OPENING_KEY
from resume_hooks.parts.codex.transcripts.meta import read_meta, rollout_name
from resume_hooks.parts.codex.transcripts.segments import chain_lines
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.registry import agent_of, ends_of
from resume_hooks.sessions.child_titles import Kind, child_title
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.transcripts import records
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import Check
from resume_hooks.transcripts.placeholders import TRIM_FIELDS, Origin
from resume_hooks.transcripts.provenance import ChildSize
from resume_hooks.transcripts.records import USER, Record, parse
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN
from resume_hooks.transcripts.transcript import scan_transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanPlan(ChildPlan):
    """The plan for a rollout without secrets: ``clean`` changes none of its lines."""

    clean: Callable[[bytes], bytes]

    def checks(self, path: str) -> list[Check]:
        """Return the usual checks of a child, and a check that ``clean`` changes no line of the written file."""
        with open(path, "rb") as stream:
            has_secret = any(self.clean(raw) != raw for raw in stream)
        return [
            *ChildPlan.checks(self, path),
            Check("no secret is found in it", not has_secret),
        ]


class CodexWriter:
    """Writes children into the ``sessions`` folder of a CODEX_HOME. It writes nothing else."""

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
        """Return a draft in today's folder. As in Codex, its name contains the local time."""
        now = time.localtime()
        folder = os.path.join(
            self._home, SESSIONS, time.strftime("%Y", now), *time.strftime("%m %d", now).split()
        )
        started = time.strftime("%Y-%m-%dT%H-%M-%S", now)
        place = ChildPlace(NAME, folder, lambda session_id: rollout_name(session_id, started))
        draft = make_draft(session, ends, kind, self._where, output_dir, about=about, place=place)
        count = 1 + sum(row.kind == kind for row in draft.ancestors)
        return draft._replace(
            own_title=child_title(draft.root_title, kind, count)
            if kind in FRESH_KINDS
            else ends.title
        )

    def opening_body(self, opening: FreshOpening) -> RolloutBody:
        """Return the content of a child that begins with our opening."""
        return build_opening_body(opening, self._meta(opening.child))

    def conversation(
        self, draft: Draft, head: bytes, opening_text: str, spoken_texts: Sequence[SpokenText]
    ) -> RolloutBody:
        """Return the content of a child that starts with our message and continues with a conversation as text."""
        timestamp, message_id = (
            draft.setting.at,
            str(uuid.uuid5(uuid.NAMESPACE_OID, f"{draft.session_id}/told")),
        )
        first = item_record(
            message_item(USER, opening_text), timestamp, message_id, {OPENING_KEY: True}
        )
        messages = []
        for spoken in spoken_texts:
            messages.append(
                item_record(
                    message_item(spoken.role, spoken.text), spoken.at or timestamp, spoken.uuid
                )
            )
        return build_body(draft, head, self._meta(draft), [first, *messages])

    def fork(
        self,
        session: SessionFile,
        cut: CutSelector | None,
        home: str | None,  # noqa: ARG002 - only this client's sessions get another
        output_dir: str | None,
    ) -> ForkPlan:
        """Plan a child with the items that Codex sends, either all of them or those before a cut."""
        draft = self._draft_for_own_session(session, "fork", output_dir)
        if cut is not None:
            cut_place = cut_point.cut_conversation(scan_transcript(self._readable(session)), cut)
        else:
            cut_place = None
        return _fork_plan(self._read(session), draft, cut_place)

    def repair(self, session: SessionFile) -> ChildPlan:
        """Plan a self-contained child with all readable items. Outputs whose calls are missing are left out."""
        draft = self._draft_for_own_session(session, "repair")
        thread = read_partial_thread(session, Rollouts(self._home).path_of)
        meta = new_child_meta(draft, self._home) | {
            key: value for key, value in thread.meta.items() if value
        }
        return _fork_plan(replace(thread, meta=meta), draft, None)

    def cleaned(
        self,
        session: SessionFile,
        clean: Callable[[bytes], bytes],
        kind: Kind,
        output_dir: str | None,
    ) -> ChildPlan:
        """Plan a child whose items were processed by ``clean``.

        If ``clean`` changes an encrypted item, the item is left out.
        """
        parent, child = self._read(session), self._draft_for_own_session(session, kind, output_dir)

        def clean_record(record: Record) -> Record:
            return parse(clean(orjson.dumps(record))) or record

        item_records = []
        for record in parent.child_records:
            payload = clean_record(record["payload"])
            if payload == record["payload"] or codex_items.item_kind(payload) not in {
                *codex_items.ENCRYPTED,
                codex_items.REASONING,
            }:
                item_records.append({**record, "payload": payload})
        environment_lines = []
        for line in parent.environment_lines:
            environment_lines.append(line._replace(record=clean_record(line.record)))
        child = child._replace(
            own_title=clean_record({"title": child.own_title or child.stem})["title"]
        )
        tokens = parent.context.tokens
        head = child.head(ChildSize(tokens, CHARACTERS_PER_TOKEN))
        body = build_body(
            child,
            head,
            clean_record(parent.meta),
            item_records,
            environment_lines,
            leaves_goal=parent.has_goal,
        )
        return CleanPlan(draft=child, body=body, sizes=Sizes(tokens, tokens), clean=clean)

    def rewound(self, opening: FreshOpening, kept: Sequence[str]) -> ChildPlan:
        """Plan a child with the items up to the last of the ``kept`` items, followed by our opening."""
        parent, child = self._read(opening.child.parent), opening.child
        closing_items = []
        for role, side, text in (
            (records.USER, "told", opening.text),
            (records.ASSISTANT, "card", opening.card),
        ):
            item_id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{child.session_id}/{side}"))
            closing_items.append(
                item_record(
                    message_item(role, text), child.setting.at, item_id, {OPENING_KEY: True}
                )
            )
        items = [*parent.child_records[: _count_items(parent, kept)], *closing_items]
        body = build_body(child, opening.head, parent.meta, items, leaves_goal=parent.has_goal)
        return ChildPlan(draft=child, body=body, sizes=opening.sizes)

    def scanned(self, session: SessionFile) -> CodexThread:
        """Return a thread with its line numbers, so that it can be trimmed."""
        numbers = {}
        for node in scan_transcript(self._readable(session)).nodes:
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
        """Plan a child in which all trimmed items, or those at the given lines, get their content back.

        Raise SessionNotFound if no original exists. With ``strict``, raise it if any original is
        missing.
        """
        parent, numbers_by_id = (
            self._read(reading.session),
            {node.uuid: node.number for node in select_trimmed_nodes(reading, numbers)},
        )
        originals = _read_originals(Rollouts(self._home), parent.trimmed_origins.values())
        child = self._draft_for_own_session(reading.session, "untrim", output_dir)
        trimmed = parent.trimmed_origins
        indexes = []
        for index in sorted(trimmed):
            if parent.items[index].uuid in numbers_by_id:
                indexes.append(index)
        edited, missing = dict[int, Record](), list[MissingOriginal]()
        for index in indexes:
            item, origin = parent.items[index], trimmed[index]
            original = originals.get((origin.session_id, origin.uuid))
            if original is None or _stable_fields(original) != _stable_fields(item.payload):
                if original is None:
                    why = "its original is gone"
                else:
                    why = f"{origin.reference} contains something else"
                missing.append(MissingOriginal(numbers_by_id[item.uuid], why))
                continue
            unmarked = {}
            for key, value in parent.child_records[index].items():
                if key not in TRIM_FIELDS:
                    unmarked[key] = value
            edited[index] = {**unmarked, "payload": original}
        if missing and (strict or not edited):
            raise SessionNotFound(describe_loss(missing, len(indexes)), "Nothing was written.")
        restored_size = sum(
            codex_items.item_size(record["payload"])
            - codex_items.item_size(parent.items[index].payload)
            for index, record in edited.items()
        )
        context = parent.context
        restored_context = context._replace(
            tokens=context.tokens + round(restored_size / CHARACTERS_PER_TOKEN)
        )
        head = child.head(ChildSize(restored_context.tokens, CHARACTERS_PER_TOKEN))
        return UntrimPlan(
            draft=child,
            body=parent.child_body(child, head, edited),
            sizes=Sizes(context.tokens, restored_context.tokens),
            remarks=tuple(list_losses(missing)),
            restored=tuple(edited),
            missing=tuple(missing),
            trimmed=len(trimmed),
            after=restored_context,
            characters=restored_size,
        )

    def _draft_for_own_session(
        self, session: SessionFile, kind: Kind, output_dir: str | None = None
    ) -> Draft:
        return self.draft(session, ends_of(session, self._where), kind, output_dir)

    def _meta(self, child: Draft) -> Record:
        """Return the fields of a child's first line, from its Codex parent or, for other parents, from the settings."""
        foreign = child.parent_agent != NAME
        if foreign:
            return new_child_meta(child, self._home)
        return read_meta(child.parent.path).payload

    def _read(self, session: SessionFile) -> CodexThread:
        return read_thread(session, Rollouts(self._home).path_of)

    def _readable(self, session: SessionFile) -> str:
        return agent_of(session, self._where).readable(session).path


def _fork_plan(parent: CodexThread, child: Draft, cut: Cut | None) -> ForkPlan:
    """Plan a child with the parent's items before the ``cut``.

    Raise NothingToFork if there is no message before the cut.
    """
    if cut is None:
        count = len(parent.items)
    else:
        count = _count_items(parent, [node.uuid for node in cut.nodes])
    if cut is not None and not count:
        raise UsageError(
            f"{cut.asked.capitalize()} lies before a compaction",
            "Codex can only be cut after the compaction.",
        )
    if not any(
        codex_items.item_kind(item.payload) == codex_items.MESSAGE for item in parent.items[:count]
    ):
        raise NothingToFork(
            "There is nothing to fork: a client would send no message up to that point"
        )
    dropped_size = sum(codex_items.item_size(item.payload) for item in parent.items[count:])
    tokens = max(0, parent.context.tokens - round(dropped_size / CHARACTERS_PER_TOKEN))
    head = child.head(ChildSize(tokens, CHARACTERS_PER_TOKEN))
    # If items were cut, the client must describe the environment again.
    environment_lines = () if dropped_size else parent.environment_lines
    body = build_body(
        child,
        head,
        parent.meta,
        parent.child_records[:count],
        environment_lines,
        leaves_goal=parent.has_goal,
    )
    sizes = Sizes(parent.context.tokens, tokens)
    return ForkPlan(
        draft=child, body=body, sizes=sizes, remarks=cut.remarks if cut else (), cut=cut
    )


def _count_items(parent: CodexThread, kept: Sequence[str]) -> int:
    """Return the number of items up to the last of the ``kept`` items."""
    wanted = set(kept)
    return max(
        (count for count, item in enumerate(parent.items, 1) if item.uuid in wanted), default=0
    )


def _read_originals(rollouts: Rollouts, origins: Iterable[Origin]) -> dict[tuple[str, str], Record]:
    """Return the original items by thread and item id; each thread is read once."""
    ids_by_thread: defaultdict[str, set[str]] = defaultdict(set)
    for origin in origins:
        ids_by_thread[origin.session_id].add(origin.uuid)
    originals: dict[tuple[str, str], Record] = {}
    for session_id, uuids in ids_by_thread.items():
        newest, history = rollouts.threads.get(session_id), History()
        with contextlib.suppress(SessionNotFound, NotATranscript):
            for line in chain_lines(newest.path, rollouts.path_of) if newest else ():
                history.add_line(line)
                for item in history.items if line.kind == COMPACTED else history.items[-1:]:
                    if item.uuid in uuids:
                        originals.setdefault((session_id, item.uuid), item.payload)
    return originals


def _stable_fields(item: Record) -> tuple[str, object, str]:
    """Return the fields of an item that a trim does not change."""
    return codex_items.item_kind(item), item.get("role"), codex_items.call_id(item)
