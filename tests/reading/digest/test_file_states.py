"""Tests of the state of each changed file, as the git commands of the session show it."""

from __future__ import annotations

import pytest

from tests.builders import CWD, ConfigHome
from tests.reading.digest.talk import Talk, entry_notes, entry_texts

COMMIT_OUTPUT = "[main 1234567] x\n 1 file changed\n"
PARTLY_STAGED_STATUS = """On branch main
Changes to be committed:
  (use "git restore --staged <file>..." to unstage)
\tmodified:   a.py

Changes not staged for commit:
\tmodified:   b.py

Untracked files:
  (use "git add <file>..." to include in what will be committed)
\tnew/

"""


def _note_on_changed_file(talk: Talk, home: ConfigHome, path: str = "a.py") -> str:
    """Return the note on a file in the digest's section "changed"."""
    return entry_notes(talk.digest(home), "changed")[path]


def _talk_with_edit(*file_names: str) -> Talk:
    talk = Talk().prompt("go")
    for name in file_names:
        talk.edits(f"{CWD}/{name}")
    return talk


def test_files_of_a_temporary_checkout_are_listed(config_home: ConfigHome) -> None:
    """Files in a temporary git checkout are listed as changed. Other temporary files are omitted."""
    talk = (
        Talk().prompt("go").runs("cd /tmp/tree && git switch -c x", "Switched to a new branch 'x'")
    )
    talk.edits("/tmp/tree/a.py").edits("/tmp/notes.md").edits("/tmp/tree/__pycache__/b.txt")
    assert list(entry_notes(talk.digest(config_home), "changed")) == ["/tmp/tree/a.py"]


def test_a_commit_includes_a_staged_file_that_only_a_diff_names(config_home: ConfigHome) -> None:
    """A file that only ``git diff --cached`` names is listed as committed if the command also commits."""
    command = "git add a.py b.lock && git diff --cached --stat && git commit -m x"
    talk = _talk_with_edit("a.py").runs(command, f" b.lock | 2 +-\n a.py | 1 +\n{COMMIT_OUTPUT}")
    assert (
        _note_on_changed_file(talk, config_home, "b.lock")
        == "named by git only, committed in 1234567"
    )


@pytest.mark.parametrize(
    ("command", "is_trusted"),
    [("git diff --stat", True), ("git diff --stat HEAD~1", False), ("git diff --stat src", False)],
)
def test_a_file_that_a_diff_no_longer_lists_is_not_called_uncommitted(
    config_home: ConfigHome, command: str, *, is_trusted: bool
) -> None:
    """A file that a later ``git diff`` no longer lists is not reported as uncommitted.

    This holds only for a diff of all files. A diff of one commit or path does not change a file's
    state.
    """
    talk = _talk_with_edit("src/a.py").runs("git add src/a.py").edits(f"{CWD}/src/b.py")
    talk.edits(f"{CWD}/src/deep/c.py").edits(f"{CWD}/new.py")
    row = " .../deep/c.py | 2 +-\n"
    talk.runs(command, f" src/b.py | 3 ++-\n{row} 2 files changed, 3 insertions(+)")
    found = entry_notes(talk.digest(config_home), "changed")
    assert (found["src/a.py"], found["src/b.py"]) == ("staged, not committed", "not committed")
    talk.runs(command, f"{row} 1 file changed, 1 insertion(+)")
    found = entry_notes(talk.digest(config_home), "changed")
    assert found["src/deep/c.py"] == "not committed"
    if is_trusted:
        assert found["src/b.py"] == "no unstaged change in the last git diff"
        assert found["src/a.py"] == "open or in a commit that the session did not make"
    else:
        assert (found["src/a.py"], found["src/b.py"]) == ("staged, not committed", "not committed")


@pytest.mark.parametrize(
    ("command", "content", "is_committed"),
    [
        ("git diff origin/main...HEAD", "64004dd5", True),
        ("git diff origin/main..", "64004dd", True),
        ("git diff origin/main...HEAD", "96feaf61", False),
        ("git diff main...other", "64004dd5", False),
        ("git diff -R origin/main...HEAD", "64004dd5", False),
        ("git diff HEAD", "64004dd5", False),
    ],
)
def test_a_file_whose_content_is_in_head_is_committed(
    config_home: ConfigHome, command: str, content: str, *, is_committed: bool
) -> None:
    """A file is listed as committed if a diff shows that ``HEAD`` contains the result of its last edit.

    The digest says that the session did not make the commit.
    """
    diff = "diff --git a/a.py b/a.py\nindex df72094f..{} 100644\n--- a/a.py\n+++ b/a.py\n"
    talk = _talk_with_edit("a.py").runs("git diff a.py", diff.format("64004dd5"))
    talk.runs("git add a.py").runs(command, diff.format(content))
    outside = f"in a commit that the session did not make, as :{talk.last_line_number} shows"
    assert _note_on_changed_file(talk, config_home) == (
        outside if is_committed else "staged, not committed"
    )
    talk.edits(f"{CWD}/a.py").runs("git diff main...HEAD", diff.format("64004dd5"))
    assert _note_on_changed_file(talk, config_home) == "not committed"
    for other in ("git diff main other", "git diff --cached"):
        talk.runs(other, diff.format("64004dd5"))
    talk.runs("git diff main...HEAD", diff.format("64004dd5"))
    assert _note_on_changed_file(talk, config_home) == "not committed"


