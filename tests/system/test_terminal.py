"""Tests of finding the user's terminal and of the OSC 52 sequences that copy text in it."""

from __future__ import annotations

import base64
import os
import select
import subprocess
import sys
import termios
import time
import tty
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from resume_hooks.system import terminal
from tests.needs import REPO

HANG_SECONDS = 30.0
"""Number of seconds after which a test is considered to hang."""

CLIENT_SCRIPT = """
import os, subprocess, sys
os.open(sys.argv[1], os.O_RDWR)  # the first terminal that a session leader opens is its controlling one
subprocess.run([sys.executable, "-c", sys.argv[2]], start_new_session=True, check=True)
"""
"""A stand-in for the client. The stand-in has a terminal.

It runs the hook in a process session without a terminal.
"""


class Pty(NamedTuple):
    """A pseudo-terminal: the terminal program reads ``screen_descriptor``, and the client uses ``device``."""

    screen_descriptor: int
    device: str

    def read(self, until: bytes) -> bytes:
        """Return the terminal's output up to and including the first ``until``."""
        seen, deadline = b"", time.monotonic() + HANG_SECONDS
        while until not in seen:
            assert select.select(
                [self.screen_descriptor], [], [], max(0.0, deadline - time.monotonic())
            )[0], seen
            seen += os.read(self.screen_descriptor, 65536)
        return seen

    def is_silent(self) -> bool:
        """Check whether no more output is available."""
        return not select.select([self.screen_descriptor], [], [], 0.1)[0]


@pytest.fixture
def pty() -> Iterator[Pty]:
    """Yield a pseudo-terminal in raw mode, so that its output is unchanged."""
    screen, device = os.openpty()
    tty.setraw(device, termios.TCSANOW)
    yield Pty(screen, os.ttyname(device))
    os.close(screen)
    os.close(device)


def _start_hook(pty: Pty, code: str, **environ: str) -> subprocess.Popen[bytes]:
    """Run ``code`` as a hook that a client on ``pty`` started."""
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(REPO / "src"),
        "TERM": "xterm-256color",
        **environ,
    }
    command = [sys.executable, "-c", CLIENT_SCRIPT, pty.device, code]
    return subprocess.Popen(command, env=env, start_new_session=True, stdout=subprocess.PIPE)


def _read_output_of_process(process: subprocess.Popen[bytes]) -> str:
    out, _ = process.communicate(timeout=HANG_SECONDS)
    return out.decode().strip()


def _decode_payload(sequence: bytes) -> str:
    head, tail = b"\x1b]52;c;", b"\x07"
    assert sequence.startswith(head)
    assert sequence.endswith(tail)
    return base64.b64decode(sequence[len(head) : -len(tail)], validate=True).decode()


def test_the_terminal_of_the_client_is_found(pty: Pty) -> None:
    """A process without a terminal finds the terminal of its nearest ancestor."""
    code = "from resume_hooks.system.terminal import find_terminal_device; print(find_terminal_device())"
    assert _read_output_of_process(_start_hook(pty, code)) == pty.device


SSH_ENVIRONMENT = {"SSH_CONNECTION": "10.0.0.2 5 10.0.0.1 22", "DISPLAY": ":0"}


@pytest.mark.parametrize(
    ("text", "method", "environ"),
    [
        ("/resume 0b5a41e6", "auto", {}),
        ("naïve → 日本語 🧵\n\n", "auto", {}),
        ("naïve → 日本語 🧵\n\n", "osc52", {}),
        ("the far machine's own display is left alone", "auto", SSH_ENVIRONMENT),
        ("more than the terminal takes at once" * 1_400, "auto", {}),
    ],
    ids=["ascii", "unicode", "osc52", "ssh", "long"],
)
def test_a_hook_reaches_the_users_terminal(
    pty: Pty, text: str, method: str, environ: dict[str, str]
) -> None:
    """A hook sends the complete sequence to the user's terminal, and the copy is unconfirmed."""
    code = (
        "from resume_hooks.system.clipboard import copy_text; "
        f"print(*copy_text({text!r}, method={method!r}), sep='|')"
    )
    hook = _start_hook(pty, code, **environ)
    assert _decode_payload(pty.read(until=b"\x07")) == text
    assert _read_output_of_process(hook) == "sent|OSC 52"
    assert pty.is_silent()


def test_clipboard_methods_name_the_terminal(pty: Pty) -> None:
    """The listed clipboard methods name the terminal."""
    assert (
        _read_output_of_process(
            _start_hook(
                pty,
                "from resume_hooks.system.clipboard import list_clipboard_methods; print(*list_clipboard_methods())",
            )
        )
        == "the terminal (OSC 52)"
    )


