"""Names of derived sessions: root title, kind, number."""

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

META: dict[str, object] = {"continue_metadata": {"parent_session_id": session_id(1)}}


def derived(folder: Path, number: int, title: str, *, filler: int = 0) -> None:
    """A child of that title in the folder, grown by ``filler`` turns after it was named."""
    write_session(folder, session_id(number), [META, custom_title(title), *conversation(filler)])


def test_counts_from_one_within_the_project(config_home: ConfigHome, tmp_path: Path) -> None:
    """The number is the first that no session of the folder has gone past.

    Other folders don't count.
    """
    folder = config_home.project()
    assert unused_title("Fix it", "handoff", str(folder)) == "Fix it · handoff"
    derived(folder, 2, "Fix it · handoff")
    derived(folder, 3, "Fix it · handoff 9")
    derived(folder, 4, "Fix it · rollover 3")
    derived(folder, 5, "Fix it · handoff later")
    derived(folder, 6, f"Fix it · handoff {'9' * 5000}")
    assert unused_title("Fix it", "handoff", str(folder)) == "Fix it · handoff 10"
    assert unused_title("Fix it", "rollover", str(folder)) == "Fix it · rollover 4"
    assert unused_title("Fix it", "handoff", str(tmp_path)) == "Fix it · handoff"


def test_a_title_carried_over_by_clear_is_taken_too(config_home: ConfigHome) -> None:
    """The client gives a cleared session the old custom title: no second session may get it once more."""
    folder = config_home.project()
    write_session(folder, session_id(2), [*conversation(1), custom_title("Fix it · handoff")])
    assert unused_title("Fix it", "handoff", str(folder)) == "Fix it · handoff 2"


def test_a_kind_is_reported_once_and_by_the_word_that_is_typed(config_home: ConfigHome) -> None:
    """A title that ends in the kind has told it, also one that 0.2.0 wrote."""
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
def test_any_title_is_counted(config_home: ConfigHome, title: str) -> None:
    """Quotes, backslashes, other scripts and length do not hide a name that is taken; 80 characters at most."""
    folder = config_home.project()
    first = unused_title(title, "handoff", str(folder))
    derived(folder, 2, first)
    second = unused_title(title, "handoff", str(folder))
    assert first.endswith(" · handoff")
    assert second == f"{first} 2"
    assert len(second) <= 80


@pytest.mark.parametrize(
    ("title", "root"),
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
def test_a_descendant_shows_the_root_title(title: str, root: str) -> None:
    """Kind and number come off, also as they once stood in front, so that names don't grow where the root is gone."""
    assert root_title_of(title) == root


@given(st.text())
def test_root_of_is_stable(title: str) -> None:
    """Taking off twice is taking off once, and never leaves nothing of something."""
    assert root_title_of(root_title_of(title)) == root_title_of(title)
    assert bool(root_title_of(title)) == bool(title)


HOLDER = """
import sys
from resume_hooks.sessions.child_titles import lock_titles
with lock_titles(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_another_process_is_waited_for_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as it is at work, and no longer than the patience: it may be stopped.

    A killed one holds nothing.
    """
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], **pipes)  # type: ignore[call-overload]
    try:
        assert holder.stdout.readline() == "held\n"
        assert not locked_at_once(tmp_path)
        monkeypatch.setattr("resume_hooks.sessions.child_titles.TITLE_LOCK_SECONDS", 0.05)
        with lock_titles(str(tmp_path)):
            assert not locked_at_once(tmp_path)
        threading.Timer(0.2, holder.kill).start()
        monkeypatch.setattr("resume_hooks.sessions.child_titles.TITLE_LOCK_SECONDS", 60.0)
        with lock_titles(str(tmp_path)):
            assert holder.wait() != 0
            assert not locked_at_once(tmp_path)
    finally:
        holder.kill()
        holder.communicate()
    assert locked_at_once(tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_not_there_blocks_nobody(tmp_path: Path) -> None:
    """Nothing in it has a title."""
    with lock_titles(str(tmp_path / "nobody")):
        assert os.listdir(tmp_path) == []


def locked_at_once(folder: Path) -> bool:
    """Whether a folder's lock is free."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        return lock_descriptor(descriptor) is True
    finally:
        os.close(descriptor)
