"""Derive the state of each changed file at the end of a session, for example committed or staged.

The states are derived from the session's own git commands and their output, oldest first.

Invariant: a file is reported as committed only if a commit certainly includes it. This is certain
if the file was added before the commit, if the commit included all changes, or if a later ``git
status`` no longer lists the file. Changes that users and sub-agents make outside the session are
unknown.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from resume_hooks.reading.digest.commits import (
    NO_FINAL_COMMITS,
    FinalCommits,
    parse_commit_count_before_head,
)
from resume_hooks.reading.digest.facts import OMITTED_MIDDLE_LINE, RecordPosition, ShellRun
from resume_hooks.reading.digest.foreign_commits import (
    HEAD_MOVING_SUBCOMMANDS,
    find_commits_above,
    read_top_commits_from_log,
)
from resume_hooks.reading.digest.git_seen import find_folder_removals
from resume_hooks.reading.digest.shell import SimpleCommand, iterate_git_arguments, select_operands
from resume_hooks.reading.digest.stopped_merges import (
    StoppedMerge,
    aborts_merge,
    update_stopped_merge,
)
from resume_hooks.redaction.lazy_patterns import compile_lazily

NOT_COMMITTED_STATE = "not committed"
STAGED_STATE = "staged, not committed"
CONFLICTING_STATE = "in conflict"
MAYBE_COMMITTED_STATE = "open or in a commit that the session did not make"
COMMITTED_BY_OTHERS_STATE = "in a commit that the session did not make"
MAYBE_COMMITTED_ON_PREVIOUS_BRANCH_STATE = "open or committed on the branch that was left"
STASHED_STATE = "in a git stash"
REVERTED_STATE = "reverted: no change is left"
UNCHANGED_FILE_STATE = "unchanged in the last git status"
MISSING_FROM_DIFF_STATE = "no unstaged change in the last git diff"
UNCOMMITTED_STATES = frozenset({NOT_COMMITTED_STATE, STAGED_STATE})
POSSIBLY_UNCOMMITTED_STATES = UNCOMMITTED_STATES | {CONFLICTING_STATE, MAYBE_COMMITTED_STATE}
"""The states of a file with changes that may still have to be committed."""

_COMMIT_OUTPUT_PATTERN = compile_lazily(
    r"(?:\A|\n)\[(?!detached)([^\]\s]+)(?: \([^)\n]*\))? ([0-9a-f]{7,40})\] "
)
_WORKTREE_PATTERN = compile_lazily(
    r".*?/(?:\.codex/worktrees/[^/]+/[^/]+|(?:\.?worktrees|\.claude/worktrees)/[^/]+)"
)
_STATUS_HEADING_PATTERN = compile_lazily(
    r"(Changes to be committed|Changes not staged for commit|Unmerged paths|Untracked files):"
)
_STATUS_ROW_PATTERN = compile_lazily(
    r"(?:\t| {8})(?:(?:modified|new file|deleted|renamed|copied|typechange|both \w+): +)?(\S.*)"
)
_SHORT_STATUS_ROW_PATTERN = compile_lazily(r"([ MADRCU?])([ MADRCU?]) (\S.*)")
_LOG_ROW_START_PATTERN = compile_lazily(r"(?:\A|\n)([0-9a-f]{7,40}) \S")
_CREATED_FILE_PATTERN = compile_lazily(r"\n create mode \d{1,9} (.+)")
_DELETED_IN_COMMIT_PATTERN = compile_lazily(r"(?:\A|\n) delete mode \d{1,9} (.+)")
_DELETED_IN_STATUS_PATTERN = compile_lazily(r"(?:\A|\n)(?:\s{1,8}deleted: +|(?: D|D[ MD]) )(\S.*)")
_STAGED_FILE_NAME_PATTERN = compile_lazily(r"(?:\A|\n)(?:[AMT]|R\d{0,3}\t([^\t\n]+))\t([^\t\n]+)")
_DIFF_SUMMARY_PATTERN = compile_lazily(r"\s*(?:cd \S+ && )?git diff --stat\s*")
_DIFF_ROW_PATTERN = compile_lazily(r"(?:\A|\n) ?(\S+) +\| +(?:\d+ ?[+-]*|Bin [^\n]*)(?=\n|\Z)")
_CHANGED_FILE_COUNT_PATTERN = compile_lazily(r"(?:\A|\n) ?(\d{1,6}) files? changed")
_DIFF_CONTENT_PATTERN = compile_lazily(
    r"(?:\A|\n)diff --git a/\S+ b/(\S+)\n(?:new file mode \d{6}\n)?index [0-9a-f]{7,40}\.\.([0-9a-f]{7,40})"
)
"""Finds a file in a diff, and the hash of the file's content after the change."""

_CONTENT_PRINTING_COMMAND_PATTERN = compile_lazily(r"\bgit\b[^\n;&|]*?\s(?:diff|show)\b")
_RANGE_TO_HEAD_PATTERN = compile_lazily(r"[^\s:]+?\.\.\.?(?:HEAD)?")
_CLEAN_STATUS_MESSAGES = (
    "nothing to commit, working tree clean",
    "nothing to commit (working directory clean)",
)
_OPTIONS_FOR_SHORT_STATUS = frozenset({"-s", "--short", "--porcelain", "-sb", "-bs"})
_TRACKED_FILES_ONLY_OPTIONS = frozenset({"-u", "--update"})
_STATUS_CHANGING_SUBCOMMANDS = frozenset(
    {"checkout", "switch", "stash", "merge", "pull", "rebase", "clean", "reset"}
)
"""Git subcommands after which ``git status`` may list different files."""

_COMMIT_CREATING_SUBCOMMAND_PATTERN = compile_lazily(
    r"\bgit\b[^\n;&|]*?\s(commit|revert|cherry-pick|merge|pull|rebase|am)(?!\S)"
)
_HASH_PATTERN = compile_lazily(r"[0-9a-f]{7,40}")
_OPTIONS_THAT_PREVENT_COMMIT = frozenset({"-n", "--no-commit"})
MIN_HASH_CHARACTERS = 7  # The number of characters in the shortest hash that git prints.
# The last status stays valid for this number of further commits.
MAX_COMMITS_AFTER_STATUS = 2
# At most this many folders outside the home folder are treated as checkouts. If there are more, the
# folders that were used last are treated as checkouts.
MAX_OTHER_CHECKOUTS = 40
_ADD_ALL_OPTIONS = _TRACKED_FILES_ONLY_OPTIONS | {"-A", "--all"}
_SHELL_EXPANSION_PATTERN = compile_lazily(r"[$*?`\[]")
"""Characters that the shell expands. If a word contains one, we don't know which arguments git
received."""

