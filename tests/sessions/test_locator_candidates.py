"""Tests that the quick search for sessions with a title, tag or pull request misses no session."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.sessions.locator_forms import (
    filter_by_name_lines,
    find_sessions_titled,
    pattern_of_words,
    session_titles,
)
from resume_hooks.sessions.session_files import (
    SessionFile,
    session_file,
    sessions_in_project_folder,
)
from resume_hooks.transcripts.head_tail import BYTES_READ_AT_EACH_END, HeadTail
from tests.builders import Record, conversation, custom_title, line, session_id, user, write_session
from tests.needs import corpus_sessions

PADDING_RECORD: Record = {
    "type": "file-history-snapshot",
    "messageId": "x",
    "snapshot": {"padding": "x" * 3 * BYTES_READ_AT_EACH_END},
}
SERIALIZERS: list[Callable[[Record], bytes]] = [
    line,
    lambda record: json.dumps(record).encode(),
    lambda record: json.dumps(record, ensure_ascii=False).encode("utf-8", "replace"),
    lambda record: orjson.dumps(record, option=orjson.OPT_SORT_KEYS),
]
"""The ways in which clients and tools write a record as JSON."""


def write_candidate(folder: Path, records: list[Any]) -> SessionFile:
    """Write a session with these records."""
    return session_file(write_session(folder, session_id(1), records))


@given(
    title=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60).filter(
        str.strip
    ),
    serialize=st.sampled_from(SERIALIZERS),
    title_place=st.sampled_from(["head", "tail", "only"]),
    record_type=st.sampled_from(["custom-title", "ai-title", "summary", "prompt"]),
)
def test_every_title_is_found(
    tmp_path_factory: pytest.TempPathFactory,
    title: str,
    serialize: Callable[[Record], bytes],
    title_place: str,
    record_type: str,
) -> None:
    """Every title is found, wherever it is in the file and in any letter case."""
    fields = {"custom-title": "customTitle", "ai-title": "aiTitle", "summary": "summary"}
    named = (
        user(title, uuid="u")
        if record_type == "prompt"
        else {"type": record_type, fields[record_type]: title}
    )
    around: list[Any] = [PADDING_RECORD] if title_place != "only" else []
    records = [*around, *([] if record_type == "prompt" else [user("else", uuid="u")])]
    own = serialize(named)
    content = (
        [own, *records] if title_place == "head" or record_type == "prompt" else [*records, own]
    )
    session = write_candidate(tmp_path_factory.mktemp("sift"), content)
    for answer in session_titles(HeadTail(session.path)) - {"(no prompt yet)"}:
        for typed in (answer, answer.swapcase() if answer.isascii() else answer):
            assert filter_by_name_lines(pattern_of_words(typed), [session], {}) == [session]
        assert find_sessions_titled(answer, [session]) == [session]


@pytest.mark.parametrize(
    "records",
    [
        [custom_title("Gone"), *conversation(1), PADDING_RECORD, custom_title("")],
        [custom_title("Gone"), custom_title(""), *conversation(1)],
        [*conversation(1), PADDING_RECORD, custom_title("Gone"), custom_title("")],
    ],
)
def test_a_removed_title_is_not_found(tmp_path: Path, records: list[Record]) -> None:
    """A title that the user removed does not find the session, but its first prompt does."""
    session = write_candidate(tmp_path, records)
    assert find_sessions_titled("prompt 0", [session]) == [session]
    assert find_sessions_titled("Gone", [session]) == []


def test_a_mentioned_title_is_not_a_match(tmp_path: Path) -> None:
    """A title that is only mentioned in a message does not find the session."""
    talk = user('the parser, {"type":"custom-title","customTitle":"parser"}', uuid="u")
    session = write_candidate(tmp_path, [talk, custom_title("Other")])
    assert filter_by_name_lines(pattern_of_words("parser"), [session], {}) == []
    assert filter_by_name_lines(pattern_of_words("other"), [session], {}) == [session]


def test_tags_and_pull_requests_at_the_end_of_a_file_are_found(tmp_path: Path) -> None:
    """A tag or a pull request at the end of a long file finds the session."""
    tag, link = {"type": "tag", "tag": "draft"}, {"type": "pr-link", "prNumber": 72}
    session = write_candidate(tmp_path, [custom_title("Mine"), PADDING_RECORD, tag, link])
    for pattern in (
        pattern_of_words("draft"),
        re.compile(rb'"prnumber":\s?72\b'),
        pattern_of_words("mine"),
    ):
        assert filter_by_name_lines(pattern, [session], {}) == [session]


def test_a_deleted_file_is_not_a_candidate(tmp_path: Path) -> None:
    """A file that was deleted is not a candidate."""
    gone = SessionFile(session_id(1), str(tmp_path / "gone.jsonl"), time.time(), 10)
    assert filter_by_name_lines(pattern_of_words("x"), [gone], {}) == []


def test_every_title_of_the_corpus_is_found(tmp_path: Path) -> None:
    """Every session of the corpus is found by each of its titles and its tag."""
    for number, path in enumerate(corpus_sessions()):
        (tmp_path / f"{session_id(number)}.jsonl").write_bytes(path.read_bytes())
    for session in sessions_in_project_folder(str(tmp_path)):
        glance = HeadTail(session.path)
        names = {*session_titles(glance), glance.tag} - {"", "(no prompt yet)"}
        assert all(filter_by_name_lines(pattern_of_words(name), [session], {}) for name in names)
