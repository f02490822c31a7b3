"""Owns the command line's start from the plugin's own src folder, run isolated (python -I)."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

DAMAGED = "resume-hooks: the engine's packages do not load ({}). Start Claude Code, or run: {}"

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
    sys.argv[0] = "resume-hooks"
    try:
        runpy.run_module("resume_hooks", run_name="__main__", alter_sys=True)
    except ModuleNotFoundError as error:
        from resume_hooks.hooks.fallback import install_command, mark_venv

        mark_venv()
        sys.exit(DAMAGED.format(error, install_command()))
