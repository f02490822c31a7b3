"""Tests of the installer.

Only one installer runs at a time. It installs everything or nothing, and after a failure it waits
an hour.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.hook_scripts.plugin_copy import PluginCopy
from tests.hook_scripts.test_session import STARTUP_EVENT, wait_for_file
from tests.needs import REPO, one_in, python39_path, require_for_test

# These steps replace the installer's steps that use the network. All other code is the real code.
FAKE_STEPS_SOURCE = """
import json, os, time
from pathlib import Path
ORDERS = Path(__file__).with_name("orders.json")  # what the launcher starts gets no variable that it need not have
if ORDERS.exists(): os.environ.update(json.loads(ORDERS.read_text()))
class BuildError(Exception): pass
def venv_python(venv): return venv / "bin" / "python"
def create_venv(venv, python, lock):
    with open(os.environ["COUNT"], "a") as count: count.write(".")
    (venv / "bin").mkdir(parents=True)
    time.sleep(float(os.environ.get("SECONDS", "0")))
    if "FAIL" in os.environ: raise BuildError(os.environ["FAIL"])
    venv_python(venv).symlink_to(python)
def create_venv_with_borrowed_packages(venv, tool):
    with open(os.environ["COUNT"], "a") as count: count.write("b")
    if not os.access(tool, os.X_OK): raise BuildError(tool)
    (venv / "bin").mkdir(parents=True)
    venv_python(venv).symlink_to(tool)
def install_locked_packages(venv, python, lock, check):
    assert check == "import psycopg"
    with open(os.environ["COUNT"], "a") as count: count.write("+")
    if "NO_DRIVER" in os.environ: raise BuildError(os.environ["NO_DRIVER"])
