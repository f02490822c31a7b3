"""Write a bundle: transcripts, large tool outputs and sub-agents' transcripts, optionally without secrets.

File checkpoints are left out, because they contain whole files of the user. Links are left out,
because they could lead anywhere. ``~`` replaces home folders in bundles and in documents.
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
from resume_hooks.paths import TOOL_RESULTS, Where, open_regular, project_key, read_regular
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.redaction.texts import Secret
from resume_hooks.sessions.lineage import Family
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.sessions.transcript_files import FOLDER, subagents_of
from resume_hooks.system.text import plain_line, replace_surrogates
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import read_lines
from resume_hooks.transcripts.raw_edit import encode
from resume_hooks.transcripts.records import parse
from resume_hooks.version import __version__

_HOMES = re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\Users\\)[^/\\\s]+|/root(?=/|$)")

_OTHERS = (
    r"(?:(?<![\w.~-])|(?<=\\[nrt]))(?:/(?:home|Users)/|[A-Za-z]:\\{1,2}Users\\{1,2})[\w-]+(?:\.[\w-]+)*",
    r"(?<=/)-(?:home|Users)-[\w-]+",
)
"""Patterns of home folders in texts and JSON lines, and of the project folders named after them."""

T = TypeVar("T")
KEY = "resume_hooks_bundle"
VERSION = 2  # the format version that is written and read
OPENING = b'{"%s":' % KEY.encode()  # every bundle starts with this, and no other file does
FILES = b'],"files":['
SUMS = b'],"sums":'
END = b"]}"
MAX_FILE = 32 * 1024 * 1024  # bytes of an accompanying file in the bundle
MAX_FILES = 20_000  # accompanying files in the bundle
MAX_SESSIONS = 1_000  # sessions in one bundle
_MEDIA = b'"type":"base64"'  # marks a block of binary data
ABOUT = ".meta.json"  # the suffix of a sub-agent's metadata file

DAMAGED, STAYED = "damaged-line", "file-checkpoint-left-behind"
"""Kinds of records that replace an omitted line, so that every other record keeps its number."""


class Homes:
    """Home folders, of any user, also as names of project folders.

    The homes of this user and of the sessions may be anywhere.
    """

    def __init__(self, where: Where, folders: Iterable[str]) -> None:
        found = {where.environ.get("HOME", "").rstrip("/\\")}
        found |= {match.group() for folder in folders if (match := _HOMES.match(folder))}
        homes = sorted((home for home in found if len(home) > len("/x/")), key=len, reverse=True)
        paths = (re.escape(home).replace(r"\\", r"\\{1,2}") for home in homes)
        keys = (f"(?<=/){re.escape(project_key(home))}" for home in homes)
        known = [f"{one}(?![A-Za-z0-9_.])" for one in (*paths, *keys)]
        self._pattern = re.compile("|".join((*known, *_OTHERS)))

    def hide_homes(self, text: str) -> tuple[str, int]:
        """Return a text or JSON line with ``~`` for each home folder, and the number of replacements."""
        return self._pattern.subn(lambda match: "-~" if match[0].startswith("-") else "~", text)


class BundleRedactor:
    """Removes secrets from a bundle, and counts them in ``kinds``.

    With ``homes`` it also removes home folders, and counts them in ``folders``.

    ``known`` has the secrets from an earlier pass over the sessions; they are removed everywhere.
    ``pictures`` counts images and other binary files, which are not searched.
    """

    def __init__(self, known: Redactor, homes: Homes | None = None) -> None:
        self.kinds: Counter[str] = Counter()
        self.folders = 0
        self.pictures = 0
        self._known = known
        self._homes = homes

    def redact_record(self, body: bytes) -> bytes:
        """Return a record's line without secrets."""
        self.pictures += body.count(_MEDIA)
        clean = self._count_secrets(self._known.redact_line(body))
        if self._homes is None:
            return clean
        if b"\\/" in clean:  # a folder may start with this escape
            clean = encode(parse(clean) or {})
        text, found = self._homes.hide_homes(clean.decode("utf-8", "surrogateescape"))
        self.folders += found
        if found:
            return text.encode("utf-8", "surrogateescape")
        return clean

    def redact_text(self, text: str) -> str:
        """Return a text without secrets."""
        clean, found = self._count_secrets(self._known.redact_and_tell(text)), 0
        if self._homes is not None:
            clean, found = self._homes.hide_homes(clean)
        self.folders += found
        return clean

    def names_secret(self, place: str) -> bool:
        """Check whether a file name contains a secret."""
        return self._known.redact(place) != place

    def _count_secrets(self, found: tuple[T, Sequence[Secret]]) -> T:
        self.kinds.update(secret.kind for secret in found[1])
        return found[0]


