"""Tests of the recorder in ``tools``.

The recorder writes equal records for equal code. The comparison of two records groups their
differences by kind.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import SESSION, Record, session_bytes
from tests.hooks.test_trim import turns_with_large_files
from tests.needs import REPO
from tools.recorder.compare import describe_text_difference, print_differences
from tools.recorder.sessions import (
    CLAUDE,
    DAMAGE_FUNCTIONS,
    Session,
    choose_sessions_of_all_sizes,
    make_damaged_copies,
)


def make_numbered_session(number: int, content: bytes = b"") -> Session:
    """Return a session with ``number`` in its name."""
    return Session(CLAUDE, f"repository/{number}", SESSION, f"{number}.jsonl", content, {})


def write_recording(path: Path, *rows: Record) -> Path:
    """Write a recording with these rows and return its path."""
    whole = [{"exit": 0, "stdout": "", "stderr": "", "files": [], **row} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in whole), encoding="utf-8")
    return path


def test_damaged_copies_are_reproducible() -> None:
    """Damaged copies are the same in each run, and every kind of damage occurs in them.

    Most of the copies differ from their session.
    """
    parents = [
        make_numbered_session(number, session_bytes(turns_with_large_files(turn_count=3 + number)))
        for number in range(3)
    ]
    first = make_damaged_copies(parents, 2 * len(DAMAGE_FUNCTIONS))
    assert first == make_damaged_copies(parents, 2 * len(DAMAGE_FUNCTIONS))
    assert {mutant.name.split("/")[0].split("-", 2)[2] for mutant in first} == set(DAMAGE_FUNCTIONS)
    assert (
        sum(mutant.content in {parent.content for parent in parents} for mutant in first)
        < len(DAMAGE_FUNCTIONS) / 2
    )


def test_sessions_of_every_size_are_chosen() -> None:
    """A sample of sessions of all sizes contains the smallest and the largest session."""
    sessions = [make_numbered_session(number, b"x" * 1_000 * number) for number in range(1, 51)]
    sizes = [len(each.content) for each in choose_sessions_of_all_sizes(sessions, 5)]
    assert (sizes[0], len(sizes), sizes[-1]) == (1_000, 5, 50_000)


def test_differences_of_one_kind_are_printed_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Differences of the same kind are printed once, with their number and an example."""
    before = [
        {"case": f"claude/{number}/00.0 cli info", "stdout": f"{number} tokens left"}
        for number in range(9)
    ]
    after = [{**row, "stdout": row["stdout"].replace("left", "over")} for row in before]
    forks = [{"case": "claude/9/00.0 cli fork", "exit": status} for status in (0, 1)]
    before.append({"case": "claude/9/00.0 cli trim"})
    paths = (
        write_recording(tmp_path / "a.jsonl", *before, forks[0]),
        write_recording(tmp_path / "b.jsonl", *after, forks[1]),
    )
    assert print_differences(*paths) == 11
    printed = capsys.readouterr().out
    assert "9 x stdout: 'left' is 'over'" in printed
    assert "    - 0 tokens left\n    + 0 tokens over\n" in printed
    assert "1 x exit: 0 is 1" in printed
    assert "1 x case: it is gone" in printed
    assert "11 differences of 3 kinds." in printed
    assert print_differences(paths[0], paths[0]) == 0


def test_json_is_compared_by_field() -> None:
    """If two JSON values differ, the difference names the field, whatever the field's values are.

    A different order of fields is a difference, too.
    """
    assert describe_text_difference('{"a": [{"b": 1}]}', '{"a": [{"b": 2}]}')[0] == "JSON .a[].b"
    assert describe_text_difference('{"a": 1}', '{"a": 1, "b": 2}')[0] == "JSON .b is new"
    assert (
        describe_text_difference('{"a": 1, "b": 2}', '{"b": 2, "a": 1}')[0]
        == "JSON  in another order"
    )


def test_two_recordings_of_the_same_code_are_equal(tmp_path: Path) -> None:
    """Two recordings of the same code are equal, although they run at different times.

    Every command of an undamaged session ends with code 0, and a handoff's child is recorded.
    """
    corpus = tmp_path / "corpus" / "repository"
    corpus.mkdir(parents=True)
    (corpus / f"{SESSION}.jsonl").write_bytes(session_bytes(turns_with_large_files()))
    records = [tmp_path / "first.jsonl", tmp_path / "second.jsonl"]
    for path in records:
        folders = ["--corpus", str(corpus.parent), "--codex", str(tmp_path / "none")]
        command = [sys.executable, "-m", "tools.recorder", str(REPO), str(path), *folders]
        counts = ["--mutants", "2", "--varied", "0", "--only", "repository"]
        subprocess.run([*command, *counts], cwd=REPO, check=True, capture_output=True, timeout=300)
    assert records[0].read_bytes() == records[1].read_bytes()
    rows = [json.loads(line) for line in records[0].read_text(encoding="utf-8").splitlines()]
    whole = [row for row in rows if "mutant" not in row["case"]]
    handed_off = next(row for row in whole if "cli handoff" in row["case"])
    assert any(file["path"].endswith("/id-00001-uuid.jsonl") for file in handed_off["files"])
    assert {row["exit"] for row in whole} == {0}
