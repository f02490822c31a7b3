"""Owns the installer's tests: one at a time, whole or not at all, and an hour of patience after a failure."""

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
from tests.hook_scripts.test_session import STARTUP, wait_for
from tests.needs import REPO, need, one_in, python39

# Takes the place of the steps that use a network; what the installer does around them is the real
# thing.
STEPS = """
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
def create_borrowing_venv(venv, tool):
    with open(os.environ["COUNT"], "a") as count: count.write("b")
    if not os.access(tool, os.X_OK): raise BuildError(tool)
    (venv / "bin").mkdir(parents=True)
    venv_python(venv).symlink_to(tool)
def install_lock(venv, python, lock, check):
    assert check == "import psycopg"
    with open(os.environ["COUNT"], "a") as count: count.write("+")
    if "NO_DRIVER" in os.environ: raise BuildError(os.environ["NO_DRIVER"])
def is_damaged(venv): return "DAMAGED" in os.environ
"""


@pytest.fixture
def quick(plugin: PluginCopy) -> PluginCopy:
    """A plugin whose installer makes an empty venv, and counts its attempts in a file."""
    (plugin.root / "hooks" / "venv_commands.py").write_text(STEPS)
    plugin.env.update(COUNT=str(plugin.data / "count"), RESUME_HOOKS_PYTHON="")
    order(plugin)
    return plugin


def order(plugin: PluginCopy, **orders: str) -> None:
    """Give the stand-in of the installer its instructions, also if a launcher starts it."""
    (plugin.root / "hooks" / "orders.json").write_text(
        json.dumps({"COUNT": plugin.env["COUNT"], **orders})
    )


def start(
    plugin: PluginCopy, *options: str, python: str = sys.executable, **env: str
) -> subprocess.Popen[bytes]:
    """Start the installer as the launcher does."""
    script = str(plugin.root / "hooks" / "install.py")
    return subprocess.Popen(
        [python, "-I", script, *options, str(plugin.data)], env=plugin.env | env
    )


def install(plugin: PluginCopy, *options: str, **env: str) -> int:
    """Run the installer to its end; its exit status."""
    return start(plugin, *options, **env).wait(60)


def state(plugin: PluginCopy) -> dict[str, Any]:
    """The content of install.json."""
    content: dict[str, Any] = json.loads((plugin.data / "install.json").read_text())
    return content


def attempts(plugin: PluginCopy) -> int:
    """Return the number of attempts to build a venv."""
    count = plugin.data / "count"
    return len(count.read_text()) if count.exists() else 0


def venvs(plugin: PluginCopy) -> list[str]:
    """Return the folders with venvs, complete or partial."""
    return sorted(path.name for path in plugin.data.glob("venv-*"))


def test_a_ready_engine_is_recorded_and_not_built_again(quick: PluginCopy) -> None:
    """The link names a whole venv with its copy of the lock; the next start has nothing to do."""
    assert install(quick) == 0
    ready = state(quick)
    assert (ready["state"], ready["error"], ready["retry_after"]) == ("ready", "", 0)
    assert ready["started"] <= ready["ended"]
    assert (quick.data / "venv").is_symlink()
    lock = (quick.data / "venv" / "requirements.lock").read_bytes()
    assert lock == (quick.root / "requirements.lock").read_bytes()
    assert install(quick) == 0
    assert attempts(quick) == 1
    assert {path.stat().st_mode & 0o077 for path in quick.data.glob("install.*")} == {0}


