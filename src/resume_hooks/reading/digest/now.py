"""Describe the current state of a session in a few lines, which a reader needs to continue it.

Invariant: every line is true at the end of the session and for the current git state of its folder.
Open work of the session's ancestors is not included.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Sequence

from resume_hooks.reading.digest import prose, shell
from resume_hooks.reading.digest.changed_files import SessionPaths, is_temporary
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import (
    REQUEST_DURING_TURN_ENTRY_TEXT,
    WORK_CONTINUED_ENTRY_TEXT,
    DigestEntry,
    make_entry,
    redact_and_remember_secrets,
)
from resume_hooks.reading.digest.facts import Quote, RecordPosition, ShellRun
from resume_hooks.reading.digest.file_states import (
    CONFLICTING_STATE,
    MAYBE_COMMITTED_ON_PREVIOUS_BRANCH_STATE,
    MAYBE_COMMITTED_STATE,
    NOT_COMMITTED_STATE,
    STAGED_STATE,
    FileState,
    FileStates,
)
from resume_hooks.reading.digest.git_seen import SessionGit
from resume_hooks.reading.digest.next_steps import mentions_next_step
from resume_hooks.reading.digest.open_calls import find_newest_open_plan
from resume_hooks.reading.digest.pull_requests import PullRequests
from resume_hooks.reading.digest.repository import RepositoryState
from resume_hooks.reading.digest.session_commands import TEMPORARY_PATH_PATTERN
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.system.text import format_count, plain_line, quote_name
from resume_hooks.transcripts.head_tail import MISSING_BRANCH_MARKER

PULL_REQUEST_LABEL = "pull request of this branch"
ALL_DONE_NOTE = "a later task list is done, but it may not cover everything"
STAGED_LABEL = "staged for the next commit"
UNTRACKED_LABEL = "not tracked by git"
CONFLICTS_LABEL = "in conflict, to be resolved"
MAX_LISTED_COMMITS_BY_OTHERS = 5  # At most this many commits by others are listed.
MAX_LISTED_UNCOMMITTED_FILES = 8  # At most this many uncommitted files are listed.
# The maximum total number of characters in the names of the uncommitted files.
MAX_FILE_NAMES_CHARACTERS = 270
# At most this many running sub-agents are listed, and at most this many running commands.
MAX_RUNNING_TASKS = 3
# The number of characters at the start of a plan that are searched for its title.
MAX_PLAN_CHARACTERS = 4_000
# The maximum number of characters in a line about an unanswered call, or in a line of files.
MAX_ROW_CHARACTERS = 460
MAX_DOCUMENTS_TO_READ = 2  # The reader is told to read at most this many documents first.
_STATUS_DOCUMENT_PATTERN = compile_lazily(
    r"(?:\A|/)(?:[\w.-]*(?:hand-?off|handover|next[-_]steps|progress|status)[\w.-]*|plan|plans?/[\w./-]+|[\w.-]+[-_]plan|"
    r"plan[-_][\w.-]+|todo)\.md\Z",
    re.IGNORECASE,
)
"""The names of documents that usually describe the state of the work."""
_PLAN_WRITTEN_BY_CLIENT_PATTERN = compile_lazily(r"(?:\A|/)\.claude/plans/[^/]+\.md\Z")


def list_present_state(
    facts: LineageFacts,
    paths: SessionPaths,
    repository: RepositoryState,
    session_git: SessionGit,
    states: FileStates,
    session_id: str,
    pull_requests: PullRequests,
) -> Iterator[DigestEntry]:
    """Yield the lines about the current state, the most urgent line first.

    ``session_id`` is the id of the latest session of the lineage. ``session_git``, ``states`` and
    ``pull_requests`` are the states of git, files and pull requests that the output of the
    session's commands shows.
    """
    yield from _list_repository_state(facts, paths, repository, session_git, states)
    yield from _list_open_pull_requests(pull_requests, repository, session_git)
    if facts.goal is not None:
        yield make_entry(
            f'the session\'s goal, {facts.goal_status or "set"}: "{facts.goal.text}"',
            facts.goal.position,
        )
    if facts.sandbox is not None:
        yield make_entry(f"sandbox: {facts.sandbox.text}", facts.sandbox.position)
    if facts.plan_mode:
        yield DigestEntry(
            "plan mode is on: nothing is to be changed before the user approves a plan"
        )
    yield from _list_documents(facts, paths, session_git.commit_position)
    interruption = _find_last_interruption(facts)
    if interruption is not None:
        yield make_entry("the user interrupted the work on the last request", interruption.position)
    yield from _list_state_of_last_request(facts, session_id)


def list_pending_work(facts: LineageFacts, session_id: str) -> Iterator[DigestEntry]:
    """Yield the work that was in progress when the session ended.

    This may be a call, a request, sub-agents and commands.
    """
    if facts.unanswered_call is not None:
        call = facts.unanswered_call
        subject = call.find_first_text("command", "prompt", "file_path", "description")
        yield make_entry(
            f"the session ends before this call was answered: {call.tool_name} {subject}",
            call.position,
            max_characters=MAX_ROW_CHARACTERS,
        )
    yield from _list_unfinished_request(facts)
    yield from _list_running_work(facts, session_id)


def _list_repository_state(
    facts: LineageFacts,
    paths: SessionPaths,
    repository: RepositoryState,
    session_git: SessionGit,
    states: FileStates,
) -> Iterator[DigestEntry]:
    """Yield the current state of git in the session's folder.

    If git cannot run there, yield the state that the session's own commands show.
    """
    if repository.root_folder:
        yield DigestEntry(f"git: {plain_line(repository.description)}")
        if repository.dirty_paths:
            yield from _list_uncommitted_files(repository, paths)
        return
    yield from _list_session_branches(facts, paths, session_git)
    last_commit, last_push = session_git.commit_position, session_git.push_position
    note = f"last commit {states.head_hash}" if states.head_hash else ""
    if last_commit is not None and (last_push is None or last_push.order < last_commit.order):
        yield make_entry("the session did not push its last commit", last_commit, note)
    elif last_push is not None and session_git.last_switch_order <= last_push.order:
        yield make_entry("the session made no commit after its last push", last_push, note)
    yield from _list_stopped_merges(states)
    yield from _list_commits_by_others(states)
    yield from _list_uncommitted_files_of_session(facts, paths, session_git, states)
    if facts.has_agents_without_transcripts:
        if any(change.is_known_only_from_report for change in facts.changes):
            reported_changes = (
                "the lists of files contain only the changes that these sub-agents reported"
            )
        else:
            reported_changes = "the lists of files do not contain their changes"
        yield make_entry(f"sub-agents also worked: {reported_changes}", facts.reports[-1].position)


def _list_session_branches(
    facts: LineageFacts, paths: SessionPaths, session_git: SessionGit
) -> Iterator[DigestEntry]:
    """Yield, for each checkout, the branch that was last seen in the session's output."""
    is_elsewhere = len(session_git.checkouts) == 1 and not _is_one_folder_inside_other(
        paths.folder, session_git.checkouts[0].folder
    )
    if len(session_git.checkouts) > 1 or is_elsewhere:
        for checkout in session_git.checkouts:
            yield make_entry(
                f"in {quote_name(checkout.folder)}: branch {quote_name(checkout.branch)}, when last seen",
                checkout.position,
            )
    elif session_git.branch and session_git.branch != MISSING_BRANCH_MARKER:
        yield from _list_lines_about_branches(session_git)
    if facts.later_branch not in {"", MISSING_BRANCH_MARKER, session_git.branch}:
        yield make_entry(
            f"branch {quote_name(facts.later_branch)}, first recorded after the work had ended", ""
        )


