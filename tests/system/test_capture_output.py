"""Running a program on a text: whole where all goes well, and nothing left where it does not."""

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

ENVIRON = {"PATH": "/usr/bin:/bin"}


def run(script: str, text: bytes = b"", limit: float = 30.0) -> capture_output.CapturedOutput:
    """A shell's line, run on a text."""
    return capture_output.run_captured(
        ["/bin/sh", "-c", script], text, environ=ENVIRON, folder="/", limit=limit
    )


def ends_soon(pid: int) -> bool:
    """Check whether a process ends within seconds. Init reaps a process without a waiting parent."""
    for _ in range(200):
        if (
            not is_process_running(pid)
            or Path(f"/proc/{pid}/stat").read_text().split(") ")[1][0] == "Z"
        ):
            return True
        time.sleep(0.02)
    return False


def test_large_input_and_output_pass_unchanged() -> None:
    """Much more than a pipe's capacity, in both directions at the same time, and the error output separately."""
    text = os.urandom(1 << 20) * 4
    ran = run("cat; echo oops >&2; exit 3", text)
    assert (ran.status, ran.out == text, ran.err) == (3, True, b"oops\n")
    assert not ran.timed_out
    assert not ran.too_large


def test_nobody_has_to_listen() -> None:
    """A program that ends, or closes its stdin, without reading is not a failure of ours."""
    assert run("exec <&-; echo done", b"x" * (1 << 20)).out == b"done\n"


def test_too_long(tmp_path: Path) -> None:
    """Program and children are ended at the limit, also where they ignore being asked."""
    ran = run(
        f"trap '' TERM; sleep 300 & echo $! > {tmp_path}/pid; sleep 300; sleep 300", limit=0.3
    )
    assert ran.timed_out
    assert ran.status == -signal.SIGKILL
    assert ends_soon(int((tmp_path / "pid").read_text()))


def test_closed_pipes_do_not_end_the_limit() -> None:
    """A program that closed all it could be heard by and hangs is ended like any other."""
    assert run("exec <&- >&- 2>&-; sleep 300", limit=0.3).timed_out


def test_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output without end is cut off where it is not an answer any more."""
    ran = run("exec yes")
    assert ran.too_large
    assert (
        capture_output.MAX_OUTPUT_BYTES
        < len(ran.out)
        <= capture_output.MAX_OUTPUT_BYTES + capture_output.CHUNK_BYTES
    )


def test_errors_are_kept_by_their_beginning() -> None:
    """Of error output without end the beginning is kept, and it stops nothing."""
    ran = run("head -c 1000000 /dev/zero >&2; echo done")
    assert (ran.out, len(ran.err)) == (b"done\n", capture_output.MAX_ERROR_BYTES)


def test_a_remaining_child_process_is_ended(tmp_path: Path) -> None:
    """It has the pipes open after its parent has answered. It is neither awaited nor left running."""
    ran = run(f"sleep 300 & echo $! > {tmp_path}/pid; echo done")
    assert (ran.status, ran.out, ran.timed_out) == (0, b"done\n", False)
    assert ends_soon(int((tmp_path / "pid").read_text()))


def test_a_program_that_cannot_be_started() -> None:
    """A missing program or folder is an OSError."""
    with pytest.raises(OSError, match="none"):
        capture_output.run_captured(["/none"], b"", environ={}, folder="/", limit=1)
    with pytest.raises(OSError, match="gone"):
        capture_output.run_captured(["/bin/true"], b"", environ={}, folder="/gone", limit=1)


def test_in_another_thread() -> None:
    """There are not signals to be turned there; the run is the same."""
    found: list[capture_output.CapturedOutput] = []
    thread = threading.Thread(target=lambda: found.append(run("echo done")))
    thread.start()
    thread.join()
    assert found[0].out == b"done\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_whoever_ends_us_ends_it(tmp_path: Path, number: signal.Signals) -> None:
    """Esc in a client, a closed terminal, Ctrl+C: the program goes with us, and the handlers are as before."""
    pid = tmp_path / "pid"
    script = (
        f"import sys; sys.path.insert(0, {str(REPO / 'src')!r})\n"
        "import signal\nfrom resume_hooks.system import capture_output\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests by nohup ignores it\n"
        "before = signal.getsignal(signal.SIGTERM)\n"
        "try:\n"
        "    capture_output.run_captured(['/bin/sh', '-c', "
        f"'echo $$ > {pid}.new; mv {pid}.new {pid}; sleep 300'], b'', "
        "environ={'PATH': '/usr/bin:/bin'}, folder='/', limit=60)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', signal.getsignal(signal.SIGTERM) == before)\n"
    )
    with subprocess.Popen([sys.executable, "-I", "-c", script], stdout=subprocess.PIPE) as process:
        while not pid.exists():
            assert process.poll() is None
            time.sleep(0.02)
        process.send_signal(number)
        out, _ = process.communicate(timeout=30)
    assert out == b"interrupted True\n"
    assert ends_soon(int(pid.read_text()))
