"""Tests of the session hooks: they do not wait, and start Python only if necessary."""

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

STARTUP = b'{"session_id":"a","hook_event_name":"SessionStart","source":"startup"}'


def make_ready(plugin: PluginCopy) -> None:
    """Write a venv with the current lock, whose Python records that it was started."""
    python = plugin.data / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{plugin.env["RESUME_HOOKS_PYTHON"]}" "$@"\n')
    python.chmod(0o755)
    shutil.copy(plugin.root / "requirements.lock", plugin.data / "venv")


WAITS = """
import os, sys, time
os.setsid()
until = time.monotonic() + 60
while not os.path.exists(os.path.join(os.path.dirname(__file__), "go")) and time.monotonic() < until:
    time.sleep(0.02)
"""
"""How an installer begins that takes as long as a test wants; see ``end_installer``."""


def end_installer(plugin: PluginCopy) -> None:
    """End the installer if it runs. One that is started later does not wait."""
    (plugin.root / "hooks" / "go").touch()


def stand_in_installer(plugin: PluginCopy) -> Path:
    """Replace the installer by one that waits for ``end_installer``, and return the file that it writes at its end."""
    done = plugin.data / "installed"
    (plugin.root / "hooks" / "install.py").write_text(
        f"{WAITS}to = {str(done)!r}\nopen(to + '.new', 'w').write(sys.argv[-1])\nos.rename(to + '.new', to)\n"
    )
    return done


def appears_in_time(file: Path, seconds: float = 20) -> bool:
    """Check whether the file appears in time."""
    end = time.monotonic() + seconds
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.05)
    return file.exists()


CHILD = "5e12a303-0000-4000-8000-000000000001"


def reaches_engine(plugin: PluginCopy, event: str, fields: Mapping[str, object]) -> bool:
    """Check whether an event reaches the engine completely, with any spaces in its JSON.

    The hook itself prints no error.
    """
    reached = set()
    for body in (json.dumps(fields).encode(), json.dumps(fields, separators=(",", ":")).encode()):
        plugin.forget()
        done = plugin.hook(event, body)
        assert (done.returncode, done.stderr) == (0, b"")
        assert plugin.reached.split(b"\n", 1)[1:] in ([], [body + b"\n"])
        reached.add(bool(plugin.reached))
    assert len(reached) == 1
    return reached.pop()


COLD = {"source": "resume", "prompt_cache_likely_expired": True, "context_tokens": 163_400}


@pytest.mark.parametrize(
    ("other", "due"),
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
    plugin: PluginCopy, other: dict[str, object], due: bool
) -> None:
    """Only its continuation is expensive."""
    assert reaches_engine(plugin, "SessionStart", {**COLD, **other}) is due


@pytest.mark.parametrize(("size", "due"), [(100_000_001, True), (99_000_000, False)])
def test_a_resume_of_a_giant_file_starts_python(
    plugin: PluginCopy, tmp_path: Path, size: int, due: bool
) -> None:
    """Python reports the size. A missing file is not reported."""
    path = tmp_path / "no project" / "a giant.jsonl"
    path.parent.mkdir()
    assert not reaches_engine(
        plugin, "SessionStart", {"source": "resume", "transcript_path": str(path)}
    )
    with path.open("wb") as file:
        file.truncate(size)
    assert (
        reaches_engine(plugin, "SessionStart", {"source": "resume", "transcript_path": str(path)})
        is due
    )
    assert not reaches_engine(
        plugin, "SessionStart", {"source": "startup", "transcript_path": str(path)}
    )


def test_only_an_end_by_clear_reaches_the_engine(plugin: PluginCopy) -> None:
    """Only ``/clear`` has a successor, whatever other fields contain."""
    for reason in ("logout", "prompt_input_exit", "other", "resume"):
        assert not reaches_engine(
            plugin, "SessionEnd", {"reason": reason, "title": '"reason":"clear"'}
        ), reason
    assert reaches_engine(plugin, "SessionEnd", {"reason": "clear"})


