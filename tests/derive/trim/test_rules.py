"""Each rule by two tables: inputs that it must leave alone, with the reason, and what becomes of others."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from resume_hooks.derive.trim.options import RULE_NAMES
from resume_hooks.derive.trim.rules import RULES
from resume_hooks.errors import UsageError
from tests import builders
from tests.builders import SESSION, ConfigHome, Record
from tests.derive.trim.nasty import IMAGE
from tests.derive.trim.sessions import (
    LONG,
    Chain,
    by_uuid,
    planned,
    trim_file,
    value_at,
    write_project_session,
)

AT = SESSION[:8]
OTHER = "another output line\n" * 100
SIGNED = {"type": "thinking", "thinking": "hmm " * 100, "signature": "c2ln" * 100}
SAID = "The answer to it all is this. " * 40
FILE = {"type": "file", "content": {"file": {"content": LONG}}}


class Kept(NamedTuple):
    """A session in which a rule finds nothing, and why it must not."""

    rule: str
    why: str
    chain: Callable[[], Chain]
    options: dict[str, Any]


class Cut(NamedTuple):
    """A session, and the value at the end of a path after a rule has acted: the record's uuid, then keys."""

    rule: str
    what: str
    chain: Callable[[], Chain]
    path: tuple[str | int, ...]
    after: Any
    options: dict[str, Any]


def keep_row(rule: str, why: str, chain: Callable[[], Chain], **options: Any) -> Kept:
    """A row of the first table."""
    return Kept(rule, why, chain, options)


def trim_row(
    rule: str,
    what: str,
    chain: Callable[[], Chain],
    path: tuple[str | int, ...],
    after: Any,
    **how: Any,
) -> Cut:
    """A row of the second table."""
    return Cut(rule, what, chain, path, after, how)


def ask() -> Chain:
    """A prompt to begin with."""
    return Chain().ask("question")


def reads(*rows: tuple[str, str, dict[str, Any]]) -> Callable[[], Chain]:
    """Calls with long outputs, by id, tool and input, and a turn after them."""

    def chain() -> Chain:
        made = ask()
        for number, (call, tool, given) in enumerate(rows):
            made.tool(call, tool, f"{number} {LONG}", **given)
        return made.turns(1)

    return chain


def stub(tool: str, size: str, why: str = "") -> str:
    """Return the trimmed form of a tool's result in the third line."""
    why = why and f"; {why}"
    return f"[Results from {tool} tool suppressed - original content was {size} characters; original: {AT}:2{why}]"


PRINTED = "[Results from a tool suppressed - original content was 9 tokens]"
OUTPUT = ("c2", "message", "content", 0, "content")
A: dict[str, Any] = {"file_path": "/a"}
PART: dict[str, Any] = {"file_path": "/a", "offset": 5, "limit": 9}

