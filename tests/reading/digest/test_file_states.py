"""The state of each changed file at the end, by the session's own git commands."""

from __future__ import annotations

import pytest

from tests.builders import CWD, ConfigHome
from tests.reading.digest.talk import Talk, notes, texts

COMMITTED = "[main 1234567] x\n 1 file changed\n"
PART = """On branch main
Changes to be committed:
  (use "git restore --staged <file>..." to unstage)
\tmodified:   a.py

Changes not staged for commit:
\tmodified:   b.py

Untracked files:
  (use "git add <file>..." to include in what will be committed)
\tnew/

"""


def _state(talk: Talk, home: ConfigHome, path: str = "a.py") -> str:
    """Return the state of a file in the digest."""
    return notes(talk.digest(home), "changed")[path]


def _edited(*names: str) -> Talk:
    talk = Talk().prompt("go")
    for name in names:
        talk.edits(f"{CWD}/{name}")
    return talk


def test_a_checkout_in_a_temporary_folder_has_files(config_home: ConfigHome) -> None:
    """Other files there are omitted."""
    talk = (
        Talk().prompt("go").runs("cd /tmp/tree && git switch -c x", "Switched to a new branch 'x'")
    )
    talk.edits("/tmp/tree/a.py").edits("/tmp/notes.md").edits("/tmp/tree/__pycache__/b.txt")
    assert list(notes(talk.digest(config_home), "changed")) == ["/tmp/tree/a.py"]


def test_a_file_that_only_git_names_is_committed_with_the_others(config_home: ConfigHome) -> None:
    """The command that adds it prints its name first."""
    command = "git add a.py b.lock && git diff --cached --stat && git commit -m x"
    talk = _edited("a.py").runs(command, f" b.lock | 2 +-\n a.py | 1 +\n{COMMITTED}")
    assert _state(talk, config_home, "b.lock") == "named by git only, committed in 1234567"


@pytest.mark.parametrize(
    ("command", "is_trusted"),
    [("git diff --stat", True), ("git diff --stat HEAD~1", False), ("git diff --stat src", False)],
)
def test_a_file_that_a_diff_no_longer_lists(
    config_home: ConfigHome, command: str, *, is_trusted: bool
) -> None:
    """Someone else staged, committed or reverted it, and may have committed the staged files."""
    talk = _edited("src/a.py").runs("git add src/a.py").edits(f"{CWD}/src/b.py")
    talk.edits(f"{CWD}/src/deep/c.py").edits(f"{CWD}/new.py")
    row = " .../deep/c.py | 2 +-\n"
    talk.runs(command, f" src/b.py | 3 ++-\n{row} 2 files changed, 3 insertions(+)")
    found = notes(talk.digest(config_home), "changed")
    assert (found["src/a.py"], found["src/b.py"]) == ("staged, not committed", "not committed")
    talk.runs(command, f"{row} 1 file changed, 1 insertion(+)")
    found = notes(talk.digest(config_home), "changed")
    assert found["src/deep/c.py"] == "not committed"
    if is_trusted:
        assert found["src/b.py"] == "no unstaged change in the last git diff"
        assert found["src/a.py"] == "open or in a commit that the session did not make"
    else:
        assert (found["src/a.py"], found["src/b.py"]) == ("staged, not committed", "not committed")


def test_files_of_a_new_repository_are_not_tracked(config_home: ConfigHome) -> None:
    """Until they are added; a repository below does not count, and neither does one that was there."""
    talk = _edited("a.py", "b.py")
    talk.runs("git init -b main", f"Reinitialized existing Git repository in {CWD}/.git/\n")
    talk.runs("git init x", f"Initialized empty Git repository in {CWD}/x/.git/\n")
    rows = texts(talk.digest(config_home), "now")
    assert "not committed: b.py, a.py" in rows
    talk.runs("git init -b main", f"Initialized empty Git repository in {CWD}/.git/\n")
    talk.edits(f"{CWD}/c.py")
    assert "not tracked by git: c.py, b.py, a.py" in texts(talk.digest(config_home), "now")
    talk.runs("git add a.py && git commit -m x", "[main (root-commit) 1234567] x\n")
    talk.edits(f"{CWD}/a.py").edits(f"{CWD}/d.py")
    rows = texts(talk.digest(config_home), "now")
    assert {"not committed: d.py, a.py", "not tracked by git: c.py, b.py"} <= set(rows)


