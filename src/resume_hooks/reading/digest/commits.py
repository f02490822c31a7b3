"""The commits that a session made and that still exist at the session's end, from git's own output.

Commits that were amended, reset or folded into another commit are left out. A rebase gives commits
new hashes: the old hashes are dropped, and the new ones are read from a log that the session
printed later.

Invariant: no command is run. If a commit was rewritten outside the session, it is still listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from resume_hooks.reading.digest import shell
from resume_hooks.reading.digest.facts import RecordPlace, ShellRun
from resume_hooks.reading.digest.git_seen import ParsedRun, branch_named
from resume_hooks.redaction.lazy_patterns import compile_lazily

DETACHED = "detached HEAD"  # git's name for the branch of a commit during a rebase
_PRINTED = compile_lazily(r"\n\[([^\]\n]{1,80}?)(?: \(root-commit\))? ([0-9a-f]{7,40})\] (.+)")
_REBASED = compile_lazily(
    r"Successfully rebased and updated (?:refs/heads/)?([^\s']{1,200}?)\.?(?=\s|\Z)"
)
_BACK = compile_lazily(r"(?:HEAD|@)(?:(\^+)|~(\d{0,3}))")
_NEW_BRANCH = {
    "checkout": (["-b"], ["-B"]),
    "switch": (["-c"], ["-C"]),
    "branch": ([], ["-f"]),
}
"""The options with which git creates a branch, by git's subcommand."""

_HASH = compile_lazily(r"[0-9a-f]{7,40}")
_LOG_ROW = compile_lazily(r"^[*|\\/ ]*([0-9a-f]{7,40}) (?:\([^)\n]*\) )?(.+)$")
_FOLDED = ("fixup! ", "squash! ", "amend! ")
"""The prefix of a commit's subject if a rebase folds the commit into an earlier one."""

_SUBJECT = compile_lazily(
    r"\bgit\b[^\n;&|]*\scommit\b[^;&|]*?(?:<<-?\s*['\"]?\w+['\"]?[^\n]*\n([^\n]+)|-a?m\s+\"(?!\$\()([^\"\n]+)|-a?m\s+'([^'\n]+))"
)
_COMMITS_AND_LOGS = compile_lazily(
    r"\bgit\b[^\n;&|]*\scommit\b[\s\S]{0,4000}\bgit\b[^\n;&|]*\slog\b[^\n;&|]*\s--oneline[^\n;&|]*\s-(?:n ?)?1\b"
)
_LOGGED = compile_lazily(r"(?:\A|\n)([0-9a-f]{7,40}) ([^\n]{3,})")


@dataclass
class Commit:
    """A commit. ``hash`` and ``branch`` are ``""`` if git did not print them.

    ``is_pushed`` means that a push followed the commit. ``is_rebased`` means that a rebase replaced
    its hash, and that no later log has the new hash. ``also_on`` is a branch that was created at
    the commit or later, or ``""``.
    """

    hash: str
    subject: str
    branch: str
    place: RecordPlace
    is_pushed: bool = False
    is_rebased: bool = False
    also_on: str = ""


class StandingCommits(NamedTuple):
    """The commits that exist at the end, oldest first, and the hashes of the commits that were rewritten."""

    commits: list[Commit]
    former: frozenset[str]

    @property
    def head(self) -> str:
        """The hash of the latest commit, or ``""`` if it was not printed."""
        if self.commits:
            return self.commits[-1].hash
        return ""

    @property
    def branches(self) -> Mapping[str, str]:
        """The branch of each commit, by its hash."""
        return {commit.hash: commit.branch for commit in self.commits}


NO_COMMITS = StandingCommits([], frozenset())


def standing_commits(commands: Iterable[ParsedRun]) -> StandingCommits:
    """Return the commits that exist after these commands, oldest first."""
    history = _History()
    for run, parts in commands:
        if "git" in run.command:
            history.take_run(run, parts)
    return StandingCommits(history.commits, frozenset(history.former))


def commits_back(target: str) -> int:
    """Return how many commits a target like ``HEAD~2`` is before the last commit, or 0 for any other target."""
    back = _BACK.fullmatch(target)
    if back is None:
        return 0
    if back[1]:
        return len(back[1])
    return int(back[2] or 1)


