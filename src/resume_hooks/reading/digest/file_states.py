"""The state of each changed file at the end of a session: committed, staged, not committed, moved, reverted.

The states are derived from the session's own git commands and their output, oldest first.

Invariant: a file counts as committed only if a commit certainly includes it: the file was added
before, the commit included everything, or a later ``git status`` no longer lists the file. Changes
by users and sub-agents outside the session are unknown.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from resume_hooks.reading.digest.commits import NO_COMMITS, FinalCommits, count_commits_back
from resume_hooks.reading.digest.facts import MIDDLE_LEFT_OUT, RecordPlace, ShellRun
from resume_hooks.reading.digest.shell import SimpleCommand, git_words, select_operands
from resume_hooks.redaction.lazy_patterns import compile_lazily

NOT_COMMITTED = "not committed"
STAGED = "staged, not committed"
STASHED = "in a git stash"
TAKEN_BACK = "taken back: no change is left"
UNCHANGED = "unchanged in the last git status"
OPEN_STATES = frozenset({NOT_COMMITTED, STAGED})
"""The states of a file whose changes may be included in the next commit."""

_COMMITTED = compile_lazily(
    r"(?:\A|\n)\[(?!detached)([^\]\s]+)(?: \([^)\n]*\))? ([0-9a-f]{7,40})\] "
)
_WORKTREE = compile_lazily(r".*?/(?:\.?worktrees|\.claude/worktrees)/[^/]+")
_STATUS_PART = compile_lazily(
    r"(Changes to be committed|Changes not staged for commit|Unmerged paths|Untracked files):"
)
_STATUS_ROW = compile_lazily(
    r"(?:\t| {8})(?:(?:modified|new file|deleted|renamed|copied|typechange|both \w+): +)?(\S.*)"
)
_SHORT_ROW = compile_lazily(r"([ MADRCU?])([ MADRCU?]) (\S.*)")
_LOGGED = compile_lazily(r"(?:\A|\n)([0-9a-f]{7,40}) \S")
_CREATED = compile_lazily(r"\n create mode \d{1,9} (.+)")
_REMOVED_BY_COMMIT = compile_lazily(r"(?:\A|\n) delete mode \d{1,9} (.+)")
_REMOVED_IN_STATUS = compile_lazily(r"(?:\A|\n)(?:\s{1,8}deleted: +|(?: D|D[ MD]) )(\S.*)")
_STAGED_NAME = compile_lazily(r"(?:\A|\n)(?:[AMT]|R\d{0,3}\t([^\t\n]+))\t([^\t\n]+)")
_CLEAN = ("nothing to commit, working tree clean", "nothing to commit (working directory clean)")
_SHORT = frozenset({"-s", "--short", "--porcelain", "-sb", "-bs"})
_UPDATES = frozenset({"-u", "--update"})
_CHANGES_STATUS = frozenset(
    {"checkout", "switch", "stash", "merge", "pull", "rebase", "clean", "reset"}
)
"""Git subcommands after which a status may list other files."""

# the number of commits after a status that do not change the state of other files in it
LISTED_COMMITS = 2
_ALL = _UPDATES | {"-A", "--all"}
_EXPANDED = compile_lazily(r"[$*?`\[]")
"""Characters of shell expansions, whose result is not visible in the command."""

# git's refusal to add a file, after which it does not add the other files either
_NOTHING_ADDED = "fatal: pathspec"
_TAKES_ALL = compile_lazily(r"--all\Z|-(?!-)[a-zA-Z]*a[a-zA-Z]*\Z")
_VALUED = frozenset({"-m", "--message", "-F", "--file", "-C", "-c", "--author", "--date", "-t"})
_QUIET = frozenset({"add", "rm", "mv", "commit", "status"})
"""Git subcommands whose output never looks like a row of a status."""


class CommitSeen(NamedTuple):
    """A commit of the session: its branch, and its short ``name``, or ``""`` if git did not print the name."""

    name: str
    branch: str


class FileState(NamedTuple):
    """The state of a file, one of the constants above. ``commit`` is the commit that includes the file."""

    words: str
    commit: CommitSeen | None = None

    def note(self, branch: str) -> str:
        """Return the state as a note for a reader whose branch is ``branch``."""
        if self.commit is None:
            return self.words
        named = f"committed in {self.commit.name}" if self.commit.name else "committed"
        if self.commit.branch and self.commit.branch != branch:
            return f"{named} on {self.commit.branch}"
        return named


class Edit(NamedTuple):
    """A change of a file: its path as in an entry, and its order among all records.

    ``is_new`` means that there was no file of this name before, ``is_removal`` that it was deleted.
    """

    path: str
    order: int
    is_new: bool = False
    is_removal: bool = False


class GitCall(NamedTuple):
    """A git command in a run: its arguments from the subcommand on, and its folder."""

    words: tuple[str, ...]
    folder: str
    run: ShellRun
    is_alone: bool
    """Whether no other command in the run prints anything."""
    is_last: bool
    """Whether no later command in the run prints anything."""


class _Status(NamedTuple):
    """The files in a ``git status``. ``is_whole`` means that unlisted files have no changes.

    The ``untracked`` files are a subset of the ``changed`` ones.
    """

    staged: frozenset[str]
    changed: frozenset[str]
    untracked: frozenset[str]
    is_whole: bool


class FileStates:
    """The states of files, and the new paths of moved files.

    ``listed`` are the files that the session changed according to git's listings only.
    """

    def __init__(
        self,
        home: str,
        listed: Collection[str] = (),
        standing: FinalCommits = NO_COMMITS,
    ) -> None:
        self.states: dict[str, FileState] = {}
        self.moved_to: dict[str, str] = {}
        self.removed: set[str] = set()
        """The paths that git reported as deleted and that were not written afterwards."""
        self.head = standing.head
        self.only_listed = frozenset(listed)
        self.listed: frozenset[str] = frozenset()
        """The paths in the last complete ``git status``, including files that this session did not
        change."""
        self.listed_at: RecordPlace | None = None
        """It is None after a command that may have made that status outdated."""
        self.uses_git = False
        self._home = home
        self._standing = standing
        self._branches = standing.branches
        self._checkouts: dict[str, str] = {}
        self._untouched = set(listed)
        self._staged: set[str] = set()
        self.untracked: set[str] = set()
        """The files that are not in any commit: a tool created them, or a status lists them as
        new."""
        self._made: dict[str, list[CommitSeen]] = {}
        """The existing commits by checkout, in order, the latest last."""
        self._commit_of: dict[str, int] = {}
        self._commits = 0
        self._listed_after = 0
        """The number of commits until which the last status is valid."""
        self._adds_unknown = False
        """Whether files were added since the last commit by a command that did not name them."""
        self._unknown_at: dict[str, int] = {}
        """The number of the last commit with files that no command named, by checkout."""

    def take_edit(self, edit: Edit) -> None:
        """Process a change of a file."""
        path = edit.path
        if edit.is_removal:
            self.removed.add(path)
            return
        self.states.pop(path, None)  # the latest change must be the last one
        self.states[path] = FileState(NOT_COMMITTED)
        self.removed.discard(path)
        if edit.is_new:
            self.untracked.add(path)
        self._staged.discard(path)
        self._commit_of[path] = self._commits

    def take_call(self, call: GitCall) -> None:
        """Process a git command."""
        self.uses_git = True
        verb, rest = call.words[0], call.words[1:]
        if verb in _CHANGES_STATUS or (verb == "commit" and self._commits > self._listed_after):
            self.listed_at = None
        if verb == "add":
            self._take_add(call, rest)
        elif verb == "commit" and not call.run.failed:
            self._take_commit(call, rest)
        elif verb == "status":
            self._take_status(call, rest)
        elif verb == "stash" and not call.run.failed:
            self._take_stash(call, rest)
        elif verb == "diff" and not call.run.failed:
            self._take_staged_names(call, rest)
        elif verb in {"checkout", "restore", "reset"} and not call.run.failed:
            self._take_back(call, verb, rest)
        if verb in {"commit", "status"} and not call.run.failed:
            self._take_removals(call)

    def _take_removals(self, call: GitCall) -> None:
        """Process the files that a commit or a status lists as deleted."""
        root = self.checkout_of(call.folder)
        if not root:
            return
        for path in _REMOVED_BY_COMMIT.findall(call.run.output):
            self.removed.add(self.shown_path(path.strip('"'), root))
        for path in _REMOVED_IN_STATUS.findall(call.run.output):
            self.removed.add(self.shown_path(path.strip().strip('"'), call.folder))

    def open_files(self) -> list[str]:
        """Return the files of a known checkout with uncommitted changes, the latest last.

        Files that git reported as deleted, and folders that contain other files, are left out.
        """
        found: list[str] = []
        folders = {posixpath.dirname(path) for path in self.states}
        for path, state in self.states.items():
            if state.words not in OPEN_STATES or path in self.removed:
                continue
            is_folder = any(f"{folder}/".startswith(f"{path}/") for folder in folders)
            if not is_folder and self.checkout_of(path):
                found.append(path)
        return found

    def was_taken_back(self, path: str) -> bool:
        """Check whether a command reverted the last change of a file."""
        state = self.states.get(path)
        return state is not None and state.words == TAKEN_BACK

    def note_on(self, path: str, branch: str) -> str:
        """Return the state of a file as a note for a reader on ``branch``, or ``""`` if it is unknown."""
        state = self.states.get(path)
        if state is None or not self.uses_git or not self.checkout_of(path):
            return ""
        commit = state.commit
        if commit is not None and commit.name in self._standing.rewritten_hashes:
            return state._replace(commit=commit._replace(name="")).note(branch)
        if commit is not None and commit.name in self._branches:
            moved = commit._replace(branch=self._branches[commit.name])
            return state._replace(commit=moved).note(branch)
        return state.note(branch)

    def shown_path(self, path: str, folder: str) -> str:
        """Convert a path that git printed in ``folder`` to the path of an entry."""
        whole = posixpath.normpath(posixpath.join(self._home, folder, path))
        if self._home and whole.startswith(f"{self._home}/"):
            return whole[len(self._home) + 1 :]
        return whole

    def checkout_of(self, path: str) -> str:
        """Return the checkout that contains a path or folder, or ``""`` if it is unknown."""
        known = self._checkouts.get(path)
        if known is None:
            known = self._checkouts[path] = self._find_checkout(path)
        return known

    def _find_checkout(self, path: str) -> str:
        whole = posixpath.normpath(posixpath.join(self._home, path))
        worktree = _WORKTREE.match(f"{whole}/")
        if worktree is not None:
            return worktree[0]
        if self._home and f"{whole}/".startswith(f"{self._home}/"):
            return self._home
        return ""

    def _paths_in(self, folder: str) -> list[str]:
        """Return the known files in the checkout that contains a folder."""
        checkout = self.checkout_of(folder)
        if not checkout:
            return []
        return [path for path in self.states if self.checkout_of(path) == checkout]

    def _files_named(self, words: Iterable[str], folder: str) -> list[str]:
        """Return the known files that a git command names, either directly or by a folder."""
        found: list[str] = []
        for word in words:
            named = self.shown_path(word, folder)
            inside = f"{named}/"
            names_all = named in {".", self._home}
            for path in self.states:
                is_inside = names_all or path.startswith(inside)
                if path == named or (is_inside and not path.startswith("/")):
                    found.append(path)
        return found

    def _take_add(self, call: GitCall, rest: Sequence[str]) -> None:
        if call.run.failed and _NOTHING_ADDED in call.run.output:
            return
        named = select_operands(rest)
        takes_all = ":/" in named or (bool(_ALL.intersection(rest)) and not named)
        if any(_EXPANDED.search(word) for word in named) or not (named or takes_all):
            self._adds_unknown = True
        self._begin_untouched(self.shown_path(word, call.folder) for word in named)
        added = set(self._files_named(named, call.folder))
        if takes_all:
            added.update(self._paths_in(call.folder))
        if _UPDATES.intersection(rest):
            added -= self.untracked
        self._staged |= added
        for path in added if not call.run.failed else ():
            if self.states[path].words == NOT_COMMITTED:
                self.states[path] = FileState(STAGED)
        if takes_all:
            self.listed_at = None

    def _take_commit(self, call: GitCall, rest: Sequence[str]) -> None:
        printed = _COMMITTED.findall(call.run.output)
        if not printed and not {"-q", "--quiet"}.intersection(rest) and call.is_alone:
            return  # the output of a dry run, or of a commit with nothing to commit
        logged = _LOGGED.search(call.run.output) if "git log" in call.run.command else None
        if printed:
            branch, name = printed[-1]
            commit = CommitSeen(name, branch)
        elif logged is not None:
            commit = CommitSeen(logged[1], "")
        else:
            commit = CommitSeen("", "")
        checkout = self.checkout_of(call.folder)
        made = self._made.setdefault(checkout, [])
        if "--amend" in rest and made:
            self._restate_commits(made[-1:], FileState("committed", commit))
            made.pop()
        made.append(commit)
        taken = {path for path in self._staged if self.checkout_of(path) == checkout}
        if any(_TAKES_ALL.match(word) for word in _options(rest)):
            taken.update(set(self._paths_in(call.folder)) - self.untracked)
        taken.update(self._files_named(_commit_operands(rest), call.folder))
        created = self._files_created(call, checkout)
        self._begin_untouched(created)
        taken.update(created.intersection(self.states))
        for path in taken:
            if self.states[path].words in OPEN_STATES:
                self.states[path] = FileState("committed", commit)
        self._staged -= taken
        self.untracked -= taken
        self._commits += 1
        if self._adds_unknown:
            self._unknown_at[checkout] = self._commits
            self._adds_unknown = False

    def _restate_commits(self, commits: Collection[CommitSeen], state: FileState) -> list[str]:
        """Change the state of the files in some commits. Return their paths."""
        paths = [path for path, known in self.states.items() if known.commit in commits]
        for path in paths:
            self.states[path] = state
        return paths

    def _files_created(self, call: GitCall, checkout: str) -> set[str]:
        """Return the files that git lists as created by a commit, or none if the root of the checkout is unknown."""
        if not checkout:
            return set()
        return {self.shown_path(path, checkout) for path in _CREATED.findall(call.run.output)}

    def _take_status(self, call: GitCall, rest: Sequence[str]) -> None:
        status = self._parse_status(call, rest)
        if status is None:
            return
        self._begin_untouched(status.staged | status.changed)
        for path in self._paths_in(call.folder):
            is_open = self.states[path].words in OPEN_STATES
            if _is_listed(path, status.untracked):
                self.untracked.add(path)
            if _is_listed(path, status.staged):
                self.states[path] = FileState(STAGED)
                self._staged.add(path)
            elif _is_listed(path, status.changed):
                self.states[path] = FileState(NOT_COMMITTED)
            elif status.is_whole and is_open:
                self.states[path] = self._state_of_unlisted(path)
        if status.is_whole:
            self.listed = status.staged | status.changed
            self.listed_at = call.run.answered
            self._listed_after = self._commits + LISTED_COMMITS

    def _take_staged_names(self, call: GitCall, rest: Sequence[str]) -> None:
        """Process the names and moves of staged files from a ``git diff``."""
        if "--name-status" not in rest or not {"--cached", "--staged"}.intersection(rest):
            return
        root = self.checkout_of(call.folder)
        for before, path in _STAGED_NAME.findall(call.run.output):
            shown = self.shown_path(path, root)
            if before:
                self._take_listed_move(self.shown_path(before, root), shown)
            if shown in self.states:
                self._staged.add(shown)
                self.states[shown] = FileState(STAGED)

    def _begin_untouched(self, listed: Iterable[str]) -> None:
        """Mark files that only listings show as changed from the time of their first listing."""
        for path in sorted(self._untouched.intersection(listed)):
            self._untouched.discard(path)
            self.take_edit(Edit(path, 0))

    def _state_of_unlisted(self, path: str) -> FileState:
        """Return the state of a changed file that ``git status`` does not list: committed, or without changes."""
        checkout = self.checkout_of(path)
        since = self._commit_of.get(path, 0)
        made = self._made.get(checkout)
        if not made or self._commits <= since:
            return FileState(UNCHANGED)
        if path not in self._staged and self._unknown_at.get(checkout, 0) <= since:
            # the commits since then are known, and none of them includes the file
            return FileState(UNCHANGED)
        if self._commits == since + 1:
            return FileState("committed", made[-1])
        return FileState("committed", CommitSeen("", made[-1].branch))

    def _parse_status(self, call: GitCall, rest: Sequence[str]) -> _Status | None:
        """Parse the output of a status. Return None if it cannot be separated from other output."""
        output = call.run.output
        is_whole = (
            call.is_alone
            and MIDDLE_LEFT_OUT not in output
            and "|" not in call.run.command
            and not select_operands(rest)
        )
        if any(words in output for words in _CLEAN):
            is_whole = is_whole and not _STATUS_PART.search(output)
            return _Status(frozenset(), frozenset(), frozenset(), is_whole)
        if _SHORT.intersection(rest):
            if not call.is_last:
                return None
            rows = _SHORT_ROW.findall(output) if call.is_alone else _rows_at_end(output)
            staged = [path for index, _, path in rows if index not in " ?"]
            changed = [path for index, work, path in rows if work != " " or index == "?"]
            untracked = [path for index, _, path in rows if index == "?"]
        else:
            if _STATUS_PART.search(output) is None:
                return None
            staged, changed, untracked = _paths_in_long_status(output)
        for row in (*staged, *changed):
            self._note_move(row, call.folder)
        return _Status(
            self._shown_paths(staged, call.folder),
            self._shown_paths(changed, call.folder),
            self._shown_paths(untracked, call.folder),
            is_whole,
        )

    def _shown_paths(self, rows: Iterable[str], folder: str) -> frozenset[str]:
        names = [row.rpartition(" -> ")[2].strip().strip('"') for row in rows]
        return frozenset(self.shown_path(name, folder) for name in names)

    def _note_move(self, row: str, folder: str) -> None:
        before, arrow, after = row.partition(" -> ")
        if arrow:
            self._take_listed_move(self.shown_path(before, folder), self.shown_path(after, folder))

    def _take_listed_move(self, before: str, after: str) -> None:
        """Process a move of a file that git listed."""
        self.moved_to[before] = after
        if before in self.states:
            self._move_state(before, after, by_git=True)

    def take_move(self, words: Sequence[str], folder: str, *, by_git: bool) -> None:
        """Process an ``mv`` of one path to another. If ``by_git``, the next commit includes the move."""
        operands = select_operands(words)
        if len(operands) != 2:
            return
        before = self.shown_path(operands[0], folder)
        after = self.shown_path(operands[1], folder)
        is_folder = operands[1].endswith("/") or any(
            path.startswith(f"{after}/") for path in self.states
        )
        if is_folder and posixpath.basename(before) != posixpath.basename(after):
            after = posixpath.join(after, posixpath.basename(before))
        self.moved_to.pop(after, None)
        self.moved_to[before] = "" if "$" in after else after
        for path in [path for path in self.states if f"{path}/".startswith(f"{before}/")]:
            self._move_state(path, f"{after}{path[len(before) :]}", by_git=by_git)

    def _move_state(self, before: str, after: str, *, by_git: bool) -> None:
        """Move the state of a file to its new path. A path that contains a variable is unknown."""
        state = self.states[before]
        if before in self.only_listed or state.words == STASHED:
            return
        self._staged.discard(before)
        self.removed.add(before)
        if "$" in after:  # a later listing by git may contain the new path
            return
        del self.states[before]
        self.moved_to[before] = after
        self.only_listed -= {after}
        self._untouched.discard(after)
        self._commit_of[after] = self._commits
        is_open = state.words == NOT_COMMITTED
        if by_git and not is_open:
            self._staged.add(after)
            self.states[after] = FileState(STAGED)
        else:
            self.states[after] = FileState(NOT_COMMITTED)

    def _take_stash(self, call: GitCall, rest: Sequence[str]) -> None:
        part = next(iter(select_operands(rest)), "push")
        before, after = NOT_COMMITTED, STASHED
        if part in {"pop", "apply"}:
            before, after = STASHED, NOT_COMMITTED
        elif part not in {"push", "save"}:
            return
        for path in self._paths_in(call.folder):
            state = self.states[path].words
            if state == before or (state == STAGED and after == STASHED):
                self.states[path] = FileState(after)

    def _take_back(self, call: GitCall, verb: str, rest: Sequence[str]) -> None:
        """Process a command that reverts files to a commit."""
        is_hard = verb == "reset" and "--hard" in rest
        is_index_only = verb == "reset" or ("--staged" in rest and "--worktree" not in rest)
        if verb == "reset":
            self._take_back_commits(call, rest)
        if is_hard:
            named = self._paths_in(call.folder)
        elif is_index_only:
            if "--soft" not in rest:
                self._unstage(call, rest)
            return
        elif verb == "checkout" and "--" in rest:
            named = self._files_named(rest[rest.index("--") + 1 :], call.folder)
        elif verb == "restore" or rest == (".",):
            named = self._files_named(select_operands(rest), call.folder)
        else:
            return
        for path in named:
            if self.states[path].words in OPEN_STATES:
                self.states[path] = FileState(TAKEN_BACK)

    def _take_back_commits(self, call: GitCall, rest: Sequence[str]) -> None:
        """Process a reset that removes the last commits.

        The changes of these commits are kept, unless the reset is a hard one.
        """
        operands = select_operands(rest)
        made = self._made.get(self.checkout_of(call.folder), [])
        count = count_commits_back(operands[0]) if len(operands) == 1 else 0
        gone = made[-count:] if count else []
        del made[len(made) - len(gone) :]
        if "--hard" in rest:
            self._restate_commits(gone, FileState(TAKEN_BACK))
        elif "--soft" in rest:
            self._staged.update(self._restate_commits(gone, FileState(STAGED)))
        else:
            self._restate_commits(gone, FileState(NOT_COMMITTED))

    def _unstage(self, call: GitCall, rest: Sequence[str]) -> None:
        """Process a command that unstages files, or all files if the command names no files."""
        paths = self._files_named(select_operands(rest), call.folder)
        for path in paths or self._paths_in(call.folder):
            self._staged.discard(path)
            if self.states[path].words == STAGED:
                self.states[path] = FileState(NOT_COMMITTED)


def file_states(
    edits: Sequence[Edit],
    listed: Collection[str],
    runs: Sequence[tuple[ShellRun, tuple[SimpleCommand, ...]]],
    home: str,
    standing: FinalCommits,
) -> FileStates:
    """Return the states of edited files, and of files that only git's listings show as changed (``listed``).

    ``runs`` are the session's commands with their parts, oldest first. ``standing`` has the commits
    that are on another branch or have a new hash at the end.
    """
    states = FileStates(home, listed, standing)
    waiting = sorted(edits, key=lambda edit: edit.order)
    at = 0
    for run, parts in runs:
        if not _may_matter(run.command):
            continue
        while at < len(waiting) and waiting[at].order <= run.place.order:
            states.take_edit(waiting[at])
            at += 1
        last = parts[-1].words if parts else ()
        for words, folder in _steps(run, parts):
            if words[0] == "mv":
                if not run.failed:
                    states.take_move(words[1:], folder, by_git=False)
                continue
            calls = [*git_words(words)]
            if calls[:1] == ["mv"] and not run.failed:
                states.take_move(calls[1:], folder, by_git=True)
            elif calls:
                is_alone = _is_alone(parts)
                is_last = is_alone or words == last
                states.take_call(GitCall(tuple(calls), folder, run, is_alone, is_last))
    for edit in waiting[at:]:
        states.take_edit(edit)
    return states


def _is_alone(parts: Sequence[SimpleCommand]) -> bool:
    """Check whether a run only changes the folder and changes or queries git's state."""
    for words, _ in parts:
        is_git = words[:1] == ("git",) and next(git_words(words), "") in _QUIET
        if words and words[0] != "cd" and not is_git:
            return False
    return True


