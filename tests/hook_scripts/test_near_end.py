"""Tests of when the start of a session checks for expiring sessions.

If there is no check, the start runs no Python.
"""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

from tests.hook_scripts.plugin_copy import PluginCopy

PROJECT_NAME = "-home-user-proj"
START_SESSION_ID = "5e12a303-0000-4000-8000-000000000001"


def make_start_event(
    plugin: PluginCopy, source: str = "startup", project: str = PROJECT_NAME, **fields: str
) -> bytes:
    """Return the event of a session's start in the client's form."""
    path = f"{plugin.env['CLAUDE_CONFIG_DIR']}/projects/{project}/{START_SESSION_ID}.jsonl"
    event = {
        "session_id": START_SESSION_ID,
        "transcript_path": path,
        "hook_event_name": "SessionStart",
        "source": source,
        **fields,
    }
    return json.dumps(event, separators=(",", ":")).encode()


def stamps_folder(plugin: PluginCopy) -> Path:
    """Create the folder for the stamps and return it.

    A stamp is a file that contains the time of the next check.
    """
    folder = Path(plugin.env["CLAUDE_CONFIG_DIR"]) / "resume-hooks" / "pending"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_stamp(
    plugin: PluginCopy, name: str, check_offset: float = 3_600, stamp_offset: float = -60
) -> Path:
    """Write a stamp and return its path.

    ``check_offset`` is the time of the next check, and ``stamp_offset`` the time of the stamp itself,
    in seconds from now.
    """
    now = int(time.time())
    path = stamps_folder(plugin) / name
    path.write_text(
        json.dumps({"version": 1, "look": int(now + check_offset), "made": int(now + stamp_offset)})
    )
    os.utime(path, (now + stamp_offset, now + stamp_offset))
    return path


def start_calls_engine(plugin: PluginCopy, source: str = "startup", **env: str) -> bool:
    """Check whether a session's start calls the engine because a check is due."""
    plugin.delete_engine_calls()
    done = plugin.run_hook("SessionStart", make_start_event(plugin, source), **env)
    assert (done.returncode, done.stderr) == (0, b"")
    return bool(plugin.engine_calls)


@pytest.mark.parametrize("source", ["startup", "resume", "fork"])
def test_a_missing_or_due_stamp_makes_a_start_call_the_engine(
    plugin: PluginCopy, source: str
) -> None:
    """A start calls the engine if the project's stamp is missing, due, or dated in the future.

    A stamp of another project is ignored. If no Python is found, the engine is not called.
    """
    assert start_calls_engine(plugin, source)
    write_stamp(plugin, "due--other.json")
    assert start_calls_engine(plugin, source)
    write_stamp(plugin, f"due-{PROJECT_NAME}.json")
    assert not start_calls_engine(plugin, source)
    for wrong in ({"check_offset": -1}, {"check_offset": 90_000, "stamp_offset": 3_600}):
        write_stamp(plugin, f"due-{PROJECT_NAME}.json", **wrong)
        assert start_calls_engine(plugin, source)
        assert not start_calls_engine(plugin, source, RESUME_HOOKS_PYTHON="")


@pytest.mark.parametrize(
    "damage",
    ["", "{", '{"look": 99}', '{"look": x, "made": 1}', f'{{"look": {10**30}, "made": 1}}'],
)
def test_a_damaged_stamp_counts_as_missing(plugin: PluginCopy, damage: str) -> None:
    """A damaged stamp is treated as missing, and the hook prints no error."""
    write_stamp(plugin, f"due-{PROJECT_NAME}.json").write_text(damage)
    assert start_calls_engine(plugin)


def test_a_stamp_that_is_a_link_counts_as_missing(plugin: PluginCopy, tmp_path: Path) -> None:
    """A stamp that is a link is treated as missing, because the link could lead to any file."""
    write_stamp(plugin, f"due-{PROJECT_NAME}.json").rename(tmp_path / "stamp")
    (stamps_folder(plugin) / f"due-{PROJECT_NAME}.json").symlink_to(tmp_path / "stamp")
    assert start_calls_engine(plugin)


@pytest.mark.parametrize("settings_level", ["user", "project", "local", "ours"])
def test_newer_settings_make_a_check_due(
    plugin: PluginCopy, tmp_path: Path, settings_level: str
) -> None:
    """If the client's or the plugin's settings are newer than the stamp, a start calls the engine.

    The newer settings may change when sessions expire.
    """
    config = Path(plugin.env["CLAUDE_CONFIG_DIR"])
    own = tmp_path / "work" / ".claude"
    own.mkdir(parents=True)
    file = {
        "user": config / "settings.json",
        "project": own / "settings.json",
        "local": own / "settings.local.json",
        "ours": stamps_folder(plugin).parent / "settings.json",
    }[settings_level]
    file.write_text("{}")
    env = {"CLAUDE_PROJECT_DIR": str(own.parent)}
    os.utime(file, (time.time() - 600,) * 2)
    write_stamp(plugin, f"due-{PROJECT_NAME}.json")
    assert not start_calls_engine(plugin, **env)
    os.utime(file)
    assert start_calls_engine(plugin, **env)


