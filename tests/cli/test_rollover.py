"""handoff and rollover: the receipt for people and programs, dry runs, starting the client."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.builders import SESSION, ConfigHome, conversation, custom_title, session_id, write_session
from tests.cli.conftest import Cli, Document

VERBS = [("handoff",), ("rollover", "--quick")]


@pytest.fixture
def parent(config_home: ConfigHome) -> Path:
    """A titled session whose folder exists."""
    cwd = config_home.root / "proj"
    cwd.mkdir()
    records = [{**record, "cwd": str(cwd)} for record in conversation(2)]
    return Path(write_session(config_home.project(str(cwd)), SESSION, [*records, custom_title("Fix the parser")]))


def a_client(home: ConfigHome) -> str:
    """A folder with a ``claude`` that says how it was called."""
    folder = home.root / "bin"
    folder.mkdir()
    client = folder / "claude"
    client.write_text('#!/bin/sh\necho "client in $(pwd): $*"\n')
    client.chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def children(parent: Path) -> list[Path]:
    """What lies beside a session."""
    return [path for path in parent.parent.iterdir() if path != parent]


@pytest.mark.parametrize("words", VERBS)
def test_the_receipt_as_a_document(document: Document, parent: Path, words: tuple[str, ...]) -> None:
    """Every documented field, and the file that it names."""
    verb, *options = words
    data = document(verb, SESSION, *options)["data"]
    (child,) = children(parent)
    assert (data["file"], data["session_id"], data["written"], data["kind"]) == (str(child), child.stem, True, verb)
    assert (data["parent_session_id"], data["parent_file"]) == (SESSION, str(parent))
    assert (data["title"], data["tokens_before"]) == (f"Fix the parser · {verb} 1", 1_300)
    assert (data["chars_saved"], data["tools_trimmed"]) == (0, 0)
    assert all(check["ok"] for check in data["checks"])
    folder = parent.parent.parent.parent.parent / "proj"
    assert data["commands"] == {
        "in_client": f"/resume {child.stem}",
        "shell": f"cd {folder} && claude --resume {child.stem}",
    }


@pytest.mark.parametrize("words", VERBS)
def test_the_receipt_for_people(cli: Cli, parent: Path, words: tuple[str, ...]) -> None:
    """What was written, that the parent is unchanged, both commands."""
    text = cli(*words, SESSION).stdout.decode()
    (child,) = children(parent)
    for part in (
        f"Fix the parser · {words[0]} 1",
        str(child),
        f"{SESSION} (unchanged)",
        f"/resume {child.stem}",
        " checks passed",
    ):
        assert part in text


@pytest.mark.parametrize("words", VERBS)
def test_a_dry_run_writes_nothing(
    config_home: ConfigHome, cli: Cli, document: Document, parent: Path, words: tuple[str, ...]
) -> None:
    """The whole home is as it was, to the byte and the time."""

    def home() -> dict[Path, tuple[int, bytes]]:
        return {
            path: (path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
            for path in config_home.root.rglob("*")
        }

    before = home()
    verb, *options = words
    data = document(verb, SESSION, *options, "--dry-run")["data"]
    assert (data["written"], data["checks"]) == (False, [])
    text = cli(*words, SESSION, "--dry-run", "--start").stdout.decode()
    assert "would write" in text
    assert "nothing was written" in text
    assert home() == before


def test_the_next_step_is_written(document: Document, parent: Path) -> None:
    """Word for word, however it is quoted; options of the shell are none of its business."""
    step = "--start \"$(rm -rf /)\" 'x'\n--json"
    document("handoff", SESSION, "-n", step)
    (child,) = children(parent)
    opening = json.loads(child.read_bytes().splitlines()[1])
    assert opening["message"]["content"].endswith(f"\n{step}")


def test_another_folder(document: Document, parent: Path, tmp_path: Path) -> None:
    """The child goes there, with a warning; a folder that is none is a usage error."""
    found = document("handoff", SESSION, "--output-dir", str(tmp_path))
    assert os.path.dirname(found["data"]["file"]) == str(tmp_path)
    assert "--resume will not find it" in found["warnings"][0]
    assert document("handoff", SESSION, "--output-dir", str(tmp_path / "none"), code=2)["error"]["code"] == "usage"
    assert children(parent) == []


def test_warnings_go_to_stderr(cli: Cli, parent: Path, tmp_path: Path) -> None:
    """Text on stdout stays what was asked for."""
    done = cli("handoff", SESSION, "--output-dir", str(tmp_path))
    assert done.stderr.startswith(b"note: ")
    assert b"note: " not in done.stdout


def test_a_quick_rollover_asks_nobody(document: Document, parent: Path) -> None:
    """What belongs to a summary means nothing beside it."""
    for option in (["--with-summary"], ["-p", "x"], ["--model", "haiku"], ["--timeout", "9"]):
        error = document("rollover", SESSION, "--quick", *option, code=2)["error"]
        assert (error["code"], error["message"]) == ("usage", "--quick asks no model")
    assert children(parent) == []
    assert document("rollover", SESSION, "--quick")["data"]["summary"] is None


@pytest.mark.parametrize("words", VERBS)
def test_start_runs_the_client_on_the_child(
    config_home: ConfigHome, cli: Cli, parent: Path, words: tuple[str, ...]
) -> None:
    """In the session's own folder, after the receipt."""
    done = cli(*words, SESSION, "--start", environ={"PATH": a_client(config_home)})
    (child,) = children(parent)
    last = done.stdout.decode().strip().split("\n")[-1]
    assert last == f"client in {config_home.root / 'proj'}: --resume {child.stem}"


