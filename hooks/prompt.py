"""Owns the prompt hook's start on the engine's Python.

Where it lacks a dependency the fallback does.
"""

from __future__ import annotations

import gc
import os
import sys

HOOKS = os.path.dirname(
    os.path.abspath(__file__)
)  # os.path: pathlib costs 3 ms that a prompt need not wait

if __name__ == "__main__":
    gc.disable()  # an answer makes few cycles, and ends soon
    sys.path.insert(0, os.path.join(os.path.dirname(HOOKS), "src"))
    try:
        from resume_hooks.hooks.prompt import main
    except ImportError:  # a venv from before an update may lack a new dependency
        from resume_hooks.hooks.fallback import main, mark_venv

        mark_venv()
    main()
    from resume_hooks.hooks.ending import end_process

    end_process()
