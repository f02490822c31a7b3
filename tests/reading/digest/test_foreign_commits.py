"""Tests that a later ``git log`` shows commits that the session's commands did not make."""

from __future__ import annotations

import pytest

from tests.builders import CWD, ConfigHome
from tests.reading.digest.talk import Talk, entry_notes, entry_texts

FOREIGN_COMMITS_ROW = "commits that no git command of the session made: 2222222, 3333333"
POSSIBLY_COMMITTED_NOTE = "open or in a commit that the session did not make"
LATER_LOG = "3333333 third\n2222222 second\n1111111 first"


def _foreign_commit_rows(talk: Talk, home: ConfigHome) -> list[str]:
    return [
        row for row in entry_texts(talk.digest(home), "now") if row.startswith("commits that no")
    ]


def _talk_with_edited_files() -> Talk:
    talk = Talk().prompt("go").runs("git log --oneline -5", "1111111 first\n0000000 x", cwd=CWD)
    return talk.edits(f"{CWD}/a.py").edits(f"{CWD}/b.py").runs("git add a.py", "", cwd=CWD)


def test_commits_that_appear_in_a_later_log_belong_to_the_user(config_home: ConfigHome) -> None:
    """Commits that a later ``git log`` adds at the top are listed as not made by the session.

    Files that were uncommitted may be in these commits. A file that is edited after the commits is
    listed as not committed.
    """
    talk = (
        _talk_with_edited_files()
        .prompt("go on")
        .runs("git log --oneline main..HEAD | head", LATER_LOG, cwd=CWD)
    )
    assert _foreign_commit_rows(talk, config_home) == [
        f"{FOREIGN_COMMITS_ROW}; they may include a.py, b.py"
    ]
    assert entry_notes(talk.digest(config_home), "changed") == {
        "a.py": POSSIBLY_COMMITTED_NOTE,
        "b.py": POSSIBLY_COMMITTED_NOTE,
    }
    talk.edits(f"{CWD}/b.py")
    assert entry_notes(talk.digest(config_home), "changed") == {
        "a.py": POSSIBLY_COMMITTED_NOTE,
        "b.py": "not committed",
    }
    assert not any("staged" in row for row in entry_texts(talk.digest(config_home), "now"))


def test_files_that_a_status_omits_were_committed_by_the_user(config_home: ConfigHome) -> None:
    """After commits by the user, a file that ``git status`` omits is listed as committed.

    A file that ``git status`` lists is listed as not committed.
    """
    talk = _talk_with_edited_files().runs("git log --oneline", LATER_LOG, cwd=CWD)
    talk.runs("git status --short", " M b.py\n", cwd=CWD)
    assert _foreign_commit_rows(talk, config_home) == [FOREIGN_COMMITS_ROW]
    assert entry_notes(talk.digest(config_home), "changed") == {
        "a.py": "committed", "b.py": "not committed",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("command_before_log", "log_command"),
    [
        ("git pull", "git log --oneline"),
        ("git commit -qm x", "git log --oneline"),
        ("ls", "git log --oneline --all"),
        ("ls", "git log --oneline main"),
        ("ls", "git log --oneline -- a.py"),
        ("ls", "git log --oneline | grep i"),
    ],
)
def test_a_log_after_a_moved_head_shows_no_commits_of_the_user(
    config_home: ConfigHome, command_before_log: str, log_command: str
) -> None:
    """A log shows no commits of the user if the session moved ``HEAD`` or if the log starts elsewhere."""
    talk = (
        _talk_with_edited_files()
        .runs(command_before_log, "", cwd=CWD)
        .runs(log_command, LATER_LOG, cwd=CWD)
    )
    assert _foreign_commit_rows(talk, config_home) == []


def test_the_sessions_own_commit_is_not_foreign(config_home: ConfigHome) -> None:
    """A commit that the session made is not listed as the user's, but a newer commit in the log is."""
    talk = _talk_with_edited_files().runs("git commit -m y", "[main 2222222] second\n", cwd=CWD)
    talk.runs("git log --oneline", LATER_LOG, cwd=CWD)
    assert _foreign_commit_rows(talk, config_home) == [
        "commits that no git command of the session made: 3333333; they may include b.py"
    ]