def test_files_of_a_new_repository_are_not_tracked(config_home: ConfigHome) -> None:
    """After ``git init`` printed "Initialized", files are listed as not tracked until they are added.

    If the repository existed before or is in a subfolder, the files are listed as not committed.
    """
    talk = _talk_with_edit("a.py", "b.py")
    talk.runs("git init -b main", f"Reinitialized existing Git repository in {CWD}/.git/\n")
    talk.runs("git init x", f"Initialized empty Git repository in {CWD}/x/.git/\n")
    rows = entry_texts(talk.digest(config_home), "now")
    assert "not committed: b.py, a.py" in rows
    talk.runs("git init -b main", f"Initialized empty Git repository in {CWD}/.git/\n")
    talk.edits(f"{CWD}/c.py")
    assert "not tracked by git: c.py, b.py, a.py" in entry_texts(talk.digest(config_home), "now")
    talk.runs("git add a.py && git commit -m x", "[main (root-commit) 1234567] x\n")
    talk.edits(f"{CWD}/a.py").edits(f"{CWD}/d.py")
    rows = entry_texts(talk.digest(config_home), "now")
    assert {"not committed: d.py, a.py", "not tracked by git: c.py, b.py"} <= set(rows)


@pytest.mark.parametrize(
    ("command", "output", "state"),
    [
        ("git add a.py && git commit -m x", COMMIT_OUTPUT, "committed in 1234567"),
        ("git add -A && git commit -m x", COMMIT_OUTPUT, "committed in 1234567"),
        ("git add . && git commit -qm x && git log --oneline -1", "1234567 x", "committed in 1234567"),
        ("git commit -am x", COMMIT_OUTPUT, "committed in 1234567"),
        ("git add b.py && git commit -m x", COMMIT_OUTPUT, "not committed"),
        ("git -C /elsewhere commit -am x", COMMIT_OUTPUT, "not committed"),
        ("git commit --dry-run", "On branch main", "not committed"),
        ("git add a.py", "", "staged, not committed"),
        ("git add a.py && git status", PARTLY_STAGED_STATUS, "staged, not committed"),
        ("git stash", "Saved working directory", "in a git stash"),
        ("git stash && git stash pop", "ok", "not committed"),
        ("git status", "On branch main\nnothing to commit, working tree clean\n",
         "unchanged in the last git status"),
        ("git log --oneline", "1234567 x", "not committed"),
        ("ls", "a.py", ""),
    ],
)  # fmt: skip
def test_a_commit_includes_files_by_name_folder_or_all(
    config_home: ConfigHome, command: str, output: str, state: str
) -> None:
    """A commit includes a file if its command names the file or its folder, or selects all files."""
    assert (
        _note_on_changed_file(_talk_with_edit("a.py").runs(command, output, cwd=CWD), config_home)
        == state
    )


def test_a_failed_commit_includes_no_file(config_home: ConfigHome) -> None:
    """A commit that a hook refused includes no file. The next commit includes the files added for it."""
    talk = _talk_with_edit("a.py").runs_and_fails("git add a.py && git commit -m x", "lint failed")
    assert _note_on_changed_file(talk, config_home) == "not committed"
    assert (
        _note_on_changed_file(talk.runs("git commit -m x", COMMIT_OUTPUT), config_home)
        == "committed in 1234567"
    )


def test_a_commit_in_another_repository_changes_no_state(config_home: ConfigHome) -> None:
    """A commit in another repository does not change the state of files in the session's repository."""
    talk = _talk_with_edit("lib/a.py", "a.py").runs("git status --short", " M a.py\n?? lib/\n")
    elsewhere = f"{COMMIT_OUTPUT} create mode 100644 a.py\n delete mode 100644 lib/a.py\n"
    talk.runs("git commit -m x", elsewhere, cwd="/srv/other")
    assert _note_on_changed_file(talk, config_home) == "not committed"
    assert _note_on_changed_file(talk, config_home, "lib/a.py") == "not committed"


