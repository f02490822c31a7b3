"""What handoffs left in a project: documents that are named by a session's id, and the ledger."""

from __future__ import annotations

import os
from collections.abc import Iterator

from resume_hooks import settings
from resume_hooks.derive.handoff_files import ENDING
from resume_hooks.maintenance.scrub.locations import DOCUMENT, Location, files_in
from resume_hooks.paths import Where
from resume_hooks.sessions.files import SessionFile
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.transcripts.head_tail import HeadTail


def documents_of(session: SessionFile, where: Where) -> Iterator[Location]:
    """The documents and the ledger that the settings put into the session's project, or elsewhere."""
    values = settings.load(where)
    folder, ledger = (_path(str(values[name].value), session) for name in ("handoff_dir", "ledger_file"))
    if folder:
        for path in files_in(folder):
            if path.endswith(ENDING) or os.path.isdir(path):
                yield Location(DOCUMENT, path, "", "")
    if ledger and os.path.isfile(ledger) and not os.path.islink(ledger):
        yield Location(DOCUMENT, ledger, "", "")


def _path(value: str, session: SessionFile) -> str:
    """Where a setting leads; ``""`` for none, and where the session's project is not here."""
    value = os.path.expanduser(value)
    home = home_folder(HeadTail(session.path)) if value and not os.path.isabs(value) else os.sep
    return os.path.join(home, value) if value and os.path.isdir(home) else ""
