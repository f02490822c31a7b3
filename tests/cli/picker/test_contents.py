"""Tests of the chooser's message search, which runs in a thread while the user types."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from resume_hooks.cli.picker import chooser_threads
from resume_hooks.cli.picker.chooser_threads import ContentSearch, SearchAnswer, SearchRequest
from resume_hooks.hooks.session_list.state import MAX_READ_RECORDS as CHOOSER_READ_LIMIT
from resume_hooks.hooks.session_list.state import TurnHit
from resume_hooks.search.hits import MAX_READ_RECORDS
from resume_hooks.search.index import read_transcript
from resume_hooks.search.index.connect import open_index
from resume_hooks.search.index.database import index_file_path
from resume_hooks.search.query import parse_query
from resume_hooks.search.run_search import Searcher, search_index
from resume_hooks.search.scope import Scope
from tests.builders import CWD, ConfigHome, session_id
from tests.e2e.harness.processes import wait_until
from tests.search.asking import write_talk

OTHER_PROJECT = "/home/me/elsewhere"


class SearchSession:
    """A running message search that records its answers."""

    def __init__(self, home: ConfigHome) -> None:
        self.answers: list[SearchAnswer] = []
        self.ended = threading.Event()
        self.contents = ContentSearch(CWD, home.where, self._record_answer)

    def _record_answer(self, answer: SearchAnswer | None) -> None:
        if answer is None:
            self.ended.set()
        else:
            self.answers.append(answer)

    def find_answer(self, text: str, *, everywhere: bool = False) -> SearchAnswer:
        """Search for ``text`` and return the answer."""
        asked = SearchRequest(text, everywhere)
        self.contents.request_search(asked)
        assert wait_until(lambda: any(answer.request == asked for answer in self.answers))
        return next(answer for answer in self.answers if answer.request == asked)


@contextmanager
def running_search(home: ConfigHome) -> Iterator[SearchSession]:
    """Run a search of the messages in a home. End it after the ``with`` block."""
    talk = SearchSession(home)
    talk.contents.start_thread()
    try:
        yield talk
    finally:
        talk.contents.end_thread()
        assert talk.ended.wait(20)


@pytest.fixture
def home_with_messages(config_home: ConfigHome) -> ConfigHome:
    """Write two sessions in one project and one session in another project."""
    write_talk(config_home, 1, "why does the pool leak?", "the linter is slow")
    write_talk(config_home, 2, "tune the linter, please", "done")
    write_talk(config_home, 3, "the linter of another project", cwd=OTHER_PROJECT)
    return config_home


def test_the_chooser_finds_the_turns_of_a_search(home_with_messages: ConfigHome) -> None:
    """A query finds turns of the project, or of all projects, in the same order as ``search``."""
    with running_search(home_with_messages) as talk:
        here = talk.find_answer("linter")
        assert {one.session_ids for one in here.hits} == {(session_id(1),), (session_id(2),)}
        everywhere = talk.find_answer("linter", everywhere=True)
        assert [one.session_ids[0] for one in everywhere.hits] == [
            hit.session_id
            for hit in search_index(["linter"], Scope(), home_with_messages.where).hits
        ]
        (one,) = talk.find_answer("pool leak").hits
        assert one.snippet[one.match_position :].startswith("pool leak")
        assert one.description.startswith("you · turn 1 · 20")
        assert one.strength in {"strong", "fair", "weak"}
        assert here.unindexed_file_count == 0


@pytest.mark.parametrize("text", ["", " ", "l", "..", '"', "-linter", "xqzvwkq"])
def test_an_incomplete_query_finds_nothing(home_with_messages: ConfigHome, text: str) -> None:
    """A query without a complete word has no hits. The search still answers the next query."""
    with running_search(home_with_messages) as talk:
        assert talk.find_answer(text).hits == []
        assert talk.find_answer("linter").hits


def test_only_the_latest_query_is_searched(
    home_with_messages: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the user types several queries during a search, only the newest of them is searched next."""
    looking, go_on = threading.Event(), threading.Event()
    texts: list[str] = []

    def search_slowly(_searcher: Searcher, text: str) -> list[TurnHit]:
        texts.append(text)
        looking.set()
        go_on.wait(20)
        return []

    monkeypatch.setattr(chooser_threads, "find_turns_with_words", search_slowly)
    with running_search(home_with_messages) as talk:
        talk.contents.request_search(SearchRequest("first", covers_all_projects=False))
        looking.wait(20)
        for letter in "abcd":
            talk.contents.request_search(SearchRequest(letter, covers_all_projects=False))
        go_on.set()
        assert wait_until(lambda: len(talk.answers) == 2)
    assert texts == ["first", "d"]


