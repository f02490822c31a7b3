"""Where a session stands: what somebody who goes on has to know before anything else, in a few lines.

Invariant: every line is true of the session's last moment, and of the folder as git sees it now. What earlier sessions
of a lineage left open is theirs.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from resume_hooks.reading.digest import prose, shell
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import DigestEntry, entry, redacted
from resume_hooks.reading.digest.facts import Quote, RecordPlace
from resume_hooks.reading.digest.git_seen import branch_seen, last_commit, last_push, last_status
from resume_hooks.reading.digest.repository import RepositoryState
from resume_hooks.reading.digest.work import TEMPORARY, Paths
from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.system.text import counted, plain_line

FILES = 8  # files with changes that are not committed that are named
_DETACHED = "HEAD"  # what the client notes for a branch where there is none
RUNNING = 3  # sub-agents and commands at work that are named
PLAN = 4_000  # characters of a plan in which its title is looked for
ENDING = 600  # characters at the end of the last words in which a next step is looked for
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
    at_work = list(_at_work(facts, session_id, last_prompt))
    yield from _state_of_request(facts, last_prompt, is_at_work=bool(at_work))
    if facts.cut_off is not None:
        call = facts.cut_off
        what = call.text("command", "prompt", "file_path", "description")
        yield entry(f"the session ends before this call was answered: {call.tool} {what}", call.place, most=CUT_OFF)
    yield from at_work


def _repository(facts: LineageFacts, paths: Paths, git: RepositoryState, branch: str) -> Iterator[DigestEntry]:
    """What git says of the folder now; where it can't be asked, what the session's own commands showed."""
    if git.root:
        yield DigestEntry(f"git: {plain_line(git.line)}")
        if git.dirty:
            yield DigestEntry(_uncommitted(git, paths))
        return
    seen = branch_seen(facts.runs) or branch
    if seen and seen != _DETACHED:
        yield entry(f"branch {seen}, as last seen in the session", "")
    commit, push = last_commit(facts.runs), last_push(facts.runs)
    if commit is not None and (push is None or push.order < commit.order):
        yield entry("the session did not push its last commit", commit)
    elif push is not None:
        yield entry("the session pushed, and has committed nothing since", push)
    yield from _uncommitted_as_seen(facts, paths, commit)


def _to_read(facts: LineageFacts, paths: Paths) -> Iterator[DigestEntry]:
    """What to read before anything is done: documents about the work, and the plan; with what was done since."""
    for path, place in _documents(facts, paths):
        since = _done_since(facts, place, path, paths)
        if "commit" in since:
            yield entry(f"a document about the work, part of which may be done: {path}", place, since)
        else:
            yield entry(f"read this first: {path}", place, since or "written in this session")
    if facts.plans:
        plan = facts.plans[-1]
        title = next(prose.sentences(redacted(plan.text[:PLAN])), "")
        yield entry(f"the last plan that the user approved: {title}", plan.place, _done_since(facts, plan.place))


def _done_since(facts: LineageFacts, place: RecordPlace, path: str = "", paths: Paths | None = None) -> str:
    """How many files were changed, and whether anything was committed, after a record; ``path`` itself aside."""
    names = {
        paths.relative(change.path, change.folder) if paths else change.path
        for change in facts.changes
        if change.place.order > place.order
    }
    names = {name for name in names - {path} if TEMPORARY.search(name) is None}
    commit = last_commit(facts.runs)
    parts = [f"{counted(len(names), 'file')} changed since"] if names else []
    if commit is not None and commit.order > place.order:
        parts.append("a commit since")
    return ", ".join(parts)


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


def _uncommitted_as_seen(facts: LineageFacts, paths: Paths, commit: RecordPlace | None) -> Iterator[DigestEntry]:
    """What the session's last ``git status`` listed, and what was changed since that or since its last commit."""
    status = last_status(facts.runs)
    since, before = commit, "since the session's last commit" if commit else "this session shows no commit;"
    names: list[str] = []
    if status is not None and (commit is None or status.place.order > commit.order):
        since, before = status.place, "since then"
        listed = [plain_line(paths.relative(path, status.folder)) for path in status.paths]
        shown = f"listed as changed: {_named(listed)}" if listed else "was clean"
        yield entry(f"the last git status {shown}", status.place)
    order = since.order if since else 0
    changed = (change for change in facts.changes if change.place.order > order)
    names = list(dict.fromkeys(plain_line(paths.relative(change.path, change.folder)) for change in changed))
    names = [name for name in names if TEMPORARY.search(name) is None]
    if names:
        yield entry(f"{before} changed: {_named(names[::-1])}", since or "")
    elif facts.changes and commit is not None and since is commit:
        yield entry(f"{before} no file was changed", commit)


def _named(names: Sequence[str]) -> str:
    """The first names of some, and how many there are besides."""
    more = f" and {counted(len(names) - FILES, 'other')}" if len(names) > FILES else ""
    return f"{', '.join(names[:FILES])}{more}"


def _state_of_request(facts: LineageFacts, last_prompt: int, *, is_at_work: bool) -> Iterator[DigestEntry]:
    """Whether the last request was answered, or how far the work on it went.

    It counts as answered where the last words ask and announce nothing, and nothing was called or reported after them.
    """
    last = facts.unanswered
    if last is None:
        if last_prompt:
            yield entry(_unanswered(facts, last_prompt), facts.prompts.said[-1].place)
        return
    report = facts.reports[-1] if facts.reports else None
    if report is not None and report.place.order > last.place.order:
        yield entry("the last report of a sub-agent came after the last words, and nobody answered it", report.place)
    elif facts.called_at > last.place.order:
        yield entry("work on the last request went on after these last words", last.place)
    elif _announces(last):
        yield entry("the last words announce a next step, which was not taken", last.place)
    elif not is_at_work and not prose.asks(last.text):
        yield entry("the last request was answered, and the answer asks nothing", last.place)


def _announces(said: Quote) -> bool:
    """Whether a text ends in what comes next."""
    last = list(prose.sentences(said.text[-ENDING:]))[-1:]
    return any(prose.is_announcement(sentence) for sentence in last)


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
    return f"not committed: {_named(names)}"


def _documents(facts: LineageFacts, paths: Paths) -> list[tuple[str, RecordPlace]]:
    """The documents that the session wrote about its own state, the latest first; among them the plan of plan mode."""
    found: dict[str, RecordPlace] = {}
    for change in reversed(facts.changes):
        path = plain_line(paths.relative(change.path, change.folder))
        is_document = _DOCUMENT.search(path) is not None and "template" not in path
        if path not in found and (is_document or change.path == facts.plan_file):
            found[path] = change.place
    return list(found.items())[:DOCUMENTS]
