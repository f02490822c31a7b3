"""Tests of the plugin as a package.

The plugin is valid, can be installed, costs few tokens, and works without hooks.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from resume_hooks import settings
from resume_hooks.paths import Where
from tests.e2e.harness.client import RECENT_VERSIONS, ClientHome, ClientVersion, Tui, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.installed import clone_repository, code_block_of_page, run_shell_lines_in_clone
from tests.e2e.plugin import ENGINE_ENV, children_of_session
from tests.needs import REPO

PARENT_ID = "11111111-aaaa-4bbb-8ccc-000000000002"
MAX_ALWAYS_LOADED_TOKENS = 480


def run_client_command(
    client: ClientVersion, home: ClientHome, api: MockApi, *arguments: str
) -> str:
    """Run a command of the client and return its output.

    Raises AssertionError if the command fails.
    """
    done = subprocess.run(
        [*client.command, *arguments],
        cwd=home.cwd,
        env=home.env(api.client_env()),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def install_plugin_from_clone(client: ClientVersion, home: ClientHome, api: MockApi) -> None:
    """Install the plugin from a clone with the commands in the README, or in the page for older clients."""
    lines = code_block_of_page(
        "README.md" if client.version in RECENT_VERSIONS else "docs/older-clients.md",
        "claude plugin",
    )
    run_shell_lines_in_clone(
        lines,
        clone_repository(home.root / "clone"),
        "claude",
        client.command,
        home.env(api.client_env()),
    )


def test_each_agent_finds_its_manifest() -> None:
    """The manifests for Claude Code and Codex are equal, and the one in the top folder is not a link.

    Codex prefers the manifest in the top folder but ignores it if it is a link.
    """
    top, theirs = (REPO / path / "plugin.json" for path in ("", ".codex-plugin"))
    assert not top.is_symlink()
    assert top.read_bytes() == theirs.read_bytes()


def test_the_commands_of_the_readme_install_the_plugin(
    every_client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """The README's commands install the plugin, which then answers ``>handoff`` in each client."""
    install_plugin_from_clone(every_client, home, api)
    run_print(
        every_client,
        home,
        api,
        "hello",
        extra_args=["--session-id", PARENT_ID],
        extra_env=ENGINE_ENV,
    )
    api.clear_requests()
    run_print(
        every_client, home, api, ">handoff fix the tests", resume=PARENT_ID, extra_env=ENGINE_ENV
    )
    assert not api.main_requests()
    assert len(children_of_session(home, home.project_folder / f"{PARENT_ID}.jsonl")) == 1