def _list_stopped_merges(states: FileStates) -> Iterator[DigestEntry]:
    """Yield the merges that stopped with conflicts and have not ended, with the states of their files."""
    for merge in states.stopped_merges.values():
        parts = [f"{plain_line(merge.git_command)} stopped with conflicts and is still unfinished"]
        names_by_state: dict[str, list[str]] = {}
        for path in merge.conflicting_paths:
            state = states.states.get(path, FileState(CONFLICTING_STATE))
            names_by_state.setdefault(state.label, []).append(plain_line(path))
        for label, words in (
            (CONFLICTING_STATE, "in conflict"),
            (NOT_COMMITTED_STATE, "edited since"),
            (STAGED_STATE, "added since"),
        ):
            if label in names_by_state:
                parts.append(f"{words}: {_join_names_up_to_limit(names_by_state[label])}")
        yield make_entry("; ".join(parts), merge.position, max_characters=MAX_ROW_CHARACTERS)


def _list_commits_by_others(states: FileStates) -> Iterator[DigestEntry]:
    """Yield a line with the latest commits that no command in the session made.

    The line also lists the files that these commits may include.
    """
    if states.position_of_commits_by_others is None:
        return
    names = ", ".join(states.commits_by_others[-MAX_LISTED_COMMITS_BY_OTHERS:])
    text = f"commits that no git command of the session made: {names}"
    paths = [plain_line(path) for path in states.list_files_with_state_label(MAYBE_COMMITTED_STATE)]
    if paths:
        text = f"{text}; they may include {_join_names_up_to_limit(paths)}"
    yield make_entry(text, states.position_of_commits_by_others, max_characters=MAX_ROW_CHARACTERS)


