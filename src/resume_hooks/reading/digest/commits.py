"""Find the commits that a session made and that still exist at its end, from git's own output.

Commits that were amended, reset or squashed into another commit are left out. A rebase gives
commits new hashes. The old hashes are dropped, and the new ones are read from a log that the
session printed later.

Invariant: no command is run. If a commit was rewritten outside the session, it is still listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from resume_hooks.reading.digest import shell
from resume_hooks.reading.digest.facts import RecordPosition, ShellRun
from resume_hooks.reading.digest.git_seen import ParsedRun, read_branch
from resume_hooks.redaction.lazy_patterns import compile_lazily

# Git prints this instead of the branch if a commit is made during a rebase.
DETACHED_HEAD = "detached HEAD"
_COMMIT_OUTPUT_PATTERN = compile_lazily(
    r"\n\[([^\]\n]{1,80}?)(?: \(root-commit\))? ([0-9a-f]{7,40})\] (.+)"
)
_REBASE_OUTPUT_PATTERN = compile_lazily(
    r"Successfully rebased and updated (?:refs/heads/)?([^\s']{1,200}?)\.?(?=\s|\Z)"
)
_RELATIVE_REVISION_PATTERN = compile_lazily(r"(?:HEAD|@)(?:(\^+)|~(\d{0,3}))")
_NEW_BRANCH_OPTIONS = {
    "checkout": (["-b"], ["-B"]),
    "switch": (["-c"], ["-C"]),
    "branch": ([], ["-f"]),
}
"""The options that make git create a branch, by git's subcommand."""

_HASH_PATTERN = compile_lazily(r"[0-9a-f]{7,40}")
_LOG_ROW_PATTERN = compile_lazily(r"^[*|\\/ ]*([0-9a-f]{7,40}) (?:\([^)\n]*\) )?(.+)$")
_SQUASH_MESSAGE_PREFIXES = ("fixup! ", "squash! ", "amend! ")
"""If a commit's subject starts with one of these prefixes, a rebase merges the commit into an
earlier one."""

_COMMIT_MESSAGE_PATTERN = compile_lazily(
    r"\bgit\b[^\n;&|]*\scommit\b[^;&|]*?(?:<<-?\s*['\"]?\w+['\"]?[^\n]*\n([^\n]+)|-a?m\s+\"(?!\$\()([^\"\n]+)|-a?m\s+'([^'\n]+))"
)
_COMMIT_THEN_LOG_PATTERN = compile_lazily(
    r"\bgit\b[^\n;&|]*\scommit\b[\s\S]{0,4000}\bgit\b[^\n;&|]*\slog\b[^\n;&|]*\s--oneline[^\n;&|]*\s-(?:n ?)?\d\b"
)
_SHORTENED_COMMIT_ROW_PATTERN = compile_lazily(r"(?:\A|\n)ok ([0-9a-f]{7,40})\s*(?:\n|\Z)")
"""The line for a commit in the output of a program that shortens what git prints."""

_LOG_OUTPUT_PATTERN = compile_lazily(r"(?:\A|\n)([0-9a-f]{7,40}) ([^\n]{3,})")


@dataclass
class Commit:
    """A commit.

    ``hash`` and ``branch`` are ``""`` if git did not print them. ``is_pushed`` means that the
    commit was followed by a push. ``is_rebased`` means that a rebase replaced the hash and no later
    log shows the new hash. ``other_branch`` is a branch that was created at this commit or at a
    later one, or ``""``.
    """

    hash: str
    subject: str
    branch: str
    position: RecordPosition
    is_pushed: bool = False
    is_rebased: bool = False
    other_branch: str = ""


class FinalCommits(NamedTuple):
    """The commits that exist at the end, oldest first, and the hashes of commits that were rewritten."""

    commits: list[Commit]
    rewritten_hashes: frozenset[str]

    @property
    def head_hash(self) -> str:
        """The hash of the latest commit, or ``""`` if git did not print it."""
        if self.commits:
            return self.commits[-1].hash
        return ""

    @property
    def branches_by_hash(self) -> Mapping[str, str]:
        """The branch of each commit, by its hash."""
        return {commit.hash: commit.branch for commit in self.commits}


NO_FINAL_COMMITS = FinalCommits([], frozenset())


