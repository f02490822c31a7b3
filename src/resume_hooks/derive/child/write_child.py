"""Write new sessions: children, imports and sessions from bundles. No other module writes sessions.

Invariant: a child is read back and checked before its file gets its final name, and a failed write
leaves no files behind.
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

# The kind of a copy without secrets. Its ancestors are not archived, because they contain the
# secrets.
COPY_WITHOUT_SECRETS_KIND: Final = "scrub"


class Sizes(NamedTuple):
    """The sizes of parent and child, and the savings of a trim.

    ``tokens_before`` and ``tokens_after`` are the numbers of tokens that the client would send for
    the parent and for the child. ``chars_saved`` and ``tools_trimmed`` are the numbers of
    characters and of tool results that the trim removed.
    """

    tokens_before: int
    tokens_after: int
    chars_saved: int = 0
    tools_trimmed: int = 0


class Watcher(Protocol):
    """An observer that reads each record of a written child, and then returns checks."""

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        """Read one record of the child."""

    def run_checks(self) -> list[Check]:
        """Return the results of the checks. All records must have been read before."""


class ChildBody:
    """The contents of a child in the format of its agent.

    The methods are implemented for Claude Code. Other agents override them.
    """

    __slots__ = ()

    title_line_number: ClassVar[int | None] = None
    """The number of the line with the title, or None if the title is on the last line.

    The folder's titles are locked from the moment this line is written until the child exists. If
    this line were at the start of a large file, the titles would be locked for too long.
    """

    def lines(self) -> Iterable[bytes]:
        """Return the child's lines with their line endings. The line with the title is not included."""
        raise NotImplementedError

    def run_checks(self, path: str, plan: ChildPlan) -> list[Check]:
        """Read the child back from the file ``path``, check it, and return the checks."""
        return invariants.check_session(path, plan.draft.session_id)

    def write_sidecars(
        self,
        draft: Draft,  # noqa: ARG002
        where: Where,  # noqa: ARG002
    ) -> contextlib.AbstractContextManager[list[str]]:
        """Write the files that accompany the child's transcript. Remove them if the ``with`` block fails.

        Yields a list with one sentence for each failure.
        """
        return contextlib.nullcontext([])

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the user about the contents."""
        return ()


@dataclass(frozen=True, slots=True)
class ChildPlan:
    """The plan from which a child is written."""

    draft: Draft
    body: ChildBody
    sizes: Sizes
    remarks: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """All warnings for the user: those of the draft, of the plan, and of the contents."""
        return (*self.draft.warnings, *self.remarks, *self.body.warnings)

    @property
    def copies_tasks(self) -> bool:
        """Whether the parent's task list is copied for the child."""
        return self.draft.kind != COPY_WITHOUT_SECRETS_KIND and self.draft.continues_same_work

    @property
    def is_child_unneeded(self) -> bool:
        """Whether the child would equal its parent. Such a child is not written."""
        return False

    def run_checks(self, path: str) -> list[Check]:
        """Read the child back from the file ``path``, check it, and return the checks."""
        return self.body.run_checks(path, self)

    def watchers(self) -> Sequence[Watcher]:
        """Return new observers that check the records which a child of this kind takes over from its parent."""
        return ()

    def write_sidecars(self, where: Where) -> contextlib.AbstractContextManager[list[str]]:
        """Write the files that accompany the transcript, as ``ChildBody.write_sidecars`` does."""
        return self.body.write_sidecars(self.draft, where)


