"""Tests of commands that the user can type: by the name ``resume-hooks`` or by the plugin's launcher."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from resume_hooks.system import invocation
from resume_hooks.system.invocation import format_remedy, lasting_shell_command, shell_command
from tests.needs import REPO

LAUNCHER_COMMAND = f"sh {shlex.quote(str(REPO / 'hooks' / 'engine'))}"


def test_a_command_uses_our_name_if_it_is_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command begins with ``resume-hooks`` if that is on PATH, and otherwise with the launcher.

    In the shell of Claude Code's model, the name can always be used.
    """
    monkeypatch.setenv("PATH", f"/nowhere:{tmp_path}")
    program = tmp_path / "resume-hooks"
    assert shell_command("doctor") == f"{LAUNCHER_COMMAND} doctor"
    program.touch()
    assert shell_command("doctor") == f"{LAUNCHER_COMMAND} doctor"
    program.chmod(0o755)
    assert shell_command("doctor") == "resume-hooks doctor"
    monkeypatch.delenv("PATH")
    assert shell_command("doctor") == f"{LAUNCHER_COMMAND} doctor"
    monkeypatch.setenv("CLAUDECODE", "1")
    assert shell_command("doctor") == "resume-hooks doctor"
    monkeypatch.setenv("CODEX_THREAD_ID", "x")
    assert shell_command("doctor") == f"{LAUNCHER_COMMAND} doctor"


def test_a_command_for_later_use_names_no_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command for later use does not name the plugin's version, because an update deletes the old one.

    In a checkout, the command names the launcher.
    """
    monkeypatch.delenv("PATH")
    assert lasting_shell_command("read x") == f"{LAUNCHER_COMMAND} read x"
    cache = tmp_path / "it is" / "plugins" / "cache" / "resume-hooks" / "resume-hooks"
    monkeypatch.setattr(invocation, "_PLUGIN_FOLDER", str(cache / "0.2.0"))
    assert lasting_shell_command("read x") == "resume-hooks read x"
    for version in ("0.2.0", "0.3.0"):
        shutil.copytree(REPO / "hooks", cache / version / "hooks")
    (cache / "0.2.0" / "hooks" / "cli.py").write_text("import sys\nprint(sys.argv[1:])\n")
    env = {"PATH": "/usr/bin:/bin", "RESUME_HOOKS_PYTHON": sys.executable}
    words = ["/bin/sh", "-c", lasting_shell_command("read x")]
    done = subprocess.run(words, env=env, cwd="/", capture_output=True, text=True, check=False)
    assert done.stdout == "['read', 'x']\n", done.stderr


TYPABLE_REMEDIES = {
    "resume-hooks trim --help": "{} trim --help",
    "resume-hooks fork makes a linked copy of it.": "{} fork makes a linked copy of it.",
    "See what it holds: resume-hooks restore --list": "See what it holds: {} restore --list",
    "No client tracks so many files. To check the session: resume-hooks fsck": (
        "No client tracks so many files. To check the session: {} fsck"
    ),
    "Did you mean trim? See resume-hooks --help": "Did you mean trim? See {} --help",
    "Or start anew with resume-hooks rollover --quick.": "Or start anew with {} rollover --quick.",
    "Update this resume-hooks, or move it away.": "Update this resume-hooks, or move it away.",
    "A newer resume-hooks wrote it.": "A newer resume-hooks wrote it.",
    "Type /resume-hooks:trim yes.": "Type /resume-hooks:trim yes.",
    "": "",
}


@pytest.mark.parametrize("remedy", TYPABLE_REMEDIES)
def test_commands_in_a_remedy_can_be_typed(remedy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command in a remedy is replaced by one that can be typed, and other text is unchanged."""
    monkeypatch.delenv("PATH")
    assert format_remedy(remedy) == TYPABLE_REMEDIES[remedy].format(LAUNCHER_COMMAND)
