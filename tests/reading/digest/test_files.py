"""Tests of the files in a digest: changed files, files that git lists, and files that were read."""

from __future__ import annotations

import pytest

from tests.builders import CWD, ConfigHome, session_id
from tests.reading.digest.talk import (
    REJECTION_TEXT,
    Talk,
    entry_line_numbers,
    entry_notes,
    entry_texts,
)


def test_changed_files_are_listed_latest_first(config_home: ConfigHome) -> None:
    """Changed files are listed with paths relative to the project, in the order of their last changes.

    The latest change is first.
    """
    talk = (
        Talk()
        .prompt("go")
        .edits(f"{CWD}/a.py")
        .calls("Write", {"file_path": "/tmp/x", "content": "y"})
    )
    talk.edits(f"{CWD}/sub/b.py").edits(f"{CWD}/a.py").runs("cd sub && touch c", cwd=CWD)
    digest = talk.digest(config_home)
    assert entry_notes(digest, "changed") == {"sub/c": "", "a.py": "", "sub/b.py": ""}
    assert entry_line_numbers(digest, "changed") == {"sub/c": 9, "a.py": 7, "sub/b.py": 5}


def test_changed_settings_of_codex_in_a_project_are_listed(config_home: ConfigHome) -> None:
    """Changed settings and prompts in a project's ``.codex`` folder are listed. Codex's own files are not."""
    talk = Talk().prompt("go").edits(f"{CWD}/.codex/prompts/tasks.md")
    talk.edits(f"{CWD}/.codex/config.toml").edits(f"{CWD}/.codex/models_cache.json")
    talk.edits(f"{CWD}/.codex/sessions/2026/rollout-1.jsonl")
    assert entry_texts(talk.digest(config_home), "changed") == [
        ".codex/config.toml",
        ".codex/prompts/tasks.md",
    ]


@pytest.mark.parametrize(
    ("answer", "extra"),
    [
        ("<tool_use_error>String to replace not found in file.</tool_use_error>", {"error": True}),
        (REJECTION_TEXT, {"error": True}),
        (REJECTION_TEXT, {}),
        (
            "Claude requested permissions to write to x, but you haven't granted it yet.",
            {"error": True},
        ),
        (None, {}),
    ],
)
def test_an_unsuccessful_edit_changes_no_file(
    config_home: ConfigHome, answer: str | None, extra: dict[str, object]
) -> None:
    """A file whose edit failed, was refused or was never answered is not listed as changed."""
    digest = Talk().prompt("go").edits(f"{CWD}/a.py", answer=answer, **extra).digest(config_home)
    assert entry_texts(digest, "changed") == []


def test_a_read_beyond_the_end_of_a_file_is_not_listed(config_home: ConfigHome) -> None:
    """A read that starts beyond the end of a file is not listed, because the client prints only a warning."""
    warning = (
        "<system-reminder>Warning: the file exists but is shorter than the provided offset (500). "
        "The file has 499 lines.</system-reminder>"
    )
    talk = Talk().prompt("go").calls("Read", {"file_path": f"{CWD}/a.go", "offset": 500}, warning)
    assert entry_texts(talk.digest(config_home), "read") == []
    talk.calls("Read", {"file_path": f"{CWD}/a.go"}, "     1\tpackage a")
    talk.calls("Read", {"file_path": f"{CWD}/a.go", "offset": 500}, warning)
    assert entry_line_numbers(talk.digest(config_home), "read") == {"a.go": 3}


def test_a_script_in_a_command_changes_files(config_home: ConfigHome) -> None:
    """A file that a Python script in a command wrote is listed with a reference to the command's record."""
    script = "p='plans/tasks.md'\ns=open(p).read()\nopen(p,'w').write(s.replace('a', 'b'))"
    talk = Talk().prompt("go").edits(f"{CWD}/plans/tasks.md").edits(f"{CWD}/a.py")
    talk.runs(f"cd {CWD}\npython3 - <<'PY'\n{script}\nPY\nls plans", "tasks.md")
    assert entry_line_numbers(talk.digest(config_home), "changed") == {
        "plans/tasks.md": 5,
        "a.py": 3,
    }


def test_a_file_of_a_rejected_edit_is_not_listed_as_changed(config_home: ConfigHome) -> None:
    """A file whose edit the user rejected is not listed as changed, even if the rejection is very long."""
    digest = (
        Talk()
        .prompt("go")
        .edits(f"{CWD}/a.py", answer=f"{REJECTION_TEXT}{'x' * 5_000}")
        .digest(config_home)
    )
    assert entry_texts(digest, "changed") == []


def test_a_command_runs_in_the_folder_of_its_record(config_home: ConfigHome) -> None:
    """A relative path in a command is resolved in the folder that the command's record names."""
    digest = (
        Talk().prompt("go").runs("touch x", cwd="/elsewhere").runs("touch x").digest(config_home)
    )
    assert entry_texts(digest, "changed") == ["x", "/elsewhere/x"]


