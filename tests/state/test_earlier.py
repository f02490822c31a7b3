"""What earlier engines left is understood or made anew; what a later one wrote is read at most, and never changed."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import zlib
from pathlib import Path
from typing import Any

import pytest

from resume_hooks import settings
from resume_hooks.archive.trash import contents, restore
from resume_hooks.derive import untrim
from resume_hooks.errors import ResumeHooksError, WriteFailed
from resume_hooks.hooks import checkpoint_state, hook_state, prompt
from resume_hooks.hooks.triggers import Trigger
from resume_hooks.search.engine import find
from resume_hooks.search.index.connect import opened_index
from resume_hooks.search.index.database import VERSION
from resume_hooks.search.index.status import status_of
from resume_hooks.search.scope import Scope
from resume_hooks.sessions import link_log
from resume_hooks.sessions.lineage import Family
from resume_hooks.sessions.locate import resolve
from tests.builders import CWD, SESSION, ConfigHome, conversation, write_session
from tests.state.make import BULKY, CLEARED, DELETED, HERE, HOME, sessions

EARLIER = sorted(path.stem for path in HERE.glob("*.json"))


@pytest.fixture(params=EARLIER)
def earlier(request: pytest.FixtureRequest, config_home: ConfigHome) -> dict[str, Any]:
    """A home as the engine of a commit left it; the frozen form."""
    made: dict[str, Any] = json.loads((HERE / f"{request.param}.json").read_text())
    folder = sessions(config_home.config)
    state = config_home.config / "resume-hooks"
    for name, kept in made["files"].items():
        path = state / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = kept.get("text", "").replace(HOME, str(config_home.root)).encode()
        path.write_bytes(zlib.decompress(base64.b64decode(kept["zlib"])) if "zlib" in kept else text)
        os.chmod(path, 0o600)
    for name, text in made["transcripts"].items():
        (folder / name).write_text(text.replace(HOME, str(config_home.root)))
        os.utime(folder / name, (1e9, 1e9))
    if any(name.startswith("trash/") for name in made["files"]):
        (folder / f"{DELETED}.jsonl").unlink()
    return made


def test_there_is_one_of_every_form() -> None:
    """Links alone, backups, both forms of the index, notes with a version, a trash."""
    assert len(EARLIER) >= 5


def test_links_and_lineage(config_home: ConfigHome, earlier: dict[str, Any]) -> None:
    """Every link is read, and each child leads to its parent."""
    family = Family(config_home.where)
    rows = link_log.read_links(config_home.where)
    children = [name.removesuffix(".jsonl") for name in earlier["transcripts"] if BULKY not in name]
    assert {link.child_id for link in rows} >= set(children)
    assert (CLEARED, SESSION) in {(link.child_id, link.parent_id) for link in rows}
    for child in children:
        found = family.lineage(resolve(child, CWD, config_home.where).path)
        assert [row.session_id for row in found] == [SESSION, child]


def test_settings(config_home: ConfigHome, earlier: dict[str, Any]) -> None:
    """What was set is in force, and more can be set."""
    found = settings.load(config_home.where)
    kept = json.loads(earlier["files"]["settings.json"]["text"])
    names = [name for name in kept if name != "version"]
    assert names
    assert all((found[name].value, found[name].source) == (kept[name], "file") for name in names)
    settings.store("keep_recent", "5", config_home.where)
    assert {**kept, "keep_recent": 5}.items() <= json.loads(
        Path(settings.settings_file(config_home.where)).read_text()
    ).items()


def test_the_index(config_home: ConfigHome, earlier: dict[str, Any]) -> None:
    """An older one is made anew by itself; a search finds what is there now."""
    assert status_of(config_home.where).state in {"ready", "missing"}
    assert find(["prompt"], Scope(), config_home.where).hits
    with opened_index(config_home.where) as index:
        assert index.notes == []
        assert index.db.execute("SELECT version FROM about").fetchone() == (VERSION,)
    assert status_of(config_home.where).behind == 0


def test_notes_backups_and_trash(config_home: ConfigHome, earlier: dict[str, Any]) -> None:
    """A mark can be gone back to, a deleted session comes back, a session trimmed in place is made whole."""
    if f"pending/mark-{SESSION}.json" in earlier["files"]:
        assert checkpoint_state.find(SESSION) is not None
    said = prompt.card(Trigger("trim", "yes", slash=False, pasted=False), {"session_id": BULKY, "cwd": CWD})
    assert "resume-hooks failed" not in said
    for entry in contents.held(config_home.where):
        restore.write(restore.plan(entry, config_home.where), config_home.where)
        path = resolve(DELETED, CWD, config_home.where).path
        assert Path(path).read_bytes() == Path(write_session(config_home.root, DELETED, conversation(2))).read_bytes()
    kept = [name for name in earlier["files"] if name.startswith("backups/") and name.endswith(".jsonl")]
    if kept:
        session = resolve(BULKY, CWD, config_home.where)
        whole = untrim.write(untrim.plan(untrim.read(session), config_home.where), config_home.where)
        assert Path(whole.file).read_text().count("a line of output") == earlier["files"][kept[0]]["text"].count(
            "a line of output"
        )


def test_a_later_engine_s_state_is_left_as_it_is(config_home: ConfigHome) -> None:
    """Settings are read, an index is passed over, a trash entry is neither told nor removed, a note is none."""
    write_session(config_home.project(), SESSION, conversation(2))
    with opened_index(config_home.where):
        pass
    state = config_home.config / "resume-hooks"
    (state / "settings.json").write_text('{"version": 99, "threshold": 700, "unheard": {"of": 1}}')
    entry = state / "trash" / DELETED / "2099-01-01T00-00-00.000Z"
    entry.mkdir(parents=True, mode=0o700)
    (entry / contents.DONE).write_text(json.dumps({"version": 99, "sealed": "in a new way"}))
    hook_state.keep(f"mark-{SESSION}.json", {"version": 99, "session_id": SESSION})
    db = sqlite3.connect(state / "index.db")
    db.execute("UPDATE about SET version=99")
    db.commit()
    db.close()
    before = {path: path.read_bytes() for path in state.rglob("*") if path.is_file() and "index.db-" not in path.name}
    assert settings.load(config_home.where)["threshold"].value == 700
    with pytest.raises(WriteFailed, match="newer"):
        settings.store("threshold", "800", config_home.where)
    assert contents.held(config_home.where) == []
    assert [stray.gone for stray in contents.strays(config_home.where)] == [False]
    assert checkpoint_state.find(SESSION) is None
    with opened_index(config_home.where) as index:
        assert "newer" in index.notes[0]
    assert find(["prompt"], Scope(), config_home.where).hits
    assert {path: path.read_bytes() for path in before} == before
    assert issubclass(WriteFailed, ResumeHooksError)
