"""Import a bundle's sessions into a folder: their conversations alone, or whole, like a user's own moved sessions.

Sessions are written oldest first, so each one finds its parent, and links use the parents' new ids.
If one cannot be written, the sessions written before it are removed.

A whole session keeps its id if that is free, so existing references still work. File checkpoints
are left out, because a bundle does not contain the file copies. A stand-in record replaces each of
them, so the line numbers of all other records stay the same.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.derive.child.bookkeeping import Relocation, plan_relocation
from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.derive.child.rewrite_chain import RecordWatcher
from resume_hooks.derive.child.write import Body, ChildPlan, Sizes, write_unless_idle
from resume_hooks.derive.imports import plan
from resume_hooks.derive.imports.plan import ImportPlan, ImportSource
from resume_hooks.derive.imports.read_bundle import BundledSession
from resume_hooks.errors import NotATranscript, ResumeHooksError, WriteFailed
from resume_hooks.paths import Where, find_session, make_private_folder
from resume_hooks.reading.bundle import STAYED, Head, stand_in
from resume_hooks.sessions.link_log import Link, record_link
from resume_hooks.sessions.opening_layout import ChildSetting
from resume_hooks.sessions.project_folder import only_maker, project_folder
from resume_hooks.sessions.session_files import SessionFile, session_file, sessions_in
from resume_hooks.storage import removal
from resume_hooks.storage.move import has_same_bytes, list_files_below
from resume_hooks.transcripts.bookkeeping import SNAPSHOTS
from resume_hooks.transcripts.context_size import size_of_chain
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import Check
from resume_hooks.transcripts.lines import Line, read_lines
from resume_hooks.transcripts.raw_edit import encode, with_field
from resume_hooks.transcripts.records import kind, parse
from resume_hooks.transcripts.transcript import scan

PART = ".part"  # the suffix of an incomplete folder

_NAMING = (
    b'"sessionId"',
    b'"cwd"',
    b'_metadata"',
    b'"forkedFrom"',
    b'"original_session',
    b'"file-history-',
)
"""Strings in every line that names a session, a folder, or a file's copies."""


@dataclass(frozen=True, slots=True)
class _MovedLines(Body):
    """The lines of a bundled session for the file ``path``.

    ``called`` maps the bundle's ids to the new ones.
    """

    source: str
    path: str
    relocation: Relocation
    called: Mapping[str, str]

    def lines(self) -> Iterator[bytes]:
        with open(self.source, "rb") as stream:
            for line in read_lines(stream):
                yield self._line(line)

    def _line(self, line: Line) -> bytes:
        body = line.body
        if not any(naming in body for naming in _NAMING):
            return body + b"\n"
        record = parse(body) or {}
        if kind(record) in SNAPSHOTS:
            return stand_in(STAYED) + b"\n"
        names = {}
        for key in record:
            if key in _FIELDS:
                names[key] = self._name(key, record[key])
        for key, name in names.items():
            if name != record[key]:
                body = with_field(body, record, key, name) or encode({**record, key: name})
                record[key] = name
        return (self.relocation.line(body) if record.get("cwd") else body) + b"\n"

    def _name(self, key: str, value: object) -> object:
        if isinstance(value, str):
            if _FIELDS[key] is str:
                return self._called(value)
            return value
        if not isinstance(value, dict):
            return value
        return {
            name: self._called(inner) if name in _NAMES else inner for name, inner in value.items()
        }

    def _called(self, value: object) -> object:
        """Return a session's id, or the path of its file, with the new id."""
        if not isinstance(value, str):
            return value
        stem = value.replace("\\", "/").rpartition("/")[2].removesuffix(".jsonl")
        here = self.called.get(stem)
        if here is None:
            return value
        if value == stem:
            return here
        return os.path.join(os.path.dirname(self.path), f"{here}.jsonl")


_NAMES = frozenset({"parent_session_id", "parent_session_file", "parent_file", "sessionId"})
"""Nested fields that name a session."""