@pytest.mark.parametrize("config", ['a "b" c', "a\\b", 'x.jsonl"y', "x\\"])
def test_a_stamp_is_found_despite_escapes_in_the_path(
    plugin: PluginCopy, tmp_path: Path, config: str
) -> None:
    """A stamp is found even if the config folder's path in the event contains JSON escapes."""
    plugin.env["CLAUDE_CONFIG_DIR"] = str(tmp_path / config)
    assert start_calls_engine(plugin)
    write_stamp(plugin, f"due-{PROJECT_NAME}.json")
    assert not start_calls_engine(plugin)


def test_without_a_home_no_check_runs(plugin: PluginCopy) -> None:
    """If there is no home folder, no hook calls the engine, because the owner of the sessions is unknown."""
    nobody = {"CLAUDE_CONFIG_DIR": "", "HOME": ""}
    assert not start_calls_engine(plugin, **nobody)
    assert not background_hook_calls_engine(plugin, **nobody)
    for event, said in {
        "UserPromptSubmit": b'{"prompt":">resume"}', "SessionEnd": b'{"reason":"clear"}', "Stop": b"{}",
    }.items():  # fmt: skip
        assert plugin.run_hook(event, said, **nobody).stdout == b""
    assert (
        plugin.run_engine("--hook", "prompt", stdin='{"prompt":">resume"}', **nobody).stdout == ""
    )
    assert plugin.engine_calls == b""


@pytest.mark.parametrize("project", ["a b", "..", "a;b", "a$(touch x)b"])
def test_an_invalid_project_folder_is_never_read(plugin: PluginCopy, project: str) -> None:
    """If the project's name in the event is invalid, the hook ignores it and does not call the engine."""
    plugin.delete_engine_calls()
    plugin.run_hook("SessionStart", make_start_event(plugin, project=project))
    assert plugin.engine_calls == b""


def test_archived_sessions_are_announced_by_the_next_start(plugin: PluginCopy) -> None:
    """If sessions were archived, the next start on the screen calls the engine once to report this."""
    write_stamp(plugin, f"due-{PROJECT_NAME}.json")
    # This stamp keeps background processes from calling the engine during the test.
    write_stamp(plugin, f"later-{PROJECT_NAME}.json")
    state = stamps_folder(plugin).parent
    (state / "vault").mkdir()
    assert not start_calls_engine(plugin, CLAUDE_CODE_ENTRYPOINT="sdk-cli")
    assert start_calls_engine(plugin)
    (state / "vault-told").touch()
    assert not start_calls_engine(plugin)


def test_an_unusable_state_folder_prevents_checks(plugin: PluginCopy) -> None:
    """If the state folder cannot be used, no check runs, because its stamp could not be stored."""
    stamps_folder(plugin).rmdir()
    state = stamps_folder(plugin).parent
    stamps_folder(plugin).rmdir()
    state.rmdir()
    state.write_text("in the way")
    assert not start_calls_engine(plugin)
    assert not background_hook_calls_engine(plugin)


def test_no_check_runs_in_the_plugins_headless_run(plugin: PluginCopy) -> None:
    """If a verb starts a headless run to ask the model, no check runs in it."""
    assert not start_calls_engine(plugin, RESUME_HOOKS_CHILD="1")
    assert (
        plugin.run_background_hook(make_start_event(plugin), RESUME_HOOKS_CHILD="1").stdout == b""
    )
    assert plugin.engine_calls == b""


@pytest.fixture
def skip_wait_for_first_hook(plugin: PluginCopy, tmp_path: Path) -> None:
    """Make the background hook skip its wait for the first hook."""
    stub = tmp_path / "bin" / "sleep"
    stub.write_text("#!/bin/sh\n")
    stub.chmod(0o755)


def background_hook_calls_engine(plugin: PluginCopy, source: str = "startup", **env: str) -> bool:
    """Check whether the background hook calls the engine."""
    plugin.delete_engine_calls()
    done = plugin.run_background_hook(make_start_event(plugin, source), **env)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    return plugin.engine_calls.startswith(b"later ")


@pytest.mark.usefixtures("skip_wait_for_first_hook")
def test_the_background_hook_calls_the_engine_if_necessary(plugin: PluginCopy) -> None:
    """The background hook calls the engine only if there is work for it; otherwise it starts no Python.

    There is work if the project or other projects were not checked, if files must be packed or
    indexed, or if an ancestor is not archived yet.
    """
    names = (f"due-{PROJECT_NAME}.json", f"later-{PROJECT_NAME}.json", "vault.json", "indexed.json")
    for missing in names:
        for name in names:
            write_stamp(plugin, name)
        assert not background_hook_calls_engine(plugin)
        (stamps_folder(plugin) / missing).unlink()
        assert background_hook_calls_engine(plugin), missing
        assert not background_hook_calls_engine(plugin, "compact")
    for name in names:
        write_stamp(plugin, name)
    (stamps_folder(plugin) / f"keep-{START_SESSION_ID}").touch()
    assert background_hook_calls_engine(plugin, "clear")