def _is_one_folder_inside_other(home: str, folder: str) -> bool:
    """Check whether two folders are equal or one of them contains the other."""
    return f"{folder}/".startswith(f"{home}/") or f"{home}/".startswith(f"{folder}/")


def _list_open_pull_requests(
    requests: PullRequests, repository: RepositoryState, session_git: SessionGit
) -> Iterator[DigestEntry]:
    """Yield the open pull request of the current branch.

    If there are several checkouts, yield the open pull request of each checkout's branch.
    """
    if repository.branch or len(session_git.checkouts) < 2:
        request = requests.find_open_pull_request(repository.branch or session_git.branch)
        if request is not None:
            yield make_entry(f"{PULL_REQUEST_LABEL}: {request.url}", request.position)
        return
    for checkout in session_git.checkouts:
        request = requests.find_open_pull_request(checkout.branch)
        if request is not None and request.branch == checkout.branch:
            text = f"pull request of {quote_name(checkout.branch)}: {request.url}"
            yield make_entry(text, request.position)


def _list_documents(
    facts: LineageFacts, paths: SessionPaths, last_commit: RecordPosition | None
) -> Iterator[DigestEntry]:
    """Yield the documents and the plan that should be read first, each with a note on later changes."""
    for path, position in _find_state_documents(facts, paths):
        if facts.plan_mode and _is_plan_file(path, facts, paths):
            text = f"the plan of plan mode, the only file that may be edited now: {path}"
            yield make_entry(text, position)
            continue
        other_files = [
            file for file in _list_files_changed_after(facts, paths, position.order) if file != path
        ]
        # If no other file was changed later, the last commit contains only the document itself, so
        # it does not count as later work.
        last_work_commit = last_commit if other_files else None
        note = _format_changes_after_document(len(other_files), position, last_work_commit)
        if facts.todo_list.is_done_after(position.order):
            note = ", ".join(filter(None, (note, ALL_DONE_NOTE)))
        if other_files:
            yield make_entry(
                f"a document about work that may be partly done: {path}", position, note
            )
        else:
            yield make_entry(
                f"read this first: {path}", position, note or "written in this session"
            )
    if facts.plans:
        yield _make_plan_entry(facts, paths, last_commit)