@pytest.mark.parametrize(
    ("command", "output", "state"),
    [
        ("git add a.py && git commit -m x", COMMITTED, "committed in 1234567"),
        ("git add -A && git commit -m x", COMMITTED, "committed in 1234567"),
        ("git add . && git commit -qm x && git log --oneline -1", "1234567 x", "committed in 1234567"),
        ("git commit -am x", COMMITTED, "committed in 1234567"),
        ("git add b.py && git commit -m x", COMMITTED, "not committed"),
        ("git -C /elsewhere commit -am x", COMMITTED, "not committed"),
        ("git commit --dry-run", "On branch main", "not committed"),
        ("git add a.py", "", "staged, not committed"),
        ("git add a.py && git status", PART, "staged, not committed"),
        ("git stash", "Saved working directory", "in a git stash"),
        ("git stash && git stash pop", "ok", "not committed"),
        ("git status", "On branch main\nnothing to commit, working tree clean\n",
         "unchanged in the last git status"),
        ("git log --oneline", "1234567 x", "not committed"),
        ("ls", "a.py", ""),
    ],
)  # fmt: skip
def test_a_file_is_committed_where_a_commit_took_it(
    config_home: ConfigHome, command: str, output: str, state: str
) -> None:
    """By name, by its folder, or with everything."""
    assert _state(_edited("a.py").runs(command, output, cwd=CWD), config_home) == state


def test_a_failed_commit_took_nothing(config_home: ConfigHome) -> None:
    """As where a hook refused it; what was added before goes into the next one."""
    talk = _edited("a.py").fails("git add a.py && git commit -m x", "lint failed")
    assert _state(talk, config_home) == "not committed"
    assert _state(talk.runs("git commit -m x", COMMITTED), config_home) == "committed in 1234567"


def test_a_commit_in_a_repository_elsewhere(config_home: ConfigHome) -> None:
    """It neither takes nor removes the file of the same name in this folder."""
    talk = _edited("lib/a.py", "a.py").runs("git status --short", " M a.py\n?? lib/\n")
    elsewhere = f"{COMMITTED} create mode 100644 a.py\n delete mode 100644 lib/a.py\n"
    talk.runs("git commit -m x", elsewhere, cwd="/srv/other")
    assert _state(talk, config_home) == "not committed"
    assert _state(talk, config_home, "lib/a.py") == "not committed"


@pytest.mark.parametrize("commit", ["git commit -am x", "git add -u && git commit -m x"])
def test_a_commit_of_all_leaves_new_files_out(config_home: ConfigHome, commit: str) -> None:
    """By git's own listing, or by the tool that created the file; until somebody adds it."""
    new = {"file_path": f"{CWD}/new.py", "content": "x"}
    talk = _edited("a.py", "listed.py").runs("git status --short", " M a.py\n?? listed.py\n")
    talk.calls("Write", new, "File created", toolUseResult={"type": "create"})
    talk.runs(commit, COMMITTED, cwd=CWD)
    assert _state(talk, config_home) == "committed in 1234567"
    assert _state(talk, config_home, "listed.py") == "not committed"
    assert _state(talk, config_home, "new.py") == "not committed"
    talk.runs("git add new.py && git commit -am y", "[main 7654321] y\n", cwd=CWD)
    assert _state(talk, config_home, "new.py") == "committed in 7654321"
    talk.edits(f"{CWD}/new.py").runs("git commit -am z", "[main 7777777] z\n", cwd=CWD)
    assert _state(talk, config_home, "new.py") == "committed in 7777777"