_FIELDS: dict[str, type] = {
    "sessionId": str,
    "original_session": str,
    "original_session_id": str,
    "forkedFrom": dict,
    "continue_metadata": dict,
    "trim_metadata": dict,
}
"""A record's fields that name a session or contain such fields, with their types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _WholePlan(ChildPlan):
    """The plan to import a bundled session.

    ``existing`` is the same session if it is already here with the same records.
    """

    body: _MovedLines
    packed: BundledSession
    existing: SessionFile | None
    uuids: tuple[str, ...]

    def checks(self, path: str) -> list[Check]:
        """Check that nothing is missing.

        The session is not our child, so its client's other content is allowed.
        """
        was = self.packed.head.session_id
        names = RecordWatcher(
            "no record has the session's old id",
            lambda _line, record, _node: (
                was == self.draft.session_id or record.get("sessionId") != was
            ),
        )
        written = scan(path, observers=(names,))
        return [
            Check("no line is missing", written.line_count == self.packed.sums.lines),
            Check(
                "all records are there, in order",
                tuple(n.uuid for n in written.nodes) == self.uuids,
            ),
            Check("no line is damaged", not written.bad_lines and not written.torn),
            *names.checks(),
            Check("the file is private", os.stat(path).st_mode & 0o077 == 0),
        ]

    @contextlib.contextmanager
    def sidecars(self, where: Where) -> Iterator[list[str]]:
        """Write the files of the session's own folder. Raises WriteFailed."""
        own, made, done = self.draft.path.removesuffix(".jsonl"), False, False
        part = os.path.join(os.path.dirname(own), f".{os.path.basename(own)}{PART}")
        try:
            if self.packed.files and not os.path.lexists(own):
                if os.path.lexists(part):
                    removal.remove_for_good(
                        part, self.draft.folder, follow_root=True
                    )  # from a killed import
                os.mkdir(part, 0o700)
                for place, path in self.packed.files:
                    target = os.path.join(part, *place.split("/"))
                    make_private_folder(os.path.dirname(target), where)
                    shutil.copyfile(path, target)
                    os.chmod(target, 0o600)
                os.rename(part, own)
                made = True
            yield []
            done = True
        except OSError as error:
            raise WriteFailed(
                f"Could not write {own}: {error.strerror or error}",
                "Nothing was changed. Check free space.",
            ) from error
        finally:
            removal.remove_if_possible(part, self.draft.folder, follow_root=True)
            if made and not done:
                removal.remove_if_possible(own, self.draft.folder, follow_root=True)


def whole_plan(
    packed: BundledSession, home: str, called: Mapping[str, str], where: Where, *, force: bool
) -> _WholePlan:
    """Plan a whole session for the folder ``home``, a real path. Raises NotATranscript."""
    transcript = scan(packed.path)
    own_id, folder = packed.head.session_id, project_folder(home, where)
    move = plan_relocation(packed.head.cwd or HeadTail(packed.path).cwd, home)
    size = size_of_chain(packed.path, transcript.chain)[0].tokens

    def at(path: str, session_id: str, existing: SessionFile | None = None) -> _WholePlan:
        return _WholePlan(
            draft=Draft(
                "import",
                ChildSetting(session_id, home, "", "", ""),
                path,
                "",
                own_title=packed.head.title,
            ),
            body=_MovedLines(packed.path, path, move, {**called, own_id: session_id}),
            sizes=Sizes(size, size),
            packed=packed,
            existing=existing,
            uuids=tuple(node.uuid for node in transcript.nodes),
        )

    there, wanted = find_session(own_id, where), os.path.join(folder, f"{own_id}.jsonl")
    if (
        there is None
        and not os.path.lexists(wanted)
        and _is_free(wanted.removesuffix(".jsonl"), packed)
    ):
        return at(wanted, own_id)
    if there is not None and not force and _file_holds(there, at(there, own_id).body):
        return at(there, own_id, session_file(there))
    new_id = str(uuid.uuid4())
    size = sum(map(len, at("", new_id).body.lines()))
    for session in (
        [] if force else sessions_in(folder)
    ):  # an earlier import may have used another id
        if session.size == size and _file_holds(
            session.path, at(session.path, session.session_id).body
        ):
            return at(session.path, session.session_id, session)
    return at(os.path.join(folder, f"{new_id}.jsonl"), new_id)


