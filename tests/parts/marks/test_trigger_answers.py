"""Tests of ``>mark`` and ``>back``, run as the client runs them.

A session has one mark, and a mark gives one child.
"""

from __future__ import annotations

import errno
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.errors import WriteFailed
from resume_hooks.hooks import confirmations, hook_state
from resume_hooks.hooks.prompt import card_of_trigger, is_trigger_off
from resume_hooks.hooks.triggers import Trigger
from resume_hooks.parts.marks import state
from resume_hooks.parts.marks.cards import describe_what_stays_unchanged
from resume_hooks.parts.marks.plan_back import OmittedRecords
from resume_hooks.parts.marks.state import Mark
from resume_hooks.parts.marks.trigger_answers import QUESTION_FILE_PREFIX
from resume_hooks.sessions.record_references import TranscriptNames
from tests.builders import (
    SESSION,
    ConfigHome,
    assistant,
    conversation,
    custom_title,
    line,
    session_id,
    tool_use,
    user,
    write_session,
)
from tests.hooks.conftest import RunHook, TypePrompt, list_children, read_block_reason
from tests.hooks.test_child_cards import handoff_receipt
from tests.test_state_failures import failing_writes

LATER_TIMESTAMP = "2999-01-01T00:00:00.000Z"


@pytest.fixture
def parent(config_home: ConfigHome) -> Path:
    """Write a session of two turns and return its path."""
    return Path(
        write_session(
            config_home.project(), SESSION, [*conversation(2), custom_title("Fix the parser")]
        )
    )


def continue_session(parent: Path, uuid: str = "x") -> None:
    """Append a turn to the session."""
    with parent.open("ab") as stream:
        stream.write(line(user("EXPLORE", uuid=uuid, parent="r3", ts=50)) + b"\n")
        stream.write(
            line(assistant("EXPLORED", uuid=f"{uuid}a", parent=uuid, ts=51, tokens=9_000)) + b"\n"
        )


@pytest.mark.parametrize("trigger_sign", [">", "/resume-hooks:"])
def test_back_returns_to_the_mark(type_prompt: TypePrompt, parent: Path, trigger_sign: str) -> None:
    """``>back`` makes a child at the mark and shows a card with the sizes, the report and the next command.

    The parent is unchanged, and the mark is deleted.
    """
    text = type_prompt(f"{trigger_sign}mark try the other parser")
    assert text.startswith("mark set")
    assert "goal: try the other parser" in text
    assert "after record 11111111:3" in text
    assert f"   {trigger_sign}back what you found out\n" in text
    assert text.endswith(
        "Set. Clear the input box: Ctrl+C once." if trigger_sign == ">" else "\nGo on."
    )
    assert list_children(parent) == []
    continue_session(parent)
    raw = parent.read_bytes()
    text = type_prompt(f"{trigger_sign}back it was slower\nso we stay")
    (child,) = list_children(parent)
    assert text.startswith("back · ")
    for part in (
        "Fix the parser · back",
        "9,000 tokens here, about ",
        "just now: try the other parser",
        "report: it was slower so we stay",
        "left out of the new session, but still in this one: 11111111:5 to 11111111:6",
        "files, git and processes stay as they are",
        "Claude Code has no file copies to restore",
        f"  in Claude Code   /resume {child.stem}\n",
        f"claude --resume {child.stem}",
    ):
        assert part in text
    assert ("Ctrl+C once" in text.split("\n")[-1]) is (trigger_sign == ">")
    assert parent.read_bytes() == raw
    assert "EXPLORE" not in child.read_text()
    assert state.find_mark(SESSION) is None


def test_the_mark_is_private(
    type_prompt: TypePrompt, parent: Path, config_home: ConfigHome
) -> None:
    """The file of a mark has mode 0600."""
    type_prompt(">mark x")
    path = config_home.config / "resume-hooks" / "pending" / f"mark-{SESSION}.json"
    assert path.stat().st_mode & 0o777 == 0o600


def test_repeating_a_mark_changes_nothing(type_prompt: TypePrompt, parent: Path) -> None:
    """Repeating a ``>mark`` does not change the mark, even after the client wrote a note to the session."""
    type_prompt(">mark try it")
    first = state.find_mark(SESSION)
    with parent.open("a") as stream:
        stream.write(
            json.dumps(
                {"type": "system", "subtype": "informational", "uuid": "s", "parentUuid": "r3"}
            )
            + "\n"
        )
    assert type_prompt(">mark try it").startswith("mark already set here")
    assert state.find_mark(SESSION) == first


