"""Tests of ``>trim``, run as the client runs it.

A preview writes nothing, and ``>trim yes`` makes one child.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.derive.outcome import OpenedSession
from resume_hooks.errors import ResumeHooksError
from resume_hooks.hooks import confirmations, trim
from resume_hooks.hooks.prompt import card_of_trigger
from resume_hooks.hooks.time_limit import TimeLimitExceeded
from resume_hooks.hooks.triggers import Trigger
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
from tests.hooks.conftest import RunHook, TypePrompt, list_children, trigger_request

LARGE_OUTPUT = "a line of output\n" * 500
LATER_TIMESTAMP = "2999-01-01T00:00:00.000Z"
PREVIEW_PHRASES = ("a resume sends", "saves about", "largest: Read", "trim yes", "trim cancel")


def turns_with_large_files(turn_count: int = 6) -> list[Record]:
    """Return turns that each read a different large file."""
    records: list[Record] = []
    last = None
    for n in range(turn_count):
        end = f"a{n}"
        records += [
            user(f"prompt {n}", uuid=f"u{n}", parent=last, ts=4 * n),
            tool_use(
                f"c{n}",
                uuid=f"t{n}",
                parent=f"u{n}",
                ts=4 * n + 1,
                tool_input={"file_path": f"/f{n}"},
            ),
            tool_result(
                f"c{n}", f"{n}: {LARGE_OUTPUT}", uuid=f"r{n}", parent=f"t{n}", ts=4 * n + 2
            ),
            assistant(
                f"answer {n}", uuid=end, parent=f"r{n}", ts=4 * n + 3, tokens=5_000 + 2_500 * n
            ),
        ]
        last = end
    return [*records, custom_title("Fix the parser")]


@pytest.fixture
def parent(config_home: ConfigHome) -> Path:
    """Write a session that is worth trimming and return its path."""
    return Path(write_session(config_home.project(), SESSION, turns_with_large_files()))


def change_question(session_id: str = SESSION, **fields: Any) -> None:
    """Replace fields of the session's stored question."""
    question = confirmations.find_question(session_id)
    assert question is not None
    confirmations.store_question(question._replace(**fields))


@pytest.mark.parametrize(
    "prompt", [">trim", "/resume-hooks:trim", ">TRIM --tools Read", ">trim threshold=300"]
)
def test_a_preview_writes_nothing(type_prompt: TypePrompt, parent: Path, prompt: str) -> None:
    """``>trim`` shows the numbers of the trim and writes nothing.

    The first and last lines say what to type to confirm, with the prefix that the user typed.
    """
    raw = parent.read_bytes()
    text = type_prompt(prompt)
    assert [part for part in PREVIEW_PHRASES if part not in text] == []
    sign = "/resume-hooks:" if prompt[0] == "/" else ">"
    assert text.startswith(f"trim · type {sign}trim yes · nothing is written yet\n")
    assert text.endswith(f"\nTo create it: {sign}trim yes")
    assert list_children(parent) == []
    assert parent.read_bytes() == raw


@pytest.mark.parametrize(
    ("question", "yes"),
    [
        (">trim", ">trim yes"),
        (">trim", ">Trim YES \n"),
        ("/resume-hooks:trim", "/resume-hooks:trim Yes"),
        (">trim", "/resume-hooks:trim yes"),
        ("/resume-hooks:trim", ">trim yes"),
        (">trim --tools Read", ">trim --tools Read>trim yes"),
        (">trim", ">trim/resume-hooks:trim yes"),
    ],
)
def test_the_answer_yes_makes_the_child(
    type_prompt: TypePrompt, parent: Path, question: str, yes: str
) -> None:
    """``>trim yes`` makes a child with placeholders, and leaves the parent unchanged.

    The card shows two commands that open the child: one for Claude Code and one for a shell.
    """
    raw = parent.read_bytes()
    type_prompt(question)
    text = type_prompt(yes)
    (child,) = list_children(parent)
    assert text.startswith("trimmed · ")
    assert "Fix the parser · trim" in text
    assert f"  in Claude Code   /resume {child.stem}\n" in text
    assert f"claude --resume {child.stem}" in text
    assert ("Ctrl+C once" in text.split("\n")[-1]) is (yes[0] == ">")
    content = child.read_text()
    assert f'"parent_session_id":"{SESSION}"' in content.split("\n", 1)[0]
    assert "[Results from Read tool suppressed" in content
    assert f"0: {LARGE_OUTPUT}"[:40].replace("\n", "\\n") not in content
    assert parent.read_bytes() == raw


