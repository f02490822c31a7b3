"""Tests of ancestors and descendants.

Missing sessions are shown, cycles end, and no path outside the projects is opened.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import MANIFEST_NAME, archive_folder
from resume_hooks.sessions.lineage import (
    MAX_GENERATIONS,
    Ancestor,
    LineageFinder,
    omit_trimmed_sessions,
)
from resume_hooks.sessions.link_log import Link, links_file, record_link
from resume_hooks.transcripts.provenance import make_first_line
from tests.builders import ConfigHome, conversation, custom_title, session_id, user, write_session

OPENED_PATH_LISTS: list[list[str]] = []
"""Lists to which the audit hook below adds every path that Python opens or lists.

An audit hook cannot be removed. Therefore ``opened_paths`` removes its list instead.
"""


def _record_opened_path(event: str, arguments: tuple[Any, ...]) -> None:
    if (
        event in {"open", "os.listdir", "os.scandir"}
        and arguments
        and isinstance(arguments[0], str)
    ):
        for watcher in OPENED_PATH_LISTS:
            watcher.append(os.path.abspath(arguments[0]))


sys.addaudithook(_record_opened_path)


@contextlib.contextmanager
def opened_paths() -> Iterator[list[str]]:
    """Yield a list of the paths that are opened within the ``with`` block."""
    opened: list[str] = []
    OPENED_PATH_LISTS.append(opened)
    try:
        yield opened
    finally:
        OPENED_PATH_LISTS.remove(opened)


def write_continued_session(
    home: ConfigHome,
    session_number: int,
    parent_number: int | None = None,
    *,
    kind: str = "handoff",
    file: str | None = None,
    **options: Any,
) -> str:
    """Write session ``session_number``, continued from session ``parent_number``, and return its path.

    ``file`` replaces the parent's path in the session's first line.
    """
    folder = options.pop("folder", home.project())
    title = custom_title(
        options.pop("title", f"title {session_number}"), session_id(session_number)
    )
    records: list[Any] = [
        *conversation(1, session_id=session_id(session_number), start=session_number * 10),
        title,
    ]
    if parent_number is not None:
        named = file if file is not None else str(folder / f"{session_id(parent_number)}.jsonl")
        line = make_first_line(
            parent_id=session_id(parent_number),
            parent_file=named,
            kind=kind,
            continued_at="2026",
            has_summary=False,
        )
        records.insert(0, line)
    return write_session(
        folder, session_id(session_number), records, mtime=1_000_000 + session_number
    )


def find_lineage(home: ConfigHome, path: str) -> list[Ancestor]:
    """Return the lineage of the session at ``path``."""
    return LineageFinder(home.where).find_lineage(path)


def session_numbers(rows: list[Ancestor]) -> list[int]:
    """Return the session numbers of a lineage."""
    return [int(row.session_id[:8], 16) for row in rows]


@pytest.mark.parametrize("depth", [1, 3, 15])
def test_a_lineage_lists_every_generation_oldest_first(config_home: ConfigHome, depth: int) -> None:
    """A lineage lists every generation, oldest first, and each row names its parent."""
    path = ""
    for number in range(1, depth + 1):
        path = write_continued_session(config_home, number, number - 1 or None)
    rows = find_lineage(config_home, path)
    assert session_numbers(rows) == list(range(1, depth + 1))
    assert [row.derivation_type for row in rows] == ["original"] + ["continued"] * (depth - 1)
    assert [row.parent_session_id for row in rows] == [None, *(row.session_id for row in rows[:-1])]
    assert {row.status for row in rows} == {"present"}


def test_a_row_describes_its_session(config_home: ConfigHome) -> None:
    """A row has the title, times, size and path of its session."""
    write_continued_session(config_home, 1)
    path = write_continued_session(config_home, 2, 1)
    row = find_lineage(config_home, path)[1]
    assert row == Ancestor(
        session_id(2), path, "title 2", "continued", "handoff", None, session_id(1), "present",
        "2026-01-31T09:30:20.000Z", "2026-01-31T09:30:21.000Z", os.path.getsize(path),
    )  # fmt: skip


def test_a_missing_parent_is_shown_with_its_id_and_path(config_home: ConfigHome) -> None:
    """A deleted parent is shown as missing, with its id and its last known path."""
    path = write_continued_session(config_home, 2, 1)
    gone, row = find_lineage(config_home, path)
    assert (gone.session_id, gone.status, gone.derivation_type, gone.size) == (
        session_id(1),
        "missing",
        "unknown",
        0,
    )
    assert gone.session_file.endswith(f"{session_id(1)}.jsonl")
    assert row.parent_session_id == session_id(1)


@pytest.mark.parametrize("file_kind", ["empty", "folder", "symlink", "fifo"])
def test_a_parent_without_a_usable_file_is_missing(config_home: ConfigHome, file_kind: str) -> None:
    """A parent is shown as missing if its path leads to an empty file, a folder, a link or a pipe.

    Opening a pipe does not block.
    """
    place = config_home.project() / f"{session_id(1)}.jsonl"
    if file_kind == "empty":
        place.write_bytes(b"")
    elif file_kind == "folder":
        place.mkdir()
    elif file_kind == "fifo":
        os.mkfifo(place)
    else:
        place.symlink_to(write_session(config_home.root, session_id(7), conversation(1)))
    assert [
        row.status for row in find_lineage(config_home, write_continued_session(config_home, 2, 1))
    ] == [
        "missing",
        "present",
    ]


def test_a_parent_is_found_by_its_id(config_home: ConfigHome) -> None:
    """A parent is found by its id if its path is missing or names another session."""
    right, wrong = (
        write_continued_session(config_home, 1, folder=config_home.project("/elsewhere")),
        write_continued_session(config_home, 9),
    )
    for path in (
        write_continued_session(config_home, 2, 1),
        write_continued_session(config_home, 3, 1, file=wrong),
    ):
        assert (
            find_lineage(config_home, path)[0].session_file,
            find_lineage(config_home, path)[0].status,
        ) == (right, "present")
    os.unlink(right)
    assert find_lineage(config_home, path)[0].status == "missing"


@pytest.mark.parametrize("cycle_length", [1, 2, 3])
def test_each_session_of_a_cycle_is_listed_once(config_home: ConfigHome, cycle_length: int) -> None:
    """In a cycle of parents, every session is listed once."""
    paths = [
        write_continued_session(config_home, n, n % cycle_length + 1)
        for n in range(1, cycle_length + 1)
    ]
    rows = find_lineage(config_home, paths[0])
    assert sorted(session_numbers(rows)) == list(range(1, cycle_length + 1))
    assert rows[-1].session_file == paths[0]
    assert rows[0].parent_session_id is None


def test_a_lineage_with_a_cycle_of_paths_or_links_ends(config_home: ConfigHome) -> None:
    """A lineage ends even if paths and ids, or metadata and links, form a cycle."""
    path = write_continued_session(
        config_home, 1, 8, file=str(config_home.project() / f"{session_id(2)}.jsonl")
    )
    write_continued_session(config_home, 2, 9, file=path)
    assert session_numbers(find_lineage(config_home, path)) == [8, 1]
    three = write_continued_session(config_home, 3)
    write_continued_session(config_home, 4, 3)
    record_link(Link(session_id(3), session_id(4), "clear", "2026"), Where())
    assert session_numbers(find_lineage(config_home, three)) == [4, 3]


def test_a_link_names_the_parent_if_metadata_is_missing(config_home: ConfigHome) -> None:
    """A recorded link gives the parent of a session that the client started, for example by ``/clear``."""
    write_continued_session(config_home, 1)
    path = write_continued_session(config_home, 2)
    record_link(Link(session_id(2), session_id(1), "clear", "2026"), Where())
    rows = find_lineage(config_home, path)
    assert session_numbers(rows) == [1, 2]
    assert (rows[1].kind, rows[1].derivation_type) == ("clear", "continued")


@pytest.mark.parametrize(
    ("existing_numbers", "expected_number"), [({1}, 1), ({3}, 3), ({1, 3}, 1), (set(), 1)]
)
def test_of_two_named_parents_the_one_that_exists_is_chosen(
    config_home: ConfigHome, existing_numbers: set[int], expected_number: int
) -> None:
    """If a session's file and a link name different parents, the parent that exists is used.

    If both or neither exist, the parent in the session's file is used.
    """
    for number in existing_numbers:
        write_continued_session(config_home, number)
    path = write_continued_session(config_home, 2, 1)
    record_link(Link(session_id(2), session_id(3), "clear", "2026"), Where())
    assert session_numbers(find_lineage(config_home, path)) == [expected_number, 2]


def test_the_parent_of_a_fork_is_found(config_home: ConfigHome) -> None:
    """The parent of an SDK fork is found in the field ``forkedFrom`` of the fork's records."""
    write_continued_session(config_home, 1)
    fork = {"sessionId": session_id(1), "messageUuid": "r1"}
    records = [user("hi", uuid="a", session_id=session_id(2), forkedFrom=fork)]
    rows = find_lineage(config_home, write_session(config_home.project(), session_id(2), records))
    assert session_numbers(rows) == [1, 2]
    assert rows[1].kind == "fork"


