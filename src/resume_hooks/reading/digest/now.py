"""The present state of a session in a few lines: what is needed first to continue it.

Invariant: every line is true for the session's last moment, and for the current git state of its
folder. Open work of the session's ancestors is not included.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Sequence

from resume_hooks.reading.digest import prose, shell
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import (
    CUT_INTO,
    WENT_ON,
    DigestEntry,
    make_entry,
    redact_and_learn,
)
from resume_hooks.reading.digest.facts import Quote, RecordPlace, ShellRun
from resume_hooks.reading.digest.file_states import NOT_COMMITTED, STAGED, FileStates
from resume_hooks.reading.digest.git_seen import GitSeen
from resume_hooks.reading.digest.next_steps import is_announcement_at_end
from resume_hooks.reading.digest.open_calls import newest_proposal
from resume_hooks.reading.digest.pull_requests import PullRequests
from resume_hooks.reading.digest.repository import RepositoryState
from resume_hooks.reading.digest.work import TEMPORARY, Paths
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.system.text import format_count, plain_line, quote_name

PULL_REQUEST = "pull request of this branch"
ALL_DONE = "the task list after it is done, but may not cover all of it"
WAITING = "staged for the next commit"
NEW = "not tracked by git"
FILES = 8  # the maximum number of uncommitted files that are named
NAMES = 270  # the maximum characters of these names
_DETACHED = "HEAD"  # the text that the client records if there is no branch
RUNNING = 3  # the maximum number of running sub-agents and commands that are named
PLAN = 4_000  # the number of characters of a plan that are searched for its title
CUT_OFF = 460  # the maximum characters of an unanswered call, or of a line of files
DOCUMENTS = 2  # the maximum number of named documents that should be read first
_DOCUMENT = compile_lazily(
    r"(?:\A|/)(?:[\w.-]*(?:hand-?off|handover|next[-_]steps|progress|status)[\w.-]*|plan|plans?/[\w./-]+|[\w.-]+[-_]plan|"
    r"plan[-_][\w.-]+|todo)\.md\Z",
    re.IGNORECASE,
)
"""Documents that typically describe the state of the work."""


def list_present_state(
    facts: LineageFacts,
    paths: Paths,
    git: RepositoryState,
    seen: GitSeen,
    states: FileStates,
    session_id: str,
    requests: PullRequests,
) -> Iterator[DigestEntry]:
    """Yield the lines, the most urgent first.

    ``session_id`` is the latest session. ``seen``, ``states`` and ``requests`` are the states of
    git, of the files and of pull requests, as the session's commands show them.
    """
    yield from _lines_of_repository(facts, paths, git, seen, states)
    yield from _lines_of_pull_requests(requests, git, seen)
    if facts.goal is not None:
        yield make_entry(
            f'the session\'s goal, {facts.goal_status or "set"}: "{facts.goal.text}"',
            facts.goal.place,
        )
    if facts.plan_mode:
        yield DigestEntry(
            "plan mode is on: nothing is to be changed before the user approves a plan"
        )
    yield from _lines_to_read(facts, paths, seen.commit)
    interruption = _interruption_of_last_request(facts)
    if interruption is not None:
        yield make_entry("the user interrupted the work on the last request", interruption.place)
    yield from _answered_request(facts, session_id)


def list_pending(facts: LineageFacts, session_id: str) -> Iterator[DigestEntry]:
    """Yield the work that was in progress at the session's end: a call, an unfinished request, sub-agents, commands."""
    if facts.unanswered_call is not None:
        call = facts.unanswered_call
        what = call.first_text("command", "prompt", "file_path", "description")
        yield make_entry(
            f"the session ends before this call was answered: {call.tool} {what}",
            call.place,
            most=CUT_OFF,
        )
    yield from _unfinished_request(facts)
    yield from _lines_at_work(facts, session_id)


