"""List a session's shell commands: which succeeded, which check something, and which to run again.

A command succeeded if its exit status reports success and its output contains no error message. The
exit status alone is not enough, because the exit status of a pipe is that of its last command,
which may be a filter such as ``head``.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from resume_hooks.reading.digest import shell
from resume_hooks.reading.digest.check_scopes import CheckRun, PassedChecks, selects_tests
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.edited_files import EditedFiles
from resume_hooks.reading.digest.entries import DigestEntry, make_entry, redact_and_remember_secrets
from resume_hooks.reading.digest.facts import EMPTY_RESULT_TEXTS, RecordPosition, ShellRun
from resume_hooks.reading.digest.git_seen import FolderRemoval, find_run_folder
from resume_hooks.reading.digest.prose import cut_line
from resume_hooks.reading.digest.sections import UNKNOWN_STATUS_NOTE
from resume_hooks.reading.digest.shell import SimpleCommand
from resume_hooks.redaction.lazy_patterns import compile_lazily

# At most this many characters of a command that is worth running again are shown.
MAX_COMMAND_CHARACTERS = 320
MAX_SCORED_RUNS = 5  # At most this many runs of a command increase its score.
# The score for each word that a command and the last request have in common, and the maximum number
# of words that are scored.
REQUEST_WORD_SCORE, MAX_REQUEST_WORDS = 4, 3
# At most this many commands of one program are listed before the commands of other programs.
MAX_COMMANDS_OF_PROGRAM = 3
MAX_OUTPUT_LINE_CHARACTERS = 160  # The maximum number of characters in a quoted line of output.
# This many characters at the start and at the end of an output are searched for errors.
MAX_SEARCHED_EDGE_CHARACTERS = 800
_ERROR_LINE_PATTERN = compile_lazily(
    r"\n[ \t]{0,8}(?:(?:\S{1,40}[:\]] )?(?:error|fatal|panic|unknown \w{1,40})\b[^\n]{0,3}[: ]|error\[\w{1,8}\]: |"
    r"(?:--- |test result: )?fail(?:ed)?\b|traceback|[^\n]{1,120}: command not found|(?:cannot|could not|unable to) |"
    r"\(eval\):|not ok \d|npm err!|mise error |"
    r"make(?:\[\d\])?: \*\*\*|tests: +[1-9]\d{0,5} failed|[1-9]\d{0,5} failing\b|"
    r"={3,} [^\n]{0,40}\b[1-9]\d{0,5} (?:failed|errors?)\b|exit status [1-9]|build failed|"
    r"found [1-9]\d{0,5} errors?\b|aborting\b|none of the git remotes|gh: |http [45]\d\d\b|"
    r"={0,80} ?no tests (?:ran|found)\b|collected 0 items\b|"
    r"diff in \S{1,300}:\d|would reformat\b|\[warn\] code style issues)[^\n]*"
)
"""An error message at the start of a line, in lower-case text. The pattern starts with the end of
the previous line. A search with ``^`` would take twice as long, and so would one that ignores the
case."""

_FAILURE_LINE_PATTERN = compile_lazily(
    r"[^\n]{0,300}(?:no such file or directory|command not found|\bnot ok\b|panicked at|"
    r"\b[1-9]\d{0,5} (?:tests?(?:\(s\))? )?(?:failed|failures?|errors?)\b)[^\n]*",
    re.IGNORECASE,
)
"""A line that reports a failure. It is only searched for if the exit status of the command is
unknown, or is that of a search in the command's output."""


class ShellCommand(NamedTuple):
    """A run of a shell command, with its simple commands.

    ``command_key`` is equal for runs of the same command. ``program`` is its main program, followed
    by the subcommand if it has one. ``error_line`` is an error message in the output, or ``""``.
    ``has_worked`` means that the run certainly succeeded. ``run_folder`` is the folder in which the
    command ran after its own ``cd``, or ``""`` if the folder is unknown.
    """

    run: ShellRun
    parts: tuple[SimpleCommand, ...]
    command_key: str
    program: str
    error_line: str
    has_worked: bool
    run_folder: str

    @property
    def may_have_succeeded(self) -> bool:
        """Whether the run succeeded, or ended with an unknown exit status and without an error message."""
        run = self.run
        is_unknown = run.status is None and not run.has_failed and not run.is_background
        return self.has_worked or (is_unknown and not self.error_line)