def _is_free(own: str, packed: BundledSession) -> bool:
    """Check whether a new session's folder is absent, or contains only the bundle's files after a killed import."""
    if not os.path.lexists(own):
        return True
    try:
        there = {name.replace(os.sep, "/") for name in list_files_below(own)}
        same = all(
            has_same_bytes(path, os.path.join(own, *place.split("/")))
            for place, path in packed.files
        )
    except OSError:
        return False
    return same and there == {place for place, _ in packed.files}


def _file_holds(path: str, body: _MovedLines) -> bool:
    try:
        with open(path, "rb") as stream:
            return all(line == stream.read(len(line)) for line in body.lines()) and not stream.read(
                1
            )
    except OSError:
        return False  # deleted since the search


class ImportedSession(NamedTuple):
    """An imported session of a bundle, with the number of its other ``files``.

    ``existing`` means it was already here. ``hidden`` is the number of records that the model reads
    but the screen does not show.
    """

    head: Head
    receipt: Receipt
    existing: bool
    files: int
    hidden: int

    @property
    def session_id(self) -> str:
        """The session's id here, or ``""`` if none was written."""
        return self.receipt.session_id or self.receipt.parent_session_id


class BundleOptions(NamedTuple):
    """The options of an import: the folder ``home`` (a real path), ``whole`` sessions, ``force`` for repeated ones."""

    home: str
    whole: bool
    force: bool
    dry_run: bool


def import_sessions(
    packed: list[BundledSession], name: str, options: BundleOptions, where: Where
) -> list[ImportedSession]:
    """Write the sessions of the bundle ``name``, in its order.

    Raises ImportFailed, NotATranscript, WriteFailed and CheckFailed.

    An ancestor without messages has no conversation to import and is skipped.
    """
    imported: list[ImportedSession] = []
    called: dict[str, str] = {}
    with only_maker(options.home, where), _all_or_none(imported, options):
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
        for came in imported:
            parent = called.get(came.head.parent_session_id, "")
            if parent and not came.existing:
                with contextlib.suppress(OSError):
                    record_link(
                        Link(came.session_id, parent, _link_kind(came.head.kind), clock.now()),
                        where,
                    )
    return imported


def _link_kind(named: str) -> str:
    """Return the kind of link that the bundle states.

    The bundle is not trusted for kinds that our verbs rely on.
    """
    if named and named not in {"back", "mark"}:
        return named
    return "import"


def _bring(
    packed: BundledSession,
    name: str,
    options: BundleOptions,
    called: Mapping[str, str],
    where: Where,
) -> ImportedSession:
    decided: _WholePlan | ImportPlan
    files = hidden = 0
    if options.whole:
        decided, files = (
            whole_plan(packed, options.home, called, where, force=options.force),
            len(packed.files),
        )
    else:
        source = ImportSource(packed.path, name, packed.sums.sha256, packed.size)
        decided = plan.plan_import(source, options.home, where)
        hidden = decided.hidden
    if decided.existing is not None and not options.force:
        known = plan.existing_import(decided, decided.existing)
        return ImportedSession(packed.head, known, existing=True, files=files, hidden=hidden)
    made = write_unless_idle(decided, where, dry_run=options.dry_run)
    return ImportedSession(packed.head, made, existing=False, files=files, hidden=hidden)


@contextlib.contextmanager
def _all_or_none(imported: list[ImportedSession], options: BundleOptions) -> Iterator[None]:
    try:
        yield
    except (ResumeHooksError, OSError, KeyboardInterrupt):
        for came in () if options.dry_run else imported:
            if came.receipt.written:
                for path in (came.receipt.file, came.receipt.file.removesuffix(".jsonl")):
                    removal.remove_if_possible(path, os.path.dirname(path), follow_root=True)
        raise
