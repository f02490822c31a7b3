"""Run the client on a pseudo-terminal.

A thread reads the client's output all the time, so that the client never waits for a reader.
"""

from __future__ import annotations

import threading
from contextlib import suppress

import pexpect

from tests.e2e.harness.emulator import Emulator
from tests.e2e.harness.keys import PASTE_END, PASTE_START, bytes_of_key
from tests.e2e.harness.processes import end_process
from tests.e2e.harness.terminal import Terminal

_CHUNK_BYTES = 65536
_POLL_SECONDS = 0.1


class Tui(Terminal):
    """The client on a pseudo-terminal that pexpect runs, with a screen that pyte emulates."""

    _child: pexpect.spawn[bytes] | None = None
    _emulator: Emulator | None = None
    _reader: threading.Thread | None = None

    def _launch(self, command: list[str], env: dict[str, str]) -> None:
        self._lock = threading.Lock()
        self._child = pexpect.spawn(
            command[0],
            command[1:],
            cwd=str(self.home.cwd),
            env=env,
            dimensions=(self.rows, self.columns),
            timeout=None,
        )
        self._child.delaybeforesend = None
        self._emulator = Emulator(self.columns, self.rows, self._send)
        self._reader = threading.Thread(target=self._read_output, name="tui-reader", daemon=True)
        self._reader.start()

    def _read_output(self) -> None:
        """Read the client's output until the client closes its end of the terminal."""
        child, emulator = self._child_and_emulator()
        while True:
            try:
                data = child.read_nonblocking(_CHUNK_BYTES, timeout=_POLL_SECONDS)
            except pexpect.TIMEOUT:
                continue
            except (pexpect.EOF, OSError, ValueError):
                return
            with self._lock:
                emulator.feed(data)

    def _child_and_emulator(self) -> tuple[pexpect.spawn[bytes], Emulator]:
        if self._child is None or self._emulator is None:
            msg = "the TUI is not running: call start()"
            raise RuntimeError(msg)
        return self._child, self._emulator

    def _send(self, data: bytes) -> None:
        self._child_and_emulator()[0].send(data)

    def type(self, text: str) -> None:
        """Type ``text`` without Enter at its end."""
        self._send(text.encode())

    def key(self, name: str) -> None:
        """Press the key that tmux calls ``name``."""
        self._send(bytes_of_key(name))

    def paste(self, text: str) -> None:
        """Paste ``text`` as a bracketed paste."""
        self._send(PASTE_START + text.encode() + PASTE_END)

    def screen(self) -> list[str]:
        """Return the visible lines from top to bottom, without trailing blanks."""
        emulator = self._child_and_emulator()[1]
        with self._lock:
            return emulator.lines()

    def clipboard_writes(self) -> list[str]:
        """Return the texts that the client copied to the clipboard with OSC 52 sequences, oldest first."""
        emulator = self._child_and_emulator()[1]
        with self._lock:
            return emulator.clipboard_writes()

    def resize(self, columns: int, rows: int) -> None:
        """Change the window's size. The client then redraws the screen."""
        child, emulator = self._child_and_emulator()
        with self._lock:
            emulator.resize(columns, rows)
        child.setwinsize(rows, columns)
        self.columns, self.rows = columns, rows

    @property
    def pid(self) -> int:
        """The id of the client's process."""
        return self._child_and_emulator()[0].pid or 0

    def is_running(self) -> bool:
        """Check whether the client still runs."""
        return self._child is not None and bool(self._child.isalive())

    def close(self) -> None:
        """End the client and its terminal. Do nothing if neither is running."""
        if self._child is None:
            return
        if self._child.pid is not None:
            end_process(self._child.pid)
        if self._reader is not None:
            self._reader.join(timeout=5)
        with suppress(pexpect.ExceptionPexpect):
            self._child.close(force=True)
        self._child = None
