"""Owns how a test's session goes: kept in the vault, in each of its forms, and then deleted as the client deletes."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from resume_hooks.archive.vault import put
from resume_hooks.archive.vault.keep import keep
from resume_hooks.archive.vault.pack import pack
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.manifest import COPIED, LINKED, PACKED, Kept
from resume_hooks.sessions.files import session_file
from resume_hooks.sessions.liveness import FRESH
from resume_hooks.sessions.transcript_files import owning_session, subagent_name

QUIET = 1_700_000_000
FORMS = (LINKED, COPIED, PACKED)


def away(path: str | Path, environ: Mapping[str, str], form: str = LINKED) -> Kept:
    """Keep a session in that form, and take it from the client with all that belongs to it."""
    if time.time() - os.stat(path).st_mtime < FRESH:
        os.utime(path, (QUIET, QUIET))  # what is live is not packed
    session = session_file(os.fspath(path))
    kept = keep(session, Where(environ))
    if form == PACKED:
        kept = pack(kept, Where(environ))
    if form == COPIED:
        shutil.rmtree(kept.folder)
        kept = _copied(session.path, environ)
    folder = os.path.dirname(session.path)
    beside = [os.path.join(folder, name) for name in os.listdir(folder) if subagent_name(name)]
    gone = [each for each in beside if owning_session(each) == session.session_id]
    for each in (session.path, *gone):
        os.unlink(each)
    shutil.rmtree(session.path.removesuffix(".jsonl"), ignore_errors=True)
    shutil.rmtree(os.path.join(environ["CLAUDE_CONFIG_DIR"], "file-history", session.session_id), ignore_errors=True)
    assert kept.form == form
    return kept


def _copied(path: str, environ: Mapping[str, str]) -> Kept:
    """Kept where the file system has no links."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(put, "_linked", lambda *_: None)
        return keep(session_file(path), Where(environ))
