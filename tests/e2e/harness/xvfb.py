"""Owns a private X server and the reading of its clipboard.

No call waits for a selection owner that is stuck.
"""

from __future__ import annotations

import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from tests.e2e.harness.processes import end_process

_START_TIMEOUT = 15.0


class XServer:
    """Runs Xvfb on a free display for the length of a `with` block."""

    display: str

    def __enter__(self) -> Self:
        """Start the server, which chooses a display and prints it when it accepts connections."""
        reader, writer = os.pipe()
        command = [
            "Xvfb",
            "-displayfd",
            str(writer),
            "-screen",
            "0",
            "640x480x8",
            "-nolisten",
            "tcp",
        ]
        self._process = subprocess.Popen(
            command,
            pass_fds=[writer],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(writer)
        with os.fdopen(reader, encoding="ascii") as answer:
            ready, _, _ = select.select([answer], [], [], _START_TIMEOUT)
            number = answer.readline().strip() if ready else ""
        if not number:
            self._stop()
            msg = "Xvfb did not start"
            raise RuntimeError(msg)
        self.display = f":{number}"
        return self

    def __exit__(self, *_: object) -> None:
        """End the server, and with it every client that owned a selection on it."""
        self._stop()

    def _stop(self) -> None:
        end_process(self._process.pid)
        self._process.wait(timeout=5)

    @contextmanager
    def owner(self, text: str) -> Iterator[None]:
        """Have another program own the clipboard with `text` for the length of a `with` block."""
        command = ["xclip", "-selection", "clipboard", "-i", "-quiet"]
        with subprocess.Popen(
            command, env=self._env(), stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            try:
                if process.stdin is not None:
                    process.stdin.write(text.encode())
                    process.stdin.close()
                yield
            finally:
                end_process(process.pid)

    def _env(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", os.defpath), "DISPLAY": self.display}

    def clipboard(self, timeout: float = 5) -> str:
        """Return the clipboard's text, or "" if nobody owns it.

        Raises subprocess.TimeoutExpired if the owner hangs.
        """
        done = subprocess.run(
            ["xclip", "-selection", "clipboard", "-o"],
            env=self._env(),
            capture_output=True,
            encoding="utf-8",
            timeout=timeout,
            check=False,
        )
        return done.stdout
