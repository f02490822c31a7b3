"""Tests of ``resume``, which shows a session and the ways to continue it, as text or as a document."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from resume_hooks.cli import resume
from resume_hooks.cli.verbs.resume import ResumeOptions
from resume_hooks.errors import UsageError
from tests.builders import (
    SESSION,
    ConfigHome,
    assistant,
    conversation,
    custom_title,
    session_id,
    user,
    write_running_client_file,
    write_session,
)
from tests.cli.conftest import Cli, Document

ID_PREFIX = SESSION[:8]


@pytest.fixture
def project(config_home: ConfigHome) -> str:
    """Return an existing folder of a project."""
    folder = config_home.root / "proj"
    folder.mkdir()
    return str(folder)


@pytest.fixture
def parent(config_home: ConfigHome, project: str) -> str:
    """Write an almost full session, and return its path.

    The session has a title, and its last request was long ago.
    """
    counts = {
        "input_tokens": 5,
        "cache_read_input_tokens": 20_000,
        "cache_creation_input_tokens": 145_000,
    }
    rows = [user("hello", uuid="u"), assistant("hi", uuid="a", parent="u", ts=1, tokens=counts)]
    here = [{**row, "cwd": project} for row in rows]
    return write_session(
        config_home.project(project), SESSION, [*here, custom_title("Fix the parser")]
    )


def test_resume_prints_the_ways_to_continue(cli: Cli, parent: str, project: str) -> None:
    """``resume`` prints the context size, a recommendation, a table, and finally the command."""
    done = cli("resume", SESSION, "--table")
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    for part in (
        "Fix the parser",
        SESSION,
        # This is the whole recommendation; no other sentence follows it.
        "92 % of 180,000. handoff fits best: nearly full.",
        "165,005 tokens",
        "estimated  leaves",
        "go on        165k  17k 206k  everything",
        "cache: cold",
        f"claude --resume {SESSION}",
        f"/resume {SESSION}",
        f"resume-hooks trim {ID_PREFIX}",
        f"resume-hooks handoff {ID_PREFIX}",
        f"resume-hooks rollover {ID_PREFIX}",
    ):
        assert part in text
    assert text.splitlines()[-1] == f"cd {project} && claude --resume {SESSION}"


def test_resume_mentions_an_open_session(
    config_home: ConfigHome, cli: Cli, parent: str, project: str
) -> None:
    """If the session is open, ``resume`` and ``continue`` print a note that says what to do."""
    write_running_client_file(config_home.config, SESSION)
    note = f"The running client {os.getpid()} has the session open. Quit that client first, or"
    for words in (["resume", SESSION], ["continue", SESSION], ["continue", SESSION, "--print"]):
        assert cli(*words).stderr.decode().startswith(f"note: {note}")
    (warning,) = json.loads(cli("continue", SESSION, "--json").stdout)["warnings"]
    assert warning.startswith(note)


def test_the_json_document_of_resume_has_sizes_costs_and_prices(
    document: Document, parent: str
) -> None:
    """The JSON document of ``resume`` has the session's size and the costs of each way to continue.

    It also has the prices behind these costs.
    """
    data = document("resume", SESSION)["data"]
    assert (data["session_id"], data["session_file"], data["title"]) == (
        SESSION,
        parent,
        "Fix the parser",
    )
    assert data["context"]["percent"] == 92
    assert data["cache"]["warm"] is False
    assert (data["cache"]["lifetime_seconds"], data["cache"]["tokens"]) == (300, 0)
    assert data["cache"]["age_seconds"] > 1_000
    assert data["typical_turn"] == {"requests": 1, "tokens": None}
    assert data["base"] == {"tokens": 165_004, "shared": 20_000}
    assert data["rates"] == {"input": 1.0, "cache_read": 0.1, "uncached": 1.25, "output": 5.0}
    assert [row["name"] for row in data["estimates"]] == ["go on", "handoff", "rollover", "compact"]
    assert data["estimates"][0] == {
        "name": "go on",
        "after": 165_005,
        "uncached": 165_005,
        "next_turn": 206_256,
        "pays_after": None,
        "warm": 16_506,
        "cold": 206_256,
    }
    assert [row["size"] for row in data["dial"]] == ["1k", "4k", "12k", "24k", "all"]
    assert data["dial"][-1]["after"] == data["context"]["tokens"]
    assert all((row["cut"], row["warm"] <= row["cold"]) == (0, True) for row in data["dial"])
    assert (data["recommendation"], data["prompts_left"]) == ("handoff", None)
    assert data["advice"]["way"] == "handoff"
    assert data["commands"]["in_client"] == f"/resume {SESSION}"


def test_resume_recommends_nothing_for_a_small_session(
    config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """``resume`` makes no recommendation for a small session.

    If the client counted no tokens in the session, the context size is an estimate.
    """
    rows = [user("hello", uuid="u"), custom_title("Small one", session_id(3))]
    write_session(config_home.project(), session_id(3), rows)
    data = document("resume", "Small one")["data"]
    assert (data["advice"], data["recommendation"]) == (None, "go on")
    text = cli("resume", "Small one").stdout
    assert text.startswith(b"about 1 tokens of an unknown window. Nothing needed.\n")
    assert b"estimated" not in text


def test_resume_true_selects_the_latest_session(
    config_home: ConfigHome, cli: Cli, parent: str, project: str
) -> None:
    """``resume true`` selects a session with the title "true", or otherwise the latest session."""
    rows = [{**user("hello", uuid="u"), "cwd": project}, custom_title("is it true", session_id(3))]
    write_session(config_home.project(project), session_id(3), rows, mtime=1_000)
    done = cli("resume", "true", "--print", cwd=project)
    assert done.stdout.decode() == f"cd {project} && claude --resume {SESSION}\n"
    rows[1] = custom_title("true", session_id(3))
    write_session(config_home.project(project), session_id(3), rows, mtime=1_000)
    assert session_id(3).encode() in cli("resume", "true", "--print", cwd=project).stdout


def test_resume_writes_a_child_and_prints_its_command(
    config_home: ConfigHome, cli: Cli, parent: str, project: str
) -> None:
    """Without a terminal, ``resume --way`` writes a child and prints only a shell command to stdout.

    The command resumes the child. If a trim would not pay off, no child is written, and the exit
    code is 1.
    """
    for words in (
        ("--fork",),
        ("--way", "handoff"),
        ("--way", "handoff", "--print"),
        ("--way", "rollover", "--copy"),
    ):
        done = cli("resume", SESSION, *words)
        assert done.returncode == 0
        (line,) = done.stdout.decode().splitlines()
        assert line.startswith(f"cd {project} && claude --resume ")
        assert SESSION not in line
        assert (config_home.project(project) / f"{line[-36:]}.jsonl").is_file()
        assert b"Fix the parser" in done.stderr
    done = cli("resume", SESSION, "--way", "trim", "--print")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"No child was made" in done.stderr
    here = cli("resume", SESSION, "--way", "go on").stdout
    assert here.decode() == f"cd {project} && claude --resume {SESSION}\n"
    assert cli("resume", SESSION, "--way", "as-is").stdout == here, "as 0.2.0 called it"


def test_the_printed_command_is_safe_for_a_shell(
    config_home: ConfigHome, cli: Cli, project: str
) -> None:
    """If the title and the folder contain shell syntax, the printed command still runs nothing else."""
    folder = f"{project}/\x1b[31mred\n$(touch pwned)'"
    os.mkdir(folder)
    rows = [{**row, "cwd": folder} for row in conversation(2, session_id=SESSION)]
    write_session(config_home.project(folder), SESSION, [*rows, custom_title("$(touch pwned)")])
    printed = cli("resume", SESSION, "--way", "handoff", "--print").stdout.decode()
    script = f'claude() {{ echo ran "$1"; pwd; }}\n{printed}'
    done = subprocess.run(["bash", "-c", script], cwd=project, capture_output=True, check=True)
    assert done.stdout.decode() == f"ran --resume\n{folder}\n"
    assert os.listdir(project) == [os.path.basename(folder)]
    assert os.listdir(folder) == []


def test_continue_explains_a_folder_that_became_a_link(
    config_home: ConfigHome, cli: Cli, project: str
) -> None:
    """If a session's folder is now a link, ``continue`` fails and suggests a fork.

    The fork is in the folder to which the link leads. Clients before 2.1.223 would not find the
    session itself.
    """
    old = f"{config_home.root}/old"
    os.mkdir(old)
    rows = [{**row, "cwd": old} for row in conversation(2, session_id=session_id(5))]
    write_session(config_home.project(old), session_id(5), rows)
    os.rmdir(old)
    os.symlink(project, old)
    done = cli("continue", session_id(5))
    assert (done.returncode, done.stdout) == (1, b"")
    assert (
        f"{old} now leads to {project}, so clients before 2.1.223 do not look for it"
        in done.stderr.decode()
    )
    assert f"fork {session_id(5)} --home {project} --start" in done.stderr.decode()
    done = cli("fork", session_id(5), "--home", project, "--json")
    child = json.loads(done.stdout)["data"]["session_id"]
    assert cli("continue", child).stdout.decode() == f"cd {project} && claude --resume {child}\n"


def test_continue_respects_the_variable_for_project_folders(
    config_home: ConfigHome, cli: Cli, project: str
) -> None:
    """``continue`` finds a session in the project folder that CLAUDE_CODE_PROJECT_DIR_NAME names.

    If the path is long, clients shorten the folder's name in different ways. ``continue`` finds
    each of these folders.
    """
    rows = [{**row, "cwd": project} for row in conversation(2, session_id=session_id(5))]
    write_session(config_home.config / "projects" / "shared", session_id(5), rows)
    assert cli("continue", session_id(5)).returncode == 1
    assert (
        cli(
            "continue", session_id(5), environ={"CLAUDE_CODE_PROJECT_DIR_NAME": "shared"}
        ).returncode
        == 0
    )
    deep = f"{project}/{'d' * 120}/{'e' * 120}"
    os.makedirs(deep)
    rows = [{**row, "cwd": deep} for row in conversation(2, session_id=session_id(6))]
    write_session(Path(str(config_home.project(deep))[:-1] + "another"), session_id(6), rows)
    assert cli("continue", session_id(6)).returncode == 0


def test_the_command_of_continue_sets_a_different_config_home(
    config_home: ConfigHome, cli: Cli, project: str, tmp_path: Path
) -> None:
    """If the session has a different config home, ``continue --fork`` prints a command that sets it.

    The command sets CLAUDE_CONFIG_DIR.
    """
    rows = [{**row, "cwd": project} for row in conversation(2, session_id=SESSION)]
    path = write_session(
        tmp_path / "other" / "projects" / config_home.project(project).name, SESSION, rows
    )
    done = cli("continue", path, "--fork")
    assert done.stdout.decode().startswith(
        f"cd {project} && CLAUDE_CONFIG_DIR={tmp_path}/other claude --resume "
    )
    assert b"will not find it" not in done.stderr


class TestContinue:
    """Tests of ``continue`` without a terminal."""

    def test_continue_prints_only_the_command(self, cli: Cli, parent: str, project: str) -> None:
        """Without a locator, ``continue`` prints only the command for the folder's latest session."""
        done = cli("continue", cwd=project)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.decode() == f"cd {project} && claude --resume {SESSION}\n"

    def test_the_json_document_of_continue_has_every_field(
        self, document: Document, parent: str, project: str
    ) -> None:
        """The JSON document of ``continue`` has the session and its folder, and for a fork also the parent."""
        data = document("continue", SESSION)["data"]
        assert (data["session_id"], data["parent_session_id"], data["folder"]) == (
            SESSION,
            None,
            project,
        )
        forked = document("continue", SESSION, "--fork")["data"]
        assert forked["parent_session_id"] == SESSION
        assert forked["session_id"] in forked["commands"]["shell"]

    def test_continue_without_sessions_exits_with_1(self, cli: Cli) -> None:
        """In a folder without sessions, ``continue`` prints one sentence and exits with code 1."""
        done = cli("continue")
        assert (done.returncode, done.stdout) == (1, b"")
        assert b"No session of " in done.stderr


def test_resume_of_a_page_needs_the_part_for_imports(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If the optional part for imports is not installed, ``resume`` of a saved web page fails."""
    page = tmp_path / "x.html"
    page.write_text("<!doctype html>")
    monkeypatch.setattr("resume_hooks.seam.is_installed", lambda _: False)
    with pytest.raises(UsageError, match=r"The part that imports \S+x\.html is not installed"):
        resume._import_session_from_page(ResumeOptions(locator=str(page)))
