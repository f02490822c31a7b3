"""The work as entries: successful and failed shell commands, remaining errors, files, artefacts.

A command succeeded if its exit status reports success and its output contains no error message. In
a pipe, the status may be that of an output filter.
"""

from __future__ import annotations

import ntpath
import posixpath
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from resume_hooks.reading.digest import shell
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.commits import Commit
from resume_hooks.reading.digest.entries import DigestEntry, make_entry, redact_and_collect
from resume_hooks.reading.digest.facts import (
    EMPTY_ANSWERS,
    INTERRUPTED_STATUS,
    FileChange,
    RecordPlace,
    ShellRun,
)
from resume_hooks.reading.digest.file_states import NOT_COMMITTED, OPEN_STATES, FileEdit, FileStates
from resume_hooks.reading.digest.git_seen import find_run_folder
from resume_hooks.reading.digest.prose import cut_line
from resume_hooks.reading.digest.repository import RepositoryState
from resume_hooks.reading.digest.script_writes import find_files_written_by_scripts
from resume_hooks.reading.digest.sections import UNKNOWN_STATUS
from resume_hooks.reading.digest.shell import SimpleCommand
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.system.text import format_count, plain_line

# the maximum number of characters in a command that is worth running again
MAX_COMMAND_CHARACTERS = 320
MAX_COUNTED_RUNS = 5  # the minimum number of runs of a command that counts as frequent
# the weight of a word from the last request, and the maximum number of words that count
REQUEST_WORD_SCORE, MAX_REQUEST_WORDS = 4, 3
MAX_COMMANDS_OF_PROGRAM = 3  # the maximum number of commands of one program that are listed first
# the number of commands after a failed command that are searched for its replacement
MAX_COMMANDS_TO_REPLACEMENT = 12
MAX_ERROR_TURNS = 3  # the number of prompts for which an error may still be relevant
MAX_LINE_CHARACTERS = 160  # the maximum number of characters in a quoted line of output
# the maximum number of characters in a failed command, which precedes its output
MAX_FAILED_COMMAND_CHARACTERS = 120
# the maximum number of characters in a tool's error that are read
MAX_TOOL_ERROR_CHARACTERS = 1_000
MAX_ERROR_ROWS = 3  # the maximum number of lines in a failed command's output that are quoted
MAX_ERROR_CHARACTERS = 320  # the maximum number of characters in these lines
# the number of characters at each end of an output that are searched for an error message
SEARCHED_END_CHARACTERS = 800

_ERROR_WORD = compile_lazily(
    r"error|fail|fatal|panic|denied|not found|cannot|can't|exception|refused|unknown|invalid",
    re.IGNORECASE,
)
_ERROR_LINE = compile_lazily(
    r"\n[ \t]{0,8}(?:(?:\S{1,40}[:\]] )?(?:error|fatal|panic|unknown \w{1,40})\b[^\n]{0,3}[: ]|"
    r"(?:--- |test result: )?fail(?:ed)?\b|traceback|[^\n]{1,120}: command not found|(?:cannot|could not|unable to) |"
    r"\(eval\):|not ok \d|npm err!|make(?:\[\d\])?: \*\*\*|tests: +[1-9]\d{0,5} failed|[1-9]\d{0,5} failing\b|"
    r"={3,} [^\n]{0,40}\b[1-9]\d{0,5} (?:failed|errors?)\b|exit status [1-9]|build failed|"
    r"found [1-9]\d{0,5} errors?\b|aborting\b|none of the git remotes|gh: |http [45]\d\d\b|"
    r"={0,80} ?no tests (?:ran|found)\b|collected 0 items\b|"
    r"diff in \S{1,300}:\d|would reformat\b|\[warn\] code style issues)[^\n]*"
)
"""The pattern matches lower-case text after a line end, because ignoring case or anchoring at a
line start would double the search time."""


_FAILURE_LINE = compile_lazily(
    r"[^\n]{0,300}(?:no such file or directory|command not found|\bnot ok\b|panicked at|"
    r"\b[1-9]\d{0,5} (?:tests?(?:\(s\))? )?(?:failed|failures?|errors?)\b)[^\n]*",
    re.IGNORECASE,
)
"""A line of a failure in the output of a command whose exit status is unknown."""


class ShellCommand(NamedTuple):
    """A run with its simple commands, its ``key`` and ``program``.

    ``complaint`` is an error message in the run's output. ``has_worked`` means that the run certainly
    succeeded.
    """

    run: ShellRun
    parts: tuple[SimpleCommand, ...]
    key: str
    program: str
    complaint: str
    has_worked: bool

    @property
    def may_have_worked(self) -> bool:
        """Whether it worked, or ended without a complaint and without a known exit status."""
        run = self.run
        is_unknown = run.status is None and not run.failed and not run.is_background
        return self.has_worked or (is_unknown and not self.complaint)


def list_commands(facts: LineageFacts) -> list[ShellCommand]:
    """Return every command of a lineage, oldest first."""
    commands = []
    for run in facts.runs:
        parts = shell.parse_simple_commands(run.command)
        program = shell.find_program(parts)
        core = shell.make_command_key(run.command)
        complaint = _find_complaint(run) if program else ""
        has_worked = not complaint and _has_succeeded(run)
        commands.append(ShellCommand(run, parts, core, program, complaint, has_worked))
    return commands


def _has_succeeded(run: ShellRun) -> bool:
    """Check whether a run succeeded and, if it is a search, found something."""
    if run.status != 0 or run.failed:
        return False
    output = run.output.strip()
    if output in _NO_OUTPUT:
        return _QUERY_COMMAND.match(run.command) is None
    return output not in EMPTY_ANSWERS and _NO_RESULT.match(output) is None


def _find_other_folder(command: ShellCommand, home: str) -> str:
    """Return a command's folder relative to ``home``, or ``""`` if it is ``home`` or the command has its own ``cd``."""
    folder = command.run.folder
    if not folder or not home or folder == home or _LEADING_CD.match(command.run.command):
        return ""
    if folder.startswith(f"{home}/"):
        return posixpath.relpath(folder, home)
    return folder


_LEADING_CD = compile_lazily(r"\s*cd\s")


_COMMAND_WORD = compile_lazily(r"[a-z][a-z\d_]{2,}|pr\b")


class CommandList(NamedTuple):
    """Successful commands: commands that check, build or start something, and the ``others``."""

    checks: tuple[DigestEntry, ...]
    others: tuple[DigestEntry, ...]