def is_venv_damaged(venv): return "DAMAGED" in os.environ
"""


@pytest.fixture
def quick_plugin(plugin: PluginCopy) -> PluginCopy:
    """Return a plugin whose installer creates an empty venv and counts its attempts in a file."""
    (plugin.root / "hooks" / "venv_commands.py").write_text(FAKE_STEPS_SOURCE)
    plugin.env.update(COUNT=str(plugin.data_folder / "count"), RESUME_HOOKS_PYTHON="")
    instruct_installer(plugin)
    return plugin


def instruct_installer(plugin: PluginCopy, **orders: str) -> None:
    """Write instructions for the fake installation steps.

    The steps also read them if the launcher starts the installer.
    """
    (plugin.root / "hooks" / "orders.json").write_text(
        json.dumps({"COUNT": plugin.env["COUNT"], **orders})
    )


def start_installer(
    plugin: PluginCopy, *options: str, python: str = sys.executable, **env: str
) -> subprocess.Popen[bytes]:
    """Start the installer as the launcher does."""
    script = str(plugin.root / "hooks" / "install.py")
    return subprocess.Popen(
        [python, "-I", script, *options, str(plugin.data_folder)], env=plugin.env | env
    )


def run_installer(plugin: PluginCopy, *options: str, **env: str) -> int:
    """Run the installer and return its exit code."""
    return start_installer(plugin, *options, **env).wait(60)


def read_install_state(plugin: PluginCopy) -> dict[str, Any]:
    """Return the content of install.json."""
    content: dict[str, Any] = json.loads((plugin.data_folder / "install.json").read_text())
    return content


def count_build_attempts(plugin: PluginCopy) -> int:
    """Return how often the installer has tried to build a venv."""
    count = plugin.data_folder / "count"
    return len(count.read_text()) if count.exists() else 0


def venv_folders(plugin: PluginCopy) -> list[str]:
    """Return the names of all venv folders, complete or not."""
    return sorted(path.name for path in plugin.data_folder.glob("venv-*"))


def test_a_ready_engine_is_not_built_again(quick_plugin: PluginCopy) -> None:
    """If the venv is complete and its lock file is current, the installer does nothing."""
    assert run_installer(quick_plugin) == 0
    ready = read_install_state(quick_plugin)
    assert (ready["state"], ready["error"], ready["retry_after"]) == ("ready", "", 0)
    assert ready["started"] <= ready["ended"]
    assert (quick_plugin.data_folder / "venv").is_symlink()
    lock = (quick_plugin.data_folder / "venv" / "requirements.lock").read_bytes()
    assert lock == (quick_plugin.root / "requirements.lock").read_bytes()
    assert run_installer(quick_plugin) == 0
    assert count_build_attempts(quick_plugin) == 1
    assert {path.stat().st_mode & 0o077 for path in quick_plugin.data_folder.glob("install.*")} == {
        0
    }


@pytest.mark.parametrize("folder", [".", "hooks"])
def test_a_launcher_named_by_a_relative_path_installs_the_engine(
    quick_plugin: PluginCopy, folder: str
) -> None:
    """If the user runs the launcher by a relative path, it still installs the engine."""
    name = os.path.relpath("hooks/engine", folder)
    done = subprocess.run(
        ["sh", name, "--install"], env=quick_plugin.env, cwd=quick_plugin.root / folder,
        capture_output=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert read_install_state(quick_plugin)["state"] == "ready"


def test_parallel_installers_build_one_venv(quick_plugin: PluginCopy) -> None:
    """If two installers start at the same time, one of them builds a venv and the other exits with 0."""
    first, second = (
        start_installer(quick_plugin, SECONDS="2"),
        start_installer(quick_plugin, SECONDS="2"),
    )
    assert (first.wait(30), second.wait(30), count_build_attempts(quick_plugin)) == (0, 0, 1)
    assert read_install_state(quick_plugin)["state"] == "ready"


def test_a_killed_installer_keeps_the_old_venv(quick_plugin: PluginCopy) -> None:
    """If the installer is killed during an update, the old venv still works.

    The next installer repeats the update.
    """
    run_installer(quick_plugin)
    before = os.readlink(quick_plugin.data_folder / "venv")
    (quick_plugin.root / "requirements.lock").write_text("# newer\n")
    run = start_installer(quick_plugin, SECONDS="30")
    end = time.monotonic() + 20
    while count_build_attempts(quick_plugin) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    assert read_install_state(quick_plugin)["state"] == "installing"
    run.kill()
    run.wait()
    assert os.readlink(quick_plugin.data_folder / "venv") == before
    assert (quick_plugin.data_folder / "venv" / "bin" / "python").exists()
    assert len(venv_folders(quick_plugin)) == 2
    assert run_installer(quick_plugin) == 0
    assert (count_build_attempts(quick_plugin), read_install_state(quick_plugin)["state"]) == (
        3,
        "ready",
    )
    assert venv_folders(quick_plugin) == sorted(
        [before, os.readlink(quick_plugin.data_folder / "venv")]
    )


def test_a_failed_installation_is_tried_again_after_an_hour(quick_plugin: PluginCopy) -> None:
    """After a failure, the installer waits an hour, unless it runs with ``--now``.

    It leaves no incomplete venv behind.
    """
    assert run_installer(quick_plugin, FAIL="no network") == 1
    failed = read_install_state(quick_plugin)
    assert (failed["state"], failed["error"]) == ("failed", "no network")
    assert 3590 <= failed["retry_after"] - time.time() <= 3600
    assert venv_folders(quick_plugin) == []
    assert run_installer(quick_plugin) == 0
    assert count_build_attempts(quick_plugin) == 1
    (quick_plugin.data_folder / "install.json").write_text(
        json.dumps(failed | {"retry_after": int(time.time())})
    )
    assert run_installer(quick_plugin, FAIL="again") == 1
    assert count_build_attempts(quick_plugin) == 2
    assert run_installer(quick_plugin, "--now") == 0
    assert read_install_state(quick_plugin)["state"] == "ready"


def test_a_newer_lock_file_is_installed_immediately(quick_plugin: PluginCopy) -> None:
    """If the lock file is newer than the last failed installation, the installer does not wait.

    The newer lock file may solve the problem.
    """
    run_installer(quick_plugin, FAIL="no such version")
    (quick_plugin.root / "requirements.lock").write_text("# newer\n")
    assert run_installer(quick_plugin) == 0
    assert read_install_state(quick_plugin)["state"] == "ready"


@pytest.mark.parametrize(
    "content", ["", "[]", '{"lock": 1}', '{"lock":1,"started":"x","retry_after":"y"}', "\x00"]
)
def test_a_damaged_state_file_does_not_prevent_an_installation(
    quick_plugin: PluginCopy, content: str
) -> None:
    """A damaged state file does not prevent an installation.

    Neither does the lock of a process that has ended, or a venv to which no link leads.
    """
    (quick_plugin.data_folder / "install.json").write_text(content)
    (quick_plugin.data_folder / "install.lock").write_text("999999\n")
    (quick_plugin.data_folder / "venv" / "bin").mkdir(parents=True)
    assert run_installer(quick_plugin) == 0
    assert read_install_state(quick_plugin)["state"] == "ready"
    assert (quick_plugin.data_folder / "venv").is_symlink()


def test_a_failure_time_in_the_future_is_ignored(quick_plugin: PluginCopy) -> None:
    """If the time of a failure is in the future, the installer does not wait.

    This happens if the clock was set back.
    """
    run_installer(quick_plugin, FAIL="x")
    later = int(time.time()) + 10**6
    (quick_plugin.data_folder / "install.json").write_text(
        json.dumps(
            read_install_state(quick_plugin) | {"started": later, "retry_after": later + 3600}
        )
    )
    assert run_installer(quick_plugin) == 0
    assert read_install_state(quick_plugin)["state"] == "ready"


def test_only_the_current_and_the_previous_venv_are_kept(quick_plugin: PluginCopy) -> None:
    """The installer keeps only two venvs: the one in use and the previous one.

    A hook may still be running in the previous venv.
    """
    used = []
    for turn in range(4):
        (quick_plugin.root / "requirements.lock").write_text(f"# {turn}\n")
        run_installer(quick_plugin)
        used.append(os.readlink(quick_plugin.data_folder / "venv"))
    assert venv_folders(quick_plugin) == sorted(used[-2:])


def test_the_installer_names_missing_requirements(quick_plugin: PluginCopy, tmp_path: Path) -> None:
    """If a recent Python and uv are missing, the installer fails and says what to install.

    The next installer does not wait an hour before it tries again.
    """
    old = python39_path()
    for _ in range(2):
        assert (
            start_installer(quick_plugin, python=str(old), PATH=str(tmp_path / "bin")).wait(30) == 1
        )
        failed = read_install_state(quick_plugin)
        assert (failed["state"], failed["retry_after"], count_build_attempts(quick_plugin)) == (
            "failed",
            0,
            0,
        )
        assert failed["error"].startswith("install Python 3.11 or newer")
    (tmp_path / "bin" / "python3.12").symlink_to(sys.executable)
    assert start_installer(quick_plugin, python=str(old), PATH=str(tmp_path / "bin")).wait(30) == 0
    assert read_install_state(quick_plugin)["state"] == "ready"


def test_the_launcher_installs_on_request(quick_plugin: PluginCopy) -> None:
    """``engine --install`` installs in the foreground and prints the result."""
    instruct_installer(quick_plugin, FAIL="no network")
    assert quick_plugin.run_engine("--install").stderr == "resume-hooks: no network\n"
    instruct_installer(quick_plugin)
    done = quick_plugin.run_engine("--install")
    assert (done.returncode, done.stderr) == (0, "resume-hooks: the engine is ready\n")
    assert "is ready or being installed already" in quick_plugin.run_engine("--install").stderr


@pytest.mark.parametrize(
    ("errors", "reason"),
    [
        (
            "WARNING: connection broken by 'x'\nERROR: No matching distribution found for rich==1",
            ": the package index can't be reached; check the network and the proxy",
        ),
        ("ERROR: [Errno 28] No space left on device: '/home/alice'", ": the disk is full"),
        ("ERROR: something else about /home/alice", ""),
    ],
)
def test_the_report_of_a_failed_step_contains_no_pip_output(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, errors: str, reason: str
) -> None:
    """If a step fails, the report contains no text from pip; only the log contains it.

    The report is part of the state file and of bug reports.
    """
    monkeypatch.syspath_prepend(str(REPO / "hooks"))
    commands = importlib.import_module("venv_commands")
    script = f"import sys; sys.stderr.write({errors!r}); sys.exit(1)"
    with pytest.raises(commands.BuildError) as failure:
        commands.run_step("pip install", sys.executable, "-c", script)
    assert str(failure.value) == f"pip install failed with exit status 1{reason}"
    assert errors in capfd.readouterr().err


def test_a_slow_step_is_ended(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a step takes too long, it is ended, and the log contains the output that it has printed so far."""
    monkeypatch.syspath_prepend(str(REPO / "hooks"))
    commands = importlib.import_module("venv_commands")
    monkeypatch.setattr(commands, "STEP_LIMIT_SECONDS", 1)
    script = "import sys, time; print('so far', file=sys.stderr, flush=True); time.sleep(60)"
    with pytest.raises(commands.BuildError, match="pip install took more than 1 seconds"):
        commands.run_step("pip install", sys.executable, "-c", script)
    assert "so far" in capfd.readouterr().err


