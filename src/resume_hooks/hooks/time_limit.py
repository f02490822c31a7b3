"""The time limit of a hook. The client waits for the hook's answer."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator

from resume_hooks.errors import ResumeHooksError

# the time limit in seconds for reading; copying to the clipboard may take two seconds more
MAX_READING_SECONDS = 3.0
EXTRA_SECONDS_IF_BUSY = 5.0  # the number of additional seconds on a busy machine


class TimeLimitExceeded(ResumeHooksError, code="too-slow"):
    """The work of a trigger took longer than a prompt may wait."""

    def __init__(self, message: str, command: str) -> None:
        super().__init__(message, f"In a shell there is no limit: {command}")


@contextlib.contextmanager
def time_limit(
    command: str = "resume-hooks --help", seconds: float | None = None
) -> Iterator[None]:
    """Raise TimeLimitExceeded if the with block takes too long. The error suggests ``command`` in a shell.

    ``seconds`` (default: ``MAX_READING_SECONDS``) is processor time, so that the same work finishes on
    a busy machine. The limit in real time is ``EXTRA_SECONDS_IF_BUSY`` seconds longer.
    """
    max_seconds = MAX_READING_SECONDS if seconds is None else seconds

    def raise_time_limit_error(*_: object) -> None:
        raise TimeLimitExceeded(
            f"This took longer than {max_seconds:g} s, so it was stopped", command
        )

    if not hasattr(signal, "setitimer"):
        with _limit_time_with_thread(max_seconds, raise_time_limit_error):
            yield
        return
    timers = (
        (signal.ITIMER_PROF, signal.SIGPROF, max_seconds),
        (signal.ITIMER_REAL, signal.SIGALRM, max_seconds + EXTRA_SECONDS_IF_BUSY),
    )
    former_handlers = [
        (timer, signal_number, signal.signal(signal_number, raise_time_limit_error))
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
def _limit_time_with_thread(seconds: float, raise_error: Callable[[], None]) -> Iterator[None]:
    """Limit the duration of a with block on Windows, which has no alarm signal.

    After ``seconds`` seconds a thread interrupts the block, as Ctrl+C does. The interrupt is caught
    here, and ``raise_error`` raises the error of the time limit.
    """
    import _thread  # Imported late because only Windows needs it.
    import threading

    has_expired = threading.Event()

    def interrupt_timed_block() -> None:
        has_expired.set()
        _thread.interrupt_main()

    timer = threading.Timer(seconds, interrupt_timed_block)
    timer.daemon = True
    timer.start()
    try:
        yield
        timer.cancel()
        timer.join()  # Waits for a running timer, so that its interrupt arrives before this block ends.
    except KeyboardInterrupt:
        if not has_expired.is_set():
            raise
        raise_error()
    finally:
        timer.cancel()
