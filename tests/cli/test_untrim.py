"""untrim: what is brought back, for people and programs; what it needs to be told.

When nothing is written.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builders import (
    CWD,
    SESSION,
    ConfigHome,
    assistant,
    boundary,
    conversation,
    custom_title,
    session_bytes,
    summary,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.cli.conftest import Cli, Document

BULK = "many words, " * 200


@pytest.fixture
def parent(config_home: ConfigHome) -> Path:
    """A session with three long outputs."""
    records = [user("go", uuid="u")]
    for number in range(3):
        above, ts = records[-1]["uuid"], 2 * number + 1
        records.append(tool_use(f"c{number}", uuid=f"a{number}", parent=above, ts=ts))
        records.append(
            tool_result(
                f"c{number}", f"{number} {BULK}", uuid=f"r{number}", parent=f"a{number}", ts=ts + 1
            )
        )
    last = conversation(1, prefix="l", start=10)
    last[0]["parentUuid"] = "r2"
    return Path(
        write_session(
            config_home.project(), SESSION, [*records, *last, custom_title("Fix the parser")]
        )
    )


@pytest.fixture
def child(document: Document, parent: Path) -> Path:
    """The same, trimmed."""
    return Path(document("trim", SESSION, "--keep-recent", "0")["data"]["file"])


def test_everything(document: Document, cli: Cli, parent: Path, child: Path) -> None:
    """The receipt and the restored contents; the child has the outputs again."""
    data = document("untrim", child.stem, "--all")["data"]
    assert (data["kind"], data["written"], data["parent_file"]) == ("untrim", True, str(child))
    assert data["restoration"] | {"characters": 0} == {
        "trimmed": 3,
        "restored": 3,
        "characters": 0,
        "missing": [],
    }
    assert data["restoration"]["characters"] > 2 * len(BULK)
    assert data["tokens_after"] > data["tokens_before"]
    assert all(check["ok"] for check in data["checks"])
    assert Path(data["file"]).read_text().count(BULK) == parent.read_text().count(BULK) == 3
    text = cli("untrim", child.stem, "--all").stdout.decode()
    for part in (
        "Fix the parser · untrim 2",
        "3 of 3 trimmed records",
        f"{child.stem} (unchanged)",
        "/resume ",
    ):
        assert part in text


def test_some_records(document: Document, child: Path) -> None:
    """Each record is named by its line in the trimmed session's file."""
    lines = [
        number
        for number, line in enumerate(child.read_text().split("\n"))
        if '"truncated":true' in line
    ]
    words = [word for number in lines[:2] for word in ("--record", str(number))]
    data = document("untrim", str(child), *words)["data"]
    assert data["restoration"]["restored"] == 2
    assert Path(data["file"]).read_text().count(BULK) == 2


def test_which_records_must_be_said(document: Document, child: Path) -> None:
    """A usage error counts them and names both options, which can't be combined."""
    error = document("untrim", child.stem, code=2)["error"]
    assert error["message"] == "3 records are trimmed: which ones do you want back?"
    assert error["remedy"] == "--all, or --record N for one of them."
    assert (
        "can't be combined"
        in document("untrim", child.stem, "--all", "--record", "3", code=2)["error"]["message"]
    )
    assert (
        "The trimmed records are: "
        in document("untrim", child.stem, "--record", "0", code=2)["error"]["remedy"]
    )


@pytest.mark.parametrize("words", [(), ("--all",)])
def test_nothing_is_trimmed(
    cli: Cli, document: Document, parent: Path, words: tuple[str, ...]
) -> None:
    """There is nothing to do: no failure, and no file."""
    before = sorted(os.listdir(parent.parent))
    data = document("untrim", SESSION, *words)["data"]
    assert (data["written"], data["file"], data["restoration"]["trimmed"]) == (False, "", 0)
    assert b"Nothing in this session is trimmed." in cli("untrim", SESSION, *words).stdout
    assert sorted(os.listdir(parent.parent)) == before


