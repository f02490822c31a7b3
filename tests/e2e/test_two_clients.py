"""Tests of two clients that have the same session open. Each continues in a separate child."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from resume_hooks.maintenance.fsck.diagnose import examine_session
from resume_hooks.sessions.locate import session_file
from tests.e2e.harness.client import ClientHome, ClientVersion, Tui
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.harness.processes import wait_until
from tests.e2e.plugin import children_of_session, path_of_open_session, text_of_request
from tests.e2e.test_context_rollover import environment_with_client_on_path, model_that_summarises
from tests.e2e.test_inside import ASK_FIRST_OPTIONS, QUIET_ENV, open_real_session

NEXT_STEP = "fix the flaky test"


@pytest.fixture
def two_tuis(client: ClientVersion, home: ClientHome, api: MockApi) -> Iterator[tuple[Tui, Tui]]:
    """Return the terminals of two clients that share a home."""
    with Tui(client, home, api) as first, Tui(client, home, api) as second:
        yield first, second


def check_clients_continue_in_own_children(two_tuis: tuple[Tui, Tui], parent: Path) -> None:
    """Check that each client continues in a separate child, which contains only that client's prompt."""
    home, api = two_tuis[0].home, two_tuis[0].api
    for number, tui in enumerate(two_tuis):
        tui.wait_until_idle()
        tui.submit(f"prompt of client {number}")
        tui.wait_for(rf"prompt of client {number}(?:.*\n)+?.*Mock reply")
        tui.wait_until_idle()
        assert "[SESSION LINEAGE]" in text_of_request(api.main_requests()[-1])
    found = [
        path
        for path in children_of_session(home, parent)
        if path in {path_of_open_session(tui) for tui in two_tuis}
    ]
    held = [sorted(set(re.findall(r"prompt of client \d", path.read_text()))) for path in found]
    assert sorted(held) == [["prompt of client 0"], ["prompt of client 1"]]


@pytest.mark.parametrize(
    "is_parallel",
    [True, pytest.param(False, marks=pytest.mark.wide)],
    ids=["at once", "one after the other"],
)
def test_two_clients_each_hand_off_and_trim(
    two_tuis: tuple[Tui, Tui], plugin: Path, parent: Path, is_parallel: bool
) -> None:
    """If two clients have the same session open, each makes and opens its own handoff and trimmed copy.

    If a client makes the same handoff again, it opens the same child again.
    """
    for tui in two_tuis:
        open_real_session(tui, plugin)
    for tui in two_tuis:
        tui.type(f"/handoff {NEXT_STEP}")
        tui.wait_for(NEXT_STEP)
    for tui in two_tuis:
        tui.key("Enter")
        if not is_parallel:
            tui.wait_for("Handed off from")
    for tui in two_tuis:
        tui.wait_for("Handed off from")
        tui.wait_until_idle()
        assert tui.input_text() == NEXT_STEP
    first = two_tuis[0]
    made = set(children_of_session(first.home, parent))
    assert len(made) == 2
    first.clear_restored_prompt()
    first.submit(f"/resume {parent.stem}")
    first.wait_until_gone("Handed off from")
    first.wait_until_idle()
    first.submit(f"/handoff {NEXT_STEP}")
    first.wait_for("Handed off from")
    first.wait_until_idle()
    assert set(children_of_session(first.home, parent)) == made
    for tui in two_tuis:
        tui.clear_restored_prompt()
    check_clients_continue_in_own_children(two_tuis, parent)
    for tui in two_tuis:
        tui.submit(f"/resume {parent.stem}")
        tui.wait_until_gone("Handed off from")
        tui.wait_until_idle()
        tui.submit("/trim")
        tui.wait_for("1. Open the trimmed copy")
        tui.wait_until_idle(2)
    for tui in two_tuis:
        tui.key("1")
    for tui in two_tuis:
        tui.wait_for("This is the new session")
    assert wait_until(lambda: len(children_of_session(first.home, parent)) == 4)
    check_clients_continue_in_own_children(two_tuis, parent)


