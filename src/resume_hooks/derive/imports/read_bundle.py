"""Read a bundle, and write the records and files of its sessions to private temporary files.

Invariant: sessions are returned only if the whole bundle was read and is complete. Names in a
bundle are never used as paths of temporary files.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import functools
import hashlib
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeVar

import orjson

from resume_hooks.errors import ImportFailed, WriteFailed
from resume_hooks.paths import TOOL_RESULTS_FOLDER_NAME, Where, is_session_id, make_private_folder
from resume_hooks.reading.bundle import (
    BUNDLE_CHECKSUMS_ROW_START,
    BUNDLE_END_ROW,
    BUNDLE_FILES_ROW,
    BUNDLE_KEY,
    BUNDLE_PREFIX,
    BUNDLE_VERSION,
    MAX_ACCOMPANYING_FILE_BYTES,
    MAX_ACCOMPANYING_FILES,
    MAX_BUNDLE_SESSIONS,
    SUBAGENT_METADATA_SUFFIX,
    BundleChecksums,
    BundleHead,
    BundleSeal,
)
from resume_hooks.sessions.transcript_files import SUBAGENTS_FOLDER
from resume_hooks.storage.state_file import (
    PRIVATE_MODE,
    discard_temporary,
    remove_stale_temporaries,
    temporary_path,
)
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts.head_tail import MAX_TITLE_CHARACTERS
from resume_hooks.transcripts.lines import BOM

if TYPE_CHECKING:
    from pydantic import TypeAdapter

ValidatedPart = TypeVar("ValidatedPart")

# This number of bytes at the start of a file is enough to recognize a bundle that another program
# has reformatted.
SIGNATURE_SEARCH_BYTES = 4_096
EXPORT_AGAIN_ADVICE = "Export it again, and copy the file without changing it."

_FILE_NAME_PATTERN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,=@+-]{0,199}")
_AGENT_FILE_PATTERN = re.compile(
    rf"agent-[A-Za-z0-9_-]{{1,100}}(?:\.jsonl|{re.escape(SUBAGENT_METADATA_SUFFIX)})"
)
_CHILD_KIND_PATTERN = re.compile(r"[a-z][a-z-]{0,39}")


class BundledFile(NamedTuple):
    """A file in the own folder of a bundled session.

    ``temporary_path`` is the path of a temporary file with the content of the file.
    """

    name: str
    temporary_path: str


class BundledSession(NamedTuple):
    """A session from a bundle.

    ``records_path`` is a temporary file with the session's records, and ``size_bytes`` is its size.
    ``files`` are the files in the session's own folder. ``rejected_file_count`` is the number of
    files that were skipped because of an invalid name.
    """

    head: BundleHead
    checksums: BundleChecksums
    records_path: str
    size_bytes: int
    files: tuple[BundledFile, ...]
    rejected_file_count: int


def is_bundle(path: str) -> bool:
    """Check whether a file is a bundle.

    Raises ImportFailed if another program reformatted the bundle. A reformatted bundle cannot be
    read, because each value must be on its own line.
    """
    with open(path, "rb") as stream:
        head = stream.read(SIGNATURE_SEARCH_BYTES).removeprefix(BOM).lstrip()
    if head.startswith(BUNDLE_PREFIX):
        return True
    if b'"%s"' % BUNDLE_KEY.encode() in head and not head.startswith(b'{"type"'):
        raise ImportFailed(
            "Another program reformatted this bundle and changed its line breaks",
            EXPORT_AGAIN_ADVICE,
        )
    return False


@contextlib.contextmanager
def unpack_bundle(path: str, where: Where) -> Iterator[list[BundledSession]]:
    """Yield the sessions of a bundle, in order.

    The sessions' temporary files exist until the end of the ``with`` block. Raises ImportFailed if
    the bundle is truncated or damaged, or has a newer format. Raises WriteFailed if the temporary
    files cannot be written.
    """
    temporary_paths: list[str] = []
    try:
        try:
            folder = make_private_folder(where.state, where)
            remove_stale_temporaries(folder)
            with open(path, "rb") as stream:
                sessions = _BundleReader(stream, folder, temporary_paths).read_sessions()
        except OSError as error:
            raise WriteFailed(
                f"The import could not be stored: {error.strerror or error}",
                "Nothing was changed. Check free space and the permissions of the state folder.",
            ) from error
        yield sessions
    finally:
        for temporary_path in temporary_paths:
            discard_temporary(temporary_path)


class _RecordsFile(NamedTuple):
    """A temporary file with the records of one session, and the SHA-256 of its content."""

    path: str
    size_bytes: int
    record_count: int
    sha256: str


class _BundleReader:
    """Reads a bundle's lines.

    The reader adds the path of each temporary file to ``temporary_paths`` as soon as the file
    exists.
    """

    def __init__(self, stream: BinaryIO, folder: str, temporary_paths: list[str]) -> None:
        self._stream = stream
        self._folder = folder
        self._temporary_paths = temporary_paths
        self._seal = BundleSeal()

    def read_sessions(self) -> list[BundledSession]:
        header = _parse_object(self._read_line().removeprefix(BOM) + BUNDLE_END_ROW)
        version = header.get(BUNDLE_KEY)
        if version != BUNDLE_VERSION:
            raise ImportFailed(
                f"This bundle has the format {version!r}, which this version of resume-hooks does not know",
                "Update resume-hooks.",
            )
        bundled: list[BundledSession] = []
        while (line := self._read_line()) != BUNDLE_END_ROW:
            if len(bundled) == MAX_BUNDLE_SESSIONS:
                raise ImportFailed(
                    f"The bundle has more than {MAX_BUNDLE_SESSIONS:,} sessions",
                    "Export fewer at a time.",
                )
            bundled.append(self._read_session(line))
        ids = {session.head.session_id for session in bundled}
        if not bundled or len(ids) < len(bundled) or self._stream.readline():
            raise _make_damage_error("sessions")
        return bundled

    def _read_session(self, line: bytes) -> BundledSession:
        self._seal = BundleSeal()
        self._seal.add_row(line)
        head = _parse_head(line)
        records_file = self._read_records()
        files, refused, line = self._read_files_until_checksums()
        row = _parse_object(b"{" + line.removeprefix(b"],").removesuffix(b",")).get("sums")
        sums = _validate_bundle_part(_make_validators()[1], row, "sums")
        if (sums.lines, sums.sha256) != (records_file.record_count, records_file.sha256):
            raise _make_damage_error("records")
        if self._seal.seal_checksums(sums) != sums:
            raise _make_damage_error("sessions or files")
        return BundledSession(
            head, sums, records_file.path, records_file.size_bytes, tuple(files), refused
        )

    def _read_records(self) -> _RecordsFile:
        """Write the session's records to a temporary file, and return this file."""
        digest, count, size = hashlib.sha256(), 0, 0
        with self._open_temporary_file() as (path, stream):
            while (line := self._read_line()) != BUNDLE_FILES_ROW:
                row = line.removesuffix(b",")
                if row:
                    record = row + b"\n"
                    digest.update(record)
                    self._seal.add_row(row)
                    size += stream.write(record)
                    count += 1
        return _RecordsFile(path, size, count, digest.hexdigest())

    def _read_files_until_checksums(self) -> tuple[list[BundledFile], int, bytes]:
        """Return the files, the number of refused files, and the line with the checksums."""
        paths_by_name: dict[str, str] = {}
        refused_count = 0
        while not (line := self._read_line()).startswith(BUNDLE_CHECKSUMS_ROW_START):
            if len(paths_by_name) + refused_count > MAX_ACCOMPANYING_FILES:
                raise _make_damage_error("files")
            if line:
                self._seal.add_row(line.removesuffix(b","))
                row = _parse_object(line.removesuffix(b","))
                name, content = row.get("place"), _decode_content(row)
                if not is_valid_file_name(name) or name in paths_by_name:
                    refused_count += 1
                    continue
                with self._open_temporary_file() as (path, stream):
                    stream.write(content)
                paths_by_name[str(name)] = path
        return list(map(BundledFile._make, paths_by_name.items())), refused_count, line

    @contextlib.contextmanager
    def _open_temporary_file(self) -> Iterator[tuple[str, BinaryIO]]:
        path = temporary_path(self._folder)
        self._temporary_paths.append(path)
        with os.fdopen(
            os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_MODE), "wb"
        ) as stream:
            yield path, stream

    def _read_line(self) -> bytes:
        """Return the next line without its line ending.

        Raises ImportFailed at the end of the file, because a complete bundle would contain another
        line.
        """
        line = self._stream.readline()
        if not line.endswith(b"\n"):
            raise ImportFailed("The bundle ends too early", EXPORT_AGAIN_ADVICE)
        return line.removesuffix(b"\n").removesuffix(b"\r")


