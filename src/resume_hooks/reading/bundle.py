"""Write a bundle: the transcripts of sessions and of their sub-agents, and large tool outputs.

The secrets can be removed from a bundle. A bundle does not contain the client's copies of edited
files, because these are complete copies of the user's files. It does not contain symbolic links
either, because a link could point to any file. In bundles and in documents, ``~`` replaces home
folders.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import orjson

from resume_hooks import clock
from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import (
    TOOL_RESULTS_FOLDER_NAME,
    Where,
    open_regular,
    project_key,
    read_regular_file,
)
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.redaction.texts import Secret
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.project_folder import home_folder_of_session
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.sessions.transcript_files import SUBAGENTS_FOLDER, subagents_of_session
from resume_hooks.system.text import plain_line, replace_surrogates
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import read_lines
from resume_hooks.transcripts.raw_edit import encode_record
from resume_hooks.transcripts.records import parse_record
from resume_hooks.version import __version__

_HOME_PATH_PATTERN = re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\Users\\)[^/\\\s]+|/root(?=/|$)")

_HOME_PATTERNS = (
    r"(?:(?<![\w.~-])|(?<=\\[nrt]))(?:/(?:home|Users)/|[A-Za-z]:\\{1,2}Users\\{1,2})[\w-]+(?:\.[\w-]+)*",
    r"(?<=/)-(?:home|Users)-[\w-]+",
)
"""Patterns that match the home folder of any user in texts and JSON lines. The second pattern
matches home folders in the names of the client's project folders, for example ``-home-ann``."""

ResultType = TypeVar("ResultType")
BUNDLE_KEY = "resume_hooks_bundle"
BUNDLE_VERSION = 2  # The version of the format that this program writes and reads.
# Every bundle starts with this prefix. No other file does.
BUNDLE_PREFIX = b'{"%s":' % BUNDLE_KEY.encode()
BUNDLE_FILES_ROW = b'],"files":['
BUNDLE_CHECKSUMS_ROW_START = b'],"sums":'
BUNDLE_END_ROW = b"]}"
# A larger accompanying file is left out of the bundle.
MAX_ACCOMPANYING_FILE_BYTES = 32 * 1024 * 1024
MAX_ACCOMPANYING_FILES = 20_000  # The maximum number of accompanying files of a session.
MAX_BUNDLE_SESSIONS = 1_000  # The maximum number of sessions in one bundle.
# A line that contains this text contains an image or other binary data.
_MEDIA_MARKER = b'"type":"base64"'
SUBAGENT_METADATA_SUFFIX = ".meta.json"  # The suffix of a sub-agent's metadata file.

DAMAGED_KIND, OMITTED_KIND = "damaged-line", "file-checkpoint-left-behind"
"""The types of records that replace an omitted line, so that the other records keep their line
numbers."""


class HomeFolders:
    """Finds home folders in texts, including those in the names of the client's project folders.

    In the usual locations, such as ``/home/ann``, it finds the home folder of any user. It also
    finds this user's home folder and the home folders in ``folders``, the sessions' working
    folders.
    """

    def __init__(self, where: Where, folders: Iterable[str]) -> None:
        home_paths = {where.environ.get("HOME", "").rstrip("/\\")}
        home_paths |= {
            match.group() for folder in folders if (match := _HOME_PATH_PATTERN.match(folder))
        }
        homes = sorted(
            (home for home in home_paths if len(home) > len("/x/")), key=len, reverse=True
        )
        path_patterns = (re.escape(home).replace(r"\\", r"\\{1,2}") for home in homes)
        key_patterns = (f"(?<=/){re.escape(project_key(home))}" for home in homes)
        home_patterns = [
            f"{pattern}(?![A-Za-z0-9_.])" for pattern in (*path_patterns, *key_patterns)
        ]
        self._pattern = re.compile("|".join((*home_patterns, *_HOME_PATTERNS)))

    def hide_and_count_home_folders(self, text: str) -> tuple[str, int]:
        """Replace each home folder in a text or JSON line with ``~``.

        Return the new text and the number of replacements.
        """
        return self._pattern.subn(lambda match: "-~" if match[0].startswith("-") else "~", text)