def test_a_dry_run(cli: Cli, document: Document, child: Path) -> None:
    """The numbers, and nothing written."""
    before = sorted(os.listdir(child.parent))
    data = document("untrim", child.stem, "--all", "--dry-run")["data"]
    assert (data["written"], data["restoration"]["restored"]) == (False, 3)
    assert "would write" in cli("untrim", child.stem, "--all", "--dry-run").stdout.decode()
    assert sorted(os.listdir(child.parent)) == before


def test_originals_that_are_gone(cli: Cli, document: Document, parent: Path, child: Path) -> None:
    """Warnings for contents that stay trimmed; an error under --strict, or if all are missing."""
    parent.write_bytes(parent.read_bytes().replace(b'"uuid":"r1"', b'"uuid":"x1"'))
    before = sorted(os.listdir(parent.parent))
    error = document("untrim", child.stem, "--all", "--strict", code=1)["error"]
    assert error["code"] == "session-not-found"
    assert error["message"].startswith("1 of 3 records can't be restored; record ")
    assert sorted(os.listdir(parent.parent)) == before
    found = document("untrim", child.stem, "--all")
    assert [row["why"] for row in found["data"]["restoration"]["missing"]] == [
        f"its original is gone: it was line 4 of {parent}"
    ]
    assert "stays trimmed: its original is gone" in found["warnings"][0]
    parent.unlink()
    shutil.rmtree(parent.parents[2] / "resume-hooks" / "vault")
    assert (
        document("untrim", child.stem, "--all", code=1)["error"]["remedy"] == "Nothing was written."
    )
    assert b"stays" not in cli("untrim", child.stem, "--all").stdout


def test_contents_trimmed_before_a_compaction(cli: Cli, document: Document, child: Path) -> None:
    """Their place is reported, and the named command restores them."""
    last = json.loads(child.read_text().splitlines()[-2])["uuid"]
    more = [
        boundary(uuid="b", before=last, ts=100, session_id=child.stem),
        summary("all of it", uuid="s", parent="b", ts=101, session_id=child.stem),
        assistant("done", uuid="d", parent="s", ts=102, session_id=child.stem, tokens=31_000),
    ]
    with child.open("ab") as stream:
        stream.write(session_bytes(more))
    text = cli("untrim", child.stem, "--all").stdout.decode()
    assert "before the last compaction" in text
    way = f"fork {child.stem[:8]} --before-compaction"
    assert way in text
    fork = document(*way.split())["data"]["session_id"]
    assert document("untrim", fork, "--all")["data"]["restoration"]["restored"] == 3


@pytest.fixture
def in_folder(cli: Cli, config_home: ConfigHome, parent: Path) -> Callable[..., dict[str, Any]]:
    """Run a verb in the folder of the session, as somebody who types no id; its data."""
    folder = config_home.root / "work"
    folder.mkdir()
    moved = config_home.project(str(folder)) / parent.name
    moved.write_text(parent.read_text().replace(CWD, str(folder)))
    parent.unlink()

    def run(*words: str) -> dict[str, Any]:
        done = cli(*words, "--json", cwd=folder)
        assert done.returncode == 0, done.stdout
        found: dict[str, Any] = json.loads(done.stdout)["data"]
        return found

    return run


def test_right_after_a_trim(in_folder: Callable[..., dict[str, Any]]) -> None:
    """Without a session the verb uses the new trim, as a user would expect."""
    made = in_folder("trim", "--keep-recent", "0")
    back = in_folder("untrim", "--all")
    assert (back["parent_file"], back["restoration"]["restored"]) == (made["file"], 3)
    assert Path(back["file"]).read_text().count(BULK) == 3


def test_a_trim_that_somebody_left(in_folder: Callable[..., dict[str, Any]]) -> None:
    """It is no longer the default after the session itself continued."""
    made = in_folder("trim", "--keep-recent", "0")
    os.utime(made["parent_file"], (4_000_000_000, 4_000_000_000))
    assert in_folder("untrim", "--all")["parent_file"] == made["parent_file"]