KEPT = [
    keep_row("superseded", "the last read is the one that counts", reads(("t1", "Read", A))),
    keep_row("superseded", "another file was read", reads(("t1", "Read", A), ("t2", "Read", {"file_path": "/b"}))),
    keep_row("superseded", "a part read later does not hold the rest", reads(("t1", "Read", A), ("t2", "Read", PART))),
    keep_row("superseded", "another part was read later",
         reads(("t1", "Read", PART), ("t2", "Read", {**PART, "offset": 50}))),
    keep_row("superseded", "a whole read does not reach so far",
         reads(("t1", "Read", {**PART, "offset": 1_995}), ("t2", "Read", A))),
    keep_row("superseded", "a whole read of a PDF shows no page for certain",
         reads(("t1", "Read", {"file_path": "/a", "pages": "1-5"}), ("t2", "Read", A))),
    keep_row("superseded", "the change came before the read", reads(("t1", "Edit", A), ("t2", "Read", A))),
    keep_row("superseded", "the later read failed",
         lambda: ask().tool("t1", **A).tool("t2", "Read", "gone", error=True, **A).turns(1)),
    keep_row("superseded", "the change failed",
         lambda: ask().tool("t1", **A).tool("t2", "Edit", "no match", error=True, **A).turns(1)),
    keep_row("superseded", "the later read is still waited for", lambda: ask().tool("t1", **A).call("t2", "Read", **A)),
    keep_row("superseded", "a search is no read", reads(("t1", "Grep", {"path": "/a"}), ("t2", "Read", A))),
    keep_row("superseded", "both were made at once, in one record", lambda: ask()
         .answer([builders.call("t1", "Read", **A), builders.call("t2", "Edit", **A)]).result("t1").result("t2")),
    keep_row("repeats", "the outputs differ", reads(("t1", "Bash", {}), ("t2", "Bash", {}))),
    keep_row("repeats", "another tool said the same", lambda: ask().tool("t1", "Bash").tool("t2", "Grep").turns(1)),
    keep_row("repeats", "below its placeholder", lambda: ask().tool("t1", "Bash", "ok").tool("t2", "Bash", "ok")),
    keep_row("failures", "it was never done again", lambda: ask().tool("t1", "Bash", error=True, command="x").turns(1)),
    keep_row("failures", "it failed again",
         lambda: ask().tool("t1", "Bash", error=True, command="x").tool("t2", "Bash", OTHER, error=True, command="x")),
    keep_row("failures", "something else succeeded",
         lambda: ask().tool("t1", "Bash", error=True, command="x").tool("t2", "Bash", command="y")),
    keep_row("failures", "the success came first",
         lambda: ask().tool("t1", "Bash", command="x").tool("t2", "Bash", error=True, command="x")),
    keep_row("failures", "another tool succeeded on it",
         lambda: ask().tool("t1", "Edit", error=True, **A).tool("t2", "Read", **A)),
    keep_row("thinking", "the last turn keeps its own",
         lambda: ask().turns(2).ask("last").answer([SIGNED], message_id="m").answer(message_id="m")),
    keep_row("thinking", "an answer of nothing else: empty, it would be sent",
         lambda: ask().answer([SIGNED]).answer().turns(2)),
    keep_row("thinking", "a prompt that was queued starts no turn before it is answered",
         lambda: ask().answer([SIGNED, {"type": "text", "text": "so"}]).tool("t1").ask("queued")),
    keep_row("thinking", "encrypted thoughts tell no size",
         lambda: ask().answer([{"type": "redacted_thinking", "data": "x" * 900}]).answer().turns(2)),
    keep_row("attachments", "under the threshold", lambda: ask().attach(attachment={**FILE}).answer(), threshold=2_000),
    keep_row("attachments", "a listing that is never sent again",
         lambda: ask().attach(attachment={"type": "skill_listing", "content": LONG}).answer()),
    keep_row("attachments", "the user's own words",
         lambda: ask().attach(attachment={"type": "queued_command", "prompt": LONG}).answer()),
    keep_row("attachments", "a kind that nobody knows",
         lambda: ask().attach(attachment={"type": "new", "content": LONG}).answer()),
    keep_row("media", "not sent along: it lies at an address",
         lambda: ask().ask([{"type": "document", "source": {"type": "url", "url": "https://x"}}]).answer()),
    keep_row("media", "no source at all", lambda: ask().ask([{"type": "image"}]).answer()),
    keep_row("results", "at the threshold, not over it", lambda: ask().tool("t1", "Read", "x" * 500)),
    keep_row("results", "at the threshold of its tool", lambda: ask().tool("t1"), thresholds={"read": 1_700}),
    keep_row("results", "a placeholder already",
         lambda: ask().tool("t1", "Read", "[Results from a tool suppressed - original content was 9,000 characters]"),
         threshold=0),
    keep_row("results", "the notice of another tool",
         lambda: ask().tool("t1", "Read", f"{LONG}\n\n[...truncated - original content was 9,000 characters]")),
    keep_row("results", "what the user said to a refused call",
         lambda: ask().tool("t1", "Bash", f"The user doesn't want to proceed. {LONG}", error=True)),
    keep_row("results", "the user's own choices", lambda: ask().tool("t1", "AskUserQuestion")),
    keep_row("results", "schemas that the client loads", lambda: ask().tool("t1", "ToolSearch")),
    keep_row("inputs", "under the threshold", lambda: ask().tool("t1", "Write", "ok", content="short", **A)),
    keep_row("inputs", "a long description is no content", lambda: ask().tool("t1", "Bash", "ok", description=LONG)),
    keep_row("inputs", "the words that an agent was given", lambda: ask().tool("t1", "Task", "ok", prompt=LONG)),
    keep_row("inputs", "nobody answered: it may be wanted yet", lambda: ask().call("t1", "Write", content=LONG, **A)),
    keep_row("inputs", "no object",
         lambda: ask().answer([{**builders.call("t1", "Write"), "input": LONG}]).result("t1", "ok")),
    keep_row("pasted", "four times the threshold is typed", lambda: Chain().ask("x" * 2_000).answer()),
    keep_row("pasted", "what stays is longer than what goes", lambda: Chain().ask("x" * 870).answer(), threshold=100),
    keep_row("pasted", "the client's own remark", lambda: ask().ask(LONG * 3, isMeta=True).answer()),
    keep_row("pasted", "a summary", lambda: ask().ask(LONG * 3, isCompactSummary=True).answer()),
    keep_row("assistant", "short answers don't count", lambda: ask().answer("short"), assistant=5),
    keep_row("assistant", "the last ones stay", lambda: ask().answer(SAID), assistant=-1),
    keep_row("assistant", "one was trimmed before, and one was asked for", lambda: ask().answer(
         "[Claude response trimmed - original was 900 characters; original: 1a2b3c4d:5]").answer(SAID), assistant=1),
]  # fmt: skip