def find_final_commits(commands: Iterable[ParsedRun]) -> FinalCommits:
    """Return the commits that exist after these commands, oldest first."""
    history = _CommitHistory()
    for run, parts in commands:
        if "git" in run.command:
            history.process_run(run, parts)
    return FinalCommits(history.commits, frozenset(history.rewritten_hashes))


def parse_commit_count_before_head(revision: str) -> int:
    """Return the number of commits from a revision such as ``HEAD~2`` to ``HEAD`` (here 2).

    For a revision of a different form, return 0.
    """
    match = _RELATIVE_REVISION_PATTERN.fullmatch(revision)
    if match is None:
        return 0
    if match[1]:
        return len(match[1])
    return int(match[2] or 1)


class _CommitHistory:
    """The commits that exist after the commands that have been processed so far, oldest first."""

    def __init__(self) -> None:
        self.commits: list[Commit] = []
        self.rewritten_hashes: set[str] = set()
        self._branch = ""

    def process_run(self, run: ShellRun, simple_commands: Sequence[shell.SimpleCommand]) -> None:
        """Process a command that ran. ``simple_commands`` are the commands of which it consists."""
        new_commits = _parse_commits(run)
        for part in simple_commands:
            if part.words[:1] == ("git",):
                self._process_git_command(
                    [*shell.iterate_git_arguments(part.words)], run, new_commits
                )
        self.commits += new_commits
        if rebase_match := _REBASE_OUTPUT_PATTERN.search(run.output):
            self._rebase_branch(rebase_match[1], is_pull="pull" in run.command)
        self._branch = read_branch(run) or self._branch
        if "log" in run.command:
            self._process_new_commit_hashes(run)

    def _process_git_command(
        self, git_arguments: Sequence[str], run: ShellRun, new_commits: list[Commit]
    ) -> None:
        """Process a git command. A ``commit`` command is taken to have made the first of ``new_commits``."""
        verb, arguments = (git_arguments[0], git_arguments[1:]) if git_arguments else ("", [])
        if verb == "commit":
            commit = new_commits.pop(0) if new_commits else None
            if "--amend" in arguments and (commit is not None or not run.has_failed):
                self._amend_commit(commit)
            elif commit is not None:
                self.commits.append(commit)
        elif run.has_failed:
            return
        elif verb == "reset":
            self._reset_branch(shell.select_operands(arguments))
        elif verb == "push":
            for commit in self._list_commits_on_branch(self._branch):
                commit.is_pushed = True
        elif verb == "rebase" and "--abort" in arguments:
            self._drop_commits(self._list_commits_on_branch(DETACHED_HEAD))
        elif verb in {"checkout", "switch", "branch"}:
            self._create_branch(verb, arguments)

    def _create_branch(self, verb: str, arguments: Sequence[str]) -> None:
        """Process a git command that creates a branch at the last commit.

        If the command names a commit at which the new branch starts, the command is ignored.
        """
        operands = shell.select_operands(arguments)
        options = [word for word in arguments if word.startswith("-")]
        if len(operands) != 1 or options not in _NEW_BRANCH_OPTIONS[verb]:
            return
        for commit in self._list_commits_on_branch(self._branch):
            commit.other_branch = operands[0]
        if verb != "branch":
            self._branch = operands[0]

    def _list_commits_on_branch(self, branch: str) -> list[Commit]:
        """Return the commits on a branch, and the commits whose branch is unknown."""
        return [commit for commit in self.commits if commit.branch in {branch, ""}]

    def _list_commits_on_current_branch(self) -> list[Commit]:
        """Return the commits on the current branch.

        The current branch is the one that git printed last. If git printed none, it is the branch
        of the last commit.
        """
        if self._branch or not self.commits:
            return self._list_commits_on_branch(self._branch)
        return self._list_commits_on_branch(self.commits[-1].branch)

    def _drop_commits(self, dropped_commits: Sequence[Commit]) -> None:
        self.commits = [commit for commit in self.commits if commit not in dropped_commits]

    def _amend_commit(self, commit: Commit | None) -> None:
        """Replace the last commit. ``commit`` is None if git did not print the new commit."""
        if commit is not None and commit.branch:
            candidates = self._list_commits_on_branch(commit.branch)
        else:
            candidates = self._list_commits_on_current_branch()
        former_commits = candidates[-1:]
        if commit is not None:
            # After a rebase, the order of the commits is unknown. So the commit with the same
            # subject is replaced if there is one, because most amended commits keep their subjects.
            same_commits = (
                former for former in reversed(candidates) if former.subject == commit.subject
            )
            former_commits = [*islice(same_commits, 1)] or former_commits
        if commit is None:
            for former_commit in former_commits:
                former_commit.hash = ""
            return
        self._drop_commits(former_commits)
        self.commits.append(commit)

    def _reset_branch(self, operands: Sequence[str]) -> None:
        """Drop the commits that a reset removes from the branch."""
        if len(operands) != 1:
            return  # Such a command resets files, not the branch.
        target = operands[0]
        current = self._list_commits_on_current_branch()
        if count := parse_commit_count_before_head(target):
            self._drop_commits(
                current[len(current) - count :] if count <= len(current) else current
            )
        elif _HASH_PATTERN.fullmatch(target):
            for index, commit in enumerate(current):
                if commit.hash and target.startswith(commit.hash[:7]):
                    self._drop_commits(current[index + 1 :])
        elif "/" in target or target in {"@{u}", "@{upstream}"}:
            unpushed_commits = [commit for commit in current if not commit.is_pushed]
            self._drop_commits([commit for commit in unpushed_commits if not commit.other_branch])
            for commit in unpushed_commits:
                commit.branch = commit.other_branch

    def _rebase_branch(self, branch: str, *, is_pull: bool) -> None:
        """Process a rebase of a branch, which gives its commits new hashes and may squash some of them.

        A ``git pull --rebase`` (``is_pull``) leaves pushed commits unchanged.
        """
        rebase_commits = [commit for commit in self.commits if commit.branch == DETACHED_HEAD]
        former_commits = self._list_commits_on_branch(branch)
        new_commits = {commit.subject: commit for commit in rebase_commits}
        self._drop_commits(rebase_commits)
        for commit in former_commits:
            if is_pull and commit.is_pushed:
                continue
            self.rewritten_hashes.add(commit.hash)
            new_commit = new_commits.pop(commit.subject, None)
            # The new commit takes the old one's position in the list, so the latest commit stays
            # last. A later amend relies on this order.
            if new_commit is not None:
                self.commits[self.commits.index(commit)] = new_commit
            elif commit.subject.startswith(_SQUASH_MESSAGE_PREFIXES):
                self._drop_commits([commit])
            else:
                commit.hash = ""
                commit.is_rebased = True
        self.commits += new_commits.values()
        for commit in rebase_commits:
            commit.branch = branch
        self._branch = branch

    def _process_new_commit_hashes(self, run: ShellRun) -> None:
        """Read the new hashes of rebased commits from a log. The commits are recognized by their subjects."""
        rebased_commits = [commit for commit in self.commits if commit.is_rebased]
        if not rebased_commits:
            return
        hashes: dict[str, str] = {}
        for row in run.output.split("\n"):
            if match := _LOG_ROW_PATTERN.match(row):
                hashes.setdefault(match[2].strip(), match[1])
        for commit in rebased_commits:
            if commit.subject in hashes:
                commit.hash = hashes[commit.subject]
                commit.position = run.result_position
                commit.is_rebased = False