def list_commands(facts: LineageFacts) -> list[ShellCommand]:
    """Return every command of a lineage, oldest first."""
    commands = []
    for run in facts.runs:
        parts = shell.parse_simple_commands(run.command)
        program = shell.find_program(parts)
        core = shell.make_command_key(run.command)
        error_line = _find_error_line(run) if program else ""
        has_worked = not error_line and _has_succeeded(run)
        run_folder = find_run_folder(run, parts)
        commands.append(ShellCommand(run, parts, core, program, error_line, has_worked, run_folder))
    return commands


def _has_succeeded(run: ShellRun) -> bool:
    """Check whether a run succeeded. A search succeeded only if it found something."""
    if run.status != 0 or run.has_failed:
        return False
    output = run.output.strip()
    if output in _EMPTY_OUTPUTS:
        return _QUERY_COMMAND_PATTERN.match(run.command) is None
    return output not in EMPTY_RESULT_TEXTS and _NO_RESULT_PATTERN.match(output) is None


def _format_run_folder(command: ShellCommand, home: str) -> str:
    """Return a command's folder relative to ``home``, for a note on the command.

    The result is ``""`` if the folder is ``home``, or if the command starts with ``cd``.
    """
    folder = command.run.folder
    if not folder or not home or folder == home or _LEADING_CD_PATTERN.match(command.run.command):
        return ""
    if folder.startswith(f"{home}/"):
        return posixpath.relpath(folder, home)
    return folder


_LEADING_CD_PATTERN = compile_lazily(r"\s*cd\s")
_COMMAND_WORD_PATTERN = compile_lazily(r"[a-z][a-z\d_]{2,}|pr\b")


class CommandList(NamedTuple):
    """The commands that worked: those that check, build or start something, and the others."""

    checks: tuple[DigestEntry, ...]
    other_commands: tuple[DigestEntry, ...]


def list_working_commands(
    commands: Sequence[ShellCommand],
    folder: str,
    removals: Sequence[FolderRemoval],
    request_words: Collection[str],
    edited_files: EditedFiles,
) -> CommandList:
    """Return the commands that are worth running again, as they were typed in the last successful run.

    Commands that contain ``request_words`` come first. The others are ordered by how often and how
    recently they ran. If a program has more than a few commands, its further commands come last.
    Commands are left out if they failed, only inspect something or show help, or contain a document
    or a message. ``removals`` contains each removed folder with the sequence number of the command
    that removed it. ``edited_files`` shows whether the result of a check may be outdated.
    """
    checks: list[DigestEntry] = []
    others: list[DigestEntry] = []
    for command, note in _choose_commands(commands, folder, removals, request_words, edited_files):
        command_text = command.run.command
        # The text is redacted first, because an escape such as "\n" before a secret would hide the
        # secret from the rules.
        shown_command = (
            redact_and_remember_secrets(command_text) if "\n" in command_text else command_text
        )
        entry = make_entry(
            shell.make_runnable_command(shown_command, folder),
            command.run.position,
            note,
            MAX_COMMAND_CHARACTERS,
        )
        if is_check(command) and not _is_push(command):
            checks.append(entry)
        elif not is_lookup(command) and not _mentions_temporary_file(command):
            others.append(entry)
    return CommandList(tuple(checks), tuple(others))


def _mentions_temporary_file(command: ShellCommand) -> bool:
    """Check whether a command names a temporary file, which may no longer exist."""
    words = [word for part in command.parts for word in part.words[1:]]
    return any(_TEMPORARY_FILE_PATTERN.match(word) for word in words)


_TEMPORARY_FILE_PATTERN = compile_lazily(r"/(?:private/)?(?:tmp|var/folders)/")


