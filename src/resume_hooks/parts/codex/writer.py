"""Write children that Codex can resume, from sessions of Codex or of other agents.

A child is a self-contained rollout in an old format that every version of Codex can resume.
When a fork is resumed, its model receives the parent's history. This module adds files to Codex's folder, but never
changes or deletes files that are already there.
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
from resume_hooks.derive.child.draft import ChildLocation, Draft, make_draft
from resume_hooks.derive.child.receipt import FRESH_CHILD_KINDS
from resume_hooks.derive.child.write_child import ChildPlan, Sizes
from resume_hooks.derive.cut_point import Cut, CutSelector
from resume_hooks.derive.fork import ConversationText, ForkPlan
from resume_hooks.derive.fresh_child import FreshOpening
from resume_hooks.derive.untrim import (
    MissingOriginal,
    TrimmedSession,
    UntrimPlan,
    describe_missing_originals,
    format_missing_originals,
    select_trimmed_nodes,
)
from resume_hooks.errors import NotATranscript, NothingToFork, SessionNotFound, UsageError
from resume_hooks.parts.codex.rollout import (
    RolloutBody,
    build_body,
    build_child_meta,
    build_item_record,
    build_message_item,
    build_opening_body,
)
from resume_hooks.parts.codex.sessions.files import SESSIONS_FOLDER, Rollouts
from resume_hooks.parts.codex.sessions.strategy import AGENT_NAME
from resume_hooks.parts.codex.thread import CodexThread, read_partial_thread, read_thread
from resume_hooks.parts.codex.transcripts import items as codex_items
from resume_hooks.parts.codex.transcripts.history import ThreadHistory
from resume_hooks.parts.codex.transcripts.lines import COMPACTION_LINE, OPENING_KEY
from resume_hooks.parts.codex.transcripts.meta import format_rollout_name, read_meta
from resume_hooks.parts.codex.transcripts.segments import read_thread_lines
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.registry import agent_of_session, read_ends
from resume_hooks.sessions.child_titles import ChildKind, child_title
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.transcripts import records
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import Check
from resume_hooks.transcripts.placeholders import TRIM_FIELD_NAMES, Origin
from resume_hooks.transcripts.provenance import ChildSize
from resume_hooks.transcripts.records import USER, Record, parse_record
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN
from resume_hooks.transcripts.transcript import scan_transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedChildPlan(ChildPlan):
    """The plan for a child without secrets.

    ``clean`` replaces the secrets in a line. The child is checked after it is written. The check
    fails if ``clean`` would still change any of its lines.
    """

    clean: Callable[[bytes], bytes]

    def run_checks(self, path: str) -> list[Check]:
        """Run a child's usual checks and search the written file for secrets. Return the results."""
        with open(path, "rb") as stream:
            has_secret = any(self.clean(raw_line) != raw_line for raw_line in stream)
        return [
            *ChildPlan.run_checks(self, path),
            Check("no secret was found in it", not has_secret),
        ]


