"""What every child has in common, whatever it holds: id, folder, title, lineage; and how it comes into the world.

Invariant: a child is checked as read back before anyone hears of it, and nothing of one that failed stays behind.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.archive.retention.ancestors import keep_ancestors
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.sidecars import backups_named, companions_of
from resume_hooks.errors import UsageError, WriteFailed
from resume_hooks.paths import Where, is_session_id, private_folder
from resume_hooks.redaction.texts import redact
from resume_hooks.sessions import lineage_block, title_lock
from resume_hooks.sessions.archived.sessions import is_kept, own_path, project_folder_of
from resume_hooks.sessions.lineage import Ancestor, Family
from resume_hooks.sessions.link_log import Link, record_link
from resume_hooks.sessions.locate import SessionFile, is_known
from resume_hooks.sessions.opening_records import ChildSetting
from resume_hooks.sessions.project_folder import home_folder, project_folder
from resume_hooks.sessions.titles import child_title, root_of
from resume_hooks.storage.atomic import create_session
from resume_hooks.system.text import encodable
from resume_hooks.transcripts import invariants as checks
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.provenance import Parent, read_parent

OUTSIDE = "The new file does not lie in its project's folder: --resume will not find it there by its id."
"""The warning of a child that the client finds in no folder."""


class Birth(NamedTuple):
    """A child to be: ``ancestors`` oldest first, ``block`` its lineage as text, ``path`` the file it will be.

    ``parent_file`` is where the client has the parent, or had it where only a kept copy is left; that is what is named.
    ``inode`` is that of the file that is read.
    ``makes_folder``: the project folder may not be there, or not any more.
    """

    parent: SessionFile
    parent_file: str
    inode: int
    kind: str
    setting: ChildSetting
    path: str
    makes_folder: bool
    title: str
    ancestors: tuple[Ancestor, ...]
    block: str
    warnings: tuple[str, ...]

    @property
    def session_id(self) -> str:
        """The child's id."""
        return self.setting.session_id


class Born(NamedTuple):
    """What came of a write: the checks that it passed, and what could not be done beside it."""

    checks: tuple[checks.Check, ...]
    warnings: tuple[str, ...]


def expect(
    parent: SessionFile,
    glance: HeadTail,
    kind: str,
    where: Where,
    output_dir: str | None = None,
    *,
    home: str = "",
) -> Birth:
    """Decide on a child of ``parent``; nothing is written. UsageError for what can't be a parent.

    With a ``home``, a real path, it is a session of that folder's project; else of its parent's.
    """
    if glance.is_sidechain:
        raise UsageError("This is a sub-agent's transcript", "Name the session that it belongs to.")
    ancestors = tuple(Family(where).lineage(parent.path))
    own_folder = project_folder(home, where) if home else project_folder_of(parent.path, where)
    folder = os.path.abspath(output_dir or own_folder)
    setting = ChildSetting(str(uuid.uuid4()), home or home_folder(glance), glance.branch, glance.version, clock.now())
    path = os.path.join(folder, f"{setting.session_id}.jsonl")
    title = child_title(redact(_root_title(ancestors))[0], kind, folder)
    block = lineage_block.render(ancestors, title=title, session_id=setting.session_id, file=path, created=setting.at)
    block, _ = redact(block)  # a title is often the first prompt
    known = is_known(parent, where) or is_kept(parent.path, where)
    found = output_dir is None and (bool(home) or known)
    parent_file = own_path(parent.path, where)
    makes = output_dir is None and (bool(home) or parent_file != parent.path)
    inode, warnings = _inode(parent.path), () if found else (OUTSIDE,)
    return Birth(parent, parent_file, inode, kind, setting, path, makes, title, ancestors, block, warnings)


