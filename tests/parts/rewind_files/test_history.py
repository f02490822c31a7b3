"""Tests of reading the states of files from a session's records, in any order and form."""

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
    backup_entry,
    delta_record,
    prompt_id,
    snapshot_record,
    turns_on_one_chain,
    write_call,
)

BACKUP_NAME_A1, BACKUP_NAME_A2, BACKUP_NAME_B1 = (
    "aaaaaaaaaaaaaaaa@v1",
    "aaaaaaaaaaaaaaaa@v2",
    "bbbbbbbbbbbbbbbb@v1",
)


def backup_names_of_states(
    project: Project, *records: Any, prompt_count: int = 3
) -> list[dict[str, str | None]]:
    """Return the names of the backups in each state, oldest first."""
    found = history.read_file_history(
        project.write_session([*turns_on_one_chain(prompt_count), *records])
    )
    return [{path: one.name for path, one in state.backups.items()} for state in found.states]


def test_an_update_replaces_its_snapshot(project: Project) -> None:
    """An update replaces the snapshot at the same prompt. Old clients write an update for a new file."""
    found = backup_names_of_states(
        project,
        snapshot_record(prompt_id(1), {}),
        snapshot_record(
            prompt_id(1), {"a": backup_entry(BACKUP_NAME_A1)}, owner_id="a1", is_update=True
        ),
        snapshot_record(prompt_id(2), {"a": backup_entry(BACKUP_NAME_A2, 2)}),
    )
    assert found == [{"a": BACKUP_NAME_A1}, {"a": BACKUP_NAME_A2}]


@pytest.mark.parametrize("is_snapshot_last", [False, True])
def test_a_delta_adds_a_file(project: Project, is_snapshot_last: bool) -> None:
    """A delta adds a file to its snapshot, whether the delta or the snapshot was written first."""
    pair = [
        snapshot_record(prompt_id(2), {"a": backup_entry(BACKUP_NAME_A2, 2)}),
        delta_record(prompt_id(2), "b", backup_entry(BACKUP_NAME_B1)),
    ]
    assert backup_names_of_states(project, *(reversed(pair) if is_snapshot_last else pair)) == [
        {"a": BACKUP_NAME_A2, "b": BACKUP_NAME_B1}
    ]


def test_a_delta_without_its_snapshot_extends_the_previous_one(project: Project) -> None:
    """A delta whose prompt has no snapshot extends the previous snapshot, as in the client."""
    found = backup_names_of_states(
        project,
        snapshot_record(prompt_id(1), {"a": backup_entry(BACKUP_NAME_A1)}),
        delta_record(prompt_id(2), "b", backup_entry(None)),
    )
    assert found == [{"a": BACKUP_NAME_A1}, {"a": BACKUP_NAME_A1, "b": None}]


def test_states_are_in_the_order_of_their_prompts(project: Project) -> None:
    """The states are sorted by their prompts, even if the snapshots were written in another order."""
    found = backup_names_of_states(
        project,
        snapshot_record(prompt_id(2), {"a": backup_entry(BACKUP_NAME_A2, 2)}),
        snapshot_record(prompt_id(1), {"a": backup_entry(BACKUP_NAME_A1)}),
    )
    assert found == [{"a": BACKUP_NAME_A1}, {"a": BACKUP_NAME_A2}]


INVALID_SNAPSHOTS = [
    snapshot_record("", {"a": backup_entry(BACKUP_NAME_A1)}) | {"messageId": ""},
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
    delta_record("", "a", backup_entry(BACKUP_NAME_A1)),
    delta_record(prompt_id(1), "", backup_entry(BACKUP_NAME_A1)),
    delta_record(prompt_id(1), "a", None),
    delta_record(prompt_id(1), "a", {"version": 1}),
    b'{"type":"file-history-delta",',
]


@pytest.mark.parametrize("record", INVALID_SNAPSHOTS)
def test_invalid_snapshots_are_ignored(project: Project, record: Any) -> None:
    """Invalid snapshots are ignored. A session with only such snapshots raises ``NoFileHistory``."""
    with pytest.raises(NoFileHistory, match="no file history"):
        backup_names_of_states(project, record)


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
        BACKUP_NAME_A1 + "\n",
    ],
)
def test_an_invalid_backup_name_is_ignored(project: Project, name: Any) -> None:
    """A backup's name that could lead to another folder is ignored."""
    assert backup_names_of_states(
        project, snapshot_record(prompt_id(1), {"a": backup_entry(name)})
    ) == [{"a": ""}]


