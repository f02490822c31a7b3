"""Tab in real shells: verbs, options, sessions by id and by a part of their title.

Nothing of a title is ever run.
"""

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
from tests.needs import REPO, need

FIRST, SECOND = session_id(0x1A2B3C4D), session_id(0x1A7788FF)
HOSTILE = "Fix $(touch owned) `touch owned` *; touch owned, the: parser"
SHELLS = {
    "bash": ["--norc", "--noprofile", "-i"],
    "zsh": ["-f", "-i"],
    "fish": ["--no-config", "-i"],
}
TIMEOUT = 20.0


@pytest.fixture
def desk(config_home: ConfigHome) -> Path:
    """A folder with two sessions, one of a hostile title, and ``resume-hooks`` on PATH."""
    folder = config_home.root / "desk"
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "resume-hooks"
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH={REPO / "src"} exec {sys.executable} -m resume_hooks "$@"\n'
    )
    program.chmod(0o755)
    for number, title in ((FIRST, HOSTILE), (SECOND, "Speed up the upload")):
        rows = [{**row, "cwd": str(folder)} for row in conversation(1, session_id=number)]
        write_session(
            config_home.project(str(folder)), number, [*rows, custom_title(title, number)]
        )
    return folder


def environment(home: ConfigHome, desk: Path) -> dict[str, str]:
    """That of a plain terminal."""
    return {
        "PATH": f"{desk / 'bin'}:/usr/bin:/bin",
        "TERM": "xterm",
        "LANG": "C.UTF-8",
        "PS1": "$ ",
        **home.environ,
    }


class Shell:
    """An interactive shell that has read our completion."""

    def __init__(self, name: str, home: ConfigHome, desk: Path) -> None:
        found = shutil.which(name) or ""
        need(name, found, f"install {name}")
        done = subprocess.run(
            [str(desk / "bin" / "resume-hooks"), "install", "--completion", name],
            env=environment(home, desk), cwd=desk, capture_output=True, check=True, timeout=60,
        )  # fmt: skip
        (desk / "completion").write_bytes(done.stdout)
        self._child: pexpect.spawn[str] = pexpect.spawn(
            found, SHELLS[name], env=environment(home, desk), cwd=str(desk), encoding="utf-8", dimensions=(40, 160),
        )  # fmt: skip
        self._child.delaybeforesend = None
        begin = {"zsh": "autoload -Uz compinit && compinit -u -D && "}.get(name, "")
        self._child.send(f"{begin}source ./completion; echo rea''dy\r")
        self._child.expect("ready", timeout=TIMEOUT)

    def shows(self, keys: str, *wanted: str) -> None:
        """Type keys, and wait until all of this is on the terminal; then clear the line."""
        self._settle()
        self._child.send(keys)
        text, until = "", time.monotonic() + TIMEOUT
        while not all(word in text for word in wanted):
            assert time.monotonic() < until, text
            with contextlib.suppress(pexpect.TIMEOUT):
                text += self._child.read_nonblocking(4096, timeout=0.05).replace("\x1b[K", "")
        self._child.send("\x15")  # Ctrl+U

    def _settle(self) -> None:
        """Wait until the shell has drawn its prompt, because earlier keys may be lost."""
        with contextlib.suppress(pexpect.TIMEOUT):
            while True:
                self._child.read_nonblocking(4096, timeout=0.5)

    def close(self) -> None:
        """End the shell."""
        self._child.close(force=True)


@pytest.fixture(params=list(SHELLS))
def shell(request: pytest.FixtureRequest, config_home: ConfigHome, desk: Path) -> Iterator[Shell]:
    """Run the test in each shell."""
    started = Shell(request.param, config_home, desk)
    yield started
    started.close()


def test_in_a_real_shell(shell: Shell, desk: Path) -> None:
    """A verb, an option, an id and a title; a title's text is never run."""
    shell.shows("resume-hooks linea\t", "resume-hooks lineage")
    shell.shows("resume-hooks read 1a2\t", "1a2b3c4d")
    shell.shows("resume-hooks outline 1a\t\t", "1a2b3c4d", "1a7788ff")
    assert not (desk / "owned").exists()


def completed(home: ConfigHome, desk: Path, words: str, shell: str = "bash") -> list[str]:
    """Return the completions for a shell, one item per line."""
    env = environment(home, desk) | {
        "_RESUME_HOOKS_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": words,
    }
    env["COMP_CWORD"] = (
        words.rpartition(" ")[2] if shell == "fish" else str(len(words.split(" ")) - 1)
    )
    done = subprocess.run(
        [str(desk / "bin" / "resume-hooks")],
        env=env,
        cwd=desk,
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == b""
    return done.stdout.decode().split("\n")[:-1]


def test_the_completions_for_bash(config_home: ConfigHome, desk: Path) -> None:
    """If there is a choice, a title next to the id; otherwise only the id."""
    assert completed(config_home, desk, "resume-hooks lin") == ["plain,lineage"]
    assert completed(config_home, desk, "resume-hooks read 1a2") == ["plain,1a2b3c4d"]
    assert completed(config_home, desk, "resume-hooks read upload") == ["plain,1a7788ff"]
    assert completed(config_home, desk, f"resume-hooks read {FIRST[:9]}") == [f"plain,{FIRST}"]
    shown = completed(config_home, desk, "resume-hooks read 1a")
    assert (
        shown
        == [
            "plain,1a7788ff  Speed up the upload",
            "plain,1a2b3c4d  Fix (touch owned) touch owned ; touch owned, the parser",
        ]
        or shown[::-1] == shown
    )
    assert completed(config_home, desk, "resume-hooks read ./") == ["file,./"]
    assert completed(config_home, desk, "resume-hooks config notice") == ["plain,notice_percent"]
    assert "plain,--dry-run" in completed(config_home, desk, "resume-hooks trim --d")


def test_every_verb_that_takes_a_session_completes_it(config_home: ConfigHome, desk: Path) -> None:
    """Every verb with SESSION in its usage line."""
    for verb in ("trim", "handoff", "delete", "rename", "fsck", "lineage", "info"):
        assert completed(config_home, desk, f"resume-hooks {verb} 1a2") == ["plain,1a2b3c4d"], verb


def test_no_more_than_a_choice_in_a_moment(
    config_home: ConfigHome, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 300 sessions 40 are offered.

    Once the moment for titles is over they are offered by their ids alone.
    """
    for number in range(300):
        other = session_id(0x2000_0000 + number)
        rows = [{**row, "cwd": str(desk)} for row in conversation(3, session_id=other)]
        write_session(config_home.project(str(desk)), other, rows)
    monkeypatch.chdir(desk)
    assert len(complete_sessions.complete_locators("2")) == complete_sessions.MAX_SESSIONS
    monkeypatch.setattr(complete_sessions, "TITLE_SECONDS", -1.0)
    assert {item.help for item in complete_sessions.complete_locators("2")} == {"a session"}
    assert complete_sessions.complete_locators("upload") == []


def test_a_folder_that_is_gone_offers_nothing(config_home: ConfigHome, desk: Path) -> None:
    """There is no message while the user types."""
    gone = desk / "gone"
    gone.mkdir()
    env = environment(config_home, desk) | {
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


def test_the_script_as_a_document(cli: Cli, document: Document) -> None:
    """The script for bash and zsh."""
    data = document("install", "--completion", "zsh")["data"]
    assert (data["ran"], data["commands"]) == (False, [])
    assert data["script"].startswith("#compdef resume-hooks")
    assert os.fsencode("complete -o nosort") in cli("install", "--completion", "bash").stdout