@pytest.mark.parametrize("commit", ["git commit -am x", "git add -u && git commit -m x"])
def test_git_commit_all_excludes_new_files(config_home: ConfigHome, commit: str) -> None:
    """``git commit -a`` doesn't commit a new file. The file is committed after ``git add`` names it."""
    new = {"file_path": f"{CWD}/new.py", "content": "x"}
    talk = _talk_with_edit("a.py", "listed.py").runs(
        "git status --short", " M a.py\n?? listed.py\n"
    )
    talk.calls("Write", new, "File created", toolUseResult={"type": "create"})
    talk.runs(commit, COMMIT_OUTPUT, cwd=CWD)
    assert _note_on_changed_file(talk, config_home) == "committed in 1234567"
    assert _note_on_changed_file(talk, config_home, "listed.py") == "not committed"
    assert _note_on_changed_file(talk, config_home, "new.py") == "not committed"
    talk.runs("git add new.py && git commit -am y", "[main 7654321] y\n", cwd=CWD)
    assert _note_on_changed_file(talk, config_home, "new.py") == "committed in 7654321"
    talk.edits(f"{CWD}/new.py").runs("git commit -am z", "[main 7777777] z\n", cwd=CWD)
    assert _note_on_changed_file(talk, config_home, "new.py") == "committed in 7777777"


@pytest.mark.parametrize(
    "unstage_command", ["git reset HEAD b.py", "git restore --staged b.py", "git reset"]
)
def test_an_unstaged_file_is_not_committed(config_home: ConfigHome, unstage_command: str) -> None:
    """A file that was staged and then unstaged is not in the next commit."""
    talk = _talk_with_edit("a.py", "b.py").runs("git add -A", "").runs(unstage_command, "", cwd=CWD)
    talk.runs("git add a.py && git commit -m x", COMMIT_OUTPUT, cwd=CWD)
    assert _note_on_changed_file(talk, config_home) == "committed in 1234567"
    assert _note_on_changed_file(talk, config_home, "b.py") == "not committed"


def test_a_failed_add_stages_no_file(config_home: ConfigHome) -> None:
    """If ``git add`` fails or names no file, the next commit includes no file."""
    talk = _talk_with_edit("a.py").runs_and_fails(
        "git add a.py gone.py", "fatal: pathspec 'gone.py' did not match"
    )
    talk.runs("git add", "Nothing specified, nothing added.", cwd=CWD)
    talk.runs("git commit -m x", COMMIT_OUTPUT, cwd=CWD)
    assert _note_on_changed_file(talk, config_home) == "not committed"


@pytest.mark.parametrize(
    ("reset", "state"),
    [
        ("git reset --soft HEAD~1", "staged, not committed"),
        ("git reset HEAD^", "not committed"),
        ("git reset --mixed HEAD~2", "not committed"),
    ],
)
def test_files_of_a_reset_commit_are_uncommitted(
    config_home: ConfigHome, reset: str, state: str
) -> None:
    """After a reset, the files of the removed commits are staged or not committed.

    ``--soft`` leaves them staged.
    """
    talk = _talk_with_edit("b.py").runs("git commit -am w", "[main 1111111] w\n", cwd=CWD)
    talk.edits(f"{CWD}/a.py").runs("git commit -am x", COMMIT_OUTPUT, cwd=CWD)
    assert _note_on_changed_file(talk.runs(reset, "", cwd=CWD), config_home) == state
    older = "not committed" if reset.endswith("~2") else "committed in 1111111"
    assert _note_on_changed_file(talk, config_home, "b.py") == older


def test_a_file_that_no_commit_lists_is_not_committed(config_home: ConfigHome) -> None:
    """A file that no commit lists has the state that the last ``git status`` shows, and not committed."""
    talk = _talk_with_edit("a.py", "notes/plan.md").runs(
        "git add a.py && git commit -m x", COMMIT_OUTPUT
    )
    talk.runs("git status", "On branch main\nnothing to commit, working tree clean\n", cwd=CWD)
    assert _note_on_changed_file(talk, config_home) == "committed in 1234567"
    assert (
        _note_on_changed_file(talk, config_home, "notes/plan.md")
        == "unchanged in the last git status"
    )


def test_the_commit_of_a_file_is_not_guessed(config_home: ConfigHome) -> None:
    """If several commits may contain a file, the digest says "committed" without a hash."""
    talk = _talk_with_edit("a.py").runs("git add $(list) && git commit -m x", COMMIT_OUTPUT)
    talk.runs("git add $(list) && git commit -m y", "[main 7654321] y\n", cwd=CWD)
    talk.runs("git status --short", "", cwd=CWD).runs(
        "git status", "nothing to commit, working tree clean"
    )
    assert _note_on_changed_file(talk, config_home) == "committed"


