"""``>search``: the best hits in this project's sessions, each with what opens it; nothing is copied."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from resume_hooks.clock import minute
from resume_hooks.errors import UsageError
from resume_hooks.hooks.plain_cards import ROW
from resume_hooks.hooks.request import EVERYWHERE, Request, TriggerAnswer, current_folder, show, time_limit
from resume_hooks.paths import Where
from resume_hooks.search.as_text import ALL_WEAK, reading
from resume_hooks.search.engine import SearchResult, find
from resume_hooks.search.hits import Hit
from resume_hooks.search.scope import Scope, project_at, project_of
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.sessions.agents.registry import commands, label_of
from resume_hooks.system.text import one_line, plain_line

HITS = 5
PATIENCE = 1.5
"""Seconds that the index is brought up to date for; what is left then is said."""

LONGEST = 200
"""Characters of a query that a command is worth printing with."""

_OPTION = re.compile(r"--[a-z][a-z-]*")
"""How words begin that were meant for the verb; inside a question it is a word like any other."""


def answer(request: Request) -> TriggerAnswer:
    """Search for the words of a trigger. UsageError where there are none."""
    first, *rest = request.text.split(maxsplit=1) or [""]
    everywhere = first.lower() == EVERYWHERE
    words = " ".join(rest) if everywhere else request.text
    if not words:
        raise UsageError("No search words given", "Type: >search words, or >search --all words")
    if option := _OPTION.match(words):
        raise UsageError(f"{option[0]} works only in a shell", f"In a shell: resume-hooks search {words[:LONGEST]}")
    scope = Scope() if everywhere else _project(request)
    with time_limit(_command(words, everywhere=everywhere)):
        found = find([words], scope, request.where, most=HITS, limit=PATIENCE)
    return show(search_card(found, everywhere=everywhere))


def _command(words: str, *, everywhere: bool) -> str:
    return shlex.join(["resume-hooks", "search", *([EVERYWHERE] if everywhere else []), words])


def _project(request: Request) -> Scope:
    """The project of a session that has a file, else that of the current folder."""
    where = request.where
    return project_of(request.path, where) if request.path else project_at(current_folder(), where)


def search_card(found: SearchResult, *, everywhere: bool = False) -> str:
    """The hits, the best first, and what each is opened with."""
    counted = _counted(found, everywhere=everywhere)
    (asked,) = found.wordings
    head = f"resume-hooks · search · {one_line(plain_line(asked), ROW)} · {counted}"
    lines = [head, *(line for hit in found.hits for line in _hit(hit))]
    lines += [f"\n  note: {note}" for note in found.notes]
    if found.total > len(found.hits):
        command = _command(one_line(plain_line(asked), LONGEST), everywhere=everywhere)
        lines.append(f"\n  {found.total - len(found.hits):,} more, in a shell: {command}")
    if not found.hits:
        return "\n".join([*lines, "", "Try other words." if everywhere else "Try >search --all, or other words."])
    return "\n".join([*lines, "", "/resume <id> opens a session."])


def _counted(found: SearchResult, *, everywhere: bool) -> str:
    nothing = f"nothing found in {'any' if everywhere else 'this'} project"
    sure = f", {ALL_WEAK}" if found.weak else ""
    counted = f"{'at least ' if found.more else ''}{found.total:,} found{sure}" if found.hits else nothing
    return f"{counted}{f' · {one_line(plain_line(found.how), 2 * ROW)}' if found.how else ''}"


def _hit(hit: Hit) -> Sequence[str]:
    where = Where()
    whose = label_of(hit.agent, where).lower() if hit.agent != NAME else ""
    return [
        "",
        f"  {one_line(plain_line(hit.title), ROW)}",
        f"  {', '.join(filter(None, [whose, hit.strength, hit.role, f'turn {hit.turn}', minute(hit.time)]))}",
        f"    {plain_line(hit.snippet)}",
        f"  {commands(hit.agent, hit.session_id, hit.folder, where).in_client}",
        f"  in a shell: {reading(hit)}",
    ]