def _lines_of_repository(
    facts: LineageFacts, paths: Paths, git: RepositoryState, seen: GitSeen, states: FileStates
) -> Iterator[DigestEntry]:
    """Yield the present state of git in the folder.

    If git cannot run, yield the state that the session's own commands show.
    """
    if git.root:
        yield DigestEntry(f"git: {plain_line(git.line)}")
        if git.dirty:
            yield from _lines_of_uncommitted(git, paths)
        return
    is_elsewhere = len(seen.checkouts) == 1 and not _is_inside(
        paths.folder, seen.checkouts[0].folder
    )
    if len(seen.checkouts) > 1 or is_elsewhere:
        for each in seen.checkouts:
            yield make_entry(
                f"in {quote_name(each.folder)}: branch {quote_name(each.branch)}, when last seen",
                each.place,
            )
    elif seen.branch and seen.branch != _DETACHED:
        yield make_entry(f"branch {quote_name(seen.branch)}, as last seen in the session", "")
    commit, push = seen.commit, seen.push
    note = f"last commit {states.head}" if states.head else ""
    if commit is not None and (push is None or push.order < commit.order):
        yield make_entry("the session did not push its last commit", commit, note)
    elif push is not None and seen.switched_at <= push.order:
        yield make_entry("the session pushed, and has committed nothing since", push, note)
    yield from _uncommitted_as_seen(facts, paths, seen, states)
    if facts.has_unseen_agents:
        if any(change.is_reported for change in facts.changes):
            held = "these lists hold of their changes what they reported"
        else:
            held = "what they may have changed is not in these lists"
        yield make_entry(f"sub-agents worked, too: {held}", facts.reports[-1].place)


def _is_inside(home: str, folder: str) -> bool:
    """Check whether one of two folders contains the other, or they are equal."""
    return f"{folder}/".startswith(f"{home}/") or f"{home}/".startswith(f"{folder}/")


def _lines_of_pull_requests(
    requests: PullRequests, git: RepositoryState, seen: GitSeen
) -> Iterator[DigestEntry]:
    """Yield the open pull request of the current branch, or of each branch if there are several checkouts."""
    if git.branch or len(seen.checkouts) < 2:
        request = requests.open_one_of(git.branch or seen.branch)
        if request is not None:
            yield make_entry(f"{PULL_REQUEST}: {request.url}", request.place)
        return
    for checkout in seen.checkouts:
        request = requests.open_one_of(checkout.branch)
        if request is not None and request.branch == checkout.branch:
            text = f"pull request of {quote_name(checkout.branch)}: {request.url}"
            yield make_entry(text, request.place)


def _lines_to_read(
    facts: LineageFacts, paths: Paths, commit: RecordPlace | None
) -> Iterator[DigestEntry]:
    """Yield the documents and the plan that should be read first, with the number of changes after each."""
    for path, place in _documents_on_state(facts, paths):
        changed = [name for name in _files_changed_since(facts, paths, place.order) if name != path]
        since = _changes_since(len(changed), place, commit)
        if facts.todo_list.is_done_since(place.order):
            since = ", ".join(filter(None, (since, ALL_DONE)))
        if commit is not None and commit.order > place.order:
            yield make_entry(
                f"a document about the work, part of which may be done: {path}", place, since
            )
        else:
            yield make_entry(f"read this first: {path}", place, since or "written in this session")
    if facts.plans:
        yield _line_of_plan(facts, paths, commit)


def _line_of_plan(facts: LineageFacts, paths: Paths, commit: RecordPlace | None) -> DigestEntry:
    """Return the plan that the user approved last, and whether it is outdated."""
    plan = facts.plans[-1]
    title = next(prose.split_sentences(redact_and_learn(plan.text[:PLAN])), "")
    changed = len(_files_changed_since(facts, paths, plan.place.order))
    notes = [_changes_since(changed, plan.place, commit)]
    if facts.todo_list.is_done_since(plan.place.order):
        notes.append(ALL_DONE)
    newer = newest_proposal(facts)
    if newer is not None and newer.place.order > plan.place.order:
        notes.append(f"a newer plan was proposed, :{newer.place.number}")
    text = f"the last plan that the user approved: {title}"
    return make_entry(text, plan.place, ", ".join(filter(None, notes)))


def _changes_since(changed: int, place: RecordPlace, commit: RecordPlace | None) -> str:
    """Return the number of files that were changed after a record, and whether a commit followed, or ``""``."""
    if changed:
        parts = [f"{format_count(changed, 'file')} changed since"]
    else:
        parts = []
    if commit is not None and commit.order > place.order:
        parts.append("a commit since")
    return ", ".join(parts)


def _files_changed_since(facts: LineageFacts, paths: Paths, order: int) -> list[str]:
    """Return the distinct files that were changed after a moment, in the order of their first change."""
    changed = (change for change in facts.changes if change.place.order > order)
    names = dict.fromkeys(
        plain_line(paths.relative_path(change.path, change.folder)) for change in changed
    )
    return [name for name in names if TEMPORARY.search(name) is None]


def _last_prompt_order(facts: LineageFacts) -> int:
    """Return the order of the last prompt, or 0."""
    if facts.prompts.said:
        return facts.prompts.said[-1].place.order
    return 0


