"""Build the digest of a session and its ancestors. It covers the whole history, and the latest part in most detail.

Ancestors are read oldest first, within a budget. A fresh child from our verbs already contains the
digest of its ancestors, so the ancestors before it are not read. Each section keeps as many entries
as fit.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

import orjson

from resume_hooks import clock
from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import Where
from resume_hooks.reading.digest import shell, skills, statements, talk, work
from resume_hooks.reading.digest.collector import LineageFacts, prescan_line
from resume_hooks.reading.digest.commits import standing_commits
from resume_hooks.reading.digest.entries import (
    Digest,
    DigestEntry,
    TalkMessage,
    read_digest,
    secrets_found,
    without_secrets,
)
from resume_hooks.reading.digest.facts import FileChange
from resume_hooks.reading.digest.file_states import NOT_COMMITTED, file_states
from resume_hooks.reading.digest.git_seen import git_seen, removed_folders
from resume_hooks.reading.digest.next_steps import list_next_steps
from resume_hooks.reading.digest.now import list_pending, list_present_state
from resume_hooks.reading.digest.pull_requests import pull_requests
from resume_hooks.reading.digest.repository import GitQuery, RepositoryState
from resume_hooks.reading.digest.reversals import standing_places
from resume_hooks.reading.digest.sections import CHANGED, COMMANDS, OTHERS, SECTIONS, Section
from resume_hooks.reading.digest.shell import simple_commands
from resume_hooks.redaction.json_lines import redact_line
from resume_hooks.sessions.lineage import MISSING
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.sessions.transcript_files import PREFIX, Subagent, subagent_name, subagents_in
from resume_hooks.storage.atomic import BUFFER
from resume_hooks.transcripts.bookkeeping import IMPORTED
from resume_hooks.transcripts.lines import BOM, open_transcript
from resume_hooks.transcripts.records import mapping, parse
from resume_hooks.transcripts.transcript import pause_gc

# the maximum bytes of ancestors that are read in addition to the session
ANCESTOR_BUDGET = 100_000_000
# the maximum bytes of sub-agents that are read; the sub-agents that ended last are read first
SUBAGENT_BUDGET = 20_000_000

REACH = 200_000_000
"""The maximum bytes at the end of a session that are read, which takes a little more than a second.

The start of a larger session is also read.
"""

OPENING = 2_000_000  # the number of bytes at the start that are read

STATES_OF_THEN = ("uncommitted", "staged", NOT_COMMITTED)
"""Notes on a file that may have been committed after the note was made. Older versions write
``uncommitted``."""

FAILED_SINCE = "failed since"  # the note on an ancestor's command that later failed

_KEY = b"PRIVATE KEY"
"""The start of a multi-line secret in its first line. The whole secret is removed before a text is
split into lines or sentences."""


def _join_sections(
    own: Mapping[str, tuple[DigestEntry, ...]],
    before: Digest | None,
    facts: LineageFacts,
    paths: work.Paths,
) -> tuple[Mapping[str, tuple[DigestEntry, ...]], Mapping[str, int]]:
    """Merge a session's sections with those of ``before``.

    Also return the number of entries that ``before`` omitted.
    """
    if before is None:
        return own, {}
    failed = frozenset(
        shell.command_at_home(run.command, paths.folder) for run in facts.runs if run.failed
    )
    merged = dict(own)
    for section in SECTIONS:
        if section.is_current and (
            own[section.name] or section.name != "todos" or facts.open_list.used
        ):
            continue  # older entries describe an earlier state
        known = {entry.text for entry in own[section.name]}
        older = [
            _update_entry(section, entry, paths, failed)
            for entry in before.entries_of(section.name)
        ]
        merged[section.name] = (
            *own[section.name],
            *(entry for entry in older if entry.text not in known),
        )
    merged["constraints"] = _binding_demands(merged["constraints"])
    omitted = {name: before.omitted.get(name, 0) for name in merged if merged[name] != own[name]}
    return merged, {name: count for name, count in omitted.items() if count}


def _update_entry(
    section: Section, entry: DigestEntry, paths: work.Paths, failed: Collection[str]
) -> DigestEntry:
    """Return an entry of an ancestor's digest, updated with the present state of its file or command."""
    notes = [
        note for note in entry.note.split(", ") if note not in {"", *STATES_OF_THEN, FAILED_SINCE}
    ]
    if section is CHANGED and paths.is_dirty(entry.text):
        notes.append(NOT_COMMITTED)
    if section in {COMMANDS, OTHERS} and entry.text in failed:
        notes.append(FAILED_SINCE)
    return entry._replace(note=", ".join(notes))


