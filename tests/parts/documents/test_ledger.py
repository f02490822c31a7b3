"""The ledger: one line is renewed, everything else stays byte for byte."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from resume_hooks.errors import WriteFailed
from resume_hooks.parts.documents import ledger
from resume_hooks.storage import project_files
from tests.needs import REPO

NOW = "Fix · 1234 · now"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b"current session: Fix \xc2\xb7 1234 \xc2\xb7 now\n"),
        (b"\xef\xbb\xbf", b"\xef\xbb\xbfcurrent session: NOW\n"),
        (b"a\ncurrent session: old\nb\n", b"a\ncurrent session: NOW\nb\n"),
        (b"current session:", b"current session: NOW"),
        (b"a\r\nCurrent Session: old\r\nb\r\n", b"a\r\nCurrent Session: NOW\r\nb\r\n"),
        (b"a\rcurrent session: old\rb", b"a\rcurrent session: NOW\rb"),
        (b"\xef\xbb\xbfcurrent session: x\ny", b"\xef\xbb\xbfcurrent session: NOW\ny"),
        (b"# Ledger\n\n  - current session: x\n", b"# Ledger\n\n  - current session: NOW\n"),
        (b"## CURRENT SESSION: x\ny", b"## CURRENT SESSION: NOW\ny"),
        (b"12. current session:\tx\n", b"12. current session: NOW\n"),
        (b"a", b"a\ncurrent session: NOW\n"),
        (b"a\r\nb", b"a\r\nb\r\ncurrent session: NOW\r\n"),
        (b"the current session: x\n", b"the current session: x\ncurrent session: NOW\n"),
        (b"current sessions: x\n", b"current sessions: x\ncurrent session: NOW\n"),
        (b"x" * 100 + b" current session: y", b"x" * 100 + b" current session: y\ncurrent session: NOW\n"),
        (b" " * 70 + b"current session: y\n", b" " * 70 + b"current session: y\ncurrent session: NOW\n"),
        ("현재 · é\ncurrent session: x\n끝".encode(), "현재 · é\ncurrent session: NOW\n끝".encode()),
    ],
)
def test_one_line_is_renewed(tmp_path: Path, before: bytes, after: bytes) -> None:
    """In its place, behind its mark, with its line ending; or at the end where there is none."""
    path = tmp_path / "CURRENT.md"
    path.write_bytes(before)
    assert ledger.renew(str(path), NOW) == ""
    assert path.read_bytes() == after.replace(b"NOW", NOW.encode())
    assert os.listdir(tmp_path) == ["CURRENT.md"]
    again = path.read_bytes()
    ledger.renew(str(path), NOW)
    assert path.read_bytes() == again


def test_a_missing_ledger_is_made(tmp_path: Path) -> None:
    """With its one line, as the umask has it."""
    path = tmp_path / "CURRENT.md"
    before = os.umask(0o027)
    try:
        assert ledger.renew(str(path), NOW) == ""
    finally:
        os.umask(before)
    assert path.read_text("utf-8") == f"current session: {NOW}\n"
    assert path.stat().st_mode & 0o777 == 0o640


def test_the_first_of_several_is_renewed(tmp_path: Path) -> None:
    """And the user is told."""
    path = tmp_path / "CURRENT.md"
    path.write_text("current session: a\nx\n- Current session: b\n")
    assert "has 2 lines" in ledger.renew(str(path), NOW)
    assert path.read_text("utf-8") == f"current session: {NOW}\nx\n- Current session: b\n"


def test_a_large_ledger(tmp_path: Path) -> None:
    """Five megabytes, half of them what looks like the line and is none."""
    path = tmp_path / "CURRENT.md"
    rest = b"current session: " * 150_000 + b"\n" + b"words\n" * 400_000
    path.write_bytes(b"x" + rest + b"current session: old\nend")
    ledger.renew(str(path), NOW)
    assert path.read_bytes() == b"x" + rest + f"current session: {NOW}\nend".encode()


def test_the_mode_of_a_ledger_stays(tmp_path: Path) -> None:
    """A file that others may write stays theirs."""
    path = tmp_path / "CURRENT.md"
    path.write_text("x\n")
    path.chmod(0o664)
    ledger.renew(str(path), NOW)
    assert path.stat().st_mode & 0o777 == 0o664


@pytest.mark.parametrize("kind", ["binary", "latin", "utf-16", "link", "dangling link", "pipe", "folder", "too large"])
def test_what_is_no_ledger_is_left_alone(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No text, no regular file: a plain failure, and nothing was written through a link."""
    path, target = tmp_path / "CURRENT.md", tmp_path / "target"
    contents = {
        "binary": b"current session: \x00\x01",
        "latin": b"caf\xe9\n",
        "utf-16": "current session: x".encode("utf-16"),
        "too large": b"x" * 101,
    }
    if kind in contents:
        path.write_bytes(contents[kind])
        monkeypatch.setattr(ledger, "MAX_LEDGER", 100)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        if kind == "link":
            target.write_text("current session: x\n")
        path.symlink_to(target)

    def state() -> object:
        found = os.lstat(path)
        return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, target.exists() and target.read_bytes()

    before = state()
    with pytest.raises(WriteFailed, match="left alone"):
        ledger.renew(str(path), NOW)
    assert state() == before


def test_a_ledger_that_changes_meanwhile_is_read_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another program wrote between our reading and our writing is not lost."""
    path = tmp_path / "CURRENT.md"
    path.write_text("current session: a\n")
    read = project_files.read_state
    others = iter(["one\n", "two\n"])

    def interrupted(name: str, limit: int) -> tuple[bytes, os.stat_result | None]:
        found = read(name, limit)
        if line := next(others, ""):
            path.write_text(path.read_text() + line)
        return found

    monkeypatch.setattr(project_files, "read_state", interrupted)
    ledger.renew(str(path), NOW)
    assert path.read_text("utf-8") == f"current session: {NOW}\none\ntwo\n"


WRITER = """
import sys
from resume_hooks.parts.documents import ledger
from resume_hooks.errors import WriteFailed
for number in range(60):
    try:
        ledger.renew(sys.argv[1], f"{sys.argv[2]} {number}")
    except WriteFailed as error:
        assert "changed it meanwhile" in error.message, error.message
"""


def test_several_handoffs_on_one_ledger(tmp_path: Path) -> None:
    """One line is left, whole, of one of them; the rest of the file as it was."""
    path = tmp_path / "CURRENT.md"
    path.write_text("before\n- current session: old\nafter")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name],
            env={"PYTHONPATH": str(REPO / "src")},
            stderr=subprocess.PIPE,
        )
        for name in "abc"
    ]
    assert [process.communicate()[1] for process in running] == [b"", b"", b""]
    first, line, last = path.read_text().split("\n")
    assert (first, last) == ("before", "after")
    assert line[:-3].rstrip() in {f"- current session: {name}" for name in "abc"}
    assert os.listdir(tmp_path) == ["CURRENT.md"]
