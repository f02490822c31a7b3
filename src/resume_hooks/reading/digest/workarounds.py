"""Check whether a different command replaced a command that could not run at all.

If a check ran and failed, a different check cannot replace it, because it may cover less code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from resume_hooks.reading.digest import shell
from resume_hooks.reading.digest.session_commands import MAX_CHECK_WORDS, ShellCommand
from resume_hooks.reading.digest.shell import SimpleCommand
from resume_hooks.redaction.lazy_patterns import compile_lazily

# Exit statuses that say that the shell could not start the program.
NOT_EXECUTABLE_STATUSES = frozenset({126, 127})
_INVOCATION_ERROR_PATTERN = compile_lazily(
    r"command not found|no module named|missing script|no rule to make target|not recognized as|"
    r"could not determine executable|no such (?:file or directory|command|option)|"
    r"unknown (?:command|flag|option|json field|shorthand flag)|unrecognized (?:arguments|option|subcommand)|"
    r"unexpected argument|permission denied|invalid option|is not installed",
    re.IGNORECASE,
)
"""Words in the output of a command that was called incorrectly or whose program is missing."""

# The maximum number of characters in the output of a command that could not run.
MAX_INVOCATION_ERROR_CHARACTERS = 1_500
_RESULT_PATTERN = compile_lazily(
    r"\b\d+ (?:tests? )?(?:passed|failed|passing|failing|errors?)\b|\bFAIL(?:ED)?\b"
)
"""A result that a check prints."""

_PURPOSE_WORDS = (
    ("test", r"tests?|pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|spec|bats"),
    ("types", r"tsc|mypy|pyright|type-?check"),
    ("lint", r"lint|eslint|ruff|flake8|clippy|vet|golangci-lint"),
    ("build", r"build|compile"),
)
_PURPOSE_PATTERNS = tuple(
    (name, compile_lazily(rf"\b(?:{words})\b", re.IGNORECASE)) for name, words in _PURPOSE_WORDS
)
_ALTERNATIVE_COMMANDS = {
    "git pull": (("git", "rebase"), ("git", "merge"), ("git", "reset")),
    "git push": (("gh", "pr", "create"),),
}
"""Maps a program to the first words of other commands that have the same effect."""


def was_worked_around(failed_command: ShellCommand, later_commands: Sequence[ShellCommand]) -> bool:
    """Check whether a later successful command achieved what a failed command was meant to achieve."""
    alternatives = _ALTERNATIVE_COMMANDS.get(failed_command.program, ())
    for command in later_commands:
        if any(_is_alternative_command(part, alternatives) for part in command.parts):
            return True
    if not _could_not_run(failed_command):
        return False
    purposes = _collect_purposes(failed_command)
    later_purposes: set[str] = set()
    for command in later_commands:
        later_purposes |= _collect_purposes(command)
    if purposes and purposes <= later_purposes:
        return True
    name = failed_command.program.split()[0].replace("-", " ")
    return any(f" {name} " in f" {_join_shortened_words(command)} " for command in later_commands)


def _could_not_run(command: ShellCommand) -> bool:
    """Check whether a command failed before it did any work.

    In this case, its output is short and contains no results.
    """
    if command.run.status in NOT_EXECUTABLE_STATUSES:
        return True
    output = command.run.output
    is_short = len(output) <= MAX_INVOCATION_ERROR_CHARACTERS
    return (
        is_short
        and _INVOCATION_ERROR_PATTERN.search(output) is not None
        and _RESULT_PATTERN.search(output) is None
    )


def _is_alternative_command(part: SimpleCommand, beginnings: Sequence[tuple[str, ...]]) -> bool:
    """Check whether a command starts with one of ``beginnings`` and does not contain ``--abort``."""
    words = part.words
    if words[:1] == ("git",):
        words = ("git", *shell.iterate_git_arguments(words))
    is_beginning = any(words[: len(beginning)] == beginning for beginning in beginnings)
    return is_beginning and "--abort" not in words


def _join_shortened_words(command: ShellCommand) -> str:
    """Return the words of a command on one line. Paths are shortened to their last components."""
    words = (word for part in command.parts for word in part.words)
    return " ".join(word.rpartition("/")[2] or word for word in words)


def _collect_purposes(command: ShellCommand) -> set[str]:
    """Return what a command checks: any of ``test``, ``types``, ``lint`` and ``build``."""
    purposes: set[str] = set()
    for part in command.parts:
        text = " ".join(part.words[:MAX_CHECK_WORDS])
        if shell.find_program((part,)):
            purposes.update(name for name, pattern in _PURPOSE_PATTERNS if pattern.search(text))
    return purposes
