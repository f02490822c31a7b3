"""Control Codex in a terminal as other tests control Claude Code. Codex has its own prompt sign."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Self, cast

from tests.e2e.harness.home import ClientHome
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.harness.tui import Tui
from tests.e2e.harness.versions import ClientVersion
from tests.parts.codex.e2e.client import CodexHome

PROMPT_SIGN = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
"""The sign before the input box and before each sent prompt."""

READY_PATTERN = rf"^{PROMPT_SIGN} Ask Codex to do anything"


class CodexTui(Tui):
    """The screen of Codex under pexpect and pyte."""

    def __init__(self, home: CodexHome) -> None:
        """Prepare the terminal. ``run`` starts the client."""
        version = ClientVersion(f"codex {home.version}", (str(home.binary),))
        # The terminal uses only the home's folder and does not use the API.
        super().__init__(version, cast("ClientHome", home), cast("MockApi", home.api))

    def run(self, *words: str, extra_env: Mapping[str, str] | None = None) -> Self:
        """Start the client and wait for its input box."""
        home = cast("CodexHome", self.home)
        self._launch([*self.version.command, *words], home.env() | dict(extra_env or {}))
        self.wait_for(READY_PATTERN, 40)
        return self

    def enter(self, line: str) -> None:
        """Type a line into the empty box, wait, and press Enter.

        Codex treats an immediate Enter as part of a paste.
        """
        self.wait_for(READY_PATTERN)
        self.type(line)
        self.wait_for(rf"^{PROMPT_SIGN} {re.escape(line[:40])}")
        self.wait_until_idle(0.4)
        self.key("Enter")