def _parse_commits(run: ShellRun) -> list[Commit]:
    """Return the commits that a command made.

    They are read from git's output or from a log in the output. If the output does not mention a
    commit, the subject is read from the message in the command.
    """
    if "[" in run.output:
        rows = _COMMIT_OUTPUT_PATTERN.findall(f"\n{run.output}")
        if rows:
            return [Commit(row[1], row[2], row[0], run.result_position) for row in rows]
    return [*_find_commits_not_printed_by_git(run)]


def _find_commits_not_printed_by_git(run: ShellRun) -> Iterator[Commit]:
    """Yield the commit that a command made if git's usual line about the commit is not in the output."""
    if run.has_failed or "commit" not in run.command:
        return
    if _COMMIT_THEN_LOG_PATTERN.search(run.command) and (
        log_match := _LOG_OUTPUT_PATTERN.search(run.output)
    ):
        yield Commit(log_match[1], log_match[2].strip(), "", run.result_position)
    elif subject_match := _COMMIT_MESSAGE_PATTERN.search(run.command):
        subject = (subject_match[1] or subject_match[2] or subject_match[3]).strip()
        if short_output := _SHORTENED_COMMIT_ROW_PATTERN.search(run.output):
            yield Commit(short_output[1], subject, "", run.result_position)
        else:
            yield Commit("", subject, "", run.position)
