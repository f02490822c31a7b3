"""Tests of shell completion for verbs, options and sessions. Commands in titles must not be run."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from resume_hooks.cli import complete_sessions
from tests.builders import ConfigHome, conversation, custom_title, session_id, write_session
from tests.cli.conftest import Cli, Document
from tests.e2e.harness.processes import wait_until
from tests.needs import REPO, require_for_test

FIRST_ID, SECOND_ID = session_id(0x1A2B3C4D), session_id(0x1A7788FF)
HOSTILE_TITLE = "Fix $(touch owned) `touch owned` *; touch owned, the: parser"
OPTIONS_BY_SHELL = {
    "bash": ["--norc", "--noprofile", "-i"],
    "zsh": ["-f", "-i"],
    "fish": ["--no-config", "-i"],
}
TIMEOUT_SECONDS = 20.0


@pytest.fixture
def completion_folder(config_home: ConfigHome) -> Path:
    """Write two sessions and a program ``resume-hooks``, and return the folder that contains the program.

    One of the sessions has a title that contains shell commands.
    """
    folder = config_home.root / "work"
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "resume-hooks"
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH={REPO / "src"} exec {sys.executable} -m resume_hooks "$@"\n'
    )
    program.chmod(0o755)
    for number, title in ((FIRST_ID, HOSTILE_TITLE), (SECOND_ID, "Speed up the upload")):
        rows = [{**row, "cwd": str(folder)} for row in conversation(1, session_id=number)]
        write_session(
            config_home.project(str(folder)), number, [*rows, custom_title(title, number)]
        )
    return folder


def plain_environment(home: ConfigHome, completion_folder: Path) -> dict[str, str]:
    """Return the environment of a plain terminal."""
    return {
        "PATH": f"{completion_folder / 'bin'}:/usr/bin:/bin",
        "TERM": "xterm",
        "LANG": "C.UTF-8",
        "PS1": "$ ",
        **home.environ,
    }


class Shell:
    """An interactive shell that has loaded the plugin's completion script."""

    def __init__(self, name: str, home: ConfigHome, completion_folder: Path) -> None:
        found = shutil.which(name) or ""
        require_for_test(name, found, f"install {name}")
        done = subprocess.run(
            [str(completion_folder / "bin" / "resume-hooks"), "install", "--completion", name],
            env=plain_environment(home, completion_folder), cwd=completion_folder,
            capture_output=True, check=True, timeout=60,
        )  # fmt: skip
        (completion_folder / "completion").write_bytes(done.stdout)
        self._child: pexpect.spawn[str] = pexpect.spawn(
            found, OPTIONS_BY_SHELL[name], env=plain_environment(home, completion_folder), cwd=str(completion_folder),
            encoding="utf-8",
            dimensions=(40, 160),
        )  # fmt: skip
        self._child.delaybeforesend = None
        begin = {"zsh": "autoload -Uz compinit && compinit -u -D && "}.get(name, "")
        self._child.send(f"{begin}source ./completion; echo rea''dy\r")
        self._child.expect("ready", timeout=TIMEOUT_SECONDS)

    def expect_after_keys(self, keys: str, *expected_texts: str) -> None:
        """Type keys, wait until the terminal shows each of ``expected_texts``, and clear the line."""
        self._wait_for_prompt()
        self._child.send(keys)
        text, until = "", time.monotonic() + TIMEOUT_SECONDS
        while not all(word in text for word in expected_texts):
            assert time.monotonic() < until, text
            with contextlib.suppress(pexpect.TIMEOUT):
                text += self._child.read_nonblocking(4096, timeout=0.05).replace("\x1b[K", "")
        self._child.send("\x15")  # Ctrl+U

    def _wait_for_prompt(self) -> None:
        """Wait until the shell shows its prompt, because it may lose keys that arrive earlier."""
        with contextlib.suppress(pexpect.TIMEOUT):
            while True:
                self._child.read_nonblocking(4096, timeout=0.5)

    def close(self) -> None:
        """End the shell."""
        self._child.close(force=True)


@pytest.fixture(params=list(OPTIONS_BY_SHELL))
def shell(
    request: pytest.FixtureRequest, config_home: ConfigHome, completion_folder: Path
) -> Iterator[Shell]:
    """Return an interactive shell. Each test runs with every supported kind of shell."""
    started = Shell(request.param, config_home, completion_folder)
    yield started
    started.close()


def test_a_real_shell_completes_verbs_and_sessions(shell: Shell, completion_folder: Path) -> None:
    """bash, zsh and fish complete verbs and session ids without running commands that a title contains."""
    shell.expect_after_keys("resume-hooks linea\t", "resume-hooks lineage")
    shell.expect_after_keys("resume-hooks read 1a2\t", "1a2b3c4d")
    shell.expect_after_keys("resume-hooks outline 1a\t\t", "1a2b3c4d", "1a7788ff")
    assert not (completion_folder / "owned").exists()


