"""Where a session stands: what somebody who goes on has to know before anything else, in a few lines.

Invariant: every line is true of the session's last moment, and of the folder as git sees it now. What earlier sessions
of a lineage left open is theirs.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from resume_hooks.reading.digest import prose, shell
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import DigestEntry, entry, redacted
from resume_hooks.reading.digest.facts import RecordPlace
from resume_hooks.reading.digest.repository import RepositoryState
from resume_hooks.reading.digest.work import Paths
from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.system.text import counted, plain_line

FILES = 8  # files with changes that are not committed that are named
RUNNING = 3  # sub-agents and commands at work that are named
PLAN = 4_000  # characters of a plan in which its title is looked for
DOCUMENTS = 2  # documents to read first that are named
_DOCUMENT = late(
    r"(?:\A|/)(?:[\w.-]*(?:hand-?off|handover|next[-_]steps|progress|status)[\w.-]*|plan|plans?/[\w./-]+|[\w.-]+[-_]plan|"
    r"plan[-_][\w.-]+|todo)\.md\Z",
    re.IGNORECASE,
)
"""Documents in which people write down where the work stands."""


def now(facts: LineageFacts, paths: Paths, git: RepositoryState, session_id: str) -> Iterator[DigestEntry]:
    """The lines, the most pressing first; ``session_id`` is the latest session."""
    if git.line:
        yield DigestEntry(f"git: {plain_line(git.line)}")
    if git.dirty:
        yield DigestEntry(_uncommitted(git, paths))
    if facts.plan_mode:
        yield DigestEntry("plan mode is on: nothing is to be changed before the user approves a plan")
    for path, place in _documents(facts, paths):
        yield DigestEntry(f"read this first: {path}", str(place), "written in this session")
    if facts.plans:
        plan = facts.plans[-1]
        title = next(prose.sentences(redacted(plan.text[:PLAN])), "")
        yield entry(f"the user approved a plan: {title}", plan.place)
    last_prompt = facts.prompts.said[-1].place.order if facts.prompts.said else 0
    if last_prompt and facts.unanswered is None:
        yield entry(_unanswered(facts, last_prompt), facts.prompts.said[-1].place)
    waiting = [
        said
        for agent, said in facts.running.items()
        if said.place.session_id == session_id and (agent in facts.agents or said.place.order > last_prompt)
    ]
    for said in waiting[-RUNNING:]:
        yield entry(f"a sub-agent was still at work: {said.text}", said.place)
    background = [run for run in facts.runs if run.background and run.status is None and not run.failed]
    for run in [run for run in background if run.place.session_id == session_id][-RUNNING:]:
        yield entry(f"a command was still running in the background: {shell.core(run.command)}", run.place)


def _unanswered(facts: LineageFacts, last_prompt: int) -> str:
    """That the last request has no answer, and how far the work on it went."""
    ran = sum(run.place.order > last_prompt for run in facts.runs)
    changed = len({change.path for change in facts.changes if change.place.order > last_prompt})
    done = [counted(count, noun) for count, noun in ((ran, "command"), (changed, "changed file")) if count]
    reached = f"; the work on it ends after {' and '.join(done)}" if done else ""
    return f"the last request was not answered{reached}"


def _uncommitted(git: RepositoryState, paths: Paths) -> str:
    """The files with changes that are not committed, as they are told from the session's folder."""
    names = sorted(plain_line(paths.relative(posixpath.join(git.root, name))) for name in git.dirty)
    more = f" and {counted(len(names) - FILES, 'other')}" if len(names) > FILES else ""
    return f"not committed: {', '.join(names[:FILES])}{more}"


def _documents(facts: LineageFacts, paths: Paths) -> list[tuple[str, RecordPlace]]:
    """The documents that the session wrote about its own state, the latest first; among them the plan of plan mode."""
    found: dict[str, RecordPlace] = {}
    for change in reversed(facts.changes):
        path = plain_line(paths.relative(change.path, change.folder))
        if path not in found and (_DOCUMENT.search(path) or change.path == facts.plan_file):
            found[path] = change.place
    return list(found.items())[:DOCUMENTS]