class CodexWriter:
    """Writes children into the folder ``sessions`` of a CODEX_HOME."""

    def __init__(self, codex_home: str, where: Where) -> None:
        self._home = codex_home
        self._where = where

    def draft_child(
        self,
        session: SessionFile,
        ends: HeadTail,
        kind: ChildKind,
        output_dir: str | None = None,
        *,
        subject: str = "",
    ) -> Draft:
        """Return the draft of a child, whose file will be in the folder for today's date.

        As in Codex, the file's name contains the local time.
        """
        local_time = time.localtime()
        day_folder = os.path.join(
            self._home,
            SESSIONS_FOLDER,
            time.strftime("%Y", local_time),
            *time.strftime("%m %d", local_time).split(),
        )
        start_time = time.strftime("%Y-%m-%dT%H-%M-%S", local_time)
        child_location = ChildLocation(
            AGENT_NAME, day_folder, lambda session_id: format_rollout_name(session_id, start_time)
        )
        draft = make_draft(
            session, ends, kind, self._where, output_dir, subject=subject, location=child_location
        )
        sibling_count = 1 + sum(row.kind == kind for row in draft.ancestors)
        return draft._replace(
            own_title=child_title(draft.root_title, kind, sibling_count)
            if kind in FRESH_CHILD_KINDS
            else ends.title
        )

    def make_opening_body(self, opening: FreshOpening) -> RolloutBody:
        """Return the content of a child that consists of an opening."""
        return build_opening_body(opening, self._build_meta(opening.child))

    def make_conversation_body(
        self,
        draft: Draft,
        first_line: bytes,
        opening_text: str,
        spoken_texts: Sequence[ConversationText],
    ) -> RolloutBody:
        """Return the content of a child that begins with the message ``opening_text``.

        The texts of a conversation follow it as messages.
        """
        timestamp, message_id = (
            draft.attributes.created_at,
            str(uuid.uuid5(uuid.NAMESPACE_OID, f"{draft.session_id}/told")),
        )
        first_record = build_item_record(
            build_message_item(USER, opening_text), timestamp, message_id, {OPENING_KEY: True}
        )
        messages = []
        for spoken_text in spoken_texts:
            messages.append(
                build_item_record(
                    build_message_item(spoken_text.role, spoken_text.text),
                    spoken_text.timestamp or timestamp,
                    spoken_text.uuid,
                )
            )
        return build_body(draft, first_line, self._build_meta(draft), [first_record, *messages])

    def plan_fork(
        self,
        session: SessionFile,
        cut: CutSelector | None,
        home: str | None,  # noqa: ARG002 - only this client's sessions get another
        output_dir: str | None,
    ) -> ForkPlan:
        """Plan a child with the items that Codex would send to the model, or with those before a cut."""
        draft = self._draft_child_in_codex(session, "fork", output_dir)
        if cut is not None:
            conversation_cut = cut_point.cut_conversation(
                scan_transcript(self._update_copy_and_get_path(session)), cut
            )
        else:
            conversation_cut = None
        return _plan_fork(self._read_thread(session), draft, conversation_cut)

    def plan_repair(self, session: SessionFile) -> ChildPlan:
        """Plan a self-contained child with all readable items.

        Outputs whose calls are missing are omitted.
        """
        draft = self._draft_child_in_codex(session, "repair")
        thread = read_partial_thread(session, Rollouts(self._home).find_path)
        meta = build_child_meta(draft, self._home) | {
            key: value for key, value in thread.meta.items() if value
        }
        return _plan_fork(replace(thread, meta=meta), draft, None)

    def plan_cleaned_copy(
        self,
        session: SessionFile,
        clean: Callable[[bytes], bytes],
        kind: ChildKind,
        output_dir: str | None,
    ) -> ChildPlan:
        """Plan a child whose items, environment and title are cleaned by ``clean``.

        An encrypted item that ``clean`` would change is omitted.
        """
        parent, child = (
            self._read_thread(session),
            self._draft_child_in_codex(session, kind, output_dir),
        )

        def remove_secrets_from_record(record: Record) -> Record:
            return parse_record(clean(orjson.dumps(record))) or record

        item_records = []
        for record in parent.child_records:
            payload = remove_secrets_from_record(record["payload"])
            if payload == record["payload"] or codex_items.item_type(payload) not in {
                *codex_items.ENCRYPTED_SUMMARY_TYPES,
                codex_items.REASONING_TYPE,
            }:
                item_records.append({**record, "payload": payload})
        environment_lines = []
        for line in parent.environment_lines:
            environment_lines.append(line._replace(record=remove_secrets_from_record(line.record)))
        child = child._replace(
            own_title=remove_secrets_from_record({"title": child.own_title or child.title_stem})[
                "title"
            ]
        )
        tokens = parent.context.tokens
        first_line = child.make_first_line(ChildSize(tokens, CHARACTERS_PER_TOKEN))
        body = build_body(
            child,
            first_line,
            remove_secrets_from_record(parent.meta),
            item_records,
            environment_lines,
            drops_goal=parent.has_goal,
        )
        return CleanedChildPlan(draft=child, body=body, sizes=Sizes(tokens, tokens), clean=clean)

    def plan_child_with_rewound_records(
        self, opening: FreshOpening, record_ids: Sequence[str]
    ) -> ChildPlan:
        """Plan a child with the first items of the parent, followed by the opening.

        The child contains the parent's items up to the last one whose id is in ``record_ids``.
        """
        parent, child = self._read_thread(opening.child.parent), opening.child
        closing_items = []
        for role, side, text in (
            (records.USER, "told", opening.text),
            (records.ASSISTANT, "card", opening.screen_text),
        ):
            item_id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{child.session_id}/{side}"))
            closing_items.append(
                build_item_record(
                    build_message_item(role, text),
                    child.attributes.created_at,
                    item_id,
                    {OPENING_KEY: True},
                )
            )
        item_records = [
            *parent.child_records[: _count_items_up_to(parent, record_ids)],
            *closing_items,
        ]
        body = build_body(
            child, opening.first_line, parent.meta, item_records, drops_goal=parent.has_goal
        )
        return ChildPlan(draft=child, body=body, sizes=opening.sizes)

    def read_trimmable_session(self, session: SessionFile) -> CodexThread:
        """Return the thread of a session for trimming, with the line numbers of its items."""
        line_numbers = {}
        for node in scan_transcript(self._update_copy_and_get_path(session)).nodes:
            line_numbers[node.uuid] = node.line_number
        return replace(self._read_thread(session), line_numbers_by_id=line_numbers)

    def plan_untrim(
        self,
        reading: TrimmedSession,
        line_numbers: Collection[int] | None,
        *,
        strict: bool,
        output_dir: str | None,
    ) -> UntrimPlan:
        """Plan a child in which trimmed items get their original content back.

        ``line_numbers`` are the line numbers of the items to restore, or None to restore all trimmed
        items. Raise SessionNotFound if all originals are missing or, with ``strict``, if any
        original is missing.
        """
        parent, numbers_by_id = (
            self._read_thread(reading.session),
            {node.uuid: node.line_number for node in select_trimmed_nodes(reading, line_numbers)},
        )
        originals = _read_original_items(
            Rollouts(self._home), parent.origins_of_trimmed_items.values()
        )
        child = self._draft_child_in_codex(reading.session, "untrim", output_dir)
        origins_of_trimmed_items = parent.origins_of_trimmed_items
        item_indexes = []
        for index in sorted(origins_of_trimmed_items):
            if parent.items[index].uuid in numbers_by_id:
                item_indexes.append(index)
        edited_items, missing_originals = dict[int, Record](), list[MissingOriginal]()
        for index in item_indexes:
            item, origin = parent.items[index], origins_of_trimmed_items[index]
            original = originals.get((origin.session_id, origin.uuid))
            if original is None or _read_type_role_and_call_id(
                original
            ) != _read_type_role_and_call_id(item.payload):
                if original is None:
                    reason = "its original is gone"
                else:
                    reason = f"{origin.original_reference} does not contain the original"
                missing_originals.append(MissingOriginal(numbers_by_id[item.uuid], reason))
                continue
            unmarked_record = {}
            for key, value in parent.child_records[index].items():
                if key not in TRIM_FIELD_NAMES:
                    unmarked_record[key] = value
            edited_items[index] = {**unmarked_record, "payload": original}
        if missing_originals and (strict or not edited_items):
            raise SessionNotFound(
                describe_missing_originals(missing_originals, len(item_indexes)),
                "Nothing was written.",
            )
        restored_size = sum(
            codex_items.count_item_characters(record["payload"])
            - codex_items.count_item_characters(parent.items[index].payload)
            for index, record in edited_items.items()
        )
        context = parent.context
        restored_context = context._replace(
            tokens=context.tokens + round(restored_size / CHARACTERS_PER_TOKEN)
        )
        first_line = child.make_first_line(ChildSize(restored_context.tokens, CHARACTERS_PER_TOKEN))
        return UntrimPlan(
            draft=child,
            body=parent.make_child_body(child, first_line, edited_items),
            sizes=Sizes(context.tokens, restored_context.tokens),
            remarks=tuple(format_missing_originals(missing_originals)),
            restored_records=tuple(edited_items),
            missing_originals=tuple(missing_originals),
            trimmed_record_count=len(origins_of_trimmed_items),
            context_after=restored_context,
            restored_character_count=restored_size,
        )

    def _draft_child_in_codex(
        self, session: SessionFile, kind: ChildKind, output_dir: str | None = None
    ) -> Draft:
        return self.draft_child(session, read_ends(session, self._where), kind, output_dir)

    def _build_meta(self, child: Draft) -> Record:
        """Return the fields of a child's first line.

        If the parent is a Codex session, the fields are those of the parent's first line.
        Otherwise, they are built from the child's draft and the settings of Codex.
        """
        is_foreign = child.parent_agent != AGENT_NAME
        if is_foreign:
            return build_child_meta(child, self._home)
        return read_meta(child.parent.path).payload

    def _read_thread(self, session: SessionFile) -> CodexThread:
        return read_thread(session, Rollouts(self._home).find_path)

    def _update_copy_and_get_path(self, session: SessionFile) -> str:
        return agent_of_session(session, self._where).to_common_format(session).path