def completions(
    home: ConfigHome, completion_folder: Path, words: str, shell: str = "bash"
) -> list[str]:
    """Return the completions that the engine prints for a shell."""
    env = plain_environment(home, completion_folder) | {
        "_RESUME_HOOKS_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": words,
    }
    env["COMP_CWORD"] = (
        words.rpartition(" ")[2] if shell == "fish" else str(len(words.split(" ")) - 1)
    )
    done = subprocess.run(
        [str(completion_folder / "bin" / "resume-hooks")],
        env=env,
        cwd=completion_folder,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == b""
    return done.stdout.decode().split("\n")[:-1]


def test_bash_completes_an_id_with_its_title(
    config_home: ConfigHome, completion_folder: Path
) -> None:
    """Bash completes ids, paths, settings and options.

    If several sessions match, each completion also contains the session's title.
    """
    assert completions(config_home, completion_folder, "resume-hooks lin") == ["plain,lineage"]
    assert completions(config_home, completion_folder, "resume-hooks read 1a2") == [
        "plain,1a2b3c4d"
    ]
    assert completions(config_home, completion_folder, "resume-hooks read upload") == [
        "plain,1a7788ff"
    ]
    assert completions(config_home, completion_folder, f"resume-hooks read {FIRST_ID[:9]}") == [
        f"plain,{FIRST_ID}"
    ]
    expected = [
        "plain,1a7788ff  Speed up the upload",
        "plain,1a2b3c4d  Fix (touch owned) touch owned ; touch owned, the parser",
    ]
    # On a busy machine, reading titles may exceed MAX_TITLE_READING_SECONDS. Then they are omitted.
    assert wait_until(
        lambda: completions(config_home, completion_folder, "resume-hooks read 1a") == expected
    )
    assert completions(config_home, completion_folder, "resume-hooks read ./") == ["file,./"]
    assert completions(config_home, completion_folder, "resume-hooks config notice") == [
        "plain,notice_percent"
    ]
    assert "plain,--dry-run" in completions(config_home, completion_folder, "resume-hooks trim --d")


def test_verbs_complete_the_id_of_a_session(
    config_home: ConfigHome, completion_folder: Path
) -> None:
    """Seven verbs that work on a session complete its id."""
    for verb in ("trim", "handoff", "delete", "rename", "fsck", "lineage", "info"):
        assert completions(config_home, completion_folder, f"resume-hooks {verb} 1a2") == [
            "plain,1a2b3c4d"
        ], verb


def test_completion_is_limited_in_number_and_time(
    config_home: ConfigHome, completion_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A completion lists at most 40 of 300 sessions, and omits titles if reading them takes too long."""
    for number in range(300):
        other = session_id(0x2000_0000 + number)
        rows = [{**row, "cwd": str(completion_folder)} for row in conversation(3, session_id=other)]
        write_session(config_home.project(str(completion_folder)), other, rows)
    monkeypatch.chdir(completion_folder)
    assert len(complete_sessions.complete_locators("2")) == complete_sessions.MAX_OFFERED_SESSIONS
    monkeypatch.setattr(complete_sessions, "MAX_TITLE_READING_SECONDS", -1.0)
    assert {item.help for item in complete_sessions.complete_locators("2")} == {"a session"}
    assert complete_sessions.complete_locators("upload") == []


def test_completion_in_a_deleted_folder_prints_nothing(
    config_home: ConfigHome, completion_folder: Path
) -> None:
    """In a deleted folder, a completion prints nothing."""
    gone = completion_folder / "gone"
    gone.mkdir()
    env = plain_environment(config_home, completion_folder) | {
        "_RESUME_HOOKS_COMPLETE": "bash_complete",
        "COMP_CWORD": "2",
    }
    env["COMP_WORDS"] = "resume-hooks read 1"
    script = f"cd {gone} && rmdir {gone} && exec resume-hooks"
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=env, capture_output=True, check=False, timeout=60
    )
    assert done.stdout.strip() == b""
    assert b"resume-hooks" not in done.stderr


def test_install_prints_the_completion_script(cli: Cli, document: Document) -> None:
    """``install --completion`` prints the completion script for a shell.

    With ``--json``, it prints a document that contains the script.
    """
    data = document("install", "--completion", "zsh")["data"]
    assert (data["ran"], data["commands"]) == (False, [])
    assert data["script"].startswith("#compdef resume-hooks")
    assert os.fsencode("complete -o nosort") in cli("install", "--completion", "bash").stdout
