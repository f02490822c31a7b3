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
from resume_hooks.reading.digest.entries import DigestEntry, make_entry, redact_and_learn
from resume_hooks.reading.digest.facts import EMPTY_ANSWERS, FileChange, RecordPlace, ShellRun
from resume_hooks.reading.digest.file_states import NOT_COMMITTED, OPEN_STATES, Edit, FileStates
from resume_hooks.reading.digest.git_seen import find_run_folder
from resume_hooks.reading.digest.prose import cut_line
from resume_hooks.reading.digest.repository import RepositoryState
from resume_hooks.reading.digest.script_writes import files_written_by_scripts
from resume_hooks.reading.digest.shell import SimpleCommand
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.system.text import format_count, plain_line

LONGEST = 320  # the maximum characters of a command that is worth running again
OFTEN = 5  # the minimum number of runs of a command that counts as frequent
# the weight of a word from the last request, and the maximum number of words that count
WANTED, MOST_WANTED = 4, 3
ALIKE = 3  # the maximum number of commands of one program that are listed first
SOON = 12  # the number of commands after a failed command that are searched for its replacement
TURNS = 3  # the number of prompts for which an error may still be relevant
LINE = 160  # the maximum characters of a quoted line of output
NAMED = 120  # the maximum characters of a failed command, which precedes its output
TELLING_ERROR = 1_000  # the maximum characters of a tool's error that are read
TELLING_ROWS = 3  # the maximum number of lines of a failed command's output that are quoted
WORDS = 320  # the maximum characters of these lines
INTERRUPTED = 130  # the exit status of a command that was ended by Ctrl-C
# the number of characters at each end of an output that are searched for an error message
ENDS = 800

_TELLING = compile_lazily(
    r"error|fail|fatal|panic|denied|not found|cannot|can't|exception|refused|unknown|invalid",
    re.IGNORECASE,
)
_COMPLAINT = compile_lazily(
    r"\n[ \t]{0,8}(?:(?:\S{1,40}[:\]] )?(?:error|fatal|panic|unknown \w{1,40})\b[^\n]{0,3}[: ]|"
    r"(?:--- |test result: )?fail(?:ed)?\b|traceback|[^\n]{1,120}: command not found|(?:cannot|could not|unable to) |"
    r"\(eval\):|not ok \d|npm err!|make(?:\[\d\])?: \*\*\*|tests: +[1-9]\d{0,5} failed|[1-9]\d{0,5} failing\b|"
    r"={3,} [^\n]{0,40}\b[1-9]\d{0,5} (?:failed|errors?)\b|exit status [1-9]|build failed|"
    r"found [1-9]\d{0,5} errors?\b|aborting\b|none of the git remotes|gh: |http [45]\d\d\b|"
    r"={0,80} ?no tests (?:ran|found)\b|collected 0 items\b)[^\n]*"
)
"""The pattern matches lower-case text after a line end, because ignoring case or anchoring at a
line start would double the search time."""


_FAILURE = compile_lazily(
    r"[^\n]{0,300}(?:no such file or directory|command not found|\bnot ok\b|panicked at|"
    r"\b[1-9]\d{0,5} (?:tests?(?:\(s\))? )?(?:failed|failures?|errors?)\b)[^\n]*",
    re.IGNORECASE,
)
"""A line of a failure in the output of a command whose exit status is unknown."""


class ShellCommand(NamedTuple):
    """A run with its simple commands, its ``core`` and ``program``.

    ``complaint`` is an error message in the run's output. ``worked`` means that the run certainly
    succeeded.
    """

    run: ShellRun
    parts: tuple[SimpleCommand, ...]
    core: str
    program: str
    complaint: str
    worked: bool

    @property
    def may_have_worked(self) -> bool:
        """Whether it worked, or ended without a complaint and without a known exit status."""
        run = self.run
        is_unknown = run.status is None and not run.failed and not run.background
        return self.worked or (is_unknown and not self.complaint)


def list_commands(facts: LineageFacts) -> list[ShellCommand]:
    """Return every command of a lineage, oldest first."""
    rows = []
    for run in facts.runs:
        parts = shell.simple_commands(run.command)
        program = shell.find_program(parts)
        core = shell.command_core(run.command)
        complaint = _find_complaint(run) if program else ""
        worked = not complaint and _has_succeeded(run)
        rows.append(ShellCommand(run, parts, core, program, complaint, worked))
    return rows


def _has_succeeded(run: ShellRun) -> bool:
    """Check whether a run succeeded and, if it is a search, found something."""
    if run.status != 0 or run.failed:
        return False
    output = run.output.strip()
    if output in _NO_OUTPUT:
        return _LOOK_UP.match(run.command) is None
    return output not in EMPTY_ANSWERS and _FOUND_NOTHING.match(output) is None


def _folder_elsewhere(command: ShellCommand, home: str) -> str:
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


