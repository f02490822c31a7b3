"""Use the engine's Python to run the hook for prompts.

If a package is missing, the fallback answers the prompt.
"""

from __future__ import annotations

import gc
import os
import sys

# os.path is used because pathlib adds 3 ms to each prompt.
HOOKS_FOLDER = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    gc.disable()  # A short process creates few reference cycles.
    sys.path.insert(0, os.path.join(os.path.dirname(HOOKS_FOLDER), "src"))
    from resume_hooks.hooks.end_process import end_process
    from resume_hooks.system.bytecode import repair_bytecode_on_import

    repair_bytecode_on_import()
    try:
        from resume_hooks.hooks.prompt import main
    except ImportError:  # A venv that was built for an earlier version may lack a new package.
        from resume_hooks.hooks.fallback import main, mark_venv_broken

        mark_venv_broken()
    main()
    end_process()
