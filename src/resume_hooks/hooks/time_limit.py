"""The time limit of a hook, because the client waits for its answer."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator

from resume_hooks.errors import ResumeHooksError

READING_SECONDS = 3.0  # the time limit for reading in seconds; the clipboard has two more
BUSY_SECONDS = 5.0  # additional seconds for a busy machine


class TimeLimitExceeded(ResumeHooksError, code="too-slow"):
    """Raised if the work of a trigger takes longer than a prompt may wait."""

    def __init__(self, message: str, command: str) -> None:
        super().__init__(message, f"In a shell there is no limit: {command}")


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
    """Limit a block on Windows, which has no alarm signal.

    After ``seconds`` a thread interrupts the block like Ctrl+C. The context manager catches that
    interrupt and calls ``raise_error``.
    """
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
