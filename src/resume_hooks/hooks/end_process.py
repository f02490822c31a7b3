"""End a hook's process quickly, without freeing its objects one by one.

The client waits until the process has ended.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from typing import NoReturn


def end_process(status: int = 0) -> NoReturn:
    """End this process without freeing its objects, which would take up to 20 ms."""
    atexit._run_exitfuncs()  # noqa: SLF001 - what else runs at the end of a process
    for stream in (sys.stdout, sys.stderr):
        # The stream may be closed or missing.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)
