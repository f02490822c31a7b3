"""Commands for the user to type: ours, by name or through the launcher in the plugin's folder, and the client's."""

from __future__ import annotations

import os
import re
import shlex
import sys

from resume_hooks.system.text import plain_line

_ROOT = os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
)
_ENGINE = os.path.join("hooks", "engine")  # the launcher

_CODEX_VARIABLE = "CODEX_THREAD_ID"
_OUR_COMMAND = re.compile(
    r"(?:\A|(?<=: )|(?<=\brun )|(?<=\bwith )|(?<=\bsee )|(?<=\bSee ))resume-hooks (?=[a-z-])"
)
"""A command of ours in a remedy. Elsewhere ``resume-hooks`` is only the program's name."""


def shell_command(words: str) -> str:
    """Return the shell command that runs our program with the arguments ``words``.

    Without the pip package ``resume-hooks`` is not on PATH.

    In the shell of Claude Code's model, that name is a function (see hooks/session-start), which
    the plugin permits.
    """
    if not is_model_shell():
        return _launcher_command(words)
    if _CODEX_VARIABLE in os.environ:
        return lasting_shell_command(words)
    return f"resume-hooks {words}"


def lasting_shell_command(words: str) -> str:
    """Return the command for a text that Codex's model may read after an update, which removes the current folder."""
    versions = os.path.dirname(_ROOT)
    is_copy = versions.split(os.sep)[-4:-2] == ["plugins", "cache"]
    if not is_copy or not _needs_launcher():
        return _launcher_command(words)
    return f"sh {shlex.quote(versions)}/*/{_ENGINE} {words}"


def format_remedy(remedy: str) -> str:
    """Format each command in a remedy by ``shell_command``."""
    return _OUR_COMMAND.sub(lambda _: shell_command(""), remedy)


def is_model_shell() -> bool:
    """Check whether this process runs in the shell of a model, Claude Code's or Codex's."""
    return ("CLAUDECODE" in os.environ or _CODEX_VARIABLE in os.environ) and not sys.stdout.isatty()


def _launcher_command(words: str) -> str:
    if _needs_launcher():
        return f"sh {shlex.quote(os.path.join(_ROOT, _ENGINE))} {words}"
    return f"resume-hooks {words}"


def _needs_launcher() -> bool:
    return not _is_on_path() and os.path.isfile(os.path.join(_ROOT, _ENGINE))


def _is_on_path() -> bool:
    # Importing shutil for ``which`` would delay a prompt by 5 ms.
    folders = os.environ.get("PATH", "").split(os.pathsep)
    programs = (
        os.path.join(folder, f"resume-hooks{'.exe' if os.name == 'nt' else ''}")
        for folder in folders
    )
    return any(os.path.isfile(program) and os.access(program, os.X_OK) for program in programs)


def resume_command(folder: str, session_id: str) -> str:
    """Return the shell command that resumes a session in the session's own folder."""
    return f"cd {quote_word(folder)} && claude --resume {session_id}"


def quote_word(word: str) -> str:
    """Quote ``word`` for a shell; use ``$'...'``, which bash, zsh and ksh support, for invisible characters."""
    if plain_line(word) == word:
        return shlex.quote(word)
    try:
        # restores the bytes of a path that is not UTF-8
        raw = word.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raw = word.encode("utf-8", "surrogatepass")
    escaped = (
        chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\{byte:03o}" for byte in raw
    )
    return "$'" + "".join(escaped) + "'"