def test_a_second_mark_needs_a_confirmation(type_prompt: TypePrompt, parent: Path) -> None:
    """If another mark is active, ``>mark`` asks first, and only ``>mark yes`` replaces the mark."""
    type_prompt(">mark the old goal")
    first = state.find_mark(SESSION)
    continue_session(parent)
    text = type_prompt(">mark the new goal")
    assert text.startswith("mark not set · another mark is active; it was set just now")
    for part in ("goal: the old goal", "new goal: the new goal", ">mark yes"):
        assert part in text
    assert text.endswith("\nTo replace it: >mark yes")
    assert state.find_mark(SESSION) == first
    assert type_prompt(">mark the new goal>mark YES").startswith("mark replaced")
    now = state.find_mark(SESSION)
    assert now is not None
    assert (now.uuid, now.goal) == ("xa", "the new goal")
    assert "nothing to confirm" in type_prompt(">mark yes")
    assert state.find_mark(SESSION) == now


def test_cancel_is_not_a_goal(type_prompt: TypePrompt, parent: Path) -> None:
    """``>mark cancel`` does not set a mark with the goal "cancel".

    It ends an open question. If no question is open, it deletes the mark.
    """
    assert "No active mark" in type_prompt(">mark cancel")
    type_prompt(">mark the old goal")
    continue_session(parent)
    type_prompt(">mark the new goal")
    assert type_prompt(">mark cancel").startswith("mark stays, set just now\n  goal: the old goal")
    assert "nothing to confirm" in type_prompt(">mark yes")
    assert type_prompt(">mark Cancel").startswith(
        "mark forgotten, set just now\n  goal: the old goal"
    )
    assert state.find_mark(SESSION) is None


def test_a_second_mark_without_a_goal_needs_a_confirmation(
    type_prompt: TypePrompt, parent: Path
) -> None:
    """``/resume-hooks:mark`` at another position asks first, even without a goal."""
    type_prompt("/resume-hooks:mark")
    continue_session(parent)
    assert type_prompt("/resume-hooks:mark").endswith("\nReplace: /resume-hooks:mark yes")


@pytest.mark.parametrize("age_seconds", [confirmations.QUESTION_LIFETIME_SECONDS + 1, -60])
def test_a_late_confirmation_replaces_no_mark(
    type_prompt: TypePrompt, parent: Path, age_seconds: float
) -> None:
    """``>mark yes`` more than ten minutes after the question keeps the mark."""
    type_prompt(">mark old")
    type_prompt(">mark new")
    question = confirmations.find_question(SESSION, QUESTION_FILE_PREFIX)
    assert question is not None
    confirmations.store_question(question._replace(asked=time.time() - age_seconds))
    text = type_prompt(">mark yes")
    assert "older than 10 minutes" in text
    assert "goal: old" in text
    found = state.find_mark(SESSION)
    assert found is not None
    assert found.goal == "old"


def test_a_confirmation_without_a_question_sets_no_mark(
    type_prompt: TypePrompt, parent: Path
) -> None:
    """``>mark yes`` does nothing without a question about a mark in this session."""
    text = type_prompt(">mark yes")
    assert "no question about a mark is waiting for an answer" in text
    assert "No active mark." in text
    assert state.find_mark(SESSION) is None
    confirmations.store_question(confirmations.StoredQuestion(SESSION, "", time.time()))
    confirmations.store_question(
        confirmations.StoredQuestion(session_id(2), "x", time.time(), kind=QUESTION_FILE_PREFIX)
    )
    assert "nothing to confirm" in type_prompt(">mark yes")
    assert state.find_mark(SESSION) is None
    assert confirmations.find_question(SESSION) is not None, "the question of a trim is still open"