def test_a_text_too_long_for_terminals_is_not_sent(pty: Pty) -> None:
    """A text that is too long for terminals is not sent, and the copy is reported as failed."""
    code = "from resume_hooks.system.clipboard import copy_text; print(*copy_text('0123456789' * 10000), sep='|')"
    assert _read_output_of_process(_start_hook(pty, code)) == "not copied|"
    assert pty.is_silent()


def test_a_stopped_terminal_does_not_block(pty: Pty) -> None:
    """Sending to a terminal that is stopped, as by Ctrl+S, ends at the time limit and fails."""
    device = os.open(pty.device, os.O_RDWR | os.O_NOCTTY)
    try:
        termios.tcflow(device, termios.TCOOFF)
        assert not terminal.send_sequence(b"x" * 100_000, pty.device, time.monotonic() + 0.2)
        termios.tcflow(device, termios.TCOON)
    finally:
        os.close(device)


def test_only_a_terminal_is_written_to(tmp_path: Path) -> None:
    """Nothing is written to a path that is missing, a file, a folder, or a device other than a terminal."""
    file = tmp_path / "file"
    file.write_bytes(b"kept")
    for path in (str(file), os.devnull, str(tmp_path / "missing"), str(tmp_path)):
        assert not terminal.send_sequence(b"x", path, time.monotonic() + 1)
    assert file.read_bytes() == b"kept"


def test_the_terminal_of_another_user_is_not_written_to(pty: Pty) -> None:
    """A terminal of another user, as after su, is neither found nor written to, even by root."""
    if os.getuid() != 0:
        # The device belongs to root, whoever uses the terminal.
        assert not terminal.send_sequence(b"x", "/dev/tty", time.monotonic() + 1)
        return
    os.chown(pty.device, 4242, -1)
    assert not terminal.send_sequence(b"x", pty.device, time.monotonic() + 1)
    assert (
        _read_output_of_process(
            _start_hook(
                pty,
                "from resume_hooks.system.terminal import find_terminal_device; print(find_terminal_device())",
            )
        )
        == "None"
    )
    assert pty.is_silent()


@pytest.mark.parametrize(
    ("tty", "path"),
    [
        (str(136 << 8 | 3), "/dev/pts/3"),
        (str(136 << 8 | 300 & 0xFF | (300 & ~0xFF) << 12), "/dev/pts/300"),
        (str(137 << 8 | 1), "/dev/pts/257"),
        ("ttys003", "/dev/ttys003"),
        ("pts/3", "/dev/pts/3"),
        ("0", None),
        ("-1", None),
        ("?", None),
        ("??", None),
        ("-", None),
        ("", None),
        ("../tmp/file", None),
        ("pts/../null", None),
    ],
)
def test_terminal_names_become_device_paths(tty: str, path: str | None) -> None:
    """A device number or a terminal's name is converted to a device path, and any other value to None."""
    assert terminal.device_path(tty) == path


@pytest.mark.parametrize("environ", [{"TERM": "dumb"}, {"TERM": "linux"}])
def test_a_terminal_without_a_clipboard_gets_no_sequence(environ: dict[str, str]) -> None:
    """A terminal that would print the sequence, such as a text console, gets none."""
    assert terminal.build_osc52_sequence("text", environ) == b""


def test_the_length_limit_applies_to_the_encoded_text() -> None:
    """The longest text within the limit is encoded, and a text of one more byte is not."""
    longest = "x" * (terminal.MAX_BASE64_BYTES // 4 * 3)
    assert _decode_payload(terminal.build_osc52_sequence(longest, {})) == longest
    assert terminal.build_osc52_sequence(longest + "x", {}) == b""


@pytest.mark.parametrize(
    "environ", [{"STY": "1.pts-0.host", "TERM": "screen"}, {"STY": "x", "TERM": "xterm"}]
)
@pytest.mark.parametrize("length", [10, 5000])
def test_gnu_screen_gets_the_sequence_in_chunks(environ: dict[str, str], length: int) -> None:
    """GNU screen gets the sequence in chunks that fit its limit."""
    strings = terminal.build_osc52_sequence("x" * length, environ).split(b"\x1b\\")
    assert strings.pop() == b""
    assert all(
        string.startswith(b"\x1bP") and len(string) + 2 <= terminal.SCREEN_CHUNK_BYTES
        for string in strings
    )
    assert _decode_payload(b"".join(string[2:] for string in strings)) == "x" * length


def test_a_remote_screen_gets_the_plain_and_the_wrapped_sequence() -> None:
    """With ``TERM=screen-256color``, the plain sequence and the one wrapped for GNU screen are sent.

    The remote terminal may be in tmux or in GNU screen.
    """
    sequence = terminal.build_osc52_sequence("x", {"TERM": "screen-256color"})
    plain = terminal.build_osc52_sequence("x", {"TERM": "xterm"})
    assert sequence == plain + b"\x1bP" + plain + b"\x1b\\"
