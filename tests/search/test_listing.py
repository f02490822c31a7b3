"""Tests of the list of sessions: which sessions it contains, their order, and their rows."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.clock import DAY
from resume_hooks.search.index.connect import open_index
from resume_hooks.search.listing import (
    ListedSession,
    SessionLister,
    list_project,
    listing_page,
    short_ids,
)
from resume_hooks.sessions.link_log import Link, record_link, record_successor
from resume_hooks.sessions.session_files import LocalStore, SessionFile, sessions_of_directory
from resume_hooks.system.git_worktrees import project_of_folder
from resume_hooks.transcripts.head_tail import BYTES_READ_AT_EACH_END
from resume_hooks.transcripts.tokens import ESTIMATED
from tests.builders import (
    CWD,
    ConfigHome,
    Record,
    assistant,
    boundary,
    conversation,
    custom_title,
    iso_time,
    session_bytes,
    session_id,
    summary,
    system,
    user,
    write_running_client_file,
    write_session,
)

PADDING_RECORD: Record = {
    "type": "file-history-snapshot",
    "messageId": "x",
    "snapshot": {"padding": "x" * 3 * BYTES_READ_AT_EACH_END},
}
CHILD_METADATA: Record = {
    "continue_metadata": {
        "parent_session_id": session_id(99),
        "continued_at": iso_time(100),
        "continuation_type": "handoff",
        "context_tokens": 1_234,
        "characters_per_token": 4.0,
    }
}


def write_aged_session(
    home: ConfigHome,
    session_number: int,
    records: Sequence[Record | bytes] | None = None,
    *,
    cwd: str = CWD,
    age_days: float = 0,
) -> str:
    """Write a session with these records or, if ``records`` is None, with two turns.

    The file's time is ``age_days`` days and one hour ago.
    """
    name = session_id(session_number)
    content = conversation(2, session_id=name) if records is None else records
    located = [
        {**record, "cwd": cwd} if isinstance(record, dict) and "cwd" in record else record
        for record in content
    ]
    return write_session(
        home.project(cwd), name, located, mtime=time.time() - 3_600 - age_days * DAY
    )


def list_rows(home: ConfigHome, cwd: str = CWD, **options: Any) -> list[ListedSession]:
    """Return all rows of the list of a project."""
    return list(list_project(cwd, home.where, **options))


def numbers_of_listed_sessions(home: ConfigHome, cwd: str = CWD, **options: Any) -> list[int]:
    """Return the numbers of the listed sessions."""
    return [int(row.session_id[:8], 16) for row in list_rows(home, cwd, **options)]


def test_rows_are_listed_newest_first_and_read_on_request(config_home: ConfigHome) -> None:
    """The list begins with the session that was written last. Rows are read only when requested."""
    for number, age in ((1, 2), (2, 0), (3, 1)):
        path = write_aged_session(config_home, number, age_days=age)
    assert numbers_of_listed_sessions(config_home) == [2, 3, 1]
    os.unlink(path)
    found = list_project(CWD, config_home.where)
    assert next(found).session_id == session_id(2)
    os.unlink(config_home.project() / f"{session_id(1)}.jsonl")
    assert list(found) == []


def test_a_row_has_names_dates_and_sizes(config_home: ConfigHome) -> None:
    """A row has names, a folder, dates, a size and token counts.

    They are read from the first and last records of the session's file.
    """
    more: list[Record] = [
        custom_title("Mine"),
        {"type": "tag", "tag": "draft"},
        {"type": "agent-name", "agentName": "reviewer"},
    ]
    path = write_aged_session(config_home, 1, [*conversation(2), *more], age_days=4)
    (row,) = list_rows(config_home)
    assert (row.title, row.tag, row.agent_name, row.branch, row.folder) == (
        "Mine",
        "draft",
        "reviewer",
        "main",
        CWD,
    )
    assert (row.creation_time, row.end_time, row.path, row.size) == (
        iso_time(0),
        iso_time(3),
        path,
        os.path.getsize(path),
    )
    assert (
        row.turn_count,
        row.min_turn_count,
        row.context_tokens,
        row.context.window,
        row.context_percent,
    ) == (
        2,
        2,
        1_300,
        200_000,
        1,
    )
    assert (row.kind, row.derivation_type, row.parent_id) == ("original", "original", None)
    assert (not row.context.is_estimate, row.is_open, row.days_to_expiry) == (True, False, 25)


def test_a_list_omits_unusable_sessions(config_home: ConfigHome) -> None:
    """The list omits files without a prompt, sub-agents and links.

    By default, it also omits headless runs with a single question. A child that was not opened yet
    is listed.
    """
    once = [{**record, "entrypoint": "sdk-cli"} for record in conversation(1)]
    write_aged_session(config_home, 1)
    write_aged_session(config_home, 2, [])
    write_aged_session(
        config_home, 3, [custom_title("nothing said"), {"type": "mode", "mode": "plan"}]
    )
    write_aged_session(
        config_home, 4, [{**record, "isSidechain": True} for record in conversation(2)]
    )
    write_aged_session(config_home, 5, once)
    write_aged_session(
        config_home, 6, [{**record, "entrypoint": "sdk-py"} for record in conversation(2)]
    )
    write_aged_session(
        config_home,
        7,
        [CHILD_METADATA, summary("lineage", uuid="s", parent=None, ts=100), custom_title("child")],
    )
    write_aged_session(
        config_home, 8, [user("<local-command-stdout>x</local-command-stdout>", uuid="u")]
    )
    write_session(config_home.project(), "agent-abc", conversation(2))
    write_session(config_home.project(), f"{session_id(9)}.orphaned-1", conversation(2))
    (config_home.project() / f"{session_id(10)}.jsonl").symlink_to(
        config_home.project() / f"{session_id(1)}.jsonl"
    )
    assert sorted(numbers_of_listed_sessions(config_home)) == [1, 6, 7]
    assert sorted(numbers_of_listed_sessions(config_home, include_helpers=True)) == [1, 5, 6, 7]


def test_a_superseded_child_is_omitted(config_home: ConfigHome) -> None:
    """A child that another session replaced is not listed, unless the child was continued."""
    write_aged_session(config_home, 1)
    child = [
        CHILD_METADATA,
        summary("lineage", uuid="s", parent=None, ts=100),
        custom_title("child"),
    ]
    write_aged_session(config_home, 2, child)
    record_successor(session_id(2), session_id(1), iso_time(0), config_home.where)
    assert numbers_of_listed_sessions(config_home) == [1]
    write_aged_session(config_home, 2, [*child, user("go on", uuid="u", parent="s", ts=200)])
    assert sorted(numbers_of_listed_sessions(config_home)) == [1, 2]


def test_a_row_says_how_its_session_was_derived(config_home: ConfigHome) -> None:
    """A row names a session's parent and how the session was made from the parent.

    The child's first line, a fork's records, or the recorded links state this. A new child has the
    size that was computed when the child was made.
    """
    write_aged_session(
        config_home, 1, [CHILD_METADATA, summary("lineage", uuid="s", parent=None, ts=100)]
    )
    forked = {"sessionId": session_id(98), "messageUuid": "x"}
    write_aged_session(
        config_home, 2, [{**record, "forkedFrom": forked} for record in conversation(1)]
    )
    write_aged_session(config_home, 3)
    record_link(Link(session_id(3), session_id(97), "clear", iso_time(0)), config_home.where)
    found = {row.session_id: row for row in list_rows(config_home)}
    told = {number: found[session_id(number)] for number in (1, 2, 3)}
    assert [(row.kind, row.parent_id) for row in told.values()] == [
        ("handoff", session_id(99)),
        ("fork", session_id(98)),
        ("clear", session_id(97)),
    ]
    assert (told[1].context_tokens, told[1].context.is_measured) == (1_234, False)
    later = [
        boundary(uuid="b", before="s", ts=9e5),
        summary("so far", uuid="t", parent="b", ts=9e5),
    ]
    write_aged_session(
        config_home, 1, [CHILD_METADATA, summary("lineage", uuid="s", parent=None, ts=100), *later]
    )
    (compacted,) = [row for row in list_rows(config_home) if row.session_id == session_id(1)]
    assert (compacted.context_tokens, compacted.context.kind) == (30_002, ESTIMATED)


def test_the_row_of_a_long_file_has_only_a_minimum_turn_count(config_home: ConfigHome) -> None:
    """Of a long file, only the beginning and the end are read, so its row has a minimum number of turns.

    If the index contains the unchanged file, the row also has the exact number.
    """
    middle = conversation(5, prefix="m", start=10)
    write_aged_session(
        config_home,
        1,
        [
            *conversation(1),
            PADDING_RECORD,
            *middle,
            PADDING_RECORD,
            *conversation(2, prefix="z", start=90),
        ],
    )
    (row,) = list_rows(config_home)
    assert (row.turn_count, row.min_turn_count, row.context_tokens, row.title) == (
        None,
        3,
        1_300,
        "prompt 0",
    )
    with open_index(config_home.where):
        pass
    (row,) = list_rows(config_home)
    assert (row.turn_count, row.min_turn_count) == (8, 3)


@pytest.mark.parametrize("earlier_records", [[], [CHILD_METADATA]])
def test_a_row_has_the_size_after_a_trim_in_place(
    config_home: ConfigHome, earlier_records: list[Record]
) -> None:
    """After a trim in place, a row has the size that is stated in this plugin's remark.

    After the next answer, the row has the size that the answer reports.
    """
    remark = "resume-hooks: 155,436 tokens before, about 55,101 now."
    trimmed = [
        *conversation(2, start=110),
        boundary(uuid="b", before="r3", ts=120),
        summary("x", uuid="s", parent="b", ts=120),
        PADDING_RECORD,
        user("prompt", uuid="p", parent="s", ts=120),
        assistant("answer", uuid="a", parent="p", ts=120),
        system("informational", uuid="i", parent="a", ts=121, content=remark),
    ]
    write_aged_session(config_home, 1, [*earlier_records, *trimmed])
    (row,) = list_rows(config_home)
    assert (row.context_tokens, row.context.is_estimate) == (55_101, True)
    write_aged_session(
        config_home, 1, [*earlier_records, *trimmed, *conversation(1, prefix="z", start=130)]
    )
    (row,) = list_rows(config_home)
    assert (row.context_tokens, row.context.is_estimate) == (1_100, False)


def test_a_copied_remark_about_the_size_is_ignored(config_home: ConfigHome) -> None:
    """A child's size comes from its first line, even if the child copied a remark about another size."""
    remark = "resume-hooks: 155,436 tokens before, about 55,101 now."
    old = [user("prompt", uuid="p", ts=50), assistant("answer", uuid="a", parent="p", ts=51)]
    write_aged_session(
        config_home,
        1,
        [
            CHILD_METADATA,
            *old,
            system("informational", uuid="i", parent="a", ts=60, content=remark),
        ],
    )
    (row,) = list_rows(config_home)
    assert row.context_tokens == 1_234


