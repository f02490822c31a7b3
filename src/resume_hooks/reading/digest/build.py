"""A digest out of a session and its ancestors: the whole history counts, the latest weighs most.

Ancestors are read oldest first, within a budget. A fresh child of ours holds the digest of all before it: farther
back nothing is read.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import Where
from resume_hooks.reading.digest import entries as kept
from resume_hooks.reading.digest import shell_writes
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import Digest, without_secrets
from resume_hooks.reading.digest.facts import FileChange
from resume_hooks.reading.digest.prescan import prescan
from resume_hooks.reading.digest.repository import GitQuery
from resume_hooks.reading.digest.sections import fitted, sections_of
from resume_hooks.reading.digest.shell import simple_commands
from resume_hooks.redaction.json_lines import redact_line
from resume_hooks.sessions.lineage import MISSING, Family
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.sessions.transcript_files import PREFIX, Subagent, subagents_in
from resume_hooks.storage.atomic import BUFFER
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import BOM
from resume_hooks.transcripts.records import parse

ANCESTOR_BUDGET = 100_000_000  # bytes of ancestors that are read beside the session itself

REACH = 200_000_000
"""Bytes at the end of a session that are read: somewhat more than a second. Of a larger one, the beginning too."""

OPENING = 2_000_000  # bytes of that beginning

_KEY = b"PRIVATE KEY"
"""What stands in the first line of a secret of many lines: it goes before anything is cut into lines or sentences."""

SUBAGENT_BUDGET = 20_000_000  # bytes of sub-agents that are read, those that ended last first


class Source(NamedTuple):
    """A file to be read, and the id that references to it name."""

    session_id: str
    path: str


def digest_of(session: SessionFile, where: Where) -> Digest:
    """The digest of a session, without secrets. SessionNotFound where it can't be read."""
    glance = HeadTail(session.path)
    folder = home_folder(glance)
    with GitQuery(folder, glance.created, where) as question, _without_collecting():
        sources, before, unread = _sources(session, where)
        story = LineageFacts()
        passed, lost = _read_all(sources, story)
        changes, unseen = _helped(sources, story)
        git = question.answer()
        found = sections_of(story, folder, git, changes, before)
    sections, omitted = fitted(found)
    unread += lost + unseen + (before.unread if before else 0)
    return Digest(without_secrets(sections), omitted, git.line, unread, passed)


@contextmanager
def _without_collecting() -> Iterator[None]:
    """Thousands of short-lived trees without cycles: collecting them costs a third of the time."""
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()


def _sources(session: SessionFile, where: Where) -> tuple[list[Source], Digest | None, int]:
    """The files to read, oldest first; the digest of what came before them; how many were left out."""
    own = Source(session.session_id, session.path)
    if before := kept.digest_at(session.path):
        return [own], before, 0
    found, room = [own], ANCESTOR_BUDGET
    family = Family(where)
    rows = [row for row in family.lineage(session.path)[:-1] if row.status != MISSING]
    while rows:
        row = rows.pop()
        room -= row.size
        if room < 0:
            return found[::-1], None, len(rows) + 1
        if (path := family.path_of(row)) is None:
            continue
        found.append(Source(row.session_id, path))
        if before := kept.digest_at(path):
            return found[::-1], before, 0
    return found[::-1], None, 0


def _read(source: Source, story: LineageFacts) -> int:
    """Read a file into the story; returns how many of its bytes were passed over for its size."""
    try:
        with open(source.path, "rb", buffering=BUFFER) as stream:
            skipped = os.fstat(stream.fileno()).st_size - REACH
            if skipped <= OPENING:
                _take_in(stream, 0, source, story)
                return 0
            number = _take_in(iter(stream.readlines(OPENING)), 0, source, story)
            _take_in(stream, number + _lines_until(stream, skipped), source, story)
            return skipped - OPENING
    except OSError as error:
        raise SessionNotFound(f"{source.path} can't be read: {error.strerror}", "Check the path.") from error
    finally:
        story.end_file(source.session_id)


