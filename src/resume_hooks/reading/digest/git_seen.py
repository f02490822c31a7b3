"""Read the state of git from the output of a session's own commands.

This state is used if git can no longer run in the session's folder. Invariant: only successful
commands and their output are used. Changes that sub-agents and users make outside the session are
unknown.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from resume_hooks.reading.digest import shell
from resume_hooks.reading.digest.facts import RecordPosition, ShellRun
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.transcripts.head_tail import MISSING_BRANCH_MARKER

_BRANCH_OUTPUT_PATTERN = compile_lazily(
    r"\n(?:On branch (\S+)|## ([^\s.]+(?:\.[^\s.]+)*)(?=\.\.\.|\s|\Z)|Switched to (?:a new )?branch '([^'\n]+)'|"
    r"\[(?!detached)([^\]\s]+) [0-9a-f]{7,40}\])"
)
_BRANCH_QUERY_PATTERN = compile_lazily(
    r"\s*(?:cd \S+ && )?git (?:branch --show-current|rev-parse --abbrev-ref HEAD|symbolic-ref --short HEAD)\s*"
)

_ADDED_WORKTREE_PATTERN = compile_lazily(
    r"(?:\A|\n)Preparing worktree \((?:new branch|checking out|resetting branch) '([^'\n]+)'"
)


MAX_CHECKOUTS = 3  # At most this many checkouts are listed with their branches.


class SessionCheckout(NamedTuple):
    """A folder that is a checkout, with the last branch that git's output or the client reported for it."""

    folder: str
    branch: str
    position: RecordPosition


class SessionGit(NamedTuple):
    """The state of git at the end of a session.

    ``branch`` is the last branch that git or the client named, or ``""``. ``checkouts`` are the
    folders whose branch is known, the latest first. ``commit_position`` and ``push_position`` are
    the positions of the last commit and the last push. ``last_switch_order`` is the sequence number
    of the command that last changed the branch, or 0.

    ``previous_branch`` is set if the client recorded a different branch although no git command had
    switched to it. It is the last branch that a command showed before. Otherwise, it is ``""``.
    """

    branch: str
    checkouts: tuple[SessionCheckout, ...]
    commit_position: RecordPosition | None
    push_position: RecordPosition | None
    last_switch_order: int
    previous_branch: str


ParsedRun = tuple[ShellRun, tuple[shell.SimpleCommand, ...]]
"""A shell command that ran, and the simple commands of which it consists."""


class FolderRemoval(NamedTuple):
    """A folder that a command removed, and the sequence number of the command."""

    folder: str
    order: int


def collect_session_git(
    commands: Sequence[ParsedRun],
    client_checkout: SessionCheckout | None,
    removal_orders: Mapping[str, int],
    home: str = "",
) -> SessionGit:
    """Return the state of git after a session's commands, which are ordered oldest first.

    ``client_checkout`` is the folder and the branch that the client recorded when the branch last
    changed. The branch may have been changed outside the session. If no command showed the branch
    of this folder, ``client_checkout`` is treated as the oldest checkout. ``removal_orders`` maps
    each removed folder to the sequence number of the command that removed it.

    In the result, the checkout of ``home``, the session's folder, comes first. Worktrees that
    commands added come last, unless another command showed their branch.
    """
    branches: dict[str, str] = {}
    checkouts: dict[str, SessionCheckout] = {}
    last_switch_order = last_order = 0
    last_branch = previous_branch = ""
    for run, parts in commands:
        branch = read_branch(run)
        if not branch:
            continue
        last_order, last_branch = run.position.order, branch
        folder = find_run_folder(run, parts)
        if branches.get(folder, branch) != branch or "Switched to" in run.output:
            last_switch_order = run.position.order
        branches[folder] = branch
        if removal_orders.get(folder, 0) <= run.position.order:
            # A dict keeps the position of an existing key, but the latest checkout must be last.
            checkouts.pop(folder, None)
            checkouts[folder] = SessionCheckout(folder, branch, run.result_position)
    if (
        client_checkout is not None
        and client_checkout.position.order > last_order
        and client_checkout.branch != last_branch
    ):
        if last_branch:
            last_switch_order = client_checkout.position.order
        if not _may_have_switched_branch(commands, last_order, last_switch_order):
            previous_branch = last_branch
        checkouts.pop(client_checkout.folder, None)
        checkouts[client_checkout.folder] = client_checkout
    elif client_checkout is not None and not _is_known_checkout(client_checkout, branches):
        checkouts = {client_checkout.folder: client_checkout, **checkouts}
    latest_first = list(reversed(checkouts.values()))
    added_worktrees = _list_added_worktrees(commands, removal_orders, branches)
    return SessionGit(
        latest_first[0].branch if latest_first else "",
        tuple(_list_known_checkouts([*latest_first, *added_worktrees], home)[:MAX_CHECKOUTS]),
        _find_last_git_run(commands, "commit"),
        _find_last_git_run(commands, "push"),
        last_switch_order,
        previous_branch,
    )


def _list_added_worktrees(
    commands: Sequence[ParsedRun], removal_orders: Mapping[str, int], branches: Mapping[str, str]
) -> list[SessionCheckout]:
    """Return the worktrees that commands added and did not remove later, the latest first.

    Worktrees in ``branches`` are left out, because their branch is already known.
    """
    worktrees: dict[str, SessionCheckout] = {}
    for worktree in _find_added_worktrees(commands):
        is_removed = removal_orders.get(worktree.folder, 0) > worktree.position.order
        if not is_removed and worktree.folder not in branches:
            worktrees.setdefault(worktree.folder, worktree)
    return list(worktrees.values())


