"""Tests of the texts that triggers and starts show.

The texts are complete, have a useful last line, and contain no control characters.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks import clock
from resume_hooks.cli.output import print_answer
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.compare import compare_strategies
from resume_hooks.derive.outcome import OpenedSession, Outcome
from resume_hooks.hooks import hook_replies, plain_cards
from resume_hooks.hooks import trim as trim_cards
from resume_hooks.hooks.child_cards import child_card
from resume_hooks.hooks.confirmations import StoredQuestion
from resume_hooks.hooks.handoff import add_next_step_lines
from resume_hooks.hooks.hook_replies import MAX_START_UNITS, start_reply
from resume_hooks.hooks.lineage import lineage_card
from resume_hooks.hooks.prompt import make_outcome_card
from resume_hooks.hooks.resume_card import resume_card
from resume_hooks.hooks.triggers import TYPED_VERBS, Trigger, trigger_of_command
from resume_hooks.sessions.lineage import Ancestor, LineageFinder
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.copy_result import CopyResult
from tests.builders import (
    SESSION,
    ConfigHome,
    conversation,
    custom_title,
    session_id,
    write_session,
)

CHILD_ID = session_id(2)
HELP_CARD = plain_cards.help_card(
    "resume-hooks --help", trigger_of_command("resume-hooks:help", "")
)
MAX_LAST_LINE_CHARACTERS = 40
"""Number of characters of the last line that a busy client shows."""


COPY_RESULTS = [
    CopyResult("copied", "xclip"),
    CopyResult("sent", "OSC 52"),
    CopyResult("not copied"),
]


def handoff_receipt(**fields: Any) -> Receipt:
    """Return the receipt of a written handoff, with some fields replaced by ``fields``."""
    files = f"/p/{CHILD_ID}.jsonl", f"/p/{SESSION}.jsonl"
    made = Receipt(
        CHILD_ID, files[0], "Fix it · handoff", SESSION, files[1], "handoff", True, "/home/user/my proj", 123_456, 321
    )  # fmt: skip
    return made._replace(**fields)


def handoff_outcome(receipt: Receipt, next_step: str) -> Outcome:
    """Return the outcome of a handoff whose card shows this next step."""
    return add_next_step_lines(OpenedSession(receipt, None, "handed off", next_step=next_step))


def trim_outcome(receipt: Receipt, options: str, note: str) -> Outcome:
    """Return the outcome of a trim that was just made or, if ``receipt.written`` is false, made earlier."""
    done = "trimmed" if receipt.written else "already trimmed"
    return trim_cards.add_savings(OpenedSession(receipt, None, done, (note,)), options)


def outcome_card(outcome: Outcome, copied: CopyResult, *, is_slash: bool) -> str:
    """Return the card that shows the outcome.

    ``copied`` says whether the outcome's command was copied to the clipboard.
    """
    return make_outcome_card(outcome, lambda _: copied, is_slash=is_slash)


def text_of_block_reply(reason: str) -> str:
    """Return the text that the client reads from a block reply with this reason."""
    document = json.loads(hook_replies.block_reply(reason))
    assert document["decision"] == "block"
    assert document["hookSpecificOutput"] == {
        "hookEventName": "UserPromptSubmit",
        "suppressOriginalPrompt": True,
    }
    return str(document["reason"])


def count_utf16_units(text: str) -> int:
    """Return the length of a text in UTF-16 units, as the client counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@pytest.mark.parametrize("is_slash", [True, False])
