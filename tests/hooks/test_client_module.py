"""Tests of the engine's replies to the plugin's module in the client.

A reply is a text, a question, or a session to open.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.derive.outcome import Report
from resume_hooks.hooks import prompt
from resume_hooks.hooks.client_module import (
    ANSWERED_VERBS_AND_QUESTIONS,
    COMPACTION_PLAN_QUESTION,
    MODULE_QUESTION_HANDLERS,
    QUESTION_CHOICES,
    answer_module_request,
)
from resume_hooks.hooks.triggers import REPAIR_QUESTION, TRIGGER_TABLE
from tests.builders import SESSION, ConfigHome, conversation, session_bytes, user, write_session
from tests.hooks.conftest import RunHook, list_children
from tests.hooks.test_compaction import module_messages, session_with_thinking
from tests.hooks.test_rollover import SUMMARY_ANSWER
from tests.hooks.test_trim import turns_with_large_files
from tests.stand_in import write_stand_in

EVENT_FIELDS = {"session_id": SESSION, "screen": True}


@pytest.fixture(autouse=True)
def turn_clipboard_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turn the clipboard off for these tests."""
    monkeypatch.setenv("RESUME_HOOKS_CLIPBOARD", "none")


@pytest.fixture
def parent(config_home: ConfigHome) -> Path:
    """Write a session that is worth trimming and return its path."""
    return Path(write_session(config_home.project(), SESSION, turns_with_large_files()))


def ask_engine(verb: str, args: str = "", **fields: object) -> dict[str, Any]:
    """Return the engine's reply to a command that was typed in the client."""
    reply = answer_module_request(verb, {**EVENT_FIELDS, "args": args, **fields})
    json.dumps(reply)
    return reply


def compaction_event(parent: Path) -> dict[str, object]:
    """Return the event of a compaction that the user typed without options."""
    return {
        "session_id": SESSION,
        "screen": True,
        "trigger": "manual",
        "options": "",
        "messages": module_messages(parent),
    }


def test_a_complete_fork_names_the_new_session(parent: Path) -> None:
    """After a fork of the whole conversation, the remark names the new session and states only one size.

    One size is enough because the fork is as large as the old session.
    """
    remark = ask_engine("handoff", "all")["remark"]
    assert re.fullmatch(
        rf"This is the new session, .+ · fork: about [\d,]+ tokens\. Back .+ {SESSION}", remark
    )


def test_a_handoff_opens_its_child_and_fills_the_input_box(parent: Path) -> None:
    """The reply to ``handoff`` names the child to open and the next step for the input box.

    The reply also contains the ``/resume`` line that the user can type if the child does not open.
    """
    reply = ask_engine("handoff", " fix the tests ")
    (child,) = list_children(parent)
    assert reply["open"] == child.stem
    assert reply["fill"] == "fix the tests"
    assert f"/resume {child.stem}" in reply["by_hand"]
    assert "/clear" not in reply["by_hand"], (
        "nothing waits for a /clear: the client opens the child itself"
    )