def _find_added_worktrees(commands: Sequence[ParsedRun]) -> Iterator[SessionCheckout]:
    """Yield the worktrees that commands added, each with its branch, the latest first."""
    for run, parts in reversed(commands):
        match = _ADDED_WORKTREE_PATTERN.search(run.output) if "worktree" in run.command else None
        base = find_run_folder(run, parts)
        if match is None or run.has_failed or not base:
            continue
        for words, _ in parts:
            git_arguments = [*shell.iterate_git_arguments(words)] if words[:1] == ("git",) else []
            folder = _find_added_worktree_folder(git_arguments)
            if folder and "-C" not in words:
                path = posixpath.normpath(posixpath.join(base, folder))
                yield SessionCheckout(path, match[1], run.result_position)


def _find_added_worktree_folder(git_arguments: Sequence[str]) -> str:
    """Return the folder of the worktree that a git command adds, as written in the command, or ``""``."""
    if list(git_arguments[:2]) != ["worktree", "add"]:
        return ""
    former_word = ""
    for word in git_arguments[2:]:
        if not word.startswith("-") and former_word not in {"-b", "-B"}:
            return "" if "$" in word else word
        former_word = word
    return ""


def _list_known_checkouts(checkouts: Iterable[SessionCheckout], home: str) -> list[SessionCheckout]:
    """Return the checkouts whose folder and branch are known. The checkout of ``home`` comes first."""
    known_checkouts = []
    for checkout in checkouts:
        if checkout.folder and checkout.branch != MISSING_BRANCH_MARKER:
            known_checkouts.append(checkout)
    known_checkouts.sort(key=lambda checkout: checkout.folder != home)
    return known_checkouts


def _is_known_checkout(checkout: SessionCheckout, branches: Mapping[str, str]) -> bool:
    """Check whether the branch of a checkout is already known from ``branches``.

    The branch is also known if ``branches`` contains it for a folder above or below the checkout.
    """
    for folder, branch in branches.items():
        is_related = f"{folder}/".startswith(
            f"{checkout.folder}/"
        ) or f"{checkout.folder}/".startswith(f"{folder}/")
        if folder == checkout.folder or (is_related and branch == checkout.branch):
            return True
    return False


def _may_have_switched_branch(
    commands: Sequence[ParsedRun], first_order: int, last_order: int
) -> bool:
    """Check whether a command between two records may have switched branches.

    Every command that mentions git may have done so.
    """
    return any(
        first_order < run.position.order <= last_order and "git" in run.command
        for run, _ in commands
    )


@lru_cache(maxsize=shell.MAX_CACHED_COMMANDS)
def read_branch(run: ShellRun) -> str:
    """Return the last branch that a command's output shows, or ``""``."""
    if "git" in run.command or "Switched to" in run.output:
        # Prepending a newline is faster than a pattern with \A.
        rows = _BRANCH_OUTPUT_PATTERN.findall(f"\n{run.output}")
        for row in reversed(rows):
            if row[1] and "status" not in run.command:
                continue  # Outside the output of ``git status``, a line that starts with "## " is a heading.
            return next(str(name) for name in row if name)
    if (
        _BRANCH_QUERY_PATTERN.fullmatch(run.command)
        and not run.has_failed
        and len(run.output.split()) == 1
    ):
        return run.output.strip()
    return ""


def find_run_folder(run: ShellRun, simple_commands: tuple[shell.SimpleCommand, ...]) -> str:
    """Return the folder in which a command ran, or ``""`` if it is unknown."""
    target = shell.find_start_folder(simple_commands)
    if run.folder and target is not None:
        return posixpath.normpath(posixpath.join(run.folder, target))
    return ""


def find_folder_removals(commands: Iterable[ParsedRun]) -> Iterator[FolderRemoval]:
    """Yield the folders that commands removed, each with the sequence number of the command.

    Only removed worktrees and folders removed with ``rm -r`` are found.
    """
    for run, parts in commands:
        if run.has_failed or not ("worktree" in run.command or "rm " in run.command):
            continue
        base = find_run_folder(run, parts)
        for words, _ in parts:
            for folder in _list_removed_folders(words):
                path = posixpath.normpath(posixpath.join(base, folder))
                yield FolderRemoval(path, run.position.order)


_RECURSIVE_OPTION_PATTERN = compile_lazily(r"-[a-zA-Z]*[rR]|--recursive\Z")


def _list_removed_folders(words: tuple[str, ...]) -> list[str]:
    """Return the folders that a simple command removes, as written in the command."""
    operands = shell.select_operands(words[1:])
    if words[:1] == ("git",) and operands[-3:-1] == ["worktree", "remove"]:
        return operands[-1:]
    is_recursive = words[:1] == ("rm",) and any(
        _RECURSIVE_OPTION_PATTERN.match(word) for word in words[1:]
    )
    if is_recursive:
        return operands
    return []


def _find_last_git_run(commands: Sequence[ParsedRun], git_subcommand: str) -> RecordPosition | None:
    for run, parts in reversed(commands):
        if run.has_failed or git_subcommand not in run.command:
            continue
        for words, _ in parts:
            if words[:1] == ("git",) and [*shell.iterate_git_arguments(words)][:1] == [
                git_subcommand
            ]:
                return run.position
    return None