class _History:
    """The commits that exist after the commands so far, oldest first."""

    def __init__(self) -> None:
        self.commits: list[Commit] = []
        self.former: set[str] = set()
        self._branch = ""

    def take_run(self, run: ShellRun, parts: Sequence[shell.SimpleCommand]) -> None:
        """Process a command that ran, with its simple commands."""
        made = _parse_commits(run)
        for part in parts:
            if part.words[:1] == ("git",):
                self._take_call([*shell.git_words(part.words)], run, made)
        self.commits += made
        if rebased := _REBASED.search(run.output):
            self._rebase(rebased[1], is_pull="pull" in run.command)
        self._branch = branch_named(run) or self._branch
        if "log" in run.command:
            self._name_successors(run)

    def _take_call(self, call: Sequence[str], run: ShellRun, made: list[Commit]) -> None:
        """Process a call of git. If it is a commit, the first of the commits in ``made`` belongs to it."""
        verb, rest = (call[0], call[1:]) if call else ("", [])
        if verb == "commit":
            commit = made.pop(0) if made else None
            if "--amend" in rest and (commit is not None or not run.failed):
                self._amend(commit)
            elif commit is not None:
                self.commits.append(commit)
        elif run.failed:
            return
        elif verb == "reset":
            self._reset(shell.select_operands(rest))
        elif verb == "push":
            for commit in self._commits_on(self._branch):
                commit.is_pushed = True
        elif verb == "rebase" and "--abort" in rest:
            self._drop(self._commits_on(DETACHED))
        elif verb in {"checkout", "switch", "branch"}:
            self._begin_branch(verb, rest)

    def _begin_branch(self, verb: str, rest: Sequence[str]) -> None:
        """Process a new branch that starts at the last commit, unless the command names another start."""
        operands = shell.select_operands(rest)
        options = [word for word in rest if word.startswith("-")]
        if len(operands) != 1 or options not in _NEW_BRANCH[verb]:
            return
        for commit in self._commits_on(self._branch):
            commit.also_on = operands[0]
        if verb != "branch":
            self._branch = operands[0]

    def _commits_on(self, branch: str) -> list[Commit]:
        """Return the commits on a branch, and the commits whose branch is unknown."""
        return [commit for commit in self.commits if commit.branch in {branch, ""}]

    def _current(self) -> list[Commit]:
        """Return the commits on the current branch: the branch that git printed last, else that of the last commit."""
        if self._branch or not self.commits:
            return self._commits_on(self._branch)
        return self._commits_on(self.commits[-1].branch)

    def _drop(self, gone: Sequence[Commit]) -> None:
        self.commits = [commit for commit in self.commits if commit not in gone]

    def _amend(self, commit: Commit | None) -> None:
        """Replace the last commit by another commit. None stands for an unknown commit, if git printed nothing."""
        if commit is not None and commit.branch:
            former = self._commits_on(commit.branch)[-1:]
        else:
            former = self._current()[-1:]
        if commit is None:
            for each in former:
                each.hash = ""
            return
        self._drop(former)
        self.commits.append(commit)

    def _reset(self, operands: Sequence[str]) -> None:
        """Drop the commits that a reset of the branch removes."""
        if len(operands) != 1:
            return  # the command resets files
        target = operands[0]
        current = self._current()
        if count := commits_back(target):
            self._drop(current[len(current) - count :] if count <= len(current) else current)
        elif _HASH.fullmatch(target):
            for at, commit in enumerate(current):
                if commit.hash and target.startswith(commit.hash[:7]):
                    self._drop(current[at + 1 :])
        elif "/" in target or target in {"@{u}", "@{upstream}"}:
            left = [commit for commit in current if not commit.is_pushed]
            self._drop([commit for commit in left if not commit.also_on])
            for commit in left:
                commit.branch = commit.also_on

    def _rebase(self, branch: str, *, is_pull: bool) -> None:
        """Process a rebase of a branch: its commits get new hashes, and some are folded into others.

        A pull does not change pushed commits.
        """
        during = [commit for commit in self.commits if commit.branch == DETACHED]
        anew = {commit.subject for commit in during}
        gone: list[Commit] = []
        for commit in self._commits_on(branch):
            if is_pull and commit.is_pushed:
                continue
            if commit.subject in anew or commit.subject.startswith(_FOLDED):
                gone.append(commit)
            self.former.add(commit.hash)
            commit.hash = ""
            commit.is_rebased = True
        self._drop(gone)
        for commit in during:
            commit.branch = branch
        self._branch = branch

    def _name_successors(self, run: ShellRun) -> None:
        """Read the new hashes of rebased commits from a log, by their subjects."""
        missing = [commit for commit in self.commits if commit.is_rebased]
        if not missing:
            return
        hashes: dict[str, str] = {}
        for row in run.output.split("\n"):
            if found := _LOG_ROW.match(row):
                hashes.setdefault(found[2].strip(), found[1])
        for commit in missing:
            if commit.subject in hashes:
                commit.hash = hashes[commit.subject]
                commit.place = run.answered
                commit.is_rebased = False


def _parse_commits(run: ShellRun) -> list[Commit]:
    """Return the commits of a command: from git's output, from a log in it, or from the message of a quiet commit."""
    if "[" in run.output:
        rows = _PRINTED.findall(f"\n{run.output}")
        return [Commit(row[1], row[2], row[0], run.answered) for row in rows]
    return [*_commits_without_output(run)]


def _commits_without_output(run: ShellRun) -> Iterator[Commit]:
    """Yield the commit if git itself printed nothing about the commit."""
    if run.failed or "commit" not in run.command:
        return
    if _COMMITS_AND_LOGS.search(run.command) and (logged := _LOGGED.search(run.output)):
        yield Commit(logged[1], logged[2].strip(), "", run.answered)
    elif subject := _SUBJECT.search(run.command):
        yield Commit("", (subject[1] or subject[2] or subject[3]).strip(), "", run.place)
