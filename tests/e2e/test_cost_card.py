"""Tests of the notice about a full context, in the real client."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import SESSION, conversation, session_bytes
from tests.e2e.harness.client import RECENT_VERSIONS, ClientHome, ClientVersion, Tui, run_print
from tests.e2e.harness.mock_api import MockApi, Usage
from tests.e2e.plugin import ENGINE_ENV, remove_module

USAGE_BELOW_LIMIT = Usage(input_tokens=10, cache_read_input_tokens=130_000)
USAGE_ABOVE_LIMIT = Usage(input_tokens=10, cache_read_input_tokens=161_990)
"""A usage of 90 percent of the context that the client can use.

Above 167,000 tokens, older clients compact the conversation themselves.
"""

OPTIONS_FOR_200K_MODEL = ("--model", "claude-haiku-4-5")
"""Options for a model with a context window of 200,000 tokens."""

FULL_CONTEXT_NOTICE = "90 % of the context is used; a handoff fits best: /resume-hooks:handoff"


def count_notices_after_prompts(tui: Tui, *prompt_numbers: int) -> int:
    """Send one prompt for each number, and return how many notices are on the screen afterwards."""
    for number in prompt_numbers:
        tui.submit(f"prompt number {number}")
        tui.wait_for(rf"Mock reply {number}\.")
        tui.wait_until_idle()
    return tui.text().count(FULL_CONTEXT_NOTICE)


def test_the_notice_of_a_full_context_appears_once(
    every_client: ClientVersion, home: ClientHome, api: MockApi, plugin: Path
) -> None:
    """The notice appears once, after the first turn whose recorded usage is above the limit.

    The notice is not sent to the model. If a new client resumes the session, the notice does not
    appear again.
    """
    remove_module(plugin)  # Without its module, the plugin shows this notice instead of a band.
    records = conversation(1, session_id=SESSION)
    records[-1]["message"]["usage"] = USAGE_BELOW_LIMIT.as_dict()
    home.install_session(session_bytes(records), SESSION, set_cwd=True)
    api.usage = USAGE_ABOVE_LIMIT
    with Tui(every_client, home, api) as tui:
        tui.start(plugin_dir=plugin, extra_env=ENGINE_ENV, resume=SESSION)
        # When the hook starts, the client has often not yet written this answer to the file.
        count_notices_after_prompts(tui, 1)
        assert tui.text().count("Stop says") == tui.text().count(FULL_CONTEXT_NOTICE)
        assert count_notices_after_prompts(tui, 2) == 1
        assert count_notices_after_prompts(tui, 3) == 1
    if every_client.version in RECENT_VERSIONS:
        with Tui(every_client, home, api) as tui:
            tui.start(plugin_dir=plugin, extra_env=ENGINE_ENV, resume=SESSION)
            assert count_notices_after_prompts(tui, 4) == 1
    assert FULL_CONTEXT_NOTICE not in json.dumps(api.requests)


@pytest.mark.wide
def test_print_mode_shows_no_notice(
    client: ClientVersion, home: ClientHome, api: MockApi, plugin: Path
) -> None:
    """``claude -p`` shows no notice, because no user would see it.

    The hook does not record the notice as shown, so a later session on the screen can still show
    it.
    """
    api.usage = USAGE_ABOVE_LIMIT
    first = run_print(client, home, api, "hello", plugin_dir=plugin, extra_env=ENGINE_ENV)
    again = run_print(
        client, home, api, "go on", resume=first.session_id, plugin_dir=plugin, extra_env=ENGINE_ENV
    )
    assert FULL_CONTEXT_NOTICE not in json.dumps(first.events + again.events)
    notes = (home.config / "resume-hooks").glob("pending/notice-*")
    assert not any("told" in note.read_text() for note in notes)