@pytest.mark.usefixtures("skip_wait_for_first_hook")
def test_new_messages_are_indexed(plugin: PluginCopy) -> None:
    """The background hook calls the engine if a transcript was deleted or is newer than the index.

    It then does not call the engine again until the next check is due.
    """
    for name in (f"due-{PROJECT_NAME}.json", f"later-{PROJECT_NAME}.json", "vault.json"):
        write_stamp(plugin, name)
    indexed = write_stamp(plugin, "indexed.json")
    session = (
        Path(plugin.env["CLAUDE_CONFIG_DIR"])
        / "projects"
        / "-another"
        / f"{START_SESSION_ID}.jsonl"
    )
    session.parent.mkdir(parents=True)
    session.touch()
    for path in (session, session.parent, session.parent.parent):
        os.utime(path, (time.time() - 600,) * 2)
    assert not background_hook_calls_engine(plugin)
    for path in (session, session.parent, session.parent.parent):
        os.utime(path)
        assert background_hook_calls_engine(plugin)
        os.utime(path, (time.time() - 600,) * 2)
    assert not background_hook_calls_engine(plugin)
    os.utime(session)
    assert not background_hook_calls_engine(plugin, CLAUDE_CODE_ENTRYPOINT="sdk-cli")
    said = indexed.read_text().replace("}", ', "wait": true}')
    indexed.write_text(said)
    os.utime(session, (time.time() + 600,) * 2)
    assert not background_hook_calls_engine(plugin)
    write_stamp(plugin, "indexed.json", check_offset=-1)
    assert background_hook_calls_engine(plugin)


def engine_calls_of_headless_start(
    plugin: PluginCopy, max_wait_seconds: float = 0.3
) -> list[bytes]:
    """Return the calls of the engine when a headless run starts.

    The background hook of the run must not call the engine, because the client would wait for it.
    """
    plugin.delete_engine_calls()
    env = {"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"}
    for done in (
        plugin.run_background_hook(make_start_event(plugin), **env),
        plugin.run_hook("SessionStart", make_start_event(plugin), **env),
    ):
        assert (done.returncode, done.stderr) == (0, b"")
    until = time.monotonic() + max_wait_seconds
    while b"later" not in plugin.engine_calls and time.monotonic() < until:
        time.sleep(0.02)
    return [
        line.split()[0] for line in plugin.engine_calls.splitlines() if not line.startswith(b"{")
    ]


def test_a_headless_start_archives_further_sessions_in_the_background(plugin: PluginCopy) -> None:
    """In a headless run, the start archives the first of the expiring sessions.

    A background process archives the others. It packs no files, because the run is too short.
    """
    assert engine_calls_of_headless_start(plugin, 20) == [b"session", b"later"]
    write_stamp(plugin, f"due-{PROJECT_NAME}.json")
    assert engine_calls_of_headless_start(plugin, 20) == [b"later"]
    write_stamp(plugin, f"later-{PROJECT_NAME}.json")
    assert engine_calls_of_headless_start(plugin) == []
    (stamps_folder(plugin) / f"keep-{START_SESSION_ID}").touch()
    assert engine_calls_of_headless_start(plugin, 20) == [b"later"]


def test_a_background_process_of_a_headless_run_has_its_own_group(
    plugin: PluginCopy,
) -> None:
    """The background process of a headless run is in a separate process group.

    Otherwise, the client would kill the process together with the hooks. The process keeps no pipe
    open, because the client would wait until the pipe is closed.
    """
    event = plugin.root / "src" / "resume_hooks" / "hooks" / "background.py"
    event.write_text(f"import os, time\ntime.sleep(1)\n{event.read_text()}    assert os.getsid(0) == os.getpid()\n"
                     "    open(os.environ['REACHED'], 'ab').write(b'at last')\n")  # fmt: skip
    write_stamp(plugin, f"due-{PROJECT_NAME}.json")
    begun = time.monotonic()
    assert engine_calls_of_headless_start(plugin, 0) == []
    assert time.monotonic() - begun < 0.9
    until = time.monotonic() + 20
    while b"at last" not in plugin.engine_calls and time.monotonic() < until:
        time.sleep(0.05)
    assert b"at last" in plugin.engine_calls


def test_the_background_hook_waits_a_second_before_the_check(plugin: PluginCopy) -> None:
    """The background hook waits a second before its check, in case the first hook has not finished yet."""
    write_stamp(plugin, f"later-{PROJECT_NAME}.json")
    write_stamp(plugin, "vault.json")
    write_stamp(plugin, "indexed.json")
    first = threading.Timer(0.4, write_stamp, (plugin, f"due-{PROJECT_NAME}.json"))
    first.start()
    assert not background_hook_calls_engine(plugin)
    first.join()