def test_install_rebuilds_a_broken_venv(quick_plugin: PluginCopy) -> None:
    """If a venv's packages cannot be imported, ``engine --install`` builds the venv again.

    The installer that runs when a session starts does not check this.
    """
    assert run_installer(quick_plugin) == 0
    assert run_installer(quick_plugin, DAMAGED="1") == 0
    assert count_build_attempts(quick_plugin) == 1
    instruct_installer(quick_plugin, DAMAGED="1")
    assert quick_plugin.run_engine("--install").stderr == "resume-hooks: the engine is ready\n"
    assert count_build_attempts(quick_plugin) == 2


def test_the_detached_install_has_its_own_session_and_log(quick_plugin: PluginCopy) -> None:
    """An installation that a hook starts runs in a separate process session and writes a log.

    The client therefore cannot end the installation.
    """
    instruct_installer(quick_plugin, SECONDS="2")
    quick_plugin.run_hook("SessionStart", STARTUP_EVENT)
    assert wait_for_file(quick_plugin.data_folder / "count")
    pid = read_install_state(quick_plugin)["pid"]
    assert (os.getsid(pid), os.getpgid(pid)) == (pid, pid)
    assert wait_for_file(quick_plugin.data_folder / "venv" / "requirements.lock")
    assert (quick_plugin.data_folder / "install.log").exists()


