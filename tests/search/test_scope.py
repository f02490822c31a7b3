"""Tests of filters: projects with worktrees, sessions, roles, branches, tools, files and times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resume_hooks.errors import UsageError
from resume_hooks.paths import Where, project_key
from resume_hooks.search.result_text import result_text
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import needed_folder_names, project_scope_of_folder
from resume_hooks.system.git_worktrees import list_worktrees
from tests.builders import CWD, ConfigHome, session_id, tool_result, tool_use, user, write_session
from tests.search.asking import (
    search_home,
    session_and_line_numbers_of_hits,
    session_ids,
    write_talk,
)
from tests.search.index.probe import uuid_of_text


def test_sessions_of_a_subfolder_are_found_in_the_repository(
    config_home: ConfigHome, git: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search in a repository includes sessions that were started in its subfolders.

    This holds even if a subfolder no longer exists. If the repository is the user's home folder,
    its subfolders are not included.
    """
    root = tmp_path / "repo"
    git(root, "init", "-q")
    for number, folder in enumerate(
        ("repo", "repo/sub", "repo/.claude/worktrees/gone", "repo-two", "other"), 1
    ):
        write_talk(config_home, number, "tune the linter", cwd=str(tmp_path / folder))
    scope = project_scope_of_folder(str(root), Where())
    found = {hit.session_id for hit in search_index(["linter"], scope, config_home.where).hits}
    assert found == {session_id(1), session_id(2), session_id(3)}
    assert {project_key(str(root / "sub")), project_key(str(root))} <= set(
        needed_folder_names(scope, config_home.where) or ()
    )
    monkeypatch.setenv("HOME", str(root))
    assert project_scope_of_folder(str(root), Where()).root_folders == ()


def test_a_search_in_a_worktree_includes_other_worktrees(
    git: Any, tmp_path: Path, config_home: ConfigHome
) -> None:
    """A search in a worktree includes sessions of the repository's other worktrees."""
    main, linked = tmp_path / "main", tmp_path / "linked"
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "x")
    git(main, "worktree", "add", "-q", str(linked))
    for number, folder in enumerate([main, linked, tmp_path / "elsewhere"], 1):
        write_talk(config_home, number, f"tune the linter {number}", cwd=str(folder))
    assert session_and_line_numbers_of_hits(
        search_home(config_home, "linter", folders=list_worktrees(str(linked)))
    ) == [
        (1, 0),
        (2, 0),
    ]


def test_colliding_folders_are_distinguished(config_home: ConfigHome) -> None:
    """A search in a folder omits sessions of other folders that the client stores in the same place."""
    write_talk(config_home, 1, "tune the linter one", cwd="/home/user/my-proj")
    write_talk(config_home, 2, "tune the linter two", cwd="/home/user/my.proj")
    assert project_key("/home/user/my-proj") == project_key("/home/user/my.proj")
    assert session_and_line_numbers_of_hits(
        search_home(config_home, "linter", folders=("/home/user/my.proj",))
    ) == [(2, 0)]


def test_a_session_is_searched_with_its_sub_agents(config_home: ConfigHome) -> None:
    """A search in a session includes its sub-agents. A search may also be limited to one sub-agent."""
    path = write_talk(config_home, 1, "tune the linter")
    write_talk(config_home, 2, "tune the linter as well")
    own = path.with_suffix("") / "subagents"
    for name in ("agent-a1", "agent-b2"):
        said = user(
            f"the linter of {name}",
            uuid=uuid_of_text(name),
            session_id=session_id(1),
            isSidechain=True,
        )
        write_session(own, name, [said])
    found = search_home(config_home, "linter", session_ids=session_ids([1]))
    assert {hit.reference for hit in found.hits} == {
        f"{session_id(1)}:0",
        f"{session_id(1)}/agent-a1:0",
        f"{session_id(1)}/agent-b2:0",
    }
    found = search_home(
        config_home, "linter", session_ids=session_ids([1]), subagent_name="agent-b2"
    )
    assert [hit.reference for hit in found.hits] == [f"{session_id(1)}/agent-b2:0"]


