"""The commands that a user can type: ours, by name or by the launcher in the plugin's folder, and the client's."""

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

_CODEX = "CODEX_THREAD_ID"
_NAMED = re.compile(
    r"(?:\A|(?<=: )|(?<=\brun )|(?<=\bwith )|(?<=\bsee )|(?<=\bSee ))resume-hooks (?=[a-z-])"
)
"""Where a remedy names a command of ours; elsewhere our name is that of the program."""


def in_shell(words: str) -> str:
    """The shell command that runs us with ``words``.

    The plugin alone puts no ``resume-hooks`` on PATH.

    To Claude Code's model that name is a function of its shell (see hooks/session-start); the
    plugin lets it through.
    """
    if not is_model():
        return _in_any_shell(words)
    if _CODEX in os.environ:
        return after_updates(words)
    return f"resume-hooks {words}"


def after_updates(words: str) -> str:
    """The same in a text that Codex's model may read later: an update removes the folder that it was copied to."""
    versions = os.path.dirname(_ROOT)
    is_copy = versions.split(os.sep)[-4:-2] == ["plugins", "cache"]
    if not is_copy or not _needs_launcher():
        return _in_any_shell(words)
    return f"sh {shlex.quote(versions)}/*/{_ENGINE} {words}"


def with_shell_commands(remedy: str) -> str:
    """A remedy with each of its commands formatted by ``in_shell``."""
    return _NAMED.sub(lambda _: in_shell(""), remedy)


def is_model() -> bool:
    """Whether it is a model's shell that runs us, Claude Code's or Codex's."""
    return ("CLAUDECODE" in os.environ or _CODEX in os.environ) and not sys.stdout.isatty()


def _in_any_shell(words: str) -> str:
    if _needs_launcher():
        return f"sh {shlex.quote(os.path.join(_ROOT, _ENGINE))} {words}"
    return f"resume-hooks {words}"


def _needs_launcher() -> bool:
    return not _is_on_path() and os.path.isfile(os.path.join(_ROOT, _ENGINE))


def _is_on_path() -> bool:
    # shutil.which would cost a prompt 5 ms.
    folders = os.environ.get("PATH", "").split(os.pathsep)
    programs = (
        os.path.join(folder, f"resume-hooks{'.exe' if os.name == 'nt' else ''}")
        for folder in folders
    )
    return any(os.path.isfile(program) and os.access(program, os.X_OK) for program in programs)


def resume_command(folder: str, session_id: str) -> str:
    """The shell command that starts the client on a session, in the session's own folder."""
    return f"cd {quote_word(folder)} && claude --resume {session_id}"


def quote_word(word: str) -> str:
    """``word`` quoted for a shell, as ``$'...'`` if a screen shows it not, which bash, zsh and ksh read."""
    if plain_line(word) == word:
        return shlex.quote(word)
    try:
        raw = word.encode("utf-8", "surrogateescape")  # as paths hold bytes that are no UTF-8
    except UnicodeEncodeError:
        raw = word.encode("utf-8", "surrogatepass")
    shown = (
        chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\{byte:03o}" for byte in raw
    )
    return "$'" + "".join(shown) + "'"