def _is_plan_file(path: str, facts: LineageFacts, paths: SessionPaths) -> bool:
    """Check whether a relative path is that of the plan that was written in plan mode.

    This plan is the file that the client named or, if it named none, a file in its folder for
    plans.
    """
    if facts.plan_file:
        return path == plain_line(paths.make_relative_path(facts.plan_file))
    return _PLAN_WRITTEN_BY_CLIENT_PATTERN.search(path) is not None


def _make_plan_entry(
    facts: LineageFacts, paths: SessionPaths, last_commit: RecordPosition | None
) -> DigestEntry:
    """Return an entry for the last plan that the user approved, with a note if it may be outdated."""
    plan = facts.plans[-1]
    title = next(
        prose.split_sentences(redact_and_remember_secrets(plan.text[:MAX_PLAN_CHARACTERS])), ""
    )
    change_count = len(_list_files_changed_after(facts, paths, plan.position.order))
    notes = [_format_changes_after_document(change_count, plan.position, last_commit)]
    if facts.todo_list.is_done_after(plan.position.order):
        notes.append(ALL_DONE_NOTE)
    newer_plan = find_newest_open_plan(facts)
    if newer_plan is not None and newer_plan.position.order > plan.position.order:
        notes.append(f"a newer plan was proposed, :{newer_plan.position.record_number}")
    text = f"the last plan that the user approved: {title}"
    return make_entry(text, plan.position, ", ".join(filter(None, notes)))


def _format_changes_after_document(
    changed_count: int, position: RecordPosition, last_commit: RecordPosition | None
) -> str:
    """Return a note on what happened after a document was written, or ``""``.

    The note gives the number of changed files, and says whether a commit followed.
    """
    if changed_count:
        # The number is a minimum, because commands may have changed more files.
        notes = [f"at least {format_count(changed_count, 'file')} changed since"]
    else:
        notes = []
    if last_commit is not None and last_commit.order > position.order:
        notes.append("a commit since")
    return ", ".join(notes)


def _list_files_changed_after(
    facts: LineageFacts, paths: SessionPaths, record_order: int
) -> list[str]:
    """Return the files that changed after a record, in the order of their first change.

    ``record_order`` is the sequence number of the record.
    """
    later_changes = (change for change in facts.changes if change.position.order > record_order)
    names = dict.fromkeys(
        plain_line(paths.make_relative_path(change.path, change.folder)) for change in later_changes
    )
    return [name for name in names if TEMPORARY_PATH_PATTERN.search(name) is None]


def _list_latest_files(facts: LineageFacts, paths: SessionPaths) -> list[str]:
    """Return the files that the session changed, the last changed file first."""
    names: dict[str, None] = {}
    for change in reversed(facts.changes):
        names[plain_line(paths.make_relative_path(change.path, change.folder))] = None
    return [name for name in names if TEMPORARY_PATH_PATTERN.search(name) is None]


def _find_last_prompt_order(facts: LineageFacts) -> int:
    """Return the sequence number of the last prompt's record, or 0 if there is no prompt."""
    if facts.prompts.quotes:
        return facts.prompts.quotes[-1].position.order
    return 0


def _list_running_work(facts: LineageFacts, session_id: str) -> Iterator[DigestEntry]:
    """Yield the background sub-agents and commands of the last turn that are still running."""
    prompt_order = _find_last_prompt_order(facts)
    running_agents = [
        quote
        for quote in facts.running_agents.values()
        if quote.position.session_id == session_id and quote.position.order > prompt_order
    ]
    for quote in running_agents[-MAX_RUNNING_TASKS:]:
        yield make_entry(f"a sub-agent was still at work: {quote.text}", quote.position)
    background = []
    for run in facts.runs:
        if (
            _is_still_running(run)
            and run.position.order > prompt_order
            and not _is_watch_followed_by_answer(facts, run)
            and not _has_run_again(facts, run)
        ):
            background.append(run)
    for run in background[-MAX_RUNNING_TASKS:]:
        yield make_entry(
            f"a command was still running in the background: {shell.make_command_key(run.command)}",
            run.position,
        )