def _may_matter(command: str) -> bool:
    return "git" in command or "mv " in command


def _steps(run: ShellRun, parts: Sequence[SimpleCommand]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the git commands and moves in a run, each with its folder."""
    folder = run.folder
    for words, _ in parts:
        if words[:1] == ("cd",):
            folder = posixpath.normpath(posixpath.join(folder, words[-1]))
        elif words[:1] == ("mv",):
            yield words, folder
        elif words and words[0].rpartition("/")[2] == "git":
            yield words, _git_folder(words, folder)


def _git_folder(words: Sequence[str], folder: str) -> str:
    """Return the folder of a git command: the value of ``-C``, or else ``folder``."""
    for option, value in pairwise(words[1:]):
        if not option.startswith("-"):
            break
        if option == "-C":
            return posixpath.normpath(posixpath.join(folder, value))
    return folder


def _options(rest: Sequence[str]) -> Iterator[str]:
    """Yield the options of a commit, without the options' values."""
    is_value = False
    for word in rest:
        if word == "--":
            return
        if word.startswith("-") and not is_value:
            yield word
        is_value = word in _VALUED or (word.startswith("-") and word.endswith("m"))


def _commit_operands(rest: Sequence[str]) -> list[str]:
    """Return the files that a commit names."""
    operands: list[str] = []
    is_value = False
    for word in rest:
        if not word.startswith("-") and not is_value:
            operands.append(word)
        is_value = word in _VALUED or (word.startswith("-") and word.endswith("m"))
    return operands


def _paths_in_long_status(output: str) -> tuple[list[str], list[str], list[str]]:
    """Return the paths in a long status: staged paths, all others, and the untracked ones of these others."""
    staged: list[str] = []
    changed: list[str] = []
    untracked: list[str] = []
    is_untracked = False
    rows: list[str] | None = None
    for line in output.split("\n"):
        part = _STATUS_PART.match(line)
        if part is not None:
            rows = staged if part[1] == "Changes to be committed" else changed
            is_untracked = part[1] == "Untracked files"
            continue
        row = _STATUS_ROW.fullmatch(line)
        if row is None:
            if line.strip() and not line.startswith("  ("):
                rows = None
        elif rows is not None:
            rows.append(row[1].strip())
            if is_untracked:
                untracked.append(row[1].strip())
    return staged, changed, untracked


def _rows_at_end(output: str) -> list[tuple[str, str, str]]:
    """Return the short status rows at the end of an output: index, work tree and path."""
    rows: list[tuple[str, str, str]] = []
    for line in reversed(output.rstrip("\n").split("\n")):
        row = _SHORT_ROW.fullmatch(line)
        if row is None:
            break
        rows.append((row[1], row[2], row[3]))
    return rows[::-1]


def _is_listed(path: str, listed: frozenset[str]) -> bool:
    """Check whether a status lists a file, or lists a new folder that contains the file."""
    if path in listed:
        return True
    return any(path.startswith(f"{folder.rstrip('/')}/") for folder in listed)
