"""Define ``Caller``, which says how a child is to be created and which child the caller accepts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple

from resume_hooks.derive.child.write_child import write_if_worthwhile

if TYPE_CHECKING:
    from resume_hooks.derive.child.draft import Draft
    from resume_hooks.derive.child.receipt import Receipt
    from resume_hooks.derive.child.write_child import ChildPlan
    from resume_hooks.paths import Where


def accept_draft(draft: Draft) -> None:
    """Accept any draft. This is the default of ``Caller.check_draft``."""


class Caller(NamedTuple):
    """How a caller wants a verb to create a child, and which child it accepts.

    The child is written to the folder ``output_dir`` or, if it is None, to the folder of the
    child's project. If ``dry_run`` is true, no files are written. If ``reuses_child`` is true, the
    caller accepts a child that an identical earlier request created and that is still unused. In
    this case, the verb waits while another process creates a child of the same parent.

    ``time_limit`` returns a context manager that limits the time for reading a session and planning
    a child, but not the time for writing. ``check_draft`` raises a ResumeHooksError if the caller
    cannot use the child.
    """

    where: Where
    output_dir: str | None = None
    dry_run: bool = False
    reuses_child: bool = False
    time_limit: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
    check_draft: Callable[[Draft], None] = accept_draft

    def write_child(self, plan: ChildPlan) -> Receipt:
        """Write a child and return its receipt.

        In a dry run, or if the plan is pointless, no files are written, and the receipt does not
        name a child.
        """
        self.check_draft(plan.draft)
        return write_if_worthwhile(plan, self.where, dry_run=self.dry_run)
