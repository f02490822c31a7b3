"""Tests of each trim rule with sessions in which it finds nothing, and with sessions that it changes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from resume_hooks.derive.trim.options import RULE_NAMES
from resume_hooks.derive.trim.rules import RULES_BY_NAME
from resume_hooks.errors import UsageError
from tests import builders
from tests.builders import SESSION, ConfigHome, Record
from tests.derive.trim.odd_transcripts import IMAGE
from tests.derive.trim.sessions import (
    LONG_OUTPUT,
    Chain,
    get_value_at,
    plan_trim_of_file,
    read_records_by_uuid,
    trim_file,
    write_project_session,
)

SHORT_ID = SESSION[:8]
SECOND_LONG_OUTPUT = "another output line\n" * 100
SIGNED_THINKING = {"type": "thinking", "thinking": "hmm " * 100, "signature": "c2ln" * 100}
LONG_ANSWER = "The answer to it all is this. " * 40
FILE_ATTACHMENT = {"type": "file", "content": {"file": {"content": LONG_OUTPUT}}}


class KeptCase(NamedTuple):
    """A session in which a rule finds nothing, and the reason."""

    rule: str
    reason: str
    make_chain: Callable[[], Chain]
    options: dict[str, Any]


class CutCase(NamedTuple):
    """A session to which a rule is applied, and the value that is expected afterwards.

    ``value_address`` leads to the value. It consists of the uuid of a record and the keys in this
    record.
    """

    rule: str
    description: str
    make_chain: Callable[[], Chain]
    value_address: tuple[str | int, ...]
    expected_value: Any
    options: dict[str, Any]


def make_kept_case(
    rule: str, reason: str, make_chain: Callable[[], Chain], **options: Any
) -> KeptCase:
    """Return a case in which a rule finds nothing."""
    return KeptCase(rule, reason, make_chain, options)


def make_cut_case(
    rule: str,
    description: str,
    make_chain: Callable[[], Chain],
    value_address: tuple[str | int, ...],
    expected_value: Any,
    **options: Any,
) -> CutCase:
    """Return a case in which a rule replaces a value."""
    return CutCase(rule, description, make_chain, value_address, expected_value, options)


def make_output_chain(*calls: tuple[str, str, dict[str, Any]]) -> Callable[[], Chain]:
    """Return a function that makes a chain of calls with long outputs, followed by a turn.

    Each of ``calls`` has the id, tool and input of a call.
    """

    def make_chain() -> Chain:
        made = Chain().ask()
        for number, (call, tool, given) in enumerate(calls):
            made.call_with_result(call, tool, f"{number} {LONG_OUTPUT}", **given)
        return made.add_short_turns(1)

    return make_chain


def make_placeholder(tool: str, size_text: str, reason: str = "") -> str:
    """Return the placeholder of a tool's result on line 2."""
    reason = reason and f"; {reason}"
    return (
        f"[Results from {tool} tool suppressed - "
        f"original content was {size_text} characters; original: {SHORT_ID}:2{reason}]"
    )


PRINTED_PLACEHOLDER = "[Results from a tool suppressed - original content was 9 tokens]"
OUTPUT_ADDRESS = ("c2", "message", "content", 0, "content")
FILE_A_INPUT: dict[str, Any] = {"file_path": "/a"}
FILE_PART_INPUT: dict[str, Any] = {"file_path": "/a", "offset": 5, "limit": 9}

