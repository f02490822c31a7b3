"""Tests that after a trim in place, the running client and all later clients send the smaller context."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.derive import untrim
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.trim import plan
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.untrim import scan_trimmed_session
from resume_hooks.maintenance.fsck.diagnose import examine_session
from resume_hooks.paths import Where
from resume_hooks.reading.outline import make_outline
from resume_hooks.search.index.changed_files import ReadJob
from resume_hooks.search.index.postings import RECORD_INDEX
from resume_hooks.search.index.read_transcript import read_parts
from resume_hooks.search.roles import ROLES
from resume_hooks.sessions import locate
from resume_hooks.transcripts.transcript import scan_transcript
from tests.e2e.harness.client import (
    NEWEST_VERSION,
    OLDEST_VERSION,
    ClientHome,
    Tui,
    find_client,
    run_print,
)
from tests.e2e.harness.mock_api import MockApi, Request
from tests.e2e.harness.processes import wait_until
from tests.e2e.plugin import PARENT_ID
from tests.e2e.test_cost_card import USAGE_BELOW_LIMIT
from tests.e2e.test_inside import ASK_FIRST_OPTIONS, QUIET_ENV, open_real_session
from tests.e2e.test_trim_corpus import ALL_SESSION_NAMES
from tests.e2e.test_trim_trigger import outputs_by_call
from tests.needs import corpus

NEXT_PROMPT = "now go on BETA"
CLIENT_VERSIONS_TO_RESUME_WITH = (NEWEST_VERSION, OLDEST_VERSION)
INSERTED_BEGINNINGS = (
    "<system-reminder>",
    "No response requested",
    "Continue from where you left off.",
    "<task-notification>",
)
"""Beginnings of texts that clients insert. They depend on the client's version but not on a trim.
"""

REMINDER_PATTERN = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)


def request_contents(request: Request) -> list[tuple[str, str, Any]]:
    """Return the texts, calls and results in a request's messages."""
    rows: list[tuple[str, str, Any]] = []
    for message in request["messages"]:
        content = message["content"]
        blocks: list[dict[str, Any]] = (
            [{"type": "text", "text": content}] if isinstance(content, str) else content
        )
        for block in blocks:
            if block["type"] == "tool_use":
                # In this input, only some clients include the text of the plan.
                given = block["input"]
                rows.append(
                    (
                        "call",
                        block["id"],
                        {key: given[key] for key in given if not key.startswith("plan")},
                    )
                )
            elif block["type"] == "tool_result":
                inner = block["content"]
                text = (
                    inner
                    if isinstance(inner, str)
                    else "\n".join(part.get("text", "") for part in inner)
                )
                rows.append(("result", block["tool_use_id"], remove_reminders(text)))
            elif (
                block["type"] == "text"
                and message["role"] != "system"
                and not block["text"].startswith(INSERTED_BEGINNINGS)
            ):
                rows += [
                    (message["role"], "", line.strip())
                    for line in block["text"].split("\n")
                    if line.strip()
                ]
    return rows


def remove_reminders(text: str) -> str:
    """Return a tool's output without the reminders that the client adds."""
    return REMINDER_PATTERN.sub("", text).strip()


def assert_request_is_valid(request: Request) -> None:
    """Check that the API would accept the request.

    No two assistant messages are adjacent, and each call has its result in the next message.
    """
    messages = [message for message in request["messages"] if message["role"] != "system"]
    for before, after in zip(
        messages, [*messages[1:], {"role": "user", "content": []}], strict=True
    ):
        assert (before["role"], after["role"]) != ("assistant", "assistant")
        calls, results = (
            ids_of_blocks(before, "tool_use", "id"),
            ids_of_blocks(after, "tool_result", "tool_use_id"),
        )
        assert calls == results
        assert len(calls) == len(set(calls))


def ids_of_blocks(message: dict[str, Any], block_type: str, id_key: str) -> list[str]:
    """Return the sorted ids of the calls or of the results in a message."""
    content = message["content"] if isinstance(message["content"], list) else []
    return sorted(block[id_key] for block in content if block["type"] == block_type)


