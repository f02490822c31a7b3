"""Build the digest of a session and its ancestors.

The digest covers the whole history, and describes the latest part in the most detail. Ancestors are
read from the oldest to the latest, up to a maximum number of bytes. The ancestors of a fresh child
written by this plugin are not read, because the child already contains their digest. Each section
keeps as many entries as fit.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

import orjson

from resume_hooks import clock
from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import Where
from resume_hooks.reading.digest import (
    changed_files,
    failed_commands,
    project_rules,
    session_commands,
    shell,
    skills,
    statements,
    talk,
)
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.commits import find_final_commits
from resume_hooks.reading.digest.edited_files import EditedFiles
from resume_hooks.reading.digest.entries import (
    Digest,
    DigestEntry,
    ReadExtent,
    TalkMessage,
    collect_secret_texts,
    make_entry,
    read_digest,
    redact_digest,
)
from resume_hooks.reading.digest.facts import FileChange
from resume_hooks.reading.digest.file_states import (
    CONFLICTING_STATE,
    MAYBE_COMMITTED_ON_PREVIOUS_BRANCH_STATE,
    MAYBE_COMMITTED_STATE,
    NOT_COMMITTED_STATE,
    derive_file_states,
)
from resume_hooks.reading.digest.git_seen import collect_session_git, find_folder_removals
from resume_hooks.reading.digest.next_steps import list_next_steps
from resume_hooks.reading.digest.now import list_pending_work, list_present_state
from resume_hooks.reading.digest.prescan import prescan_line
from resume_hooks.reading.digest.pull_requests import collect_pull_requests
from resume_hooks.reading.digest.refusals import list_refusals
from resume_hooks.reading.digest.repository import GitQuery, RepositoryState
from resume_hooks.reading.digest.reversals import find_indexes_of_binding_statements
from resume_hooks.reading.digest.sections import (
    CHANGED_FILES_SECTION,
    COMMANDS_SECTION,
    OTHER_COMMANDS_SECTION,
    SECTIONS,
    Section,
)
from resume_hooks.reading.digest.shell import parse_simple_commands
from resume_hooks.reading.digest.todos import collect_todos
from resume_hooks.redaction.json_lines import redact_line
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.lineage import MISSING_STATUS
from resume_hooks.sessions.project_folder import home_folder_of_session
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.sessions.transcript_files import (
    SUBAGENT_PREFIX,
    Subagent,
    subagent_name,
    subagents_in_folder,
)
from resume_hooks.storage.atomic import BUFFER_BYTES
from resume_hooks.system.text import quote_name
from resume_hooks.transcripts.lines import BOM, LineNumbers, open_transcript
from resume_hooks.transcripts.metadata_records import IMPORT_FIELD
from resume_hooks.transcripts.records import get_mapping, parse_record
from resume_hooks.transcripts.transcript import pause_garbage_collection

# The maximum total size of the ancestors that are read, in bytes.
MAX_ANCESTOR_BYTES = 100_000_000
# The maximum total size of the sub-agents' files that are read, in bytes. The files of the
# sub-agents that ended last are read first.
MAX_SUBAGENT_BYTES = 20_000_000

MAX_READ_BYTES = 200_000_000
"""At most this many bytes are read from the end of a session.