@pytest.mark.parametrize("back", ["git reset HEAD b.py", "git restore --staged b.py", "git reset"])
def test_a_file_that_was_unstaged_is_in_no_commit(config_home: ConfigHome, back: str) -> None:
    """It was added before."""
    talk = _edited("a.py", "b.py").runs("git add -A", "").runs(back, "", cwd=CWD)
    talk.runs("git add a.py && git commit -m x", COMMITTED, cwd=CWD)
    assert _state(talk, config_home) == "committed in 1234567"
    assert _state(talk, config_home, "b.py") == "not committed"


def test_an_add_that_failed_added_nothing(config_home: ConfigHome) -> None:
    """Git adds no file if it does not find one of them; an add without a file adds none."""
    talk = _edited("a.py").fails("git add a.py gone.py", "fatal: pathspec 'gone.py' did not match")
    talk.runs("git add", "Nothing specified, nothing added.", cwd=CWD)
    talk.runs("git commit -m x", COMMITTED, cwd=CWD)
    assert _state(talk, config_home) == "not committed"


@pytest.mark.parametrize(
    ("reset", "state"),
    [
        ("git reset --soft HEAD~1", "staged, not committed"),
        ("git reset HEAD^", "not committed"),
        ("git reset --mixed HEAD~2", "not committed"),
    ],
)
def test_a_commit_that_was_reset_away(config_home: ConfigHome, reset: str, state: str) -> None:
    """Its changes are open again."""
    talk = _edited("b.py").runs("git commit -am w", "[main 1111111] w\n", cwd=CWD)
    talk.edits(f"{CWD}/a.py").runs("git commit -am x", COMMITTED, cwd=CWD)
    assert _state(talk.runs(reset, "", cwd=CWD), config_home) == state
    older = "not committed" if reset.endswith("~2") else "committed in 1111111"
    assert _state(talk, config_home, "b.py") == older


def test_a_file_that_no_commit_names_is_in_none(config_home: ConfigHome) -> None:
    """Where all commits since name their files, and git does not list it: it may be ignored."""
    talk = _edited("a.py", "notes/plan.md").runs("git add a.py && git commit -m x", COMMITTED)
    talk.runs("git status", "On branch main\nnothing to commit, working tree clean\n", cwd=CWD)
    assert _state(talk, config_home) == "committed in 1234567"
    assert _state(talk, config_home, "notes/plan.md") == "unchanged in the last git status"


def test_of_several_commits_none_is_named_by_a_guess(config_home: ConfigHome) -> None:
    """Git no longer lists the file, and one of the commits took it."""
    talk = _edited("a.py").runs("git add $(list) && git commit -m x", COMMITTED)
    talk.runs("git add $(list) && git commit -m y", "[main 7654321] y\n", cwd=CWD)
    talk.runs("git status --short", "", cwd=CWD).runs(
        "git status", "nothing to commit, working tree clean"
    )
    assert _state(talk, config_home) == "committed"


def test_a_commit_that_went_to_a_branch_of_its_own(config_home: ConfigHome) -> None:
    """As after a refused push: its branch was reset, and the commit is on the new one."""
    talk = _edited("a.py").runs("git add a.py && git commit -m x", COMMITTED)
    talk.fails("git push origin main", "remote: error: GH006: Protected branch update failed")
    talk.runs(
        "git checkout -b docs/a && git push -u origin docs/a", "Switched to a new branch 'docs/a'"
    )
    assert _state(talk, config_home) == "committed in 1234567 on main"
    talk.runs("git checkout main", "Switched to branch 'main'")
    talk.runs("git reset --hard origin/main", "HEAD is now at 7654321 y", cwd=CWD)
    assert _state(talk, config_home) == "committed in 1234567 on docs/a"
    assert notes(talk.digest(config_home), "artefacts")["commit 1234567 x"] == "on docs/a"


