"""Handle requests from the plugin's module, which runs in the client.

This needs the engine's Python. With any other Python, the fallback module handles the requests.
"""

from __future__ import annotations

import gc
import os
import sys

HOOKS_FOLDER = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    gc.disable()  # A short process creates few reference cycles.
    sys.path.insert(0, os.path.join(os.path.dirname(HOOKS_FOLDER), "src"))
    from resume_hooks.hooks.end_process import end_process
    from resume_hooks.system.bytecode import repair_bytecode_on_import

    repair_bytecode_on_import()
    try:
        from resume_hooks.hooks.client_module import main
    except ImportError:  # There is no venv yet, or it was built for an earlier version.
        from resume_hooks.hooks.fallback import mark_venv_broken
        from resume_hooks.hooks.fallback import write_reply_to_module as main

        mark_venv_broken()
    status = main()
    end_process(status)
