"""Tests that marks follow the rules that apply to all triggers, verbs and children."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from resume_hooks.hooks import prompt
from resume_hooks.hooks.prompt import card_of_trigger
from resume_hooks.hooks.triggers import recognise_trigger
from resume_hooks.parts.marks import state as mark_state
from tests.builders import SESSION, ConfigHome, conversation
from tests.cli.conftest import Cli
from tests.hooks.test_prompt import OTHER_ID, assert_paste_is_reported, prompt_event
from tests.hooks.test_triggers import PASTED_SESSION_ID, assert_trigger, assert_trigger_has_paste
from tests.sessions.archived.test_verbs import assert_archived_session_is_refused
from tests.test_clock_jumps import (
    YEAR_SECONDS,
    ShiftedClock,
    answer_of_hook,
    session_in_client,
    shifted_clock,
)
from tests.test_import_budget import assert_transcript_imports
from tests.test_state_failures import FAILURES_BY_NAME, prompt_answer
from tests.test_without_posix import run_without_posix, session_to_trim

__all__ = ["session_in_client", "session_to_trim", "shifted_clock"]


def test_mark_in_an_archived_session_is_refused(config_home: ConfigHome, cli: Cli) -> None:
    """``mark`` refuses an archived session and shows the command that restores the session."""
    assert_archived_session_is_refused(config_home, cli, ("mark", SESSION))


@pytest.mark.parametrize("jump_seconds", [-YEAR_SECONDS, -60, 0, 86_400])
def test_a_mark_survives_changes_of_the_clock(
    config_home: ConfigHome,
    shifted_clock: ShiftedClock,
    session_in_client: str,
    jump_seconds: float,
) -> None:
    """A mark stays valid if the clock changes, because it names a record and not a time."""
    assert "mark" in answer_of_hook(prompt.main, session_in_client, prompt=">mark goal")["reason"]
    shifted_clock.ahead = jump_seconds
    assert mark_state.find_mark(SESSION) is not None
    with open(session_in_client, "ab") as stream:
        stream.writelines(json.dumps(record).encode() + b"\n" for record in conversation(8)[12:])
    said = answer_of_hook(prompt.main, session_in_client, prompt=">back what came of it")["reason"]
    assert "resume-hooks failed" not in said
    assert len(list(config_home.project().glob("*.jsonl"))) == 2, said


@pytest.mark.parametrize("prompt", [">mark x", ">back x"])
def test_mark_triggers_import_few_modules(config_home: ConfigHome, prompt: str) -> None:
    """``>mark`` and ``>back`` import no more modules than other triggers that read a transcript."""
    assert_transcript_imports(config_home, prompt)


@pytest.mark.parametrize("name", FAILURES_BY_NAME)
def test_an_unsaved_mark_is_reported(
    config_home: ConfigHome, session_in_client: str, name: str
) -> None:
    """If a mark cannot be stored, the answer says so, and ``back`` finds no mark."""
    before = Path(session_in_client).read_bytes()
    with FAILURES_BY_NAME[name](config_home.config / "resume-hooks"):
        answers = [
            prompt_answer(session_in_client, ">mark goal"),
            prompt_answer(session_in_client, ">back report"),
        ]
    for answer in answers:
        assert answer
        assert "resume-hooks failed" not in answer
    if name != "vanishing":  # If the folder is removed repeatedly, some writes succeed.
        assert "could not be saved" in answers[0]
    assert Path(session_in_client).read_bytes() == before


def test_mark_and_back_work_without_posix_functions(
    config_home: ConfigHome, session_to_trim: Path
) -> None:
    """``mark`` and ``back`` work without POSIX functions and leave the parent unchanged."""
    before = session_to_trim.read_bytes()
    run_without_posix(config_home, "mark", SESSION)
    run_without_posix(config_home, "back", SESSION, "--report", "nothing was there")
    assert session_to_trim.read_bytes() == before
    assert len(list(session_to_trim.parent.glob("*.jsonl"))) == 2


@pytest.mark.parametrize(
    "client_command",
    [f"/resume {OTHER_ID}", "/clear", f"cd /x && claude --resume {OTHER_ID}"],
)
def test_a_client_command_pasted_after_a_trigger_is_refused(
    config_home: ConfigHome, client_command: str
) -> None:
    """``>back`` followed by a command of the client writes nothing and repeats the typed text."""
    assert_paste_is_reported(
        config_home, f">back it was slower {client_command}", "back it was slower"
    )


def test_a_mark_without_a_transcript_is_refused(config_home: ConfigHome) -> None:
    """``>mark`` in a session without a transcript is refused.

    The answer has the reason, the remedy and the user's text.
    """
    trigger = recognise_trigger(">mark my words")
    assert trigger is not None
    text = card_of_trigger(trigger, prompt_event("", session_id=OTHER_ID))
    assert (
        "There is nothing to mark: this session has no transcript yet.\n\nSend a prompt first."
        in text
    )
    assert "Your text: my words" in text


RECOGNIZED_PROMPTS = [
    (">mark", "mark", ""),
    (">Mark try it", "mark", "try it"),
    ("/resume-hooks:mark YES", "mark", "YES"),
    (">mark try it>mark yes", "mark", "yes"),
    (">mark try it >mark YES\n", "mark", "YES"),
    (">mark>mark yes", "mark", "yes"),
    (">mark try it/resume-hooks:mark yes", "mark", "yes"),
    (">mark try it>mark another", "mark", "another"),
    (">mark test the >mark trigger", "mark", "test the >mark trigger"),
    (">mark see >mark yes please", "mark", "see >mark yes please"),
    (">back", "back", ""),
    (">back it was slower", "back", "it was slower"),
    ("/resume-hooks:back\nlong\nreport", "back", "long\nreport"),
    (">back>back it was slower", "back", "it was slower"),
    (">back>BACK>back", "back", ""),
    (">back/resume-hooks:back it", "back", "it"),
    (">back >handoff was tried", "back", ">handoff was tried"),
    (">back a >back b", "back", "a >back b"),
    (">back a>back b", "back", "a>back b"),
    (">mark>back it was slower", "back", "it was slower"),
]
PROMPTS_WITH_OLD_NAMES = [
    (">checkpoint try it", "mark", "try it"),
    (">checkpoint try it>mark yes", "mark", "yes"),
    (">checkpoint try it>checkpoint yes", "mark", "yes"),
    (">Rewind it was slower", "back", "it was slower"),
]
PROMPTS_WITH_PASTE = [
    (f">back it was slower/resume {PASTED_SESSION_ID}", "back"),
    (">back it was slower /clear", "back"),
    (f">back>back it /resume {PASTED_SESSION_ID}", "back"),
    (f">mark try it/resume {PASTED_SESSION_ID}", "mark"),
    (f">mark try it>mark yes /resume {PASTED_SESSION_ID}", "mark"),
]


@pytest.mark.parametrize(("prompt", "verb", "text"), [*RECOGNIZED_PROMPTS, *PROMPTS_WITH_OLD_NAMES])
def test_a_mark_trigger_is_recognized(prompt: str, verb: str, text: str) -> None:
    """A prompt that begins with ``mark`` or ``back`` is recognized, and its text is kept as typed."""
    assert_trigger(prompt, verb, text)


@pytest.mark.parametrize(("prompt", "verb"), PROMPTS_WITH_PASTE)
def test_a_trigger_before_a_client_command_is_a_paste(prompt: str, verb: str) -> None:
    """If a ``mark`` or ``back`` prompt ends in a command of the client, it counts as pasted."""
    assert_trigger_has_paste(prompt, verb)


@pytest.mark.parametrize("prompt", [">mark" * 100_000 + " yes", ">mark " * 100_000 + "x"])
def test_a_long_prompt_is_parsed_in_one_pass(prompt: str) -> None:
    """A prompt of half a megabyte is parsed quickly."""
    found = recognise_trigger(prompt)
    assert found is not None
    assert found.verb == "mark"