def _read_all(sources: Sequence[Source], story: LineageFacts) -> tuple[int, int]:
    """Read the sources; returns the bytes that were passed over, and how many ancestors are gone since."""
    lost = 0
    for source in sources[:-1]:
        try:
            _read(source, story)
        except SessionNotFound:
            lost += 1
    return _read(sources[-1], story), lost


def _helped(sources: Sequence[Source], story: LineageFacts) -> tuple[list[FileChange], int]:
    """What sub-agents changed, and how many of them were not read; a copy under a child's id is none of its own."""
    known: set[str] = set()
    found = [helped(source.path, source.session_id, story, known) for source in sources]
    return [change for one in found for change in one.changes], sum(one.unread for one in found)


def _take_in(lines: Iterator[bytes], first: int, source: Source, story: LineageFacts) -> int:
    """Take in lines, the first of which has that number; returns the number after the last."""
    number = first - 1
    for number, raw in enumerate(lines, first):  # a value for each line would cost a tenth of the whole
        skimmed = prescan(raw)
        if skimmed is not None and story.take_skimmed(skimmed, source.session_id, number):
            continue
        if _KEY in raw:
            raw = redact_line(raw)[0]  # noqa: PLW2901 - rare, and nothing else needs the line as it was
        record = parse(raw if number else raw.removeprefix(BOM))
        if record is not None:
            story.take(record, source.session_id, number)
    return number + 1


def _lines_until(stream: BinaryIO, offset: int) -> int:
    """Pass over the lines up to the first that begins at ``offset`` or later; returns how many they were."""
    count = 0
    while (room := offset - stream.tell()) > 0 and (piece := stream.read(min(BUFFER, room))):
        count += piece.count(b"\n")
    return count + bool(stream.readline())


class SubagentChanges(NamedTuple):
    """The files that sub-agents changed, and how many of them were not read."""

    changes: tuple[FileChange, ...]
    unread: int


def helped(session_file: str, session_id: str, story: LineageFacts, known: set[str]) -> SubagentChanges:
    """What the sub-agents of a session changed that was read into ``story``; ``known`` are those told of before."""
    room, unread = SUBAGENT_BUDGET, 0
    changes: list[FileChange] = []
    found = [agent for agent in _agents_of(session_file, session_id, story) if agent.name not in known]
    known |= {agent.name for agent in found}
    for agent in sorted(found, key=lambda agent: -_order(agent, story)):
        try:
            room -= os.path.getsize(agent.path)
            if room >= 0:
                changes += _changes(agent, _order(agent, story))
        except OSError:
            unread += 1
        else:
            unread += room < 0
    return SubagentChanges(tuple(changes), unread)


def _agents_of(session_file: str, session_id: str, story: LineageFacts) -> Iterator[Subagent]:
    """Those in the session's own folder, and of those beside it (clients before 2.1) the ones that answered."""
    folder = os.path.dirname(session_file)
    inside = list(subagents_in(os.path.splitext(session_file)[0], session_id))
    yield from inside
    known = {agent.name for agent in inside}
    for agent_id in story.agents:
        name = f"{PREFIX}{os.path.basename(agent_id)}"
        path = os.path.join(folder, f"{name}.jsonl")
        if name not in known and os.path.isfile(path) and not os.path.islink(path):
            yield Subagent(session_id, name, path)


def _order(agent: Subagent, story: LineageFacts) -> int:
    """When a sub-agent ended, among the records of its session; 0 where that was not told."""
    return story.agents.get(agent.name.removeprefix(PREFIX), 0)


def _changes(agent: Subagent, order: int) -> Iterator[FileChange]:
    own = LineageFacts(sidechain=True)
    name = f"{agent.session_id}/{agent.name}"
    with open(agent.path, "rb", buffering=BUFFER) as stream:
        for number, raw in enumerate(stream):
            skimmed = prescan(raw)
            if skimmed is not None and own.take_skimmed(skimmed, name, number):
                continue
            if (record := parse(raw)) is not None:
                own.take(record, name, number)
    for change in own.changes:
        yield change._replace(place=change.place._replace(order=order))
    for run in own.runs:
        for path in () if run.failed else shell_writes.changed_by(simple_commands(run.command)):
            yield FileChange(path, run.folder, run.place._replace(order=order))