# Git prints this message if a file that the command names does not exist. In this case, git adds no
# file at all.
_GIT_ADD_REFUSAL_MESSAGE = "fatal: pathspec"
_NEW_REPOSITORY_PATTERN = compile_lazily(
    r"(?:\A|\n)Initialized empty Git repository in (/[^\n]*)/\.git\b"
)
_COMMIT_ALL_OPTION_PATTERN = compile_lazily(r"--all\Z|-(?!-)[a-zA-Z]*a[a-zA-Z]*\Z")
_OPTIONS_WITH_VALUE = frozenset(
    {"-m", "--message", "-F", "--file", "-C", "-c", "--author", "--date", "-t"}
)
_SUBCOMMANDS_WITHOUT_STATUS_LIKE_OUTPUT = frozenset({"add", "rm", "mv", "commit", "status"})
"""Git subcommands whose output cannot be mistaken for that of ``git status``. If a command runs
``git status`` together with these, the status can still be parsed. ``status`` itself is one of
them."""

_CHECKOUT_SUBCOMMANDS = _STATUS_CHANGING_SUBCOMMANDS | {
    "add",
    "commit",
    "push",
    "restore",
    "status",
}
"""Git subcommands that succeed only inside a checkout."""

_NO_CHECKOUT_MESSAGE = "not a git repository"


class RecordedCommit(NamedTuple):
    """A commit of the session: its short hash and its branch.

    Both are ``""`` if git did not print them.
    """

    short_hash: str
    branch: str

    def describe_commit(self, current_branch: str) -> str:
        """Return the short hash, followed by the commit's branch if it is not ``current_branch``."""
        if self.branch and self.branch != current_branch:
            return f"{self.short_hash} on {self.branch}"
        return self.short_hash


class FileState(NamedTuple):
    """The state of a file.

    ``label`` is a constant such as STAGED_STATE, or "committed". ``commit`` is the commit that
    includes the file.
    """

    label: str
    commit: RecordedCommit | None = None

    def describe_state(self, current_branch: str) -> str:
        """Return the state as a note, which names the branch of the commit if it is not ``current_branch``."""
        if self.commit is None:
            return self.label
        named = f"committed in {self.commit.short_hash}" if self.commit.short_hash else "committed"
        if self.commit.branch and self.commit.branch != current_branch:
            return f"{named} on {self.commit.branch}"
        return named


class FileEdit(NamedTuple):
    """A change to a file. ``path`` has the same form as in the digest's entries.

    ``order`` is the change's sequence number among all records. ``is_new`` means that no file with
    this path existed before. ``is_removal`` means that the change deleted the file.
    """

    path: str
    order: int
    is_new: bool = False
    is_removal: bool = False


class GitCall(NamedTuple):
    """A git command in a run: its arguments, starting with the subcommand, and the folder in which it ran."""

    arguments: tuple[str, ...]
    folder: str
    run: ShellRun
    is_only_command_printing_status: bool
    """Whether no other command in the run prints lines that look like those of ``git status``."""
    is_last_command_printing_status: bool
    """Whether no later command in the run prints lines that look like those of ``git status``."""


class _GitStatus(NamedTuple):
    """The files that a ``git status`` lists.

    ``changed_paths`` includes the ``untracked_paths``. ``is_complete`` means that all files that
    are not listed are unchanged.
    """

    staged_paths: frozenset[str]
    changed_paths: frozenset[str]
    untracked_paths: frozenset[str]
    is_complete: bool


