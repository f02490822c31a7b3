"""Note the signals that end this process instead of raising them, for work that must come to a clean end first."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

_ENDING = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


@contextlib.contextmanager
def noted() -> Iterator[threading.Event]:
    """An event that Ctrl+C, SIGTERM and SIGHUP set; outside the main thread, which alone gets signals, nothing does."""
    event = threading.Event()
    before = {}
    try:
        for number in _ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                before[number] = signal.signal(number, lambda *_: event.set())
    except ValueError:
        pass
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
