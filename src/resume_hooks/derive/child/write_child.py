"""The one writer of new sessions: children, imports, sessions from bundles.

Invariant: a child is read back and checked before it gets its name, and a failed write leaves no
files behind.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import ClassVar, Final, NamedTuple, Protocol

from resume_hooks.archive.retention.ancestors import archive_ancestors
from resume_hooks.derive.child.claims import claim_child
from resume_hooks.derive.child.copy_files import copy_tasks
from resume_hooks.derive.child.draft import NO_PARENT, Draft, read_inode
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.errors import WriteFailed
from resume_hooks.paths import Where, is_session_id, make_private_folder
from resume_hooks.sessions.archived.sessions import is_archived_copy
from resume_hooks.sessions.child_titles import lock_titles
from resume_hooks.sessions.link_log import Link, record_link
from resume_hooks.sessions.opening_layout import title_line
from resume_hooks.storage import removal
from resume_hooks.storage.atomic import create_session
from resume_hooks.system.processes import find_client_pid
from resume_hooks.system.text import replace_surrogates
from resume_hooks.transcripts import invariants
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import Check
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.provenance import read_parent
from resume_hooks.transcripts.records import Record

SCRUB_KIND: Final = "scrub"  # the kind of a child without secrets; no ancestors are archived for it


class Sizes(NamedTuple):
    """The number of tokens that the client would send for the parent and for the child, and the savings of a trim."""

    tokens_before: int
    tokens_after: int
    chars_saved: int = 0
    tools_trimmed: int = 0


class Watcher(Protocol):
    """An observer of a written child, with its checks."""

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        """Inspect one record of the child."""

    def run_checks(self) -> list[Check]:
        """Return the checks after the whole file was read."""


class Body:
    """The contents of a child in its agent's format, by default Claude Code's."""

    __slots__ = ()

    title_place: ClassVar[int | None] = None
    """The number of the line with the title.

    None means the last line. Titles are locked from this line on, and for a large file that would
    take too long.
    """

    def lines(self) -> Iterable[bytes]:
        """Return the lines with their line endings, without the title."""
        raise NotImplementedError

    def run_checks(self, path: str, plan: ChildPlan) -> list[Check]:
        """Read the child's file ``path`` back, and return the checks."""
        return invariants.check_session(path, plan.draft.session_id)

    def write_sidecars(
        self,
        draft: Draft,  # noqa: ARG002
        where: Where,  # noqa: ARG002
    ) -> contextlib.AbstractContextManager[list[str]]:
        """Write the sidecars, and remove them if the block fails.

        Yields a sentence for each failure.
        """
        return contextlib.nullcontext([])

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the user."""
        return ()


@dataclass(frozen=True, slots=True)
class ChildPlan:
    """A planned child, before anything is written."""

    draft: Draft
    body: Body
    sizes: Sizes
    remarks: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the user."""
        return (*self.draft.warnings, *self.remarks, *self.body.warnings)

    @property
    def keeps_tasks(self) -> bool:
        """Whether the child takes over the parent's task list."""
        return self.draft.kind != SCRUB_KIND and self.draft.is_same_work

    @property
    def is_pointless(self) -> bool:
        """Whether there is nothing to write. If so, the receipt does not name a child."""
        return False

    def run_checks(self, path: str) -> list[Check]:
        """Read the child's file ``path`` back, and return the checks."""
        return self.body.run_checks(path, self)

    def watchers(self) -> Sequence[Watcher]:
        """Return new observers that check how a child of this kind takes over the parent's records."""
        return ()

    def write_sidecars(self, where: Where) -> contextlib.AbstractContextManager[list[str]]:
        """Write the sidecars, like ``Body.write_sidecars``."""
        return self.body.write_sidecars(self.draft, where)


def write_child(plan: ChildPlan, where: Where) -> Receipt:
    """Write a child, read it back and check it, and link it to its parent.

    After WriteFailed and CheckFailed no files are left. If the link, the copy of the task list or
    the archiving of an ancestor fails, the receipt has a warning.
    """
    draft, passed_checks = plan.draft, list[Check]()
    title = draft.own_title or ""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_ensure_project_folder(draft, where))
        stack.enter_context(claim_child(draft.session_id, os.path.basename(draft.folder), where))
        failures = stack.enter_context(plan.write_sidecars(where))

        def lines() -> Iterator[bytes]:
            nonlocal title
            body_lines = iter(plan.body.lines())
            yield from islice(body_lines, plan.body.title_place)
            if draft.own_title is None:  # the folder's titles stay locked until the child exists
                stack.enter_context(lock_titles(draft.folder))
                title = draft.free_title()
                yield title_line(draft.session_id, title) + b"\n"
            yield from body_lines

        def check_file(path: str) -> None:
            passed_checks.extend(check_child_file(plan, title, path))
            invariants.require_all_checks(passed_checks, draft.path)

        create_session(draft.path, lines(), check_file)
        _require_same_parent(draft, where)
    warnings = [*failures]
    if draft.parent is not NO_PARENT:
        if plan.keeps_tasks:
            warnings += copy_tasks(draft.parent.session_id, draft.session_id, where)
        warnings += _link_to_parent(draft, where)
    return make_receipt(plan, title, passed_checks, warnings)