def test_trimmed_sessions_can_be_omitted(config_home: ConfigHome) -> None:
    """``omit_trimmed_sessions`` removes trims and links each row to the nearest remaining ancestor."""
    write_continued_session(config_home, 1)
    write_session(
        config_home.project(),
        session_id(2),
        [
            {
                "trim_metadata": {
                    "parent_file": str(config_home.project() / f"{session_id(1)}.jsonl")
                }
            },
            *conversation(1),
        ],
    )
    rows = omit_trimmed_sessions(
        find_lineage(config_home, write_continued_session(config_home, 3, 2))
    )
    assert session_numbers(rows) == [1, 3]
    assert rows[1].parent_session_id == session_id(1)


@pytest.mark.parametrize("path", ["/nowhere/x.jsonl", "/tmp"])
def test_the_lineage_of_an_unreadable_session_is_an_error(
    config_home: ConfigHome, path: str
) -> None:
    """The lineage of a session that cannot be read raises ``SessionNotFound``."""
    with pytest.raises(SessionNotFound):
        find_lineage(config_home, path)


def hostile_paths(home: ConfigHome) -> dict[str, str]:
    """Return paths that a forged session may give for its parent. The keys describe the paths."""
    outside = home.root / "outside"
    canary = write_session(outside, session_id(1), conversation(1))
    pipe = outside / "pipe" / f"{session_id(1)}.jsonl"
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    (home.config / "projects" / "-linked").symlink_to(outside)
    project = home.project()
    return {
        "system file": "/etc/passwd",
        "session outside": canary,
        "pipe outside": str(pipe),
        "dots": f"{project}/../../../outside/{session_id(1)}.jsonl",
        "dots through a link": f"{home.config}/projects/-linked/../outside/{session_id(1)}.jsonl",
        "linked project": f"{home.config}/projects/-linked/{session_id(1)}.jsonl",
        "deeper than a project": f"{project}/sub/{session_id(1)}.jsonl",
        "no session name": f"{project}/notes.jsonl",
        "huge": "/x" * 500_000,
        "NUL": f"{project}/{session_id(1)}\0.jsonl",
        "lone surrogate": f"{project}\ud800/{session_id(1)}.jsonl",
        "relative": f"{session_id(1)}.jsonl",
        "device": "/dev/zero",
        "empty": "",
    }


