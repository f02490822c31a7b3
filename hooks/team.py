"""Owns the start, on the engine's Python, of the push after a turn; it leaves the hook's session, so nobody waits."""

from __future__ import annotations

import contextlib
import os
import sys

HOOKS = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    if os.name == "posix":
        with contextlib.suppress(OSError):
            os.setsid()
    sys.path.insert(0, os.path.join(os.path.dirname(HOOKS), "src"))
    from resume_hooks.hooks.team_push import main

    main()