def working_commands(
    commands: Sequence[ShellCommand],
    folder: str,
    removed: Sequence[tuple[str, int]],
    wanted: Collection[str] = (),
) -> CommandList:
    """Return commands that are worth running again, as they were typed in the last successful run.

    Commands that contain ``wanted`` words of the last request come first. The others are ordered by
    how often and how recently they ran, and only a few commands of one program come before the
    rest. Commands are left out if they only inspect or show help, contain a document or a message,
    or failed. ``removed`` are removed folders, each with the order of the command that removed it.
    """
    groups: dict[str, list[ShellCommand]] = {}
    for command in _with_checks_of_probes(commands):
        if command.program:
            groups.setdefault(command.core, []).append(command)
    end = commands[-1].run.place.order or 1 if commands else 1
    rows = []
    for found in groups.values():
        good = next((command for command in reversed(found) if command.may_have_worked), None)
        if good is not None and _is_run_again(good) and not _lost_its_folder(good, removed):
            if _names_removed(good, commands, removed):
                continue
            weight = min(len(found), OFTEN) + OFTEN * found[-1].run.place.order / end
            weight += WANTED * _count_wanted(good, wanted)
            rows.append(
                (
                    -weight,
                    -good.run.place.order,
                    good,
                    _runs_note(found, good, _folder_elsewhere(good, folder)),
                )
            )
    listed: Counter[str] = Counter()
    first: list[tuple[ShellCommand, str]] = []
    rest: list[tuple[ShellCommand, str]] = []
    for *_, command, note in sorted(rows, key=lambda row: row[:2]):
        listed[command.program] += 1
        (first if listed[command.program] <= ALIKE else rest).append((command, note))
    checks: list[DigestEntry] = []
    others: list[DigestEntry] = []
    known: set[tuple[str, ...]] = set()
    for command, note in (*first, *rest):
        parts = {part.words for part in command.parts if shell.find_program((part,))}
        if parts <= known:
            continue  # a combination of commands that are already listed
        known |= parts
        typed = command.run.command
        shown = (
            redact_and_learn(typed) if "\n" in typed else typed
        )  # an escape sequence before a secret would hide the secret
        row = make_entry(shell.command_at_home(shown, folder), command.run.place, note, LONGEST)
        if _is_check(command) and not _pushes(command):
            checks.append(row)
        else:
            others.append(row)
    return CommandList(tuple(checks), tuple(others))


def _with_checks_of_probes(commands: Sequence[ShellCommand]) -> Iterator[ShellCommand]:
    """Yield the commands and, after each that inspects several things at once, the checks in it as own commands."""
    for command in commands:
        yield command
        typed = command.run.command
        folder = find_run_folder(command.run, command.parts)
        is_probe = _PROBE.search(typed) is not None and _LOOP.search(typed) is None
        if not is_probe or not command.may_have_worked or not folder:
            continue
        if TEMPORARY.search(f"{folder}/") or _has_complaint(command.run.output):
            continue
        for part in command.parts:
            program = shell.find_program((part,))
            is_plain = not any(_EXPANDED.search(word) for word in part.words)
            if (
                program
                and is_plain
                and not program.startswith(_FORGE)
                and has_check_word(part.words)
            ):
                text = shlex.join(part.words)
                run = command.run._replace(command=text, folder=folder)
                yield command._replace(run=run, parts=(part,), core=text, program=program)


_LOOP = compile_lazily(
    r"\b(?:for|while|until|case|function)\s|\(\)\s*\{|<<|\|\||(?:\A|[\n;&(])\s*!\s"
)
"""Signs of a script whose parts do not work alone, or may fail."""

_EXPANDED = compile_lazily(r"[*?$`{}~\n]|\A(?:/private)?/tmp/")
"""Signs of a word that the shell expands, or of a temporary file."""


def _has_complaint(output: str) -> bool:
    """Check whether a line anywhere in an output reports a failure."""
    return _COMPLAINT.search(f"\n{output.lower()}") is not None


def _count_wanted(command: ShellCommand, wanted: Collection[str]) -> int:
    """Return how many of a command's words are in the last request. At most a few count."""
    words: set[str] = set()
    for part in command.parts:
        if shell.find_program((part,)):
            words.update(_COMMAND_WORD.findall(" ".join(part.words).lower()))
    return min(MOST_WANTED, len(words.intersection(wanted)))


def _lost_its_folder(command: ShellCommand, removed: Sequence[tuple[str, int]]) -> bool:
    """Check whether the folder of a command is temporary or was later removed."""
    if _moves_to_temporary_folder(command):
        return True
    folder = find_run_folder(command.run, command.parts)
    gone_later = [gone for gone, order in removed if command.run.place.order < order]
    return bool(folder) and any(f"{folder}/".startswith(f"{gone}/") for gone in gone_later)


