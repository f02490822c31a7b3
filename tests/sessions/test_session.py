"""A session is opened once for all that is read of it, and tells when its file changed since."""

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
    """A session of three turns."""
    path = write_session(config_home.project(), SESSION, conversation(3))
    return Session.from_file(session_file(str(path)), config_home.where)


def test_cached_facts_match_the_file(session: Session) -> None:
    """Each fact equals the result of a separate reading."""
    assert session == session_file(session.path)
    assert session.title == HeadTail(session.path).title
    assert list(session.lineage) == LineageFinder(session.where).find_lineage(session.path)
    context, _ = measure_chain(session.path, scan_transcript(session.path).chain)
    assert session.context == context._replace(window_known=True)


def test_a_loaded_session_stays_itself(session: Session) -> None:
    """Whoever is given one reads nothing again; one that differs is a file that nobody read."""
    assert Session.from_file(session, session.where) is session
    assert session.ends is session.ends
    assert not isinstance(session._replace(session_id="other"), Session)


def test_it_shows_when_its_file_changed(session: Session) -> None:
    """A line more, or no file, and it is not as it was read."""
    told = [session.is_unchanged]
    with open(session.path, "ab") as stream:
        stream.write(b"{}\n")
    told.append(session.is_unchanged)
    os.unlink(session.path)
    told.append(session.is_unchanged)
    assert told == [True, False, False]


def test_all_who_read_see_one_file(session: Session) -> None:
    """Also where another file took its name, or none has it."""
    before = HeadTail(session.file).head
    os.unlink(session.path)
    assert HeadTail(session.file).head == before


def test_two_who_read_at_once_do_not_disturb_each_other(session: Session) -> None:
    """The second one opens the file for itself."""
    with open_transcript(session.file) as first:
        line = first.readline()
        with open_transcript(session.file) as second:
            assert second.readline() == line
        assert first.readline() != line


def test_a_missing_file_is_reported_once_it_is_read(session: Session) -> None:
    """With the message that any reading of it gives."""
    os.unlink(session.path)
    with (
        pytest.raises(SessionNotFound, match="can't be read"),
        open_transcript(SharedFile(session.path)),
    ):
        pass