def _choose_commands(
    commands: Sequence[ShellCommand],
    folder: str,
    removals: Sequence[FolderRemoval],
    request_words: Collection[str],
    edited_files: EditedFiles,
) -> list[tuple[ShellCommand, str]]:
    """Return the commands that are worth repeating, the most useful first, each with a note.

    Each command is represented by its last successful run.
    """
    groups: dict[str, list[ShellCommand]] = {}
    all_commands = list(_insert_checks_after_inspections(commands))
    for command in all_commands:
        if command.program:
            groups.setdefault(command.command_key, []).append(command)
    last_order = commands[-1].run.position.order or 1 if commands else 1
    passed_runs = _find_passed_runs(commands, edited_files)
    executed_keys = _list_executed_part_keys(commands, edited_files)
    check_runs = [_make_check_run(command) for command in all_commands if command.program]
    check_passes = PassedChecks(check_runs)
    scored_runs = []
    for runs in groups.values():
        last_good_run = next(
            (command for command in reversed(runs) if command.may_have_succeeded), None
        )
        if (
            last_good_run is not None
            and is_worth_repeating(last_good_run)
            and not _is_folder_gone(last_good_run, removals)
        ):
            if _uses_removed_folder(last_good_run, commands, removals):
                continue
            covering_run = check_passes.find_covering_run(_make_check_run(runs[-1]))
            is_replaced = covering_run is not None and _is_outdated(runs[-1], edited_files)
            if _is_one_time_check(runs, is_replaced=is_replaced):
                continue
            score = (
                min(len(runs), MAX_SCORED_RUNS)
                + MAX_SCORED_RUNS * runs[-1].run.position.order / last_order
            )
            score += REQUEST_WORD_SCORE * _count_request_words(last_good_run, request_words)
            scored_runs.append(
                (
                    -score,
                    -last_good_run.run.position.order,
                    last_good_run,
                    _format_runs_note(
                        [
                            *_list_folder_notes(last_good_run, folder),
                            *_list_run_count_notes(runs, executed_keys, edited_files),
                        ],
                        runs[-1],
                        last_good_run,
                        _find_oldest_last_passing_run(last_good_run, passed_runs, edited_files),
                        covering_run,
                        edited_files,
                    ),
                )
            )
    program_counts: Counter[str] = Counter()
    first_rows: list[tuple[ShellCommand, str]] = []
    other_rows: list[tuple[ShellCommand, str]] = []
    known_parts: set[tuple[str, ...]] = set()
    for *_, command, note in sorted(scored_runs, key=lambda entry: entry[:2]):
        parts = {part.words for part in _list_working_parts(command)}
        if parts <= known_parts:
            continue  # Commands with better scores contain all parts of this command.
        known_parts |= parts
        program_counts[command.program] += 1
        (
            first_rows if program_counts[command.program] <= MAX_COMMANDS_OF_PROGRAM else other_rows
        ).append((command, note))
    return [*first_rows, *other_rows]


def _insert_checks_after_inspections(commands: Sequence[ShellCommand]) -> Iterator[ShellCommand]:
    """Yield all commands. After a command that inspects several things, also yield the checks in it.

    Each of these checks is yielded as a separate command.
    """
    for command in commands:
        yield command
        typed = command.run.command
        is_probe = (
            command.may_have_succeeded
            and is_inspection(typed)
            and _SCRIPT_SYNTAX_PATTERN.search(typed) is None
        )
        if not is_probe:
            continue
        folder = command.run_folder
        is_temporary = TEMPORARY_PATH_PATTERN.search(f"{folder}/") is not None
        if not folder or is_temporary or _has_error_line(command.run.output):
            continue
        for part in command.parts:
            program = shell.find_program((part,))
            is_plain = not any(_EXPANDED_WORD_PATTERN.search(word) for word in part.words)
            if (
                program
                and is_plain
                and not program.startswith(_REMOTE_PROGRAMS)
                and has_check_word(part.words)
            ):
                text = shlex.join(part.words)
                run = command.run._replace(command=text, folder=folder)
                yield command._replace(
                    run=run,
                    parts=(part,),
                    command_key=text,
                    program=program,
                    run_folder=find_run_folder(run, (part,)),
                )


_SCRIPT_SYNTAX_PATTERN = compile_lazily(
    r"\b(?:for|while|until|case|function)\s|\(\)\s*\{|<<|\|\||(?:\A|[\n;&(])\s*!\s"
)
"""Signs of a script that must run as a whole, or in which some parts may fail."""

_EXPANDED_WORD_PATTERN = compile_lazily(r"[*?$`{}~\n]|\A(?:/private)?/tmp/")
"""Signs that the shell expands a word, or that the word is the path of a temporary file."""


def _has_error_line(output: str) -> bool:
    """Check whether any line of an output reports a failure."""
    return _ERROR_LINE_PATTERN.search(f"\n{output.lower()}") is not None


def _count_request_words(command: ShellCommand, request_words: Collection[str]) -> int:
    """Return the number of a command's words that are in the last request, at most MAX_REQUEST_WORDS."""
    words: set[str] = set()
    for part in command.parts:
        if shell.find_program((part,)):
            words.update(_COMMAND_WORD_PATTERN.findall(" ".join(part.words).lower()))
    return min(MAX_REQUEST_WORDS, len(words.intersection(request_words)))


def _is_folder_gone(command: ShellCommand, removals: Sequence[FolderRemoval]) -> bool:
    """Check whether the folder in which a command ran is temporary or was removed later."""
    if moves_to_temporary_folder(command):
        return True
    folder = command.run_folder
    later_removals = [
        removed_folder for removed_folder, order in removals if command.run.position.order < order
    ]
    return bool(folder) and any(
        f"{folder}/".startswith(f"{removed_folder}/") for removed_folder in later_removals
    )


