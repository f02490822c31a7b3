"""Searches of files that are not indexed yet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from resume_hooks.search.index import connect, unindexed_files
from resume_hooks.search.index.connect import index_status
from resume_hooks.search.index.unindexed_files import FileWords, RawWordSearch, relevance_by_file
from resume_hooks.search.query import parse_query
from resume_hooks.search.result import NO_SESSION, SearchResult
from resume_hooks.search.result_text import result_text
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import Scope
from tests.builders import ConfigHome, conversation, session_id, write_session
from tests.e2e.harness.processes import wait_until
from tests.needs import corpus
from tests.search.index.probe import prompt_with_id, put_session, read_index

TEXTS = (
    "The connection pool was hopping, then dying; we hoped for the happiest of retries.",
    "Die Überprüfung der Größe schlug fehl: çà et là, naïve façade, İstanbul, łódź, Ærø.",
    "getUserName and snake_case_thing in HTTPServer2, see src/parser/lexer.py:12 --dry-run",
    "Проверка ПОДКЛЮЧЕНИЯ, 日本語の検索, 한국어, ελληνικά, \uff26\uff55\uff4c\uff4c \uff57\uff49de, cafe\u0301",
    (
        "\U0001d41d\U0001d41e\U0001d429\U0001d425\U0001d428\U0001d432 x\u00b2 \u33a0 a\x1b[1mbc\x1b[0mdef "
        "\x1b]8;;http://x\x07gh\x1b]8;;\x07ij"
    ),
    'quotes "inside" and back\\slashes\nlines\tand/slashes <tags> 😀 emoji👍word',
)
WORDS = (
    "deploy", "x2", "cm2", "abcdef", "ghij",
    "connection", "POOL", "hop", "hope", "die", "happy", "happiest", "retry", "überprüfung", "uberprufung", "GRÖSSE",
    "fehl", "ca", "naive", "facade", "istanbul", "lodz", "user", "getUserName", "getusername", "snake_case_thing",
    "snake", "httpserver2", "lexer", "parser/lexer.py", "dry-run", "проверка", "подключения", "日本語", "検索",
    "한국어", "ελληνικά", "full", "wide", "café", "inside", "slashes", "tags", "emoji", "word", "absent", "zzz",
)  # fmt: skip


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """No other process continues indexing; each time that one would have is noted."""
    asked: list[bool] = []
    monkeypatch.setattr(
        connect,
        "index_in_background",
        lambda index, _where: asked.append(bool(index.outcome.remaining_files)),
    )
    return asked


def files_with_word(word: str, paths: list[Path]) -> set[str]:
    """Return the names of the files in which the search finds a word."""
    words = RawWordSearch([term.forms for term in parse_query([word]).terms])
    return {
        path.name
        for path in paths
        if (found := words.find_words_in_file(str(path))) and found.term_numbers
    }


@pytest.mark.parametrize("escaped", [False, True])
def test_every_indexed_form_is_found(config_home: ConfigHome, escaped: bool) -> None:
    """Capitals, inflections, identifiers, accents and escaped letters match in the same files."""
    paths = []
    for number, text in enumerate(TEXTS, 1):
        path = put_session(config_home, prompt_with_id(text), name=session_id(number))
        if escaped:
            lines = path.read_text().splitlines()
            path.write_text(
                "".join(f"{json.dumps(json.loads(line), ensure_ascii=True)}\n" for line in lines)
            )
        paths.append(path)
    read_index(config_home)
    for word in WORDS:
        indexed = {
            Path(hit.file).name
            for hit in search_index([word], Scope(), config_home.where).hits
            if hit.words
        }
        assert indexed <= files_with_word(word, paths), word
    assert files_with_word("absent", paths) == files_with_word("zzz", paths) == set()


def test_over_the_corpus() -> None:
    """Every word of some prompts is found in the file that has it, whatever the file looks like."""
    paths = sorted(corpus().glob("*/*/*.jsonl"))[:40]
    missed = []
    for path in paths:
        raw = path.read_bytes()
        for line in raw.splitlines()[:30]:
            record = json.loads(line)
            text = record.get("message", {}).get("content", "") if isinstance(record, dict) else ""
            if isinstance(text, str) and text.strip():
                terms = [
                    term
                    for term in parse_query([text[:400].replace('"', " ").replace("-", " ")]).terms
                    if not term.is_phrase
                ]
                got = RawWordSearch([term.forms for term in terms]).find_words_in_file(str(path))
                missed += [
                    (path.name, term.text)
                    for number, term in enumerate(terms)
                    if got is None or number not in got.term_numbers
                ]
    assert missed == []


def lines(tmp_path: Path, *texts: str) -> FileWords:
    """Return the lines of a file that contain any of three words."""
    path = tmp_path / "one.jsonl"
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    found = RawWordSearch(
        [term.forms for term in parse_query(["redis queue dropped"]).terms]
    ).find_words_in_file(str(path))
    assert found is not None
    return found


def test_words_are_found_together_in_a_line(tmp_path: Path) -> None:
    """With the shortest lengths of such lines, at most five; the last line may have no end."""
    found = lines(tmp_path, "a redis queue", "redis", *(["the queue was dropped"] * 9), "no word")
    assert found.term_numbers == {0, 1, 2}
    assert found.lines == {
        frozenset({0, 1}): [13],
        frozenset({0}): [5],
        frozenset({1, 2}): [21] * 5,
    }


def test_a_last_line_without_an_end_is_looked_through_in_other_letters(tmp_path: Path) -> None:
    """A client that was killed leaves one."""
    path = tmp_path / "one.jsonl"
    path.write_text("nothing\n\uff52\uff45\uff44\uff49\uff53", encoding="utf-8")
    found = RawWordSearch([term.forms for term in parse_query(["redis"]).terms]).find_words_in_file(
        str(path)
    )
    assert found is not None
    assert found.term_numbers == {0}


def test_lines_are_whole_wherever_a_file_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few bytes are looked through at a time.

    Of a line longer than that each piece is one.
    """
    texts = ("a redis queue", "x" * 40, "the queue was dropped", "redis dropped it")
    whole = lines(tmp_path, *texts)
    for size in range(48, 120):
        monkeypatch.setattr(unindexed_files, "CHUNK_BYTES", size)
        assert lines(tmp_path, *texts) == whole
    monkeypatch.setattr(unindexed_files, "CHUNK_BYTES", 7)
    assert lines(tmp_path, *texts).term_numbers == whole.term_numbers


