"""Tests of a merge, pull or rebase that stopped with conflicts, until it ends."""

from __future__ import annotations

import pytest

from tests.builders import CWD, ConfigHome
from tests.reading.digest.talk import Talk, entry_notes, entry_texts

CONFLICTS_OUTPUT = """Auto-merging a.py
CONFLICT (content): Merge conflict in a.py
CONFLICT (modify/delete): b.py deleted in HEAD and modified in main.
"""
STOPPED_MERGE_OUTPUT = (
    f"{CONFLICTS_OUTPUT}Automatic merge failed; fix conflicts and then commit the result."
)
STOPPED_MERGE_ROW = (
    "git merge main stopped with conflicts and is still unfinished; in conflict: a.py, b.py"
)


def _talk_with_stopped_merge() -> Talk:
    talk = Talk().prompt("merge it").edits(f"{CWD}/a.py")
    talk.runs("git commit -am x", "[dev 1234567] x\n", cwd=CWD)
    return talk.runs_and_fails("git merge main --no-edit 2>&1", STOPPED_MERGE_OUTPUT)


def _stopped_merge_rows(talk: Talk, home: ConfigHome) -> list[str]:
    return [row for row in entry_texts(talk.digest(home), "now") if "stopped with conflicts" in row]


def test_a_stopped_merge_is_listed_with_its_files(config_home: ConfigHome) -> None:
    """A merge that stopped is listed with its conflicting files. These files are not listed as committed."""
    talk = _talk_with_stopped_merge()
    assert _stopped_merge_rows(talk, config_home) == [STOPPED_MERGE_ROW]
    assert entry_notes(talk.digest(config_home), "changed")["a.py"] == "in conflict"


def test_the_row_about_a_stopped_merge_names_files_that_were_edited_later(
    config_home: ConfigHome,
) -> None:
    """The row about a stopped merge names the files that were edited or added after the stop."""
    talk = _talk_with_stopped_merge().edits(f"{CWD}/a.py")
    assert _stopped_merge_rows(talk, config_home) == [
        "git merge main stopped with conflicts and is still unfinished; in conflict: b.py; edited since: a.py"
    ]
    talk.runs("git status --short", "UU a.py\nDU b.py\n", cwd=CWD)
    assert "edited since: a.py" in _stopped_merge_rows(talk, config_home)[0]
    assert (
        "added since: a.py"
        in _stopped_merge_rows(talk.runs("git add a.py", "", cwd=CWD), config_home)[0]
    )


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("git add -A && git commit --no-edit", "[dev 7654321] Merge branch 'main'\n"),
        ("git merge --abort", ""),
        ("git merge --continue", "[dev 7654321] Merge branch 'main'\n"),
        ("git reset --hard", "HEAD is now at 1234567 x"),
        ("git pull", "Already up to date."),
        ("git status", "On branch dev\nnothing to commit, working tree clean\n"),
    ],
)
def test_a_merge_that_ended_is_not_open(config_home: ConfigHome, command: str, output: str) -> None:
    """A stopped merge ends with a commit, an abort, a reset, or a status that shows no merge."""
    talk = _talk_with_stopped_merge().runs(command, output, cwd=CWD)
    assert _stopped_merge_rows(talk, config_home) == []
    assert "committed" in entry_notes(talk.digest(config_home), "changed")["a.py"]


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("git status", "On branch dev\nYou have unmerged paths.\n"),
        ("git merge --continue", "error: Committing is not possible because you have unmerged files."),
        ("git commit --no-edit 2>&1 | tail -1", "fatal: Exiting because of an unresolved conflict."),
        ("git pull 2>&1 | tail -1", "error: Pulling is not possible because you have unmerged files."),
        ("git log --oneline", "1234567 x"),
    ],
)  # fmt: skip
def test_a_merge_stays_open(config_home: ConfigHome, command: str, output: str) -> None:
    """A stopped merge stays listed if git refuses to finish it, or if the next command only reads."""
    assert _stopped_merge_rows(
        _talk_with_stopped_merge().runs(command, output, cwd=CWD), config_home
    ) == [STOPPED_MERGE_ROW]


def test_a_rebase_is_listed_with_the_files_of_its_last_stop(config_home: ConfigHome) -> None:
    """A rebase that stops twice is listed with the files of the last stop, until it succeeds."""
    stop = "CONFLICT (content): Merge conflict in {}\nerror: could not apply 1234567... x\n"
    talk = (
        Talk()
        .prompt("rebase")
        .runs_and_fails("git fetch && git rebase origin/main", stop.format("a.py"))
    )
    talk.runs("git add a.py && git commit -m x", "[detached HEAD 1111111] x\n", cwd=CWD)
    assert "in conflict: a.py" in _stopped_merge_rows(talk, config_home)[0]
    talk.runs_and_fails("GIT_EDITOR=true git rebase --continue", stop.format("c.py"))
    assert _stopped_merge_rows(talk, config_home) == [
        "git rebase origin/main stopped with conflicts and is still unfinished; in conflict: c.py"
    ]
    done = "Successfully rebased and updated refs/heads/dev."
    assert _stopped_merge_rows(talk.runs("git rebase --continue", done, cwd=CWD), config_home) == []


def test_an_aborted_merge_does_not_change_the_state_of_a_file(config_home: ConfigHome) -> None:
    """If a command starts and aborts a merge, a committed file keeps its state."""
    talk = Talk().prompt("go").edits(f"{CWD}/a.py")
    talk.runs("git commit -am x", "[dev 1234567] x\n", cwd=CWD)
    talk.runs("git merge --no-commit main; git merge --abort", STOPPED_MERGE_OUTPUT, cwd=CWD)
    assert _stopped_merge_rows(talk, config_home) == []
    assert "committed in 1234567" in entry_notes(talk.digest(config_home), "changed")["a.py"]


def test_conflicts_that_a_later_command_lists_are_found(config_home: ConfigHome) -> None:
    """Conflicting files are also found in the output of a later ``git diff --diff-filter=U``."""
    talk = (
        Talk()
        .prompt("go")
        .runs("git merge main | tail -1", STOPPED_MERGE_OUTPUT.splitlines()[-1], cwd=CWD)
    )
    talk.runs("git diff --name-only --diff-filter=U", "a.py\nlib/b.py", cwd=CWD)
    assert _stopped_merge_rows(talk, config_home)[0].endswith("in conflict: a.py, lib/b.py")