def test_the_child_has_the_options_of_the_question(type_prompt: TypePrompt, parent: Path) -> None:
    """``>trim yes`` makes the child with the options of the question.

    The card of the question and the card of the child show these options.
    """
    options = "--keep-recent 0 only=results --tools Read"
    assert f"options: {options}" in type_prompt(f">trim {options}")
    assert f"options: {options}" in type_prompt(">trim yes")
    (child,) = list_children(parent)
    parameters = json.loads(child.read_bytes().split(b"\n", 1)[0])["trim_metadata"]["trim_params"]
    assert (parameters["keep_recent"], parameters["rules"]) == (0, ["results"])
    assert child.read_text().count('"truncated":true') == 6


def test_a_yes_trims_the_present_session(type_prompt: TypePrompt, parent: Path) -> None:
    """``>trim yes`` trims the session in its present state, with the options of the last question.

    The child includes messages that were written after the question.
    """
    type_prompt(">trim --tools Bash --min-savings 0 --only results")
    type_prompt(">trim --only results")
    with parent.open("a") as stream:
        stream.write(json.dumps(user("SAID BETWEEN", uuid="late", parent="a5", ts=1_000)) + "\n")
    type_prompt(">trim yes")
    (child,) = list_children(parent)
    assert "SAID BETWEEN" in child.read_text()
    assert (
        json.loads(child.read_bytes().split(b"\n", 1)[0])["trim_metadata"]["trim_params"][
            "target_tools"
        ]
        == []
    )


@pytest.mark.parametrize(
    "text", ["yes please", "y", "Y", "no thanks", "yes --tools Read", "cancel now", "ok"]
)
def test_only_the_exact_word_confirms(type_prompt: TypePrompt, parent: Path, text: str) -> None:
    """Only the exact word "yes" confirms a trim.

    For any other text, the card shows the valid words and the typed text, and the question stays
    open.
    """
    type_prompt(">trim")
    shown = type_prompt(f">trim {text}")
    assert "To confirm, type: >trim yes" in shown or "See >trim help." in shown
    assert ("is not enough: type yes" in shown) is (text.lower() == "y")
    assert f"Your text: {text}" in shown
    assert shown.endswith("\nNothing was changed.")
    assert list_children(parent) == []
    assert type_prompt(">trim yes").startswith("trimmed")


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ("--bogus 3", "'--bogus' is not an option of >trim"),
        (
            "here",
            "If your client has the command /trim, type /trim here. To make a trimmed copy instead, type >trim.",
        ),
        ("--tools", "--tools needs a value"),
        ("--threshold many", "--threshold needs a number of characters"),
        ("--only nothing", "There is no rule 'nothing'"),
        ("--tools 'Read", "can't be read"),
        ("--tools " + "x" * 5_000, "more than 4,000"),
        ("$(id) `id`", "is not an option"),
        ("\x1b[2J", "is not an option"),
    ],
)
def test_invalid_options_keep_the_question(
    type_prompt: TypePrompt, parent: Path, options: str, advice: str
) -> None:
    """Invalid options are refused with advice, and an earlier question stays open."""
    type_prompt(">trim")
    text = type_prompt(f">trim {options}")
    assert advice in text
    assert "Your text:" in text
    assert "\x1b" not in text
    assert list_children(parent) == []
    assert type_prompt(">trim yes").startswith("trimmed")


def test_a_yes_without_a_question_is_refused(type_prompt: TypePrompt, parent: Path) -> None:
    """``>trim yes`` without a question is refused, and the last line says what to type first."""
    for prompt, last in (
        (">trim yes", "First: >trim"),
        ("/resume-hooks:trim yes", "First: /resume-hooks:trim"),
    ):
        text = type_prompt(prompt)
        assert "no question about a trim is open" in text
        assert text.endswith(f"\n{last}")
    assert list_children(parent) == []


@pytest.mark.parametrize("age_seconds", [confirmations.QUESTION_LIFETIME_SECONDS + 1, 1e8, -60])
def test_a_yes_to_an_expired_question_is_refused(
    type_prompt: TypePrompt, parent: Path, age_seconds: float
) -> None:
    """``>trim yes`` is refused if the question is older than ten minutes or has a future time.

    The card repeats the options.
    """
    type_prompt(">trim --tools Read")
    change_question(asked=time.time() - age_seconds)
    text = type_prompt(">trim yes")
    assert "older than 10 minutes" in text
    assert ">trim --tools Read" in text
    assert list_children(parent) == []