def test_a_moved_commit_is_listed_with_its_new_branch(config_home: ConfigHome) -> None:
    """If the old branch was reset, a moved commit is listed with its new branch."""
    talk = _talk_with_edit("a.py").runs("git add a.py && git commit -m x", COMMIT_OUTPUT)
    talk.runs_and_fails(
        "git push origin main", "remote: error: GH006: Protected branch update failed"
    )
    talk.runs(
        "git checkout -b docs/a && git push -u origin docs/a", "Switched to a new branch 'docs/a'"
    )
    assert _note_on_changed_file(talk, config_home) == "committed in 1234567 on main"
    talk.runs("git checkout main", "Switched to branch 'main'")
    talk.runs("git reset --hard origin/main", "HEAD is now at 7654321 y", cwd=CWD)
    assert _note_on_changed_file(talk, config_home) == "committed in 1234567 on docs/a"
    assert entry_notes(talk.digest(config_home), "artefacts")["commit 1234567 x"] == "on docs/a"


def test_the_first_commit_is_recognized(config_home: ConfigHome) -> None:
    """The first commit of a repository is listed with its hash and branch."""
    talk = _talk_with_edit("a.py").runs(
        "git add -A && git commit -m x", "[main (root-commit) 1234567] x\n", cwd=CWD
    )
    assert _note_on_changed_file(talk, config_home) == "committed in 1234567"
    assert entry_notes(talk.digest(config_home), "artefacts")["commit 1234567 x"] == "on main"


def test_a_rebased_commit_is_not_named_by_its_old_hash(config_home: ConfigHome) -> None:
    """After a rebase, a file is listed as committed, without the old hash of its commit."""
    talk = _talk_with_edit("a.py").runs(
        "git commit -am 'add it'", "[main 1234567] add it\n", cwd=CWD
    )
    talk.runs("git rebase origin/main", "Successfully rebased and updated refs/heads/main.")
    assert _note_on_changed_file(talk, config_home) == "committed"


def test_a_change_after_a_commit_is_uncommitted(config_home: ConfigHome) -> None:
    """A file that was edited after its commit is listed as not committed."""
    talk = _talk_with_edit("a.py").runs("git commit -am x", COMMIT_OUTPUT).edits(f"{CWD}/a.py")
    assert _note_on_changed_file(talk, config_home) == "not committed"


def test_an_amended_commit_has_its_new_hash(config_home: ConfigHome) -> None:
    """After ``git commit --amend``, the note on a committed file contains the commit's new hash."""
    talk = _talk_with_edit("a.py").runs("git commit -am x", COMMIT_OUTPUT)
    talk.runs("git commit --amend --no-edit", "[main 7654321] x\n")
    assert _note_on_changed_file(talk, config_home) == "committed in 7654321"


def test_a_file_missing_from_a_status_is_committed(config_home: ConfigHome) -> None:
    """A changed file is listed as committed if a later ``git status`` of the whole repository omits it.

    A status of a single path doesn't prove this.
    """
    talk = _talk_with_edit("a.py", "b.py").runs("git add $(list) && git commit -m x", COMMIT_OUTPUT)
    assert _note_on_changed_file(talk, config_home) == "not committed"
    talk.runs("git status --short b.py", " M b.py\n")
    assert _note_on_changed_file(talk, config_home) == "not committed"
    talk.runs("git status --short", " M b.py\n")
    assert _note_on_changed_file(talk, config_home) == "committed in 1234567"
    assert _note_on_changed_file(talk, config_home, "b.py") == "not committed"


@pytest.mark.parametrize("add", ["git add -A lib/", "git add -u -- lib", "git add lib"])
def test_a_commit_includes_an_added_folder(config_home: ConfigHome, add: str) -> None:
    """A commit after ``git add FOLDER`` includes the folder's files and no files outside it."""
    talk = _talk_with_edit("lib/a.py", "new/b.py").runs(
        f"{add} && git commit -m x", COMMIT_OUTPUT, cwd=CWD
    )
    assert _note_on_changed_file(talk, config_home, "lib/a.py") == "committed in 1234567"
    assert _note_on_changed_file(talk, config_home, "new/b.py") == "not committed"


def test_a_failed_git_status_is_ignored(config_home: ConfigHome) -> None:
    """A ``git status`` that failed changes no file's state."""
    talk = _talk_with_edit("a.py").runs("git status --short", " M a.py")
    talk.runs_and_fails("git status --short", "command timed out after 1005 milliseconds")
    assert _note_on_changed_file(talk, config_home) == "not committed"