@pytest.mark.parametrize("folder", [".", "hooks"])
def test_a_launcher_named_by_a_relative_path_installs(quick: PluginCopy, folder: str) -> None:
    """It runs inside a checkout, as a user would type it after a clone."""
    name = os.path.relpath("hooks/engine", folder)
    done = subprocess.run(
        ["sh", name, "--install"], env=quick.env, cwd=quick.root / folder,
        capture_output=True, encoding="utf-8", timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert state(quick)["state"] == "ready"


def test_two_at_once_build_one(quick: PluginCopy) -> None:
    """Two clients start together: one builds, the other exits immediately."""
    first, second = start(quick, SECONDS="2"), start(quick, SECONDS="2")
    assert (first.wait(30), second.wait(30), attempts(quick)) == (0, 0, 1)
    assert state(quick)["state"] == "ready"


def test_a_killed_run_leaves_the_old_venv_and_is_repeated(quick: PluginCopy) -> None:
    """Killed in the middle of an update: the old venv continues serving, and no lock stays behind."""
    install(quick)
    before = os.readlink(quick.data / "venv")
    (quick.root / "requirements.lock").write_text("# newer\n")
    run = start(quick, SECONDS="30")
    end = time.monotonic() + 20
    while attempts(quick) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    assert state(quick)["state"] == "installing"
    run.kill()
    run.wait()
    assert os.readlink(quick.data / "venv") == before
    assert (quick.data / "venv" / "bin" / "python").exists()
    assert len(venvs(quick)) == 2
    assert install(quick) == 0
    assert (attempts(quick), state(quick)["state"]) == (3, "ready")
    assert venvs(quick) == sorted([before, os.readlink(quick.data / "venv")])


def test_a_failure_is_tried_again_after_an_hour(quick: PluginCopy) -> None:
    """Within the hour only the user's own --now tries again; nothing half-built stays."""
    assert install(quick, FAIL="no network") == 1
    failed = state(quick)
    assert (failed["state"], failed["error"]) == ("failed", "no network")
    assert 3590 <= failed["retry_after"] - time.time() <= 3600
    assert venvs(quick) == []
    assert install(quick) == 0
    assert attempts(quick) == 1
    (quick.data / "install.json").write_text(json.dumps(failed | {"retry_after": int(time.time())}))
    assert install(quick, FAIL="again") == 1
    assert attempts(quick) == 2
    assert install(quick, "--now") == 0
    assert state(quick)["state"] == "ready"


def test_a_newer_lock_does_not_wait_for_the_old_ones_hour(quick: PluginCopy) -> None:
    """An update may well be the cure."""
    install(quick, FAIL="no such version")
    (quick.root / "requirements.lock").write_text("# newer\n")
    assert install(quick) == 0
    assert state(quick)["state"] == "ready"


@pytest.mark.parametrize(
    "content", ["", "[]", '{"lock": 1}', '{"lock":1,"started":"x","retry_after":"y"}', "\x00"]
)
def test_a_damaged_memory_is_not_an_obstacle(quick: PluginCopy, content: str) -> None:
    """Whatever is in install.json, the install is tried.

    A dead run's lock holds nothing, a plain venv gives way.
    """
    (quick.data / "install.json").write_text(content)
    (quick.data / "install.lock").write_text("999999\n")
    (quick.data / "venv" / "bin").mkdir(parents=True)
    assert install(quick) == 0
    assert state(quick)["state"] == "ready"
    assert (quick.data / "venv").is_symlink()


def test_a_clock_set_back_does_not_block(quick: PluginCopy) -> None:
    """A failure from the future counts for nothing."""
    install(quick, FAIL="x")
    later = int(time.time()) + 10**6
    (quick.data / "install.json").write_text(
        json.dumps(state(quick) | {"started": later, "retry_after": later + 3600})
    )
    assert install(quick) == 0
    assert state(quick)["state"] == "ready"


def test_only_the_venv_in_use_and_the_one_before_it_stay(quick: PluginCopy) -> None:
    """A hook may still run in the replaced one; older ones are removed."""
    used = []
    for turn in range(4):
        (quick.root / "requirements.lock").write_text(f"# {turn}\n")
        install(quick)
        used.append(os.readlink(quick.data / "venv"))
    assert venvs(quick) == sorted(used[-2:])


def test_without_a_new_python_and_uv_it_names_the_requirements(
    quick: PluginCopy, tmp_path: Path
) -> None:
    """This needs no network, so the next start checks again immediately."""
    old = python39()
    for _ in range(2):
        assert start(quick, python=str(old), PATH=str(tmp_path / "bin")).wait(30) == 1
        failed = state(quick)
        assert (failed["state"], failed["retry_after"], attempts(quick)) == ("failed", 0, 0)
        assert failed["error"].startswith("install Python 3.11 or newer")
    (tmp_path / "bin" / "python3.12").symlink_to(sys.executable)
    assert start(quick, python=str(old), PATH=str(tmp_path / "bin")).wait(30) == 0
    assert state(quick)["state"] == "ready"


def test_the_launcher_installs_on_request(quick: PluginCopy) -> None:
    """`engine --install` runs in the foreground and prints its result."""
    order(quick, FAIL="no network")
    assert quick.engine("--install").stderr == "resume-hooks: no network\n"
    order(quick)
    done = quick.engine("--install")
    assert (done.returncode, done.stderr) == (0, "resume-hooks: the engine is ready\n")
    assert "nothing to do" in quick.engine("--install").stderr


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
def test_a_step_that_fails_names_the_reason_in_our_words(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, errors: str, reason: str
) -> None:
    """The state file and a bug report have no word of pip's; the log has all of them."""
    monkeypatch.syspath_prepend(str(REPO / "hooks"))
    commands = importlib.import_module("venv_commands")
    script = f"import sys; sys.stderr.write({errors!r}); sys.exit(1)"
    with pytest.raises(commands.BuildError) as failure:
        commands.run_step("pip install", sys.executable, "-c", script)
    assert str(failure.value) == f"pip install failed with exit status 1{reason}"
    assert errors in capfd.readouterr().err


def test_a_step_that_takes_too_long(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is ended, and its output so far is in the log."""
    monkeypatch.syspath_prepend(str(REPO / "hooks"))
    commands = importlib.import_module("venv_commands")
    monkeypatch.setattr(commands, "LIMIT_SECONDS", 1)
    script = "import sys, time; print('so far', file=sys.stderr, flush=True); time.sleep(60)"
    with pytest.raises(commands.BuildError, match="pip install took more than 1 seconds"):
        commands.run_step("pip install", sys.executable, "-c", script)
    assert "so far" in capfd.readouterr().err


def test_on_request_a_venv_that_does_not_work_is_rebuilt(quick: PluginCopy) -> None:
    """Its lock fits, its packages do not load; no start of a session pays for finding that out."""
    assert install(quick) == 0
    assert install(quick, DAMAGED="1") == 0
    assert attempts(quick) == 1
    order(quick, DAMAGED="1")
    assert quick.engine("--install").stderr == "resume-hooks: the engine is ready\n"
    assert attempts(quick) == 2


def test_the_detached_install_has_its_own_session_and_log(quick: PluginCopy) -> None:
    """Started by the hook it belongs to no group that the client could end."""
    order(quick, SECONDS="2")
    quick.hook("SessionStart", STARTUP)
    assert wait_for(quick.data / "count")
    pid = state(quick)["pid"]
    assert (os.getsid(pid), os.getpgid(pid)) == (pid, pid)
    assert wait_for(quick.data / "venv" / "requirements.lock")
    assert (quick.data / "install.log").exists()


def test_the_lock_names_hashes_and_no_host() -> None:
    """Every requirement is pinned with hashes; the package index is the user's own setting."""
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


def test_a_tool_lends_its_packages_until_it_is_gone(quick: PluginCopy, tmp_path: Path) -> None:
    """Nothing is fetched while it is there.

    With it gone the venv is marked by who finds out, and built whole.
    """
    tool = tmp_path / "tool"
    tool.symlink_to(sys.executable)
    assert start(quick, "--now", "--tool", python=str(tool)).wait(60) == 0
    count = quick.data / "count"
    assert (count.read_text(), state(quick)["tool"]) == ("b", str(tool))
    assert install(quick) == 0
    assert count.read_text() == "b", "it is ready"
    lock = quick.data / "venv" / "requirements.lock"
    lock.unlink()  # as a fallback marks it
    assert install(quick) == 0
    assert count.read_text() == "bb", "the tool is there, and mends it"
    tool.unlink()
    lock.unlink()
    assert install(quick) == 0
    assert (count.read_text(), state(quick)["tool"]) == ("bbb.", "")
    assert lock.exists()


def test_a_team_s_driver_goes_into_a_venv_of_our_own(quick: PluginCopy) -> None:
    """Nothing is added to the packages of a tool, which belong to the user."""
    assert start(quick, "--now", "--tool").wait(60) == 0
    assert install(quick, "--now", "--team") == 0
    assert (quick.data / "count").read_text() == "b.+"
    assert state(quick)["tool"] == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "way", one_in(2, ["pip", "uv", "pip without an index", "uv without an index"])
)
def test_the_real_thing(plugin: PluginCopy, tmp_path: Path, way: str) -> None:
    """From the bundled lock, with hashes, to an engine that the launcher takes.

    Also from wheels, without an index.
    """
    tool = way.partition(" ")[0]
    uv = shutil.which("uv") or shutil.which("uv", path=Path(sys.executable).parent)
    env = {"RESUME_HOOKS_PYTHON": ""}
    if tool == "uv":
        need("uv", uv is not None, "pip install uv")
        old = python39()
        (tmp_path / "bin" / "python3").symlink_to(old)
        for name in ("uv", "sh", "cmp"):
            (tmp_path / "bin" / name).symlink_to(shutil.which(name) or str(uv))
        bare = (
            tmp_path / "bin" / "python3.11"
        )  # as on Debian: new enough, but without what venv needs
        real = os.path.realpath(sys.executable)  # uv makes no venv of a venv
        bare.write_text(
            f'#!/bin/sh\ncase "$*" in *ensurepip*) exit 1 ;; esac\nexec "{real}" "$@"\n'
        )
        bare.chmod(0o755)
        env["PATH"] = str(tmp_path / "bin")
    if way != tool:
        fetch_wheels(plugin.root)
        env |= {"PIP_INDEX_URL": "http://127.0.0.1:9/", "UV_DEFAULT_INDEX": "http://127.0.0.1:9/"}
        env |= {
            "PIP_FIND_LINKS": "",
            "UV_FIND_LINKS": "",
            "PIP_EXTRA_INDEX_URL": "",
            "UV_EXTRA_INDEX_URL": "",
        }
    done = plugin.engine("--install", "--team", **env)
    need("the package index", "pip install failed" not in done.stderr, "see the output of pip")
    assert (done.returncode, state(plugin)["state"]) == (0, "ready"), done.stderr
    checked = plugin.engine("info", **env)
    assert (checked.returncode, checked.stdout) == (0, "engine info\n")
    assert (
        plugin.hook("UserPromptSubmit", b'{"prompt":">x"}', RESUME_HOOKS_PYTHON="").stdout
        == b"reply of prompt\n"
    )


def fetch_wheels(plugin: Path) -> None:
    """Put the locks' wheels next to them, by the lines of docs/publishing.md."""
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
        need("the package index", done.returncode == 0, "see the output of pip")