KEPT_CASES = [
    make_kept_case("superseded", "the last read is the one that counts",
         make_output_chain(("t1", "Read", FILE_A_INPUT))),
    make_kept_case("superseded", "another file was read",
         make_output_chain(("t1", "Read", FILE_A_INPUT), ("t2", "Read", {"file_path": "/b"}))),
    make_kept_case("superseded", "a part read later does not hold the rest",
         make_output_chain(("t1", "Read", FILE_A_INPUT), ("t2", "Read", FILE_PART_INPUT))),
    make_kept_case("superseded", "another part was read later",
         make_output_chain(("t1", "Read", FILE_PART_INPUT), ("t2", "Read", {**FILE_PART_INPUT, "offset": 50}))),
    make_kept_case("superseded", "a whole read does not reach so far",
         make_output_chain(("t1", "Read", {**FILE_PART_INPUT, "offset": 1_995}), ("t2", "Read", FILE_A_INPUT))),
    make_kept_case("superseded", "a whole read of a PDF shows no page for certain",
         make_output_chain(("t1", "Read", {"file_path": "/a", "pages": "1-5"}), ("t2", "Read", FILE_A_INPUT))),
    make_kept_case("superseded", "the change came before the read",
         make_output_chain(("t1", "Edit", FILE_A_INPUT), ("t2", "Read", FILE_A_INPUT))),
    make_kept_case("superseded", "the later read failed",
         lambda: Chain().ask().call_with_result("t1", **FILE_A_INPUT).call_with_result("t2", "Read", "gone",
         is_error=True, **FILE_A_INPUT).add_short_turns(1)),
    make_kept_case("superseded", "the change failed",
         lambda: Chain().ask().call_with_result("t1", **FILE_A_INPUT).call_with_result("t2", "Edit", "no match",
         is_error=True, **FILE_A_INPUT).add_short_turns(1)),
    make_kept_case("superseded", "the later read is still waited for",
         lambda: Chain().ask().call_with_result("t1", **FILE_A_INPUT).call("t2", "Read", **FILE_A_INPUT)),
    make_kept_case("superseded", "a search is no read",
         make_output_chain(("t1", "Grep", {"path": "/a"}), ("t2", "Read", FILE_A_INPUT))),
    make_kept_case("superseded", "both were made at once, in one record", lambda: Chain().ask()
         .answer([builders.call("t1", "Read", **FILE_A_INPUT), builders.call("t2", "Edit", **FILE_A_INPUT)])
         .result("t1").result("t2")),
    make_kept_case("repeats", "the outputs differ", make_output_chain(("t1", "Bash", {}), ("t2", "Bash", {}))),
    make_kept_case("repeats", "another tool said the same",
         lambda: Chain().ask().call_with_result("t1", "Bash").call_with_result("t2", "Grep").add_short_turns(1)),
    make_kept_case("repeats", "below its placeholder",
         lambda: Chain().ask().call_with_result("t1", "Bash", "ok").call_with_result("t2", "Bash", "ok")),
    make_kept_case("failures", "it was never done again",
         lambda: Chain().ask().call_with_result("t1", "Bash", is_error=True, command="x").add_short_turns(1)),
    make_kept_case("failures", "it failed again",
         lambda: Chain().ask().call_with_result("t1", "Bash", is_error=True, command="x")
           .call_with_result("t2", "Bash", SECOND_LONG_OUTPUT, is_error=True, command="x")),
    make_kept_case("failures", "something else succeeded",
         lambda: Chain().ask().call_with_result("t1", "Bash", is_error=True, command="x")
         .call_with_result("t2", "Bash", command="y")),
    make_kept_case("failures", "the success came first",
         lambda: Chain().ask().call_with_result("t1", "Bash", command="x").call_with_result("t2", "Bash",
         is_error=True, command="x")),
    make_kept_case("failures", "another tool succeeded on it",
         lambda: Chain().ask().call_with_result("t1", "Edit", is_error=True, **FILE_A_INPUT)
         .call_with_result("t2", "Read", **FILE_A_INPUT)),
    make_kept_case("thinking", "the last turn keeps its own",
         lambda: Chain().ask().add_short_turns(2).ask("last").answer([SIGNED_THINKING], message_id="m")
         .answer(message_id="m")),
    make_kept_case("thinking", "an answer of nothing else: empty, it would be sent",
         lambda: Chain().ask().answer([SIGNED_THINKING]).answer().add_short_turns(2)),
    make_kept_case("thinking", "a prompt that was queued starts no turn before it is answered",
         lambda: Chain().ask().answer([SIGNED_THINKING, {"type": "text", "text": "so"}]).call_with_result("t1")
         .ask("queued")),
    make_kept_case("thinking", "encrypted thoughts tell no size",
         lambda: Chain().ask().answer([{"type": "redacted_thinking", "data": "x" * 900}]).answer().add_short_turns(2)),
    make_kept_case("attachments", "under the threshold",
         lambda: Chain().ask().attach(attachment={**FILE_ATTACHMENT}).answer(), threshold=2_000),
    make_kept_case("attachments", "a listing that is never sent again",
         lambda: Chain().ask().attach(attachment={"type": "skill_listing", "content": LONG_OUTPUT}).answer()),
    make_kept_case("attachments", "the user's own words",
         lambda: Chain().ask().attach(attachment={"type": "queued_command", "prompt": LONG_OUTPUT}).answer()),
    make_kept_case("attachments", "a kind that nobody knows",
         lambda: Chain().ask().attach(attachment={"type": "new", "content": LONG_OUTPUT}).answer()),
    make_kept_case("media", "not sent along: it lies at an address",
         lambda: Chain().ask().ask([{"type": "document", "source": {"type": "url", "url": "https://x"}}]).answer()),
    make_kept_case("media", "no source at all", lambda: Chain().ask().ask([{"type": "image"}]).answer()),
    make_kept_case("results", "at the threshold, not over it",
         lambda: Chain().ask().call_with_result("t1", "Read", "x" * 500)),
    make_kept_case("results", "at the threshold of its tool", lambda: Chain().ask().call_with_result("t1"),
        thresholds={"read": 1_700}),
    make_kept_case("results", "a placeholder already",
         lambda: Chain().ask()
         .call_with_result("t1", "Read", "[Results from a tool suppressed - original content was 9,000 characters]"),
         threshold=0),
    make_kept_case("results", "the notice of another tool",
         lambda: Chain().ask().call_with_result(
             "t1", "Read", f"{LONG_OUTPUT}\n\n[...truncated - original content was 9,000 characters]")),
    make_kept_case("results", "what the user said to a refused call",
         lambda: Chain().ask()
         .call_with_result("t1", "Bash", f"The user doesn't want to proceed. {LONG_OUTPUT}", is_error=True)),
    make_kept_case("results", "the user's own choices",
         lambda: Chain().ask().call_with_result("t1", "AskUserQuestion")),
    make_kept_case("results", "schemas that the client loads",
         lambda: Chain().ask().call_with_result("t1", "ToolSearch")),
    make_kept_case("inputs", "under the threshold",
         lambda: Chain().ask().call_with_result("t1", "Write", "ok", content="short", **FILE_A_INPUT)),
    make_kept_case("inputs", "a long description is no content",
         lambda: Chain().ask().call_with_result("t1", "Bash", "ok", description=LONG_OUTPUT)),
    make_kept_case("inputs", "the words that an agent was given",
         lambda: Chain().ask().call_with_result("t1", "Task", "ok", prompt=LONG_OUTPUT)),
    make_kept_case("inputs", "nobody answered: it may be wanted yet",
         lambda: Chain().ask().call("t1", "Write", content=LONG_OUTPUT, **FILE_A_INPUT)),
    make_kept_case("inputs", "no object",
         lambda: Chain().ask().answer([{**builders.call("t1", "Write"), "input": LONG_OUTPUT}]).result("t1", "ok")),
    make_kept_case("pasted", "four times the threshold is typed", lambda: Chain().ask("x" * 2_000).answer()),
    make_kept_case("pasted", "what stays is longer than what goes",
         lambda: Chain().ask("x" * 870).answer(), threshold=100),
    make_kept_case("pasted", "the client's own remark",
         lambda: Chain().ask().ask(LONG_OUTPUT * 3, isMeta=True).answer()),
    make_kept_case("pasted", "a summary", lambda: Chain().ask().ask(LONG_OUTPUT * 3, isCompactSummary=True).answer()),
    make_kept_case("assistant", "short answers don't count", lambda: Chain().ask().answer("short"), assistant=5),
    make_kept_case("assistant", "the last ones stay", lambda: Chain().ask().answer(LONG_ANSWER), assistant=-1),
    make_kept_case("assistant", "one was trimmed before, and one was asked for", lambda: Chain().ask().answer(
         "[Claude response trimmed - original was 900 characters; original: 1a2b3c4d:5]")
         .answer(LONG_ANSWER), assistant=1),
]  # fmt: skip

