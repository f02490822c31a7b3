"""Rewrite an archived session: change its lines, and write the result to a new pack."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import chain

from resume_hooks import clock
from resume_hooks.archive.vault import commit, trash
from resume_hooks.archive.vault.archive_session import describe_transcript
from resume_hooks.archive.vault.packs import PackWriter, split_lines
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import path_in_archive, unpacked_folder
from resume_hooks.sessions.archived.manifest import ArchivedFile, ArchivedSession
from resume_hooks.sessions.archived.unpack import write_archived_files
from resume_hooks.storage import removal
from resume_hooks.system.text import plain_line, replace_surrogates
from resume_hooks.transcripts.head_tail import HeadTail

MAX_WHOLE_TEXT_BYTES = 64 * 1024 * 1024
"""The maximum size in bytes of a file that is changed as a single text. A larger file is changed
line by line."""

BINARY_CHECK_BYTES = 8 * 1024
"""The number of bytes at the start of a file in which a NUL character is searched for. A file with
such a character is binary."""


def rewrite_archived(
    archived: ArchivedSession,
    change_line: Callable[[bytes], bytes],
    where: Where,
    *,
    change_text: Callable[[bytes], bytes] | None = None,
) -> int:
    """Apply ``change_line`` to every line of a session's archived files.

    Return the number of changed lines. The files of earlier states are also changed.
    ``change_line`` gets each line with its newline. Binary files stay unchanged. If ``change_text``
    is given, each file that is neither a transcript nor too large is passed to it as a whole, and
    counts as one line.

    If no line changes, no file is written. Otherwise all files are packed again, and unpacked
    copies are removed.

    Raises WriteFailed if the new pack cannot be written, SessionInUse if another command keeps the
    session locked, and SessionNotFound if the vault no longer has the session. In these cases the
    archived copy stays unchanged.
    """
    trash.upgrade_manifest(archived, where)
    with commit.lock_for_change(archived, where, "rewritten") as locked_session:
        current_session, counter = (
            trash.stat_and_hash_trashed_files(locked_session),
            _ContentChanger(change_line, change_text),
        )
        with PackWriter(
            current_session.folder, commit.choose_pack_name(current_session.folder, current_session)
        ) as pack:
            placed_files = pack.copy_files(list(current_session.all_parts), counter.change_content)
            pack.finish_pack()
        states = (
            state._replace(parts=tuple(placed_files[part] for part in state.parts))
            for state in current_session.earlier
        )
        parts = tuple(placed_files[part] for part in current_session.parts)
        new_manifest = current_session._replace(
            parts=parts, earlier=tuple(states), archived_at=clock.now()
        )
        new_manifest = counter.change_manifest(
            _update_manifest(new_manifest, where) if counter.changed_line_count else new_manifest
        )
        if counter.changed_line_count:
            commit.commit_manifest(new_manifest, where)
            removal.remove_if_possible(
                os.path.join(unpacked_folder(where), current_session.session_id), where.state
            )
        return counter.changed_line_count


def _update_manifest(archived: ArchivedSession, where: Where) -> ArchivedSession:
    """Return the manifest with the title and the details of the rewritten transcript."""
    # The folder's name begins like a pack's name, so the folder is later removed as an unused pack.
    folder = os.path.join(
        archived.folder, f"{commit.choose_pack_name(archived.folder, archived)}.part"
    )
    os.mkdir(folder, 0o700)
    write_archived_files(archived, [archived.transcript], folder, where)
    ends = HeadTail(os.path.join(folder, path_in_archive(archived.place)))
    return archived._replace(
        title=replace_surrogates(plain_line(ends.title)),
        about=describe_transcript(ends, archived.about.parent),
    )


class _ContentChanger:
    """Applies a change to lines or whole texts, and counts how many of them it changed."""

    def __init__(
        self,
        change_line: Callable[[bytes], bytes],
        change_whole_text: Callable[[bytes], bytes] | None,
    ) -> None:
        self.changed_line_count = 0
        self._change_line = change_line
        self._change_whole_text = change_whole_text

    def change_content(
        self, archived_file: ArchivedFile, chunks: Iterator[bytes]
    ) -> Iterator[bytes]:
        """Yield the changed content of one file."""
        first_chunk = next(chunks, b"")
        if b"\0" in first_chunk[:BINARY_CHECK_BYTES]:
            yield first_chunk
            yield from chunks
            return
        if (
            self._change_whole_text
            and not archived_file.place.endswith(".jsonl")
            and archived_file.size <= MAX_WHOLE_TEXT_BYTES
        ):
            old_content = b"".join([first_chunk, *chunks])
            new_content = self._change_whole_text(old_content)
            self.changed_line_count += new_content != old_content
            yield new_content
            return
        for line in split_lines(chain([first_chunk], chunks)):
            new_content = self._change_line(line)
            self.changed_line_count += new_content != line
            yield new_content

    def change_manifest(self, archived: ArchivedSession) -> ArchivedSession:
        """Return the manifest with the change applied to its texts. Each changed text counts as one line."""
        about = archived.about
        titles = tuple(map(self._change_text, about.titles))
        return archived._replace(
            title=self._change_text(archived.title),
            about=about._replace(titles=titles, tag=self._change_text(about.tag)),
        )

    def _change_text(self, text: str) -> str:
        new_text = self._change_line(text.encode()).decode("utf-8", "replace")
        self.changed_line_count += new_text != text
        return new_text