def _binding_demands(entries: Sequence[DigestEntry]) -> tuple[DigestEntry, ...]:
    """Return the demands, the latest first, without demands that a later one revokes."""
    return tuple(entries[at] for at in standing_places([entry.text for entry in entries]))


def _standing_demands(
    entries: Sequence[DigestEntry], said: Sequence[TalkMessage]
) -> tuple[DigestEntry, ...]:
    """Return the demands that the talk does not mark as revoked.

    Statements that are not demands can also revoke a demand.
    """
    taken_back = [(message.ref, sentence) for message in said for sentence, _ in message.superseded]
    return tuple(
        entry
        for entry in entries
        if not any(ref == entry.ref and sentence in entry.text for ref, sentence in taken_back)
    )


def _make_sections(
    facts: LineageFacts, folder: str, git: RepositoryState, session_id: str, branch: str
) -> dict[str, tuple[DigestEntry, ...]]:
    """Return the sections for the facts.

    Paths are relative to ``folder``. ``session_id`` is the latest session.
    """
    runs = work.list_commands(facts)
    parsed = [(command.run, command.parts) for command in runs]
    removed = list(removed_folders(parsed))
    seen = git_seen(parsed, branch, dict(removed))
    requests = pull_requests(parsed)
    paths = work.Paths(folder, git)
    found = work.touched_files(facts.changes, runs, paths)
    commits = standing_commits(parsed)
    committed_at = max((commit.place.order for commit in commits.commits), default=0)
    states = file_states(work.list_edits(found), work.only_listed(found), parsed, folder, commits)
    states.removed |= work.find_missing_files(found, runs, paths)
    wanted = statements.last_request_words(facts)
    commands = work.working_commands(runs, paths.folder, removed, wanted)
    makers: Mapping[str, Iterable[DigestEntry]] = {
        "now": list_present_state(facts, paths, git, seen, states, session_id, requests),
        "next": list_next_steps(facts),
        "pending": list_pending(facts, session_id),
        "marks": work.entries_of_marks(facts, found, paths),
        "todos": chain(
            statements.entries_of_todos(facts, requests, committed_at),
            work.entries_of_steps(facts, paths),
        ),
        "questions": statements.entries_of_questions(facts),
        "constraints": statements.entries_of_constraints(facts, requests),
        "answers": statements.entries_of_answers(facts),
        "skills": skills.entries_of_skills(facts),
        "changed": work.changed_files(found, paths, states, git.branch or seen.branch, removed),
        "commands": commands.checks,
        "errors": work.open_errors(facts, runs, statements.turns_ago(facts, work.TURNS)),
        "failures": work.replaced_commands(runs),
        "refusals": chain(
            statements.entries_of_refusals(facts, with_words=True),
            statements.entries_of_refusals(facts, with_words=False),
        ),
        "artefacts": work.entries_of_artefacts(facts, commits.commits),
        "others": commands.others,
        "read": work.read_files(facts, paths, found),
    }
    return {name: _entries_once(entries) for name, entries in makers.items()}


def _entries_once(entries: Iterable[DigestEntry]) -> tuple[DigestEntry, ...]:
    """Return the entries without empty and repeated ones."""
    found: dict[str, DigestEntry] = {}
    for entry in entries:
        if entry.text:
            found.setdefault(entry.text, entry)
    return tuple(found.values())


def _stored_sections(
    entries: Mapping[str, tuple[DigestEntry, ...]], omitted: Mapping[str, int]
) -> tuple[dict[str, tuple[DigestEntry, ...]], dict[str, int]]:
    """Return the entries that a child stores, by section, and the number of omitted entries in each section."""
    stored, left = {}, {}
    for section in SECTIONS:
        rows = entries.get(section.name, ())
        count = _count_fitting(rows, section.stored)
        if count:
            stored[section.name] = rows[:count]
        if missing := len(rows) - count + omitted.get(section.name, 0):
            left[section.name] = missing
    return stored, left


