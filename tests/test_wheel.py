"""Tests of the wheel, which contains the whole plugin and installs it without the repository."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from resume_hooks.system import plugin_files
from tests.e2e.harness.client import ClientHome, ClientVersion, run_print
from tests.e2e.harness.mock_api import MockApi
from tests.e2e.plugin import children_of_session
from tests.needs import REPO, require_for_test

PARENT_ID = "11111111-aaaa-4bbb-8ccc-000000000002"


@pytest.fixture(scope="module")
def built_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from this repository and return its path."""
    folder = tmp_path_factory.mktemp("wheel")
    program = f"import hatchling.build as b; print(b.build_wheel({str(folder)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPO, capture_output=True, text=True, check=True
    )
    return folder / done.stdout.strip().split("\n")[-1]


def test_the_wheel_contains_every_file_of_the_plugin(built_wheel: Path) -> None:
    """The wheel contains every file of the plugin, in a folder inside the package."""
    carried = set(zipfile.ZipFile(built_wheel).namelist())
    for part in plugin_files.PLUGIN_FILES:
        found = sorted(path for path in (REPO / part).rglob("*") if path.is_file()) or [REPO / part]
        for path in found:
            if "__pycache__" not in path.parts:
                assert f"resume_hooks/_plugin/{path.relative_to(REPO)}" in carried


def test_the_wheel_contains_the_whole_package(built_wheel: Path) -> None:
    """The wheel contains every file of the package, including those that are not Python files."""
    carried = set(zipfile.ZipFile(built_wheel).namelist())
    source = REPO / "src"
    files = {
        path.relative_to(source) for path in (source / "resume_hooks").rglob("*") if path.is_file()
    }
    assert {str(path) for path in files if "__pycache__" not in path.parts} <= carried


def test_install_assembles_the_plugin_from_the_wheel(built_wheel: Path, tmp_path: Path) -> None:
    """``install`` from the wheel writes a plugin with a working engine.

    It needs neither the repository nor a client.
    """
    site = tmp_path / "site"
    zipfile.ZipFile(built_wheel).extractall(site)
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(site)}
    command = [sys.executable, "-m", "resume_hooks", "install"]
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    plugin = tmp_path / ".claude" / "resume-hooks" / "plugin"
    assert f"claude plugin marketplace add {plugin}" in done.stdout
    assert (plugin / "hooks" / "hooks.json").is_file()
    engine = ["sh", str(plugin / "hooks" / "engine"), "--version"]
    version = subprocess.run(
        engine,
        cwd=tmp_path,
        env={**env, "RESUME_HOOKS_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=True,
    )
    assert version.stdout.startswith("resume-hooks, version")


@pytest.mark.slow
def test_the_plugin_installs_from_the_package(
    built_wheel: Path, client: ClientVersion, home: ClientHome, api: MockApi
) -> None:
    """If the wheel is installed, its plugin uses the installed packages and needs no second venv.

    If the installation is removed, ``>handoff`` says that it needs the engine.
    """
    tool, data = home.root / "tool", home.config / "plugins" / "data" / "resume-hooks-resume-hooks"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tool)], check=True)
    pip = [sys.executable, "-m", "pip", "--python", str(tool), "install", "-q", str(built_wheel)]
    fetched = subprocess.run(pip, capture_output=True, check=False)
    require_for_test("the package index", fetched.returncode == 0, fetched.stderr.decode())
    (home.root / "bin").mkdir()
    (home.root / "bin" / "claude").symlink_to(client.command[0])
    env = home.env(api.client_env())
    env["PATH"] = f"{tool / 'bin'}:{home.root / 'bin'}:{env['PATH']}"

    def run_command_in_home(*command: str) -> str:
        done = subprocess.run(
            command, cwd=home.cwd, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "Installed." in run_command_in_home("resume-hooks", "install")
    assert sum(path.lstat().st_size for path in data.rglob("*")) < 1_000_000
    assert f"the packages of {tool}" in run_command_in_home("resume-hooks", "doctor")
    run_print(client, home, api, "hello", extra_args=["--session-id", PARENT_ID])
    run_print(client, home, api, ">handoff fix the tests", resume=PARENT_ID)
    assert len(children_of_session(home, home.project_folder / f"{PARENT_ID}.jsonl")) == 1
    shutil.rmtree(tool)
    said = run_print(
        client, home, api, ">handoff again", resume=PARENT_ID, extra_env={"PIP_NO_INDEX": "1"}
    )
    assert ">handoff needs the engine" in said.text
