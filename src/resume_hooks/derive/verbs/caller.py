"""The caller of a verb that creates a child, and the conditions that the caller sets."""

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
    """Accept every child."""


class Caller(NamedTuple):
    """A caller that requests a child.

    ``output_dir`` is a folder for the child in place of its project's folder. If ``dry_run`` is
    true, nothing is written. If ``reuses_child`` is true, the caller gets an existing unused child of the
    same request, and waits while another process creates a child of the same parent.
    ``time_limit`` applies to reading a session and planning a child, never to writing.
    ``check_draft`` raises a ResumeHooksError for a child that the caller cannot use.
    """

    where: Where
    output_dir: str | None = None
    dry_run: bool = False
    reuses_child: bool = False
    time_limit: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext
    check_draft: Callable[[Draft], None] = accept_draft

    def write(self, plan: ChildPlan) -> Receipt:
        """Write a child. For a dry run or an idle plan, only return its receipt."""
        self.check_draft(plan.draft)
        return write_if_worthwhile(plan, self.where, dry_run=self.dry_run)
