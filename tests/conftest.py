"""Fixtures and hooks for all tests.

No test can access the user's real home. The fixture ``config_home`` gives a test its own home.
"""

from __future__ import annotations

import gc
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from resume_hooks import seam
from resume_hooks.parts import PART_NAMES
from tests.builders import ConfigHome
from tests.cli.fork_server import ForkServer
from tests.corpus import real_session  # noqa: F401 - a fixture
from tests.needs import REPO, require_for_test

pytest_plugins = ("tests.e2e.fixtures",)

REAL_HOMES = tuple(
    os.path.join(pwd.getpwuid(os.getuid()).pw_dir, name) for name in (".claude", ".codex")
)
"""The folders of clients that the user really uses. No test may access them."""

_REAL_HOME_PREFIXES = tuple(
    f"{path}/" for home in REAL_HOMES for path in (home, os.path.realpath(home))
)

INACCESSIBLE_HOME = "/dev/null/home-of-the-tests"
"""HOME in the tests. Its parent is a device, so not even root can read or create anything in it."""

RAM_DISK_FOLDER = "/dev/shm"
"""A memory file system for temporary folders, used if it is large enough.

On a disk, the tests are much slower.
"""

TEMP_ROOT_VARIABLE = "PYTEST_DEBUG_TEMPROOT"
"""The variable that tells pytest where to create temporary folders."""

MIN_FREE_BYTES = 4 << 30
"""Number of bytes that must be free in the temporary folder for a run of all tests."""


def _has_room_for_tests(folder: str) -> bool:
    """Check whether a folder is writable, has enough space, and allows programs to run in it."""
    if not os.access(folder, os.W_OK):
        return False
    found = os.statvfs(folder)
    return not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize >= MIN_FREE_BYTES


if _has_room_for_tests(RAM_DISK_FOLDER):
    os.environ.setdefault(TEMP_ROOT_VARIABLE, RAM_DISK_FOLDER)

# A test on a busy machine may need a long time for an example. CI tries the same examples in each
# run. A new example would let an unrelated change fail.
settings.register_profile("tests", deadline=None, derandomize=os.environ.get("REQUIRE_ALL") == "1")
settings.load_profile("tests")

# The tests were started in the background. Without this, their child processes would ignore SIGINT.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # The tests were started with nohup.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

_REMOVED_VARIABLE_PREFIXES = ("CLAUDE_", "CLAUDECODE", "CODEX_", "RESUME_HOOKS_")
_KEPT_VARIABLE_NAMES = ("RESUME_HOOKS_CORPUS", "RESUME_HOOKS_CODEX", "RESUME_HOOKS_CLIENTS")
_FILE_EVENTS = frozenset(
    {
        "open",
        "os.chmod",
        "os.chown",
        "os.link",
        "os.listdir",
        "os.mkdir",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.scandir",
        "os.symlink",
        "os.truncate",
        "os.utime",
        "shutil.copyfile",
        "shutil.move",
        "shutil.rmtree",
        "sqlite3.connect",
    }
)


class RealHomeTouched(AssertionError):
    """Raised if a test accesses the folder of a real client."""


def _refuse_real_home(event: str, arguments: tuple[Any, ...]) -> None:
    """Raise an exception if an audit event accesses the folder of a real client."""
    if event not in _FILE_EVENTS:
        return
    for path in arguments[:2]:
        name = os.fsdecode(path) if isinstance(path, (bytes, os.PathLike)) else path
        if isinstance(name, str) and f"{os.path.abspath(name)}/".startswith(_REAL_HOME_PREFIXES):
            raise RealHomeTouched(
                f"{event} of {name}: tests never touch the real ~/.claude and ~/.codex"
            )


sys.addaudithook(_refuse_real_home)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """With ``-n``, run all tests of a real session in the same process, so that it is read only once."""
    if getattr(config.option, "numprocesses", None) and config.option.dist == "no":
        config.option.dist = "loadgroup"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Freeze the collected items, because garbage collection would otherwise take half of the time."""
    gc.disable()
    collected = yield
    gc.freeze()
    gc.enable()
    return collected


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return two workers for each CPU core, because tests often wait for clients, locks and time limits."""
    return 2 * (os.cpu_count() or 1)


TESTS_WITHOUT_PARTS = frozenset(
    {
        "archive",
        "benchmarks",
        "derive",
        "maintenance",
        "reading",
        "redaction",
        "sdk",
        "search",
        "sessions",
        "storage",
        "system",
        "transcripts",
        *(f"hook_scripts/test_{name}.py" for name in ("allow", "guard", "guard_cost", "engine")),
    }
)
"""Tests whose results do not depend on which optional parts are installed.

They test packages that do not know verbs or triggers, and some scripts.
"""


TESTS_OF_CONNECTIONS = frozenset(
    {
        "cli/test_archive.py",
        "cli/test_delete.py",
        "cli/test_doctor.py",
        "cli/test_handoff.py",
        "cli/test_lineage_verbs.py",
        "cli/test_main.py",
        "cli/test_output.py",
        "cli/test_resume_terminal.py",
        "cli/test_search.py",
        "cli/test_sessions.py",
        "hooks/test_broken_venv.py",
        "hooks/test_expiring_sessions.py",
        "hooks/test_handoff.py",
        "hooks/test_index_at_start.py",
        "hooks/test_client_module.py",
        "hooks/test_trim.py",
        "parts/attribution/test_search_line.py",
        "parts/codex/test_verbs.py",
        "parts/documents/test_verb.py",
        "parts/lost/test_lost_sessions.py",
        "parts/marks/test_fork_point.py",
        "parts/moved/test_rehome.py",
        "parts/moved/test_resume.py",
        "parts/secrets/scrub/test_purge.py",
        "parts/secrets/test_scrub.py",
        "parts/share/test_export.py",
        "parts/share/test_import.py",
        "parts/smart_trim/test_verb.py",
        "parts/subagents/test_children.py",
        "parts/team/test_verbs.py",
    }
)
"""Tests of the connections between the core and the optional parts.

Together with those core tests that mention parts, they cover every place where the core or a part
uses another part.
"""

