"""Owns the tests of when a session's start looks for what the client is about to delete.

It starts no Python else.
"""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

from tests.hook_scripts.plugin_copy import PluginCopy

PROJECT = "-home-user-proj"
ID = "5e12a303-0000-4000-8000-000000000001"


def body(
    plugin: PluginCopy, source: str = "startup", project: str = PROJECT, **fields: str
) -> bytes:
    """The event as the client writes it."""
    path = f"{plugin.env['CLAUDE_CONFIG_DIR']}/projects/{project}/{ID}.jsonl"
    event = {
        "session_id": ID,
        "transcript_path": path,
        "hook_event_name": "SessionStart",
        "source": source,
        **fields,
    }
    return json.dumps(event, separators=(",", ":")).encode()


def pending(plugin: PluginCopy) -> Path:
    """The folder of stamps, made."""
    folder = Path(plugin.env["CLAUDE_CONFIG_DIR"]) / "resume-hooks" / "pending"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def stamp(plugin: PluginCopy, name: str, look: float = 3_600, made: float = -60) -> Path:
    """A stamp: when to look, and when it was made, in seconds from now."""
    now = int(time.time())
    path = pending(plugin) / name
    path.write_text(json.dumps({"version": 1, "look": int(now + look), "made": int(now + made)}))
    os.utime(path, (now + made, now + made))
    return path


def looks(plugin: PluginCopy, source: str = "startup", **env: str) -> bool:
    """Check whether a start reaches the engine because it is due."""
    plugin.forget()
    done = plugin.hook("SessionStart", body(plugin, source), **env)
    assert (done.returncode, done.stderr) == (0, b"")
    return bool(plugin.reached)


@pytest.mark.parametrize("source", ["startup", "resume", "fork"])
def test_a_start_looks_until_there_is_a_stamp_and_then_at_its_time(
    plugin: PluginCopy, source: str
) -> None:
    """Missing, due, not due, of a moment that is still to come.

    Another project's says nothing, nor without engine.
    """
    assert looks(plugin, source)
    stamp(plugin, "due--other.json")
    assert looks(plugin, source)
    stamp(plugin, f"due-{PROJECT}.json")
    assert not looks(plugin, source)
    for wrong in ({"look": -1}, {"look": 90_000, "made": 3_600}):
        stamp(plugin, f"due-{PROJECT}.json", **wrong)
        assert looks(plugin, source)
        assert not looks(plugin, source, RESUME_HOOKS_PYTHON="")


@pytest.mark.parametrize(
    "damage",
    ["", "{", '{"look": 99}', '{"look": x, "made": 1}', f'{{"look": {10**30}, "made": 1}}'],
)
def test_a_damaged_stamp_is_none(plugin: PluginCopy, damage: str) -> None:
    """This holds for any content; nothing is printed on stderr."""
    stamp(plugin, f"due-{PROJECT}.json").write_text(damage)
    assert looks(plugin)


def test_a_stamp_that_is_a_link_is_none(plugin: PluginCopy, tmp_path: Path) -> None:
    """It could lead anywhere."""
    stamp(plugin, f"due-{PROJECT}.json").rename(tmp_path / "stamp")
    (pending(plugin) / f"due-{PROJECT}.json").symlink_to(tmp_path / "stamp")
    assert looks(plugin)


@pytest.mark.parametrize("level", ["user", "project", "local", "ours"])
def test_settings_that_were_written_since(plugin: PluginCopy, tmp_path: Path, level: str) -> None:
    """The client's period may have changed, or ours."""
    config = Path(plugin.env["CLAUDE_CONFIG_DIR"])
    own = tmp_path / "work" / ".claude"
    own.mkdir(parents=True)
    file = {
        "user": config / "settings.json",
        "project": own / "settings.json",
        "local": own / "settings.local.json",
        "ours": pending(plugin).parent / "settings.json",
    }[level]
    file.write_text("{}")
    env = {"CLAUDE_PROJECT_DIR": str(own.parent)}
    os.utime(file, (time.time() - 600,) * 2)
    stamp(plugin, f"due-{PROJECT}.json")
    assert not looks(plugin, **env)
    os.utime(file)
    assert looks(plugin, **env)


