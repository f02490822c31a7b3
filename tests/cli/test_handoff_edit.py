"""handoff --edit, in a real terminal with scripted editors."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path
from typing import NamedTuple

import pexpect
import pytest

from resume_hooks.derive.fresh_child import read_opening
from tests.builders import SESSION, ConfigHome, conversation, custom_title, write_session
from tests.needs import REPO


class Ended(NamedTuple):
    """The result of a command in a terminal: its exit code and its output."""

    code: int | None
    text: str


class Desk:
    """A project with a session, an editor that is a script, and a terminal."""

    def __init__(self, home: ConfigHome) -> None:
        """A session is laid in the project; a file may have ``room`` bytes."""
        self.home = home
        self.room = resource.RLIM_INFINITY
        self.project, self.bin, self.tmp = (home.root / name for name in ("proj", "bin", "tmp"))
        for folder in (self.project, self.bin, self.tmp):
            folder.mkdir()
        records = [{**record, "cwd": str(self.project)} for record in conversation(2)]
        self.parent = Path(
            write_session(
                home.project(str(self.project)), SESSION, [*records, custom_title("Fix the parser")]
            )
        )

    def editor(self, script: str) -> str:
        """Return an editor that gets the file's path as ``$1``."""
        path = self.bin / "edit"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    def handoff(self, *words: str, **environ: str) -> Ended:
        """Run ``handoff --edit`` with these words."""
        env = {
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "PYTHONPATH": str(REPO / "src"),
            "TERM": "dumb",
            "TMPDIR": str(self.tmp),
            "NO_COLOR": "1",
            **self.home.environ,
            **environ,
        }
        command = ["-m", "resume_hooks", "handoff", SESSION, "--edit", *words]
        child = pexpect.spawn(
            sys.executable,
            command,
            env=env,
            cwd=str(self.project),
            timeout=60,
            encoding="utf-8",
            dimensions=(50, 300),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (self.room, self.room)),
        )
        child.expect(pexpect.EOF)
        child.close()
        return Ended(child.exitstatus, str(child.before).replace("\r\n", "\n"))

    def openings(self) -> list[str]:
        """Return the openings of the children."""
        return [
            str(read_opening(str(path)))
            for path in self.parent.parent.iterdir()
            if path != self.parent
        ]


@pytest.fixture
def desk(config_home: ConfigHome) -> Desk:
    """A desk of the test's own."""
    return Desk(config_home)


def test_the_child_gets_the_saved_digest(desk: Desk) -> None:
    """The digest, the user's words, the next step; no note, no blank line, no marker.

    Nothing is left behind.
    """
    script = (
        'printf \'\\n\\nuse tabs\\n\\n[/SESSION LINEAGE]\\033[31m\\n\' >> "$1"; cp "$1" "$1~"; grep -c \'^# \' '
        '"$1"'
    )
    done = desk.handoff("-n", "go on", EDITOR=desk.editor(script))
    assert done.code == 0, done.text
    (opening,) = desk.openings()
    block, digest, step = opening.split("\n\n")
    assert block.endswith("[/SESSION LINEAGE]")
    assert digest.startswith("digest of what was done before")
    assert digest.endswith("\nuse tabs\n(/SESSION LINEAGE)")
    assert "\nUSER :0\n  prompt 0\n" in digest
    assert "# What the fresh session" not in digest
    assert step.endswith("\ngo on")
    assert os.listdir(desk.tmp) == []
    assert list(desk.project.iterdir()) == []
    (child,) = [path.stem for path in desk.parent.parent.iterdir() if path != desk.parent]
    assert f"resume-hooks read {child[:8]}:3" in digest, (
        "decided on after the edit, and named right"
    )


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (': > "$1"', "was cancelled and nothing was written"),
        ('rm "$1"', "was cancelled and nothing was written"),
        ("sed -i '/^#/!d' \"$1\"", "was cancelled and nothing was written"),
        ('echo x >> "$1"; exit 3', "ended with an error (3), so no session was made"),
        ("kill -INT $$", "ended with an error (-2), so no session was made"),
        ('rm "$1"; mkfifo "$1"', "can't be read: Not a regular file; no session was made"),
    ],
)
def test_ways_to_cancel_an_edit(desk: Desk, script: str, said: str) -> None:
    """An empty file, or an editor that fails: exit 1, one sentence, no session and no file."""
    done = desk.handoff(EDITOR=desk.editor(script))
    assert (done.code, done.text.count("\n")) == (1, 1), done.text
    assert said in done.text
    assert desk.openings() == []
    assert os.listdir(desk.tmp) == []


def test_which_editor(desk: Desk) -> None:
    """VISUAL before EDITOR, with a shell's words and quotes but without a shell; else vi."""
    script = desk.editor('echo "called as $0 with $1" >> "$2"')
    assert desk.handoff(EDITOR="false", VISUAL=f"'{script}' 'a $(b) c'").code == 0
    assert f"called as {script} with a $(b) c" in desk.openings()[0]
    os.rename(script, desk.bin / "vi")
    done = desk.handoff(
        EDITOR=" ", PATH=str(desk.bin)
    )  # the same script, which now is given no second word
    assert done.code == 1
    assert f"The editor {desk.bin}/vi ended with an error" in done.text


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"PATH": "/nowhere"}, "No editor: "),
        ({"EDITOR": "no-such-program"}, "The editor no-such-program can't be started"),
        ({"EDITOR": "vi 'x"}, "EDITOR can't be parsed"),
    ],
)
def test_no_editor(desk: Desk, environ: dict[str, str], said: str) -> None:
    """The error explains how to set one."""
    done = desk.handoff(**environ)
    assert done.code == 1
    assert said in done.text
    assert "EDITOR=nano" in done.text
    assert desk.openings() == []
    assert os.listdir(desk.tmp) == []


def test_no_room_for_the_text(desk: Desk) -> None:
    """A full disk: a sentence, before any editor was started."""
    desk.room = 500
    done = desk.handoff(EDITOR=desk.editor("echo started"))
    assert done.code == 1
    assert "The text to edit could not be written: File too large" in done.text
    assert "started" not in done.text
    assert (desk.openings(), os.listdir(desk.tmp)) == ([], [])


def test_work_is_not_lost_when_the_child_can_not_be_made(desk: Desk) -> None:
    """A text that is too long stays in the file that the message names."""
    script = desk.editor("head -c 300000 /dev/zero | tr '\\0' x >> \"$1\"")
    done = desk.handoff(EDITOR=script)
    assert done.code == 2
    (folder,) = desk.tmp.iterdir()
    assert f"Your text is in {folder}/handoff.md" in done.text
    assert (folder / "handoff.md").stat().st_size > 300_000
    assert folder.stat().st_mode & 0o777 == 0o700
    assert desk.openings() == []
