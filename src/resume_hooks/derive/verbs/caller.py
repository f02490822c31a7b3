"""The terms on which a door has a verb make a child."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple

from resume_hooks.derive.child.write import carry_out

if TYPE_CHECKING:
    from resume_hooks.derive.child.draft import Draft
    from resume_hooks.derive.child.receipt import Receipt
    from resume_hooks.derive.child.write import ChildPlan
    from resume_hooks.paths import Where


def accept_draft(draft: Draft) -> None:
    """Refuse no child."""


class Caller(NamedTuple):
    """A door that has a child made.

    ``output_dir`` is a folder for the child instead of its project's. With ``dry_run`` nothing is
    written. One that ``reuses`` is given an earlier child of the same words, where nobody went on
    since, and waits while another process makes a child of the same parent. ``time_limit`` is held
    while a session is read and a child planned, never while it is written. ``check_draft`` raises a
    ResumeHooksError for a child that the caller can't use.
    """

    where: Where
    output_dir: str | None = None
    dry_run: bool = False
    reuses: bool = False
    time_limit: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
    check_draft: Callable[[Draft], None] = accept_draft

    def write(self, plan: ChildPlan) -> Receipt:
        """Write a child. In a dry run, or where there is nothing to write, its receipt alone."""
        self.check_draft(plan.draft)
        return carry_out(plan, self.where, dry_run=self.dry_run)
