"""The documented Python API."""

from __future__ import annotations

from pathlib import Path

import pytest

import resume_hooks
from resume_hooks import (
    SessionNode,
    get_continuation_lineage,
    get_full_lineage_chain,
    get_parent_info,
    rollover,
    trim,
)
from resume_hooks.errors import NothingToHandOff, SessionNotFound, UsageError
from resume_hooks.links import Link, record_link
from tests.builders import (
    ConfigHome,
    conversation,
    custom_title,
    session_id,
    tool_result,
    tool_use,
    write_session,
)


@pytest.fixture
def family(config_home: ConfigHome) -> list[Path]:
    """An original, its trim (with an export), and a continuation of that."""
    folder = config_home.project()
    paths = [folder / f"{session_id(n)}.jsonl" for n in (1, 2, 3)]
    trim = {"trim_metadata": {"parent_file": str(paths[0])}, "continue_metadata": {"exported_file": "/x/log.txt"}}
    onward = {"continue_metadata": {"parent_session_file": str(paths[1]), "parent_session_id": session_id(2)}}
    write_session(folder, session_id(1), conversation(1))
    write_session(folder, session_id(2), [trim, *conversation(1)])
    write_session(folder, session_id(3), [onward, *conversation(1)])
    return paths


def test_parent_info(family: list[Path]) -> None:
    """The parent's file, how the session was derived, what it was exported to."""
    assert get_parent_info(family[0]) == (None, None, None)
    assert get_parent_info(family[1]) == (family[0], "trimmed", Path("/x/log.txt"))
    assert get_parent_info(str(family[2])) == (family[1], "continued", None)


def test_parent_info_of_a_lost_parent(family: list[Path]) -> None:
    """A parent that is gone is told by the path that it had."""
    family[1].unlink()
    assert get_parent_info(family[2]) == (family[1], "continued", None)


def test_continuation_lineage_leaves_trims_out(family: list[Path]) -> None:
    """Oldest first, each node linked to the one before it."""
    first = SessionNode(family[0], session_id(1), None, None)
    assert get_continuation_lineage(family[2]) == [
        first,
        SessionNode(family[2], session_id(3), "continued", None, first),
    ]


def test_full_chain(family: list[Path]) -> None:
    """Newest first, ending with the original."""
    assert get_full_lineage_chain(family[2]) == [
        (family[2], "continued"),
        (family[1], "trimmed"),
        (family[0], "original"),
    ]


def test_a_parent_known_by_id_alone(config_home: ConfigHome) -> None:
    """It still has the name that its file had."""
    path = write_session(config_home.project(), session_id(2), conversation(1))
    record_link(Link(session_id(2), session_id(1), "clear", "2026"))
    assert get_full_lineage_chain(path)[-1] == (Path(f"{session_id(1)}.jsonl"), "unknown")
    assert get_continuation_lineage(path)[0].session_id == session_id(1)
    assert get_parent_info(path) == (None, "continued", None)


def test_rollover_makes_a_child(family: list[Path]) -> None:
    """With a next step it is a handoff, without one a rollover; a dry run makes nothing."""
    before = set(family[0].parent.iterdir())
    assert rollover(family[0], dry_run=True).written is False
    assert set(family[0].parent.iterdir()) == before
    made = rollover(family[0], next_step="go on")
    assert (made.written, made.kind, Path(made.file).exists()) == (True, "handoff", True)
    assert rollover(str(family[0]), next_step="  ").kind == "rollover"


def test_failures_are_of_one_family(config_home: ConfigHome, tmp_path: Path) -> None:
    """A missing file, a folder, an empty path, an empty session: expected failures, never a trace of ours."""
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


def test_the_package_tells_its_names() -> None:
    """Every documented name resolves; others are no attributes."""
    for name in resume_hooks.__all__:
        assert getattr(resume_hooks, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        resume_hooks.nothing  # noqa: B018


def test_trim(config_home: ConfigHome) -> None:
    """A child without its bulk; where it would not pay, nothing is written and no file is named."""
    long = [
        *conversation(1),
        tool_use("t1", uuid="c", parent="r1", name="Bash", ts=5),
        tool_result("t1", "a long output " * 500, uuid="d", parent="c", ts=6),
        *[{**record, "parentUuid": record["parentUuid"] or "d"} for record in conversation(3, prefix="s", start=7)],
    ]
    path = write_session(config_home.project(), session_id(7), long)
    assert not trim(path, dry_run=True).written
    made = trim(path)
    assert made.written
    assert b"Results from Bash tool suppressed" in Path(made.file).read_bytes()
    assert trim(path, resume_hooks.Options(only=("media",))).file == ""
