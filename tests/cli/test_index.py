"""Tests of ``doctor --index``, which updates, reports and rebuilds the search index."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import SESSION, ConfigHome, conversation, session_id, write_session
from tests.cli.conftest import Cli, Document


@pytest.fixture
def home_with_two_sessions(config_home: ConfigHome) -> ConfigHome:
    """Write two sessions, and return their home."""
    for name in (SESSION, session_id(2)):
        write_session(
            config_home.project(), name, conversation(3, session_id=name, prefix=name[:8])
        )
    return config_home


def test_index_status_changes_nothing(
    document: Document, home_with_two_sessions: ConfigHome
) -> None:
    """``doctor --index status`` reports a missing, complete or outdated index, and writes nothing."""
    data = document("doctor", "--index", "status")["data"]["index"]
    assert (data["state"], data["behind"], data["transcripts"], data["bytes_read"]) == (
        "missing",
        2,
        2,
        0,
    )
    assert not Path(data["file"]).exists()
    made = document("doctor", "--index", "update")["data"]["index"]
    assert (made["state"], made["behind"], made["sessions"]) == ("ready", 0, 2)
    assert made["bytes_read"] == made["transcripts_size"]
    assert made["records"] == 12
    write_session(
        home_with_two_sessions.project(),
        session_id(3),
        conversation(1, session_id=session_id(3), prefix="x"),
    )
    assert document("doctor", "--index", "status")["data"]["index"]["behind"] == 1


def test_an_index_update_reads_only_changed_files(
    document: Document, home_with_two_sessions: ConfigHome
) -> None:
    """A second ``doctor --index update`` reads no files, but ``doctor --index rebuild`` reads all files."""
    whole = document("doctor", "--index", "update")["data"]["index"]["bytes_read"]
    assert document("doctor", "--index", "update")["data"]["index"]["bytes_read"] == 0
    assert document("doctor", "--index", "rebuild")["data"]["index"]["bytes_read"] == whole


def test_index_update_prints_the_state_as_text(
    cli: Cli, home_with_two_sessions: ConfigHome
) -> None:
    """``doctor --index update`` prints the index's path, state, contents and size."""
    done = cli("doctor", "--index", "update")
    assert (done.returncode, done.stderr) == (0, b"")
    rows = dict(line.split("  ", 1) for line in done.stdout.decode().rstrip("\n").split("\n"))
    names = {name.strip() for name in rows}
    assert names == {"index", "state", "transcripts", "holds", "size", "read now"}
    assert "2 sessions, 12 records" in done.stdout.decode()
    assert "read now" not in cli("doctor", "--index", "update").stdout.decode()


@pytest.mark.parametrize("index_action", ["update", "rebuild"])
def test_index_update_fails_if_the_index_cannot_be_stored(
    home_with_two_sessions: ConfigHome, cli: Cli, index_action: str
) -> None:
    """``doctor --index update`` and ``rebuild`` fail if the index cannot be stored."""
    (home_with_two_sessions.root / "file").touch()
    environ = {"RESUME_HOOKS_HOME": str(home_with_two_sessions.root / "file" / "state")}
    done = cli("doctor", "--index", index_action, "--json", environ=environ)
    assert done.returncode == 1
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "index-unusable"
    assert "Not a directory" in error["message"]
    assert "Check free space" in error["remedy"]
