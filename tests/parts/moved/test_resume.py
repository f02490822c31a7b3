"""Tests of ``resume`` for a session whose folder is missing."""

from __future__ import annotations

import os
import time

import pytest

from tests.builders import (
    ConfigHome,
    conversation,
    session_id,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.cli.conftest import Cli, Document
from tests.cli.terminal_home import HOUR_SECONDS, TerminalHome
from tests.cli.test_resume import project

__all__ = ["project"]


class TestMissingFolder:
    """Without a terminal, ``resume`` cannot ask about the missing folder."""

    @pytest.fixture
    def moved_session(self, config_home: ConfigHome, project: str) -> str:
        """Write a session with an edited file. The session's folder was renamed to ``project``."""
        old = f"{config_home.root}/old"
        os.mkdir(old)
        rows = [
            {**user("hello", uuid="u"), "cwd": old},
            {
                **tool_use("t", uuid="a", parent="u", tool_input={"file_path": f"{old}/x.py"}),
                "cwd": old,
            },
            {**tool_result("t", uuid="r", parent="a"), "cwd": old},
        ]
        (config_home.root / "proj" / "x.py").touch()
        path = write_session(config_home.project(old), session_id(5), rows)
        os.rmdir(old)
        return path

    def test_the_card_names_the_missing_folder(
        self,
        cli: Cli,
        document: Document,
        moved_session: str,
        project: str,
        config_home: ConfigHome,
    ) -> None:
        """The card says which folder is missing, and ends with the command that re-homes the session."""
        done = cli("resume", session_id(5))
        assert done.returncode == 0
        assert done.stderr.decode().startswith(
            f"note: The folder of this session no longer exists: {config_home.root}/old."
        )
        last = done.stdout.decode().splitlines()[-1]
        assert last == f"resume-hooks fork {session_id(5)} --home {project} --start"
        assert document("resume", session_id(5))["data"]["commands"]["shell"] == last
        made = cli(*last.split()[1:-1], "--json")
        assert made.returncode == 0
        assert f'"cd {project} && claude --resume ' in made.stdout.decode()

    @pytest.mark.parametrize("words", [("resume", "--print"), ("resume", "--fork"), ("continue",)])
    def test_resume_without_the_folder_fails(
        self,
        cli: Cli,
        moved_session: str,
        project: str,
        config_home: ConfigHome,
        words: tuple[str, ...],
    ) -> None:
        """``resume --print`` fails, shows the command that re-homes the session, and writes no file.

        ``resume --fork`` and ``continue`` fail in the same way.
        """
        done = cli(words[0], session_id(5), *words[1:])
        assert (done.returncode, done.stdout) == (1, b"")
        assert f"--home {project} --start" in done.stderr.decode()
        assert list(config_home.project(project).iterdir()) == []


class TestMissingFolderOnATerminal:
    """On a terminal, ``resume`` asks about the missing folder."""

    def test_a_renamed_folder_is_found_and_the_session_rehomed(
        self, terminal_home: TerminalHome
    ) -> None:
        """``resume`` finds the renamed folder by the session's files and re-homes the session there."""
        old, new = terminal_home.home.root / "old", terminal_home.home.root / "new"
        new.mkdir()
        (new / "parser.py").write_text("")
        rows = [{**record, "cwd": str(old)} for record in conversation(2, session_id=session_id(5))]
        rows[1]["message"]["content"] += f' {{"file_path":"{old}/parser.py"}}'
        rows.append(
            {
                **rows[-1],
                "uuid": "z",
                "parentUuid": "r3",
                "toolUseResult": {"filePath": f"{old}/parser.py"},
            }
        )
        write_session(
            terminal_home.home.project(str(old)),
            session_id(5),
            rows,
            mtime=time.time() - HOUR_SECONDS,
        )
        screen = terminal_home.run("resume", session_id(5), "--way", "go on", columns=250)
        screen.wait_for(f"no longer exists: {old}")
        screen.wait_for(f"1  {new} +has 1 of the 1 file that the session worked on")
        screen.wait_for(f"2  {terminal_home.project} +the current folder")
        screen.key("Enter")
        found = screen.wait_for(r"STARTED --resume ([0-9a-f-]{36}) IN (\S+)")
        assert found.group(2) == new.name
        assert found.group(1) != session_id(5)
        assert (terminal_home.home.project(str(new)) / f"{found.group(1)}.jsonl").is_file()

    def test_continue_names_the_command_for_the_other_sessions(
        self, terminal_home: TerminalHome
    ) -> None:
        """``continue`` names the command that copies the folder's other sessions, until all are copied."""
        old = terminal_home.home.root / "old"
        for number, title in ((5, "Lost"), (6, "Beside")):
            terminal_home.write_session(number, title, folder=old)
        for locator, told in (("Lost", True), ("Beside", False)):
            screen = terminal_home.run("continue", locator, columns=250)
            screen.wait_for("the current folder")
            screen.key("Enter")
            screen.wait_for("STARTED --resume")
            assert (
                f"note: 1 other session in {old} can be copied too: ".encode() in screen.raw
            ) is told
            assert (f"rehome {old} --home {terminal_home.project}".encode() in screen.raw) is told

    def test_a_session_can_be_rehomed_to_the_current_folder(
        self, terminal_home: TerminalHome
    ) -> None:
        """``continue`` offers to re-home the session to the current folder."""
        old = terminal_home.home.root / "old"
        parent = terminal_home.write_session(5, "Lost", folder=old)
        content = parent.read_bytes()
        screen = terminal_home.run("continue", "Lost", columns=250)
        screen.wait_for(f"1  {terminal_home.project} +the current folder")
        screen.key("Enter")
        found = screen.wait_for(r"STARTED --resume ([0-9a-f-]{36}) IN (\S+)")
        assert found.group(2) == terminal_home.project.name
        assert parent.read_bytes() == content

    def test_an_empty_line_continues_the_new_child(self, terminal_home: TerminalHome) -> None:
        """An empty answer re-homes the session, and ``resume`` continues the new child.

        The new child is not reported as open.
        """
        terminal_home.write_session(5, "Lost", folder=terminal_home.home.root / "old")
        before = terminal_home.session_ids()
        screen = terminal_home.run("resume", "Lost", columns=250)
        screen.wait_for("q to leave")
        screen.key("Enter")
        screen.wait_for(r"How do you want to continue\?(.|\n)*> +1  go on")
        screen.key("Enter")
        found = screen.wait_for(r"STARTED --resume ([0-9a-f-]{36}) IN (\S+)")
        assert terminal_home.session_ids() - before == {found.group(1)}
        assert b"may be open in a client" not in screen.raw

    def test_quitting_writes_nothing(self, terminal_home: TerminalHome) -> None:
        """After the answer "q", ``resume`` writes nothing."""
        terminal_home.write_session(5, "Lost", folder=terminal_home.home.root / "old")
        before = terminal_home.session_ids()
        screen = terminal_home.run("resume", "Lost", "--way", "go on")
        screen.wait_for("q to leave")
        screen.type("q\r")
        assert screen.wait_for_end() == 130
        assert terminal_home.session_ids() == before
