"""Tests of the hooks at a session's start and end: they do not wait, and they rarely start Python."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.hook_scripts.plugin_copy import PluginCopy
from tests.hook_scripts.test_guard import installed_shells
from tests.hook_scripts.test_near_end import stamps_folder

STARTUP_EVENT = b'{"session_id":"a","hook_event_name":"SessionStart","source":"startup"}'


def write_ready_venv(plugin: PluginCopy) -> None:
    """Write a complete venv with the current lock file."""
    python = plugin.data_folder / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{plugin.env["RESUME_HOOKS_PYTHON"]}" "$@"\n')
    python.chmod(0o755)
    shutil.copy(plugin.root / "requirements.lock", plugin.data_folder / "venv")


WAITING_INSTALLER = """
import os, sys, time
os.setsid()
until = time.monotonic() + 60
while not os.path.exists(os.path.join(os.path.dirname(__file__), "go")) and time.monotonic() < until:
    time.sleep(0.02)
"""
"""The beginning of an installer that runs until ``end_installer`` is called, but at most a minute.
"""


def end_installer(plugin: PluginCopy) -> None:
    """Let the fake installer end. An installer that starts later does not wait either."""
    (plugin.root / "hooks" / "go").touch()


def fake_installer(plugin: PluginCopy) -> Path:
    """Replace the installer with one that waits for ``end_installer``.

    Returns the path of the file that the fake installer writes when it ends.
    """
    done = plugin.data_folder / "installed"
    (plugin.root / "hooks" / "install.py").write_text(
        f"{WAITING_INSTALLER}to = {str(done)!r}\n"
        "open(to + '.new', 'w').write(sys.argv[-1])\nos.rename(to + '.new', to)\n"
    )
    return done


def wait_for_file(file: Path, max_seconds: float = 20) -> bool:
    """Wait at most ``max_seconds`` seconds for the file, and return whether it exists."""
    end = time.monotonic() + max_seconds
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.05)
    return file.exists()


CHILD_ID = "5e12a303-0000-4000-8000-000000000001"


def hook_calls_engine(plugin: PluginCopy, event: str, fields: Mapping[str, object]) -> bool:
    """Return whether the hook calls the engine for an event with these fields.

    The event is sent with and without spaces in its JSON. Raises AssertionError if the hook fails
    or if the engine does not get the whole event.
    """
    reached = set()
    for body in (json.dumps(fields).encode(), json.dumps(fields, separators=(",", ":")).encode()):
        plugin.delete_engine_calls()
        done = plugin.run_hook(event, body)
        assert (done.returncode, done.stderr) == (0, b"")
        assert plugin.engine_calls.split(b"\n", 1)[1:] in ([], [body + b"\n"])
        reached.add(bool(plugin.engine_calls))
    assert len(reached) == 1
    return reached.pop()


COLD_RESUME_FIELDS = {
    "source": "resume",
    "prompt_cache_likely_expired": True,
    "context_tokens": 163_400,
}


@pytest.mark.parametrize(
    ("changed_fields", "must_start_python"),
    [
        ({}, True),
        ({"context_tokens": 99_999}, False),
        ({"context_tokens": None}, False),
        ({"prompt_cache_likely_expired": False}, False),
        ({"source": "startup"}, False),
        ({"source": "fork"}, False),
    ],
)
def test_only_a_resume_of_a_large_uncached_session_starts_python(
    plugin: PluginCopy, changed_fields: dict[str, object], must_start_python: bool
) -> None:
    """When a session is resumed, Python starts only if the session is large and its cache has expired.

    Only such a session is expensive to continue.
    """
    assert (
        hook_calls_engine(plugin, "SessionStart", {**COLD_RESUME_FIELDS, **changed_fields})
        is must_start_python
    )


@pytest.mark.parametrize(("size", "must_start_python"), [(100_000_001, True), (99_000_000, False)])
def test_a_resume_of_a_giant_file_starts_python(
    plugin: PluginCopy, tmp_path: Path, size: int, must_start_python: bool
) -> None:
    """When a file larger than 100 MB is resumed, Python starts and reports the file's size."""
    path = tmp_path / "no project" / "a giant.jsonl"
    path.parent.mkdir()
    assert not hook_calls_engine(
        plugin, "SessionStart", {"source": "resume", "transcript_path": str(path)}
    )
    with path.open("wb") as file:
        file.truncate(size)
    assert (
        hook_calls_engine(
            plugin, "SessionStart", {"source": "resume", "transcript_path": str(path)}
        )
        is must_start_python
    )
    assert not hook_calls_engine(
        plugin, "SessionStart", {"source": "startup", "transcript_path": str(path)}
    )


