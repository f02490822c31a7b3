"""Tests of the UserPromptSubmit hook, run as the client runs it.

The hook answers triggers, lets every other prompt pass, and never fails.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.hooks import child_cards
from resume_hooks.hooks.prompt import card_of_trigger
from resume_hooks.hooks.triggers import TYPED_VERBS, Trigger, recognise_trigger
from resume_hooks.sessions.link_log import Link, record_link
from tests.builders import (
    SESSION,
    SESSION_ID_PATTERN,
    ConfigHome,
    Record,
    assistant,
    conversation,
    custom_title,
    session_id,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.hooks.conftest import RunHook, TypePrompt, list_children, read_block_reason

OTHER_ID = session_id(9)


def write_titled_session(home: ConfigHome) -> Path:
    """Write a session with two turns and a title, and return its path."""
    return Path(
        write_session(home.project(), SESSION, [*conversation(2), custom_title("Fix the parser")])
    )


def prompt_event(prompt: object, **fields: object) -> dict[str, Any]:
    """Return the hook's event for a prompt in the session ``SESSION``."""
    return {
        "hook_event_name": "UserPromptSubmit",
        "session_id": SESSION,
        "prompt": prompt,
        "cwd": "/",
        **fields,
    }


def trigger_card(prompt: str, **fields: object) -> str:
    """Return the text that the hook shows for a trigger."""
    trigger = recognise_trigger(prompt)
    assert trigger is not None
    return card_of_trigger(trigger, prompt_event(prompt, **fields))


def list_all_files(home: ConfigHome) -> set[str]:
    """Return the paths of all files and links inside the client's folder."""
    return {str(path) for path in home.config.rglob("*") if not path.is_dir() or path.is_symlink()}


EXPECTED_ANSWERS = {
    ">session": SESSION,
    ">session-id": SESSION,
    ">resume": "1 % full (of 180,000 tokens). Nothing needed.",
    ">continue": "Fix the parser",
    "/resume-hooks:resume fix the tests": "/resume-hooks:handoff fix the tests",
    ">lineage": "lineage, oldest first (1 session)",
    ">help": "one after > at",
    ">handoff fix the tests": "fix the tests · handoff",
    "/resume-hooks:handoff fix the tests": "fix the tests · handoff",
    ">trim": "There is nothing to trim yet",
    ">trim yes": "no question about a trim is open",
    ">trim cancel": "no question about a trim is open",
    "/resume-hooks:trim help": "--keep-recent",
    "/resume-hooks:session": SESSION,
    "/resume-hooks:help": "one after /resume-hooks: at",
    f">trim yes /resume {OTHER_ID}": "Clear the box: Ctrl+C once, then paste.",
    f">handoff fix/resume {OTHER_ID}": "Clear the box: Ctrl+C once, then paste.",
    ">handoff fix /clear": "nothing was done",
}


@pytest.mark.parametrize("prompt", EXPECTED_ANSWERS)
def test_each_trigger_is_answered(config_home: ConfigHome, run_hook: RunHook, prompt: str) -> None:
    """The hook blocks each trigger and answers it with the text for this trigger.

    Only a handoff writes files: its child, its link, and a copy that preserves the session.
    """
    session = write_titled_session(config_home)
    raw, before = session.read_bytes(), list_all_files(config_home)
    text = read_block_reason(run_hook("prompt", prompt_event(prompt)))
    assert EXPECTED_ANSWERS[prompt] in text
    assert session.read_bytes() == raw
    # If one of the ancestor processes of the tests looks like a client, the handoff is also stored
    # for ``/clear``.
    made = {
        path for path in list_all_files(config_home) - before if "/pending/handoff-" not in path
    }
    if " · handoff" not in text:
        assert made == set()
        return
    found = re.search(rf"/resume ({SESSION_ID_PATTERN})", text)
    assert found is not None
    child = session.parent / f"{found.group(1)}.jsonl"
    state = config_home.config / "resume-hooks"
    kept = {path for path in made if path.startswith(f"{state / 'vault' / SESSION}/")}
    assert made - kept == {str(child), str(state / "links.jsonl")}
    assert kept
    assert b"fix the tests" in child.read_bytes()


