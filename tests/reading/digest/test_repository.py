"""What git says now: told in one line, within its time, without running anything of the repository's own."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from resume_hooks.paths import Where
from resume_hooks.reading.digest.repository import BRANCH, GitQuery, RepositoryState
from tests.builders import ConfigHome
from tests.needs import need
from tests.reading.digest.talk import Talk, notes

LONG_AGO = "2001-01-01T00:00:00.000Z"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with one commit of a file ``a``."""
    need("git", os.path.exists("/usr/bin/git") or os.environ.get("PATH"), "install git")
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "a").write_text("1\n")
    git(folder, "add", "a")
    git(folder, "commit", "-qm", "one")
    return folder


def git(folder: Path, *words: str) -> None:
    """Run git as a user would."""
    who = {"GIT_AUTHOR_NAME": "x", "GIT_AUTHOR_EMAIL": "x@y", "GIT_COMMITTER_NAME": "x", "GIT_COMMITTER_EMAIL": "x@y"}
    env = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), **who}
    subprocess.run(["git", "-C", str(folder), *words], check=True, env=env, capture_output=True)


def asked(folder: Path, environ: Mapping[str, str] | None = None, wait: float = 0.05) -> RepositoryState:
    """What git says of a folder, given a moment."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), **(environ or {})}
    with GitQuery(str(folder), LONG_AGO, Where(env)) as question:
        time.sleep(wait)
        return question.answer()


def patiently(folder: Path) -> RepositoryState:
    """The same on a machine that is busy."""
    return next(
        (state for _ in range(20) if (state := asked(folder)).line != "not asked"), RepositoryState("not asked")
    )


def script(path: Path, text: str) -> Path:
    """A program that leaves a mark where it runs."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_clean_repository(repo: Path) -> None:
    """Branch, commits since, clean."""
    assert patiently(repo) == RepositoryState(
        "branch main, 1 commit since the session began, clean", str(repo), frozenset()
    )


def test_what_is_not_committed(repo: Path) -> None:
    """Changed, staged, new, renamed and oddly named files, from the repository's root, asked from a folder in it."""
    (repo / "sub").mkdir()
    (repo / "a").write_text("2\n")
    (repo / "new file ü").write_text("x")
    (repo / "sub" / "b").write_text("x")
    git(repo, "add", "sub/b")
    git(repo, "commit", "-qm", "two")
    git(repo, "mv", "sub/b", "sub/c d")
    state = patiently(repo / "sub")
    assert state.dirty == {"a", "new file ü", "sub/c d"}
    assert state.line == "branch main, 2 commits since the session began, 3 uncommitted"


@pytest.mark.parametrize("words", [("checkout", "-q", "--detach"), ("checkout", "-q", "-b", "b" * 200)])
def test_odd_heads(repo: Path, words: tuple[str, ...]) -> None:
    """No branch is told as such, a long name is cut."""
    git(repo, *words)
    line = patiently(repo).line
    assert line.startswith(("no branch (detached), ", f"branch {'b' * BRANCH}, "))


def test_a_repository_without_commits(tmp_path: Path) -> None:
    """Nothing is counted."""
    git(tmp_path, "init", "-q", "-b", "main")
    assert patiently(tmp_path).line == "branch main, clean"


def test_a_worktree(repo: Path) -> None:
    """It has its own branch; the settings are those of the repository."""
    git(repo, "worktree", "add", "-q", "../tree", "-b", "side")
    assert patiently(repo.parent / "tree").line == "branch side, 1 commit since the session began, clean"
    with (repo / ".git" / "config").open("a") as stream:
        stream.write('[filter "x"]\n\tclean = true\n')
    assert asked(repo.parent / "tree").line == "not asked"


@pytest.mark.parametrize("folder", ["", "relative", "/nowhere/at/all", "/\0", "/"])
def test_no_repository(folder: str) -> None:
    """Nothing is said, and nothing is asked of a folder that is not named whole."""
    with GitQuery(folder, LONG_AGO, Where({"PATH": os.environ["PATH"]})) as question:
        assert question.answer() == RepositoryState("")


def test_no_git(repo: Path) -> None:
    """Where there is a repository but no git, it was not asked."""
    assert asked(repo, {"PATH": "/nowhere"}).line == "not asked"