def test_files_of_a_failed_command_are_marked_as_uncertain(config_home: ConfigHome) -> None:
    """A file written by a failed command is listed last, with the note "its command failed".

    The note is dropped when a later command writes the file successfully.
    """
    talk = (
        Talk()
        .prompt("go")
        .runs_and_fails("cat > t.js <<'EOF'\nx\nEOF\nnode t.js")
        .edits(f"{CWD}/a.py")
    )
    assert entry_notes(talk.digest(config_home), "changed") == {
        "a.py": "",
        "t.js": "its command failed",
    }
    assert entry_notes(talk.runs("touch t.js").digest(config_home), "changed") == {
        "t.js": "",
        "a.py": "",
    }


def test_files_that_git_lists_are_marked_as_uncertain(config_home: ConfigHome) -> None:
    """A file that only ``git status`` lists as changed has the note "named by git only"."""
    talk = (
        Talk().prompt("go").edits(f"{CWD}/a.py").runs("git status --short", " M a.py\n M gen.py\n")
    )
    digest = talk.digest(config_home)
    assert entry_notes(digest, "changed") == {
        "a.py": "not committed",
        "gen.py": "named by git only, not committed",
    }
    assert entry_line_numbers(digest, "changed")["gen.py"] == talk.last_line_number


def test_earlier_changes_do_not_belong_to_the_session(config_home: ConfigHome) -> None:
    """A file that was changed before the session began is listed only after the session changes it."""
    talk = (
        Talk().prompt("go").runs("git status --short", " M old.py\n M a.py\n").edits(f"{CWD}/a.py")
    )
    talk.runs("git status --short", " M old.py\n M a.py\n M new.py\n")
    assert entry_texts(talk.digest(config_home), "changed") == ["a.py", "new.py"]


def test_git_paths_are_relative_to_their_repository(config_home: ConfigHome) -> None:
    """A path that git prints is resolved in the folder of the git command's repository."""
    talk = Talk().prompt("go").runs("make").runs("cd /other && git status --short", " M a.py\n")
    talk.runs("cd sub && git commit -m x", "[main 1234567] x\n create mode 100644 top.py\n")
    assert entry_texts(talk.digest(config_home), "changed") == ["top.py", "/other/a.py"]


def test_a_windows_path_is_listed_relative_to_the_project(config_home: ConfigHome) -> None:
    """A changed file of a project on Windows is listed with its path relative to the project."""
    talk = Talk().prompt("go", cwd="C:\\proj")
    talk.calls("Write", {"file_path": "C:\\proj\\src\\a.py"}, cwd="C:\\proj")
    assert entry_texts(talk.digest(config_home), "changed") == ["src\\a.py"]


@pytest.mark.parametrize(
    ("path", "shown_path"),
    [
        (f"{CWD}/a b/ü.py", "a b/ü.py"),
        (f"{CWD}/x\ny", "x y"),
        (f"{CWD}/../other/z", "/home/user/other/z"),
        (f"{CWD}-2/a", f"{CWD}-2/a"),
        ("rel/../a.py", "a.py"),
        (f"{CWD}/\x1b[31mred", "red"),
    ],
)
def test_unusual_paths_are_shown_safely(
    config_home: ConfigHome, path: str, shown_path: str
) -> None:
    """A path is shown without line breaks and control characters.

    A path that leads out of the project is shown in its resolved form.
    """
    assert entry_texts(Talk().prompt("go").edits(path).digest(config_home), "changed") == [
        shown_path
    ]


def test_a_very_long_path_is_cut(config_home: ConfigHome) -> None:
    """A path of 100,000 characters is shortened to 301, and the other changed files are still listed."""
    digest = Talk().prompt("go").edits("/" + "x" * 100_000).edits(f"{CWD}/a.py").digest(config_home)
    assert [len(text) for text in entry_texts(digest, "changed")] == [4, 301]


def test_a_file_that_was_read_and_changed_is_listed_as_changed(config_home: ConfigHome) -> None:
    """A file that was read and later changed is not listed as read. The other read files are listed."""
    talk = Talk().prompt("go")
    for name in ("a", "b", "c"):
        talk.calls("Read", {"file_path": f"{CWD}/{name}"}, "x" * 5_000)
    digest = talk.runs("echo x > b").digest(config_home)
    assert entry_texts(digest, "read") == ["c", "a"]