@pytest.mark.parametrize("config", ['a "b" c', "a\\b", 'x.jsonl"y', "x\\"])
def test_a_config_folder_with_a_strange_name(
    plugin: PluginCopy, tmp_path: Path, config: str
) -> None:
    """The path in the event has escapes; the project's name is found behind them."""
    plugin.env["CLAUDE_CONFIG_DIR"] = str(tmp_path / config)
    assert looks(plugin)
    stamp(plugin, f"due-{PROJECT}.json")
    assert not looks(plugin)


def test_without_a_home_nothing_is_done(plugin: PluginCopy) -> None:
    """The owner of the sessions is unknown, and files below / belong to nobody."""
    nobody = {"CLAUDE_CONFIG_DIR": "", "HOME": ""}
    assert not looks(plugin, **nobody)
    assert not catches_up(plugin, **nobody)
    for event, said in {
        "UserPromptSubmit": b'{"prompt":">resume"}', "SessionEnd": b'{"reason":"clear"}', "Stop": b"{}",
    }.items():  # fmt: skip
        assert plugin.hook(event, said, **nobody).stdout == b""
    assert plugin.engine("--hook", "prompt", stdin='{"prompt":">resume"}', **nobody).stdout == ""
    assert plugin.reached == b""


@pytest.mark.parametrize("project", ["a b", "..", "a;b", "a$(touch x)b"])
def test_an_invalid_project_folder_is_never_read(plugin: PluginCopy, project: str) -> None:
    """The name comes from the event, and is never used in a path."""
    plugin.forget()
    plugin.hook("SessionStart", body(plugin, project=project))
    assert plugin.reached == b""


def test_an_unannounced_archive_run(plugin: PluginCopy) -> None:
    """Sessions are archived: the next visible start calls the engine, which announces it once."""
    stamp(plugin, f"due-{PROJECT}.json")
    stamp(
        plugin, f"later-{PROJECT}.json"
    )  # nothing is left for a process that would reach the engine a moment later
    state = pending(plugin).parent
    (state / "vault").mkdir()
    assert not looks(plugin, CLAUDE_CODE_ENTRYPOINT="sdk-cli")
    assert looks(plugin)
    (state / "vault-told").touch()
    assert not looks(plugin)


def test_a_state_folder_that_can_hold_nothing(plugin: PluginCopy) -> None:
    """Nothing can be stored there, not even a stamp, so no start does work for it."""
    pending(plugin).rmdir()
    state = pending(plugin).parent
    pending(plugin).rmdir()
    state.rmdir()
    state.write_text("in the way")
    assert not looks(plugin)
    assert not catches_up(plugin)


def test_our_own_headless_call_looks_at_nothing(plugin: PluginCopy) -> None:
    """A model's run within a verb."""
    assert not looks(plugin, RESUME_HOOKS_CHILD="1")
    assert plugin.later(body(plugin), RESUME_HOOKS_CHILD="1").stdout == b""
    assert plugin.reached == b""


@pytest.fixture
def no_sleep(plugin: PluginCopy, tmp_path: Path) -> None:
    """The second hook does not wait for the first."""
    stub = tmp_path / "bin" / "sleep"
    stub.write_text("#!/bin/sh\n")
    stub.chmod(0o755)


def catches_up(plugin: PluginCopy, source: str = "startup", **env: str) -> bool:
    """Check whether the background hook reaches the engine."""
    plugin.forget()
    done = plugin.later(body(plugin, source), **env)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    return plugin.reached.startswith(b"later ")


@pytest.mark.usefixtures("no_sleep")
def test_the_second_hook_has_its_own_reasons(plugin: PluginCopy) -> None:
    """What is left of a look, other projects, the daily packing, the index, an ancestor that waits.

    Else no Python.
    """
    names = (f"due-{PROJECT}.json", f"later-{PROJECT}.json", "vault.json", "indexed.json")
    for missing in names:
        for name in names:
            stamp(plugin, name)
        assert not catches_up(plugin)
        (pending(plugin) / missing).unlink()
        assert catches_up(plugin), missing
        assert not catches_up(plugin, "compact")
    for name in names:
        stamp(plugin, name)
    (pending(plugin) / f"keep-{ID}").touch()
    assert catches_up(plugin, "clear")