def _count_fitting(entries: Iterable[DigestEntry], room: int) -> int:
    count = 0
    for entry in entries:
        room -= _entry_size(entry)
        if room < 0:
            break
        count += 1
    return count


def _entry_size(entry: DigestEntry) -> int:
    return len(orjson.dumps(list(entry))) + 1


_IMPORTED = f'{{"{IMPORTED}":'.encode()
"""The start of an imported session's file."""

UNVERIFIED = DigestEntry(
    "some of this was said in an imported session: nobody verified it, and its USER is not yours"
)


def build_digest(
    session: SessionFile, where: Where, *, reach: int | None = None, since: int = 0
) -> Digest:
    """Return the digest of a session, without secrets. Raises SessionNotFound if the session is unreadable.

    ``reach`` is the number of bytes at the end of each file that are read (default REACH). The
    start of a larger file is also read. ``since`` is the first line of the session that counts. If
    it is given, ancestors are ignored.
    """
    session = Session.of(session, where)
    ends = session.head_tail
    folder = home_folder(ends, where)
    with GitQuery(folder, ends.created, where) as git_query, pause_gc(), secrets_found() as texts:
        if since:
            before, unread = None, 0
            files: list[SessionFile] = [session]
        else:
            files, before, unread = _files_to_read(session)
        facts = LineageFacts()
        passed_over = 0
        for file in files[:-1]:
            try:
                passed_over += _read_file(file, facts, reach or REACH)
            except SessionNotFound:  # the file was deleted in the meantime
                unread += 1
        passed_over += _read_file(files[-1], facts, reach or REACH, since)
        agents = _subagent_changes(files, facts)
        facts.has_unseen_agents = (
            bool(facts.reports) and facts.agents_may_write and not agents.transcripts
        )
        said = talk.collect_talk(facts)
        remarks = talk.count_remarks(facts, said)
        git = git_query.collect_answers()
        facts.changes += agents.changes
        if facts.has_unseen_agents:
            facts.take_reported_changes()
        own = _make_sections(facts, folder, git, files[-1].session_id, ends.branch)
        merged, omitted = _join_sections(own, before, facts, work.Paths(folder, git))
        unread += agents.unread + (before.unread if before else 0)
        if before is not None:
            joined = talk.join_talk(before.talk, said)
            remarks += before.remarks + len(before.talk) + len(said) - len(joined)
            said = joined
        rows = {**merged, "constraints": _standing_demands(merged["constraints"], said)}
        if facts.holds_imported or (before is not None and UNVERIFIED in before.entries_of("now")):
            rows["now"] = (UNVERIFIED, *rows["now"])
        sections, omitted = _stored_sections(rows, omitted)
        digest = Digest(
            sections,
            said,
            omitted,
            git.line,
            unread,
            passed_over,
            remarks,
            read_to=facts.read_to,
        )
        return without_secrets(digest, texts)


def _files_to_read(session: Session) -> tuple[list[SessionFile], Digest | None, int]:
    """Return the files to read, oldest first, the digest of the files before them, and the number of omitted files."""
    files: list[SessionFile] = [session]
    room = ANCESTOR_BUDGET
    if subagent_name(session.path):
        return files, None, 0  # a sub-agent only knows its own prompt
    if before := read_digest(session.file):
        return files, before, 0
    rows = [row for row in session.lineage[:-1] if row.status != MISSING]
    while rows:
        row = rows.pop()
        room -= row.size
        if room < 0:
            return files[::-1], None, len(rows) + 1
        if (path := session.family.path_of(row)) is None:
            continue
        files.append(SessionFile(row.session_id, path, 0, row.size))
        if before := read_digest(path):
            break
    return files[::-1], before, 0