@pytest.mark.parametrize(
    "prompt", ["hello", " >resume", "> resume", ">session text", "", "/resume x", ">resumed"]
)
def test_a_prompt_without_a_trigger_passes(
    config_home: ConfigHome, run_hook: RunHook, prompt: str
) -> None:
    """If a prompt is not a trigger, the hook prints nothing."""
    write_titled_session(config_home)
    assert read_block_reason(run_hook("prompt", prompt_event(prompt))) == ""


def test_prompts_of_our_own_model_calls_pass(config_home: ConfigHome, run_hook: RunHook) -> None:
    """The hook lets triggers pass if the client was started by this plugin to ask a model."""
    write_titled_session(config_home)
    before = list_all_files(config_home)
    done = run_hook("prompt", prompt_event(">handoff"), environ={"RESUME_HOOKS_CHILD": "1"})
    assert read_block_reason(done) == ""
    assert list_all_files(config_home) == before


INVALID_EVENTS = {
    "nothing": b"",
    "not JSON": b"hello",
    "torn": b'{"prompt": ">resu',
    "a list": b'[">resume"]',
    "a string": b'">resume"',
    "null": b"null",
    "a number": b"7",
    "deep": b"[" * 200_000,
    "deep inside": b'{"prompt":">resume","x":' + b"[" * 200_000,
    "a huge number": b'{"prompt":">resume","x":' + b"9" * 6_000 + b"}",
    "invalid UTF-8": b'\xff\xfe{"prompt":">resume"}',
    "byte order mark": b"\xef\xbb\xbf{}",
    "NULs": b"\0" * 1_000,
    "10 MB of nothing": b" " * 10_000_000,
    "no prompt": b'{"session_id":"%s"}' % SESSION.encode(),
    "prompt of another type": b'{"prompt":[">resume"],"session_id":"%s"}' % SESSION.encode(),
}


@pytest.mark.parametrize("name", INVALID_EVENTS)
def test_the_hook_ignores_input_that_is_not_an_event(
    config_home: ConfigHome, run_hook: RunHook, name: str
) -> None:
    """The hook prints nothing and succeeds if its input is not a valid event."""
    write_titled_session(config_home)
    assert read_block_reason(run_hook("prompt", INVALID_EVENTS[name])) == ""


INVALID_SESSION_IDS = [
    None, 7, "", [SESSION], "../../../etc/passwd", f"../{OTHER_ID}", f"{SESSION}/../{OTHER_ID}", f"{SESSION}\0",
    SESSION.upper().replace("1", "A"), f"{SESSION}.jsonl", "*", "x" * 100_000, "\ud800",
]  # fmt: skip


@pytest.mark.parametrize(
    "prompt",
    ["/resume-hooks:resume words kept", ">handoff words kept", ">session", ">lineage", ">trim"],
)
@pytest.mark.parametrize("invalid_id", INVALID_SESSION_IDS, ids=range(len(INVALID_SESSION_IDS)))
def test_an_invalid_id_creates_no_file(
    config_home: ConfigHome, run_hook: RunHook, invalid_id: object, prompt: str
) -> None:
    """If the session id is invalid, the answer says so and repeats the user's text.

    No file is created.
    """
    write_titled_session(config_home)
    write_session(config_home.config / "projects", OTHER_ID, conversation(1))
    before = list_all_files(config_home)
    text = read_block_reason(run_hook("prompt", prompt_event(prompt, session_id=invalid_id)))
    assert "Claude Code sent no session id" in text
    assert "Nothing was changed." in text
    assert ("words kept" in text) is ("words kept" in prompt)
    assert list_all_files(config_home) == before


