"""Seals: what tells of a link, whose bytes are the client's own, that somebody cut it short or rewrote it in place.

A transcript is only appended to. So a link is never shorter than it was, and where it had its end there are still the
same bytes, as at its beginning.
"""

from __future__ import annotations

import hashlib
import os

from resume_hooks.paths import open_regular
from resume_hooks.sessions.archived.manifest import CUT, REWRITTEN, Kept, Part, stored_path

HEAD, TAIL = 4096, 1024
"""Bytes at both ends that a seal is made of; so many cost next to nothing."""

HARMED = "{place} was {how} in place while the vault shared its bytes: what its {full:,} bytes were is lost"
HOW = {CUT: "cut short", REWRITTEN: "rewritten"}


def seal_of(path: str, size: int) -> str:
    """The seal of the first ``size`` bytes of a file. OSError where it can't be read."""
    with open_regular(path, follow=False) as stream:
        head = stream.read(min(HEAD, size))
        stream.seek(max(0, size - TAIL))
        tail = stream.read(min(TAIL, size))
    return hashlib.sha256(head + tail).hexdigest()


def looked_at(kept: Kept, part: Part) -> Part:
    """A part with the harm that was done to it by now, if any; what was seen once stays. OSError."""
    if not part.linked or part.harm:
        return part
    path = stored_path(kept, part)
    if os.lstat(path).st_size < part.size:
        return part._replace(harm=CUT, full=part.size)
    broken = part.seal and seal_of(path, part.size) != part.seal
    return part._replace(harm=REWRITTEN, full=part.size) if broken else part


def renewed(kept: Kept, old: Part, part: Part) -> Part:
    """A link that stays as ``part``, sealed as it is now, unless ``old``, what it was, was harmed since. OSError."""
    if not part.linked:
        return part
    status = os.lstat(stored_path(kept, old))
    if (status.st_size, status.st_mtime_ns) == (old.size, old.mtime_ns) and old.seal:
        return part
    looked = looked_at(kept, old)
    if looked.harm:
        return part._replace(seal=looked.seal, harm=looked.harm, full=looked.full)
    return part._replace(seal=seal_of(stored_path(kept, old), part.size))


def told(part: Part) -> str:
    """What was done to a part, as a sentence without its end; ``""`` for nothing."""
    return HARMED.format(place=part.place, how=HOW[part.harm], full=part.full) if part.harm else ""


def harms(kept: Kept) -> list[str]:
    """What was done to what is kept of a session, and was seen, as sentences."""
    return [f"{kept.session_id}: {said}." for part in kept.all_parts if (said := told(part))]
