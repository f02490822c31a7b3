"""A digest out of a session and its ancestors: the whole history counts, the latest weighs most.

Ancestors are read oldest first, within a budget. A fresh child of ours holds the digest of all before it: farther
back nothing is read.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

from resume_hooks.digest import kept
from resume_hooks.digest.entries import SECTIONS, Digest, Entry
from resume_hooks.digest.repository import Question
from resume_hooks.digest.sections import fitted, sections_of
from resume_hooks.digest.skim import skim
from resume_hooks.digest.story import Story
from resume_hooks.errors import SessionNotFound
from resume_hooks.glance import Glance
from resume_hooks.home import home_folder
from resume_hooks.lineage import Family
from resume_hooks.lines import BOM
from resume_hooks.records import parse
from resume_hooks.rewrite import BUFFER
from resume_hooks.store import SessionFile

BUDGET = 100_000_000
"""Bytes of ancestors that are read beside the session itself."""

REACH = 200_000_000
"""Bytes at the end of a session that are read: somewhat more than a second. Of a larger one, the beginning too."""

OPENING = 2_000_000
"""Bytes of that beginning."""

_OWN = frozenset({"goal", "todos", "last", "questions", "errors", "plan"})
"""Sections in which what the latest session says replaces what its ancestors said, where it says anything."""


class Source(NamedTuple):
    """A file to be read, and the id that references to it name."""

    session_id: str
    path: str


def digest_of(session: SessionFile, environ: Mapping[str, str]) -> Digest:
    """The digest of a session. SessionNotFound where it can't be read."""
    glance = Glance(session.path)
    folder = home_folder(glance)
    question = Question(folder, glance.created, environ)
    sources, before, unread = _sources(session, environ)
    with _without_collecting():
        story = Story()
        passed = sum(_read(source, story) for source in sources)
        git = question.answer()
        own = sections_of(story, folder, git)
    sections, omitted = fitted(_with_older(own, before) if before else own)
    return Digest(sections, omitted, git.line, unread + (before.unread if before else 0), passed)


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


def _sources(session: SessionFile, environ: Mapping[str, str]) -> tuple[list[Source], Digest | None, int]:
    """The files to read, oldest first; the digest of what came before them; how many were left out."""
    own = Source(session.session_id, session.path)
    if before := digest_at(session.path):
        return [own], before, 0
    found, room = [own], BUDGET
    rows = [row for row in Family(environ).lineage(session.path)[:-1] if row.status == "present"]
    while rows:
        row = rows.pop()
        room -= row.size
        if room < 0:
            return found[::-1], None, len(rows) + 1
        found.append(Source(row.session_id, row.session_file))
        if before := digest_at(row.session_file):
            return found[::-1], before, 0
    return found[::-1], None, 0


def digest_at(path: str) -> Digest | None:
    """The digest that a fresh child of ours was given; None for any other session."""
    records = Glance(path).first_records[:8]
    return next((found for record in records if (found := kept.digest_in(record))), None)


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
        story.end_file()


def _take_in(lines: Iterator[bytes], first: int, source: Source, story: Story) -> int:
    """Take in lines, the first of which has that number; returns the number after the last."""
    number = first - 1
    for number, raw in enumerate(lines, first):  # a value for each line would cost a tenth of the whole
        answer = skim(raw)
        if answer is not None and story.take_answer(answer, source.session_id, number):
            continue
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


def _with_older(own: Mapping[str, tuple[Entry, ...]], before: Digest) -> dict[str, tuple[Entry, ...]]:
    """The session's own entries first, then what its ancestors left that still counts."""
    merged = {}
    for name in SECTIONS:
        mine = own.get(name, ())
        known = {entry.text for entry in mine}
        older = () if mine and name in _OWN - {"goal"} else before.of(name)
        merged[name] = (*mine, *(entry for entry in older if entry.text not in known))
    return merged
