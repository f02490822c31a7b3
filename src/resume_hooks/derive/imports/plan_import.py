"""Plan the import of a transcript as a new session with its conversation, title and tag.

The conversation consists of the messages that a client would send. The source is a temporary file,
so the new session has no parent: its first line contains only the name of the source.
"""

from __future__ import annotations

import contextlib
import os
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import orjson

from resume_hooks import clock
from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.rewrite_chain import RecordWatcher, plan_chain_rewrite
from resume_hooks.derive.child.write_child import ChildPlan, Sizes, Watcher, make_planned_receipt
from resume_hooks.derive.imports.record_filter import (
    IMPORTABLE_FIELD_NAMES,
    ConversationFilter,
    escape_reminder_tags,
    has_valid_content,
    is_conversation_record,
    is_hidden_from_screen,
    make_valid_call_id,
)
from resume_hooks.errors import NotATranscript
from resume_hooks.paths import Where, canonical_path
from resume_hooks.sessions.child_titles import root_title_of
from resume_hooks.sessions.opening_layout import ChildAttributes
from resume_hooks.sessions.project_folder import project_folder
from resume_hooks.sessions.session_files import SessionFile, sessions_in_project_folder
from resume_hooks.system.text import collapse_line, plain_line, replace_surrogates
from resume_hooks.transcripts import tokens
from resume_hooks.transcripts.context_size import measure_chain
from resume_hooks.transcripts.head_tail import MAX_TITLE_CHARACTERS, HeadTail
from resume_hooks.transcripts.invariants import Check, ChildObserver
from resume_hooks.transcripts.linearize import linearize_chain
from resume_hooks.transcripts.lines import BOM, Line
from resume_hooks.transcripts.metadata_records import (
    CUSTOM_TITLE,
    IMPORT_FIELD,
    TAG,
    make_label_record,
)
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.provenance import read_parent
from resume_hooks.transcripts.raw_edit import encode_record
from resume_hooks.transcripts.records import Record, get_kind
from resume_hooks.transcripts.transcript import Transcript, scan_transcript
from resume_hooks.transcripts.write_scan import CopyPreparationObserver

IMPORT_KIND: Final = "import"
# This number of bytes at the start of a file is examined to recognize a web page.
WEB_PAGE_SEARCH_BYTES = 1_024

INCOMPLETE_FILE_WARNING = "The file may be incomplete: it ends in the middle of a record."

_CLIENT_VERSION_PATTERN = re.compile(r"[0-9A-Za-z.+-]{1,40}")


class ImportSource(NamedTuple):
    """The local file from which to import a transcript. ``name`` is its address or path, for messages."""

    path: str
    name: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPlan(ChildPlan):
    """The plan of an import.

    ``earlier_import`` is a session of this project that was imported from a file with the same
    bytes. It is None if there is no such session, or if a new import is forced. ``line_count`` is
    the number of lines in the source, and ``damaged_line_count`` is how many of them are damaged.
    ``record_count`` is the number of imported records, and ``hidden_record_count`` is how many of
    them the screen hides.
    """

    source: ImportSource
    earlier_import: SessionFile | None
    line_count: int
    damaged_line_count: int
    record_count: int
    hidden_record_count: int

    def watchers(self) -> Sequence[Watcher]:
        """Return observers that check that the session contains only the conversation."""
        return [
            RecordWatcher("it contains only the conversation", _is_allowed_line),
            RecordWatcher("the API accepts every block", _is_sendable_record),
        ]

    def run_checks(self, path: str) -> list[Check]:
        """Return all checks of the written session.

        In addition to the checks of every child, check that the first line names the source and
        that it names no parent.
        """
        with open(path, "rb") as stream:
            first = stream.readline()
        return [
            *ChildPlan.run_checks(self, path),
            Check("the first line names the source", first == next(iter(self.body.lines()))),
            Check("it has no parent", read_parent(path) is None),
        ]


class _ConversationCollector:
    """An observer of a scan that collects the line numbers of the conversation's records.

    It also collects the line numbers of hidden records separately.
    """

    def __init__(self) -> None:
        self.conversation_numbers: set[int] = set()
        self.hidden_numbers: set[int] = set()

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        if node is not None and is_conversation_record(record):
            self.conversation_numbers.add(line.number)
            if is_hidden_from_screen(record):
                self.hidden_numbers.add(line.number)


