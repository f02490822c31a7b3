"""The command line: ``python -m resume_hooks``, and ``resume-hooks``."""

from __future__ import annotations

import gc
import sys

from resume_hooks.errors import Interrupted


def start() -> None:
    """Run the command line. Ctrl+C exits quietly, even while modules load."""
    # a verb is short-lived and makes few cycles, and collection took a fifth of trim's time
    gc.disable()
    try:
        # the import takes 50 ms, during which the user may press Ctrl+C
        from resume_hooks.cli.main import main
    except KeyboardInterrupt:
        sys.exit(Interrupted.exit_code)
    main()


if __name__ == "__main__":
    start()
