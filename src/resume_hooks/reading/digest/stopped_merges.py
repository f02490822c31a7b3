"""Merges that stopped with conflicts: a ``git merge``, pull, rebase, cherry-pick, revert or am that did not end.

Invariant: a merge counts as stopped only by git's own output, and as ended by a commit, by the
options that continue or end it, or by output that git prints only without such a merge.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from resume_hooks.reading.digest.facts import RecordPlace, ShellRun
from resume_hooks.redaction.lazy_patterns import compile_lazily

_MERGING_COMMANDS = frozenset({"merge", "pull", "rebase", "cherry-pick", "revert", "am"})
"""Git subcommands that may stop with conflicts, and that git refuses during such a stop."""

_CONFLICT_ROW = compile_lazily(
    r"(?:\A|\n)CONFLICT \([^)\n]{1,40}\): (?:Merge conflict in ([^\n]+)|(\S+) (?:deleted|renamed|added)\b)"
)
_STOP_MESSAGES = (
    "Automatic merge failed; fix conflicts",
    "Resolve all conflicts manually",
    "after resolving the conflicts",
)
_FAILURE_ROW = compile_lazily(r"(?:\A|\n)(?:fatal|error): |needs merge|edit all merge conflicts")
_ENDING_OPTIONS = frozenset({"--continue", "--skip", "--quit"})
_ABORTING_OPTIONS = frozenset({"--abort", "--hard", "--merge"})
_STATUS_HEAD = compile_lazily(r"(?:\A|\n)(?:On branch |HEAD detached )")
_UNFINISHED_STATUS = compile_lazily(
    r"unmerged paths|still merging|(?:rebase|am session|revert|cherry-pick) in progress|"
    r"currently (?:rebasing|cherry-picking|reverting)|middle of an am session",
)
_COMMIT_IN_REBASE = "[detached HEAD "
_REBASE_END = "Successfully rebased"


class StoppedMerge(NamedTuple):
    """The command that stopped, its conflicting ``paths`` from the root of its checkout, and its position."""

    command: str
    paths: tuple[str, ...]
    place: RecordPlace


def was_aborted(words: Sequence[str]) -> bool:
    """Check whether a git command throws a stopped merge away."""
    return words[0] in {*_MERGING_COMMANDS, "reset"} and not _ABORTING_OPTIONS.isdisjoint(words)


def update_stopped_merge(
    stopped: StoppedMerge | None, words: Sequence[str], run: ShellRun
) -> StoppedMerge | None:
    """Return the stopped merge of a checkout after a git command, given as its ``words`` from the subcommand on."""
    if was_aborted(words):
        return None
    is_merging = words[0] in _MERGING_COMMANDS
    if is_merging and _has_stopped(words, run):
        return _make_stopped_merge(stopped, words, run)
    if stopped is None:
        return None
    has_failed = run.failed or _FAILURE_ROW.search(run.output) is not None
    if is_merging:
        is_ended = not has_failed
    elif words[0] == "commit":
        is_ended = not has_failed and _COMMIT_IN_REBASE not in run.output
    else:
        is_ended = words[0] == "status" and _shows_no_merge(run.output)
    if is_ended:
        return None
    if "--diff-filter=U" in words and not (stopped.paths or has_failed):
        return stopped._replace(paths=tuple(filter(None, run.output.split("\n"))))
    return stopped


def _has_stopped(words: Sequence[str], run: ShellRun) -> bool:
    """Check whether the output of a command reports conflicts that the command stopped at."""
    if _is_continuing(words) and _REBASE_END in run.output:
        return False
    return _CONFLICT_ROW.search(run.output) is not None or any(
        message in run.output for message in _STOP_MESSAGES
    )


def _is_continuing(words: Sequence[str]) -> bool:
    """Check whether a command continues a merge that stopped."""
    return not _ENDING_OPTIONS.isdisjoint(words)


def _make_stopped_merge(
    former_stop: StoppedMerge | None, words: Sequence[str], run: ShellRun
) -> StoppedMerge:
    """Return the merge that a command stopped in. If the command continued a merge, the name stays."""
    paths = []
    for merged_path, other_path in _CONFLICT_ROW.findall(run.output):
        paths.append(merged_path.strip() or other_path)
    if former_stop is not None and _is_continuing(words):
        command = former_stop.command
    else:
        command = " ".join(["git", *(word for word in words if not word.startswith("-"))])
    return StoppedMerge(command, tuple(dict.fromkeys(paths)), run.result_place)


def _shows_no_merge(output: str) -> bool:
    """Check whether the output of a long ``git status`` reports no unfinished merge."""
    return _STATUS_HEAD.search(output) is not None and _UNFINISHED_STATUS.search(output) is None
