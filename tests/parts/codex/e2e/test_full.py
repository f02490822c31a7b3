"""Tests of triggers in a session that is nearly full, and of the notice that it is nearly full."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.plugin import ENGINE_ENV
from tests.parts.codex.e2e.client import COMPACTION_REQUEST_START, CodexHome
from tests.parts.codex.e2e.responses import join_input_texts
from tests.parts.codex.e2e.test_plugin import TRUST_HOOKS_OPTION, install_plugin
from tests.parts.codex.e2e.tui import CodexTui

NEARLY_FULL_TOKEN_COUNTS = (
    246_000,
    pytest.param(250_000, marks=pytest.mark.wide),
    pytest.param(258_000, marks=pytest.mark.wide),
)


@pytest.mark.parametrize("tokens", NEARLY_FULL_TOKEN_COUNTS)
def test_a_trigger_cancels_the_compaction_of_a_full_session(
    codex: CodexHome, tmp_path: Path, tokens: int
) -> None:
    """A trigger in a nearly full session is answered without a compaction or a request to the model.

    Codex compacts the session at the next real prompt. The user is told once that the session is
    nearly full.
    """
    client = install_plugin(codex, tmp_path)
    client.api.tokens = tokens
    with CodexTui(client) as tui:
        tui.run(TRUST_HOOKS_OPTION, extra_env=ENGINE_ENV)
        tui.enter("find the needle")
        tui.wait_for("Mock reply 1")
        tui.wait_for(r"resume-hooks: \d+ % of the context is used; [\w ]+ fits best: >handoff", 20)
        tui.wait_until_idle(3)
        # The answer and the request for the session's name on the screen were sent before the trigger.
        before = len(client.api.requests)
        tui.enter(">session")
        tui.wait_for("resume-hooks · session id")
        tui.wait_until_idle(3)
        assert len(client.api.requests) == before

        client.api.tokens = 1000
        tui.enter("go on")
        tui.wait_for(rf"Mock reply {before + 2}")
    after = [
        COMPACTION_REQUEST_START in join_input_texts(sent) for sent in client.api.inputs[before:]
    ]
    assert after == [True, False]
