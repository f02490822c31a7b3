"""A bundle's sessions as sessions of a folder: their conversations alone, or whole, as one's own are moved.

Oldest first, so that each finds its parent: links lead to what the parents are called here. Where one can't be written,
those that were written before it go again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.write import receipt, write
from resume_hooks.derive.imports import plan
from resume_hooks.derive.imports.bundle import full_session as whole
from resume_hooks.derive.imports.bundle.full_session import WholePlan
from resume_hooks.derive.imports.bundle.read_bundle import BundledSession
from resume_hooks.derive.imports.plan import ImportPlan, ImportSource
from resume_hooks.errors import NotATranscript, ResumeHooksError
from resume_hooks.paths import Where
from resume_hooks.reading.bundle import Head
from resume_hooks.sessions.link_log import Link, record_link

AS_IMPORTED = "import"


class ImportedSession(NamedTuple):
    """A session of a bundle here; ``existing`` where the same was here before.

    ``files`` beside it came along.
    """

    head: Head
    receipt: Receipt
    existing: bool
    files: int

    @property
    def session_id(self) -> str:
        """What it is called here."""
        return self.receipt.session_id or self.receipt.parent_session_id


class BundleOptions(NamedTuple):
    """How a bundle comes in: ``home``, a real path; ``whole`` as it was; ``force`` where the same is here already."""

    home: str
    whole: bool
    force: bool
    dry_run: bool


def import_sessions(
    packed: list[BundledSession], name: str, options: BundleOptions, where: Where
) -> list[ImportedSession]:
    """Write the sessions of the bundle ``name``, in its order. ImportFailed, NotATranscript, WriteFailed, CheckFailed.

    An ancestor in which nothing was said has no conversation to import: it is passed over.
    """
    imported: list[ImportedSession] = []
    called: dict[str, str] = {}
    with _all_or_none(imported, options):
        for each in packed:
            try:
                came = _bring(each, name, options, called, where)
            except NotATranscript:
                if each is packed[-1]:
                    raise
                continue
            imported.append(came)
            called[each.head.session_id] = came.session_id
    if not options.dry_run:
        _link(imported, called, where)
    return imported


def _bring(
    packed: BundledSession, name: str, options: BundleOptions, called: Mapping[str, str], where: Where
) -> ImportedSession:
    """Write one session, unless it is here already."""
    decided: WholePlan | ImportPlan
    if options.whole:
        decided, files = whole.plan(packed, options.home, called, where, force=options.force), len(packed.files)
    else:
        source = ImportSource(packed.path, name, packed.sums.sha256, packed.size)
        decided, files = plan.plan(source, options.home, where), 0
    if decided.existing is not None and not options.force:
        return ImportedSession(packed.head, plan.known(decided, decided.existing), existing=True, files=files)
    made = receipt(decided) if options.dry_run else write(decided, where)
    return ImportedSession(packed.head, made, existing=False, files=files)


@contextlib.contextmanager
def _all_or_none(imported: list[ImportedSession], options: BundleOptions) -> Iterator[None]:
    try:
        yield
    except (ResumeHooksError, OSError, KeyboardInterrupt):
        for came in () if options.dry_run else imported:
            if came.receipt.written:
                whole.take_back(came.receipt.file)
        raise


def _link(imported: list[ImportedSession], called: Mapping[str, str], where: Where) -> None:
    """Tell of each new session whose parent came along what it came from; where that can't be told, nothing is lost."""
    for came in imported:
        parent = called.get(came.head.parent_session_id, "")
        if parent and not came.existing:
            with contextlib.suppress(OSError):
                record_link(Link(came.session_id, parent, came.head.kind or AS_IMPORTED, clock.now()), where)
