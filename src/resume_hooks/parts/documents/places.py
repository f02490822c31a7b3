"""Where the settings let handoffs write into projects."""

from __future__ import annotations

import os
from collections.abc import Iterator

from resume_hooks import settings
from resume_hooks.paths import Where
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts.head_tail import HeadTail

ENDING = ".md"
"""Of a document."""

NAMES = ("handoff_dir", "ledger_file")


def written(where: Where) -> str:
    """The answer to ``written into projects``: a sentence for who uninstalls, ``""`` for nothing."""
    values = settings.load(where)
    named = [f"{name} {values[name].value}" for name in NAMES if values[name].value]
    return f"What handoffs wrote into your projects stays: {' and '.join(named)}." if named else ""


def documents_of(session: SessionFile, where: Where) -> Iterator[tuple[str, str]]:
    """The answer to ``documents of a session``: a folder and how documents end, the ledger and ``""``."""
    values = settings.load(where)
    for name, ending in zip(NAMES, (ENDING, ""), strict=True):
        if value := os.path.expanduser(str(values[name].value)):
            home = os.sep if os.path.isabs(value) else home_folder(HeadTail(session.path), where)
            if os.path.isdir(home):
                yield os.path.join(home, value), ending
