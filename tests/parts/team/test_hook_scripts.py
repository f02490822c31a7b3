"""What the plugin's scripts do for a team: turns that are sent, a driver in the venv, a model that may only search."""

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
from tests.hook_scripts.test_install import attempts, install, state
from tests.hook_scripts.test_notice import event, lay, reaches_python
from tests.hook_scripts.test_session import STARTUP, make_ready, wait_for
from tests.hooks.conftest import Run
from tests.test_import_budget import HEAVY, loaded_modules, roots


def test_a_team_that_is_sent_turns(plugin: PluginCopy) -> None:
    """Where the mark of a joined team lies the engine is called with the event, and the hook doesn't wait for it."""
    body = event(lay(plugin, conversation(2)))
    mark = Path(plugin.env["CLAUDE_CONFIG_DIR"]) / "resume-hooks" / "team" / "push"
    assert not reaches_python(plugin, body)
    mark.parent.mkdir(parents=True)
    mark.touch()
    plugin.forget()
    done = plugin.hook("Stop", body)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert wait_until(lambda: plugin.reached.endswith(body + b"\n"))
    assert plugin.reached.startswith(b"team ")
    plugin.forget()
    plugin.hook("Stop", body, CLAUDE_CODE_ENTRYPOINT="sdk-cli")
    assert plugin.reached == b""


def test_a_team_that_is_sent_nothing_is_reported_by_the_engine(plugin: PluginCopy) -> None:
    """The next start says so, where somebody can read it."""
    make_ready(plugin)
    folder = Path(plugin.env["CLAUDE_CONFIG_DIR"]) / "resume-hooks" / "team"
    folder.mkdir(parents=True)
    (folder / "untold").touch()
    assert plugin.hook("SessionStart", STARTUP, CLAUDE_CODE_ENTRYPOINT="sdk-cli").stdout == b""
    assert plugin.hook("SessionStart", STARTUP).stdout == b"reply of session\n"


def join(plugin: PluginCopy) -> Path:
    """A team was joined; the file of the venv that says that its driver is there."""
    folder = Path(plugin.env["CLAUDE_CONFIG_DIR"]) / "resume-hooks" / "team"
    folder.mkdir(parents=True)
    team = {"version": 1, "service": "work", "login": "alice", "machine": "m", "projects": []}
    (folder / "team.json").write_text(json.dumps(team))
    return plugin.data / "venv" / "requirements-team.lock"


def test_a_team_s_driver_is_there_whenever_the_venv_is(quick: PluginCopy) -> None:
    """Added once a team was joined, built in at an update.

    Where it can't be had, the engine is there without it.
    """
    install(quick)
    driver = join(quick)
    before = os.readlink(quick.data / "venv")
    quick.hook("SessionStart", STARTUP)
    assert wait_for(driver)
    assert os.readlink(quick.data / "venv") == before, "nothing is built anew for it"
    (quick.root / "requirements.lock").write_text("# newer\n")
    assert install(quick) == 0
    assert driver.read_bytes() == (quick.root / "requirements-team.lock").read_bytes()
    assert (quick.data / "count").read_text() == ".+.+"
    (quick.root / "requirements.lock").write_text("# newest\n")
    assert install(quick, NO_DRIVER="no wheel") == 1
    assert (state(quick)["state"], state(quick)["error"]) == (
        "failed",
        "the team's driver: no wheel",
    )
    assert (quick.data / "venv" / "requirements.lock").read_text() == "# newest\n"
    assert not driver.exists()
    assert install(quick) == 0
    assert attempts(quick) == 6, "it is tried again after an hour"
    assert quick.engine("--install").stderr == "resume-hooks: the engine is ready\n"
    assert driver.exists()


def test_who_is_about_to_join_asks_for_the_driver(quick: PluginCopy) -> None:
    """There is no pip in a venv that uv made; the launcher adds it, and it stays."""
    assert quick.engine("--install", "--team").returncode == 0
    assert (quick.data / "venv" / "requirements-team.lock").exists()
    assert "nothing to do" in quick.engine("--install").stderr


@pytest.mark.parametrize(
    "verb", ["push", "pull", "resume", "share", "forget", "join", "leave", "sessions", ""]
)
def test_the_model_does_not_write_to_a_team(plugin: PluginCopy, verb: str) -> None:
    """Nor does it fetch; a search comes as far as the engine, which asks whether the user allows it."""
    done = plugin.engine("team", verb, CLAUDECODE="1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "'team' is for the user to run" in done.stderr
    assert plugin.engine("team", "search", "x", CLAUDECODE="1").stdout == "engine team search x\n"


def test_a_team_that_is_sent_nothing_is_reported_once(
    config_home: ConfigHome, run_hook: Run, any_python: str
) -> None:
    """At the next start of somebody who can read it: how much waits, since when, why."""
    where = config_home.where

    def say(source: str, client: str = "cli") -> str:
        event = {"hook_event_name": "SessionStart", "session_id": SESSION, "source": source}
        done = run_hook(
            "session", event, environ={"CLAUDE_CODE_ENTRYPOINT": client}, python=any_python
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return str(json.loads(done.stdout)["systemMessage"]) if done.stdout else ""

    team_file.record_failure(("the server is away", "Wait."), 3, where, report_at_once=False)
    assert say("startup") == ""
    team_file.record_failure(("no driver", "Install it."), 4, where, report_at_once=True)
    assert say("startup", "sdk-cli") == ""
    line = say("resume")
    assert line.startswith("resume-hooks: 4 sessions wait to be pushed to the team since 20")
    assert "UTC: no driver; what to do: " in line
    team_file.record_failure(("no driver", "Install it."), 5, where, report_at_once=True)
    assert say("startup") == ""
    team_file.record_push(where)
    assert team_file.read_failure(where) is None


def test_a_start_and_a_prompt_never_ask_the_server(
    config_home: ConfigHome, run_hook: Run, tmp_path: Path
) -> None:
    """So a silent server delays none of them."""
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


def test_the_help_of_a_group(config_home: ConfigHome) -> None:
    """The acts of ``team`` are declared where they are.

    What reads, sends and imports sessions is not loaded.
    """
    found = roots(loaded_modules(config_home, "helps", None, "team"))
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
    assert found.isdisjoint(HEAVY | engine | {"psycopg"})


def test_a_start_without_a_team(config_home: ConfigHome) -> None:
    """It looks for one file of ours: the standard library alone, and of the part what reads that."""
    event = {"session_id": SESSION, "hook_event_name": "SessionStart", "source": "startup"}
    found = loaded_modules(config_home, "session", event)
    foreign = (
        {name.partition(".")[0] for name in found} - set(sys.stdlib_module_names) - {"resume_hooks"}
    )
    assert foreign == set()
    ours = {name for name in found if name.startswith("resume_hooks.parts.team")}
    assert ours == {"resume_hooks.parts.team", "resume_hooks.parts.team.team_file"}
