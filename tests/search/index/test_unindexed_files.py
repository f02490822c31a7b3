"""Tests of searches in files that are not indexed yet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from resume_hooks.search.index import connect, unindexed_files
from resume_hooks.search.index.connect import index_status
from resume_hooks.search.index.unindexed_files import FileWords, RawWordSearch, relevance_by_file
from resume_hooks.search.query import parse_query
from resume_hooks.search.result import NO_SESSIONS_MESSAGE, SearchResult
from resume_hooks.search.result_text import result_text
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import Scope
from tests.builders import ConfigHome, conversation, session_id, write_session
from tests.e2e.harness.processes import wait_until
from tests.needs import corpus
from tests.search.index.probe import prompt_with_id, read_index, write_session_file

INDEXED_TEXTS = (
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
SEARCHED_WORDS = (
    "deploy", "x2", "cm2", "abcdef", "ghij",
    "connection", "POOL", "hop", "hope", "die", "happy", "happiest", "retry", "überprüfung", "uberprufung", "GRÖSSE",
    "fehl", "ca", "naive", "facade", "istanbul", "lodz", "user", "getUserName", "getusername", "snake_case_thing",
    "snake", "httpserver2", "lexer", "parser/lexer.py", "dry-run", "проверка", "подключения", "日本語", "検索",
    "한국어", "ελληνικά", "full", "wide", "café", "inside", "slashes", "tags", "emoji", "word", "absent", "zzz",
)  # fmt: skip


@pytest.fixture(autouse=True)
def record_other_processes(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Prevent background processes, and return a list with one entry for each process requested.

    Each entry says whether files remained to be indexed.
    """
    asked: list[bool] = []
    monkeypatch.setattr(
        connect,
        "index_in_background",
        lambda index, _where: asked.append(bool(index.update_outcome.remaining_file_count)),
    )
    return asked


def files_with_word(word: str, paths: list[Path]) -> set[str]:
    """Return the names of the files in which the raw search finds a word."""
    words = RawWordSearch([term.forms for term in parse_query([word]).terms])
    return {
        path.name
        for path in paths
        if (found := words.find_words_in_file(str(path))) and found.term_numbers
    }


@pytest.mark.parametrize("is_escaped", [False, True])
def test_the_raw_search_finds_every_indexed_form(config_home: ConfigHome, is_escaped: bool) -> None:
    """A word that the index finds in a file is also found by the raw search of that file.

    The test covers inflections, identifiers, accents and escaped letters.
    """
    paths = []
    for number, text in enumerate(INDEXED_TEXTS, 1):
        path = write_session_file(
            config_home, prompt_with_id(text), session_uuid=session_id(number)
        )
        if is_escaped:
            lines = path.read_text().splitlines()
            path.write_text(
                "".join(f"{json.dumps(json.loads(line), ensure_ascii=True)}\n" for line in lines)
            )
        paths.append(path)
    read_index(config_home)
    for word in SEARCHED_WORDS:
        indexed = {
            Path(hit.file).name
            for hit in search_index([word], Scope(), config_home.where).hits
            if hit.words
        }
        assert indexed <= files_with_word(word, paths), word
    assert files_with_word("absent", paths) == files_with_word("zzz", paths) == set()


def test_the_raw_search_finds_the_words_of_real_prompts() -> None:
    """For each prompt in the corpus, the raw search finds the prompt's words in the prompt's file."""
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


def search_lines_for_sample_words(tmp_path: Path, *texts: str) -> FileWords:
    """Write a file with these lines and search it for the words "redis queue dropped"."""
    path = tmp_path / "one.jsonl"
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    found = RawWordSearch(
        [term.forms for term in parse_query(["redis queue dropped"]).terms]
    ).find_words_in_file(str(path))
    assert found is not None
    return found


