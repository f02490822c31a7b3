"""Find merges that stopped with conflicts and have not ended.

A merge may be a ``git merge``, ``pull``, ``rebase``, ``cherry-pick``, ``revert`` or ``am``.
Invariant: a merge is only treated as stopped if git's own output says so. It is treated as ended
after a commit, after an option that continues or ends it, or after output that git does not print
during such a merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from resume_hooks.reading.digest.facts import RecordPosition, ShellRun
from resume_hooks.redaction.lazy_patterns import compile_lazily

_MERGING_COMMANDS = frozenset({"merge", "pull", "rebase", "cherry-pick", "revert", "am"})
"""Git subcommands that may stop with conflicts and that git refuses while a merge is stopped."""

_CONFLICT_ROW_PATTERN = compile_lazily(
    r"(?:\A|\n)CONFLICT \([^)\n]{1,40}\): (?:Merge conflict in ([^\n]+)|(\S+) (?:deleted|renamed|added)\b)"
)
_CONFLICT_MESSAGES = (
    "Automatic merge failed; fix conflicts",
    "Resolve all conflicts manually",
    "after resolving the conflicts",
)
_FAILURE_ROW_PATTERN = compile_lazily(
    r"(?:\A|\n)(?:fatal|error): |needs merge|edit all merge conflicts"
)
_ENDING_OPTIONS = frozenset({"--continue", "--skip", "--quit"})
_ABORTING_OPTIONS = frozenset({"--abort", "--hard", "--merge"})
_STATUS_HEAD_PATTERN = compile_lazily(r"(?:\A|\n)(?:On branch |HEAD detached )")
_UNFINISHED_STATUS_PATTERN = compile_lazily(
    r"unmerged paths|still merging|(?:rebase|am session|revert|cherry-pick) in progress|"
    r"currently (?:rebasing|cherry-picking|reverting)|middle of an am session",
)
_REBASED_COMMIT_LINE_START = "[detached HEAD "
_REBASE_END_MESSAGE = "Successfully rebased"


class StoppedMerge(NamedTuple):
    """A merge that stopped with conflicts.

    ``git_command`` is the command that stopped. ``conflicting_paths`` are relative to the root of
    the checkout. ``position`` is the position of the output that reports the conflicts.
    """

    git_command: str
    conflicting_paths: tuple[str, ...]
    position: RecordPosition


def aborts_merge(words: Sequence[str]) -> bool:
    """Check whether a git command aborts a stopped merge."""
    return words[0] in {*_MERGING_COMMANDS, "reset"} and not _ABORTING_OPTIONS.isdisjoint(words)


def update_stopped_merge(
    stopped: StoppedMerge | None, words: Sequence[str], run: ShellRun
) -> StoppedMerge | None:
    """Return the stopped merge in a checkout after a git command, or None if there is none.

    ``stopped`` is the stopped merge before the command. ``words`` are the command's words, starting
    with the subcommand.
    """
    if aborts_merge(words):
        return None
    is_merging = words[0] in _MERGING_COMMANDS
    if is_merging and _has_stopped_with_conflicts(words, run):
        return _make_stopped_merge(stopped, words, run)
    if stopped is None:
        return None
    has_failed = run.has_failed or _FAILURE_ROW_PATTERN.search(run.output) is not None
    if is_merging:
        is_ended = not has_failed
    elif words[0] == "commit":
        is_ended = not has_failed and _REBASED_COMMIT_LINE_START not in run.output
    else:
        is_ended = words[0] == "status" and _shows_no_merge(run.output)
    if is_ended:
        return None
    if "--diff-filter=U" in words and not (stopped.conflicting_paths or has_failed):
        return stopped._replace(conflicting_paths=tuple(filter(None, run.output.split("\n"))))
    return stopped


def _has_stopped_with_conflicts(words: Sequence[str], run: ShellRun) -> bool:
    """Check whether the output of a command says that the command stopped because of conflicts."""
    if _continues_merge(words) and _REBASE_END_MESSAGE in run.output:
        return False
    return _CONFLICT_ROW_PATTERN.search(run.output) is not None or any(
        message in run.output for message in _CONFLICT_MESSAGES
    )


def _continues_merge(words: Sequence[str]) -> bool:
    """Check whether a git command has an option that continues a stopped merge or ends it."""
    return not _ENDING_OPTIONS.isdisjoint(words)


def _make_stopped_merge(
    former_stop: StoppedMerge | None, words: Sequence[str], run: ShellRun
) -> StoppedMerge:
    """Return the merge that stopped at a command.

    If the command continued a merge that had stopped before, the result contains the command that
    started the merge.
    """
    paths = []
    for merged_path, other_path in _CONFLICT_ROW_PATTERN.findall(run.output):
        paths.append(merged_path.strip() or other_path)
    if former_stop is not None and _continues_merge(words):
        command = former_stop.git_command
    else:
        command = " ".join(["git", *(word for word in words if not word.startswith("-"))])
    return StoppedMerge(command, tuple(dict.fromkeys(paths)), run.result_position)


def _shows_no_merge(output: str) -> bool:
    """Check whether the output of a long ``git status`` shows that there is no unfinished merge."""
    return (
        _STATUS_HEAD_PATTERN.search(output) is not None
        and _UNFINISHED_STATUS_PATTERN.search(output) is None
    )