def _parse_head(line: bytes) -> BundleHead:
    row = _parse_object(line + BUNDLE_END_ROW).get("session")
    head = _validate_bundle_part(_make_validators()[0], row, "sessions")
    if not is_session_id(head.session_id) or not (
        head.parent_session_id == "" or is_session_id(head.parent_session_id)
    ):
        raise _make_damage_error("sessions")
    kind = head.kind if _CHILD_KIND_PATTERN.fullmatch(head.kind) else ""
    return head._replace(
        title=collapse_line(plain_line(head.title), MAX_TITLE_CHARACTERS), kind=kind
    )


def _validate_bundle_part(
    validator: TypeAdapter[ValidatedPart], row: object, part_name: str
) -> ValidatedPart:
    """Return a part of the bundle, parsed by its validator. Raises ImportFailed if it is not valid.

    ``part_name`` is for the error message.
    """
    # Imported here because the import takes 80 ms, and only bundles need it.
    from pydantic import ValidationError

    try:
        return validator.validate_python(row, strict=True)
    except ValidationError as error:
        raise _make_damage_error(part_name) from error


@functools.cache
def _make_validators() -> tuple[TypeAdapter[BundleHead], TypeAdapter[BundleChecksums]]:
    """Return the two validators for a session in a bundle: one for its head, and one for its checksums."""
    from pydantic import TypeAdapter  # Imported here because the import is slow.

    return TypeAdapter(BundleHead), TypeAdapter(BundleChecksums)


