"""List failed commands: those whose error may still be open, and those that other commands replaced."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from resume_hooks.reading.digest import shell
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.edited_files import EditedFiles
from resume_hooks.reading.digest.entries import DigestEntry, make_entry, redact_and_remember_secrets
from resume_hooks.reading.digest.facts import INTERRUPTED_EXIT_STATUS
from resume_hooks.reading.digest.prose import cut_line
from resume_hooks.reading.digest.sections import UNKNOWN_STATUS_NOTE
from resume_hooks.reading.digest.session_commands import (
    MAX_CHECK_WORDS,
    MAX_COMMAND_CHARACTERS,
    MAX_OUTPUT_LINE_CHARACTERS,
    ONE_TIME_COMMAND_PATTERN,
    ShellCommand,
    has_check_word,
    is_check,
    is_check_part,
    is_inspection,
    is_lookup,
    is_verification,
    is_worth_repeating,
    moves_to_temporary_folder,
)
from resume_hooks.reading.digest.shell import SimpleCommand
from resume_hooks.reading.digest.workarounds import was_worked_around
from resume_hooks.redaction.lazy_patterns import compile_lazily

# A similar command is a replacement only if it is among this many successive commands, counted from
# the failed one.
MAX_COMMANDS_BEFORE_REPLACEMENT = 12
# An error can be listed as open only if it occurred in one of this many latest turns.
MAX_TURNS_SEARCHED_FOR_UNRESOLVED_ERRORS = 3
# The maximum number of characters shown of a failed command. The command's output follows them.
MAX_FAILED_COMMAND_CHARACTERS = 120
# The maximum number of characters to read from a tool's error message.
MAX_TOOL_ERROR_CHARACTERS = 1_000
# If some parts of a failed command chain passed later, they are quoted with at most this many
# characters in all.
MAX_QUOTED_COMMAND_PARTS_CHARACTERS = 80
# At most this many rows are quoted from a failed command's output.
MAX_QUOTED_ERROR_ROWS = 3
MAX_QUOTED_ERROR_CHARACTERS = 320  # The maximum total number of characters in the quoted rows.
_ERROR_WORD_PATTERN = compile_lazily(
    r"error|fail|fatal|panic|denied|not found|cannot|can't|exception|refused|unknown|invalid",
    re.IGNORECASE,
)


def describe_last_failure(command_text: str, commands: Sequence[ShellCommand]) -> str:
    """Return a note if the last run of the command ``command_text`` failed or was stopped, or ``""``.

    The note says if that run had arguments that ``command_text`` lacks. A failed chain of commands
    is ignored if a different command in the chain may have failed.
    """
    parsed = shell.parse_simple_commands(command_text)
    words = parsed[0].words if parsed else ()
    for command in reversed(commands):
        runs = [part for part in command.parts if words and part.words[: len(words)] == words]
        if not runs:
            continue
        subject = "its last run"
        if all(part.words != words for part in runs):
            subject = "its last run with more arguments"
        if command.run.status == INTERRUPTED_EXIT_STATUS:
            return f"{subject} was stopped, :{command.run.position.record_number}"
        working_parts = [part for part in command.parts if shell.find_program((part,))]
        if working_parts != runs and _list_possibly_failed_parts(command) != runs:
            return ""
        if command.run.has_failed:
            return f"{subject} failed, :{command.run.position.record_number}"
        if command.error_line:
            error_line = cut_line(command.error_line, MAX_OUTPUT_LINE_CHARACTERS // 2)
            return f"{subject}, :{command.run.position.record_number}, printed: {error_line}"
        return ""
    return ""


def list_replaced_commands(
    commands: Sequence[ShellCommand], edited_files: EditedFiles
) -> Iterator[DigestEntry]:
    """Yield each command that never succeeded, with the command that replaced it if there was one.

    The latest command comes first. If a command failed several times, it is yielded only once.
    """
    known_keys = {command.command_key for command in commands if command.may_have_succeeded}
    for index in range(len(commands) - 1, -1, -1):
        failed_command = commands[index]
        if failed_command.command_key in known_keys:
            continue
        failure = _describe_failure(failed_command)
        if not failure:
            continue
        known_keys.add(failed_command.command_key)
        if not _checks_or_changes_something(failed_command):
            continue  # A failed command that only reads is of no interest.
        later_successful_commands = [
            other for other in commands[index + 1 :] if other.may_have_succeeded
        ]
        if is_check(failed_command) and _is_resolved(failed_command, later_successful_commands):
            continue  # The same command passed later, so an edit fixed the failure.
        replacement = _find_replacement(failed_command, commands[index + 1 :])
        if replacement is not None and is_lookup(failed_command):
            continue  # Another command found what this command looked for.
        if replacement is None and ONE_TIME_COMMAND_PATTERN.search(failed_command.run.command):
            continue
        text = f"{_quote_failed_command(failed_command)} {failure}"
        if replacement and replacement.command_key != failed_command.command_key:
            shown_key = cut_line(
                redact_and_remember_secrets(_remove_text_before_program(replacement)),
                MAX_OUTPUT_LINE_CHARACTERS,
            )
            if replacement.has_worked:
                verb = "worked"
            else:
                verb = "ran" if replacement.may_have_succeeded else "failed in another way"
            text = f"{text}; then `{shown_key}` {verb}"
        note = _describe_later_edits(failed_command, edited_files)
        yield make_entry(text, failed_command.run.position, note, MAX_COMMAND_CHARACTERS)


def _checks_or_changes_something(command: ShellCommand) -> bool:
    """Check whether a command checks or changes something outside temporary folders."""
    if is_inspection(command.run.command) or moves_to_temporary_folder(command):
        return False
    return is_check(command) or command.program.startswith(_STATE_CHANGING_PROGRAM_PREFIXES)


def _describe_later_edits(failed_command: ShellCommand, edited_files: EditedFiles) -> str:
    """Return a note on the files that were edited after a check failed, or ``""``."""
    if is_verification(failed_command):
        folder = failed_command.run_folder
        return edited_files.describe_edits_after_failure(failed_command.run.result_position, folder)
    return ""


def _find_replacement(
    failed_command: ShellCommand, later_commands: Sequence[ShellCommand]
) -> ShellCommand | None:
    """Return the next successful command that replaced a failed command, or None.

    It is a similar command, or the same command with a different path to its program.
    """
    for other in later_commands[: MAX_COMMANDS_BEFORE_REPLACEMENT - 1]:
        has_ended_well = other.has_worked or (
            failed_command.run.status is None and other.may_have_succeeded
        )
        if has_ended_well and _is_similar(failed_command, other):
            return other
    if ONE_TIME_COMMAND_PATTERN.search(failed_command.run.command):
        return None
    return _find_same_command_with_other_path(failed_command, later_commands)


# If two commands have this fraction of their words in common, one may replace the other.
MIN_COMMON_WORD_FRACTION = 0.6
_STATE_CHANGING_PROGRAM_PREFIXES = (
    "git ",
    "gh ",
    "docker",
    "kubectl",
    "terraform",
    "psql",
    "ssh",
    "scp",
)
"""Programs that do not check anything, but whose failures are relevant."""


def _find_same_command_with_other_path(
    failed_command: ShellCommand, later_commands: Sequence[ShellCommand]
) -> ShellCommand | None:
    """Return the next run of the same command with a different path to its program, or None."""
    key = _make_comparison_key_without_paths(failed_command)
    for command in later_commands:
        if (
            command.command_key != failed_command.command_key
            and _make_comparison_key_without_paths(command) == key
        ):
            return command
    return None


def _is_similar(failed_command: ShellCommand, other: ShellCommand) -> bool:
    """Check whether two commands run the same program and have most of their words in common."""
    if not failed_command.program or other.program != failed_command.program:
        return False
    words = set(_remove_text_before_program(failed_command).split())
    other_words = set(_remove_text_before_program(other).split())
    return len(words & other_words) >= MIN_COMMON_WORD_FRACTION * max(len(words), len(other_words))


def list_open_errors(
    facts: LineageFacts,
    commands: Sequence[ShellCommand],
    first_order: int,
    edited_files: EditedFiles,
) -> Iterator[DigestEntry]:
    """Yield the failures after ``first_order`` that may still be open.

    A failure is closed if a later command that runs the same programs succeeds. It is also closed
    if a later command succeeds that begins with the same words and checks, builds or runs
    something. If a command was run several times, only its last run is considered, even if the path
    of the program differs. The failure of a server tool is closed if the tool succeeds later.
    """
    last_commands: dict[tuple[tuple[str, ...], ...], ShellCommand] = {}
    for command in commands:
        # A run that the user stopped says nothing about an earlier failure of the command.
        if command.program and command.run.status != INTERRUPTED_EXIT_STATUS:
            last_commands[_make_comparison_key_without_paths(command)] = command
    successful_commands = [command for command in commands if command.may_have_succeeded]
    for command in sorted(
        last_commands.values(), key=lambda command: command.run.position.order, reverse=True
    ):
        failure = _describe_failure(command)
        if (
            not failure
            or command.run.position.order <= first_order
            or not is_worth_repeating(command)
        ):
            continue
        if not is_check(command) and not command.program.startswith(
            _STATE_CHANGING_PROGRAM_PREFIXES
        ):
            continue  # The failure of a command that only reads is not an open error.
        if moves_to_temporary_folder(command):
            continue  # The failure of an experiment outside the project is not an open error.
        if not _is_resolved(command, successful_commands):
            notes = [
                _describe_passed_parts(command, successful_commands),
                _describe_later_edits(command, edited_files),
            ]
            yield make_entry(
                f"{_quote_failed_command(command)} {failure}",
                command.run.position,
                ", ".join(filter(None, notes)),
            )
    for tool, error in facts.tool_errors.items():
        if error.position.order > first_order:
            message = redact_and_remember_secrets(error.text[:MAX_TOOL_ERROR_CHARACTERS])
            shown_message = cut_line(message, MAX_OUTPUT_LINE_CHARACTERS)
            yield make_entry(f"{tool}: {shown_message}", error.position)


def _describe_passed_parts(
    failed_command: ShellCommand, successful_commands: Sequence[ShellCommand]
) -> str:
    """Return a note on the tests and linters in a failed command chain that passed later, or ``""``."""
    suspects = _list_possibly_failed_parts(failed_command)
    for command in reversed(successful_commands):
        if command.run.position.order <= failed_command.run.position.order:
            break
        passed_parts = [part for part in command.parts if part in suspects]
        if passed_parts:
            text = " && ".join(shlex.join(part.words) for part in passed_parts)
            shown_text = cut_line(
                redact_and_remember_secrets(text), MAX_QUOTED_COMMAND_PARTS_CHARACTERS
            )
            return f"the part `{shown_text}` passed later, at :{command.run.result_position.record_number}"
    return ""


def _make_comparison_key_without_paths(command: ShellCommand) -> tuple[tuple[str, ...], ...]:
    """Return a key of a command that ignores the folders of its programs.

    For example, ``/usr/bin/git log`` and ``git log`` have the same key.
    """
    key = []
    for words, _ in command.parts:
        if words and words[0] != "cd":
            key.append((words[0].rpartition("/")[2], *words[1:]))
    return tuple(key)


def _is_resolved(failed_command: ShellCommand, successful_commands: Sequence[ShellCommand]) -> bool:
    """Check whether later successful commands prove that a failure is fixed.

    In a failed chain, any test or linter may have failed, so each of them must have passed later.
    However, if the output shows that the tests ran, the linters that come before the tests have
    passed already.
    """
    later_commands = [
        command
        for command in successful_commands
        if command.run.position.order >= failed_command.run.position.order
    ]
    if was_worked_around(failed_command, later_commands):
        return True
    own_checks = _list_project_checks(failed_command.parts)
    for command in later_commands:
        if any(check in command.run.command for check in own_checks):
            return True
    suspects = _list_possibly_failed_parts(failed_command)
    if len(suspects) > 1:
        unproved = [_list_programs_whose_success_shows_fix((part,)) for part in suspects]
    else:
        unproved = [_list_programs_whose_success_shows_fix(failed_command.parts)]
    for command in later_commands:
        programs = _list_programs(command.parts)
        tools = {program.split()[0] for program in programs}
        unproved = [
            proofs
            for proofs in unproved
            if proofs.programs.isdisjoint(programs) and proofs.tool_names.isdisjoint(tools)
        ]
        if not unproved:
            return True
    return False


def _list_possibly_failed_parts(failed_command: ShellCommand) -> list[SimpleCommand]:
    """Return the tests and linters in a failed chain that may have caused the failure.

    Builds are left out, because passing tests also prove that the build works. Formatters are left
    out, because their error messages name the formatter.
    """
    suspects: list[SimpleCommand] = []
    have_tests_run = _TEST_RESULT_PATTERN.search(failed_command.run.output) is not None
    for part in failed_command.parts:
        words = " ".join(part.words[:MAX_CHECK_WORDS])
        is_test = _TEST_WORD_PATTERN.search(words) is not None
        if is_test and have_tests_run:
            suspects.clear()
            have_tests_run = False
        if is_check_part(part) and (is_test or _LINT_WORD_PATTERN.search(words) is not None):
            suspects.append(part)
    return suspects


_TEST_WORD_PATTERN = compile_lazily(
    r"\b(?:tests?|bats|pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|spec)\b"
)
_LINT_WORD_PATTERN = compile_lazily(
    r"\b(?:lint|eslint|ruff|mypy|pyright|flake8|clippy|vet|golangci-lint|tsc|typecheck|check)\b"
)
_TEST_RESULT_PATTERN = compile_lazily(
    r"\b\d{1,6} (?:passed|failed|passing|failing)\b|\brunning \d{1,6} tests?\b|\btest result: |"
    r"^(?:not )?ok \d|^(?:--- (?:FAIL|PASS)|=== RUN|FAIL|PASS)\b",
    re.MULTILINE,
)
"""A line with a result that a test runner prints."""


class _ProgramAndToolNames(NamedTuple):
    """The programs and the tools (for example ``pytest``) whose success proves that a failure is fixed."""

    programs: frozenset[str]
    tool_names: frozenset[str]


def _list_programs_whose_success_shows_fix(
    simple_commands: tuple[SimpleCommand, ...],
) -> _ProgramAndToolNames:
    """Return the programs and tools whose success proves that these simple commands work.

    If one of the commands is a build, the result includes all programs that compile the same code.
    """
    programs = set(_list_programs(simple_commands))
    for program in programs & _COMPILING_COMMANDS_BY_BUILD.keys():
        programs |= _COMPILING_COMMANDS_BY_BUILD[program]
    tools = {program.split()[0] for program in programs} - _MULTIPURPOSE_TOOLS
    return _ProgramAndToolNames(frozenset(programs), frozenset(tools))


def _list_project_checks(simple_commands: Sequence[SimpleCommand]) -> list[str]:
    """Return the commands of this project's own checks, for example ``tools/check fast``.

    The caller also searches for these commands in other commands, for example in the argument of
    ``sh -c``.
    """
    checks = []
    for words, _ in simple_commands:
        if len(words) > 1 and "/" in words[0] and has_check_word(words[:2]):
            checks.append(" ".join(words[:2]))
    return checks


_CARGO_COMPILING_COMMANDS = frozenset(
    {f"cargo {verb}" for verb in ("check", "build", "clippy", "test", "nextest", "run", "bench")}
)
_GO_COMPILING_COMMANDS = frozenset({"go build", "go vet", "go test", "go run", "go install"})
_COMPILING_COMMANDS_BY_BUILD = {
    "cargo check": _CARGO_COMPILING_COMMANDS,
    "cargo build": _CARGO_COMPILING_COMMANDS,
    "go build": _GO_COMPILING_COMMANDS,
}
"""The commands that compile the same code as a build command, by the build command."""

_MULTIPURPOSE_TOOLS = frozenset({
    "git", "gh", "docker", "kubectl", "terraform", "cp", "mv", "rm", "mkdir", "timeout", "go", "cargo", "npm", "npx",
    "yarn", "pnpm", "bun", "deno", "uv", "poetry", "mise", "make", "just", "mvn", "gradle", "gradlew", "dotnet",
})  # fmt: skip
"""Tools that have unrelated subcommands, or that only start another program."""

_FILE_MOVING_PROGRAMS = frozenset({"cp", "mv", "rm", "mkdir"})
"""Programs that only copy, move, delete or create files and folders."""


@lru_cache(maxsize=shell.MAX_CACHED_COMMANDS)
def _list_programs(simple_commands: tuple[SimpleCommand, ...]) -> frozenset[str]:
    """Return the programs in ``simple_commands``. Programs that only move files are left out if there are others."""
    programs = {shell.find_program((simple_command,)) for simple_command in simple_commands} - {""}
    other_than_movers = {
        program for program in programs if program.split()[0] not in _FILE_MOVING_PROGRAMS
    }
    return frozenset(other_than_movers or programs)


def _quote_failed_command(command: ShellCommand) -> str:
    """Return a failed command in backticks.

    In a long command, "…" replaces the parts before the main program.
    """
    text = command.command_key
    mark = ""
    if len(text) > MAX_FAILED_COMMAND_CHARACTERS:
        text = _remove_text_before_program(command)
    if text != command.command_key:
        mark = "… "
    return f"`{mark}{cut_line(redact_and_remember_secrets(text), MAX_FAILED_COMMAND_CHARACTERS)}`"


def _remove_text_before_program(command: ShellCommand) -> str:
    """Return a command without the parts before its main program, such as ``cd`` or ``cat``."""
    for part in command.parts:
        if shell.find_program((part,)):
            return command.command_key[max(0, command.command_key.find(" ".join(part.words[:2]))) :]
    return command.command_key


def _describe_failure(command: ShellCommand) -> str:
    """Return how a command failed, quoted from its output, or ``""`` if no failure is known."""
    if command.run.status == INTERRUPTED_EXIT_STATUS:
        return ""
    if not command.run.has_failed:
        if command.error_line:
            status = "exit 0" if command.run.status == 0 else UNKNOWN_STATUS_NOTE
            return f"{status}, but: {cut_line(command.error_line, MAX_OUTPUT_LINE_CHARACTERS)}"
        return ""
    rows = [
        row.strip()
        for row in command.run.output.split("\n")
        if row.strip() and not row.startswith("Exit code")
    ]
    error_rows = list(dict.fromkeys(filter(_ERROR_WORD_PATTERN.search, rows)))[
        :MAX_QUOTED_ERROR_ROWS
    ]
    error_text = cut_line(
        " / ".join(error_rows) or (rows[-1] if rows else "no output"), MAX_QUOTED_ERROR_CHARACTERS
    )
    if command.run.status:
        return f"exit {command.run.status}: {error_text}"
    return f"failed: {error_text}"
