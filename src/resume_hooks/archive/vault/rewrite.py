"""Rewrite an archived session: apply a change to every line, write the result into a new pack, and check it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import chain

from resume_hooks import clock
from resume_hooks.archive.vault import commit, trash
from resume_hooks.archive.vault.archive_session import describe_transcript
from resume_hooks.archive.vault.packs import PackWriter, split_lines
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import place_in_archive, unpacked_folder
from resume_hooks.sessions.archived.manifest import ArchivedFile, ArchivedSession
from resume_hooks.sessions.archived.unpack import write_archived_files
from resume_hooks.storage import removal
from resume_hooks.system.text import plain_line, replace_surrogates
from resume_hooks.transcripts.head_tail import HeadTail

MAX_WHOLE_TEXT = 64 * 1024 * 1024
"""The maximum size in bytes of a text that is changed as a whole. A larger text is changed line by
line."""

TEXT_CHECK_BYTES = 8 * 1024
"""The number of bytes at the start of a file that are searched for a NUL, the sign of a binary
file."""


def rewrite_archived(
    archived: ArchivedSession,
    change: Callable[[bytes], bytes],
    where: Where,
    *,
    text: Callable[[bytes], bytes] | None = None,
) -> int:
    """Apply ``change`` to every line of a session's archived files, including those of earlier states.

    Return the number of changed lines.

    A line includes its line ending. Binary files stay unchanged. If ``text`` is given, it changes
    each file that is not a transcript and not too large. Such a file is passed to ``text`` as a
    whole and counts as one line. If nothing changes, nothing is written. Otherwise all files are
    packed again, and unpacked files are removed. After WriteFailed, SessionOpen and SessionNotFound
    the archived copy is unchanged.
    """
    trash.upgrade_manifest(archived, where)
    with commit.lock_for_change(archived, where, "rewritten") as archived_now:
        settled, counter = trash.settle_deleted(archived_now), _ChangeCounter(change, text)
        with PackWriter(settled.folder, commit.next_pack_name(settled.folder, settled)) as pack:
            placed_files = pack.copy(list(settled.all_parts), counter.content)
            pack.finish()
        states = (
            state._replace(parts=tuple(placed_files[part] for part in state.parts))
            for state in settled.earlier
        )
        parts = tuple(placed_files[part] for part in settled.parts)
        new_manifest = settled._replace(parts=parts, earlier=tuple(states), archived_at=clock.now())
        new_manifest = counter.manifest(
            _update_manifest(new_manifest, where) if counter.lines else new_manifest
        )
        if counter.lines:
            commit.commit_manifest(new_manifest, where)
            removal.remove_if_possible(
                os.path.join(unpacked_folder(where), settled.session_id), where.state
            )
        return counter.lines


def _update_manifest(archived: ArchivedSession, where: Where) -> ArchivedSession:
    """Return the manifest for the rewritten transcript, whose title may have changed."""
    folder = os.path.join(
        archived.folder, f"{commit.next_pack_name(archived.folder, archived)}.part"
    )  # the pack is removed later, because no manifest names it
    os.mkdir(folder, 0o700)
    write_archived_files(archived, [archived.transcript], folder, where)
    ends = HeadTail(os.path.join(folder, place_in_archive(archived.place)))
    return archived._replace(
        title=replace_surrogates(plain_line(ends.title)),
        about=describe_transcript(ends, archived.about.parent),
    )


class _ChangeCounter:
    """A change that counts the lines that it changes."""

    def __init__(
        self, change: Callable[[bytes], bytes], text: Callable[[bytes], bytes] | None
    ) -> None:
        self.lines = 0
        self._change = change
        self._whole = text

    def content(self, part: ArchivedFile, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the changed content of one file."""
        head = next(pieces, b"")
        if b"\0" in head[:TEXT_CHECK_BYTES]:
            yield head
            yield from pieces
            return
        if self._whole and not part.place.endswith(".jsonl") and part.size <= MAX_WHOLE_TEXT:
            old = b"".join([head, *pieces])
            new = self._whole(old)
            self.lines += new != old
            yield new
            return
        for line in split_lines(chain([head], pieces)):
            new = self._change(line)
            self.lines += new != line
            yield new

    def manifest(self, archived: ArchivedSession) -> ArchivedSession:
        """Return the manifest with the change applied to its texts. Each changed text counts as a line."""
        about = archived.about
        titles = tuple(map(self._change_text, about.titles))
        return archived._replace(
            title=self._change_text(archived.title),
            about=about._replace(titles=titles, tag=self._change_text(about.tag)),
        )

    def _change_text(self, text: str) -> str:
        new = self._change(text.encode()).decode("utf-8", "replace")
        self.lines += new != text
        return new
