"""After a session's start, use the engine's Python to do the work that can wait.

In a headless run this process first leaves the client's process session, so that the client neither
waits for it nor kills it.
"""

from __future__ import annotations

import contextlib
import os
import sys

HOOKS_FOLDER = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    if os.environ.get("CLAUDE_CODE_ENTRYPOINT", "").startswith("sdk") and os.name == "posix":
        with contextlib.suppress(OSError):
            os.setsid()
    sys.path.insert(0, os.path.join(os.path.dirname(HOOKS_FOLDER), "src"))
    from resume_hooks.system.bytecode import repair_bytecode_on_import

    repair_bytecode_on_import()
    from resume_hooks.hooks.background import main

    main()
