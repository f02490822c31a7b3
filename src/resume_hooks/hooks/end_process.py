"""Ends the process of a hook without freeing its objects one by one, because the client waits for the process."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from typing import NoReturn


def end_process(status: int = 0) -> NoReturn:
    """End this process with an exit status. This saves up to 20 ms that the interpreter needs to free its objects."""
    atexit._run_exitfuncs()  # noqa: SLF001 - what else runs at the end of a process
    for stream in (sys.stdout, sys.stderr):
        # the stream is closed, or never existed
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)
