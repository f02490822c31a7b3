"""Tests that a project can't choose a program, its folder or its variables."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from resume_hooks import untrusted_folders
from resume_hooks.system import programs


def write_program(path: Path, text: str = "") -> str:
    """Write an executable shell script and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder, in a repository within a repository below the home."""
    for module in (programs, untrusted_folders):
        monkeypatch.setattr(module, "user_home", lambda: str(tmp_path / "home"))
    folder = tmp_path / "home" / "outer" / "repo" / "pkg"
    folder.mkdir(parents=True)
    (folder.parent / ".git").mkdir()
    (folder.parent.parent / ".git").mkdir()
    monkeypatch.chdir(folder)
    return folder


def environment_with_path(project: Path, *folders: object, **variables: str) -> dict[str, str]:
    """Return an environment with ``folders`` as ``PATH``, and with the project as ``HOME``."""
    return {"HOME": str(project), "PATH": os.pathsep.join(map(str, folders)), **variables}


def test_a_program_is_found_outside_the_project(project: Path, tmp_path: Path) -> None:
    """A program is found in the first folder on PATH that is outside the project.

    Relative and empty entries, and folders of repositories around the project, are skipped.
    """
    wanted = write_program(tmp_path / "home" / "bin" / "tool")
    inside = [project / "bin", project.parent / "bin", project.parent.parent / "bin"]
    for folder in inside:
        write_program(folder / "tool")
    link = tmp_path / "link"
    link.symlink_to(project)
    env = environment_with_path(
        project, "", ".", "bin", *inside, link / "bin", tmp_path / "home" / "bin"
    )
    assert programs.find_program("tool", env) == wanted
    assert programs.search_path(env) == str(tmp_path / "home" / "bin")
    assert programs.find_program("tool", environment_with_path(project, *inside)) is None
    assert programs.search_path(environment_with_path(project, "", ".")) == os.defpath


def test_a_path_is_a_program_only_outside_the_project(project: Path, tmp_path: Path) -> None:
    """A path outside the project is accepted as a program. Inside it, only the running Python is accepted."""
    env = environment_with_path(project)
    outside = write_program(tmp_path / "tool")
    assert programs.find_program(outside, env) == outside
    assert programs.find_program(write_program(project / "tool"), env) is None
    assert programs.find_program("./tool", env) is None
    assert (
        programs.find_program(sys.executable, {**env, "CLAUDE_PROJECT_DIR": sys.prefix})
        == sys.executable
    )


def test_the_clients_folder_is_a_project_too(project: Path, tmp_path: Path) -> None:
    """The folder that the client names is a project, in addition to the working folder."""
    tool = write_program(tmp_path / "other" / "bin" / "tool")
    env = environment_with_path(project, tmp_path / "other" / "bin")
    assert programs.find_program("tool", env) == tool
    assert (
        programs.find_program("tool", {**env, "CLAUDE_PROJECT_DIR": str(tmp_path / "other")})
        is None
    )


def test_a_home_in_a_repository_keeps_its_programs(project: Path, tmp_path: Path) -> None:
    """The home folder and folders above it are never a project, even if they are repositories."""
    home = tmp_path / "home"
    (home / ".git").mkdir()
    (tmp_path / ".git").mkdir()
    tool = write_program(home / "bin" / "tool")
    env = environment_with_path(project, home / "bin")
    assert programs.find_program("tool", env) == tool
    for folder in (home, tmp_path):
        os.chdir(folder)
        assert programs.find_program("tool", {**env, "CLAUDE_PROJECT_DIR": str(folder)}) == tool


def test_a_program_gets_only_listed_variables(project: Path, tmp_path: Path) -> None:
    """A program is run in the root folder and gets only the variables on a list.

    Even a listed variable is removed if it names a file of the project.
    """
    write_program(tmp_path / "bin" / "tool", 'pwd; env; echo "$*"')
    refused = dict.fromkeys(
        ("PYTHONPATH", "UV_PYTHON", "PIP_TARGET", "GIT_DIR", "LD_PRELOAD", "NODE_OPTIONS"), "x"
    )
    given = {"DISPLAY": ":1", "LC_TIME": "C", "HOME": str(tmp_path / "home")}
    env = environment_with_path(project, tmp_path / "bin", "/bin", "/usr/bin") | given | refused
    env |= {"XDG_CONFIG_HOME": str(project), "SSL_CERT_FILE": str(tmp_path / "cert")}
    done = programs.run_program(["tool", "a b"], env, stdout=subprocess.PIPE)
    folder, *variables, said = done.stdout.decode().splitlines()
    assert (done.returncode, folder, said) == (0, "/", "a b")
    names = {row.partition("=")[0] for row in variables} - {"PWD", "_", "SHLVL", "OLDPWD"}
    assert names == {"HOME", "PATH", "DISPLAY", "LC_TIME", "SSL_CERT_FILE"}


def test_a_home_in_the_project_is_replaced(project: Path, tmp_path: Path) -> None:
    """If ``HOME`` is in the project, it is replaced, because settings there could name programs.

    A home outside the project is kept.
    """
    homes = [(str(project), tmp_path / "home"), (".", tmp_path / "home"), (str(tmp_path), tmp_path)]
    for said, meant in homes:
        assert programs.program_environment({"HOME": said})["HOME"] == str(meant)
    assert "HOME" not in programs.program_environment({})


def test_a_passed_environment_has_no_project_folder_on_path(project: Path, tmp_path: Path) -> None:
    """Even if a caller passes variables and a folder, PATH has no folder of the project."""
    write_program(tmp_path / "bin" / "tool", 'pwd; echo "$PATH $EXTRA"')
    env = environment_with_path(project, project / "bin", tmp_path / "bin", EXTRA="yes")
    done = programs.run_program(
        ["tool"], env, folder=str(project), environ=env, stdout=subprocess.PIPE
    )
    assert done.stdout.decode() == f"{project}\n{tmp_path / 'bin'} yes\n"


def test_a_slow_program_is_ended(project: Path, tmp_path: Path) -> None:
    """A program that is too slow is ended, and the call raises ``TimeoutExpired``.

    Running a missing program raises ``FileNotFoundError``.
    """
    write_program(tmp_path / "bin" / "tool", "exec sleep 60")
    env = environment_with_path(project, tmp_path / "bin", "/bin", "/usr/bin")
    with pytest.raises(subprocess.TimeoutExpired):
        programs.run_program(["tool"], env, timeout=0.1)
    with pytest.raises(FileNotFoundError):
        programs.run_program(["no-such-tool"], env)


def test_temporary_folders_are_not_made_in_the_project(project: Path, tmp_path: Path) -> None:
    """If ``TMPDIR`` is in the project or missing, temporary folders are made in ``/tmp``."""
    assert programs.temporary_root({"TMPDIR": str(tmp_path)}) == str(tmp_path)
    for named in (str(project), "tmp", "", str(tmp_path / "nowhere")):
        assert programs.temporary_root(environment_with_path(project, TMPDIR=named)) == "/tmp"
