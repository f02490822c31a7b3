"""Tests of ``>trim`` as a user sees it: a preview, ``yes``, and a pasted command.

The client that made the trimmed child continues in it, with the smaller context.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from resume_hooks.transcripts import records
from resume_hooks.transcripts.transcript import scan_transcript
from tests.e2e.harness.client import ClientHome, ClientVersion, Tui, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.harness.xvfb import XServer
from tests.e2e.plugin import (
    ENGINE_ENV,
    PARENT_ID,
    children_of_session,
    remove_module,
    text_of_request,
)
from tests.needs import one_in


def outputs_by_call(session: Path) -> dict[str, str]:
    """Return the plain-text tool outputs of the live chain. The keys are the ids of the calls."""
    transcript = scan_transcript(str(session))
    blocks = [
        block
        for node in transcript.chain
        for block in records.list_blocks(transcript.read_record(node))
    ]
    results = [block for block in blocks if block.get("type") == "tool_result"]
    return {
        block["tool_use_id"]: block["content"]
        for block in results
        if isinstance(block["content"], str)
    }


def assert_outputs_are_replaced(request_text: str, parent: Path, child: Path) -> None:
    """Check that the request contains every placeholder, every kept output, and no replaced output."""
    before, after = outputs_by_call(parent), outputs_by_call(child)
    gone = {call: text for call, text in before.items() if after[call] != text}
    # A trim keeps the last copy of a repeated output.
    once = [text for text in gone.values() if text not in after.values()]
    assert len(once) > 5
    assert [after[call] for call in gone if after[call] not in request_text] == []
    assert [text[:80] for text in once if text in request_text] == []
    assert [
        text[:80]
        for call, text in before.items()
        if call not in gone and text.strip() not in request_text
    ] == []


def test_print_mode_previews_and_makes_the_child(
    client: ClientVersion, home: ClientHome, api: MockApi, plugin: Path, parent: Path
) -> None:
    """``claude -p '>trim'`` shows the numbers of the trim and writes no session.

    ``claude -p '>trim yes'`` makes a child, which can then be resumed.
    """
    raw = parent.read_bytes()
    shown = run_print(
        client, home, api, ">trim", resume=PARENT_ID, plugin_dir=plugin, extra_env=ENGINE_ENV
    )
    for words in ("a resume sends", "saves about", "largest", "create the copy    >trim yes"):
        assert words in shown.text
    assert home.sessions() == [parent]
    made = run_print(
        client, home, api, ">trim yes", resume=PARENT_ID, plugin_dir=plugin, extra_env=ENGINE_ENV
    )
    (child,) = children_of_session(home, parent)
    assert f"/resume {child.stem}" in made.text
    assert not api.main_requests()
    assert parent.read_bytes().startswith(raw), "the client appends; nothing else may change"
    done = run_print(
        client, home, api, "go on", resume=child.stem, plugin_dir=plugin, extra_env=ENGINE_ENV
    )
    assert done.returncode == 0, done.stderr
    assert done.session_id == child.stem
    assert_outputs_are_replaced(text_of_request(api.main_requests()[-1]), parent, child)


@pytest.mark.parametrize("command_prefix", one_in(2, [">", "/resume-hooks:"]))
def test_the_command_pasted_after_yes_opens_the_trimmed_child(
    tui: Tui, plugin: Path, parent: Path, xserver: XServer, command_prefix: str
) -> None:
    """After ``>trim`` and ``yes``, the copied command, pasted into the client, opens the trimmed child.

    The client restores the blocked prompt ``>trim`` to its input box, so ``yes`` can be added
    there. Enter on the restored prompt makes no second child.
    """
    tui.start(
        resume=PARENT_ID,
        plugin_dir=remove_module(plugin),
        extra_env=ENGINE_ENV | {"DISPLAY": xserver.display},
    )
    tui.submit(f"{command_prefix}trim")
    tui.wait_for(f"^ *To create it: {command_prefix}trim yes")
    tui.wait_until_idle()
    assert children_of_session(tui.home, parent) == []
    assert bool(tui.input_text()) == (command_prefix == ">")
    tui.submit(f"{command_prefix}trim yes")
    tui.wait_for("tokens replaced by placeholders")
    tui.wait_until_idle()
    (child,) = children_of_session(tui.home, parent)
    command = xserver.read_clipboard()
    assert command == f"/resume {child.stem}"
    assert not tui.api.main_requests()
    if command_prefix == ">":
        tui.key("Enter")
        tui.wait_for("already trimmed")
        assert children_of_session(tui.home, parent) == [child]
        assert xserver.read_clipboard() == command
        tui.clear_restored_prompt()
    size = child.stat().st_size
    tui.submit_paste(command)
    tui.wait_until_gone("tokens replaced by placeholders")
    tui.wait_until_idle()
    tui.submit("now go on BETA")
    tui.wait_for("Mock reply 1")
    said = text_of_request(tui.api.main_requests()[-1])
    assert "now go on BETA" in said
    assert_outputs_are_replaced(said, parent, child)
    assert child.stat().st_size > size, "the client writes on in the child"
