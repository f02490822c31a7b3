"""Tests of the git query for a repository's state: its answer, time limit and safety."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from resume_hooks.paths import Where
from resume_hooks.reading.digest.repository import MAX_BRANCH_CHARACTERS, GitQuery, RepositoryState
from tests.builders import ConfigHome
from tests.needs import require_for_test
from tests.reading.digest.talk import Talk, entry_notes

OLD_TIME = "2001-01-01T00:00:00.000Z"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one commit of the file ``a``."""
    require_for_test("git", os.path.exists("/usr/bin/git") or os.environ.get("PATH"), "install git")
    folder = tmp_path / "repo"
    folder.mkdir()
    run_git(folder, "init", "-q", "-b", "main")
    (folder / "a").write_text("1\n")
    run_git(folder, "add", "a")
    run_git(folder, "commit", "-qm", "one")
    return folder


def run_git(folder: Path, *arguments: str) -> None:
    """Run git in a folder with the home folder and name of a test user."""
    who = {
        "GIT_AUTHOR_NAME": "x",
        "GIT_AUTHOR_EMAIL": "x@y",
        "GIT_COMMITTER_NAME": "x",
        "GIT_COMMITTER_EMAIL": "x@y",
    }
    env = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), **who}
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, env=env, capture_output=True)


def git_state(
    folder: Path, environ: Mapping[str, str] | None = None, wait_seconds: float = 0.05
) -> RepositoryState:
    """Ask git about a folder's repository, and return its state after ``wait_seconds``."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), **(environ or {})}
    with GitQuery(str(folder), OLD_TIME, Where(env)) as question:
        time.sleep(wait_seconds)
        return question.collect_answers()


def git_state_without_time_limit(folder: Path) -> RepositoryState:
    """Return the state of a folder's repository, trying again if the machine is too busy."""
    return next(
        (state for _ in range(20) if (state := git_state(folder)).description != "not asked"),
        RepositoryState("not asked"),
    )


def write_script(path: Path, text: str) -> Path:
    """Write an executable shell script."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_the_state_of_a_clean_repository_has_its_branch_and_commit_count(repo: Path) -> None:
    """The state of a clean repository has its branch and the number of commits since the session began."""
    assert git_state_without_time_limit(repo) == RepositoryState(
        "branch main, 1 commit since the session began, clean", str(repo), frozenset(), "main"
    )


def test_uncommitted_files_are_listed(repo: Path) -> None:
    """Changed, staged, new and renamed files are listed with paths from the repository's root."""
    (repo / "sub").mkdir()
    (repo / "a").write_text("2\n")
    (repo / "new file ü").write_text("x")
    (repo / "sub" / "b").write_text("x")
    run_git(repo, "add", "sub/b")
    run_git(repo, "commit", "-qm", "two")
    run_git(repo, "mv", "sub/b", "sub/c d")
    state = git_state_without_time_limit(repo / "sub")
    assert state.dirty_paths == {"a", "new file ü", "sub/c d"}
    assert state.staged_paths == {"sub/c d"}
    assert state.untracked_paths == {"new file ü"}
    assert state.description == "branch main, 2 commits since the session began, 3 uncommitted"


def test_files_in_conflict_are_listed(repo: Path) -> None:
    """After a merge with a conflict, the file is listed as conflicting and not as staged."""
    run_git(repo, "switch", "-qc", "other")
    (repo / "a").write_text("2\n")
    run_git(repo, "commit", "-qam", "two")
    run_git(repo, "switch", "-q", "main")
    (repo / "a").write_text("3\n")
    run_git(repo, "commit", "-qam", "three")
    with pytest.raises(subprocess.CalledProcessError):
        run_git(repo, "merge", "other")
    state = git_state_without_time_limit(repo)
    assert state.conflicting_paths == state.dirty_paths == {"a"}
    assert state.staged_paths == frozenset()


@pytest.mark.parametrize(
    "checkout_arguments", [("checkout", "-q", "--detach"), ("checkout", "-q", "-b", "b" * 200)]
)
def test_a_detached_head_has_no_branch(repo: Path, checkout_arguments: tuple[str, ...]) -> None:
    """The state of a detached head says "no branch". A long branch name is cut."""
    run_git(repo, *checkout_arguments)
    line = git_state_without_time_limit(repo).description
    assert line.startswith(("no branch (detached), ", f"branch {'b' * MAX_BRANCH_CHARACTERS}, "))


