"""Opening what the vault keeps: a transcript that can be read at a path, with what belongs to it beside it.

A pack holds files of a session, one behind the other, as one compressed stream. It is unpacked into
a private folder, checked against the hashes of its manifest, and stays there for the next reader.
That folder is bounded: what nobody opened for long goes.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import lzma
import os
import stat
from collections.abc import Iterable, Iterator, Sequence

from resume_hooks.errors import SessionNotFound, WriteFailed
from resume_hooks.paths import Where, is_session_id, make_private_folder, open_regular
from resume_hooks.sessions.archived.layout import HISTORY, is_link, place_beside, unpacked_folder
from resume_hooks.sessions.archived.manifest import ArchivedFile, ArchivedSession, archived_of_id
from resume_hooks.storage import removal
from resume_hooks.storage.move import file_sizes, least_recently_used
from resume_hooks.storage.state_file import (
    MODE,
    create_file,
    discard_temporary,
    remove_stale_temporaries,
    sync_folder,
    temporary_path,
)

ENDING = ".xz"
PIECE = 1024 * 1024
"""Bytes that are read or written at a time."""

MAX_UNPACKED = 2 * 1024**3
"""Bytes of unpacked sessions above which those go that were not opened for longest."""

_EXACT = 2_000_000_001
"""Nanoseconds: FAT keeps every other second."""


def read_pack(path: str) -> Iterator[bytes]:
    """What a pack holds. OSError where it can't be read, or is damaged."""
    with open_regular(path, follow=False) as packed:
        unpacker = lzma.LZMADecompressor(memlimit=128 * 1024 * 1024)
        try:
            while not unpacker.eof:
                if unpacker.needs_input:
                    raw = packed.read(PIECE // 4)
                else:
                    raw = b""
                if unpacker.needs_input and not raw:
                    raise OSError(errno.EIO, "The pack ends too early", path)
                if piece := unpacker.decompress(raw, PIECE):
                    yield piece
        except lzma.LZMAError as error:
            raise OSError(errno.EIO, f"The pack is damaged: {error}", path) from error


def pack_contents(
    folder: str, parts: Sequence[ArchivedFile]
) -> Iterator[tuple[ArchivedFile, Iterator[bytes]]]:
    """Each of these files with its content, which is to be read before the next, in the order of their packs.

    ``folder`` is the session's own in the vault. Each pack is read once. OSError where it ends
    before a file does.
    """
    ordered = sorted(parts, key=lambda part: (part.where, part.offset))
    for part in (part for part in ordered if not part.where):
        yield part, stored_content(folder, part)
    for where in dict.fromkeys(part.where for part in ordered if part.where):
        stream = Stream(read_pack(os.path.join(folder, where)), where)
        for part in (part for part in ordered if part.where == where):
            for _ in stream.take(part.offset - stream.offset):
                pass
            yield part, stream.take(part.size)
            for _ in stream.take(part.offset + part.size - stream.offset):
                pass


def stored_path(folder: str, part: ArchivedFile) -> str:
    """Where a file of a deleted session lies in the folder of its delete, as long as it is not packed."""
    return os.path.join(folder, place_beside(part.place))


def stored_content(folder: str, part: ArchivedFile) -> Iterator[bytes]:
    """What an archived file holds that lies in a folder as the client laid it out.

    OSError where it can't be read.
    """
    path = stored_path(folder, part)
    if part.is_link:
        return iter([os.fsencode(os.readlink(path))])
    return pieces_of(path, part.size)


class Stream:
    """A stream that is read in pieces of any length."""

    def __init__(self, pieces: Iterator[bytes], name: str) -> None:
        self.offset = 0
        self._pieces = pieces
        self._left = b""
        self._name = name

    def at_end(self) -> bool:
        """Whether nothing is left."""
        self._left = self._left or next(self._pieces, b"")
        return not self._left

    def take(self, size: int) -> Iterator[bytes]:
        """The next bytes. OSError where there are not so many."""
        while size > 0:
            if not self._left:
                self._left = next(self._pieces, b"")
            if not self._left:
                raise OSError(errno.EIO, "The pack ends too early", self._name)
            piece, self._left = self._left[:size], self._left[size:]
            size -= len(piece)
            self.offset += len(piece)
            yield piece


def unpacked_transcript(archived: ArchivedSession, where: Where) -> str:
    """The path of a readable, verified transcript, with the session's own folder beside it as the client lays it.

    SessionNotFound if it is gone from the vault, or is not what was archived; WriteFailed if it
    can't be unpacked.
    """
    return os.path.join(_existing_folder(archived, where), f"{archived.session_id}.jsonl")


def verified_transcript(archived: ArchivedSession, where: Where) -> str:
    """As ``unpacked_transcript``, every byte compared with its hash.

    What was unpacked, and has another one, is unpacked anew.
    """
    path = unpacked_transcript(archived, where)
    if not _is_same(archived, os.path.dirname(path)):
        removal.remove_if_possible(os.path.dirname(path), where.state)
        path = unpacked_transcript(archived, where)
    return path


def _is_same(archived: ArchivedSession, folder: str) -> bool:
    with contextlib.suppress(OSError):
        return all(
            sha_of_all(stored_content(folder, part)) == part.sha256 for part in archived.parts
        )
    return False


def _existing_folder(archived: ArchivedSession, where: Where) -> str:
    """A folder that holds all files of a session, also where it was packed anew since its manifest was read."""
    try:
        return _unpack_all(archived, where)
    except SessionNotFound:
        now = archived_of_id(archived.session_id, where)
        gone_on = (
            now
            and now.transcript.size >= archived.transcript.size
            and len(now.earlier) == len(archived.earlier)
        )
        if now is None or now == archived or not gone_on:
            raise
        return _unpack_all(now, where)


def _unpack_all(archived: ArchivedSession, where: Where) -> str:
    if not archived.deleted_at and (link := is_link(archived.session_id, where)):
        raise SessionNotFound(
            f"{link} is a symbolic link, so nothing was read there", "Put a folder in its place."
        )
    home = os.path.join(unpacked_folder(where), archived.session_id)
    folder = os.path.join(home, _key(archived))
    if not _is_whole(folder, archived):
        with _convert_read_error(archived):
            make_private_folder(home, where)
            _make_room(where, archived.size, but=folder)
            _fill(archived, home, folder, where)
    with contextlib.suppress(OSError):
        os.utime(folder)
    return folder


def _key(archived: ArchivedSession) -> str:
    """What tells one state of an archived session from any other."""
    told = repr(
        [(part.place, part.size, part.sha256, part.mtime_ns, part.where) for part in archived.parts]
    )
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _is_whole(folder: str, archived: ArchivedSession) -> bool:
    """Whether all parts lie there, none of them a link, with the sizes and times that they were given, once synced."""
    if os.path.islink(folder):
        return False
    for part in archived.parts:
        path = os.path.join(folder, place_beside(part.place))
        with contextlib.suppress(OSError):
            status = os.lstat(path)
            if part.is_link and stat.S_ISLNK(status.st_mode):
                continue
            untouched = abs(status.st_mtime_ns - part.mtime_ns) < _EXACT
            if stat.S_ISREG(status.st_mode) and status.st_size == part.size and untouched:
                continue
        return False
    return True


def _fill(archived: ArchivedSession, home: str, folder: str, where: Where) -> None:
    temporary = temporary_path(home)
    os.mkdir(temporary, 0o700)
    try:
        lay_out(archived, archived.parts, temporary, where)
        for root, _, _ in os.walk(temporary):
            sync_folder(root)
        if os.path.lexists(folder):
            removal.remove_for_good(folder, where.state)
        os.rename(temporary, folder)
    finally:
        discard_temporary(temporary)


def lay_out(
    archived: ArchivedSession, parts: Sequence[ArchivedFile], folder: str, where: Where
) -> None:
    """Write files of an archived session into a folder as the client lays them out, checked, with their times.

    OSError where one can't be read or written, or is not what was archived.
    """
    for part, pieces in pack_contents(archived.folder, parts):
        _put_part(part, pieces, folder, where)


def pieces_of(path: str, size: int) -> Iterator[bytes]:
    """The first ``size`` bytes of a file, a piece at a time. OSError where it has not so many."""
    with open_regular(path, follow=False) as stream:
        while size > 0:
            piece = stream.read(min(size, PIECE))
            if not piece:
                raise OSError(None, "It is shorter than when it was stored", path)
            size -= len(piece)
            yield piece


def _put_part(part: ArchivedFile, pieces: Iterable[bytes], folder: str, where: Where) -> None:
    path = os.path.join(folder, place_beside(part.place))
    make_private_folder(os.path.dirname(path), where)
    if part.is_link:
        os.symlink(b"".join(pieces), os.fsencode(path))
        return
    whole = hashlib.sha256()
    create_file(path, hash_pieces(pieces, whole))
    if whole.hexdigest() != part.sha256:
        raise OSError(None, "It is not what was stored: its hash differs", path)
    if part.place.startswith(
        f"{HISTORY}/"
    ):  # a file of the user's gets its mode back; all else is private
        os.chmod(path, part.mode & 0o777 | MODE)
    os.utime(path, ns=(part.mtime_ns, part.mtime_ns))


def hash_pieces(pieces: Iterable[bytes], whole: hashlib._Hash) -> Iterator[bytes]:
    """Pieces as they are, all of which ``whole`` has seen."""
    for piece in pieces:
        whole.update(piece)
        yield piece


def sha_of(path: str, size: int) -> str:
    """The sha256, in hex, of the first ``size`` bytes of a file.

    OSError where it can't be read, or has not so many.
    """
    return sha_of_all(pieces_of(path, size))


def sha_of_all(pieces: Iterable[bytes]) -> str:
    """The sha256, in hex, of a content."""
    whole = hashlib.sha256()
    for piece in pieces:
        whole.update(piece)
    return whole.hexdigest()


def _make_room(where: Where, wanted: int, but: str) -> None:
    """Remove what was unpacked and not opened for longest, as far as the bound asks.

    And what was interrupted.
    """
    found = []
    for folder in _unpacked_folders(unpacked_folder(where)):
        if folder != but:
            with contextlib.suppress(OSError):
                found.append((os.lstat(folder).st_mtime, folder, sum(file_sizes(folder))))
    taken = wanted + sum(size for _, _, size in found)
    for folder in least_recently_used(found, taken - MAX_UNPACKED):
        removal.remove_if_possible(folder, where.state)
        with contextlib.suppress(OSError):
            removal.remove_empty(os.path.dirname(folder), where.state)


def _unpacked_folders(home: str) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for session_id in filter(is_session_id, os.listdir(home)):
            own = os.path.join(home, session_id)
            if not os.path.islink(own):
                remove_stale_temporaries(own)
                with os.scandir(own) as entries:
                    yield from [
                        entry.path for entry in entries if entry.is_dir(follow_symlinks=False)
                    ]


@contextlib.contextmanager
def _convert_read_error(archived: ArchivedSession) -> Iterator[None]:
    """What can't be read, or written, told as the failure of opening an archived session."""
    try:
        yield
    except FileNotFoundError as error:
        path = str(error.filename or archived.folder)
        raise SessionNotFound(
            f"{path} can't be read in the vault: {error.strerror}", "resume-hooks archive --verify"
        ) from error
    except OSError as error:
        raise WriteFailed(
            f"The archived copy of {archived.session_id} could not be unpacked: {error.filename or archived.folder}: "
            f"{error.strerror or error}",
            "Check free space; see what is wrong: resume-hooks archive --verify",
        ) from error
