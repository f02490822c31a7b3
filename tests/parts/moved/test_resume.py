"""``resume`` of a session whose folder is gone."""

from __future__ import annotations

import os

import pytest

from tests.builders import ConfigHome, session_id, tool_result, tool_use, user, write_session
from tests.cli.conftest import Cli, Document
from tests.cli.test_resume import project

__all__ = ["project"]


class TestGone:
    """A session whose folder is gone, where nobody can be asked."""

    @pytest.fixture
    def lost(self, config_home: ConfigHome, project: str) -> str:
        """Its folder was renamed to ``project``, which still holds the file that it worked on."""
        old = f"{config_home.root}/old"
        os.mkdir(old)
        rows = [
            {**user("hello", uuid="u"), "cwd": old},
            {**tool_use("t", uuid="a", parent="u", tool_input={"file_path": f"{old}/x.py"}), "cwd": old},
            {**tool_result("t", uuid="r", parent="a"), "cwd": old},
        ]
        (config_home.root / "proj" / "x.py").touch()
        path = write_session(config_home.project(old), session_id(5), rows)
        os.rmdir(old)
        return path

    def test_the_card(self, cli: Cli, document: Document, lost: str, project: str, config_home: ConfigHome) -> None:
        """It says so, and its last line is what gives the session another home."""
        done = cli("resume", session_id(5))
        assert done.returncode == 0
        assert done.stderr.decode().startswith(f"note: {config_home.root}/old is gone")
        last = done.stdout.decode().splitlines()[-1]
        assert last == f"resume-hooks fork {session_id(5)} --home {project} --start"
        assert document("resume", session_id(5))["data"]["commands"]["shell"] == last
        made = cli(*last.split()[1:-1], "--json")
        assert made.returncode == 0
        assert f'"cd {project} && claude --resume ' in made.stdout.decode()

    @pytest.mark.parametrize("words", [("resume", "--print"), ("resume", "--fork"), ("continue",)])
    def test_what_cannot_be_done(
        self, cli: Cli, lost: str, project: str, config_home: ConfigHome, words: tuple[str, ...]
    ) -> None:
        """1, the sentence, the command; nothing is made."""
        done = cli(words[0], session_id(5), *words[1:])
        assert (done.returncode, done.stdout) == (1, b"")
        assert f"--home {project} --start" in done.stderr.decode()
        assert list(config_home.project(project).iterdir()) == []