def test_the_first_commit_of_a_repository(config_home: ConfigHome) -> None:
    """Git says so next to the branch."""
    talk = _edited("a.py").runs(
        "git add -A && git commit -m x", "[main (root-commit) 1234567] x\n", cwd=CWD
    )
    assert _state(talk, config_home) == "committed in 1234567"
    assert notes(talk.digest(config_home), "artefacts")["commit 1234567 x"] == "on main"


def test_a_rebased_commit_is_not_named_by_its_old_hash(config_home: ConfigHome) -> None:
    """Nobody printed the new one."""
    talk = _edited("a.py").runs("git commit -am 'add it'", "[main 1234567] add it\n", cwd=CWD)
    talk.runs("git rebase origin/main", "Successfully rebased and updated refs/heads/main.")
    assert _state(talk, config_home) == "committed"


def test_a_change_after_the_commit(config_home: ConfigHome) -> None:
    """It is not in it."""
    talk = _edited("a.py").runs("git commit -am x", COMMITTED).edits(f"{CWD}/a.py")
    assert _state(talk, config_home) == "not committed"


def test_a_commit_that_was_amended(config_home: ConfigHome) -> None:
    """Its name is the new one."""
    talk = _edited("a.py").runs("git commit -am x", COMMITTED)
    talk.runs("git commit --amend --no-edit", "[main 7654321] x\n")
    assert _state(talk, config_home) == "committed in 7654321"


def test_a_status_that_no_longer_lists_a_file(config_home: ConfigHome) -> None:
    """It was committed by what the session's commands don't tell; a status of a part proves nothing."""
    talk = _edited("a.py", "b.py").runs("git add $(list) && git commit -m x", COMMITTED)
    assert _state(talk, config_home) == "not committed"
    talk.runs("git status --short b.py", " M b.py\n")
    assert _state(talk, config_home) == "not committed"
    talk.runs("git status --short", " M b.py\n")
    assert _state(talk, config_home) == "committed in 1234567"
    assert _state(talk, config_home, "b.py") == "not committed"


@pytest.mark.parametrize("add", ["git add -A lib/", "git add -u -- lib", "git add lib"])
def test_a_commit_takes_the_folder_that_was_added(config_home: ConfigHome, add: str) -> None:
    """And nothing next to it, also where `git add` takes all kinds of changes in the folder."""
    talk = _edited("lib/a.py", "new/b.py").runs(f"{add} && git commit -m x", COMMITTED, cwd=CWD)
    assert _state(talk, config_home, "lib/a.py") == "committed in 1234567"
    assert _state(talk, config_home, "new/b.py") == "not committed"


def test_a_status_that_failed_lists_nothing(config_home: ConfigHome) -> None:
    """It timed out: the file is as uncommitted as before."""
    talk = _edited("a.py").runs("git status --short", " M a.py")
    talk.fails("git status --short", "command timed out after 1005 milliseconds")
    assert _state(talk, config_home) == "not committed"


def test_a_later_status_wins(config_home: ConfigHome) -> None:
    """Also one at the end of other commands: its rows are the last ones."""
    talk = _edited("lib/a.py", "new/b.py", "c.py").runs("git commit -am x", COMMITTED, cwd=CWD)
    assert _state(talk, config_home, "new/b.py") == "committed in 1234567"
    rows = "D  looks like a row\n=== status\n M c.py\n?? new/\n"
    talk.runs("ls lib; echo '=== status'; git status --short", rows, cwd=CWD)
    assert _state(talk, config_home, "new/b.py") == "not committed"
    assert _state(talk, config_home, "c.py") == "not committed"
    assert _state(talk, config_home, "lib/a.py") == "committed in 1234567"