def test_a_bare_repository(tmp_path: Path) -> None:
    """Git has no answer there."""
    git(tmp_path, "init", "-q")
    git(tmp_path, "config", "core.bare", "true")
    assert patiently(tmp_path).line == "no answer"


def test_a_git_that_hangs(repo: Path, tmp_path: Path) -> None:
    """It is ended in time, with what it started, and leaves no process behind."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script(folder / "git", f"echo $$ >> {tmp_path}/pids; sleep 60 & echo $! >> {tmp_path}/pids; wait")
    started = time.monotonic()
    state = asked(repo, {"PATH": f"{folder}:{os.environ['PATH']}"}, wait=0.3)
    assert state.line == "not asked"
    assert time.monotonic() - started < 30  # a grandchild that holds the pipe is not waited for
    pids = (tmp_path / "pids").read_text().split()
    assert pids
    deadline = time.monotonic() + 10
    while any(_runs(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(_runs(pid) for pid in pids)


def _runs(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_question_that_nobody_collects_ends(repo: Path) -> None:
    """An error in between leaves no process: the block ends them."""
    with GitQuery(str(repo), LONG_AGO, Where({"PATH": os.environ["PATH"]})) as question:
        runs = list(question._runs)
        assert len(runs) == 2
    assert all(run.returncode is not None for run in runs)


def test_the_index_is_left_alone(repo: Path) -> None:
    """No lock is taken, nothing is refreshed."""
    os.utime(repo / "a", (1, 1))
    index = repo / ".git" / "index"
    before = index.stat().st_mtime_ns, index.read_bytes()
    patiently(repo)
    assert (index.stat().st_mtime_ns, index.read_bytes()) == before


def test_nothing_of_the_repository_runs(repo: Path, tmp_path: Path) -> None:
    """No monitor, hook, pager, remote or filter that its settings name."""
    evil = script(tmp_path / "evil", f"touch {tmp_path}/ran; cat")
    (repo / ".git" / "hooks").mkdir(exist_ok=True)
    script(repo / ".git" / "hooks" / "post-index-change", f"touch {tmp_path}/ran")
    for key in ("core.fsmonitor", "core.sshCommand", "core.pager", "pager.status", "diff.external"):
        git(repo, "config", key, str(evil))
    os.utime(repo / "a", (1, 1))
    patiently(repo)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "text",
    ['[filter "a=b"]\n\tclean = {evil}\n', "[Include]\n\tpath = more\n", "[extensions]\n\tworktreeConfig = true\n"],
)
def test_filters_are_not_asked(repo: Path, tmp_path: Path, text: str) -> None:
    """Status would run a filter on a file whose time changed: such a repository is not asked at all."""
    evil = script(tmp_path / "evil", f"touch {tmp_path}/ran; cat")
    (repo / ".gitattributes").write_text("* filter=a=b\n")
    (repo / ".git" / "more").write_text(f'[filter "a=b"]\n\tclean = {evil}\n')
    with (repo / ".git" / "config").open("a") as stream:
        stream.write(text.format(evil=evil))
    os.utime(repo / "a", (1, 1))
    assert asked(repo).line == "not asked"
    assert not (tmp_path / "ran").exists()


def test_a_digest_tells_what_is_uncommitted(repo: Path, config_home: ConfigHome) -> None:
    """Beside the files that the session changed, where they have changes now."""
    talk = Talk().prompt("go", cwd=str(repo)).edits(str(repo / "a")).edits(str(repo / "b"))
    (repo / "a").write_text("2\n")
    for record in talk.records:
        record["cwd"] = str(repo)
    home = config_home.project(str(repo)) / "11111111-1111-4111-8111-111111111111.jsonl"
    from tests.builders import session_bytes

    home.write_bytes(session_bytes(talk.records))
    from resume_hooks.reading.digest.build import digest_of
    from resume_hooks.sessions.locate import session_file

    environ = {**config_home.environ, "PATH": os.environ["PATH"]}
    found = (digest_of(session_file(str(home)), Where(environ)) for _ in range(20))
    digest = next((one for one in found if one.git != "not asked"), None)
    assert digest is not None
    assert notes(digest, "changed") == {"b": "", "a": "uncommitted"}
    assert "1 uncommitted" in digest.git
