"""Tests that the client's menu lists each slash command of the plugin.

The plugin answers each of them without a request.
"""

from __future__ import annotations

from pathlib import Path

from tests.e2e.harness.client import ClientHome, ClientVersion, Tui
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.harness.terminal import PROMPT_SIGN
from tests.e2e.plugin import ENGINE_ENV, build_plugin, remove_module
from tests.needs import REPO

QUIET_ENV = ENGINE_ENV | {"RESUME_HOOKS_CLIPBOARD": "none"}

SKILL_COMMAND = "recover-context"
"""A command that has the same name as a skill. The client's menu shows the skill instead."""

ANSWERS_BY_COMMAND = {
    "session": "ot copied: the id is above",
    "lineage": "this session",
    "search ALPHA": "resume-hooks",
    "resume": "Nothing needed",
    "resume --table": "estimated",
    "trim": "trim",
    "mark try another way": "mark set",
    "back it did not work": "/resume ",
    "recall": "remember the word ALPHA",
    SKILL_COMMAND: "remember the word ALPHA",
    "handoff go on": "handed off",
    "help": "In a shell: resume-hooks --help",
}
"""Pairs of the text typed after ``/resume-hooks:`` and a part of its answer, in the order of
typing."""


def test_every_command_is_offered_and_answered(
    client: ClientVersion, home: ClientHome, api: MockApi, tmp_path: Path
) -> None:
    """The client's menu finds each command by the first letters of its name.

    Each typed command shows its answer and sends no request.
    """
    named = {path.stem for path in (REPO / "commands").glob("*.md")} | {SKILL_COMMAND}
    assert named == {words.split()[0] for words in ANSWERS_BY_COMMAND} | {"rollover"}
    with Tui(client, home, api) as tui:
        tui.start(plugin_dir=remove_module(build_plugin(tmp_path / "plugin")), extra_env=QUIET_ENV)
        tui.submit("remember the word ALPHA")
        tui.wait_for("Mock reply 1")
        tui.wait_until_idle()
        api.clear_requests()
        for name in sorted(named):
            # The client has its own /resume.
            tui.type("/resume-hooks:res" if name == "resume" else f"/{name[:6]}")
            tui.wait_for(SKILL_COMMAND if name == SKILL_COMMAND else f"/resume-hooks:{name}")
            assert "session-search" not in tui.text(), (
                "Enter would take the model's skill, and cost a turn"
            )
            tui.key("C-u")
            tui.wait_until_gone(f"^{PROMPT_SIGN} /")
        for words, card in ANSWERS_BY_COMMAND.items():
            tui.submit(f"/resume-hooks:{words}")
            tui.wait_for(card)
            tui.wait_until_idle()
            assert not tui.input_text(), words
        assert not api.main_requests()