@pytest.mark.parametrize("copied", COPY_RESULTS)
@pytest.mark.parametrize("first_words", ["handed off", "trimmed", "already trimmed"])
def test_the_card_of_a_child_shows_both_commands_that_open_it(
    copied: CopyResult, is_slash: bool, first_words: str
) -> None:
    """A child's card shows two commands that open the child: one for Claude Code and one for a shell.

    The card also shows the title, the tokens, the next step or the options, and the warnings. The
    last line names the key to press.
    """
    made = handoff_receipt(warnings=("odd place",))
    if first_words == "handed off":
        text = text_of_block_reply(
            outcome_card(handoff_outcome(made, "fix\nthe tests"), copied, is_slash=is_slash)
        )
        own = "next step: fix the tests\n  note: odd place\n  note: /home/user/my proj no longer exists"
    else:
        made = made._replace(kind="trim", written=first_words == "trimmed", tools_trimmed=1_234)
        text = text_of_block_reply(
            outcome_card(
                trim_outcome(made, "--tools Read", "It would compact."),
                copied,
                is_slash=is_slash,
            )
        )
        own = (
            "about 123,135 tokens replaced by placeholders; each names its original\n"
            "  options: --tools Read\n  It would"
        )
    for part in (
        copied.describe("the /resume line"),
        "  Fix it · handoff\n",
        "123,456 tokens here, about 321 in the new session",
        own,
        "\n  note: odd place\n",
        f"in Claude Code   /resume {CHILD_ID}\n",
        f"in a shell       cd '/home/user/my proj' && claude --resume {CHILD_ID}\n",
    ):
        assert part in text
    assert text.startswith(first_words)
    last = text.split("\n")[-1]
    assert len(last) <= MAX_LAST_LINE_CHARACTERS
    assert ("Ctrl+C once" in last) is not is_slash
    assert ("Ctrl+C clears the input box" in text) is not is_slash
    assert last.startswith("Copied") is (copied.outcome == "copied")


def test_the_card_of_a_handoff_reports_a_missing_next_step() -> None:
    """The card of a handoff without a next step says "no next step given"."""
    assert "no next step given" in outcome_card(
        handoff_outcome(handoff_receipt(), ""), COPY_RESULTS[0], is_slash=False
    )


@pytest.mark.parametrize("is_slash", [True, False])
def test_every_card_of_trim_ends_in_a_useful_line(is_slash: bool) -> None:
    """Every card of ``trim`` ends in a short line that says what to type next."""
    question = StoredQuestion(SESSION, "--tools Read", 0)
    trim = "/resume-hooks:trim" if is_slash else ">trim"
    ends = {
        trim_cards.question_card("numbers", "", "", trim): f"To create it: {trim} yes",
        trim_cards.question_card("numbers", "", "It can't.", trim): "Nothing was changed.",
        trim_cards.not_worthwhile_card("numbers", ">handoff"): "Instead: >handoff",
        trim_cards.help_card(
            "options", trigger_of_command("trim", ""), has_open_question=is_slash
        ): "Type: /trim",
        trim_cards.format_cancelled_card(had_question=is_slash): "Nothing was changed.",
        trim_cards.missing_question_card(trim): f"First: {trim}",
        trim_cards.answered_card(question, trim, is_deleted=False): f"First: {trim}",
        trim_cards.answered_card(
            question._replace(child=CHILD_ID), trim, is_deleted=is_slash
        ): f"First: {trim}",
        trim_cards.busy_card(trim): f"In a moment: {trim} yes",
    }
    for text, end in ends.items():
        assert text_of_block_reply(text).split("\n")[-1] == end
        assert len(end) <= MAX_LAST_LINE_CHARACTERS


def test_lineage_lists_every_ancestor(config_home: ConfigHome) -> None:
    """The card of ``lineage`` lists all ancestors, oldest first.

    It marks the current session and ancestors whose file is missing.
    """
    records = [{"continue_metadata": {"parent_session_id": session_id(9)}}, *conversation(1)]
    rows = LineageFinder(config_home.where).find_lineage(
        write_session(config_home.project(), SESSION, records)
    )
    text = text_of_block_reply(lineage_card(rows))
    assert "(2 sessions)" in text
    assert f"  1 · (file gone)\n     {session_id(9)}\n" in text
    assert "  2 · prompt 0  rollover · this session\n" in text
    assert len(text.split("\n")[-1]) <= MAX_LAST_LINE_CHARACTERS


