"""Plan a fork: a child with its parent's live conversation or a part of it.

A fork in the same folder sends the same bytes as its parent, so it can use the API's cache. A
lineage before the conversation would prevent this, so such a fork has none. A fork in a different
folder has a different system prompt and cannot use the cache anyway, so it starts with a lineage.

A fork for another agent contains the conversation as text: messages and shortened calls, but no
thinking. The calls have the format in which agents show imported calls of a foreign session to
their own models.
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
from resume_hooks.derive.child.draft import Draft, find_session_owning_folder, make_draft
from resume_hooks.derive.child.inherited_metadata import (
    Relocation,
    copy_lines_about_replaced_results,
    copy_lines_after_chain,
    plan_relocation,
    select_snapshots,
)
from resume_hooks.derive.child.rewrite_chain import (
    ChainRewrite,
    ParentScan,
    RecordWatcher,
    make_lineage_if_needed,
    make_parent_scan,
    plan_chain_rewrite,
    scan_parent,
)
from resume_hooks.derive.child.write_child import ChildPlan, Sizes, Watcher
from resume_hooks.derive.cut_point import Cut, CutSelector
from resume_hooks.derive.fresh_child import FreshLines
from resume_hooks.errors import NothingToFork, UsageError
from resume_hooks.paths import Where, canonical_path, project_folders
from resume_hooks.sessions.archived.sessions import project_folder_of_session
from resume_hooks.sessions.lineage_block import describe_move
from resume_hooks.sessions.opening_layout import lineage_line, message_line
from resume_hooks.sessions.project_folder import home_folder_of_session
from resume_hooks.sessions.record_references import SHORT_ID_CHARACTERS
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.text import replace_surrogates
from resume_hooks.transcripts import records
from resume_hooks.transcripts.invariants import Check, ChildObserver
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.raw_edit import add_field
from resume_hooks.transcripts.records import Record, get_string
from resume_hooks.transcripts.transcript import Transcript, scan_transcript
from resume_hooks.transcripts.trimmable_pieces import PieceCollector
from resume_hooks.transcripts.write_scan import CopyPreparationObserver

FORK_KIND: Final = "fork"
MOVED_FORK_KIND: Final = "rehome"


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkPlan(ChildPlan):
    """The plan of a fork.

    ``cut`` is None if the fork contains the whole live conversation. ``relocation`` is None if the
    fork stays in the folder of its parent.
    """

    cut: Cut | None = None
    relocation: Relocation | None = None

    def watchers(self) -> Sequence[Watcher]:
        """Return observers that check that every record names its source and the right folder."""
        if isinstance(self.body, ChainRewrite):
            nodes = self.body.linear_chain.nodes
        else:
            nodes = ()
        parent_id, uuids = self.draft.parent.session_id, {node.uuid for node in nodes}

        def has_source_field(_: Line, record: Record, node: Node | None) -> bool:
            return (
                node is None
                or node.uuid not in uuids
                or record.get("forkedFrom") == _make_fork_origin_field(parent_id, node.uuid)
            )

        return [
            RecordWatcher("every record names its source", has_source_field),
            _NewSessionFolderWatcher(self.relocation),
        ]


class _NewSessionFolderWatcher:
    """Checks that the first record with a folder names the session's new folder.

    If the session does not move, the check always passes.
    """

    def __init__(self, relocation: Relocation | None) -> None:
        self._relocation = relocation
        self._home = ""

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:  # noqa: ARG002 - an observer's form
        self._home = self._home or get_string(record, "cwd")

    def run_checks(self) -> list[Check]:
        return [
            Check(
                "the first folder is the session's new home",
                self._relocation is None or self._home == self._relocation.new_home,
            )
        ]


def plan_fork(
    session: SessionFile,
    where: Where,
    *,
    cut: CutSelector | None = None,
    home: str | None = None,
    output_dir: str | None = None,
) -> ForkPlan:
    """Plan a copy of a session's live conversation, up to ``cut`` if it is given.

    If ``home`` is given, it must be an existing folder. If it is not the parent's folder, the child
    belongs to the project of ``home``. Raises NothingToFork for a session without messages, and
    UsageError for an unknown cut or an unusable parent.
    """
    parent, cut_result = scan_and_cut(session, cut)
    if cut_result:
        kept_transcript = parent.transcript.with_chain(cut_result.nodes)
    else:
        kept_transcript = parent.transcript
    if not any(node.is_message for node in kept_transcript.chain):
        raise NothingToFork(
            "There is nothing to fork: this session has no conversation",
            "Send a prompt first. If a prompt was answered here, the file is damaged: resume-hooks fsck shows how.",
        )
    relocation = _plan_relocation_to(parent, home, where)
    child = make_draft(
        session,
        parent.head_tail,
        MOVED_FORK_KIND if relocation else FORK_KIND,
        where,
        output_dir,
        home=relocation.new_home if relocation else "",
    )
    lineage = child.lineage_text if relocation else make_lineage_if_needed(child, kept_transcript)
    if (
        relocation
        and relocation.old_home_paths
        and relocation.new_home not in relocation.old_home_paths
    ):
        lineage += f"\n{describe_move(relocation.old_home_folder, relocation.new_home)}"
    tokens_before, snapshots = (
        parent.context.tokens,
        select_snapshots(kept_transcript, parent.preparation_observer),
    )
    tokens_after = (
        parent.count_sent_tokens(kept_transcript.chain, where) if cut_result else tokens_before
    )
    return ForkPlan(
        draft=child,
        body=plan_chain_rewrite(
            child,
            kept_transcript,
            parent.preparation_observer,
            first_line=child.make_first_line(parent.make_child_size(tokens_after)),
            lineage=lineage,
            metadata_lines=[
                *copy_lines_about_replaced_results(
                    kept_transcript, parent.preparation_observer, child.session_id
                ),
                *copy_lines_after_chain(
                    kept_transcript,
                    parent.preparation_observer,
                    parent.head_tail,
                    child.session_id,
                    relocation,
                ),
            ],
            line_edit=_ForkLineEdit(child.parent.session_id, relocation),
            allowed_thinking_hashes=frozenset(parent.child_observer.thinking_hashes),
        ),
        sizes=Sizes(tokens_before, tokens_after),
        remarks=(
            *(cut_result.remarks if cut_result else ()),
            *(_list_snapshot_notes(relocation) if relocation and snapshots else []),
        ),
        cut=cut_result,
        relocation=relocation,
    )


class _ForkLineEdit:
    """Adds to each record in the fork a reference to the parent's record.

    If the session moves, the folder in each record is changed too.
    """

    def __init__(self, parent_id: str, relocation: Relocation | None) -> None:
        self._parent_id = parent_id
        self._relocation = relocation

    def __call__(self, body: bytes, node: Node) -> bytes:
        """Return the changed line of ``node``.

        The source is stored in the field ``forkedFrom``, in the same form as the official SDK
        writes it.
        """
        if self._relocation is not None:
            body = self._relocation.relocate_folder_in_line(
                body,
                is_first=node.is_boundary,
                # If the chain does not start with a boundary, its first record is the lineage that
                # this plugin wrote. It already has the new folder.
            )
        return add_field(body, "forkedFrom", _make_fork_origin_field(self._parent_id, node.uuid))


def _make_fork_origin_field(parent_id: str, uuid: str) -> dict[str, str]:
    return {"sessionId": parent_id, "messageUuid": uuid}


def scan_and_cut(
    session: SessionFile, selector: CutSelector | None
) -> tuple[ParentScan, Cut | None]:
    """Scan a session and, if a ``selector`` is given, cut its conversation.

    The whole file is read only if the cut requires it. Without a ``selector``, the second value is
    None. Raises UsageError if the record at which to cut does not exist.
    """
    parent = scan_parent(session)
    if selector is None:
        return parent, None
    cut = cut_point.cut_conversation(parent.transcript, selector)
    if cut is None:
        preparation_observer, child_observer, pieces = (
            CopyPreparationObserver(),
            ChildObserver(),
            PieceCollector(),
        )
        whole_transcript = scan_transcript(
            session.file, observers=(preparation_observer, child_observer, pieces)
        )
        parent = make_parent_scan(
            session, whole_transcript, preparation_observer, child_observer, pieces
        )
        cut = cut_point.cut_conversation(whole_transcript, selector)
    return parent, cut


def _plan_relocation_to(parent: ParentScan, home: str | None, where: Where) -> Relocation | None:
    """Return the relocation of the session to ``home``, or None if the session already belongs there."""
    if home is None:
        return None
    new_home = canonical_path(home)
    if not home or not os.path.isdir(home):
        raise UsageError(f"{home} is not a folder", "Name an existing folder for the session.")
    current_home, recorded_folders = (
        home_folder_of_session(parent.head_tail, where),
        parent.head_tail.folders,
    )
    old_home_folder = (
        current_home
        if current_home in recorded_folders or not recorded_folders
        else recorded_folders[0]
    )
    is_at_home = project_folder_of_session(
        find_session_owning_folder(parent.session).path, where
    ) in project_folders(new_home, where)
    if is_at_home and canonical_path(old_home_folder) == new_home:
        return None
    return plan_relocation(old_home_folder, new_home)


def _list_snapshot_notes(relocation: Relocation) -> list[str]:
    if relocation.moves_files:
        return [
            (
                f"The session's file backups now belong to the files in {relocation.new_home}: "
                "resume-hooks rewind-files restores the files in that folder."
            )
        ]
    return [
        (
            f"The session's file backups were not copied: they belong to the files below "
            f"{relocation.old_home_folder}, which still exists."
        )
    ]


MAX_CALL_CHARACTERS, MAX_RESULT_CHARACTERS = (
    600,
    1_500,
    # The maximum number of characters of a call, and of a result. A longer call or result is cut,
    # and a reference to its whole text follows.
)


class ConversationText(NamedTuple):
    """The text of consecutive records of the user or of the assistant.

    ``timestamp`` is the time of the text, and ``uuid`` is the id of the first record.
    """

    role: str
    text: str
    timestamp: str
    uuid: str


def convert_conversation_to_text(transcript: Transcript, session_id: str) -> list[ConversationText]:
    """Return a session's live conversation as text.

    Consecutive records of the same speaker become one item. Records that the client itself added
    are omitted.
    """
    messages: list[ConversationText] = []
    tool_names: dict[str, str] = {}
    for node in transcript.chain:
        record = transcript.read_record(node)
        if node.is_sidechain or record.get("isMeta") is True or not node.is_message:
            continue
        reference = f"{session_id[: 13 if session_id[14:15] == '7' else SHORT_ID_CHARACTERS]}:{node.line_number}"
        is_result = bool(records.list_results(record))
        if is_result or node.kind == records.ASSISTANT:
            role = records.ASSISTANT
        else:
            role = records.USER
        texts = (
            _format_block(block, tool_names, reference) for block in records.list_blocks(record)
        )
        text = "\n\n".join(filter(None, texts))
        if not text.strip():
            continue
        if messages and messages[-1].role == role:
            messages[-1] = messages[-1]._replace(text=f"{messages[-1].text}\n\n{text}")
        else:
            messages.append(
                ConversationText(
                    role, replace_surrogates(text), get_string(record, "timestamp"), node.uuid
                )
            )
    return messages


def make_conversation_lines(
    child: Draft, first_line: bytes, introduction: str, messages: Sequence[ConversationText]
) -> FreshLines:
    """Return the lines of a Claude Code session that contains a conversation as text.

    ``introduction`` comes first. The model reads it, but it is not shown on the screen.
    """
    setting, last_id = child.attributes, str(uuid.uuid4())
    unterminated_lines = [first_line, lineage_line(setting, None, last_id, introduction)]
    for message in messages:
        setting = setting._replace(created_at=clock.add_millisecond(setting.created_at))
        own_id = str(uuid.uuid4())
        unterminated_lines.append(
            message_line(setting, last_id, own_id, message.role, message.text)
        )
        last_id = own_id
    return FreshLines(tuple(unterminated_lines))


def _format_block(block: Record, tool_names: dict[str, str], reference: str) -> str:
    kind = get_string(block, "type")
    if kind == records.TEXT:
        return get_string(block, "text")
    if kind == records.CALL:
        tool_names[get_string(block, "id")] = name = get_string(block, "name")
        call_input = orjson.dumps(block.get("input")).decode()
        return (
            "[external_agent_tool_call: "
            f"{name}]\n{_shorten_text(call_input, MAX_CALL_CHARACTERS, reference)}\n[/external_agent_tool_call]"
        )
    if kind == records.RESULT:
        content = block.get("content")
        result_texts = []
        for part in records.list_objects(content):
            result_texts.append(get_string(part, "text") or f"[{get_string(part, 'type')}]")
        result = _shorten_text(
            content if isinstance(content, str) else "\n".join(result_texts),
            MAX_RESULT_CHARACTERS,
            reference,
        )
        return f"[external_agent_tool_result]\n{result}\n[/external_agent_tool_result]"
    if kind in records.MEDIA_TYPES:
        return f"[{kind}, see {reference}]"
    return ""


def _shorten_text(text: str, max_characters: int, full_text_reference: str) -> str:
    if len(text) <= max_characters:
        return text
    return f"{text[:max_characters]}… ({len(text):,} characters, whole: {full_text_reference})"