def moves_to_temporary_folder(command: ShellCommand) -> bool:
    """Check whether a command changes to a temporary folder."""
    folder = command.run_folder
    return folder != command.run.folder and TEMPORARY_PATH_PATTERN.search(f"{folder}/") is not None


def _uses_removed_folder(
    command: ShellCommand, commands: Sequence[ShellCommand], removals: Sequence[FolderRemoval]
) -> bool:
    """Check whether a command names a folder that was removed later and has not been used since."""
    run_order = command.run.position.order
    for folder, order in removals:
        if order <= run_order or not _mentions_folder(command, folder):
            continue
        if not any(
            _mentions_folder(other, folder)
            for other in commands
            if _has_done_work_after(other, order)
        ):
            return True
    return False


def _has_done_work_after(command: ShellCommand, start_order: int) -> bool:
    """Check whether a command ran after the one with the sequence number ``start_order``, and did real work.

    It did real work if it succeeded and did more than read or remove files.
    """
    is_work = bool(command.program) and command.program.split()[0] != "rm"
    return is_work and command.has_worked and command.run.position.order > start_order


def _mentions_folder(command: ShellCommand, folder: str) -> bool:
    """Check whether an argument of a command is a path in a folder, or is the folder's name.

    The name alone counts only if it cannot be a common word.
    """
    name = posixpath.basename(folder)
    is_distinct = len(name) >= MIN_DISTINCT_NAME_CHARACTERS and ("-" in name or "_" in name)
    if name not in command.run.command:
        return False
    base = command.run_folder
    for part in command.parts:
        for word in part.words[1:]:
            path = posixpath.normpath(posixpath.join(base, word))
            is_inside = "/" in word and f"{path}/".startswith(f"{folder}/")
            if is_inside or (is_distinct and word == name):
                return True
    return False


def is_check(command: ShellCommand) -> bool:
    """Check whether the words of a command show that it checks, builds, starts or publishes something."""
    return any(is_check_part(part) for part in command.parts)


def is_check_part(part: SimpleCommand) -> bool:
    """Check whether a simple command checks, builds, starts or publishes something."""
    program = shell.find_program((part,))
    return bool(program and not program.startswith(_REMOTE_PROGRAMS) and has_check_word(part.words))


def is_verification(command: ShellCommand) -> bool:
    """Check whether a command tests, lints or builds files. Edits may change the result of such a command."""
    return any(_is_verification_part(part) for part in command.parts)


def _is_verification_part(part: SimpleCommand) -> bool:
    """Check whether a simple command tests, lints or builds files."""
    words = part.words[:MAX_CHECK_WORDS]
    return is_check_part(part) and any(_VERIFICATION_WORD_PATTERN.search(word) for word in words)


def find_last_passed_check(commands: Sequence[ShellCommand]) -> RecordPosition | None:
    """Return the position of the result of the last check that certainly or possibly passed, or None."""
    for command in reversed(commands):
        if command.may_have_succeeded and is_check(command):
            return command.run.result_position
    return None


def is_lookup(command: ShellCommand) -> bool:
    """Check whether a command only looks up information that soon changes, or publishes one change.

    Examples are chains of git and ``gh``, and queries for versions, for lists or for a single CI
    run.
    """
    if _MUTATION_KEYWORD_PATTERN.search(command.run.command) is not None:
        return False
    working_parts = [part for part in command.parts if shell.find_program((part,))]
    queries = [part for part in working_parts if _is_query(part.words)]
    if queries == working_parts:
        return True
    others = [part for part in working_parts if part not in queries]
    if not all(shell.find_program((part,)).startswith(_REMOTE_PROGRAMS) for part in others):
        return False
    forge_parts = [part for part in command.parts if part.words[:1] in _GIT_AND_HOSTING_PROGRAMS]
    return len(queries) + len(forge_parts) > 1


_MUTATION_KEYWORD_PATTERN = compile_lazily(r"(?<=[\s=\"'])mutation\b")
"""The first word in a GraphQL request that changes something on GitHub."""

_GIT_AND_HOSTING_PROGRAMS = (("git",), ("gh",), ("glab",))


