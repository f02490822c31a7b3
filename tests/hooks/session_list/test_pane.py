"""The pane as the module asks for it: what is listed, found and previewed in which step, and what its keys give."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.hooks.inside import answered
from resume_hooks.hooks.session_list import pane
from resume_hooks.hooks.session_list.pane import NAMES, PREVIEW, SAID
from tests.builders import (
    CWD,
    SESSION,
    ConfigHome,
    boundary,
    conversation,
    custom_title,
    session_id,
    summary,
    user,
    write_session,
)

COLUMNS = 78
ROOM = {"screen": True, "session_id": SESSION, "columns": COLUMNS, "lines": 20}
TITLES = {1: "Fix the parser", 2: "Write the docs", 3: "Mend the pool"}


@pytest.fixture(autouse=True)
def project(config_home: ConfigHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three sessions of a project that is there, the newest last; the folder of their files."""
    monkeypatch.setenv("RESUME_HOOKS_CLIPBOARD", "none")
    for number, title in TITLES.items():
        rows = [*conversation(2, session_id=session_id(number)), custom_title(title, session_id(number))]
        path = write_session(
            config_home.project(),
            session_id(number),
            [{**row, "cwd": str(tmp_path)} if "cwd" in row else row for row in rows],
        )
        os.utime(path, (1_800_000_000 + number,) * 2)
    return Path(config_home.project())


def ask(project: Path, words: str = "", step: str = NAMES, **fields: object) -> dict[str, Any]:
    """What the module gets, asked from a session of the project that has no file yet."""
    event = {**ROOM, "args": words, "step": step, "everywhere": True, **fields}
    reply = answered("pane", {**event, "transcript_path": str(project / f"{SESSION}.jsonl")})
    json.dumps(reply)
    return reply


def ids(reply: dict[str, Any]) -> list[str]:
    """The sessions that are listed."""
    return [row[0] for row in reply["rows"]]


def test_names_then_what_was_said_then_the_preview(project: Path) -> None:
    """Each step says what to ask next; nothing typed needs no search; lines fit."""
    whole = ask(project)
    assert ids(whole) == [session_id(3), session_id(2), session_id(1)]
    assert (whole["at"], whole["next"]) == (session_id(3), PREVIEW)
    docs = ask(project, "docs")
    assert (ids(docs), docs["next"], "1 of 3" in docs["head"]) == ([session_id(2)], SAID, True)
    assert ids(ask(project, "answer")) == []
    said = ask(project, "answer 3", SAID)
    assert set(ids(said)) <= {session_id(number) for number in TITLES}
    assert said["rows"]
    assert said["next"] == PREVIEW
    shown = ask(project, step=PREVIEW, at=session_id(2))
    assert shown["preview"][0].startswith(session_id(2))
    assert any("prompt 2" in line for line in shown["preview"])
    assert all(len(line) <= COLUMNS for line in [*shown["preview"], *(row[1] for row in whole["rows"])])


@pytest.mark.parametrize(("columns", "most"), [(83, 4), (82, 3), (48, 3), (47, 3), (36, 2)])
def test_the_list_leaves_room_for_every_line_of_keys(project: Path, columns: int, most: int) -> None:
    """The client breaks between two of them where they don't fit side by side."""
    assert ask(project, columns=columns, lines=7)["most"] == most


def test_more_rows_are_given_than_a_small_pane_shows(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module moves among them; at an edge, behind which there is more, it asks anew."""
    whole = ask(project, lines=6)
    assert (ids(whole), whole["most"], whole["edges"]) == ([session_id(number) for number in (3, 2, 1)], 2, [])
    monkeypatch.setattr(pane, "AHEAD", 1)
    first = ask(project, lines=6)
    assert (ids(first), first["edges"], first["again"]) == ([session_id(3), session_id(2)], [session_id(2)], NAMES)
    last = ask(project, lines=6, at=session_id(1))
    assert (ids(last), last["edges"], last["at"]) == ([session_id(2), session_id(1)], [session_id(2)], session_id(1))
    assert ask(project, lines=6, step=PREVIEW, at=session_id(2))["preview"] == []


def test_keys_open_fork_and_hand_off(project: Path) -> None:
    """A session of this project is opened; of a child, the child; where that makes no sense, why."""
    opened = ask(project, at=session_id(2), key="open")
    assert (opened["open"], opened["fill"]) == (session_id(2), "")
    assert f"claude --resume {session_id(2)}" in opened["by_hand"]
    for key, mark in (("fork", '"forkedFrom"'), ("handoff", '"continuation_type":"handoff"')):
        child = project / f"{ask(project, at=session_id(2), key=key)['open']}.jsonl"
        assert mark in child.read_text()
    assert "was never compacted" in ask(project, at=session_id(2), key="undo")["head"]
    assert "that you are in" in ask(project, at=session_id(2), key="open", session_id=session_id(2))["text"]
    (project / f"{session_id(1)}.jsonl").unlink()
    for at in (session_id(1), "", "../x"):
        assert set(ask(project, at=at, key="open")) == {"head", "next"}


def test_a_compaction_undone(project: Path, tmp_path: Path) -> None:
    """What stood before it is there, and what came after it is not."""
    rows = [
        *conversation(2, session_id=session_id(5)),
        boundary(uuid="cut", parent=None, session_id=session_id(5)),
        summary("So far.", uuid="sum", parent="cut", session_id=session_id(5)),
        user("AFTER", uuid="after", parent="sum", session_id=session_id(5)),
    ]
    write_session(project, session_id(5), [{**row, "cwd": str(tmp_path)} for row in rows])
    child = (project / f"{ask(project, at=session_id(5), key='undo')['open']}.jsonl").read_text()
    assert ("prompt 2" in child, "AFTER" in child) == (True, False)


def test_a_session_of_another_folder_is_for_a_shell(project: Path, tmp_path: Path) -> None:
    """The command with its folder; where that is gone, the verb that gives it a new one."""
    away = str(project.parent / "-elsewhere" / f"{SESSION}.jsonl")
    event = {**ROOM, "key": "open", "at": session_id(2), "transcript_path": away}
    assert f"cd {tmp_path} && claude --resume {session_id(2)}" in answered("pane", event)["text"]
    write_session(project, session_id(4), [{**row, "cwd": CWD} for row in conversation(2, session_id=session_id(4))])
    assert "is gone" in ask(project, at=session_id(4), key="open")["head"]
