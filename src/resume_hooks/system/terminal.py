"""The user's terminal, found through the processes above this one, its clipboard (OSC 52), and the surrounding tmux.

Invariants: bytes are written only to a terminal device of this user, and never past the deadline. A
text that tmux passed on to a terminal is never confused with one that stayed in tmux. Standard
library, Python 3.9.
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

# the number of base64 bytes that most terminals accept in one sequence (xterm, hterm)
MAX_BASE64_BYTES = 74_994
# the number of bytes that GNU screen passes through at once, including the wrapping
SCREEN_CHUNK_BYTES = 768
PTY_MAJOR_NUMBERS = range(136, 144)  # Linux device numbers of pseudo-terminals, 256 terminals each

_TEXT_CONSOLE = re.compile(r"/dev/tty\d+")
_DEVICE = re.compile(r"/dev/[A-Za-z0-9]+(/[A-Za-z0-9]+)?")

ONLY_IN_TMUX_NOTE = "only in tmux: prefix ] pastes it"
"""The note for a text that tmux could not pass on to a terminal.

The prefix is Ctrl+B unless the user changed it.
"""


def find_terminal_device() -> str | None:
    """Return the nearest ancestor's terminal if it belongs to this user and is not a text console.

    A hook has no terminal of its own. A Linux text console has no clipboard, and the programs of a
    desktop may run below it.
    """
    for process in iterate_ancestors():
        path = device_path(process.tty)
        if path is not None:
            try:
                is_ours = _is_our_device(os.lstat(path))
            except OSError:
                return None
            if is_ours and not _TEXT_CONSOLE.fullmatch(path):
                return path
            return None
    return None


def device_path(tty: str) -> str | None:
    """Return a terminal's device file from a device number (Linux) or the name in ``ps``, such as ``ttys003``."""
    if tty.lstrip("-").isdigit():
        return _linux_device_path(int(tty))
    path = os.path.join("/dev", tty)
    if _DEVICE.fullmatch(path):
        return path
    return None


def _linux_device_path(number: int) -> str | None:
    """Return the device file for a Linux number: 12 bits of major between the lower 8 and upper 12 bits of minor."""
    if number <= 0:
        return None
    major, minor = number >> 8 & 0xFFF, number & 0xFF | number >> 12 & 0xFFF00
    if major in PTY_MAJOR_NUMBERS:
        return f"/dev/pts/{minor + (major - PTY_MAJOR_NUMBERS[0]) * 256}"
    try:
        return "/dev/" + os.path.basename(os.readlink(f"/sys/dev/char/{major}:{minor}"))
    except OSError:
        return None


def _is_our_device(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_uid == os.getuid()


def build_osc52_sequence(text: str, environ: Mapping[str, str]) -> bytes:
    """Build the sequence that copies ``text`` to the terminal's clipboard, wrapped for tmux and screen.

    Return ``b""`` for empty or too long text, and for terminals without a clipboard. Raise
    ValueError for lone surrogates.
    """
    payload = base64.b64encode(text.encode("utf-8"))
    terminal_type = environ.get("TERM", "")
    if not payload or len(payload) > MAX_BASE64_BYTES or terminal_type in {"dumb", "linux"}:
        return b""
    unwrapped = b"\x1b]52;c;" + payload + b"\x07"
    if environ.get("TMUX") or terminal_type.startswith("tmux"):
        # tmux accepts the first sequence with set-clipboard on, the second with allow-passthrough
        # on, and drops the other.
        return unwrapped + b"\x1bPtmux;" + unwrapped.replace(b"\x1b", b"\x1b\x1b") + b"\x1b\\"
    if environ.get("STY"):
        return _wrap_for_screen(unwrapped)
    if terminal_type.startswith("screen"):
        # Over ssh, the terminal may be tmux or screen. Each drops the other's sequence.
        return unwrapped + _wrap_for_screen(unwrapped)
    return unwrapped


def _wrap_for_screen(sequence: bytes) -> bytes:
    chunk_bytes = SCREEN_CHUNK_BYTES - len(b"\x1bP\x1b\\")
    chunks = (
        sequence[start : start + chunk_bytes] for start in range(0, len(sequence), chunk_bytes)
    )
    return b"".join(b"\x1bP" + chunk + b"\x1b\\" for chunk in chunks)


def send_sequence(sequence: bytes, device: str, deadline: float) -> bool:
    """Write ``sequence`` to a terminal.

    Return False if writing fails or is not done by ``deadline`` (monotonic).
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
    """Write everything at once if possible, because the client also writes to the terminal and may write in between."""
    while sequence:
        if not select.select([], [descriptor], [], max(0.0, deadline - time.monotonic()))[1]:
            return False
        try:
            sequence = sequence[os.write(descriptor, sequence) :]
        except BlockingIOError:
            # select reported that the terminal is writable, but its buffer is full
            time.sleep(0.005)
    return True


def load_tmux_buffer(text: str, env: Mapping[str, str], deadline: float) -> str:
    """Copy ``text`` to tmux's buffer and to the terminal; return ``tmux``, or ``ONLY_IN_TMUX_NOTE`` without a terminal.

    Return ``""`` if tmux refused because it has exited, or is older than 3.2 and lacks ``-w``. In
    the latter case, tmux's buffer alone would not be the user's clipboard, and OSC 52 is more
    likely to work.
    """
    if _run_tmux(["load-buffer", "-w", "-"], env, deadline, text.encode("utf-8")) is None:
        return ""
    # load-buffer also succeeds in a detached session, and on a terminal without a clipboard.
    client = _run_tmux(["display-message", "-p", "#{client_name}"], env, deadline)
    capabilities = _run_tmux(["show-messages", "-T"], env, deadline)
    if client and capabilities and _has_clipboard(client.strip(), capabilities):
        return "tmux"
    return ONLY_IN_TMUX_NOTE


def is_attached_over_ssh(env: Mapping[str, str], deadline: float) -> bool | None:
    """Check whether the terminal that was attached last came over ssh, which a pane's environment does not show.

    Return None if unknown.
    """
    answer = _run_tmux(["show-environment", "SSH_CONNECTION"], env, deadline)
    if answer is None:
        return None
    return answer.startswith("SSH_CONNECTION=")


def _has_clipboard(client: str, capabilities: str) -> bool:
    """Check whether tmux's list, which has a heading for each terminal, shows the capability Ms for ``client``."""
    is_client = False
    for line in capabilities.split("\n"):
        if line.startswith("Terminal "):
            is_client = f" for {client}," in line
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
