"""Tests of hits: their references, their sessions, and hits in files that were changed."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from resume_hooks.cli.main import cli
from resume_hooks.paths import Where
from resume_hooks.search import run_search
from resume_hooks.search.index.changed_files import UpdateOutcome
from resume_hooks.search.index.connect import OpenIndex, open_index
from resume_hooks.search.index.database import index_file_path, words_folder
from resume_hooks.search.index.postings import Postings
from resume_hooks.search.query import parse_query
from resume_hooks.search.ranking import TermLookups
from resume_hooks.search.scope import FilesInScope, Scope, find_files_in_scope
from tests.builders import ConfigHome, Record, session_bytes, session_id, user, write_session
from tests.search.asking import (
    search_home,
    session_and_line_numbers_of_hits,
    session_ids,
    write_talk,
)
from tests.search.index.probe import OLD_FILE_TIME, uuid_of_text


def test_copies_are_shown_once(config_home: ConfigHome) -> None:
    """A record that a child copied is one hit, in the session where it was first written.

    The hit also names the child. If the original is deleted, the hit is in the child.
    """
    first = write_talk(config_home, 1, "tune the linter", "done")
    copied = first.read_bytes().replace(session_id(1).encode(), session_id(2).encode())
    metadata: Record = {
        "continue_metadata": {"parent_session_id": session_id(1), "parent_session_file": str(first)}
    }
    more = user("and the formatter", uuid=uuid_of_text("more"), session_id=session_id(2), ts=900)
    child = first.with_name(f"{session_id(2)}.jsonl")
    child.write_bytes(session_bytes([metadata]) + copied + session_bytes([more]))
    os.utime(child, (OLD_FILE_TIME + 60, OLD_FILE_TIME + 60))
    for sessions in (None, session_ids([1]), session_ids([2])):
        found = search_home(config_home, "linter", session_ids=sessions)
        assert [(hit.reference, hit.session_ids) for hit in found.hits] == [
            (f"{session_id(1)}:0", (session_id(1), session_id(2)))
        ]
    assert (
        session_and_line_numbers_of_hits(
            search_home(config_home, "formatter", session_ids=session_ids([1]))
        )
        == []
    )
    first.unlink()
    assert [hit.reference for hit in search_home(config_home, "linter").hits] == [
        f"{session_id(2)}:1"
    ]


@pytest.mark.parametrize("searched_project", ["one", "two"])
def test_a_search_in_a_project_finds_the_copy_in_this_project(
    config_home: ConfigHome, tmp_path: Path, searched_project: str
) -> None:
    """If a session has copies in two projects, a search in one project finds that project's copy.

    A search in all projects finds the newer copy.
    """
    paths: dict[str, str] = {}
    for age, (name, before) in enumerate([("one", 1), ("two", 3)]):
        folder = tmp_path / name
        folder.mkdir()
        said = user(
            "tune the linter", uuid=uuid_of_text("said"), session_id=session_id(1), cwd=str(folder)
        )
        opened: list[Record] = [{"type": "mode", "mode": "normal"}] * before
        paths[name] = write_session(
            config_home.project(str(folder)), session_id(1), [*opened, said]
        )
        os.utime(paths[name], (OLD_FILE_TIME + age, OLD_FILE_TIME + age))
    (hit,) = search_home(config_home, "linter", folders=(str(tmp_path / searched_project),)).hits
    assert (hit.file, hit.session_file, hit.folder) == (
        paths[searched_project],
        paths[searched_project],
        str(tmp_path / searched_project),
    )
    assert hit.reference == f"{session_id(1)}:{1 if searched_project == 'one' else 3}"
    assert [hit.file for hit in search_home(config_home, "linter").hits] == [paths["two"]]


def test_short_references_are_unique(config_home: ConfigHome) -> None:
    """A short reference has the first eight characters of the session id.

    If several ids begin with the same characters, it has the whole id.
    """
    alike = "00000001-0000-4000-8000-000000000099"
    write_talk(config_home, 1, "tune the linter one")
    write_talk(config_home, 2, "tune the linter two")
    write_session(
        config_home.project(),
        alike,
        [user("tune the linter three", uuid=uuid_of_text(3), session_id=alike)],
    )
    found = {hit.session_id: hit.short_reference for hit in search_home(config_home, "linter").hits}
    assert found == {
        session_id(1): f"{session_id(1)}:0",
        session_id(2): "00000002:0",
        alike: f"{alike}:0",
    }


@pytest.fixture
def home_with_references(config_home: ConfigHome) -> ConfigHome:
    """Write sessions and sub-agents.

    One sub-agent has no session, and another has a name like ``$(x)``.
    """
    for number in (1, 2):
        write_talk(config_home, number, f"tune the linter {number}", f"linter {number} is tuned")
    project = config_home.project()
    own, gone = project / session_id(1) / "subagents", project / session_id(9) / "subagents"
    for folder, name, number in [
        (own, "agent-a1", 1),
        (own, "agent-$(x) y", 1),
        (project, "agent-old", 2),
        (gone, "agent-b", 9),
    ]:
        said = user(
            f"linter of {name}",
            uuid=uuid_of_text(name),
            session_id=session_id(number),
            isSidechain=True,
        )
        write_session(folder, name, [said])
    return config_home


def test_read_accepts_every_reference(home_with_references: ConfigHome) -> None:
    """``read`` accepts the full and the short reference of every hit and shows the hit's text."""
    hits = search_home(home_with_references, "linter").hits
    assert len(hits) == 6
    for hit in hits:
        for reference in (hit.reference, hit.short_reference):
            done = CliRunner().invoke(cli, ["read", reference], catch_exceptions=False)
            assert hit.snippet in done.output, reference


