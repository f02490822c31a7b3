"""The input of a trigger that reads a transcript, and the trigger's time limit."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from resume_hooks.errors import (
    NothingToHandOff,
    NothingToRecover,
    NothingToTrim,
    ResumeHooksError,
    SessionNotFound,
    UsageError,
)
from resume_hooks.hooks.triggers import Trigger
from resume_hooks.paths import Where
from resume_hooks.system.invocation import shell_command

if TYPE_CHECKING:
    from resume_hooks.derive.verbs.caller import Caller
    from resume_hooks.sessions.session import Session

ALL_WORD = "--all"  # the first word of a search in every project
# matches a word outside quotes that looks like an option
_OPTION_PATTERN = re.compile(r'"[^"]*"?|(?<!\S)(--[a-z][a-z-]*)')
READING_SECONDS = 3.0  # the time limit for reading in seconds; the clipboard has two more
BUSY_SECONDS = 5.0  # additional seconds for a busy machine

MISSING_TRANSCRIPT_ERRORS: dict[str, tuple[type[ResumeHooksError], str]] = {
    "handoff": (NothingToHandOff, "There is nothing to hand off"),
    "rollover": (NothingToHandOff, "There is nothing to hand off"),
    "trim": (NothingToTrim, "There is nothing to trim"),
    "untrim": (NothingToTrim, "There is nothing to untrim"),
    "recall": (NothingToRecover, "There is nothing to recover"),
    "lineage": (SessionNotFound, "There are no ancestors to show"),
    "fsck": (SessionNotFound, "There is nothing to repair"),
}
"""The error that each trigger raises in a session without a prompt."""


def missing_transcript_error(error: type[ResumeHooksError], words: str) -> ResumeHooksError:
    """Return the error of a trigger if there is no transcript. The message begins with ``words``."""
    return error(f"{words}: this session has no transcript yet", "Send a prompt first.")


class TimeLimitExceeded(ResumeHooksError, code="too-slow"):
    """Raised if the work of a trigger takes longer than a prompt may wait."""

    def __init__(self, message: str, command: str) -> None:
        super().__init__(message, f"In a shell there is no limit: {command}")


@dataclass(frozen=True)
class Request:
    """A trigger and its session.

    ``path`` is the session's transcript, or None if it does not exist yet. ``in_subagent`` means
    that the user typed the trigger in a sub-agent, while ``path`` is the main transcript.
    ``own_model_report`` is the module's report on the session's own model. ``can_wait`` means that
    the module can first show that it is waiting.
    """

    trigger: Trigger
    session_id: str
    path: str | None
    where: Where
    in_subagent: bool = False
    own_model_report: dict[str, Any] | None = None
    can_wait: bool = False

    @property
    def text(self) -> str:
        """The text after the trigger."""
        return self.trigger.text

    @property
    def is_slash(self) -> bool:
        """Whether the user typed the slash form, which empties the input box."""
        return self.trigger.is_slash

    @property
    def typed_name(self) -> str:
        """The trigger as the user typed it."""
        return self.trigger.name(self.trigger.verb)

    @cached_property
    def session(self) -> Session:
        """The session. Without a transcript, raise the verb's own ResumeHooksError."""
        if self.path is None:
            raise missing_transcript_error(*MISSING_TRANSCRIPT_ERRORS[self.trigger.verb])
        from resume_hooks.sessions.session import Session  # a list reads no session

        return Session.open_path(self.path, self.where)

    @property
    def command(self) -> str:
        """The shell command that does the same work."""
        return shell_command(f"{self.trigger.verb} {self.session_id}")

    def caller(self, command: str = "") -> Caller:
        """Return the terms for creating a child.

        After the time limit, the error suggests ``command``, which has no limit.
        """
        from resume_hooks.derive.verbs.caller import Caller  # a search creates no child

        limit_time = partial(time_limit, command or self.command)
        return Caller(self.where, reuses_child=True, time_limit=limit_time)


def parse_search_words(text: str) -> tuple[bool, str]:
    """Return whether to search every project, and the words. Raise UsageError for an unknown option."""
    first_word, *other_words = text.split(maxsplit=1) or [""]
    in_all_projects = first_word.lower() == ALL_WORD
    search_words = " ".join(other_words) if in_all_projects else text
    if option := next(
        (match[1] for match in _OPTION_PATTERN.finditer(search_words) if match[1]), ""
    ):
        raise UsageError(
            f"{option} is not an option here; {ALL_WORD} is one, before the words",
            f'Others, in a shell: resume-hooks search --help. As a word: "{option}", in quotes.',
        )
    return in_all_projects, search_words


def refuse_option(text: str, remedy: str) -> None:
    """Raise UsageError if the words begin with an option."""
    if match := re.match(r"--?[a-z][a-z-]*(?=[\s=]|\Z)", text):
        raise UsageError(f"{match[0]} is not an option here", remedy)


@contextlib.contextmanager
def time_limit(
    command: str = "resume-hooks --help", seconds: float | None = None
) -> Iterator[None]:
    """Raise TimeLimitExceeded if the block takes too long. The message suggests ``command`` as the alternative.

    ``seconds`` (default: ``READING_SECONDS``) is measured in processor time, so that a busy machine completes
    the same work as an idle one. The limit in real time is ``BUSY_SECONDS`` seconds longer.
    """
    max_seconds = READING_SECONDS if seconds is None else seconds

    def raise_time_limit(*_: object) -> None:
        raise TimeLimitExceeded(
            f"It took longer than {max_seconds:g} s, so nothing was made", command
        )

    if not hasattr(signal, "setitimer"):
        with _limit_with_thread(max_seconds, raise_time_limit):
            yield
        return
    timers = (
        (signal.ITIMER_PROF, signal.SIGPROF, max_seconds),
        (signal.ITIMER_REAL, signal.SIGALRM, max_seconds + BUSY_SECONDS),
    )
    former_handlers = [
        (timer, signal_number, signal.signal(signal_number, raise_time_limit))
        for timer, signal_number, _ in timers
    ]
    for timer, _, timer_seconds in timers:
        signal.setitimer(timer, timer_seconds)
    try:
        yield
    finally:
        for timer, signal_number, handler in former_handlers:
            signal.setitimer(timer, 0)
            signal.signal(signal_number, handler)


@contextlib.contextmanager
def _limit_with_thread(seconds: float, raise_error: Callable[[], None]) -> Iterator[None]:
    """Limit a block on Windows, which has no alarm: a thread interrupts it like Ctrl+C, and calls ``raise_error``."""
    import _thread  # only Windows needs these imports
    import threading

    has_expired = threading.Event()

    def interrupt() -> None:
        has_expired.set()
        _thread.interrupt_main()

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
        timer.cancel()
        timer.join()  # the interrupt must arrive inside this block
    except KeyboardInterrupt:
        if not has_expired.is_set():
            raise
        raise_error()
    finally:
        timer.cancel()


def current_folder() -> str:
    """Return the current folder. Raise UsageError if it no longer exists."""
    try:
        return os.getcwd()
    except FileNotFoundError as error:
        raise UsageError("The current folder is gone", "Type: >search --all words") from error