def test_only_starts_by_clear_and_compaction_reach_the_engine(plugin: PluginCopy) -> None:
    """After /clear there is a link to record, and after a compaction there are facts to restore.

    Nothing else is pending.
    """
    for source in ("startup", "resume", "fork"):
        assert not reaches_engine(
            plugin, "SessionStart", {"source": source, "title": '"source":"clear"'}
        ), source
    assert reaches_engine(plugin, "SessionStart", {"source": "clear"})
    assert reaches_engine(plugin, "SessionStart", {"source": "compact"})


def test_a_startup_reads_a_pending_handoff_until_it_is_reported(plugin: PluginCopy) -> None:
    """Later starts do not read it. Other notes do not matter."""
    (stamps_folder(plugin) / "trim-x.json").touch()
    (stamps_folder(plugin) / f"handoff-4711-{CHILD}.told").touch()
    assert not reaches_engine(plugin, "SessionStart", {"source": "startup"})
    (stamps_folder(plugin) / f"handoff-4712-{CHILD}.json").touch()
    assert reaches_engine(plugin, "SessionStart", {"source": "startup"})
    assert not reaches_engine(plugin, "SessionStart", {"source": "fork"})


@pytest.mark.parametrize("ending", ["json", "told"])
def test_a_resume_of_the_child_reads_its_pending_handoff(plugin: PluginCopy, ending: str) -> None:
    """It may have been announced. A resume of another session starts no Python."""
    (stamps_folder(plugin) / f"handoff-4711-{CHILD}.{ending}").touch()
    assert not reaches_engine(
        plugin, "SessionStart", {"source": "resume", "session_id": CHILD.replace("5", "6")}
    )
    assert reaches_engine(plugin, "SessionStart", {"source": "resume", "session_id": CHILD})


def test_the_engines_reply_to_a_start_is_printed(plugin: PluginCopy) -> None:
    """It is the hook's own reply. At an end nothing is printed."""
    assert plugin.hook("SessionStart", b'{"source":"clear"}').stdout == b"reply of session\n"
    assert plugin.hook("SessionEnd", b'{"reason":"clear"}').stdout == b""


def test_a_start_with_a_ready_engine_starts_no_python(plugin: PluginCopy) -> None:
    """The lock equals the venv's copy, and its Python exists."""
    make_ready(plugin)
    installed = stand_in_installer(plugin)
    end_installer(plugin)
    done = plugin.hook("SessionStart", STARTUP, RESUME_HOOKS_PYTHON="")
    assert (done.returncode, done.stderr) == (0, b"")
    assert not appears_in_time(installed, 1)


@pytest.mark.parametrize("is_ready", [True, False])
def test_the_first_start_prints_one_line(plugin: PluginCopy, is_ready: bool) -> None:
    """It says that the engine is ready or will be, and what to type. Later starts and headless ones print nothing."""
    if is_ready:
        make_ready(plugin)
    stand_in_installer(plugin)
    end_installer(plugin)
    headless = plugin.hook(
        "SessionStart", STARTUP, RESUME_HOOKS_PYTHON="", CLAUDE_CODE_ENTRYPOINT="sdk-cli"
    )
    first, second = (plugin.hook("SessionStart", STARTUP, RESUME_HOOKS_PYTHON="") for _ in range(2))
    said = json.loads(first.stdout)["systemMessage"]
    beginning = (
        "is ready. Type" if is_ready else "is being installed, which takes a minute. Then type"
    )
    assert said.startswith(f"resume-hooks {beginning} /full (in older clients >resume) to see how")
    assert "\n" not in said
    assert (headless.stdout, second.stdout) == (b"", b"")


