"""Files that parts write beside a handoff, in the user's project, where the user asked for them.

The question ``beside a handoff`` is asked before anything is made: given are the plan of a child, where things are, and
what was asked of the verb, or None for a trigger. What comes back is a function. Given the child's receipt, once it is
made, it writes the files; given None it says which those would be. UsageError for what can't be meant; no failure after
that costs the child: it is a warning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from resume_hooks import seam
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.fresh_child import RolloverPlan
from resume_hooks.paths import Where


class FilesBeside(NamedTuple):
    """Files that were written, or would be: documents and a ledger (``""`` for none); warnings about the others."""

    documents: tuple[str, ...] = ()
    ledger: str = ""
    warnings: tuple[str, ...] = ()


def beside(decided: RolloverPlan, where: Where, options: object = None) -> Callable[[Receipt | None], FilesBeside]:
    """What writes the files of all parts, or tells of them, as the question has it. UsageError."""
    asked = [answer(decided, where, options) for answer in seam.answers("beside a handoff")]

    def done(receipt: Receipt | None) -> FilesBeside:
        found = [write(receipt) for write in asked]
        return FilesBeside(
            tuple(path for files in found for path in files.documents),
            next((files.ledger for files in found if files.ledger), ""),
            tuple(warning for files in found for warning in files.warnings),
        )

    return done