def test_a_session_end_calls_the_engine_only_after_clear(plugin: PluginCopy) -> None:
    """When a session ends, the engine is called only after ``/clear``.

    The other fields of the event make no difference.
    """
    for reason in ("logout", "prompt_input_exit", "other", "resume"):
        assert not hook_calls_engine(
            plugin, "SessionEnd", {"reason": reason, "title": '"reason":"clear"'}
        ), reason
    assert hook_calls_engine(plugin, "SessionEnd", {"reason": "clear"})


def test_only_starts_after_clear_or_compaction_reach_the_engine(plugin: PluginCopy) -> None:
    """When a session starts, the engine is called only after ``/clear`` or a compaction.

    It then records a link or restores facts. In this test, there is no other work for it.
    """
    for source in ("startup", "resume", "fork"):
        assert not hook_calls_engine(
            plugin, "SessionStart", {"source": source, "title": '"source":"clear"'}
        ), source
    assert hook_calls_engine(plugin, "SessionStart", {"source": "clear"})
    assert hook_calls_engine(plugin, "SessionStart", {"source": "compact"})


def test_a_startup_reads_a_pending_handoff_until_it_is_reported(plugin: PluginCopy) -> None:
    """When a client starts, the engine is called if a handoff is waiting that was not reported yet.

    Other notes make no difference. When a fork starts, the engine is not called.
    """
    (stamps_folder(plugin) / "trim-x.json").touch()
    (stamps_folder(plugin) / f"handoff-4711-{CHILD_ID}.told").touch()
    assert not hook_calls_engine(plugin, "SessionStart", {"source": "startup"})
    (stamps_folder(plugin) / f"handoff-4712-{CHILD_ID}.json").touch()
    assert hook_calls_engine(plugin, "SessionStart", {"source": "startup"})
    assert not hook_calls_engine(plugin, "SessionStart", {"source": "fork"})


@pytest.mark.parametrize("note_suffix", ["json", "told"])
def test_a_resume_of_the_child_reads_its_pending_handoff(
    plugin: PluginCopy, note_suffix: str
) -> None:
    """If the child of a waiting handoff is resumed, the engine is called.

    It is called even if a start has already reported the handoff. If another session is resumed,
    the engine is not called.
    """
    (stamps_folder(plugin) / f"handoff-4711-{CHILD_ID}.{note_suffix}").touch()
    assert not hook_calls_engine(
        plugin, "SessionStart", {"source": "resume", "session_id": CHILD_ID.replace("5", "6")}
    )
    assert hook_calls_engine(plugin, "SessionStart", {"source": "resume", "session_id": CHILD_ID})


def test_the_engines_reply_to_a_start_is_printed(plugin: PluginCopy) -> None:
    """When a session starts, the hook prints the engine's reply; when it ends, the hook prints nothing."""
    assert plugin.run_hook("SessionStart", b'{"source":"clear"}').stdout == b"reply of session\n"
    assert plugin.run_hook("SessionEnd", b'{"reason":"clear"}').stdout == b""


def test_a_start_with_a_ready_engine_begins_no_installation(plugin: PluginCopy) -> None:
    """If the venv is complete and has the current lock file, a start begins no installation."""
    write_ready_venv(plugin)
    installed = fake_installer(plugin)
    end_installer(plugin)
    done = plugin.run_hook("SessionStart", STARTUP_EVENT, RESUME_HOOKS_PYTHON="")
    assert (done.returncode, done.stderr) == (0, b"")
    assert not wait_for_file(installed, 1)


@pytest.mark.parametrize("is_ready", [True, False])
def test_the_first_start_prints_one_line(plugin: PluginCopy, is_ready: bool) -> None:
    """The first start prints one line that says whether the engine is ready and what to type.

    A headless start and the second start print nothing.
    """
    if is_ready:
        write_ready_venv(plugin)
    fake_installer(plugin)
    end_installer(plugin)
    headless = plugin.run_hook(
        "SessionStart", STARTUP_EVENT, RESUME_HOOKS_PYTHON="", CLAUDE_CODE_ENTRYPOINT="sdk-cli"
    )
    first, second = (
        plugin.run_hook("SessionStart", STARTUP_EVENT, RESUME_HOOKS_PYTHON="") for _ in range(2)
    )
    said = json.loads(first.stdout)["systemMessage"]
    beginning = (
        "is ready. Type" if is_ready else "is being installed, which takes a minute. Then type"
    )
    assert said.startswith(f"resume-hooks {beginning} /full (in older clients >resume) to see how")
    assert "\n" not in said
    assert (headless.stdout, second.stdout) == (b"", b"")


@pytest.mark.parametrize("has_reply", [True, False])
def test_the_greeting_replaces_an_empty_reply(plugin: PluginCopy, has_reply: bool) -> None:
    """At the first start, the hook prints the engine's reply or, if there is none, the greeting."""
    write_ready_venv(plugin)
    if not has_reply:
        engine = plugin.root / "src" / "resume_hooks" / "hooks" / "session.py"
        engine.write_text("import sys\ndef main(): sys.stdin.read()\n")
    event = STARTUP_EVENT.replace(b"{", b'{"transcript_path":"/c/projects/-p/x.jsonl",', 1)
    done = plugin.run_hook("SessionStart", event, RESUME_HOOKS_PYTHON="")
    assert (b"reply of session" in done.stdout) is has_reply
    assert (b"is ready. Type /full" in done.stdout) is not has_reply