def _is_still_running(run: ShellRun) -> bool:
    """Check whether a background command is still running, as far as the session shows."""
    return run.is_background and run.status is None and not run.has_failed


def _has_run_again(facts: LineageFacts, run: ShellRun) -> bool:
    """Check whether a later command repeated a background command and has ended.

    The later command must include every simple command of the background command.
    """
    words = {part.words for part in shell.parse_simple_commands(run.command)}
    for later_run in facts.runs:
        if later_run.position.order > run.position.order and not _is_still_running(later_run):
            later_parts = shell.parse_simple_commands(later_run.command)
            if words <= {part.words for part in later_parts}:
                return True
    return False


def _is_watch_followed_by_answer(facts: LineageFacts, run: ShellRun) -> bool:
    """Check whether a command only watches something, and the assistant has answered since."""
    last = facts.words_since_prompt
    is_answered = last is not None and last.position.order > max(
        run.position.order, facts.last_call_order
    )
    return is_answered and _WATCH_COMMAND_PATTERN.search(run.command) is not None


_WATCH_COMMAND_PATTERN = compile_lazily(
    r"\bgh\s+(?:run\s+watch|pr\s+checks\b[^|;&]*--watch)|\btail\s+-[fF]\b"
)


def _list_lines_about_branches(session_git: SessionGit) -> Iterator[DigestEntry]:
    """Yield a line about the last branch.

    If the branch changed, but not by a git command of the session, also yield a line about the
    earlier branch.
    """
    yield make_entry(f"branch {quote_name(session_git.branch)}, as last seen in the session", "")
    if session_git.previous_branch:
        former = quote_name(session_git.previous_branch)
        yield make_entry(
            f"the branch was changed from {former} outside the session: "
            f"files changed on {former} may have been committed since",
            "",
        )


def _list_uncommitted_files_of_session(
    facts: LineageFacts, paths: SessionPaths, session_git: SessionGit, states: FileStates
) -> Iterator[DigestEntry]:
    """Yield the changed files that are uncommitted according to the session's commands.

    Also yield the other uncommitted files, which only git's output lists.
    """
    if not states.uses_git:
        names = [
            name for name in _list_latest_files(facts, paths) if name not in states.removed_paths
        ]
        if names:
            shown_names = _join_names_up_to_limit(names)
            yield make_entry(
                f"no git command ran; changed: {shown_names}", "", max_characters=MAX_ROW_CHARACTERS
            )
        return
    own_paths = [
        path for path in reversed(states.list_open_files()) if _was_changed_by_session(path, states)
    ]
    if own_paths:
        yield from _list_uncommitted_paths(
            own_paths,
            [path for path in own_paths if states.states[path].label == STAGED_STATE],
            states.untracked_paths,
        )
    elif (
        session_git.commit_position is not None
        and facts.changes
        and not states.stopped_merges
        and not states.list_files_with_state_label(MAYBE_COMMITTED_STATE)
        and not states.list_files_with_state_label(MAYBE_COMMITTED_ON_PREVIOUS_BRANCH_STATE)
    ):
        yield make_entry(
            "all of the session's own changes are committed", session_git.commit_position
        )
    other_names: list[str] = []
    folders = _list_all_parent_folders(
        [*_list_files_changed_after(facts, paths, 0), *states.states]
    )
    for path in sorted(states.listed_paths):
        is_foreign = path not in states.states or not _was_changed_by_session(path, states)
        if is_foreign and not posixpath.isabs(path) and path.rstrip("/") not in folders:
            other_names.append(plain_line(path))
    if other_names and states.last_status_position is not None:
        yield make_entry(
            f"git status also lists: {_join_names_up_to_limit(other_names)}",
            states.last_status_position,
            max_characters=MAX_ROW_CHARACTERS,
        )


def _was_changed_by_session(path: str, states: FileStates) -> bool:
    """Check whether the session changed an uncommitted file.

    A file that only git's output lists is treated as changed by the session if it was staged.
    """
    if is_temporary(path, states.other_roots):
        return False
    return path not in states.listed_only_paths or states.states[path].label == STAGED_STATE


