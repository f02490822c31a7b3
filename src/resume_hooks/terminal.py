"""The user's terminal: found above a hook that has none, and asked to set the clipboard (OSC 52).

Standard library, Python 3.9. Only a character device that belongs to this user is ever written to.
"""

from __future__ import annotations

import base64
import os
import select
import stat
import time
from collections.abc import Mapping
from typing import Optional

from resume_hooks.processes import ancestors

MAX_ENCODED = 74_994
"""Bytes of base64 that terminals commonly accept in one OSC 52."""

SCREEN_CHUNK = 700
"""Bytes that GNU screen passes through in one string (its limit is 768)."""

WRITE_LIMIT = 0.5
"""Seconds that a terminal may take to accept the sequence."""

_PTS_MAJORS = range(136, 144)


def osc52(text: str, environ: Mapping[str, str]) -> bytes:
    """The sequence that sets the clipboard, wrapped for the multiplexer in between; empty where it is too long."""
    encoded = base64.b64encode(text.encode("utf-8", "replace"))
    if len(encoded) > MAX_ENCODED:
        return b""
    sequence = b"\x1b]52;c;" + encoded + b"\x07"
    if environ.get("TMUX"):
        # The first form is taken with `set-clipboard on`, the second handed through with `allow-passthrough on`.
        return sequence + b"\x1bPtmux;" + sequence.replace(b"\x1b", b"\x1b\x1b") + b"\x1b\\"
    if environ.get("STY"):
        pieces = [sequence[i : i + SCREEN_CHUNK] for i in range(0, len(sequence), SCREEN_CHUNK)]
        return b"".join(b"\x1bP" + piece + b"\x1b\\" for piece in pieces)
    return sequence


def send(text: str, environ: Mapping[str, str]) -> bool:
    """Write the sequence to the user's terminal; true where all of it was taken, which proves no more than that."""
    sequence = osc52(text, environ)
    device = terminal_device() if sequence else None
    if device is None:
        return False
    try:
        descriptor = os.open(device, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return _write_all(descriptor, sequence)
    finally:
        os.close(descriptor)


def terminal_device(pid: Optional[int] = None) -> Optional[str]:
    """The terminal of the nearest process above ``pid`` (default: this one) that has one, if it is this user's."""
    for process in ancestors(pid):
        device = _device(process.tty)
        if device is not None:
            return device if _is_ours(device) else None
    return None


def _device(tty: str) -> Optional[str]:
    """The device file of a terminal: ``tty`` is Linux's device number, or the name that ``ps`` prints."""
    if not tty.lstrip("-").isdigit():
        return None if tty.startswith(("?", "-")) else "/dev/" + tty
    number = int(tty)
    if number <= 0:
        return None
    major = (number >> 8) & 0xFFF
    minor = (number & 0xFF) | ((number >> 12) & 0xFFF00)
    if major in _PTS_MAJORS:
        return f"/dev/pts/{minor + (major - _PTS_MAJORS.start) * 256}"
    return f"/dev/tty{minor}" if major == 4 and minor < 64 else None


def _is_ours(device: str) -> bool:
    try:
        status = os.lstat(device)
    except OSError:
        return False
    return stat.S_ISCHR(status.st_mode) and status.st_uid in (os.geteuid(), os.getuid())


def _write_all(descriptor: int, data: bytes) -> bool:
    end = time.monotonic() + WRITE_LIMIT
    while data:
        left = end - time.monotonic()
        if left <= 0 or not select.select([], [descriptor], [], left)[1]:
            return False
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:
            continue  # full since it was asked; the limit ends the waiting
        except OSError:
            return False
    return True
