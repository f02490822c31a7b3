"""Rewriting what is archived: every line of a session in the vault through a change, into a new pack, checked."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import chain

from resume_hooks import clock
from resume_hooks.archive.vault import commit, trash
from resume_hooks.archive.vault.archive_session import about_of
from resume_hooks.archive.vault.packs import PackWriter, lines_of
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import place_beside, unpacked_folder
from resume_hooks.sessions.archived.manifest import ArchivedFile, ArchivedSession
from resume_hooks.sessions.archived.unpack import lay_out
from resume_hooks.storage import removal
from resume_hooks.system.text import plain_line, replace_surrogates
from resume_hooks.transcripts.head_tail import HeadTail

LARGEST_TEXT = 64 * 1024 * 1024
"""Bytes of a text that comes whole; a larger one comes line by line."""

HEAD = 8 * 1024
"""Bytes at the start of a file in which a NUL shows that it is not text."""


def rewrite_archived(
    archived: ArchivedSession,
    change: Callable[[bytes], bytes],
    where: Where,
    *,
    text: Callable[[bytes], bytes] | None = None,
) -> int:
    """Put every line of what is archived of a session, earlier states too, through ``change``.

    How many it changed.

    A line comes with its ending. Files that are no text stay as they are; those that are no
    transcripts come whole, to ``text``, where that is given and they are not too large, and count
    as a line. Where nothing changes nothing is written; else all of it is packed anew, and what was
    unpacked from it is removed. WriteFailed, SessionOpen, SessionNotFound; what was archived before
    still is, then.
    """
    trash.take_over(archived, where)
    with commit.locked_for_change(archived, where, "rewritten") as found:
        now, changed = trash.settle_deleted(found), _Changed(change, text)
        with PackWriter(now.folder, commit.next_name(now.folder, now)) as pack:
            placed = pack.copy(list(now.all_parts), changed.content)
            pack.finish()
        states = (
            state._replace(parts=tuple(placed[part] for part in state.parts))
            for state in now.earlier
        )
        parts = tuple(placed[part] for part in now.parts)
        new = now._replace(parts=parts, earlier=tuple(states), archived_at=clock.now())
        new = changed.manifest(_updated_manifest(new, where) if changed.lines else new)
        if changed.lines:
            commit.commit_manifest(new, where)
            removal.remove_if_possible(
                os.path.join(unpacked_folder(where), now.session_id), where.state
            )
        return changed.lines


def _updated_manifest(archived: ArchivedSession, where: Where) -> ArchivedSession:
    """A manifest that says of a session what its rewritten transcript does: a title may have been changed, too."""
    folder = os.path.join(
        archived.folder, f"{commit.next_name(archived.folder, archived)}.part"
    )  # swept, as no manifest names it
    os.mkdir(folder, 0o700)
    lay_out(archived, [archived.transcript], folder, where)
    ends = HeadTail(os.path.join(folder, place_beside(archived.place)))
    return archived._replace(
        title=replace_surrogates(plain_line(ends.title)),
        about=about_of(ends, archived.about.parent),
    )


class _Changed:
    """Counts the lines that a change changed."""

    def __init__(
        self, change: Callable[[bytes], bytes], text: Callable[[bytes], bytes] | None
    ) -> None:
        self.lines = 0
        self._change = change
        self._whole = text

    def content(self, part: ArchivedFile, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """What becomes of one file."""
        head = next(pieces, b"")
        if b"\0" in head[:HEAD]:
            yield head
            yield from pieces
            return
        if self._whole and not part.place.endswith(".jsonl") and part.size <= LARGEST_TEXT:
            old = b"".join([head, *pieces])
            new = self._whole(old)
            self.lines += new != old
            yield new
            return
        for line in lines_of(chain([head], pieces)):
            new = self._change(line)
            self.lines += new != line
            yield new

    def manifest(self, archived: ArchivedSession) -> ArchivedSession:
        """What becomes of the words of a manifest, each of which counts as a line."""
        about = archived.about
        titles = tuple(map(self._changed_text, about.titles))
        return archived._replace(
            title=self._changed_text(archived.title),
            about=about._replace(titles=titles, tag=self._changed_text(about.tag)),
        )

    def _changed_text(self, text: str) -> str:
        new = self._change(text.encode()).decode("utf-8", "replace")
        self.lines += new != text
        return new