def test_created_commits_and_pull_requests_are_listed(config_home: ConfigHome) -> None:
    """Commits, pull requests, and the client's links to pull requests are listed.

    A link for creating a pull request is not listed.
    """
    talk = Talk().prompt("go").runs("git commit -m x", "[fix/it 1a2b3c4] Fix it\n 1 file changed\n")
    talk.runs("git push", "remote: Create one: https://github.com/o/r/pull/new/fix\n")
    talk.runs("gh pr create --fill", "https://github.com/o/r/pull/12\n")
    talk.add(
        {"type": "pr-link", "prUrl": "https://github.com/o/r/pull/9", "sessionId": session_id(1)}
    )
    digest = talk.digest(config_home)
    assert entry_texts(digest, "artefacts") == [
        "https://github.com/o/r/pull/12", "commit 1a2b3c4 Fix it", "https://github.com/o/r/pull/9",
    ]  # fmt: skip
    assert entry_line_numbers(digest, "artefacts")["commit 1a2b3c4 Fix it"] == 2


def test_a_removed_folder_is_one_entry(config_home: ConfigHome) -> None:
    """A removed folder is listed as one entry, with the number of files that the session changed in it.

    Files that were written later in another folder are listed separately.
    """
    talk = (
        Talk().prompt("go").edits("/home/user/proj/plans/a.md").edits("/home/user/proj/plans/b.md")
    )
    talk.runs("cd /home/user/proj; rm -rf plans; ls", "src").edits("/home/user/proj/src/x.py")
    talk.runs("mkdir -p src && touch src/y.py")
    digest = talk.digest(config_home)
    assert entry_texts(digest, "changed") == ["src/y.py", "src/x.py", "plans/"]
    assert entry_notes(digest, "changed")["plans/"] == "removed with 2 files"


def test_a_commit_without_output_is_found_in_a_log(config_home: ConfigHome) -> None:
    """If ``git commit`` prints nothing, the commit is read from ``git log`` in the same command."""
    command = "git commit -qF m.txt && echo === && git log --oneline -1"
    digest = Talk().prompt("go").runs(command, "===\n1a2b3c4 Fix it\n").digest(config_home)
    assert entry_texts(digest, "artefacts") == ["commit 1a2b3c4 Fix it"]


def test_an_amended_commit_is_replaced(config_home: ConfigHome) -> None:
    """An amended commit is listed with its new hash, or without a hash if git printed none."""
    talk = Talk().prompt("go").runs("git commit -m x", "[main 1a2b3c4] Fix it\n 1 file changed\n")
    talk.runs("git commit --amend -m y", "[main 2b3c4d5] Fix it well\n 1 file changed\n")
    assert entry_texts(talk.digest(config_home), "artefacts") == ["commit 2b3c4d5 Fix it well"]
    talk.runs("git add . && git commit -q --amend --no-edit", "")
    assert entry_texts(talk.digest(config_home), "artefacts") == ["commit: Fix it well"]


def test_commits_that_a_reset_removed_are_not_listed(config_home: ConfigHome) -> None:
    """After a reset, the commits that it removed from the current branch are not listed."""
    talk = Talk().prompt("go").runs("git commit -m x", "[other 0a0b0c0] Keep it\n")
    talk.runs("git checkout -b fix", "Switched to a new branch 'fix'")
    talk.runs("git commit -m x", "[fix 1a2b3c4] First\n").runs(
        "git commit -m x", "[fix 2b3c4d5] Second\n"
    )
    talk.runs("git reset README.md", "")
    assert len(entry_texts(talk.digest(config_home), "artefacts")) == 3
    talk.runs("git reset --soft HEAD~2 && git commit -m z", "[fix 3c4d5e6] Both\n")
    found = entry_texts(talk.digest(config_home), "artefacts")
    assert found == ["commit 3c4d5e6 Both", "commit 0a0b0c0 Keep it"]


def test_rebased_commits_have_new_hashes(config_home: ConfigHome) -> None:
    """A rebased commit is listed without a hash until a later ``git log`` shows its new hash.

    A fixup commit is not listed, because the rebase merged it into another commit.
    """
    talk = Talk().prompt("go").runs("git commit -m x", "[fix 1a2b3c4] Cut it\n")
    talk.runs("git commit --fixup HEAD", "[fix 2b3c4d5] fixup! Cut it\n")
    talk.runs("git rebase main", "Successfully rebased and updated refs/heads/fix.\n")
    digest = talk.digest(config_home)
    assert entry_texts(digest, "artefacts") == ["commit: Cut it"]
    assert (
        entry_notes(digest, "artefacts")["commit: Cut it"]
        == "on fix, rebased since, so its hash has changed"
    )
    talk.runs("git log --oneline -3", "9f8e7d6 (HEAD -> fix) Cut it\n0000000 Before\n")
    assert entry_texts(talk.digest(config_home), "artefacts") == ["commit 9f8e7d6 Cut it"]


