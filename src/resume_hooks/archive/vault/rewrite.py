"""Rewrite an archived session: apply a change to every line, into a new pack, with checks."""

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
"""Bytes of a text that is changed as a whole. A larger one is changed line by line."""

HEAD = 8 * 1024
"""Bytes at the start of a file that are searched for a NUL, the sign of a binary file."""


def rewrite_archived(
    archived: ArchivedSession,
    change: Callable[[bytes], bytes],
    where: Where,
    *,
    text: Callable[[bytes], bytes] | None = None,
) -> int:
    """Apply ``change`` to every line of a session's archived files, including earlier states.

    Return the number of changed lines.

    A line includes its ending. Binary files stay unchanged. With ``text``, a file that is not a
    transcript and not too large is passed to it as a whole, and counts as one line. If nothing
    changes, nothing is written. Otherwise everything is packed again, and unpacked files are
    removed. Raises WriteFailed, SessionOpen and SessionNotFound; the archived copy then stays as it
    was.
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
    """Return the manifest for the rewritten transcript, whose title may have changed."""
    folder = os.path.join(
        archived.folder, f"{commit.next_name(archived.folder, archived)}.part"
    )  # removed later, because no manifest names it
    os.mkdir(folder, 0o700)
    lay_out(archived, [archived.transcript], folder, where)
    ends = HeadTail(os.path.join(folder, place_beside(archived.place)))
    return archived._replace(
        title=replace_surrogates(plain_line(ends.title)),
        about=about_of(ends, archived.about.parent),
    )


class _Changed:
    """Applies a change and counts the changed lines."""

    def __init__(
        self, change: Callable[[bytes], bytes], text: Callable[[bytes], bytes] | None
    ) -> None:
        self.lines = 0
        self._change = change
        self._whole = text

    def content(self, part: ArchivedFile, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the changed content of one file."""
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
        """Return the manifest with its texts changed. Each changed text counts as a line."""
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