def _parse_object(raw: bytes) -> dict[str, object]:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise _make_damage_error("lines") from error
    if not isinstance(value, dict):
        raise _make_damage_error("lines")
    return value


def _decode_content(row: dict[str, object]) -> bytes:
    text, encoded = row.get("text"), row.get("base64")
    try:
        if isinstance(text, str):
            content = text.encode()
        else:
            content = base64.b64decode(str(encoded), validate=True)
    except (UnicodeEncodeError, binascii.Error, ValueError) as error:
        raise _make_damage_error("files") from error
    if len(content) > MAX_ACCOMPANYING_FILE_BYTES:
        raise _make_damage_error("files")
    return content


def is_valid_file_name(file_name: object) -> bool:
    """Check whether ``file_name`` is a valid name for a file in a session's own folder."""
    if isinstance(file_name, str):
        folder, _, name = file_name.partition("/")
    else:
        folder, _, name = ("", "", "")
    name_pattern = {
        TOOL_RESULTS_FOLDER_NAME: _FILE_NAME_PATTERN,
        SUBAGENTS_FOLDER: _AGENT_FILE_PATTERN,
    }.get(folder)
    return name_pattern is not None and name_pattern.fullmatch(name) is not None


def _make_damage_error(damaged_part: str) -> ImportFailed:
    return ImportFailed(f"The {damaged_part} of this bundle are damaged", EXPORT_AGAIN_ADVICE)
