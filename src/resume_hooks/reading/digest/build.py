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
from resume_hooks.reading.digest import record as kept
from resume_hooks.reading.digest.agents import helped
from resume_hooks.reading.digest.collector import Story
from resume_hooks.reading.digest.entries import Digest, without_secrets
from resume_hooks.reading.digest.facts import Change
from resume_hooks.reading.digest.prescan import skim
from resume_hooks.reading.digest.repository import Question
from resume_hooks.reading.digest.sections import fitted, sections_of
from resume_hooks.redaction.json_lines import redact_line
from resume_hooks.sessions.lineage import MISSING, Family
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.storage.atomic import BUFFER
from resume_hooks.transcripts.head_tail import Glance
from resume_hooks.transcripts.lines import BOM
from resume_hooks.transcripts.records import parse

BUDGET = 100_000_000
"""Bytes of ancestors that are read beside the session itself."""

REACH = 200_000_000
"""Bytes at the end of a session that are read: somewhat more than a second. Of a larger one, the beginning too."""

OPENING = 2_000_000
"""Bytes of that beginning."""

_KEY = b"PRIVATE KEY"
"""What stands in the first line of a secret of many lines: it goes before anything is cut into lines or sentences."""


class Source(NamedTuple):
    """A file to be read, and the id that references to it name."""

    session_id: str
    path: str


def digest_of(session: SessionFile, where: Where) -> Digest:
    """The digest of a session, without secrets. SessionNotFound where it can't be read."""
    glance = Glance(session.path)
    folder = home_folder(glance)
    with Question(folder, glance.created, where) as question, _without_collecting():
        sources, before, unread = _sources(session, where)
        story = Story()
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
    found, room = [own], BUDGET
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


def _read(source: Source, story: Story) -> int:
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


def _read_all(sources: Sequence[Source], story: Story) -> tuple[int, int]:
    """Read the sources; returns the bytes that were passed over, and how many ancestors are gone since."""
    lost = 0
    for source in sources[:-1]:
        try:
            _read(source, story)
        except SessionNotFound:
            lost += 1
    return _read(sources[-1], story), lost


def _helped(sources: Sequence[Source], story: Story) -> tuple[list[Change], int]:
    """What sub-agents changed, and how many of them were not read; a copy under a child's id is none of its own."""
    known: set[str] = set()
    found = [helped(source.path, source.session_id, story, known) for source in sources]
    return [change for one in found for change in one.changes], sum(one.unread for one in found)


def _take_in(lines: Iterator[bytes], first: int, source: Source, story: Story) -> int:
    """Take in lines, the first of which has that number; returns the number after the last."""
    number = first - 1
    for number, raw in enumerate(lines, first):  # a value for each line would cost a tenth of the whole
        skimmed = skim(raw)
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