def test_a_yes_in_another_session_is_refused(
    type_prompt: TypePrompt, parent: Path, config_home: ConfigHome
) -> None:
    """``>trim yes`` in one session does not answer a question that was asked in another session."""
    other = session_id(2)
    write_session(
        config_home.project(), other, [{**r, "sessionId": other} for r in turns_with_large_files()]
    )
    type_prompt(">trim")
    assert "no question about a trim is open" in type_prompt(">trim yes", other)
    assert len(list_children(parent)) == 1


def test_a_repeated_yes_shows_the_same_child(type_prompt: TypePrompt, parent: Path) -> None:
    """A second ``>trim yes`` shows the child that the first one made, and makes no new child."""
    type_prompt(">trim --tools Read")
    first = type_prompt(">trim yes")
    (child,) = list_children(parent)
    with parent.open("a") as stream:  # The client writes this record when a hook blocks a prompt.
        stream.write(
            json.dumps(
                {
                    "type": "system",
                    "subtype": "informational",
                    "uuid": "s",
                    "timestamp": LATER_TIMESTAMP,
                }
            )
            + "\n"
        )
    for _ in range(2):
        again = type_prompt(">trim yes")
        lines = again.split("\n")
        assert (
            lines.pop(2) == "  No new session was created. This is the session from your last trim."
        )
        assert "\n".join(lines) == first.replace("trimmed", "already trimmed", 1)
    assert list_children(parent) == [child]


def later_message_line(uuid: str, parent_uuid: str, session_id: str) -> str:
    """Return the JSON line of a later message."""
    return (
        json.dumps(
            user("go on", uuid=uuid, parent=parent_uuid, ts=LATER_TIMESTAMP, session_id=session_id)
        )
        + "\n"
    )


@pytest.mark.parametrize(
    "change", ["parent", "answer in the parent", "output in the parent", "child", "child is gone"]
)
def test_a_changed_child_is_not_offered(type_prompt: TypePrompt, parent: Path, change: str) -> None:
    """``>trim yes`` does not offer a child if the child or its parent has changed since the trim.

    The child or its parent may have been continued, or the child may have been deleted. The card
    says what happened and how to ask again.
    """
    type_prompt(">trim --tools Read")
    type_prompt(">trim yes")
    (child,) = list_children(parent)
    lines = {
        "parent": later_message_line("x", "a5", SESSION),
        "answer in the parent": json.dumps(
            assistant("so", uuid="x", parent="a5", ts=LATER_TIMESTAMP)
        )
        + "\n",
        "output in the parent": json.dumps(
            tool_result("c5", uuid="x", parent="a5", ts=LATER_TIMESTAMP)
        )
        + "\n",
    }
    if change == "child is gone":
        child.unlink()
    elif change == "child":
        with child.open("a") as stream:
            stream.write(later_message_line("x", "a5", child.stem))
    else:
        with parent.open("a") as stream:
            stream.write(lines[change])
    before = list_children(parent)
    text = type_prompt(">trim yes")
    assert f"created {child.stem}" in text
    assert ("its file is gone" in text) is (change == "child is gone")
    assert "To be asked again:  >trim --tools Read\n" in text
    assert text.endswith("\nFirst: >trim")
    assert list_children(parent) == before
    type_prompt(">trim")
    assert type_prompt(">trim yes").startswith("trimmed")


def test_a_child_of_another_session_is_not_offered(
    type_prompt: TypePrompt, parent: Path, config_home: ConfigHome
) -> None:
    """The card does not name an answered question's child if that child has a different parent."""
    foreign = session_id(7)
    write_session(config_home.project(), foreign, conversation(1, session_id=foreign))
    type_prompt(">trim")
    change_question(child=foreign)
    text = type_prompt(">trim yes")
    assert f"/resume {foreign}" not in text
    assert text.endswith("\nFirst: >trim")


@pytest.mark.parametrize("word", ["Cancel", "no", "n", "NO"])
def test_the_word_cancel_deletes_the_question(
    type_prompt: TypePrompt, parent: Path, word: str
) -> None:
    """``>trim cancel`` deletes the question. Without a question, the card says so."""
    type_prompt(">trim")
    assert "resume-hooks: Cancelled" in type_prompt(f">trim {word}")
    assert "no question about a trim is open" in type_prompt("/resume-hooks:trim cancel")
    assert "no question about a trim is open" in type_prompt(">trim yes")
    assert list_children(parent) == []
    type_prompt(">trim")
    type_prompt(">trim yes")
    assert "no question about a trim is open" in type_prompt(">trim cancel"), (
        "what was made is not taken back"
    )