Reading them takes a little over a second. The first SESSION_START_BYTES of a larger session are
also read.
"""

# This many bytes are read from the start of a session larger than MAX_READ_BYTES.
SESSION_START_BYTES = 2_000_000

NOTES_ON_UNCOMMITTED_FILES = (
    "uncommitted",
    "staged",
    NOT_COMMITTED_STATE,
    CONFLICTING_STATE,
    MAYBE_COMMITTED_STATE,
    MAYBE_COMMITTED_ON_PREVIOUS_BRANCH_STATE,
)
"""Notes in an ancestor's digest that say that a file is not committed. They may be outdated,
because the file may have been committed later. Older versions of this plugin wrote ``uncommitted``.
"""

# The note on a command in an ancestor's digest if a later session ran the command and it failed.
LATER_FAILURE_NOTE = "failed since"

_PRIVATE_KEY_MARKER = b"PRIVATE KEY"
"""Words in the first line of a private key. A record with these words is redacted as a whole,
before its text is split into lines or sentences, because a part of a private key is not recognized
as a secret."""


class _StoredSections(NamedTuple):
    sections: Mapping[str, tuple[DigestEntry, ...]]
    omitted_counts: Mapping[str, int]


def _merge_sections(
    own_sections: Mapping[str, tuple[DigestEntry, ...]],
    ancestor_digest: Digest | None,
    facts: LineageFacts,
    paths: changed_files.SessionPaths,
) -> _StoredSections:
    """Append the entries of ``ancestor_digest`` to a session's sections.

    Also return, by section, the number of entries that ``ancestor_digest`` omitted.
    """
    if ancestor_digest is None:
        return _StoredSections(own_sections, {})
    failed_commands = set()
    for run in facts.runs:
        if run.has_failed:
            failed_commands.add(shell.make_runnable_command(run.command, paths.folder))
    merged = dict(own_sections)
    for section in SECTIONS:
        if section.is_current and (
            own_sections[section.name] or section.name != "todos" or facts.todo_list.was_used
        ):
            continue  # The ancestor's entries describe an earlier state.
        known_texts = {entry.text for entry in own_sections[section.name]}
        entries = list(own_sections[section.name])
        for entry in ancestor_digest.section_entries(section.name):
            updated = _update_entry_notes(section, entry, paths, failed_commands)
            if updated.text not in known_texts:
                entries.append(updated)
        merged[section.name] = tuple(entries)
    merged["constraints"] = _drop_revoked_demands(merged["constraints"])
    omitted = {}
    for name, count in ancestor_digest.omitted_counts.items():
        if count and name in merged and merged[name] != own_sections[name]:
            omitted[name] = count
    return _StoredSections(merged, omitted)


def _update_entry_notes(
    section: Section,
    entry: DigestEntry,
    paths: changed_files.SessionPaths,
    failed_commands: Collection[str],
) -> DigestEntry:
    """Update the notes on an entry of an ancestor's digest.

    The new notes describe the current state of the file or the command that the entry is about.
    """
    notes = [
        note
        for note in entry.note.split(", ")
        if note not in {"", *NOTES_ON_UNCOMMITTED_FILES, LATER_FAILURE_NOTE}
    ]
    if section is CHANGED_FILES_SECTION and paths.is_dirty(entry.text):
        notes.append(NOT_COMMITTED_STATE)
    if section in {COMMANDS_SECTION, OTHER_COMMANDS_SECTION} and entry.text in failed_commands:
        notes.append(LATER_FAILURE_NOTE)
    return entry._replace(note=", ".join(notes))


def _drop_revoked_demands(entries: Sequence[DigestEntry]) -> tuple[DigestEntry, ...]:
    """Return the demands, ordered latest first, without those that a later demand revokes."""
    return tuple(
        entries[index]
        for index in find_indexes_of_binding_statements([entry.text for entry in entries])
    )


def _drop_demands_revoked_in_talk(
    entries: Sequence[DigestEntry], messages: Sequence[TalkMessage]
) -> tuple[DigestEntry, ...]:
    """Return the demands without those that the talk marks as superseded.

    A statement in the talk can revoke a demand without being a demand itself.
    """
    revoked_sentences: dict[str, list[str]] = {}
    for message in messages:
        for sentence, _ in message.superseded_sentences:
            revoked_sentences.setdefault(message.ref, []).append(sentence)
    standing_entries = []
    for entry in entries:
        revoked = revoked_sentences.get(entry.ref, ())
        if not any(sentence in entry.text for sentence in revoked):
            standing_entries.append(entry)
    return tuple(standing_entries)


def _make_sections(
    facts: LineageFacts, folder: str, repository: RepositoryState, session_id: str
) -> dict[str, tuple[DigestEntry, ...]]:
    """Return the entries of each section, from the facts of a lineage.

    Paths in the entries are relative to ``folder``. ``session_id`` is the id of the latest session.
    """
    runs = session_commands.list_commands(facts)
    parsed_runs = [(command.run, command.parts) for command in runs]
    removals = list(find_folder_removals(parsed_runs))
    session_git = collect_session_git(parsed_runs, facts.client_checkout, dict(removals), folder)
    known_pull_requests = collect_pull_requests(parsed_runs)
    paths = changed_files.SessionPaths(folder, repository)
    touched_files = changed_files.collect_touched_files(facts.changes, runs, paths)
    commits = find_final_commits(parsed_runs)
    last_commit_order = max((commit.position.order for commit in commits.commits), default=0)
    edits = changed_files.list_edits(touched_files)
    checkouts = [checkout.folder for checkout in session_git.checkouts]
    lasting_edits = [edit for edit in edits if not changed_files.is_temporary(edit.path, checkouts)]
    states = derive_file_states(
        edits,
        changed_files.find_files_only_git_lists(touched_files),
        parsed_runs,
        folder,
        commits,
    )
    edited_files = EditedFiles(lasting_edits, states.find_checkout)
    if session_git.previous_branch:
        states.mark_files_left_on_branch(edits, session_git.last_switch_order)
    states.removed_paths |= changed_files.find_missing_files(touched_files, runs, paths)
    request_words = statements.collect_request_words(facts)
    commands = session_commands.list_working_commands(
        runs, paths.folder, removals, request_words, edited_files
    )
    todo_entries = collect_todos(
        facts,
        known_pull_requests,
        last_commit_order,
        session_commands.find_last_passed_check(runs),
    )
    entries_by_section: Mapping[str, Iterable[DigestEntry]] = {
        "now": chain(
            list_present_state(
                facts, paths, repository, session_git, states, session_id, known_pull_requests
            ),
            todo_entries.overtaken_list,
        ),
        "next": list_next_steps(facts),
        "pending": list_pending_work(facts, session_id),
        "marks": changed_files.list_todo_comments(facts, touched_files, paths),
        "todos": chain(
            todo_entries.open_todos,
            changed_files.list_unchecked_plan_steps(facts, touched_files, paths),
        ),
        "questions": statements.list_questions(facts),
        "constraints": statements.list_constraints(facts, known_pull_requests),
        "answers": statements.list_answers(facts),
        "skills": skills.list_skills(facts),
        "instructions": project_rules.list_instructions(facts, runs),
        "changed": changed_files.list_changed_files(
            touched_files,
            paths,
            states,
            repository.branch or session_git.branch,
            removals,
            checkouts,
        ),
        "commands": commands.checks,
        "errors": failed_commands.list_open_errors(
            facts,
            runs,
            statements.find_start_order_of_last_turns(
                facts, failed_commands.MAX_TURNS_SEARCHED_FOR_UNRESOLVED_ERRORS
            ),
            edited_files,
        ),
        "failures": failed_commands.list_replaced_commands(runs, edited_files),
        "refusals": chain(
            list_refusals(facts, runs, with_reason=True),
            list_refusals(facts, runs, with_reason=False),
        ),
        "artefacts": changed_files.list_artefacts(facts, commits.commits),
        "others": commands.other_commands,
        "read": changed_files.list_read_files(facts, paths, touched_files),
    }
    return {name: _deduplicate_entries(entries) for name, entries in entries_by_section.items()}


def _deduplicate_entries(entries: Iterable[DigestEntry]) -> tuple[DigestEntry, ...]:
    """Return the entries that have a text. Of several entries with the same text, return only the first."""
    entries_by_text: dict[str, DigestEntry] = {}
    for entry in entries:
        if entry.text:
            entries_by_text.setdefault(entry.text, entry)
    return tuple(entries_by_text.values())


def _limit_sections_for_storage(
    entries: Mapping[str, tuple[DigestEntry, ...]], omitted: Mapping[str, int]
) -> _StoredSections:
    """Limit the entries of each section to those that a child stores.

    Return them by section, with the number of omitted entries of each section. ``omitted``
    contains, by section, the number of entries that were omitted earlier.
    """
    stored_sections, omitted_counts = {}, {}
    for section in SECTIONS:
        section_entries = entries.get(section.name, ())
        count = _count_fitting_entries(section_entries, section.max_stored_bytes)
        if count:
            stored_sections[section.name] = section_entries[:count]
        if omitted_count := len(section_entries) - count + omitted.get(section.name, 0):
            omitted_counts[section.name] = omitted_count
    return _StoredSections(stored_sections, omitted_counts)


def _count_fitting_entries(entries: Iterable[DigestEntry], available_bytes: int) -> int:
    count = 0
    for entry in entries:
        available_bytes -= _measure_entry_bytes(entry)
        if available_bytes < 0:
            break
        count += 1
    return count


def _measure_entry_bytes(entry: DigestEntry) -> int:
    return len(orjson.dumps(list(entry))) + 1


_IMPORTED_SESSION_PREFIX = f'{{"{IMPORT_FIELD}":'.encode()
"""The first bytes of a session that was imported from another machine or user."""

IMPORTED_SESSION_WARNING_ENTRY = DigestEntry(
    "some of this was said in an imported session: nobody verified it, and its USER is not yours"
)


def build_digest(
    session: SessionFile, where: Where, *, max_read_bytes: int | None = None, first_line: int = 0
) -> Digest:
    """Return the digest of a session, without secrets.

    Raises SessionNotFound if the session is unreadable. ``max_read_bytes`` is the maximum number of
    bytes read from the end of each file (default MAX_READ_BYTES). The first SESSION_START_BYTES of
    a larger file are also read. If ``first_line`` is given, the digest covers the session from this
    line on and does not include ancestors.
    """
    session = Session.from_file(session, where)
    head_tail = session.head_tail
    folder = home_folder_of_session(head_tail, where)
    with (
        GitQuery(folder, head_tail.created_at, where) as git_query,
        pause_garbage_collection(),
        collect_secret_texts() as secret_texts,
    ):
        if first_line:
            ancestor_digest, unread_count = None, 0
            files: list[SessionFile] = [session]
        else:
            files, ancestor_digest, unread_count = _find_files_to_read(session)
        facts = LineageFacts()
        skipped_bytes, deleted_count = _read_ancestors(
            files[:-1], facts, max_read_bytes or MAX_READ_BYTES
        )
        skipped_bytes += _read_file_and_count_skipped_bytes(
            files[-1], facts, max_read_bytes or MAX_READ_BYTES, first_line
        )
        unread_count += deleted_count
        subagent_changes = _collect_subagent_changes(files, facts)
        facts.has_agents_without_transcripts = (
            bool(facts.reports) and facts.agents_may_write and not subagent_changes.transcript_count
        )
        messages = talk.collect_talk(facts)
        remark_count = talk.count_omitted_remarks(facts, messages)
        git = git_query.collect_answers()
        facts.changes += subagent_changes.changes
        facts.changes.sort(key=lambda change: change.position.order)
        if facts.has_agents_without_transcripts:
            facts.add_reported_changes()
        own_sections = _make_sections(facts, folder, git, files[-1].session_id)
        merged_sections, omitted_counts = _merge_sections(
            own_sections, ancestor_digest, facts, changed_files.SessionPaths(folder, git)
        )
        unread_count += subagent_changes.unread_transcript_count
        has_imported = facts.has_imported_file
        if ancestor_digest is not None:
            unread_count += ancestor_digest.unread_transcript_count
            remark_count += ancestor_digest.remark_count
            message_count = len(ancestor_digest.talk) + len(messages)
            messages = talk.join_talk(ancestor_digest.talk, messages)
            remark_count += message_count - len(messages)
            has_imported = (
                has_imported
                or IMPORTED_SESSION_WARNING_ENTRY in ancestor_digest.section_entries("now")
            )
        all_entries = dict(merged_sections)
        all_entries["constraints"] = _drop_demands_revoked_in_talk(
            merged_sections["constraints"], messages
        )
        if has_imported:
            all_entries["now"] = (IMPORTED_SESSION_WARNING_ENTRY, *all_entries["now"])
        # Only the path of a Claude Code transcript contains the session's folder.
        if session.agent != CLAUDE_NAME:
            folder_entry = make_entry(f"folder: {quote_name(folder)}", "")
            all_entries["now"] = (folder_entry, *all_entries["now"])
        sections, omitted_counts = _limit_sections_for_storage(all_entries, omitted_counts)
        digest = Digest(
            sections,
            messages,
            omitted_counts,
            git.description,
            unread_count,
            skipped_bytes,
            remark_count,
            read_extent=facts.read_extent,
        )
        return redact_digest(digest, secret_texts)


class _UnreadParts(NamedTuple):
    skipped_bytes: int
    deleted_file_count: int


def _read_ancestors(
    files: Sequence[SessionFile], facts: LineageFacts, max_read_bytes: int
) -> _UnreadParts:
    """Read the files of ancestors.

    Return the number of skipped bytes and the number of deleted files.
    """
    skipped_bytes = deleted_count = 0
    for file in files:
        try:
            skipped_bytes += _read_file_and_count_skipped_bytes(file, facts, max_read_bytes)
        except SessionNotFound:
            deleted_count += 1
    return _UnreadParts(skipped_bytes, deleted_count)


class _FilesToRead(NamedTuple):
    """The files to read, oldest first, and the number of ancestors that are not read.

    If the first file is a fresh child, ``ancestor_digest`` is the digest of its ancestors that is
    stored in this file. Otherwise, ``ancestor_digest`` is None.
    """

    files: list[SessionFile]
    ancestor_digest: Digest | None
    omitted_ancestor_count: int


def _find_files_to_read(session: Session) -> _FilesToRead:
    """Return the files from which the digest of a session is built."""
    files: list[SessionFile] = [session]
    remaining_bytes = MAX_ANCESTOR_BYTES
    if subagent_name(session.path):
        # A sub-agent only knows its own prompt and not the session's conversation.
        return _FilesToRead(files, None, 0)
    if ancestor_digest := read_digest(session.file):
        return _FilesToRead(files, ancestor_digest, 0)
    ancestors = [ancestor for ancestor in session.lineage[:-1] if ancestor.status != MISSING_STATUS]
    while ancestors:
        ancestor = ancestors.pop()
        remaining_bytes -= ancestor.size
        if remaining_bytes < 0:
            return _FilesToRead(files[::-1], None, len(ancestors) + 1)
        if (path := session.lineage_finder.find_transcript(ancestor)) is None:
            continue
        files.append(SessionFile(ancestor.session_id, path, 0, ancestor.size))
        if ancestor_digest := read_digest(path):
            break
    return _FilesToRead(files[::-1], ancestor_digest, 0)


def _read_file_and_count_skipped_bytes(
    file: SessionFile, facts: LineageFacts, max_read_bytes: int, first_line: int = 0
) -> int:
    """Read a file, starting at the line ``first_line``.

    Return the number of bytes that were skipped because the file is too large.
    """
    try:
        with open_transcript(file.file, BUFFER_BYTES) as stream:
            skipped_bytes = os.fstat(stream.fileno()).st_size - max_read_bytes
            if first_line or skipped_bytes <= SESSION_START_BYTES:
                line_number = _process_lines(
                    islice(stream, first_line, None), first_line, file.session_id, facts
                )
                facts.read_extent = ReadExtent(stream.tell(), line_number)
                return 0
            _process_lines(iter(stream.readlines(SESSION_START_BYTES)), 0, file.session_id, facts)
            if stream.tell() < skipped_bytes:
                stream.seek(skipped_bytes - 1)
                stream.readline()  # Skip the rest of the line in which the skipped part ends.
            offset = stream.tell()
            line_number = LineNumbers(offset).find_line_number(stream, offset)
            stream.seek(offset)
            line_number = _process_lines(stream, line_number, file.session_id, facts)
            facts.read_extent = ReadExtent(stream.tell(), line_number)
            return skipped_bytes - SESSION_START_BYTES
    finally:
        facts.finish_session_file(file.session_id)


def _process_lines(
    lines: Iterator[bytes], first_line: int, session_id: str, facts: LineageFacts
) -> int:
    """Process the records in ``lines``. ``first_line`` is the number of the first of these lines.

    Return the number that the next line would have.
    """
    line_number = first_line - 1
    # Do not create an object for each line, because that would increase the total time by a tenth.
    for line_number, raw in enumerate(lines, first_line):
        prescan = prescan_line(raw)
        if prescan is not None and facts.process_prescan(prescan, session_id, line_number):
            continue
        if _PRIVATE_KEY_MARKER in raw:
            raw = redact_line(raw)[0]  # noqa: PLW2901 - rare, and nothing else needs the line as it was
        record = parse_record(raw if line_number else raw.removeprefix(BOM))
        if not line_number and raw.startswith(_IMPORTED_SESSION_PREFIX):
            facts.mark_file_imported(
                clock.normalize_timestamp(
                    get_mapping(record or {}, IMPORT_FIELD).get("imported_at")
                )
            )
        if record is not None:
            facts.process_record(record, session_id, line_number)
    return line_number + 1


class SubagentChanges(NamedTuple):
    """The files that sub-agents changed, and how many of the sub-agents' transcripts were found.

    ``transcript_count`` is the number of transcripts that were found. ``unread_transcript_count``
    is the number of transcripts that were too large or unreadable.
    """

    changes: list[FileChange]
    transcript_count: int
    unread_transcript_count: int


def _collect_subagent_changes(files: Sequence[SessionFile], facts: LineageFacts) -> SubagentChanges:
    """Return the files that sub-agents changed.

    Each sub-agent has its own transcript. Only old clients wrote a sub-agent's records into the
    session's file. If a child contains a copy of a sub-agent's transcript, only one of the copies
    is read.
    """
    changes: list[FileChange] = []
    unread_count, known_names = 0, set[str]()
    if facts.sidechain_facts is not None:
        changes += _list_agent_changes(facts.sidechain_facts)
        known_names.add("")
    for file in files:
        agents = [agent for agent in _find_subagents(file, facts) if agent.name not in known_names]
        known_names |= {agent.name for agent in agents}
        remaining_bytes = MAX_SUBAGENT_BYTES
        for agent in sorted(agents, key=lambda agent: -_find_end_order_of_agent(agent, facts)):
            try:
                remaining_bytes -= os.path.getsize(agent.path)
                if remaining_bytes >= 0:
                    changes += _read_agent_changes(agent, _find_end_order_of_agent(agent, facts))
                else:
                    unread_count += 1
            except OSError:
                unread_count += 1
    return SubagentChanges(changes, len(known_names), unread_count)


def _find_subagents(file: SessionFile, facts: LineageFacts) -> Iterator[Subagent]:
    """Yield the sub-agents of a session.

    A sub-agent's transcript is either in the session's own folder or next to the session's file. A
    transcript next to the file belongs to the session only if the session contains the sub-agent's
    result.
    """
    own_subagents = list(subagents_in_folder(os.path.splitext(file.path)[0], file.session_id))
    yield from own_subagents
    known_names = {agent.name for agent in own_subagents}
    for agent_id in facts.agent_orders:
        name = f"{SUBAGENT_PREFIX}{os.path.basename(agent_id)}"
        path = os.path.join(os.path.dirname(file.path), f"{name}.jsonl")
        if name not in known_names and os.path.isfile(path) and not os.path.islink(path):
            yield Subagent(file.session_id, name, path)


def _find_end_order_of_agent(agent: Subagent, facts: LineageFacts) -> int:
    """Return the sequence number of the record with which a sub-agent ended, or 0 if it is unknown."""
    return facts.agent_orders.get(agent.name.removeprefix(SUBAGENT_PREFIX), 0)


def _read_agent_changes(agent: Subagent, agent_order: int) -> list[FileChange]:
    facts = LineageFacts(is_sidechain=True)
    with open(agent.path, "rb", buffering=BUFFER_BYTES) as stream:
        _process_lines(stream, 0, f"{agent.session_id}/{agent.name}", facts)
    changes = _list_agent_changes(facts)
    return [
        change._replace(position=change.position._replace(order=agent_order)) for change in changes
    ]


def _list_agent_changes(facts: LineageFacts) -> list[FileChange]:
    """Return the files that sub-agents changed with tools or commands and did not remove later."""
    changes = list(facts.changes)
    removals: list[tuple[str, int]] = []
    for run in facts.runs:
        if run.has_failed:
            continue
        for path, is_gone in shell.find_changed_paths(parse_simple_commands(run.command)):
            change = FileChange(path, run.folder, run.position)
            if is_gone:
                removals.append((_make_absolute_path(change), run.position.order))
            else:
                changes.append(change)
    return [change for change in changes if not _was_removed_later(change, removals)]


def _was_removed_later(change: FileChange, removals: Sequence[tuple[str, int]]) -> bool:
    """Check whether a later command removed the changed file, or a folder that contains it."""
    path = f"{_make_absolute_path(change)}/"
    return any(
        order > change.position.order and path.startswith(f"{removed_path}/")
        for removed_path, order in removals
    )


def _make_absolute_path(change: FileChange) -> str:
    return posixpath.normpath(posixpath.join(change.folder, change.path))
