"""Keeping a session: its files linked or copied into the vault, and kept up with as they grow.

What a file went on from is let go; what something else took the place of is kept beside that, as an earlier state.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.archive.vault import commit
from resume_hooks.archive.vault.policy import require_allowed
from resume_hooks.archive.vault.put import put, put_again, sha_of
from resume_hooks.archive.vault.sources import Source, Sources
from resume_hooks.archive.vault.tamper_seal import renewed
from resume_hooks.errors import SessionNotFound, UsageError, WriteFailed
from resume_hooks.paths import Where, private_folder
from resume_hooks.sessions.archived.index_entry import about_of
from resume_hooks.sessions.archived.layout import PROJECTS, beside, folder_of, own_home
from resume_hooks.sessions.archived.manifest import Earlier, Kept, Part, find, stored_path
from resume_hooks.sessions.files import SessionFile, is_known
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.system.text import encodable, plain_line
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.provenance import read_parent


class Plan(NamedTuple):
    """What keeping a session will do: files to put, kept ones that stay, and those that become an earlier state."""

    sources: tuple[Source, ...]
    staying: tuple[Part, ...]
    replaced: tuple[Part, ...]
    complete: bool


def keep(
    session: SessionFile,
    where: Where,
    *,
    sources: Sources | None = None,
    patience: float = commit.PATIENCE,
) -> Kept:
    """Keep a session and all that belongs to it; what is kept then. Costs a look at each file where nothing changed.

    VaultOff where nothing may be kept, UsageError for what is no session of a client, SessionNotFound where it is
    gone, WriteFailed where the vault can't be written, SessionLive where another command is at it for long; of a
    session that is kept already, and can't be renewed, what was kept stays.
    """
    require_allowed(where)
    if not os.path.lexists(session.path):
        raise _gone(session.path)
    if not is_known(session, where) or os.path.islink(os.path.dirname(session.path)):
        raise UsageError(f"{session.path} is no session in a project folder", "Only those are kept.")
    finder = sources or Sources(where)
    try:
        kept = find(session.session_id, where)
        if kept and is_current(kept, session, finder):
            commit.stamp(kept)
            return kept
        with commit.only_one(session.session_id, where, patience):
            commit.sweep(session.session_id, where)
            try:
                kept = find(session.session_id, where)
                return _write(kept, session, decide(kept, *finder.of(session)), where)
            finally:
                commit.sweep(session.session_id, where)
    except FileNotFoundError as error:
        raise _gone(error.filename or session.path) from error
    except OSError as error:
        raise WriteFailed(
            f"{session.path} could not be kept: {commit.cause(error, session.path)}",
            "What was kept before still is. Check free space and permissions.",
        ) from error


def decide(kept: Kept | None, sources: list[Source], missed: list[str]) -> Plan:
    """What has to be put into the vault so that it holds a session as it is now, and all that it was."""
    parts = {beside(part.place): part for part in kept.parts} if kept else {}
    wanted, replaced, staying = [], [], dict(parts)
    for source in sources:
        part = parts.get(beside(source.place))
        if kept and _is_earlier(kept, source):
            continue
        if kept and part and _is_same(kept, part, source):
            staying[beside(source.place)] = _grown(part, source)
            continue
        wanted.append(source)
        if kept and part:
            del staying[beside(source.place)]
            # What is packed outlives a truncation of what went on from it: it goes once that is packed, too.
            replaced += [part] if part.packed or not _goes_on(kept, part, source) else []
    return Plan(tuple(wanted), tuple(staying.values()), tuple(replaced), not missed)


def is_current(kept: Kept, session: SessionFile, finder: Sources) -> bool:
    """Whether what is kept of a session needs no renewing; False where that can't be told."""
    try:
        sources, missed = finder.of(session)
    except OSError:
        return False
    plan, first = decide(kept, sources, missed), sources[0]
    same = clock.from_epoch(first.status.st_mtime) == kept.ended and first.place == kept.place
    return (same or _is_earlier(kept, first)) and not plan.sources and plan.complete == kept.complete


