"""Tests of the log of bugs, which contains only places in code, is private, and is limited in size."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from resume_hooks.paths import Where
from resume_hooks.system import bug_log
from tests.builders import ConfigHome

SECRET = "sk-ant-planted-in-a-message"
WRITERS, ENTRIES = 10, 60


def make_deep_error(depth: int = 0) -> BaseException:
    """Return an error that was raised ``depth`` calls deep, with a secret in its message and locals."""
    secret = SECRET
    try:
        if depth:
            raise make_deep_error(depth - 1)
        raise KeyError(secret)  # noqa: TRY301 - raised here on purpose
    except KeyError as error:
        return error


def make_recursion_error() -> BaseException:
    """Return the error of an endless recursion."""

    def recurse() -> None:
        recurse()

    try:
        recurse()
    except RecursionError as error:
        return error
    raise AssertionError


def log_many_bugs(environ: dict[str, str], process_number: int) -> None:
    """Log many bugs as the process ``process_number`` of several processes."""
    for _ in range(ENTRIES):
        bug_log.log_bug(f"writer-{process_number}", "1.0", make_deep_error(), Where(environ))


def test_a_log_entry_names_only_places_in_code(config_home: ConfigHome) -> None:
    """An entry has the version, the caller, the kind of error, and places in code.

    It has no message, no value and no folder of the user.
    """
    path = bug_log.log_bug("search", "1.2.3", make_deep_error(3), config_home.where)
    assert path == bug_log.log_file_path(config_home.where)
    text = Path(path).read_text()
    first, *places = text.strip().split("\n")
    assert first.split()[1:] == ["1.2.3", "search", "KeyError"]
    assert places
    assert all(
        place.startswith("  test_bug_log.py:") and place.endswith(" make_deep_error")
        for place in places
    )
    assert SECRET not in text
    assert str(config_home.root) not in text


def test_the_log_is_private_under_any_umask(config_home: ConfigHome) -> None:
    """The log has mode 0600, and its folder has mode 0700, under any umask."""
    before = os.umask(0)
    try:
        path = bug_log.log_bug("search", "1", make_deep_error(), config_home.where)
    finally:
        os.umask(before)
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700


def test_a_full_log_is_rotated_once(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After 200 bugs, there are two log files, neither much larger than the limit."""
    monkeypatch.setattr(bug_log, "MAX_LOG_BYTES", 2_000)
    for _ in range(200):
        path = bug_log.log_bug("search", "1", make_deep_error(), config_home.where)
    files = sorted(os.listdir(os.path.dirname(path)))
    assert files == ["errors.log", "errors.log.1"]
    assert all(os.path.getsize(os.path.join(os.path.dirname(path), name)) < 2_200 for name in files)
    assert os.stat(path + bug_log.OLD_LOG_SUFFIX).st_mode & 0o777 == 0o600


def test_an_endless_recursion_makes_a_short_log_entry(config_home: ConfigHome) -> None:
    """The log entry of an endless recursion has at most ``MAX_TRACEBACK_FRAMES`` places in code."""
    path = bug_log.log_bug("search", "1", make_recursion_error(), config_home.where)
    assert len(Path(path).read_text().strip().split("\n")) == 1 + bug_log.MAX_TRACEBACK_FRAMES


def test_ten_writers_lose_no_entry(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If ten processes log bugs while the log is rotated, each entry is complete and appears once."""
    path = bug_log.log_bug("search", "1", make_deep_error(), config_home.where)
    monkeypatch.setattr(
        bug_log, "MAX_LOG_BYTES", os.path.getsize(path) * WRITERS * ENTRIES * 2 // 3
    )
    os.unlink(path)
    context = multiprocessing.get_context("fork")
    processes = [
        context.Process(target=log_many_bugs, args=(config_home.environ, n)) for n in range(WRITERS)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert os.path.exists(path + bug_log.OLD_LOG_SUFFIX)
    noted = [entry.split("\n") for entry in bug_log.read_log_entries(config_home.where)]
    assert all(len(lines) == 2 for lines in noted)
    counts = [sum(lines[0].split()[2] == f"writer-{n}" for lines in noted) for n in range(WRITERS)]
    assert counts == [ENTRIES] * WRITERS


@pytest.mark.parametrize("kind", ["pipe", "link", "folder", "read-only"])
def test_a_log_that_is_not_a_file_is_left_alone(
    config_home: ConfigHome, tmp_path: Path, kind: str
) -> None:
    """A log that is a pipe, a link or a folder is neither written nor read, and nothing blocks.

    The caller gets an empty path.
    """
    path = Path(bug_log.log_file_path(config_home.where))
    path.parent.mkdir(parents=True)
    target = tmp_path / "target"
    target.write_text("as it was")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(target)
    elif kind == "folder":
        path.mkdir()
    else:
        path.parent.rmdir()
        path.parent.write_text("a file where the folder should be")
    assert bug_log.log_bug("search", "1", make_deep_error(), config_home.where) == ""
    assert target.read_text() == "as it was"
    assert bug_log.read_log_entries(config_home.where) == []