def test_the_last_git_status_determines_the_state(config_home: ConfigHome) -> None:
    """A file's state comes from the last ``git status``, even if that command is the last of a chain."""
    talk = _talk_with_edit("lib/a.py", "new/b.py", "c.py").runs(
        "git commit -am x", COMMIT_OUTPUT, cwd=CWD
    )
    assert _note_on_changed_file(talk, config_home, "new/b.py") == "committed in 1234567"
    rows = "D  looks like a row\n=== status\n M c.py\n?? new/\n"
    talk.runs("ls lib; echo '=== status'; git status --short", rows, cwd=CWD)
    assert _note_on_changed_file(talk, config_home, "new/b.py") == "not committed"
    assert _note_on_changed_file(talk, config_home, "c.py") == "not committed"
    assert _note_on_changed_file(talk, config_home, "lib/a.py") == "committed in 1234567"


def test_a_commit_on_another_branch_is_listed_with_the_branch(config_home: ConfigHome) -> None:
    """A file that was committed on a branch other than the current one is listed with that branch."""
    talk = _talk_with_edit("a.py").runs("git commit -am x", "[fix 1234567] x\n")
    talk.runs("git checkout main", "Switched to branch 'main'")
    assert _note_on_changed_file(talk, config_home) == "committed in 1234567 on fix"


def test_each_worktree_has_its_own_commits(config_home: ConfigHome) -> None:
    """A commit in a worktree includes only the files of that worktree."""
    tree = f"{CWD}/.worktrees/two"
    talk = Talk().prompt("go").edits(f"{CWD}/a.py").edits(f"{tree}/a.py")
    talk.runs(f"cd {tree} && git commit -am x", COMMIT_OUTPUT)
    assert _note_on_changed_file(talk, config_home) == "not committed"
    assert _note_on_changed_file(talk, config_home, ".worktrees/two/a.py") == "committed in 1234567"


@pytest.mark.parametrize(
    "command", ["git checkout -- a.py", "git restore a.py", "git reset --hard"]
)
def test_a_reverted_change_is_not_listed(config_home: ConfigHome, command: str) -> None:
    """A file whose changes were reverted with git is not listed as changed."""
    digest = (
        _talk_with_edit("a.py", "b.py")
        .runs("git commit -m x b.py")
        .runs(command)
        .digest(config_home)
    )
    assert "a.py" not in entry_notes(digest, "changed")


@pytest.mark.parametrize(
    ("command", "note"),
    [
        ("git revert --no-edit 1234567", ", reverted in abcdef0"),
        ("git revert --no-edit HEAD", ", reverted in abcdef0"),
        ("git revert -n 1234567 && git commit -m y && git push", ", reverted in abcdef0"),
        ("git revert --no-edit 7654321", ""),
        ("git commit -m y && git revert -n 1234567", ""),
    ],
)
def test_a_reverted_commit_is_named(config_home: ConfigHome, command: str, note: str) -> None:
    """A reverted commit is listed with the hash of the commit that reverted it.

    If the revert is itself reverted, the first commit is listed without a note.
    """
    talk = _talk_with_edit("a.py").runs("git add a.py && git commit -m x", COMMIT_OUTPUT)
    talk.runs(command, "[main abcdef0] y\n 1 file changed\n")
    assert _note_on_changed_file(talk, config_home) == f"committed in 1234567{note}"
    talk.runs("git revert --no-edit abcdef0", "[main 0fedcba] z\n 1 file changed\n")
    assert _note_on_changed_file(talk, config_home) == "committed in 1234567"


def test_a_moved_file_is_listed_with_its_new_path(config_home: ConfigHome) -> None:
    """A moved file is listed with its new path. A moved folder is listed once, with its number of files."""
    talk = _talk_with_edit("a.py", "old/x.py", "old/y.py").runs("git mv a.py b.py")
    talk.runs("mv old archive/old", cwd=CWD)
    found = entry_notes(talk.digest(config_home), "changed")
    assert found["a.py"] == "moved to b.py"
    assert found["old/"] == "moved to archive/old with 2 files"


def test_a_file_that_moved_twice_is_listed_with_its_last_path(config_home: ConfigHome) -> None:
    """A file that moved twice is listed with its last path, and with "removed since" after its removal."""
    talk = _talk_with_edit("plan/a.md").runs("mv plan/a.md new/a.md", cwd=CWD)
    talk.runs("mv new/a.md last/a.md", cwd=CWD)
    assert entry_notes(talk.digest(config_home), "changed")["plan/a.md"] == "moved to last/a.md"
    talk.runs("cp last/a.md kept.md\nrm -rf last\nls", "kept.md", cwd=CWD)
    found = entry_notes(talk.digest(config_home), "changed")
    assert found["plan/a.md"] == "moved to last/a.md, removed since"