def test_the_lock_files_contain_hashes_and_no_addresses() -> None:
    """Every requirement in the lock files has a version and hashes, but no address of a package index."""
    names = ("requirements.lock", "requirements-team.lock")
    lines = [
        line for name in names for line in (REPO / name).read_text(encoding="utf-8").splitlines()
    ]
    pins = [line for line in lines if line and not line.startswith(("#", " "))]
    assert {line.split("==")[0] for line in pins} >= {
        "click",
        "orjson",
        "pydantic",
        "pyperclip",
        "rich",
        "psycopg",
    }
    assert all("==" in line and line.endswith("\\") for line in pins)
    assert not any("://" in line for line in lines)


def test_a_venv_can_use_the_packages_of_an_installed_command(
    quick_plugin: PluginCopy, tmp_path: Path
) -> None:
    """If pipx or uv installed the command ``resume-hooks``, the venv uses its packages.

    Nothing is downloaded. If the command was removed and a hook has marked the venv as broken, all
    packages are installed.
    """
    tool = tmp_path / "tool"
    tool.symlink_to(sys.executable)
    assert start_installer(quick_plugin, "--now", "--tool", python=str(tool)).wait(60) == 0
    count = quick_plugin.data_folder / "count"
    assert (count.read_text(), read_install_state(quick_plugin)["tool"]) == ("b", str(tool))
    assert run_installer(quick_plugin) == 0
    assert count.read_text() == "b", "it is ready"
    lock = quick_plugin.data_folder / "venv" / "requirements.lock"
    lock.unlink()  # The fallback marks the venv as broken by removing its lock file.
    assert run_installer(quick_plugin) == 0
    assert count.read_text() == "bb", "the tool is there, and mends it"
    tool.unlink()
    lock.unlink()
    assert run_installer(quick_plugin) == 0
    assert (count.read_text(), read_install_state(quick_plugin)["tool"]) == ("bbb.", "")
    assert lock.exists()


