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
from resume_hooks.reading.digest.work import TEMPORARY, Paths, branch_seen, last_commit
from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.system.text import counted, plain_line

FILES = 8  # files with changes that are not committed that are named
SKILLS = 1  # skills that were loaded last that are named
_DETACHED = "HEAD"  # what the client notes for a branch where there is none
RUNNING = 3  # sub-agents and commands at work that are named
PLAN = 4_000  # characters of a plan in which its title is looked for
CUT_OFF = 460  # characters of a call that was not answered
DOCUMENTS = 2  # documents to read first that are named
_DOCUMENT = late(
    r"(?:\A|/)(?:[\w.-]*(?:hand-?off|handover|next[-_]steps|progress|status)[\w.-]*|plan|plans?/[\w./-]+|[\w.-]+[-_]plan|"
    r"plan[-_][\w.-]+|todo)\.md\Z",
    re.IGNORECASE,
)
"""Documents in which people write down where the work stands."""


def now(facts: LineageFacts, paths: Paths, git: RepositoryState, session_id: str, branch: str) -> Iterator[DigestEntry]:
    """The lines, the most pressing first; ``session_id`` is the latest session, ``branch`` the one that it was on."""
    yield from _repository(facts, paths, git, branch)
    if facts.plan_mode:
        yield DigestEntry("plan mode is on: nothing is to be changed before the user approves a plan")
    yield from _to_read(facts, paths)
    last_prompt = facts.prompts.said[-1].place.order if facts.prompts.said else 0
    yield from _state_of_request(facts, last_prompt)
    if facts.cut_off is not None:
        call = facts.cut_off
        what = call.text("command", "prompt", "file_path", "description")
        yield entry(f"the session ends before this call was answered: {call.tool} {what}", call.place, most=CUT_OFF)
    yield from _at_work(facts, session_id, last_prompt)


def _repository(facts: LineageFacts, paths: Paths, git: RepositoryState, branch: str) -> Iterator[DigestEntry]:
    """What git says of the folder now; where it can't be asked, what the session's own commands showed."""
    if git.root:
        yield DigestEntry(f"git: {plain_line(git.line)}")
        if git.dirty:
            yield DigestEntry(_uncommitted(git, paths))
        return
    seen = branch_seen(facts) or branch
    if seen and seen != _DETACHED:
        yield entry(f"branch {seen}, as last seen in the session", "")
    if facts.changes:
        yield _since_commit(facts, paths)


def _to_read(facts: LineageFacts, paths: Paths) -> Iterator[DigestEntry]:
    """What to read before anything is done: documents about the work, the plan, the rules of skills."""
    for path, place in _documents(facts, paths):
        yield DigestEntry(f"read this first: {path}", str(place), "written in this session")
    if facts.plans:
        plan = facts.plans[-1]
        title = next(prose.sentences(redacted(plan.text[:PLAN])), "")
        yield entry(f"the last plan that the user approved: {title}", plan.place)
    for skill, place in list(facts.skills.items())[-SKILLS:]:
        yield entry(f"rules of {skill} were loaded, and may bind: read them", place)


def _at_work(facts: LineageFacts, session_id: str, last_prompt: int) -> Iterator[DigestEntry]:
    """What was started since the last prompt and had not ended: sub-agents and commands in the background."""
    waiting = [
        said
        for said in facts.running.values()
        if said.place.session_id == session_id and said.place.order > last_prompt
    ]
    for said in waiting[-RUNNING:]:
        yield entry(f"a sub-agent was still at work: {said.text}", said.place)
    background = [run for run in facts.runs if run.background and run.status is None and not run.failed]
    for run in [run for run in background if run.place.order > last_prompt][-RUNNING:]:
        yield entry(f"a command was still running in the background: {shell.core(run.command)}", run.place)


def _since_commit(facts: LineageFacts, paths: Paths) -> DigestEntry:
    """What was changed since the session's last commit, where git itself can't be asked."""
    commit = last_commit(facts)
    since = commit.order if commit else 0
    changed = (change for change in facts.changes if change.place.order > since)
    names = list(dict.fromkeys(plain_line(paths.relative(change.path, change.folder)) for change in changed))
    names = [name for name in names if TEMPORARY.search(name) is None]
    ref = str(commit) if commit else ""
    before = "since the session's last commit" if commit else "this session shows no commit;"
    if not names:
        return DigestEntry(f"{before} no file was changed", ref)
    more = f" and {counted(len(names) - FILES, 'other')}" if len(names) > FILES else ""
    return DigestEntry(f"{before} changed: {', '.join(names[-FILES:])}{more}", ref)


def _state_of_request(facts: LineageFacts, last_prompt: int) -> Iterator[DigestEntry]:
    """Whether the last request was answered, or how far the work on it went."""
    last = facts.unanswered
    if last is None:
        if last_prompt:
            yield entry(_unanswered(facts, last_prompt), facts.prompts.said[-1].place)
    elif facts.called_at > last.place.order:
        yield entry("work on the last request went on after these last words", last.place)
    elif not prose.asks(last.text):
        yield entry("the last request was answered, and the answer asks nothing", last.place)


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
        is_document = _DOCUMENT.search(path) is not None and "template" not in path
        if path not in found and (is_document or change.path == facts.plan_file):
            found[path] = change.place
    return list(found.items())[:DOCUMENTS]