class BundleRedactor:
    """Removes secrets from a bundle and counts them in ``counts_by_kind``.

    If ``homes`` is given, home folders are also removed and counted in ``folder_count``.
    ``redactor`` already knows the secrets in the sessions, from an earlier search, and removes them
    wherever they occur. ``media_count`` is the number of images and other binary data, in which
    secrets are not searched for.
    """

    def __init__(self, redactor: Redactor, homes: HomeFolders | None = None) -> None:
        self.counts_by_kind: Counter[str] = Counter()
        self.folder_count = 0
        self.media_count = 0
        self._redactor = redactor
        self._homes = homes

    def redact_record(self, body: bytes) -> bytes:
        """Return a record's line without secrets."""
        self.media_count += body.count(_MEDIA_MARKER)
        redacted = self._count_secrets_and_return_result(self._redactor.redact_line(body))
        if self._homes is None:
            return redacted
        if b"\\/" in redacted:  # The path of a folder may start with an escaped slash.
            redacted = encode_record(parse_record(redacted) or {})
        text, count = self._homes.hide_and_count_home_folders(
            redacted.decode("utf-8", "surrogateescape")
        )
        self.folder_count += count
        if count:
            return text.encode("utf-8", "surrogateescape")
        return redacted

    def redact_text(self, text: str) -> str:
        """Return a text without secrets."""
        redacted, count = (
            self._count_secrets_and_return_result(self._redactor.redact_and_list_secrets(text)),
            0,
        )
        if self._homes is not None:
            redacted, count = self._homes.hide_and_count_home_folders(redacted)
        self.folder_count += count
        return redacted

    def contains_secret(self, file_name: str) -> bool:
        """Check whether a file name contains a secret."""
        return self._redactor.redact(file_name) != file_name

    def _count_secrets_and_return_result(
        self, result_and_secrets: tuple[ResultType, Sequence[Secret]]
    ) -> ResultType:
        self.counts_by_kind.update(secret.kind for secret in result_and_secrets[1])
        return result_and_secrets[0]


def export_bundle(
    sessions: Sequence[SessionFile], where: Where, redactor: BundleRedactor | None
) -> Iterator[bytes]:
    """Yield the bundle of some sessions in chunks, the oldest session first.

    If ``redactor`` is given, it removes the secrets. Raises SessionNotFound.
    """
    yield make_bundle_first_line(
        {
            "exported_at": clock.now(),
            "by": f"resume-hooks {__version__}",
            "redacted": redactor is not None,
        }
    )
    lineage_finder = LineageFinder(where)
    for number, session in enumerate(sessions, 1):
        head, seal = (
            b'{"session":%s,"records":['
            % orjson.dumps(_make_bundle_head(session, lineage_finder, redactor, where)._asdict()),
            BundleSeal(),
        )
        seal.add_row(head)
        yield head + b"\n"
        digest, count, damaged = hashlib.sha256(), 0, 0
        try:
            with open_regular(session.path) as stream:
                for line in read_lines(stream):
                    body = normalize_json(line.body)
                    damaged += body is None
                    if body is None:
                        body = make_placeholder_record(DAMAGED_KIND)
                    elif redactor:
                        body = redactor.redact_record(body)
                    digest.update(body + b"\n")
                    seal.add_row(body)
                    yield (b",\n" if count else b"") + body
                    count += 1
        except OSError as error:
            raise SessionNotFound(
                f"{session.path} can't be read: {error.strerror}", "Check the path."
            ) from error
        yield b"\n" + BUNDLE_FILES_ROW
        written_files = left_out_count = 0
        for file_name, path in list_bundled_files(session):
            row = _make_file_line(file_name, path, redactor)
            left_out_count += row is None
            if row is not None:
                seal.add_row(row)
                yield (b",\n" if written_files else b"\n") + row
                written_files += 1
        sums = seal.seal_checksums(
            BundleChecksums(count, digest.hexdigest(), damaged, left_out_count)
        )
        yield b"\n%s%s}%s\n" % (
            BUNDLE_CHECKSUMS_ROW_START,
            orjson.dumps(sums._asdict()),
            b"," if number < len(sessions) else b"",
        )
    yield BUNDLE_END_ROW + b"\n"


def _make_bundle_head(
    session: SessionFile,
    lineage_finder: LineageFinder,
    redactor: BundleRedactor | None,
    where: Where,
) -> BundleHead:
    ends, parent = HeadTail(session.path), lineage_finder.find_parent(session.path)
    redact: Callable[[str], str] = redactor.redact_text if redactor else str
    return BundleHead(
        session_id=session.session_id,
        title=replace_surrogates(plain_line(ends.make_title(redact))),
        cwd=redact(replace_surrogates(home_folder_of_session(ends, where))),
        created=ends.created_at,
        ended=ends.ended_at,
        parent_session_id=parent.session_id if parent else "",
        kind=parent.kind if parent else "",
    )