CUT = [
    trim_row("superseded", "a file read again", reads(("t1", "Read", A), ("t2", "Read", A)),
        OUTPUT, stub("Read", "1,702", "the file was read again later")),
    trim_row("superseded", "a part before the whole", reads(("t1", "Read", PART), ("t2", "Read", A)),
        OUTPUT, stub("Read", "1,702", "the file was read again later")),
    trim_row("superseded", "a file changed later", reads(("t1", "Read", A), ("t2", "Edit", A)),
        OUTPUT, stub("Read", "1,702", "the file was changed later")),
    trim_row("repeats", "the earlier of two", lambda: ask().tool("t1", "Bash").tool("t2", "Bash").turns(1),
        OUTPUT, stub("Bash", "1,700", "the same output was repeated later")),
    trim_row("repeats", "the later of two stays", lambda: ask().tool("t1", "Bash").tool("t2", "Bash").turns(1),
        ("c4", "message", "content", 0, "content"), LONG),
    trim_row("failures", "an error before a success",
        lambda: ask().tool("t1", "Bash", error=True, command="x").tool("t2", "Bash", OTHER, command="x"),
        OUTPUT, stub("Bash", "1,700", "failed, and later succeeded")),
    trim_row("failures", "it stays an error",
        lambda: ask().tool("t1", "Bash", error=True, command="x").tool("t2", "Bash", OTHER, command="x"),
        ("c2", "message", "content", 0, "is_error"), True),
    trim_row("thinking", "whole, and nothing in its place",
        lambda: ask().answer([SIGNED], message_id="m").answer(message_id="m").turns(2),
        ("c1", "message", "content"), []),
    trim_row("thinking", "what is said beside it stays",
        lambda: ask().answer([SIGNED, {"type": "text", "text": "so"}]).turns(2),
        ("c1", "message", "content"), [{"type": "text", "text": "so"}]),
    trim_row("attachments", "a file", lambda: ask().attach(attachment={**FILE}).answer(),
        ("c1", "attachment", "content", "file", "content"),
        f"[Attachment suppressed - original content was 1,700 characters; original: {AT}:1]"),
    trim_row("attachments", "what is sent for it",
        lambda: ask().attach(attachment=FILE, rendered=[{"content": LONG}]).answer(),
        ("c1", "rendered", 0, "content"),
        f"[Attachment suppressed - original content was 1,700 characters; original: {AT}:1]"),
    trim_row("media", "an image in a prompt", lambda: ask().ask([IMAGE, {"type": "text", "text": "see"}]).answer(),
        ("c1", "message", "content", 0),
        {"type": "text",
         "text": f"[Image or document suppressed - original content was 960 tokens; original: {AT}:1]"}),
    trim_row("media", "an image in a result", lambda: ask().tool("t1", "Read", [IMAGE]),
        (*OUTPUT, 0, "text"),
        f"[Image or document suppressed - original content was 960 tokens; original: {AT}:2]"),
    trim_row("results", "a plain output", lambda: ask().tool("t1", "Read", "x" * 501), OUTPUT, stub("Read", "501")),
    trim_row("results", "a text within blocks", lambda: ask().tool("t1", "mcp__x__y", [{"type": "text", "text": LONG}]),
        (*OUTPUT, 0, "text"), stub("mcp__x__y", "1,700")),
    trim_row("results", "a tool that was named", lambda: ask().tool("t1", "ToolSearch"),
        OUTPUT, stub("ToolSearch", "1,700"), tools=("toolsearch",)),
    trim_row("results", "what a program prints behind a placeholder",
        lambda: ask().tool("t1", "Bash", f"{PRINTED}\n{LONG}"),
        OUTPUT, stub("Bash", f"{len(PRINTED) + 1 + len(LONG):,}")),
    trim_row("results", "an output that begins like a refusal",
        lambda: ask().tool("t1", "Bash", f"The user doesn't want to proceed. {LONG}"),
        OUTPUT, stub("Bash", f"{34 + len(LONG):,}")),
    trim_row("inputs", "a file that was written",
        lambda: ask().tool("t1", "Write", "ok", content=LONG, file_path="/nowhere/a"),
        ("c1", "message", "content", 0, "input", "content"),
        f"[Input of Write tool suppressed - original content was 1,700 characters; original: {AT}:1]"),
    trim_row("inputs", "each edit of many",
        lambda: ask().tool("t1", "MultiEdit", "ok", edits=[{"old_string": "x", "new_string": LONG}], **A),
        ("c1", "message", "content", 0, "input", "edits", 0, "new_string"),
        f"[Input of MultiEdit tool suppressed - original content was 1,700 characters; original: {AT}:1]"),
    trim_row("inputs", "a command keeps its beginning",
        lambda: ask().tool("t1", "Bash", "ok", command="echo " + "x" * 700),
        ("c1", "message", "content", 0, "input", "command"),
        f"echo {'x' * 115} [Input of Bash tool suppressed - original content was 705 characters; original: {AT}:1]"),
    trim_row("pasted", "both ends stay", lambda: Chain().ask("a" * 600 + "b" * 1_500 + "c" * 400).answer(),
        ("c0", "message", "content"),
        "a" * 500
        + f"\n[Pasted text suppressed - original content was 1,700 characters; original: {AT}:0]\n" + "c" * 300),
    trim_row("assistant", "the first ones", lambda: ask().answer(SAID).ask().answer(SAID),
        ("c1", "message", "content", 0, "text"),
        f"[Claude response trimmed - original was 1,200 characters; original: {AT}:1]", assistant=1),
    trim_row("assistant", "but no more", lambda: ask().answer(SAID).ask().answer(SAID),
        ("c3", "message", "content", 0, "text"),
        SAID, assistant=1),
    trim_row("assistant", "all but the last", lambda: ask().answer(SAID).ask().answer(SAID),
        ("c1", "message", "content", 0, "text"),
        f"[Claude response trimmed - original was 1,200 characters; original: {AT}:1]", assistant=-1),
    trim_row("assistant", "of old clients, which wrote plain strings", lambda: ask().answer().ask().answer(SAID),
        ("c3", "message", "content", 0, "text"),
        f"[Claude response trimmed - original was 1,200 characters; original: {AT}:3]", assistant=9),
]  # fmt: skip