def test_hits_in_headless_runs_are_marked(config_home: ConfigHome) -> None:
    """Hits in a headless run with a single question, and in its sub-agents, are marked as headless.

    Hits in longer headless sessions are not marked.
    """
    helper = write_talk(config_home, 1, "tune the linter", "ok", entrypoint="sdk-cli")
    longer = write_talk(
        config_home, 2, "tune the linter again", "ok", "go on", "ok", entrypoint="sdk-py"
    )
    for path in (helper, longer):
        number = int(path.stem[:8], 16)
        fields: dict[str, Any] = {
            "session_id": path.stem,
            "isSidechain": True,
            "entrypoint": "sdk-cli",
        }
        said = user(f"linter helper {number}", uuid=uuid_of_text(f"agent {number}"), **fields)
        write_session(path.with_suffix("") / "subagents", "agent-a1", [said])
    found = search_home(config_home, "linter")
    assert {(hit.session_id, hit.is_headless) for hit in found.hits} == {
        (session_id(1), True),
        (session_id(2), False),
    }
    assert (found.matching_turn_count, found.omitted_run_count) == (4, 0)
    assert result_text(found).count("headless run") == 2
    assert search_home(config_home, "linter", session_ids=session_ids([1])).matching_turn_count == 2


def test_hits_in_headless_runs_are_ranked_by_strength(config_home: ConfigHome) -> None:
    """A strong hit in a headless run precedes a hit with only one word of the question."""
    write_talk(
        config_home,
        1,
        "why does the linter skip generated files",
        "It has a list of them.",
        entrypoint="sdk-cli",
    )
    write_talk(config_home, 2, "the formatter", "It skips nothing.")
    found = search_home(config_home, "linter skip generated files")
    assert [(hit.session_id, hit.is_headless) for hit in found.hits] == [
        (session_id(1), True),
        (session_id(2), False),
    ]


def test_only_three_of_many_equal_headless_runs_are_shown(config_home: ConfigHome) -> None:
    """Of hundreds of identical headless runs, three are shown, and the number of omitted runs is reported."""
    for number in range(1, 330):
        write_talk(
            config_home, number, "review the linter", "The linter is fine.", entrypoint="sdk-cli"
        )
    write_talk(
        config_home, 400, "the linter of the parser, which somebody may review some day", "ok"
    )
    found = search_home(config_home, "review linter")
    assert sum(hit.is_headless for hit in found.hits) == 3
    assert session_id(400) in {hit.session_id for hit in found.hits}
    assert found.omitted_run_count > 3
    assert "headless runs with a single question omitted; --helpers includes them" in result_text(
        found
    )
    assert len(search_home(config_home, "review linter", include_helpers=True).hits) == 10


def test_a_continued_headless_run_is_found(config_home: ConfigHome) -> None:
    """A copy of a headless run that the user continued is found like any other session."""
    write_talk(config_home, 1, "tune the linter", "ok", entrypoint="sdk-cli")
    write_talk(
        config_home,
        1,
        "tune the linter",
        "ok",
        "now the formatter",
        cwd="/elsewhere",
        entrypoint="sdk-cli",
    )
    found = search_home(config_home, "formatter")
    assert ([hit.session_id for hit in found.hits], found.omitted_run_count) == ([session_id(1)], 0)


@pytest.fixture(scope="module")
def home_with_filters(tmp_path_factory: pytest.TempPathFactory) -> ConfigHome:
    """Write a session whose records differ in branch, tool, file and day."""
    made = ConfigHome.at(tmp_path_factory.mktemp("said"))
    day = "2026-03-0{}T12:00:00Z".format
    file, other = f"{CWD}/src/parser.py", f"{CWD}/docs/my parser.py"
    edit = {"file_path": file, "old_string": "linter", "new_string": "x"}
    read = {"file_path": other, "note": "linter"}
    write_talk(
        made,
        1,
        user("the linter, please", uuid=uuid_of_text(0), ts=day(1), gitBranch="main"),
        tool_use(
            "c1",
            uuid=uuid_of_text(1),
            parent=uuid_of_text(0),
            name="Edit",
            tool_input=edit,
            ts=day(2),
            gitBranch="main",
        ),
        tool_result(
            "c1",
            "linter done",
            uuid=uuid_of_text(2),
            parent=uuid_of_text(1),
            ts=day(3),
            gitBranch="main",
        ),
        user(
            "the linter again",
            uuid=uuid_of_text(3),
            parent=uuid_of_text(2),
            ts=day(4),
            gitBranch="fix/linter",
        ),
        tool_use(
            "c2",
            uuid=uuid_of_text(4),
            parent=uuid_of_text(3),
            name="mcp__x__Read",
            tool_input=read,
            ts=day(5),
            gitBranch="main",
        ),
        tool_result(
            "c2",
            "linter here",
            uuid=uuid_of_text(5),
            parent=uuid_of_text(4),
            ts=day(6),
            gitBranch="main",
        ),
    )
    return made