@pytest.mark.parametrize(
    "prompt", [">trim help", "/resume-hooks:trim HELP", ">trim --help", "/resume-hooks:trim -h"]
)
def test_trim_help_lists_every_option(type_prompt: TypePrompt, parent: Path, prompt: str) -> None:
    """``>trim help`` lists every option and asks no question.

    If a question is open, the help also shows how to answer it.
    """
    text = type_prompt(prompt)
    for word in (
        "--tools",
        "--threshold",
        "--keep-recent",
        "--target-tokens",
        "--assistant",
        "--skip",
    ):
        assert word in text
    assert "trim yes" not in text
    type_prompt(">trim")
    assert "trim yes" in type_prompt(prompt)
    type_prompt(">trim cancel")
    assert "no question about a trim is open" in type_prompt(">trim yes")


def test_a_short_session_has_nothing_to_trim(
    type_prompt: TypePrompt, config_home: ConfigHome
) -> None:
    """In a short session, ``>trim`` says that there is nothing to trim."""
    write_session(config_home.project(), SESSION, conversation(1))
    assert (
        type_prompt(">trim")
        == "resume-hooks: There is nothing to trim yet.\n\nNothing was changed."
    )
    write_session(config_home.project(), session_id(5), [custom_title("x")])
    assert "has no conversation" in type_prompt(">trim", session_id(5))


@pytest.mark.parametrize(
    ("options", "reason"),
    [("--threshold 100000", "would not pay"), ("--of-tomorrow 1", "is not an option of >trim")],
)
def test_an_outdated_question_is_refused(
    type_prompt: TypePrompt, parent: Path, options: str, reason: str
) -> None:
    """``>trim yes`` is refused if the trim no longer saves enough, or if an option is unknown."""
    type_prompt(">trim")
    change_question(options=options)
    assert reason in type_prompt(">trim yes")
    assert list_children(parent) == []


def test_a_trim_that_does_not_pay_asks_no_question(type_prompt: TypePrompt, parent: Path) -> None:
    """If a trim would save too little, ``>trim`` asks no question and deletes an earlier question.

    The card suggests a handoff instead.
    """
    type_prompt(">trim")
    text = type_prompt(">trim --threshold 100000")
    assert "would not pay" in text
    assert text.endswith("\nInstead: >handoff")
    assert "no question about a trim is open" in type_prompt(">trim yes")
    assert list_children(parent) == []


@pytest.mark.parametrize("prompt", [">trim", ">trim yes"])
def test_a_trim_after_a_deletion_is_refused(
    type_prompt: TypePrompt, parent: Path, prompt: str
) -> None:
    """If the session was deleted after the question, ``>trim`` and ``>trim yes`` report this."""
    type_prompt(">trim")
    parent.unlink()
    text = type_prompt(prompt)
    assert "was deleted after the question" in text
    assert "no transcript yet" not in text
    assert text.endswith("\nNothing was changed.")


def test_a_preview_needs_no_writable_state_folder(
    type_prompt: TypePrompt, parent: Path, config_home: ConfigHome
) -> None:
    """If the question cannot be stored, the preview shows the shell command for the trim instead."""
    (config_home.root / "file").touch()
    state = {"RESUME_HOOKS_HOME": str(config_home.root / "file" / "x")}
    text = type_prompt(">trim", **state)
    assert "saves about" in text
    assert f"resume-hooks trim {SESSION}" in text
    assert "no question about a trim is open" in type_prompt(">trim yes", **state)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take the part of others")
def test_two_users_have_separate_questions(
    run_hook: RunHook, parent: Path, config_home: ConfigHome
) -> None:
    """A user cannot answer another user's question, even if both use the same folder."""
    theirs = config_home.root / "theirs"
    event = {"session_id": SESSION, "prompt": ">trim"}
    run_hook("prompt", event)
    done = run_hook(
        "prompt", {**event, "prompt": ">trim yes"}, environ={"RESUME_HOOKS_HOME": str(theirs)}
    )
    assert "no question about a trim is open" in json.loads(done.stdout)["reason"]
    os.chown(
        config_home.config / "resume-hooks" / "pending" / f"trim-{SESSION}.json", 12_345, 12_345
    )
    done = run_hook("prompt", {**event, "prompt": ">trim yes"})
    assert "no question about a trim is open" in json.loads(done.stdout)["reason"]
    assert list_children(parent) == []


