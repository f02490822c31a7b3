"""The input, the output and the time limit of a trigger that reads a transcript."""

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
from resume_hooks.system.invocation import in_shell

if TYPE_CHECKING:
    from resume_hooks.derive.verbs.caller import Caller
    from resume_hooks.sessions.session import Session

EVERYWHERE = "--all"  # the word before others that means every project
_OPTION = re.compile(
    r'"[^"]*"?|(?<!\S)(--[a-z][a-z-]*)'
)  # what looks like an option outside of quotes
LIMIT = 3.0  # seconds that reading may take; the clipboard has its own two
BUSY = 5.0  # seconds that a machine may keep us waiting beside that

WITHOUT_TRANSCRIPT: dict[str, tuple[type[ResumeHooksError], str]] = {
    "handoff": (NothingToHandOff, "There is nothing to hand off"),
    "rollover": (NothingToHandOff, "There is nothing to hand off"),
    "trim": (NothingToTrim, "There is nothing to trim"),
    "untrim": (NothingToTrim, "There is nothing to untrim"),
    "recall": (NothingToRecover, "There is nothing to recover"),
    "lineage": (SessionNotFound, "There are no ancestors to show"),
    "fsck": (SessionNotFound, "There is nothing to repair"),
}
"""What a trigger says in a session in which nobody sent a prompt."""


def without_transcript(error: type[ResumeHooksError], words: str) -> ResumeHooksError:
    """What is raised there; the message begins with ``words``."""
    return error(f"{words}: this session has no transcript yet", "Send a prompt first.")


class TimeLimit(ResumeHooksError, code="too-slow"):
    """The work behind a trigger took longer than a prompt may wait."""

    def __init__(self, message: str, command: str) -> None:
        super().__init__(message, f"In a shell there is no limit: {command}")


@dataclass(frozen=True)
class Request:
    """A trigger and where it was typed.

    ``path`` is the session's transcript (None: none yet); ``in_subagent`` says that a sub-agent was
    asked, whose own transcript it is not. ``forked`` is what the module tells of the session's own
    model, before which it ``can_wait``, and show that it does.
    """

    trigger: Trigger
    session_id: str
    path: str | None
    where: Where
    in_subagent: bool = False
    forked: dict[str, Any] | None = None
    can_wait: bool = False

    @property
    def text(self) -> str:
        """What followed the trigger."""
        return self.trigger.text

    @property
    def slash(self) -> bool:
        """Whether the slash form was typed, which leaves the input box empty."""
        return self.trigger.slash

    @property
    def typed_name(self) -> str:
        """The trigger as it was typed."""
        return self.trigger.name(self.trigger.verb)

    @cached_property
    def session(self) -> Session:
        """The session. Without one, a ResumeHooksError in the verb's own words."""
        if self.path is None:
            raise without_transcript(*WITHOUT_TRANSCRIPT[self.trigger.verb])
        from resume_hooks.sessions.session import Session  # a list reads none

        return Session.at(self.path, self.where)

    @property
    def command(self) -> str:
        """The same in a shell."""
        return in_shell(f"{self.trigger.verb} {self.session_id}")

    def caller(self, command: str = "") -> Caller:
        """Who a verb makes a child for: one that waits, but not long; ``command`` is the way out."""
        from resume_hooks.derive.verbs.caller import Caller  # a search makes no child

        limit = partial(time_limit, command or self.command)
        return Caller(self.where, reuses=True, time_limit=limit)


def parse_search_words(text: str) -> tuple[bool, str]:
    """Whether every project is meant, and the words. UsageError for an option that there is not."""
    first, *rest = text.split(maxsplit=1) or [""]
    everywhere = first.lower() == EVERYWHERE
    words = " ".join(rest) if everywhere else text
    if option := next((found[1] for found in _OPTION.finditer(words) if found[1]), ""):
        raise UsageError(
            f"{option} is not an option here: there is {EVERYWHERE}, before all words",
            f'Others, in a shell: resume-hooks search --help. As a word: "{option}", in quotes.',
        )
    return everywhere, words


def refuse_option(text: str, remedy: str) -> None:
    """UsageError for words that begin with an option that there is not."""
    if option := re.match(r"--?[a-z][a-z-]*(?=[\s=]|\Z)", text):
        raise UsageError(f"{option[0]} is not an option here", remedy)


@contextlib.contextmanager
def time_limit(
    command: str = "resume-hooks --help", seconds: float | None = None
) -> Iterator[None]:
    """Raise TimeLimit in the block once it takes too long; ``command`` is its way out.

    ``seconds`` are ``LIMIT`` unless given: of processor time, so that a busy machine refuses
    nothing that an idle one does, and with ``BUSY`` more of them on a clock.
    """
    most = LIMIT if seconds is None else seconds

    def stop(*_: object) -> None:
        raise TimeLimit(f"It took longer than {most:g} s, so nothing was made", command)

    if not hasattr(signal, "setitimer"):
        with _timer(most, stop):
            yield
        return
    clocks = (
        (signal.ITIMER_PROF, signal.SIGPROF, most),
        (signal.ITIMER_REAL, signal.SIGALRM, most + BUSY),
    )
    before = [(timer, number, signal.signal(number, stop)) for timer, number, _ in clocks]
    for timer, _, limit in clocks:
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for timer, number, handler in before:
            signal.setitimer(timer, 0)
            signal.signal(number, handler)


@contextlib.contextmanager
def _timer(seconds: float, stop: Callable[[], None]) -> Iterator[None]:
    """Windows has no alarm: a thread interrupts the block as Ctrl+C would, and ``stop`` is called."""
    import _thread  # nobody else pays for these
    import threading

    late = threading.Event()

    def ring() -> None:
        late.set()
        _thread.interrupt_main()

    timer = threading.Timer(seconds, ring)
    timer.daemon = True
    timer.start()
    try:
        yield
        timer.cancel()
        timer.join()  # what it interrupts must be this block
    except KeyboardInterrupt:
        if not late.is_set():
            raise
        stop()
    finally:
        timer.cancel()


def current_folder() -> str:
    """Where we run. UsageError where that is gone."""
    try:
        return os.getcwd()
    except FileNotFoundError as error:
        raise UsageError("The current folder is gone", "Type: >search --all words") from error