def _moves_to_temporary_folder(command: ShellCommand) -> bool:
    """Check whether a command changes to a temporary folder."""
    folder = find_run_folder(command.run, command.parts)
    return folder != command.run.folder and TEMPORARY.search(f"{folder}/") is not None


def _names_removed(
    command: ShellCommand, commands: Sequence[ShellCommand], removed: Sequence[tuple[str, int]]
) -> bool:
    """Check whether a command names a folder that was removed after it, and that nothing named since."""
    at = command.run.place.order
    names: list[tuple[str, int]] = [
        (folder, order) for folder, order in removed if order > at and _names(command, folder)
    ]
    for folder, order in names:
        if not any(_names(other, folder) for other in commands if _worked_after(other, order)):
            return True
    return False


def _worked_after(command: ShellCommand, order: int) -> bool:
    """Check whether a command that does more than look or remove succeeded after a record."""
    is_work = bool(command.program) and command.program.split()[0] != "rm"
    return is_work and command.worked and command.run.place.order > order


def _names(command: ShellCommand, folder: str) -> bool:
    """Check whether a command has a path in a folder, or the folder's name, as a word."""
    name = posixpath.basename(folder)
    is_telling = len(name) >= TELLING_NAME and ("-" in name or "_" in name)
    if name not in command.run.command:
        return False
    base = find_run_folder(command.run, command.parts)
    for part in command.parts:
        for word in part.words[1:]:
            path = posixpath.normpath(posixpath.join(base, word))
            is_inside = "/" in word and f"{path}/".startswith(f"{folder}/")
            if is_inside or (is_telling and word == name):
                return True
    return False


def _is_check(command: ShellCommand) -> bool:
    """Check whether a command checks, builds, starts or publishes something, by the words of its program."""
    for part in command.parts:
        program = shell.find_program((part,))
        if program and not program.startswith(_FORGE) and has_check_word(part.words):
            return True
    return False


def _pushes(command: ShellCommand) -> bool:
    """Check whether a command pushes. A push makes the command obsolete, whatever else the command checked."""
    git_calls = [part.words for part in command.parts if part.words[:1] == ("git",)]
    return any("push" in shell.git_words(words) for words in git_calls)


def has_check_word(words: Sequence[str]) -> bool:
    """Check whether a simple command checks or builds something, and does not only show a version or a list."""
    if _LOOKS_UP.intersection(words[1:LOOK_WORDS]) or words[-1] in _VERSION_OPTIONS:
        return False
    for word in words[:CHECK_WORDS]:
        is_operand = word.startswith("-") or "://" in word or " " in word
        if not is_operand and _CHECKS.search(word.rpartition("/")[2]):
            return True
    return False


_FORGE = ("gh ", "glab ", "curl", "wget", "git ")
"""Programs that query runs on a server, or whose branches have names of checks."""

CHECK_WORDS = 4  # the number of words at the start of a simple command that show its purpose
# the number of words at the start that are searched for a sign that the command only queries
# something
LOOK_WORDS = 3
_LOOKS_UP = frozenset(
    {"which", "where", "info", "list", "ls", "search", "version", "outdated", "why"}
)
_VERSION_OPTIONS = frozenset({"--version", "-V", "--help"})
_CHECKS = compile_lazily(
    r"\b(?:tests?|bats|pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|spec|lint|eslint|ruff|mypy|pyright|flake8|black|"
    r"prettier|clippy|vet|golangci-lint|gofmt|fmt|format|tsc|typecheck|check|build|compile|make|cmake|ninja|gradlew?|"
    r"mvn|sbt|xcodebuild|run|start|serve|dev|up|deploy|publish|release|install|sync|migrate|generate|bench|coverage|ci)\b"
)
"""Words of commands that check, build, start or publish something."""