def test_the_raw_search_records_words_that_are_together_in_a_line(tmp_path: Path) -> None:
    """The raw search records which words are together in a line, and the lengths of these lines.

    For each combination of words, at most five lengths are kept.
    """
    found = search_lines_for_sample_words(
        tmp_path, "a redis queue", "redis", *(["the queue was dropped"] * 9), "no word"
    )
    assert found.term_numbers == {0, 1, 2}
    assert found.shortest_line_lengths == {
        frozenset({0, 1}): [13],
        frozenset({0}): [5],
        frozenset({1, 2}): [21] * 5,
    }


def test_an_unfinished_last_line_is_searched_case_insensitively(tmp_path: Path) -> None:
    """The raw search finds a word in an unfinished last line, in any letter case."""
    path = tmp_path / "one.jsonl"
    path.write_text("nothing\n\uff52\uff45\uff44\uff49\uff53", encoding="utf-8")
    found = RawWordSearch([term.forms for term in parse_query(["redis"]).terms]).find_words_in_file(
        str(path)
    )
    assert found is not None
    assert found.term_numbers == {0}


def test_lines_are_complete_for_any_chunk_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The raw search finds the same lines, whatever the size of the chunks that it reads.

    A line longer than a chunk is searched in pieces.
    """
    texts = ("a redis queue", "x" * 40, "the queue was dropped", "redis dropped it")
    whole = search_lines_for_sample_words(tmp_path, *texts)
    for size in range(48, 120):
        monkeypatch.setattr(unindexed_files, "CHUNK_BYTES", size)
        assert search_lines_for_sample_words(tmp_path, *texts) == whole
    monkeypatch.setattr(unindexed_files, "CHUNK_BYTES", 7)
    assert search_lines_for_sample_words(tmp_path, *texts).term_numbers == whole.term_numbers


def test_a_file_is_as_relevant_as_its_best_line(tmp_path: Path) -> None:
    """The relevance of a file depends on its best line, and on how close together the words are in it.

    The file as a whole says little, because a large file is likely to contain most of the words.
    """
    apart = search_lines_for_sample_words(
        tmp_path, "redis", "some queue", *["y" * 2_000] * 9, "dropped"
    )
    together = search_lines_for_sample_words(tmp_path, "a redis queue was dropped")
    long = search_lines_for_sample_words(tmp_path, f"a redis queue was {'z' * 3_000_000} dropped")
    worth = relevance_by_file(
        {
            "apart": apart,
            "together": together,
            "long": long,
            "none": search_lines_for_sample_words(tmp_path, "nothing"),
        }
    )
    assert sorted(worth, key=lambda name: -worth[name]) == ["together", "apart", "long", "none"]
    assert worth["none"] == 0


def search_unindexed(
    home: ConfigHome, *words: str, monkeypatch: pytest.MonkeyPatch
) -> SearchResult:
    """Search without any time for indexing."""
    monkeypatch.setattr(connect, "MIN_UNINDEXED_BYTES_FOR_DIRECT_SEARCH", 0)
    monkeypatch.setattr(connect, "MIN_INDEXING_SECONDS", 0.0)
    return search_index(words, Scope(), home.where, max_seconds=0)


def write_four_sessions(home: ConfigHome) -> None:
    """Write four sessions: the third has both "redis" and "queue", and the second only "redis"."""
    texts = ("nothing of it", "the redis thing", "a redis queue was dropped", "something else")
    for number, text in enumerate(texts, 1):
        own = session_id(number)
        write_session(
            home.project(),
            own,
            [*conversation(1, session_id=own), prompt_with_id(text, sessionId=own)],
            mtime=number,
        )


def test_the_file_with_most_words_is_indexed_first(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that has most of the words is indexed first, however old it is.

    Other files with some of the words are reported as provisional sessions.
    """
    write_four_sessions(config_home)
    result = search_unindexed(config_home, "redis", "queue", monkeypatch=monkeypatch)
    assert [hit.session_id for hit in result.hits] == [session_id(3)]
    assert [
        (row.session_id, row.words, row.missing_words) for row in result.provisional_sessions
    ] == [(session_id(2), ("redis",), ("queue",))]
    assert (result.unindexed_file_count, result.is_complete) == (0, False)
    again = search_index(["redis", "queue"], Scope(), config_home.where)
    assert ({hit.session_id for hit in again.hits}, again.is_complete) == (
        {session_id(2), session_id(3)},
        True,
    )