def bear(
    expected: Birth,
    chunks: Iterable[bytes],
    check: Callable[[str], Sequence[checks.Check]],
    where: Where,
    *,
    books: Sequence[bytes] | None = None,
) -> Born:
    """Write a child's lines, check them as read back, link it to its parent.

    ``check`` looks at the finished file and what it finds wrong keeps the child from being born. With its ``books``,
    lines after its chain, it gets its parent's large tool outputs, and the file backups that they name, under its own
    id. WriteFailed or CheckFailed leave nothing behind; a link that can't be kept is a warning, and so is an ancestor
    that the vault can't take.
    """
    passed: list[checks.Check] = []

    def inspect(path: str) -> None:
        passed.extend([*check(path), *checks_of(expected, path)])
        checks.require(passed, expected.path)

    missed: list[str] = []
    with contextlib.ExitStack() as beside:
        beside.callback(title_lock.release, os.path.dirname(expected.path))
        beside.enter_context(_folder_for(expected))
        if books is not None:
            companions = companions_of(expected.parent, expected.session_id, expected.path, backups_named(books), where)
            missed = beside.enter_context(companions)
        create_session(expected.path, chunks, inspect)
        _require_same(expected, where)
    warnings = [*expected.warnings, *missed]
    try:
        link = Link(expected.session_id, expected.parent.session_id, expected.kind, expected.setting.at)
        record_link(link, where)
    except OSError as error:
        warnings.append(f"The link was not added to the state folder ({error.strerror}); the session itself holds it.")
    if expected.kind != "scrub":  # that one is made to be rid of something: no copy more of its ancestors
        warnings += keep_ancestors(expected.ancestors, where)
    return Born(tuple(passed), tuple(warnings))


def _inode(path: str) -> int:
    """What tells a file from one that took its place; 0 where there is none."""
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


def _require_same(expected: Birth, where: Where) -> None:
    """Take a child back whose parent was rewritten since it was read: a scrub can't know of it. WriteFailed."""
    now, kept = _inode(expected.parent.path), is_kept(expected.parent.path, where)
    if now != expected.inode and (now or kept):
        with contextlib.suppress(OSError):
            os.unlink(expected.path)
        raise WriteFailed(
            f"{expected.parent_file} was rewritten while it was copied", "Nothing was changed. Run the command again."
        )


@contextlib.contextmanager
def _folder_for(expected: Birth) -> Iterator[None]:
    """Make the project folder where it is missing; it goes again where nothing was written into it."""
    folder = os.path.dirname(expected.path)
    if not expected.makes_folder or os.path.isdir(folder):
        if os.path.islink(folder) and expected.makes_folder:
            raise WriteFailed(f"{folder} is a link, which could lead anywhere", "Nothing was changed. Move it away.")
        yield
        return
    try:
        private_folder(folder)
    except OSError as error:
        raise WriteFailed(f"{folder} can't be made: {error.strerror}", "Nothing was changed.") from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # what holds a session stays
            os.rmdir(folder)


def checks_of(expected: Birth, path: str) -> list[checks.Check]:
    """What every child must hold as it is read back from ``path``."""
    return [
        checks.Check("the first line names the parent", _names(read_parent(path), expected)),
        checks.Check("the title is its own", HeadTail(path).custom_title == expected.title),
    ]


def receipt_of(
    expected: Birth,
    born: Born | None,
    *,
    tokens_before: int,
    tokens_after: int,
    chars_saved: int = 0,
    tools_trimmed: int = 0,
) -> Receipt:
    """The receipt of a child, born or only planned."""
    return Receipt(
        session_id=expected.session_id,
        file=expected.path,
        title=expected.title,
        parent_session_id=expected.parent.session_id,
        parent_file=expected.parent_file,
        kind=expected.kind,
        written=born is not None,
        folder=expected.setting.cwd,
        tokens_before=tokens_before,
        tokens_after=tokens_after,
        chars_saved=chars_saved,
        tools_trimmed=tools_trimmed,
        checks=born.checks if born else (),
        warnings=born.warnings if born else expected.warnings,
    )


def _names(named: Parent | None, expected: Birth) -> bool:
    """Whether a child's first line leads to its parent: by its id, or by its file where the name is no id."""
    if named is None:
        return False
    parent_id = expected.parent.session_id
    by_id = named.session_id == parent_id
    return by_id if is_session_id(parent_id) else named.file == encodable(expected.parent_file)


def _root_title(ancestors: Sequence[Ancestor]) -> str:
    """The root's title; where the root is gone, its oldest descendant still carries it."""
    oldest = next((ancestor for ancestor in ancestors if ancestor.title), None)
    if oldest is None:
        return "Session"
    return oldest.title if oldest.derivation_type == "original" else root_of(oldest.title)
