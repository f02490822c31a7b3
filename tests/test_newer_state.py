"""Tests of a state folder that a newer version has written: its files are read but never changed."""

from __future__ import annotations

import json
import sqlite3

import pytest

from resume_hooks import settings
from resume_hooks.archive.vault import trash
from resume_hooks.errors import WriteFailed
from resume_hooks.search.index.connect import open_index
from resume_hooks.search.run_search import search_index
from resume_hooks.search.scope import Scope
from resume_hooks.sessions.archived.layout import MANIFEST_NAME
from resume_hooks.storage import stored_settings
from tests.builders import SESSION, ConfigHome, conversation, session_id, write_session


def test_the_state_of_a_newer_engine_is_not_changed(config_home: ConfigHome) -> None:
    """Settings from a newer engine are read but not changed.

    The index and the deleted sessions of a newer engine are neither used nor changed.
    """
    write_session(config_home.project(), SESSION, conversation(2))
    with open_index(config_home.where):
        pass
    state = config_home.config / "resume-hooks"
    (state / "settings.json").write_text(
        '{"version": 99, "notice_percent": 70, "unheard": {"of": 1}}'
    )
    entry = state / "trash" / session_id(3) / "2099-01-01T00-00-00.000Z"
    entry.mkdir(parents=True, mode=0o700)
    (entry / MANIFEST_NAME).write_text(json.dumps({"version": 99, "sealed": "in a new way"}))
    db = sqlite3.connect(state / "index.db")
    db.execute("UPDATE about SET version=99")
    db.commit()
    db.close()
    before = {
        path: path.read_bytes()
        for path in state.rglob("*")
        if path.is_file() and "index.db-" not in path.name
    }
    assert settings.load_settings(config_home.where)["notice_percent"].value == 70
    with pytest.raises(WriteFailed, match="newer"):
        stored_settings.store_setting("notice_percent", "90", config_home.where)
    assert trash.list_trashed_sessions(config_home.where) == []
    assert [stray.is_half_removed for stray in trash.list_stray_folders(config_home.where)] == [
        False
    ]
    with open_index(config_home.where) as index:
        assert "newer" in index.notes[0]
    assert search_index(["prompt"], Scope(), config_home.where).hits
    assert {path: path.read_bytes() for path in before} == before