@pytest.mark.parametrize("row", KEPT, ids=lambda row: f"{row.rule}: {row.why}")
def test_a_rule_leaves_alone(config_home: ConfigHome, row: Kept) -> None:
    """The rule alone, with nothing protected, chooses nothing."""
    path = write_project_session(config_home, row.chain())
    assert planned(config_home, path, only=(row.rule,), **row.options).choices == ()


@pytest.mark.parametrize("row", CUT, ids=lambda row: f"{row.rule}: {row.what}")
def test_a_rule_acts(config_home: ConfigHome, row: Cut) -> None:
    """The rule alone puts this in place of that, in a child that passes its checks."""
    path = write_project_session(config_home, row.chain())
    if "plain strings" in row.what:
        path.write_bytes(
            path.read_bytes().replace(
                f'[{{"type":"text","text":"{SAID}"}}]'.encode(), f'"{SAID}"'.encode()
            )
        )
    child = trim_file(config_home, path, only=(row.rule,), **row.options)
    assert value_at(by_uuid(child), row.path) == row.after


def test_answers_stay_unless_requested(config_home: ConfigHome) -> None:
    """Without a number long answers of the model are kept, and their rule alone is refused."""
    path = write_project_session(config_home, ask().answer(SAID))
    assert planned(config_home, path).choices == ()
    with pytest.raises(UsageError, match="needs a number"):
        planned(config_home, path, only=("assistant",))


