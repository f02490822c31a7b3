"""Find the user's terminal through the processes above this one, and write to its clipboard (OSC 52).

This module also copies to the tmux in which this process runs. It writes only to a terminal device
of this user, and never after the deadline. The result tells whether tmux passed a text on to a
terminal or only kept it. This module needs only the standard library and Python 3.9.
"""

from __future__ import annotations

import base64
import os
import re
import select
import stat
import time
from collections.abc import Mapping

from resume_hooks.system import subprocesses
from resume_hooks.system.processes import iterate_ancestors

# Maximum number of base64 bytes in a sequence. Most terminals, such as xterm and hterm, accept this
# size.
MAX_BASE64_BYTES = 74_994
# Maximum number of bytes that GNU screen passes on at a time, including the escape codes around
# them.
SCREEN_CHUNK_BYTES = 768
# major device numbers of pseudo-terminals on Linux; each has 256 terminals
PTY_MAJOR_NUMBERS = range(136, 144)

_TEXT_CONSOLE_PATTERN = re.compile(r"/dev/tty\d+")
_DEVICE_PATH_PATTERN = re.compile(r"/dev/[A-Za-z0-9]+(/[A-Za-z0-9]+)?")

ONLY_IN_TMUX_NOTE = "only in tmux: prefix ] pastes it"
"""The note about a text that tmux kept but could not pass on to a terminal.

The prefix is Ctrl+B unless the user has changed it.
"""


def find_terminal_device() -> str | None:
    """Return the device of the terminal to which this process belongs, or None.

    A hook has no terminal of its own, so the nearest ancestor with a terminal is used. Return None
    if the terminal belongs to another user. Also return None if it is a Linux text console, because
    that has no clipboard and programs of a desktop may run below it.
    """
    for process in iterate_ancestors():
        path = device_path(process.tty)
        if path is not None:
            try:
                is_ours = _is_our_device(os.lstat(path))
            except OSError:
                return None
            if is_ours and not _TEXT_CONSOLE_PATTERN.fullmatch(path):
                return path
            return None
    return None


def device_path(tty: str) -> str | None:
    """Return the path of a terminal's device, or None.

    ``tty`` is a device number (on Linux) or the name that ``ps`` shows, such as ``ttys003``.
    """
    if tty.lstrip("-").isdigit():
        return _linux_device_path(int(tty))
    path = os.path.join("/dev", tty)
    if _DEVICE_PATH_PATTERN.fullmatch(path):
        return path
    return None


def _linux_device_path(device_number: int) -> str | None:
    """Return the path of the device with this number on Linux, or None.

    In the number, the lower 8 bits and the upper 12 bits are the minor number, and the 12 bits
    between them are the major number.
    """
    if device_number <= 0:
        return None
    major, minor = device_number >> 8 & 0xFFF, device_number & 0xFF | device_number >> 12 & 0xFFF00
    if major in PTY_MAJOR_NUMBERS:
        return f"/dev/pts/{minor + (major - PTY_MAJOR_NUMBERS[0]) * 256}"
    try:
        return "/dev/" + os.path.basename(os.readlink(f"/sys/dev/char/{major}:{minor}"))
    except OSError:
        return None


