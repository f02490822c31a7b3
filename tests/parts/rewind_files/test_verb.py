"""Tests of ``rewind-files`` in the shell: its preview, its question, its writes and its errors."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import click
import pytest

from resume_hooks.cli.main import run
from resume_hooks.cli.options import VerbOptions
from resume_hooks.storage import project_files
from tests.builders import ConfigHome
from tests.cli.test_completion import completion_folder, completions
from tests.parts.rewind_files.project import (
    SESSION,
    Project,
    backup_entry,
    prompt_id,
    snapshot_record,
    turns_on_one_chain,
)

__all__ = ["completion_folder"]


@pytest.fixture
def project(config_home: ConfigHome, tmp_path: Path) -> Project:
    """Return a project with a file to restore, one to delete and one to create."""
    made = Project(config_home, tmp_path / "work" / "proj")
    tracked = {
        "a": made.write_backup("a", "old\n"),
        "b": backup_entry(None),
        "sub/c": made.write_backup("sub/c", "gone\n"),
    }
    made.write_session(
        [
            *turns_on_one_chain(2),
            snapshot_record(prompt_id(1), tracked),
            snapshot_record(prompt_id(2), tracked),
        ]
    )
    made.write_file("a", "new\n")
    made.write_file("b", "by the model\n")
    os.utime(
        made.home.project(str(made.folder)) / f"{SESSION}.jsonl", (1_700_000_000, 1_700_000_000)
    )
    return made


@pytest.fixture
def terminal_questions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Answer yes to each question on a terminal, and return the list of questions."""
    asked: list[str] = []

    def answer_yes(text: str, **_: object) -> bool:
        asked.append(text)
        return True

    monkeypatch.setattr(VerbOptions, "is_interactive", True)
    monkeypatch.setattr(click, "confirm", answer_yes)
    return asked