def _plan_fork(parent: CodexThread, child: Draft, cut: Cut | None) -> ForkPlan:
    """Plan a child with the parent's items up to the ``cut``.

    Raise UsageError if the cut is before a compaction, and NothingToFork if the child would contain
    no message.
    """
    if cut is None:
        item_count = len(parent.items)
    else:
        item_count = _count_items_up_to(parent, [node.uuid for node in cut.nodes])
    if cut is not None and not item_count:
        raise UsageError(
            f"{cut.requested_position.capitalize()} is before a compaction",
            "A Codex session can only be cut after its last compaction.",
        )
    if not any(
        codex_items.item_type(item.payload) == codex_items.MESSAGE_TYPE
        for item in parent.items[:item_count]
    ):
        raise NothingToFork(
            "There is nothing to fork: up to that point, there is no message that a client would send"
        )
    dropped_size = sum(
        codex_items.count_item_characters(item.payload) for item in parent.items[item_count:]
    )
    tokens = max(0, parent.context.tokens - round(dropped_size / CHARACTERS_PER_TOKEN))
    first_line = child.make_first_line(ChildSize(tokens, CHARACTERS_PER_TOKEN))
    # If items are dropped, the client must describe the environment again.
    environment_lines = () if dropped_size else parent.environment_lines
    body = build_body(
        child,
        first_line,
        parent.meta,
        parent.child_records[:item_count],
        environment_lines,
        drops_goal=parent.has_goal,
    )
    sizes = Sizes(parent.context.tokens, tokens)
    return ForkPlan(
        draft=child, body=body, sizes=sizes, remarks=cut.remarks if cut else (), cut=cut
    )