def test_the_middle_of_a_file_is_never_read(config_home: ConfigHome) -> None:
    """A file of 200 GB is listed without reading its middle."""
    path = write_aged_session(config_home, 1, conversation(1))
    with open(path, "r+b") as stream:
        stream.seek(200 * 1000**3)
        stream.write(
            b"\n" + session_bytes([*conversation(2, prefix="z", start=90), custom_title("Huge")])
        )
    (row,) = list_rows(config_home)
    assert (row.title, row.min_turn_count, row.context_tokens, row.creation_time) == (
        "Huge",
        3,
        1_300,
        iso_time(0),
    )


@pytest.mark.parametrize(
    ("more_records", "expected_tokens"),
    [
        ([], 1_300),
        ([boundary(uuid="b", before="r3", ts=9), summary("s", uuid="s", parent="b", ts=9)], 1_088),
        (
            [assistant("side", uuid="x", parent="r3", ts=9, tokens=9_000, isSidechain=True)],
            1_300,
        ),
        ([assistant("error", uuid="x", parent="r3", ts=9, model="<synthetic>")], 1_301),
        ([user("y" * 80, uuid="x", parent="r3", ts=9)], 1_320),
        ([user("y" * 8_000, uuid="x", parent="r3", ts=9)], 3_300),
        (
            [
                assistant(
                    "big",
                    uuid="x",
                    parent="r3",
                    ts=9,
                    tokens=300_000,
                    model="claude-opus-4-6",
                )
            ],
            300_000,
        ),
    ],
)
def test_the_token_count_of_a_row_comes_from_the_end_of_the_session(
    config_home: ConfigHome, more_records: list[Record], expected_tokens: int | None
) -> None:
    """A row's token count is the count in the last answer, plus an estimate for the text after it.

    After a compaction, all tokens are estimated. Answers of sub-agents are ignored.
    """
    write_aged_session(config_home, 1, [*conversation(2), *more_records])
    (row,) = list_rows(config_home)
    assert row.context_tokens == expected_tokens
    assert row.context.is_estimate is (expected_tokens in {None, 1_088, 3_300})
    assert row.context_percent == (
        None
        if expected_tokens is None
        else round(100 * expected_tokens / (row.context.window - 20_000))
    )
    assert row.context.window == (1_000_000 if expected_tokens == 300_000 else 200_000)