def read_document(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    """Run ``rewind-files`` and return its JSON."""
    assert run(["rewind-files", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_a_dry_run_lists_files_without_writing(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """``rewind-files --dry-run`` lists each file with its change and writes none."""
    before = project.list_files()
    assert run(["rewind-files", SESSION, "--to", "1", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert 'as at turn 1 "prompt 1"' in out
    for line in (
        "restore  a  +1 -1",
        "delete   b  +0 -1",
        "create   sub/c  +1 -0",
        "-new",
        "+old",
        "Nothing was writ",
    ):
        assert line in out
    assert project.list_files() == before
    assert not (project.home.config / "resume-hooks").exists()


def test_yes_restores_files_and_undo_reverts_them(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """``rewind-files --yes`` restores the files and names the copies of their earlier contents.

    ``--undo`` puts these contents back.
    """
    before = project.list_files()
    assert (
        "nothing to undo"
        in read_document(capsys, SESSION, "--undo", "--yes", code=1)["error"]["message"]
    )
    done = read_document(capsys, SESSION, "--to", "1", "--yes")["data"]
    assert {row["path"]: (row["action"], row["status"]) for row in done["files"]} == {
        "a": ("restore", "written"), "b": ("delete", "written"), "sub/c": ("create", "written"),
    }  # fmt: skip
    assert (done["written"], done["complete"], done["to"]["turn"]) == (True, True, 1)
    assert os.path.isdir(done["kept"])
    assert {name: content for name, (_, content) in project.list_files().items()} == {
        "a": b"old\n",
        "sub/c": b"gone\n",
    }
    again = read_document(capsys, SESSION, "--to", "1", "--yes")["data"]
    assert (again["written"], again["kept"]) == (False, None)
    undone = read_document(capsys, SESSION, "--undo", "--yes")["data"]
    assert (undone["undo"], undone["to"]) == (True, None)
    assert project.list_files() == before


def test_rewind_files_asks_on_a_terminal(
    project: Project, terminal_questions: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """``rewind-files`` on a terminal asks after it has listed the changes."""
    assert run(["rewind-files", SESSION, "--to", "1"]) == 0
    assert terminal_questions == ["\nPut 3 files back (1 of them deleted)?"]
    assert "put back" in capsys.readouterr().out
    assert project.path_of("a").read_text() == "old\n"


def test_the_answer_no_writes_nothing(
    project: Project, terminal_questions: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the answer "no", ``rewind-files`` changes no file."""
    monkeypatch.setattr(click, "confirm", lambda *_, **__: False)
    assert run(["rewind-files", SESSION, "--to", "1"]) == 0
    assert project.path_of("a").read_text() == "new\n"
    assert terminal_questions == []


@pytest.mark.parametrize("more_options", [[], ["--json"]])
def test_rewind_files_needs_yes_without_a_terminal(
    project: Project, capsys: pytest.CaptureFixture[str], more_options: list[str]
) -> None:
    """``rewind-files`` without a terminal needs ``--yes``."""
    assert run(["rewind-files", SESSION, "--to", "1", *more_options]) == 2
    assert "--yes" in "".join(capsys.readouterr())
    assert project.path_of("a").read_text() == "new\n"


@pytest.mark.parametrize(
    "arguments", [[], ["--to", "1", "--undo"], ["--to", "never"], ["--to", "9"]]
)
def test_contradictory_options_are_refused(
    project: Project, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    """``rewind-files`` refuses contradictory or invalid options."""
    assert read_document(capsys, SESSION, *arguments, "--yes", code=2)["error"]["code"] == "usage"
    assert project.path_of("a").read_text() == "new\n"


def test_one_refused_file_prevents_all_writes_without_partial(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """If one file is refused, no file is written. With ``--partial``, the other files are written.

    The exit code is 1 in both cases.
    """
    project.path_of("b").unlink()
    os.symlink("a", project.path_of("b"))
    failed = read_document(capsys, SESSION, "--to", "1", "--yes", code=1)["error"]
    assert (failed["code"], "--partial" in failed["remedy"]) == ("cant-restore", True)
    assert project.path_of("a").read_text() == "new\n"
    done = read_document(capsys, SESSION, "--to", "1", "--yes", "--partial", code=1)["data"]
    assert {row["path"]: row["status"] for row in done["files"]} == {
        "a": "written",
        "b": "refused",
        "sub/c": "written",
    }
    assert project.path_of("b").is_symlink()
    assert read_document(capsys, SESSION, "--to", "1", "--dry-run")["data"]["complete"] is False


def test_a_restore_that_can_write_no_file_says_so(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """If no file can be restored, the message says that, and does not claim that no file differs."""
    for name in ("a", "b", "sub/c"):
        project.path_of(name).unlink(missing_ok=True)
        project.path_of(name).mkdir(parents=True)
    assert run(["rewind-files", SESSION, "--to", "1", "--yes", "--partial"]) == 1
    assert "Nothing was written: 3 files can't be put back" in capsys.readouterr().out


def test_an_undo_without_changes_is_reported(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """If there is nothing to undo, ``--undo`` says so and gives the date of the last run."""
    kept = read_document(capsys, SESSION, "--to", "1", "--yes")["data"]["kept"]
    project.write_file("a", "new\n")
    project.write_file("b", "by the model\n")
    project.path_of("sub/c").unlink()
    assert run(["rewind-files", SESSION, "--undo", "--yes"]) == 0
    date = os.path.basename(kept)[:10]
    assert (
        f"Nothing to undo: every file is already as it was before the last run of rewind-files at {date}"
        in capsys.readouterr().out
    )


def test_ctrl_c_ends_a_restore_after_the_current_file(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl+C during a restore ends it after the current file, with exit code 130.

    The message names the copies, and ``--undo`` restores the earlier files.
    """
    before = project.list_files()
    write = project_files.write_project_file

    def raise_interruption(*arguments: Any, **more: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        write(*arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(project_files, "write_project_file", raise_interruption)
        error = read_document(capsys, SESSION, "--to", "1", "--yes", code=130)["error"]
    assert error["code"] == "interrupted"
    assert "1 of 3 files" in error["message"]
    assert "copies are in" in error["remedy"]
    assert project.path_of("a").read_text() == "old\n", "the file at hand was finished"
    assert run(["rewind-files", SESSION, "--undo", "--yes"]) == 0
    assert project.list_files() == before


def test_a_reference_also_names_the_session(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """If ``--to`` is a reference, it also names the session, so the argument SESSION may be omitted.

    If this argument names another session, the command is refused.
    """
    assert read_document(capsys, "--to", f"{SESSION[:8]}:2", "--dry-run")["data"]["to"]["turn"] == 2
    other = project.home.project(str(project.folder)) / "00000008-0000-4000-8000-000000000008.jsonl"
    other.write_bytes((other.parent / f"{SESSION}.jsonl").read_bytes())
    assert (
        "different sessions"
        in read_document(capsys, other.stem, "--to", f"{SESSION}:2", "--yes", code=2)["error"][
            "message"
        ]
    )


def test_a_session_without_file_history_is_refused(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """A session without a file history is refused with the possible cause."""
    project.write_session(turns_on_one_chain(2))
    error = read_document(capsys, SESSION, "--to", "1", "--yes", code=1)["error"]
    assert (error["code"], "checkpointing" in error["remedy"]) == ("no-file-history", True)


def test_an_open_session_is_reported(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """A warning says that the client of an open session will not notice the restored files."""
    os.utime(project.home.project(str(project.folder)) / f"{SESSION}.jsonl")
    (warning,) = read_document(capsys, SESSION, "--to", "1", "--yes")["warnings"]
    assert "will not notice that files have changed" in warning


def test_hostile_text_does_not_reach_the_terminal(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """Control characters in the names and contents of files are not printed."""
    name = "x\x1b[2J\n  restore  y"
    project.write_session(
        [
            *turns_on_one_chain(1),
            snapshot_record(
                prompt_id(1), {name: project.write_backup(name, "a\x1b]0;t\x07b\x9b2J\rc\n")}
            ),
        ]
    )
    assert run(["rewind-files", SESSION, "--to", "1", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\x9b" not in out
    assert "\n  restore  y" not in out


def test_long_differences_are_shortened(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """Long differences are cut, and the number of omitted lines is shown."""
    tracked = {}
    for number in range(12):
        text = "".join(f"{number} {line}\n" for line in range(100))
        tracked[f"{number:02}"] = project.write_backup(f"{number:02}", text)
    project.write_session([*turns_on_one_chain(1), snapshot_record(prompt_id(1), tracked)])
    assert run(["rewind-files", SESSION, "--to", "1", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "... and 41 more lines" in out
    assert "more files" in out
    assert len(out.splitlines()) < 460


def test_the_shell_completes_a_session(config_home: ConfigHome, completion_folder: Path) -> None:
    """The shell completes the beginning of a session's id after ``rewind-files``."""
    assert completions(config_home, completion_folder, "resume-hooks rewind-files 1a2") == [
        "plain,1a2b3c4d"
    ]