def assert_every_client_resends_the_contents(
    home: ClientHome, api: MockApi, session: Path, content_before_trim: bytes, live_request: Request
) -> None:
    """Check that each client that resumes the session sends the same contents as ``live_request``.

    ``live_request`` is the request of the client that trimmed the session. Also check that the uuid
    of each appended record occurs only once.
    """
    raw = session.read_bytes()
    assert raw.startswith(content_before_trim)
    uuids = Counter(node.uuid for node in scan_transcript(str(session)).nodes)
    appended = {
        node.uuid
        for node in scan_transcript(str(session)).nodes
        if node.offset >= len(content_before_trim)
    }
    assert [uuid for uuid in appended if uuids[uuid] > 1] == []
    expected = contents_before_last_prompt(live_request)
    for version in CLIENT_VERSIONS_TO_RESUME_WITH:
        session.write_bytes(raw)
        api.clear_requests()
        done = run_print(find_client(version), home, api, NEXT_PROMPT, resume=session.stem)
        assert done.returncode == 0, done.stderr
        request = api.main_requests()[-1]
        assert_request_is_valid(request)
        assert contents_before_last_prompt(request) == expected, version
    session.write_bytes(raw)


def contents_before_last_prompt(request: Request) -> list[tuple[str, str, Any]]:
    """Return a request's contents without the last prompt and the mock's replies."""
    return [
        row
        for row in request_contents(request)
        if row[2] != NEXT_PROMPT and not str(row[2]).startswith("Mock reply ")
    ]


def send_next_prompt(tui: Tui) -> Request:
    """Send the next prompt, end the client, and return its request."""
    tui.api.clear_requests()
    tui.submit(NEXT_PROMPT)
    assert wait_until(lambda: bool(tui.api.main_requests()))
    tui.wait_until_idle()
    live = tui.api.main_requests()[-1]
    assert_request_is_valid(live)
    tui.close()
    return live


def test_a_trim_in_place_sends_no_request(modern_tui: Tui, plugin: Path, parent: Path) -> None:
    """If the user chooses a trim in place in the dialog, no request is sent.

    The session's file keeps its earlier bytes. The next request contains the same results as a
    trimmed copy. Every client that resumes the session sends the same request, and an untrim
    restores the original results.
    """
    before = parent.read_bytes()
    where = modern_tui.home.where
    copy = write_child(
        plan.plan_trim(plan.scan_session(locate.session_file(str(parent))), where, Options()), where
    )
    size = copy.tokens_before
    expected, original = outputs_by_call(Path(copy.file)), outputs_by_call(parent)
    Path(copy.file).unlink()
    open_real_session(modern_tui, plugin)
    modern_tui.submit("/trim")
    modern_tui.wait_for("2. Trim here, in place")
    modern_tui.wait_until_idle(2)
    modern_tui.key("2")
    modern_tui.wait_for("Compacted")
    modern_tui.wait_for("tokens before, about")
    modern_tui.wait_until_idle()
    assert not modern_tui.api.requests
    live = send_next_prompt(modern_tui)
    assert live["messages"][0]["role"] == "user"
    results = {row[1]: row[2] for row in request_contents(live) if row[0] == "result"}
    assert {call: results[call] for call in expected} == {
        call: remove_reminders(text) for call, text in expected.items()
    }
    assert "Facts about this session" not in json.dumps(live)
    assert_every_client_resends_the_contents(modern_tui.home, modern_tui.api, parent, before, live)
    assert_copied_records_are_not_counted(parent, before, where)
    undoing = untrim.plan_untrim(scan_trimmed_session(locate.session_file(str(parent))), where)
    assert abs(undoing.sizes.tokens_after - size) < size // 20
    whole = write_child(undoing, where)
    modern_tui.api.clear_requests()
    done = run_print(
        modern_tui.version,
        modern_tui.home,
        modern_tui.api,
        "now go on GAMMA",
        resume=whole.session_id,
    )
    assert done.returncode == 0, done.stderr
    (request,) = modern_tui.api.main_requests()
    assert_request_is_valid(request)
    back = {row[1]: row[2] for row in request_contents(request) if row[0] == "result"}
    assert {call: back[call] for call in original} == {
        call: remove_reminders(text) for call, text in original.items()
    }
    assert [row for row in request_contents(request) if "now go on" in row[2]] == [
        ("user", "", NEXT_PROMPT),
        ("user", "", "now go on GAMMA"),
    ]