def test_the_database_driver_is_installed_in_the_plugins_venv(quick_plugin: PluginCopy) -> None:
    """The database driver for a team is installed in the plugin's venv.

    The installer does not install it next to the user's own command ``resume-hooks``.
    """
    assert start_installer(quick_plugin, "--now", "--tool").wait(60) == 0
    assert run_installer(quick_plugin, "--now", "--team") == 0
    assert (quick_plugin.data_folder / "count").read_text() == "b.+"
    assert read_install_state(quick_plugin)["tool"] == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "installation_method", one_in(2, ["pip", "uv", "pip without an index", "uv without an index"])
)
def test_the_installer_installs_the_real_engine(
    plugin: PluginCopy, tmp_path: Path, installation_method: str
) -> None:
    """The installer installs the real engine from the lock file with hashes, and the launcher can use it.

    This also works with downloaded wheels and without a package index.
    """
    tool = installation_method.partition(" ")[0]
    uv = shutil.which("uv") or shutil.which("uv", path=Path(sys.executable).parent)
    env = {"RESUME_HOOKS_PYTHON": ""}
    if tool == "uv":
        require_for_test("uv", uv is not None, "pip install uv")
        old = python39_path()
        (tmp_path / "bin" / "python3").symlink_to(old)
        for name in ("uv", "sh", "cmp"):
            (tmp_path / "bin" / name).symlink_to(shutil.which(name) or str(uv))
        # This Python is like Debian's: recent enough, but without the module that creates a venv.
        bare = tmp_path / "bin" / "python3.11"
        # uv cannot create a venv from a Python that is itself in a venv.
        real = os.path.realpath(sys.executable)
        bare.write_text(
            f'#!/bin/sh\ncase "$*" in *ensurepip*) exit 1 ;; esac\nexec "{real}" "$@"\n'
        )
        bare.chmod(0o755)
        env["PATH"] = str(tmp_path / "bin")
    if installation_method != tool:
        fetch_wheels(plugin.root)
        env |= {"PIP_INDEX_URL": "http://127.0.0.1:9/", "UV_DEFAULT_INDEX": "http://127.0.0.1:9/"}
        env |= {
            "PIP_FIND_LINKS": "",
            "UV_FIND_LINKS": "",
            "PIP_EXTRA_INDEX_URL": "",
            "UV_EXTRA_INDEX_URL": "",
        }
    done = plugin.run_engine("--install", "--team", **env)
    require_for_test(
        "the package index", "pip install failed" not in done.stderr, "see the output of pip"
    )
    assert (done.returncode, read_install_state(plugin)["state"]) == (0, "ready"), done.stderr
    checked = plugin.run_engine("info", **env)
    assert (checked.returncode, checked.stdout) == (0, "engine info\n")
    assert (
        plugin.run_hook("UserPromptSubmit", b'{"prompt":">x"}', RESUME_HOOKS_PYTHON="").stdout
        == b"reply of prompt\n"
    )


def fetch_wheels(plugin: Path) -> None:
    """Download the wheels of the lock files next to them, with the commands in docs/publishing.md."""
    lines = re.findall(
        r"^pip (download .*)$", (REPO / "docs" / "publishing.md").read_text("utf-8"), re.MULTILINE
    )
    assert len(lines) == 2
    for line in lines:
        command = [
            sys.executable,
            "-m",
            "pip",
            "--quiet",
            "--disable-pip-version-check",
            *line.split(),
        ]
        done = subprocess.run(command, cwd=plugin, capture_output=True, text=True, check=False)
        require_for_test("the package index", done.returncode == 0, "see the output of pip")
