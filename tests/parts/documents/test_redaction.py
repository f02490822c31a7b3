"""Secrets in what a handoff leaves beside its child."""

from __future__ import annotations

from pathlib import Path

from resume_hooks.derive import agents
from resume_hooks.derive.child.write import write
from resume_hooks.derive.fresh_child import Contents
from resume_hooks.parts.documents.files import write_for
from resume_hooks.reading.digest.build import digest_of
from resume_hooks.sessions.locate import session_file
from resume_hooks.storage import stored_settings
from tests.builders import ConfigHome
from tests.redaction.test_handoff import GITHUB, PASSWORD, leaky

__all__ = ["leaky"]


def test_document_and_ledger(config_home: ConfigHome, leaky: str, tmp_path: Path) -> None:
    """They say that something was there, and nothing of it."""
    stored_settings.store("handoff_dir", "_handoffs", config_home.where)
    stored_settings.store("ledger_file", "_ledgers/CURRENT.md", config_home.where)
    contents = Contents(digest_of(session_file(leaky), config_home.where))
    decided = agents.fresh(session_file(leaky), config_home.where, kind="handoff", next_step="go on", contents=contents)
    receipt = write(decided, config_home.where)
    files = write_for(decided, receipt, config_home.where)
    written = [Path(path).read_text() for path in (*files.documents, files.ledger)]
    assert len(written) == 2
    assert not any(secret in text for text in written for secret in (GITHUB, PASSWORD))