def _join_uncommitted_rows(talk: Talk, home: ConfigHome) -> str:
    """Join the rows of the digest about files that are not committed."""
    rows = [entry.text for entry in talk.digest(home).section_entries("now")]
    starts = ("staged for the next commit: ", "not committed: ", "not tracked by git: ")
    return "; ".join(row for row in rows if row.startswith(starts))


def test_a_file_in_an_untracked_folder_is_not_tracked(config_home: ConfigHome) -> None:
    """If ``git status`` lists a new folder as untracked, its files are listed as not tracked.

    A commit that adds the folder includes the files.
    """
    talk = _talk_with_edit("a.py", "new/plan.md")
    talk.runs("git status --short", " M a.py\n?? new/\n", cwd=CWD)
    talk.runs("echo reviewed > new/.passed", cwd=CWD)
    rows = "not committed: a.py; not tracked by git: new/.passed, new/plan.md"
    assert _join_uncommitted_rows(talk, config_home) == rows
    talk.runs("git add new && git commit -m x", COMMIT_OUTPUT, cwd=CWD)
    talk.runs("echo again > new/.passed", cwd=CWD)
    assert _join_uncommitted_rows(talk, config_home) == "not committed: new/.passed, a.py"


def test_files_of_the_next_commit_are_first(config_home: ConfigHome) -> None:
    """Staged files are listed first, then other tracked files, then untracked files.

    A file that the session did not change is included if git lists it as staged.
    """
    talk = _talk_with_edit("a.py", "b.py", "new.py").runs(
        "git status -s", " M a.py\n M b.py\n?? new.py\n", cwd=CWD
    )
    assert (
        _join_uncommitted_rows(talk, config_home)
        == "not committed: b.py, a.py; not tracked by git: new.py"
    )
    talk.runs("git add a.py", "", cwd=CWD)
    assert _join_uncommitted_rows(talk, config_home) == (
        "staged for the next commit: a.py; not committed: b.py; not tracked by git: new.py"
    )
    listed = "M  a.py\nA  other.yml\n M b.py\n?? new.py\n"
    talk.runs("git add other.yml && git status -s", listed, cwd=CWD)
    assert _join_uncommitted_rows(talk, config_home).startswith(
        "staged for the next commit: other.yml, a.py;"
    )
    rows = [entry.text for entry in talk.digest(config_home).section_entries("now")]
    assert not any("git status also lists" in row for row in rows)


def test_a_long_list_of_files_states_how_many_are_left_out(config_home: ConfigHome) -> None:
    """A long list of uncommitted files ends with a whole name and the number of files left out."""
    names = [f"{'folder/' * 12}file_{number}.py" for number in range(10)]
    row = _join_uncommitted_rows(
        _talk_with_edit(*names).runs("git log", "1234567 x", cwd=CWD), config_home
    )
    assert row.endswith("file_8.py and 8 others")


@pytest.mark.parametrize(
    ("command", "expected_row"),
    [
        ("git mv old new", "not committed: new/x.py"),
        ("mv old new", "not committed: new/x.py"),
        ('T="new"; git mv old "$T"', ""),
        ('git mv old "$T"; git status -s', "staged for the next commit: new/x.py"),
        ("git mv old new; git status -s", "staged for the next commit: new/x.py"),
        ("git add -A; git diff --cached --name-status", "staged for the next commit: new/x.py"),
        ("git status -s", ""),
    ],
)
def test_a_moved_file_is_uncommitted_at_its_new_path(
    config_home: ConfigHome, command: str, expected_row: str
) -> None:
    """A moved file is listed at its new path as not committed or staged, and not at its old path."""
    output = ""
    if command.endswith("--name-status"):
        output = "R100\told/x.py\tnew/x.py\n"
    elif command == "git status -s":
        output = " D old/x.py\n"
    elif command.endswith("git status -s"):
        output = "R  old/x.py -> new/x.py\n"
    talk = _talk_with_edit("old/x.py").runs("git status -s", " M old/x.py\n", cwd=CWD)
    assert _join_uncommitted_rows(talk, config_home) == "not committed: old/x.py"
    assert _join_uncommitted_rows(talk.runs(command, output, cwd=CWD), config_home) == expected_row


