"""``delete --other-copies``."""

from __future__ import annotations

from pathlib import Path

from tests.builders import SESSION, ConfigHome, conversation, write_session
from tests.cli.conftest import Cli, Document
from tests.cli.test_delete import OLD, path

__all__ = ["path"]


def test_copies_in_two_folders(path: Path, config_home: ConfigHome, cli: Cli, document: Document) -> None:
    """Told wherever the session is looked at; the copy that has all stays, and the other can be brought back."""
    copy = Path(write_session(config_home.project("/home/user/copy"), SESSION, conversation(1), mtime=OLD + 9))
    whole, part = path.read_bytes(), copy.read_bytes()
    remedy = f"resume-hooks delete {SESSION} --other-copies"
    assert remedy in cli("doctor").stdout.decode()
    assert remedy in document("info", SESSION)["warnings"][0]
    assert remedy in cli("resume", str(path)).stderr.decode()
    planned = document("delete", SESSION, "--other-copies", "--dry-run")["data"]
    assert (planned["kept"], planned["session"]["file"], planned["written"]) == (str(path), str(copy), False)
    assert f"{path} stays, and holds all that the others hold" in cli(*remedy.split()[1:], "--yes").stdout.decode()
    assert (path.read_bytes(), copy.exists()) == (whole, False)
    assert document("delete", SESSION, "--other-copies", "--yes", code=2)["error"]["message"].startswith(str(path))
    assert "one project folder" in cli("doctor").stdout.decode()
    cli("restore", SESSION)
    assert copy.read_bytes() == part
    write_session(copy.parent, SESSION, conversation(3)[2:], mtime=OLD)
    failed = document("delete", SESSION, "--other-copies", "--yes", code=1)["error"]
    assert f"{path} lacks 2 records of the others" in failed["message"]
    assert "resume-hooks fork" in failed["remedy"]
    done = document("delete", str(path), "--other-copies", "--yes")["data"]
    assert (done["kept"], path.read_bytes(), copy.exists()) == (str(path), whole, False)
    assert cli("delete", "--other-copies", "--empty-trash", "--yes").returncode == 2
