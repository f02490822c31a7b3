"""What a session's records tell of files: states prompt by prompt, in any order and of any shape."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from resume_hooks.errors import NoFileHistory, NotATranscript
from resume_hooks.parts.rewind_files import history
from resume_hooks.paths import session_id_of
from resume_hooks.sessions.session_files import session_file
from tests.needs import corpus
from tests.parts.rewind_files.project import Project, backup, delta, edited, prompt_id, snapshot, turns

A1, A2, B1 = "aaaaaaaaaaaaaaaa@v1", "aaaaaaaaaaaaaaaa@v2", "bbbbbbbbbbbbbbbb@v1"


def states(project: Project, *records: Any, prompts: int = 3) -> list[dict[str, str | None]]:
    """The names of the backups of each state, oldest first."""
    found = history.read(project.session([*turns(prompts), *records]))
    return [{path: one.name for path, one in state.backups.items()} for state in found.states]


def test_an_update_takes_the_place_of_its_snapshot(project: Project) -> None:
    """Old clients write the whole snapshot again when a file comes to it."""
    found = states(
        project,
        snapshot(prompt_id(1), {}),
        snapshot(prompt_id(1), {"a": backup(A1)}, of="a1", update=True),
        snapshot(prompt_id(2), {"a": backup(A2, 2)}),
    )
    assert found == [{"a": A1}, {"a": A2}]


@pytest.mark.parametrize("late", [False, True])
def test_a_delta_adds_a_file(project: Project, late: bool) -> None:
    """New clients write the file alone, now and then before the snapshot that it belongs to."""
    pair = [snapshot(prompt_id(2), {"a": backup(A2, 2)}), delta(prompt_id(2), "b", backup(B1))]
    assert states(project, *(reversed(pair) if late else pair)) == [{"a": A2, "b": B1}]


def test_a_delta_without_its_snapshot_goes_on_from_the_one_before(project: Project) -> None:
    """As the client does it where the snapshot was not written."""
    found = states(project, snapshot(prompt_id(1), {"a": backup(A1)}), delta(prompt_id(2), "b", backup(None)))
    assert found == [{"a": A1}, {"a": A1, "b": None}]


def test_states_stand_in_the_order_of_their_prompts(project: Project) -> None:
    """Snapshots are written when they are done."""
    found = states(project, snapshot(prompt_id(2), {"a": backup(A2, 2)}), snapshot(prompt_id(1), {"a": backup(A1)}))
    assert found == [{"a": A1}, {"a": A2}]


NOT_STATES = [
    snapshot("", {"a": backup(A1)}) | {"messageId": ""},
    {"type": "file-history-snapshot", "messageId": prompt_id(1)},
    {"type": "file-history-snapshot", "messageId": prompt_id(1), "snapshot": []},
    {"type": "file-history-snapshot", "messageId": prompt_id(1), "snapshot": {"trackedFileBackups": [1]}},
    {"type": "file-history-snapshot", "messageId": 7, "snapshot": {"messageId": 7, "trackedFileBackups": {}}},
    delta("", "a", backup(A1)),
    delta(prompt_id(1), "", backup(A1)),
    delta(prompt_id(1), "a", None),
    delta(prompt_id(1), "a", {"version": 1}),
    b'{"type":"file-history-delta",',
]


@pytest.mark.parametrize("record", NOT_STATES)
def test_records_of_another_shape_say_nothing(project: Project, record: Any) -> None:
    """They are no state, and no failure but that there is none."""
    with pytest.raises(NoFileHistory, match="no file history"):
        states(project, record)


@pytest.mark.parametrize(
    "name", ["", "../x", "/etc/passwd", "aaaaaaaaaaaaaaaa@v1/../../x", "AAAAAAAAAAAAAAAA@v1", 7, [], True, A1 + "\n"]
)
def test_a_name_that_no_client_gives_is_none(project: Project, name: Any) -> None:
    """It is data: it never reaches a path."""
    assert states(project, snapshot(prompt_id(1), {"a": backup(name)})) == [{"a": ""}]


def test_values_that_are_no_backups_are_left_out(project: Project) -> None:
    """The files beside them count all the same."""
    found = states(project, snapshot(prompt_id(1), {"a": backup(A1), "b": None, "c": 1, "d": {}}))
    assert found == [{"a": A1}]


def test_absurdly_many_files_are_refused(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """No client tracks that many."""
    monkeypatch.setattr(history, "MAX_PATHS", 3)
    with pytest.raises(NoFileHistory, match="more than 3 files"):
        states(project, snapshot(prompt_id(1), {str(number): backup(A1) for number in range(4)}))


def test_an_edit_is_known_by_the_text_that_it_left(project: Project) -> None:
    """Written whole, or replaced in what was there; where the result does not say, nothing is known."""
    records = edited("/p/a", "one\r\n", uuid="e1", parent="a1")
    changed = edited("/p/b", "", uuid="e2", parent="a1")
    changed[1]["toolUseResult"] = {
        "filePath": "/p/b", "oldString": "x", "newString": "y", "originalFile": "x x\n", "structuredPatch": [],
    }  # fmt: skip
    silent = edited("/p/c", "", uuid="e3", parent="a1")
    silent[1]["toolUseResult"] = {"filePath": "/p/c", "structuredPatch": []}
    found = history.read(project.session([*turns(1), snapshot(prompt_id(1), {}), *records, *changed, *silent])).edits
    assert found["/p/a"].digest == history.text_digest(b"one\n")
    assert found["/p/b"].digest == history.text_digest(b"y x\n")
    assert found["/p/c"].digest == ""


def test_real_sessions_are_read() -> None:
    """Every file history of the corpus has states at prompts of its own."""
    read = 0
    for path in filter(lambda path: session_id_of(str(path)), [*corpus().rglob("*.jsonl")]):
        if path.stat().st_size < 4_000_000 and b'"type":"file-history-' in path.read_bytes():
            with contextlib.suppress(NoFileHistory, NotATranscript):
                found = history.read(session_file(str(path)))
                assert {state.message for state in found.states} & {prompt.uuid for prompt in found.prompts}, path
                read += 1
    assert read > 20
