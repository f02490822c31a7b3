"""Write commands that the user can type: commands of resume-hooks and of the client.

A command of resume-hooks starts with the program's name, or with the path of the launcher in the
plugin's folder.
"""

from __future__ import annotations

import os
import re
import shlex
import sys

from resume_hooks.system.text import plain_line

_PLUGIN_FOLDER = os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
)
_LAUNCHER_PATH = os.path.join("hooks", "engine")  # the program that starts the engine

_CODEX_THREAD_ID_VARIABLE = "CODEX_THREAD_ID"
_OUR_COMMAND_PATTERN = re.compile(
    r"(?:\A|(?<=: )|(?<=\brun )|(?<=\bwith )|(?<=\bsee )|(?<=\bSee ))resume-hooks (?=[a-z-])"
)
"""Matches the beginning of a resume-hooks command in a remedy. In other positions, the program's
name does not start a command."""


def shell_command(arguments: str) -> str:
    """Return the shell command that runs resume-hooks with these arguments.

    Without the pip package, ``resume-hooks`` is not on PATH, so the command contains the path of
    the launcher. In the shell of Claude Code's model, ``resume-hooks`` is a function (see
    hooks/session-start), and the plugin permits the model to call it.
    """
    if not is_in_model_shell():
        return _launcher_command(arguments)
    if _CODEX_THREAD_ID_VARIABLE in os.environ:
        return lasting_shell_command(arguments)
    return f"resume-hooks {arguments}"


def lasting_shell_command(arguments: str) -> str:
    """Return a shell command that still works after an update of the plugin.

    Codex's model may read a text that contains the command later. Because an update removes the
    current version's folder, the command looks for the folder of any version.
    """
    versions = os.path.dirname(_PLUGIN_FOLDER)
    is_copy = versions.split(os.sep)[-4:-2] == ["plugins", "cache"]
    if not is_copy or not _needs_launcher():
        return _launcher_command(arguments)
    return f"sh {shlex.quote(versions)}/*/{_LAUNCHER_PATH} {arguments}"


def format_remedy(remedy: str) -> str:
    """Return a remedy in which each resume-hooks command has the form that works in the user's shell."""
    return _OUR_COMMAND_PATTERN.sub(lambda _: shell_command(""), remedy)


def is_in_model_shell() -> bool:
    """Check whether this process runs in the shell of Claude Code's or Codex's model."""
    return (
        "CLAUDECODE" in os.environ or _CODEX_THREAD_ID_VARIABLE in os.environ
    ) and not sys.stdout.isatty()


def _launcher_command(arguments: str) -> str:
    if _needs_launcher():
        return f"sh {shlex.quote(os.path.join(_PLUGIN_FOLDER, _LAUNCHER_PATH))} {arguments}"
    return f"resume-hooks {arguments}"


def _needs_launcher() -> bool:
    return not _is_on_path() and os.path.isfile(os.path.join(_PLUGIN_FOLDER, _LAUNCHER_PATH))


def _is_on_path() -> bool:
    # shutil.which is not used, because importing shutil would delay a prompt by 5 ms.
    folders = os.environ.get("PATH", "").split(os.pathsep)
    programs = (
        os.path.join(folder, f"resume-hooks{'.exe' if os.name == 'nt' else ''}")
        for folder in folders
    )
    return any(os.path.isfile(program) and os.access(program, os.X_OK) for program in programs)


def resume_command(folder: str, session_id: str) -> str:
    """Return the shell command that changes to a session's folder and resumes the session."""
    return f"cd {quote_word(folder)} && claude --resume {session_id}"


def quote_word(word: str) -> str:
    """Quote ``word`` for a shell.

    A word with invisible characters is quoted as ``$'...'``, which bash, zsh and ksh understand.
    """
    if plain_line(word) == word:
        return shlex.quote(word)
    try:
        # This restores the original bytes of a path that is not UTF-8.
        raw = word.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = word.encode("utf-8", "surrogatepass")
    escaped = (
        chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\{byte:03o}" for byte in raw
    )
    return "$'" + "".join(escaped) + "'"
