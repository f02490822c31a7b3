"""The ledger: one line is renewed, everything else stays byte for byte."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from resume_hooks.errors import WriteFailed
from resume_hooks.parts.documents import document as ledger
from resume_hooks.storage import project_files

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
    """With its one line, as the umask has it; one that others may write stays theirs."""
    path = tmp_path / "CURRENT.md"
    before = os.umask(0o027)
    try:
        assert ledger.renew(str(path), NOW) == ""
    finally:
        os.umask(before)
    assert path.read_text("utf-8") == f"current session: {NOW}\n"
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o664)
    ledger.renew(str(path), NOW)
    assert path.stat().st_mode & 0o777 == 0o664


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


@pytest.mark.parametrize(
    "content", [b"current session: \x00\x01", b"caf\xe9\n", "current session: x".encode("utf-16"), b"x" * 101]
)
def test_what_is_no_ledger_is_left_alone(tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """No text, or too large: a plain failure."""
    monkeypatch.setattr(ledger, "MAX_LEDGER", 100)
    path = tmp_path / "CURRENT.md"
    path.write_bytes(content)
    before = path.stat()
    with pytest.raises(WriteFailed, match="left alone"):
        ledger.renew(str(path), NOW)
    assert (path.stat().st_mtime_ns, path.read_bytes()) == (before.st_mtime_ns, content)


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "folder"])
def test_no_regular_file_is_written_through(tmp_path: Path, kind: str) -> None:
    """The same failure."""
    path, target = tmp_path / "CURRENT.md", tmp_path / "target"
    if kind == "link":
        target.write_text("current session: x\n")
    {"pipe": os.mkfifo, "folder": os.mkdir}.get(kind, lambda name: os.symlink(target, name))(path)
    with pytest.raises(WriteFailed, match="left alone"):
        ledger.renew(str(path), NOW)
    assert not path.is_file() or target.read_text() == "current session: x\n"
    assert target.exists() is (kind == "link")


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
