"""Tests of ``lineage`` with its options and aliases, and of ``info``, as text and as documents."""

from __future__ import annotations

import os

import pytest

from resume_hooks.sessions.link_log import Link, record_link, record_successor
from tests.builders import (
    ConfigHome,
    conversation,
    custom_title,
    session_id,
    tool_use,
    write_session,
)
from tests.cli.conftest import Cli, Document

FIRST_ID, SECOND_ID, THIRD_ID, LOST_ID = (session_id(n) for n in (1, 2, 3, 9))


@pytest.fixture
def home_with_lineage(config_home: ConfigHome) -> ConfigHome:
    """Write three related sessions with the numbers 1 to 3 in their ids.

    Session 1 continues a session that no longer exists. Session 2 is a trim of session 1. Session 3
    was started by ``/clear`` in session 2.
    """
    folder = config_home.project()
    for number, first in (
        (
            1,
            [{"continue_metadata": {"parent_session_id": LOST_ID, "parent_file": "/gone/x.jsonl"}}],
        ),
        (2, [{"trim_metadata": {"parent_file": str(folder / f"{FIRST_ID}.jsonl")}}]),
        (3, []),
    ):
        records = conversation(2, session_id=session_id(number), start=100 * number)
        title = custom_title(f"title {number}", session_id(number))
        write_session(
            folder, session_id(number), [*first, *records, title], mtime=1_000_000 + number
        )
    record_link(Link(THIRD_ID, SECOND_ID, "clear", "2026"), config_home.where)
    return config_home


def test_lineage_lists_ancestors_oldest_first(
    home_with_lineage: ConfigHome, cli: Cli, document: Document
) -> None:
    """``lineage`` lists the ancestors, oldest first, including an ancestor whose file is missing."""
    rows = document("lineage", THIRD_ID)["data"]["rows"]
    assert [row["session_id"] for row in rows] == [LOST_ID, FIRST_ID, SECOND_ID, THIRD_ID]
    assert [row["status"] for row in rows] == ["missing", "present", "present", "present"]
    assert [row["derivation_type"] for row in rows] == [
        "unknown",
        "continued",
        "trimmed",
        "continued",
    ]
    assert [row["parent_session_id"] for row in rows] == [None, LOST_ID, FIRST_ID, SECOND_ID]
    lines = cli("lineage", THIRD_ID).stdout.decode().split("\n")
    assert lines[:3] == ["1. (file gone)", f"   {LOST_ID}", "   /gone/x.jsonl"]
    assert lines[3] == "2. title 1  rollover"
    assert lines[4].startswith(f"   {FIRST_ID} · 2026-01-31 09:31 .. 2026-01-31 09:31 · ")
    assert lines[6] == "3. title 2  trim"
    assert lines[9] == "4. title 3  clear"


def test_lineage_writes_nothing(home_with_lineage: ConfigHome, cli: Cli) -> None:
    """``lineage`` writes nothing, and in particular does not archive an ancestor."""
    before = sorted(home_with_lineage.root.rglob("*"))
    assert cli("lineage", THIRD_ID).returncode == 0
    assert sorted(home_with_lineage.root.rglob("*")) == before


def test_lineage_continued_omits_trimmed_sessions(
    home_with_lineage: ConfigHome, document: Document
) -> None:
    """``lineage --continued`` omits a trimmed session and shows its children below its parent."""
    rows = document("lineage", THIRD_ID, "--continued")["data"]["rows"]
    assert [row["session_id"] for row in rows] == [LOST_ID, FIRST_ID, THIRD_ID]
    assert rows[-1]["parent_session_id"] == FIRST_ID


def test_find_original_shows_the_oldest_known_ancestor(
    home_with_lineage: ConfigHome, cli: Cli, document: Document
) -> None:
    """``find-original`` shows the oldest known ancestor, even if its file is missing.

    A session without a parent is its own original.
    """
    assert [
        row["session_id"] for row in document("lineage", THIRD_ID, "--original")["data"]["rows"]
    ] == [LOST_ID]
    os.unlink(home_with_lineage.project() / f"{SECOND_ID}.jsonl")
    write_session(home_with_lineage.project(), session_id(7), conversation(1))
    assert (
        document("find-original", session_id(7))["data"]["rows"][0]["derivation_type"] == "original"
    )
    assert cli("find-original", session_id(7)).stdout.startswith(b"prompt 0  first session\n")


def test_find_derived_lists_descendants(
    home_with_lineage: ConfigHome, cli: Cli, document: Document
) -> None:
    """``find-derived`` lists the descendants of every kind, parents before children."""
    rows = document("find-derived", FIRST_ID)["data"]["rows"]
    assert [row["session_id"] for row in rows] == [SECOND_ID, THIRD_ID]
    assert document("lineage", THIRD_ID, "--derived")["data"] == {"rows": []}
    assert cli("find-derived", THIRD_ID).stdout.decode() == f"{THIRD_ID} has no descendants yet.\n"
    lines = cli("find-derived", FIRST_ID).stdout.decode().splitlines()
    assert (lines[0], lines[3]) == ("title 2  trim", "  title 3  clear"), (
        "a generation is two columns deeper"
    )


def test_find_derived_tree_indents_children(home_with_lineage: ConfigHome, cli: Cli) -> None:
    """``find-derived --tree`` indents each session below its parent."""
    lines = cli("find-derived", FIRST_ID, "--tree").stdout.decode().split("\n")
    assert lines[0] == FIRST_ID
    assert lines[1] == "└── title 2  trim"
    assert SECOND_ID in lines[2]
    assert lines[3].endswith("└── title 3  clear")
    assert lines[3].index("└") > lines[1].index("└")


