"""The user's terminal, that of a process above us, OSC 52, which asks it to fill its clipboard, and the tmux around us.

Invariants: bytes are written only to a terminal device that belongs to this user, never waiting
past the deadline; a text that tmux passed on to a terminal is never confused with one that only
tmux holds. Standard library, Python 3.9.
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
from resume_hooks.system.processes import ancestors

MAX_BASE64 = 74_994  # bytes of base64 that terminals commonly accept in one sequence (xterm, hterm)
SCREEN_CHUNK = 768  # bytes that GNU screen passes through at once, the wrapping included
PTY_MAJORS = range(136, 144)  # Linux device numbers of pseudo-terminals, 256 terminals each

_TEXT_CONSOLE = re.compile(r"/dev/tty\d+")
_DEVICE = re.compile(r"/dev/[A-Za-z0-9]+(/[A-Za-z0-9]+)?")

IN_BUFFER = "in tmux alone: prefix ] pastes it"
"""Where a text is that tmux could hand to no terminal.

The prefix is Ctrl+B unless it was changed.
"""


def terminal_device() -> str | None:
    """The terminal of the nearest process above that has one, if it is this user's and no text console.

    A hook has none itself; a Linux text console has no clipboard, and stands above a desktop's own
    programs.
    """
    for process in ancestors():
        path = device_path(process.tty)
        if path is not None:
            try:
                ours = _is_our_device(os.lstat(path))
            except OSError:
                return None
            if ours and not _TEXT_CONSOLE.fullmatch(path):
                return path
            return None
    return None


def device_path(tty: str) -> str | None:
    """The file of a terminal, named by a device number (Linux) or as ``ps`` does (``ttys003``, ``pts/3``, ``??``)."""
    if tty.lstrip("-").isdigit():
        return _path_of_number(int(tty))
    path = os.path.join("/dev", tty)
    if _DEVICE.fullmatch(path):
        return path
    return None


def _path_of_number(number: int) -> str | None:
    """Linux packs 12 bits of major number between the lower 8 and the upper 12 bits of the minor."""
    if number <= 0:
        return None
    major, minor = number >> 8 & 0xFFF, number & 0xFF | number >> 12 & 0xFFF00
    if major in PTY_MAJORS:
        return f"/dev/pts/{minor + (major - PTY_MAJORS[0]) * 256}"
    try:
        return "/dev/" + os.path.basename(os.readlink(f"/sys/dev/char/{major}:{minor}"))
    except OSError:
        return None


def _is_our_device(status: os.stat_result) -> bool:
    return stat.S_ISCHR(status.st_mode) and status.st_uid == os.getuid()


def osc52(text: str, environ: Mapping[str, str]) -> bytes:
    """Build the sequence that puts ``text`` on the terminal's clipboard, wrapped as tmux and screen need it.

    ``b""`` if it can't be done: no text, too long a text, or a terminal known to have no clipboard.
    ValueError for lone surrogates.
    """
    payload = base64.b64encode(text.encode("utf-8"))
    kind = environ.get("TERM", "")
    if not payload or len(payload) > MAX_BASE64 or kind in {"dumb", "linux"}:
        return b""
    plain = b"\x1b]52;c;" + payload + b"\x07"
    if environ.get("TMUX") or kind.startswith("tmux"):
        # tmux takes the first with set-clipboard on, the second with allow-passthrough on, and
        # drops the other.
        return plain + b"\x1bPtmux;" + plain.replace(b"\x1b", b"\x1b\x1b") + b"\x1b\\"
    if environ.get("STY"):
        return _through_screen(plain)
    if kind.startswith("screen"):
        # Beyond ssh this may be tmux or screen; each drops what is meant for the other.
        return plain + _through_screen(plain)
    return plain


def _through_screen(sequence: bytes) -> bytes:
    room = SCREEN_CHUNK - len(b"\x1bP\x1b\\")
    chunks = (sequence[start : start + room] for start in range(0, len(sequence), room))
    return b"".join(b"\x1bP" + chunk + b"\x1b\\" for chunk in chunks)


def send(sequence: bytes, device: str, deadline: float) -> bool:
    """Write ``sequence`` to a terminal.

    False if that fails or takes until ``deadline`` (monotonic).
    """
    try:
        descriptor = os.open(device, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        ours = os.isatty(descriptor) and _is_our_device(os.fstat(descriptor))
        return ours and _write_sequence(descriptor, sequence, deadline)
    except OSError:
        return False
    finally:
        os.close(descriptor)


def _write_sequence(descriptor: int, sequence: bytes, deadline: float) -> bool:
    """Write all at once if the terminal keeps up: the client draws there too, and may come between two writes."""
    while sequence:
        if not select.select([], [descriptor], [], max(0.0, deadline - time.monotonic()))[1]:
            return False
        try:
            sequence = sequence[os.write(descriptor, sequence) :]
        except BlockingIOError:
            time.sleep(0.005)  # writable by select's word, but full to the last byte
    return True


def load_tmux_buffer(text: str, env: Mapping[str, str], deadline: float) -> str:
    """Give ``text`` to tmux and, by it, to the terminal: ``tmux``; ``IN_BUFFER`` if no terminal can take it.

    ``""`` if tmux refused: it is gone, or older than 3.2 and knows no ``-w``. Then its buffer alone
    would not be the user's clipboard either, and OSC 52 has the better chance.
    """
    if _run_tmux(["load-buffer", "-w", "-"], env, deadline, text.encode("utf-8")) is None:
        return ""
    # load-buffer succeeds on a detached session, and on a terminal without a clipboard, too.
    client = _run_tmux(["display-message", "-p", "#{client_name}"], env, deadline)
    capabilities = _run_tmux(["show-messages", "-T"], env, deadline)
    if client and capabilities and _takes_clipboard(client.strip(), capabilities):
        return "tmux"
    return IN_BUFFER


def attached_over_ssh(env: Mapping[str, str], deadline: float) -> bool | None:
    """Whether the terminal attached last came over ssh, which a pane's environment can't tell.

    None for unknown.
    """
    answer = _run_tmux(["show-environment", "SSH_CONNECTION"], env, deadline)
    if answer is None:
        return None
    return answer.startswith("SSH_CONNECTION=")


def _takes_clipboard(client: str, capabilities: str) -> bool:
    """Whether ``client`` has the capability Ms, in tmux's list: a heading for each terminal, then its capabilities."""
    ours = False
    for line in capabilities.split("\n"):
        if line.startswith("Terminal "):
            ours = f" for {client}," in line
        elif ours and " Ms: " in line:
            return "[missing]" not in line
    return False


def _run_tmux(
    arguments: list[str], env: Mapping[str, str], deadline: float, data: bytes = b""
) -> str | None:
    out = subprocesses.output_of_command(["tmux", *arguments], env, deadline, data)
    if out is None:
        return None
    return out.decode("utf-8", "replace")
