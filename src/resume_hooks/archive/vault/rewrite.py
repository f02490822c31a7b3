"""Rewriting what is kept: every line of a session in the vault through a change, into a new pack, checked."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from itertools import chain

from resume_hooks.archive.vault import commit
from resume_hooks.archive.vault.pack_writer import lines_of, written
from resume_hooks.paths import Where
from resume_hooks.sessions.archived import packs
from resume_hooks.sessions.archived.index_entry import about_of
from resume_hooks.sessions.archived.layout import beside, unpacked
from resume_hooks.sessions.archived.manifest import Kept, Part
from resume_hooks.sessions.archived.unpack import lay_out
from resume_hooks.system.text import encodable, plain_line
from resume_hooks.transcripts.head_tail import HeadTail

MAX_WHOLE = 64 * 1024 * 1024
"""Bytes of a text that comes whole; a larger one comes line by line."""

_HEAD = 8 * 1024
"""Bytes at the start of a file in which a NUL says that it is no text."""


def rewrite(
    kept: Kept,
    change: Callable[[bytes], bytes],
    where: Where,
    *,
    text: Callable[[bytes], bytes] | None = None,
) -> int:
    """Put every line of what is kept of a session, earlier states too, through ``change``; how many it changed.

    A line comes with its ending. Files that are no text stay as they are; those that are no transcripts come whole, to
    ``text``, where that is given and they are not too large, and count as a line. Where nothing changes nothing is
    written; else all of it is packed then, and what was unpacked from it is removed. Links are let go, so that the
    client's own file is not touched. Errors as of ``pack``; what was kept before still is, then.
    """
    with commit.changing(kept, where, "rewritten") as now:
        changed = _Changed(change, text)
        target = commit.next_name(now.folder, "pack", packs.ENDING)
        placed = written(now, list(now.all_parts), target, changed.content)
        new = commit.replaced(now, placed)
        new = changed.note(_told_anew(new) if changed.lines else new)
        if changed.lines:
            commit.commit(new)
            shutil.rmtree(os.path.join(unpacked(where), now.session_id), ignore_errors=True)
        return changed.lines


def _told_anew(kept: Kept) -> Kept:
    """A note that says of a session what its rewritten transcript does: a title may have been changed, too. OSError."""
    folder = os.path.join(kept.folder, commit.next_name(kept.folder, "files"))  # no note names it, so it goes again
    os.mkdir(folder, 0o700)
    lay_out(kept, [kept.transcript], folder)
    path = os.path.join(folder, beside(kept.place))
    return kept._replace(title=encodable(plain_line(HeadTail(path).title)), about=about_of(path, kept.about.parent))


class _Changed:
    """Counts the lines that a change changed."""

    def __init__(self, change: Callable[[bytes], bytes], text: Callable[[bytes], bytes] | None) -> None:
        self.lines = 0
        self._change = change
        self._whole = text

    def content(self, part: Part, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """What becomes of one file."""
        head = next(pieces, b"")
        if b"\0" in head[:_HEAD]:
            yield head
            yield from pieces
            return
        if self._whole and not part.place.endswith(".jsonl") and part.size <= MAX_WHOLE:
            old = b"".join([head, *pieces])
            new = self._whole(old)
            self.lines += new != old
            yield new
            return
        for line in lines_of(chain([head], pieces)):
            new = self._change(line)
            self.lines += new != line
            yield new

    def note(self, kept: Kept) -> Kept:
        """What becomes of the words of a note, each of which counts as a line."""
        about = kept.about
        titles = tuple(map(self._text, about.titles))
        return kept._replace(
            title=self._text(kept.title), about=about._replace(titles=titles, tag=self._text(about.tag))
        )

    def _text(self, text: str) -> str:
        new = self._change(text.encode()).decode("utf-8", "replace")
        self.lines += new != text
        return new
