"""Run the prompt hook, with the engine's Python.

If a dependency is missing, the fallback runs.
"""

from __future__ import annotations

import gc
import os
import sys

# os.path, because pathlib adds 3 ms to each prompt
HOOKS = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    gc.disable()  # a short process creates few reference cycles
    sys.path.insert(0, os.path.join(os.path.dirname(HOOKS), "src"))
    from resume_hooks.hooks.end_process import end_process
    from resume_hooks.system.bytecode import repair_bytecode_on_import

    repair_bytecode_on_import()
    try:
        from resume_hooks.hooks.prompt import main
    except ImportError:  # a venv that was built before an update may lack a new dependency
        from resume_hooks.hooks.fallback import main, mark_venv_broken

        mark_venv_broken()
    main()
    end_process()
