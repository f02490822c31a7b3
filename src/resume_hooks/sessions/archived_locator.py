"""What names an archived session: the forms of a locator, asked of the manifests alone.

Only where no session in the projects fits. A session that lies in both is the one in the projects.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from resume_hooks.errors import AmbiguousLocator
from resume_hooks.paths import Where, canonical, is_session_id, project_key, project_names
from resume_hooks.sessions.archived.layout import below, real, session_in
from resume_hooks.sessions.archived.manifest import ArchivedSession, all_archived, archived_ids
from resume_hooks.sessions.archived.sessions import opened, vaulted
from resume_hooks.sessions.locator_candidates import Surroundings
from resume_hooks.sessions.locator_forms import MIN_PART, MIN_PREFIX, MOST_CANDIDATES, behind, pull_of, typed_path
from resume_hooks.sessions.session_files import SessionFile, session_file


def archived_copy(words: str, around: Surroundings, *, by_part: bool) -> SessionFile | None:
    """The archived session that words name, opened; None for none. Exactly, unless ``by_part`` as ``named_by`` has it.

    AmbiguousLocator where they name several; SessionNotFound, WriteFailed where it can't be opened.
    """
    where, ids = around.where, archived_ids(around.where)
    if not ids:
        return None
    if found := _by_old_path(words, around):
        return found
    beginning = words.lower() if len(words) >= MIN_PREFIX else " "
    named = [each for name in ids if name.startswith(beginning) and (each := vaulted(name, where))]
    if not named:
        present = {each.session_id for each in (*around.near, *around.far)}
        named = named_by(words, all_archived(where, present), where, by_part=by_part, folded=by_part)
        named = [archived for archived in named if _is_here(archived, around)] or named
    if len(named) > 1:
        raise AmbiguousLocator(words, [candidate(each, where) for each in named[:MOST_CANDIDATES]], len(named))
    return opened(named[0], where) if named else None


def named_by(
    words: str, archived: Sequence[ArchivedSession], where: Where, *, by_part: bool, folded: bool = True
) -> list[ArchivedSession]:
    """Those of archived sessions that words name, in the first form that fits any.

    An id or its beginning, a pull request, an exact title or the old path, a tag; where ``folded`` a title in other
    capitals, ``by_part`` a part of one, of titles that listings show before others; a bare number.
    """
    title, tag = behind("title", words), behind("tag", words).casefold()
    pull, number, part = pull_of(words), pull_of(f"#{words}"), title.casefold()
    by_part = by_part and len(part.encode("utf-8", "replace")) >= MIN_PART

    def titles(each: ArchivedSession) -> set[str]:
        return {each.title, *each.about.titles} - {""}

    def holds_part(each: ArchivedSession) -> bool:
        return by_part and any(part in one.casefold() for one in titles(each))

    forms: list[Callable[[ArchivedSession], bool]] = [
        lambda each: len(words) >= MIN_PREFIX and each.session_id.startswith(words.lower()),
        lambda each: "" != pull in each.about.pulls,
        lambda each: words == real(each.place, where) or title in titles(each),
        lambda each: each.about.tag.casefold() == tag != "",
        lambda each: folded and part in map(str.casefold, titles(each)),
        lambda each: each.about.listed and holds_part(each),
        holds_part,
        lambda each: "" != number in each.about.pulls,
    ]
    return next(filter(None, ([each for each in archived if fits(each)] for fits in forms)), [])


def candidate(archived: ArchivedSession, where: Where) -> dict[str, object]:
    """A row that lets a person choose an archived session."""
    return {
        "session_id": archived.session_id,
        **({"locator": archived.locator} if archived.deleted_at else {}),
        "title": archived.title,
        "ended": archived.ended,
        "size": archived.size,
        "session_file": real(archived.place, where),
    }


def _by_old_path(words: str, around: Surroundings) -> SessionFile | None:
    """What a path named as long as the client had it, or as long as it was unpacked: a transcript or a sub-agent's."""
    path = typed_path(words, around)
    if path is None:
        return None
    session_id = session_in(path, around.where)
    full, home = os.path.abspath(path), os.path.join(around.where.projects, "")
    project, _, name = full.removeprefix(home).partition(os.sep) if full.startswith(home) else ("", "", "")
    session_id = session_id or name.split(os.sep)[0].removesuffix(".jsonl")
    archived = vaulted(session_id, around.where) if is_session_id(session_id) else None
    if archived is None or (project and project != archived.project):
        return None
    session = opened(archived, around.where)
    there = os.path.join(os.path.dirname(session.path), name or below(full, around.where))
    return session_file(there) if os.path.isfile(there) else None


def _is_here(archived: ArchivedSession, around: Surroundings) -> bool:
    """Whether a session is of the working directory, and not of one with the same key."""
    if archived.project not in project_names(around.cwd, around.where, list):
        return False
    return project_key(archived.cwd) != archived.project or canonical(archived.cwd) == canonical(around.cwd)