def test_a_file_is_as_relevant_as_its_best_line(tmp_path: Path) -> None:
    """The whole file does not count, because a large file contains most words somewhere."""
    apart = lines(tmp_path, "redis", "some queue", *["y" * 2_000] * 9, "dropped")
    together = lines(tmp_path, "a redis queue was dropped")
    long = lines(tmp_path, f"a redis queue was {'z' * 3_000_000} dropped")
    worth = relevance_by_file(
        {"apart": apart, "together": together, "long": long, "none": lines(tmp_path, "nothing")}
    )
    assert sorted(worth, key=lambda name: -worth[name]) == ["together", "apart", "long", "none"]
    assert worth["none"] == 0


def search_unindexed(
    home: ConfigHome, *words: str, monkeypatch: pytest.MonkeyPatch
) -> SearchResult:
    """Search without time for indexing."""
    monkeypatch.setattr(connect, "LARGE_UPDATE_BYTES", 0)
    monkeypatch.setattr(connect, "MIN_INDEX_SECONDS", 0.0)
    return search_index(words, Scope(), home.where, max_seconds=0)


def sessions(home: ConfigHome) -> None:
    """Four, of which the third has all the words, the second one of them."""
    texts = ("nothing of it", "the redis thing", "a redis queue was dropped", "something else")
    for number, text in enumerate(texts, 1):
        own = session_id(number)
        write_session(
            home.project(),
            own,
            [*conversation(1, session_id=own), prompt_with_id(text, sessionId=own)],
            mtime=number,
        )


