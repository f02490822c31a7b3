"""import of a bundle: what is said of it, for people and as JSON."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from resume_hooks.cli.schema import form
from tests.builders import ConfigHome, conversation, session_bytes, session_id
from tests.cli.conftest import Cli, Document
from tests.derive.imports.bundle.test_bundle import bundled, kept

ONE, TWO = session_id(1), session_id(2)


@pytest.fixture
def path(config_home: ConfigHome) -> Path:
    """A bundle of two sessions that are here no more."""
    sessions = [kept(config_home, conversation(3, session_id=each), each) for each in (ONE, TWO)]
    made = bundled(config_home, *sessions)
    for session in sessions:
        os.unlink(session.path)
    return made


def test_whole(document: Document, path: Path) -> None:
    """The receipt is that of the last session; each is told with both of its names."""
    data = document("import", str(path), "--whole")["data"]
    form("import").model_validate(data)
    assert (data["session_id"], data["kind"], data["written"]) == (TWO, "import", True)
    assert data["imported"] is None
    assert [(row["was"], row["session_id"], row["existing"]) for row in data["bundle"]] == [
        (ONE, ONE, False),
        (TWO, TWO, False),
    ]


def test_conversations(cli: Cli, path: Path) -> None:
    """In words: what came, how, and the way on; then once more: it is known."""
    done = cli("import", str(path))
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    for part in ("brought in", "their conversations alone", "in Claude Code", "/resume "):
        assert part in text
    again = cli("import", str(path))
    assert again.stdout.count(b"known") == 2
    assert again.returncode == 0


def test_a_dry_run(document: Document, path: Path, config_home: ConfigHome) -> None:
    """It says what would come; nothing does."""
    answer = document("import", str(path), "--whole", "--dry-run")
    assert answer["data"]["written"] is False
    assert answer["warnings"] == ["Bundles hold no file checkpoints: rewind-files starts afresh."]
    assert list(config_home.config.rglob("*.jsonl")) == []


def test_whole_is_for_bundles(cli: Cli, tmp_path: Path) -> None:
    """A mere transcript is nobody's own."""
    mere = tmp_path / "x.jsonl"
    mere.write_bytes(session_bytes(conversation(2)))
    done = cli("import", str(mere), "--whole")
    assert done.returncode == 2
    assert b"no bundle" in done.stderr


def test_a_torn_one(cli: Cli, path: Path) -> None:
    """A download that broke off."""
    path.write_bytes(path.read_bytes()[:-40])
    done = cli("import", str(path))
    assert done.returncode == 1
    assert b"ends too early" in done.stderr
