"""Unpack archived sessions to a folder where their transcript and their other files can be read.

A pack is one compressed stream with a session's files. It is unpacked into a private folder,
verified against the hashes in the manifest, and kept for the next reader. The size of all unpacked
sessions is limited. If the limit is exceeded, the least recently used sessions are removed.
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
from resume_hooks.sessions.archived.layout import (
    HISTORY_FOLDER,
    find_archive_link,
    path_in_archive,
    unpacked_folder,
)
from resume_hooks.sessions.archived.manifest import ArchivedFile, ArchivedSession, find_archived
from resume_hooks.storage import removal
from resume_hooks.storage.hard_links import choose_files_to_remove, list_file_sizes
from resume_hooks.storage.state_file import (
    PRIVATE_MODE,
    create_file,
    discard_temporary,
    remove_stale_temporaries,
    sync_folder,
    temporary_path,
)

PACK_SUFFIX = ".xz"
CHUNK_BYTES = 1024 * 1024
"""The number of bytes to read or write at a time."""

MAX_UNPACKED_BYTES = 2 * 1024**3
"""The maximum size in bytes of all unpacked sessions."""

_TIME_TOLERANCE_NS = 2_000_000_001
"""The tolerance in nanoseconds for comparing file times. FAT stores times with a resolution of two
seconds."""


def read_pack(path: str) -> Iterator[bytes]:
    """Yield the unpacked content of a pack in chunks. Raise OSError if it can't be read or is damaged."""
    with open_regular(path, follow=False) as packed:
        unpacker = lzma.LZMADecompressor(memlimit=128 * 1024 * 1024)
        try:
            while not unpacker.eof:
                if unpacker.needs_input:
                    raw = packed.read(CHUNK_BYTES // 4)
                else:
                    raw = b""
                if unpacker.needs_input and not raw:
                    raise OSError(errno.EIO, "The pack ends too early", path)
                if chunk := unpacker.decompress(raw, CHUNK_BYTES):
                    yield chunk
        except lzma.LZMAError as error:
            raise OSError(errno.EIO, f"The pack is damaged: {error}", path) from error


def read_pack_contents(
    folder: str, parts: Sequence[ArchivedFile]
) -> Iterator[tuple[ArchivedFile, Iterator[bytes]]]:
    """Yield each file with the chunks of its content, in the order of the files in the packs.

    The caller must read all chunks of a file before it requests the next file. ``folder`` is the
    session's folder in the vault. Each pack is read once. Raise OSError if a pack ends too early.
    """
    ordered = sorted(parts, key=lambda part: (part.where, part.offset))
    for part in (part for part in ordered if not part.where):
        yield part, read_stored_content(folder, part)
    for pack_name in dict.fromkeys(part.where for part in ordered if part.where):
        stream = PackStream(read_pack(os.path.join(folder, pack_name)), pack_name)
        for part in (part for part in ordered if part.where == pack_name):
            for _ in stream.read(part.offset - stream.offset):
                pass
            yield part, stream.read(part.size)
            for _ in stream.read(part.offset + part.size - stream.offset):
                pass


def stored_path(folder: str, part: ArchivedFile) -> str:
    """Return the path of a deleted session's file that has not been packed yet.

    ``folder`` is the deletion's folder in the trash.
    """
    return os.path.join(folder, path_in_archive(part.place))


def read_stored_content(folder: str, part: ArchivedFile) -> Iterator[bytes]:
    """Return the chunks of a file that is stored unpacked in ``folder``.

    Raise OSError if the file can't be read.
    """
    path = stored_path(folder, part)
    if part.is_link:
        return iter([os.fsencode(os.readlink(path))])
    return read_chunks(path, part.size)


class PackStream:
    """A stream of chunks from which any number of bytes can be read.

    ``offset`` is the number of bytes that were read.
    """

    def __init__(self, chunks: Iterator[bytes], name: str) -> None:
        self.offset = 0
        self._pieces = chunks
        self._unread_bytes = b""
        self._name = name

    def has_ended(self) -> bool:
        """Check whether all bytes of the stream have been read."""
        self._unread_bytes = self._unread_bytes or next(self._pieces, b"")
        return not self._unread_bytes

    def read(self, size: int) -> Iterator[bytes]:
        """Yield the next ``size`` bytes in chunks. Raise OSError if the stream ends before that."""
        while size > 0:
            if not self._unread_bytes:
                self._unread_bytes = next(self._pieces, b"")
            if not self._unread_bytes:
                raise OSError(errno.EIO, "The pack ends too early", self._name)
            chunk, self._unread_bytes = self._unread_bytes[:size], self._unread_bytes[size:]
            size -= len(chunk)
            self.offset += len(chunk)
            yield chunk


def unpacked_transcript(archived: ArchivedSession, where: Where) -> str:
    """Unpack an archived session and return the path of its transcript.

    The session's other files are next to the transcript, as in the client's folder. A new copy is
    verified. Raise SessionNotFound if the vault no longer has the session in this state, and
    WriteFailed if it can't be unpacked.
    """
    return os.path.join(_unpack_current_state(archived, where), f"{archived.session_id}.jsonl")


def verified_transcript(archived: ArchivedSession, where: Where) -> str:
    """Return the path from ``unpacked_transcript`` after verifying the hash of every file.

    If a hash differs, unpack the session again.
    """
    path = unpacked_transcript(archived, where)
    if not _matches_hashes(archived, os.path.dirname(path)):
        removal.remove_if_possible(os.path.dirname(path), where.state)
        path = unpacked_transcript(archived, where)
    return path


def _matches_hashes(archived: ArchivedSession, folder: str) -> bool:
    with contextlib.suppress(OSError):
        return all(
            sha256_of_chunks(read_stored_content(folder, part)) == part.sha256
            for part in archived.parts
        )
    return False


def _unpack_current_state(archived: ArchivedSession, where: Where) -> str:
    """Unpack an archived session and return the folder with its files.

    If the vault has archived the session again in the meantime, unpack the new state.
    """
    try:
        return _unpack_all_files(archived, where)
    except SessionNotFound:
        current = find_archived(archived.session_id, where)
        is_continued = (
            current
            and current.transcript.size >= archived.transcript.size
            and len(current.earlier) == len(archived.earlier)
        )
        if current is None or current == archived or not is_continued:
            raise
        return _unpack_all_files(current, where)


def _unpack_all_files(archived: ArchivedSession, where: Where) -> str:
    if not archived.deleted_at and (link := find_archive_link(archived.session_id, where)):
        raise SessionNotFound(
            f"{link} is a symbolic link, so it was not read", "Replace the link with a folder."
        )
    session_folder = os.path.join(unpacked_folder(where), archived.session_id)
    folder = os.path.join(session_folder, _state_folder_name(archived))
    if not _is_complete(folder, archived):
        with _converted_read_errors(archived):
            make_private_folder(session_folder, where)
            _make_room_for_unpacking(where, archived.size, kept_folder=folder)
            _unpack_into_folder(archived, session_folder, folder, where)
    with contextlib.suppress(OSError):
        os.utime(folder)
    return folder


def _state_folder_name(archived: ArchivedSession) -> str:
    """Return the name of the folder for a session's unpacked files.

    The name changes when the session is archived again.
    """
    description = repr(
        [(part.place, part.size, part.sha256, part.mtime_ns, part.where) for part in archived.parts]
    )
    return hashlib.sha256(description.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _is_complete(folder: str, archived: ArchivedSession) -> bool:
    """Check whether a folder contains all files of a session with the expected types, sizes and times."""
    if os.path.islink(folder):
        return False
    for part in archived.parts:
        path = os.path.join(folder, path_in_archive(part.place))
        with contextlib.suppress(OSError):
            status = os.lstat(path)
            if part.is_link and stat.S_ISLNK(status.st_mode):
                continue
            has_same_time = abs(status.st_mtime_ns - part.mtime_ns) < _TIME_TOLERANCE_NS
            if stat.S_ISREG(status.st_mode) and status.st_size == part.size and has_same_time:
                continue
        return False
    return True


def _unpack_into_folder(archived: ArchivedSession, home: str, folder: str, where: Where) -> None:
    temporary = temporary_path(home)
    os.mkdir(temporary, 0o700)
    try:
        write_archived_files(archived, archived.parts, temporary, where)
        for root, _, _ in os.walk(temporary):
            sync_folder(root)
        if os.path.lexists(folder):
            removal.remove_permanently(folder, where.state)
        os.rename(temporary, folder)
    finally:
        discard_temporary(temporary)


def write_archived_files(
    archived: ArchivedSession, parts: Sequence[ArchivedFile], folder: str, where: Where
) -> None:
    """Write files of an archived session into a folder, with their original times, and verify them.

    ``path_in_archive`` returns the path of each file below ``folder``. Raise OSError if a file
    can't be read or written, or if the hash of its content differs from the hash in the manifest.
    """
    for part, chunks in read_pack_contents(archived.folder, parts):
        _write_archived_file(part, chunks, folder, where)


def read_chunks(path: str, size: int) -> Iterator[bytes]:
    """Yield the first ``size`` bytes of a file in chunks. Raise OSError if the file is shorter."""
    with open_regular(path, follow=False) as stream:
        while size > 0:
            chunk = stream.read(min(size, CHUNK_BYTES))
            if not chunk:
                raise OSError(None, "It is shorter than when it was stored", path)
            size -= len(chunk)
            yield chunk


def _write_archived_file(
    part: ArchivedFile, chunks: Iterable[bytes], folder: str, where: Where
) -> None:
    path = os.path.join(folder, path_in_archive(part.place))
    make_private_folder(os.path.dirname(path), where)
    if part.is_link:
        os.symlink(b"".join(chunks), os.fsencode(path))
        return
    digest = hashlib.sha256()
    create_file(path, hash_and_yield(chunks, digest))
    if digest.hexdigest() != part.sha256:
        raise OSError(None, "It has changed since it was stored: its hash differs", path)
    # These are the user's own files, so they get their original mode. All other files stay private.
    if part.place.startswith(f"{HISTORY_FOLDER}/"):
        os.chmod(path, part.mode & 0o777 | PRIVATE_MODE)
    os.utime(path, ns=(part.mtime_ns, part.mtime_ns))


def hash_and_yield(chunks: Iterable[bytes], digest: hashlib._Hash) -> Iterator[bytes]:
    """Yield the chunks unchanged and add each of them to ``digest``."""
    for chunk in chunks:
        digest.update(chunk)
        yield chunk


def sha256_of_file(path: str, size: int) -> str:
    """Return the SHA-256 hash, in hex, of the first ``size`` bytes of a file.

    Raise OSError if the file can't be read or is shorter.
    """
    return sha256_of_chunks(read_chunks(path, size))


def sha256_of_chunks(chunks: Iterable[bytes]) -> str:
    """Return the SHA-256 hash of the joined chunks, in hex."""
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def _make_room_for_unpacking(where: Where, needed_bytes: int, kept_folder: str) -> None:
    """Remove the least recently used unpacked sessions until there is space for the new one.

    Also remove temporary files of interrupted runs. ``kept_folder`` is never removed.
    """
    folders = []
    for folder in _list_unpacked_folders(unpacked_folder(where)):
        if folder != kept_folder:
            with contextlib.suppress(OSError):
                folders.append((os.lstat(folder).st_mtime, folder, sum(list_file_sizes(folder))))
    used_bytes = needed_bytes + sum(size for _, _, size in folders)
    for folder in choose_files_to_remove(folders, used_bytes - MAX_UNPACKED_BYTES):
        removal.remove_if_possible(folder, where.state)
        with contextlib.suppress(OSError):
            removal.remove_empty_folder(os.path.dirname(folder), where.state)


def _list_unpacked_folders(home: str) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for session_id in filter(is_session_id, os.listdir(home)):
            session_folder = os.path.join(home, session_id)
            if not os.path.islink(session_folder):
                remove_stale_temporaries(session_folder)
                with os.scandir(session_folder) as entries:
                    yield from [
                        entry.path for entry in entries if entry.is_dir(follow_symlinks=False)
                    ]


@contextlib.contextmanager
def _converted_read_errors(archived: ArchivedSession) -> Iterator[None]:
    """Convert an OSError that the block raises to SessionNotFound or WriteFailed."""
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
            "Check the free space. To see what is wrong: resume-hooks archive --verify",
        ) from error