def normalize_json(line: bytes) -> bytes | None:
    """Return a line as valid JSON, or None if it does not contain a JSON object.

    If only lenient parsers accept the line, it is rewritten as valid JSON.
    """
    line = line.strip()
    if not line.startswith(b"{"):
        return None
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        record = parse_record(line)
        if record is None:
            return None
        return encode_record(record)
    return line


def list_bundled_files(session: SessionFile) -> list[tuple[str, str]]:
    """Return the files in a session's own folder that belong in the bundle.

    Each file is a pair of its name, which is relative to that folder, and its path.
    """
    outputs_folder = os.path.join(session.path.removesuffix(".jsonl"), TOOL_RESULTS_FOLDER_NAME)
    files = []
    for name in _list_file_names(outputs_folder):
        files.append((f"{TOOL_RESULTS_FOLDER_NAME}/{name}", os.path.join(outputs_folder, name)))
    for agent in subagents_of_session(session.path):
        about_path = f"{agent.path.removesuffix('.jsonl')}{SUBAGENT_METADATA_SUFFIX}"
        files.append((f"{SUBAGENTS_FOLDER}/{agent.name}.jsonl", agent.path))
        if os.path.isfile(about_path) and not os.path.islink(about_path):
            files.append((f"{SUBAGENTS_FOLDER}/{agent.name}{SUBAGENT_METADATA_SUFFIX}", about_path))
    return sorted(dict(files).items())[:MAX_ACCOMPANYING_FILES]


def _list_file_names(folder: str) -> list[str]:
    if os.path.islink(folder) or os.path.islink(os.path.dirname(folder)):
        return []
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
    except OSError:
        return []


def _make_file_line(file_name: str, path: str, redactor: BundleRedactor | None) -> bytes | None:
    """Return a line of the bundle with the content of a file, or None if the file must be left out.

    The content is stored as text if it is valid UTF-8, and as base64 otherwise.
    """
    if replace_surrogates(file_name) != file_name or (
        redactor and redactor.contains_secret(file_name)
    ):
        return None
    try:
        content = read_regular_file(path, MAX_ACCOMPANYING_FILE_BYTES)
    except OSError:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        if redactor:
            redactor.media_count += 1
        return orjson.dumps({"place": file_name, "base64": base64.b64encode(content).decode()})
    if redactor and path.endswith(".jsonl"):
        text = "\n".join(
            redactor.redact_record(line.encode()).decode() for line in text.split("\n")
        )
    elif redactor:
        text = redactor.redact_text(text)
    return orjson.dumps({"place": file_name, "text": text})


class BundleHead(NamedTuple):
    """The description that precedes a session in a bundle.

    ``parent_session_id`` and ``kind`` are ``""`` for a session that is not a child.
    """

    session_id: str
    title: str
    cwd: str
    created: str
    ended: str
    parent_session_id: str
    kind: str


class BundleChecksums(NamedTuple):
    """The checksums after a session's records in a bundle.

    ``lines`` is the number of lines, and ``sha256`` is the hash of all lines, in hexadecimal.
    ``damaged`` is the number of lines without a valid record. ``left_out`` is the number of
    accompanying files that were too large or unreadable. ``seal`` is the hash of all rows of the
    session (see ``BundleSeal``). It is ``""`` in older bundles.
    """

    lines: int
    sha256: str
    damaged: int
    left_out: int
    seal: str = ""


class BundleSeal:
    """Computes a hash of all rows of a session in a bundle: its head, records, files and checksums."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add_row(self, row: bytes) -> None:
        """Add a row of the bundle, without its comma and line ending."""
        self._digest.update(row + b"\n")

    def seal_checksums(self, sums: BundleChecksums) -> BundleChecksums:
        """Return the session's checksums together with the seal, which also covers these checksums."""
        self.add_row(orjson.dumps(sums._replace(seal="")._asdict()))
        return sums._replace(seal=self._digest.hexdigest())


def make_placeholder_record(kind: str) -> bytes:
    """Return a record that replaces an omitted line. The record has no line ending."""
    return orjson.dumps({"type": kind})


def make_bundle_first_line(fields: dict[str, Any]) -> bytes:
    """Return the first line of a bundle: its format version, followed by ``fields``."""
    return orjson.dumps({BUNDLE_KEY: BUNDLE_VERSION, **fields})[:-1] + b',"sessions":[\n'
