"""Start the command line, for ``python -m resume_hooks`` and ``resume-hooks``."""

from __future__ import annotations

import gc
import sys

from resume_hooks.system.bytecode import repair_bytecode_on_import


def start() -> None:
    """Run the command line. After Ctrl+C exit without a traceback, even while modules are loaded."""
    # A command runs only briefly and creates few reference cycles. When garbage collection was
    # enabled, it took a fifth of the time of a trim.
    gc.disable()
    repair_bytecode_on_import()
    try:
        # Loading these modules takes 30 to 100 ms, and the user may press Ctrl+C during that time.
        if sys.argv[1:2] == ["search"] and _try_plain_search():
            return
        from resume_hooks.cli.main import main
    except KeyboardInterrupt:
        from resume_hooks.errors import Interrupted  # Imported only when it is needed.

        sys.exit(Interrupted.exit_code)
    main()


def _try_plain_search() -> bool:
    """Try to run a search without importing click, which takes a long time to load.

    Return False if only click can handle the command line.
    """
    from resume_hooks.cli.plain_search import answer_plain_search

    if not answer_plain_search(sys.argv[1:]):
        return False
    gc.freeze()  # Without this call the garbage collector would scan all objects once more at exit.
    return True


if __name__ == "__main__":
    start()
