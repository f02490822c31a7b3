"""The command line: ``python -m resume_hooks``, and ``resume-hooks``."""

from __future__ import annotations

import gc
import sys

from resume_hooks.system.bytecode import repair_bytecode_on_import


def start() -> None:
    """Run the command line. Ctrl+C exits quietly, even while modules load."""
    # a verb is short-lived and makes few cycles, and collection took a fifth of trim's time
    gc.disable()
    repair_bytecode_on_import()
    try:
        # these imports take 30 to 100 ms, during which the user may press Ctrl+C
        if sys.argv[1:2] == ["search"] and _was_plain_search():
            return
        from resume_hooks.cli.main import main
    except KeyboardInterrupt:
        from resume_hooks.errors import Interrupted  # imported late, as the other modules

        sys.exit(Interrupted.exit_code)
    main()


def _was_plain_search() -> bool:
    """Answer a search whose output a program reads, without click. Return False if the command line must answer."""
    from resume_hooks.cli.plain_search import answer_plain_search

    if not answer_plain_search(sys.argv[1:]):
        return False
    gc.freeze()  # as in cli.main
    return True


if __name__ == "__main__":
    start()