def test_a_report_opens_no_session(parent: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a reply only reports something, it contains a text but no session to open."""
    del parent
    report = Report(lambda _: "facts", text_to_copy=f"/resume {SESSION}")
    monkeypatch.setattr(prompt, "run_trigger_module", lambda *_: report)
    assert ask_engine("recall") == {"text": "facts"}


def test_help_uses_the_names_that_the_user_types() -> None:
    """The help in the client lists the commands as the user types them, for example ``/handoff``.

    In a client without a screen, the help lists only the words after ``/resume-hooks:``.
    """
    text = ask_engine("resume-hooks:help")["text"]
    assert all(
        re.search(rf"^  /{row.command} ", text, re.MULTILINE)
        for row in TRIGGER_TABLE.values()
        if row.command
    )
    assert "resume-hooks:" not in text
    assert "[next step] Continue" in text, "what follows a long usage stands apart"
    assert ask_engine("lineage", "help")["text"].startswith(
        "/lineage\n  Show this session's ancestors"
    )
    assert "  handoff [size] [step] " in ask_engine("resume-hooks:help", screen=False)["text"]


MARK_COMMANDS = [pytest.param(name, marks=pytest.mark.part("marks")) for name in ("mark", "back")]


@pytest.mark.parametrize("command", ["handoff", "rollover", *MARK_COMMANDS, "resume-hooks:handoff"])
@pytest.mark.parametrize("word", ["help", "--help"])
def test_a_command_followed_by_help_shows_its_usage(parent: Path, command: str, word: str) -> None:
    """If only ``help`` or ``--help`` follows a command, the command shows its usage and makes no child.

    If more words follow, as in ``handoff help me``, they are an ordinary next step.
    """
    assert ask_engine(command, word)["text"].startswith(f"/{command} ")
    assert list_children(parent) == []
    if "handoff" in command:
        assert ask_engine(command, f"{word} me with the parser"[2 * (word[0] == "-") :])["open"]


@pytest.mark.parametrize(
    ("command", "arguments", "reply_text"),
    [
        (
            "search",
            "--all words --sinc 2w",
            "--sinc is not an option here; the only option is --all, before the words",
        ),
        ("sessions", "words --al", "--al is not an option here"),
        ("lineage", "foo", "/lineage takes no words"),
        ("recall", "foo", "/recall takes no words"),
        ("resume-hooks:lineage", "foo", "/resume-hooks:lineage takes no words"),
        ("full", "--tabel", "--tabel is not an option here; the only option is --table"),
        ("rollover", "--quick", "--quick is not an option here"),
    ],
)
def test_an_unknown_word_is_reported(
    parent: Path, command: str, arguments: str, reply_text: str
) -> None:
    """If an option or word is unknown, the reply names it and repeats the user's text."""
    text = ask_engine(command, arguments)["text"]
    assert text.startswith(reply_text)
    assert f"Your text: {arguments}" in text


def test_the_card_of_full_shows_no_session_id(parent: Path) -> None:
    """The card of ``full`` does not contain the session's id.

    For a session without a prompt, the card says that nothing is needed.
    """
    assert SESSION not in str(ask_engine("full"))
    cleared = user("<command-name>/clear</command-name>", uuid="u")
    for empty in (lambda: parent.write_bytes(session_bytes([cleared])), parent.unlink):
        empty()
        assert ask_engine("full")["text"] == "This session has no prompt yet. Nothing needed."
        assert ask_engine("full", "--table")["text"] == ask_engine("full")["text"]
        assert ask_engine("full", "fix it")["text"].endswith(
            "Nothing needed.\n\n  Your text was not sent: fix it"
        ), "no handoff"
        assert ask_engine("full", "--tabel")["text"].startswith(
            "--tabel is not an option here; the only option is --table"
        )


def test_a_handoff_without_a_screen_shows_the_card(parent: Path) -> None:
    """Without a screen, ``handoff`` shows the ``/resume`` line and opens no session.

    This happens with ``-p`` and in editors.
    """
    reply = ask_engine("handoff", "fix the tests", screen=False)
    (child,) = list_children(parent)
    assert set(reply) == {"text"}
    assert f"in Claude Code   /resume {child.stem}" in reply["text"]


def test_a_trim_asks_in_three_lines(parent: Path) -> None:
    """The module's ``trim`` asks a question of at most three lines, with the sizes and the saving.

    The first choice makes the child, and the last one cancels. If the user types ``trim`` with
    options, the question is asked again for these options. An invalid option is refused.
    ``resume-hooks:trim`` asks the same question.
    """
    reply = ask_engine("trim")
    assert reply["choices"] == [list(choice) for choice in QUESTION_CHOICES["trim"]]
    assert ask_engine("resume-hooks:trim") == reply
    assert "a resume sends" in reply["ask"]
    assert "saves about" in reply["ask"]
    assert reply["ask"].count("\n") <= 2
    assert list_children(parent) == []
    assert "Cancelled." in ask_engine("trim", QUESTION_CHOICES["trim"][-1][1])["text"]
    assert "nothing to confirm" in ask_engine("trim", QUESTION_CHOICES["trim"][0][1])["text"]
    assert "is not an option" in ask_engine("trim", "--nonsense")["text"]
    assert "a resume sends" in ask_engine("trim", "--tools Read")["ask"]
    assert list_children(parent) == []
    made = ask_engine("trim", QUESTION_CHOICES["trim"][0][1])
    (child,) = list_children(parent)
    assert (made["open"], made["fill"]) == (child.stem, "")


def test_a_trim_in_place_with_pasted_text_shows_its_own_size(parent: Path) -> None:
    """Pasted text makes the size for a trim in place larger than the size for a trimmed copy.

    A trim in place keeps pasted text, and a trimmed copy drops it. The report after the trim shows
    the same size as the question.
    """
    assert "in place" not in ask_engine("trim")["ask"]
    first, *rest = turns_with_large_files()
    first["message"]["content"] = "look at this\n" + "a pasted line\n" * 4_000
    write_session(parent.parent, SESSION, [first, *rest])
    rows = ask_engine("trim")["ask"].split("\n")
    copy, here = (re.findall(r"about ([\d,]+)", row)[0] for row in (rows[0], rows[2]))
    assert int(here.replace(",", "")) > int(copy.replace(",", "")), rows
    event = compaction_event(parent)
    assert f"about {here} now" in answer_module_request(COMPACTION_PLAN_QUESTION, event)["remark"]


def test_a_trim_in_place_with_thinking_shows_its_own_size(parent: Path) -> None:
    """If the last turns contain thinking, the question shows a separate size for a trim in place.

    The reason is that a trim in place also drops this thinking. The report after the trim shows the
    same size.
    """
    write_session(parent.parent, SESSION, session_with_thinking())
    rows = ask_engine("trim")["ask"].split("\n")
    (here,) = re.findall(r"in place about ([\d,]+): thinking", rows[2])
    event = compaction_event(parent)
    assert f"about {here} now" in answer_module_request(COMPACTION_PLAN_QUESTION, event)["remark"]


def test_a_trim_in_place_with_a_small_saving_is_refused(parent: Path) -> None:
    """A trim in place that saves few tokens is refused, because it would discard the client's cache.

    The user can force the trim with ``--min-savings 1``.
    """
    rows = turns_with_large_files(2)
    rows[3]["message"]["content"] = [
        {"type": "thinking", "thinking": "hm " * 700, "signature": "S"}
    ]
    write_session(parent.parent, SESSION, rows)
    event = compaction_event(parent)
    assert (
        "tokens, which is too few" in answer_module_request(COMPACTION_PLAN_QUESTION, event)["skip"]
    )
    assert answer_module_request(COMPACTION_PLAN_QUESTION, {**event, "options": "--min-savings 1"})[
        "before"
    ]


def test_a_trim_in_place_without_a_saving_is_not_offered(parent: Path) -> None:
    """The question offers no trim in place if only pasted text could be trimmed."""
    first, *rest = conversation(6)
    first["message"]["content"] = "look at this\n" + "a pasted line\n" * 8_000
    write_session(parent.parent, SESSION, [first, *rest])
    asked = ask_engine("trim")
    assert [word for _, word in asked["choices"]] == ["yes", "cancel"], asked
    assert "in place" not in asked["ask"]


def test_a_trim_without_a_screen_shows_the_preview(parent: Path) -> None:
    """Without a screen, ``trim`` shows a preview with the line to type, and makes no child."""
    assert "To create it: /trim yes" in ask_engine("trim", screen=False)["text"]
    assert (
        "To create it: /resume-hooks:trim yes"
        in ask_engine("resume-hooks:trim", screen=False)["text"]
    )
    assert list_children(parent) == []


def test_an_untrim_opens_a_copy_with_all_contents(parent: Path, config_home: ConfigHome) -> None:
    """``untrim`` opens a copy that contains everything that was trimmed.

    If the session is not trimmed, the reply says so.
    """
    assert "Nothing in this session is trimmed" in ask_engine("untrim")["text"]
    assert "takes no words" in ask_engine("untrim", "x")["text"]
    ask_engine("trim")
    trimmed = ask_engine("trim", "yes")["open"]
    opened = ask_engine("untrim", session_id=trimmed)
    child = config_home.project() / f"{opened['open']}.jsonl"
    assert "trimmed records were restored" in opened["by_hand"]
    assert "suppressed" not in child.read_text()


def test_a_rollover_announces_the_wait(
    parent: Path, config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first reply to ``rollover`` only announces the wait; the second request makes the child.

    If the summary fails, the reply's remark gives the reason.
    """
    assert set(ask_engine("rollover")) == {"wait"}
    assert list_children(parent) == []
    monkeypatch.setenv(
        "PATH",
        write_stand_in(config_home.root, "result(is_error=True, result='Not logged in')").path,
    )
    failed = ask_engine("rollover", waiting=True)
    assert "No summary: haiku gave no answer: Not logged in" in failed["remark"]
    write_stand_in(config_home.root, SUMMARY_ANSWER)
    made = ask_engine("rollover", waiting=True)
    assert made["remark"] == ""
    assert {failed["open"], made["open"]} == {child.stem for child in list_children(parent)}
    assert "text" in ask_engine("rollover", screen=False)


def test_a_rollover_cancelled_early_is_reported(parent: Path) -> None:
    """If the user cancels a rollover early, the reply says that no session was made."""
    assert (
        ask_engine("left", "rollover")["text"]
        == "There is no summary, and no session was created. To try again, type /rollover."
    )
    assert list_children(parent) == []


def test_the_commands_session_and_recall_reply_with_the_text_to_paste(parent: Path) -> None:
    """``session`` and ``recall`` reply with a text that the user can paste."""
    assert SESSION in ask_engine("session")["text"]
    assert SESSION in ask_engine("resume-hooks:resume")["text"]
    assert ask_engine("resume-hooks:help", screen=False)["text"].startswith(
        "type one after /resume-hooks:"
    )
    for name in ("recall", "resume-hooks:recover-context"):
        assert "what was done here" in ask_engine(name)["text"]
    assert list_children(parent) == []


def test_the_command_full_replies_with_a_card_and_its_table(parent: Path) -> None:
    """The reply to ``full`` contains the lines of the card, and the table that appears after a key press.

    Without a screen, or with ``--table`` or other words, the reply is plain text.
    """
    card = ask_engine("full")["card"]
    assert "tokens · Fix the parser" in card["lines"][1]
    assert not any("--table" in line for line in card["lines"])
    whole = ask_engine("full", "--table")["text"].split("\n")
    assert whole[: len(card["lines"])] == card["lines"]
    assert [line.removeprefix("  ") for line in whole[len(card["lines"]) : -1]] == list(
        card["more"]
    )
    assert "Table: /full --table" in ask_engine("full", screen=False)["text"]
    assert "/handoff fix it" in ask_engine("full", "fix it")["text"]


def test_listing_commands_make_no_child(parent: Path) -> None:
    """``lineage``, ``sessions`` and ``search`` reply with a text or a pane, and make no child.

    For each session that it lists, a text shows the command that opens the session.
    """
    assert ask_engine("lineage")["text"].startswith("lineage, oldest first (1 session)")
    listed = ask_engine("sessions", screen=False)["text"]
    assert "Fix the parser" in listed
    assert "this session" in listed
    assert f"/resume {SESSION}" in listed
    assert ask_engine("sessions", "--all", screen=False)["text"].startswith(
        "sessions of every project"
    )
    assert "/search new" in ask_engine("sessions", "new", screen=False)["text"].replace(
        "/resume-hooks:search", "/search"
    )
    assert ask_engine("sessions", "new")["pane"]["words"].split() == ["new"]
    assert f"/resume {SESSION}" in ask_engine("search", "prompt", screen=False)["text"]
    assert ask_engine("search", "--all prompt")["pane"]["words"].split() == ["--all", "prompt"]
    assert list_children(parent) == []


def test_a_long_list_names_the_command_that_lists_all(config_home: ConfigHome) -> None:
    """Without a screen, ``sessions`` lists ten sessions and then the command that lists all."""
    for number in range(12):
        write_session(
            config_home.project(), f"{number:08x}-0000-4000-8000-{number:012x}", conversation(2)
        )
    listed = ask_engine(
        "sessions", "--all", screen=False, session_id=f"{0:08x}-0000-4000-8000-{0:012x}"
    )["text"]
    assert listed.count("  /resume 0") == 10
    assert "sessions --all\n" in listed


@pytest.mark.parametrize(
    "verb",
    sorted(ANSWERED_VERBS_AND_QUESTIONS - {REPAIR_QUESTION} - MODULE_QUESTION_HANDLERS.keys()),
)
def test_every_command_reports_a_failure_in_one_text(config_home: ConfigHome, verb: str) -> None:
    """If an id is wrong or a session is missing, every command replies with a single text."""
    del config_home
    for event in ({"session_id": "x"}, {"session_id": SESSION, "args": 5}):
        shown = "pane" if verb in {"search", "sessions"} else "text"
        assert set(answer_module_request(verb, {**event, "screen": True, "waiting": True})) == {
            shown
        }


def test_a_misspelled_option_suggests_the_right_one(parent: Path) -> None:
    """The reply to a misspelled option suggests the right one.

    For ``--in-place``, which is an option only in a shell, the reply suggests ``/trim here``.
    """
    del parent
    assert "/trim here [options]" in ask_engine("trim", "help")["text"]
    assert "Here you can type --new-task" in ask_engine("handoff", "--new-tsk foo")["text"]
    for slip in ("heer", "--in-place"):
        assert "To trim in place: /trim here" in ask_engine("trim", slip)["text"]
    assert "/trim here" not in str(ask_engine("trim", "--only none"))


def test_a_bug_and_a_disabled_verb_are_reported(
    parent: Path, config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a command raises an error or is turned off, the reply is a sentence that says so."""

    def raise_bug(*_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(prompt, "run_trigger_module", raise_bug)
    assert "RuntimeError: boom" in ask_engine("handoff", "x")["text"]
    monkeypatch.setenv("RESUME_HOOKS_TRIGGERS_OFF", "handoff")
    assert "switched off" in ask_engine("handoff")["text"]
    assert list_children(parent) == []
    del config_home


def test_only_a_client_gets_a_reply(run_hook: RunHook, parent: Path) -> None:
    """Without a client, ``start_module`` fails with an error sentence and makes no child."""
    done = run_hook(
        "start_module",
        {**EVENT_FIELDS, "command": "handoff", "args": ""},
        environ={"CLAUDE_PID": "1"},
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"/resume-hooks:handoff" in done.stderr
    assert run_hook("start_module", {"command": "delete"}).returncode == 1
    assert run_hook("start_module", b"no event").returncode == 1
    assert list_children(parent) == []


def test_no_compaction_is_offered_under_a_policy(parent: Path, config_home: ConfigHome) -> None:
    """If an organization's policy applies, the module offers neither a trim in place nor a compaction.

    Under a policy, the client doesn't call the module's hooks and compacts the conversation itself.
    """
    assert ask_engine("trim", "here")["compact"]
    assert [
        word.split()[0] for _, word in ask_engine("trim")["choices"] if word.startswith("here")
    ] == ["here"]
    config_home.config.joinpath("remote-settings.json").write_text('{"permissions": {}}')
    refused = ask_engine("trim", "here")
    assert "Nothing was trimmed here: under your organization's policy" in refused["text"]
    assert "remote-settings.json" in refused["text"]
    assert not [word for _, word in ask_engine("trim")["choices"] if word.startswith("here")]
    assert not {"asks", "line"} & set(ask_engine("band", tokens=190_000))


def test_trim_here_is_refused_until_the_client_calls_a_hook(parent: Path) -> None:
    """``trim here`` is refused while the client has not called any of the module's hooks.

    The missing calls show that a policy applies, even if the policy's file is unreadable.
    """
    assert (
        "has not called this plugin's module yet" in ask_engine("trim", "here", heard=False)["text"]
    )
    assert ask_engine("trim", "here", heard=True)["compact"]