def test_the_file_with_most_words_is_read_first(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its age does not matter; the other files are judged by their words and indexed by another process."""
    sessions(config_home)
    result = search_unindexed(config_home, "redis", "queue", monkeypatch=monkeypatch)
    assert [hit.session_id for hit in result.hits] == [session_id(3)]
    assert [
        (row.session_id, row.words, row.missing_words) for row in result.provisional_sessions
    ] == [(session_id(2), ("redis",), ("queue",))]
    assert (result.unindexed_count, result.is_complete) == (0, False)
    again = search_index(["redis", "queue"], Scope(), config_home.where)
    assert ({hit.session_id for hit in again.hits}, again.is_complete) == (
        {session_id(2), session_id(3)},
        True,
    )


def test_never_said_is_not_said_too_early(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, alone: list[bool]
) -> None:
    """No file has the words: all was read, index or no index.

    What can't be read is counted.
    """
    sessions(config_home)
    result = search_unindexed(config_home, '"zebra crossing"', monkeypatch=monkeypatch)
    assert (result.hits, result.provisional_sessions, result.is_complete) == ([], [], True)
    assert alone == [True]
    monkeypatch.setattr(RawWordSearch, "find_words_in_file", lambda *_: None)
    result = search_unindexed(config_home, '"zebra crossing"', monkeypatch=monkeypatch)
    assert (result.unindexed_count > 0, result.is_complete) == (True, False)


def test_a_misspelled_word(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files without it as it was typed may hold what was meant, which the index tells once it has them."""
    sessions(config_home)
    with monkeypatch.context() as patch:
        patch.setattr(connect, "lock_descriptor", lambda *_: False)
        result = search_index(["quaue"], Scope(), config_home.where, max_seconds=0)
    assert (result.provisional_sessions, result.unindexed_count, result.is_complete) == (
        [],
        4,
        False,
    )
    assert "nothing found yet" in result_text(result)
    assert "4 files not indexed yet may hold more: search again in a minute." in result_text(result)
    assert [hit.session_id for hit in search_index(["quaue"], Scope(), config_home.where).hits] == [
        session_id(3)
    ]


def test_nothing_is_indexed_yet(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions with the words are named.

    What is said of the index, which another writes, is not said of them.
    """
    sessions(config_home)
    monkeypatch.setattr(connect, "lock_descriptor", lambda *_: False)
    result = search_index(["queue"], Scope(), config_home.where, max_seconds=0)
    assert [row.session_id for row in result.provisional_sessions] == [session_id(3)]
    assert NO_SESSION not in result.notes
    text = result_text(result)
    assert "nothing found yet" in text
    assert "Nothing found in what is indexed." in text
    assert "no match" not in text


def test_the_session_that_asks(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last turn contains the question, so what it holds is counted, not told."""
    sessions(config_home)
    monkeypatch.setattr(connect, "lock_descriptor", lambda *_: False)
    result = search_index(
        ["queue"], Scope(asking_session=session_id(3)), config_home.where, max_seconds=0
    )
    assert (result.provisional_sessions, result.unindexed_count > 0, result.is_complete) == (
        [],
        True,
        False,
    )


def test_another_project_is_not_meant(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only files that the scope may lead to are looked through."""
    sessions(config_home)
    monkeypatch.setattr(connect, "MIN_INDEX_SECONDS", 0.0)
    scope = Scope(folders=("/another/place",), root_folders=("/another/place",))
    result = search_index(["redis"], scope, config_home.where, max_seconds=0)
    assert (result.hits, result.provisional_sessions, result.unindexed_count) == ([], [], 0)


def test_another_process_continues(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends by itself, with everything in the index."""
    monkeypatch.undo()
    sessions(config_home)
    monkeypatch.setattr(connect, "LARGE_UPDATE_BYTES", 0)
    monkeypatch.setattr(connect, "MIN_INDEX_SECONDS", 0.0)
    assert search_index(["redis"], Scope(), config_home.where, max_seconds=0).provisional_sessions
    assert wait_until(lambda: not index_status(config_home.where).outdated_file_count)