class FileStates:
    """The states of files, and the new paths of files that were moved.

    ``listed_only_paths`` are the files whose change by the session is known only from git's output.
    ``other_roots`` are the roots of checkouts outside the home folder.
    """

    def __init__(
        self,
        home: str,
        listed_only_paths: Collection[str] = (),
        final_commits: FinalCommits = NO_FINAL_COMMITS,
        other_roots: Sequence[str] = (),
    ) -> None:
        self.states: dict[str, FileState] = {}
        self.new_paths: dict[str, str] = {}
        self.removed_paths: set[str] = set()
        """The paths that git reported as deleted and that were not written again afterwards."""
        self.head_hash = final_commits.head_hash
        self.listed_only_paths = frozenset(listed_only_paths)
        self.listed_paths: frozenset[str] = frozenset()
        """The paths in the last complete ``git status``, including files that the session did not
        change."""
        self.last_status_position: RecordPosition | None = None
        """The position of the last complete ``git status``, or None if a later command may have
        changed the status."""
        self.uses_git = False
        self.stopped_merges: dict[str, StoppedMerge] = {}
        """The merges that stopped with conflicts and are not finished, by checkout. The paths of
        their files are written as in the digest's entries."""
        self._states_before_merge: dict[str, FileState] = {}
        self.commits_by_others: list[str] = []
        """The hashes of the commits that no git command in the session made, oldest first."""
        self.position_of_commits_by_others: RecordPosition | None = None
        self._top_commits: dict[str, str] = {}
        """The hash of the top commit, by checkout. A checkout is removed from this mapping if a
        command may have changed its top commit."""
        self._home = home
        self._final_commits = final_commits
        self._branch_by_commit = final_commits.branches_by_hash
        self._checkouts: dict[str, str] = {}
        self.other_roots = other_roots
        self._paths_not_listed_yet = set(listed_only_paths)
        self._staged_paths: set[str] = set()
        self.untracked_paths: set[str] = set()
        """The files that no commit contains, because a tool created them or a status lists them as
        untracked."""
        self._untracked_prefixes: tuple[str, ...] = ()
        """The prefixes of the paths that the last status lists as untracked.

        The prefixes are cleared when a command may have made that status outdated.
        """
        self._diff_paths: set[str] = set()
        """The known files in the last complete list of unstaged changes that git printed."""
        self._reverting_commits: dict[str, RecordedCommit] = {}
        """Maps the first characters of the hash of a reverted commit to the commit that reverted
        it."""
        self._content_hashes: dict[str, str] = {}
        """Maps each file to the hash of the content that the last diff of the work tree showed. An
        edit of the file removes its hash."""
        self._empty_checkouts: set[str] = set()
        """The checkouts that ``git init`` created and that have no commits."""
        self._commits_by_checkout: dict[str, list[RecordedCommit]] = {}
        """The commits that have not been removed again, by checkout. The latest commit is last."""
        self._commit_count_by_path: dict[str, int] = {}
        self._commit_count = 0
        self._status_valid_until = 0
        """The total number of the session's commits at which the last status becomes outdated."""
        self._has_unknown_additions = False
        """Whether a command after the last commit added files without naming them."""
        self._last_unknown_commit: dict[str, int] = {}
        """Maps each checkout to the number of the last commit that may include files that no
        command named. The session's commits are counted from 1."""

    def process_edit(self, edit: FileEdit) -> None:
        """Process a change to a file."""
        path = edit.path
        if edit.is_removal:
            self.removed_paths.add(path)
            return
        # Assigning to an existing key would keep its old position, so the key is removed first: the
        # latest change must be last.
        self.states.pop(path, None)
        self.states[path] = FileState(NOT_COMMITTED_STATE)
        self.removed_paths.discard(path)
        is_in_new_folder = bool(self._untracked_prefixes) and path.startswith(
            self._untracked_prefixes
        )
        is_untracked = edit.is_new or is_in_new_folder
        if is_untracked or self.find_checkout(path) in self._empty_checkouts:
            self.untracked_paths.add(path)
        self._staged_paths.discard(path)
        self._content_hashes.pop(path, None)
        self._commit_count_by_path[path] = self._commit_count

    def process_git_call(self, call: GitCall) -> None:
        """Update the states of the files that a git command affected."""
        self.uses_git = True
        verb, arguments = call.arguments[0], call.arguments[1:]
        if verb in _STATUS_CHANGING_SUBCOMMANDS or (
            verb == "commit" and self._commit_count > self._status_valid_until
        ):
            self.last_status_position = None
            self._untracked_prefixes = ()
        self._process_reverted_commits(call, arguments)
        self._process_log(call)
        if verb == "init":
            self._process_init(call)
        elif verb == "add":
            self._process_add(call, arguments)
        elif verb == "commit" and not call.run.has_failed:
            self._process_commit(call, arguments)
        elif verb == "status":
            self._process_status(call, arguments)
        elif verb == "stash" and not call.run.has_failed:
            self._process_stash(call, arguments)
        elif verb == "diff" and not call.run.has_failed:
            self._process_staged_file_names(call, arguments)
            self._process_diff_summary(call)
            self._process_diff_contents(call, arguments)
        elif verb in {"checkout", "restore", "reset"} and not call.run.has_failed:
            self._process_revert(call, verb, arguments)
        self._process_merge(call)
        if verb in {"commit", "status"} and not call.run.has_failed:
            self._process_deletions(call)

    def _process_log(self, call: GitCall) -> None:
        """Process the commits that a log lists.

        If the user or a program made some of these commits, they may include files that the session
        had not committed.
        """
        checkout = self.find_checkout(call.folder)
        if call.arguments[0] in HEAD_MOVING_SUBCOMMANDS:
            self._top_commits.pop(checkout, None)
        commits = read_top_commits_from_log(call.arguments, call.run)
        if not commits:
            return
        former_top = self._top_commits.get(checkout, commits[0])
        self._top_commits[checkout] = commits[0]
        new_commits_by_others = find_commits_above(former_top, commits)
        # The session knew this checkout without commits, so somebody else made its first ones.
        if checkout in self._empty_checkouts:
            self._empty_checkouts.discard(checkout)
            self.untracked_paths.difference_update(self._list_paths_in_same_checkout(call.folder))
            new_commits_by_others = list(commits)
        if not new_commits_by_others:
            return
        self.commits_by_others += reversed(new_commits_by_others)
        self.position_of_commits_by_others = call.run.result_position
        for path in self._list_paths_in_same_checkout(call.folder):
            if self.states[path].label in UNCOMMITTED_STATES:
                self.states[path] = FileState(MAYBE_COMMITTED_STATE)
                self._staged_paths.discard(path)

    def mark_files_left_on_branch(self, edits: Iterable[FileEdit], leaving_order: int) -> None:
        """Mark the uncommitted files that may be committed on the branch that the user left.

        These are the files in the home folder's checkout that were not edited after
        ``leaving_order``, the sequence number of the record at which the user left the branch.
        """
        later_paths = {edit.path for edit in edits if edit.order > leaving_order}
        for path in self._list_paths_in_same_checkout("."):
            if self.states[path].label in UNCOMMITTED_STATES and path not in later_paths:
                self.states[path] = FileState(MAYBE_COMMITTED_ON_PREVIOUS_BRANCH_STATE)

    def list_files_with_state_label(self, state_label: str) -> list[str]:
        """Return the files with the state ``state_label`` that were not removed, the latest last."""
        files: list[str] = []
        for path, state in self.states.items():
            if state.label == state_label and path not in self.removed_paths:
                files.append(path)
        return files

    def _process_merge(self, call: GitCall) -> None:
        """Process a command that can start or end a merge.

        Only a merge that stopped with conflicts is remembered.
        """
        checkout = self.find_checkout(call.folder)
        former_merge = self.stopped_merges.get(checkout)
        merge = update_stopped_merge(former_merge, call.arguments, call.run)
        if merge == former_merge:
            return
        if former_merge is not None:
            self._end_merge(former_merge, aborts_merge=aborts_merge(call.arguments))
            del self.stopped_merges[checkout]
        if merge is None:
            return
        paths = tuple(
            self.format_path_for_entry(path, checkout) for path in merge.conflicting_paths
        )
        self.stopped_merges[checkout] = merge._replace(conflicting_paths=paths)
        for path in paths:
            if path in self.states:
                self._states_before_merge[path] = self.states[path]
                self.states[path] = FileState(CONFLICTING_STATE)

    def _end_merge(self, merge: StoppedMerge, *, aborts_merge: bool) -> None:
        """Set the states of the conflicting files after a merge ended.

        If the merge was aborted, each file gets the state that it had before the merge.
        """
        for path in self.states.keys() & set(merge.conflicting_paths):
            former_state = self._states_before_merge.pop(path, None)
            if aborts_merge and former_state is not None:
                self.states[path] = former_state
                self._staged_paths.discard(path)
            elif self.states[path].label in {CONFLICTING_STATE, STAGED_STATE}:
                self.states[path] = FileState("committed", RecordedCommit("", ""))
                self._staged_paths.discard(path)

    def _process_deletions(self, call: GitCall) -> None:
        """Process the files that a commit or a status lists as deleted."""
        root = self.find_checkout(call.folder)
        if not root:
            return
        for path in _DELETED_IN_COMMIT_PATTERN.findall(call.run.output):
            self.removed_paths.add(self.format_path_for_entry(path.strip('"'), root))
        for path in _DELETED_IN_STATUS_PATTERN.findall(call.run.output):
            self.removed_paths.add(self.format_path_for_entry(path.strip().strip('"'), call.folder))

    def list_open_files(self) -> list[str]:
        """Return the files in known checkouts that are staged or not committed, the latest last.

        Files that git reported as deleted, and folders that contain other changed files, are left
        out.
        """
        files: list[str] = []
        folders = {posixpath.dirname(path) for path in self.states}
        for path, state in self.states.items():
            if state.label not in UNCOMMITTED_STATES or path in self.removed_paths:
                continue
            is_folder = any(f"{folder}/".startswith(f"{path}/") for folder in folders)
            if not is_folder and self.find_checkout(path):
                files.append(path)
        return files

    def was_reverted(self, path: str) -> bool:
        """Check whether a command reverted the last change to a file."""
        state = self.states.get(path)
        return state is not None and state.label == REVERTED_STATE

    def describe_file(self, path: str, branch: str) -> str:
        """Return the state of a file as a note, or ``""`` if it is unknown.

        If the file was committed on a branch other than ``branch``, the note includes the name of
        that branch.
        """
        state = self.states.get(path)
        if state is None or not self.uses_git or not self.find_checkout(path):
            return ""
        commit = state.commit
        if commit is None:
            return state.describe_state(branch)
        if commit.short_hash in self._final_commits.rewritten_hashes:
            return state._replace(commit=commit._replace(short_hash="")).describe_state(branch)
        if commit.short_hash in self._branch_by_commit:
            state = state._replace(
                commit=commit._replace(branch=self._branch_by_commit[commit.short_hash])
            )
        reverting_commit = self._reverting_commits.get(commit.short_hash[:MIN_HASH_CHARACTERS])
        if reverting_commit is None:
            return state.describe_state(branch)
        return f"{state.describe_state(branch)}, reverted in {reverting_commit.describe_commit(branch)}"

    def format_path_for_entry(self, path: str, folder: str) -> str:
        """Convert a path that git printed in ``folder`` to the form of the paths in the digest's entries."""
        full_path = posixpath.normpath(posixpath.join(self._home, folder, path))
        if self._home and full_path.startswith(f"{self._home}/"):
            return full_path[len(self._home) + 1 :]
        return full_path

    def find_checkout(self, path: str) -> str:
        """Return the root of the checkout that contains a path, or ``""`` if it is unknown."""
        checkout = self._checkouts.get(path)
        if checkout is None:
            checkout = self._checkouts[path] = self._derive_checkout(path)
        return checkout

    def _derive_checkout(self, path: str) -> str:
        full_path = posixpath.normpath(posixpath.join(self._home, path))
        worktree = _WORKTREE_PATTERN.match(f"{full_path}/")
        if worktree is not None:
            return worktree[0]
        for root in filter(None, (self._home, *self.other_roots)):
            if f"{full_path}/".startswith(f"{root}/"):
                return root
        return ""

    def _list_paths_in_same_checkout(self, folder: str) -> list[str]:
        """Return the known files in the same checkout as ``folder``."""
        checkout = self.find_checkout(folder)
        if not checkout:
            return []
        return [path for path in self.states if self.find_checkout(path) == checkout]

    def _match_files(self, operands: Iterable[str], folder: str) -> list[str]:
        """Return the known files that a git command names, either directly or by naming their folder."""
        matches: list[str] = []
        for operand in operands:
            path_prefix = self.format_path_for_entry(operand, folder)
            folder_prefix = f"{path_prefix}/"
            names_everything = path_prefix in {".", self._home}
            for path in self.states:
                is_home_file = names_everything and not path.startswith("/")
                if path == path_prefix or is_home_file or path.startswith(folder_prefix):
                    matches.append(path)
        return matches

    def _process_init(self, call: GitCall) -> None:
        """Process a ``git init``. If it created a repository, no file in its folder is tracked."""
        match = _NEW_REPOSITORY_PATTERN.search(call.run.output)
        if match is not None and match[1] == self.find_checkout(match[1]):
            self._empty_checkouts.add(match[1])
            self.untracked_paths.update(self._list_paths_in_same_checkout(match[1]))

    def _process_add(self, call: GitCall, arguments: Sequence[str]) -> None:
        if call.run.has_failed and _GIT_ADD_REFUSAL_MESSAGE in call.run.output:
            return
        operands = select_operands(arguments)
        adds_all = ":/" in operands or (
            bool(_ADD_ALL_OPTIONS.intersection(arguments)) and not operands
        )
        if any(_SHELL_EXPANSION_PATTERN.search(word) for word in operands) or not (
            operands or adds_all
        ):
            self._has_unknown_additions = True
        self._register_listed_files(
            self.format_path_for_entry(word, call.folder) for word in operands
        )
        added_paths = set(self._match_files(operands, call.folder))
        if adds_all:
            added_paths.update(self._list_paths_in_same_checkout(call.folder))
        if _TRACKED_FILES_ONLY_OPTIONS.intersection(arguments):
            added_paths -= self.untracked_paths
        self._staged_paths |= added_paths
        for path in added_paths if not call.run.has_failed else ():
            if self.states[path].label in {NOT_COMMITTED_STATE, CONFLICTING_STATE}:
                self.states[path] = FileState(STAGED_STATE)
        if adds_all:
            self.last_status_position = None

    def _process_commit(self, call: GitCall, arguments: Sequence[str]) -> None:
        commit_rows = _COMMIT_OUTPUT_PATTERN.findall(call.run.output)
        if (
            not commit_rows
            and not {"-q", "--quiet"}.intersection(arguments)
            and call.is_only_command_printing_status
        ):
            return  # The command was a dry run, or there was nothing to commit.
        log_match = (
            _LOG_ROW_START_PATTERN.search(call.run.output)
            if "git log" in call.run.command
            else None
        )
        if commit_rows:
            branch, name = commit_rows[-1]
            commit = RecordedCommit(name, branch)
        elif log_match is not None:
            commit = RecordedCommit(log_match[1], "")
        else:
            commit = RecordedCommit("", "")
        checkout = self.find_checkout(call.folder)
        commits = self._commits_by_checkout.setdefault(checkout, [])
        if "--amend" in arguments and commits:
            self._set_state_of_committed_files(commits[-1:], FileState("committed", commit))
            commits.pop()
        commits.append(commit)
        self._empty_checkouts.discard(checkout)
        if commit.short_hash:
            self._top_commits[checkout] = commit.short_hash
        committed_paths = {
            path for path in self._staged_paths if self.find_checkout(path) == checkout
        }
        if any(_COMMIT_ALL_OPTION_PATTERN.match(word) for word in _list_options(arguments)):
            committed_paths.update(
                set(self._list_paths_in_same_checkout(call.folder)) - self.untracked_paths
            )
        committed_paths.update(self._match_files(_list_commit_operands(arguments), call.folder))
        created_paths = self._find_created_paths(call, checkout)
        self._register_listed_files(created_paths)
        committed_paths.update(created_paths.intersection(self.states))
        for path in committed_paths:
            if self.states[path].label in POSSIBLY_UNCOMMITTED_STATES:
                self.states[path] = FileState("committed", commit)
        self._staged_paths -= committed_paths
        self.untracked_paths -= committed_paths
        self.listed_paths -= committed_paths
        self._untracked_prefixes = ()
        self._commit_count += 1
        if self._has_unknown_additions:
            self._last_unknown_commit[checkout] = self._commit_count
            self._has_unknown_additions = False

    def _set_state_of_committed_files(
        self, commits: Collection[RecordedCommit], state: FileState
    ) -> list[str]:
        """Set the state of all files that are included in any of these commits. Return the files' paths."""
        paths = [path for path, file_state in self.states.items() if file_state.commit in commits]
        for path in paths:
            self.states[path] = state
        return paths

    def _find_created_paths(self, call: GitCall, checkout: str) -> set[str]:
        """Return the files that a commit created, according to git's output.

        If the root of the checkout is unknown, the result is empty.
        """
        if not checkout:
            return set()
        return {
            self.format_path_for_entry(path, checkout)
            for path in _CREATED_FILE_PATTERN.findall(call.run.output)
        }

    def _process_status(self, call: GitCall, arguments: Sequence[str]) -> None:
        status = self._parse_status(call, arguments)
        if status is None:
            return
        self._register_listed_files(status.staged_paths | status.changed_paths)
        untracked = self._untracked_prefixes = _convert_paths_to_prefixes(status.untracked_paths)
        staged = _convert_paths_to_prefixes(status.staged_paths)
        changed = _convert_paths_to_prefixes(status.changed_paths)
        for path in self._list_paths_in_same_checkout(call.folder):
            is_open = self.states[path].label in UNCOMMITTED_STATES
            if f"{path}/".startswith(untracked):
                self.untracked_paths.add(path)
            if f"{path}/".startswith(staged):
                self.states[path] = FileState(STAGED_STATE)
                self._staged_paths.add(path)
            elif f"{path}/".startswith(changed):
                if self.states[path].label != CONFLICTING_STATE:
                    self.states[path] = FileState(NOT_COMMITTED_STATE)
            elif status.is_complete and is_open:
                self.states[path] = self._infer_unlisted_state(path)
            elif status.is_complete and self.states[path].label == MAYBE_COMMITTED_STATE:
                self.states[path] = FileState("committed", RecordedCommit("", ""))
        if status.is_complete:
            self.listed_paths = status.staged_paths | status.changed_paths
            self.last_status_position = call.run.result_position
            self._status_valid_until = self._commit_count + MAX_COMMITS_AFTER_STATUS

    def _process_staged_file_names(self, call: GitCall, arguments: Sequence[str]) -> None:
        """Process the staged and moved files in the output of ``git diff --cached --name-status``."""
        if "--name-status" not in arguments or not {"--cached", "--staged"}.intersection(arguments):
            return
        root = self.find_checkout(call.folder)
        for old_name, path in _STAGED_FILE_NAME_PATTERN.findall(call.run.output):
            shown_path = self.format_path_for_entry(path, root)
            if old_name:
                self._process_listed_move(self.format_path_for_entry(old_name, root), shown_path)
            if shown_path in self.states:
                self._staged_paths.add(shown_path)
                self.states[shown_path] = FileState(STAGED_STATE)

    def _process_diff_summary(self, call: GitCall) -> None:
        """Process the list of all unstaged changes from ``git diff --stat``.

        If a file in the previous list is missing from this list, and no command in the session
        explains this, somebody else staged, committed or reverted the file. The staged files may
        have been committed at the same time.
        """
        if _DIFF_SUMMARY_PATTERN.fullmatch(call.run.command) is None:
            return
        names = _DIFF_ROW_PATTERN.findall(call.run.output)
        count = _CHANGED_FILE_COUNT_PATTERN.search(call.run.output)
        if len(names) != (int(count[1]) if count else 0) or (call.run.output and not names):
            return
        tails = tuple(name.removeprefix("...") for name in names)
        paths = self._list_paths_in_same_checkout(call.folder)
        listed_paths = {path for path in paths if tails and f"/{path}".endswith(tails)}
        missing_paths = []
        for path in self._diff_paths.intersection(paths) - listed_paths:
            if self.states[path].label == NOT_COMMITTED_STATE and path not in self.removed_paths:
                missing_paths.append(path)
        self._diff_paths = listed_paths
        for path in missing_paths:
            self.states[path] = FileState(MISSING_FROM_DIFF_STATE)
        for path in paths if missing_paths else ():
            if self.states[path].label == STAGED_STATE:
                self.states[path] = FileState(MAYBE_COMMITTED_STATE)
                self._staged_paths.discard(path)

    def _process_diff_contents(self, call: GitCall, arguments: Sequence[str]) -> None:
        """Process the content hashes that a ``git diff`` prints.

        If a diff up to ``HEAD`` shows the hash that an open file had after its last edit, the file
        has been committed. Someone else made the commit: if the session had made it, the file would
        no longer be open.
        """
        root = self.find_checkout(call.folder)
        is_unclear = (
            len(_CONTENT_PRINTING_COMMAND_PATTERN.findall(call.run.command)) != 1
            or "-R" in arguments
        )
        if is_unclear or not root:
            return
        revisions = []
        for word in select_operands(arguments):
            if not self._match_files([word], call.folder):
                revisions.append(word)
        shows_head = any(_RANGE_TO_HEAD_PATTERN.fullmatch(word) for word in revisions)
        shows_commit = len(revisions) > 1 or any(".." in word for word in revisions)
        shows_index = not {"--cached", "--staged"}.isdisjoint(arguments)
        for name, content_hash in _DIFF_CONTENT_PATTERN.findall(call.run.output):
            path = self.format_path_for_entry(name, root)
            state = self.states.get(path, FileState(""))
            if shows_head:
                self._apply_comparison_with_head(path, content_hash, call)
            elif not shows_commit and (state.label == STAGED_STATE or not shows_index):
                self._content_hashes[path] = content_hash

    def _apply_comparison_with_head(self, path: str, content_hash: str, call: GitCall) -> None:
        """Mark an open file as committed if ``HEAD`` contains the same content.

        ``content_hash`` is the hash of the file in ``HEAD``, as a diff shows it.
        """
        state = self.states.get(path)
        known_hash = self._content_hashes.get(path, "")
        is_same = known_hash[:MIN_HASH_CHARACTERS] == content_hash[:MIN_HASH_CHARACTERS]
        if state is not None and state.label in UNCOMMITTED_STATES and is_same:
            number = call.run.result_position.record_number
            self.states[path] = FileState(f"{COMMITTED_BY_OTHERS_STATE}, as :{number} shows")
            self._staged_paths.discard(path)
            self.untracked_paths.discard(path)

    def _register_listed_files(self, listed_paths: Iterable[str]) -> None:
        """Register those of ``listed_paths`` that no status has listed yet.

        Only git reports these files as changed.
        """
        for path in sorted(self._paths_not_listed_yet.intersection(listed_paths)):
            self._paths_not_listed_yet.discard(path)
            self.process_edit(FileEdit(path, 0))

    def _infer_unlisted_state(self, path: str) -> FileState:
        """Return the state, committed or unchanged, of an uncommitted file that ``git status`` does not list."""
        checkout = self.find_checkout(path)
        edit_commit_count = self._commit_count_by_path.get(path, 0)
        commits = self._commits_by_checkout.get(checkout)
        if not commits or self._commit_count <= edit_commit_count:
            return FileState(UNCHANGED_FILE_STATE)
        if (
            path not in self._staged_paths
            and self._last_unknown_commit.get(checkout, 0) <= edit_commit_count
        ):
            # All commits since the edit are known, and none of them includes the file.
            return FileState(UNCHANGED_FILE_STATE)
        if self._commit_count == edit_commit_count + 1:
            return FileState("committed", commits[-1])
        return FileState("committed", RecordedCommit("", commits[-1].branch))

    def _parse_status(self, call: GitCall, arguments: Sequence[str]) -> _GitStatus | None:
        """Parse the output of a ``git status``.

        Return None if the command failed or if its output cannot be separated from other commands'
        output.
        """
        if call.run.has_failed:
            return None
        output = call.run.output
        is_complete = (
            call.is_only_command_printing_status
            and OMITTED_MIDDLE_LINE not in output
            and "|" not in call.run.command
            and not select_operands(arguments)
        )
        if any(words in output for words in _CLEAN_STATUS_MESSAGES):
            is_complete = is_complete and not _STATUS_HEADING_PATTERN.search(output)
            return _GitStatus(frozenset(), frozenset(), frozenset(), is_complete)
        if _OPTIONS_FOR_SHORT_STATUS.intersection(arguments):
            if not call.is_last_command_printing_status:
                return None
            rows = (
                _SHORT_STATUS_ROW_PATTERN.findall(output)
                if call.is_only_command_printing_status
                else _parse_short_status_rows(output)
            )
            staged = []
            for index, work, path in rows:
                if index not in " ?U" and work != "U" and index + work not in {"AA", "DD"}:
                    staged.append(path)
            changed = [path for index, work, path in rows if work != " " or index == "?"]
            untracked = [path for index, _, path in rows if index == "?"]
        else:
            if _STATUS_HEADING_PATTERN.search(output) is None:
                return None
            staged, changed, untracked = _parse_long_status(output)
        for row in (*staged, *changed):
            self._process_move_row(row, call.folder)
        return _GitStatus(
            self._make_entry_paths(staged, call.folder),
            self._make_entry_paths(changed, call.folder),
            self._make_entry_paths(untracked, call.folder),
            is_complete,
        )

    def _make_entry_paths(self, status_paths: Iterable[str], folder: str) -> frozenset[str]:
        names = [path.rpartition(" -> ")[2].strip().strip('"') for path in status_paths]
        return frozenset(self.format_path_for_entry(name, folder) for name in names)

    def _process_move_row(self, row: str, folder: str) -> None:
        old_name, arrow, new_name = row.partition(" -> ")
        if arrow:
            self._process_listed_move(
                self.format_path_for_entry(old_name, folder),
                self.format_path_for_entry(new_name, folder),
            )

    def _process_listed_move(self, old_path: str, new_path: str) -> None:
        """Process the new path of a file that was moved according to git's output."""
        self.new_paths[old_path] = new_path
        if old_path in self.states:
            self._transfer_state_to_new_path(old_path, new_path, by_git=True)

    def process_move_command(self, arguments: Sequence[str], folder: str, *, by_git: bool) -> None:
        """Process a move from one path to another. With ``by_git``, the next commit includes the move."""
        operands = select_operands(arguments)
        if len(operands) != 2:
            return
        old_path = self.format_path_for_entry(operands[0], folder)
        new_path = self.format_path_for_entry(operands[1], folder)
        is_folder = operands[1].endswith("/") or any(
            path.startswith(f"{new_path}/") for path in self.states
        )
        if is_folder and posixpath.basename(old_path) != posixpath.basename(new_path):
            new_path = posixpath.join(new_path, posixpath.basename(old_path))
        self.new_paths.pop(new_path, None)
        self.new_paths[old_path] = "" if "$" in new_path else new_path
        for path in [path for path in self.states if f"{path}/".startswith(f"{old_path}/")]:
            self._transfer_state_to_new_path(
                path, f"{new_path}{path[len(old_path) :]}", by_git=by_git
            )

    def _transfer_state_to_new_path(self, old_path: str, new_path: str, *, by_git: bool) -> None:
        """Give the state of a moved file to its new path, unless the new path contains a variable."""
        state = self.states[old_path]
        if old_path in self.listed_only_paths or state.label == STASHED_STATE:
            return
        self._staged_paths.discard(old_path)
        self.removed_paths.add(old_path)
        if "$" in new_path:  # The new path stays unknown until git prints it.
            return
        del self.states[old_path]
        self.new_paths[old_path] = new_path
        self.listed_only_paths -= {new_path}
        self._paths_not_listed_yet.discard(new_path)
        self._commit_count_by_path[new_path] = self._commit_count
        is_open = state.label == NOT_COMMITTED_STATE
        if by_git and not is_open:
            self._staged_paths.add(new_path)
            self.states[new_path] = FileState(STAGED_STATE)
        else:
            self.states[new_path] = FileState(NOT_COMMITTED_STATE)

    def _process_stash(self, call: GitCall, arguments: Sequence[str]) -> None:
        subcommand = next(iter(select_operands(arguments)), "push")
        old_state, new_state = NOT_COMMITTED_STATE, STASHED_STATE
        if subcommand in {"pop", "apply"}:
            old_state, new_state = STASHED_STATE, NOT_COMMITTED_STATE
        elif subcommand not in {"push", "save"}:
            return
        for path in self._list_paths_in_same_checkout(call.folder):
            state = self.states[path].label
            if state == old_state or (state == STAGED_STATE and new_state == STASHED_STATE):
                self.states[path] = FileState(new_state)

    def _process_revert(self, call: GitCall, verb: str, arguments: Sequence[str]) -> None:
        """Process a command that resets, restores or unstages files."""
        is_hard = verb == "reset" and "--hard" in arguments
        is_index_only = verb == "reset" or (
            "--staged" in arguments and "--worktree" not in arguments
        )
        if verb == "reset":
            self._process_reset(call, arguments)
        if is_hard:
            paths = self._list_paths_in_same_checkout(call.folder)
        elif is_index_only:
            if "--soft" not in arguments:
                self._process_unstaging(call, arguments)
            return
        elif verb == "checkout" and "--" in arguments:
            paths = self._match_files(arguments[arguments.index("--") + 1 :], call.folder)
        elif verb == "restore" or arguments == (".",):
            paths = self._match_files(select_operands(arguments), call.folder)
        else:
            return
        for path in paths:
            if self.states[path].label in POSSIBLY_UNCOMMITTED_STATES:
                self.states[path] = FileState(REVERTED_STATE)

    def _process_reverted_commits(self, call: GitCall, arguments: Sequence[str]) -> None:
        """Process a ``git revert``.

        The revert is ignored if the same run contains an earlier command that made a commit.
        """
        if call.arguments[0] != "revert" or call.run.has_failed:
            return
        first_verb = _COMMIT_CREATING_SUBCOMMAND_PATTERN.search(call.run.command)
        commits = []
        for branch, name in _COMMIT_OUTPUT_PATTERN.findall(call.run.output):
            commits.append(RecordedCommit(name, branch))
        if not commits or first_verb is None or first_verb[1] != "revert":
            return
        head = self._top_commits.get(self.find_checkout(call.folder), "")
        targets = [head if word == "HEAD" else word for word in select_operands(arguments)]
        hashes = [target for target in targets if _HASH_PATTERN.fullmatch(target)]
        if not _OPTIONS_THAT_PREVENT_COMMIT.isdisjoint(arguments):
            commits = commits[:1] * len(hashes)
        for target, commit in zip(hashes, commits, strict=False):
            for former_hash, reverting_commit in list(self._reverting_commits.items()):
                if target.startswith(reverting_commit.short_hash[:MIN_HASH_CHARACTERS]):
                    del self._reverting_commits[former_hash]
            self._reverting_commits[target[:MIN_HASH_CHARACTERS]] = commit

    def _process_reset(self, call: GitCall, arguments: Sequence[str]) -> None:
        """Process a reset that removes the last commits.

        With ``--hard``, the changes in these commits are lost. With ``--soft``, the changes are
        staged. Without either, the changes stay in the files and are not staged.
        """
        operands = select_operands(arguments)
        commits = self._commits_by_checkout.get(self.find_checkout(call.folder), [])
        removed_count = parse_commit_count_before_head(operands[0]) if len(operands) == 1 else 0
        removed_commits = commits[-removed_count:] if removed_count else []
        del commits[len(commits) - len(removed_commits) :]
        if "--hard" in arguments:
            self._set_state_of_committed_files(removed_commits, FileState(REVERTED_STATE))
        elif "--soft" in arguments:
            self._staged_paths.update(
                self._set_state_of_committed_files(removed_commits, FileState(STAGED_STATE))
            )
        else:
            self._set_state_of_committed_files(removed_commits, FileState(NOT_COMMITTED_STATE))

    def _process_unstaging(self, call: GitCall, arguments: Sequence[str]) -> None:
        """Process a command that unstages the named files or, if it names none, all files."""
        paths = self._match_files(select_operands(arguments), call.folder)
        for path in paths or self._list_paths_in_same_checkout(call.folder):
            self._staged_paths.discard(path)
            if self.states[path].label == STAGED_STATE:
                self.states[path] = FileState(NOT_COMMITTED_STATE)