def test_the_first_start_after_a_failed_installation_reports_it(plugin: PluginCopy) -> None:
    """The first start after a failed installation reports the failure, and the second prints nothing."""
    (plugin.data_folder / "greeted").touch()
    (plugin.data_folder / "install.json").write_text('{"state": "failed", "error": "no network"}\n')
    fake_installer(plugin)
    end_installer(plugin)
    first, second = (
        plugin.run_hook("SessionStart", STARTUP_EVENT, RESUME_HOOKS_PYTHON="") for _ in range(2)
    )
    said = json.loads(first.stdout)["systemMessage"]
    assert said.startswith("resume-hooks could not be installed. Type /full")
    assert second.stdout == b""


@pytest.mark.parametrize("change", ["no venv", "other lock", "dangling python"])
def test_an_outdated_engine_starts_the_installation(plugin: PluginCopy, change: str) -> None:
    """If the venv is missing, damaged or outdated, a start begins an installation.

    The hook does not wait for it.
    """
    write_ready_venv(plugin)
    if change == "no venv":
        shutil.rmtree(plugin.data_folder / "venv")
    elif change == "other lock":
        (plugin.root / "requirements.lock").write_text("# newer\n")
    else:
        (plugin.data_folder / "venv" / "bin" / "python").unlink()
    installed = fake_installer(plugin)
    done = plugin.run_hook("SessionStart", STARTUP_EVENT, RESUME_HOOKS_PYTHON="")
    assert (done.returncode, done.stderr) == (0, b"")
    assert not installed.exists()
    end_installer(plugin)
    assert wait_for_file(installed)
    assert installed.read_text() == str(plugin.data_folder)


@pytest.mark.parametrize("python_source", ["named", "checkout"])
def test_a_users_own_python_prevents_the_installation(
    plugin: PluginCopy, python_source: str
) -> None:
    """If RESUME_HOOKS_PYTHON is set or the plugin's folder contains a .venv, no installation begins."""
    installed = fake_installer(plugin)
    end_installer(plugin)
    if python_source == "checkout":
        python = plugin.root / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.symlink_to(plugin.env["RESUME_HOOKS_PYTHON"])
        plugin.run_hook("SessionStart", STARTUP_EVENT, RESUME_HOOKS_PYTHON="")
    else:
        plugin.run_hook("SessionStart", STARTUP_EVENT)
    assert not wait_for_file(installed, 1)


def test_a_client_without_data_folder_gets_one(plugin: PluginCopy, tmp_path: Path) -> None:
    """Without CLAUDE_PLUGIN_DATA, the engine is installed in a data folder that has the plugin's own name."""
    installed = fake_installer(plugin)
    end_installer(plugin)
    plugin.run_hook("SessionStart", STARTUP_EVENT, RESUME_HOOKS_PYTHON="", CLAUDE_PLUGIN_DATA="")
    assert wait_for_file(installed)
    assert installed.read_text() == str(
        tmp_path / "config" / "plugins" / "data" / "resume-hooks-resume-hooks"
    )


@pytest.mark.parametrize("shell", installed_shells(), ids="-".join)
def test_the_models_shell_has_the_command_resume_hooks(
    plugin: PluginCopy, tmp_path: Path, shell: list[str]
) -> None:
    """When a session starts, the command ``resume-hooks`` is defined in the file for the model's shell.

    The command runs the plugin that started last. Other lines in the file are kept.
    """
    named = tmp_path / "env.sh"
    named.write_text("export THEIRS=1\n")
    old, moved = (replace(plugin, root=tmp_path / name) for name in ("it's old", "new version"))
    for each in (old, moved):
        shutil.copytree(plugin.root, each.root)
    # The path of the plugin that started last contains a quote, a space and a dollar sign.
    for each in (
        old,
        old,
        moved,
        plugin,
    ):
        each.run_hook(
            "SessionStart",
            STARTUP_EVENT,
            *shell,
            CLAUDE_ENV_FILE=str(named),
            CLAUDE_PLUGIN_ROOT=str(each.root),
        )
    theirs, *ours = named.read_text().splitlines()
    assert (theirs, len(ours)) == ("export THEIRS=1", 2)
    (moved.root / "hooks" / "engine").write_text('echo "asked: $*"\n')
    for bash in ("bash", "zsh"):
        run = [bash, "-c", f". '{named}' && resume-hooks read 'a b' | cat"]
        assert (
            subprocess.run(run, capture_output=True, text=True, check=True).stdout
            == "asked: read a b\n"
        )
