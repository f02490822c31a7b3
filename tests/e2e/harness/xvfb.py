"""Run a private X server and read its clipboard.

If the program that owns the clipboard hangs, no call waits for it forever.
"""

from __future__ import annotations

import os
import select
import subprocess
from typing import Self

from tests.e2e.harness.processes import end_process

_START_TIMEOUT_SECONDS = 15.0


class XServer:
    """An Xvfb server on a free display, which runs inside a ``with`` block."""

    display: str

    def __enter__(self) -> Self:
        """Start the server, and wait until it accepts connections and has printed its display number."""
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
            ready, _, _ = select.select([answer], [], [], _START_TIMEOUT_SECONDS)
            number = answer.readline().strip() if ready else ""
        if not number:
            self._stop()
            msg = "Xvfb did not start"
            raise RuntimeError(msg)
        self.display = f":{number}"
        return self

    def __exit__(self, *_: object) -> None:
        """End the server, which also ends every program that owns its clipboard."""
        self._stop()

    def _stop(self) -> None:
        end_process(self._process.pid)
        self._process.wait(timeout=5)

    def _env(self) -> dict[str, str]:
        return {"PATH": os.environ.get("PATH", os.defpath), "DISPLAY": self.display}

    def read_clipboard(self, timeout_seconds: float = 5) -> str:
        """Return the clipboard's text, or "" if no program owns the clipboard.

        Raises subprocess.TimeoutExpired if the program that owns it hangs.
        """
        done = subprocess.run(
            ["xclip", "-selection", "clipboard", "-o"],
            env=self._env(),
            capture_output=True,
            encoding="utf-8",
            timeout=timeout_seconds,
            check=False,
        )
        return done.stdout
