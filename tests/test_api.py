"""Tests of the documented Python API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import resume_hooks
from resume_hooks import (
    SearchHit,
    SessionNode,
    fork_session,
    get_continuation_lineage,
    get_full_lineage_chain,
    get_parent_info,
    rollover,
    search_sessions,
    trim,
)
from resume_hooks.errors import NothingToHandOff, SessionNotFound, UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.link_log import Link, record_link
from tests.builders import (
    CWD,
    ConfigHome,
    assistant,
    conversation,
    custom_title,
    session_id,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.search.index.probe import uuid_of_text


@pytest.fixture
def sessions_in_lineage(config_home: ConfigHome) -> list[Path]:
    """Write three sessions: an original, a trim of it that was exported, and a continuation of the trim."""
    folder = config_home.project()
    paths = [folder / f"{session_id(n)}.jsonl" for n in (1, 2, 3)]
    trim = {
        "trim_metadata": {"parent_file": str(paths[0])},
        "continue_metadata": {"exported_file": "/x/log.txt"},
    }
    onward = {
        "continue_metadata": {
            "parent_session_file": str(paths[1]),
            "parent_session_id": session_id(2),
        }
    }
    write_session(folder, session_id(1), conversation(1))
    write_session(folder, session_id(2), [trim, *conversation(1)])
    write_session(folder, session_id(3), [onward, *conversation(1)])
    return paths


def test_parent_info_has_the_parent_the_kind_and_the_export(
    sessions_in_lineage: list[Path],
) -> None:
    """``get_parent_info`` returns the parent, the kind and the export, each of which may be None."""
    assert get_parent_info(sessions_in_lineage[0]) == (None, None, None)
    assert get_parent_info(sessions_in_lineage[1]) == (
        sessions_in_lineage[0],
        "trimmed",
        Path("/x/log.txt"),
    )
    assert get_parent_info(str(sessions_in_lineage[2])) == (
        sessions_in_lineage[1],
        "continued",
        None,
    )


def test_parent_info_names_a_deleted_parent(sessions_in_lineage: list[Path]) -> None:
    """``get_parent_info`` returns the path of a parent that was deleted."""
    sessions_in_lineage[1].unlink()
    assert get_parent_info(sessions_in_lineage[2]) == (sessions_in_lineage[1], "continued", None)


def test_the_continuation_lineage_omits_trims(sessions_in_lineage: list[Path]) -> None:
    """``get_continuation_lineage`` omits trims and returns the oldest session first.

    Each node refers to the previous one.
    """
    first = SessionNode(sessions_in_lineage[0], session_id(1), None, None)
    assert get_continuation_lineage(sessions_in_lineage[2]) == [
        first,
        SessionNode(sessions_in_lineage[2], session_id(3), "continued", None, first),
    ]


def test_the_full_lineage_ends_with_the_original(sessions_in_lineage: list[Path]) -> None:
    """``get_full_lineage_chain`` returns the newest session first and the original last."""
    assert get_full_lineage_chain(sessions_in_lineage[2]) == [
        (sessions_in_lineage[2], "continued"),
        (sessions_in_lineage[1], "trimmed"),
        (sessions_in_lineage[0], "original"),
    ]


def test_a_parent_without_a_file_is_named_by_its_id(config_home: ConfigHome) -> None:
    """If only the id of a parent is known, the lineage contains a file name with this id."""
    path = write_session(config_home.project(), session_id(2), conversation(1))
    record_link(Link(session_id(2), session_id(1), "clear", "2026"), Where())
    assert get_full_lineage_chain(path)[-1] == (Path(f"{session_id(1)}.jsonl"), "unknown")
    assert get_continuation_lineage(path)[0].session_id == session_id(1)
    assert get_parent_info(path) == (None, "continued", None)


def test_rollover_writes_a_child(sessions_in_lineage: list[Path]) -> None:
    """``rollover`` writes a handoff if a next step is given, and otherwise a rollover.

    With ``dry_run`` it writes nothing.
    """
    before = set(sessions_in_lineage[0].parent.iterdir())
    assert rollover(sessions_in_lineage[0], dry_run=True).written is False
    assert set(sessions_in_lineage[0].parent.iterdir()) == before
    made = rollover(sessions_in_lineage[0], next_step="go on")
    assert (made.written, made.kind, Path(made.file).exists()) == (True, "handoff", True)
    assert rollover(str(sessions_in_lineage[0]), next_step="  ").kind == "rollover"
    with pytest.raises(UsageError, match="can't have a next step"):
        rollover(sessions_in_lineage[0], next_step="go on", size="all")


def test_invalid_sessions_raise_documented_errors(config_home: ConfigHome, tmp_path: Path) -> None:
    """Missing files, folders, empty paths and empty sessions raise the documented errors."""
    empty = write_session(tmp_path, session_id(1), [custom_title("x", session_id(1))])
    for bad in (tmp_path / "x.jsonl", tmp_path):
        with pytest.raises(SessionNotFound):
            rollover(bad)
    with pytest.raises(NothingToHandOff):
        rollover(empty)
    with pytest.raises(UsageError):
        rollover("")
    for ask in (get_parent_info, get_continuation_lineage, get_full_lineage_chain):
        with pytest.raises(SessionNotFound):
            ask(tmp_path / f"{session_id(9)}.jsonl")


def test_every_documented_name_is_an_attribute() -> None:
    """Every name in ``__all__`` is an attribute of the package, and other names raise AttributeError."""
    for name in resume_hooks.__all__:
        assert getattr(resume_hooks, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        resume_hooks.nothing  # noqa: B018


def test_trim_writes_a_child_only_if_it_pays_off(config_home: ConfigHome) -> None:
    """``trim`` writes a child only if this pays off; otherwise it returns a receipt without a file."""
    long = [
        *conversation(1),
        tool_use("t1", uuid="c", parent="r1", name="Bash", ts=5),
        tool_result("t1", "a long output " * 500, uuid="d", parent="c", ts=6),
        *[
            {**record, "parentUuid": record["parentUuid"] or "d"}
            for record in conversation(3, prefix="s", start=7)
        ],
    ]
    path = write_session(config_home.project(), session_id(7), long)
    assert not trim(path, dry_run=True).written
    made = trim(path)
    assert made.written
    assert b"Results from Bash tool suppressed" in Path(made.file).read_bytes()
    assert trim(path, resume_hooks.Options(only=("media",))).file == ""


@pytest.fixture
def searchable_sessions(
    config_home: ConfigHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Path]:
    """Write three sessions: one with a sub-agent, its continuation, and one in another project."""
    monkeypatch.chdir(tmp_path)
    folder, elsewhere = config_home.project(str(tmp_path)), config_home.project(CWD)
    paths = [(elsewhere if n == 3 else folder) / f"{session_id(n)}.jsonl" for n in (1, 2, 3)]
    for number, path in enumerate(paths, 1):
        cwd = CWD if number == 3 else str(tmp_path)
        common: dict[str, Any] = {"session_id": session_id(number), "cwd": cwd}
        asked = user(f"tune the linter {number}", uuid=uuid_of_text(number), **common)
        onward = {
            "continue_metadata": {
                "parent_session_file": str(paths[0]),
                "parent_session_id": session_id(1),
            }
        }
        answer = assistant(
            "it is tuned",
            uuid=uuid_of_text(number * 10),
            parent=uuid_of_text(number),
            ts=9,
            **common,
        )
        write_session(
            path.parent, session_id(number), [*([onward] if number == 2 else []), asked, answer]
        )
    said = user(
        "the linter of the agent",
        uuid=uuid_of_text("a"),
        session_id=session_id(1),
        isSidechain=True,
    )
    write_session(paths[0].with_suffix("") / "subagents", "agent-a1", [said])
    return paths


def test_search_returns_immutable_hits(searchable_sessions: list[Path], tmp_path: Path) -> None:
    """``search_sessions`` searches the current project and returns immutable hits with references."""
    hits = search_sessions("linter -agent")
    assert {hit.session_id for hit in hits} == {session_id(1), session_id(2)}
    (hit,) = search_sessions('"linter 1"')
    assert hit == SearchHit(
        reference=f"{session_id(1)}:0",
        session_id=session_id(1),
        session_file=searchable_sessions[0],
        file=searchable_sessions[0],
        folder=tmp_path,
        title="tune the linter 1",
        turn=1,
        role="prompt",
        tool="",
        time="2026-01-31T09:30:00.000Z",
        snippet="tune the linter 1",
        words=('"linter 1"',),
        missing=(),
        sessions=(session_id(1),),
        score=hit.score,
        confidence=hit.confidence,
        strength="strong",
        found_by=(),
    )
    with pytest.raises(AttributeError):
        hit.turn = 2  # type: ignore[misc]


def test_search_accepts_several_scopes(searchable_sessions: list[Path]) -> None:
    """``search_sessions`` can search a project, all projects, a session, a sub-agent or a lineage."""
    everything = {f"{session_id(n)}:{n == 2:d}" for n in (1, 2, 3)} | {
        f"{session_id(1)}/agent-a1:0"
    }
    for where, found in [
        ({"project": CWD}, {f"{session_id(3)}:0"}),
        ({"project": Path(CWD)}, {f"{session_id(3)}:0"}),
        ({"everywhere": True}, everything),
        ({"session": session_id(1)}, {f"{session_id(1)}:0", f"{session_id(1)}/agent-a1:0"}),
        ({"session": searchable_sessions[2]}, {f"{session_id(3)}:0"}),
        ({"session": f"{session_id(1)}/agent-a1"}, {f"{session_id(1)}/agent-a1:0"}),
        ({"lineage": searchable_sessions[1]}, everything - {f"{session_id(3)}:0"}),
    ]:
        assert {hit.reference for hit in search_sessions("linter", **where)} == found  # type: ignore[arg-type]
    assert len(search_sessions(["tune", "linter"], everywhere=True, limit=2)) == 2
    assert search_sessions("quux") == []


def test_search_refuses_invalid_arguments(searchable_sessions: list[Path]) -> None:
    """If an argument is invalid, ``search_sessions`` raises UsageError.

    If the session is unknown, it raises SessionNotFound.
    """
    for query, options in [
        ("", {}),
        ([], {}),
        ("-linter", {}),
        ("linter", {"everywhere": True, "session": session_id(1)}),
        ("linter", {"limit": 0}),
    ]:
        with pytest.raises(UsageError):
            search_sessions(query, **options)  # type: ignore[arg-type]
    with pytest.raises(SessionNotFound):
        search_sessions("linter", session=session_id(9))


def test_a_fork_can_be_whole_cut_or_in_another_folder(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """``fork_session`` copies a whole session or its beginning, for the same or another folder.

    With ``dry_run`` it writes nothing.
    """
    path = write_session(config_home.project(), session_id(7), conversation(2))
    assert not fork_session(path, dry_run=True).written
    assert Path(fork_session(path).file).read_bytes().count(b"forkedFrom") == 4
    for how in ({"at": 1}, {"at": "msg_r1"}, {"turn": 1}):
        assert Path(fork_session(path, **how).file).read_bytes().count(b"forkedFrom") == 2
    assert fork_session(path, home=tmp_path).folder == str(tmp_path)
    with pytest.raises(UsageError, match="can't be combined"):
        fork_session(path, at=1, turn=1)