def _list_uncommitted_paths(
    paths: Sequence[str], staged: Collection[str], untracked: Collection[str]
) -> Iterator[DigestEntry]:
    """Yield a line for each group of uncommitted files: staged files, changed files, untracked files."""
    staged_paths = [path for path in paths if path in staged]
    new_paths = [path for path in paths if path in untracked and path not in staged]
    changed_paths = [path for path in paths if path not in staged and path not in untracked]
    for label, names in (
        (STAGED_LABEL, staged_paths),
        (NOT_COMMITTED_STATE, changed_paths),
        (UNTRACKED_LABEL, new_paths),
    ):
        if names:
            shown_names = _join_names_up_to_limit([plain_line(name) for name in names])
            yield make_entry(f"{label}: {shown_names}", "", max_characters=MAX_ROW_CHARACTERS)


def _list_all_parent_folders(names: Sequence[str]) -> frozenset[str]:
    """Return the folders that contain any of these files, including all parent folders."""
    folders: set[str] = set()
    for name in names:
        folder = posixpath.dirname(name)
        while folder not in {"", "/"} and folder not in folders:
            folders.add(folder)
            folder = posixpath.dirname(folder)
    return frozenset(folders)


def _join_names_up_to_limit(names: Sequence[str]) -> str:
    """Return as many names as fit into a line, followed by the number of names that do not fit."""
    shown_names: list[str] = []
    remaining_characters = MAX_FILE_NAMES_CHARACTERS
    for name in names[:MAX_LISTED_UNCOMMITTED_FILES]:
        remaining_characters -= len(name) + 2
        if shown_names and remaining_characters < 0:
            break
        shown_names.append(name)
    if len(names) > len(shown_names):
        suffix = f" and {format_count(len(names) - len(shown_names), 'other')}"
    else:
        suffix = ""
    return f"{', '.join(shown_names)}{suffix}"


def _list_unfinished_request(facts: LineageFacts) -> Iterator[DigestEntry]:
    """Yield a line that says how far the work on an unanswered last request went.

    If the last words were followed by a sub-agent's report that was not answered, the line says so.
    """
    last_words = facts.words_since_prompt
    prompt_order = _find_last_prompt_order(facts)
    if last_words is None:
        if prompt_order:
            yield make_entry(
                _format_unanswered_request(facts, prompt_order), facts.prompts.quotes[-1].position
            )
        return
    report = _find_report_after(facts, last_words)
    if report is not None:
        yield make_entry(
            "the last report of a sub-agent came after the assistant's last words, "
            "and the assistant did not respond to it",
            report.position,
        )


def _list_state_of_last_request(facts: LineageFacts, session_id: str) -> Iterator[DigestEntry]:
    """Yield a line that says that the last request was answered, or why it may still be unanswered.

    The request was answered if the last words neither ask nor announce anything, and no call or
    report follows them. If it may be unanswered, the line says that the work continued after the
    last words, or that the last request came in the middle of a turn.
    """
    last_words = facts.words_since_prompt
    if (
        last_words is None
        and facts.closing_quotes
        and facts.closing_quotes[-1] is facts.words_before_interruption
    ):
        yield make_entry(REQUEST_DURING_TURN_ENTRY_TEXT, facts.closing_quotes[-1].position)
    elif last_words is None:
        yield from _list_interrupted_previous_request(facts)
    if last_words is None or _find_report_after(facts, last_words) is not None:
        return
    interruption = _find_last_interruption(facts)
    if facts.last_call_order > last_words.position.order:
        yield make_entry(WORK_CONTINUED_ENTRY_TEXT, last_words.position)
        return
    is_at_work = interruption is not None or bool(list(_list_running_work(facts, session_id)))
    if (
        not is_at_work
        and not mentions_next_step(last_words)
        and not prose.ends_with_question_or_offer(last_words.text)
    ):
        yield make_entry("the last request was answered", last_words.position)


