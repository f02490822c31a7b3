"""Use the engine's Python to run the hook at the end of a turn."""

from __future__ import annotations

import gc
import os
import sys

HOOKS_FOLDER = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    gc.disable()  # A short process creates few reference cycles.
    sys.path.insert(0, os.path.join(os.path.dirname(HOOKS_FOLDER), "src"))
    from resume_hooks.system.bytecode import repair_bytecode_on_import

    repair_bytecode_on_import()
    from resume_hooks.hooks.context_notice import main
    from resume_hooks.hooks.end_process import end_process

    main()
    end_process()
