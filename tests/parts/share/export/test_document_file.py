"""Tests of writing a document file.

The file is written completely or not at all, is private, and does not overwrite other files.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from resume_hooks.errors import CheckFailed, WriteFailed
from resume_hooks.parts.share.export import document_file
from resume_hooks.parts.share.export.document import build_file_name
from resume_hooks.parts.share.export.document_file import (
    read_status_of_file_to_replace,
    write_document,
)
from resume_hooks.storage import atomic


def test_a_new_document_is_private(tmp_path: Path) -> None:
    """A new document has mode 0600, and the returned digest is the digest of its bytes."""
    path = tmp_path / "a.html"
    done = write_document(str(path), iter([b"one", b"two"]), None)
    assert path.read_bytes() == b"onetwo"
    assert (done.byte_count, done.sha256) == (6, hashlib.sha256(b"onetwo").hexdigest())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["a.html"]


def test_an_unusable_path_is_refused(tmp_path: Path) -> None:
    """A link, a path in a missing folder, and a folder are refused as the path of a document."""
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "folder").mkdir()
    for place in ("link", "nowhere/a.html", "folder"):
        with pytest.raises(WriteFailed):
            read_status_of_file_to_replace(str(tmp_path / place), force=True)
    assert not (tmp_path / "target").exists()


def test_a_file_created_or_changed_meanwhile_is_kept(tmp_path: Path) -> None:
    """A file that was created or changed while the document was made is not overwritten."""
    path = tmp_path / "a.html"
    path.write_bytes(b"theirs")
    with pytest.raises(WriteFailed):
        write_document(str(path), iter([b"new"]), None)
    over = read_status_of_file_to_replace(str(path), force=True)
    path.write_bytes(b"theirs, longer")
    with pytest.raises(WriteFailed, match="in the meantime"):
        write_document(str(path), iter([b"new"]), over)
    assert path.read_bytes() == b"theirs, longer"
    assert os.listdir(tmp_path) == ["a.html"]


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("step", ["chunk", "fsync", "link", "replace", "read"])
def test_a_failed_write_keeps_the_existing_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, *, exists: bool
) -> None:
    """If a step of the write fails, the existing file stays, and no other file is left."""
    path = tmp_path / "a.html"
    if exists:
        path.write_bytes(b"mine")
    over = read_status_of_file_to_replace(str(path), force=True)

    def raise_disk_full_error(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    def build_chunks() -> Iterator[bytes]:
        yield b"one"
        if step == "chunk":
            raise_disk_full_error()
        yield b"two"

    if step == "replace" and not exists:
        return
    if step == "read":
        monkeypatch.setattr(document_file, "measure_chunks", lambda _: None)
    elif step != "chunk":
        owner, name = {
            "fsync": (os, "fsync"),
            "link": (atomic, "link_exclusively"),
            "replace": (os, "replace"),
        }[step]
        monkeypatch.setattr(owner, name, raise_disk_full_error)
    with pytest.raises((WriteFailed, CheckFailed)):
        write_document(str(path), build_chunks(), over)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == (["a.html"] if exists else [])
    assert not exists or path.read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Fix the parser", "fix-the-parser-1a2b3c4d.html"),
        ("../../etc/passwd", "etc-passwd-1a2b3c4d.html"),
        ("CON", "con-1a2b3c4d.html"),
        ("", "session-1a2b3c4d.html"),
        ('\x00\n\t*?<>|:"', "session-1a2b3c4d.html"),
        ("-rf .", "rf-1a2b3c4d.html"),
        ("Übung ﬁx", "übung-fix-1a2b3c4d.html"),
        ("x" * 300, f"{'x' * 60}-1a2b3c4d.html"),
        ("日" * 300, f"{'日' * 40}-1a2b3c4d.html"),
    ],
)
def test_document_names_fit_every_file_system(title: str, name: str) -> None:
    """A document's name contains words of the title and the session's id, and fits every file system."""
    assert build_file_name(title, "1a2b3c4d-0000-4000-8000-000000000000", "html") == name
    assert len(name.encode()) < 200