FILTER_CASES: list[tuple[dict[str, Any], set[int]]] = [
    ({}, {0, 1, 2, 3, 4, 5}),
    ({"branch": "fix/linter"}, {3}),
    ({"branch": "fix"}, set()),
    ({"branch": "\udcff"}, set()),
    ({"tool": "edit"}, {1, 2}),
    ({"tool": "Read"}, set()),
    ({"tool": "mcp__x__read"}, {4, 5}),
    ({"role": "user"}, {0, 3}),
    ({"role": "tool"}, {1, 2, 4, 5}),
    ({"role": "result"}, {2, 5}),
    ({"file": "parser.py"}, {1}),
    ({"file": "./src/parser.py"}, {1}),
    ({"file": "rser.py"}, set()),
    ({"file": f"{CWD}/src/parser.py"}, {1}),
    ({"file": f"{CWD}/docs/"}, {4}),
    ({"file": CWD}, {1, 4}),
    ({"file": "docs"}, {4}),
    ({"file": "my parser.py"}, {4}),
    ({"file": "/parser.py"}, {1}),
    ({"file": "/"}, set()),
    ({"file": "\udcff"}, set()),
    ({"end_time": 0}, set()),
    ({"start_time": 1_772_539_200}, {2, 3, 4, 5}),
    ({"end_time": 1_772_539_200}, {0, 1}),
    ({"start_time": 1_772_366_400, "end_time": 1_772_366_401}, {0}),
    ({"branch": "main", "role": "result", "tool": "Edit"}, {2}),
]


@pytest.mark.parametrize(("scope", "matching_line_numbers"), FILTER_CASES)
def test_each_filter_limits_the_hits(
    home_with_filters: ConfigHome, scope: dict[str, Any], matching_line_numbers: set[int]
) -> None:
    """With a filter, only matching records are hits, and each turn has one hit."""
    found = [
        int(hit.reference.rpartition(":")[2])
        for hit in search_home(home_with_filters, "linter", **scope).hits
    ]
    assert set(found) <= matching_line_numbers
    assert sorted(line // 3 for line in found) == sorted(
        {line // 3 for line in matching_line_numbers}
    )


@pytest.mark.parametrize(
    ("scope", "matching_line_numbers"),
    [(scope, matching_line_numbers) for scope, matching_line_numbers in FILTER_CASES if scope],
)
def test_filters_without_words_list_the_newest_turns(
    home_with_filters: ConfigHome, scope: dict[str, Any], matching_line_numbers: set[int]
) -> None:
    """A search with a filter and no words lists the matching turns, newest first."""
    found = search_home(home_with_filters, max_hits=1, **scope)
    assert found.matching_turn_count == len({line // 3 for line in matching_line_numbers})
    every = search_home(home_with_filters, **scope).hits
    assert [hit.turn_number for hit in every] == sorted(
        (hit.turn_number for hit in every), reverse=True
    )
    assert found.hits == every[:1]


def test_a_search_without_words_and_filters_is_refused(home_with_filters: ConfigHome) -> None:
    """A search with neither words nor filters is refused."""
    for words in ([], ["  "]):
        with pytest.raises(UsageError, match="No words"):
            search_home(home_with_filters, *words)


def test_a_file_filter_works_in_a_large_folder(config_home: ConfigHome) -> None:
    """A search for a folder finds turns that read tens of thousands of files in it."""
    calls = [
        tool_use(
            f"c{n}", uuid=uuid_of_text(n), parent=None, tool_input={"file_path": f"/big/f{n}.py"}
        )
        for n in range(33_000)
    ]
    write_talk(config_home, 1, "go", *calls)
    assert search_home(config_home, file="/big").matching_turn_count == 1


def test_a_scope_without_sessions_is_reported(home_with_filters: ConfigHome) -> None:
    """A search in a folder without sessions says that there are no sessions to search."""
    found = search_home(home_with_filters, "linter", folders=("/nowhere",))
    assert (found.hits, found.notes) == ([], ["There are no sessions to search"])


def test_unknown_filter_values_are_reported(config_home: ConfigHome) -> None:
    """If no session has the branch, tool or file in a filter, the result names this unknown value."""
    write_talk(config_home, 1, "tune the linter")
    notes = search_home(config_home, "linter", branch="mian", tool="Bsh", file="x.py").notes
    assert [note.split("'")[1] for note in notes] == ["mian", "Bsh", "x.py"]
    assert search_home(config_home, "linter", branch="main").notes == []