def test_a_commit_amended_after_a_rebase_is_listed_with_its_new_hash(
    config_home: ConfigHome,
) -> None:
    """A commit that was amended after a rebase is listed with its new hash, not with its old hash."""
    talk = Talk().prompt("go").runs("git commit -m x", "[fix 1a2b3c4] Cut it\n")
    talk.runs_and_fails("git rebase main", "CONFLICT (content): Merge conflict in a.py\n")
    output = "[detached HEAD 0a0b0c0] Before\nSuccessfully rebased and updated refs/heads/fix.\n"
    talk.runs("git add . && git rebase --continue", output)
    talk.runs("git commit -a --amend --no-edit", "[fix 2b3c4d5] Cut it\n")
    found = entry_texts(talk.digest(config_home), "artefacts")
    assert found == ["commit 2b3c4d5 Cut it", "commit 0a0b0c0 Before"]


def test_a_later_removal_of_a_file_is_stated(config_home: ConfigHome) -> None:
    """A file is listed as removed if a later ``rm`` certainly succeeded.

    The success of ``rm`` is uncertain if its command failed, or if a part of the command after
    ``rm`` may hide a failure.
    """
    talk = Talk().prompt("go")
    for name in ("a.py", "tmp/b.py", "c.py", "d.py", "e.py"):
        talk.edits(f"{CWD}/{name}")
    talk.runs("rm a.py && rm -r tmp").runs("rm c.py; true").runs_and_fails("rm d.py").runs(
        "git rm --cached e.py"
    ).runs("rm f.py")
    talk.edits(f"{CWD}/f.py")
    said = entry_notes(talk.digest(config_home), "changed")
    removed = {name for name, note in said.items() if "removed" in note}
    assert removed == {"a.py", "tmp/"}
    assert said["a.py"] == "removed"


def test_a_file_that_its_own_command_removed_is_listed_as_removed(config_home: ConfigHome) -> None:
    """A file that a command both wrote and removed is listed as removed.

    The removal must be the command's last part, or an ``rm -f`` at its start that printed no error.
    """
    talk = Talk().prompt("go")
    talk.runs("cd src && cat > a.py <<'EOF'\nx\nEOF\ntrue | head -2\nrm a.py", "ok")
    for name in ("b.py", "c.py", "d.py"):
        talk.edits(f"{CWD}/{name}")
    talk.runs_and_fails("rm -f b.py; make x").runs_and_fails(
        "rm -f c.py; make x", "rm: c.py: Permission denied"
    )
    talk.runs_and_fails("rm d.py; make x")
    found = entry_notes(talk.digest(config_home), "changed")
    removed = {name for name, note in found.items() if note == "removed"}
    assert removed == {"src/a.py", "b.py"}


def test_temporary_files_are_not_listed(config_home: ConfigHome) -> None:
    """Temporary files, caches and installed packages are listed neither as changed nor as read."""
    talk = (
        Talk()
        .prompt("go")
        .edits("/tmp/x.py")
        .edits("/home/user/proj/__pycache__/a.pyc")
        .runs("touch /tmp/y a.tmp")
    )
    talk.edits("/var/folders/zz/b").edits("/home/user/proj/node_modules/c.js").edits(
        "/home/user/proj/real.py"
    )
    talk.calls("Read", {"file_path": "/tmp/z"}).calls(
        "Read", {"file_path": "/home/user/proj/seen.py"}
    )
    digest = talk.digest(config_home)
    assert entry_texts(digest, "changed") == ["real.py"]
    assert entry_texts(digest, "read") == ["seen.py"]


def test_a_file_that_a_script_reports_is_listed_if_git_lists_it(config_home: ConfigHome) -> None:
    """A file that a script says it wrote is listed as changed if ``git status`` lists it too."""
    status = " M AGENTS.md\n M seen.md\n?? new.md\n?? old.md\n"
    talk = Talk().prompt("go").runs("git status --short", status).edits(f"{CWD}/a.py")
    output = f"INFO: Updating the context file: {CWD}/AGENTS.md\nCreated new.md, notes.md"
    talk.runs("./update-context.sh", output).runs("cat log", "Updated seen.md")
    found = entry_line_numbers(
        talk.runs("git status --short", status).digest(config_home), "changed"
    )
    assert found == {"AGENTS.md": 5, "a.py": 3, "new.md": 5}


def test_generated_files_that_a_status_lists_are_listed(config_home: ConfigHome) -> None:
    """Of the many files that a generator reports as written, those that ``git status`` lists are listed."""
    written = [f"writing to docs/p{number}.md" for number in range(70)]
    talk = Talk().prompt("go").edits(f"{CWD}/a.py").runs("make docs", "\n".join(written))
    talk.runs("make docs", "\n".join(written))
    talk.runs("git status --short", " M a.py\n M docs/p1.md\n M docs/p69.md\n")
    found = entry_line_numbers(talk.digest(config_home), "changed")
    assert found["docs/p69.md"] == found["docs/p1.md"] == 5