CUT_CASES = [
    make_cut_case("superseded", "a file read again",
        make_output_chain(("t1", "Read", FILE_A_INPUT), ("t2", "Read", FILE_A_INPUT)),
        OUTPUT_ADDRESS, make_placeholder("Read", "1,702", "the file was read again later")),
    make_cut_case("superseded", "a part before the whole",
        make_output_chain(("t1", "Read", FILE_PART_INPUT), ("t2", "Read", FILE_A_INPUT)),
        OUTPUT_ADDRESS, make_placeholder("Read", "1,702", "the file was read again later")),
    make_cut_case("superseded", "a file changed later",
        make_output_chain(("t1", "Read", FILE_A_INPUT), ("t2", "Edit", FILE_A_INPUT)),
        OUTPUT_ADDRESS, make_placeholder("Read", "1,702", "the file was changed later")),
    make_cut_case("repeats", "the earlier of two",
         lambda: Chain().ask().call_with_result("t1", "Bash").call_with_result("t2", "Bash").add_short_turns(1),
        OUTPUT_ADDRESS, make_placeholder("Bash", "1,700", "the same output was repeated later")),
    make_cut_case("repeats", "the later of two stays",
         lambda: Chain().ask().call_with_result("t1", "Bash").call_with_result("t2", "Bash").add_short_turns(1),
        ("c4", "message", "content", 0, "content"), LONG_OUTPUT),
    make_cut_case("failures", "an error before a success",
        lambda: Chain().ask().call_with_result("t1", "Bash", is_error=True, command="x")
        .call_with_result("t2", "Bash", SECOND_LONG_OUTPUT, command="x"),
        OUTPUT_ADDRESS, make_placeholder("Bash", "1,700", "failed, and later succeeded")),
    make_cut_case("failures", "it stays an error",
        lambda: Chain().ask().call_with_result("t1", "Bash", is_error=True, command="x")
        .call_with_result("t2", "Bash", SECOND_LONG_OUTPUT, command="x"),
        ("c2", "message", "content", 0, "is_error"), True),
    make_cut_case("thinking", "whole, and nothing in its place",
        lambda: Chain().ask().answer([SIGNED_THINKING], message_id="m").answer(message_id="m").add_short_turns(2),
        ("c1", "message", "content"), []),
    make_cut_case("thinking", "what is said beside it stays",
        lambda: Chain().ask().answer([SIGNED_THINKING, {"type": "text", "text": "so"}]).add_short_turns(2),
        ("c1", "message", "content"), [{"type": "text", "text": "so"}]),
    make_cut_case("attachments", "a file", lambda: Chain().ask().attach(attachment={**FILE_ATTACHMENT}).answer(),
        ("c1", "attachment", "content", "file", "content"),
        f"[Attachment suppressed - original content was 1,700 characters; original: {SHORT_ID}:1]"),
    make_cut_case("attachments", "what is sent for it",
        lambda: Chain().ask().attach(attachment=FILE_ATTACHMENT, rendered=[{"content": LONG_OUTPUT}]).answer(),
        ("c1", "rendered", 0, "content"),
        f"[Attachment suppressed - original content was 1,700 characters; original: {SHORT_ID}:1]"),
    make_cut_case("media", "an image in a prompt",
         lambda: Chain().ask().ask([IMAGE, {"type": "text", "text": "see"}]).answer(),
        ("c1", "message", "content", 0),
        {"type": "text",
         "text": f"[Image or document suppressed - original content was 960 tokens; original: {SHORT_ID}:1]"}),
    make_cut_case("media", "an image in a result", lambda: Chain().ask().call_with_result("t1", "Read", [IMAGE]),
        (*OUTPUT_ADDRESS, 0, "text"),
        f"[Image or document suppressed - original content was 960 tokens; original: {SHORT_ID}:2]"),
    make_cut_case("results", "a plain output",
         lambda: Chain().ask().call_with_result("t1", "Read", "x" * 501),
        OUTPUT_ADDRESS, make_placeholder("Read", "501")),
    make_cut_case("results", "a text within blocks",
         lambda: Chain().ask().call_with_result("t1", "mcp__x__y", [{"type": "text", "text": LONG_OUTPUT}]),
        (*OUTPUT_ADDRESS, 0, "text"), make_placeholder("mcp__x__y", "1,700")),
    make_cut_case("results", "a tool that was named", lambda: Chain().ask().call_with_result("t1", "ToolSearch"),
        OUTPUT_ADDRESS, make_placeholder("ToolSearch", "1,700"), tools=("toolsearch",)),
    make_cut_case("results", "what a program prints behind a placeholder",
        lambda: Chain().ask().call_with_result("t1", "Bash", f"{PRINTED_PLACEHOLDER}\n{LONG_OUTPUT}"),
        OUTPUT_ADDRESS, make_placeholder("Bash", f"{len(PRINTED_PLACEHOLDER) + 1 + len(LONG_OUTPUT):,}")),
    make_cut_case("results", "an output that begins like a refusal",
        lambda: Chain().ask().call_with_result("t1", "Bash", f"The user doesn't want to proceed. {LONG_OUTPUT}"),
        OUTPUT_ADDRESS, make_placeholder("Bash", f"{34 + len(LONG_OUTPUT):,}")),
    make_cut_case("inputs", "a file that was written",
        lambda: Chain().ask().call_with_result("t1", "Write", "ok", content=LONG_OUTPUT, file_path="/nowhere/a"),
        ("c1", "message", "content", 0, "input", "content"),
        f"[Input of Write tool suppressed - original content was 1,700 characters; original: {SHORT_ID}:1]"),
    make_cut_case("inputs", "each edit of many",
        lambda: Chain().ask().call_with_result(
            "t1", "MultiEdit", "ok", edits=[{"old_string": "x", "new_string": LONG_OUTPUT}], **FILE_A_INPUT),
        ("c1", "message", "content", 0, "input", "edits", 0, "new_string"),
        f"[Input of MultiEdit tool suppressed - original content was 1,700 characters; original: {SHORT_ID}:1]"),
    make_cut_case("inputs", "a command keeps its beginning",
        lambda: Chain().ask().call_with_result("t1", "Bash", "ok", command="echo " + "x" * 700),
        ("c1", "message", "content", 0, "input", "command"),
        f"echo {'x' * 115} "
        f"[Input of Bash tool suppressed - original content was 705 characters; original: {SHORT_ID}:1]"),
    make_cut_case("pasted", "both ends stay", lambda: Chain().ask("a" * 600 + "b" * 1_500 + "c" * 400).answer(),
        ("c0", "message", "content"),
        "a" * 500
        + f"\n[Pasted text suppressed - original content was 1,700 characters; original: {SHORT_ID}:0]\n" + "c" * 300),
    make_cut_case("assistant", "the first ones", lambda: Chain().ask().answer(LONG_ANSWER).ask().answer(LONG_ANSWER),
        ("c1", "message", "content", 0, "text"),
        f"[Claude response trimmed - original was 1,200 characters; original: {SHORT_ID}:1]", assistant=1),
    make_cut_case("assistant", "but no more", lambda: Chain().ask().answer(LONG_ANSWER).ask().answer(LONG_ANSWER),
        ("c3", "message", "content", 0, "text"),
        LONG_ANSWER, assistant=1),
    make_cut_case("assistant", "all but the last", lambda: Chain().ask().answer(LONG_ANSWER).ask().answer(LONG_ANSWER),
        ("c1", "message", "content", 0, "text"),
        f"[Claude response trimmed - original was 1,200 characters; original: {SHORT_ID}:1]", assistant=-1),
    make_cut_case("assistant", "of old clients, which wrote plain strings",
         lambda: Chain().ask().answer().ask().answer(LONG_ANSWER),
        ("c3", "message", "content", 0, "text"),
        f"[Claude response trimmed - original was 1,200 characters; original: {SHORT_ID}:3]", assistant=9),
]  # fmt: skip