def list_working_commands(
    commands: Sequence[ShellCommand],
    folder: str,
    removals: Sequence[tuple[str, int]],
    request_words: Collection[str] = (),
) -> CommandList:
    """Return commands that are worth running again, as they were typed in the last successful run.

    Commands that contain ``request_words`` come first. The others are ordered by
    how often and how recently they ran, and only a few commands of one program come before the
    rest. Commands are left out if they only inspect or show help, contain a document or a message,
    or failed. ``removals`` are removed folders, each with the order of the command that removed it.
    """
    groups: dict[str, list[ShellCommand]] = {}
    for command in _with_checks_of_probes(commands):
        if command.program:
            groups.setdefault(command.key, []).append(command)
    last_order = commands[-1].run.place.order or 1 if commands else 1
    scored_runs = []
    for runs in groups.values():
        good_run = next((command for command in reversed(runs) if command.may_have_worked), None)
        if (
            good_run is not None
            and _is_worth_repeating(good_run)
            and not _has_lost_folder(good_run, removals)
        ):
            if _uses_removed_folder(good_run, commands, removals):
                continue
            score = (
                min(len(runs), MAX_COUNTED_RUNS)
                + MAX_COUNTED_RUNS * runs[-1].run.place.order / last_order
            )
            score += REQUEST_WORD_SCORE * _count_request_words(good_run, request_words)
            scored_runs.append(
                (
                    -score,
                    -good_run.run.place.order,
                    good_run,
                    _format_runs_note(runs, good_run, _find_other_folder(good_run, folder)),
                )
            )
    program_counts: Counter[str] = Counter()
    first_rows: list[tuple[ShellCommand, str]] = []
    other_rows: list[tuple[ShellCommand, str]] = []
    for *_, command, note in sorted(scored_runs, key=lambda entry: entry[:2]):
        program_counts[command.program] += 1
        (
            first_rows if program_counts[command.program] <= MAX_COMMANDS_OF_PROGRAM else other_rows
        ).append((command, note))
    checks: list[DigestEntry] = []
    others: list[DigestEntry] = []
    known_parts: set[tuple[str, ...]] = set()
    for command, note in (*first_rows, *other_rows):
        parts = {part.words for part in command.parts if shell.find_program((part,))}
        if parts <= known_parts:
            continue  # a combination of commands that are already listed
        known_parts |= parts
        command_text = command.run.command
        shown_command = (
            redact_and_collect(command_text) if "\n" in command_text else command_text
        )  # an escape sequence before a secret would hide the secret
        entry = make_entry(
            shell.make_runnable_command(shown_command, folder),
            command.run.place,
            note,
            MAX_COMMAND_CHARACTERS,
        )
        if _is_check(command) and not _is_push(command):
            checks.append(entry)
        else:
            others.append(entry)
    return CommandList(tuple(checks), tuple(others))


def _with_checks_of_probes(commands: Sequence[ShellCommand]) -> Iterator[ShellCommand]:
    """Yield the commands and, after each that inspects several things at once, the checks in it as own commands."""
    for command in commands:
        yield command
        typed = command.run.command
        folder = find_run_folder(command.run, command.parts)
        is_probe = _INSPECTION.search(typed) is not None and _LOOP.search(typed) is None
        if not is_probe or not command.may_have_worked or not folder:
            continue
        if TEMPORARY_PATH.search(f"{folder}/") or _has_complaint(command.run.output):
            continue
        for part in command.parts:
            program = shell.find_program((part,))
            is_plain = not any(_EXPANDED.search(word) for word in part.words)
            if (
                program
                and is_plain
                and not program.startswith(_REMOTE_PROGRAMS)
                and has_check_word(part.words)
            ):
                text = shlex.join(part.words)
                run = command.run._replace(command=text, folder=folder)
                yield command._replace(run=run, parts=(part,), key=text, program=program)


_LOOP = compile_lazily(
    r"\b(?:for|while|until|case|function)\s|\(\)\s*\{|<<|\|\||(?:\A|[\n;&(])\s*!\s"
)
"""Signs of a script whose parts do not work alone, or may fail."""

_EXPANDED = compile_lazily(r"[*?$`{}~\n]|\A(?:/private)?/tmp/")
"""Signs of a word that the shell expands, or of a temporary file."""


def _has_complaint(output: str) -> bool:
    """Check whether a line anywhere in an output reports a failure."""
    return _ERROR_LINE.search(f"\n{output.lower()}") is not None


def _count_request_words(command: ShellCommand, request_words: Collection[str]) -> int:
    """Return how many of a command's words are in the last request. At most a few count."""
    words: set[str] = set()
    for part in command.parts:
        if shell.find_program((part,)):
            words.update(_COMMAND_WORD.findall(" ".join(part.words).lower()))
    return min(MAX_REQUEST_WORDS, len(words.intersection(request_words)))


def _has_lost_folder(command: ShellCommand, removals: Sequence[tuple[str, int]]) -> bool:
    """Check whether the folder of a command is temporary or was later removed."""
    if _moves_to_temporary_folder(command):
        return True
    folder = find_run_folder(command.run, command.parts)
    later_removals = [
        removed_folder for removed_folder, order in removals if command.run.place.order < order
    ]
    return bool(folder) and any(
        f"{folder}/".startswith(f"{removed_folder}/") for removed_folder in later_removals
    )


def _moves_to_temporary_folder(command: ShellCommand) -> bool:
    """Check whether a command changes to a temporary folder."""
    folder = find_run_folder(command.run, command.parts)
    return folder != command.run.folder and TEMPORARY_PATH.search(f"{folder}/") is not None


def _uses_removed_folder(
    command: ShellCommand, commands: Sequence[ShellCommand], removals: Sequence[tuple[str, int]]
) -> bool:
    """Check whether a command names a folder that was removed after it, and that nothing named since."""
    run_order = command.run.place.order
    removed_later: list[tuple[str, int]] = [
        (folder, order)
        for folder, order in removals
        if order > run_order and _mentions_folder(command, folder)
    ]
    for folder, order in removed_later:
        if not any(
            _mentions_folder(other, folder) for other in commands if _has_worked_after(other, order)
        ):
            return True
    return False


def _has_worked_after(command: ShellCommand, order: int) -> bool:
    """Check whether a command that does more than look or remove succeeded after a record."""
    is_work = bool(command.program) and command.program.split()[0] != "rm"
    return is_work and command.has_worked and command.run.place.order > order


def _mentions_folder(command: ShellCommand, folder: str) -> bool:
    """Check whether a command has a path in a folder, or the folder's name, as a word."""
    name = posixpath.basename(folder)
    is_distinct = len(name) >= MIN_DISTINCT_NAME_CHARACTERS and ("-" in name or "_" in name)
    if name not in command.run.command:
        return False
    base = find_run_folder(command.run, command.parts)
    for part in command.parts:
        for word in part.words[1:]:
            path = posixpath.normpath(posixpath.join(base, word))
            is_inside = "/" in word and f"{path}/".startswith(f"{folder}/")
            if is_inside or (is_distinct and word == name):
                return True
    return False


