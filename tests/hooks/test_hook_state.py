"""Tests of the notes that one hook stores for a later one.

A note is private to this user, is written completely or not at all, and can be consumed only once.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.hooks import hook_state
from tests.builders import ConfigHome

NOTE_NAME = "trim-x.json"
NOTE_CONTENT = {"a": "b \ud83d é", "n": 1}


@pytest.fixture
def note(config_home: ConfigHome) -> Path:
    """Store a note twice, with different contents, and return its path."""
    old = os.umask(0)
    try:
        hook_state.write_note(NOTE_NAME, {"a": "an older one"})
        hook_state.write_note(NOTE_NAME, NOTE_CONTENT)
    finally:
        os.umask(old)
    return config_home.config / "resume-hooks" / "pending" / NOTE_NAME


def test_a_stored_note_is_found(note: Path) -> None:
    """A stored note has the content that was last written, and its file and folder are private."""
    assert hook_state.read_note(NOTE_NAME) == {"version": 1, **NOTE_CONTENT}
    assert note.stat().st_mode & 0o777 == 0o600
    assert note.parent.stat().st_mode & 0o777 == 0o700
    assert list(note.parent.iterdir()) == [note]


INVALID_NOTES: dict[str, bytes | Any] = {
    "nothing": b"",
    "no JSON": b"yes",
    "a list": [],
    "torn": b'{"version": 1, "a": "b',
    "bad UTF-8": b'\xff{"version": 1}',
    "deep": b"[" * 60_000,
    "huge": {"version": 1, "a": "x" * hook_state.MAX_NOTE_BYTES},
    "a newer version": {"version": 2},
    "no version": {"a": "b"},
}


@pytest.mark.parametrize("name", INVALID_NOTES)
def test_an_invalid_note_is_read_as_empty(note: Path, name: str) -> None:
    """A note with invalid content is read as empty, without an error."""
    content = INVALID_NOTES[name]
    note.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    assert hook_state.read_note(NOTE_NAME) == {}


@pytest.mark.parametrize("file_mode", [0o620, 0o602, 0o666])
def test_a_note_that_others_may_write_is_ignored(note: Path, file_mode: int) -> None:
    """A note is ignored if its file mode allows other users to write to it."""
    note.chmod(file_mode)
    assert hook_state.read_note(NOTE_NAME) == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_another_users_note_is_ignored(note: Path) -> None:
    """A note is ignored if another user owns its file."""
    os.chown(note, 12_345, 12_345)
    assert hook_state.read_note(NOTE_NAME) == {}


@pytest.mark.parametrize("file_kind", ["link", "dangling", "pipe", "folder"])
def test_a_note_that_is_not_a_file_is_ignored(
    note: Path, config_home: ConfigHome, file_kind: str
) -> None:
    """A note is ignored if it is a link, a pipe or a folder.

    If a new note is written over a link, it replaces the link and leaves the link's target
    unchanged.
    """
    outside = note.rename(config_home.root / "outside.json")
    before = outside.read_bytes()
    if file_kind == "pipe":
        os.mkfifo(note, 0o600)
    elif file_kind == "folder":
        note.mkdir()
    else:
        note.symlink_to(outside if file_kind == "link" else config_home.root / "nowhere")
    assert hook_state.read_note(NOTE_NAME) == {}
    if file_kind == "folder":
        with pytest.raises(OSError, match="directory"):
            hook_state.write_note(NOTE_NAME, NOTE_CONTENT)
        assert list(note.parent.iterdir()) == [note], "no temporary file stays"
    else:
        hook_state.write_note(NOTE_NAME, NOTE_CONTENT)
        assert hook_state.read_note(NOTE_NAME) == {"version": 1, **NOTE_CONTENT}
    assert outside.read_bytes() == before
    assert not (config_home.root / "nowhere").exists()


def test_a_note_can_be_consumed_once(note: Path) -> None:
    """If two callers consume the same note, only the first one gets it."""
    assert [hook_state.consume_note(NOTE_NAME), hook_state.consume_note(NOTE_NAME)] == [True, False]
    assert hook_state.read_note(NOTE_NAME) == {}


def test_old_notes_of_one_kind_are_removed(note: Path) -> None:
    """``delete_old_notes`` deletes the notes of one kind that are older than a day.

    It also deletes unfinished files of such notes. It keeps recent notes, notes of other kinds and
    folders.
    """
    folder, old = note.parent, time.time() - 2 * hook_state.NOTE_LIFETIME_SECONDS
    gone = [folder / "trim-3.json", folder / "trim-4.json.7-1.tmp"]
    stays = [note, folder / "clear-77.json", folder / "trim-folder"]
    for path in (*gone, stays[1]):
        path.touch()
    stays[2].mkdir()
    for path in (*gone, *stays[1:]):
        os.utime(path, (old, old))
    hook_state.delete_old_notes("trim-")
    assert set(folder.iterdir()) == set(stays)