def write_if_worthwhile(plan: ChildPlan, where: Where, *, dry_run: bool) -> Receipt:
    """Write a child, or return only a receipt without a child for a dry run or an idle plan."""
    if dry_run or plan.is_pointless:
        return make_planned_receipt(plan)._replace(session_id="", file="")
    return write_child(plan, where)


def make_planned_receipt(plan: ChildPlan) -> Receipt:
    """Return the receipt for a plan that is not written. For an idle plan it does not name a child."""
    if plan.is_pointless:
        idle_receipt = make_receipt(plan, title="")
        tokens_before = plan.sizes.tokens_before
        return idle_receipt._replace(
            session_id="", file="", written=False, tokens_after=tokens_before, warnings=()
        )
    return make_receipt(plan, plan.draft.free_title())._replace(written=False)


def make_receipt(
    plan: ChildPlan, title: str, checks: Sequence[Check] = (), failures: Sequence[str] = ()
) -> Receipt:
    """Return the receipt of a child written under ``title``.

    ``failures`` has a sentence for each failure.
    """
    draft, sizes = plan.draft, plan.sizes
    return Receipt(
        session_id=draft.session_id,
        file=draft.path,
        title=title,
        parent_session_id=draft.parent.session_id,
        parent_file=draft.parent_file,
        kind=draft.kind,
        agent=draft.agent,
        written=True,
        folder=draft.attributes.cwd,
        tokens_before=sizes.tokens_before,
        tokens_after=sizes.tokens_after,
        chars_saved=sizes.chars_saved,
        tools_trimmed=sizes.tools_trimmed,
        checks=tuple(checks),
        warnings=(*plan.warnings, *failures),
    )


def list_child_lines(plan: ChildPlan, title: str) -> Iterator[bytes]:
    """Return all lines of a child with this title."""
    if plan.draft.own_title is None:
        title_lines = [title_line(plan.draft.session_id, title) + b"\n"]
    else:
        title_lines = []
    body_lines = iter(plan.body.lines())
    return chain(islice(body_lines, plan.body.title_place), title_lines, body_lines)


def check_child_file(plan: ChildPlan, title: str, path: str) -> list[Check]:
    """Read the child's file ``path`` back, and return all checks, including those of its parent and its title."""
    draft, checks = plan.draft, plan.run_checks(path)
    if draft.parent is not NO_PARENT:
        # The parent is identified by its id, or by its file if the file's name is not an id.
        parent_id, parent_link = draft.parent.session_id, read_parent(path)
        has_parent_id = parent_link is not None and parent_link.session_id == parent_id
        has_parent_file = parent_link is not None and parent_link.file == replace_surrogates(
            draft.parent_file
        )
        checks.append(
            Check(
                "the first line names the parent",
                has_parent_id if is_session_id(parent_id) else has_parent_file,
            )
        )
    if draft.own_title is None:
        checks.append(Check("the title is the chosen one", HeadTail(path).custom_title == title))
    return checks


def _link_to_parent(draft: Draft, where: Where) -> list[str]:
    """Record the child's parent, and archive its ancestors. Return a warning for each failure."""
    warnings = []
    try:
        ids = draft.session_id, draft.parent.session_id
        record_link(Link(*ids, draft.kind, draft.attributes.at, find_client_pid()), where)
    except OSError as error:
        warnings.append(
            f"The link was not added to the state folder ({error.strerror}); the session "
            "itself contains it."
        )
    if draft.kind == SCRUB_KIND:
        return warnings
    return [*warnings, *archive_ancestors(draft.ancestors, where, draft.loaded_parent)]


def _require_same_parent(draft: Draft, where: Where) -> None:
    """Remove the child if its parent was rewritten since it was read, because a scrub could not include the child.

    Raises WriteFailed if the child was removed.
    """
    if draft.parent is NO_PARENT:
        return
    current_inode, is_archived = (
        read_inode(draft.parent.path),
        is_archived_copy(draft.parent.path, where),
    )
    if current_inode != draft.inode and (current_inode or is_archived):
        with contextlib.suppress(OSError):
            removal.remove_file(draft.path, draft.folder, follow_root=True)
        raise WriteFailed(
            f"{draft.parent_file} was rewritten while it was copied",
            "Nothing was changed. Run the command again.",
        )


@contextlib.contextmanager
def _ensure_project_folder(draft: Draft, where: Where) -> Iterator[None]:
    """Create the project folder if it is missing. Remove it afterwards if it is still empty."""
    folder = draft.folder
    if draft.makes_folder and os.path.islink(folder):
        raise WriteFailed(
            f"{folder} is a symbolic link, which could lead anywhere, so nothing was written",
            "Replace it with a real folder.",
        )
    if not draft.makes_folder or os.path.isdir(folder):
        yield
        return
    try:
        make_private_folder(folder, where)
    except OSError as error:
        raise WriteFailed(
            f"Could not create {folder}: {error.strerror}",
            "Nothing was changed. Check the permissions.",
        ) from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # a folder that contains a session is not removed
            removal.remove_empty(folder, os.path.dirname(folder), follow_root=True)
