"""Archiving on demand: sessions kept, those packed that are due, and what the settings let go removed after that."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from resume_hooks.archive.retention.pack_idle import due
from resume_hooks.archive.vault import policy
from resume_hooks.archive.vault.keep import is_current, keep
from resume_hooks.archive.vault.pack import pack
from resume_hooks.archive.vault.policy import Dropped
from resume_hooks.archive.vault.sources import Sources
from resume_hooks.errors import ResumeHooksError
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
    environ: Mapping[str, str],
    advance: Callable[[int, int], None] = lambda _done, _total: None,
) -> Archive:
    """Keep these sessions, then pack what is due of them, and of those that only the vault still has.

    One that can't be kept keeps no other from it. ``advance`` is told the bytes done and all there are. VaultOff where
    nothing may be kept.
    """
    policy.require_allowed(environ)
    finder, outcomes, done = Sources(environ), [], 0
    total = sum(session.size for session in sessions)
    for session in sessions:
        outcomes.append(_kept(session, environ, finder))
        done += session.size
        advance(done, total)
    wanted = {session.session_id for session in sessions}
    packed = _pack(wanted, environ, advance)
    dropped = policy.apply(environ, keeping=wanted)
    renewed = (each._replace(kept=find(each.session.session_id, environ) if each.kept else None) for each in outcomes)
    return Archive(tuple(renewed), packed, tuple(dropped))


def preview(sessions: Iterable[SessionFile], environ: Mapping[str, str]) -> list[Outcome]:
    """What an archive would find of each session: kept already, or not. Nothing is written."""
    policy.require_allowed(environ)
    finder, outcomes = Sources(environ), []
    for session in sessions:
        kept = find(session.session_id, environ)
        current = kept is not None and (is_kept(session.path, environ) or is_current(kept, session, finder))
        result = "kept" if kept is None else "unchanged" if current else "renewed"
        outcomes.append(Outcome(session, kept, result))
    return outcomes


def _kept(session: SessionFile, environ: Mapping[str, str], finder: Sources) -> Outcome:
    before = find(session.session_id, environ)
    if before and is_kept(session.path, environ):  # the client has it no more
        return Outcome(session, before, "unchanged")
    try:
        kept = keep(session, environ, sources=finder)
    except ResumeHooksError as error:
        return Outcome(session, before, "failed", str(error))
    result = "kept" if before is None else "unchanged" if kept == before else "renewed"
    return Outcome(session, kept, result)


def _pack(wanted: set[str], environ: Mapping[str, str], advance: Callable[[int, int], None]) -> tuple[str, ...]:
    """Pack what is due; the ids. What can't be packed now stays as it is kept."""
    clients, packed = Clients(environ), []
    mine = [kept for kept in due(environ, time.time()) if kept.session_id in wanted or not _is_there(kept, environ)]
    total, done = sum(kept.size for kept in mine), 0
    for kept in mine:
        try:
            pack(kept, environ, clients=clients)
            packed.append(kept.session_id)
        except ResumeHooksError:
            continue
        finally:
            done += kept.size
            advance(done, total)
    return tuple(packed)


def _is_there(kept: Kept, environ: Mapping[str, str]) -> bool:
    return os.path.lexists(real(kept.place, environ, kept.home))