@pytest.mark.wide
def test_two_clients_each_get_a_rollover(
    two_tuis: tuple[Tui, Tui], plugin: Path, parent: Path, tmp_path: Path
) -> None:
    """If two clients have the same session open, each opens its own rollover."""
    path = environment_with_client_on_path(two_tuis[0].version, tmp_path / "bin")
    two_tuis[0].api.script = model_that_summarises
    for tui in two_tuis:
        open_real_session(tui, plugin, path)
        tui.submit("/rollover")
    for tui in two_tuis:
        tui.wait_for("Rolled over from")
    two_tuis[0].api.script = ()
    check_clients_continue_in_own_children(two_tuis, parent)


@pytest.mark.wide
def test_two_clients_each_untrim(two_tuis: tuple[Tui, Tui], plugin: Path, parent: Path) -> None:
    """If two clients have the same trimmed session open, each opens its own untrimmed copy."""
    first, second = two_tuis
    open_real_session(first, plugin)
    first.submit("/trim")
    first.wait_for("1. Open the trimmed copy")
    first.wait_until_idle(2)
    first.key("1")
    first.wait_for("This is the new session")
    (trimmed,) = children_of_session(first.home, parent)
    first.wait_until_idle()
    second.start(ASK_FIRST_OPTIONS, plugin_dir=plugin, extra_env=QUIET_ENV, resume=trimmed.stem)
    for tui in two_tuis:
        tui.submit("/untrim")
    for tui in two_tuis:
        tui.wait_for(
            "untrimmed|has it all back|This is the new session.*(.*\n)*.*This is the new session"
        )
        tui.wait_until_idle(2)
    check_clients_continue_in_own_children(two_tuis, trimmed)


@pytest.mark.wide
def test_only_one_of_two_clients_can_use_a_mark(
    two_tuis: tuple[Tui, Tui], plugin: Path, parent: Path
) -> None:
    """After one client has used a mark with ``/back``, the other client's ``/back`` finds no mark.

    The second client stays in its session. It shows a message that repeats the words that the user
    typed.
    """
    first, second = two_tuis
    for tui in two_tuis:
        open_real_session(tui, plugin)
    first.submit("/mark try a faster parser")
    first.wait_for("goal: try a faster parser")
    first.wait_until_idle()
    first.submit("/back it is slower")
    first.wait_for("Back to")
    second.submit("/back it is slower, too")
    second.wait_for("No active mark(.*\n)*.*it is slower, too")
    for tui in two_tuis:
        tui.wait_until_idle()
        tui.submit("going on")
        tui.wait_for("going on(?:.*\n)+?.*Mock reply")
    (child,) = children_of_session(first.home, parent)
    assert all("going on" in path.read_text() for path in (child, parent))


@pytest.mark.wide
def test_two_trims_in_place_do_not_overwrite_each_other(
    two_tuis: tuple[Tui, Tui], plugin: Path, parent: Path
) -> None:
    """If two clients trim the same session in place, the file stays valid and keeps all prompts."""
    before = parent.read_bytes()
    for tui in two_tuis:
        open_real_session(tui, plugin)
    for tui in two_tuis:
        tui.submit("/trim here")
    for tui in two_tuis:
        tui.wait_for("tokens before, about|ompact.* · |other client|open elsewhere")
        tui.wait_until_idle()
    for number, tui in enumerate(two_tuis):
        tui.submit(f"prompt of client {number}")
        tui.wait_for(rf"prompt of client {number}(?:.*\n)+?.*Mock reply")
        tui.wait_until_idle()
    raw = parent.read_bytes()
    assert raw.startswith(before)
    assert all(f"prompt of client {number}".encode() in raw for number in range(2))
    assert not examine_session(session_file(str(parent)), two_tuis[0].home.where).count_findings(
        "error"
    )