def test_files_of_a_moved_folder_have_new_paths(config_home: ConfigHome) -> None:
    """A file is listed with its new path if the command that wrote it also moved its folder."""
    talk = _talk_with_edit("old/x.py").runs("echo 1 > old/mark; git mv old new", "", cwd=CWD)
    found = entry_notes(talk.digest(config_home), "changed")
    assert found["old/mark"] == "moved to new/mark"


def test_a_committed_file_that_git_moved_is_staged(config_home: ConfigHome) -> None:
    """A committed file that ``git mv`` moved is staged at its new path until the next commit."""
    talk = _talk_with_edit("old/x.py").runs("git commit -am x", COMMIT_OUTPUT, cwd=CWD)
    talk.runs("git mv old new", "", cwd=CWD)
    assert _join_uncommitted_rows(talk, config_home) == "staged for the next commit: new/x.py"
    talk.runs("git commit -m y", "[main 7654321] y\n", cwd=CWD)
    assert _join_uncommitted_rows(talk, config_home) == ""


def test_a_folder_is_not_listed_beside_its_files(config_home: ConfigHome) -> None:
    """A folder that ``git checkout`` changed is not listed if one of its files is listed."""
    talk = _talk_with_edit("lib/x.py").runs("git checkout -q origin/main -- lib/", "", cwd=CWD)
    talk.edits(f"{CWD}/lib/x.py")
    assert _join_uncommitted_rows(talk, config_home) == "not committed: lib/x.py"


def test_a_deleted_file_is_listed_as_removed(config_home: ConfigHome) -> None:
    """A deleted file is listed as removed, even after a commit, until it is written again."""
    talk = _talk_with_edit("a.py").runs("rm a.py; git status -s", " D a.py", cwd=CWD)
    talk.runs("git commit -am x", f"{COMMIT_OUTPUT} delete mode 100644 b.py\n", cwd=CWD)
    assert _note_on_changed_file(talk, config_home) == "removed"
    assert _note_on_changed_file(talk.edits(f"{CWD}/a.py"), config_home) == "not committed"


def test_a_shortened_output_is_not_the_whole_status(config_home: ConfigHome) -> None:
    """A long ``git status`` whose output was shortened proves nothing about files that it doesn't show."""
    rows = "".join(f" M docs/page_{number}.md\n" for number in range(600))
    talk = _talk_with_edit("a.py").runs("git status -s", rows, cwd=CWD)
    assert _note_on_changed_file(talk, config_home) == "not committed"
    listed = [path for path in entry_notes(talk.digest(config_home), "changed") if path != "a.py"]
    assert listed == []


def test_files_that_only_git_lists_are_not_changed_by_the_session(config_home: ConfigHome) -> None:
    """Files that only ``git status`` lists are not listed as changed by the session.

    If the session commits them, eight are named and the others are counted.
    """
    rows = "".join(f" M page_{number}.md\n" for number in range(10))
    talk = _talk_with_edit("a.py").runs("git status -s", rows, cwd=CWD)
    digest = talk.digest(config_home)
    assert [*entry_notes(digest, "changed")] == ["a.py"]
    assert any(
        "git status also lists: page_0.md" in entry.text for entry in digest.section_entries("now")
    )
    talk.runs("git add -A && git commit -m x", f"{COMMIT_OUTPUT}", cwd=CWD)
    found = entry_notes(talk.digest(config_home), "changed")
    assert len(found) == 9
    assert [*found.values()][-1] == "named by git only, committed in 1234567, as are 2 others"


def test_a_file_in_a_removed_worktree_is_listed_with_the_worktrees_name(
    config_home: ConfigHome,
) -> None:
    """A file in a removed worktree is listed by its path in the repository, with the worktree's name."""
    talk = _talk_with_edit("a.py").edits("/home/user/proj-fix/src/b.py")
    talk.runs("cd /home/user/proj-fix && git status", "On branch fix\n", cwd=CWD)
    talk.runs("git worktree remove ../proj-fix", "", cwd=CWD)
    digest = talk.digest(config_home)
    assert entry_notes(digest, "changed")["src/b.py"] == "in proj-fix, a folder that was removed"
    assert not any("proj-fix" in entry.text for entry in digest.section_entries("now"))


def test_a_call_runs_in_its_workdir(config_home: ConfigHome) -> None:
    """A commit by a call with a ``workdir`` changes only the state of files in the ``workdir``."""
    talk = _talk_with_edit("a.py").calls(
        "Bash",
        {"command": "git commit -am x", "workdir": "/home/user/other"},
        f"{COMMIT_OUTPUT} create mode 100644 c.py\n",
        cwd=CWD,
    )
    states = entry_notes(talk.digest(config_home), "changed")
    assert states["a.py"] == "not committed"
    assert "/home/user/other/c.py" in states


