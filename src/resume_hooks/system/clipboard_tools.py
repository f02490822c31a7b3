"""Run the clipboard programs of each platform, through pyperclip if it is installed, else directly.

This module chooses the program itself, because pyperclip may load Qt and does not consider ssh. A
copy is confirmed only by reading the same text back, because pyperclip does not check the program's
exit status. This module needs only the standard library and Python 3.9.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import ModuleType
from typing import NamedTuple

from resume_hooks.system import programs, subprocesses

# The number of seconds that the clipboard may take to contain the text after a program has exited.
CLIPBOARD_SETTLE_SECONDS = 0.3


class Tool(NamedTuple):
    """A clipboard program, with its commands to copy a text and to read it back.

    ``read_command`` is empty if reading would be slow. ``pyperclip_name`` is the program's name in
    pyperclip.
    """

    name: str
    copy_command: tuple[str, ...]
    read_command: tuple[str, ...] = ()
    pyperclip_name: str = ""
    encoding: str = "utf-8"
    locale: str = ""


class ToolCopyResult(NamedTuple):
    """A copy that a clipboard program made.

    ``is_confirmed`` means that the same text was read back from the clipboard.
    """

    tool_name: str
    is_confirmed: bool


# Without a UTF-8 locale, pbcopy assumes a different encoding. pbpaste makes the same error in the
# other direction, so reading the text back would not reveal the error.
PBCOPY_TOOL = Tool("pbcopy", ("pbcopy",), ("pbpaste",), "pbcopy", locale="en_US.UTF-8")
WL_COPY_TOOL = Tool("wl-copy", ("wl-copy",), ("wl-paste", "-n", "-t", "text"), "wl-clipboard")
XCLIP_TOOL = Tool(
    "xclip",
    ("xclip", "-selection", "clipboard"),
    ("xclip", "-selection", "clipboard", "-o"),
    "xclip",
)
XSEL_TOOL = Tool("xsel", ("xsel", "-b", "-i"), ("xsel", "-b", "-o"), "xsel")
# The text is not read back from these programs, because that would start PowerShell, which takes a
# second or more.
CLIP_EXE_TOOL = Tool("clip.exe", ("clip.exe",), encoding="utf-16-le")
WINDOWS_CLIP_TOOL = Tool("Windows", ("clip",), pyperclip_name="windows", encoding="utf-16-le")


def list_available_tools(env: Mapping[str, str], *, is_remote: bool = False) -> list[Tool]:
    """Return the clipboard programs that are available, best first.

    If ``is_remote``, return only programs that reach the clipboard of the user's own machine,
    through ssh or waypipe.
    """
    tools = []
    for tool in _iterate_tools(env, is_remote):
        if programs.find_program(tool.copy_command[0], env):
            tools.append(tool)
    return tools


def _iterate_tools(env: Mapping[str, str], is_remote: bool) -> Iterator[Tool]:
    if not is_remote:
        if sys.platform == "darwin":
            yield PBCOPY_TOOL
        if os.name == "nt":
            yield WINDOWS_CLIP_TOOL
        elif "WSL_DISTRO_NAME" in env or "microsoft" in os.uname().release.lower():
            yield CLIP_EXE_TOOL
    wayland, display = env.get("WAYLAND_DISPLAY", ""), env.get("DISPLAY", "")
    # A compositor on this machine has a socket named wayland-0. waypipe adds letters to the name.
    if wayland and not (is_remote and wayland.rstrip("0123456789") == "wayland-"):
        yield WL_COPY_TOOL
    # ssh -X sets DISPLAY to localhost:10.0. A display without a host belongs to this machine.
    if display and not (is_remote and display.startswith((":", "unix:", "/"))):
        yield XCLIP_TOOL
        yield XSEL_TOOL


def import_pyperclip() -> ModuleType | None:
    """Import pyperclip, or return None if the engine's packages are not installed."""
    try:
        # Imported here because the import takes 17 ms and only a copy needs it.
        import pyperclip
    except ImportError:
        return None
    module: ModuleType = pyperclip
    return module


def copy_with_tools(
    text: str,
    tools: Iterable[Tool],
    pyperclip: ModuleType | None,
    env: Mapping[str, str],
    deadline: float,
) -> ToolCopyResult | None:
    """Copy ``text`` to the clipboard with the first of ``tools`` that succeeds.

    If the module ``pyperclip`` is given, the tools that it knows are run through it. Return None if
    no program succeeded before ``deadline``.
    """
    for tool in tools:
        if time.monotonic() >= deadline:
            break
        environment = dict(env, LC_ALL=tool.locale) if tool.locale else env
        if pyperclip and tool.pyperclip_name:
            copy = _make_pyperclip_copy_function(tool, text, pyperclip)
        else:
            copy = _make_process_copy_function(tool, text, environment)
        if not subprocesses.run_with_deadline(deadline, copy, environment):
            continue
        if tool.read_command:
            is_confirmed = _clipboard_contains(
                tool, text.encode(tool.encoding), environment, deadline
            )
        else:
            is_confirmed = None
        if is_confirmed is not False:
            return ToolCopyResult(tool.name, bool(is_confirmed))
    return None


def _make_pyperclip_copy_function(
    tool: Tool, text: str, pyperclip: ModuleType
) -> Callable[[], bool]:
    def copy_with_pyperclip() -> bool:
        pyperclip.set_clipboard(tool.pyperclip_name)
        pyperclip.copy(text)
        return True

    return copy_with_pyperclip


def _make_process_copy_function(
    tool: Tool, text: str, env: Mapping[str, str]
) -> Callable[[], bool]:
    # The import takes 9 ms unless pyperclip has already imported the module. It is done before the
    # fork, because the time after the fork is limited.
    import subprocess

    def copy_with_process() -> bool:
        with programs.start_program(tool.copy_command, env, stdin=subprocess.PIPE) as process:
            process.communicate(text.encode(tool.encoding))
        return process.returncode == 0

    return copy_with_process


def _clipboard_contains(
    tool: Tool, data: bytes, env: Mapping[str, str], deadline: float
) -> bool | None:
    """Check whether the clipboard contains ``data``. Return None if the program does not answer.

    xsel and wl-copy exit shortly before the clipboard has the text, so the check is repeated for
    ``CLIPBOARD_SETTLE_SECONDS``.
    """
    settle_deadline = time.monotonic() + CLIPBOARD_SETTLE_SECONDS
    while subprocesses.run_and_read_output(tool.read_command, env, deadline) != data:
        if time.monotonic() >= deadline:
            return None
        if time.monotonic() >= settle_deadline:
            return False
        time.sleep(0.02)
    return True