def test_the_old_trigger_names_still_work(
    type_prompt: TypePrompt, parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trigger names of version 0.2.0, ``>checkpoint`` and ``>rewind``, still work.

    ``RESUME_HOOKS_TRIGGERS_OFF`` accepts these names, too.
    """
    text = type_prompt(">checkpoint try it")
    assert "back to here   >back what" in text
    assert "checkpoint" not in text
    assert type_prompt(">rewind it was slower").startswith("back · ")
    assert len(list_children(parent)) == 1
    monkeypatch.setenv("RESUME_HOOKS_TRIGGERS_OFF", "rewind")
    assert is_trigger_off("back")


def test_back_without_a_mark_is_refused(type_prompt: TypePrompt, parent: Path) -> None:
    """``>back`` without a mark is refused. The refusal contains the remedy and the user's text."""
    text = type_prompt(">back it was slower")
    assert "No active mark." in text
    assert "Your text: it was slower" in text
    assert text.endswith("\nFirst: >mark [goal]")
    assert list_children(parent) == []


@pytest.mark.parametrize("prompt", [">back", "/resume-hooks:back", ">back  \n "])
def test_back_with_an_empty_report_is_refused(
    type_prompt: TypePrompt, parent: Path, prompt: str
) -> None:
    """``>back`` with an empty report is refused and keeps the mark."""
    type_prompt(">mark x")
    assert "The report cannot be empty." in type_prompt(prompt)
    assert state.find_mark(SESSION) is not None
    assert list_children(parent) == []


@pytest.mark.parametrize("prompt", [">mark x", ">back x", "/resume-hooks:mark"])
def test_a_mark_in_a_sub_agent_is_refused(
    type_prompt: TypePrompt, parent: Path, prompt: str
) -> None:
    """``mark`` and ``back`` are refused in a sub-agent, which is recognized by the event's ``agent_id``.

    The event's ``agent_type`` is not enough, since a whole session may run as an agent.
    """
    text = type_prompt(prompt, fields={"agent_id": "a1b2c3", "agent_type": "Explore"})
    assert "A sub-agent has no marks" in text
    assert state.find_mark(SESSION) is None
    assert "subagents" not in type_prompt(prompt, fields={"agent_type": "reviewer"})


def test_back_without_a_transcript_finds_no_mark(type_prompt: TypePrompt) -> None:
    """``>back`` in a session without a transcript finds no mark."""
    assert "No active mark." in type_prompt(">back x", session_id(7))


def test_a_second_back_shows_the_existing_child(type_prompt: TypePrompt, parent: Path) -> None:
    """A second ``>back`` names the existing child until the child or the parent is continued."""
    type_prompt(">mark x")
    continue_session(parent)
    type_prompt(">back it was slower")
    (child,) = list_children(parent)
    for _ in range(2):
        text = type_prompt(">back it was slower")
        assert text.startswith("already back")
        assert "No active mark." in text
        assert f"/resume {child.stem}" in text
    assert list_children(parent) == [child]
    assert "Your new report was not used: another report" in type_prompt(
        "/resume-hooks:back another report"
    )
    with child.open("ab") as stream:
        stream.write(line(user("go on", uuid="g", parent="r3", ts=LATER_TIMESTAMP)) + b"\n")
    assert f"/resume {child.stem}" not in type_prompt(">back it was slower")


def test_a_mark_during_a_turn_is_placed_at_the_last_complete_step(
    type_prompt: TypePrompt, parent: Path
) -> None:
    """A mark that is set during a turn is placed after the last complete step, and the card says so."""
    with parent.open("ab") as stream:
        stream.write(line(tool_use("c", uuid="t", parent="r3", ts=60)) + b"\n")
    text = type_prompt(">mark x")
    assert "the mark is after the last complete step" in text
    assert text.endswith("\nSet. Continue once the answer ends.")
    found = state.find_mark(SESSION)
    assert found is not None
    assert found.uuid == "r3"


def test_back_to_a_lost_mark_writes_only_the_report_and_warns(
    type_prompt: TypePrompt, parent: Path
) -> None:
    """``>back`` to a mark whose record is gone makes a child with the report alone and warns."""
    type_prompt(">mark x")
    write_session(parent.parent, SESSION, conversation(2, prefix="q"))
    text = type_prompt(">back it was slower")
    assert text.startswith("back")
    assert (
        "can't be found any more (its record is gone): the new session has only the report" in text
    )
    assert "only the report is loaded: not back to the mark" in text
    assert len(list_children(parent)) == 1
    assert state.find_mark(SESSION) is None


def test_parallel_back_commands_make_one_child(
    type_prompt: TypePrompt, run_hook: RunHook, parent: Path
) -> None:
    """Four parallel ``>back`` prompts make one child.

    The other three replies say that no mark is active or that another process is going back.
    """
    type_prompt(">mark x")
    continue_session(parent)
    event = {"session_id": SESSION, "prompt": ">back it was slower"}
    with ThreadPoolExecutor(4) as pool:
        done = pool.map(lambda _: run_hook("prompt", event, python=sys.executable), range(4))
    texts = [read_block_reason(one) for one in done]
    assert len(list_children(parent)) == 1
    assert sum(text.startswith("back") for text in texts) == 1
    assert all(
        "No active mark." in text or "is going back" in text
        for text in texts
        if not text.startswith("back")
    )


def test_the_mark_is_kept_if_going_back_fails(
    type_prompt: TypePrompt, parent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If ``>back`` fails, the mark stays, and the next ``>back`` works."""
    type_prompt(">mark x")
    before = state.find_mark(SESSION)

    def raise_full_disk(*_: object) -> None:
        raise WriteFailed("The disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("resume_hooks.derive.child.write_child.write_child", raise_full_disk)
        trigger = Trigger("back", "it was slower", is_slash=False, is_pasted_after_text=False)
        assert "The disk is full" in card_of_trigger(trigger, {"session_id": SESSION})
    assert state.find_mark(SESSION) == before
    assert type_prompt(">back it was slower").startswith("back")


INVALID_MARK_FILES: dict[str, Any] = {
    "no object": [],
    "a newer version": {"version": 2},
    "another session's": {"session_id": session_id(2)},
    "no uuid": {"uuid": ""},
    "a huge uuid": {"uuid": "u" * 1_000},
    "a record that is no number": {"record": True},
    "a negative record": {"record": -1},
    "a goal of another type": {"goal": 7},
    "a huge goal": {"goal": "g" * 10_000},
    "no instant": {"started_at": "yesterday"},
}


@pytest.mark.parametrize("name", INVALID_MARK_FILES)
def test_a_note_with_invalid_fields_is_not_read_as_a_mark(
    config_home: ConfigHome, name: str
) -> None:
    """A note with invalid fields is not read as a mark."""
    mark = Mark(SESSION, "r3", 3, "x", "2026-01-31T09:31:00.000Z")
    state.save_mark(mark)
    assert state.find_mark(SESSION) == mark
    path = Path(hook_state.note_path(f"mark-{SESSION}.json"))
    value = INVALID_MARK_FILES[name]
    path.write_text(
        json.dumps({**json.loads(path.read_text()), **value} if isinstance(value, dict) else value)
    )
    assert state.find_mark(SESSION) is None


def test_a_mark_in_a_read_only_state_folder_is_refused(
    type_prompt: TypePrompt, parent: Path, config_home: ConfigHome
) -> None:
    """If the state folder cannot be written, ``>mark`` is refused with a remedy."""
    (config_home.root / "file").touch()
    folder = str(config_home.root / "file" / "x")
    text = type_prompt(">mark x", RESUME_HOOKS_HOME=folder)
    assert f"The mark could not be saved in {folder}: Not a directory." in text
    assert "Check free space" in text
    assert text.count("Nothing was changed.") == 1


def test_a_failed_second_mark_keeps_the_first(
    type_prompt: TypePrompt, parent: Path, config_home: ConfigHome
) -> None:
    """If a second mark cannot be stored, the first one stays."""
    type_prompt(">mark one")
    with failing_writes(errno.ENOSPC)(config_home.config / "resume-hooks"):
        text = type_prompt(">mark two")
    assert f"could not be stored in {config_home.config}/resume-hooks (No space left" in text
    assert "Check free space" in text
    mark = state.find_mark(SESSION)
    assert mark is not None
    assert mark.goal == "one"


def test_the_receipt_of_back_names_rewind_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """The receipt of ``back`` shows the command of ``rewind-files`` if files can be restored.

    If ``resume-hooks`` is not on PATH, the command has the full path of the engine.
    """
    kept = OmittedRecords(TranscriptNames(SESSION, "11111111"), 5, 6, "e1")
    assert f"    resume-hooks rewind-files {SESSION} --to e1" in describe_what_stays_unchanged(
        handoff_receipt(parent_session_id=SESSION), kept
    )
    monkeypatch.delenv("PATH")
    assert (
        "/hooks/engine rewind-files "
        in describe_what_stays_unchanged(handoff_receipt(parent_session_id=SESSION), kept)[-1]
    )