def test_find_derived_omits_a_superseded_handoff(
    config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """If a session started by ``/clear`` has continued a handoff, ``find-derived`` omits the handoff.

    ``--all`` still lists it. After a new prompt in the handoff, ``find-derived`` lists it again.
    """
    folder, made = config_home.project(), "2026-01-31T09:30:30.000Z"
    line = {
        "continue_metadata": {
            "parent_session_id": FIRST_ID,
            "continued_at": made,
            "continuation_type": "handoff",
        }
    }
    write_session(folder, FIRST_ID, conversation(1))
    write_session(folder, SECOND_ID, [line, *conversation(1)])
    record_link(Link(THIRD_ID, FIRST_ID, "handoff", made, 7), config_home.where)
    record_successor(SECOND_ID, THIRD_ID, made, config_home.where)

    def derived_ids(*options: str) -> list[str]:
        return [
            row["session_id"]
            for row in document("find-derived", FIRST_ID, *options)["data"]["rows"]
        ]

    assert derived_ids() == [SECOND_ID], "nobody spoke in the session of /clear yet: it has no file"
    write_session(folder, THIRD_ID, [custom_title("left at once")])
    assert SECOND_ID in derived_ids(), "the client was ended before anybody spoke there"
    write_session(folder, THIRD_ID, conversation(1))
    assert (derived_ids(), sorted(derived_ids("--all"))) == ([THIRD_ID], [SECOND_ID, THIRD_ID])
    assert cli("find-derived", FIRST_ID, "--tree").returncode == 0
    assert document("info", SECOND_ID)["data"]["session_id"] == SECOND_ID
    write_session(folder, SECOND_ID, [line, *conversation(2, start=3_600)])
    assert sorted(derived_ids()) == [SECOND_ID, THIRD_ID]


def test_a_tree_of_200_generations_is_readable(config_home: ConfigHome, cli: Cli) -> None:
    """In a tree of 200 generations, each session's id is still shown completely on one line."""
    for number in range(1, 201):
        first = (
            [{"continue_metadata": {"parent_session_id": session_id(number - 1)}}]
            if number > 1
            else []
        )
        write_session(config_home.project(), session_id(number), [*first, *conversation(1)])
    done = cli("find-derived", FIRST_ID, "--tree")
    assert (done.returncode, done.stderr) == (0, b"")
    for number in range(2, 201):
        assert session_id(number).encode() in done.stdout


def test_info_accepts_every_form_of_a_locator(
    home_with_lineage: ConfigHome, cli: Cli, document: Document
) -> None:
    """``info`` finds a session by its id, prefix, title or path."""
    path = str(home_with_lineage.project() / f"{SECOND_ID}.jsonl")
    for locator in (SECOND_ID, SECOND_ID.upper(), "00000002", "title 2", path):
        data = document("info", locator)["data"]
        assert (data["session_id"], data["session_file"], data["title"]) == (
            SECOND_ID,
            path,
            "title 2",
        )
        assert data["size"] == os.path.getsize(path)
    text = cli("info", SECOND_ID).stdout.decode()
    assert f" {SECOND_ID}\n" in text
    assert f" {path}\n" in text


def test_info_shows_counts_tokens_and_damage(
    home_with_lineage: ConfigHome, cli: Cli, document: Document
) -> None:
    """``info`` shows the number of records and of unreadable lines, and the tokens.

    It also shows the tokens as a percentage of the context window.
    """
    path = home_with_lineage.project() / f"{THIRD_ID}.jsonl"
    with path.open("ab") as stream:
        stream.write(b'garbage\n{"type":"tag","tag":"mine"}\n')
    data = document("info", THIRD_ID)["data"]
    facts = (
        "title",
        "tag",
        "cwd",
        "branch",
        "turns",
        "records",
        "live_records",
        "bad_lines",
        "torn",
        "lines",
    )
    assert [data[name] for name in facts] == [
        "title 3",
        "mine",
        "/home/user/proj",
        "main",
        2,
        4,
        4,
        [5],
        False,
        7,
    ]
    assert data["context"]["tokens"] == 1_300
    assert data["models"] == {"claude-opus-4-5": 2}
    text = cli("info", THIRD_ID).stdout.decode()
    assert "1,300 tokens, 1 % of 180,000" in text
    assert "1 unreadable line\n" in text


def test_info_counts_unanswered_calls(config_home: ConfigHome, document: Document) -> None:
    """``info`` counts the calls that have no result, and reports an incomplete last line."""
    records = [*conversation(1), tool_use("t1", uuid="x", parent="r1", ts=9)]
    path = write_session(config_home.project(), FIRST_ID, records)
    with open(path, "ab") as stream:
        stream.write(b'{"torn')
    data = document("info", FIRST_ID)["data"]
    assert (data["tool_calls"], data["unanswered_calls"], data["torn"]) == (1, 1, True)


def test_info_uses_the_context_window_from_the_settings(
    home_with_lineage: ConfigHome, document: Document
) -> None:
    """``info`` calculates the percentage from the setting ``context_window``."""
    data = document("info", THIRD_ID, environ={"RESUME_HOOKS_CONTEXT_WINDOW": "22600"})["data"]
    assert (data["context"]["window"], data["context"]["percent"]) == (22_600, 12)