def derive_file_states(
    edits: Sequence[FileEdit],
    listed_only_paths: Collection[str],
    runs: Sequence[tuple[ShellRun, tuple[SimpleCommand, ...]]],
    home: str,
    final_commits: FinalCommits,
) -> FileStates:
    """Return the states of all changed files at the end of a session.

    ``edits`` are the changes made by tools and commands. ``listed_only_paths`` are the files that
    only git's output reports as changed. ``runs`` are the session's commands with their parts,
    oldest first. ``final_commits`` contains the commits that exist at the end, with their current
    branches and hashes.
    """
    states = FileStates(
        home, listed_only_paths, final_commits, _find_checkout_roots_outside_home(runs, home)
    )
    sorted_edits = sorted(edits, key=lambda edit: edit.order)
    edit_index = 0
    for run, parts in runs:
        if not _may_change_file_states(run.command):
            continue
        while (
            edit_index < len(sorted_edits) and sorted_edits[edit_index].order <= run.position.order
        ):
            states.process_edit(sorted_edits[edit_index])
            edit_index += 1
        last_words = parts[-1].words if parts else ()
        for words, folder in _find_git_and_move_calls(run, parts):
            if words[0] == "mv":
                if not run.has_failed:
                    states.process_move_command(words[1:], folder, by_git=False)
                continue
            calls = [*iterate_git_arguments(words)]
            if calls[:1] == ["mv"] and not run.has_failed:
                states.process_move_command(calls[1:], folder, by_git=True)
            elif calls:
                is_only_command_printing_status = _is_only_git(parts)
                is_last_command_printing_status = (
                    is_only_command_printing_status or words == last_words
                )
                states.process_git_call(
                    GitCall(
                        tuple(calls),
                        folder,
                        run,
                        is_only_command_printing_status,
                        is_last_command_printing_status,
                    )
                )
    for edit in sorted_edits[edit_index:]:
        states.process_edit(edit)
    return states


