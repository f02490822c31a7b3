"""Open the user's editor on a text, in a private folder that is removed unless the user's work would be lost."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from resume_hooks.errors import ResumeHooksError, UsageError
from resume_hooks.paths import read_regular

USUAL = ("vi", "nano")
NAME = "handoff.md"
LARGEST = 4 * 1024 * 1024  # bytes that are read of what was saved
_REMEDY = "Name your editor: EDITOR=nano resume-hooks handoff --edit"


def require_terminal() -> None:
    """UsageError where no editor could be used."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--edit needs a terminal", "Leave --edit out, or run it in a terminal.")


@contextlib.contextmanager
def edit(text: str) -> Iterator[str]:
    """Yield what the user made of ``text``; kept if the block fails. ResumeHooksError without editor or room."""
    try:
        folder = tempfile.mkdtemp(prefix="resume-hooks-")
    except OSError as error:
        raise _no_room(error) from error
    path = os.path.join(folder, NAME)
    keep = False
    try:
        try:
            with open(path, "w", encoding="utf-8", errors="replace") as stream:
                stream.write(text)
        except OSError as error:
            raise _no_room(error) from error
        _run(path)
        found = _read(path)
        try:
            yield found
        except ResumeHooksError as error:
            keep = True
            error.remedy = f"{error.remedy} What you wrote is kept in {path}".strip()
            raise
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)  # with the copies that editors leave beside a file


def _no_room(error: OSError) -> ResumeHooksError:
    return ResumeHooksError(
        f"The text to edit could not be written: {error.strerror}; no session was made",
        "Set TMPDIR to a folder that takes files.",
    )


def _run(path: str) -> None:
    words = _editor()
    # Ctrl+C is the editor's business, as git has it; what it starts gets the usual answer to it again.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        status = subprocess.run([*words, path], check=False).returncode
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise ResumeHooksError(
            f"The editor {words[0]} can't be started: {why}; no session was made", _REMEDY
        ) from error
    finally:
        signal.signal(signal.SIGINT, before)
    if status:
        raise ResumeHooksError(f"The editor {words[0]} ended with an error ({status}), so no session was made")


def _editor() -> list[str]:
    for name in ("VISUAL", "EDITOR"):
        try:
            words = shlex.split(os.environ.get(name, ""))
        except ValueError as error:
            raise ResumeHooksError(f"{name} can't be understood: {error}; no session was made", _REMEDY) from error
        if words:
            return words
    found = next(filter(None, map(shutil.which, USUAL)), None)
    if found is None:
        usual = " nor ".join(USUAL)
        raise ResumeHooksError(
            f"There is no editor: neither VISUAL nor EDITOR is set, and neither {usual} is there", _REMEDY
        )
    return [found]


def _read(path: str) -> str:
    try:
        return read_regular(path, LARGEST).decode("utf-8-sig", "replace")
    except FileNotFoundError:
        return ""  # removed in the editor: that cancels too
    except OSError as error:
        raise ResumeHooksError(f"What you saved can't be read: {error.strerror}; no session was made") from error