@pytest.mark.parametrize("case", KEPT_CASES, ids=lambda case: f"{case.rule}: {case.reason}")
def test_a_rule_leaves_a_session_unchanged(config_home: ConfigHome, case: KeptCase) -> None:
    """The rule chooses nothing in this session, although no turn is protected."""
    path = write_project_session(config_home, case.make_chain())
    assert plan_trim_of_file(config_home, path, only=(case.rule,), **case.options).choices == ()


@pytest.mark.parametrize("case", CUT_CASES, ids=lambda case: f"{case.rule}: {case.description}")
def test_a_rule_replaces_a_value(config_home: ConfigHome, case: CutCase) -> None:
    """The rule replaces the value at the case's address, and the child passes its checks."""
    path = write_project_session(config_home, case.make_chain())
    if "plain strings" in case.description:
        path.write_bytes(
            path.read_bytes().replace(
                f'[{{"type":"text","text":"{LONG_ANSWER}"}}]'.encode(), f'"{LONG_ANSWER}"'.encode()
            )
        )
    child = trim_file(config_home, path, only=(case.rule,), **case.options)
    assert get_value_at(read_records_by_uuid(child), case.value_address) == case.expected_value


def test_answers_of_the_model_are_kept_by_default(config_home: ConfigHome) -> None:
    """Answers of the model are trimmed only if the option ``assistant`` is given a number."""
    path = write_project_session(config_home, Chain().ask().answer(LONG_ANSWER))
    assert plan_trim_of_file(config_home, path).choices == ()
    with pytest.raises(UsageError, match="needs a number"):
        plan_trim_of_file(config_home, path, only=("assistant",))