@pytest.fixture
def pushed_repo(repo: Path) -> Path:
    """The repository on the branch ``fix/x``, which was pushed to a bare repository."""
    run_git(repo, "init", "-q", "--bare", "../remote")
    run_git(repo, "remote", "add", "origin", str(repo.parent / "remote"))
    run_git(repo, "checkout", "-q", "-b", "fix/x")
    commit_tracked_changes(repo, "two")
    run_git(repo, "push", "-q", "-u", "origin", "fix/x")
    return repo


def commit_tracked_changes(folder: Path, *arguments: str) -> None:
    """Commit all tracked changes, even if there are none. The first of ``arguments`` is the message."""
    run_git(folder, "commit", "-q", "--allow-empty", "-am", *arguments)


def test_the_state_of_a_pushed_branch_does_not_mention_its_upstream(pushed_repo: Path) -> None:
    """If a branch was pushed and equals its upstream, the state does not mention the upstream."""
    state = git_state_without_time_limit(pushed_repo)
    assert (state.branch, state.ahead_count, state.behind_count, state.is_rewritten) == (
        "fix/x",
        0,
        0,
        False,
    )
    assert state.description == "branch fix/x, 2 commits since the session began, clean"


def test_commits_ahead_and_behind_are_counted(pushed_repo: Path) -> None:
    """The commits ahead of and behind the upstream are counted.

    If other people pushed commits, the branch is not marked as rewritten.
    """
    run_git(
        pushed_repo, "clone", "-q", "-b", "fix/x", str(pushed_repo.parent / "remote"), "../other"
    )
    commit_tracked_changes(pushed_repo.parent / "other", "theirs")
    run_git(pushed_repo.parent / "other", "push", "-q")
    for message in ("three", "four", "five"):
        commit_tracked_changes(pushed_repo, message)
    assert git_state_without_time_limit(pushed_repo).description == (
        "branch fix/x, 5 commits since the session began, 3 commits ahead of its upstream, clean"
    )
    run_git(pushed_repo, "fetch", "-q")
    (pushed_repo / "a").write_text("2\n")
    state = git_state_without_time_limit(pushed_repo)
    assert (state.ahead_count, state.behind_count, state.is_rewritten) == (3, 1, False)
    assert state.description.endswith("3 commits ahead of its upstream, 1 behind, 1 uncommitted")
    run_git(pushed_repo, "reset", "-q", "--hard", "HEAD~3")
    assert (
        ", 1 commit behind its upstream, clean"
        in git_state_without_time_limit(pushed_repo).description
    )


def test_a_rewritten_pushed_branch_is_marked(pushed_repo: Path) -> None:
    """A branch whose pushed commit was amended is marked as rewritten until the next push."""
    commit_tracked_changes(pushed_repo, "two again", "--amend")
    state = git_state_without_time_limit(pushed_repo)
    assert (state.ahead_count, state.behind_count, state.is_rewritten) == (1, 1, True)
    assert state.description == (
        "branch fix/x, 2 commits since the session began, 1 commit ahead of its upstream, 1 behind, "
        "rewritten after it was pushed: needs a force-push, clean"
    )
    run_git(pushed_repo, "push", "-q", "--force")
    assert not git_state_without_time_limit(pushed_repo).is_rewritten


def test_a_branch_with_a_deleted_upstream_is_not_ahead(pushed_repo: Path) -> None:
    """A branch whose upstream was deleted is neither ahead nor behind."""
    run_git(pushed_repo, "update-ref", "-d", "refs/remotes/origin/fix/x")
    state = git_state_without_time_limit(pushed_repo)
    assert (state.ahead_count, state.behind_count, state.is_rewritten) == (0, 0, False)


def test_ignored_files_are_not_listed(repo: Path) -> None:
    """Files ignored by the repository, the clone, or the user's own settings are not listed."""
    (repo / ".gitignore").write_text("*.one\n")
    commit_all = ("commit", "-qm", "ignore")
    run_git(repo, "add", ".gitignore")
    run_git(repo, *commit_all)
    (repo / ".git" / "info" / "exclude").write_text("*.two\n")
    usual = repo.parent / ".config" / "git"
    usual.mkdir(parents=True)
    (usual / "ignore").write_text("*.three\n")
    for ending in ("one", "two", "three", "four"):
        (repo / f"x.{ending}").write_text("x")
    assert git_state_without_time_limit(repo).dirty_paths == {"x.four"}
    (repo.parent / "mine").write_text("*.four\n")
    (repo.parent / ".gitconfig").write_text("[core]\n\texcludesFile = ~/mine\n")
    assert git_state_without_time_limit(repo).dirty_paths == {"x.three"}


