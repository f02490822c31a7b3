"""Functions that write sessions of a given age, with the files that the client keeps next to them."""

from __future__ import annotations

import os
import time
from pathlib import Path

from resume_hooks.sessions.session_files import SessionFile, session_file
from tests.builders import CWD, ConfigHome, conversation, session_id, write_session

DAY = 86_400


def session_of_age(home: ConfigHome, number: int, days: float, cwd: str = CWD) -> SessionFile:
    """Write a session that was last written ``days`` days ago."""
    own_id = session_id(number)
    path = write_session(
        home.project(cwd),
        own_id,
        conversation(1, session_id=own_id),
        mtime=time.time() - days * DAY,
    )
    return session_file(path)


def write_tool_output(session: SessionFile, days: float, name: str = "out.txt") -> Path:
    """Write a large tool output of a session, last changed ``days`` days ago, and return its path."""
    path = Path(session.path.removesuffix(".jsonl")) / "tool-results" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("out\n", encoding="utf-8")
    os.utime(path, (time.time() - days * DAY,) * 2)
    return path


def write_file_backups(home: ConfigHome, session: SessionFile, days: float, count: int = 1) -> Path:
    """Write ``count`` file backups of a session, dated ``days`` days ago, and return their folder."""
    folder = home.config / "file-history" / session.session_id
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"{number:016x}@v1").write_text("was\n", encoding="utf-8")
    os.utime(folder, (time.time() - days * DAY,) * 2)
    return folder


def never_over_time_limit() -> bool:
    """Return False, as if there were always time left."""
    return False


def always_over_time_limit() -> bool:
    """Return True, as if no time were left."""
    return True