def test_every_rule_has_a_kept_case_and_a_cut_case() -> None:
    """Each rule has a case in both lists of cases, and the rules are in the order of ``RULE_NAMES``."""
    assert {row.rule for row in KEPT_CASES} == {row.rule for row in CUT_CASES} == set(RULES_BY_NAME)
    assert tuple(RULES_BY_NAME) == RULE_NAMES


def test_a_trimmed_record_states_where_its_original_is(config_home: ConfigHome) -> None:
    """A trimmed record has the file, session id, uuid, line and block of its original."""
    path = write_project_session(config_home, Chain().ask().call_with_result("t1"))
    row = read_records_by_uuid(trim_file(config_home, path))["c2"]
    assert {key: row[key] for key in row if key.startswith(("original_", "truncated"))} == {
        "truncated": True,
        "original_session": str(path),
        "original_session_id": SESSION,
        "original_uuid": "c2",
        "original_index": 2,
        "original_block": 0,
    }


@pytest.mark.parametrize(
    ("tool", "is_kept"), [("Read", False), ("Bash", False), ("Edit", True), ("Write", True)]
)
def test_the_output_for_the_screen_is_removed_unless_it_is_a_diff(
    config_home: ConfigHome, tool: str, is_kept: bool
) -> None:
    """Trimming an output removes the field ``toolUseResult``, unless it is the diff of an edit or a write."""
    chain = Chain().ask().call_with_result("t1", tool, **FILE_A_INPUT)
    chain.rows[2]["toolUseResult"] = {"stdout": LONG_OUTPUT}
    child = trim_file(config_home, write_project_session(config_home, chain))
    assert ("toolUseResult" in read_records_by_uuid(child)["c2"]) is is_kept