def test_a_file_mode_is_listed_only_if_modes_are_tracked(repo: Path) -> None:
    """A changed file mode is listed only if the repository is configured to track file modes."""
    run_git(repo, "config", "core.fileMode", "false")
    (repo / "a").chmod(0o755)
    assert not git_state_without_time_limit(repo).dirty_paths
    run_git(repo, "config", "core.fileMode", "true")
    assert git_state_without_time_limit(repo).dirty_paths == {"a"}


@pytest.mark.parametrize(
    "arguments", [("update-index", "--split-index"), ("update-index", "--index-version", "4")]
)
def test_split_indexes_and_indexes_of_version_4_are_read(
    repo: Path, arguments: tuple[str, ...]
) -> None:
    """A split index and an index of version 4 are read like an ordinary index."""
    run_git(repo, *arguments)
    (repo / "b").write_text("x")
    run_git(repo, "add", "b")
    assert git_state_without_time_limit(repo).dirty_paths == {"b"}


def test_commits_of_a_shallow_clone_are_counted(repo: Path) -> None:
    """The commits of a shallow clone are counted."""
    commit_tracked_changes(repo, "two")
    run_git(repo, "clone", "-q", "--depth", "1", f"file://{repo}", "../shallow")
    assert (
        git_state_without_time_limit(repo.parent / "shallow").description
        == "branch main, 1 commit since the session began, clean"
    )


def test_the_state_of_a_partial_clone_is_read(repo: Path) -> None:
    """The state of a partial clone is read without fetching the missing objects."""
    run_git(repo, "config", "uploadpack.allowFilter", "true")
    (repo / "long").write_text("".join(f"{line}\n" for line in range(50)))
    run_git(repo, "add", "long")
    commit_tracked_changes(repo, "two")
    run_git(
        repo, "clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{repo}", "../partial"
    )
    partial = repo.parent / "partial"
    run_git(partial, "reset", "-q", "--mixed")
    (partial / "a").write_text("1\n")
    (partial / "b").write_text("".join(f"{line}\n" for line in range(49)))
    run_git(partial, "update-index", "--add", "--cacheinfo", f"100644,{'1' * 40},c")
    run_git(partial, "remote", "set-url", "origin", "ext::sh -c touch% ran")
    assert git_state_without_time_limit(partial).dirty_paths == {"long", "b", "c"}


def test_the_state_of_a_sha256_repository_is_read(tmp_path: Path) -> None:
    """The state of a repository with SHA-256 ids is read."""
    run_git(tmp_path, "init", "-q", "-b", "main", "--object-format=sha256")
    (tmp_path / "a").write_text("x")
    run_git(tmp_path, "add", "a")
    commit_tracked_changes(tmp_path, "one")
    assert (
        git_state_without_time_limit(tmp_path).description
        == "branch main, 1 commit since the session began, clean"
    )


def test_the_state_of_a_submodule_is_read(repo: Path) -> None:
    """The state of a submodule is read, although the submodule's git folder is elsewhere.

    The outer repository's state does not include the submodule's files.
    """
    run_git(repo, "init", "-q", "-b", "main", "../inner")
    commit_tracked_changes(repo.parent / "inner", "one")
    run_git(repo, "-c", "protocol.file.allow=always", "submodule", "add", "-q", "../inner", "sub")
    assert (
        git_state_without_time_limit(repo / "sub").description
        == "branch main, 1 commit since the session began, clean"
    )
    (repo / "sub" / "b").write_text("x")
    assert git_state_without_time_limit(repo / "sub").dirty_paths == {"b"}
    assert git_state_without_time_limit(repo).dirty_paths == {".gitmodules"}


def test_a_repository_without_commits_has_no_commit_count(tmp_path: Path) -> None:
    """The state of a repository without commits has no number of commits."""
    run_git(tmp_path, "init", "-q", "-b", "main")
    assert git_state_without_time_limit(tmp_path).description == "branch main, clean"


def test_a_worktree_has_its_own_state(repo: Path) -> None:
    """The state of a worktree has the worktree's own branch and only its own uncommitted files."""
    run_git(repo, "worktree", "add", "-q", "../tree", "-b", "side")
    assert (
        git_state_without_time_limit(repo.parent / "tree").description
        == "branch side, 1 commit since the session began, clean"
    )
    (repo / "only here").write_text("x")
    assert not git_state_without_time_limit(repo.parent / "tree").dirty_paths