def test_invalid_backups_are_ignored(project: Project) -> None:
    """A backup of the wrong type is ignored, and other files of the snapshot are read."""
    found = backup_names_of_states(
        project,
        snapshot_record(
            prompt_id(1), {"a": backup_entry(BACKUP_NAME_A1), "b": None, "c": 1, "d": {}}
        ),
    )
    assert found == [{"a": BACKUP_NAME_A1}]


def test_too_many_files_are_refused(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session with too many files raises ``NoFileHistory``."""
    monkeypatch.setattr(history, "MAX_TRACKED_PATHS", 3)
    with pytest.raises(NoFileHistory, match="more than 3 files"):
        backup_names_of_states(
            project,
            snapshot_record(
                prompt_id(1), {str(number): backup_entry(BACKUP_NAME_A1) for number in range(4)}
            ),
        )


def test_an_edit_is_hashed_after_it_is_applied(project: Project) -> None:
    """The digest of an edit is the digest of the file after the edit.

    The digest is ``""`` if the call's result does not show the new text.
    """
    records = write_call("/p/a", "one\r\n", uuid="e1", parent="a1")
    changed = write_call("/p/b", "", uuid="e2", parent="a1")
    changed[1]["toolUseResult"] = {
        "filePath": "/p/b", "oldString": "x", "newString": "y", "originalFile": "x x\n", "structuredPatch": [],
    }  # fmt: skip
    silent = write_call("/p/c", "", uuid="e3", parent="a1")
    silent[1]["toolUseResult"] = {"filePath": "/p/c", "structuredPatch": []}
    found = history.read_file_history(
        project.write_session(
            [*turns_on_one_chain(1), snapshot_record(prompt_id(1), {}), *records, *changed, *silent]
        )
    ).last_edits
    assert found["/p/a"].content_digest == history.hash_content_ignoring_line_ends(b"one\n")
    assert found["/p/b"].content_digest == history.hash_content_ignoring_line_ends(b"y x\n")
    assert found["/p/c"].content_digest == ""


def test_file_histories_of_real_sessions_are_read() -> None:
    """In each real session with a file history, at least one state belongs to a prompt of the session."""
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


BACKUP_NAME_A3 = "aaaaaaaaaaaaaaaa@v3"
PROMPT_UUID = prompt_id(1)


@pytest.mark.parametrize(
    ("position", "expected_target"),
    [
        ("12", RewindTarget(12, 0, None)),
        ("turn 12", RewindTarget(12, 0, None)),
        (" Turn12 ", RewindTarget(12, 0, None)),
        ("last", RewindTarget(0, 0, None)),
        (PROMPT_UUID, RewindTarget(None, PROMPT_UUID, None)),
        (PROMPT_UUID.upper(), RewindTarget(None, PROMPT_UUID.upper(), None)),
        ("abcd:34", RewindTarget(None, 34, "abcd")),
        (f"abcd:{PROMPT_UUID}", RewindTarget(None, PROMPT_UUID, "abcd")),
    ],
)
def test_typed_positions_are_parsed(position: str, expected_target: RewindTarget) -> None:
    """A typed position is a turn, "last", a uuid, or a reference such as ``abcd:34``."""
    assert files_at_prompt.parse_target(position) == expected_target


@pytest.mark.parametrize(
    "position", ["", "0", "-3", "12-14", "abc", "abcd:", "abcd:x", ":3", "١٢", "turn", "9" * 30]
)
def test_an_invalid_position_is_refused(position: str) -> None:
    """An invalid position raises ``UsageError``."""
    with pytest.raises(UsageError):
        files_at_prompt.parse_target(position)


def state_at_prompt(project: Project, records: Sequence[object], position: str) -> PromptState:
    """Return the state of the files at a prompt of a session with these records."""
    found = history.read_file_history(project.write_session(records))  # type: ignore[arg-type]
    return files_at_prompt.find_prompt_state(found, files_at_prompt.parse_target(position))


def three_prompts() -> list[object]:
    """Return three prompts, each with its own state of the files."""
    states = [
        snapshot_record(prompt_id(number), {"a": backup_entry(name, number)})
        for number, name in ((1, BACKUP_NAME_A1), (2, BACKUP_NAME_A2), (3, BACKUP_NAME_A3))
    ]
    return [*turns_on_one_chain(3), *states]


@pytest.mark.parametrize("position", ["2", prompt_id(2), prompt_id(2).upper(), f"{SESSION}:2"])
def test_the_state_at_a_prompt_is_found(project: Project, position: str) -> None:
    """The state at a prompt is found by turn, uuid and line."""
    found = state_at_prompt(project, three_prompts(), position)
    assert (found.prompt.turn_number, found.is_exact, found.files.backups["a"].name) == (
        2,
        True,
        BACKUP_NAME_A2,
    )


def test_the_position_last_is_the_last_prompt(project: Project) -> None:
    """The position "last" is the last prompt."""
    assert state_at_prompt(project, three_prompts(), "last").prompt.turn_number == 3


@pytest.mark.parametrize(
    ("position", "reason", "remedy"),
    [
        (f"{SESSION}:3", "is not a user prompt", f'{prompt_id(3)} turn 3 "prompt 3"'),
        (f"{SESSION}:6", "is not a user prompt", f'{prompt_id(3)} turn 3 "prompt 3"'),
        (prompt_id(99), "No record", 'turn 1 "prompt 1"'),
        ("4", "No turn 4", "1 to 3"),
    ],
)
def test_a_position_that_is_not_a_prompt_is_refused(
    project: Project, position: str, reason: str, remedy: str
) -> None:
    """If a position is not a prompt, the refusal names the nearest prompts or the valid turns."""
    with pytest.raises(UsageError, match=reason) as caught:
        state_at_prompt(project, three_prompts(), position)
    assert remedy in caught.value.remedy


def prompts_with_an_edit(project: Project, prompt_count: int, *states: object) -> list[object]:
    """Return prompts with an edit between the first and the second, followed by ``states``."""
    chain = turns_on_one_chain(prompt_count)
    return [
        *chain[:2],
        *write_call(str(project.path_of("a")), "x", uuid="e", parent="a1"),
        *chain[2:],
        *states,
    ]


def test_a_prompt_without_a_state_uses_the_previous_state(project: Project) -> None:
    """A prompt without a state uses the previous state.

    If a file was edited in between, the state is marked as not exact.
    """
    found = state_at_prompt(
        project,
        prompts_with_an_edit(
            project, 3, snapshot_record(prompt_id(1), {"a": backup_entry(BACKUP_NAME_A1)})
        ),
        "3",
    )
    assert (found.is_exact, found.files.backups["a"].name) == (False, BACKUP_NAME_A1)


def test_a_state_is_valid_until_the_next_edit(project: Project) -> None:
    """A state also applies to an earlier prompt if no file was edited between the two prompts.

    Newer clients record no state for a very short turn.
    """
    states = [
        snapshot_record(prompt_id(1), {"a": backup_entry(BACKUP_NAME_A1)}),
        snapshot_record(prompt_id(3), {"a": backup_entry(BACKUP_NAME_A3, 3)}),
    ]
    found = state_at_prompt(project, prompts_with_an_edit(project, 3, *states), "2")
    assert (found.is_exact, found.files.backups["a"].name) == (True, BACKUP_NAME_A3)


def test_a_prompt_before_the_first_state_has_none(project: Project) -> None:
    """If a file was edited between a prompt and the first recorded state, the state at the prompt is unknown.

    The error names the turn of the first recorded state.
    """
    with pytest.raises(NoFileHistory, match="at or before turn 1") as caught:
        state_at_prompt(
            project,
            prompts_with_an_edit(
                project, 2, snapshot_record(prompt_id(2), {"a": backup_entry(BACKUP_NAME_A2, 2)})
            ),
            "1",
        )
    assert "turn 2" in caught.value.remedy


def branched_prompts() -> list[object]:
    """Return prompt 1 and two branches after it: prompt 2, which was abandoned, and prompt 3."""
    return [
        *turns_on_one_chain(2),
        user("prompt 3", uuid=prompt_id(3), parent="a1", ts=9),
        assistant("done", uuid="a3", parent=prompt_id(3), ts=10),
        snapshot_record(prompt_id(1), {}),
        snapshot_record(prompt_id(2), {"b": backup_entry(BACKUP_NAME_A1)}),
        snapshot_record(prompt_id(3), {"c": backup_entry(BACKUP_NAME_A1)}),
    ]


@pytest.mark.parametrize(
    ("position", "used_paths"), [("1", {"b", "c"}), ("2", {"b"}), ("3", {"c"})]
)
def test_states_of_another_branch_are_ignored(
    project: Project, position: str, used_paths: set[str]
) -> None:
    """States on a branch that does not contain the chosen prompt are ignored.

    If two branches begin after the chosen prompt, the states of both branches are used. A file's
    first backup has the content that the file had at the prompt.
    """
    assert {
        path
        for state in state_at_prompt(project, branched_prompts(), position).branch_states
        for path in state.backups
    } == used_paths


def test_a_cycle_of_parents_ends(project: Project) -> None:
    """In a damaged session, a cycle of parents is followed only once."""
    records = three_prompts()
    records[0] = {**records[0], "parentUuid": "a3"}  # type: ignore[dict-item]
    assert state_at_prompt(project, records, "2").prompt.turn_number == 2