def _gone(path: object) -> SessionNotFound:
    return SessionNotFound(f"{path} is gone", "Was it deleted just now?")


def _is_earlier(kept: Kept, source: Source) -> bool:
    """Whether a file of the client's is one that was kept and gave way to another, as copies of one id do in turn."""
    name = beside(source.place)
    before = (part for earlier in kept.earlier for part in earlier.parts if beside(part.place) == name)
    return any(_is_same(kept, part, source) for part in before)


def _is_same(kept: Kept, part: Part, source: Source) -> bool:
    """Whether a kept file is the client's as it is now."""
    if part.linked:
        try:
            return os.path.samestat(os.lstat(stored_path(kept, part)), source.status)
        except OSError:
            return False
    return (part.seen, part.mtime_ns) == (source.status.st_size, source.status.st_mtime_ns)


def _grown(part: Part, source: Source) -> Part:
    """A part that stays, where it belongs now; of a link with what was appended. One that was cut short is told."""
    if not part.linked or source.status.st_size < part.size:
        return part._replace(place=source.place)
    size, mtime_ns = source.status.st_size, source.status.st_mtime_ns
    return part._replace(place=source.place, size=size, seen=size, mtime_ns=mtime_ns)


def _goes_on(kept: Kept, part: Part, source: Source) -> bool:
    """Whether a file of the client's begins with what is kept of it."""
    try:
        size = part.size if part.sha256 else os.lstat(stored_path(kept, part)).st_size
        sha256 = part.sha256 or sha_of(stored_path(kept, part), size)
        return source.status.st_size >= size and sha_of(source.path, size) == sha256
    except OSError:
        return False


def _write(kept: Kept | None, session: SessionFile, plan: Plan, where: Where) -> Kept:
    folder = folder_of(session.session_id, where)
    glance = HeadTail(session.path)
    parts = {part.place: part for part in _put(kept, plan, folder)}
    place = f"{PROJECTS}/{os.path.basename(os.path.dirname(session.path))}/{session.session_id}.jsonl"
    first = parts.pop(place)
    earlier = kept.earlier if kept else ()
    if plan.replaced and kept:
        earlier = (*earlier, Earlier(kept.kept_at, plan.replaced))
    return commit.commit(
        Kept(
            session_id=session.session_id,
            folder=folder,
            place=place,
            title=encodable(plain_line(glance.title)),
            cwd=encodable(home_folder(glance)),
            ended=clock.from_epoch(glance.mtime),
            kept_at=clock.now(),
            parts=(first, *parts.values()),
            stored=0,
            complete=plan.complete,
            earlier=earlier,
            about=about_of(session.path, read_parent(session.path) or ()),
            home=own_home(where),
        )
    )


def _put(kept: Kept | None, plan: Plan, folder: str) -> Iterator[Part]:
    """Put what is wanted beside what stays; where a name is taken by an earlier state, both into a new folder."""
    files = [part for part in plan.staying if not part.packed]
    current = {part.where for part in files}
    taken = {beside(part.place) for part in kept.all_parts if not part.packed} if kept else set()
    where = next(iter(current)) if len(current) == 1 else commit.next_name(folder, "files")
    if plan.sources and (len(current) > 1 or taken & {beside(source.place) for source in plan.sources}):
        where = commit.next_name(folder, "files")
    target = os.path.join(folder, where)
    if plan.sources:
        private_folder(target)
    before = {beside(part.place): part for part in kept.parts} if kept else {}
    for part in plan.staying:
        stays = renewed(kept, before[beside(part.place)], part) if kept else part
        moved = plan.sources and not part.packed and part.where != where and kept
        yield put_again(stays, stored_path(kept, part), target) if moved and kept else stays
    for source in plan.sources:
        old = before.get(beside(source.place))
        harmed = kept and old and old.harm and _goes_on(kept, old, source)
        new = put(source, target)
        yield new._replace(harm=old.harm, full=old.full) if harmed and old else new