def _find_checkout_roots_outside_home(
    runs: Sequence[tuple[ShellRun, tuple[SimpleCommand, ...]]], home: str
) -> list[str]:
    """Return the roots of checkouts outside the home folder, as far as git commands reveal them.

    Folders that were removed are left out, and so are folders inside another of these roots.
    """
    last_orders: dict[str, int] = {}
    for run, parts in runs:
        if run.has_failed or "git" not in run.command or _NO_CHECKOUT_MESSAGE in run.output:
            continue
        for words, folder in _find_git_and_move_calls(run, parts):
            if next(iterate_git_arguments(words), "") in _CHECKOUT_SUBCOMMANDS:
                last_orders[folder] = run.position.order
    for folder, order in find_folder_removals(runs):
        if last_orders.get(folder, order) < order:
            del last_orders[folder]
    latest_folders = sorted(last_orders, key=lambda folder: last_orders[folder])
    roots: list[str] = []
    for folder in sorted(latest_folders[-MAX_OTHER_CHECKOUTS:]):
        is_known = any(f"{folder}/".startswith(f"{root}/") for root in (home, *roots))
        is_above_home = f"{home}/".startswith(f"{folder}/")
        is_written_out = posixpath.isabs(folder) and not _SHELL_EXPANSION_PATTERN.search(folder)
        if is_written_out and not is_known and not is_above_home:
            roots.append(folder)
    return roots


