"""Copy text to the clipboard of the user at the keyboard, and report the method.

Invariant: "copied" is reported only for text that was read back or that tmux accepted; anything
unconfirmed is "sent". Nothing runs longer than ``LIMIT`` except the program that holds the
selection. Standard library, Python 3.9.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from resume_hooks.system.copy_result import NOT_COPIED, Copied

if TYPE_CHECKING:
    from resume_hooks.system.clipboard_tools import Tool

LIMIT = 2.0  # the time limit in seconds for all methods together
RESERVE = 0.6  # seconds reserved for tmux and the terminal in case a clipboard program hangs

WAYS = ("auto", "pyperclip", "native", "tmux", "osc52", "none")


OSC_52 = "OSC 52"


def copy(text: str, *, way: str = "auto", environ: Mapping[str, str] | None = None) -> Copied:
    """Copy ``text`` by the first method that works, or by ``way`` alone (one of WAYS, else ValueError).

    ``environ`` (default: this process's) determines the available methods, and is the programs'
    environment. Missing programs never raise. Empty text, and text with lone surrogates, which no
    clipboard accepts, is not copied.
    """
    if way not in WAYS:
        raise ValueError(f"way is one of {', '.join(WAYS)}, not {way!r}")
    try:
        held = bool(text.encode("utf-8"))
    except UnicodeEncodeError:
        held = False
    if way == "none" or not held:
        return NOT_COPIED
    env = dict(os.environ if environ is None else environ)
    deadline = time.monotonic() + LIMIT
    if way == "auto":
        done = _copy_by_program(text, env, deadline - RESERVE, way)
        return (
            done
            or _copy_by_tmux(text, env, deadline)
            or _copy_by_terminal(text, env, deadline)
            or NOT_COPIED
        )
    attempt = {"tmux": _copy_by_tmux, "osc52": _copy_by_terminal}.get(way)
    if attempt:
        done = attempt(text, env, deadline)
    else:
        done = _copy_by_program(text, env, deadline, way)
    return done or NOT_COPIED


def clipboard_ways(environ: Mapping[str, str] | None = None) -> list[str]:
    """Return the names of the methods that ``copy`` would try here, in order, without starting a program."""
    from resume_hooks.system import terminal  # imported late, as below

    env = dict(os.environ if environ is None else environ)
    found = []
    for tool in _tools_in_reach(env, time.monotonic() + LIMIT):
        found.append(tool.name)
    if env.get("TMUX"):
        found.append("tmux")
    if terminal.osc52("-", env) and terminal.terminal_device():
        found.append("the terminal (OSC 52)")
    return found


# Each method is imported on first use: cards import Copied alone, and a method costs 10 to 20 ms.


def _copy_by_program(text: str, env: Mapping[str, str], deadline: float, way: str) -> Copied | None:
    """Copy to this machine's clipboard; ``auto`` first checks whether the user sits at this machine."""
    from resume_hooks.system import clipboard_tools

    if way == "auto":
        found = _tools_in_reach(env, deadline)
    else:
        found = clipboard_tools.available_tools(env)
    if found and way != "native":
        pyperclip = clipboard_tools.import_pyperclip()
    else:
        pyperclip = None
    if way == "pyperclip" and pyperclip is None:
        return None
    done = clipboard_tools.copy_by_tools(text, found, pyperclip, env, deadline)
    return done and Copied("copied" if done[1] else "sent", done[0])


def _tools_in_reach(env: Mapping[str, str], deadline: float) -> list[Tool]:
    from resume_hooks.system import clipboard_tools

    found = clipboard_tools.available_tools(env)
    if found and _is_far_away(env, deadline):
        return clipboard_tools.available_tools(env, far_away=True)
    return found


def _is_far_away(env: Mapping[str, str], deadline: float) -> bool:
    """Check whether the user sits at another machine.

    Inside tmux ask tmux, because the pane may have been opened from elsewhere.
    """
    if env.get("TMUX"):
        from resume_hooks.system import terminal

        answer = terminal.attached_over_ssh(env, deadline)
        if answer is not None:
            return answer
    return bool(env.get("SSH_CONNECTION") or env.get("SSH_TTY"))


def _copy_by_tmux(text: str, env: Mapping[str, str], deadline: float) -> Copied | None:
    if not env.get("TMUX"):
        return None
    from resume_hooks.system import terminal

    via = terminal.load_tmux_buffer(text, env, deadline)
    if via:
        return Copied("copied", via)
    return None


def _copy_by_terminal(text: str, env: Mapping[str, str], deadline: float) -> Copied | None:
    from resume_hooks.system import terminal

    sequence = terminal.osc52(text, env)
    device = terminal.terminal_device() if sequence else None
    sent = device is not None and terminal.send(sequence, device, deadline)
    if sent:
        return Copied("sent", OSC_52)
    return None