_ONCE_ONLY = compile_lazily(
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


_PROBE = compile_lazily(
    r"\A\s*(?:which|type|command\s+-v)\s|\necho\b|\becho\s+[\"'](?:[-=*#]{2,}|\w+[_ ]OK\b)|\A\s*(?:for|while|until)\s|"
    r"\|\s*(?:python3?|perl|ruby|node)\b|\n.*\n"
)
"""Commands that inspect several things at once: with headings between them, in a loop, or on
several lines."""


def _is_run_again(command: ShellCommand) -> bool:
    typed = command.run.command
    if len(typed) > LONGEST or _ONCE_ONLY.search(typed) or _PROBE.search(typed):
        return False
    written = [path for path, _ in shell.changes_by(command.parts)]
    return not any(TEMPORARY.search(path) for path in written)


def _runs_note(found: Sequence[ShellCommand], good: ShellCommand, folder: str) -> str:
    notes = [f"in {folder}"] if folder else []
    notes += [f"{len(found)} runs"] if len(found) > 1 else []
    if good.run.background:
        notes.append("in the background")
    if not good.worked:
        notes.append("exit status not recorded")
    last = found[-1]
    which = "its last run"
    if last is not good and last.run.place.session_id == good.run.place.session_id:
        which = f"its last run, :{last.run.place.number},"
    if last.run.failed:
        notes.append(f"{which} failed{f', exit {last.run.status}' if last.run.status else ''}")
    elif last.complaint and last is not good:
        notes.append(f"{which} printed: {cut_line(last.complaint, LINE // 2)}")
    return ", ".join(notes)


def replaced_commands(commands: Sequence[ShellCommand]) -> Iterator[DigestEntry]:
    """Yield commands that never succeeded, each with the next successful command of the same program.

    The latest come first, and each command is listed once.
    """
    known = {command.core for command in commands if command.may_have_worked}
    for index in range(len(commands) - 1, -1, -1):
        failed = commands[index]
        if failed.core in known:
            continue
        problem = _what_failed(failed)
        if not problem:
            continue
        known.add(failed.core)
        if _PROBE.search(failed.run.command) is not None or _moves_to_temporary_folder(failed):
            continue
        if not _is_check(failed) and not failed.program.startswith(_CHANGING):
            continue  # a failed inspection is useless
        if _is_check(failed) and any(
            _closes_failure(other, failed)
            for other in commands[index + 1 :]
            if other.may_have_worked
        ):
            continue  # an edit fixed it
        later = (other for other in commands[index + 1 : index + SOON] if other.worked)
        instead = next((other for other in later if _is_like(failed, other)), None)
        if _ONCE_ONLY.search(failed.run.command) and instead is None:
            continue
        said = f"`{cut_line(redact_and_learn(failed.core), NAMED)}` {problem}"
        if instead and instead.core != failed.core:
            said = f"{said}; then `{cut_line(redact_and_learn(instead.core), LINE)}` worked"
        yield make_entry(said, failed.run.place, most=LONGEST)


TELLING_NAME = 8  # characters of a folder's name that is not a common word
LIKE = 0.6  # the minimum fraction of common words if one command was tried instead of the other
_CHANGING = ("git ", "gh ", "docker", "kubectl", "terraform", "psql", "ssh", "scp")
"""Programs whose failure is relevant, although they check nothing."""


def _is_like(failed: ShellCommand, other: ShellCommand) -> bool:
    """Check whether a command tried the same in another way, with the same program and half of the words."""
    if not failed.program or other.program != failed.program:
        return False
    words, others = set(failed.core.split()), set(other.core.split())
    return len(words & others) >= LIKE * max(len(words), len(others))


def open_errors(
    facts: LineageFacts, commands: Sequence[ShellCommand], since: int
) -> Iterator[DigestEntry]:
    """Yield failures that may remain: the last failures after ``since`` that no later success of their kind followed.

    A failure is resolved by a later command of the same program, or by a later command that starts
    with the same word and checks, builds or runs something. A server tool's failure is resolved by
    the tool's next success.
    """
    last: dict[str, ShellCommand] = {}
    for command in commands:
        # a command that the user stopped says nothing, and leaves an earlier failure open
        if command.program and command.run.status != INTERRUPTED:
            last[command.core] = command
    good = [command for command in commands if command.may_have_worked]
    for command in sorted(last.values(), key=lambda command: command.run.place.order, reverse=True):
        problem = _what_failed(command)
        if not problem or command.run.place.order <= since or not _is_run_again(command):
            continue
        if not _is_check(command) and not command.program.startswith(_CHANGING):
            continue  # a failed inspection is not a remaining error
        if not any(_closes_failure(later, command) for later in good):
            yield make_entry(
                f"`{cut_line(redact_and_learn(command.core), NAMED)}` {problem}", command.run.place
            )
    for tool, said in facts.tool_errors.items():
        if said.place.order > since:
            yield make_entry(
                f"{tool}: {cut_line(redact_and_learn(said.text[:TELLING_ERROR]), LINE)}", said.place
            )


def _closes_failure(later: ShellCommand, failed: ShellCommand) -> bool:
    """Check whether a successful command proves that an earlier failure is fixed."""
    if later.run.place.order < failed.run.place.order:
        return False
    if _is_inside(failed.parts, later.run.command):
        return True
    programs, others = _list_programs(failed.parts), _list_programs(later.parts)
    tools = {program.split()[0] for program in programs} - _SHARED_TOOLS
    return bool(programs & others) or bool(tools & {program.split()[0] for program in others})


def _is_inside(parts: Sequence[SimpleCommand], command: str) -> bool:
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

_MOVERS = frozenset({"cp", "mv", "rm", "mkdir"})
"""Programs that only move files."""


@lru_cache(maxsize=shell.REMEMBERED)
def _list_programs(parts: tuple[SimpleCommand, ...]) -> frozenset[str]:
    """Return the programs of simple commands, without programs that only move files."""
    found = {shell.find_program((part,)) for part in parts} - {""}
    telling = {program for program in found if program.split()[0] not in _MOVERS}
    return frozenset(telling or found)


def _what_failed(command: ShellCommand) -> str:
    """Return how a command failed, in the words of its output, or ``""`` if it is not known to have failed."""
    if command.run.status == INTERRUPTED:
        return ""
    if not command.run.failed:
        if command.complaint:
            status = "exit 0" if command.run.status == 0 else "exit status not recorded"
            return f"{status}, but: {cut_line(command.complaint, LINE)}"
        return ""
    rows = [
        row.strip()
        for row in command.run.output.split("\n")
        if row.strip() and not row.startswith("Exit code")
    ]
    telling = list(dict.fromkeys(filter(_TELLING.search, rows)))[:TELLING_ROWS]
    said = cut_line(" / ".join(telling) or (rows[-1] if rows else "no output"), WORDS)
    if command.run.status:
        return f"exit {command.run.status}: {said}"
    return f"failed: {said}"


def _find_complaint(run: ShellRun) -> str:
    """Return the line that reports a failure in the output of a successful command. A pipe may hide the exit status."""
    if run.failed:
        return ""
    for part in (run.output[:ENDS], run.output[max(ENDS, len(run.output) - ENDS) :]):
        if part and (match := _COMPLAINT.search(f"\n{part.lower()}")):
            return part[match.start() : match.end() - 1].strip()
    if run.status is None and not run.background and (match := _FAILURE.search(run.output)):
        return match[0].strip()
    return ""


PATH = 300  # the maximum characters of a path; for a longer path only the end is shown
LISTED = "listed by git"  # the note on a file that only git lists as changed
# the note on a file that only a sub-agent's report names as changed
REPORTED = "as a sub-agent reported"
# the note on a file if the command that wrote it failed at an unknown point
UNSURE = "its command failed"

REMOVED = "removed"
MOVED = "moved, to where a variable says"

WRITES = 60  # the maximum number of files that one command may name as changed
MOST_LISTED = 8  # the maximum number of listed files that only git names
LISTINGS = 300  # the maximum number of files that git may list after one command

TEMPORARY = compile_lazily(
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
    return TEMPORARY.search(path) is not None


_WINDOWS = compile_lazily(r"[A-Za-z]:[\\/]|\\\\")
_URL = compile_lazily(r"https://[^\s\"'<>)\]]{1,500}")
_LINK = compile_lazily(
    r"https://.*/(?:(?:pull|merge_requests|issues|runs)/\d+|releases/tag/[\w.-]+)"
)
_MAKES = compile_lazily(
    r"\b(?:gh|glab|hub)\s+(?:pr|mr|issue|release)\s+(?:create|new)\b|\bgit\s+(?:-\S+\s+\S+\s+)*push\b"
)


_REMOVES_FOLDER = compile_lazily(r"\brm\s+-(?:[a-zA-Z]*[rR][a-zA-Z]*f|[a-zA-Z]*f[a-zA-Z]*[rR])")


_NO_OUTPUT = frozenset({"", "(Bash completed with no output)"})
"""An empty output, and the client's words for one."""

_FOUND_NOTHING = compile_lazily(r"no [\w ]{1,60}\b(?:found|match)\b[^\n]*\Z", re.IGNORECASE)
_LOOK_UP = compile_lazily(
    r"(?:rtk (?:proxy )?)?(?:(?:gh|glab) (?:(?:issue|pr|mr|run|release|repo|workflow|ci|label|cache) "
    r"(?:view|list|diff|status|checks)|search|api|auth|browse)\b|"
    r"(?:curl|wget|defuddle|https?|lynx|w3m)\b(?=.*https?://)"
    r"(?!.*https?://(?:localhost|127\.|0\.0\.0\.0|\[::1\]|[\w-]+\.local\b|\$)))"
)
"""Commands that only query a forge or fetch a page from another host: without output they found nothing."""


class Touch(NamedTuple):
    """A change of a file: its position, and a note on how certain the change is, or ``""``.

    ``removed`` means that the file is gone, as a successful command proves. ``is_new`` means that
    the file did not exist before.
    """

    place: RecordPlace
    doubt: str = ""
    removed: bool = False
    is_new: bool = False


class Paths:
    """Paths relative to the home ``folder`` of a session, with git's present state of these paths."""

    def __init__(self, folder: str, git: RepositoryState) -> None:
        self.folder = folder
        self._git = git
        self._relative: dict[tuple[str, str], str] = {}

    def relative_path(self, path: str, folder: str = "") -> str:
        """Return a path relative to the home folder if it is in the home folder.

        A relative path is relative to ``folder`` or to the home folder.
        """
        relative = self._relative.get((path, folder))
        if relative is None:  # cached because a session names the same files many times
            relative = self._relative[path, folder] = self._find_relative(path, folder)
        return relative

    def _find_relative(self, path: str, folder: str) -> str:
        home = self.folder
        kind = ntpath if _WINDOWS.match(home) or _WINDOWS.match(path) else posixpath
        whole = path if path.startswith("~") else kind.normpath(kind.join(home, folder, path))
        inside = home and whole.startswith(kind.join(home, ""))
        return str(whole[len(kind.join(home, "")) :] if inside else whole)

    def git_root_of(self, folder: str) -> str:
        """Return the root of the paths that git prints in ``folder``: the home folder if no other root is known."""
        known = self._git.root or self.folder
        if f"{folder}/".startswith(f"{known}/"):
            return known
        return folder

    def is_in_repository(self, path: str) -> bool:
        """Check whether git's present state of a relative path is known."""
        root = self._git.root
        return bool(root) and f"{posixpath.join(self.folder, path)}/".startswith(f"{root}/")

    def is_dirty(self, path: str) -> bool:
        """Check whether a relative path has uncommitted changes."""
        root, dirty = self._git.root, self._git.dirty
        return bool(dirty) and posixpath.relpath(posixpath.join(self.folder, path), root) in dirty


def touched_files(
    changes: Sequence[FileChange], commands: Sequence[ShellCommand], paths: Paths
) -> dict[str, list[Touch]]:
    """Return the changed files: files that tools changed, that commands name, and that git's output lists."""
    found: dict[str, list[Touch]] = {}
    for change in changes:
        doubt = REPORTED if change.is_reported else ""
        found.setdefault(paths.relative_path(change.path, change.folder), []).append(
            Touch(change.place, doubt, is_new=change.is_new)
        )
    for command in commands:
        doubt = UNSURE if command.run.failed else ""
        for path, gone in islice(shell.changes_by(command.parts), WRITES):
            name = paths.relative_path(path, command.run.folder)
            is_removed = gone and _proves_removal(command)
            touch = Touch(command.run.place, doubt, is_removed)
            found.setdefault(name, []).append(touch)
            if is_removed:
                _mark_contents_removed(found, name, touch.place.order)
        for path in islice(_files_of_scripts(command), WRITES):
            found.setdefault(paths.relative_path(path), []).append(Touch(command.run.place, doubt))
    _add_listed_files(found, changes, commands, paths)
    return found


def _files_of_scripts(command: ShellCommand) -> Iterator[str]:
    """Yield the paths that scripts in a command write, unless it works in several folders."""
    names = files_written_by_scripts(command.run.command)
    if not names:
        return
    folder = find_run_folder(command.run, command.parts)
    moves = [part.words for part in command.parts if part.words[:1] in {("cd",), ("pushd",)}]
    if folder and len(moves) <= 1:
        for name in names:
            yield posixpath.join(folder, name)


def _proves_removal(command: ShellCommand) -> bool:
    """Check whether a command certainly removed the paths that it names."""
    if not command.worked:
        return False
    # the command does not fail if the folder is missing
    is_forced = _REMOVES_FOLDER.search(command.run.command) is not None
    return is_forced or shell.ends_with_all(command.run.command)


def _mark_contents_removed(found: dict[str, list[Touch]], folder: str, order: int) -> None:
    """Mark the files in a removed folder as gone, because the command names only the folder."""
    inside = f"{folder.rstrip('/')}/"
    for path, touches in found.items():
        if path.startswith(inside):
            earlier = [touch for touch in touches if touch.place.order < order]
            if earlier:
                last = max(earlier, key=lambda touch: touch.place.order)
                touches.append(last._replace(removed=True))


def _add_listed_files(
    found: dict[str, list[Touch]],
    changes: Sequence[FileChange],
    commands: Sequence[ShellCommand],
    paths: Paths,
) -> None:
    """Add the files that git printed as changed, without files that it listed before the session's first change."""
    # The first command that may have changed a file. Files that git listed before it were changed
    # earlier.
    works = (
        c.run.place.order
        for c in commands
        if c.program and not c.program.startswith(("git ", "gh "))
    )
    began = min((*(change.place.order for change in changes[:1]), *works), default=0)
    before: set[str] = set()
    for command in commands:
        # Each file once, in git's order, because the order of a set differs between processes.
        listed = dict.fromkeys(islice(_files_listed(command, paths), LISTINGS))
        if command.run.place.order < began:
            before.update(listed)
            continue
        for path in listed:
            if path not in before:
                found.setdefault(path, []).append(Touch(command.run.answered, LISTED))


def _files_listed(command: ShellCommand, paths: Paths) -> Iterator[str]:
    if "git" not in command.run.command or (moved := shell.folder_after_cd(command.parts)) is None:
        return
    folder = posixpath.join(command.run.folder, moved)
    listed = shell.listed_by_git(command.parts, command.run.output)
    yield from (paths.relative_path(path, folder) for path in listed.here)
    yield from (paths.relative_path(path, paths.git_root_of(folder)) for path in listed.rooted)


def find_missing_files(
    found: Mapping[str, Sequence[Touch]], commands: Sequence[ShellCommand], paths: Paths
) -> set[str]:
    """Return the changed files that a later command did not find, by themselves or by a folder above them."""
    missing: set[str] = set()
    for command in commands:
        if "No such file" not in command.run.output:
            continue
        moved = shell.folder_after_cd(command.parts)
        for name in _MISSING.findall(f"\n{command.run.output}"):
            if moved is None and not name.startswith("/"):
                continue
            gone = paths.relative_path(name, posixpath.join(command.run.folder, moved or ""))
            for path, touches in found.items():
                last = max(touch.place.order for touch in touches)
                if f"{path}/".startswith(f"{gone}/") and last < command.run.place.order:
                    missing.add(path)
    return missing


_MISSING = compile_lazily(
    r"\n(?:ls|cat|stat|sed|head|tail|wc): (?:cannot (?:access|open|stat) |can't read )?"
    r"['\"]?([^\n:'\"]{1,300})['\"]?(?: for reading)?: No such file or directory"
)


def list_edits(found: Mapping[str, Sequence[Touch]]) -> list[Edit]:
    """Return the changes by tools and commands, without changes that only git's listings show."""
    edits: list[Edit] = []
    for path, touches in found.items():
        for touch in touches:
            if touch.doubt in {"", REPORTED}:
                edits.append(Edit(path, touch.place.order, touch.is_new, touch.removed))
    return edits


def only_listed(found: Mapping[str, Sequence[Touch]]) -> list[str]:
    """Return the files that only git's listings show as changed."""
    paths: list[str] = []
    for path, touches in found.items():
        if all(touch.doubt == LISTED for touch in touches):
            paths.append(path)
    return paths


def changed_files(
    found: Mapping[str, list[Touch]],
    paths: Paths,
    states: FileStates,
    branch: str,
    gone: Sequence[tuple[str, int]],
    checkouts: Sequence[str] = (),
) -> Iterator[DigestEntry]:
    """Yield the changed files, each with its state at the session's end.

    Files come first if they are in the home folder, certain, uncommitted or recent. ``gone`` are
    removed folders, each with the order of the command that removed it. Files that only git names
    may have been changed by others: if there are many, those that the session did not commit are
    left out. Temporary files are left out, except in the session's ``checkouts``.
    """

    def rank(path: str) -> tuple[bool, bool, bool, int, str]:
        latest = max(touch.place.order for touch in found[path])
        outside = path.startswith(("/", "~", "..")) or _WINDOWS.match(path) is not None
        is_unsure = all(touch.doubt for touch in found[path])
        is_settled = _state_note(path, paths, states, branch) not in OPEN_STATES
        return outside, is_unsure, is_settled, -latest, path

    contents = _contents_of_folders(found)
    removed = {path for path in contents if _last_touch(found[path]).removed}
    folded = {
        inner for path in removed for inner in contents[path] if _last_touch(found[inner]).removed
    }
    strangers = _find_foreign_files(found, paths, states, branch)
    alone = set(only_listed(found)) - strangers
    listed = 0
    for path in sorted(found, key=rank):
        if is_temporary(path, checkouts) or path in folded or path in strangers:
            continue
        if path in contents:  # a folder that a command changed in addition to its files
            if path in removed:
                files = format_count(sum(inner in folded for inner in contents[path]), "file")
                fate = _removal_note(path, states)
                place = str(_last_touch(found[path]).place)
                yield DigestEntry(f"{_shown_path(path)}/", place, f"{fate} with {files}")
            continue
        last = _last_touch(found[path])
        is_removed = last.removed or path in states.removed
        if states.was_taken_back(path) and not is_removed:
            continue
        listed += path in alone
        if listed > MOST_LISTED:
            continue  # there may be hundreds of files
        if is_removed:
            state = _removal_note(path, states)
        else:
            state = _state_note(path, paths, states, branch)
        entry = _make_file_entry(path, last, state, gone)
        if path in alone and listed == MOST_LISTED < len(alone):
            others = format_count(len(alone) - MOST_LISTED, "other")
            entry = entry._replace(note=f"{entry.note}, as are {others}")
        yield entry


def _make_file_entry(
    path: str, last: Touch, state: str, gone: Sequence[tuple[str, int]]
) -> DigestEntry:
    """Return the row of a file. If the file's folder was removed, the path is relative to that folder."""
    notes = [last.doubt, state]
    folder = _find_removed_folder(path, last, gone)
    if folder:
        path = path[len(folder) + 1 :]
        notes.append(f"in {posixpath.basename(folder)}, a folder that was removed")
    return DigestEntry(_shown_path(path), str(last.place), ", ".join(filter(None, notes)))


def _find_foreign_files(
    found: Mapping[str, list[Touch]], paths: Paths, states: FileStates, branch: str
) -> frozenset[str]:
    """Return the files that only git names as changed and the session did not commit, or none if there are few."""
    alone: list[str] = []
    for path in only_listed(found):
        if _state_note(path, paths, states, branch) in {"", *OPEN_STATES}:
            alone.append(path)
    if len(alone) > MOST_LISTED:
        return frozenset(alone)
    return frozenset()


def _find_removed_folder(path: str, last: Touch, gone: Sequence[tuple[str, int]]) -> str:
    """Return the removed folder outside the home folder that contained a file, or ``""``."""
    for folder, order in gone:
        if path.startswith(f"{folder}/") and last.place.order < order:
            return folder
    return ""


def _removal_note(path: str, states: FileStates) -> str:
    """Return the note on a path that no longer exists: a command removed or moved it."""
    after = states.moved_to.get(path)
    if after is None:
        return REMOVED
    if not after:
        return MOVED
    return f"moved to {_shown_path(after)}"


def _state_note(path: str, paths: Paths, states: FileStates, branch: str) -> str:
    """Return the state of a file according to git or, if git cannot run, to the session's own commands."""
    if paths.is_dirty(path):
        return NOT_COMMITTED
    note = states.note_on(path, branch)
    if note in OPEN_STATES and paths.is_in_repository(path):
        return ""
    return note


def _last_touch(touches: Sequence[Touch]) -> Touch:
    """Return the last certain change of a file or, if there is none, the last change."""
    return max(reversed(_sure_touches(touches) or touches), key=lambda touch: touch.place.order)


def _sure_touches(touches: Sequence[Touch]) -> list[Touch]:
    return [touch for touch in touches if not touch.doubt]


def _contents_of_folders(found: Mapping[str, list[Touch]]) -> dict[str, list[str]]:
    """Return the paths that are folders of other paths, each with the paths in the folder."""
    contents: dict[str, list[str]] = {}
    for path in found:
        folder = posixpath.dirname(path)
        while folder not in {"", "/"}:
            if folder in found:
                contents.setdefault(folder, []).append(path)
            folder = posixpath.dirname(folder)
    return contents


def entries_of_marks(
    facts: LineageFacts, found: Mapping[str, list[Touch]], paths: Paths
) -> Iterator[DigestEntry]:
    """Yield the TODO comments that the session wrote into files and that still exist, the latest first."""
    for mark in facts.marks.comments():
        path = paths.relative_path(mark.path, mark.folder)
        if TEMPORARY.search(path) or _last_touch(found[path]).removed:
            continue
        yield make_entry(f"{mark.text} ({_shown_path(path)})", mark.place)


def entries_of_steps(facts: LineageFacts, paths: Paths) -> Iterator[DigestEntry]:
    """Yield the unchecked boxes of the plan that the session wrote last."""
    for step in facts.marks.open_steps():
        path = _shown_path(paths.relative_path(step.path, step.folder))
        if TEMPORARY.search(path) is None:
            yield make_entry(step.text, step.place, f"no check in {path}")


def read_files(
    facts: LineageFacts, paths: Paths, found: dict[str, list[Touch]]
) -> Iterator[DigestEntry]:
    """Yield the files that were read but not changed, the latest first."""
    changed = {_end_of_path(name) for name in found}
    for (path, folder), place in reversed(facts.read_files.items()):
        name = paths.relative_path(path, folder)
        if _end_of_path(name) not in changed and TEMPORARY.search(name) is None:
            yield DigestEntry(_shown_path(name), str(place))


def _end_of_path(path: str) -> str:
    """Return the last two components of a path, which are equal in another worktree."""
    return "/".join(path.split("/")[-2:])


def entries_of_artefacts(facts: LineageFacts, standing: Sequence[Commit]) -> Iterator[DigestEntry]:
    """Yield existing commits, pull requests and the like, the latest first, then the links that the client recorded."""
    rows: list[tuple[int, DigestEntry]] = []
    for commit in reversed(standing):
        rows.append((commit.place.order, _entry_of_commit(commit)))
    for run in facts.runs:
        if not run.failed and "https://" in run.output and _MAKES.search(run.command):
            for url in _URL.findall(run.output):
                if link := _LINK.match(url):
                    rows.append((run.answered.order, make_entry(link[0], run.answered)))
    rows.sort(key=lambda row: -row[0])
    yield from (entry for _, entry in rows)
    yield from (
        make_entry(link, place) for link, place in reversed(facts.pull_request_links.items())
    )


def _entry_of_commit(commit: Commit) -> DigestEntry:
    """Return the row of a commit: its hash, subject and branch, if they are known."""
    named = f"commit {commit.hash}" if commit.hash else "commit:"
    notes = [f"on {commit.branch}"] if commit.branch else []
    if commit.is_rebased:
        notes.append("rebased since, which gave it a new hash")
    return make_entry(f"{named} {commit.subject}", commit.place, ", ".join(notes))


def _shown_path(path: str) -> str:
    return plain_line(path if len(path) <= PATH else f"…{path[-PATH:]}")
