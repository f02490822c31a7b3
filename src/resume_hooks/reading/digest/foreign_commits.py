"""Find commits that were made by the user or another program, not by a git command in the session.

Invariant: a commit is included only if a log shows it as newer than the newest commit of an earlier
log, and if no command in the session changed HEAD of that checkout between the two logs.
"""

from __future__ import annotations

from collections.abc import Sequence

from resume_hooks.reading.digest.facts import ShellRun
from resume_hooks.reading.digest.shell import select_operands
from resume_hooks.redaction.lazy_patterns import compile_lazily

_LOG_ROW_PATTERN = compile_lazily(r"(?m)^([0-9a-f]{7,40}) \S")
_HEAD_OPERAND_PATTERN = compile_lazily(r"(?:.*\.\.)?(?:HEAD)?")
"""Matches the operand of a ``git log`` that starts at the top of the checkout: ``HEAD`` or, for
example, ``main..HEAD``."""

_COMMIT_SELECTING_OPTION_PATTERN = compile_lazily(
    r"--\Z|--(?:all|author|grep|reverse|merges|no-merges|first-parent|skip|branches|remotes|graph)\b|-[SGL]"
)
_ROW_SELECTING_FILTER_PATTERN = compile_lazily(r"\|\s*(?:e?grep|rg|tail|sed|awk|sort|tac)\b")

HEAD_MOVING_SUBCOMMANDS = frozenset(
    {
        "am", "checkout", "cherry-pick", "commit", "merge", "pull", "rebase", "reset", "revert", "switch",
    }
)  # fmt: skip
"""Git subcommands that may move the top commit of a checkout."""


def read_top_commits_from_log(git_arguments: Sequence[str], run: ShellRun) -> list[str]:
    """Return the commits' hashes from a one-line log that starts at the top commit of a checkout.

    If the command does not print such a log, return an empty list.
    """
    if git_arguments[0] != "log" or "--oneline" not in git_arguments or run.has_failed:
        return []
    if run.command.count(" log") > 1 or _ROW_SELECTING_FILTER_PATTERN.search(run.command):
        return []
    if any(_COMMIT_SELECTING_OPTION_PATTERN.match(word) for word in git_arguments):
        return []
    for operand in select_operands(git_arguments[1:]):
        if not operand.isdigit() and _HEAD_OPERAND_PATTERN.fullmatch(operand) is None:
            return []
    return list(_LOG_ROW_PATTERN.findall(run.output))


def find_commits_above(top_hash: str, listed_hashes: Sequence[str]) -> list[str]:
    """Return the commits that a log lists above the commit ``top_hash``, the latest first.

    If the log does not list ``top_hash``, return an empty list.
    """
    for index, listed_hash in enumerate(listed_hashes):
        if listed_hash.startswith(top_hash) or top_hash.startswith(listed_hash):
            return list(listed_hashes[:index])
    return []
