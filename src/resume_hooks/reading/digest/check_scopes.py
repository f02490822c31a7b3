"""Find out which code a check covers. A check is a test run, a build or a linter.

A failed check is outdated if later checks passed and cover the same code. A runner such as ``mise
run test`` prints the command that it runs, and covers the same code as that command.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from resume_hooks.reading.digest import shell
from resume_hooks.reading.digest.facts import RecordPosition, ShellRun
from resume_hooks.reading.digest.shell import SimpleCommand
from resume_hooks.redaction.lazy_patterns import compile_lazily

# At most this many commands are read from the output of a runner.
MAX_PRINTED_COMMANDS = 20
# If a runner prints a longer command, only this number of the command's characters is read.
MAX_PRINTED_COMMAND_CHARACTERS = 400
# A scope is compared only with the scopes of checks that passed: at most this many, the latest of
# the same program.
MAX_COMPARED_SCOPES = 40
_PRINTED_COMMAND_PATTERN = compile_lazily(
    rf"(?:\A|\n)(?:\[[\w:.-]{{1,60}}\] )?[$>] ([^\n]{{1,{MAX_PRINTED_COMMAND_CHARACTERS}}})"
)
"""A row in which mise, npm, yarn or bun prints a command before running it."""

_RUNNER_PROGRAMS = frozenset({"mise", "npm", "pnpm", "yarn", "bun", "task", "just", "make"})
"""Programs that print the commands that they run."""

_FILTER_OPTION_PATTERN = compile_lazily(
    r"--?(?:run|k|t|g|skip|filter|grep|test|tests|testNamePattern|test-name-pattern|bench|only|lib|bin|package)(?:=.*)?\Z"
)
"""An option that selects some tests of a scope. Its value may be the next word."""

_NEUTRAL_OPTION_PATTERN = compile_lazily(
    r"-(?:[vqsxl]{1,4}|n\d+|j\d+|count=.*|race|json|failfast|short|timeout.*|parallel.*|p=.*|cover.*)\Z|"
    r"--(?:verbose|quiet|silent|nocapture|no-header|tb|color|no-color|maxfail|bail|timeout|reporter|format|"
    r"max-diagnostics|jobs|coverage|locked|offline|tests?-threads)(?:=.*)?\Z|--\Z"
)
"""An option that changes how a check runs or reports, but not which code it checks."""

# The separator before the name of a test, as in ``pytest test_a.py::test_b``.
_TEST_NAME_SEPARATOR = "::"
# With this ending, a target includes all its subfolders, as in ``go test ./...``.
_TARGET_WITH_SUBFOLDERS_SUFFIX = "/..."
_COMPILING_CHECKS_BY_PROGRAM = {
    "go build": frozenset({"go vet", "go test"}),
    "cargo check": frozenset({"cargo build", "cargo clippy", "cargo test", "cargo nextest"}),
    "cargo build": frozenset({"cargo test", "cargo nextest"}),
}
"""Maps a program that only compiles code to the checks that also compile that code."""


class CheckRun(NamedTuple):
    """A run of a check.

    ``command_key`` is equal for runs of the same command. ``folder`` is the folder of the run, or
    ``""`` if it is unknown. ``has_passed`` means that the check certainly succeeded.
    """

    run: ShellRun
    parts: tuple[SimpleCommand, ...]
    command_key: str
    folder: str
    has_passed: bool


class _CheckScope(NamedTuple):
    """The code that a check covers. ``targets`` are the absolute paths of its folders and files.

    ``filters`` select some of the tests in the targets. ``options`` are the options that change
    what is checked. ``includes_subfolders`` means that the check also covers the subfolders of the
    targets, and not only the files directly in the targets.
    """

    program: str
    targets: tuple[str, ...]
    filters: tuple[str, ...]
    options: frozenset[str]
    includes_subfolders: bool


class PassedChecks:
    """For each scope that a check of the lineage covers, the last run that passed."""

    def __init__(self, check_runs: Sequence[CheckRun]) -> None:
        self._printed_scopes: dict[tuple[str, str], list[_CheckScope]] = {}
        """The scopes of the commands that a runner printed in its last run, by the runner's key and
        the folder in which it ran."""
        self._passes: dict[tuple[str, bool], dict[_CheckScope, RecordPosition]] = {}
        """The position of the last passed run for each scope, sorted by position.

        The outer key consists of a program and a flag. The flag is True if the scope has filters.
        """
        for check_run in check_runs:
            printed_scopes = list(_list_scopes_of_printed_commands(check_run))
            if printed_scopes:
                self._printed_scopes[check_run.command_key, check_run.folder] = printed_scopes
        for check_run in check_runs:
            if check_run.has_passed and shell.does_status_cover_all_parts(check_run.command_key):
                for scope in self._list_scopes(check_run):
                    self._add_passed_run(scope, check_run.run.result_position)

    def _add_passed_run(self, scope: _CheckScope, position: RecordPosition) -> None:
        passes = self._passes.setdefault((scope.program, bool(scope.filters)), {})
        # A dict keeps the position of an existing key, but the latest pass must be last.
        passes.pop(scope, None)
        passes[scope] = position

    def find_covering_run(self, check_run: CheckRun) -> RecordPosition | None:
        """Find later runs that passed and that together cover everything that a failed run checked.

        Return the position of the first of these runs, or None if something is not covered.
        """
        positions: list[RecordPosition] = []
        for scope in self._list_scopes(check_run):
            position = self._find_passed_run_of_scope(scope, check_run.run.result_position.order)
            if position is None:
                return None
            positions.append(position)
        return min(positions, key=lambda position: position.order, default=None)

    def _find_passed_run_of_scope(
        self, scope: _CheckScope, first_order: int
    ) -> RecordPosition | None:
        """Return the position of the last passed run after ``first_order`` that covers a scope, or None."""
        positions: list[RecordPosition] = []
        for program in (scope.program, *_COMPILING_CHECKS_BY_PROGRAM.get(scope.program, ())):
            for has_filters in (False, True):
                passes = self._passes.get((program, has_filters), {})
                for passed_scope, position in islice(reversed(passes.items()), MAX_COMPARED_SCOPES):
                    if position.order <= first_order:
                        break
                    if _covers_scope(passed_scope, scope):
                        positions.append(position)
                        break
        return max(positions, key=lambda position: position.order, default=None)

    def _list_scopes(self, check_run: CheckRun) -> list[_CheckScope]:
        """Return the scopes of the programs in a run.

        For a runner, which prints the commands that it runs, return the scopes of the printed
        commands.
        """
        printed_scopes = self._printed_scopes.get((check_run.command_key, check_run.folder))
        if printed_scopes is not None:
            return printed_scopes
        return list(_list_scopes_in_folder(check_run.parts, check_run.folder))


def selects_tests(simple_commands: Sequence[SimpleCommand]) -> bool:
    """Check whether a command names the tests that it runs."""
    return any(scope.filters for scope in _list_scopes_in_folder(simple_commands, ""))


def _list_scopes_of_printed_commands(check_run: CheckRun) -> Iterator[_CheckScope]:
    program = shell.find_program(check_run.parts)
    if program.partition(" ")[0] not in _RUNNER_PROGRAMS:
        return
    commands = _PRINTED_COMMAND_PATTERN.findall(check_run.run.output)[:MAX_PRINTED_COMMANDS]
    if any(text.endswith("…") or len(text) == MAX_PRINTED_COMMAND_CHARACTERS for text in commands):
        # The command was too long: the output or the pattern's length limit cut it off, so its
        # filters are unknown.
        return
    for text in commands:
        yield from _list_scopes_in_folder(shell.parse_simple_commands(text), check_run.folder)


def _list_scopes_in_folder(
    simple_commands: Sequence[SimpleCommand], folder: str
) -> Iterator[_CheckScope]:
    for simple_command in simple_commands:
        if shell.find_program((simple_command,)):
            yield _make_scope(simple_command.words, folder)


def _make_scope(words: Sequence[str], folder: str) -> _CheckScope:
    """Return the scope of a simple command that runs in ``folder``."""
    program = shell.find_program((SimpleCommand(tuple(words), ()),))
    targets: list[str] = []
    filters: list[str] = []
    options: set[str] = set()
    includes_subfolders = not program.startswith("go ")
    is_filter_value = False
    for word in words[len(program.split()) :]:
        if is_filter_value:
            filters.append(word)
            is_filter_value = False
        elif _FILTER_OPTION_PATTERN.match(word):
            filters.append(word)
            is_filter_value = "=" not in word
        elif word.startswith("-"):
            if not _NEUTRAL_OPTION_PATTERN.match(word):
                options.add(word)
        else:
            path, separator, test_name = word.partition(_TEST_NAME_SEPARATOR)
            if separator:
                filters.append(test_name)
            includes_subfolders = includes_subfolders or path.endswith(
                _TARGET_WITH_SUBFOLDERS_SUFFIX
            )
            targets.append(
                posixpath.normpath(
                    posixpath.join(folder, path.removesuffix(_TARGET_WITH_SUBFOLDERS_SUFFIX))
                )
            )
    return _CheckScope(
        program,
        tuple(targets) or (posixpath.normpath(folder),),
        tuple(filters),
        frozenset(options),
        includes_subfolders,
    )


def _covers_scope(wider: _CheckScope, scope: _CheckScope) -> bool:
    """Check whether a check with the scope ``wider`` checks everything in ``scope``."""
    if not _do_wider_filters_cover(wider.filters, scope.filters):
        return False
    if not scope.options <= wider.options:
        return False
    return all(
        _is_target_in_scope(target, wider, includes_subfolders=scope.includes_subfolders)
        for target in scope.targets
    )


def _do_wider_filters_cover(wider_filters: Sequence[str], filters: Sequence[str]) -> bool:
    """Check whether ``wider_filters`` select every test that ``filters`` select.

    This is so if ``wider_filters`` is empty. It is also so if each wider filter equals the
    corresponding filter, or is a plain name that the corresponding filter contains.
    """
    if not wider_filters:
        return True
    if len(wider_filters) != len(filters):
        return False
    for wider_filter, name in zip(wider_filters, filters, strict=True):
        is_part = (
            _PLAIN_TEST_NAME_PATTERN.fullmatch(wider_filter) is not None and wider_filter in name
        )
        if wider_filter != name and not is_part:
            return False
    return True


_PLAIN_TEST_NAME_PATTERN = compile_lazily(r"\w+")


def _is_target_in_scope(path: str, wider: _CheckScope, *, includes_subfolders: bool) -> bool:
    for target in wider.targets:
        if path == target and (wider.includes_subfolders or not includes_subfolders):
            return True
        if wider.includes_subfolders and f"{path}/".startswith(f"{target.rstrip('/')}/"):
            return True
    return False
