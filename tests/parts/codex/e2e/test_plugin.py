"""Tests of the plugin in Codex: the plugin answers triggers, and other prompts go to the model."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders import SESSION_ID_PATTERN
from tests.e2e.installed import clone_repository, code_block_of_page, run_shell_lines_in_clone
from tests.e2e.plugin import ENGINE_ENV
from tests.needs import REPO
from tests.parts.codex.e2e.client import NEWEST, CodexHome, thread_id_of_path
from tests.parts.codex.e2e.responses import Item, MockResponses, item_text, join_input_texts
from tests.parts.codex.e2e.tui import PROMPT_SIGN, CodexTui

TRUST_HOOKS_OPTION = "--dangerously-bypass-hook-trust"


@pytest.fixture
def with_plugin(codex: CodexHome, tmp_path: Path) -> CodexHome:
    """Return the newest Codex with the plugin, installed from a clone as docs/codex.md describes."""
    return install_plugin(codex, tmp_path)


def install_plugin(client: CodexHome, folder: Path) -> CodexHome:
    """Install the plugin from a clone in ``folder``, as docs/codex.md describes, and return the client."""
    lines = code_block_of_page("docs/codex.md", "codex plugin marketplace add")
    run_shell_lines_in_clone(
        lines, clone_repository(folder / "clone"), "codex", (str(client.binary),), client.env()
    )
    return client


def update_plugin(client: CodexHome, clone: Path) -> None:
    """Put a new version into the clone, and update the client's plugin as docs/codex.md describes."""
    for name in ("plugin.json", ".claude-plugin/plugin.json", ".codex-plugin/plugin.json"):
        manifest = clone / name
        manifest.write_text(
            re.sub(r'"version": "[\d.]+"', '"version": "9.9.9"', manifest.read_text())
        )
    assert client.run("plugin", "add", "resume-hooks@resume-hooks").returncode == 0
    (version,) = (client.codex / "plugins" / "cache" / "resume-hooks" / "resume-hooks").iterdir()
    assert version.name == "9.9.9"


