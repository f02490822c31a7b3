"""Ends the process of a hook: the client waits for it, and what it holds need not be freed piece by piece."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from typing import NoReturn


def end_process(status: int = 0) -> NoReturn:
    """End this process with an exit status, in up to 20 ms less than the interpreter takes to free its objects."""
    atexit._run_exitfuncs()  # noqa: SLF001 - what else runs at the end of a process
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or never there
            stream.flush()
    os._exit(status)
