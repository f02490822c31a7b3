# ruff: noqa: RUF001
"""Tests of words in many scripts, and of very long words, lines and binary data.

A word is found in any letter case, with or without accents, and in scripts without spaces. Long
tokens and binary data are not indexed.
"""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from tantivy import Occur, Query

from resume_hooks.search.index.connect import open_index
from resume_hooks.search.index.postings import INDEX_SCHEMA, WORDS_FIELD_NAME
from resume_hooks.search.index.tokenize import (
    MAX_TOKEN_BYTES,
    distinct_words,
    forms_of_word,
    stem_word,
)
from tests.builders import SESSION, ConfigHome, line, session_id
from tests.search.index.probe import add_bytes, prompt_with_id, read_index, write_session_file

SESSION_FILE_NAME = f"{SESSION}.jsonl"


def matches_any_row(home: ConfigHome, word: str) -> bool:
    """Check whether a record in the index contains every form of a typed word."""
    wanted = [stem_word(forms[0]) for forms in forms_of_word(word)]
    query = Query.boolean_query(
        [(Occur.Must, Query.term_query(INDEX_SCHEMA, WORDS_FIELD_NAME, form)) for form in wanted]
    )
    with open_index(home.where) as index:
        return bool(wanted) and bool(index.postings.find_records(query, 1))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("İSTANBUL'da kapalı ışık", "istanbul"),
        ("ISPARTA kapalı ışık", "ışık"),
        ("kapalı", "KAPALI"),
        ("naïve café Straße", "STRASSE"),
        ("naïve café", "CAFE"),
        ("日本語の検索エンジン", "検索"),
        ("データベース接続", "ベース"),
        ("한국어 검색을 한다", "검색"),
        ("ค้นหาข้อความ", "ข้อความ"),
        ("Привет мир", "ПРИВЕТ"),
        ("Ελλάς", "ΕΛΛΑΣ"),
        ("عربي نص", "عربي"),
        ("parseHTTPResponse failed", "HTTP"),
        ("parseHTTPResponse failed", "parsehttpresponse"),
        ("src/my_app/core_loop.py", "core_loop"),
        ("src/my_app/core_loop.py", "loop"),
        ("running the tests", ["ran", "run"][1]),
        ("e\u0301clair", "éclair"),
        ("zero\u200bwidth", "width"),
        ("one\u2028two\u0085three", "two"),
        ("“quoted”—dash…", "quoted"),
        ("🚀launch🚀", "launch"),
    ],
)
def test_a_word_is_found_in_other_spellings(config_home: ConfigHome, text: str, query: str) -> None:
    """A word is found in any letter case, with or without accents, and in scripts without spaces.

    Parts of identifiers such as ``core_loop`` are also found.
    """
    write_session_file(config_home, prompt_with_id(text))
    assert matches_any_row(config_home, query)


@pytest.mark.parametrize(
    "raw", [b"\xef\xbb\xbf", b"\r\n\r\n", b"\x00\x01\xff garbage\n", b"[1,2]\n", b"\n\n  \n"]
)
def test_invalid_lines_are_counted_and_skipped(config_home: ConfigHome, raw: bytes) -> None:
    """Invalid lines are counted so that the next records have the right line, offset and length."""
    path = config_home.project() / SESSION_FILE_NAME
    path.write_bytes(
        raw + line(prompt_with_id("alpha")) + b"\r\n" + line(prompt_with_id("beta")) + b"\r\n"
    )
    holding = read_index(config_home)
    number = raw.count(b"\n")
    assert holding.lines_with_word("alpha") == [(SESSION_FILE_NAME, number)]
    assert holding.lines_with_word("beta") == [(SESSION_FILE_NAME, number + 1)]
    content = path.read_bytes()
    for row in holding.rows:
        place = row.posting
        json.loads(content[place.offset : place.offset + place.byte_length].decode("utf-8-sig"))