def _is_query(words: tuple[str, ...]) -> bool:
    """Check whether a simple command only prints a version, or lists or shows something.

    It may, for example, show a single CI run on GitHub or GitLab.
    """
    if words[-1] in _VERSION_OPTIONS:
        return True
    if words[0] in {"gh", "glab"}:
        has_id = any(_LONG_ID_PATTERN.search(word) for word in words)
        return has_id or "graphql" in words or words[1:2] == ("auth",)
    return not _QUERY_WORDS.isdisjoint(words[1:MAX_QUERY_WORDS])


_LONG_ID_PATTERN = compile_lazily(r"(?<!\w)\d{8,}(?!\w)|\b[0-9a-f]{40}\b")
"""The id of a CI run or a commit. A command with such an id is of no use later."""


def _is_push(command: ShellCommand) -> bool:
    """Check whether a command contains a push. Such a command is not worth running again as a whole."""
    git_calls = [part.words for part in command.parts if part.words[:1] == ("git",)]
    return any("push" in shell.iterate_git_arguments(words) for words in git_calls)


def has_check_word(words: Sequence[str]) -> bool:
    """Check whether a simple command contains a word such as "test" and does more than show a list."""
    if _QUERY_WORDS.intersection(words[1:MAX_QUERY_WORDS]) or words[-1] in _VERSION_OPTIONS:
        return False
    for word in words[:MAX_CHECK_WORDS]:
        is_operand = word.startswith("-") or "://" in word or " " in word
        if not is_operand and _CHECK_WORD_PATTERN.search(word.rpartition("/")[2]):
            return True
    return False


_REMOTE_PROGRAMS = ("gh ", "glab ", "curl", "wget", "git ")
"""Programs whose commands are not checks: programs that read from a server, and git, because a
branch may have a name such as "test"."""

# How many words at the start of a simple command are examined to find out what the command does.
MAX_CHECK_WORDS = 4
# This many words at the start of a simple command are searched for query words.
MAX_QUERY_WORDS = 3
_QUERY_WORDS = frozenset(
    {"which", "where", "info", "list", "ls", "search", "version", "outdated", "why", "env"}
)
_VERSION_OPTIONS = frozenset({"--version", "-V", "--help"})
_CHECK_WORD_PATTERN = compile_lazily(
    r"\b(?:tests?|bats|pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|spec|lint|eslint|ruff|mypy|pyright|flake8|black|"
    r"prettier|clippy|vet|golangci-lint|gofmt|fmt|format|tsc|typecheck|check|build|compile|make|cmake|ninja|gradlew?|"
    r"mvn|sbt|xcodebuild|run|start|serve|dev|up|deploy|publish|release|install|sync|migrate|generate|bench|coverage|ci)\b"
)
"""Words in commands that check, build, start or publish something."""

_VERIFICATION_WORD_PATTERN = compile_lazily(
    r"\b(?:tests?|bats|pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|spec|lint|eslint|ruff|mypy|pyright|"
    r"flake8|clippy|vet|golangci-lint|tsc|typecheck|check|build|compile|ci)\b"
)
"""Words in commands whose result depends on the project's files."""

ONE_TIME_COMMAND_PATTERN = compile_lazily(
    r"<<|--help\b|\s-h\Z|\bgit\s+(?:-[Cc]\s+\S+\s+|-\S+\s+)*(?:commit|add|checkout|switch|stash|reset|rm|mv|tag|cherry-pick|rebase|merge|"
    r"apply|am|restore|clean|clone|init|worktree)\b|\A\W*find\s|\bgh\s+(?:pr\s+(?:create|comment|edit|review|merge)|issue\s+(?:create|comment|edit))|"
    r"\bsed\s+-i|\A\W*(?:rm|mv|cp|mkdir|touch|chmod|chown|ln|kill|pkill|sleep|touch|open|code|tee)\b|"
    r"\b(?:python[\d.]*|node|ruby|bash|sh)\s+-[ce]\b|\bperl\s+-\w*[ei]|\$\(cat\b|\bscratchpad\b|\.specify/scripts/|/plugins/cache/|"
    r"\bgh\s+(?:(?:pr|issue|release)\s+(?:close|ready|reopen|delete)|run\s+(?:watch|rerun|cancel)|"
    r"api\b[^|;&]*(?:\s-X\s*P|--method\s+P|\smutation\b|=mutation\b|'mutation\b))|"
    r"\s--(?:fix|write|unsafe)\b|\bgofmt\s+-\w*w|\b(?:npx|bunx|npm|pnpm|yarn|bun)\s+(?:--?\S+\s+)*(?:init|create)\b|\bcreate-[\w-]+@|"
    r"\b(?:cargo|uv|poetry|terraform|go\s+mod|pipx?|rails|flutter|dotnet)\s+(?:init|new)\b|"
    r"\A\s*(?:read\s|\w+=\$\()|\b(?:brew|apt(?:-get)?|cargo|gem|go)\s+install\s+(?![-.])\S",
)
"""Commands that are not worth repeating: commands that contain a document or a message, calls for
help, file moves, experiments, and actions that are done only once."""