@pytest.mark.usefixtures("no_sleep")
def test_new_messages_are_indexed(plugin: PluginCopy) -> None:
    """A transcript younger than the stamp, or a folder that lost one, unless nothing is wanted before its time."""
    for name in (f"due-{PROJECT}.json", f"later-{PROJECT}.json", "vault.json"):
        stamp(plugin, name)
    indexed = stamp(plugin, "indexed.json")
    session = Path(plugin.env["CLAUDE_CONFIG_DIR"]) / "projects" / "-another" / f"{ID}.jsonl"
    session.parent.mkdir(parents=True)
    session.touch()
    for path in (session, session.parent, session.parent.parent):
        os.utime(path, (time.time() - 600,) * 2)
    assert not catches_up(plugin)
    for path in (session, session.parent, session.parent.parent):
        os.utime(path)
        assert catches_up(plugin)
        os.utime(path, (time.time() - 600,) * 2)
    assert not catches_up(plugin)
    os.utime(session)
    assert not catches_up(plugin, CLAUDE_CODE_ENTRYPOINT="sdk-cli")
    said = indexed.read_text().replace("}", ', "wait": true}')
    indexed.write_text(said)
    os.utime(session, (time.time() + 600,) * 2)
    assert not catches_up(plugin)
    stamp(plugin, "indexed.json", look=-1)
    assert catches_up(plugin)


def headless(plugin: PluginCopy, within: float = 0.3) -> list[bytes]:
    """What a headless run's start reaches of the engine, at last.

    Its second hook, which would be waited for, none.
    """
    plugin.forget()
    env = {"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}
    for done in (
        plugin.later(body(plugin), **env),
        plugin.hook("SessionStart", body(plugin), **env),
    ):
        assert (done.returncode, done.stderr) == (0, b"")
    until = time.monotonic() + within
    while b"later" not in plugin.reached and time.monotonic() < until:
        time.sleep(0.02)
    return [line.split()[0] for line in plugin.reached.splitlines() if not line.startswith(b"{")]


def test_a_headless_run_waits_for_nothing_that_is_left(plugin: PluginCopy) -> None:
    """Its start keeps the first, as any; the rest is kept next to it.

    Nothing is packed: it is too short for that.
    """
    assert headless(plugin, 20) == [b"session", b"later"]
    stamp(plugin, f"due-{PROJECT}.json")
    assert headless(plugin, 20) == [b"later"]
    stamp(plugin, f"later-{PROJECT}.json")
    assert headless(plugin) == []
    (pending(plugin) / f"keep-{ID}").touch()
    assert headless(plugin, 20) == [b"later"]


def test_a_headless_runs_background_process_leaves_the_clients_group(
    plugin: PluginCopy,
) -> None:
    """The client kills its remaining hooks; it does not wait for a pipe either."""
    event = plugin.root / "src" / "resume_hooks" / "hooks" / "background.py"
    event.write_text(f"import os, time\ntime.sleep(1)\n{event.read_text()}    assert os.getsid(0) == os.getpid()\n"
                     "    open(os.environ['REACHED'], 'ab').write(b'at last')\n")  # fmt: skip
    stamp(plugin, f"due-{PROJECT}.json")
    begun = time.monotonic()
    assert headless(plugin, 0) == []
    assert time.monotonic() - begun < 0.9
    until = time.monotonic() + 20
    while b"at last" not in plugin.reached and time.monotonic() < until:
        time.sleep(0.05)
    assert b"at last" in plugin.reached


def test_the_first_hook_is_first(plugin: PluginCopy) -> None:
    """Its finished work is not repeated: the second hook checks once more after a second."""
    stamp(plugin, f"later-{PROJECT}.json")
    stamp(plugin, "vault.json")
    stamp(plugin, "indexed.json")
    first = threading.Timer(0.4, stamp, (plugin, f"due-{PROJECT}.json"))
    first.start()
    assert not catches_up(plugin)
    first.join()
