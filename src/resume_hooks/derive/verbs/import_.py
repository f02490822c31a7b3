"""``import``: create sessions in a folder from a transcript, or from a bundle of sessions.

The sessions of a bundle are written oldest first, so each session can be linked to its parent's new
id. If a session cannot be written, the sessions of the bundle that were already written are
removed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.imports.plan_import import (
    ImportPlan,
    ImportSource,
    make_existing_import_receipt,
    plan_import,
)
from resume_hooks.derive.imports.plan_whole_session import WholeSessionPlan, plan_whole_session
from resume_hooks.derive.imports.read_bundle import BundledSession
from resume_hooks.derive.outcome import NothingWritten, OpenedSession
from resume_hooks.derive.verbs.caller import Caller
from resume_hooks.errors import NotATranscript, ResumeHooksError, UsageError
from resume_hooks.paths import Where
from resume_hooks.reading.bundle import BundleHead
from resume_hooks.sessions.link_log import Link, record_link
from resume_hooks.sessions.project_folder import lock_session_creation
from resume_hooks.storage import removal

ImportOutcome = OpenedSession[ImportPlan] | NothingWritten[ImportPlan]


class ImportSpec(NamedTuple):
    """The options of an import.

    ``home`` is the folder for the sessions, a path without symbolic links. If
    ``imports_all_records`` is true, the sessions are imported with all their records. If ``force``
    is true, sessions are imported even if they were imported before.
    """

    home: str
    imports_all_records: bool = False
    force: bool = False


class ImportedSession(NamedTuple):
    """A session that was imported from a bundle.

    ``existed_before`` is true if the session was imported by an earlier command. ``file_count`` is
    the number of files that were imported with it. ``hidden_record_count`` is the number of records
    that the model reads but the screen does not show.
    """

    head: BundleHead
    receipt: Receipt
    existed_before: bool
    file_count: int
    hidden_record_count: int

    @property
    def session_id(self) -> str:
        """The id of the imported session. In a dry run, the id is ``""`` unless the session existed before."""
        return self.receipt.session_id or self.receipt.parent_session_id


def import_transcript(source: ImportSource, spec: ImportSpec, caller: Caller) -> ImportOutcome:
    """Import a transcript as a session, or return the session of an earlier import.

    Raises UsageError, NotATranscript, WriteFailed and CheckFailed.
    """
    if spec.imports_all_records:
        raise UsageError(
            f"{source.name} is a transcript, not a bundle",
            "The option --whole is only for bundles. Leave it out.",
        )
    with lock_session_creation(spec.home, caller.where):
        plan = plan_import(source, spec.home, caller.where, force=spec.force)
        receipt = _write_import_if_missing(plan, caller)
    if plan.earlier_import is not None:
        return OpenedSession(receipt, plan, "already imported")
    if not receipt.written:
        return NothingWritten(receipt, plan)
    return OpenedSession(receipt, plan, "imported")


def import_sessions(
    bundled_sessions: list[BundledSession], bundle_name: str, spec: ImportSpec, caller: Caller
) -> list[ImportedSession]:
    """Import the sessions of the bundle ``bundle_name``, in the bundle's order.

    An ancestor without messages has no conversation to import, and is skipped. Raises ImportFailed,
    NotATranscript, WriteFailed and CheckFailed.
    """
    imported_sessions: list[ImportedSession] = []
    new_ids: dict[str, str] = {}
    with (
        lock_session_creation(spec.home, caller.where),
        _delete_imports_after_failure(imported_sessions),
    ):
        for bundled in bundled_sessions:
            try:
                imported_session = _import_session(bundled, bundle_name, spec, new_ids, caller)
            except NotATranscript:
                if bundled is bundled_sessions[-1]:
                    raise
                continue
            imported_sessions.append(imported_session)
            new_ids[bundled.head.session_id] = imported_session.session_id
    if not caller.dry_run:
        _link_to_parents(imported_sessions, new_ids, caller.where)
    return imported_sessions


def _import_session(
    bundled: BundledSession,
    bundle_name: str,
    spec: ImportSpec,
    new_ids: Mapping[str, str],
    caller: Caller,
) -> ImportedSession:
    plan: WholeSessionPlan | ImportPlan
    files = hidden = 0
    if spec.imports_all_records:
        plan = plan_whole_session(bundled, spec.home, new_ids, caller.where, force=spec.force)
        files = len(bundled.files)
    else:
        source = ImportSource(
            bundled.records_path, bundle_name, bundled.checksums.sha256, bundled.size_bytes
        )
        plan = plan_import(source, spec.home, caller.where, force=spec.force)
        hidden = plan.hidden_record_count
    receipt = _write_import_if_missing(plan, caller)
    return ImportedSession(
        bundled.head,
        receipt,
        existed_before=plan.earlier_import is not None,
        file_count=files,
        hidden_record_count=hidden,
    )


def _write_import_if_missing(plan: WholeSessionPlan | ImportPlan, caller: Caller) -> Receipt:
    if plan.earlier_import is not None:
        return make_existing_import_receipt(plan, plan.earlier_import)
    return caller.write_child(plan)


@contextlib.contextmanager
def _delete_imports_after_failure(imported_sessions: list[ImportedSession]) -> Iterator[None]:
    try:
        yield
    except (ResumeHooksError, OSError, KeyboardInterrupt):
        for imported_session in imported_sessions:
            file = imported_session.receipt.file
            if imported_session.receipt.written:
                for path in (file, file.removesuffix(".jsonl")):
                    removal.remove_if_possible(path, os.path.dirname(path), follow_root=True)
        raise


def _link_to_parents(
    imported_sessions: list[ImportedSession], new_ids: Mapping[str, str], where: Where
) -> None:
    """Record the parents of the imported sessions in the log of links, if the log is writable."""
    for session in imported_sessions:
        parent_id = new_ids.get(session.head.parent_session_id, "")
        if parent_id and not session.existed_before:
            kind = _choose_parent_link_kind(session.head.kind)
            with contextlib.suppress(OSError):
                record_link(Link(session.session_id, parent_id, kind, clock.now()), where)


def _choose_parent_link_kind(bundled_kind: str) -> str:
    """Return the kind of a session's link to its parent.

    This is the kind that the bundle states, with two exceptions: if it states none, or ``back`` or
    ``mark``, return ``import``. Some verbs rely on ``back`` and ``mark``, and a bundle could state
    them wrongly.
    """
    if bundled_kind and bundled_kind not in {"back", "mark"}:
        return bundled_kind
    return "import"
