"""The shell commands of a session: which succeeded, which check something, and which are worth running again.

A command succeeded if its exit status reports success and its output contains no error message. In
a pipe, the status may be that of an output filter.
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
from resume_hooks.reading.digest.check_scopes import CheckPasses, CheckRun, selects_tests
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.edited_files import EditedFiles
from resume_hooks.reading.digest.entries import DigestEntry, make_entry, redact_and_collect
from resume_hooks.reading.digest.facts import EMPTY_ANSWERS, RecordPlace, ShellRun
from resume_hooks.reading.digest.git_seen import find_run_folder
from resume_hooks.reading.digest.prose import cut_line
from resume_hooks.reading.digest.sections import UNKNOWN_STATUS
from resume_hooks.reading.digest.shell import SimpleCommand
from resume_hooks.redaction.lazy_patterns import compile_lazily

# the maximum number of characters in a command that is worth running again
MAX_COMMAND_CHARACTERS = 320
MAX_COUNTED_RUNS = 5  # the maximum number of runs that count in a command's score
# the weight of a word from the last request, and the maximum number of words that count
REQUEST_WORD_SCORE, MAX_REQUEST_WORDS = 4, 3
MAX_COMMANDS_OF_PROGRAM = 3  # the maximum number of commands of one program that are listed first
MAX_LINE_CHARACTERS = 160  # the maximum number of characters in a quoted line of output
# the number of characters at each end of an output that are searched for an error message
SEARCHED_END_CHARACTERS = 800
_ERROR_LINE = compile_lazily(
    r"\n[ \t]{0,8}(?:(?:\S{1,40}[:\]] )?(?:error|fatal|panic|unknown \w{1,40})\b[^\n]{0,3}[: ]|error\[\w{1,8}\]: |"
    r"(?:--- |test result: )?fail(?:ed)?\b|traceback|[^\n]{1,120}: command not found|(?:cannot|could not|unable to) |"
    r"\(eval\):|not ok \d|npm err!|mise error |"
    r"make(?:\[\d\])?: \*\*\*|tests: +[1-9]\d{0,5} failed|[1-9]\d{0,5} failing\b|"
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
"""A line of a failure in the output of a command whose exit status is unknown or that of a search."""


class ShellCommand(NamedTuple):
    """A run with its simple commands, its ``key`` and ``program``.

    ``run_folder`` is the folder in which it ran, after its own ``cd``, or ``""`` if it is unknown.
    ``complaint`` is an error message in the run's output. ``has_worked`` means that the run certainly
    succeeded.
    """

    run: ShellRun
    parts: tuple[SimpleCommand, ...]
    key: str
    program: str
    complaint: str
    has_worked: bool
    run_folder: str

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
        run_folder = find_run_folder(run, parts)
        commands.append(ShellCommand(run, parts, core, program, complaint, has_worked, run_folder))
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
    request_words: Collection[str],
    edited_files: EditedFiles,
) -> CommandList:
    """Return commands that are worth running again, as they were typed in the last successful run.

    Commands that contain ``request_words`` come first. The others are ordered by
    how often and how recently they ran, and only a few commands of one program come before the
    rest. Commands are left out if they only inspect or show help, contain a document or a message,
    or failed. ``removals`` are removed folders, each with the order of the command that removed it.
    ``edited_files`` may make the result of a check obsolete.
    """
    checks: list[DigestEntry] = []
    others: list[DigestEntry] = []
    for command, note in _choose_commands(commands, folder, removals, request_words, edited_files):
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
        if is_check(command) and not _is_push(command):
            checks.append(entry)
        elif not only_looks_up(command) and not _names_temporary_file(command):
            others.append(entry)
    return CommandList(tuple(checks), tuple(others))


def _names_temporary_file(command: ShellCommand) -> bool:
    """Check whether a command names a temporary file, which may be gone."""
    words = [word for part in command.parts for word in part.words[1:]]
    return any(_TEMPORARY_FILE.match(word) for word in words)


_TEMPORARY_FILE = compile_lazily(r"/(?:private/)?(?:tmp|var/folders)/")


def _choose_commands(
    commands: Sequence[ShellCommand],
    folder: str,
    removals: Sequence[tuple[str, int]],
    request_words: Collection[str],
    edited_files: EditedFiles,
) -> list[tuple[ShellCommand, str]]:
    """Return the last successful run of each command that is worth repeating, most useful first, with a note."""
    groups: dict[str, list[ShellCommand]] = {}
    all_commands = list(_add_checks_in_inspections(commands))
    for command in all_commands:
        if command.program:
            groups.setdefault(command.key, []).append(command)
    last_order = commands[-1].run.place.order or 1 if commands else 1
    passed_places = _find_passed_places(commands, edited_files)
    certain_runs = _list_certain_runs(commands, edited_files)
    check_runs = [_make_check_run(command) for command in all_commands if command.program]
    check_passes = CheckPasses(check_runs)
    scored_runs = []
    for runs in groups.values():
        good_run = next((command for command in reversed(runs) if command.may_have_worked), None)
        if (
            good_run is not None
            and is_worth_repeating(good_run)
            and not _has_lost_folder(good_run, removals)
        ):
            if _uses_removed_folder(good_run, commands, removals):
                continue
            covering_pass = check_passes.find_covering_pass(_make_check_run(runs[-1]))
            is_replaced = covering_pass is not None and _is_outdated(runs[-1], edited_files)
            if _is_probe(runs, is_replaced=is_replaced):
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
                    _format_runs_note(
                        [
                            *_list_folder_notes(good_run, folder),
                            *_list_count_notes(runs, certain_runs, edited_files),
                        ],
                        runs[-1],
                        good_run,
                        _find_last_pass(good_run, passed_places, edited_files),
                        covering_pass,
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
            continue  # a combination of commands with a better score
        known_parts |= parts
        program_counts[command.program] += 1
        (
            first_rows if program_counts[command.program] <= MAX_COMMANDS_OF_PROGRAM else other_rows
        ).append((command, note))
    return [*first_rows, *other_rows]


def _add_checks_in_inspections(commands: Sequence[ShellCommand]) -> Iterator[ShellCommand]:
    """Yield the commands. After a command with several inspections, yield its checks as separate commands."""
    for command in commands:
        yield command
        typed = command.run.command
        is_probe = command.may_have_worked and is_inspection(typed) and _LOOP.search(typed) is None
        if not is_probe:
            continue
        folder = command.run_folder
        is_temporary = TEMPORARY_PATH.search(f"{folder}/") is not None
        if not folder or is_temporary or _has_complaint(command.run.output):
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
                yield command._replace(
                    run=run,
                    parts=(part,),
                    key=text,
                    program=program,
                    run_folder=find_run_folder(run, (part,)),
                )


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
    if moves_to_temporary_folder(command):
        return True
    folder = command.run_folder
    later_removals = [
        removed_folder for removed_folder, order in removals if command.run.place.order < order
    ]
    return bool(folder) and any(
        f"{folder}/".startswith(f"{removed_folder}/") for removed_folder in later_removals
    )


def moves_to_temporary_folder(command: ShellCommand) -> bool:
    """Check whether a command changes to a temporary folder."""
    folder = command.run_folder
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
    base = command.run_folder
    for part in command.parts:
        for word in part.words[1:]:
            path = posixpath.normpath(posixpath.join(base, word))
            is_inside = "/" in word and f"{path}/".startswith(f"{folder}/")
            if is_inside or (is_distinct and word == name):
                return True
    return False


def is_check(command: ShellCommand) -> bool:
    """Check whether a command checks, builds, starts or publishes something, by the words of its program."""
    return any(is_check_part(part) for part in command.parts)


def is_check_part(part: SimpleCommand) -> bool:
    """Check whether a simple command checks, builds, starts or publishes something."""
    program = shell.find_program((part,))
    return bool(program and not program.startswith(_REMOTE_PROGRAMS) and has_check_word(part.words))


def is_verification(command: ShellCommand) -> bool:
    """Check whether a command tests, lints or builds the files, so that an edit may change its result."""
    return any(_is_verification_part(part) for part in command.parts)


def _is_verification_part(part: SimpleCommand) -> bool:
    """Check whether a simple command tests, lints or builds the files."""
    words = part.words[:MAX_CHECK_WORDS]
    return is_check_part(part) and any(_VERIFICATION_WORD.search(word) for word in words)


def find_last_passed_check(commands: Sequence[ShellCommand]) -> RecordPlace | None:
    """Return the result of the last command that checks something and that may have succeeded."""
    for command in reversed(commands):
        if command.may_have_worked and is_check(command):
            return command.run.result_place
    return None


def only_looks_up(command: ShellCommand) -> bool:
    """Check whether a command only looks up the state of one moment, or publishes one change.

    That is a chain of git and a forge, or queries for versions, for lists, or for one run of a forge.
    """
    if _MUTATION.search(command.run.command) is not None:
        return False
    working_parts = [part for part in command.parts if shell.find_program((part,))]
    queries = [part for part in working_parts if _is_query(part.words)]
    if queries == working_parts:
        return True
    others = [part for part in working_parts if part not in queries]
    if not all(shell.find_program((part,)).startswith(_REMOTE_PROGRAMS) for part in others):
        return False
    forge_parts = [part for part in command.parts if part.words[:1] in _FORGE_PROGRAMS]
    return len(queries) + len(forge_parts) > 1


_MUTATION = compile_lazily(r"(?<=[\s=\"'])mutation\b")
"""The first word of a request that changes something on a forge."""

_FORGE_PROGRAMS = (("git",), ("gh",), ("glab",))


def _is_query(words: tuple[str, ...]) -> bool:
    """Check whether a simple command shows a version or a list, or asks a forge for one thing by its id."""
    if words[-1] in _VERSION_OPTIONS:
        return True
    if words[0] in {"gh", "glab"}:
        has_id = any(_LONG_ID.search(word) for word in words)
        return has_id or "graphql" in words or words[1:2] == ("auth",)
    return not _QUERY_WORDS.isdisjoint(words[1:MAX_QUERY_WORDS])


_LONG_ID = compile_lazily(r"(?<!\w)\d{8,}(?!\w)|\b[0-9a-f]{40}\b")
"""The id of a run or a commit, which nobody types twice."""


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
    {"which", "where", "info", "list", "ls", "search", "version", "outdated", "why", "env"}
)
_VERSION_OPTIONS = frozenset({"--version", "-V", "--help"})
_CHECK_WORD = compile_lazily(
    r"\b(?:tests?|bats|pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|spec|lint|eslint|ruff|mypy|pyright|flake8|black|"
    r"prettier|clippy|vet|golangci-lint|gofmt|fmt|format|tsc|typecheck|check|build|compile|make|cmake|ninja|gradlew?|"
    r"mvn|sbt|xcodebuild|run|start|serve|dev|up|deploy|publish|release|install|sync|migrate|generate|bench|coverage|ci)\b"
)
"""Words of commands that check, build, start or publish something."""

_VERIFICATION_WORD = compile_lazily(
    r"\b(?:tests?|bats|pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|spec|lint|eslint|ruff|mypy|pyright|"
    r"flake8|clippy|vet|golangci-lint|tsc|typecheck|check|build|compile|ci)\b"
)
"""Words of commands whose result depends on the files of the project."""

ONE_TIME_COMMAND = compile_lazily(
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
"""Commands that are not worth repeating: documents, messages, help, file moves, trials, finished
actions."""

_INSPECTION = compile_lazily(
    r"\A\s*(?:which|type|command\s+-v)\s|\necho\b|\becho\s+[\"'](?:[-=*#]{2,}|\w+[_ ]OK\b)|\A\s*(?:for|while|until)\s|"
    r"\|\s*(?:python3?|perl|ruby|node)\b|\n.*\n|"
    r"\A\s*(?:cat|ls|find|rg|grep|head|tail|wc)\s[^;&\n]{0,200}(?:;|&&)\s*(?:cat|ls|find|rg|grep|head|tail|wc)\s"
)


_HELP_OUTPUT = compile_lazily(r"(?:OVERVIEW:[^\n]*\n\s*)?usage:?\s", re.IGNORECASE)
"""The beginning of the help that a command prints without arguments."""


@lru_cache(maxsize=shell.MAX_CACHED_COMMANDS)
def is_inspection(command: str) -> bool:
    """Check whether a command inspects several things at once: files, or by headings, a loop or several lines."""
    return _INSPECTION.search(command) is not None


def is_worth_repeating(command: ShellCommand) -> bool:
    """Check whether someone may run a command again as it is."""
    command_text = command.run.command
    if (
        len(command_text) > MAX_COMMAND_CHARACTERS
        or ONE_TIME_COMMAND.search(command_text)
        or is_inspection(command_text)
        or (not command.run.failed and _HELP_OUTPUT.match(command.run.output))
    ):
        return False
    written_paths = [path for path, _ in shell.find_changed_paths(command.parts)]
    return not any(TEMPORARY_PATH.search(path) for path in written_paths)


_PartKey = tuple[str, tuple[str, ...]]
"""A checkout, and the words of a simple command in it."""


class _PartRun(NamedTuple):
    """When a simple command ran or passed, and whether the exit status of that run is known."""

    place: RecordPlace
    has_known_status: bool


def _find_passed_places(
    commands: Sequence[ShellCommand], edited_files: EditedFiles
) -> dict[_PartKey, _PartRun]:
    """Return the last success of each simple command in a checkout.

    The command ran alone, or in a chain that succeeded or in which only another part failed.
    """
    passed_places: dict[_PartKey, _PartRun] = {}
    for command in commands:
        checkout = edited_files.find_checkout(command.run_folder)
        has_known_status = command.has_worked and shell.does_status_cover_all(command.run.command)
        for part in command.parts:
            if has_known_status or _has_ended_well(part, command):
                place = command.run.result_place
                passed_places[checkout, part.words] = _PartRun(place, has_known_status)
            elif command.complaint and _runs_all_parts(command):
                passed_places.pop((checkout, part.words), None)  # it may have failed since
    return passed_places


def _has_ended_well(part: SimpleCommand, command: ShellCommand) -> bool:
    """Check whether a part of a command without a known exit status ended without a complaint of its own."""
    run = command.run
    if run.status is not None or run.failed or run.is_background:
        return False
    if not command.complaint:
        return True
    if not _runs_all_parts(command) or _formats(part):
        return False
    complaints = _ERROR_LINE.findall(f"\n{run.output.lower()}")
    return all(_FORMAT_COMPLAINT.match(complaint.strip()) for complaint in complaints)


def _formats(part: SimpleCommand) -> bool:
    return any(_FORMAT_WORD.search(word) for word in part.words[:MAX_CHECK_WORDS])


_FORMAT_WORD = compile_lazily(
    r"\b(?:fmt|format|gofmt|black|prettier|ruff|biome|rustfmt|pre-commit|lint)\b"
)
"""A word of a simple command that may check the format of files."""

_FORMAT_COMPLAINT = compile_lazily(r"diff in |would reformat\b|\[warn\] code style issues")
"""The start of a complaint that only a check of the format prints."""


def _runs_all_parts(command: ShellCommand) -> bool:
    """Check whether every part of a command runs, even if one before it fails."""
    text = shell.remove_documents(command.run.command)
    return "&&" not in text and "||" not in text and _LOOP.search(text) is None


def _list_certain_runs(
    commands: Sequence[ShellCommand], edited_files: EditedFiles
) -> list[frozenset[_PartKey]]:
    """Return the simple commands that each command certainly ran, with their checkout."""
    certain_runs = []
    for command in commands:
        parts = _list_working_parts(command)
        if not command.may_have_worked and not _runs_all_parts(command):
            parts = parts[:1]
        certain_runs.append(_make_part_keys(command, parts, edited_files))
    return certain_runs


def _list_working_parts(command: ShellCommand) -> list[SimpleCommand]:
    return [part for part in command.parts if shell.find_program((part,))]


def _make_part_keys(
    command: ShellCommand, parts: Iterable[SimpleCommand], edited_files: EditedFiles
) -> frozenset[_PartKey]:
    """Return the keys of some simple commands of a command."""
    checkout = edited_files.find_checkout(command.run_folder)
    return frozenset((checkout, part.words) for part in parts)


def _find_last_pass(
    command: ShellCommand, passed_places: Mapping[_PartKey, _PartRun], edited_files: EditedFiles
) -> _PartRun | None:
    """Return when the checks of a command had all succeeded in its checkout for the last time, or None.

    The other parts, such as a formatter, only prepare the checks.
    """
    checks = []
    for part in command.parts:
        if _is_verification_part(part) or (is_check_part(part) and "--check" in part.words):
            checks.append(part)
    pure_checks = [part for part in checks if not _FIXER.search(" ".join(part.words))]
    passes: list[_PartRun] = []
    for key in _make_part_keys(command, pure_checks or checks, edited_files):
        if key not in passed_places:
            return None
        passes.append(passed_places[key])
    return min(passes, key=lambda part_pass: part_pass.place.order, default=None)


_FIXER = compile_lazily(r"[\s:-]fix(?=\s|\Z)")
"""A sign of a simple command that mends the files that it checks."""


def _list_folder_notes(command: ShellCommand, home: str) -> list[str]:
    folder = _find_other_folder(command, home)
    if folder:
        return [f"in {folder}"]
    return []


def _list_count_notes(
    runs: Sequence[ShellCommand],
    certain_runs: Sequence[frozenset[_PartKey]],
    edited_files: EditedFiles,
) -> list[str]:
    """Return how often a command ran, if more than once. A run of all its parts in a chain counts, too."""
    last_run = runs[-1]
    part_keys = _make_part_keys(last_run, _list_working_parts(last_run), edited_files)
    whole_count = sum(part_keys <= run_keys for run_keys in certain_runs) if part_keys else 0
    run_count = max(len(runs), whole_count)
    if run_count > 1:
        return [f"{run_count} runs"]
    return []


def _format_runs_note(
    first_notes: Sequence[str],
    last_run: ShellCommand,
    good_run: ShellCommand,
    last_pass: _PartRun | None,
    covering_pass: RecordPlace | None,
    edited_files: EditedFiles,
) -> str:
    notes = list(first_notes)
    if good_run.run.is_background:
        notes.append("in the background")
    if not good_run.has_worked:
        notes.append(UNKNOWN_STATUS)
    run_folder = good_run.run_folder
    if last_pass is not None and last_pass.place.order > last_run.run.result_place.order:
        is_weaker = good_run.has_worked and not last_pass.has_known_status
        status_note = UNKNOWN_STATUS if is_weaker else ""
        notes += [f"passed in another command, :{last_pass.place.number}", status_note]
        notes.append(edited_files.describe_passed_check(last_pass.place, run_folder))
        return ", ".join(filter(None, notes))
    label = "its last run"
    if last_run is not good_run and last_run.run.place.session_id == good_run.run.place.session_id:
        label = f"its last run, :{last_run.run.place.number},"
    if last_run.run.failed:
        notes.append(
            f"{label} failed{f', exit {last_run.run.status}' if last_run.run.status else ''}"
        )
    elif last_run.complaint and last_run is not good_run:
        notes.append(f"{label} printed: {cut_line(last_run.complaint, MAX_LINE_CHARACTERS // 2)}")
    if is_verification(last_run):
        result_place = last_run.run.result_place
        if not last_run.may_have_worked:
            edits_note = edited_files.describe_failed_check(result_place, run_folder)
        else:
            edits_note = edited_files.describe_passed_check(result_place, run_folder)
            if edits_note and covering_pass is not None:
                notes.append(f"a check that covers it passed since, :{covering_pass.number}")
                edits_note = edited_files.describe_passed_check(covering_pass, run_folder)
        notes.append(edits_note)
    return ", ".join(filter(None, notes))


def _make_check_run(command: ShellCommand) -> CheckRun:
    folder = command.run_folder
    return CheckRun(command.run, command.parts, command.key, folder, command.has_worked)


def _is_outdated(command: ShellCommand, edited_files: EditedFiles) -> bool:
    """Check whether files were edited after a check."""
    folder = command.run_folder
    return bool(edited_files.describe_passed_check(command.run.result_place, folder))


def _is_probe(runs: Sequence[ShellCommand], *, is_replaced: bool) -> bool:
    """Check whether a check ran only once, to see whether a change of the moment works.

    A probe has two of these signs: the check selects tests by their names, the check's output was
    searched, or a later check covers the probe after edits.
    """
    parts = runs[0].parts
    is_searched = any(part.words[:1] in _SEARCHES for part in parts)
    return len(runs) == 1 and selects_tests(parts) + is_searched + is_replaced > 1


_SEARCHES = (("grep",), ("egrep",), ("rg",))


MIN_DISTINCT_NAME_CHARACTERS = 8  # characters of a folder's name that is not a common word


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
    is_unclear = run.status is None or shell.searches_results(run.command)
    if is_unclear and not run.is_background and (match := _FAILURE_LINE.search(run.output)):
        return match[0].strip()
    return ""


TEMPORARY_PATH = compile_lazily(
    r"(?:\A|/)(?:__pycache__|node_modules|\.pytest_cache|scratchpad|"
    r"\.codex(?!/(?:worktrees|prompts|skills|rules|agents|hooks)/|/(?:config\.toml|hooks\.json|AGENTS\.md)\Z))/|"
    r"\A/(?:private/)?(?:tmp|var/tmp|var/folders)/|"
    r"\.(?:pyc|tmp|swp)\Z|\A/dev/|\A['\"`(]|[=<>|*?]"
)
"""Files that no longer exist or are useless when the work continues."""

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