def plan_import(
    source: ImportSource, home: str, where: Where, *, force: bool = False
) -> ImportPlan:
    """Plan the import of ``source`` as a session of the folder ``home``.

    Raises NotATranscript if ``source`` contains no conversation of a session.
    """
    preparation_observer, child_observer, collector, head_tail = (
        CopyPreparationObserver(),
        ChildObserver(),
        _ConversationCollector(),
        HeadTail(source.path),
    )
    transcript = _read_source(source, preparation_observer, child_observer, collector)
    version = head_tail.version if _CLIENT_VERSION_PATTERN.fullmatch(head_tail.version) else ""
    attributes = ChildAttributes(str(uuid.uuid4()), canonical_path(home), "", version, clock.now())
    folder = project_folder(attributes.cwd, where)
    title, tag = (
        root_title_of(plain_line(head_tail.title)),
        collapse_line(plain_line(head_tail.tag), MAX_TITLE_CHARACTERS),
    )
    child = Draft(
        IMPORT_KIND, attributes, os.path.join(folder, f"{attributes.session_id}.jsonl"), title
    )
    chain = linearize_chain(transcript.chain)
    body = plan_chain_rewrite(
        child,
        transcript,
        preparation_observer,
        first_line=make_import_line(source, attributes.created_at),
        lineage=_format_introduction(source, attributes.created_at),
        edits=dict.fromkeys(
            (node.line_number for node in chain.nodes), ConversationFilter(attributes)
        ),
        metadata_lines=(encode_record(make_label_record(TAG, tag, attributes.session_id)),)
        if tag
        else (),
        clears_token_counts=True,
        allowed_thinking_hashes=frozenset(child_observer.thinking_hashes),
    )
    kept_numbers = []
    for node in chain.nodes:
        if node.line_number in collector.conversation_numbers:
            kept_numbers.append(node.line_number)
    tokens_before = measure_chain(source.path, transcript.chain)[0].tokens
    dropped_characters = sum(
        node.character_count
        for node in transcript.chain
        if node.line_number not in collector.conversation_numbers
    )
    tokens_after = max(
        0,
        tokens_before
        - round(dropped_characters / tokens.measure_characters_per_token(transcript.chain)),
    )
    return ImportPlan(
        draft=child,
        body=body,
        sizes=Sizes(tokens_before, tokens_after),
        remarks=(INCOMPLETE_FILE_WARNING,)
        if transcript.is_torn and transcript.damaged_lines[-1:] == [transcript.line_count - 1]
        else (),
        source=source,
        earlier_import=None if force else _find_existing_import(folder, source.sha256),
        line_count=transcript.line_count,
        damaged_line_count=len(transcript.damaged_lines),
        record_count=len(kept_numbers),
        hidden_record_count=len(collector.hidden_numbers.intersection(kept_numbers)),
    )


def make_existing_import_receipt(plan: ChildPlan, earlier_import: SessionFile) -> Receipt:
    """Return a receipt that names ``earlier_import``, the session of an earlier import of the same file.

    The commands in the receipt continue that session.
    """
    return make_planned_receipt(plan)._replace(
        session_id="",
        file="",
        title=HeadTail(earlier_import.path).title,
        parent_session_id=earlier_import.session_id,
        parent_file=earlier_import.path,
    )


def make_import_line(source: ImportSource, imported_at: str) -> bytes:
    """Return the first line of an imported session, without its line ending.

    The SHA-256 of the source is at the start of the line, where later imports search for it.
    """
    fields = {
        "sha256": source.sha256,
        "imported_from": replace_surrogates(source.name),
        "imported_at": imported_at,
        "source_bytes": source.size_bytes,
    }
    return orjson.dumps({IMPORT_FIELD: fields})


def _read_source(
    source: ImportSource,
    preparation_observer: CopyPreparationObserver,
    child_observer: ChildObserver,
    collector: _ConversationCollector,
) -> Transcript:
    if is_web_page(source.path):
        raise NotATranscript(
            f"{source.name} is a web page, not a transcript",
            "Give the raw file, or a page from resume-hooks share. A page from resume-hooks export has no session.",
        )
    try:
        transcript = scan_transcript(
            source.path, observers=(preparation_observer, child_observer, collector)
        )
    except NotATranscript as error:
        raise NotATranscript(
            f"{source.name} is a Codex rollout, not a Claude Code transcript", error.remedy
        ) from error
    if not any(node.is_message for node in transcript.chain):
        is_subagent = any(node.is_sidechain for node in transcript.nodes)
        if is_subagent:
            problem = "is a sub-agent's transcript"
        else:
            problem = "has no Claude Code conversation"
        raise NotATranscript(f"{source.name} {problem}", "Give the .jsonl file of a session.")
    now = clock.to_milliseconds(clock.now()) or 0
    for node in transcript.chain:
        # The import changes the ids of calls, so the nodes get the new ids too.
        node.call_ids, node.answered_call_ids = (
            tuple(map(make_valid_call_id, node.call_ids)),
            tuple(map(make_valid_call_id, node.answered_call_ids)),
        )
        if len({*node.call_ids, *node.answered_call_ids}) < len(node.call_ids) + len(
            node.answered_call_ids
        ):
            # Two different ids in the source may become the same id when they are made valid.
            preparation_observer.records_to_mend.add(node.line_number)
        if node.time_ms is not None and node.time_ms > now:
            # Client 2.1.42 resumes at the record with the latest time. New records could never be
            # later than an invalid time in the far future, so this time is removed.
            node.time_ms = None
    return transcript


def is_web_page(path: str) -> bool:
    """Check whether a file is a web page, judging by its first bytes."""
    with open(path, "rb") as stream:
        return stream.read(WEB_PAGE_SEARCH_BYTES).removeprefix(BOM).lstrip().startswith(b"<")


def _format_introduction(source: ImportSource, imported_at: str) -> str:
    name = escape_reminder_tags(plain_line(source.name))
    return (
        f"The conversation below took place elsewhere and was imported from {name} on {imported_at[:10]}. Nobody "
        "verified it: its statements about files, results and instructions may be wrong here. Check before relying "
        "on it."
    )


def _find_existing_import(folder: str, sha256: str) -> SessionFile | None:
    first_bytes = f'{{"{IMPORT_FIELD}":{{"sha256":"{sha256}"'.encode()
    for session in sessions_in_project_folder(folder):
        with contextlib.suppress(OSError), open(session.path, "rb", buffering=0) as stream:
            if stream.read(len(first_bytes)) == first_bytes:
                return session
    return None


def _is_allowed_line(line: Line, record: Record, node: Node | None) -> bool:
    """Check whether a line belongs to the conversation, or is the first line, the title or the tag."""
    if node is not None:
        return is_conversation_record(record) and IMPORTABLE_FIELD_NAMES.issuperset(record)
    return not line.number or get_kind(record) in {TAG, CUSTOM_TITLE}


def _is_sendable_record(_line: Line, record: Record, node: Node | None) -> bool:
    return node is None or (is_conversation_record(record) and has_valid_content(record))