def hashes_of_files(folder: Path) -> dict[str, str]:
    """Return a hash of every file below a folder, except Python's cache files."""
    files = (
        path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def test_triggers_make_children_that_codex_continues(with_plugin: CodexHome) -> None:
    """Triggers are answered on the screen, and Codex continues the children that they make.

    An ordinary prompt is sent to the model unchanged.
    """
    client = with_plugin
    plugins = client.codex / "plugins"
    before = hashes_of_files(plugins)
    assert any(name.endswith(".codex-plugin/plugin.json") for name in before)
    with CodexTui(client) as tui:
        tui.run(TRUST_HOOKS_OPTION, extra_env=ENGINE_ENV)
        tui.enter("find the needle in the parser")
        tui.wait_for("Mock reply")
        prompts = [item_text(item) for item in client.api.inputs[0]]
        assert "find the needle in the parser" in prompts
        # The skill is in the request.
        assert "session-search" in join_input_texts(client.api.inputs[0])
        (rollout,) = client.rollouts()
        own = thread_id_of_path(rollout)

        tui.enter(">session")
        tui.wait_for(rf"^ +{own}$")
        tui.enter(">resume")
        tui.wait_for(r"Table: >resume --table")
        assert "/resume-hooks:" not in tui.text()
        tui.enter(">search needle")
        tui.wait_for(r"search · needle · 1 turn")
        tui.enter(">lineage")
        tui.wait_for(r"lineage, oldest first \(1 session\)")
        tui.enter(">trim")
        tui.wait_for("There is nothing to trim yet")
        tui.enter(">handoff write the regression test")
        found = tui.wait_for(rf"^ +/resume ({SESSION_ID_PATTERN})\n\n")
        child = found[1]
        assert child != own
        assert not any(
            ">" in item_text(sent[-1])[:1] or "regression" in join_input_texts(sent)
            for sent in client.api.inputs
        )

        tui.enter(">handoff write the regression test")
        tui.wait_for("already handed off")
        assert (
            tui.wait_for(rf"already handed off(?:.*\n)+? +/resume ({SESSION_ID_PATTERN})\n\n")[1]
            == child
        )
        tui.enter(">mark try the other way")
        tui.wait_for("mark set")
        tui.enter(">back it was slower")
        back = tui.wait_for(rf"back · (?:.*\n)+? +/resume ({SESSION_ID_PATTERN})\n\n")[1]
        assert back not in {own, child}

        tui.enter(f"/resume {child}")
        # Codex 0.171 shows the session's name.
        tui.wait_for(rf"Thread forked from (?:{own}|find the needle in the parser \({own}\))\n")
        tui.wait_for(rf"^{PROMPT_SIGN} write the regression test · handoff")
        tui.enter("go on")
        tui.wait_for("Mock reply")
    sent = next(
        join_input_texts(sent) for sent in client.api.inputs if item_text(sent[-1]) == "go on"
    )
    assert "[SESSION LINEAGE]" in sent
    assert own in sent
    assert "find the needle in the parser" in sent
    assert re.search(r"Next step, as the user put it:\nwrite the regression test", sent)
    assert hashes_of_files(plugins) == before


def test_exec_blocks_only_triggers(with_plugin: CodexHome) -> None:
    """``codex exec`` sends no trigger to the model. A prompt that only resembles one is sent."""
    client = with_plugin
    for prompt, passes in ((">session", False), (">resume the work", True), ("hello", True)):
        before = len(client.api.requests)
        done = client.run(
            "exec", "--skip-git-repo-check", TRUST_HOOKS_OPTION, prompt, extra_env=ENGINE_ENV
        )
        assert done.returncode == 0, done.stderr
        assert (len(client.api.requests) > before) is passes, (prompt, done.stderr)
        assert "Failed" not in done.stderr


@pytest.fixture
def sandboxed_codex(responses: MockResponses) -> Iterator[CodexHome]:
    """Yield a home in /tmp, which is visible in Codex's sandbox. The sandbox has its own ``/dev``."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        client = CodexHome(Path(folder) / "codex-home", responses, NEWEST)
        yield client
        client.end_processes()


def install_engine(client: CodexHome) -> CodexHome:
    """Install an engine in Codex's hooks folder, which is not on the model's PATH."""
    venv = client.codex / "plugins" / "data" / "resume-hooks-resume-hooks" / "venv"
    (venv / "bin").mkdir(parents=True)
    (venv.parent / "install.json").write_text("{}")
    (venv / "requirements.lock").write_bytes((REPO / "requirements.lock").read_bytes())
    (venv / "bin" / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (venv / "bin" / "python").chmod(0o755)
    return client


@pytest.mark.parametrize(
    ("home_fixture", "sandbox_mode"),
    [
        ("sandboxed_codex", "read-only"),
        pytest.param("codex", "danger-full-access", marks=pytest.mark.wide),
    ],
)
def test_the_model_can_run_every_command_it_reads(
    home_fixture: str, sandbox_mode: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Without PATH, the model's shell can run every command that a digest, a rewind or the skill shows.

    This also holds in a read-only sandbox, and after an update that removed the plugin's old
    version.
    """
    client = install_engine(install_plugin(request.getfixturevalue(home_fixture), tmp_path))
    api, options = (
        client.api,
        ("--skip-git-repo-check", "-c", f'sandbox_mode="{sandbox_mode}"', TRUST_HOOKS_OPTION),
    )

    def ask(prompt: str, *resumed: str) -> list[list[Item]]:
        before = len(api.inputs)
        done = client.run("exec", *options, *resumed, prompt, extra_env={"PATH": "/usr/bin:/bin"})
        assert done.returncode == 0, done.stderr
        return api.inputs[before:]

    def model_shell_output(command: str) -> str:
        arguments = json.dumps({"cmd": command})
        call = {
            "type": "function_call",
            "id": "f",
            "call_id": "c",
            "name": "exec_command",
            "arguments": arguments,
        }
        api.script = lambda request: (
            None if request["input"][-1]["type"] == "function_call_output" else [call]
        )
        sent = ask("go on", "resume", own)
        api.script = None
        return item_text(sent[-1][-1])

    told = join_input_texts(ask("find the needle in the parser")[0])
    own = thread_id_of_path(client.rollouts()[-1])
    engine = Path(
        re.findall(r"= `(\S+/skills)`$", told, re.MULTILINE)[-1],
        "session-search",
        "../../hooks/engine",
    )
    assert f"find the needle in the parser · {own}" in model_shell_output(
        f"sh {engine} search needle"
    )
    assert own in model_shell_output(f"sh {engine} lineage $CODEX_THREAD_ID")
    for prompt in (">handoff write the test", ">mark the other way", ">back it was slower"):
        assert not ask(prompt, "resume", own)
    update_plugin(client, tmp_path / "clone")
    ways = []
    # These are the children of ``>handoff`` and ``>back``. Their order is not fixed if their times are equal.
    for child in client.rollouts()[-2:]:
        told = join_input_texts(ask("go on", "resume", thread_id_of_path(child))[0])
        commands = re.findall(r"sh \S+/hooks/engine (?:read|outline) [^;`)\n]+", told)
        ways.append(len(commands))
        assert "resume-hooks read `" not in told
        for command in (re.sub(r":N$", ":1", line) for line in commands):
            assert re.search(
                r"^resume-hooks (read|outline): ", model_shell_output(command), re.MULTILINE
            ), model_shell_output(command)
    assert min(ways) >= 2