@pytest.mark.parametrize("folder", ["", "relative", "/nowhere/at/all", "/\0", "/"])
def test_a_folder_without_a_repository_has_no_state(folder: str) -> None:
    """The state is empty for a relative path and for a folder without a repository."""
    with GitQuery(folder, OLD_TIME, Where({"PATH": os.environ["PATH"]})) as question:
        assert question.collect_answers() == RepositoryState("")


def test_without_git_the_state_is_described_as_not_asked(repo: Path) -> None:
    """If git is not installed, the description of a repository's state is "not asked"."""
    assert git_state(repo, {"PATH": "/nowhere"}).description == "not asked"


def test_the_state_of_a_bare_repository_is_described_as_no_answer(tmp_path: Path) -> None:
    """The description of a bare repository's state is "no answer"."""
    run_git(tmp_path, "init", "-q")
    run_git(tmp_path, "config", "core.bare", "true")
    assert git_state_without_time_limit(tmp_path).description == "no answer"


def test_a_hanging_git_process_is_stopped(repo: Path, tmp_path: Path) -> None:
    """A git process that hangs is stopped together with its children."""
    folder = tmp_path / "bin"
    folder.mkdir()
    write_script(
        folder / "git", f"echo $$ >> {tmp_path}/pids; sleep 60 & echo $! >> {tmp_path}/pids; wait"
    )
    started = time.monotonic()
    state = git_state(repo, {"PATH": f"{folder}:{os.environ['PATH']}"}, wait_seconds=0.3)
    assert state.description == "not asked"
    # The query must not wait for a grandchild that keeps the pipe open.
    assert time.monotonic() - started < 30
    pids = (tmp_path / "pids").read_text().split()
    assert pids
    deadline = time.monotonic() + 10
    while any(_is_running(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(_is_running(pid) for pid in pids)


def _is_running(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_an_abandoned_query_stops_git(repo: Path) -> None:
    """A query that is left early ends its git processes."""
    with GitQuery(str(repo), OLD_TIME, Where({"PATH": os.environ["PATH"]})) as question:
        question._query_thread.join()
        runs = list(question._runs)
        assert len(runs) == 2
    assert all(run.returncode is not None for run in runs)


def test_the_index_is_not_changed(repo: Path) -> None:
    """Reading the state changes neither the index file nor its modification time."""
    os.utime(repo / "a", (1, 1))
    index = repo / ".git" / "index"
    before = index.stat().st_mtime_ns, index.read_bytes()
    git_state_without_time_limit(repo)
    assert (index.stat().st_mtime_ns, index.read_bytes()) == before


def test_no_program_of_the_repository_runs(repo: Path, tmp_path: Path) -> None:
    """No monitor, hook, pager or other program that the repository names is run."""
    evil = write_script(tmp_path / "evil", f"touch {tmp_path}/ran; cat")
    (repo / ".git" / "hooks").mkdir(exist_ok=True)
    write_script(repo / ".git" / "hooks" / "post-index-change", f"touch {tmp_path}/ran")
    for key in ("core.fsmonitor", "core.sshCommand", "core.pager", "pager.status", "diff.external"):
        run_git(repo, "config", key, str(evil))
    os.utime(repo / "a", (1, 1))
    git_state_without_time_limit(repo)
    assert not (tmp_path / "ran").exists()


def test_a_digest_marks_uncommitted_files(repo: Path, config_home: ConfigHome) -> None:
    """A file that the session changed and git reports as uncommitted has the note "not committed"."""
    talk = Talk().prompt("go", cwd=str(repo)).edits(str(repo / "a")).edits(str(repo / "b"))
    (repo / "a").write_text("2\n")
    for record in talk.records:
        record["cwd"] = str(repo)
    home = config_home.project(str(repo)) / "11111111-1111-4111-8111-111111111111.jsonl"
    from tests.builders import session_bytes

    home.write_bytes(session_bytes(talk.records))
    from resume_hooks.reading.digest.build import build_digest
    from resume_hooks.sessions.locate import session_file

    environ = {**config_home.environ, "PATH": os.environ["PATH"]}
    found = (build_digest(session_file(str(home)), Where(environ)) for _ in range(20))
    digest = next((one for one in found if one.git_line != "not asked"), None)
    assert digest is not None
    assert entry_notes(digest, "changed") == {"b": "", "a": "not committed"}
    assert "1 uncommitted" in digest.git_line
