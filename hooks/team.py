"""Use the engine's Python to push a session to the team after a turn or at the session's end.

The client waits only until this process has forked. The child process leaves the client's process
session, so that the client does not kill it.
"""

from __future__ import annotations

import contextlib
import os
import sys

HOOKS_FOLDER = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    if os.name == "posix":
        with contextlib.suppress(OSError):
            if os.fork():
                os._exit(0)
            os.setsid()
    sys.path.insert(0, os.path.join(os.path.dirname(HOOKS_FOLDER), "src"))
    from resume_hooks.system.bytecode import repair_bytecode_on_import

    repair_bytecode_on_import()
    from resume_hooks import questions
    from resume_hooks.seam import find_answers

    for push_session_after_turn in find_answers(questions.push_session_after_turn):
        push_session_after_turn()
