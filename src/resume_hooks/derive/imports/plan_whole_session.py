"""Plan the import of a bundle's session with all its records, as if the user had moved it to a folder.

The session keeps its id if no other session has it, so references to the session still work. File
snapshots are omitted, because a bundle does not contain the backups of the files. A record without
contents replaces each snapshot, so the line numbers of all other records stay the same.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.child.inherited_metadata import Relocation, plan_relocation
from resume_hooks.derive.child.rewrite_chain import RecordWatcher
from resume_hooks.derive.child.write_child import ChildBody, ChildPlan, Sizes
from resume_hooks.derive.imports.read_bundle import BundledSession
from resume_hooks.errors import WriteFailed
from resume_hooks.paths import Where, find_session, make_private_folder
from resume_hooks.reading.bundle import OMITTED_KIND, make_placeholder_record
from resume_hooks.sessions.opening_layout import ChildAttributes
from resume_hooks.sessions.project_folder import project_folder
from resume_hooks.sessions.session_files import (
    SessionFile,
    session_file,
    sessions_in_project_folder,
)
from resume_hooks.storage import removal
from resume_hooks.storage.hard_links import has_same_bytes, list_files_below
from resume_hooks.transcripts.context_size import measure_chain
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import Check
from resume_hooks.transcripts.lines import Line, read_lines
from resume_hooks.transcripts.metadata_records import SNAPSHOT_KINDS
from resume_hooks.transcripts.raw_edit import encode_record, set_field
from resume_hooks.transcripts.records import get_kind, parse_record
from resume_hooks.transcripts.transcript import scan_transcript

# While a folder is being written, this suffix is added to its name.
INCOMPLETE_FOLDER_SUFFIX = ".part"

_ID_LINE_MARKERS = (
    b'"sessionId"',
    b'"cwd"',
    b'_metadata"',
    b'"forkedFrom"',
    b'"original_session',
    b'"file-history-',
)
"""Every line that names a session, a folder or file backups contains at least one of these strings.
"""


@dataclass(frozen=True, slots=True)
class _RelocatedLines(ChildBody):
    """The lines of a bundled session as they are written to the file ``target_path``.

    ``new_ids`` maps each session id in the bundle to the id of the imported session.
    """

    source_path: str
    target_path: str
    relocation: Relocation
    new_ids: Mapping[str, str]

    def lines(self) -> Iterator[bytes]:
        with open(self.source_path, "rb") as stream:
            for line in read_lines(stream):
                yield self._relocate_line(line)

    def _relocate_line(self, line: Line) -> bytes:
        body = line.body
        if not any(naming_string in body for naming_string in _ID_LINE_MARKERS):
            return body + b"\n"
        record = parse_record(body) or {}
        if get_kind(record) in SNAPSHOT_KINDS:
            return make_placeholder_record(OMITTED_KIND) + b"\n"
        new_values = {}
        for key in record:
            if key in _ID_FIELD_TYPES:
                new_values[key] = self._relocate_value(key, record[key])
        for key, name in new_values.items():
            if name != record[key]:
                body = set_field(body, record, key, name) or encode_record({**record, key: name})
                record[key] = name
        return (
            self.relocation.relocate_folder_in_line(body) if record.get("cwd") else body
        ) + b"\n"

    def _relocate_value(self, key: str, value: object) -> object:
        if isinstance(value, str):
            if _ID_FIELD_TYPES[key] is str:
                return self._replace_session_id(value)
            return value
        if not isinstance(value, dict):
            return value
        return {
            name: self._replace_session_id(inner) if name in _NESTED_ID_FIELD_NAMES else inner
            for name, inner in value.items()
        }

    def _replace_session_id(self, value: object) -> object:
        """Replace a session id, alone or in the path of a session's file, with the imported session's id."""
        if not isinstance(value, str):
            return value
        stem = value.replace("\\", "/").rpartition("/")[2].removesuffix(".jsonl")
        new_id = self.new_ids.get(stem)
        if new_id is None:
            return value
        if value == stem:
            return new_id
        return os.path.join(os.path.dirname(self.target_path), f"{new_id}.jsonl")


_NESTED_ID_FIELD_NAMES = frozenset(
    {"parent_session_id", "parent_session_file", "parent_file", "sessionId"}
)
"""Fields that contain a session id and are nested in other fields of a record."""

_ID_FIELD_TYPES: dict[str, type] = {
    "sessionId": str,
    "original_session": str,
    "original_session_id": str,
    "forkedFrom": dict,
    "continue_metadata": dict,
    "trim_metadata": dict,
}
"""Maps the name of each field that contains a session id to the type of the field's value.

