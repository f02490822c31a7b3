"""Helpers that archive a session in a test, and then delete the session as the client does."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from resume_hooks.archive.vault.archive_session import archive_session
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.manifest import ArchivedSession
from resume_hooks.sessions.session_files import session_file
from resume_hooks.sessions.transcript_files import read_owning_session_id, subagent_name


def archive_and_remove(path: str | Path, environ: Mapping[str, str]) -> ArchivedSession:
    """Archive a session and delete its transcript, sub-agents, outputs and backups."""
    session = session_file(os.fspath(path))
    archived = archive_session(session, Where(environ))
    folder = os.path.dirname(session.path)
    beside = [os.path.join(folder, name) for name in os.listdir(folder) if subagent_name(name)]
    gone = [each for each in beside if read_owning_session_id(each) == session.session_id]
    for each in (session.path, *gone):
        os.unlink(each)
    shutil.rmtree(session.path.removesuffix(".jsonl"), ignore_errors=True)
    shutil.rmtree(
        os.path.join(environ["CLAUDE_CONFIG_DIR"], "file-history", session.session_id),
        ignore_errors=True,
    )
    return archived