@pytest.mark.parametrize(
    "path_kind", ["outside", "symlink", "fifo", "folder", "device", "wrong type", "huge"]
)
def test_the_transcript_path_of_an_event_is_ignored(
    config_home: ConfigHome, run_hook: RunHook, path_kind: str
) -> None:
    """The hook finds the session by its id and never reads the path that the event contains."""
    write_titled_session(config_home)
    outside = config_home.root / "outside"
    secret = write_session(
        outside,
        OTHER_ID,
        [*conversation(1, session_id=OTHER_ID), custom_title("secret", OTHER_ID)],
    )
    link = config_home.project() / "link.jsonl"
    link.symlink_to(secret)
    pipe = outside / f"{SESSION}.jsonl"
    os.mkfifo(pipe)
    named: dict[str, object] = {
        "outside": secret,
        "symlink": str(link),
        "fifo": str(pipe),
        "folder": str(outside),
        "device": "/dev/zero",
        "wrong type": {"a": 1},
        "huge": "/x" * 100_000,
    }
    for prompt in (">resume", ">handoff"):
        text = read_block_reason(
            run_hook("prompt", prompt_event(prompt, transcript_path=named[path_kind]))
        )
        assert "Fix the parser" in text
        assert "secret" not in text


@pytest.mark.parametrize("file_kind", ["symlink", "fifo", "folder", "empty"])
@pytest.mark.parametrize(
    "prompt", ["/resume-hooks:resume kept words", ">handoff kept words", ">lineage", ">trim"]
)
def test_a_special_file_is_not_a_transcript(
    config_home: ConfigHome, run_hook: RunHook, prompt: str, file_kind: str
) -> None:
    """A link, a pipe, a folder or an empty file is treated like a missing transcript."""
    place = config_home.project() / f"{SESSION}.jsonl"
    if file_kind == "symlink":
        place.symlink_to(write_session(config_home.root, OTHER_ID, conversation(1)))
    elif file_kind == "fifo":
        os.mkfifo(place)
    elif file_kind == "folder":
        place.mkdir()
    else:
        place.touch()
    before = list_all_files(config_home)
    text = read_block_reason(run_hook("prompt", prompt_event(prompt)))
    assert list_all_files(config_home) == before
    assert ("kept words" in text) is ("kept words" in prompt)
    assert SESSION in text if ":resume" in prompt else "no transcript yet" in text


