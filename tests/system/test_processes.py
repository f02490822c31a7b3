"""Tests of processes: their ancestors, the client among them, unusual names, and signals."""

from __future__ import annotations

import itertools
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from resume_hooks.system import processes
from resume_hooks.system.capture_output import catch_termination_signals
from resume_hooks.system.processes import Process, find_client_pid, iterate_ancestors
from tests.needs import REPO, require_for_test

FIND_CLIENT_SCRIPT = (
    "from resume_hooks.system.processes import find_client_pid; print(find_client_pid())"
)


def test_the_list_of_ancestors_starts_at_the_parent() -> None:
    """The list of ancestors begins with the parent, and each process is followed by its own parent."""
    found = list(iterate_ancestors())
    assert found[0].pid == os.getppid()
    assert all(above.pid == below.parent_pid for below, above in itertools.pairwise(found))
    assert len({process.pid for process in found}) == len(found)


def test_an_ended_process_has_no_ancestors() -> None:
    """The list of ancestors of an ended process is empty."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert list(iterate_ancestors(ended.pid)) == []


@pytest.mark.parametrize("pid_text", ["4711", "", "x", "\u00b2", "-1"])
def test_the_variable_claude_pid_names_the_client(
    monkeypatch: pytest.MonkeyPatch, pid_text: str
) -> None:
    """``CLAUDE_PID`` names the client, and an invalid value is ignored."""
    monkeypatch.setenv("CLAUDE_PID", pid_text)
    assert (find_client_pid() == 4711) is (pid_text == "4711")


def test_shells_and_python_interpreters_are_not_clients(tmp_path: Path) -> None:
    """The client is the first ancestor that is neither a shell nor Python."""
    script = f"{sys.executable} -c '{FIND_CLIENT_SCRIPT}'; true"
    env = {"PYTHONPATH": str(REPO / "src"), "PATH": os.environ["PATH"]}
    client = tmp_path / "claude"
    client.symlink_to(shutil.which("perl") or "/usr/bin/perl")
    require_for_test("perl", client.exists(), "install perl")
    program = "print $$, qq(\\n); $| = 1; system('sh', '-c', $ARGV[0]);"
    command = [str(client), "-e", program, f"sh -c {shlex.quote(script)}; true"]
    shown = subprocess.run(
        command, env=env, capture_output=True, text=True, check=True
    ).stdout.split()
    assert shown[0] == shown[1]


def test_ancestors_are_found_with_ps_if_proc_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without ``/proc``, the same ancestors are found with ``ps``."""
    by_proc = [process.pid for process in iterate_ancestors()]
    monkeypatch.setattr(
        processes, "_find_process", lambda pid: processes._read_process_table().get(pid)
    )
    monkeypatch.setattr(processes, "_process_cache", {})
    assert [process.pid for process in iterate_ancestors()] == by_proc


def test_a_process_name_may_have_any_characters(tmp_path: Path) -> None:
    """A process name with spaces and parentheses is read correctly."""
    odd = tmp_path / "a) S 1 (b"
    odd.symlink_to("/bin/sleep")
    sleeper = subprocess.Popen([str(odd), "20"])
    try:
        found = processes._read_process_from_proc(sleeper.pid)
        assert found is not None
        assert (found.parent_pid, found.name) == (os.getpid(), "a) S 1 (b")
    finally:
        sleeper.kill()
        sleeper.wait()


def test_the_list_of_ancestors_ends_despite_a_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list of ancestors ends even if two processes are each other's parent.

    Such a cycle is possible after process ids were reused.
    """
    table = {7: Process(7, 8, "a", ""), 8: Process(8, 9, "b", ""), 9: Process(9, 8, "c", "")}
    monkeypatch.setattr(processes, "_find_process", table.get)
    assert [process.pid for process in iterate_ancestors(7)] == [8, 9]


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_sets_the_event(signal_number: signal.Signals) -> None:
    """A signal sets the event and raises no exception, and the earlier handler is restored."""
    before = signal.getsignal(signal_number)
    with catch_termination_signals() as ended:
        assert not ended.is_set()
        signal.raise_signal(signal_number)
        assert ended.is_set()
    assert signal.getsignal(signal_number) is before


def test_an_ignored_signal_stays_ignored() -> None:
    """A signal that was ignored, as under nohup, stays ignored."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with catch_termination_signals() as ended:
            signal.raise_signal(signal.SIGHUP)
        assert not ended.is_set()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_another_thread_handles_no_signals() -> None:
    """In any thread but the main one, signals are not handled and no error is raised."""
    found: list[bool] = []

    def record_signal() -> None:
        with catch_termination_signals() as ended:
            found.append(ended.is_set())

    thread = threading.Thread(target=record_signal)
    thread.start()
    thread.join()
    assert found == [False]