def test_options_can_be_set_at_installation(
    client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """Options that the user passes with ``--config`` at the installation become the plugin's settings."""
    given = {"vault": "3G", "handoff_sends": "true", "notice_percent": "65", "compaction": "trim"}
    chosen = [f"--config {name}={value}" for name, value in given.items()]
    line = " ".join([code_block_of_page("README.md", "claude plugin install").strip(), *chosen])
    run_shell_lines_in_clone(
        line,
        clone_repository(home.root / "clone"),
        "claude",
        client.command,
        home.env(api.client_env()),
    )
    run_print(client, home, api, ">resume", extra_env=ENGINE_ENV)
    assert not api.main_requests()
    found = settings.load_settings(Where({**home.env(), "RESUME_HOOKS_VAULT": "1G"}))
    assert {name: found[name] for name in given} == {
        "vault": ("3G", "plugin"),
        "handoff_sends": ("on", "plugin"),
        "notice_percent": (65, "plugin"),
        "compaction": ("trim", "plugin"),
    }
    assert settings.describe_invalid_settings(home.where) == []


def test_the_installed_plugin_answers_and_costs_little(tui: Tui, tmp_path: Path) -> None:
    """The installed plugin works on the screen and costs few tokens.

    The test follows the steps in the README's first minute. If the plugin is removed while a client
    is running, ``>handoff`` reports this and writes no file.
    """
    home = tui.home
    install_plugin_from_clone(tui.version, home, tui.api)
    out = run_client_command(tui.version, home, tui.api, "plugin", "details", "resume-hooks")
    found = re.search(r"Always-on:\s+~(\d+) tok", out)
    assert found is not None, out
    assert int(found.group(1)) <= MAX_ALWAYS_LOADED_TOKENS
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    tui.start(extra_env={"RESUME_HOOKS_PYTHON": str(python)})
    tui.submit("hello")
    tui.wait_for("Mock reply 1")
    tui.submit("/resume-hooks:resume")
    tui.wait_for("Table: /resume-hooks:resume --table")
    tui.wait_until_idle()
    tui.submit("/handoff write the regression test")
    tui.wait_for("Handed off from")
    tui.wait_until_idle()
    assert tui.input_text() == "write the regression test"
    tui.key("C-u")
    run_client_command(
        tui.version, home, tui.api, "plugin", "marketplace", "remove", "resume-hooks"
    )
    python.unlink()
    data = home.config / "plugins" / "data"
    shutil.rmtree(data)
    tui.submit(">handoff now")
    tui.wait_for(">handoff is gone: the plugin was removed")
    tui.wait_until_idle()
    assert len(tui.api.main_requests()) == 1
    assert [path for path in data.rglob("*") if path.is_file()] == []


def test_a_slash_command_calls_the_engine_without_hooks(
    client: ClientVersion, home: ClientHome, api: MockApi, plugin: Path
) -> None:
    """If hooks are turned off, ``/resume-hooks:handoff`` asks the model to run the engine.

    The model's Bash call needs no permission and makes the child.
    """
    run_print(client, home, api, "hello", extra_args=["--session-id", PARENT_ID])
    home.write_settings({"disableAllHooks": True})
    step = 'it\'s a "test" $(id) `id`'
    command = f"\"{plugin}/hooks/engine\" --slash handoff {PARENT_ID} <<'RESUME_HOOKS_TEXT'\n{step}\nRESUME_HOOKS_TEXT"
    api.clear_requests()
    api.script = [
        {"name": "Bash", "input": {"command": command, "description": "hand off"}},
        "done",
    ]
    run_print(
        client,
        home,
        api,
        f"/resume-hooks:handoff {step}",
        resume=PARENT_ID,
        plugin_dir=plugin,
        extra_env=ENGINE_ENV,
    )
    asked = json.dumps(api.main_requests()[0]["messages"])
    assert "--slash handoff" in asked
    (child,) = children_of_session(home, home.project_folder / f"{PARENT_ID}.jsonl")
    opening = json.loads(child.read_bytes().split(b"\n")[2])["message"]["content"]
    assert opening.endswith(step)


def test_resume_hooks_install_registers_the_plugin(
    client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """``resume-hooks install`` enables the plugin in the settings of the client on PATH.

    ``install --remove --purge`` removes the plugin and its data.
    """
    tools = home.root / "bin"
    tools.mkdir()
    (tools / "claude").symlink_to(client.command[0])
    env = home.env(api.client_env())
    env["PATH"] = f"{tools}:{env['PATH']}"

    def run_plugin_verb(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "resume_hooks", *arguments]
        return subprocess.run(
            command,
            cwd=home.cwd,
            env=env | {"PYTHONPATH": str(REPO / "src")},
            capture_output=True,
            text=True,
            check=False,
        )

    done = run_plugin_verb("install")
    assert done.returncode == 0, done.stderr
    settings = json.loads((home.config / "settings.json").read_text())
    assert settings["enabledPlugins"]["resume-hooks@resume-hooks"] is True
    findings = {
        f["name"]: f
        for f in json.loads(run_plugin_verb("doctor", "--json").stdout)["data"]["findings"]
    }
    assert findings["plugin"]["level"] == "ok"
    assert findings["client"]["detail"].endswith(client.version)
    gone = run_plugin_verb("install", "--remove", "--purge", "--yes", "--json")
    assert gone.returncode == 0, gone.stderr
    ours = {str(path) for path in (home.config / "plugins").glob("*/resume-hooks*")}
    assert {
        path for path in json.loads(gone.stdout)["data"]["stays"] if path.startswith(str(home.root))
    } == ours
    assert (
        "resume-hooks@resume-hooks"
        not in json.loads((home.config / "settings.json").read_text())["enabledPlugins"]
    )
    assert not (home.config / "resume-hooks").exists()
    assert "resume-hooks" not in run_client_command(
        client, home, api, "plugin", "marketplace", "list"
    )


def test_the_id_is_copied_while_the_engine_installs_itself(tui: Tui, plugin: Path) -> None:
    """If the engine is not installed yet, ``/resume-hooks:session`` still shows the session's id.

    ``/resume-hooks:handoff`` says that it needs the engine.
    """
    tui.start(
        plugin_dir=plugin,
        extra_env={"RESUME_HOOKS_CLIPBOARD": "none", "PIP_INDEX_URL": "http://127.0.0.1:9/"},
    )
    tui.submit("hello")
    tui.wait_for("Mock reply 1")
    tui.submit("/resume-hooks:session")
    (session,) = tui.home.sessions()
    tui.wait_for(session.stem)
    tui.submit("/resume-hooks:handoff fix the tests")
    tui.wait_for("needs the engine")