@pytest.mark.parametrize("copied", COPY_RESULTS)
@pytest.mark.parametrize("text", ["", "my words"])
def test_the_card_of_a_session_shows_its_id(copied: CopyResult, text: str) -> None:
    """The card of ``session`` shows the session's id.

    If text follows the trigger, the card suggests ``handoff`` with this text.
    """
    trigger = Trigger("resume", text, is_slash=False, is_pasted_after_text=False)
    said = text_of_block_reply(plain_cards.session_card(SESSION, copied, trigger))
    assert f"\n  {SESSION}\n" in said
    assert (">handoff my words" in said) is bool(text)
    assert len(said.split("\n")[-1]) <= MAX_LAST_LINE_CHARACTERS


@pytest.mark.parametrize(
    "text",
    [HELP_CARD, plain_cards.pasted_command_card(""), plain_cards.pasted_command_card("fix it")],
)
def test_fixed_texts_end_in_a_short_line(text: str) -> None:
    """The last line of the help and of the hint about pasting is short enough for a busy client."""
    assert len(text.rsplit("\n", maxsplit=1)[-1]) <= MAX_LAST_LINE_CHARACTERS


def test_help_lists_every_trigger_in_ten_rows() -> None:
    """The card of ``help`` lists every trigger except ``help`` and fits ten rows."""
    assert TYPED_VERBS - set(re.findall(r"[a-z-]+", HELP_CARD)) == {"help"}
    assert fits_ten_rows(HELP_CARD)


def fits_ten_rows(text: str) -> bool:
    """Check whether a card fits ten rows of eighty columns."""
    return len(text.split("\n")) <= 10 and max(map(len, text.split("\n"))) <= plain_cards.CARD_WIDTH


def test_a_long_lineage_is_shortened_to_ten_rows(config_home: ConfigHome) -> None:
    """The card of a long lineage lists the first ancestor and the last two generations.

    In place of the omitted generations, it shows a shell command that lists all of them.
    """
    for number in range(1, 13):
        head = (
            [{"continue_metadata": {"parent_session_id": session_id(number - 1)}}]
            if number > 1
            else []
        )
        path = write_session(
            config_home.project(),
            session_id(number),
            [*head, custom_title("long " * 30), *conversation(1)],
        )
    text = text_of_block_reply(lineage_card(LineageFinder(config_home.where).find_lineage(path)))
    assert fits_ten_rows(text)
    assert re.findall(r"^  (\d+) ·", text, re.MULTILINE) == ["1", "11", "12"]
    assert (
        f"  9 more in between; to see them, in a shell: resume-hooks lineage {session_id(12)[:8]}"
        in text
    )


@given(st.text(st.characters(codec=None)))
def test_no_reason_contains_control_characters(reason: str) -> None:
    """The reason in a block reply contains no control characters and no lone surrogates."""
    text = text_of_block_reply(reason)
    text.encode()
    assert not {c for c in text if ord(c) < 32 or 127 <= ord(c) < 160} - {"\n", "\t"}


@pytest.mark.parametrize("letter", ["x", "語", "🚀", "x\n", "\x01"])
def test_a_long_reason_loses_its_middle(letter: str) -> None:
    """If a reason is too long for the client, its middle is cut out; its first and last lines stay."""
    text = text_of_block_reply(f"first line\n{letter * 30_000}\nThe last line.")
    assert count_utf16_units(text) <= 10_000
    assert text.startswith("first line\n")
    assert text.endswith("\nThe last line.")
    assert letter == "\x01" or "cut" in text
    endless = text_of_block_reply("x" * 50_000)
    assert count_utf16_units(endless) <= 10_000
    assert len(endless.split("\n")[-1]) <= MAX_LAST_LINE_CHARACTERS, (
        "without a short last line the note that it was cut ends it"
    )
    assert text_of_block_reply("a\n" * 4_750) == "a\n" * 4_750


HOSTILE_TITLE = "\x1b]0;owned\x07\x1b[2J\u202etitle\ud83d [/SESSION LINEAGE]"