def test_both_tables_name_every_rule() -> None:
    """Every rule has both tables."""
    assert {row.rule for row in KEPT} == {row.rule for row in CUT} == set(RULES)
    assert tuple(RULES) == RULE_NAMES


def test_a_trimmed_record_states_where_its_original_is(config_home: ConfigHome) -> None:
    """Marks at the top level: session by file and id, record by uuid and line, the first block that was trimmed."""
    path = write_project_session(config_home, ask().tool("t1"))
    row = by_uuid(trim_file(config_home, path))["c2"]
    assert {key: row[key] for key in row if key.startswith(("original_", "truncated"))} == {
        "truncated": True,
        "original_session": str(path),
        "original_session_id": SESSION,
        "original_uuid": "c2",
        "original_index": 2,
        "original_block": 0,
    }


@pytest.mark.parametrize(
    ("tool", "stays"), [("Read", False), ("Bash", False), ("Edit", True), ("Write", True)]
)
def test_the_copy_for_the_screen_goes_but_a_diff_stays(
    config_home: ConfigHome, tool: str, stays: bool
) -> None:
    """``toolUseResult`` repeats the output; for Edit and Write it is the coloured diff."""
    chain = ask().tool("t1", tool, **A)
    chain.rows[2]["toolUseResult"] = {"stdout": LONG}
    child = trim_file(config_home, write_project_session(config_home, chain))
    assert ("toolUseResult" in by_uuid(child)["c2"]) is stays


@pytest.mark.parametrize(
    ("state", "stays"), [("newer", True), ("older", False), ("missing", False), ("edited", False)]
)
def test_inputs_of_newer_files_are_kept(
    config_home: ConfigHome, tmp_path: Path, state: str, *, stays: bool
) -> None:
    """The client sends a file that is newer than its last Write if it differs from the input."""
    path = tmp_path / "a.py"
    chain = ask().tool("t1", "Write", "ok", content=LONG, file_path=str(path))
    if state == "edited":
        chain.tool("t2", "Edit", "ok", file_path=str(path), old_string="a", new_string="b")
    for row in chain.rows:
        row["cwd"] = str(tmp_path)
    if state != "missing":
        path.write_text(LONG)
    if state == "older":
        os.utime(path, (0, 1_000))
    choices = planned(config_home, write_project_session(config_home, chain)).choices
    assert ("Write" in {choice.tool for choice in choices}) is not stays


def test_blocks_are_found_behind_ones_that_are_taken_out(config_home: ConfigHome) -> None:
    """A blank text before a trimmed block is removed, too, and the right block is replaced."""
    blank: Record = {"type": "text", "text": " "}
    chain = ask().answer([blank, builders.call("t1", "Bash", command="c" * 900)])
    chain.ask([blank, blank, builders.result("t1", LONG)])
    rows = by_uuid(trim_file(config_home, write_project_session(config_home, chain)))
    assert "Input of Bash tool" in value_at(
        rows, ("c1", "message", "content", 0, "input", "command")
    )
    assert "Results from Bash tool" in value_at(rows, ("c2", "message", "content", 0, "content"))