@pytest.mark.parametrize(
    ("cleanup_days", "age_days", "days_left"),
    [(None, 0, 29), (7, 0, 6), (7, 8, 0), (0, 0, None), (1, 0, 0), (400, 30, 369)],
)
def test_a_row_says_when_its_session_expires(
    config_home: ConfigHome, cleanup_days: int | None, age_days: float, days_left: int | None
) -> None:
    """A row states the number of days until the client deletes the session.

    The number depends on the last write and on ``cleanupPeriodDays``.
    """
    write_aged_session(config_home, 1, age_days=age_days)
    if cleanup_days is not None:
        settings = json.dumps({"cleanupPeriodDays": cleanup_days})
        (config_home.config / "settings.json").write_text(settings, encoding="utf-8")
    assert [row.days_to_expiry for row in list_rows(config_home)] == [days_left]


def test_open_sessions_are_marked(config_home: ConfigHome) -> None:
    """A row is marked as open if a running client lists the session.

    If no client lists its sessions, a session written within the last minute is marked as open.
    """
    write_aged_session(config_home, 1)
    write_aged_session(config_home, 2, age_days=1)
    write_aged_session(config_home, 3, age_days=-1)
    assert [row.is_open for row in list_rows(config_home)] == [True, False, False]
    write_running_client_file(config_home.config, session_id(2))
    assert [(row.session_id, row.is_open) for row in list_rows(config_home)] == [
        (session_id(3), False),
        (session_id(1), False),
        (session_id(2), True),
    ]