def export_bundle(
    sessions: Sequence[SessionFile], where: Where, hide: BundleRedactor | None
) -> Iterator[bytes]:
    """Yield the bundle of sessions in chunks, oldest session first, redacted by ``hide``.

    Raises SessionNotFound.
    """
    yield opening_of_bundle(
        {
            "exported_at": clock.now(),
            "by": f"resume-hooks {__version__}",
            "redacted": hide is not None,
        }
    )
    family = Family(where)
    for number, session in enumerate(sessions, 1):
        head, seal = (
            b'{"session":%s,"records":['
            % orjson.dumps(_head_of_session(session, family, hide, where)._asdict()),
            Seal(),
        )
        seal.add_row(head)
        yield head + b"\n"
        digest, count, damaged = hashlib.sha256(), 0, 0
        try:
            with open_regular(session.path) as stream:
                for line in read_lines(stream):
                    body = as_json(line.body)
                    damaged += body is None
                    if body is None:
                        body = stand_in(DAMAGED)
                    elif hide:
                        body = hide.redact_record(body)
                    digest.update(body + b"\n")
                    seal.add_row(body)
                    yield (b",\n" if count else b"") + body
                    count += 1
        except OSError as error:
            raise SessionNotFound(
                f"{session.path} can't be read: {error.strerror}", "Check the path."
            ) from error
        yield b"\n" + FILES
        written = left_out = 0
        for place, path in files_of(session):
            row = _file_line(place, path, hide)
            left_out += row is None
            if row is not None:
                seal.add_row(row)
                yield (b",\n" if written else b"\n") + row
                written += 1
        sums = seal.seal_sums(Sums(count, digest.hexdigest(), damaged, left_out))
        yield b"\n%s%s}%s\n" % (
            SUMS,
            orjson.dumps(sums._asdict()),
            b"," if number < len(sessions) else b"",
        )
    yield END + b"\n"


def _head_of_session(
    session: SessionFile, family: Family, hide: BundleRedactor | None, where: Where
) -> Head:
    ends, parent = HeadTail(session.path), family.parent_of(session.path)
    clean: Callable[[str], str] = hide.redact_text if hide else str
    return Head(
        session_id=session.session_id,
        title=replace_surrogates(plain_line(ends.title_by(clean))),
        cwd=clean(replace_surrogates(home_folder(ends, where))),
        created=ends.created,
        ended=ends.ended,
        parent_session_id=parent.session_id if parent else "",
        kind=parent.kind if parent else "",
    )


def as_json(body: bytes) -> bytes | None:
    """Return a line as valid JSON, rewritten if only lenient parsers accept it.

    Return None for a line without a JSON object.
    """
    body = body.strip()
    if not body.startswith(b"{"):
        return None
    try:
        orjson.loads(body)
    except orjson.JSONDecodeError:
        record = parse(body)
        if record is None:
            return None
        return encode(record)
    return body


def files_of(session: SessionFile) -> list[tuple[str, str]]:
    """Return the files of a session's own folder for the bundle, as pairs of relative name and path."""
    outputs = os.path.join(session.path.removesuffix(".jsonl"), TOOL_RESULTS)
    found = []
    for name in _names_in_folder(outputs):
        found.append((f"{TOOL_RESULTS}/{name}", os.path.join(outputs, name)))
    for agent in subagents_of(session.path):
        about = f"{agent.path.removesuffix('.jsonl')}{ABOUT}"
        found.append((f"{FOLDER}/{agent.name}.jsonl", agent.path))
        if os.path.isfile(about) and not os.path.islink(about):
            found.append((f"{FOLDER}/{agent.name}{ABOUT}", about))
    return sorted(dict(found).items())[:MAX_FILES]


def _names_in_folder(folder: str) -> list[str]:
    if os.path.islink(folder) or os.path.islink(os.path.dirname(folder)):
        return []
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_file(follow_symlinks=False)]
    except OSError:
        return []


def _file_line(place: str, path: str, hide: BundleRedactor | None) -> bytes | None:
    """Return a file as a line of the bundle, as text if possible, or None to leave it out."""
    if replace_surrogates(place) != place or (hide and hide.names_secret(place)):
        return None
    try:
        content = read_regular(path, MAX_FILE)
    except OSError:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        if hide:
            hide.pictures += 1
        return orjson.dumps({"place": place, "base64": base64.b64encode(content).decode()})
    if hide and path.endswith(".jsonl"):
        text = "\n".join(hide.redact_record(line.encode()).decode() for line in text.split("\n"))
    elif hide:
        text = hide.redact_text(text)
    return orjson.dumps({"place": place, "text": text})


class Head(NamedTuple):
    """The head of a session in a bundle.

    ``parent_session_id`` and ``kind`` are ``""`` for an original session.
    """

    session_id: str
    title: str
    cwd: str
    created: str
    ended: str
    parent_session_id: str
    kind: str


class Sums(NamedTuple):
    """The sums after a session's records in a bundle: the number of lines, and the SHA-256 of the lines in hex.

    ``damaged`` counts lines without a record, ``left_out`` accompanying files that were too large
    or unreadable. ``seal`` is the digest of all rows of the session (``Seal``), or ``""`` in older
    bundles.
    """

    lines: int
    sha256: str
    damaged: int
    left_out: int
    seal: str = ""


class Seal:
    """A digest of all rows of a session in a bundle: its head, its records, its files, its sums."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add_row(self, row: bytes) -> None:
        """Add a row of the bundle, without its line ending and comma."""
        self._digest.update(row + b"\n")

    def seal_sums(self, sums: Sums) -> Sums:
        """Return the session's sums with the seal, which includes the sums themselves."""
        self.add_row(orjson.dumps(sums._replace(seal="")._asdict()))
        return sums._replace(seal=self._digest.hexdigest())


def stand_in(kind: str) -> bytes:
    """Return a record that replaces an omitted line, without its line ending."""
    return orjson.dumps({"type": kind})


def opening_of_bundle(facts: dict[str, Any]) -> bytes:
    """Return the first line of a bundle."""
    return orjson.dumps({KEY: VERSION, **facts})[:-1] + b',"sessions":[\n'
