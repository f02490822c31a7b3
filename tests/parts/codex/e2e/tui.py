"""Codex in a terminal: the same terminal as for the other client, with Codex's prompt sign and start."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Self, cast

from tests.e2e.harness.home import ClientHome
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.harness.tui import Tui
from tests.e2e.harness.versions import ClientVersion
from tests.parts.codex.e2e.client import CodexHome

SIGN = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
"""What stands before the input box, and before each prompt that was sent."""

READY = rf"^{SIGN} Ask Codex to do anything"


class CodexTui(Tui):
    """The TUI of Codex under pexpect and pyte."""

    def __init__(self, home: CodexHome) -> None:
        """Prepare the terminal; the client runs from ``run`` on."""
        version = ClientVersion(f"codex {home.version}", (str(home.binary),))
        # Of a home the terminal asks for its folder alone, of an API for nothing.
        super().__init__(version, cast("ClientHome", home), cast("MockApi", home.api))

    def run(self, *words: str, extra_env: Mapping[str, str] | None = None) -> Self:
        """Start the client and wait for its input box."""
        home = cast("CodexHome", self.home)
        self._launch([*self.version.command, *words], home.env() | dict(extra_env or {}))
        self.wait_for(READY, 40)
        return self

    def enter(self, line: str) -> None:
        """Type a line into the empty box and send it after a pause, because an immediate Enter belongs to a paste."""
        self.wait_for(READY)
        self.type(line)
        self.wait_for(rf"^{SIGN} {re.escape(line[:40])}")
        self.wait_idle(0.4)
        self.key("Enter")
