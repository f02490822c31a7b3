"""Copy text to the clipboard of the user at the keyboard, and report the method.

Invariant: "copied" is reported only for text that was read back or that tmux accepted; anything
unconfirmed is "sent". Nothing runs longer than ``COPY_TIMEOUT_SECONDS`` except the program that
owns the selection. Standard library, Python 3.9.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from resume_hooks.system.copy_result import NOT_COPIED, CopyResult

if TYPE_CHECKING:
    from resume_hooks.system.clipboard_tools import Tool

COPY_TIMEOUT_SECONDS = 2.0  # the time limit in seconds for all methods together
# the number of seconds reserved for tmux and the terminal if a clipboard program hangs
TERMINAL_RESERVE_SECONDS = 0.6

COPY_METHODS = ("auto", "pyperclip", "native", "tmux", "osc52", "none")


OSC_52 = "OSC 52"


def copy_text(
    text: str, *, method: str = "auto", environ: Mapping[str, str] | None = None
) -> CopyResult:
    """Copy ``text`` by the first method that works, or only by ``method`` (one of ``COPY_METHODS``, else ValueError).

    ``environ`` (default: that of this process) determines the available methods, and is the
    programs' environment. A missing program never raises. Empty text is not copied. Text with lone
    surrogates is not copied either, because no clipboard accepts it.
    """
    if method not in COPY_METHODS:
        raise ValueError(f"method must be one of {', '.join(COPY_METHODS)}, not {method!r}")
    try:
        is_copyable = bool(text.encode("utf-8"))
    except UnicodeEncodeError:
        is_copyable = False
    if method == "none" or not is_copyable:
        return NOT_COPIED
    env = dict(os.environ if environ is None else environ)
    deadline = time.monotonic() + COPY_TIMEOUT_SECONDS
    if method == "auto":
        result = _copy_with_programs(text, env, deadline - TERMINAL_RESERVE_SECONDS, method)
        return (
            result
            or _copy_with_tmux(text, env, deadline)
            or _copy_with_terminal(text, env, deadline)
            or NOT_COPIED
        )
    attempt = {"tmux": _copy_with_tmux, "osc52": _copy_with_terminal}.get(method)
    if attempt:
        result = attempt(text, env, deadline)
    else:
        result = _copy_with_programs(text, env, deadline, method)
    return result or NOT_COPIED


def list_clipboard_methods(environ: Mapping[str, str] | None = None) -> list[str]:
    """Return the names of the methods that ``copy_text`` would try here, in order, without starting a program."""
    from resume_hooks.system import terminal  # imported late, as explained below

    env = dict(os.environ if environ is None else environ)
    names = []
    for tool in _list_reachable_tools(env, time.monotonic() + COPY_TIMEOUT_SECONDS):
        names.append(tool.name)
    if env.get("TMUX"):
        names.append("tmux")
    if terminal.build_osc52_sequence("-", env) and terminal.find_terminal_device():
        names.append("the terminal (OSC 52)")
    return names


# Each method is imported on first use, because the import takes 10 to 20 ms. Cards import only
# ``CopyResult``.


def _copy_with_programs(
    text: str, env: Mapping[str, str], deadline: float, method: str
) -> CopyResult | None:
    """Copy to this machine's clipboard. With ``auto``, first check whether the user sits at this machine."""
    from resume_hooks.system import clipboard_tools

    if method == "auto":
        tools = _list_reachable_tools(env, deadline)
    else:
        tools = clipboard_tools.list_available_tools(env)
    if tools and method != "native":
        pyperclip = clipboard_tools.import_pyperclip()
    else:
        pyperclip = None
    if method == "pyperclip" and pyperclip is None:
        return None
    copied = clipboard_tools.copy_with_tools(text, tools, pyperclip, env, deadline)
    return copied and CopyResult("copied" if copied[1] else "sent", copied[0])


def _list_reachable_tools(env: Mapping[str, str], deadline: float) -> list[Tool]:
    from resume_hooks.system import clipboard_tools

    tools = clipboard_tools.list_available_tools(env)
    if tools and _is_remote_user(env, deadline):
        return clipboard_tools.list_available_tools(env, is_remote=True)
    return tools


def _is_remote_user(env: Mapping[str, str], deadline: float) -> bool:
    """Check whether the user sits at another machine.

    Inside tmux, ask tmux, because the pane may have been opened from another machine.
    """
    if env.get("TMUX"):
        from resume_hooks.system import terminal

        answer = terminal.is_attached_over_ssh(env, deadline)
        if answer is not None:
            return answer
    return bool(env.get("SSH_CONNECTION") or env.get("SSH_TTY"))


def _copy_with_tmux(text: str, env: Mapping[str, str], deadline: float) -> CopyResult | None:
    if not env.get("TMUX"):
        return None
    from resume_hooks.system import terminal

    method_name = terminal.load_tmux_buffer(text, env, deadline)
    if method_name:
        return CopyResult("copied", method_name)
    return None


def _copy_with_terminal(text: str, env: Mapping[str, str], deadline: float) -> CopyResult | None:
    from resume_hooks.system import terminal

    sequence = terminal.build_osc52_sequence(text, env)
    device = terminal.find_terminal_device() if sequence else None
    was_sent = device is not None and terminal.send_sequence(sequence, device, deadline)
    if was_sent:
        return CopyResult("sent", OSC_52)
    return None