def _is_only_git(simple_commands: Sequence[SimpleCommand]) -> bool:
    """Check whether a run contains only ``cd`` and git commands.

    The output of these git commands must not look like that of ``git status``.
    """
    for words, _ in simple_commands:
        is_git = (
            words[:1] == ("git",)
            and next(iterate_git_arguments(words), "") in _SUBCOMMANDS_WITHOUT_STATUS_LIKE_OUTPUT
        )
        if words and words[0] != "cd" and not is_git:
            return False
    return True


def _may_change_file_states(command: str) -> bool:
    return "git" in command or "mv " in command


def _find_git_and_move_calls(
    run: ShellRun, simple_commands: Sequence[SimpleCommand]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the git commands and the ``mv`` commands in a run, each with the folder in which it runs."""
    folder = run.folder
    for words, _ in simple_commands:
        if words[:1] == ("cd",):
            folder = posixpath.normpath(posixpath.join(folder, words[-1]))
        elif words[:1] == ("mv",):
            yield words, folder
        elif words and words[0].rpartition("/")[2] == "git":
            yield words, _find_git_folder(words, folder)


def _find_git_folder(command_words: Sequence[str], folder: str) -> str:
    """Return the folder in which a git command runs: the value of its ``-C`` option, or else ``folder``."""
    for option, value in pairwise(command_words[1:]):
        if not option.startswith("-"):
            break
        if option == "-C":
            return posixpath.normpath(posixpath.join(folder, value))
    return folder


def _list_options(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the options of a commit, without the options' values."""
    is_value = False
    for word in arguments:
        if word == "--":
            return
        if word.startswith("-") and not is_value:
            yield word
        is_value = word in _OPTIONS_WITH_VALUE or (word.startswith("-") and word.endswith("m"))


def _list_commit_operands(arguments: Sequence[str]) -> list[str]:
    """Return the files that a commit command names."""
    operands: list[str] = []
    is_value = False
    for word in arguments:
        if not word.startswith("-") and not is_value:
            operands.append(word)
        is_value = word in _OPTIONS_WITH_VALUE or (word.startswith("-") and word.endswith("m"))
    return operands


def _parse_long_status(output: str) -> tuple[list[str], list[str], list[str]]:
    """Return the staged, changed and untracked paths in the long form of ``git status``.

    The changed paths include the untracked paths.
    """
    staged: list[str] = []
    changed: list[str] = []
    untracked: list[str] = []
    is_untracked = False
    rows: list[str] | None = None
    for line in output.split("\n"):
        heading = _STATUS_HEADING_PATTERN.match(line)
        if heading is not None:
            rows = staged if heading[1] == "Changes to be committed" else changed
            is_untracked = heading[1] == "Untracked files"
            continue
        row = _STATUS_ROW_PATTERN.fullmatch(line)
        if row is None:
            if line.strip() and not line.startswith("  ("):
                rows = None
        elif rows is not None:
            rows.append(row[1].strip())
            if is_untracked:
                untracked.append(row[1].strip())
    return staged, changed, untracked


def _parse_short_status_rows(output: str) -> list[tuple[str, str, str]]:
    """Return the lines of a short ``git status`` at the end of an output.

    Each line is split into the letter for the index, the letter for the work tree, and the path.
    """
    rows: list[tuple[str, str, str]] = []
    for line in reversed(output.rstrip("\n").split("\n")):
        row = _SHORT_STATUS_ROW_PATTERN.fullmatch(line)
        if row is None:
            break
        rows.append((row[1], row[2], row[3]))
    return rows[::-1]


def _convert_paths_to_prefixes(status_paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths that a status lists, each with a single slash at its end.

    The results are used as prefixes, because a status may list a new folder instead of the files in
    it.
    """
    return tuple(f"{path.rstrip('/')}/" for path in status_paths)
