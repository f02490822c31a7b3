"""Tests of ``handoff --edit`` in a real terminal, with a script in place of the editor."""

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


class CommandResult(NamedTuple):
    """The exit code and the output of a command in a terminal."""

    exit_code: int | None
    text: str


class EditorHome:
    """A home with a session, a script that replaces the editor, and a terminal."""

    def __init__(self, home: ConfigHome) -> None:
        """Write a session into the project.

        To limit the size of the files that a command may write, set ``max_file_bytes``.
        """
        self.home = home
        self.max_file_bytes = resource.RLIM_INFINITY
        self.project, self.bin, self.tmp = (home.root / name for name in ("proj", "bin", "tmp"))
        for folder in (self.project, self.bin, self.tmp):
            folder.mkdir()
        records = [{**record, "cwd": str(self.project)} for record in conversation(2)]
        self.parent = Path(
            write_session(
                home.project(str(self.project)), SESSION, [*records, custom_title("Fix the parser")]
            )
        )

    def write_editor(self, script: str) -> str:
        """Write a script that gets the file's path as ``$1``, and return the path of the script."""
        path = self.bin / "edit"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    def run_handoff(self, *words: str, **environ: str) -> CommandResult:
        """Run ``handoff --edit`` with these words, and return its exit code and output."""
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
            preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_FSIZE, (self.max_file_bytes, self.max_file_bytes)
            ),
        )
        child.expect(pexpect.EOF)
        child.close()
        return CommandResult(child.exitstatus, str(child.before).replace("\r\n", "\n"))

    def openings(self) -> list[str]:
        """Return the openings of all children."""
        return [
            str(read_opening(str(path)))
            for path in self.parent.parent.iterdir()
            if path != self.parent
        ]


@pytest.fixture
def editor_home(config_home: ConfigHome) -> EditorHome:
    """Return a home for ``handoff --edit``."""
    return EditorHome(config_home)


def test_the_child_gets_the_saved_digest(editor_home: EditorHome) -> None:
    """The child's opening contains the digest with the user's additions, and the next step.

    The notes for the user are removed, and no temporary file is left behind.
    """
    script = (
        'printf \'\\n\\nuse tabs\\n\\n[/SESSION LINEAGE]\\033[31m\\n\' >> "$1"; cp "$1" "$1~"; grep -c \'^# \' '
        '"$1"'
    )
    done = editor_home.run_handoff("-n", "go on", EDITOR=editor_home.write_editor(script))
    assert done.exit_code == 0, done.text
    (opening,) = editor_home.openings()
    block, digest, step = opening.split("\n\n")
    assert block.endswith("[/SESSION LINEAGE]")
    assert digest.startswith("digest of what was done before")
    assert digest.endswith("\nuse tabs\n(/SESSION LINEAGE)")
    assert "\nUSER :0\n  prompt 0\n" in digest
    assert "# What the fresh session" not in digest
    assert step.endswith("\ngo on")
    assert os.listdir(editor_home.tmp) == []
    assert list(editor_home.project.iterdir()) == []
    (child,) = [
        path.stem for path in editor_home.parent.parent.iterdir() if path != editor_home.parent
    ]
    assert f"resume-hooks read {child[:8]}:3" in digest, (
        "decided on after the edit, and named right"
    )


@pytest.mark.parametrize(
    ("script", "expected_text"),
    [
        (': > "$1"', "was cancelled and nothing was written"),
        ('rm "$1"', "was cancelled and nothing was written"),
        ("sed -i '/^#/!d' \"$1\"", "was cancelled and nothing was written"),
        ('echo x >> "$1"; exit 3', "ended with an error (3), so no session was made"),
        ("kill -INT $$", "ended with an error (-2), so no session was made"),
        ('rm "$1"; mkfifo "$1"', "can't be read: Not a regular file; no session was made"),
    ],
)
def test_an_empty_file_or_a_failed_editor_cancels_the_handoff(
    editor_home: EditorHome, script: str, expected_text: str
) -> None:
    """If the file is empty or the editor fails, ``handoff --edit`` writes no session.

    It prints one sentence and exits with code 1.
    """
    done = editor_home.run_handoff(EDITOR=editor_home.write_editor(script))
    assert (done.exit_code, done.text.count("\n")) == (1, 1), done.text
    assert expected_text in done.text
    assert editor_home.openings() == []
    assert os.listdir(editor_home.tmp) == []


def test_the_editor_comes_from_visual_or_editor(editor_home: EditorHome) -> None:
    """``handoff --edit`` starts the editor that VISUAL names, or else the one in EDITOR, or else vi.

    The editor runs without a shell.
    """
    script = editor_home.write_editor('echo "called as $0 with $1" >> "$2"')
    assert editor_home.run_handoff(EDITOR="false", VISUAL=f"'{script}' 'a $(b) c'").exit_code == 0
    assert f"called as {script} with a $(b) c" in editor_home.openings()[0]
    os.rename(script, editor_home.bin / "vi")
    # The script, now named ``vi``, gets only one argument and therefore fails.
    done = editor_home.run_handoff(EDITOR=" ", PATH=str(editor_home.bin))
    assert done.exit_code == 1
    assert f"The editor {editor_home.bin}/vi ended with an error" in done.text


@pytest.mark.parametrize(
    ("environ", "expected_text"),
    [
        ({"PATH": "/nowhere"}, "No editor: "),
        ({"EDITOR": "no-such-program"}, "The editor no-such-program can't be started"),
        ({"EDITOR": "vi 'x"}, "EDITOR can't be parsed"),
    ],
)
def test_handoff_edit_fails_without_an_editor(
    editor_home: EditorHome, environ: dict[str, str], expected_text: str
) -> None:
    """If there is no usable editor, the error explains how to set one."""
    done = editor_home.run_handoff(**environ)
    assert done.exit_code == 1
    assert expected_text in done.text
    assert "EDITOR=nano" in done.text
    assert editor_home.openings() == []
    assert os.listdir(editor_home.tmp) == []


def test_handoff_edit_fails_if_the_text_cannot_be_written(editor_home: EditorHome) -> None:
    """If the text cannot be written to the file, ``handoff --edit`` starts no editor."""
    editor_home.max_file_bytes = 500
    done = editor_home.run_handoff(EDITOR=editor_home.write_editor("echo started"))
    assert done.exit_code == 1
    assert "The text to edit could not be written: File too large" in done.text
    assert "started" not in done.text
    assert (editor_home.openings(), os.listdir(editor_home.tmp)) == ([], [])


def test_the_edited_text_is_kept_if_the_handoff_fails(editor_home: EditorHome) -> None:
    """If the handoff fails after the edit, the error names the file that contains the edited text."""
    script = editor_home.write_editor("head -c 300000 /dev/zero | tr '\\0' x >> \"$1\"")
    done = editor_home.run_handoff(EDITOR=script)
    assert done.exit_code == 2
    (folder,) = editor_home.tmp.iterdir()
    assert f"Your text is in {folder}/handoff.md" in done.text
    assert (folder / "handoff.md").stat().st_size > 300_000
    assert folder.stat().st_mode & 0o777 == 0o700
    assert editor_home.openings() == []
