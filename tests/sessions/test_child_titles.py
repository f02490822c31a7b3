"""Tests of the titles of children, such as "Fix it · handoff 2".

A child's title consists of the first session's title, the kind and a number.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.sessions.child_titles import (
    kind_unless_in_title,
    lock_titles,
    root_title_of,
    unused_title,
)
from resume_hooks.storage.locks import lock_descriptor
from tests.builders import ConfigHome, conversation, custom_title, session_id, write_session

CHILD_METADATA: dict[str, object] = {"continue_metadata": {"parent_session_id": session_id(1)}}


def write_child_with_title(
    folder: Path, session_number: int, title: str, *, filler_turn_count: int = 0
) -> None:
    """Write a child with this title, followed by ``filler_turn_count`` turns."""
    write_session(
        folder,
        session_id(session_number),
        [CHILD_METADATA, custom_title(title), *conversation(filler_turn_count)],
    )


def test_a_title_gets_the_next_number_of_its_kind_and_folder(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """A new title gets the number after the highest number of its kind in its folder.

    The kind is the word before the number, for example "handoff" or "rollover".
    """
    folder = config_home.project()
    assert unused_title("Fix it", "handoff", str(folder)) == "Fix it · handoff"
    write_child_with_title(folder, 2, "Fix it · handoff")
    write_child_with_title(folder, 3, "Fix it · handoff 9")
    write_child_with_title(folder, 4, "Fix it · rollover 3")
    write_child_with_title(folder, 5, "Fix it · handoff later")
    write_child_with_title(folder, 6, f"Fix it · handoff {'9' * 5000}")
    assert unused_title("Fix it", "handoff", str(folder)) == "Fix it · handoff 10"
    assert unused_title("Fix it", "rollover", str(folder)) == "Fix it · rollover 4"
    assert unused_title("Fix it", "handoff", str(tmp_path)) == "Fix it · handoff"


def test_a_title_copied_by_clear_counts_as_used(config_home: ConfigHome) -> None:
    """A title that ``/clear`` copied to another session counts as used."""
    folder = config_home.project()
    write_session(folder, session_id(2), [*conversation(1), custom_title("Fix it · handoff")])
    assert unused_title("Fix it", "handoff", str(folder)) == "Fix it · handoff 2"


def test_a_title_never_repeats_the_kind(config_home: ConfigHome) -> None:
    """A title that already ends in the kind does not get the kind a second time.

    This also applies to "rewind", the name of ``back`` in version 0.2.0.
    """
    assert unused_title("Fix it", "back", str(config_home.project())) == "Fix it · back"
    assert root_title_of("Fix it · rewind · back 2") == "Fix it"
    assert {
        kind_unless_in_title(f"Fix it · {end}", "back")
        for end in ("back", "back 2", "rewind", "rewind 12")
    } == {""}
    assert kind_unless_in_title("Fix it · handoff", "back") == "back"
    assert kind_unless_in_title("Fix it", "fork") == "fork"


@pytest.mark.parametrize(
    "title", ["日本語のタイトル", 'say "hi" \\ there', "naïve 👩‍👩‍👧", "a" * 500, " \n\t ", ""]
)
def test_used_titles_of_any_characters_are_recognized(config_home: ConfigHome, title: str) -> None:
    """A used title is recognized whatever its characters and length are.

    A title has at most 80 characters.
    """
    folder = config_home.project()
    first = unused_title(title, "handoff", str(folder))
    write_child_with_title(folder, 2, first)
    second = unused_title(title, "handoff", str(folder))
    assert first.endswith(" · handoff")
    assert second == f"{first} 2"
    assert len(second) <= 80


@pytest.mark.parametrize(
    ("title", "expected_root_title"),
    [
        ("Fix it · handoff", "Fix it"),
        ("Fix it · rollover · handoff 12", "Fix it"),
        ("Fix it · handoff 12345", "Fix it · handoff 12345"),
        (" · handoff", " · handoff"),
        ("handoff 2 · Fix it", "Fix it"),
        ("handoff 2 · rollover 1 · Fix it", "Fix it"),
        ("smart-trim 10 · Fix it", "Fix it"),
        ("Fix it", "Fix it"),
        ("Room · 7", "Room · 7"),
        ("handoff 2 · ", "handoff 2 · "),
        ("Step 3 · Fix it", "Step 3 · Fix it"),
        ("step 3 · Fix it", "step 3 · Fix it"),
    ],
)
def test_the_root_title_has_no_kind_and_no_number(title: str, expected_root_title: str) -> None:
    """``root_title_of`` removes the kind and the number from the end of a title.

    The function also removes a kind and a number at the beginning, where old titles had them.
    """
    assert root_title_of(title) == expected_root_title


@given(st.text())
def test_root_title_of_is_idempotent(title: str) -> None:
    """``root_title_of`` does not change its own result and never returns an empty title."""
    assert root_title_of(root_title_of(title)) == root_title_of(title)
    assert bool(root_title_of(title)) == bool(title)


LOCK_HOLDER_SCRIPT = """
import sys
from resume_hooks.sessions.child_titles import lock_titles
with lock_titles(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_wait_for_another_process_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wait for another process's lock on titles ends after ``MAX_TITLE_LOCK_WAIT_SECONDS``.

    The lock is free as soon as the other process is killed.
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    holder = subprocess.Popen([sys.executable, "-c", LOCK_HOLDER_SCRIPT, str(tmp_path)], **pipes)  # type: ignore[call-overload]
    try:
        assert holder.stdout.readline() == "held\n"
        assert not is_lock_free(tmp_path)
        monkeypatch.setattr("resume_hooks.sessions.child_titles.MAX_TITLE_LOCK_WAIT_SECONDS", 0.05)
        with lock_titles(str(tmp_path)):
            assert not is_lock_free(tmp_path)
        threading.Timer(0.2, holder.kill).start()
        monkeypatch.setattr("resume_hooks.sessions.child_titles.MAX_TITLE_LOCK_WAIT_SECONDS", 60.0)
        with lock_titles(str(tmp_path)):
            assert holder.wait() != 0
            assert not is_lock_free(tmp_path)
    finally:
        holder.kill()
        holder.communicate()
    assert is_lock_free(tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_missing_folder_needs_no_lock(tmp_path: Path) -> None:
    """``lock_titles`` accepts a missing folder and does not create it."""
    with lock_titles(str(tmp_path / "nobody")):
        assert os.listdir(tmp_path) == []


def is_lock_free(folder: Path) -> bool:
    """Check whether the lock on a folder's titles is free."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        return lock_descriptor(descriptor) is True
    finally:
        os.close(descriptor)