_INSPECTION_PATTERN = compile_lazily(
    r"\A\s*(?:which|type|command\s+-v)\s|\necho\b|\becho\s+[\"'](?:[-=*#]{2,}|\w+[_ ]OK\b)|\A\s*(?:for|while|until)\s|"
    r"\|\s*(?:python3?|perl|ruby|node)\b|\n.*\n|"
    r"\A\s*(?:cat|ls|find|rg|grep|head|tail|wc)\s[^;&\n]{0,200}(?:;|&&)\s*(?:cat|ls|find|rg|grep|head|tail|wc)\s"
)


_HELP_OUTPUT_PATTERN = compile_lazily(r"(?:OVERVIEW:[^\n]*\n\s*)?usage:?\s", re.IGNORECASE)
"""The start of the help text that a program prints."""


@lru_cache(maxsize=shell.MAX_CACHED_COMMANDS)
def is_inspection(command: str) -> bool:
    """Check whether a command merely shows information.

    Examples are commands that contain loops or print headings between their outputs.
    """
    return _INSPECTION_PATTERN.search(command) is not None


def is_worth_repeating(command: ShellCommand) -> bool:
    """Check whether it makes sense to run a command again without changes."""
    command_text = command.run.command
    if (
        len(command_text) > MAX_COMMAND_CHARACTERS
        or ONE_TIME_COMMAND_PATTERN.search(command_text)
        or is_inspection(command_text)
        or (not command.run.has_failed and _HELP_OUTPUT_PATTERN.match(command.run.output))
    ):
        return False
    written_paths = [path for path, _ in shell.find_changed_paths(command.parts)]
    return not any(TEMPORARY_PATH_PATTERN.search(path) for path in written_paths)


_PartKey = tuple[str, tuple[str, ...]]
"""The root of a checkout, and the words of a simple command that ran in this checkout."""


class _PartRun(NamedTuple):
    """The position at which a simple command passed, and whether its exit status is known."""

    position: RecordPosition
    has_known_status: bool


def _find_passed_runs(
    commands: Sequence[ShellCommand], edited_files: EditedFiles
) -> dict[_PartKey, _PartRun]:
    """Map each simple command in each checkout to its last successful run.

    A run counts as successful if the simple command succeeded alone, if the whole chain that
    contains it succeeded, or if only another command of the chain failed.
    """
    passed_runs: dict[_PartKey, _PartRun] = {}
    for command in commands:
        checkout = edited_files.find_checkout(command.run_folder)
        has_known_status = command.has_worked and shell.does_status_cover_all_parts(
            command.run.command
        )
        for part in command.parts:
            if has_known_status or _may_have_passed(part, command):
                position = command.run.result_position
                passed_runs[checkout, part.words] = _PartRun(position, has_known_status)
            elif command.error_line and _runs_all_parts(command):
                # The output contains an error message, and this part may be the one that failed.
                passed_runs.pop((checkout, part.words), None)
    return passed_runs


def _may_have_passed(part: SimpleCommand, command: ShellCommand) -> bool:
    """Check whether a part of a command with an unknown exit status ended without an error message.

    The error message of a format check is ignored if this part does not check the format.
    """
    run = command.run
    if run.status is not None or run.has_failed or run.is_background:
        return False
    if not command.error_line:
        return True
    if not _runs_all_parts(command) or _may_format_files(part):
        return False
    error_lines = _ERROR_LINE_PATTERN.findall(f"\n{run.output.lower()}")
    return all(_FORMAT_ERROR_PATTERN.match(error_line.strip()) for error_line in error_lines)


def _may_format_files(part: SimpleCommand) -> bool:
    return any(_FORMAT_WORD_PATTERN.search(word) for word in part.words[:MAX_CHECK_WORDS])


_FORMAT_WORD_PATTERN = compile_lazily(
    r"\b(?:fmt|format|gofmt|black|prettier|ruff|biome|rustfmt|pre-commit|lint)\b"
)
"""A word in a simple command that may check the format of files."""

_FORMAT_ERROR_PATTERN = compile_lazily(r"diff in |would reformat\b|\[warn\] code style issues")
"""The start of an error message that only a format check prints."""


