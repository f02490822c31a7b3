"""Messages are searched while the user types: the last words are answered, and nobody waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from resume_hooks.cli.picker import chooser_threads
from resume_hooks.cli.picker.chooser_threads import ContentSearch, SearchAnswer, SearchRequest
from resume_hooks.hooks.session_list.state import MAX_READ_RECORDS as FEWER
from resume_hooks.hooks.session_list.state import TurnHit
from resume_hooks.search.hits import MAX_READ_RECORDS
from resume_hooks.search.index import read_transcript
from resume_hooks.search.index.connect import opened_index
from resume_hooks.search.index.database import index_file
from resume_hooks.search.query import parse_query
from resume_hooks.search.run_search import Searcher, search_index
from resume_hooks.search.scope import Scope
from tests.builders import CWD, ConfigHome, session_id
from tests.search.asking import talk

ELSEWHERE = "/home/me/elsewhere"


class Talk:
    """Contents that are looked through, and what they answered."""

    def __init__(self, home: ConfigHome) -> None:
        self.answers: list[SearchAnswer] = []
        self.ended = threading.Event()
        self.contents = ContentSearch(CWD, home.where, self._told)

    def _told(self, answer: SearchAnswer | None) -> None:
        if answer is None:
            self.ended.set()
        else:
            self.answers.append(answer)

    def asked(self, text: str, *, everywhere: bool = False) -> SearchAnswer:
        """The answer to some words."""
        asked = SearchRequest(text, everywhere)
        self.contents.request_search(asked)
        wait(lambda: any(answer.request == asked for answer in self.answers))
        return next(answer for answer in self.answers if answer.request == asked)


def wait(holds: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@contextmanager
def looked_through(home: ConfigHome) -> Iterator[Talk]:
    """Search the messages of a home until the block ends."""
    talk = Talk(home)
    talk.contents.start()
    try:
        yield talk
    finally:
        talk.contents.stop()
        assert talk.ended.wait(20)


@pytest.fixture
def said(config_home: ConfigHome) -> ConfigHome:
    """Two sessions of a project, one of another."""
    talk(config_home, 1, "why does the pool leak?", "the linter is slow")
    talk(config_home, 2, "tune the linter, please", "done")
    talk(config_home, 3, "the linter of another project", cwd=ELSEWHERE)
    return config_home


def test_turns_in_the_chooser(said: ConfigHome) -> None:
    """They are in the project or in all projects, the same as those of any search, in the same order."""
    with looked_through(said) as talk:
        here = talk.asked("linter")
        assert {one.sessions for one in here.hits} == {(session_id(1),), (session_id(2),)}
        everywhere = talk.asked("linter", everywhere=True)
        assert [one.sessions[0] for one in everywhere.hits] == [
            hit.session_id for hit in search_index(["linter"], Scope(), said.where).hits
        ]
        (one,) = talk.asked("pool leak").hits
        assert one.snippet[one.position :].startswith("pool leak")
        assert one.description.startswith("you · turn 1 · 20")
        assert one.strength in {"strong", "fair", "weak"}
        assert here.unindexed_files == 0


@pytest.mark.parametrize("text", ["", " ", "l", "..", '"', "-linter", "xqzvwkq"])
def test_an_incomplete_question(said: ConfigHome, text: str) -> None:
    """It finds nothing; the next words are searched."""
    with looked_through(said) as talk:
        assert talk.asked(text).hits == []
        assert talk.asked("linter").hits


def test_only_the_last_words_are_searched(
    said: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that were typed while others were searched, or in one breath, are skipped."""
    looking, go_on = threading.Event(), threading.Event()
    texts: list[str] = []

    def slow(_searcher: Searcher, text: str) -> list[TurnHit]:
        texts.append(text)
        looking.set()
        go_on.wait(20)
        return []

    monkeypatch.setattr(chooser_threads, "find_turns_with_words", slow)
    with looked_through(said) as talk:
        talk.contents.request_search(SearchRequest("first", in_all_projects=False))
        looking.wait(20)
        for letter in "abcd":
            talk.contents.request_search(SearchRequest(letter, in_all_projects=False))
        go_on.set()
        wait(lambda: len(talk.answers) == 2)
    assert texts == ["first", "d"]


def test_leaving_ends_it(said: ConfigHome) -> None:
    """This holds before it starts and while it waits; later requests are not answered."""
    never = Talk(said)
    never.contents.stop()
    with looked_through(said) as talk:
        talk.asked("linter")
    begun = time.monotonic()
    talk.contents.request_search(SearchRequest("pool", in_all_projects=False))
    talk.contents.stop()
    assert time.monotonic() - begun < 5
    assert talk.contents.has_ended
    assert len(talk.answers) == 1


def test_leaving_ends_an_update(said: ConfigHome) -> None:
    """It is not waited for: the next search reads the rest."""
    talk = Talk(said)
    talk.contents._is_stopped = True
    talk.contents.start()
    assert talk.ended.wait(20)
    with opened_index(said.where, max_seconds=-1) as index:
        assert index.db.execute("SELECT count(*) FROM files WHERE end > 0").fetchone()[0] < 3


def test_an_index_that_is_not_complete(said: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of unsearched files is shown."""
    monkeypatch.setattr(chooser_threads, "UPDATE_SECONDS", -1.0)
    with looked_through(said) as talk:
        assert talk.asked("linter", everywhere=True).unindexed_files == 2


def test_a_damaged_index_is_rebuilt(said: ConfigHome) -> None:
    """While the chooser is there."""
    with opened_index(said.where):
        pass
    with open(index_file(said.where), "r+b") as stream:
        stream.write(b"no index at all")
    with looked_through(said) as talk:
        assert talk.asked("linter").hits


def test_an_index_that_can_not_be_kept(said: ConfigHome) -> None:
    """One in memory does for the chooser's life."""
    (said.config / "resume-hooks").write_text("in the way")
    with looked_through(said) as talk:
        assert talk.asked("linter").hits


def test_a_search_in_a_thread_forks_nothing(
    said: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is forked next to other threads may wait for ever."""
    monkeypatch.setattr(read_transcript, "MIN_PARALLEL_BYTES", 1)
    monkeypatch.setattr(read_transcript, "_cpu_count", lambda: 4)
    monkeypatch.setattr(read_transcript, "_Worker", None)
    with looked_through(said) as talk:
        assert talk.asked("linter").hits


def test_a_phrase_costs_little(said: ConfigHome) -> None:
    """Only a few of many possible records are read for a key."""
    for number in range(10, 15):
        talk(said, number, *[f"exit the code {place}" for place in range(60)])
    with opened_index(said.where) as index:
        searcher = Searcher(index, Scope(), said.where)
        query = parse_query(['"exit code"'])
        assert FEWER < MAX_READ_RECORDS
        assert searcher.search([query], 20, max_reads=FEWER).more
        assert not searcher.search([query], 20).more
