"""rehome in the shell: the folder that moved is found by what its sessions tell, and each of them copied once."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from resume_hooks.parts.moved import rehome
from tests.builders import ConfigHome, conversation, session_id, tool_result, tool_use, write_session
from tests.cli.conftest import Cli, Document
from tests.crashes import crashes

FILES = ("src/parser.py", "src/errors.py")


@pytest.fixture
def moved(config_home: ConfigHome) -> tuple[Path, Path]:
    """A folder that is gone, of two sessions that worked on files in it, and the folder that has them now."""
    old, new = config_home.root / "old-name", config_home.root / "new-name"
    for name in FILES:
        (new / name).parent.mkdir(parents=True, exist_ok=True)
        (new / name).write_text("")
    for number in (1, 2):
        rows = conversation(2, prefix=f"r{number}", session_id=session_id(number))
        for place, name in enumerate(FILES):
            call = f"c{place}"
            rows += [
                tool_use(call, uuid=f"{call}-u", parent=rows[-1]["uuid"], tool_input={"file_path": str(old / name)}),
                tool_result(call, uuid=f"{call}-r", parent=f"{call}-u"),
            ]
        rows = [{**row, "cwd": str(old), "sessionId": session_id(number)} for row in rows]
        write_session(config_home.project(str(old)), session_id(number), rows)
    return old, new


def sessions_in(folder: Path, home: ConfigHome) -> list[Path]:
    """The sessions of a project folder."""
    return sorted(home.project(str(folder)).glob("*.jsonl"))


def test_all_of_a_folder_at_once(document: Document, config_home: ConfigHome, moved: tuple[Path, Path]) -> None:
    """Found without being named, previewed, copied, and not copied again; the sessions stay as they were."""
    old, new = moved
    before = [path.read_bytes() for path in sessions_in(old, config_home)]
    dry = document("rehome", "--dry-run", cwd=new)["data"]
    assert (dry["was"], dry["home"], len(dry["made"])) == (str(old), str(new), 2)
    assert sessions_in(new, config_home) == []
    made = document("rehome", cwd=new)["data"]
    assert [row["parent_session_id"] for row in made["made"]] == [session_id(1), session_id(2)]
    assert all(row["kind"] == "rehome" and row["written"] for row in made["made"])
    assert len(sessions_in(new, config_home)) == 2
    again = document("rehome", str(old), "--home", str(new))["data"]
    assert again["made"] == []
    assert {row["why"] for row in again["left_out"]} == {"has a copy there already"}
    assert [path.read_bytes() for path in sessions_in(old, config_home)] == before


def test_what_can_t_be_copied_is_told(cli: Cli, config_home: ConfigHome, moved: tuple[Path, Path]) -> None:
    """The others are; the exit code says that one is missing."""
    old, new = moved
    path = config_home.project(str(old)) / f"{session_id(3)}.jsonl"
    path.write_text('{"type":"summary","summary":"x","leafUuid":"y"}\n')
    done = cli("rehome", str(old), cwd=new)
    assert done.returncode == 1
    assert f"Copied 2 sessions of {old} to {new}" in done.stdout.decode()
    assert "not copied: There is nothing to fork" in done.stdout.decode()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("gone", "--home", "nowhere"), "is no folder"),
        ((".",), "is still there"),
        (("gone",), "No session was started in"),
        ((), "Name the folder as it was called"),
    ],
)
def test_refused(words: tuple[str, ...], said: str, cli: Cli, moved: tuple[Path, Path]) -> None:
    """Each with what to do."""
    assert moved
    done = cli("rehome", *words)
    assert done.returncode in {1, 2}
    assert said in done.stderr.decode()


def test_a_rehome_killed_at_every_step(config_home: ConfigHome) -> None:
    """The next copies what has no copy yet, and nothing twice."""
    old, new = str(config_home.root / "old"), str(config_home.root / "new")

    def work() -> object:
        sessions = rehome.own_sessions(old, config_home.where)
        return rehome.rehome(sessions, new, config_home.where, lambda *_: None, dry_run=False)

    def prepare() -> Callable[[], object]:
        shutil.rmtree(config_home.root)
        (config_home.root / "new").mkdir(parents=True)
        for number in (1, 2):
            rows = conversation(2, prefix=f"r{number}", session_id=session_id(number))
            rows = [{**row, "cwd": old} for row in rows]
            write_session(config_home.project(old), session_id(number), rows)
            outputs = config_home.project(old) / session_id(number) / "tool-results"
            outputs.mkdir(parents=True)
            (outputs / "one").write_bytes(b"long output")
        return work

    for _ in crashes(prepare, every=5):
        work()
        copies = [*config_home.project(new).glob("*.jsonl")]
        assert len(copies) == 2
        assert all((path.with_suffix("") / "tool-results" / "one").exists() for path in copies)