def test_an_amend_after_a_rebase_changes_the_last_commit(config_home: ConfigHome) -> None:
    """``git commit --amend`` after a rebase replaces the last commit, not the one that git printed last."""
    talk = _talk_with_edit("a.py").runs(
        "git commit -am 'add it'", "[work 1111111] add it\n", cwd=CWD
    )
    talk.edits(f"{CWD}/b.py").runs("git commit -am 'use it'", "[work 2222222] use it\n", cwd=CWD)
    talk.runs(
        "git rebase --continue",
        "[detached HEAD 3333333] add it\nSuccessfully rebased and updated refs/heads/work.",
    )
    talk.runs("git commit -a --amend --no-edit", "[work 4444444] use it\n", cwd=CWD)
    assert entry_texts(talk.digest(config_home), "artefacts") == [
        "commit 4444444 use it",
        "commit 3333333 add it",
    ]


@pytest.mark.parametrize(
    ("command", "output"),
    [
        (
            "git commit -q -F - <<'EOF'\nadd it\nEOF\ngit log --oneline -2; git push",
            "1234567 add it\n7654321 before it\n[hook] Pushing to origin...",
        ),
        ("git add -A && git commit -m 'add it'", "ok 2 files changed\nok 1234567"),
    ],
)
def test_the_hash_of_a_quiet_commit_is_found(
    config_home: ConfigHome, command: str, output: str
) -> None:
    """If ``git commit`` prints little, the commit's hash is read from its output or from ``git log``."""
    talk = _talk_with_edit("a.py").runs(command, output, cwd=CWD)
    assert entry_texts(talk.digest(config_home), "artefacts") == ["commit 1234567 add it"]


def test_a_removed_empty_folder_is_not_a_file(config_home: ConfigHome) -> None:
    """A removed folder that was empty is not listed among the changed files."""
    talk = _talk_with_edit("a.py").runs("rmdir old/names", "ok", cwd=CWD)
    assert entry_texts(talk.digest(config_home), "changed") == ["a.py"]


def test_files_in_another_repository_have_their_own_state(config_home: ConfigHome) -> None:
    """The state of a file in another repository comes from the git commands that ran in that repository.

    A commit in that repository does not change the state of files elsewhere.
    """
    other = "/srv/other"
    talk = (
        _talk_with_edit("a.py").edits(f"{other}/b.py").edits(f"{other}/lib/c.py").edits("/srv/d.py")
    )
    talk.runs("git add -A && git commit -m x", COMMIT_OUTPUT, cwd=other).edits(f"{other}/lib/c.py")
    states = entry_notes(talk.digest(config_home), "changed")
    assert states[f"{other}/b.py"] == "committed in 1234567"
    assert states[f"{other}/lib/c.py"] == states["a.py"] == "not committed"
    assert states["/srv/d.py"] == ""
    assert f"not committed: {other}/lib/c.py, a.py" in entry_texts(talk.digest(config_home), "now")
    talk.runs("git add . && git commit -m y", "[main 7654321] y\n", cwd=other)
    assert _note_on_changed_file(talk, config_home, f"{other}/lib/c.py") == "committed in 7654321"


def test_git_paths_in_a_codex_worktree_are_resolved(config_home: ConfigHome) -> None:
    """Git's paths in a Codex worktree, which is one folder deeper than other worktrees, are resolved."""
    tree = "/home/user/.codex/worktrees/98e4/proj"
    talk = Talk().prompt("go").edits(f"{tree}/a.py")
    created = f"{COMMIT_OUTPUT} create mode 100644 lib/new.py\n"
    talk.runs("git add -A && git commit -m x", created, cwd=tree).edits(f"{tree}/lib/new.py")
    talk.runs("git commit -am y", "[main 7654321] y\n", cwd=tree)
    assert _note_on_changed_file(talk, config_home, f"{tree}/lib/new.py") == "committed in 7654321"


def test_a_log_shows_that_somebody_committed_to_a_new_repository(config_home: ConfigHome) -> None:
    """If ``git log`` shows a commit in a new repository, its files are no longer listed as untracked."""
    talk = Talk().prompt("go").edits(f"{CWD}/a.py").edits(f"{CWD}/b.py")
    talk.runs("git init", f"Initialized empty Git repository in {CWD}/.git/")
    assert "not tracked by git: b.py, a.py" in entry_texts(talk.digest(config_home), "now")
    talk.runs("git log --oneline -1", "abcdef1 first").edits(f"{CWD}/a.py")
    rows = entry_texts(talk.digest(config_home), "now")
    assert "not committed: a.py" in rows
    assert not any("not tracked" in row for row in rows)