def _lines_at_work(facts: LineageFacts, session_id: str) -> Iterator[DigestEntry]:
    """Yield the background sub-agents and commands that started since the last prompt and have not ended."""
    last_prompt = _last_prompt_order(facts)
    waiting = [
        said
        for said in facts.running_agents.values()
        if said.place.session_id == session_id and said.place.order > last_prompt
    ]
    for said in waiting[-RUNNING:]:
        yield make_entry(f"a sub-agent was still at work: {said.text}", said.place)
    background = []
    for run in facts.runs:
        is_running = run.background and run.status is None and not run.failed
        if is_running and run.place.order > last_prompt and not _was_only_watched(facts, run):
            background.append(run)
    for run in background[-RUNNING:]:
        yield make_entry(
            f"a command was still running in the background: {shell.command_core(run.command)}",
            run.place,
        )


def _was_only_watched(facts: LineageFacts, run: ShellRun) -> bool:
    """Check whether a command only watches something, and the last answer came after it."""
    last = facts.words_since_prompt
    is_answered = last is not None and last.place.order > max(
        run.place.order, facts.last_call_order
    )
    return is_answered and _WATCHES.search(run.command) is not None


_WATCHES = compile_lazily(r"\bgh\s+(?:run\s+watch|pr\s+checks\b[^|;&]*--watch)|\btail\s+-[fF]\b")


def _uncommitted_as_seen(
    facts: LineageFacts, paths: Paths, seen: GitSeen, states: FileStates
) -> Iterator[DigestEntry]:
    """Yield the changed files that are uncommitted according to the session's commands, and others that git lists."""
    if not states.uses_git:
        changed = _files_changed_since(facts, paths, 0)
        names = [name for name in changed if name not in states.removed]
        if names:
            shown = _first_names(names[::-1])
            yield make_entry(f"no git command ran; changed: {shown}", "", most=CUT_OFF)
        return
    own = [path for path in reversed(states.open_files()) if _is_named(path, states)]
    if own:
        yield from _lines_of_open_files(
            own,
            [path for path in own if states.states[path].words == STAGED],
            states.untracked,
        )
    elif seen.commit is not None and facts.changes:
        yield make_entry("no change of the session's own is left to commit", seen.commit)
    others: list[str] = []
    folders = _collect_folders([*_files_changed_since(facts, paths, 0), *states.states])
    for path in sorted(states.listed):
        is_strange = path not in states.states or not _is_named(path, states)
        if is_strange and not posixpath.isabs(path) and path.rstrip("/") not in folders:
            others.append(plain_line(path))
    if others and states.listed_at is not None:
        yield make_entry(
            f"git status lists besides: {_first_names(others)}", states.listed_at, most=CUT_OFF
        )


def _is_named(path: str, states: FileStates) -> bool:
    """Check whether an uncommitted file counts as changed by the session.

    A file that only git lists counts after it was staged.
    """
    if TEMPORARY.search(path) is not None:
        return False
    return path not in states.only_listed or states.states[path].words == STAGED


def _lines_of_open_files(
    paths: Sequence[str], staged: Collection[str], untracked: Collection[str]
) -> Iterator[DigestEntry]:
    """Yield the uncommitted files: staged files first, new files last."""
    waiting = [path for path in paths if path in staged]
    new = [path for path in paths if path in untracked and path not in staged]
    changed = [path for path in paths if path not in staged and path not in untracked]
    for words, names in ((WAITING, waiting), (NOT_COMMITTED, changed), (NEW, new)):
        if names:
            shown = _first_names([plain_line(name) for name in names])
            yield make_entry(f"{words}: {shown}", "", most=CUT_OFF)


def _collect_folders(names: Sequence[str]) -> frozenset[str]:
    """Return the folders of some files, including all parent folders."""
    folders: set[str] = set()
    for name in names:
        folder = posixpath.dirname(name)
        while folder not in {"", "/"} and folder not in folders:
            folders.add(folder)
            folder = posixpath.dirname(folder)
    return frozenset(folders)


def _first_names(names: Sequence[str]) -> str:
    """Return as many names as fit into a line, and the number of other names."""
    shown: list[str] = []
    room = NAMES
    for name in names[:FILES]:
        room -= len(name) + 2
        if shown and room < 0:
            break
        shown.append(name)
    if len(names) > len(shown):
        more = f" and {format_count(len(names) - len(shown), 'other')}"
    else:
        more = ""
    return f"{', '.join(shown)}{more}"