def _runs_all_parts(command: ShellCommand) -> bool:
    """Check whether all parts of a command run, even those after a part that fails."""
    text = shell.remove_here_documents(command.run.command)
    return "&&" not in text and "||" not in text and _SCRIPT_SYNTAX_PATTERN.search(text) is None


def _list_executed_part_keys(
    commands: Sequence[ShellCommand], edited_files: EditedFiles
) -> list[frozenset[_PartKey]]:
    """Return, for each command, the keys of the simple commands that certainly ran."""
    executed_keys = []
    for command in commands:
        parts = _list_working_parts(command)
        if not command.may_have_succeeded and not _runs_all_parts(command):
            parts = parts[:1]
        executed_keys.append(_make_part_keys(command, parts, edited_files))
    return executed_keys


def _list_working_parts(command: ShellCommand) -> list[SimpleCommand]:
    return [part for part in command.parts if shell.find_program((part,))]


def _make_part_keys(
    command: ShellCommand, parts: Iterable[SimpleCommand], edited_files: EditedFiles
) -> frozenset[_PartKey]:
    """Return the key of each of the given parts of a command.

    A key consists of the root of the checkout and the words of the part.
    """
    checkout = edited_files.find_checkout(command.run_folder)
    return frozenset((checkout, part.words) for part in parts)


def _find_oldest_last_passing_run(
    command: ShellCommand, passed_runs: Mapping[_PartKey, _PartRun], edited_files: EditedFiles
) -> _PartRun | None:
    """Find the last passing run of each of a command's checks, and return the oldest of these runs.

    Only runs in the command's checkout count. If the command has no checks, or one of them never
    passed, return None. Parts that are not checks, such as a formatter, only prepare the checks and
    are ignored.
    """
    checks = []
    for part in command.parts:
        if _is_verification_part(part) or (is_check_part(part) and "--check" in part.words):
            checks.append(part)
    pure_checks = [part for part in checks if not _FIX_OPTION_PATTERN.search(" ".join(part.words))]
    passes: list[_PartRun] = []
    for key in _make_part_keys(command, pure_checks or checks, edited_files):
        if key not in passed_runs:
            return None
        passes.append(passed_runs[key])
    return min(passes, key=lambda part_pass: part_pass.position.order, default=None)


_FIX_OPTION_PATTERN = compile_lazily(r"[\s:-]fix(?=\s|\Z)")
"""An option or a name that shows that a simple command fixes the files that it checks."""


def _list_folder_notes(command: ShellCommand, home: str) -> list[str]:
    folder = _format_run_folder(command, home)
    if folder:
        return [f"in {folder}"]
    return []


def _list_run_count_notes(
    runs: Sequence[ShellCommand],
    executed_keys: Sequence[frozenset[_PartKey]],
    edited_files: EditedFiles,
) -> list[str]:
    """Return a list with a note such as "3 runs" if a command ran more than once, else an empty list.

    A chain that contains all parts of the command is counted as a run too.
    """
    last_run = runs[-1]
    part_keys = _make_part_keys(last_run, _list_working_parts(last_run), edited_files)
    whole_count = sum(part_keys <= run_keys for run_keys in executed_keys) if part_keys else 0
    run_count = max(len(runs), whole_count)
    if run_count > 1:
        return [f"{run_count} runs"]
    return []


def _format_runs_note(
    first_notes: Sequence[str],
    last_run: ShellCommand,
    last_good_run: ShellCommand,
    last_passed_run: _PartRun | None,
    covering_run: RecordPosition | None,
    edited_files: EditedFiles,
) -> str:
    notes = list(first_notes)
    if last_good_run.run.is_background:
        notes.append("in the background")
    if not last_good_run.has_worked:
        notes.append(UNKNOWN_STATUS_NOTE)
    run_folder = last_good_run.run_folder
    if (
        last_passed_run is not None
        and last_passed_run.position.order > last_run.run.result_position.order
    ):
        is_weaker = last_good_run.has_worked and not last_passed_run.has_known_status
        status_note = UNKNOWN_STATUS_NOTE if is_weaker else ""
        notes += [
            f"passed in another command, :{last_passed_run.position.record_number}",
            status_note,
        ]
        notes.append(
            edited_files.describe_edits_after_passed_check(last_passed_run.position, run_folder)
        )
        return ", ".join(filter(None, notes))
    label = "its last run"
    if (
        last_run is not last_good_run
        and last_run.run.position.session_id == last_good_run.run.position.session_id
    ):
        label = f"its last run, :{last_run.run.position.record_number},"
    if last_run.run.has_failed:
        notes.append(
            f"{label} failed{f', exit {last_run.run.status}' if last_run.run.status else ''}"
        )
    elif last_run.error_line and last_run is not last_good_run:
        notes.append(
            f"{label} printed: {cut_line(last_run.error_line, MAX_OUTPUT_LINE_CHARACTERS // 2)}"
        )
    if is_verification(last_run):
        result_position = last_run.run.result_position
        if not last_run.may_have_succeeded:
            edits_note = edited_files.describe_edits_after_failure(result_position, run_folder)
        else:
            edits_note = edited_files.describe_edits_after_passed_check(result_position, run_folder)
            if edits_note and covering_run is not None:
                notes.append(f"a later check that covers it passed, :{covering_run.record_number}")
                edits_note = edited_files.describe_edits_after_passed_check(
                    covering_run, run_folder
                )
        notes.append(edits_note)
    return ", ".join(filter(None, notes))


