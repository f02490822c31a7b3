"""Tests that reading a repository's state starts no program that the repository names."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.needs import REPO, require_for_test
from tests.reading.digest.test_repository import commit_tracked_changes, repo, run_git, write_script

__all__ = ["repo"]  # The imported function is a fixture.

QUERY_STATE_SCRIPT = """
import json, sys, time
from resume_hooks.paths import Where
from resume_hooks.reading.digest import repository
repository.MAX_GIT_SECONDS = 60  # under strace everything takes its time
environ = json.loads(sys.argv[2])
with repository.GitQuery(sys.argv[1], "2001-01-01T00:00:00.000Z", Where(environ)) as query:
    state = query.collect_answers()
print(json.dumps([state.description, sorted(state.dirty_paths)]))
"""
FIND_COMMITS_SCRIPT = """
import json, sys, time
from resume_hooks.paths import Where
from resume_hooks.parts.moved import find_moved_repo
find_moved_repo.MAX_GIT_QUERY_SECONDS = 60
until = time.monotonic() + 60
where = Where(json.loads(sys.argv[2]))
print(json.dumps(find_moved_repo._find_commits(sys.argv[1], ("1" * 40,), where, until)))
"""


@pytest.fixture
def hostile_script(tmp_path: Path) -> Path:
    """A script that creates the file ``ran`` when it runs, and then copies its input like a filter."""
    return write_script(tmp_path / "hostile", f"touch '{tmp_path}/ran'; cat")


def run_under_strace(code: str, folder: Path, home: Path) -> object:
    """Run Python code under strace and return the JSON value that it prints.

    The test fails if git starts a process or if a program other than git runs. Git may start
    threads.
    """
    require_for_test("strace", shutil.which("strace"), "install the system package strace")
    log = home / "trace"
    environ = {"PATH": os.environ["PATH"], "HOME": str(home)}
    python = [sys.executable, "-c", code, str(folder), json.dumps(environ)]
    words = [
        "strace",
        "-f",
        "-qq",
        "-e",
        "trace=execve,fork,vfork,clone,clone3",
        "-o",
        str(log),
        *python,
    ]
    done = subprocess.run(
        words, env={**environ, "PYTHONPATH": str(REPO / "src")}, capture_output=True, check=True
    )
    gits: set[str] = set()
    for row in log.read_text().splitlines():
        pid, _, call = row.partition(" ")
        if started := re.match(r'\s*execve\("([^"]*)"', call):
            if gits or started[1] != sys.executable:
                assert os.path.basename(started[1]) == "git", row
                gits.add(pid)
        elif pid in gits and "CLONE_THREAD" not in call and "resumed" not in call:
            pytest.fail(f"git started a process: {row}")
    assert gits, "git was not asked"
    return json.loads(done.stdout)


def append_configuration(folder: Path, text: str) -> None:
    """Append text to the configuration of a repository."""
    with (folder / ".git" / "config").open("ab") as stream:
        stream.write(text.encode())


def apply_filter_to_all_files(folder: Path) -> None:
    """Assign the filter ``x`` to all files of a repository, and change the time of the file ``a``.

    Because of the new time, git compares the file's content.
    """
    (folder / ".gitattributes").write_text("* filter=x diff=x merge=x\n")
    os.utime(folder / "a", (1, 1))


FILTER_CONFIGURATION = (
    '[filter "x"]\n\tclean = {evil}\n\tsmudge = {evil}\n\tprocess = {evil}\n\trequired = true\n'
)
HOSTILE_CONFIGURATIONS = {
    "a filter": FILTER_CONFIGURATION,
    "a filter on one line": '[core][filter "x"] clean = {evil}\n',
    "a filter behind a carriage return": '[core]\r[filter "x"]\n\tclean = {evil}\n',
    "a filter behind 2 MB of comments": "# comment\n" * 200_000 + FILTER_CONFIGURATION,
    "a filter in other letters": '[FILTER_CONFIGURATION "x"]\nCLEAN={evil}\n',
    "a filter over two lines": '[filter "x"]\n\tcle\\\nan = {evil}\n\tclean = {evil}\n',
    "an include": "[include]\n\tpath = more\n",
    "a conditional include": '[includeIf "gitdir:/**"]\n\tpath = more\n',
    "settings of the worktree": "[extensions]\n\tworktreeConfig = true\n[core]\n\trepositoryformatversion = 1\n",
    "a monitor": "[core]\n\tfsmonitor = {evil}\n\tfsmonitorHookVersion = 2\n",
    "hooks": "[core]\n\thooksPath = {evil}.hooks\n",
    "a diff": '[diff]\n\texternal = {evil}\n[diff "x"]\n\tcommand = {evil}\n\ttextconv = {evil}\n',
    "pagers": "[core]\n\tpager = {evil}\n[pager]\n\tstatus = {evil}\n\tconfig = {evil}\n\trev-list = {evil}\n",
    "aliases": "[alias]\n\tstatus = !{evil}\n\tconfig = !{evil}\n\trev-list = !{evil}\n\trev-parse = !{evil}\n",
    "helpers": "[core]\n\tsshCommand = {evil}\n\taskPass = {evil}\n\teditor = {evil}\n\tgitProxy = {evil}\n"
    "\talternateRefsCommand = {evil}\n[credential]\n\thelper = {evil}\n[uploadpack]\n\tpackObjectsHook = {evil}\n",
    "signatures": "[log]\n\tshowSignature = true\n[gpg]\n\tprogram = {evil}\n",
    "a promisor": "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tpartialClone = origin\n"
    '[remote "origin"]\n\turl = ext::{evil}\n\tpromisor = true\n\tvcs = ../../hostile\n\tuploadpack = {evil}\n'
    '\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n',
    "a worktree elsewhere": "[core]\n\tworktree = /\n",
    "a trace": "[trace2]\n\teventTarget = {evil}.trace\n\tnormalTarget = {evil}.trace\n",
    "a submodule": '[submodule "sub"]\n\turl = ext::{evil}\n\tupdate = !{evil}\n\tactive = true\n',
    "an option for an upstream": '[branch "main"]\n\tremote = --upload-pack={evil}\n\tmerge = --exec={evil}\n',
}


@pytest.mark.parametrize("text", HOSTILE_CONFIGURATIONS.values(), ids=list(HOSTILE_CONFIGURATIONS))
@pytest.mark.parametrize(
    "code",
    [
        pytest.param(QUERY_STATE_SCRIPT, id="state"),
        pytest.param(FIND_COMMITS_SCRIPT, id="commits", marks=pytest.mark.part("moved")),
    ],
)
def test_no_program_in_the_configuration_is_started(
    repo: Path, hostile_script: Path, text: str, code: str
) -> None:
    """Reading a repository's state runs no program that the repository's configuration names."""
    apply_filter_to_all_files(repo)
    append_configuration(repo, text.format(evil=hostile_script))
    for name in ("more", "config.worktree"):
        (repo / ".git" / name).write_text(FILTER_CONFIGURATION.format(evil=hostile_script))
    hooks = Path(f"{hostile_script}.hooks")
    hooks.mkdir()
    for folder in (hooks, repo / ".git" / "hooks"):
        for name in (
            "post-index-change",
            "fsmonitor-watchman",
            "reference-transaction",
            "query-watchman",
        ):
            shutil.copy(hostile_script, folder / name)
    (repo / ".git" / "index").chmod(0o600)
    run_under_strace(code, repo, repo.parent)
    assert not (repo.parent / "ran").exists()
    assert not Path(f"{hostile_script}.trace").exists()


def test_a_filter_after_a_byte_order_mark_is_not_started(repo: Path, hostile_script: Path) -> None:
    """A filter that follows a byte order mark in the configuration file is not run."""
    apply_filter_to_all_files(repo)
    (repo / ".git" / "config").write_text(
        f'\ufeff[filter "x"]\n\tclean = {hostile_script}\n[core]\n\tbare = false\n'
    )
    assert run_under_strace(QUERY_STATE_SCRIPT, repo, repo.parent) == [
        "branch main, 1 commit since the session began, 1 uncommitted",
        [".gitattributes"],
    ]
    assert not (repo.parent / "ran").exists()


@pytest.mark.parametrize("is_inside", [True, False], ids=["in a repository", "alone"])
def test_git_is_not_asked_about_an_embedded_bare_repository(
    repo: Path, hostile_script: Path, is_inside: bool
) -> None:
    """Git is not asked about a project that looks like a bare repository.

    If an ordinary repository contains the project, git is asked about that repository.
    """
    outer = repo if is_inside else repo.parent / "plain"
    sub = outer / "sub"
    sub.mkdir(parents=True)
    shutil.copytree(repo / ".git", sub, dirs_exist_ok=True)
    (sub / "config").write_text(
        f"[core]\n\tbare = false\n\tworktree = ..\n\tfsmonitor = {hostile_script}\n"
    )
    if is_inside:
        assert run_under_strace(QUERY_STATE_SCRIPT, sub, repo.parent) == [
            "branch main, 1 commit since the session began, 1 uncommitted",
            ["sub/"],
        ]
    else:
        with pytest.raises(AssertionError, match="git was not asked"):
            run_under_strace(QUERY_STATE_SCRIPT, sub, repo.parent)
    assert not (repo.parent / "ran").exists()


@pytest.mark.parametrize("is_file", [True, False], ids=["a file", "a link"])
def test_a_git_folder_inside_the_project_starts_no_program(
    repo: Path, hostile_script: Path, is_file: bool
) -> None:
    """If ``.git`` is a file or link that points to a folder in the project, no program is started."""
    (repo / ".git").rename(repo / "data")
    if is_file:
        (repo / ".git").write_text("gitdir: data\n")
    else:
        (repo / ".git").symlink_to("data")
    apply_filter_to_all_files(repo)
    with (repo / "data" / "config").open("a") as stream:
        stream.write(
            FILTER_CONFIGURATION.format(evil=hostile_script)
            + f"[core]\n\tfsmonitor = {hostile_script}\n"
        )
    run_under_strace(QUERY_STATE_SCRIPT, repo, repo.parent)
    assert not (repo.parent / "ran").exists()


def add_hostile_submodule(repo: Path, hostile_script: Path) -> None:
    """Add a hostile repository as a submodule."""
    run_git(repo, "init", "-q", "-b", "main", "sub")
    (repo / "sub" / "b").write_text("x")
    run_git(repo / "sub", "add", "b")
    commit_tracked_changes(repo / "sub", "inner")
    run_git(repo, "add", "sub")
    (repo / ".gitmodules").write_text(
        f'[submodule "sub"]\n\tpath = sub\n\turl = ext::{hostile_script}\n\tignore = none\n'
    )
    apply_filter_to_all_files(repo / "sub" if (repo / "sub" / "a").exists() else repo)
    append_configuration(
        repo / "sub",
        f'[core]\n\tfsmonitor = {hostile_script}\n[filter "x"]\n\tclean = {hostile_script}\n',
    )


def make_partial_clone(repo: Path, hostile_script: Path) -> None:
    """Make a partial clone whose index names an object that the clone lacks.

    Git would usually fetch the missing object.
    """
    run_git(repo, "update-index", "--add", "--cacheinfo", f"100644,{'1' * 40},gone")
    promisor = HOSTILE_CONFIGURATIONS["a promisor"].format(evil=hostile_script)
    append_configuration(repo, promisor)


def write_index_with_hostile_monitor(repo: Path, hostile_script: Path) -> None:
    """Write an index that names a file system monitor, and configure the hostile script as the monitor."""
    run_git(
        repo,
        "-c",
        "core.fsmonitor=true",
        "-c",
        "core.fsmonitorHookVersion=2",
        "update-index",
        "--fsmonitor",
    )
    append_configuration(repo, f"[core]\n\tfsmonitor = {hostile_script}\n")


def use_objects_of_hostile_repository(repo: Path, hostile_script: Path) -> None:
    """Make a repository that uses the objects of another repository with a hostile configuration."""
    run_git(repo, "init", "-q", "../lender")
    (repo / ".git" / "objects" / "info" / "alternates").write_text(
        str(repo.parent / "lender" / ".git" / "objects")
    )
    append_configuration(
        repo.parent / "lender",
        f"[core]\n\tfsmonitor = {hostile_script}\n\talternateRefsCommand = {hostile_script}\n",
    )


def configure_filter_of_user(repo: Path, hostile_script: Path) -> None:
    """Configure, in the user's own Git settings, a filter that the repository's attributes name."""
    (repo.parent / ".gitconfig").write_text(
        FILTER_CONFIGURATION.format(evil=hostile_script)
        + f"[core]\n\tfsmonitor = {hostile_script}\n"
    )
    apply_filter_to_all_files(repo)


@pytest.mark.parametrize(
    "prepare_repository",
    [
        add_hostile_submodule,
        make_partial_clone,
        write_index_with_hostile_monitor,
        use_objects_of_hostile_repository,
        configure_filter_of_user,
    ],
)
def test_a_repositorys_files_start_no_program(
    repo: Path, hostile_script: Path, prepare_repository: Callable[[Path, Path], None]
) -> None:
    """No program is started by a submodule, a missing object, an index or a filter in the user's settings.

    The same holds for a repository that uses the objects of another repository.
    """
    prepare_repository(repo, hostile_script)
    (repo.parent / "ran").unlink(missing_ok=True)
    run_under_strace(QUERY_STATE_SCRIPT, repo, repo.parent)
    assert not (repo.parent / "ran").exists()


def test_a_file_is_compared_without_its_filter(repo: Path) -> None:
    """A file with a filter is compared without the filter, so a touched file may be listed as changed.

    The file is not listed while its time and size are those in the index.
    """
    append_configuration(repo, '[filter "x"]\n\tclean = tr a-z A-Z\n\tsmudge = tr A-Z a-z\n')
    (repo / ".gitattributes").write_text("*.up filter=x\n")
    (repo / "b.up").write_text("text\n")
    (repo / "c.up").write_text("text\n")
    os.utime(repo / "b.up", (1, 1))
    os.utime(repo / "c.up", (1, 1))
    run_git(repo, "add", "-A")
    commit_tracked_changes(repo, "two")
    assert run_under_strace(QUERY_STATE_SCRIPT, repo, repo.parent) == [
        "branch main, 2 commits since the session began, clean",
        [],
    ]
    os.utime(repo / "b.up")
    assert run_under_strace(QUERY_STATE_SCRIPT, repo, repo.parent) == [
        "branch main, 2 commits since the session began, 1 uncommitted",
        ["b.up"],
    ]


@pytest.mark.parametrize(
    "name", ["HEAD", "config", "index", "packed-refs", "info/exclude", "refs/heads/main"]
)
def test_a_pipe_in_the_git_folder_does_not_block_the_query(repo: Path, name: str) -> None:
    """A named pipe in the git folder does not block the query, which stops after ``MAX_GIT_SECONDS``."""
    (repo / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(repo / ".git" / name)
    environ = {"PATH": os.environ["PATH"], "HOME": str(repo.parent)}
    code = QUERY_STATE_SCRIPT.replace("MAX_GIT_SECONDS = 60", "MAX_GIT_SECONDS = 0.3")
    words = [sys.executable, "-c", code, str(repo), json.dumps(environ)]
    done = subprocess.run(
        words,
        env={**environ, "PYTHONPATH": str(REPO / "src")},
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert json.loads(done.stdout)


def test_a_query_removes_its_temporary_folder(repo: Path) -> None:
    """A query removes its temporary folder, even if the repository's configuration is broken."""
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(repo.parent),
        "TMPDIR": str(repo.parent / "tmp"),
    }
    (repo.parent / "tmp").mkdir()
    for text in ("", "[broken\n"):
        append_configuration(repo, text)
        words = [sys.executable, "-c", QUERY_STATE_SCRIPT, str(repo), json.dumps(environ)]
        subprocess.run(
            words, env={**environ, "PYTHONPATH": str(REPO / "src")}, capture_output=True, check=True
        )
        assert not list((repo.parent / "tmp").iterdir())
