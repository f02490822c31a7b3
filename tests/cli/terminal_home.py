"""A home for tests of the chooser on a terminal."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

from resume_hooks.sessions.locate import sessions_in_project_folder
from tests.builders import (
    ConfigHome,
    conversation,
    custom_title,
    session_id,
    write_session,
)
from tests.screens import Screen

FAKE_CLIENT_SCRIPT = """#!/bin/sh
echo "STARTED $* IN ${PWD##*/}"
echo "CONFIG ${CLAUDE_CONFIG_DIR##*/} OUTER ${CLAUDECODE-none} ${CLAUDE_CODE_CHILD_SESSION-none}"
echo "KEPT $CLAUDE_CODE_USE_BEDROCK"
"""


HOUR_SECONDS = 3_600


class TerminalHome:
    """A home with a project, a fake client, and terminals that run ``resume-hooks``."""

    def __init__(self, home: ConfigHome, stack: ExitStack) -> None:
        """Write three sessions into the project. The first session is the newest."""
        self.home, self._stack, self._screens = home, stack, 0
        self.project, self.bin = home.root / "proj", home.root / "bin"
        for folder in (self.project, self.bin):
            folder.mkdir()
        client = self.bin / "claude"
        client.write_text(FAKE_CLIENT_SCRIPT)
        client.chmod(0o755)
        for number, title in enumerate(("Fix the parser", "Write the docs", "Fix the lexer"), 1):
            self.write_session(number, title)

    def write_session(
        self,
        number: int,
        title: str,
        folder: Path | None = None,
        turns: int = 2,
        age: float = HOUR_SECONDS,
    ) -> Path:
        """Write a session that was last changed ``number * age`` seconds ago, and return its path."""
        at = str(folder or self.project)
        records = [
            {**record, "cwd": at} for record in conversation(turns, session_id=session_id(number))
        ]
        rows = [*records, custom_title(title, session_id(number))]
        return Path(
            write_session(
                self.home.project(at), session_id(number), rows, mtime=time.time() - number * age
            )
        )

    def run(
        self,
        *words: str,
        columns: int = 120,
        rows: int = 40,
        cwd: Path | None = None,
        **environ: str,
    ) -> Screen:
        """Run ``resume-hooks`` with these words on a new terminal, and return its screen."""
        self._screens += 1
        screen = Screen(
            words,
            folder=cwd or self.project,
            environ={"PATH": f"{self.bin}:/usr/bin:/bin", **self.home.environ, **environ},
            notes=self.home.root / f"notes{self._screens}",
            columns=columns,
            rows=rows,
        )
        return self._stack.enter_context(screen)

    def empty_folder(self) -> Path:
        """Create a folder without sessions and return it."""
        folder = self.home.root / "elsewhere"
        folder.mkdir()
        return folder

    def session_ids(self) -> set[str]:
        """Return the ids of the project's sessions."""
        return {
            found.session_id
            for found in sessions_in_project_folder(str(self.home.project(str(self.project))))
        }