def _read_file(file: SessionFile, facts: LineageFacts, reach: int, since: int = 0) -> int:
    """Read a file from a line on. Return the number of bytes that were skipped because the file is too large."""
    try:
        with open_transcript(file.file, BUFFER) as stream:
            skipped = os.fstat(stream.fileno()).st_size - reach
            if since or skipped <= OPENING:
                number = _process_lines(islice(stream, since, None), since, file.session_id, facts)
                facts.read_to = stream.tell(), number
                return 0
            number = _process_lines(iter(stream.readlines(OPENING)), 0, file.session_id, facts)
            # Read whole lines up to the first line after the skipped part, which is twice as fast
            # as counting line ends.
            while (room := skipped - stream.tell()) > 0 and (
                lines := stream.readlines(min(BUFFER, room))
            ):
                number += len(lines)
            number = _process_lines(stream, number, file.session_id, facts)
            facts.read_to = stream.tell(), number
            return skipped - OPENING
    finally:
        facts.end_file(file.session_id)


def _process_lines(lines: Iterator[bytes], first: int, session_id: str, facts: LineageFacts) -> int:
    """Process lines. ``first`` is the number of the first of them.

    Return the number of the line after the last one.
    """
    number = first - 1
    for number, raw in enumerate(
        lines, first
    ):  # an object for each line would cost a tenth of the total time
        brief = prescan_line(raw)
        if brief is not None and facts.take_prescan(brief, session_id, number):
            continue
        if _KEY in raw:
            raw = redact_line(raw)[0]  # noqa: PLW2901 - rare, and nothing else needs the line as it was
        record = parse(raw if number else raw.removeprefix(BOM))
        if not number and raw.startswith(_IMPORTED):
            facts.begin_imported(
                clock.normalize_timestamp(mapping(record or {}, IMPORTED).get("imported_at"))
            )
        if record is not None:
            facts.take(record, session_id, number)
    return number + 1


class SubagentChanges(NamedTuple):
    """The files that sub-agents changed, the number of available ``transcripts``, and the number of ``unread`` ones."""

    changes: list[FileChange]
    transcripts: int
    unread: int


def _subagent_changes(files: Sequence[SessionFile], facts: LineageFacts) -> SubagentChanges:
    """Return the files that sub-agents changed.

    The sub-agents' work is in files of their own. A copy of such a file under a child's id is not
    read again.
    """
    changes: list[FileChange] = []
    unread, known = 0, set[str]()
    for file in files:
        agents = [agent for agent in _find_subagents(file, facts) if agent.name not in known]
        known |= {agent.name for agent in agents}
        room = SUBAGENT_BUDGET
        for agent in sorted(agents, key=lambda agent: -_agent_order(agent, facts)):
            try:
                room -= os.path.getsize(agent.path)
                changes += (
                    _read_agent_changes(agent, _agent_order(agent, facts)) if room >= 0 else []
                )
                unread += room < 0
            except OSError:
                unread += 1
    return SubagentChanges(changes, len(known), unread)


def _find_subagents(file: SessionFile, facts: LineageFacts) -> Iterator[Subagent]:
    """Yield the sub-agents in the session's own folder, and the sub-agents next to the session that have a result."""
    inside = list(subagents_in(os.path.splitext(file.path)[0], file.session_id))
    yield from inside
    known = {agent.name for agent in inside}
    for agent_id in facts.agents:
        name = f"{PREFIX}{os.path.basename(agent_id)}"
        path = os.path.join(os.path.dirname(file.path), f"{name}.jsonl")
        if name not in known and os.path.isfile(path) and not os.path.islink(path):
            yield Subagent(file.session_id, name, path)


def _agent_order(agent: Subagent, facts: LineageFacts) -> int:
    """Return the position of a sub-agent's end among the records of its session, or 0 if it is unknown."""
    return facts.agents.get(agent.name.removeprefix(PREFIX), 0)


def _read_agent_changes(agent: Subagent, order: int) -> list[FileChange]:
    facts = LineageFacts(sidechain=True)
    with open(agent.path, "rb", buffering=BUFFER) as stream:
        _process_lines(stream, 0, f"{agent.session_id}/{agent.name}", facts)
    named = [
        FileChange(path, run.folder, run.place)
        for run in facts.runs
        for path, _ in (() if run.failed else shell.changes_by(simple_commands(run.command)))
    ]
    return [
        change._replace(place=change.place._replace(order=order))
        for change in (*facts.changes, *named)
    ]