If the type is dict, the id is in a field of this value.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeSessionPlan(ChildPlan):
    """The plan to import a bundled session with all its records.

    ``earlier_import`` is a session that was imported earlier with the same records. It is None if there
    is no such session, or if a new import is forced.
    """

    body: _RelocatedLines
    bundled: BundledSession
    earlier_import: SessionFile | None
    record_uuids: tuple[str, ...]

    def run_checks(self, path: str) -> list[Check]:
        """Check that the written session contains all records of the bundle's session.

        The checks of a child are skipped, because the session may contain records that a child
        never contains.
        """
        old_id = self.bundled.head.session_id
        names = RecordWatcher(
            "no record has the session's old id",
            lambda _line, record, _node: (
                old_id == self.draft.session_id or record.get("sessionId") != old_id
            ),
        )
        written = scan_transcript(path, observers=(names,))
        return [
            Check("no line is missing", written.line_count == self.bundled.checksums.lines),
            Check(
                "the session contains all records in order",
                tuple(node.uuid for node in written.nodes) == self.record_uuids,
            ),
            Check("no line is damaged", not written.damaged_lines and not written.is_torn),
            *names.run_checks(),
            Check("the file is private", os.stat(path).st_mode & 0o077 == 0),
        ]

    @contextlib.contextmanager
    def write_sidecars(self, where: Where) -> Iterator[list[str]]:
        """Write the files that belong in the session's own folder. Raises WriteFailed."""
        own_folder, was_created, succeeded = self.draft.path.removesuffix(".jsonl"), False, False
        incomplete_path = os.path.join(
            os.path.dirname(own_folder),
            f".{os.path.basename(own_folder)}{INCOMPLETE_FOLDER_SUFFIX}",
        )
        try:
            if self.bundled.files and not os.path.lexists(own_folder):
                if os.path.lexists(incomplete_path):
                    # An earlier import that was killed left this folder behind.
                    removal.remove_permanently(incomplete_path, self.draft.folder, follow_root=True)
                os.mkdir(incomplete_path, 0o700)
                for name, path in self.bundled.files:
                    target = os.path.join(incomplete_path, *name.split("/"))
                    make_private_folder(os.path.dirname(target), where)
                    shutil.copyfile(path, target)
                    os.chmod(target, 0o600)
                os.rename(incomplete_path, own_folder)
                was_created = True
            yield []
            succeeded = True
        except OSError as error:
            raise WriteFailed(
                f"Could not write {own_folder}: {error.strerror or error}",
                "Nothing was changed. Check free space.",
            ) from error
        finally:
            removal.remove_if_possible(incomplete_path, self.draft.folder, follow_root=True)
            if was_created and not succeeded:
                removal.remove_if_possible(own_folder, self.draft.folder, follow_root=True)


def plan_whole_session(
    bundled: BundledSession, home: str, new_ids: Mapping[str, str], where: Where, *, force: bool
) -> WholeSessionPlan:
    """Plan the import of a bundled session to the folder ``home``, a path without symbolic links.

    Raises NotATranscript if the bundled file is not a transcript.
    """
    transcript = scan_transcript(bundled.records_path)
    own_id, folder = bundled.head.session_id, project_folder(home, where)
    relocation = plan_relocation(bundled.head.cwd or HeadTail(bundled.records_path).cwd, home)
    size = measure_chain(bundled.records_path, transcript.chain)[0].tokens

    def plan_session_in_file(
        file: str, session_id: str, earlier_import: SessionFile | None = None
    ) -> WholeSessionPlan:
        return WholeSessionPlan(
            draft=Draft(
                "import",
                ChildAttributes(session_id, home, "", "", ""),
                file,
                "",
                own_title=bundled.head.title,
            ),
            body=_RelocatedLines(
                bundled.records_path, file, relocation, {**new_ids, own_id: session_id}
            ),
            sizes=Sizes(size, size),
            bundled=bundled,
            earlier_import=earlier_import,
            record_uuids=tuple(node.uuid for node in transcript.nodes),
        )

    existing_path, free_path = find_session(own_id, where), os.path.join(folder, f"{own_id}.jsonl")
    if (
        existing_path is None
        and not os.path.lexists(free_path)
        and _is_own_folder_free(free_path.removesuffix(".jsonl"), bundled)
    ):
        return plan_session_in_file(free_path, own_id)
    if (
        existing_path is not None
        and not force
        and _has_same_lines(existing_path, plan_session_in_file(existing_path, own_id).body)
    ):
        return plan_session_in_file(existing_path, own_id, session_file(existing_path))
    new_id = str(uuid.uuid4())
    size = sum(map(len, plan_session_in_file("", new_id).body.lines()))
    # An earlier import may have given the session a different id.
    for session in [] if force else sessions_in_project_folder(folder):
        if session.size == size and _has_same_lines(
            session.path, plan_session_in_file(session.path, session.session_id).body
        ):
            return plan_session_in_file(session.path, session.session_id, session)
    return plan_session_in_file(os.path.join(folder, f"{new_id}.jsonl"), new_id)


def _is_own_folder_free(own_folder: str, bundled: BundledSession) -> bool:
    """Check whether the folder of a new session can be used.

    The folder can be used if it does not exist, or if it contains only files of the bundle that a
    killed import left behind.
    """
    if not os.path.lexists(own_folder):
        return True
    try:
        existing_names = {name.replace(os.sep, "/") for name in list_files_below(own_folder)}
        has_same_files = all(
            has_same_bytes(path, os.path.join(own_folder, *file_name.split("/")))
            for file_name, path in bundled.files
        )
    except OSError:
        return False
    return has_same_files and existing_names == {file_name for file_name, _ in bundled.files}


def _has_same_lines(path: str, relocated_lines: _RelocatedLines) -> bool:
    try:
        with open(path, "rb") as stream:
            return all(
                line == stream.read(len(line)) for line in relocated_lines.lines()
            ) and not stream.read(1)
    except OSError:
        return False  # The file was deleted after it was found.