def _is_our_device(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_uid == os.getuid()


def build_osc52_sequence(text: str, environ: Mapping[str, str]) -> bytes:
    """Return the escape sequence that copies ``text`` to the terminal's clipboard.

    The sequence is wrapped for tmux and screen if necessary. Return ``b""`` if the text is empty or
    too long, or if the terminal has no clipboard. Raise ValueError if the text contains an unpaired
    surrogate.
    """
    payload = base64.b64encode(text.encode("utf-8"))
    terminal_type = environ.get("TERM", "")
    if not payload or len(payload) > MAX_BASE64_BYTES or terminal_type in {"dumb", "linux"}:
        return b""
    unwrapped = b"\x1b]52;c;" + payload + b"\x07"
    if environ.get("TMUX") or terminal_type.startswith("tmux"):
        # tmux accepts the first sequence if set-clipboard is on, and the second sequence if
        # allow-passthrough is on. It ignores the other sequence.
        return unwrapped + b"\x1bPtmux;" + unwrapped.replace(b"\x1b", b"\x1b\x1b") + b"\x1b\\"
    if environ.get("STY"):
        return _wrap_for_gnu_screen(unwrapped)
    if terminal_type.startswith("screen"):
        # Over ssh, it is unknown whether the terminal is tmux or screen. Each of them ignores the
        # sequence for the other.
        return unwrapped + _wrap_for_gnu_screen(unwrapped)
    return unwrapped


def _wrap_for_gnu_screen(sequence: bytes) -> bytes:
    chunk_bytes = SCREEN_CHUNK_BYTES - len(b"\x1bP\x1b\\")
    chunks = (
        sequence[start : start + chunk_bytes] for start in range(0, len(sequence), chunk_bytes)
    )
    return b"".join(b"\x1bP" + chunk + b"\x1b\\" for chunk in chunks)


def send_sequence(sequence: bytes, device: str, deadline: float) -> bool:
    """Write ``sequence`` to a terminal.

    Return False if it could not be written completely by ``deadline`` (compared with
    ``time.monotonic``).
    """
    try:
        descriptor = os.open(device, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        is_ours = os.isatty(descriptor) and _is_our_device(os.fstat(descriptor))
        return is_ours and _write_sequence(descriptor, sequence, deadline)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _write_sequence(descriptor: int, sequence: bytes, deadline: float) -> bool:
    """Write a sequence, with a single call if possible.

    The client also writes to the terminal, and could otherwise write in the middle of the sequence.
    """
    while sequence:
        if not select.select([], [descriptor], [], max(0.0, deadline - time.monotonic()))[1]:
            return False
        try:
            sequence = sequence[os.write(descriptor, sequence) :]
        except BlockingIOError:
            # The terminal reported that it was writable, but its buffer is full.
            time.sleep(0.005)
    return True


def load_tmux_buffer(text: str, env: Mapping[str, str], deadline: float) -> str:
    """Copy ``text`` to tmux's buffer and to the terminal.

    Return "tmux", or ``ONLY_IN_TMUX_NOTE`` if tmux could not pass the text on to a terminal. Return
    ``""`` if tmux is not running any more, or is older than 3.2 and lacks the option ``-w``.
    Without this option the text would be only in tmux's buffer, and OSC 52 is more likely to reach
    the user's clipboard.
    """
    if _run_tmux(["load-buffer", "-w", "-"], env, deadline, text.encode("utf-8")) is None:
        return ""
    # load-buffer succeeds even if no terminal is attached or if the terminal has no clipboard.
    client = _run_tmux(["display-message", "-p", "#{client_name}"], env, deadline)
    capabilities = _run_tmux(["show-messages", "-T"], env, deadline)
    if client and capabilities and _terminal_has_clipboard(client.strip(), capabilities):
        return "tmux"
    return ONLY_IN_TMUX_NOTE


def is_attached_over_ssh(env: Mapping[str, str], deadline: float) -> bool | None:
    """Check whether the terminal that was last attached to tmux is on another machine.

    The environment of a tmux pane does not show that, so tmux is asked. Return None if it is
    unknown.
    """
    answer = _run_tmux(["show-environment", "SSH_CONNECTION"], env, deadline)
    if answer is None:
        return None
    return answer.startswith("SSH_CONNECTION=")


def _terminal_has_clipboard(client_name: str, capability_list: str) -> bool:
    """Check whether tmux lists the capability Ms for the terminal of ``client_name``.

    A terminal with this capability has a clipboard that tmux can set. The list has a heading for
    each terminal.
    """
    is_client = False
    for line in capability_list.split("\n"):
        if line.startswith("Terminal "):
            is_client = f" for {client_name}," in line
        elif is_client and " Ms: " in line:
            return "[missing]" not in line
    return False


def _run_tmux(
    arguments: list[str], env: Mapping[str, str], deadline: float, data: bytes = b""
) -> str | None:
    out = subprocesses.run_and_read_output(["tmux", *arguments], env, deadline, data)
    if out is None:
        return None
    return out.decode("utf-8", "replace")
