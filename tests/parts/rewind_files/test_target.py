"""Which prompt is meant, and which state of the files counts there."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from resume_hooks.errors import NoFileHistory, UsageError
from resume_hooks.parts.rewind_files import files_at_prompt, history
from resume_hooks.parts.rewind_files.files_at_prompt import Aim, Target
from tests.builders import assistant, user
from tests.parts.rewind_files.project import SESSION, Project, backup, edited, prompt_id, snapshot, turns

A1, A2, A3 = (f"aaaaaaaaaaaaaaaa@v{number}" for number in (1, 2, 3))
UUID = prompt_id(1)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("12", Target(12, 0, None)),
        ("turn 12", Target(12, 0, None)),
        (" Turn12 ", Target(12, 0, None)),
        ("last", Target(0, 0, None)),
        (UUID, Target(None, UUID, None)),
        (UUID.upper(), Target(None, UUID.upper(), None)),
        ("abcd:34", Target(None, 34, "abcd")),
        (f"abcd:{UUID}", Target(None, UUID, "abcd")),
    ],
)
def test_what_is_typed(typed: str, meant: Target) -> None:
    """A number is a turn; a colon stands between a session and a record."""
    assert files_at_prompt.parse(typed) == meant


@pytest.mark.parametrize("typed", ["", "0", "-3", "12-14", "abc", "abcd:", "abcd:x", ":3", "١٢", "turn", "9" * 30])
def test_what_names_no_message(typed: str) -> None:
    """It is refused with the forms that there are."""
    with pytest.raises(UsageError):
        files_at_prompt.parse(typed)


def aim(project: Project, records: Sequence[object], to: str) -> Aim:
    """The aim at a message of a session."""
    found = history.read(project.session(records))  # type: ignore[arg-type]
    return files_at_prompt.aim(found, files_at_prompt.parse(to))


def three() -> list[object]:
    """Three prompts, a state at each."""
    states = [snapshot(prompt_id(number), {"a": backup(name, number)}) for number, name in ((1, A1), (2, A2), (3, A3))]
    return [*turns(3), *states]


@pytest.mark.parametrize("to", ["2", prompt_id(2), prompt_id(2).upper(), f"{SESSION}:2"])
def test_the_state_at_a_prompt(project: Project, to: str) -> None:
    """By turn, uuid or line."""
    found = aim(project, three(), to)
    assert (found.prompt.turn, found.exact, found.state.backups["a"].name) == (2, True, A2)


def test_the_last_prompt(project: Project) -> None:
    """Whatever its number."""
    assert aim(project, three(), "last").prompt.turn == 3


@pytest.mark.parametrize("to", [f"{SESSION}:3", f"{SESSION}:6"])
def test_what_is_no_prompt_names_the_nearest(project: Project, to: str) -> None:
    """With what can be typed instead."""
    with pytest.raises(UsageError, match="is no prompt") as caught:
        aim(project, three(), to)
    assert prompt_id(3) in caught.value.remedy
    assert 'turn 3 "prompt 3"' in caught.value.remedy


def test_a_record_that_is_not_there(project: Project) -> None:
    """The last prompts are named."""
    with pytest.raises(UsageError, match="No record") as caught:
        aim(project, three(), prompt_id(99))
    assert 'turn 1 "prompt 1"' in caught.value.remedy


def test_a_turn_that_is_not_there(project: Project) -> None:
    """The turns are named."""
    with pytest.raises(UsageError, match="No turn 4") as caught:
        aim(project, three(), "4")
    assert "1 to 3" in caught.value.remedy


def test_a_prompt_without_a_state_has_the_one_before(project: Project) -> None:
    """Which is not exact where a tool wrote a file between."""
    chain = turns(3)
    between = edited(str(project.path("a")), "x", uuid="e", parent="a1")
    records = [*chain[:2], *between, *chain[2:], snapshot(prompt_id(1), {"a": backup(A1)})]
    found = aim(project, records, "3")
    assert (found.exact, found.state.backups["a"].name) == (False, A1)


def test_a_state_counts_further_where_nothing_was_edited(project: Project) -> None:
    """The one after a prompt, too: newer clients write none for a turn of milliseconds."""
    chain = turns(3)
    between = edited(str(project.path("a")), "x", uuid="e", parent="a1")
    states = [snapshot(prompt_id(1), {"a": backup(A1)}), snapshot(prompt_id(3), {"a": backup(A3, 3)})]
    found = aim(project, [*chain[:2], *between, *chain[2:], *states], "2")
    assert (found.exact, found.state.backups["a"].name) == (True, A3)


def test_before_the_first_state_there_is_none(project: Project) -> None:
    """Edits came before it, so nobody knows; the first prompt that has one is named."""
    chain = turns(2)
    between = edited(str(project.path("a")), "x", uuid="e", parent="a1")
    with pytest.raises(NoFileHistory, match="at or before turn 1") as caught:
        aim(project, [*chain[:2], *between, *chain[2:], snapshot(prompt_id(2), {"a": backup(A2, 2)})], "1")
    assert "turn 2" in caught.value.remedy


def branched() -> list[object]:
    """Prompt 1, then two branches from it: prompt 2, which was left, and prompt 3."""
    return [
        *turns(2),
        user("prompt 3", uuid=prompt_id(3), parent="a1", ts=9),
        assistant("done", uuid="a3", parent=prompt_id(3), ts=10),
        snapshot(prompt_id(1), {}),
        snapshot(prompt_id(2), {"b": backup(A1)}),
        snapshot(prompt_id(3), {"c": backup(A1)}),
    ]


@pytest.mark.parametrize(("to", "tracked"), [("1", {"b", "c"}), ("2", {"b"}), ("3", {"c"})])
def test_states_of_another_branch_do_not_count(project: Project, to: str, tracked: set[str]) -> None:
    """Those that went on from the prompt do: what they first touched is as it was at the prompt."""
    assert {path for state in aim(project, branched(), to).states for path in state.backups} == tracked


def test_a_cycle_of_parents_ends(project: Project) -> None:
    """Damaged links are walked once."""
    records = three()
    records[0] = {**records[0], "parentUuid": "a3"}  # type: ignore[dict-item]
    assert aim(project, records, "2").prompt.turn == 2