@pytest.mark.parametrize("says", [True, False])
def test_the_greeting_replaces_an_empty_reply(plugin: PluginCopy, says: bool) -> None:
    """The first start has work, such as sessions that will soon be deleted."""
    make_ready(plugin)
    if not says:
        engine = plugin.root / "src" / "resume_hooks" / "hooks" / "session.py"
        engine.write_text("import sys\ndef main(): sys.stdin.read()\n")
    event = STARTUP.replace(b"{", b'{"transcript_path":"/c/projects/-p/x.jsonl",', 1)
    done = plugin.hook("SessionStart", event, RESUME_HOOKS_PYTHON="")
    assert (b"reply of session" in done.stdout) is says
    assert (b"is ready. Type /full" in done.stdout) is not says


def test_the_first_start_after_a_failed_installation_says_so(plugin: PluginCopy) -> None:
    """The next attempt may be an hour later, so it does not announce one. Another start after it prints nothing."""
    (plugin.data / "greeted").touch()
    (plugin.data / "install.json").write_text('{"state": "failed", "error": "no network"}\n')
    stand_in_installer(plugin)
    end_installer(plugin)
    first, second = (plugin.hook("SessionStart", STARTUP, RESUME_HOOKS_PYTHON="") for _ in range(2))
    said = json.loads(first.stdout)["systemMessage"]
    assert said.startswith("resume-hooks could not be installed. Type /full")
    assert second.stdout == b""


@pytest.mark.parametrize("change", ["no venv", "other lock", "dangling python"])
def test_an_outdated_engine_starts_the_installation(plugin: PluginCopy, change: str) -> None:
    """The hook ends and closes its output before the installation ends."""
    make_ready(plugin)
    if change == "no venv":
        shutil.rmtree(plugin.data / "venv")
    elif change == "other lock":
        (plugin.root / "requirements.lock").write_text("# newer\n")
    else:
        (plugin.data / "venv" / "bin" / "python").unlink()
    installed = stand_in_installer(plugin)
    done = plugin.hook("SessionStart", STARTUP, RESUME_HOOKS_PYTHON="")
    assert (done.returncode, done.stderr) == (0, b"")
    assert not installed.exists()
    end_installer(plugin)
    assert appears_in_time(installed)
    assert installed.read_text() == str(plugin.data)


@pytest.mark.parametrize("own", ["named", "checkout"])
def test_a_users_own_python_prevents_the_installation(plugin: PluginCopy, own: str) -> None:
    """It is RESUME_HOOKS_PYTHON or a .venv next to the plugin."""
    installed = stand_in_installer(plugin)
    end_installer(plugin)
    if own == "checkout":
        python = plugin.root / ".venv" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.symlink_to(plugin.env["RESUME_HOOKS_PYTHON"])
        plugin.hook("SessionStart", STARTUP, RESUME_HOOKS_PYTHON="")
    else:
        plugin.hook("SessionStart", STARTUP)
    assert not appears_in_time(installed, 1)


def test_a_client_without_data_folder_gets_one(plugin: PluginCopy, tmp_path: Path) -> None:
    """Without CLAUDE_PLUGIN_DATA the folder at the same place has our own name."""
    installed = stand_in_installer(plugin)
    end_installer(plugin)
    plugin.hook("SessionStart", STARTUP, RESUME_HOOKS_PYTHON="", CLAUDE_PLUGIN_DATA="")
    assert appears_in_time(installed)
    assert installed.read_text() == str(
        tmp_path / "config" / "plugins" / "data" / "resume-hooks-resume-hooks"
    )


@pytest.mark.parametrize("shell", installed_shells(), ids="-".join)
def test_the_models_shell_knows_our_command_name(
    plugin: PluginCopy, tmp_path: Path, shell: list[str]
) -> None:
    """Openings and digests use it. It runs the plugin of the last start, and other lines in the file stay."""
    named = tmp_path / "env.sh"
    named.write_text("export THEIRS=1\n")
    old, moved = (replace(plugin, root=tmp_path / name) for name in ("it's old", "new version"))
    for each in (old, moved):
        shutil.copytree(plugin.root, each.root)
    for each in (
        old,
        old,
        moved,
        plugin,
    ):  # the last one's path does not stand for itself between quotes
        each.hook(
            "SessionStart",
            STARTUP,
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
