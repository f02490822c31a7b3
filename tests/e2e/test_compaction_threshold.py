"""Tests of ``compaction trim@150k``.

This setting compacts a session after a turn that ends above this number of tokens.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from resume_hooks.transcripts.transcript import scan_transcript
from tests.cli.fork_server import ForkServer
from tests.e2e.harness.client import NEWEST_VERSION, ClientHome, Tui, find_client
from tests.e2e.harness.mock_api import MockApi, Refusal, Request, Usage
from tests.e2e.harness.processes import wait_until
from tests.e2e.harness.replies import Reply
from tests.e2e.plugin import text_of_request
from tests.e2e.test_auto_compaction import (
    ENGINE_SCRIPT_WITHOUT_PLAN,
    USAGE_OF_FULL_CONTEXT,
    summary_requests,
)
from tests.e2e.test_in_place import (
    assert_every_client_resends_the_contents,
    assert_request_is_valid,
    remove_reminders,
    request_contents,
    send_next_prompt,
)
from tests.e2e.test_inside import (
    ASK_FIRST_OPTIONS,
    QUIET_ENV,
    engine_environment,
    open_real_session,
)
from tests.e2e.test_trim_trigger import outputs_by_call
from tests.needs import one_in

COMPACTION_REPORT_PATTERN = r"@60k: \d+k tokens, now about \d+k; back: /untrim$"
USAGE_ABOVE_THRESHOLD = Usage(input_tokens=10, cache_read_input_tokens=100_000)
TRIM_AT_60K_ENV = {"RESUME_HOOKS_COMPACTION": "trim@60k"}


@pytest.fixture
def small_tui(home: ClientHome, api: MockApi) -> Iterator[Tui]:
    """Return a terminal of 80 columns and 24 rows for the newest client."""
    with Tui(find_client(NEWEST_VERSION), home, api, columns=80, rows=24) as terminal:
        yield terminal


def prompts_before_compactions(session: Path) -> list[int]:
    """Return a list that contains, for each compaction, the number of prompts typed before it."""
    found, turns = [], 0
    for node in scan_transcript(str(session)).nodes:
        turns += node.is_prompt and not node.is_copied
        found += [turns] if node.is_boundary else []
    return found


def count_references_that_print_outputs(
    home: ClientHome, server: ForkServer, session: Path, request: Request, originals: dict[str, str]
) -> int:
    """Check that ``read`` prints the complete output for each reference in a request.

    Return the number of references that replace a tool result.
    """
    outputs_of = {
        named[1]: originals[call]
        for kind, call, text in request_contents(request)
        if kind == "result"
        and call in originals
        and (named := re.match(r"\[Results from .*; original: (\w+:\d+)", text))
    }
    for reference in (
        set(re.findall(rf"\b{session.stem[:8]}:\d+", text_of_request(request))) | outputs_of.keys()
    ):
        done = server.run(
            ("read", reference, "--max-chars", "100000", "--json"),
            home.env(),
            b"",
            str(home.cwd),
            60,
        )
        told = json.loads(done.stdout)["data"]["text"]
        assert remove_reminders(outputs_of.get(reference, "")) in told, reference
    return len(outputs_of)


@pytest.mark.parametrize("compaction_setting", one_in(2, ["trim", "handoff"]))
def test_a_session_above_the_threshold_is_compacted_after_the_turn(
    small_tui: Tui, plugin: Path, parent: Path, fork_server: ForkServer, compaction_setting: str
) -> None:
    """After a turn above the threshold, the session is compacted without a request.

    One line reports the compaction. Every client that resumes the session sends the same context as
    the running client.
    """
    before, originals = parent.read_bytes(), outputs_by_call(parent)
    open_real_session(small_tui, plugin, {"RESUME_HOOKS_COMPACTION": f"{compaction_setting}@60k"})
    small_tui.api.usage = USAGE_ABOVE_THRESHOLD
    small_tui.submit("hello ALPHA")
    small_tui.wait_for(compaction_setting + COMPACTION_REPORT_PATTERN)
    small_tui.wait_until_idle()
    assert len(small_tui.api.main_requests()) == 1
    assert summary_requests(small_tui) == []
    live = send_next_prompt(small_tui)
    assert (
        text_of_request(live).count("Facts about this session from before it was compacted:") == 1
    )
    assert "hello ALPHA" in text_of_request(live)
    assert_every_client_resends_the_contents(small_tui.home, small_tui.api, parent, before, live)
    assert bool(
        count_references_that_print_outputs(small_tui.home, fork_server, parent, live, originals)
    ) == (compaction_setting == "trim")


class GrowingModel:
    """A model that makes one tool call in each turn and reports a usage that grows with the request."""

    def __init__(self, api: MockApi) -> None:
        self.api, self.count = api, 0

    def __call__(self, request: Request) -> Reply:
        """Return a tool call for the first request of a turn, and a final answer for the second request."""
        self.api.usage = Usage(
            100, cache_read_input_tokens=50_000 + len(json.dumps(request["messages"])) // 4
        )
        turn, is_second = divmod(self.count, 2)
        self.count += 1
        call = {"name": "Bash", "input": {"command": f"seq {turn + 1}0000 {turn + 1}3500"}}
        return f"Step {turn + 1} is done." if is_second else call


@pytest.mark.wide
def test_compactions_are_rare_in_sixty_turns_above_the_threshold(
    tui: Tui, plugin: Path, fork_server: ForkServer
) -> None:
    """In sixty turns above the threshold, there are at least five turns between two compactions.

    ``read`` still prints the original outputs completely.
    """
    tui.api.script = GrowingModel(tui.api)
    tui.start(
        (*ASK_FIRST_OPTIONS, "--allowed-tools", "Bash(seq:*)"),
        plugin_dir=plugin,
        extra_env=QUIET_ENV | TRIM_AT_60K_ENV,
    )
    for turn in range(1, 61):
        tui.submit(f"take step {turn}")
        tui.wait_for(f"Step {turn} is done")
        tui.wait_until_idle()
    (session,) = tui.home.sessions()
    found = prompts_before_compactions(session)
    assert found
    assert all(after - before >= 5 for before, after in pairwise(found))
    assert summary_requests(tui) == []
    requests = tui.api.main_requests()
    assert len(requests) == 120
    for request in requests:
        assert_request_is_valid(request)
    rows = (row for request in reversed(requests) for row in request_contents(request))
    originals = {call: text for kind, call, text in rows if kind == "result"}
    assert len(originals) == 60
    assert (
        count_references_that_print_outputs(tui.home, fork_server, session, requests[-1], originals)
        > 40
    )


def test_a_compaction_waits_until_the_box_is_empty(tui: Tui, plugin: Path, parent: Path) -> None:
    """A session is not compacted after a turn that was refused or interrupted.

    It is not compacted either while the input box contains a draft. It is compacted after the next
    turn that ends with an empty input box.
    """
    open_real_session(tui, plugin, TRIM_AT_60K_ENV)
    tui.api.usage = USAGE_OF_FULL_CONTEXT
    tui.api.script = [[3, "One."], Refusal(403, "not today"), [60, "Three."], "Four."]
    tui.submit("first")
    tui.wait_for("esc to interrupt")
    tui.type("a draft")
    tui.wait_for("● One")
    tui.wait_until_idle(2)
    assert tui.input_text() == "a draft"
    tui.key("Enter")
    tui.wait_for("not today")
    tui.wait_until_idle(2)
    tui.submit("and now")
    tui.wait_for("esc to interrupt")
    time.sleep(2)
    tui.key("Escape")
    tui.wait_until_gone("esc to interrupt")
    tui.wait_until_idle(2)
    assert prompts_before_compactions(parent) == []
    tui.clear_restored_prompt()
    tui.submit("fourth")
    tui.wait_for("trim" + COMPACTION_REPORT_PATTERN)
    assert wait_until(lambda: len(prompts_before_compactions(parent)) == 1)


@pytest.mark.parametrize(
    "failing_script",
    one_in(2, ["sys.exit('the engine is ill')", "time.sleep(60)"]),
    ids=["fails", "hangs"],
)
def test_a_failing_engine_does_not_compact_the_session(
    tui: Tui, plugin: Path, parent: Path, tmp_path: Path, failing_script: str
) -> None:
    """If the engine fails, the failure is reported once, and the session is not compacted.

    No model is asked for a summary, and the next prompt is answered.
    """
    open_real_session(
        tui,
        plugin,
        engine_environment(tmp_path, ENGINE_SCRIPT_WITHOUT_PLAN + failing_script) | TRIM_AT_60K_ENV,
    )
    tui.api.usage = USAGE_OF_FULL_CONTEXT
    tui.submit("first")
    tui.wait_for("Not compacted · .*(ill|timed out|timeout|15)")
    tui.wait_until_idle()
    tui.submit("second")
    tui.wait_for("Mock reply 2")
    tui.wait_until_idle(2)
    assert tui.text().count("Not compacted") == 1
    assert not prompts_before_compactions(parent)
    assert not summary_requests(tui)