@pytest.mark.parametrize("path_index", range(14))
def test_a_hostile_path_is_never_opened(config_home: ConfigHome, path_index: int) -> None:
    """Whatever path a session names as its parent, a lineage opens no file outside the projects.

    The parent is shown as missing.
    """
    hostile = list(hostile_paths(config_home).values())[path_index]
    (config_home.project() / "notes.jsonl").write_text("{}\n")
    first = {"continue_metadata": {"parent_file": hostile, "parent_session_id": session_id(1)}}
    path = write_session(
        config_home.project(), session_id(2), [json.dumps(first).encode(), *conversation(1)]
    )
    with opened_paths() as opened:
        rows = find_lineage(config_home, path)
    assert [row.status for row in rows] == ["missing", "present"]
    allowed = {path, str(config_home.config / "projects"), links_file(config_home.where)}
    note = os.path.join(archive_folder(session_id(1), config_home.where), MANIFEST_NAME)
    assert set(opened) <= allowed | {note}
    assert path in opened


@pytest.mark.parametrize(
    "invalid_id",
    [f"../../outside/{session_id(1)}", f"/x/{session_id(1)}", "..", "a\0b", "*", "x" * 5000],
)
def test_an_invalid_id_is_never_used_as_a_path(config_home: ConfigHome, invalid_id: str) -> None:
    """A parent id such as ``../../outside`` is never used as a path."""
    canary = write_session(config_home.config / "outside", session_id(1), conversation(1))
    first = {"continue_metadata": {"parent_session_id": invalid_id, "parent_file": "/gone/x.jsonl"}}
    path = write_session(config_home.project(), session_id(2), [first, *conversation(1)])
    with opened_paths() as opened:
        rows = find_lineage(config_home, path)
    assert (rows[0].status, rows[0].session_id) == ("missing", "")
    assert canary not in opened