@pytest.mark.parametrize(
    ("file_state", "is_kept"),
    [("newer", True), ("older", False), ("missing", False), ("edited", False)],
)
def test_the_input_of_a_write_is_kept_if_the_file_is_newer(
    config_home: ConfigHome, tmp_path: Path, file_state: str, *, is_kept: bool
) -> None:
    """The input of a ``Write`` call is kept if something other than an edit changed the file later.

    The client compares such a file with the input, and sends the file again if they differ.
    """
    path = tmp_path / "a.py"
    chain = (
        Chain()
        .ask()
        .call_with_result("t1", "Write", "ok", content=LONG_OUTPUT, file_path=str(path))
    )
    if file_state == "edited":
        chain.call_with_result(
            "t2", "Edit", "ok", file_path=str(path), old_string="a", new_string="b"
        )
    for row in chain.rows:
        row["cwd"] = str(tmp_path)
    if file_state != "missing":
        path.write_text(LONG_OUTPUT)
    if file_state == "older":
        os.utime(path, (0, 1_000))
    choices = plan_trim_of_file(config_home, write_project_session(config_home, chain)).choices
    assert ("Write" in {choice.tool for choice in choices}) is not is_kept


def test_a_block_after_a_removed_block_is_trimmed(config_home: ConfigHome) -> None:
    """A block that follows removed blank texts is trimmed at its correct position."""
    blank: Record = {"type": "text", "text": " "}
    chain = Chain().ask().answer([blank, builders.call("t1", "Bash", command="c" * 900)])
    chain.ask([blank, blank, builders.result("t1", LONG_OUTPUT)])
    rows = read_records_by_uuid(trim_file(config_home, write_project_session(config_home, chain)))
    assert "Input of Bash tool" in get_value_at(
        rows, ("c1", "message", "content", 0, "input", "command")
    )
    assert "Results from Bash tool" in get_value_at(
        rows, ("c2", "message", "content", 0, "content")
    )
