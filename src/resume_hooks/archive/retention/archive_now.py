"""Archiving on demand: sessions kept, those packed that are due, and what the settings let go removed after that."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from resume_hooks.archive.retention.pack_idle import due
from resume_hooks.archive.vault import policy
from resume_hooks.archive.vault.keep import is_current, keep
from resume_hooks.archive.vault.pack import pack
from resume_hooks.archive.vault.policy import Dropped
from resume_hooks.archive.vault.sources import Sources
from resume_hooks.errors import ResumeHooksError
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import real
from resume_hooks.sessions.archived.manifest import Kept, find
from resume_hooks.sessions.archived.sessions import is_kept
from resume_hooks.sessions.files import SessionFile
from resume_hooks.sessions.liveness import Clients


class Outcome(NamedTuple):
    """What became of one session: kept (it was not yet), renewed, unchanged, or failed, and then why."""

    session: SessionFile
    kept: Kept | None
    result: str
    why: str = ""


class Archive(NamedTuple):
    """What an archive did: each session's outcome, the ids of those that were packed, and what went after that."""

    outcomes: tuple[Outcome, ...]
    packed: tuple[str, ...]
    dropped: tuple[Dropped, ...]


def archive(
    sessions: Sequence[SessionFile],
    where: Where,
    advance: Callable[[int, int], None] = lambda _done, _total: None,
) -> Archive:
    """Keep these sessions, then pack what is due of them, and of those that only the vault still has.

    One that can't be kept keeps no other from it. ``advance`` is told the bytes done and all there are. VaultOff where
    nothing may be kept.
    """
    policy.require_allowed(where)
    finder, outcomes, done = Sources(where), [], 0
    total = sum(session.size for session in sessions)
    for session in sessions:
        outcomes.append(_kept(session, where, finder))
        done += session.size
        advance(done, total)
    wanted = {session.session_id for session in sessions}
    packed = _pack(wanted, where, advance)
    dropped = policy.apply(where, keeping=wanted)
    renewed = (each._replace(kept=find(each.session.session_id, where) if each.kept else None) for each in outcomes)
    return Archive(tuple(renewed), packed, tuple(dropped))


def preview(sessions: Iterable[SessionFile], where: Where) -> list[Outcome]:
    """What an archive would find of each session: kept already, or not. Nothing is written."""
    policy.require_allowed(where)
    finder, outcomes = Sources(where), []
    for session in sessions:
        kept = find(session.session_id, where)
        current = kept is not None and (is_kept(session.path, where) or is_current(kept, session, finder))
        result = "kept" if kept is None else "unchanged" if current else "renewed"
        outcomes.append(Outcome(session, kept, result))
    return outcomes


def _kept(session: SessionFile, where: Where, finder: Sources) -> Outcome:
    before = find(session.session_id, where)
    if before and is_kept(session.path, where):  # the client has it no more
        return Outcome(session, before, "unchanged")
    try:
        kept = keep(session, where, sources=finder)
    except ResumeHooksError as error:
        return Outcome(session, before, "failed", str(error))
    result = "kept" if before is None else "unchanged" if kept == before else "renewed"
    return Outcome(session, kept, result)


def _pack(wanted: set[str], where: Where, advance: Callable[[int, int], None]) -> tuple[str, ...]:
    """Pack what is due; the ids. What can't be packed now stays as it is kept."""
    clients, packed = Clients(where), []
    mine = [kept for kept in due(where, time.time()) if kept.session_id in wanted or not _is_there(kept, where)]
    total, done = sum(kept.size for kept in mine), 0
    for kept in mine:
        try:
            pack(kept, where, clients=clients)
            packed.append(kept.session_id)
        except ResumeHooksError:
            continue
        finally:
            done += kept.size
            advance(done, total)
    return tuple(packed)


def _is_there(kept: Kept, where: Where) -> bool:
    return os.path.lexists(real(kept.place, where, kept.home))