def run_turns_with_long_outputs(tui: Tui, *step_numbers: int) -> None:
    """Run one turn for each step. Each turn has a call whose output is long enough to be trimmed."""
    for step in step_numbers:
        tui.api.script = [
            {"name": "Bash", "input": {"command": f"seq {step}0000 {step}3500"}},
            f"Step {step} is done.",
        ]
        tui.submit(f"take step {step}")
        tui.wait_for(f"Step {step} is done")
        tui.wait_until_idle()


def test_repeated_trims_in_place_keep_turns_and_summaries(tui: Tui, plugin: Path) -> None:
    """After two trims in place, the summary is still sent, and each turn that the user typed counts once.

    An untrim restores the complete outputs.
    """
    tui.api.usage = USAGE_BELOW_LIMIT
    tui.start(
        (*ASK_FIRST_OPTIONS, "--allowed-tools", "Bash(seq:*)"),
        plugin_dir=plugin,
        extra_env=QUIET_ENV,
    )
    run_turns_with_long_outputs(tui, 1)
    tui.api.script = ["<summary>The first step went well.</summary>"]
    tui.submit("/compact")
    tui.wait_for("Compacted")
    tui.wait_until_idle()
    steps = 1
    for more in (4, 3):
        run_turns_with_long_outputs(tui, *range(steps + 1, steps + 1 + more))
        steps += more
        tui.submit("/trim here")
        tui.wait_for(rf"Step {steps} is done(.*\n)*.*tokens before, about")
        tui.wait_until_idle()
    (session,) = tui.home.sessions()
    turns = make_outline(locate.session_file(str(session))).turns
    assert [turn.first_words for turn in turns] == [
        f"take step {step}" for step in range(1, steps + 1)
    ]
    tui.submit("/untrim")
    tui.wait_for("This is the new session")
    tui.wait_for(r"tokens\s+instead\s+of\s+1\d\d,\d{3}")
    tui.wait_until_idle()
    tui.api.clear_requests()
    tui.submit(NEXT_PROMPT)
    tui.wait_for("Mock reply 1")
    request = tui.api.main_requests()[-1]
    assert_request_is_valid(request)
    results = [row[2] for row in request_contents(request) if row[0] == "result"]
    assert [text.split("\n", 1)[0] for text in results] == [
        f"{step}0000" for step in range(2, steps + 1)
    ]
    assert all(text.endswith("3500") for text in results)
    assert "The first step went well." in json.dumps(request)


def assert_copied_records_are_not_counted(
    session: Path, content_before_trim: bytes, where: Where
) -> None:
    """Check that the copies of records that a trim appended are not counted as turns, hits or errors."""
    turns = make_outline(locate.session_file(str(session))).turns
    twin = session.with_name(f"{PARENT_ID[:-1]}2.jsonl")
    twin.write_bytes(content_before_trim)
    assert [turn.first_words for turn in turns] == [
        *(turn.first_words for turn in make_outline(locate.session_file(str(twin))).turns), NEXT_PROMPT,
    ]  # fmt: skip
    twin.unlink()
    parts = filter(None, read_parts(ReadJob(str(session), is_subagent=False)))
    rows = [json.loads(row) for part in parts for row in part.documents[RECORD_INDEX]]
    assert max(row["line"] for row in rows if ROLES[row["role"]] == "call") < len(
        content_before_trim.splitlines()
    )
    report = examine_session(locate.session_file(str(session)), where)
    assert not report.count_findings("error")


@pytest.mark.whole_corpus
@pytest.mark.parametrize("name", ALL_SESSION_NAMES)
def test_real_sessions_are_trimmed_in_place_or_refused(tui: Tui, plugin: Path, name: str) -> None:
    """Each real session is trimmed in place, or the trim is refused with a reason.

    If the trim is refused, no request is sent and nothing is compacted. After a trim, all clients
    send the same context.
    """
    session = tui.home.install_session(corpus() / name, PARENT_ID, set_cwd=True)
    open_real_session(tui, plugin)
    before = session.read_bytes()
    tui.submit("/trim here")
    tui.wait_for(r"ompacted \(|Not compacted")
    tui.wait_until_idle()
    assert not tui.api.main_requests()
    refused = re.search("Not compacted · (.*)", tui.text())
    print(f"{name}: {refused[1] if refused else 'trimmed'}")
    if refused:
        assert "too few" in refused[1]
        assert b'"compact_boundary"' not in session.read_bytes()[len(before) :]
        return
    assert_every_client_resends_the_contents(
        tui.home, tui.api, session, before, send_next_prompt(tui)
    )