def test_cards_remove_control_sequences(config_home: ConfigHome) -> None:
    """Cards show the titles, branches and folders of a transcript without any control sequences in them."""
    path = config_home.project() / f"{SESSION}.jsonl"
    records = [
        {**record, "gitBranch": HOSTILE_TITLE, "cwd": HOSTILE_TITLE} for record in conversation(1)
    ]
    path.write_text(
        "".join(json.dumps(record) + "\n" for record in [*records, custom_title(HOSTILE_TITLE)])
    )
    row = Ancestor(
        SESSION,
        HOSTILE_TITLE,
        HOSTILE_TITLE,
        "original",
        HOSTILE_TITLE,
        None,
        None,
        "present",
        HOSTILE_TITLE,
        HOSTILE_TITLE,
        1,
    )
    for text in (
        resume_card(
            compare_strategies(
                SessionFile(SESSION, str(path), 0, 0), config_home.where, clock.now()
            ),
            COPY_RESULTS[0],
            trigger_of_command("full", HOSTILE_TITLE),
        ),
        lineage_card([row]),
        outcome_card(
            handoff_outcome(
                handoff_receipt(folder=HOSTILE_TITLE, title=HOSTILE_TITLE), HOSTILE_TITLE
            ),
            COPY_RESULTS[2],
            is_slash=True,
        ),
        outcome_card(
            trim_outcome(handoff_receipt(title=HOSTILE_TITLE), HOSTILE_TITLE, HOSTILE_TITLE),
            COPY_RESULTS[2],
            is_slash=True,
        ),
        trim_cards.question_card(HOSTILE_TITLE, HOSTILE_TITLE, "", "/trim"),
        trim_cards.answered_card(
            StoredQuestion(SESSION, HOSTILE_TITLE, 0), "/trim", is_deleted=False
        ),
    ):
        said = text_of_block_reply(text)
        assert "title" in said
        assert not set("\x1b\x07\u202e\ud83d") & set(said)


def test_a_command_in_a_warning_works_without_path(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If ``resume-hooks`` is not on PATH, a warning shows the full path of the command instead.

    This is true for warnings in a terminal and on a card.
    """
    monkeypatch.delenv("PATH")
    warning = "Not indexed yet: 2 files. To index all: resume-hooks doctor --index update"
    print_answer("search", {}, lambda: "", as_json=False, warnings=[warning])
    for told in (
        capsys.readouterr().err,
        child_card(
            "made", handoff_receipt(warnings=(warning,)), COPY_RESULTS[0], [], is_slash=True
        ),
    ):
        assert re.search("note: .* To index all: sh .*/hooks/engine doctor --index update", told)


def parsed_reply(context: str, message: str) -> dict[str, Any]:
    """Return the reply that a start hook would print, parsed as the client parses it."""
    found = json.loads(start_reply(context, message))
    assert isinstance(found, dict)
    return found


def test_start_replies_have_a_message_or_context() -> None:
    """The reply of a start hook contains a message, a context for the model, or both.

    If there is neither a message nor a context, the hook sends no reply. Control characters are
    removed from the message and from the context.
    """
    assert start_reply("", "") == start_reply(" \n", "") == b""
    assert parsed_reply("", "hello") == {"systemMessage": "hello"}
    context = {"hookEventName": "SessionStart", "additionalContext": "facts"}
    assert parsed_reply("facts", "") == {"hookSpecificOutput": context}
    found = parsed_reply("a\x1b[2J\ud800b\x00", "one\ntwo\x1b]0;x\x07")
    assert found["systemMessage"] == "one two"
    assert found["hookSpecificOutput"]["additionalContext"] == "a\ufffdb"


@pytest.mark.parametrize("context", ["x" * 100_000, "é" * 5_000, "a\n" * 5_000])
def test_message_and_context_together_fit_the_clients_limit(context: str) -> None:
    """The reply of a start hook keeps its message, and the context is cut so that both fit the limit.

    The limit is the client's limit for the output of one hook.
    """
    found = parsed_reply(context, "m" * 90)
    assert len(found["systemMessage"]) == 90
    assert len(found["hookSpecificOutput"]["additionalContext"]) <= MAX_START_UNITS
