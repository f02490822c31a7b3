"""Define what a test can do with a client's screen, on either kind of terminal.

Every wait polls the screen; there is no fixed sleep.
"""

from __future__ import annotations

import math
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from tests.e2e.harness.home import ClientHome
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.harness.printing import client_arguments
from tests.e2e.harness.processes import MAX_WAIT_SECONDS, is_process_asleep, wait_until
from tests.e2e.harness.versions import ClientVersion

COLUMNS, ROWS = 120, 50
PROMPT_SIGN = "\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}"
# The top of the input box: a horizontal rule, and the prompt sign at the start of the next line.
_INPUT_BOX_TOP_PATTERN = rf"^─{{20,}}.*\n{PROMPT_SIGN}"
_INPUT_BOX_PATTERN = rf"^─{{20,}}.*\n{PROMPT_SIGN}(.*(?:\n.*)*?)\n─{{20,}}"
_IDLE_SECONDS = 0.8
_IDLE_SECONDS_OF_SLEEPING_CLIENT = 0.25
"""Number of seconds after which a client counts as idle if its process sleeps.

The screen must not change during this time.
"""

_RESTORE_SECONDS = 5.0
"""Maximum number of seconds that a client needs to restore a blocked prompt to its input box."""


class Terminal(ABC):
    """A client on a screen of 120 columns and 50 rows. Leaving the ``with`` block ends the client."""

    def __init__(
        self,
        version: ClientVersion,
        home: ClientHome,
        api: MockApi,
        *,
        columns: int = COLUMNS,
        rows: int = ROWS,
    ) -> None:
        """Prepare the terminal. ``start`` starts the client."""
        self.version, self.home, self.api = version, home, api
        self.columns, self.rows = columns, rows

    def start(
        self,
        args: Sequence[str] = (),
        *,
        resume: str | None = None,
        plugin_dir: Path | None = None,
        extra_env: Mapping[str, str] | None = None,
        must_be_ready: bool = True,
    ) -> Self:
        """Start the client with ``args``, and wait for its input box if ``must_be_ready`` is True."""
        command = [*self.version.command, *client_arguments(resume, plugin_dir, args)]
        env = self.home.env(self.api.client_env() | dict(extra_env or {}))
        self._launch(command, env)
        if must_be_ready:
            self.wait_until_ready()
        return self

    @abstractmethod
    def _launch(self, command: list[str], env: dict[str, str]) -> None:
        """Run ``command`` on a new screen."""

    @abstractmethod
    def type(self, text: str) -> None:
        """Type ``text`` without Enter at its end."""

    @abstractmethod
    def key(self, name: str) -> None:
        """Press the key that tmux calls ``name``: Enter, Escape (or Esc), Tab, Up, BSpace, C-c, C-u, M-x..."""

    @abstractmethod
    def paste(self, text: str) -> None:
        """Paste ``text`` as a bracketed paste."""

    @abstractmethod
    def screen(self) -> list[str]:
        """Return the visible lines from top to bottom, without trailing blanks."""

    @abstractmethod
    def resize(self, columns: int, rows: int) -> None:
        """Change the window's size. The client then redraws the screen."""

    @property
    @abstractmethod
    def pid(self) -> int:
        """The id of the client's process."""

    @abstractmethod
    def is_running(self) -> bool:
        """Check whether the client still runs."""

    @abstractmethod
    def close(self) -> None:
        """End the client and its screen. Do nothing if neither is running."""

    def text(self) -> str:
        """Return the screen as one string."""
        return "\n".join(self.screen())

    def submit(self, text: str) -> None:
        """Type a line, wait until the input box shows the end of the line, and press Enter.

        The client would treat the Enter as part of a paste if it read the line and the Enter
        together.
        """
        self.type(text)
        self.wait_for(re.escape(text[-20:].strip()))
        self.key("Enter")

    def submit_paste(self, text: str) -> None:
        """Paste a line, wait until the input box shows its end, and press Enter."""
        self.paste(text)
        end = "".join(text.split())[-12:]
        shown = wait_until(lambda: "".join(self.input_text().split()).endswith(end))
        self._fail_unless(shown, f"{text!r} is not in the box")
        self.key("Enter")

    def clear_restored_prompt(self) -> None:
        """Wait until the client has restored the blocked prompt to the input box, and press Ctrl+C once.

        For 0.8 s after that, a second Ctrl+C would quit the client. If a new client runs the
        plugin's module, the box may already be empty; then no key is pressed.
        """
        wait_until(lambda: bool(self.input_text()), _RESTORE_SECONDS)
        self.wait_until_idle()
        if self.input_text():
            self.key("C-c")
            self._fail_unless(wait_until(lambda: not self.input_text()), "the box is not empty")
            self.wait_until_idle(1)

    def wait_for(self, pattern: str, timeout: float = MAX_WAIT_SECONDS) -> re.Match[str]:
        """Wait until the regular expression ``pattern`` matches on the screen, and return the match.

        Raises AssertionError with the screen's text after ``timeout`` seconds. ``^`` and ``$``
        match at the ends of each line.
        """
        found: list[re.Match[str]] = []

        def is_shown() -> bool:
            found.extend(re.finditer(pattern, self.text(), re.MULTILINE))
            return bool(found)

        self._fail_unless(wait_until(is_shown, timeout), f"no {pattern!r} within {timeout} s")
        return found[0]

    def wait_until_gone(self, pattern: str, timeout: float = MAX_WAIT_SECONDS) -> None:
        """Wait until the screen no longer matches ``pattern``. Raises AssertionError like ``wait_for``."""
        gone = wait_until(lambda: not re.search(pattern, self.text(), re.MULTILINE), timeout)
        self._fail_unless(gone, f"{pattern!r} still there after {timeout} s")

    def wait_until_ready(self, timeout: float = MAX_WAIT_SECONDS) -> None:
        """Wait until the input box is visible and the screen no longer changes."""
        self.wait_for(_INPUT_BOX_TOP_PATTERN, timeout)
        self.wait_until_idle()

    def wait_until_idle(
        self, idle_seconds: float = _IDLE_SECONDS, timeout: float = MAX_WAIT_SECONDS
    ) -> None:
        """Wait until the screen has not changed for ``idle_seconds`` seconds.

        The spinner of a working client changes the screen all the time. With the default ``idle_seconds``,
        the wait ends earlier if the client's process is sleeping too.
        """
        last, since = self.text(), time.monotonic()
        worked = since if idle_seconds == _IDLE_SECONDS else math.inf

        def is_screen_idle() -> bool:
            nonlocal last, since, worked
            now, at = self.text(), time.monotonic()
            if now != last:
                last, since = now, at
            if worked < math.inf and not is_process_asleep(self.pid):
                worked = at
            return (
                at - since >= idle_seconds
                or at - max(since, worked) >= _IDLE_SECONDS_OF_SLEEPING_CLIENT
            )

        self._fail_unless(
            wait_until(is_screen_idle, timeout), f"the screen never rested for {idle_seconds} s"
        )

    def input_text(self) -> str:
        """Return the text in the input box, lines joined by newlines, or "" if the box is empty."""
        boxes = re.findall(_INPUT_BOX_PATTERN, self.text(), re.MULTILINE)
        return "\n".join(line.strip() for line in boxes[-1].split("\n")).strip() if boxes else ""

    def _fail_unless(self, condition: object, complaint: str) -> None:
        if not condition:
            state = "running" if self.is_running() else "gone"
            msg = f"{complaint} (client {self.version}, {state}); the screen:\n{self.text()}"
            raise AssertionError(msg)

    def __enter__(self) -> Self:
        """Return this terminal. The test starts the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the client, even if the test failed."""
        self.close()
