"""What a session's records tell of files: states prompt by prompt, in any order and of any shape."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import pytest

from resume_hooks.errors import NoFileHistory, NotATranscript, UsageError
from resume_hooks.parts.rewind_files import files_at_prompt, history
from resume_hooks.parts.rewind_files.files_at_prompt import PromptState, RewindTarget
from resume_hooks.paths import session_id_from_path
from resume_hooks.sessions.session_files import session_file
from tests.builders import assistant, user
from tests.needs import corpus
from tests.parts.rewind_files.project import (
    SESSION,
    Project,
    backup,
    delta,
    prompt_id,
    snapshot,
    turns,
    write_call,
)

A1, A2, B1 = "aaaaaaaaaaaaaaaa@v1", "aaaaaaaaaaaaaaaa@v2", "bbbbbbbbbbbbbbbb@v1"


def states(project: Project, *records: Any, prompts: int = 3) -> list[dict[str, str | None]]:
    """The names of the backups of each state, oldest first."""
    found = history.read_file_history(project.session([*turns(prompts), *records]))
    return [{path: one.name for path, one in state.backups.items()} for state in found.states]


def test_an_update_takes_the_place_of_its_snapshot(project: Project) -> None:
    """Old clients write the whole snapshot again for a new file."""
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


def test_a_delta_without_its_snapshot_continues_from_the_one_before(project: Project) -> None:
    """The client does the same if the snapshot was not written."""
    found = states(
        project, snapshot(prompt_id(1), {"a": backup(A1)}), delta(prompt_id(2), "b", backup(None))
    )
    assert found == [{"a": A1}, {"a": A1, "b": None}]


def test_states_are_in_the_order_of_their_prompts(project: Project) -> None:
    """Snapshots are written when they are done."""
    found = states(
        project,
        snapshot(prompt_id(2), {"a": backup(A2, 2)}),
        snapshot(prompt_id(1), {"a": backup(A1)}),
    )
    assert found == [{"a": A1}, {"a": A2}]


NOT_STATES = [
    snapshot("", {"a": backup(A1)}) | {"messageId": ""},
    {"type": "file-history-snapshot", "messageId": prompt_id(1)},
    {"type": "file-history-snapshot", "messageId": prompt_id(1), "snapshot": []},
    {
        "type": "file-history-snapshot",
        "messageId": prompt_id(1),
        "snapshot": {"trackedFileBackups": [1]},
    },
    {
        "type": "file-history-snapshot",
        "messageId": 7,
        "snapshot": {"messageId": 7, "trackedFileBackups": {}},
    },
    delta("", "a", backup(A1)),
    delta(prompt_id(1), "", backup(A1)),
    delta(prompt_id(1), "a", None),
    delta(prompt_id(1), "a", {"version": 1}),
    b'{"type":"file-history-delta",',
]


@pytest.mark.parametrize("record", NOT_STATES)
def test_records_of_another_shape_say_nothing(project: Project, record: Any) -> None:
    """They are ignored; without others there is no history."""
    with pytest.raises(NoFileHistory, match="no file history"):
        states(project, record)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "../x",
        "/etc/passwd",
        "aaaaaaaaaaaaaaaa@v1/../../x",
        "AAAAAAAAAAAAAAAA@v1",
        7,
        [],
        True,
        A1 + "\n",
    ],
)
def test_a_name_that_no_client_gives_is_none(project: Project, name: Any) -> None:
    """It is data: it never reaches a path."""
    assert states(project, snapshot(prompt_id(1), {"a": backup(name)})) == [{"a": ""}]


def test_values_that_are_not_backups_are_left_out(project: Project) -> None:
    """The files next to them count all the same."""
    found = states(project, snapshot(prompt_id(1), {"a": backup(A1), "b": None, "c": 1, "d": {}}))
    assert found == [{"a": A1}]


def test_absurdly_many_files_are_refused(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """No client tracks so many."""
    monkeypatch.setattr(history, "MAX_TRACKED_PATHS", 3)
    with pytest.raises(NoFileHistory, match="more than 3 files"):
        states(project, snapshot(prompt_id(1), {str(number): backup(A1) for number in range(4)}))


def test_an_edit_is_known_by_the_text_that_it_left(project: Project) -> None:
    """Written whole, or replaced in what was there.

    Where the result does not say, nothing is known.
    """
    records = write_call("/p/a", "one\r\n", uuid="e1", parent="a1")
    changed = write_call("/p/b", "", uuid="e2", parent="a1")
    changed[1]["toolUseResult"] = {
        "filePath": "/p/b", "oldString": "x", "newString": "y", "originalFile": "x x\n", "structuredPatch": [],
    }  # fmt: skip
    silent = write_call("/p/c", "", uuid="e3", parent="a1")
    silent[1]["toolUseResult"] = {"filePath": "/p/c", "structuredPatch": []}
    found = history.read_file_history(
        project.session([*turns(1), snapshot(prompt_id(1), {}), *records, *changed, *silent])
    ).last_edits
    assert found["/p/a"].digest == history.hash_text(b"one\n")
    assert found["/p/b"].digest == history.hash_text(b"y x\n")
    assert found["/p/c"].digest == ""


def test_real_sessions_are_read() -> None:
    """Every file history of the corpus has states at its own prompts."""
    read = 0
    for path in filter(lambda path: session_id_from_path(str(path)), [*corpus().rglob("*.jsonl")]):
        if path.stat().st_size < 4_000_000 and b'"type":"file-history-' in path.read_bytes():
            with contextlib.suppress(NoFileHistory, NotATranscript):
                found = history.read_file_history(session_file(str(path)))
                assert {state.prompt_id for state in found.states} & {
                    prompt.uuid for prompt in found.prompts
                }, path
                read += 1
    assert read > 20


A3 = "aaaaaaaaaaaaaaaa@v3"
UUID = prompt_id(1)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("12", RewindTarget(12, 0, None)),
        ("turn 12", RewindTarget(12, 0, None)),
        (" Turn12 ", RewindTarget(12, 0, None)),
        ("last", RewindTarget(0, 0, None)),
        (UUID, RewindTarget(None, UUID, None)),
        (UUID.upper(), RewindTarget(None, UUID.upper(), None)),
        ("abcd:34", RewindTarget(None, 34, "abcd")),
        (f"abcd:{UUID}", RewindTarget(None, UUID, "abcd")),
    ],
)
def test_typed_positions(typed: str, meant: RewindTarget) -> None:
    """A number is a turn; a colon separates a session and a record."""
    assert files_at_prompt.parse_target(typed) == meant


@pytest.mark.parametrize(
    "typed", ["", "0", "-3", "12-14", "abc", "abcd:", "abcd:x", ":3", "١٢", "turn", "9" * 30]
)
def test_a_position_without_a_message(typed: str) -> None:
    """It is refused, and the error shows the valid forms."""
    with pytest.raises(UsageError):
        files_at_prompt.parse_target(typed)


def aim(project: Project, records: Sequence[object], to: str) -> PromptState:
    """The aim at a message of a session."""
    found = history.read_file_history(project.session(records))  # type: ignore[arg-type]
    return files_at_prompt.find_prompt_state(found, files_at_prompt.parse_target(to))


def three() -> list[object]:
    """Three prompts, a state at each."""
    states = [
        snapshot(prompt_id(number), {"a": backup(name, number)})
        for number, name in ((1, A1), (2, A2), (3, A3))
    ]
    return [*turns(3), *states]


@pytest.mark.parametrize("to", ["2", prompt_id(2), prompt_id(2).upper(), f"{SESSION}:2"])
def test_the_state_at_a_prompt(project: Project, to: str) -> None:
    """The prompt is named by turn, uuid or line."""
    found = aim(project, three(), to)
    assert (found.prompt.turn, found.is_exact, found.state.backups["a"].name) == (2, True, A2)


def test_the_last_prompt(project: Project) -> None:
    """Its number does not matter."""
    assert aim(project, three(), "last").prompt.turn == 3


@pytest.mark.parametrize(
    ("to", "why", "remedy"),
    [
        (f"{SESSION}:3", "is not a user prompt", f'{prompt_id(3)} turn 3 "prompt 3"'),
        (f"{SESSION}:6", "is not a user prompt", f'{prompt_id(3)} turn 3 "prompt 3"'),
        (prompt_id(99), "No record", 'turn 1 "prompt 1"'),
        ("4", "No turn 4", "1 to 3"),
    ],
)
def test_a_record_that_is_not_a_prompt(project: Project, to: str, why: str, remedy: str) -> None:
    """The error names the nearest prompts or the turns, and the valid forms."""
    with pytest.raises(UsageError, match=why) as caught:
        aim(project, three(), to)
    assert remedy in caught.value.remedy


def with_an_edit(project: Project, prompts: int, *states: object) -> list[object]:
    """So many prompts, between the first and the second of which a tool wrote a file."""
    chain = turns(prompts)
    return [
        *chain[:2],
        *write_call(str(project.path("a")), "x", uuid="e", parent="a1"),
        *chain[2:],
        *states,
    ]


def test_a_prompt_without_a_state_has_the_one_before(project: Project) -> None:
    """It is not exact if a tool wrote a file between."""
    found = aim(project, with_an_edit(project, 3, snapshot(prompt_id(1), {"a": backup(A1)})), "3")
    assert (found.is_exact, found.state.backups["a"].name) == (False, A1)


def test_a_state_counts_further_where_nothing_was_edited(project: Project) -> None:
    """The one after a prompt, too: newer clients write none for a turn of milliseconds."""
    states = [
        snapshot(prompt_id(1), {"a": backup(A1)}),
        snapshot(prompt_id(3), {"a": backup(A3, 3)}),
    ]
    found = aim(project, with_an_edit(project, 3, *states), "2")
    assert (found.is_exact, found.state.backups["a"].name) == (True, A3)


def test_before_the_first_state_there_is_none(project: Project) -> None:
    """Edits preceded it, so the state is unknown; the error names the first prompt with one."""
    with pytest.raises(NoFileHistory, match="at or before turn 1") as caught:
        aim(project, with_an_edit(project, 2, snapshot(prompt_id(2), {"a": backup(A2, 2)})), "1")
    assert "turn 2" in caught.value.remedy


def branched() -> list[object]:
    """Return prompt 1 and two branches from it: prompt 2, which was abandoned, and prompt 3."""
    return [
        *turns(2),
        user("prompt 3", uuid=prompt_id(3), parent="a1", ts=9),
        assistant("done", uuid="a3", parent=prompt_id(3), ts=10),
        snapshot(prompt_id(1), {}),
        snapshot(prompt_id(2), {"b": backup(A1)}),
        snapshot(prompt_id(3), {"c": backup(A1)}),
    ]


@pytest.mark.parametrize(("to", "tracked"), [("1", {"b", "c"}), ("2", {"b"}), ("3", {"c"})])
def test_states_of_another_branch_do_not_count(
    project: Project, to: str, tracked: set[str]
) -> None:
    """Those that continued from the prompt do: what they first touched is as it was at the prompt."""
    assert {
        path for state in aim(project, branched(), to).states for path in state.backups
    } == tracked


def test_a_cycle_of_parents_ends(project: Project) -> None:
    """Damaged links are followed once."""
    records = three()
    records[0] = {**records[0], "parentUuid": "a3"}  # type: ignore[dict-item]
    assert aim(project, records, "2").prompt.turn == 2
