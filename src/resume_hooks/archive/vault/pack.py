"""Packing: what is kept of a session as one compressed copy, checked as read back, in the place of links and copies.

A link does not survive that somebody cuts the file short in place; a pack does, and takes a fraction of the room.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from resume_hooks.archive.vault import commit
from resume_hooks.archive.vault.pack_writer import written
from resume_hooks.archive.vault.put import sha_of
from resume_hooks.archive.vault.tamper_seal import looked_at
from resume_hooks.errors import SessionLive
from resume_hooks.paths import Where, find_session
from resume_hooks.sessions.archived import packs
from resume_hooks.sessions.archived.layout import beside
from resume_hooks.sessions.archived.manifest import Earlier, Kept, Part, as_it_is, stored_path
from resume_hooks.sessions.files import session_file
from resume_hooks.sessions.liveness import Clients


def pack(
    kept: Kept,
    where: Where,
    *,
    clients: Clients | None = None,
    is_over: Callable[[], bool] = lambda: False,
) -> Kept:
    """Pack all that is kept of a session; nothing is done where it is packed already. What is kept then.

    ``is_over``, asked again and again, tells whether there is no more time. SessionLive then, and where a client has
    the session open, or writes meanwhile; WriteFailed where the disk refuses, or what
    is kept is damaged; SessionNotFound where it is gone from the vault. What was kept before still is, then.
    """
    with commit.changing(kept, where, "packed") as now:
        if is_packed(now):
            return now
        _require_quiet(now, where, clients or Clients(where))
        return commit.commit(_packed(now, is_over))


def is_packed(kept: Kept) -> bool:
    """Whether all that is kept of a session is in one pack."""
    return kept.transcript.packed and len({part.where for part in kept.all_parts}) == 1


def _require_quiet(kept: Kept, where: Where, clients: Clients) -> None:
    path = find_session(kept.session_id, where)
    why = clients.why_live(session_file(path)) if path else ""
    if why:
        raise SessionLive(f"{kept.session_id} is live: {why}", "It is packed once it is quiet; it is kept meanwhile.")


def _packed(kept: Kept, is_over: Callable[[], bool]) -> Kept:
    """Write all that is kept into a new pack and make a note of it. OSError, SessionLive."""

    def go_on() -> None:
        if is_over():
            raise SessionLive(f"There was no time left to pack {kept.session_id}", "It is kept as it was meanwhile.")

    kept = commit.replaced(kept, {part: looked_at(kept, part) for part in kept.all_parts})
    seen = [as_it_is(kept, part) for part in kept.all_parts]
    earlier = [Earlier(each.kept_at, tuple(_left_of(kept, each.parts))) for each in kept.earlier]
    wanted = [*kept.parts, *(part for each in earlier for part in each.parts)]
    placed = written(kept, wanted, commit.next_name(kept.folder, "pack", packs.ENDING), go_on=go_on)
    if [as_it_is(kept, part) for part in kept.all_parts] != seen:
        raise SessionLive(f"{kept.session_id} was written while it was packed", "Try again later.")
    return commit.replaced(kept._replace(earlier=tuple(each for each in earlier if each.parts)), placed)


def _left_of(kept: Kept, parts: Sequence[Part]) -> list[Part]:
    """Those parts of an earlier state that what is kept now does not begin with."""
    now = {beside(part.place): part for part in kept.parts}
    found = ((part, now.get(beside(part.place))) for part in parts)
    return [part for part, same in found if same is None or not _begins_with(kept, same, part)]


def _begins_with(kept: Kept, part: Part, before: Part) -> bool:
    """Whether a kept file that is not packed yet begins with what stood there before. OSError."""
    if part.packed or as_it_is(kept, part).size < before.size:
        return False
    sha256 = before.sha256 or sha_of(stored_path(kept, before), before.size)
    return sha_of(stored_path(kept, part), before.size) == sha256
