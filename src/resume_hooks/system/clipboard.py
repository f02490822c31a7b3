"""Copy a text to the clipboard of the user at the keyboard, and report the method.

The result is "copied" only if the text was read back or tmux accepted it. If a method succeeded
without this confirmation, the result is "sent". No program runs longer than
``COPY_TIMEOUT_SECONDS``, except a program that must run to keep the text on the clipboard. This
module needs only the standard library and Python 3.9.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from resume_hooks.system.copy_result import NOT_COPIED, CopyResult

if TYPE_CHECKING:
    from resume_hooks.system.clipboard_tools import Tool

COPY_TIMEOUT_SECONDS = 2.0  # time limit in seconds for all methods together
# Number of seconds that are reserved for tmux and the terminal, in case a clipboard program hangs.
RESERVED_TERMINAL_SECONDS = 0.6

CLIPBOARD_METHODS = ("auto", "pyperclip", "native", "tmux", "osc52", "none")


OSC_52_METHOD_NAME = "OSC 52"


def copy_text(
    text: str, *, method: str = "auto", environ: Mapping[str, str] | None = None
) -> CopyResult:
    """Copy ``text`` by the first method that works, or only by ``method``.

    ``environ`` (default: that of this process) determines which methods are available, and is the
    environment of the programs. The result is ``NOT_COPIED`` if no method works, if a program is
    missing, or if the text is empty or contains unpaired surrogates, which no clipboard accepts.
    Raise ValueError if ``method`` is not one of ``CLIPBOARD_METHODS``.
    """
    if method not in CLIPBOARD_METHODS:
        raise ValueError(f"method must be one of {', '.join(CLIPBOARD_METHODS)}, not {method!r}")
    try:
        is_copyable = bool(text.encode("utf-8"))
    except UnicodeEncodeError:
        is_copyable = False
    if method == "none" or not is_copyable:
        return NOT_COPIED
    env = dict(os.environ if environ is None else environ)
    deadline = time.monotonic() + COPY_TIMEOUT_SECONDS
    if method == "auto":
        result = _copy_with_programs(text, env, deadline - RESERVED_TERMINAL_SECONDS, method)
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
    """Return the names of the methods that ``copy_text`` would try, in order, without copying a text."""
    from resume_hooks.system import terminal  # Imported here because only some commands need it.

    env = dict(os.environ if environ is None else environ)
    names = []
    for tool in _list_reachable_tools(env, time.monotonic() + COPY_TIMEOUT_SECONDS):
        names.append(tool.name)
    if env.get("TMUX"):
        names.append("tmux")
    if terminal.build_osc52_sequence("-", env) and terminal.find_terminal_device():
        names.append("the terminal (OSC 52)")
    return names


# The methods are imported only when they are used, because each import takes 10 to 20 ms. Code that
# only shows a result needs just ``CopyResult``, which is quick to import.


def _copy_with_programs(
    text: str, env: Mapping[str, str], deadline: float, method: str
) -> CopyResult | None:
    """Copy to this machine's clipboard with a clipboard program.

    With the method "auto", do not use this machine's own clipboard if the user sits at another
    machine.
    """
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
    return copied and CopyResult("copied" if copied.is_confirmed else "sent", copied.tool_name)


def _list_reachable_tools(env: Mapping[str, str], deadline: float) -> list[Tool]:
    from resume_hooks.system import clipboard_tools

    tools = clipboard_tools.list_available_tools(env)
    if tools and _is_remote_user(env, deadline):
        return clipboard_tools.list_available_tools(env, is_remote=True)
    return tools


def _is_remote_user(env: Mapping[str, str], deadline: float) -> bool:
    """Check whether the user sits at another machine.

    Inside tmux, ask tmux, because the user may have attached to it from another machine.
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
        return CopyResult("sent", OSC_52_METHOD_NAME)
    return None
