"""Reply to prompts, and to requests from the plugin's module, until the engine is installed.

This file runs on any Python >= 3.9.
"""

from __future__ import annotations

import os
import sys

HOOKS_FOLDER = os.path.dirname(os.path.abspath(__file__))

if __name__ == "__main__":
    sys.path.insert(0, os.path.join(os.path.dirname(HOOKS_FOLDER), "src"))
    from resume_hooks.system.bytecode import repair_bytecode_on_import

    repair_bytecode_on_import()
    from resume_hooks.hooks import fallback

    if sys.argv[1:] == ["module"]:
        sys.exit(fallback.write_reply_to_module())
    fallback.main()