def _find_last_interruption(facts: LineageFacts) -> Quote | None:
    """Return the user's last interruption if it came after the last prompt, else None."""
    interruption = facts.interruption
    if interruption is not None and interruption.position.order > _find_last_prompt_order(facts):
        return interruption
    return None


def _list_interrupted_previous_request(facts: LineageFacts) -> Iterator[DigestEntry]:
    """Yield a line if the user interrupted the work on the request before the last one.

    This earlier request may be unfinished. If no command ran for it, the last request is assumed to
    replace it, and no line is yielded.
    """
    interruption = facts.interruption
    if interruption is None or len(facts.prompts.quotes) < 2:
        return
    former_prompt, last_prompt = facts.prompts.quotes[-2:]
    if not former_prompt.position.order < interruption.position.order < last_prompt.position.order:
        return
    if any(
        former_prompt.position.order < run.position.order < interruption.position.order
        for run in facts.runs
    ):
        yield make_entry(
            f"the user interrupted the work on the second-to-last request "
            f"(:{former_prompt.position.record_number}), which may be unfinished",
            interruption.position,
        )


def _find_report_after(facts: LineageFacts, quote: Quote) -> Quote | None:
    """Return the last report of a sub-agent if it came after the quoted words, else None."""
    if facts.reports and facts.reports[-1].position.order > quote.position.order:
        return facts.reports[-1]
    return None


def _format_unanswered_request(facts: LineageFacts, prompt_order: int) -> str:
    """Return a line that says that the last request was not answered, and how much was done for it."""
    run_count = sum(run.position.order > prompt_order for run in facts.runs)
    changed_count = len(
        {change.path for change in facts.changes if change.position.order > prompt_order}
    )
    progress = [
        format_count(count, noun)
        for count, noun in ((run_count, "command"), (changed_count, "changed file"))
        if count
    ]
    if progress:
        progress_clause = f"; the work on this request stopped after {' and '.join(progress)}"
    else:
        progress_clause = ""
    return f"the last request was not answered{progress_clause}"


def _list_uncommitted_files(
    repository: RepositoryState, paths: SessionPaths
) -> Iterator[DigestEntry]:
    """Yield the conflicting files and the other uncommitted files, relative to the session's folder."""
    if repository.conflicting_paths:
        conflicts: list[str] = []
        for name in sorted(repository.conflicting_paths):
            path = posixpath.join(repository.root_folder, name)
            conflicts.append(quote_name(plain_line(paths.make_relative_path(path))))
        row = f"{CONFLICTS_LABEL}: {_join_names_up_to_limit(conflicts)}"
        yield make_entry(row, "", max_characters=MAX_ROW_CHARACTERS)
    names: dict[str, str] = {}
    for name in repository.dirty_paths - repository.conflicting_paths:
        shown_name = plain_line(
            paths.make_relative_path(posixpath.join(repository.root_folder, name))
        )
        names[quote_name(shown_name)] = name
    staged = {shown_name for shown_name, name in names.items() if name in repository.staged_paths}
    untracked = {
        shown_name for shown_name, name in names.items() if name in repository.untracked_paths
    }
    yield from _list_uncommitted_paths(sorted(names), staged, untracked)


def _find_state_documents(
    facts: LineageFacts, paths: SessionPaths
) -> list[tuple[str, RecordPosition]]:
    """Return the documents in which the session described the state of its work, the latest first.

    The plan that was written in plan mode is included.
    """
    documents: dict[str, RecordPosition] = {}
    for change in reversed(facts.changes):
        if len(documents) == MAX_DOCUMENTS_TO_READ:
            break
        path = plain_line(paths.make_relative_path(change.path, change.folder))
        if path in documents:
            continue
        is_document = _STATUS_DOCUMENT_PATTERN.search(path) is not None and "template" not in path
        if is_document or change.path == facts.plan_file:
            documents[path] = change.position
    return list(documents.items())