class StaleIndex:
    """A home whose index is no longer updated."""

    def __init__(self, home: ConfigHome, path: Path) -> None:
        self.home = home
        self.path = path

    def find_snippets(self, query: str) -> list[str]:
        """Return the snippets of the hits that the outdated index finds."""
        db = sqlite3.connect(index_file_path(self.home.where))
        try:
            index = OpenIndex(db, Postings(words_folder(self.home.where)), UpdateOutcome(), [])
            assert TermLookups(index.postings).look_up(parse_query([query]).terms[0]).is_in_index
            found = run_search.Searcher(index, Scope(), self.home.where).search(
                [parse_query([query])], 10
            )
            assert found.matching_turn_count == len(found.hits)
            return [hit.snippet for hit in found.hits]
        finally:
            db.close()


@pytest.fixture
def stale_index(config_home: ConfigHome) -> StaleIndex:
    """Return a home whose index contains a session of two turns."""
    path = write_talk(config_home, 1, "an older word", "ok", "tune the linter", "ok")
    with open_index(config_home.where):
        pass
    return StaleIndex(config_home, path)


def _rewrite_file(path: Path) -> None:
    beside = path.with_name("other")
    beside.write_bytes(path.read_bytes().replace(b"linter", b"secret"))
    beside.replace(path)


def _replace_with_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


FILE_CHANGE_FUNCTIONS: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "cut": lambda path: os.truncate(path, 100),
    "rewritten": _rewrite_file,
    "shifted": lambda path: path.write_bytes(b'{"x":1}\n' + path.read_bytes()),
    "a link": lambda path: path.symlink_to(path.rename(path.with_name("copy"))),
    "a pipe": _replace_with_pipe,
    "garbage": lambda path: path.write_bytes(os.urandom(path.stat().st_size)),
}


@pytest.mark.parametrize("change", FILE_CHANGE_FUNCTIONS)
def test_a_changed_record_is_not_a_hit(stale_index: StaleIndex, change: str) -> None:
    """A record is not a hit after its file was changed, deleted or replaced.

    A pipe that replaces the file does not block the search.
    """
    FILE_CHANGE_FUNCTIONS[change](stale_index.path)
    assert stale_index.find_snippets("linter") == []


def test_hits_stay_after_records_were_appended(stale_index: StaleIndex) -> None:
    """Hits are still shown after records were appended to their file."""
    with stale_index.path.open("ab") as stream:
        stream.write(b'{"torn')
    assert stale_index.find_snippets("linter") == ["tune the linter"]


def test_a_session_deleted_during_a_search_is_skipped(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a session's file is deleted during a search, only the hits in the other sessions are shown."""
    paths = [write_talk(config_home, number, f"tune the linter {number}") for number in (1, 2)]

    def delete_then_find(db: sqlite3.Connection, scope: Scope, where: Where) -> FilesInScope:
        paths[0].unlink(missing_ok=True)
        return find_files_in_scope(db, scope, where)

    monkeypatch.setattr(run_search, "find_files_in_scope", delete_then_find)
    found = search_home(config_home, "linter")
    assert (session_and_line_numbers_of_hits(found), found.matching_turn_count) == ([(2, 0)], 1)