@pytest.mark.parametrize("verb", sorted(TYPED_VERBS))
def test_a_trigger_can_be_switched_off(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """A trigger that is turned off is treated as an ordinary prompt; other triggers still work."""
    write_titled_session(config_home)
    monkeypatch.setenv("RESUME_HOOKS_TRIGGERS_OFF", f"{verb}, nothing")
    for prompt in (f">{verb}", f"/resume-hooks:{verb}", f">{verb} /clear"):
        assert trigger_card(prompt) == ""
    other = Trigger(
        "session" if verb != "session" else "help", "", is_slash=False, is_pasted_after_text=False
    )
    assert card_of_trigger(other, prompt_event(""))


@pytest.mark.parametrize(
    "pasted_text",
    [f"/resume {OTHER_ID}", "/clear", f"cd /x && claude --resume {OTHER_ID}"],
)
@pytest.mark.parametrize("sign", [">", "/resume-hooks:"])
@pytest.mark.parametrize("trigger_text", ["handoff fix the tests", "trim yes", "trim --tools Read"])
def test_a_client_command_pasted_after_a_trigger_is_refused(
    config_home: ConfigHome, sign: str, trigger_text: str, pasted_text: str
) -> None:
    """If a command of the client, such as ``/clear``, follows a trigger, the trigger does nothing.

    The answer says that the prompt looks like a paste and repeats the typed text. The shell command
    ``claude --resume`` after a trigger is refused in the same way.
    """
    assert_paste_is_reported(config_home, f"{sign}{trigger_text} {pasted_text}", trigger_text)


def assert_paste_is_reported(config_home: ConfigHome, prompt: str, trigger_text: str) -> None:
    """Check that the answer reports a paste and the text ``trigger_text`` before it, and that no child is made."""
    session = write_titled_session(config_home)
    text = trigger_card(prompt)
    assert "nothing was done" in text
    assert trigger_text.partition(" ")[2] in text
    assert text.endswith("\nClear the box: Ctrl+C once, then paste.")
    assert list_children(session) == []


REFUSALS_BY_TRIGGER = {
    "handoff my words": "There is nothing to hand off",
    "rollover my words": "There is nothing to hand off",
    "trim": "There is nothing to trim",
    "trim yes": "There is nothing to trim",
    "recall": "There is nothing to recover",
    "lineage": "There are no ancestors to show",
}


@pytest.mark.parametrize("trigger_text", REFUSALS_BY_TRIGGER)
def test_a_trigger_without_a_transcript_is_refused(
    config_home: ConfigHome, trigger_text: str
) -> None:
    """If the session has no transcript, the trigger is refused.

    The answer gives the reason, tells the user what to do, and repeats the user's text.
    """
    text = trigger_card(f">{trigger_text}", session_id=OTHER_ID)
    assert (
        f"{REFUSALS_BY_TRIGGER[trigger_text]}: this session has no transcript yet.\n\nSend a prompt first."
        in text
    )
    assert ("Your text: my words" in text) is ("my words" in trigger_text)
    assert text.endswith("\nNothing was changed.")


@pytest.mark.parametrize("trigger_text", ["handoff my words", "rollover"])
def test_a_trigger_after_clear_names_the_cleared_session(
    config_home: ConfigHome, trigger_text: str
) -> None:
    """A handoff right after ``/clear`` is refused, and the answer names the cleared session."""
    record_link(Link(OTHER_ID, SESSION, "clear", "2026-01-31T09:32:00.000Z"), config_home.where)
    assert f"The session before it: /resume {SESSION}\n" in trigger_card(
        f">{trigger_text}", session_id=OTHER_ID
    )


@pytest.mark.parametrize(
    ("records", "is_busy"),
    [
        ([user("go", uuid="u")], True),
        ([user("go", uuid="u"), tool_use("c", uuid="a", parent="u")], True),
        (
            [
                user("go", uuid="u"),
                tool_use("c", uuid="a", parent="u"),
                tool_result("c", "x", uuid="r", parent="a"),
            ],
            True,
        ),
        ([user("go", uuid="u"), assistant("done", uuid="a", parent="u")], False),
        (
            [user("go", uuid="u"), user("[Request interrupted by user]", uuid="i", parent="u")],
            False,
        ),
        (
            [
                assistant("done", uuid="a", parent=None),
                user("aside", uuid="s", parent="a", isSidechain=True),
            ],
            False,
        ),
        ([], False),
    ],
)
def test_no_card_suggests_ctrl_c_during_a_turn(
    config_home: ConfigHome, type_prompt: TypePrompt, records: list[Record], is_busy: bool
) -> None:
    """During a turn, the last line of an answer tells the user to wait and doesn't suggest Ctrl+C.

    Ctrl+C would stop the turn. The advice is in the last line because a busy client shows no other.
    """
    write_session(config_home.project(), SESSION, [*conversation(1), *records])
    assert child_cards.is_model_busy(str(config_home.project() / f"{SESSION}.jsonl")) is is_busy
    for prompt in (">handoff go on", f">handoff go on /resume {OTHER_ID}"):
        text = type_prompt(prompt)
        assert ("Ctrl+C" in text) is not is_busy
        assert ("once the answer ends" in text.lower()) is is_busy
    assert "Ctrl+C" not in type_prompt("/resume-hooks:handoff go on")


def test_a_full_disk_is_not_a_bug(config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk is full, the answer names the file and the reason and says what to do.

    The answer repeats the user's text. The error is not logged as a bug.
    """
    write_titled_session(config_home)

    def raise_error(_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/a/file")

    monkeypatch.setattr("resume_hooks.hooks.handoff.answer_request", raise_error)
    card = trigger_card(">handoff fix the tests")
    assert card.startswith("resume-hooks: Could not write /a/file: No space left on device.\n")
    assert "Check that the disk has free space" in card
    assert "Your text: fix the tests" in card
    assert "doctor" not in card
    assert not (config_home.config / "resume-hooks" / "log").exists()


def test_a_refusal_of_a_long_text_ends_with_the_reason(config_home: ConfigHome) -> None:
    """If the text is long, the refusal states its reason twice: before and after the repeated text.

    With a long text, the first reason scrolls off the top of the screen.
    """
    write_titled_session(config_home)
    text = "fix the tests " * 2_000
    card = trigger_card(f">handoff {text}")
    reason = f"The next step has {len(text) - 1:,} characters, more than 20,000."
    assert card.startswith(f"resume-hooks: {reason}")
    assert text.strip() in card
    assert card.endswith(f"\n\n{reason}\n\nNothing was changed.")