@pytest.mark.parametrize("field_name", ["branch", "tool", "path", "text", "title", "id", "time"])
def test_lone_surrogates_and_nulls_are_accepted(config_home: ConfigHome, field_name: str) -> None:
    """A record with lone surrogates or null characters in any field does not stop the indexing.

    SQLite does not accept lone surrogates.
    """
    odd = "alpha\\ud800\\u0000beta"
    record = {
        "branch": '{"type":"user","uuid":"u","gitBranch":"%s","message":{"content":"gamma"}}',
        "tool": '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"%s","name":"%s","input":{}}]}}',
        "path": '{"type":"assistant","message":{"content":[{"type":"tool_use","input":{"file_path":"%s"}}]}}',
        "text": '{"type":"user","message":{"content":"%s"}}',
        "title": '{"type":"custom-title","customTitle":"%s"}',
        "id": '{"type":"user","uuid":"%s","forkedFrom":{"messageUuid":"%s"},"message":{"content":"gamma"}}',
        "time": '{"type":"user","timestamp":"%s","message":{"content":"gamma"}}',
    }[field_name]
    path = write_session_file(config_home)
    add_bytes(
        path, record.replace("%s", odd).encode() + b"\n" + line(prompt_with_id("delta")) + b"\n"
    )
    assert read_index(config_home).lines_with_word("delta") == [(SESSION_FILE_NAME, 1)]
    add_bytes(path, line(prompt_with_id("zeta")) + b"\n")
    assert read_index(config_home).lines_with_word("zeta") == [(SESSION_FILE_NAME, 2)]


@pytest.mark.parametrize(
    "time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "", 5, None, {"a": 1}, "x"]
)
def test_invalid_times_are_accepted(config_home: ConfigHome, time: object) -> None:
    """A record is indexed even if its time is invalid or is not a string."""
    write_session_file(config_home, {**prompt_with_id("alpha"), "timestamp": time})
    assert read_index(config_home).words() == {"alpha"}


def test_long_tokens_and_binary_data_are_not_indexed(config_home: ConfigHome) -> None:
    """Long tokens, hashes and binary data are not indexed, but the words beside them are."""
    data = "A" * 91_000
    binary = bytes(range(256)).decode("latin-1") * 200
    hashes = " ".join(f"{number:064x}{number:064x}" for number in range(2_000))
    write_session_file(config_home, prompt_with_id(f"alpha {data} {binary} {hashes} omega"))
    words = read_index(config_home).words()
    assert {"alpha", "omega"} <= words
    assert max(map(len, words)) <= MAX_TOKEN_BYTES
    assert len(words) < 500


def test_long_tokens_are_not_kept_in_memory() -> None:
    """Splitting twenty megabytes of long tokens into words keeps none of them in memory."""
    tokens = [f"{number:06d}" + "x" * 10_000 for number in range(2_000)]
    tracemalloc.start()
    for start in range(0, 2_000, 100):
        distinct_words(" ".join(tokens[start : start + 100]))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 1_000_000


def test_a_text_with_too_many_words_keeps_the_first_ones(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a text has too many words, only its first words are indexed."""
    most = 5_000
    monkeypatch.setattr("resume_hooks.search.index.tokenize.MAX_DISTINCT_TOKENS", most)
    write_session_file(
        config_home,
        prompt_with_id("alpha " + " ".join(f"w{number}x" for number in range(most + 50))),
    )
    words = read_index(config_home).words()
    assert "alpha" in words
    assert most / 2 < len(words) < 3 * most + 5


@pytest.mark.slow
def test_a_line_of_60_mb_is_indexed(config_home: ConfigHome, tmp_path: Path) -> None:
    """A line of 60 MB is indexed, and so are the lines and files after it."""
    text = " ".join(f"word{number % 5_000}" for number in range(6_500_000))[: 60 * 1024 * 1024]
    path = write_session_file(
        config_home, prompt_with_id(f"alpha {text} omega"), prompt_with_id("beta")
    )
    write_session_file(config_home, prompt_with_id("gamma"), session_uuid=session_id(2))
    holding = read_index(config_home)
    assert holding.lines_with_word("omega") == [(SESSION_FILE_NAME, 0)]
    assert holding.lines_with_word("beta") == [(SESSION_FILE_NAME, 1)]
    assert holding.lines_with_word("gamma")
    add_bytes(path, line(prompt_with_id("delta")) + b"\n")
    assert read_index(config_home).lines_with_word("delta") == [(SESSION_FILE_NAME, 2)]
