"""Tests of an opened session: all reads use the same file, and later changes are detected."""

from __future__ import annotations

import os

import pytest

from resume_hooks.errors import SessionNotFound
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import session_file
from resume_hooks.transcripts.context_size import measure_chain
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import SharedFile, open_transcript
from resume_hooks.transcripts.transcript import scan_transcript
from tests.builders import SESSION, ConfigHome, conversation, write_session


@pytest.fixture
def session(config_home: ConfigHome) -> Session:
    """Write a session of three turns and open it."""
    path = write_session(config_home.project(), SESSION, conversation(3))
    return Session.from_file(session_file(str(path)), config_home.where)


def test_cached_values_match_the_file(session: Session) -> None:
    """The cached values of a session are equal to the values that a new read returns."""
    assert session == session_file(session.path)
    assert session.title == HeadTail(session.path).title
    assert list(session.lineage) == LineageFinder(session.where).find_lineage(session.path)
    context, _ = measure_chain(session.path, scan_transcript(session.path).chain)
    assert session.context == context._replace(is_window_known=True)


def test_a_loaded_session_is_not_read_again(session: Session) -> None:
    """``from_file`` returns an already opened session unchanged, without reading the file again.

    A copy of the session with a replaced field is not an opened session.
    """
    assert Session.from_file(session, session.where) is session
    assert session.ends is session.ends
    assert not isinstance(session._replace(session_id="other"), Session)


def test_a_session_notices_changes_of_its_file(session: Session) -> None:
    """``is_unchanged`` is false after a line was appended or the file was deleted."""
    told = [session.is_unchanged]
    with open(session.path, "ab") as stream:
        stream.write(b"{}\n")
    told.append(session.is_unchanged)
    os.unlink(session.path)
    told.append(session.is_unchanged)
    assert told == [True, False, False]


def test_all_reads_see_the_same_file(session: Session) -> None:
    """A session reads the file that it opened, even if the file has since been deleted."""
    before = HeadTail(session.file).head
    os.unlink(session.path)
    assert HeadTail(session.file).head == before


def test_parallel_reads_are_independent(session: Session) -> None:
    """Two parallel reads of a session each begin at the start of the file."""
    with open_transcript(session.file) as first:
        line = first.readline()
        with open_transcript(session.file) as second:
            assert second.readline() == line
        assert first.readline() != line


def test_a_missing_file_is_reported_when_it_is_read(session: Session) -> None:
    """If a session's file is missing, ``SessionNotFound`` is raised when the session is read."""
    os.unlink(session.path)
    with (
        pytest.raises(SessionNotFound, match="can't be read"),
        open_transcript(SharedFile(session.path)),
    ):
        pass
