"""The plugin as it is, installed by Codex itself: triggers are answered on the screen, all else goes to the model."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from tests.builders import UUID
from tests.e2e.harness.codex import CodexHome, thread_of
from tests.e2e.harness.codex_tui import SIGN, CodexTui
from tests.e2e.harness.responses import item_text, spoken
from tests.e2e.installed import clone_at, follow, lines_of
from tests.e2e.plugin import ENGINE

TRUSTED = "--dangerously-bypass-hook-trust"


@pytest.fixture
def with_plugin(codex: CodexHome, tmp_path: Path) -> CodexHome:
    """The newest Codex with the plugin, installed from a clone as the guide says."""
    lines = lines_of("docs/guide.md", "codex plugin marketplace add")
    follow(lines, clone_at(tmp_path / "clone"), "codex", (str(codex.binary),), codex.env())
    return codex


def contents(folder: Path) -> dict[str, str]:
    """A digest of every file below a folder, but for what Python keeps of its own."""
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_session_goes_on_by_triggers(with_plugin: CodexHome) -> None:
    """A prompt passes as it is; each trigger is answered, ids are whole; a handoff opens by its line, and knows all."""
    client = with_plugin
    plugins = client.codex / "plugins"
    before = contents(plugins)
    assert any(name.endswith(".codex-plugin/plugin.json") for name in before)
    with CodexTui(client) as tui:
        tui.run(TRUSTED, extra_env=ENGINE)
        tui.enter("find the needle in the parser")
        tui.wait_for("Mock reply")
        prompts = [item_text(item) for item in client.api.inputs[0]]
        assert "find the needle in the parser" in prompts
        assert "session-search" in spoken(client.api.inputs[0])  # the skill is there
        (rollout,) = client.rollouts()
        own = thread_of(rollout)

        tui.enter(">session")
        tui.wait_for(rf"^ +{own}$")
        tui.enter(">resume")
        tui.wait_for(r"To go on: >handoff")
        assert "/resume-hooks:" not in tui.text()
        tui.enter(">search needle")
        tui.wait_for(r"search · needle · 1 found")
        tui.enter(">lineage")
        tui.wait_for(r"lineage, oldest first \(1 session\)")
        tui.enter(">trim")
        tui.wait_for("not worth a new session")
        tui.enter(">handoff write the regression test")
        found = tui.wait_for(rf"^ +/resume ({UUID})\n\n")
        child = found[1]
        assert child != own
        assert not any(">" in item_text(sent[-1])[:1] or "regression" in spoken(sent) for sent in client.api.inputs)

        tui.enter(">handoff write the regression test")
        tui.wait_for("already handed off")
        assert tui.wait_for(rf"already handed off(?:.*\n)+? +/resume ({UUID})\n\n")[1] == child
        tui.enter(">checkpoint try the other way")
        tui.wait_for("checkpoint set")
        tui.enter(">rewind it was slower")
        rewound = tui.wait_for(rf"rewound(?:.*\n)+? +/resume ({UUID})\n\n")[1]
        assert rewound not in {own, child}

        tui.enter(f"/resume {child}")
        tui.wait_for(rf"Thread forked from {own}")
        tui.wait_for(rf"^{SIGN} write the regression test · handoff")
        tui.enter("go on")
        tui.wait_for("Mock reply")
    sent = next(spoken(sent) for sent in client.api.inputs if item_text(sent[-1]) == "go on")
    assert "[SESSION LINEAGE]" in sent
    assert own in sent
    assert "find the needle in the parser" in sent
    assert re.search(r"Next step, as the user put it:\nwrite the regression test", sent)
    assert contents(plugins) == before


def test_a_prompt_of_exec_is_blocked_or_passes(with_plugin: CodexHome) -> None:
    """What begins like a trigger and is none passes, too; the reply holds the two keys that the schema knows."""
    client = with_plugin
    for prompt, passes in ((">session", False), (">resume the work", True), ("hello", True)):
        before = len(client.api.requests)
        done = client.run("exec", "--skip-git-repo-check", TRUSTED, prompt, extra_env=ENGINE)
        assert done.returncode == 0, done.stderr
        assert (len(client.api.requests) > before) is passes, (prompt, done.stderr)
        assert "Failed" not in done.stderr