def test_the_listing_includes_worktrees_and_subfolders(
    config_home: ConfigHome, git: Any, tmp_path: Path
) -> None:
    """A project's list includes the sessions of its worktrees and subfolders.

    The list is the same in each of these folders. A folder with a similar name is a different
    project.
    """
    main, linked = tmp_path / "main", tmp_path / "linked"
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", str(linked))
    for number, folder in enumerate(("main", "linked", "main/deep", "main-two", "other"), 1):
        write_aged_session(config_home, number, cwd=str(tmp_path / folder), age_days=number)
    for cwd in (main, linked, main / "deep"):
        assert numbers_of_listed_sessions(config_home, str(cwd)) == [1, 2, 3]
    assert numbers_of_listed_sessions(config_home, str(tmp_path / "main-two")) == [4]
    assert numbers_of_listed_sessions(
        config_home, str(tmp_path / "other"), covers_all_projects=True
    ) == [
        1,
        2,
        3,
        4,
        5,
    ]


def test_colliding_project_folders_are_distinguished(config_home: ConfigHome) -> None:
    """Each of two folders has its own list, even if the client stores their transcripts in one place.

    A session belongs to the folder that its records name.
    """
    write_aged_session(config_home, 1, cwd="/w/a_b")
    write_aged_session(config_home, 2, cwd="/w/a-b")
    assert (
        numbers_of_listed_sessions(config_home, "/w/a_b"),
        numbers_of_listed_sessions(config_home, "/w/a-b"),
    ) == (
        [1],
        [2],
    )


def test_copies_of_a_session_are_listed_once(config_home: ConfigHome) -> None:
    """Of several copies of a session, only the newest is listed."""
    write_aged_session(config_home, 1, cwd="/copy", age_days=1)
    newest = write_aged_session(config_home, 1)
    assert [row.path for row in list_rows(config_home, covers_all_projects=True)] == [newest]


@pytest.mark.parametrize(
    ("max_rows", "first_row", "expected_numbers", "has_more"),
    [
        (0, 0, [1, 2, 3, 4], False),
        (2, 0, [1, 2], True),
        (2, 2, [3, 4], False),
        (9, 3, [4], False),
        (1, 9, [], False),
    ],
)
def test_a_page_starts_after_the_given_number_of_rows(
    config_home: ConfigHome,
    max_rows: int,
    first_row: int,
    expected_numbers: list[int],
    *,
    has_more: bool,
) -> None:
    """A page of the list begins after the first ``first_row`` sessions. Omitted files are not counted."""
    for number in range(1, 5):
        write_aged_session(config_home, number, age_days=number)
    write_aged_session(config_home, 9, [custom_title("nothing said")], age_days=2.5)
    look = SessionLister(CWD, config_home.where)
    part = listing_page(
        look, project_of_folder(CWD, config_home.where), max_rows=max_rows, first_row=first_row
    )
    assert [int(row.session_id[:8], 16) for row in part.rows] == expected_numbers
    assert (part.has_more, part.file_count) == (has_more, 5)


def test_a_session_deleted_while_the_list_is_made_is_omitted(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that is deleted while the list is being made is omitted."""
    path = write_aged_session(config_home, 1)
    write_aged_session(config_home, 2, age_days=1)

    def list_then_delete(_store: LocalStore, _projects: object = None) -> list[SessionFile]:
        found = sessions_of_directory(CWD, config_home.where)
        os.unlink(path)
        return found

    monkeypatch.setattr(LocalStore, "sessions", list_then_delete)
    assert numbers_of_listed_sessions(config_home) == [2]


def test_short_ids_are_unique(config_home: ConfigHome) -> None:
    """A short id has eight characters. If another id begins with them, the short id is the whole id."""
    write_aged_session(config_home, 1)
    write_aged_session(config_home, 2)
    write_session(config_home.project("/elsewhere"), f"{session_id(2)[:-1]}f", [])
    found = list_rows(config_home)
    short = dict(
        zip((row.session_id for row in found), short_ids(found, config_home.where), strict=True)
    )
    assert short == {session_id(1): "00000001", session_id(2): session_id(2)}