def test_stopping_ends_the_search_thread(home_with_messages: ConfigHome) -> None:
    """``end_thread`` ends a search thread that is waiting.

    If no thread has started yet, none can start later. Later queries get no answer.
    """
    never = SearchSession(home_with_messages)
    never.contents.end_thread()
    with running_search(home_with_messages) as talk:
        talk.find_answer("linter")
    begun = time.monotonic()
    talk.contents.request_search(SearchRequest("pool", covers_all_projects=False))
    talk.contents.end_thread()
    assert time.monotonic() - begun < 5
    assert talk.contents.has_ended
    assert len(talk.answers) == 1


def test_stopping_ends_an_index_update(home_with_messages: ConfigHome) -> None:
    """A thread that is stopped while it updates the index ends before all files are indexed."""
    talk = SearchSession(home_with_messages)
    talk.contents._is_stopped = True
    talk.contents.start_thread()
    assert talk.ended.wait(20)
    with open_index(home_with_messages.where, max_seconds=-1) as index:
        assert index.db.execute("SELECT count(*) FROM files WHERE end > 0").fetchone()[0] < 3


def test_an_answer_has_the_number_of_unindexed_files(
    home_with_messages: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer contains the number of files that are not indexed yet.

    Without time for an update, only one of the three files is indexed.
    """
    monkeypatch.setattr(chooser_threads, "MAX_INDEX_UPDATE_SECONDS", -1.0)
    with running_search(home_with_messages) as talk:
        assert talk.find_answer("linter", everywhere=True).unindexed_file_count == 2


def test_the_chooser_rebuilds_a_damaged_index(home_with_messages: ConfigHome) -> None:
    """If the index was damaged, the chooser rebuilds it and finds the same hits."""
    with open_index(home_with_messages.where):
        pass
    with open(index_file_path(home_with_messages.where), "r+b") as stream:
        stream.write(b"no index at all")
    with running_search(home_with_messages) as talk:
        assert talk.find_answer("linter").hits


def test_the_chooser_searches_without_a_stored_index(home_with_messages: ConfigHome) -> None:
    """If the index cannot be written, the chooser keeps one in memory."""
    (home_with_messages.config / "resume-hooks").write_text("in the way")
    with running_search(home_with_messages) as talk:
        assert talk.find_answer("linter").hits


def test_a_search_in_a_thread_starts_no_process(
    home_with_messages: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search updates the index without starting a process, because a fork made in a thread may hang."""
    monkeypatch.setattr(read_transcript, "MIN_PARALLEL_BYTES", 1)
    monkeypatch.setattr(read_transcript, "_cpu_count", lambda: 4)
    monkeypatch.setattr(read_transcript, "_Worker", None)
    with running_search(home_with_messages) as talk:
        assert talk.find_answer("linter").hits


def test_a_search_for_a_phrase_reads_few_records(home_with_messages: ConfigHome) -> None:
    """While the user is typing a phrase, each search reads only a few of the candidate records."""
    for number in range(10, 15):
        write_talk(home_with_messages, number, *[f"exit the code {place}" for place in range(60)])
    with open_index(home_with_messages.where) as index:
        searcher = Searcher(index, Scope(), home_with_messages.where)
        query = parse_query(['"exit code"'])
        assert CHOOSER_READ_LIMIT < MAX_READ_RECORDS
        assert searcher.search([query], 20, max_reads=CHOOSER_READ_LIMIT).has_more
        assert not searcher.search([query], 20).has_more