def test_a_search_is_incomplete_if_a_file_could_not_be_read(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, record_other_processes: list[bool]
) -> None:
    """If the raw search read all files and found no word in any of them, the search is complete.

    If a file could not be read, the search is incomplete.
    """
    write_four_sessions(config_home)
    result = search_unindexed(config_home, '"zebra crossing"', monkeypatch=monkeypatch)
    assert (result.hits, result.provisional_sessions, result.is_complete) == ([], [], True)
    assert record_other_processes == [True]
    monkeypatch.setattr(RawWordSearch, "find_words_in_file", lambda *_: None)
    result = search_unindexed(config_home, '"zebra crossing"', monkeypatch=monkeypatch)
    assert (result.unindexed_file_count > 0, result.is_complete) == (True, False)


def test_a_misspelled_word_is_corrected_after_all_files_are_indexed(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While files are not indexed, a search for a misspelled word finds nothing and is incomplete.

    After the files are indexed, the search corrects the word and finds the session.
    """
    write_four_sessions(config_home)
    with monkeypatch.context() as patch:
        patch.setattr(connect, "lock_descriptor", lambda *_: False)
        result = search_index(["quaue"], Scope(), config_home.where, max_seconds=0)
    assert (result.provisional_sessions, result.unindexed_file_count, result.is_complete) == (
        [],
        4,
        False,
    )
    assert "nothing found yet" in result_text(result)
    assert "4 files not indexed yet may contain more: search again in a minute." in result_text(
        result
    )
    assert [hit.session_id for hit in search_index(["quaue"], Scope(), config_home.where).hits] == [
        session_id(3)
    ]


def test_a_search_with_a_locked_index_lists_sessions(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the index is locked, a search lists the sessions that contain the words.

    The result does not claim that nothing matches.
    """
    write_four_sessions(config_home)
    monkeypatch.setattr(connect, "lock_descriptor", lambda *_: False)
    result = search_index(["queue"], Scope(), config_home.where, max_seconds=0)
    assert [row.session_id for row in result.provisional_sessions] == [session_id(3)]
    assert NO_SESSIONS_MESSAGE not in result.notes
    text = result_text(result)
    assert "nothing found yet" in text
    assert "Nothing found in what is indexed." in text
    assert "no match" not in text


def test_the_searching_session_is_not_listed_as_provisional(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session in which a search is started is not listed as provisional.

    The search question in that session would always match.
    """
    write_four_sessions(config_home)
    monkeypatch.setattr(connect, "lock_descriptor", lambda *_: False)
    result = search_index(
        ["queue"], Scope(asking_session_id=session_id(3)), config_home.where, max_seconds=0
    )
    assert (result.provisional_sessions, result.unindexed_file_count > 0, result.is_complete) == (
        [],
        True,
        False,
    )


def test_only_files_of_the_scope_are_searched(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The raw search skips files of other projects."""
    write_four_sessions(config_home)
    monkeypatch.setattr(connect, "MIN_INDEXING_SECONDS", 0.0)
    scope = Scope(folders=("/another/place",), root_folders=("/another/place",))
    result = search_index(["redis"], scope, config_home.where, max_seconds=0)
    assert (result.hits, result.provisional_sessions, result.unindexed_file_count) == ([], [], 0)


def test_another_process_completes_the_index(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a search runs out of time, a background process completes the index."""
    monkeypatch.undo()
    write_four_sessions(config_home)
    monkeypatch.setattr(connect, "MIN_UNINDEXED_BYTES_FOR_DIRECT_SEARCH", 0)
    monkeypatch.setattr(connect, "MIN_INDEXING_SECONDS", 0.0)
    assert search_index(["redis"], Scope(), config_home.where, max_seconds=0).provisional_sessions
    assert wait_until(lambda: not index_status(config_home.where).outdated_file_count)
