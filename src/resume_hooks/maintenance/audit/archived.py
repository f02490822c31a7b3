"""What the vault holds of a session, looked through for secrets part by part, packed or not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from resume_hooks.archive.vault.pack_writer import lines_of
from resume_hooks.maintenance.audit.scan import LARGEST_TEXT, FoundSecret, in_line, in_text
from resume_hooks.paths import ENDING
from resume_hooks.sessions.archived import packs
from resume_hooks.sessions.archived.manifest import ArchivedFile, ArchivedSession


def in_kept(kept: ArchivedSession) -> tuple[FoundSecret, ...]:
    """The secrets in all parts of a kept session; each names its part. OSError where one can't be read."""
    return tuple(
        found._replace(part=part.place)
        for part, pieces in packs.contents(kept.folder, list(kept.all_parts))
        for found in _in_part(part, pieces)
    )


def _in_part(part: ArchivedFile, pieces: Iterable[bytes]) -> Iterator[FoundSecret]:
    if not part.place.endswith(ENDING) and part.size <= LARGEST_TEXT:
        yield from in_text(b"".join(pieces))
        return
    offset = 0
    for number, line in enumerate(lines_of(iter(pieces))):
        yield from in_line(line, number, offset)
        offset += len(line)