def _count_items_up_to(parent: CodexThread, record_ids: Sequence[str]) -> int:
    """Return the number of items up to the last item whose id is in ``record_ids``."""
    id_set = set(record_ids)
    return max(
        (count for count, item in enumerate(parent.items, 1) if item.uuid in id_set), default=0
    )


def _read_original_items(
    rollouts: Rollouts, origins: Iterable[Origin]
) -> dict[tuple[str, str], Record]:
    """Return a dictionary of original items by thread id and item id. Read each thread only once."""
    ids_by_thread: defaultdict[str, set[str]] = defaultdict(set)
    for origin in origins:
        ids_by_thread[origin.session_id].add(origin.uuid)
    originals: dict[tuple[str, str], Record] = {}
    for session_id, uuids in ids_by_thread.items():
        newest_rollout, history = rollouts.threads.get(session_id), ThreadHistory()
        with contextlib.suppress(SessionNotFound, NotATranscript):
            for line in (
                read_thread_lines(newest_rollout.path, rollouts.find_path) if newest_rollout else ()
            ):
                history.add_line(line)
                for item in history.items if line.kind == COMPACTION_LINE else history.items[-1:]:
                    if item.uuid in uuids:
                        originals.setdefault((session_id, item.uuid), item.payload)
    return originals


def _read_type_role_and_call_id(item: Record) -> tuple[str, object, str]:
    """Return the fields of an item that a trim never changes: its type, its role and its call id."""
    return codex_items.item_type(item), item.get("role"), codex_items.call_id(item)
