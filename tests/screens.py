"""Run resume-hooks on a pseudo-terminal and emulate the terminal's screen."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import pexpect

from tests.e2e.harness.emulator import Emulator
from tests.e2e.harness.keys import bytes_of_key
from tests.e2e.harness.processes import end_process
from tests.needs import REPO

TIMEOUT_SECONDS = 30.0
ENTER_ALTERNATE_SCREEN, LEAVE_ALTERNATE_SCREEN = b"\x1b[?1049h", b"\x1b[?1049l"
HIDE_CURSOR, SHOW_CURSOR = b"\x1b[?25l", b"\x1b[?25h"

_SHELL_SCRIPT = """\
trap : INT
stty -g > "$LEFT/before"
"$PYTHON" -m resume_hooks "$@"
echo $? > "$LEFT/code"
stty -g > "$LEFT/after"
"""


class Screen:
    """``resume-hooks`` on a terminal.

    A shell starts the program and saves the terminal's settings before and after the run.
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        folder: Path,
        environ: Mapping[str, str],
        notes: Path,
        columns: int = 120,
        rows: int = 40,
    ) -> None:
        """Start the program. The shell writes its files to the folder ``notes``."""
        notes.mkdir(exist_ok=True)
        self._notes = notes
        env = {
            "PATH": "/usr/bin:/bin",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "RESUME_HOOKS_CLIPBOARD": "none",
            "PYTHONPATH": str(REPO / "src"),
            "PYTHON": sys.executable,
            "LEFT": str(notes),
            **environ,
        }
        self._child: pexpect.spawn[bytes] = pexpect.spawn(
            "/bin/sh",
            ["-c", _SHELL_SCRIPT, "sh", *words],
            cwd=str(folder),
            env=env,
            dimensions=(rows, columns),
            timeout=None,
        )
        self._child.delaybeforesend = None
        self._emulator = Emulator(columns, rows, self._send_to_program)

    def __enter__(self) -> Self:
        """Return this screen, whose program is running."""
        return self

    def __exit__(self, *_: object) -> None:
        """End every process that is still running."""
        for pid in [*self._child_pids(), *([self._child.pid] if self._child.pid else [])]:
            end_process(pid)
        self._child.close(force=True)

    @property
    def raw(self) -> bytes:
        """Return all bytes that the program has printed so far."""
        return bytes(self._emulator.raw)

    def _send_to_program(self, data: bytes) -> None:
        self._child.send(data)

    def type(self, text: str) -> None:
        """Type ``text``."""
        self._child.send(text.encode())

    def key(self, name: str) -> None:
        """Press the key that tmux calls ``name``."""
        self._child.send(bytes_of_key(name))

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the window."""
        self._emulator.resize(columns, rows)
        self._child.setwinsize(rows, columns)

    def text(self) -> str:
        """Return the current text of the screen."""
        self._read_output()
        return "\n".join(self._emulator.lines())

    def wait_for(self, pattern: str, timeout: float = TIMEOUT_SECONDS) -> re.Match[str]:
        """Wait until the regular expression ``pattern`` matches on the screen, and return the match.

        Raises AssertionError with the screen's text after ``timeout`` seconds.
        """
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            found = re.search(pattern, self.text(), re.MULTILINE)
            if found:
                return found
        raise AssertionError(f"no {pattern!r} within {timeout} s; the screen:\n{self.text()}")

    def send_signal(self, number: int) -> None:
        """Send a signal to the program."""
        for pid in self._child_pids():
            os.kill(pid, number)

    def wait_for_end(self) -> int:
        """Wait until the program ends, and return its exit code."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            self._read_output()
            if (self._notes / "after").is_file() and not self._child.isalive():
                self._read_output()  # Read the output that the program has printed in the meantime.
                return int((self._notes / "code").read_text())
        raise AssertionError(f"it never ended; the screen:\n{self.text()}")

    def close_terminal(self) -> int:
        """Close the terminal, wait until the program ends, and return its exit code.

        The code is 0 if the shell could not save it, because closing the terminal ended the shell
        too.
        """
        pids = self._child_pids()
        self._child.ptyproc.fileobj.close()  # type: ignore[attr-defined]  # pexpect declares no type
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while time.monotonic() < deadline and any(_is_running(pid) for pid in pids):
            time.sleep(0.01)
        assert not any(_is_running(pid) for pid in pids), "it still runs without its terminal"
        code = self._notes / "code"
        return int(code.read_text() or 0) if code.is_file() else 0

    def is_terminal_restored(self) -> bool:
        """Check whether the terminal has the same settings, screen and cursor as before the run."""
        settings = [(self._notes / name).read_text() for name in ("before", "after")]
        left_at, entered_at = map(self.raw.rfind, (LEAVE_ALTERNATE_SCREEN, ENTER_ALTERNATE_SCREEN))
        return (
            settings[0] == settings[1]
            and left_at >= entered_at
            and self.raw.rfind(SHOW_CURSOR) >= self.raw.rfind(HIDE_CURSOR)
        )

    def _read_output(self) -> None:
        try:
            self._emulator.feed(self._child.read_nonblocking(65_536, timeout=0.05))
        except (pexpect.TIMEOUT, pexpect.EOF, OSError):
            time.sleep(0.01)

    def _child_pids(self) -> list[int]:
        """Return the ids of the shell's child processes."""
        pid = self._child.pid
        try:
            return [
                int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            ]
        except OSError:
            return []


def _is_running(pid: int) -> bool:
    """Check whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
