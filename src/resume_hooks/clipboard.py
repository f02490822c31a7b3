"""The clipboard, made safe: it never waits for the owner of the selection, and never claims a copy that did not happen.

xclip and wl-copy stay alive holding whatever they inherit, so they run below a child process of their own whose
output is closed and whose time is limited; a copy counts as one once the same text was read back.
Standard library, Python 3.9, but for pyperclip, which is used where it is installed.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple, NoReturn, Optional

from resume_hooks import terminal

LIMIT = 2.0
"""Seconds that one way may take."""

_COMMANDS = {
    "pbcopy": (["pbcopy"], ["pbpaste"]),
    "wl-copy": (["wl-copy"], ["wl-paste", "-n", "-t", "text"]),
    "xclip": (["xclip", "-selection", "clipboard"], ["xclip", "-selection", "clipboard", "-o"]),
    "xsel": (["xsel", "-b", "-i"], ["xsel", "-b", "-o"]),
    "clip.exe": (["clip.exe"], []),
}
"""What sets the clipboard on each platform and what reads it back; WSL takes a second to read, so it isn't."""

_PYPERCLIP = {
    "pbcopy": "init_osx_pbcopy_clipboard",
    "wl-copy": "init_wl_clipboard",
    "xclip": "init_xclip_clipboard",
    "xsel": "init_xsel_clipboard",
    "clip.exe": "init_wsl_clipboard",
}
"""pyperclip's name for each; chosen by us, since its own choice may load Qt, and waits on nothing it should not."""


class Copied(NamedTuple):
    """How a copy went: ``how`` is copied, sent or not copied; ``via`` names the way."""

    how: str
    via: str = ""

    def sentence(self, what: str) -> str:
        """One clause for a message, such as ``session id copied (xclip)``."""
        if self.how == "copied":
            return f"{what} copied ({self.via})"
        if self.how == "sent":
            where = "the Windows clipboard" if self.via == "clip.exe" else "your terminal"
            return f"{what} sent to {where}, unconfirmed ({self.via})"
        return f"{what} not copied: here it is"


NOT_COPIED = Copied("not copied")


def copy(text: str, *, way: str = "auto", environ: Optional[Mapping[str, str]] = None) -> Copied:
    """Put ``text`` on the user's clipboard by the first way that works. Never raises.

    ``way``: auto, or one of pyperclip, native, tmux, osc52, none.
    """
    env = dict(os.environ if environ is None else environ)
    order = _order(env) if way == "auto" else [way]
    for name in order:
        attempt = _WAYS.get(name)
        copied = attempt(text, env) if attempt else NOT_COPIED
        if copied.how != "not copied":
            return copied
    return NOT_COPIED


def ways(environ: Optional[Mapping[str, str]] = None) -> list[str]:
    """The ways that ``copy`` would try here, for people."""
    env = dict(os.environ if environ is None else environ)
    tool = _tool(env)
    named = {"pyperclip": tool or "", "native": tool or "", "tmux": "tmux", "osc52": "the terminal (OSC 52)"}
    usable = {"tmux": bool(env.get("TMUX")), "osc52": terminal.terminal_device() is not None}
    return list(dict.fromkeys(named[name] for name in _order(env) if usable.get(name, bool(tool))))


def _order(env: dict[str, str]) -> list[str]:
    """Over SSH without a forwarded display this machine's clipboard is not the user's; the terminal reaches theirs."""
    remote = env.get("SSH_CONNECTION") or env.get("SSH_TTY")
    display = env.get("DISPLAY") or env.get("WAYLAND_DISPLAY")
    local = [] if remote and not display else ["pyperclip", "native"]
    return [*local, "tmux", "osc52"]


def _tool(env: dict[str, str]) -> Optional[str]:
    """The command that reaches this desktop's clipboard, if it is installed."""
    if sys.platform == "darwin":
        wanted = ["pbcopy"]
    else:
        wanted = ["wl-copy"] if env.get("WAYLAND_DISPLAY") else []
        wanted += ["xclip", "xsel"] if env.get("DISPLAY") else []
        wanted += ["clip.exe"] if env.get("WSL_DISTRO_NAME") else []
    return next((name for name in wanted if shutil.which(name, path=env.get("PATH"))), None)


def _by_pyperclip(text: str, env: dict[str, str]) -> Copied:
    tool = _tool(env)
    if tool is None:
        return NOT_COPIED

    def work() -> bool:
        # Loaded in the child alone: a machine without a desktop never pays for it.
        import pyperclip  # noqa: PLC0415

        put, get = getattr(pyperclip, _PYPERCLIP[tool])()
        put(text)
        return not _COMMANDS[tool][1] or get() == text

    return _in_child(tool, env, work)


def _by_command(text: str, env: dict[str, str]) -> Copied:
    tool = _tool(env)
    if tool is None:
        return NOT_COPIED
    put, get = _COMMANDS[tool]

    def work() -> bool:
        raw = text.encode("utf-8", "replace")
        if subprocess.run(put, input=raw, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
            return False
        return not get or subprocess.run(get, stdout=subprocess.PIPE, check=False).stdout == raw

    return _in_child(tool, env, work)


def _by_tmux(text: str, env: dict[str, str]) -> Copied:
    if not env.get("TMUX") or not shutil.which("tmux", path=env.get("PATH")):
        return NOT_COPIED
    try:
        done = subprocess.run(
            ["tmux", "load-buffer", "-w", "-"],
            input=text.encode("utf-8", "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=env,
            timeout=LIMIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return NOT_COPIED
    return Copied("copied", "tmux") if done.returncode == 0 else NOT_COPIED


def _by_terminal(text: str, env: dict[str, str]) -> Copied:
    return Copied("sent", "OSC 52") if terminal.send(text, env) else NOT_COPIED


_WAYS: dict[str, Callable[[str, dict[str, str]], Copied]] = {
    "pyperclip": _by_pyperclip,
    "native": _by_command,
    "tmux": _by_tmux,
    "osc52": _by_terminal,
}


def _in_child(tool: str, env: dict[str, str], work: Callable[[], bool]) -> Copied:
    """Run ``work`` in a child with closed output and a time limit; it ends with what it started unless it copied."""
    if not hasattr(os, "fork"):
        return NOT_COPIED
    report, told = os.pipe()  # not inherited by what the child executes, so its end of file is the child's own
    child = os.fork()
    if child == 0:
        os.close(report)
        _child(told, env, work)
    os.close(told)
    ready = select.select([report], [], [], LIMIT)[0]
    copied = bool(ready) and os.read(report, 1) == b"y"
    os.close(report)
    if not copied:
        with contextlib.suppress(OSError):
            os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, 0)
    if not copied:
        return NOT_COPIED
    return Copied("copied", tool) if _COMMANDS[tool][1] else Copied("sent", tool)


def _child(told: int, env: dict[str, str], work: Callable[[], bool]) -> NoReturn:
    """The child's whole life: alone in its process group, silent, without a byte of the parent's buffers."""
    try:
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        os.environ.clear()
        os.environ.update(env)
        os.write(told, b"y" if work() else b"n")
    finally:
        os._exit(0)