def test_a_commit_on_another_branch_names_it(config_home: ConfigHome) -> None:
    """The reader may be on this one."""
    talk = _edited("a.py").runs("git commit -am x", "[fix 1234567] x\n")
    talk.runs("git checkout main", "Switched to branch 'main'")
    assert _state(talk, config_home) == "committed in 1234567 on fix"


def test_another_checkout_is_on_its_own(config_home: ConfigHome) -> None:
    """A commit in a worktree takes in what is there."""
    tree = f"{CWD}/.worktrees/two"
    talk = Talk().prompt("go").edits(f"{CWD}/a.py").edits(f"{tree}/a.py")
    talk.runs(f"cd {tree} && git commit -am x", COMMITTED)
    assert _state(talk, config_home) == "not committed"
    assert _state(talk, config_home, ".worktrees/two/a.py") == "committed in 1234567"


@pytest.mark.parametrize(
    "command", ["git checkout -- a.py", "git restore a.py", "git reset --hard"]
)
def test_a_change_that_was_withdrawn_is_not_listed(config_home: ConfigHome, command: str) -> None:
    """Nothing is left of it."""
    digest = _edited("a.py", "b.py").runs("git commit -m x b.py").runs(command).digest(config_home)
    assert "a.py" not in notes(digest, "changed")


def test_moves(config_home: ConfigHome) -> None:
    """A file that was moved says where to, and so does a folder."""
    talk = _edited("a.py", "old/x.py", "old/y.py").runs("git mv a.py b.py")
    talk.runs("mv old archive/old", cwd=CWD)
    found = notes(talk.digest(config_home), "changed")
    assert found["a.py"] == "moved to b.py"
    assert found["old/"] == "moved to archive/old with 2 files"


def _uncommitted(talk: Talk, home: ConfigHome) -> str:
    """The line of the files that are not committed."""
    rows = [entry.text for entry in talk.digest(home).section_entries("now")]
    starts = ("staged for the next commit: ", "not committed: ", "not tracked by git: ")
    return "; ".join(row for row in rows if row.startswith(starts))


def test_files_of_the_next_commit_are_first(config_home: ConfigHome) -> None:
    """Then those that git knows, and those that it does not; what git alone lists counts once it is staged."""
    talk = _edited("a.py", "b.py", "new.py").runs(
        "git status -s", " M a.py\n M b.py\n?? new.py\n", cwd=CWD
    )
    assert (
        _uncommitted(talk, config_home) == "not committed: b.py, a.py; not tracked by git: new.py"
    )
    talk.runs("git add a.py", "", cwd=CWD)
    assert _uncommitted(talk, config_home) == (
        "staged for the next commit: a.py; not committed: b.py; not tracked by git: new.py"
    )
    listed = "M  a.py\nA  other.yml\n M b.py\n?? new.py\n"
    talk.runs("git add other.yml && git status -s", listed, cwd=CWD)
    assert _uncommitted(talk, config_home).startswith(
        "staged for the next commit: other.yml, a.py;"
    )
    rows = [entry.text for entry in talk.digest(config_home).section_entries("now")]
    assert not any("lists besides" in row for row in rows)


def test_a_line_of_many_files_states_how_many_there_are(config_home: ConfigHome) -> None:
    """Whole names alone."""
    names = [f"{'folder/' * 12}file_{number}.py" for number in range(10)]
    row = _uncommitted(_edited(*names).runs("git log", "1234567 x", cwd=CWD), config_home)
    assert row.endswith("file_8.py and 8 others")


