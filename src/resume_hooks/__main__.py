"""The command line: ``python -m resume_hooks``, and ``resume-hooks``."""

from __future__ import annotations

import gc
import sys

from resume_hooks.errors import Interrupted


def start() -> None:
    """Run the command line; Ctrl+C ends it quietly from the first module on that is loaded."""
    gc.disable()  # a verb builds one large picture of a file, without cycles, and ends: collecting took a fifth of trim
    try:
        from resume_hooks.cli.main import main  # loading takes 50 ms, in which Ctrl+C may come
    except KeyboardInterrupt:
        sys.exit(Interrupted.exit_code)
    main()


if __name__ == "__main__":
    start()