def _make_check_run(command: ShellCommand) -> CheckRun:
    folder = command.run_folder
    return CheckRun(command.run, command.parts, command.command_key, folder, command.has_worked)


def _is_outdated(command: ShellCommand, edited_files: EditedFiles) -> bool:
    """Check whether files were edited after a check, so that the check's result may be outdated."""
    folder = command.run_folder
    return bool(edited_files.describe_edits_after_passed_check(command.run.result_position, folder))


def _is_one_time_check(runs: Sequence[ShellCommand], *, is_replaced: bool) -> bool:
    """Check whether a check ran only once, to find out whether one particular change works.

    This is assumed if at least two of three signs are present: the check selects tests by name, its
    output was searched, or files were edited and a later check covered the same tests.
    """
    parts = runs[0].parts
    is_searched = any(part.words[:1] in _SEARCH_PROGRAMS for part in parts)
    return len(runs) == 1 and selects_tests(parts) + is_searched + is_replaced > 1


_SEARCH_PROGRAMS = (("grep",), ("egrep",), ("rg",))


# A folder's name with fewer characters than this may be a common word.
MIN_DISTINCT_NAME_CHARACTERS = 8


def _find_error_line(run: ShellRun) -> str:
    """Return the output line that reports a failure although the exit status does not, or ``""``.

    For example, the exit status of a pipe does not report a failure in its first command.
    """
    if run.has_failed:
        return ""
    for output_end in (
        run.output[:MAX_SEARCHED_EDGE_CHARACTERS],
        run.output[
            max(MAX_SEARCHED_EDGE_CHARACTERS, len(run.output) - MAX_SEARCHED_EDGE_CHARACTERS) :
        ],
    ):
        if output_end and (match := _ERROR_LINE_PATTERN.search(f"\n{output_end.lower()}")):
            return output_end[match.start() : match.end() - 1].strip()
    is_unclear = run.status is None or shell.searches_check_results(run.command)
    if is_unclear and not run.is_background and (match := _FAILURE_LINE_PATTERN.search(run.output)):
        return match[0].strip()
    return ""


TEMPORARY_PATH_PATTERN = compile_lazily(
    r"(?:\A|/)(?:__pycache__|node_modules|\.pytest_cache|scratchpad|"
    r"\.codex(?!/(?:worktrees|prompts|skills|rules|agents|hooks)/|/(?:config\.toml|hooks\.json|AGENTS\.md)\Z))/|"
    r"\A/(?:private/)?(?:tmp|var/tmp|var/folders)/|"
    r"\.(?:pyc|tmp|swp)\Z|\A/dev/|\A['\"`(]|[=<>|*?]"
)
"""Files that will not exist when the work continues, or that will be useless then."""

_EMPTY_OUTPUTS = frozenset({"", "(Bash completed with no output)"})
"""The empty output, and the text that the client writes in place of an empty output."""

_NO_RESULT_PATTERN = compile_lazily(r"no [\w ]{1,60}\b(?:found|match)\b[^\n]*\Z", re.IGNORECASE)
_QUERY_COMMAND_PATTERN = compile_lazily(
    r"(?:rtk (?:proxy )?)?(?:(?:gh|glab) (?:(?:issue|pr|mr|run|release|repo|workflow|ci|label|cache) "
    r"(?:view|list|diff|status|checks)|search|api|auth|browse)\b|"
    r"(?:curl|wget|defuddle|https?|lynx|w3m)\b(?=.*https?://)"
    r"(?!.*https?://(?:localhost|127\.|0\.0\.0\.0|\[::1\]|[\w-]+\.local\b|\$)))"
)
"""Commands that only query GitHub or GitLab, or fetch a page from another host. If such a command
prints nothing, it found nothing."""
