"""Tests that the whole output of a program is captured and that a failure leaves no process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from resume_hooks.storage.state_file import is_process_running
from resume_hooks.system import capture_output
from tests.needs import REPO

PROGRAM_ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


def run_shell_line(
    script: str, stdin: bytes = b"", timeout_seconds: float = 30.0
) -> capture_output.CapturedOutput:
    """Run a line of shell script on a text."""
    return capture_output.run_and_capture_output(
        ["/bin/sh", "-c", script],
        stdin,
        environ=PROGRAM_ENVIRONMENT,
        folder="/",
        timeout_seconds=timeout_seconds,
    )


def ends_soon(pid: int) -> bool:
    """Check whether a process ends within four seconds."""
    for _ in range(200):
        if (
            not is_process_running(pid)
            or Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] == "Z"
        ):
            return True
        time.sleep(0.02)
    return False


def test_large_input_and_output_pass_unchanged() -> None:
    """Large input and output pass unchanged, and error output is captured separately."""
    text = os.urandom(1 << 20) * 4
    ran = run_shell_line("cat; echo oops >&2; exit 3", text)
    assert (ran.exit_status, ran.stdout == text, ran.stderr) == (3, True, b"oops\n")
    assert not ran.has_timed_out
    assert not ran.is_too_large


def test_a_program_need_not_read_its_input() -> None:
    """A program that closes its input without reading it succeeds."""
    assert run_shell_line("exec <&-; echo done", b"x" * (1 << 20)).stdout == b"done\n"


def test_a_program_is_ended_at_the_time_limit(tmp_path: Path) -> None:
    """At the time limit, a program is killed with its children, even if they ignore SIGTERM."""
    ran = run_shell_line(
        f"trap '' TERM; sleep 300 & echo $! > {tmp_path}/pid; sleep 300; sleep 300",
        timeout_seconds=0.3,
    )
    assert ran.has_timed_out
    assert ran.exit_status == -signal.SIGKILL
    assert ends_soon(int((tmp_path / "pid").read_text()))


def test_the_time_limit_applies_after_a_program_has_closed_its_pipes() -> None:
    """A program that closed all its streams and hangs is stopped at the time limit."""
    assert run_shell_line("exec <&- >&- 2>&-; sleep 300", timeout_seconds=0.3).has_timed_out


def test_endless_output_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program with endless output is stopped, and the output is marked as too large."""
    ran = run_shell_line("exec yes")
    assert ran.is_too_large
    assert (
        capture_output.MAX_OUTPUT_BYTES
        < len(ran.stdout)
        <= capture_output.MAX_OUTPUT_BYTES + capture_output.CHUNK_BYTES
    )


def test_endless_error_output_keeps_its_beginning() -> None:
    """Only the beginning of long error output is kept, and the program runs to its end."""
    ran = run_shell_line("head -c 1000000 /dev/zero >&2; echo done")
    assert (ran.stdout, len(ran.stderr)) == (b"done\n", capture_output.MAX_ERROR_OUTPUT_BYTES)


def test_a_remaining_child_process_is_ended(tmp_path: Path) -> None:
    """A child process that remains after the program's answer is not waited for, but killed."""
    ran = run_shell_line(f"sleep 300 & echo $! > {tmp_path}/pid; echo done")
    assert (ran.exit_status, ran.stdout, ran.has_timed_out) == (0, b"done\n", False)
    assert ends_soon(int((tmp_path / "pid").read_text()))


def test_a_missing_program_raises_an_os_error() -> None:
    """Running a missing program, or running a program in a missing folder, raises ``OSError``."""
    with pytest.raises(OSError, match="none"):
        capture_output.run_and_capture_output(
            ["/none"], b"", environ={}, folder="/", timeout_seconds=1
        )
    with pytest.raises(OSError, match="gone"):
        capture_output.run_and_capture_output(
            ["/bin/true"], b"", environ={}, folder="/gone", timeout_seconds=1
        )


def test_a_program_can_be_run_in_another_thread() -> None:
    """A program can be run in a thread other than the main one, where signals can't be handled."""
    found: list[capture_output.CapturedOutput] = []
    thread = threading.Thread(target=lambda: found.append(run_shell_line("echo done")))
    thread.start()
    thread.join()
    assert found[0].stdout == b"done\n"


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_us_ends_the_program(tmp_path: Path, signal_number: signal.Signals) -> None:
    """A signal to this process kills the program, and the earlier signal handler is restored."""
    pid = tmp_path / "pid"
    script = (
        f"import sys; sys.path.insert(0, {str(REPO / 'src')!r})\n"
        "import signal\nfrom resume_hooks.system import capture_output\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests by nohup ignores it\n"
        "before = signal.getsignal(signal.SIGTERM)\n"
        "try:\n"
        "    capture_output.run_and_capture_output(['/bin/sh', '-c', "
        f"'echo $$ > {pid}.new; mv {pid}.new {pid}; sleep 300'], b'', "
        "environ={'PATH': '/usr/bin:/bin'}, folder='/', timeout_seconds=60)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', signal.getsignal(signal.SIGTERM) == before)\n"
    )
    with subprocess.Popen([sys.executable, "-I", "-c", script], stdout=subprocess.PIPE) as process:
        while not pid.exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(signal_number)
        out, _ = process.communicate(timeout=30)
    assert out == b"interrupted True\n"
    assert ends_soon(int(pid.read_text()))