INSTALLED_PART_NAMES = list(filter(seam.is_installed, PART_NAMES))
"""The names of the optional parts that are installed."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--apart``, which omits the tests that ``make core`` runs."""
    parser.addoption(
        "--apart", action="store_true", help="leave out what make core runs, and no part changes"
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip test files of missing parts and, with ``--apart``, files whose tests all run in ``make core``."""
    if not collection_path.match("test_*.py"):
        return None
    if len(INSTALLED_PART_NAMES) < len(PART_NAMES):
        here_alone = not INSTALLED_PART_NAMES and _runs_without_parts(collection_path)
        return not (here_alone or _needs_parts(collection_path)) or None
    if not config.getoption("--apart") or not _runs_without_parts(collection_path):
        return None
    return (
        not re.search(r"mark\.(e2e|slow|part)\b", collection_path.read_text(encoding="utf-8"))
        or None
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of missing parts.

    Unless RUN_ALL=1, also deselect the tests that only ``make test-all`` runs. With REQUIRE_ALL=1, a
    test with a real client gets a second run if it fails.
    """
    without = (
        _names_an_absent_part,
        _needs_run_all,
        *([_runs_in_core] if config.getoption("--apart") else []),
    )
    left_out = {item for item in items if any(reason(item) for reason in without)}
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]
    if os.environ.get("REQUIRE_ALL") == "1":
        for item in items:
            if item.get_closest_marker("e2e"):
                # On a busy machine, a real client can miss a deadline. The summary lists each test
                # that needed a second run.
                item.add_marker(pytest.mark.flaky(reruns=1))


def _names_an_absent_part(item: pytest.Item) -> bool:
    return not all(
        seam.is_installed(name) for mark in item.iter_markers("part") for name in mark.args
    )


def _runs_in_core(item: pytest.Item) -> bool:
    return _runs_without_parts(item.path) and not any(
        item.get_closest_marker(name) for name in ("e2e", "slow", "part")
    )


def _runs_without_parts(path: Path) -> bool:
    file = path.relative_to(REPO / "tests")
    return not TESTS_WITHOUT_PARTS.isdisjoint({file.parts[0], str(file)})


def _needs_parts(path: Path) -> bool:
    """Check whether a test file needs the optional parts.

    The parts are needed by the files in ``TESTS_OF_CONNECTIONS``, and by core tests that mention
    parts.
    """
    file = path.relative_to(REPO / "tests")
    names = r"\b(parts|part_table|seam)\b"
    return str(file) in TESTS_OF_CONNECTIONS or (
        file.parts[0] != "parts" and bool(re.search(names, path.read_text("utf-8")))
    )


def _needs_run_all(item: pytest.Item) -> bool:
    marked = item.get_closest_marker("wide") or item.get_closest_marker("whole_corpus")
    return marked is not None and os.environ.get("RUN_ALL") != "1"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With REQUIRE_ALL=1, report a skipped test as failed."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("REQUIRE_ALL") == "1":
        report.outcome = "failed"
        report.longrepr = f"skipped, where nothing may be: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line about tests that were skipped because this machine does not have what they need."""
    lacking = Counter(
        reason.partition("Skipped: ")[2] or reason
        for report in terminalreporter.stats.get("skipped", [])
        for reason in [
            report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        ]
    )
    if lacking:
        reasons = "; ".join(f"{count:,}: {reason}" for reason, count in lacking.most_common())
        terminalreporter.write_line(f"Not run here: {lacking.total():,} tests ({reasons})")


@pytest.fixture(scope="session", autouse=True)
def no_real_home() -> Iterator[None]:
    """Set HOME to a missing folder, and remove the variables of a client in which the tests may run.

    PATH contains ``resume-hooks`` even if the venv of the tests is not activated, because some
    messages depend on it.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(_REMOVED_VARIABLE_PREFIXES) and name not in _KEPT_VARIABLE_NAMES:
                patch.delenv(name)
        patch.setenv("HOME", INACCESSIBLE_HOME)
        patch.setenv(
            "PATH",
            os.pathsep.join([os.environ.get("PATH", os.defpath), os.path.dirname(sys.executable)]),
        )
        yield


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """Start the process that makes a fork of itself for each run of ``cli``."""
    server = ForkServer(str(REPO / "src"), str(REPO))
    yield server
    server.close()


@pytest.fixture
def config_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ConfigHome:
    """Return a new HOME with a CLAUDE_CONFIG_DIR.

    ``environ`` contains these two variables, for functions that take an environment.
    """
    home = ConfigHome.at(tmp_path / "home")
    for name, value in home.environ.items():
        monkeypatch.setenv(name, value)
    return home


@pytest.fixture
def git(tmp_path: Path) -> Any:
    """Return a function that runs git in a folder and returns its output.

    The user's git settings are not used.
    """
    require_for_test("git", shutil.which("git"), "install git")

    def run_git(folder: Path, *words: str) -> str:
        folder.mkdir(parents=True, exist_ok=True)
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]
        env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
        command, quiet = ["git", *who, *words], subprocess.PIPE
        return subprocess.check_output(
            command, cwd=folder, env=env, stderr=quiet, timeout=60, text=True
        ).strip()

    return run_git
