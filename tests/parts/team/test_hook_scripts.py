"""Tests of the plugin's scripts for team members.

The scripts push turns, install the database driver, and allow the model only searches.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

import pytest

from resume_hooks.parts.team import team_file
from resume_hooks.parts.team.membership import record_team
from resume_hooks.parts.team.team_file import Team
from tests.builders import CWD, SESSION, ConfigHome, conversation, write_session
from tests.e2e.harness.processes import wait_until
from tests.hook_scripts.plugin_copy import PluginCopy
from tests.hook_scripts.test_install import count_build_attempts, read_install_state, run_installer
from tests.hook_scripts.test_notice import make_stop_event, stop_hook_calls_python, write_transcript
from tests.hook_scripts.test_session import STARTUP_EVENT, wait_for_file, write_ready_venv
from tests.hooks.conftest import RunHook
from tests.test_import_budget import HEAVY_MODULES, add_parent_packages, list_imported_modules


def test_the_stop_hook_calls_the_engine_for_a_joined_team(plugin: PluginCopy) -> None:
    """If the user has joined a team, the Stop hook passes the event to the engine and does not wait.

    The hook does not call the engine if the team's file ``push`` is missing or the client is not
    interactive.
    """
    body = make_stop_event(write_transcript(plugin, conversation(2)))
    mark = Path(plugin.env["CLAUDE_CONFIG_DIR"]) / "resume-hooks" / "team" / "push"
    assert not stop_hook_calls_python(plugin, body)
    mark.parent.mkdir(parents=True)
    mark.touch()
    plugin.delete_engine_calls()
    done = plugin.run_hook("Stop", body)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert wait_until(lambda: plugin.engine_calls.endswith(body + b"\n"))
    assert plugin.engine_calls.startswith(b"team ")
    plugin.delete_engine_calls()
    plugin.run_hook("Stop", body, CLAUDE_CODE_ENTRYPOINT="sdk-cli")
    assert plugin.engine_calls == b""


def test_the_start_hook_calls_the_engine_after_a_failed_push(plugin: PluginCopy) -> None:
    """After a push failed, the next interactive start calls the engine, which reports the failure."""
    write_ready_venv(plugin)
    folder = Path(plugin.env["CLAUDE_CONFIG_DIR"]) / "resume-hooks" / "team"
    folder.mkdir(parents=True)
    (folder / "untold").touch()
    assert (
        plugin.run_hook("SessionStart", STARTUP_EVENT, CLAUDE_CODE_ENTRYPOINT="sdk-cli").stdout
        == b""
    )
    assert plugin.run_hook("SessionStart", STARTUP_EVENT).stdout == b"reply of session\n"


def join_team(plugin: PluginCopy) -> Path:
    """Join a team, and return the path of a file that exists in the venv when the driver is installed."""
    folder = Path(plugin.env["CLAUDE_CONFIG_DIR"]) / "resume-hooks" / "team"
    folder.mkdir(parents=True)
    team = {"version": 1, "service": "work", "login": "alice", "machine": "m", "projects": []}
    (folder / "team.json").write_text(json.dumps(team))
    return plugin.data_folder / "venv" / "requirements-team.lock"


def test_the_venv_of_a_team_member_has_the_driver(quick_plugin: PluginCopy) -> None:
    """The next start after a user joins a team installs the driver into the existing venv.

    A rebuilt venv also has the driver. If the driver can't be installed, the new venv works without
    it.
    """
    run_installer(quick_plugin)
    driver = join_team(quick_plugin)
    before = os.readlink(quick_plugin.data_folder / "venv")
    quick_plugin.run_hook("SessionStart", STARTUP_EVENT)
    assert wait_for_file(driver)
    assert os.readlink(quick_plugin.data_folder / "venv") == before, "the venv was not rebuilt"
    (quick_plugin.root / "requirements.lock").write_text("# newer\n")
    assert run_installer(quick_plugin) == 0
    assert driver.read_bytes() == (quick_plugin.root / "requirements-team.lock").read_bytes()
    assert (quick_plugin.data_folder / "count").read_text() == ".+.+"
    (quick_plugin.root / "requirements.lock").write_text("# newest\n")
    assert run_installer(quick_plugin, NO_DRIVER="no wheel") == 1
    assert (
        read_install_state(quick_plugin)["state"],
        read_install_state(quick_plugin)["error"],
    ) == (
        "failed",
        "the database driver for a team: no wheel",
    )
    assert (quick_plugin.data_folder / "venv" / "requirements.lock").read_text() == "# newest\n"
    assert not driver.exists()
    assert run_installer(quick_plugin) == 0
    assert count_build_attempts(quick_plugin) == 6, "it is tried again after an hour"
    assert quick_plugin.run_engine("--install").stderr == "resume-hooks: the engine is ready\n"
    assert driver.exists()


def test_the_launcher_adds_the_driver_to_the_venv(quick_plugin: PluginCopy) -> None:
    """``hooks/engine --install --team`` adds the driver, and a later ``--install`` keeps it.

    This also works for a venv that was made by uv and therefore has no pip.
    """
    assert quick_plugin.run_engine("--install", "--team").returncode == 0
    assert (quick_plugin.data_folder / "venv" / "requirements-team.lock").exists()
    assert "is ready or being installed already" in quick_plugin.run_engine("--install").stderr


@pytest.mark.parametrize(
    "verb", ["push", "pull", "resume", "share", "forget", "join", "leave", "sessions", ""]
)
def test_the_model_may_only_search_a_team(plugin: PluginCopy, verb: str) -> None:
    """The launcher lets the model run ``team search`` and refuses every other ``team`` command."""
    done = plugin.run_engine("team", verb, CLAUDECODE="1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "'team' is for the user to run" in done.stderr
    assert (
        plugin.run_engine("team", "search", "x", CLAUDECODE="1").stdout == "engine team search x\n"
    )


def test_a_failed_push_is_reported_once(
    config_home: ConfigHome, run_hook: RunHook, any_python: str
) -> None:
    """The next interactive start reports a failed push, and later starts do not repeat the report.

    The report states how many sessions are waiting, since when, and why.
    """
    where = config_home.where

    def get_start_message(source: str, client: str = "cli") -> str:
        event = {"hook_event_name": "SessionStart", "session_id": SESSION, "source": source}
        done = run_hook(
            "session", event, environ={"CLAUDE_CODE_ENTRYPOINT": client}, python=any_python
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return str(json.loads(done.stdout)["systemMessage"]) if done.stdout else ""

    team_file.record_push_failure(("the server is away", "Wait."), 3, where, report_at_once=False)
    assert get_start_message("startup") == ""
    team_file.record_push_failure(("no driver", "Install it."), 4, where, report_at_once=True)
    assert get_start_message("startup", "sdk-cli") == ""
    line = get_start_message("resume")
    assert line.startswith(
        "resume-hooks: 4 sessions have been waiting to be pushed to the team since 20"
    )
    assert "UTC: no driver; what to do: " in line
    team_file.record_push_failure(("no driver", "Install it."), 5, where, report_at_once=True)
    assert get_start_message("startup") == ""
    team_file.record_push(where)
    assert team_file.read_push_failure(where) is None


def test_a_start_and_a_prompt_never_contact_the_server(
    config_home: ConfigHome, run_hook: RunHook, tmp_path: Path
) -> None:
    """The hooks that run at a start and at a prompt do not connect to the team's server."""
    team = Team("silent", "alice", "11111111-2222-4333-8444-555555555555", ("local/proj",))
    record_team(team, config_home.where)
    write_session(config_home.project(), SESSION, conversation(2))
    services = tmp_path / "services.conf"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.setblocking(False)
        port = silent.getsockname()[1]
        services.write_text(f"[silent]\nhost=127.0.0.1\nport={port}\ndbname=d\nuser=alice\n")
        environ = {"PGSERVICEFILE": str(services), "CLAUDE_CODE_ENTRYPOINT": "cli"}
        event = {"session_id": SESSION, "cwd": CWD}
        for source in ("startup", "resume", "clear", "compact"):
            begun = {**event, "hook_event_name": "SessionStart", "source": source}
            assert run_hook("session", begun, environ=environ).returncode == 0
        for prompt in (">lineage", ">sessions", ">handoff go on"):
            typed = {**event, "hook_event_name": "UserPromptSubmit", "prompt": prompt}
            assert run_hook("prompt", typed, environ=environ).returncode == 0
        with pytest.raises(BlockingIOError):
            silent.accept()


def test_the_help_of_team_imports_few_modules(config_home: ConfigHome) -> None:
    """``team --help`` does not import the modules that read, send or import sessions."""
    found = add_parent_packages(list_imported_modules(config_home, "helps", None, "team"))
    engine = {
        f"resume_hooks.{name}"
        for name in (
            "derive",
            "reading.bundle",
            "redaction",
            "search.run_search",
            "archive",
            "cli.child",
        )
    }
    assert found.isdisjoint(HEAVY_MODULES | engine | {"psycopg"})


def test_a_start_without_a_team_imports_one_module(config_home: ConfigHome) -> None:
    """Without a team, the start hook imports only the module that checks for the team's file.

    The hook imports nothing outside the standard library and this package.
    """
    event = {"session_id": SESSION, "hook_event_name": "SessionStart", "source": "startup"}
    found = list_imported_modules(config_home, "session", event)
    foreign = (
        {name.partition(".")[0] for name in found} - set(sys.stdlib_module_names) - {"resume_hooks"}
    )
    assert foreign == set()
    ours = {name for name in found if name.startswith("resume_hooks.parts.team")}
    assert ours == {"resume_hooks.parts.team", "resume_hooks.parts.team.team_file"}
