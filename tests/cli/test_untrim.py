"""Tests of ``untrim``, which restores all or selected contents and reports contents that are lost."""

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

LONG_OUTPUT = "many words, " * 200


@pytest.fixture
def parent(config_home: ConfigHome) -> Path:
    """Write a session with three long outputs and return its path."""
    records = [user("go", uuid="u")]
    for number in range(3):
        above, ts = records[-1]["uuid"], 2 * number + 1
        records.append(tool_use(f"c{number}", uuid=f"a{number}", parent=above, ts=ts))
        records.append(
            tool_result(
                f"c{number}",
                f"{number} {LONG_OUTPUT}",
                uuid=f"r{number}",
                parent=f"a{number}",
                ts=ts + 1,
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
    """Trim the parent and return the child."""
    return Path(document("trim", SESSION, "--keep-recent", "0")["data"]["file"])


def test_untrim_all_restores_every_output(
    document: Document, cli: Cli, parent: Path, child: Path
) -> None:
    """``untrim --all`` writes a child with all outputs, and the receipt counts them."""
    data = document("untrim", child.stem, "--all")["data"]
    assert (data["kind"], data["written"], data["parent_file"]) == ("untrim", True, str(child))
    assert data["restoration"] | {"characters": 0} == {
        "trimmed": 3,
        "restored": 3,
        "characters": 0,
        "missing": [],
    }
    assert data["restoration"]["characters"] > 2 * len(LONG_OUTPUT)
    assert data["tokens_after"] > data["tokens_before"]
    assert all(check["ok"] for check in data["checks"])
    assert (
        Path(data["file"]).read_text().count(LONG_OUTPUT)
        == parent.read_text().count(LONG_OUTPUT)
        == 3
    )
    text = cli("untrim", child.stem, "--all").stdout.decode()
    for part in (
        "Fix the parser · untrim 2",
        "3 of 3 trimmed records",
        f"{child.stem} (unchanged)",
        "/resume ",
    ):
        assert part in text


def test_untrim_restores_selected_records(document: Document, child: Path) -> None:
    """``untrim --record N`` restores the record in line N of the trimmed session."""
    lines = [
        number
        for number, line in enumerate(child.read_text().split("\n"))
        if '"truncated":true' in line
    ]
    words = [word for number in lines[:2] for word in ("--record", str(number))]
    data = document("untrim", str(child), *words)["data"]
    assert data["restoration"]["restored"] == 2
    assert Path(data["file"]).read_text().count(LONG_OUTPUT) == 2


def test_untrim_needs_the_option_all_or_record(document: Document, child: Path) -> None:
    """``untrim`` fails without ``--all`` or ``--record``, and the error counts the trimmed records."""
    error = document("untrim", child.stem, code=2)["error"]
    assert error["message"] == "3 records are trimmed. Which ones do you want to restore?"
    assert error["remedy"] == "Give --all, or --record N for one record."
    assert (
        "can't be combined"
        in document("untrim", child.stem, "--all", "--record", "3", code=2)["error"]["message"]
    )
    assert (
        "The trimmed records are: "
        in document("untrim", child.stem, "--record", "0", code=2)["error"]["remedy"]
    )


@pytest.mark.parametrize("words", [(), ("--all",)])
def test_untrim_without_trimmed_records_writes_nothing(
    cli: Cli, document: Document, parent: Path, words: tuple[str, ...]
) -> None:
    """If a session has no trimmed records, ``untrim`` writes nothing and exits with code 0."""
    before = sorted(os.listdir(parent.parent))
    data = document("untrim", SESSION, *words)["data"]
    assert (data["written"], data["file"], data["restoration"]["trimmed"]) == (False, "", 0)
    assert b"Nothing in this session is trimmed." in cli("untrim", SESSION, *words).stdout
    assert sorted(os.listdir(parent.parent)) == before


def test_a_dry_run_of_untrim_writes_nothing(cli: Cli, document: Document, child: Path) -> None:
    """``untrim --dry-run`` prints how much an untrim would restore, and writes nothing."""
    before = sorted(os.listdir(child.parent))
    data = document("untrim", child.stem, "--all", "--dry-run")["data"]
    assert (data["written"], data["restoration"]["restored"]) == (False, 3)
    assert "would write" in cli("untrim", child.stem, "--all", "--dry-run").stdout.decode()
    assert sorted(os.listdir(child.parent)) == before


def test_untrim_warns_about_lost_originals(
    cli: Cli, document: Document, parent: Path, child: Path
) -> None:
    """``untrim`` warns about lost originals and restores the others.

    With ``--strict``, or if all originals are lost, it fails and writes nothing.
    """
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


def test_untrim_names_the_fork_before_a_compaction(
    cli: Cli, document: Document, child: Path
) -> None:
    """If the trimmed records are from before a compaction, ``untrim`` suggests a fork.

    This fork can be untrimmed.
    """
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
def run_in_folder(cli: Cli, config_home: ConfigHome, parent: Path) -> Callable[..., dict[str, Any]]:
    """Return a function that runs a verb in the session's folder, without a session id."""
    folder = config_home.root / "work"
    folder.mkdir()
    moved = config_home.project(str(folder)) / parent.name
    moved.write_text(parent.read_text().replace(CWD, str(folder)))
    parent.unlink()

    def run_verb(*words: str) -> dict[str, Any]:
        done = cli(*words, "--json", cwd=folder)
        assert done.returncode == 0, done.stdout
        found: dict[str, Any] = json.loads(done.stdout)["data"]
        return found

    return run_verb


def test_untrim_uses_the_latest_trim_by_default(
    run_in_folder: Callable[..., dict[str, Any]],
) -> None:
    """Without a session, ``untrim`` restores the contents of the latest trimmed child."""
    made = run_in_folder("trim", "--keep-recent", "0")
    back = run_in_folder("untrim", "--all")
    assert (back["parent_file"], back["restoration"]["restored"]) == (made["file"], 3)
    assert Path(back["file"]).read_text().count(LONG_OUTPUT) == 3


def test_untrim_uses_a_parent_that_was_continued_after_a_trim(
    run_in_folder: Callable[..., dict[str, Any]],
) -> None:
    """Without a session id, ``untrim`` uses the parent if the user continued the parent after the trim."""
    made = run_in_folder("trim", "--keep-recent", "0")
    os.utime(made["parent_file"], (4_000_000_000, 4_000_000_000))
    assert run_in_folder("untrim", "--all")["parent_file"] == made["parent_file"]
