"""Crashes: whatever stops a trim, the child is there whole or not at all, and its parent is as it was."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.trim.plan import TrimPlan
from resume_hooks.errors import WriteFailed
from tests.builders import SESSION, ConfigHome
from tests.crashes import an_ordinary_user, crashes, little_room, outcome
from tests.derive.trim.sessions import Chain, planned, write_project_session

REFUSED = 7
"""The exit code of a process that was refused."""


def session(home: ConfigHome) -> TrimPlan:
    """A home with a session alone, its large outputs and its file backups; the plan of a trim."""
    shutil.rmtree(home.root, ignore_errors=True)
    chain = Chain()
    for number in range(60):
        chain.ask("question " * 90).tool(f"t{number}", "Bash", f"{number} " * 900).answer()
    tracked = {name: {"backupFileName": name} for name in ("one", "two")}
    snapshot = {"messageId": "c0", "trackedFileBackups": tracked}
    path = write_project_session(
        home,
        [*chain.rows, {"type": "file-history-snapshot", "messageId": "c0", "snapshot": snapshot}],
    )
    for folder in (path.with_suffix("") / "tool-results", home.config / "file-history" / SESSION):
        folder.mkdir(parents=True)
        (folder / "one").write_bytes(b"1")
        (folder / "two").write_bytes(b"2")
    return planned(home, path)


def left_behind(home: ConfigHome, decided: TrimPlan) -> dict[str, Any]:
    """Return the files after an attempt: the child as planned or not, sidecars, temporary files."""
    child, history = (
        Path(decided.draft.path),
        home.config / "file-history" / decided.draft.session_id,
    )
    beside = [*child.with_suffix("").rglob("*"), *history.rglob("*")]
    return {
        "child": child.exists() and len(child.read_bytes().rpartition(b"customTitle")[0]),
        "parent": home.project().joinpath(f"{SESSION}.jsonl").stat().st_size,
        "companions": sorted(path.name for path in beside if path.is_file()),
        "linked": all(
            path.stat().st_nlink > 1 for path in beside if path.parent.name == "tool-results"
        ),
        "temporary": [
            path.name for path in home.project().iterdir() if path.name.startswith(".resume-hooks-")
        ],
    }


def test_killed_at_every_step(config_home: ConfigHome) -> None:
    """No child, or the whole one with its companions.

    What a killed try left is harmless, and swept by the next.
    """
    plans: list[TrimPlan] = []

    def prepare() -> Callable[[], object]:
        plans.append(session(config_home))
        return lambda: write_child(plans[-1], config_home.where)

    killed = []
    for was_killed in crashes(prepare):
        found = left_behind(config_home, plans[-1])
        again = planned(config_home, config_home.project() / f"{SESSION}.jsonl")
        write_child(again, config_home.where)
        whole = left_behind(config_home, again)
        assert (whole["companions"], whole["temporary"]) == (["one", "one", "two", "two"], [])
        assert found[
            "linked"
        ]  # large outputs under the id of a child that was not born take no space of their own
        if was_killed:
            assert found["parent"] == whole["parent"]
            assert found["child"] in {False, whole["child"]}
            assert not found["child"] or found["companions"] == whole["companions"]
            killed.append(found)
        else:
            assert found == whole
    assert [bool(found["child"]) for found in killed] == sorted(
        bool(found["child"]) for found in killed
    )
    assert killed[-1]["child"], "one step comes after the child's birth"


def run(home: ConfigHome, *words: str) -> None:
    """Run the command line in its own process."""
    os.environ.update(home.environ)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    from resume_hooks.cli.main import main as command_line

    sys.argv = ["resume-hooks", *words]
    try:
        command_line()
    except SystemExit as ended:
        os._exit(ended.code if isinstance(ended.code, int) else 0)


def test_a_slim_copy_killed_on_the_way(config_home: ConfigHome) -> None:
    """The session is unchanged; a copy exists only whole, and only if the vault has its originals."""
    before: dict[str, bytes] = {}

    def files() -> dict[str, bytes]:
        return {
            path.name: path.read_bytes()
            for path in config_home.project().iterdir()
            if path.is_file()
        }

    def prepare() -> Callable[[], object]:
        session(config_home)
        before.update(files())
        return lambda: run(config_home, "archive", "--slim", SESSION)

    copies = []
    for _ in crashes(prepare, every=7):
        now = files()
        assert now.items() >= before.items()
        copies.append(
            [
                now[name].count(b"\n")
                for name in now
                if name.endswith(".jsonl") and name not in before
            ]
        )
        assert not copies[-1] or not outcome(
            lambda: run(config_home, "archive", "--verify", SESSION)
        )
        assert not outcome(lambda: run(config_home, "archive", "--slim", SESSION))
    assert len(copies[-1]) == 1
    assert all(found in ([], copies[-1]) for found in copies)
    assert len(copies) > 5


@pytest.mark.parametrize("room", [0, 1, 4_096, 60_000, None])
def test_a_full_disk_or_a_read_only_folder(room: int | None) -> None:
    """At any moment: a sentence, and no file is left, including sidecars."""
    with tempfile.TemporaryDirectory() as folder:
        home = ConfigHome(
            Path(folder), Path(folder, "c"), {"HOME": folder, "CLAUDE_CONFIG_DIR": f"{folder}/c"}
        )
        decided = session(home)

        def refused() -> None:
            try:
                if room is None:
                    home.project().chmod(0o555)
                    with an_ordinary_user(home.root):
                        write_child(decided, home.where)
                else:
                    little_room(room)
                    write_child(decided, home.where)
            except WriteFailed:
                os._exit(REFUSED)

        assert outcome(refused) == REFUSED
        found = left_behind(home, decided)
        assert (found["child"], found["companions"], found["temporary"]) == (False, [], [])
        assert not Path(decided.draft.path).with_suffix("").exists()
        assert not (home.config / "file-history" / decided.draft.session_id).exists()
