"""Signals that are to end the process: noted while a block runs, as before after it."""

from __future__ import annotations

import signal
import threading

import pytest

from resume_hooks.system import signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_noted(number: signal.Signals) -> None:
    """Nothing is raised, and the handler of before is back in the end."""
    before = signal.getsignal(number)
    with signals.noted() as ended:
        assert not ended.is_set()
        signal.raise_signal(number)
        assert ended.is_set()
    assert signal.getsignal(number) is before


def test_what_is_ignored_stays_ignored() -> None:
    """As below nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals.noted() as ended:
            signal.raise_signal(signal.SIGHUP)
        assert not ended.is_set()
    finally:
        signal.signal(signal.SIGHUP, before)


def test_another_thread_gets_none() -> None:
    """Only the main thread may handle signals."""
    found: list[bool] = []

    def work() -> None:
        with signals.noted() as ended:
            found.append(ended.is_set())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]