@pytest.mark.parametrize(
    "title",
    [
        "\x1b[31mred\x1b[0m",
        "two\nlines\r\nmore",
        "bell\x07\x00",
        "a\x9b2J",
        "\u202eback",
        "lone \ud83d",
        "x" * 5_000,
    ],
)
def test_titles_are_one_plain_line(config_home: ConfigHome, title: str) -> None:
    """A title in a lineage has no control characters or line breaks, and at most 80 characters."""
    record = json.dumps(custom_title(title)).encode()
    path = write_session(config_home.project(), session_id(1), [*conversation(1), record])
    shown = find_lineage(config_home, path)[0].title
    assert shown.isprintable() or "\ufffd" in shown
    assert "\n" not in shown
    assert 0 < len(shown) <= 80
    shown.encode()


def test_a_lineage_has_a_maximum_depth(config_home: ConfigHome) -> None:
    """A lineage and a list of descendants contain at most ``MAX_GENERATIONS`` generations."""
    path = ""
    for number in range(1, MAX_GENERATIONS + 2):
        path = write_continued_session(config_home, number, number - 1 or None)
    rows = find_lineage(config_home, path)
    assert len(rows) == MAX_GENERATIONS
    assert session_numbers(rows)[-1] == MAX_GENERATIONS + 1
    found = LineageFinder(config_home.where).find_descendants(session_id(1))
    assert [int(one.row.session_id[:8], 16) for one in found] == list(range(2, MAX_GENERATIONS + 2))


def test_descendants_of_every_kind_are_found(config_home: ConfigHome) -> None:
    """Children that are known from metadata, forks and links are found as descendants, each once.

    All sessions of one generation are listed before the next generation.
    """
    write_continued_session(config_home, 1)
    write_continued_session(config_home, 2, 1)
    write_continued_session(config_home, 3, 2, folder=config_home.project("/elsewhere"))
    write_continued_session(config_home, 4)
    record_link(Link(session_id(4), session_id(1), "clear", "2026"), Where())
    fork = {"sessionId": session_id(1), "messageUuid": "r1"}
    write_session(
        config_home.project(),
        session_id(5),
        [user("hi", uuid="a", forkedFrom=fork)],
        mtime=1_000_005,
    )
    write_continued_session(config_home, 6)
    found = LineageFinder(config_home.where).find_descendants(session_id(1))
    told = [
        (session_numbers([one.row])[0], int(one.parent_session_id[:8], 16), one.row.kind)
        for one in found
    ]
    assert told == [(2, 1, "handoff"), (4, 1, "clear"), (5, 1, "fork"), (3, 2, "handoff")]


def test_descendants_are_found_in_a_cycle_or_if_the_session_is_missing(
    config_home: ConfigHome,
) -> None:
    """The descendants of a session are found even if it is in a cycle or its file is missing.

    In a cycle, a session is not one of its own descendants.
    """
    for number, parent in ((1, 2), (2, 1), (4, 3)):
        write_continued_session(config_home, number, parent)
    lineage_finder = LineageFinder(config_home.where)
    assert [one.row.session_id for one in lineage_finder.find_descendants(session_id(1))] == [
        session_id(2)
    ]
    assert [one.row.session_id for one in lineage_finder.find_descendants(session_id(3))] == [
        session_id(4)
    ]


def test_a_file_outside_the_projects_has_a_lineage(config_home: ConfigHome, tmp_path: Path) -> None:
    """The parent of a transcript outside the projects is found in the transcript's folder."""
    write_session(tmp_path, session_id(1), conversation(1))
    line = make_first_line(
        parent_id=session_id(1),
        parent_file="/old/place.jsonl",
        kind="trim",
        continued_at="",
        has_summary=False,
    )
    path = write_session(tmp_path, session_id(2), [line, *conversation(1)])
    assert session_numbers(find_lineage(config_home, path)) == [1, 2]