def _unfinished_request(facts: LineageFacts) -> Iterator[DigestEntry]:
    """Yield the progress on an unanswered last request, or a report that nobody answered."""
    last = facts.words_since_prompt
    last_prompt = _last_prompt_order(facts)
    if last is None:
        if last_prompt:
            yield make_entry(_line_of_unanswered(facts, last_prompt), facts.prompts.said[-1].place)
        return
    report = _report_after(facts, last)
    if report is not None:
        yield make_entry(
            "the last report of a sub-agent came after the last words, and nobody answered it",
            report.place,
        )


def _answered_request(facts: LineageFacts, session_id: str) -> Iterator[DigestEntry]:
    """Yield whether the last request was answered, or whether the work on it continued after the last words.

    The request counts as answered if the last words neither ask nor announce anything, and if no
    call or report follows them. A request in the middle of a turn is also reported.
    """
    last = facts.words_since_prompt
    if (
        last is None
        and facts.closing_quotes
        and facts.closing_quotes[-1] is facts.interrupted_words
    ):
        yield make_entry(CUT_INTO, facts.closing_quotes[-1].place)
    elif last is None:
        yield from _interrupted_former_request(facts)
    if last is None or _report_after(facts, last) is not None:
        return
    interruption = _interruption_of_last_request(facts)
    if facts.last_call_order > last.place.order:
        yield make_entry(WENT_ON, last.place)
        return
    is_at_work = interruption is not None or bool(list(_lines_at_work(facts, session_id)))
    if not is_at_work and not is_announcement_at_end(last) and not prose.asks_at_end(last.text):
        yield make_entry("the last request was answered, and the answer asks nothing", last.place)


def _interruption_of_last_request(facts: LineageFacts) -> Quote | None:
    """Return the user's interruption after the last prompt, else None."""
    said = facts.interruption
    if said is not None and said.place.order > _last_prompt_order(facts):
        return said
    return None


def _interrupted_former_request(facts: LineageFacts) -> Iterator[DigestEntry]:
    """Yield whether the user interrupted the work on the request before the last one.

    It may be unfinished. A request without any work counts as replaced by the last one.
    """
    said = facts.interruption
    if said is None or len(facts.prompts.said) < 2:
        return
    former, last = facts.prompts.said[-2:]
    if not former.place.order < said.place.order < last.place.order:
        return
    if any(former.place.order < run.place.order < said.place.order for run in facts.runs):
        yield make_entry(
            f"the user interrupted the work on the request before the last, "
            f":{former.place.number}, which may be unfinished",
            said.place,
        )


def _report_after(facts: LineageFacts, said: Quote) -> Quote | None:
    """Return the last report of a sub-agent if the report came after these words, else None."""
    if facts.reports and facts.reports[-1].place.order > said.place.order:
        return facts.reports[-1]
    return None


def _line_of_unanswered(facts: LineageFacts, last_prompt: int) -> str:
    """Return the line for an unanswered request, with the progress on the request."""
    ran = sum(run.place.order > last_prompt for run in facts.runs)
    changed = len({change.path for change in facts.changes if change.place.order > last_prompt})
    done = [
        format_count(count, noun)
        for count, noun in ((ran, "command"), (changed, "changed file"))
        if count
    ]
    if done:
        reached = f"; the work on it ends after {' and '.join(done)}"
    else:
        reached = ""
    return f"the last request was not answered{reached}"


def _lines_of_uncommitted(git: RepositoryState, paths: Paths) -> Iterator[DigestEntry]:
    """Yield the files with uncommitted changes, relative to the session's folder."""
    names: dict[str, str] = {}
    for name in git.dirty:
        shown = plain_line(paths.relative_path(posixpath.join(git.root, name)))
        names[quote_name(shown)] = name
    staged = {shown for shown, name in names.items() if name in git.staged}
    untracked = {shown for shown, name in names.items() if name in git.untracked}
    return _lines_of_open_files(sorted(names), staged, untracked)


def _documents_on_state(facts: LineageFacts, paths: Paths) -> list[tuple[str, RecordPlace]]:
    """Return the documents in which the session described its own state, the latest first.

    The plan from plan mode is one of them.
    """
    found: dict[str, RecordPlace] = {}
    for change in reversed(facts.changes):
        if len(found) == DOCUMENTS:
            break
        path = plain_line(paths.relative_path(change.path, change.folder))
        if path in found:
            continue
        is_document = _DOCUMENT.search(path) is not None and "template" not in path
        if is_document or change.path == facts.plan_file:
            found[path] = change.place
    return list(found.items())