def write_child(plan: ChildPlan, where: Where) -> Receipt:
    """Write a child, read it back, check it, and link it to its parent.

    If WriteFailed or CheckFailed is raised, no files of the child remain. Other failures only add
    warnings to the receipt: the child could not be linked, its task list could not be copied, or an
    ancestor could not be archived.
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
            yield from islice(body_lines, plan.body.title_line_number)
            if draft.own_title is None:  # The folder's titles stay locked until the child exists.
                stack.enter_context(lock_titles(draft.folder))
                title = draft.find_free_title()
                yield title_line(draft.session_id, title) + b"\n"
            yield from body_lines

        def require_valid_file(path: str) -> None:
            passed_checks.extend(check_child_file(plan, title, path))
            invariants.require_all_checks(passed_checks, draft.path)

        create_session(draft.path, lines(), require_valid_file)
        _require_same_parent_file(draft, where)
    warnings = [*failures]
    if draft.parent is not NO_PARENT:
        if plan.copies_tasks:
            warnings += copy_tasks(draft.parent.session_id, draft.session_id, where)
        warnings += _link_to_parent(draft, where)
    return make_receipt(plan, title, passed_checks, warnings)


def write_if_worthwhile(plan: ChildPlan, where: Where, *, dry_run: bool) -> Receipt:
    """Write a child and return its receipt. In a dry run, or if the plan is pointless, write no files.

    If no files are written, the receipt does not name a child.
    """
    if dry_run or plan.is_child_unneeded:
        return make_planned_receipt(plan)._replace(session_id="", file="")
    return write_child(plan, where)


def make_planned_receipt(plan: ChildPlan) -> Receipt:
    """Return the receipt of a plan that is not written.

    If the plan is pointless, the receipt does not name a child.
    """
    if plan.is_child_unneeded:
        idle_receipt = make_receipt(plan, title="")
        tokens_before = plan.sizes.tokens_before
        return idle_receipt._replace(
            session_id="", file="", written=False, tokens_after=tokens_before, warnings=()
        )
    return make_receipt(plan, plan.draft.find_free_title())._replace(written=False)


def make_receipt(
    plan: ChildPlan, title: str, checks: Sequence[Check] = (), failures: Sequence[str] = ()
) -> Receipt:
    """Return the receipt of a child that was written with the title ``title``.

    ``failures`` contains a sentence for each step that failed after the child was written.
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
    """Return all lines of a planned child, including a line with the title."""
    if plan.draft.own_title is None:
        title_lines = [title_line(plan.draft.session_id, title) + b"\n"]
    else:
        title_lines = []
    body_lines = iter(plan.body.lines())
    return chain(islice(body_lines, plan.body.title_line_number), title_lines, body_lines)


def check_child_file(plan: ChildPlan, title: str, path: str) -> list[Check]:
    """Read the child back from the file ``path``, and return all checks.

    They include the checks that the child names its parent and has the right title.
    """
    draft, checks = plan.draft, plan.run_checks(path)
    if draft.parent is not NO_PARENT:
        # If the name of the parent's file is not a session id, compare the paths of the files
        # instead.
        parent_id, parent_link = draft.parent.session_id, read_parent(path)
        has_parent_id = parent_link is not None and parent_link.session_id == parent_id
        has_parent_file = parent_link is not None and parent_link.file_path == replace_surrogates(
            draft.parent_file
        )
        checks.append(
            Check(
                "the first line names the parent",
                has_parent_id if is_session_id(parent_id) else has_parent_file,
            )
        )
    if draft.own_title is None:
        checks.append(Check("it has the planned title", HeadTail(path).custom_title == title))
    return checks


def _link_to_parent(draft: Draft, where: Where) -> list[str]:
    """Link the child to its parent in the state folder, and archive the child's ancestors.

    Return a warning for each failure.
    """
    warnings = []
    try:
        ids = draft.session_id, draft.parent.session_id
        record_link(Link(*ids, draft.kind, draft.attributes.created_at, find_client_pid()), where)
    except OSError as error:
        warnings.append(
            f"The link to the parent was not added to the state folder ({error.strerror}). The new "
            "session's own file contains it."
        )
    if draft.kind == COPY_WITHOUT_SECRETS_KIND:
        return warnings
    return [*warnings, *archive_ancestors(draft.ancestors, where, draft.loaded_parent)]


def _require_same_parent_file(draft: Draft, where: Where) -> None:
    """Remove the child and raise WriteFailed if the parent's file was replaced after it was read.

    For example, a scrub replaces the parent's file to remove secrets. It does not know about this
    child, which may still contain them.
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
    """Create the project folder if it is missing.

    If it is still empty at the end of the ``with`` block, remove it.
    """
    folder = draft.folder
    if draft.may_create_folder and os.path.islink(folder):
        raise WriteFailed(
            f"{folder} is a symbolic link, which could lead to any folder, so nothing was written",
            "Replace it with a real folder.",
        )
    if not draft.may_create_folder or os.path.isdir(folder):
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
        with contextlib.suppress(OSError):  # If the folder is not empty, it cannot be removed.
            removal.remove_empty_folder(folder, os.path.dirname(folder), follow_root=True)