@pytest.mark.parametrize(
    ("command", "row"),
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
def test_a_file_that_was_moved_is_open_at_its_new_path(
    config_home: ConfigHome, command: str, row: str
) -> None:
    """As a command or git's own listing tells; nothing is left at the old one."""
    output = ""
    if command.endswith("--name-status"):
        output = "R100\told/x.py\tnew/x.py\n"
    elif command == "git status -s":
        output = " D old/x.py\n"
    elif command.endswith("git status -s"):
        output = "R  old/x.py -> new/x.py\n"
    talk = _edited("old/x.py").runs("git status -s", " M old/x.py\n", cwd=CWD)
    assert _uncommitted(talk, config_home) == "not committed: old/x.py"
    assert _uncommitted(talk.runs(command, output, cwd=CWD), config_home) == row


def test_a_file_of_a_moved_folder_is_gone_from_it(config_home: ConfigHome) -> None:
    """Also where the command that moved the folder wrote the file."""
    talk = _edited("old/x.py").runs("echo 1 > old/mark; git mv old new", "", cwd=CWD)
    found = notes(talk.digest(config_home), "changed")
    assert found["old/mark"] == "moved to new/mark"


def test_a_committed_file_that_git_moved_is_staged(config_home: ConfigHome) -> None:
    """The next commit takes the move."""
    talk = _edited("old/x.py").runs("git commit -am x", COMMITTED, cwd=CWD)
    talk.runs("git mv old new", "", cwd=CWD)
    assert _uncommitted(talk, config_home) == "staged for the next commit: new/x.py"
    talk.runs("git commit -m y", "[main 7654321] y\n", cwd=CWD)
    assert _uncommitted(talk, config_home) == ""


def test_a_folder_is_not_named_next_to_its_files(config_home: ConfigHome) -> None:
    """As a checkout of a whole folder changes it."""
    talk = _edited("lib/x.py").runs("git checkout -q origin/main -- lib/", "", cwd=CWD)
    talk.edits(f"{CWD}/lib/x.py")
    assert _uncommitted(talk, config_home) == "not committed: lib/x.py"


def test_a_deleted_file_is_removed_whatever_commit_took_it(config_home: ConfigHome) -> None:
    """By what git names as deleted; until it is written again."""
    talk = _edited("a.py").runs("rm a.py; git status -s", " D a.py", cwd=CWD)
    talk.runs("git commit -am x", f"{COMMITTED} delete mode 100644 b.py\n", cwd=CWD)
    assert _state(talk, config_home) == "removed"
    assert _state(talk.edits(f"{CWD}/a.py"), config_home) == "not committed"


def test_an_output_that_was_cut_is_not_the_whole_status(config_home: ConfigHome) -> None:
    """What it does not name may be in the part that is omitted; no name is cut."""
    rows = "".join(f" M docs/page_{number}.md\n" for number in range(600))
    talk = _edited("a.py").runs("git status -s", rows, cwd=CWD)
    assert _state(talk, config_home) == "not committed"
    listed = [path for path in notes(talk.digest(config_home), "changed") if path != "a.py"]
    assert listed == []


def test_many_files_that_git_alone_names_are_nobodys(config_home: ConfigHome) -> None:
    """Unless the session committed them: then some are named, and the rest is counted."""
    rows = "".join(f" M page_{number}.md\n" for number in range(10))
    talk = _edited("a.py").runs("git status -s", rows, cwd=CWD)
    digest = talk.digest(config_home)
    assert [*notes(digest, "changed")] == ["a.py"]
    assert any(
        "git status lists besides: page_0.md" in entry.text
        for entry in digest.section_entries("now")
    )
    talk.runs("git add -A && git commit -m x", f"{COMMITTED}", cwd=CWD)
    found = notes(talk.digest(config_home), "changed")
    assert len(found) == 9
    assert [*found.values()][-1] == "named by git only, committed in 1234567, as are 2 others"


def test_a_file_of_a_removed_worktree_is_marked(config_home: ConfigHome) -> None:
    """It is told by its path in the repository."""
    talk = _edited("a.py").edits("/home/user/proj-fix/src/b.py")
    talk.runs("cd /home/user/proj-fix && git status", "On branch fix\n", cwd=CWD)
    talk.runs("git worktree remove ../proj-fix", "", cwd=CWD)
    digest = talk.digest(config_home)
    assert notes(digest, "changed")["src/b.py"] == "in proj-fix, a folder that was removed"
    assert not any("proj-fix" in entry.text for entry in digest.section_entries("now"))


def test_a_call_that_names_its_folder_worked_there(config_home: ConfigHome) -> None:
    """As agents do that have no `cd`: its listings are of that folder's repository."""
    talk = _edited("a.py").calls(
        "Bash",
        {"command": "git commit -am x", "workdir": "/home/user/other"},
        f"{COMMITTED} create mode 100644 c.py\n",
        cwd=CWD,
    )
    states = notes(talk.digest(config_home), "changed")
    assert states["a.py"] == "not committed"
    assert "/home/user/other/c.py" in states


def test_a_commit_of_a_rebase_takes_the_place_of_the_former_one(config_home: ConfigHome) -> None:
    """An amend after the rebase changes the last commit of the branch, not the one that git printed last."""
    talk = _edited("a.py").runs("git commit -am 'add it'", "[work 1111111] add it\n", cwd=CWD)
    talk.edits(f"{CWD}/b.py").runs("git commit -am 'use it'", "[work 2222222] use it\n", cwd=CWD)
    talk.runs(
        "git rebase --continue",
        "[detached HEAD 3333333] add it\nSuccessfully rebased and updated refs/heads/work.",
    )
    talk.runs("git commit -a --amend --no-edit", "[work 4444444] use it\n", cwd=CWD)
    assert texts(talk.digest(config_home), "artefacts") == [
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
def test_the_hash_of_a_quiet_commit(config_home: ConfigHome, command: str, output: str) -> None:
    """A log after it or a short output names it, whatever a hook prints."""
    talk = _edited("a.py").runs(command, output, cwd=CWD)
    assert texts(talk.digest(config_home), "artefacts") == ["commit 1234567 add it"]


def test_a_removed_empty_folder_is_not_a_file(config_home: ConfigHome) -> None:
    """It held nothing that was changed."""
    talk = _edited("a.py").runs("rmdir old/names", "ok", cwd=CWD)
    assert texts(talk.digest(config_home), "changed") == ["a.py"]


def test_the_state_of_files_in_another_repository(config_home: ConfigHome) -> None:
    """As git's commands in that repository show: a commit there leaves the files of the others open."""
    other = "/srv/other"
    talk = _edited("a.py").edits(f"{other}/b.py").edits(f"{other}/lib/c.py").edits("/srv/d.py")
    talk.runs("git add -A && git commit -m x", COMMITTED, cwd=other).edits(f"{other}/lib/c.py")
    states = notes(talk.digest(config_home), "changed")
    assert states[f"{other}/b.py"] == "committed in 1234567"
    assert states[f"{other}/lib/c.py"] == states["a.py"] == "not committed"
    assert states["/srv/d.py"] == ""
    assert f"not committed: {other}/lib/c.py, a.py" in texts(talk.digest(config_home), "now")
    talk.runs("git add . && git commit -m y", "[main 7654321] y\n", cwd=other)
    assert _state(talk, config_home, f"{other}/lib/c.py") == "committed in 7654321"


def test_the_folder_of_a_worktree_of_codex(config_home: ConfigHome) -> None:
    """It is one level deeper than in other clients, so git's paths begin there."""
    tree = "/home/user/.codex/worktrees/98e4/proj"
    talk = Talk().prompt("go").edits(f"{tree}/a.py")
    created = f"{COMMITTED} create mode 100644 lib/new.py\n"
    talk.runs("git add -A && git commit -m x", created, cwd=tree).edits(f"{tree}/lib/new.py")
    talk.runs("git commit -am y", "[main 7654321] y\n", cwd=tree)
    assert _state(talk, config_home, f"{tree}/lib/new.py") == "committed in 7654321"
