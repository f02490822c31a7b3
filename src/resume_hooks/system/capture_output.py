"""Run a program with a text as its input and capture its output, with limits on time and size.

After ``run_and_capture_output`` has returned or raised an error, no process of the program's group
is running.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from resume_hooks.system import programs

_ENDING_SIGNALS = (
    signal.SIGINT,
    signal.SIGTERM,
    *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []),
)


@contextlib.contextmanager
def catch_termination_signals() -> Iterator[threading.Event]:
    """Yield an event that is set when Ctrl+C, SIGTERM or SIGHUP arrives.

    In a thread other than the main thread, the event is never set, because only the main thread
    receives signals.
    """
    event = threading.Event()
    old_handlers = {}
    try:
        for number in _ENDING_SIGNALS:
            # A signal that is ignored, for example under nohup, stays ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                old_handlers[number] = signal.signal(number, lambda *_: event.set())
    except ValueError:
        pass
    try:
        yield event
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler)


# Maximum number of bytes of output. It is large because a client in verbose mode repeats its input.
MAX_OUTPUT_BYTES = 32 * 1024 * 1024
MAX_ERROR_OUTPUT_BYTES = 64 * 1024  # maximum number of bytes of error output to keep
CHUNK_BYTES = 256 * 1024
# Number of seconds between checks whether the program has exited. Waiting for the end of its pipes
# is not enough, because its child processes may keep them open for longer.
POLL_SECONDS = 0.05
# Number of seconds between SIGTERM and SIGKILL. It is short because client 2.1.329 gives a hook one
# second after Esc.
TERMINATION_GRACE_SECONDS = 0.5


class CapturedOutput(NamedTuple):
    """The exit status and the output of a program; ``exit_status`` is negative if a signal ended it.

    If ``has_timed_out`` or ``is_too_large`` is true, we ended the program because it ran too long or its
    output was too large.
    """

    exit_status: int
    stdout: bytes
    stderr: bytes
    has_timed_out: bool = False
    is_too_large: bool = False


def run_and_capture_output(
    command: Sequence[str],
    input_text: bytes,
    *,
    environ: Mapping[str, str],
    folder: str,
    timeout_seconds: float,
) -> CapturedOutput:
    """Run ``command`` in ``folder`` with ``input_text`` on stdin for at most ``timeout_seconds``.

    If Ctrl+C, SIGTERM or SIGHUP arrives, end the program and raise KeyboardInterrupt. Raise OSError
    if the program can't be started. On Windows, always raise OSError.
    """
    if not hasattr(os, "killpg"):
        raise OSError(errno.ENOSYS, "this system can't end a program's child processes")
    pipe = subprocess.PIPE
    # Signals only set an event. An exception raised by a signal could occur after the program has
    # started but before the code that ends the program is active.
    with catch_termination_signals() as interrupted:
        process = programs.start_program(
            command,
            environ,
            folder=folder,
            environ=environ,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            bufsize=0,
            start_new_session=True,
        )
        exchange = _PipeExchange(process, input_text, time.monotonic() + timeout_seconds)
        try:
            exchange.exchange_data(interrupted)
        finally:
            _end_process(process)
    if interrupted.is_set():
        raise KeyboardInterrupt
    return CapturedOutput(
        process.returncode,
        bytes(exchange.stdout),
        bytes(exchange.stderr),
        exchange.has_timed_out,
        exchange.is_too_large,
    )


class _PipeExchange:
    def __init__(self, process: subprocess.Popen[bytes], text: bytes, deadline: float) -> None:
        self.stdout, self.stderr = bytearray(), bytearray()
        self.has_timed_out = self.is_too_large = False
        self._process, self._deadline = process, deadline
        self._remaining_input = memoryview(text)

    def exchange_data(self, interrupted: threading.Event) -> None:
        """Write the input and read the outputs.

        Stop when the program ends or exceeds a limit, or when a signal arrives.
        """
        process = self._process
        with selectors.DefaultSelector() as waiting:
            for stream, event in (
                (process.stdin, selectors.EVENT_WRITE),
                (process.stdout, selectors.EVENT_READ),
                (process.stderr, selectors.EVENT_READ),
            ):
                if stream is not None:
                    os.set_blocking(stream.fileno(), False)
                    waiting.register(stream, event, stream.close)
            while not self.is_too_large and not interrupted.is_set():
                remaining = self._deadline - time.monotonic()
                if remaining <= 0:
                    self.has_timed_out = True
                    return
                ended = process.poll() is not None
                ready = waiting.select(0 if ended else min(remaining, POLL_SECONDS))
                for key, _ in ready:
                    if (
                        self._write_input(key.fd)
                        if key.fileobj is process.stdin
                        else self._read_output(key)
                    ):
                        waiting.unregister(key.fileobj)
                        key.data()
                # The program's children may continue to run and keep the pipes open. Do not wait
                # for them.
                if ended and not any(key.events == selectors.EVENT_READ for key, _ in ready):
                    return

    def _write_input(self, descriptor: int) -> bool:
        """Write a part of the input. Return True after the last part, or if the program has closed its stdin."""
        try:
            self._remaining_input = self._remaining_input[
                os.write(descriptor, self._remaining_input[:CHUNK_BYTES]) :
            ]
        except BlockingIOError:
            return False
        except OSError:
            return True
        return not self._remaining_input

    def _read_output(self, key: selectors.SelectorKey) -> bool:
        """Read a part of an output stream. Return True at the end of the stream."""
        chunk = os.read(key.fd, CHUNK_BYTES)
        if key.fileobj is self._process.stdout:
            self.stdout += chunk
            self.is_too_large = len(self.stdout) > MAX_OUTPUT_BYTES
        else:
            self.stderr += chunk[: MAX_ERROR_OUTPUT_BYTES - len(self.stderr)]
        return not chunk


def _end_process(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        _signal_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(TERMINATION_GRACE_SECONDS)
    _signal_group(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def _signal_group(group_id: int, signal_number: int) -> None:
    with contextlib.suppress(OSError):  # The group has already ended.
        os.killpg(group_id, signal_number)