def _is_check(command: ShellCommand) -> bool:
    """Check whether a command checks, builds, starts or publishes something, by the words of its program."""
    return any(_is_check_part(part) for part in command.parts)


def _is_check_part(part: SimpleCommand) -> bool:
    """Check whether a simple command checks, builds, starts or publishes something."""
    program = shell.find_program((part,))
    return bool(program and not program.startswith(_REMOTE_PROGRAMS) and has_check_word(part.words))


def find_last_passed_check(commands: Sequence[ShellCommand]) -> RecordPlace | None:
    """Return the result of the last command that checks something and that may have succeeded."""
    for command in reversed(commands):
        if command.may_have_worked and _is_check(command):
            return command.run.result_place
    return None


def describe_last_failure(text: str, commands: Sequence[ShellCommand]) -> str:
    """Return a note if the last run of a command failed or was stopped, or ``""``. More arguments do not matter.

    The failure of a chain counts if no other command in it may have failed.
    """
    parsed = shell.parse_simple_commands(text)
    words = parsed[0].words if parsed else ()
    for command in reversed(commands):
        runs = [part for part in command.parts if words and part.words[: len(words)] == words]
        if not runs:
            continue
        if command.run.status == INTERRUPTED_STATUS:
            return f"its last run was stopped, :{command.run.place.number}"
        working_parts = [part for part in command.parts if shell.find_program((part,))]
        if working_parts != runs and _list_suspects(command) != runs:
            return ""
        if command.run.failed:
            return f"its last run failed, :{command.run.place.number}"
        if command.complaint:
            complaint = cut_line(command.complaint, MAX_LINE_CHARACTERS // 2)
            return f"its last run, :{command.run.place.number}, printed: {complaint}"
        return ""
    return ""


def _is_push(command: ShellCommand) -> bool:
    """Check whether a command pushes. A push makes the command obsolete, whatever else the command checked."""
    git_calls = [part.words for part in command.parts if part.words[:1] == ("git",)]
    return any("push" in shell.list_git_words(words) for words in git_calls)


def has_check_word(words: Sequence[str]) -> bool:
    """Check whether a simple command checks or builds something, and does not only show a version or a list."""
    if _QUERY_WORDS.intersection(words[1:MAX_QUERY_WORDS]) or words[-1] in _VERSION_OPTIONS:
        return False
    for word in words[:MAX_CHECK_WORDS]:
        is_operand = word.startswith("-") or "://" in word or " " in word
        if not is_operand and _CHECK_WORD.search(word.rpartition("/")[2]):
            return True
    return False


_REMOTE_PROGRAMS = ("gh ", "glab ", "curl", "wget", "git ")
"""Programs that query runs on a server, or whose branches have names of checks."""

MAX_CHECK_WORDS = 4  # the number of words at the start of a simple command that show its purpose
# the number of words at the start that are searched for a sign that the command only queries
# something
MAX_QUERY_WORDS = 3
_QUERY_WORDS = frozenset(
    {"which", "where", "info", "list", "ls", "search", "version", "outdated", "why"}
)
_VERSION_OPTIONS = frozenset({"--version", "-V", "--help"})
_CHECK_WORD = compile_lazily(
    r"\b(?:tests?|bats|pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|spec|lint|eslint|ruff|mypy|pyright|flake8|black|"
    r"prettier|clippy|vet|golangci-lint|gofmt|fmt|format|tsc|typecheck|check|build|compile|make|cmake|ninja|gradlew?|"
    r"mvn|sbt|xcodebuild|run|start|serve|dev|up|deploy|publish|release|install|sync|migrate|generate|bench|coverage|ci)\b"
)
"""Words of commands that check, build, start or publish something."""

_ONE_TIME_COMMAND = compile_lazily(
    r"<<|--help\b|\s-h\Z|\bgit\s+(?:-[Cc]\s+\S+\s+|-\S+\s+)*(?:commit|add|checkout|switch|stash|reset|rm|mv|tag|cherry-pick|rebase|merge|"
    r"apply|am|restore|clean|clone|worktree)\b|\A\W*find\s|\bgh\s+(?:pr\s+(?:create|comment|edit|review|merge)|issue\s+(?:create|comment|edit))|"
    r"\bsed\s+-i|\A\W*(?:rm|mv|cp|mkdir|touch|chmod|chown|ln|kill|pkill|sleep|touch|open|code|tee)\b|"
    r"\b(?:python[\d.]*|node|ruby|bash|sh)\s+-[ce]\b|\bperl\s+-\w*[ei]|\$\(cat\b|\bscratchpad\b|\.specify/scripts/|"
    r"\bgh\s+(?:(?:pr|issue|release)\s+(?:close|ready|reopen|delete)|run\s+(?:watch|rerun|cancel)|"
    r"api\b[^|;&]*(?:\s-X\s*P|--method\s+P|\smutation\b|=mutation\b|'mutation\b))|"
    r"\s--(?:fix|write|unsafe)\b|\bgofmt\s+-\w*w|\b(?:npx|bunx|npm|pnpm|yarn|bun)\s+(?:--?\S+\s+)*(?:init|create)\b|\bcreate-[\w-]+@|"
    r"\b(?:cargo|uv|poetry|terraform|go\s+mod|pipx?|rails|flutter|dotnet)\s+(?:init|new)\b|"
    r"\A\s*(?:read\s|\w+=\$\()|\b(?:brew|apt(?:-get)?|cargo|gem|go)\s+install\s+(?![-.])\S",
)
"""Commands that are not worth repeating: documents, messages, help, file moves, trials, finished
actions."""


_INSPECTION = compile_lazily(
    r"\A\s*(?:which|type|command\s+-v)\s|\necho\b|\becho\s+[\"'](?:[-=*#]{2,}|\w+[_ ]OK\b)|\A\s*(?:for|while|until)\s|"
    r"\|\s*(?:python3?|perl|ruby|node)\b|\n.*\n"
)
"""Commands that inspect several things at once: with headings between them, in a loop, or on
several lines."""


def _is_worth_repeating(command: ShellCommand) -> bool:
    command_text = command.run.command
    if (
        len(command_text) > MAX_COMMAND_CHARACTERS
        or _ONE_TIME_COMMAND.search(command_text)
        or _INSPECTION.search(command_text)
    ):
        return False
    written_paths = [path for path, _ in shell.find_changed_paths(command.parts)]
    return not any(TEMPORARY_PATH.search(path) for path in written_paths)


def _format_runs_note(runs: Sequence[ShellCommand], good_run: ShellCommand, folder: str) -> str:
    notes = [f"in {folder}"] if folder else []
    notes += [f"{len(runs)} runs"] if len(runs) > 1 else []
    if good_run.run.is_background:
        notes.append("in the background")
    if not good_run.has_worked:
        notes.append(UNKNOWN_STATUS)
    last_run = runs[-1]
    label = "its last run"
    if last_run is not good_run and last_run.run.place.session_id == good_run.run.place.session_id:
        label = f"its last run, :{last_run.run.place.number},"
    if last_run.run.failed:
        notes.append(
            f"{label} failed{f', exit {last_run.run.status}' if last_run.run.status else ''}"
        )
    elif last_run.complaint and last_run is not good_run:
        notes.append(f"{label} printed: {cut_line(last_run.complaint, MAX_LINE_CHARACTERS // 2)}")
    return ", ".join(notes)


def list_replaced_commands(commands: Sequence[ShellCommand]) -> Iterator[DigestEntry]:
    """Yield commands that never succeeded, each with the next successful command of the same program.

    The latest come first, and each command is listed once.
    """
    known_keys = {command.key for command in commands if command.may_have_worked}
    for index in range(len(commands) - 1, -1, -1):
        failed = commands[index]
        if failed.key in known_keys:
            continue
        failure = _describe_failure(failed)
        if not failure:
            continue
        known_keys.add(failed.key)
        if _INSPECTION.search(failed.run.command) is not None or _moves_to_temporary_folder(failed):
            continue
        if not _is_check(failed) and not failed.program.startswith(_CHANGING_PROGRAMS):
            continue  # a failed inspection is useless
        later_good_commands = [other for other in commands[index + 1 :] if other.may_have_worked]
        if _is_check(failed) and _is_resolved(failed, later_good_commands):
            continue  # an edit fixed it
        replacement = _find_replacement(failed, commands[index + 1 :])
        if replacement is None and _ONE_TIME_COMMAND.search(failed.run.command):
            continue
        text = f"{_quote_failed_command(failed)} {failure}"
        if replacement and replacement.key != failed.key:
            shown_key = cut_line(
                redact_and_collect(_text_from_program(replacement)), MAX_LINE_CHARACTERS
            )
            verb = "worked" if replacement.has_worked else "ran"
            text = f"{text}; then `{shown_key}` {verb}"
        yield make_entry(text, failed.run.place, max_characters=MAX_COMMAND_CHARACTERS)


def _find_replacement(
    failed: ShellCommand, later_commands: Sequence[ShellCommand]
) -> ShellCommand | None:
    """Return the next successful command that tried the same as a failed one in another way."""
    for other in later_commands[: MAX_COMMANDS_TO_REPLACEMENT - 1]:
        has_ended_well = other.has_worked or (failed.run.status is None and other.may_have_worked)
        if has_ended_well and _is_similar(failed, other):
            return other
    if _ONE_TIME_COMMAND.search(failed.run.command):
        return None
    return _find_other_path(failed, later_commands)


MIN_DISTINCT_NAME_CHARACTERS = 8  # characters of a folder's name that is not a common word
# the minimum fraction of common words if one command was tried instead of the other
MIN_COMMON_FRACTION = 0.6
_CHANGING_PROGRAMS = ("git ", "gh ", "docker", "kubectl", "terraform", "psql", "ssh", "scp")
"""Programs whose failure is relevant, although they check nothing."""


def _find_other_path(
    failed: ShellCommand, later_commands: Sequence[ShellCommand]
) -> ShellCommand | None:
    """Return the next run of a command that names its program by another path, or None."""
    key = _key_without_paths(failed)
    for command in later_commands:
        if command.key != failed.key and _key_without_paths(command) == key:
            return command
    return None


def _is_similar(failed: ShellCommand, other: ShellCommand) -> bool:
    """Check whether a command tried the same in another way, with the same program and half of the words."""
    if not failed.program or other.program != failed.program:
        return False
    words = set(_text_from_program(failed).split())
    other_words = set(_text_from_program(other).split())
    return len(words & other_words) >= MIN_COMMON_FRACTION * max(len(words), len(other_words))


def list_open_errors(
    facts: LineageFacts, commands: Sequence[ShellCommand], first_order: int
) -> Iterator[DigestEntry]:
    """Yield failures after ``first_order`` that may remain, because no success of their kind followed.

    A failure is resolved by later commands of the same programs, or by later commands that start
    with the same words and check, build or run something. It is replaced by a later run of the same
    command, even if that run names the program by another path. A server tool's failure is resolved
    by the tool's next success.
    """
    last_commands: dict[tuple[tuple[str, ...], ...], ShellCommand] = {}
    for command in commands:
        # a command that the user stopped says nothing, and leaves an earlier failure open
        if command.program and command.run.status != INTERRUPTED_STATUS:
            last_commands[_key_without_paths(command)] = command
    good_commands = [command for command in commands if command.may_have_worked]
    for command in sorted(
        last_commands.values(), key=lambda command: command.run.place.order, reverse=True
    ):
        failure = _describe_failure(command)
        if (
            not failure
            or command.run.place.order <= first_order
            or not _is_worth_repeating(command)
        ):
            continue
        if not _is_check(command) and not command.program.startswith(_CHANGING_PROGRAMS):
            continue  # a failed inspection is not a remaining error
        if not _is_resolved(command, good_commands):
            yield make_entry(
                f"{_quote_failed_command(command)} {failure}",
                command.run.place,
            )
    for tool, error in facts.tool_errors.items():
        if error.place.order > first_order:
            yield make_entry(
                f"{tool}: {cut_line(redact_and_collect(error.text[:MAX_TOOL_ERROR_CHARACTERS]), MAX_LINE_CHARACTERS)}",
                error.place,
            )


def _key_without_paths(command: ShellCommand) -> tuple[tuple[str, ...], ...]:
    """Return a key that is equal for commands that name the same programs by different paths."""
    key = []
    for words, _ in command.parts:
        if words and words[0] != "cd":
            key.append((words[0].rpartition("/")[2], *words[1:]))
    return tuple(key)


def _is_resolved(failed: ShellCommand, good_commands: Sequence[ShellCommand]) -> bool:
    """Check whether successful commands prove that an earlier failure is fixed.

    Any test or linter in a chain may be the part that failed, so each of them must have succeeded
    since, except linters before tests that ran.
    """
    later_commands = [
        command for command in good_commands if command.run.place.order >= failed.run.place.order
    ]
    if any(_runs_same_check(failed.parts, command.run.command) for command in later_commands):
        return True
    later_programs: set[str] = set()
    for command in later_commands:
        later_programs |= _list_programs(command.parts)
    suspects = _list_suspects(failed)
    if len(suspects) > 1:
        return all(_is_program_covered((part,), later_programs) for part in suspects)
    return _is_program_covered(failed.parts, later_programs)


def _list_suspects(failed: ShellCommand) -> list[SimpleCommand]:
    """Return the tests and linters of a failed chain that may have failed.

    A build is not among them, because tests prove it, too, and neither is a formatter, whose
    complaint names it.
    """
    suspects: list[SimpleCommand] = []
    have_tests_run = _TEST_RESULT.search(failed.run.output) is not None
    for part in failed.parts:
        words = " ".join(part.words[:MAX_CHECK_WORDS])
        is_test = _TEST_WORD.search(words) is not None
        if is_test and have_tests_run:
            suspects.clear()
            have_tests_run = False
        if _is_check_part(part) and (is_test or _LINT_WORD.search(words) is not None):
            suspects.append(part)
    return suspects


_TEST_WORD = compile_lazily(
    r"\b(?:tests?|bats|pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|spec)\b"
)
_LINT_WORD = compile_lazily(
    r"\b(?:lint|eslint|ruff|mypy|pyright|flake8|clippy|vet|golangci-lint|tsc|typecheck|check)\b"
)
_TEST_RESULT = compile_lazily(
    r"\b\d{1,6} (?:passed|failed|passing|failing)\b|\brunning \d{1,6} tests?\b|\btest result: |"
    r"^(?:not )?ok \d|^(?:--- (?:FAIL|PASS)|=== RUN|FAIL|PASS)\b",
    re.MULTILINE,
)
"""A row that tests print."""


def _is_program_covered(parts: tuple[SimpleCommand, ...], later_programs: Collection[str]) -> bool:
    """Check whether one of the programs of some simple commands, or of their tools, is among later programs."""
    programs = _list_programs(parts)
    tools = {program.split()[0] for program in programs} - _SHARED_TOOLS
    later_tools = {program.split()[0] for program in later_programs}
    return not programs.isdisjoint(later_programs) or not tools.isdisjoint(later_tools)


def _runs_same_check(parts: Sequence[SimpleCommand], command: str) -> bool:
    """Check whether a command runs one of the checks in ``parts``, for example in a script for ``sh -c``."""
    for words, _ in parts:
        is_own_check = len(words) > 1 and "/" in words[0] and has_check_word(words[:2])
        if is_own_check and " ".join(words[:2]) in command:
            return True
    return False


_SHARED_TOOLS = frozenset({
    "git", "gh", "docker", "kubectl", "terraform", "cp", "mv", "rm", "mkdir", "timeout", "go", "cargo", "npm", "npx",
    "yarn", "pnpm", "bun", "deno", "uv", "poetry", "mise", "make", "just", "mvn", "gradle", "gradlew", "dotnet",
})  # fmt: skip
"""Programs whose subcommands have nothing in common, or that only start another program."""

_FILE_MOVERS = frozenset({"cp", "mv", "rm", "mkdir"})
"""Programs that only move files."""


@lru_cache(maxsize=shell.MAX_CACHED_COMMANDS)
def _list_programs(parts: tuple[SimpleCommand, ...]) -> frozenset[str]:
    """Return the programs of simple commands, without programs that only move files."""
    programs = {shell.find_program((part,)) for part in parts} - {""}
    other_than_movers = {program for program in programs if program.split()[0] not in _FILE_MOVERS}
    return frozenset(other_than_movers or programs)


def _quote_failed_command(command: ShellCommand) -> str:
    """Return a failed command in backticks. A long one starts with its program instead of what it reads before."""
    text = command.key
    mark = ""
    if len(text) > MAX_FAILED_COMMAND_CHARACTERS:
        text = _text_from_program(command)
    if text != command.key:
        mark = "… "
    return f"`{mark}{cut_line(redact_and_collect(text), MAX_FAILED_COMMAND_CHARACTERS)}`"


def _text_from_program(command: ShellCommand) -> str:
    """Return a command without the parts before its program, which only read."""
    for part in command.parts:
        if shell.find_program((part,)):
            return command.key[max(0, command.key.find(" ".join(part.words[:2]))) :]
    return command.key


def _describe_failure(command: ShellCommand) -> str:
    """Return how a command failed, in the words of its output, or ``""`` if it is not known to have failed."""
    if command.run.status == INTERRUPTED_STATUS:
        return ""
    if not command.run.failed:
        if command.complaint:
            status = "exit 0" if command.run.status == 0 else UNKNOWN_STATUS
            return f"{status}, but: {cut_line(command.complaint, MAX_LINE_CHARACTERS)}"
        return ""
    rows = [
        row.strip()
        for row in command.run.output.split("\n")
        if row.strip() and not row.startswith("Exit code")
    ]
    error_rows = list(dict.fromkeys(filter(_ERROR_WORD.search, rows)))[:MAX_ERROR_ROWS]
    error_text = cut_line(
        " / ".join(error_rows) or (rows[-1] if rows else "no output"), MAX_ERROR_CHARACTERS
    )
    if command.run.status:
        return f"exit {command.run.status}: {error_text}"
    return f"failed: {error_text}"


def _find_complaint(run: ShellRun) -> str:
    """Return the line that reports a failure in the output of a successful command. A pipe may hide the exit status."""
    if run.failed:
        return ""
    for output_end in (
        run.output[:SEARCHED_END_CHARACTERS],
        run.output[max(SEARCHED_END_CHARACTERS, len(run.output) - SEARCHED_END_CHARACTERS) :],
    ):
        if output_end and (match := _ERROR_LINE.search(f"\n{output_end.lower()}")):
            return output_end[match.start() : match.end() - 1].strip()
    if run.status is None and not run.is_background and (match := _FAILURE_LINE.search(run.output)):
        return match[0].strip()
    return ""


# the maximum number of characters in a path; for a longer path only the end is shown
MAX_PATH_CHARACTERS = 300
LISTED_NOTE = "listed by git"  # the note on a file that only git lists as changed
# the note on a file that only a sub-agent's report names as changed
REPORTED_NOTE = "as a sub-agent reported"
# the note on a file if the command that wrote it failed at an unknown point
UNSURE_NOTE = "its command failed"

REMOVED_NOTE = "removed"
MOVED_NOTE = "moved, to where a variable says"

MAX_WRITTEN_FILES = 60  # the maximum number of files that one command may name as changed
MAX_LISTED_FILES = 8  # the maximum number of listed files that only git names
MAX_LISTINGS = 300  # the maximum number of files that git may list after one command

TEMPORARY_PATH = compile_lazily(
    r"(?:\A|/)(?:__pycache__|node_modules|\.pytest_cache|scratchpad|\.codex)/|\A/(?:private/)?(?:tmp|var/tmp|var/folders)/|"
    r"\.(?:pyc|tmp|swp)\Z|\A/dev/|\A['\"`(]|[=<>|*?]"
)
"""Files that no longer exist or are useless when the work continues."""


def is_temporary(path: str, checkouts: Sequence[str] = ()) -> bool:
    """Check whether a file is temporary. A checkout in a temporary folder has files like any other."""
    for folder in checkouts:
        if path.startswith(f"{folder}/"):
            path = path[len(folder) + 1 :]
            break
    return TEMPORARY_PATH.search(path) is not None


_WINDOWS_PATH = compile_lazily(r"[A-Za-z]:[\\/]|\\\\")
_URL = compile_lazily(r"https://[^\s\"'<>)\]]{1,500}")
_ARTEFACT_LINK = compile_lazily(
    r"https://.*/(?:(?:pull|merge_requests|issues|runs)/\d+|releases/tag/[\w.-]+)"
)
_ARTEFACT_COMMAND = compile_lazily(
    r"\b(?:gh|glab|hub)\s+(?:pr|mr|issue|release)\s+(?:create|new)\b|\bgit\s+(?:-\S+\s+\S+\s+)*push\b"
)


_FORCED_REMOVAL = compile_lazily(r"\brm\s+-(?:[a-zA-Z]*[rR][a-zA-Z]*f|[a-zA-Z]*f[a-zA-Z]*[rR])")


_NO_OUTPUT = frozenset({"", "(Bash completed with no output)"})
"""An empty output, and the client's words for one."""

_NO_RESULT = compile_lazily(r"no [\w ]{1,60}\b(?:found|match)\b[^\n]*\Z", re.IGNORECASE)
_QUERY_COMMAND = compile_lazily(
    r"(?:rtk (?:proxy )?)?(?:(?:gh|glab) (?:(?:issue|pr|mr|run|release|repo|workflow|ci|label|cache) "
    r"(?:view|list|diff|status|checks)|search|api|auth|browse)\b|"
    r"(?:curl|wget|defuddle|https?|lynx|w3m)\b(?=.*https?://)"
    r"(?!.*https?://(?:localhost|127\.|0\.0\.0\.0|\[::1\]|[\w-]+\.local\b|\$)))"
)
"""Commands that only query a forge or fetch a page from another host: without output they found nothing."""


class FileTouch(NamedTuple):
    """A change of a file: its position, and a note on how certain the change is, or ``""``.

    ``is_removed`` means that the file is gone, as a successful command proves. ``is_new`` means that
    the file did not exist before.
    """

    place: RecordPlace
    doubt: str = ""
    is_removed: bool = False
    is_new: bool = False


class SessionPaths:
    """Paths relative to the home ``folder`` of a session, with git's present state of these paths."""

    def __init__(self, folder: str, git: RepositoryState) -> None:
        self.folder = folder
        self._git = git
        self._relative: dict[tuple[str, str], str] = {}

    def relative_path(self, path: str, folder: str = "") -> str:
        """Return a path relative to the home folder if it is in the home folder.

        A relative path is relative to ``folder`` or to the home folder.
        """
        relative_path = self._relative.get((path, folder))
        if relative_path is None:  # cached because a session names the same files many times
            relative_path = self._relative[path, folder] = self._find_relative(path, folder)
        return relative_path

    def _find_relative(self, path: str, folder: str) -> str:
        home_folder = self.folder
        path_module = (
            ntpath if _WINDOWS_PATH.match(home_folder) or _WINDOWS_PATH.match(path) else posixpath
        )
        full_path = (
            path
            if path.startswith("~")
            else path_module.normpath(path_module.join(home_folder, folder, path))
        )
        is_inside = home_folder and full_path.startswith(path_module.join(home_folder, ""))
        return str(full_path[len(path_module.join(home_folder, "")) :] if is_inside else full_path)

    def find_git_root(self, folder: str) -> str:
        """Return the root of the paths that git prints in ``folder``: the home folder if no other root is known."""
        known_root = self._git.root or self.folder
        if f"{folder}/".startswith(f"{known_root}/"):
            return known_root
        return folder

    def is_in_repository(self, path: str) -> bool:
        """Check whether git's present state of a relative path is known."""
        root = self._git.root
        return bool(root) and f"{posixpath.join(self.folder, path)}/".startswith(f"{root}/")

    def is_dirty(self, path: str) -> bool:
        """Check whether a relative path has uncommitted changes."""
        root, dirty = self._git.root, self._git.dirty_paths
        return bool(dirty) and posixpath.relpath(posixpath.join(self.folder, path), root) in dirty


def collect_touched_files(
    changes: Sequence[FileChange], commands: Sequence[ShellCommand], paths: SessionPaths
) -> dict[str, list[FileTouch]]:
    """Return the changed files: files that tools changed, that commands name, and that git's output lists."""
    touches_by_path: dict[str, list[FileTouch]] = {}
    for change in changes:
        doubt = REPORTED_NOTE if change.is_reported else ""
        touches_by_path.setdefault(paths.relative_path(change.path, change.folder), []).append(
            FileTouch(change.place, doubt, is_new=change.is_new)
        )
    for command in commands:
        doubt = UNSURE_NOTE if command.run.failed else ""
        for path, is_gone in islice(shell.find_changed_paths(command.parts), MAX_WRITTEN_FILES):
            name = paths.relative_path(path, command.run.folder)
            is_removed = is_gone and _proves_removal(command)
            touch = FileTouch(command.run.place, doubt, is_removed)
            touches_by_path.setdefault(name, []).append(touch)
            if is_removed:
                _mark_folder_removed(touches_by_path, name, touch.place.order)
        for path in islice(_find_script_files(command), MAX_WRITTEN_FILES):
            touches_by_path.setdefault(paths.relative_path(path), []).append(
                FileTouch(command.run.place, doubt)
            )
    _add_listed_files(touches_by_path, changes, commands, paths)
    return touches_by_path


def _find_script_files(command: ShellCommand) -> Iterator[str]:
    """Yield the paths that scripts in a command write, unless it works in several folders."""
    names = find_files_written_by_scripts(command.run.command)
    if not names:
        return
    folder = find_run_folder(command.run, command.parts)
    folder_changes = [
        part.words for part in command.parts if part.words[:1] in {("cd",), ("pushd",)}
    ]
    if folder and len(folder_changes) <= 1:
        for name in names:
            yield posixpath.join(folder, name)


def _proves_removal(command: ShellCommand) -> bool:
    """Check whether a command certainly removed the paths that it names."""
    if not command.has_worked:
        return False
    # the command does not fail if the folder is missing
    is_forced = _FORCED_REMOVAL.search(command.run.command) is not None
    return is_forced or shell.does_status_cover_all(command.run.command)


def _mark_folder_removed(
    touches_by_path: dict[str, list[FileTouch]], folder: str, order: int
) -> None:
    """Mark the files in a removed folder as gone, because the command names only the folder."""
    prefix = f"{folder.rstrip('/')}/"
    for path, touches in touches_by_path.items():
        if path.startswith(prefix):
            earlier_touches = [touch for touch in touches if touch.place.order < order]
            if earlier_touches:
                last_touch = max(earlier_touches, key=lambda touch: touch.place.order)
                touches.append(last_touch._replace(is_removed=True))


def _add_listed_files(
    touches_by_path: dict[str, list[FileTouch]],
    changes: Sequence[FileChange],
    commands: Sequence[ShellCommand],
    paths: SessionPaths,
) -> None:
    """Add the files that git printed as changed, without files that it listed before the session's first change."""
    # The first command that may have changed a file. Files that git listed before it were changed
    # earlier.
    working_orders = (
        c.run.place.order
        for c in commands
        if c.program and not c.program.startswith(("git ", "gh "))
    )
    first_change = min(
        (*(change.place.order for change in changes[:1]), *working_orders), default=0
    )
    listed_before: set[str] = set()
    for command in commands:
        # Each file once, in git's order, because the order of a set differs between processes.
        listed_paths = dict.fromkeys(islice(_list_git_files(command, paths), MAX_LISTINGS))
        if command.run.place.order < first_change:
            listed_before.update(listed_paths)
            continue
        for path in listed_paths:
            if path not in listed_before:
                touches_by_path.setdefault(path, []).append(
                    FileTouch(command.run.result_place, LISTED_NOTE)
                )


def _list_git_files(command: ShellCommand, paths: SessionPaths) -> Iterator[str]:
    if (
        "git" not in command.run.command
        or (target_folder := shell.find_start_folder(command.parts)) is None
    ):
        return
    folder = posixpath.join(command.run.folder, target_folder)
    git_listing = shell.parse_git_listing(command.parts, command.run.output)
    yield from (paths.relative_path(path, folder) for path in git_listing.relative_paths)
    yield from (
        paths.relative_path(path, paths.find_git_root(folder)) for path in git_listing.root_paths
    )


def find_missing_files(
    touches_by_path: Mapping[str, Sequence[FileTouch]],
    commands: Sequence[ShellCommand],
    paths: SessionPaths,
) -> set[str]:
    """Return the changed files that a later command did not find, by themselves or by a folder above them."""
    missing_paths: set[str] = set()
    for command in commands:
        if "No such file" not in command.run.output:
            continue
        target_folder = shell.find_start_folder(command.parts)
        for name in _MISSING_FILE.findall(f"\n{command.run.output}"):
            if target_folder is None and not name.startswith("/"):
                continue
            missing_path = paths.relative_path(
                name, posixpath.join(command.run.folder, target_folder or "")
            )
            for path, touches in touches_by_path.items():
                last_order = max(touch.place.order for touch in touches)
                if (
                    f"{path}/".startswith(f"{missing_path}/")
                    and last_order < command.run.place.order
                ):
                    missing_paths.add(path)
    return missing_paths


_MISSING_FILE = compile_lazily(
    r"\n(?:ls|cat|stat|sed|head|tail|wc): (?:cannot (?:access|open|stat) |can't read )?"
    r"['\"]?([^\n:'\"]{1,300})['\"]?(?: for reading)?: No such file or directory"
)


def list_edits(touches_by_path: Mapping[str, Sequence[FileTouch]]) -> list[FileEdit]:
    """Return the changes by tools and commands, without changes that only git's listings show."""
    edits: list[FileEdit] = []
    for path, touches in touches_by_path.items():
        for touch in touches:
            if touch.doubt in {"", REPORTED_NOTE}:
                edits.append(FileEdit(path, touch.place.order, touch.is_new, touch.is_removed))
    return edits


def find_listed_only(touches_by_path: Mapping[str, Sequence[FileTouch]]) -> list[str]:
    """Return the files that only git's listings show as changed."""
    paths: list[str] = []
    for path, touches in touches_by_path.items():
        if all(touch.doubt == LISTED_NOTE for touch in touches):
            paths.append(path)
    return paths


def list_changed_files(
    touches_by_path: Mapping[str, list[FileTouch]],
    paths: SessionPaths,
    states: FileStates,
    branch: str,
    removals: Sequence[tuple[str, int]],
    checkouts: Sequence[str] = (),
) -> Iterator[DigestEntry]:
    """Yield the changed files, each with its state at the session's end.

    Files come first if they are in the home folder, certain, uncommitted or recent. ``removals`` are
    removed folders, each with the order of the command that removed it. Files that only git names
    may have been changed by others: if there are many, those that the session did not commit are
    left out. Temporary files are left out, except in the session's ``checkouts``.
    """

    def sort_key(path: str) -> tuple[bool, bool, bool, int, str]:
        latest = max(touch.place.order for touch in touches_by_path[path])
        is_outside = path.startswith(("/", "~", "..")) or _WINDOWS_PATH.match(path) is not None
        is_unsure = all(touch.doubt for touch in touches_by_path[path])
        is_settled = _format_state_note(path, paths, states, branch) not in OPEN_STATES
        return is_outside, is_unsure, is_settled, -latest, path

    contents = _collect_folder_contents(touches_by_path)
    removed_folders = {
        path for path in contents if _find_last_touch(touches_by_path[path]).is_removed
    }
    removed_with_folder = {
        inner
        for path in removed_folders
        for inner in contents[path]
        if _find_last_touch(touches_by_path[inner]).is_removed
    }
    foreign_files = _find_foreign_files(touches_by_path, paths, states, branch)
    listed_only = set(find_listed_only(touches_by_path)) - foreign_files
    listed_count = 0
    for path in sorted(touches_by_path, key=sort_key):
        if is_temporary(path, checkouts) or path in removed_with_folder or path in foreign_files:
            continue
        if path in contents:  # a folder that a command changed in addition to its files
            if path in removed_folders:
                files = format_count(
                    sum(inner in removed_with_folder for inner in contents[path]), "file"
                )
                removal_note = _format_removal_note(path, states)
                place = str(_find_last_touch(touches_by_path[path]).place)
                yield DigestEntry(f"{_shorten_path(path)}/", place, f"{removal_note} with {files}")
            continue
        last_touch = _find_last_touch(touches_by_path[path])
        is_removed = last_touch.is_removed or path in states.removed_paths
        if states.was_reverted(path) and not is_removed:
            continue
        listed_count += path in listed_only
        if listed_count > MAX_LISTED_FILES:
            continue  # there may be hundreds of files
        if is_removed:
            state = _format_removal_note(path, states)
        else:
            state = _format_state_note(path, paths, states, branch)
        entry = _make_file_entry(path, last_touch, state, removals)
        if path in listed_only and listed_count == MAX_LISTED_FILES < len(listed_only):
            other_files = format_count(len(listed_only) - MAX_LISTED_FILES, "other")
            entry = entry._replace(note=f"{entry.note}, as are {other_files}")
        yield entry


def _make_file_entry(
    path: str, last_touch: FileTouch, state: str, removals: Sequence[tuple[str, int]]
) -> DigestEntry:
    """Return the row of a file. If the file's folder was removed, the path is relative to that folder."""
    notes = [last_touch.doubt, state]
    folder = _find_removed_folder(path, last_touch, removals)
    if folder:
        path = path[len(folder) + 1 :]
        notes.append(f"in {posixpath.basename(folder)}, a folder that was removed")
    return DigestEntry(_shorten_path(path), str(last_touch.place), ", ".join(filter(None, notes)))


def _find_foreign_files(
    touches_by_path: Mapping[str, list[FileTouch]],
    paths: SessionPaths,
    states: FileStates,
    branch: str,
) -> frozenset[str]:
    """Return the files that only git names as changed and the session did not commit, or none if there are few."""
    listed_only: list[str] = []
    for path in find_listed_only(touches_by_path):
        if _format_state_note(path, paths, states, branch) in {"", *OPEN_STATES}:
            listed_only.append(path)
    if len(listed_only) > MAX_LISTED_FILES:
        return frozenset(listed_only)
    return frozenset()


def _find_removed_folder(
    path: str, last_touch: FileTouch, removals: Sequence[tuple[str, int]]
) -> str:
    """Return the removed folder outside the home folder that contained a file, or ``""``."""
    for folder, order in removals:
        if path.startswith(f"{folder}/") and last_touch.place.order < order:
            return folder
    return ""


def _format_removal_note(path: str, states: FileStates) -> str:
    """Return the note on a path that no longer exists: a command removed or moved it."""
    new_path = states.new_paths.get(path)
    if new_path is None:
        return REMOVED_NOTE
    if not new_path:
        return MOVED_NOTE
    return f"moved to {_shorten_path(new_path)}"


def _format_state_note(path: str, paths: SessionPaths, states: FileStates, branch: str) -> str:
    """Return the state of a file according to git or, if git cannot run, to the session's own commands."""
    if paths.is_dirty(path):
        return NOT_COMMITTED
    note = states.describe_file(path, branch)
    if note in OPEN_STATES and paths.is_in_repository(path):
        return ""
    return note


def _find_last_touch(touches: Sequence[FileTouch]) -> FileTouch:
    """Return the last certain change of a file or, if there is none, the last change."""
    return max(
        reversed(_select_sure_touches(touches) or touches), key=lambda touch: touch.place.order
    )


def _select_sure_touches(touches: Sequence[FileTouch]) -> list[FileTouch]:
    return [touch for touch in touches if not touch.doubt]


def _collect_folder_contents(
    touches_by_path: Mapping[str, list[FileTouch]],
) -> dict[str, list[str]]:
    """Return the paths that are folders of other paths, each with the paths in the folder."""
    contents: dict[str, list[str]] = {}
    for path in touches_by_path:
        folder = posixpath.dirname(path)
        while folder not in {"", "/"}:
            if folder in touches_by_path:
                contents.setdefault(folder, []).append(path)
            folder = posixpath.dirname(folder)
    return contents


def list_marks(
    facts: LineageFacts, touches_by_path: Mapping[str, list[FileTouch]], paths: SessionPaths
) -> Iterator[DigestEntry]:
    """Yield the TODO comments that the session wrote into files and that still exist, the latest first."""
    for mark in facts.marks.list_comments():
        path = paths.relative_path(mark.path, mark.folder)
        if TEMPORARY_PATH.search(path) or _find_last_touch(touches_by_path[path]).is_removed:
            continue
        yield make_entry(f"{mark.text} ({_shorten_path(path)})", mark.place)


def list_steps(facts: LineageFacts, paths: SessionPaths) -> Iterator[DigestEntry]:
    """Yield the unchecked boxes of the plan that the session wrote last."""
    for step in facts.marks.list_open_steps():
        path = _shorten_path(paths.relative_path(step.path, step.folder))
        if TEMPORARY_PATH.search(path) is None:
            yield make_entry(step.text, step.place, f"no check in {path}")


def list_read_files(
    facts: LineageFacts, paths: SessionPaths, touches_by_path: dict[str, list[FileTouch]]
) -> Iterator[DigestEntry]:
    """Yield the files that were read but not changed, the latest first."""
    changed_ends = {_last_path_parts(name) for name in touches_by_path}
    for (path, folder), place in reversed(facts.read_files.items()):
        name = paths.relative_path(path, folder)
        if _last_path_parts(name) not in changed_ends and TEMPORARY_PATH.search(name) is None:
            yield DigestEntry(_shorten_path(name), str(place))


def _last_path_parts(path: str) -> str:
    """Return the last two components of a path, which are equal in another worktree."""
    return "/".join(path.split("/")[-2:])


def list_artefacts(facts: LineageFacts, commits: Sequence[Commit]) -> Iterator[DigestEntry]:
    """Yield existing commits, pull requests and the like, the latest first, then the links that the client recorded."""
    rows: list[tuple[int, DigestEntry]] = []
    for commit in reversed(commits):
        rows.append((commit.place.order, _make_commit_entry(commit)))
    for run in facts.runs:
        if not run.failed and "https://" in run.output and _ARTEFACT_COMMAND.search(run.command):
            for url in _URL.findall(run.output):
                if link := _ARTEFACT_LINK.match(url):
                    rows.append((run.result_place.order, make_entry(link[0], run.result_place)))
    rows.sort(key=lambda row: -row[0])
    yield from (entry for _, entry in rows)
    yield from (
        make_entry(link, place) for link, place in reversed(facts.pull_request_links.items())
    )


def _make_commit_entry(commit: Commit) -> DigestEntry:
    """Return the row of a commit: its hash, subject and branch, if they are known."""
    label = f"commit {commit.hash}" if commit.hash else "commit:"
    notes = [f"on {commit.branch}"] if commit.branch else []
    if commit.is_rebased:
        notes.append("rebased since, which gave it a new hash")
    return make_entry(f"{label} {commit.subject}", commit.place, ", ".join(notes))


def _shorten_path(path: str) -> str:
    return plain_line(
        path if len(path) <= MAX_PATH_CHARACTERS else f"…{path[-MAX_PATH_CHARACTERS:]}"
    )