@pytest.mark.parametrize("words", VERBS)
def test_start_without_a_client_makes_nothing(document: Document, parent: Path, words: tuple[str, ...]) -> None:
    """What can't be finished isn't begun."""
    verb, *options = words
    error = document(verb, SESSION, *options, "--start", code=1)["error"]
    assert "claude is not on PATH" in error["message"]
    assert children(parent) == []


def test_start_in_a_folder_that_is_gone_makes_nothing(
    config_home: ConfigHome, document: Document, parent: Path
) -> None:
    """The client can only be started where the session's folder is."""
    path = a_client(config_home)
    (config_home.root / "proj").rmdir()
    error = document("handoff", SESSION, "--start", code=1, environ={"PATH": path})["error"]
    assert "is gone" in error["message"]
    assert children(parent) == []


def test_start_of_a_child_that_the_client_cannot_find_makes_nothing(
    config_home: ConfigHome, document: Document, parent: Path, tmp_path: Path
) -> None:
    """A child written elsewhere can't be resumed by its id."""
    words = ("handoff", SESSION, "--start", "--output-dir", str(tmp_path / "out"))
    (tmp_path / "out").mkdir()
    error = document(*words, code=2, environ={"PATH": a_client(config_home)})["error"]
    assert error["code"] == "usage"
    assert list((tmp_path / "out").iterdir()) == []


def test_nothing_to_hand_off(config_home: ConfigHome, document: Document) -> None:
    """A session without a turn: an expected failure."""
    write_session(config_home.project(), session_id(3), [custom_title("x")])
    assert document("handoff", session_id(3), code=1)["error"]["code"] == "nothing-to-hand-off"


def test_a_codex_rollout_is_refused(document: Document, tmp_path: Path) -> None:
    """In one sentence, and nothing is written beside it."""
    path = tmp_path / "rollout-2026.jsonl"
    path.write_text('{"type":"session_meta","payload":{"id":"x"}}\n')
    before = list(tmp_path.iterdir())
    assert document("handoff", str(path), code=1)["error"]["code"] == "not-a-transcript"
    assert list(tmp_path.iterdir()) == before
