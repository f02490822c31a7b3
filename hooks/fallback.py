"""Run the fallback of the prompt hook and of the client's module on any Python >= 3.9, until the engine is ready."""

from __future__ import annotations

import os
import sys

HOOKS = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    sys.path.insert(0, os.path.join(os.path.dirname(HOOKS), "src"))
    from resume_hooks.system.bytecode import repair_bytecode_on_import

    repair_bytecode_on_import()
    from resume_hooks.hooks import fallback

    sys.exit(fallback.answer_module() if sys.argv[1:] == ["module"] else fallback.main())