def test_a_failed_trim_keeps_the_question_open(
    parent: Path, config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the trim fails, the question stays open, and the next ``>trim yes`` tries again."""
    trigger = Trigger("trim", "", is_slash=False, is_pasted_after_text=False)
    trim.answer_request(trigger_request(trigger, parent))

    def raise_full_disk(*_: object) -> None:
        raise ResumeHooksError("The disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(trim, "write_child", raise_full_disk)
        assert "The disk is full" in card_of_trigger(
            trigger._replace(text="yes"), {"session_id": SESSION}
        )
    assert list_children(parent) == []
    assert isinstance(
        trim.answer_request(trigger_request(trigger._replace(text="yes"), parent)), OpenedSession
    )


def test_a_trim_beyond_the_time_limit_is_refused(
    parent: Path, config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trim that takes too long is stopped, and the message names the command to use in a shell.

    The question stays open.
    """
    trigger = Trigger("trim", "", is_slash=False, is_pasted_after_text=False)
    trim.answer_request(trigger_request(trigger, parent))
    with monkeypatch.context() as patch:
        patch.setattr(trim, "MAX_READ_AND_WRITE_SECONDS", 0)
        with pytest.raises(TimeLimitExceeded, match="longer than a prompt may wait") as caught:
            trim.answer_request(trigger_request(trigger._replace(text="yes"), parent))
    assert f"resume-hooks trim {SESSION}" in caught.value.remedy
    assert list_children(parent) == []
    found = confirmations.find_question(SESSION)
    assert found is not None
    assert found.is_open


def test_confirming_in_parallel_makes_one_child(
    parent: Path, run_hook: RunHook, type_prompt: TypePrompt
) -> None:
    """If the user sends ``>trim yes`` four times in parallel, only one of them makes a child.

    The replies to the others show this child or say that it is being made.
    """
    type_prompt(">trim")
    event = {"session_id": SESSION, "prompt": ">trim yes"}
    with ThreadPoolExecutor(4) as pool:
        done = pool.map(lambda _: run_hook("prompt", event, python=sys.executable), range(4))
    texts = [json.loads(one.stdout)["reason"] for one in done]
    (child,) = [
        path for path in list_children(parent) if re.fullmatch(SESSION_ID_PATTERN, path.stem)
    ]
    assert sum(text.startswith("trimmed") for text in texts) == 1
    for text in texts:
        assert f"/resume {child.stem}" in text or "another prompt is creating this copy" in text
    assert type_prompt(">trim yes").startswith("already trimmed")


YES_TRIGGER = Trigger("trim", "yes", is_slash=False, is_pasted_after_text=False)


def test_a_yes_waits_for_a_child_being_written(parent: Path, config_home: ConfigHome) -> None:
    """If another prompt is making the child, ``>trim yes`` waits for the child and shows it."""
    trim.answer_request(trigger_request(YES_TRIGGER._replace(text=""), parent))
    trim.answer_request(trigger_request(YES_TRIGGER, parent))
    (child,) = list_children(parent)
    question = confirmations.find_question(SESSION)
    assert question is not None
    again = question._replace(child="")
    confirmations.store_question(again)
    assert confirmations.claim_question(again)
    timer = threading.Timer(0.2, confirmations.store_question, args=(question,))
    timer.start()
    found = trim.answer_request(trigger_request(YES_TRIGGER, parent))
    timer.join()
    assert isinstance(found, OpenedSession)
    assert found.receipt.session_id == child.stem
    assert list_children(parent) == [child]


def test_a_yes_during_a_long_trim_makes_no_second_child(
    type_prompt: TypePrompt, parent: Path, config_home: ConfigHome
) -> None:
    """During a long trim, ``>trim yes`` says that the child is being made.

    If the trim claimed the question too long ago, the next ``>trim`` starts again.
    """
    type_prompt(">trim")
    question = confirmations.find_question(SESSION)
    assert question is not None
    assert confirmations.claim_question(question)
    text = type_prompt(">trim yes")
    assert "another prompt is creating this copy right now" in text
    assert list_children(parent) == []
    left = config_home.config / "resume-hooks" / "pending" / f"trim-{SESSION}.json.begun"
    os.utime(left, (0, 0))
    assert "no question about a trim is open" in type_prompt(">trim yes")
    type_prompt(">trim")
    assert type_prompt(">trim yes").startswith("trimmed")
    assert not left.exists()
