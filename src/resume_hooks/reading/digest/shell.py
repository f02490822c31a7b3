"""Parse shell commands into simple commands, and find the files that they change.

The parser also computes keys by which runs of the same command are recognized. It is a lexer and
not a shell: it recognizes quotes and operators but expands nothing. Only changes that are certain
are returned. Paths with globs or variables are skipped. So are files that git prints when it shows
other people's commits.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from resume_hooks.redaction.lazy_patterns import compile_lazily

# At most this many characters of a command are parsed. Its here-documents are not counted.
MAX_COMMAND_CHARACTERS = 2_000
# The number of commands whose results are cached, because a session often repeats a command.
MAX_CACHED_COMMANDS = 4_096
# At most this many here-documents are read from a single command.
MAX_HERE_DOCUMENTS = 100
# The maximum number of spaces and tabs on each side of the word that ends a here-document.
MAX_INDENT_CHARACTERS = 200
_TOKEN_PATTERN = compile_lazily(
    r"""'[^']*'|"(?:[^"\\]|\\.)*"|(?:\\.|[^\s'"\\;&|<>()])+|\d?>>?&?|&&|\|\||[;&|<()]|\n""",
    re.DOTALL,
)
_HERE_DOCUMENT_START_PATTERN = compile_lazily(r"(?<!<)<<-?[ \t]*(['\"]?)(\w{1,80})\1")
_COMMENT_PATTERN = compile_lazily(r"^[ \t]*#.*\n?", re.MULTILINE)
_QUOTING_CHARACTER_PATTERN = compile_lazily(r"['\"\\<>]")
_SEPARATOR_PATTERN = compile_lazily(r"[;&|()\n]+")
_SEPARATOR_TOKENS = frozenset({"&&", "||", ";", "&", "|", "\n", "(", ")"})
_CONDITION_PROGRAMS = frozenset({"[", "[[", "(("})
_LEADING_CD_PATTERN = compile_lazily(r"\s*cd\s+('[^']*'|\"[^\"]*\"|[^\s;&|]+)\s*(?:&&|;|\n)\s*")
_LOOSE_SEPARATOR_PATTERN = compile_lazily(r"[;|\n]|(?<!&)&(?!&)")
_OUTPUT_FILTER_PATTERN = compile_lazily(r"\s*(?:tail|head)(?:\s+-?\w+)*\s*")
_OUTPUT_SEARCH_PATTERN = compile_lazily(
    r"\|\s*e?grep(?:\s+-[Eianw]+)*\s+(?:\"([^\"$`]{1,200})\"|'([^']{1,200})')\s*(?=\||\Z)"
)
"""A search in a command's output, with the pattern, such as ``| grep -E 'passed|failed'``."""

_PASSED_CHECK_PATTERN = compile_lazily(r"\b(?:ok|pass)", re.IGNORECASE)
_FAILED_CHECK_PATTERN = compile_lazily(r"\bfail", re.IGNORECASE)
_ESCAPE_TABLE = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\r": "\\r"})

_COMMAND_PREFIXES = frozenset({
    "do", "then", "else", "if", "elif", "while", "until", "time", "!", "sudo", "command", "exec", "nohup", "env",
    "nice", "xargs", "timeout", "{",
})  # fmt: skip
"""Words that may come before a command, such as ``sudo``."""

_ASSIGNMENT_PATTERN = compile_lazily(r"[A-Za-z_]\w*=")
_SHELL_KEYWORDS = frozenset({"!", "{", "do", "then", "else", "if", "elif", "while", "until"})
_PREFIX_ARGUMENT_PATTERN = compile_lazily(r"-.*|[\d.]+[smhd]?|\{\}")
"""The arguments of a word that may come before a command, such as ``timeout``: its options, or a
number of seconds."""

_READING_PROGRAMS = frozenset({
    "ls", "cat", "head", "tail", "grep", "egrep", "fgrep", "rg", "ag", "fd", "find", "sed", "awk", "wc", "echo",
    "printf", "cd", "pwd", "which", "type", "stat", "file", "tree", "du", "df", "diff", "cmp", "sort", "uniq", "cut",
    "tr", "jq", "less", "more", "true", "false", "test", "[", "[[", "((", "sleep", "date", "printenv", "whoami",
    "hostname", "ps", "basename", "dirname", "realpath", "readlink", "export", "set", "unset", "source", ".", "fi",
    "for", "done", "case", "esac", "in", "wait", "read", "local", "xxd", "od", "strings", "column", "nl", "tac",
    "rev", "man", "col", "tput", "clear", "history", "alias", "id", "uname", "exit", "return", "break", "continue",
    "pushd", "popd", "}",
})  # fmt: skip

_READING_GIT_COMMANDS = frozenset({
    "status", "log", "diff", "show", "rev-parse", "rev-list", "ls-files", "ls-tree", "ls-remote", "blame",
    "shortlog", "describe", "grep", "reflog", "remote", "config", "merge-base", "cat-file", "name-rev", "show-ref",
    "for-each-ref", "symbolic-ref", "whatchanged", "help", "version",
})  # fmt: skip

_LISTING_GIT_COMMANDS = frozenset({"branch", "tag", "stash", "worktree"})
"""Git subcommands that only read if they are called without arguments or with an option for
listing."""

_LISTING_OPTIONS = frozenset({"list", "-a", "-r", "-v", "-vv", "--list", "-l", "--show-current"})
_SYSTEM_FOLDER_PATTERN = compile_lazily(r"\A/(?:usr/(?:local/)?|opt/homebrew/)?s?bin/")
_SUBCOMMAND_PATTERN = compile_lazily(r"[a-z][\w:-]*")

_UNKNOWN_PATH_PATTERN = compile_lazily(r"[*?$`{}\n]|\A(?:/dev/|-|&|\Z)")
_PROGRAMS_CHANGING_ALL_OPERANDS = frozenset(
    {"rm", "unlink", "touch", "tee", "truncate", "mv", "git rm", "git mv", "git restore"}
)
_PROGRAMS_CHANGING_LAST_OPERAND = frozenset({"cp", "ln", "install"})
_PROGRAMS_CHANGING_FILES = (
    _PROGRAMS_CHANGING_ALL_OPERANDS | _PROGRAMS_CHANGING_LAST_OPERAND | {"sed", "git"}
)
# Options whose value is not a file, by the program's name.
_OPTIONS_WITH_VALUE = {
    "truncate": "-s",
    "touch": "-d",
    "install": "-m",
}

_IN_PLACE_OPTION_PATTERN = compile_lazily(r"-[a-zA-Z]*i|--in-place")
_SED_SCRIPT_PATTERN = compile_lazily(r"[sy]\W|\d*[,\d]*[dapi]\Z")
_STATUS_ROW_PATTERN = compile_lazily(
    r"\n(?:[ \t]{0,8}(?:modified|new file|deleted|renamed|both modified|typechange): +|"
    r"(?:[ MADRCTU][MADRCTU]|[MADRCTU] ) (?=\S))(.+)"
)
_CHANGE_COUNT_PATTERN = compile_lazily(r"\d+ ?[+-]*|Bin .*")
_MODE_ROW_PATTERN = compile_lazily(r" (?:create|delete) mode \d{1,9} (.+)")
_FOREIGN_GIT_COMMANDS = frozenset(
    {
        "log",
        "show",
        "merge",
        "pull",
        "fetch",
        "cherry-pick",
        "rebase",
        "blame",
        "format-patch",
        "apply",
    }
)
"""Git subcommands that print the files of commits. These commits may have been made outside the
session."""


class SimpleCommand(NamedTuple):
    """A command without operators.

    ``words`` are the program and its unquoted arguments. ``output_paths`` are the files into which
    its output is redirected.
    """

    words: tuple[str, ...]
    output_paths: tuple[str, ...]


@lru_cache(maxsize=MAX_CACHED_COMMANDS)
def make_command_key(command: str) -> str:
    """Return a key that is equal for repeated runs of a command.

    The key is the command without a ``cd`` at its start and without filters for its output.
    """
    if len(command) > MAX_COMMAND_CHARACTERS:
        return command  # Only a command with a here-document is this long. It is not shortened.
    key = remove_output_filters(command)
    while key.startswith("cd ") and (match := _LEADING_CD_PATTERN.match(key)):
        key = key[match.end() :]
    return key


_PLAIN_COMMAND_LINE_PATTERN = compile_lazily(r"[\w./][\w \t./:=@%+,-]*")
"""A line that is a whole command and contains no quotes, operators or continuation mark."""


def make_runnable_command(command: str, folder: str) -> str:
    """Return the command on one line, without output filters and without a ``cd`` into ``folder``.

    The result is a command that can be run: several plain lines are joined with ";", and other
    lines are passed to ``eval``.
    """
    cd_match = _LEADING_CD_PATTERN.match(command)
    is_home = (
        cd_match is not None and cd_match[1].strip("'\"").rstrip("/") == folder.rstrip("/") != ""
    )
    inner_command = command[cd_match.end() :] if cd_match and is_home else command
    rows = [row.strip() for row in inner_command.strip().split("\n")]
    if len(rows) > 1 and all(_PLAIN_COMMAND_LINE_PATTERN.fullmatch(row) for row in rows):
        return "; ".join(rows)
    if len(rows) > 1:
        return "eval $'" + inner_command.strip().translate(_ESCAPE_TABLE) + "'"
    if len(inner_command) <= MAX_COMMAND_CHARACTERS:
        return remove_output_filters(inner_command)
    return inner_command


def remove_output_filters(command: str) -> str:
    """Return the command on one line, without the filters at its end that shorten its output.

    The redirection of errors is removed too. A search, such as ``grep``, is removed as a filter if
    its pattern matches the output of both passed and failed checks.
    """
    line = " ".join(command.split())
    previous = ""
    while previous != line:
        previous = line
        head, bar, last_part = line.rpartition("|")
        search = next(_find_result_searches(line), None)
        if search is not None and search.end() == len(line):
            line = line[: search.start()].rstrip()
        elif bar and not head.endswith("|") and _OUTPUT_FILTER_PATTERN.fullmatch(last_part):
            line = head.rstrip()
        else:
            line = (
                line.removesuffix("2>&1")
                .removesuffix("2>/dev/null")
                .removesuffix("2> /dev/null")
                .rstrip()
            )
    return line


def searches_check_results(command: str) -> bool:
    """Check whether a command searches its own output for lines about passed or failed checks."""
    return any(_find_result_searches(command))


def _find_result_searches(command: str) -> Iterator[re.Match[str]]:
    """Yield the searches in a command whose patterns match the output of both passed and failed checks."""
    for match in _OUTPUT_SEARCH_PATTERN.finditer(command):
        pattern = match[1] or match[2]
        if _PASSED_CHECK_PATTERN.search(pattern) and _FAILED_CHECK_PATTERN.search(pattern):
            yield match


@lru_cache(maxsize=MAX_CACHED_COMMANDS)
def parse_simple_commands(command: str) -> tuple[SimpleCommand, ...]:
    """Return the simple commands of which a command consists."""
    stripped = remove_here_documents(command).replace("2>&1", "").replace("2>/dev/null", "")
    if "#" in stripped:
        stripped = _COMMENT_PATTERN.sub("", stripped)
    stripped = stripped[:MAX_COMMAND_CHARACTERS]
    # Most commands contain no quoting character. Splitting such a command is ten times as fast as
    # tokenizing it.
    if _QUOTING_CHARACTER_PATTERN.search(stripped) is None:
        return tuple(
            SimpleCommand(_strip_prefixes(part.split()), ())
            for part in _SEPARATOR_PATTERN.split(stripped)
            if part.strip()
        )
    return tuple(
        parsed for parsed in _split_command(stripped) if parsed.words or parsed.output_paths
    )


def _split_command(command: str) -> list[SimpleCommand]:
    commands: list[SimpleCommand] = []
    words: list[str] = []
    targets: list[str] = []
    is_redirected = False
    last_end = 0
    for match in _TOKEN_PATTERN.finditer(command):
        token = match.group()
        if token in _SEPARATOR_TOKENS:
            commands.append(_make_simple_command(words, targets))
            words, targets, is_redirected = [], [], False
        elif ">" in token and token.strip("0123456789>&") == "":
            is_redirected = not token.endswith("&")  # ``2>&1`` does not write a file.
        elif token.strip("<"):
            if token[0] in "'\"":
                text = token[1:-1]
            else:
                text = token.replace("\\", "")
            is_value = (
                match.start() == last_end
                and bool(words)
                and _ASSIGNMENT_PATTERN.fullmatch(words[-1])
            )
            if is_value and not is_redirected:
                words[-1] += text
            else:
                (targets if is_redirected else words).append(text)
            is_redirected = False
        last_end = match.end()
    commands.append(_make_simple_command(words, targets))
    return commands


def _make_simple_command(words: list[str], output_paths: list[str]) -> SimpleCommand:
    program_words = _strip_prefixes(words)
    return SimpleCommand(
        program_words,
        ()
        if program_words[:1] and program_words[0] in _CONDITION_PROGRAMS
        else tuple(output_paths),
    )


def _strip_prefixes(words: list[str]) -> tuple[str, ...]:
    """Return a command's words without assignments and without words such as ``sudo`` before the program."""
    program_words = []
    for word in words:
        if "=" not in word or not _ASSIGNMENT_PATTERN.match(word):
            program_words.append(word)
    while program_words and program_words[0] in _COMMAND_PREFIXES:
        starter = program_words.pop(0)
        if starter == "command" and program_words[:1] in (["-v"], ["-V"]):
            return ()
        while (
            program_words
            and starter not in _SHELL_KEYWORDS
            and _PREFIX_ARGUMENT_PATTERN.fullmatch(program_words[0])
        ):
            del program_words[0]
    return tuple(program_words)


def remove_here_documents(command: str) -> str:
    """Return a command without its here-documents and without the words that start and end them."""
    if "<<" not in command or "\n" not in command:
        return command
    parts, end = [], 0
    for match in islice(_HERE_DOCUMENT_START_PATTERN.finditer(command), MAX_HERE_DOCUMENTS):
        line_end = command.find("\n", match.end())
        if match.start() < end or line_end < 0:
            continue
        parts += [command[end : match.start()], command[match.end() : line_end + 1]]
        end = _find_here_document_end(command, line_end + 1, match[2])
    return "".join([*parts, command[end:]])


def find_here_documents(command: str) -> Iterator[str]:
    """Yield the here-documents in a command, each including the delimiter that ends it."""
    end = 0
    for match in islice(_HERE_DOCUMENT_START_PATTERN.finditer(command), MAX_HERE_DOCUMENTS):
        line_end = command.find("\n", match.end())
        if match.start() >= end and line_end >= 0:
            end = _find_here_document_end(command, line_end + 1, match[2])
            yield command[line_end + 1 : end]


def _find_here_document_end(command: str, start: int, end_word: str) -> int:
    """Return the index at which the here-document that starts at ``start`` ends.

    The here-document ends after the line that contains only ``end_word``, or at the command's end
    if there is no such line.
    """
    while (word_start := command.find(end_word, start)) >= 0:
        start = word_start + len(end_word)
        before, after = (
            command[max(0, word_start - MAX_INDENT_CHARACTERS) : word_start].rstrip(" \t"),
            command[start : start + MAX_INDENT_CHARACTERS].lstrip(" \t\r"),
        )
        if before.endswith("\n") and (not after or after[0] in "\n)"):
            return start
    return len(command)


@lru_cache(maxsize=MAX_CACHED_COMMANDS)
def find_program(parts: tuple[SimpleCommand, ...]) -> str:
    """Return the first program in a command that does more than read, such as ``go test`` or ``pytest``.

    If all parts of the command only read, return ``""``.
    """
    for words, _ in parts:
        if words and _does_more_than_read(words):
            return " ".join(
                [
                    words[0].rpartition("/")[2] or words[0],
                    *filter(_SUBCOMMAND_PATTERN.fullmatch, words[1:2]),
                ]
            )
    return ""


def select_operands(words: Iterable[str]) -> list[str]:
    """Return the arguments of a command that are not options."""
    return [word for word in words if not word.startswith("-")]


def iterate_git_arguments(words: tuple[str, ...]) -> Iterator[str]:
    """Yield the words of a git command, starting with the subcommand.

    For example, ``git -C folder mv a b`` yields ``mv``, ``a`` and ``b``.
    """
    arguments = list(words[1:])
    while arguments and arguments[0].startswith("-"):
        del arguments[: 2 if arguments[0] in {"-C", "-c", "--git-dir", "--work-tree"} else 1]
    yield from arguments


def _does_more_than_read(words: tuple[str, ...]) -> bool:
    name = _SYSTEM_FOLDER_PATTERN.sub("", words[0])
    if name == "git":
        subcommand, *arguments = [*iterate_git_arguments(words), ""]
        is_listing = subcommand in _LISTING_GIT_COMMANDS and (
            arguments[0] in _LISTING_OPTIONS if arguments[:-1] else True
        )
        return bool(subcommand) and subcommand not in _READING_GIT_COMMANDS and not is_listing
    if name == "sed":
        return any(re.match(r"-[a-zA-Z]*i|--in-place", word) for word in words)
    if name == "find":
        return any(word in {"-delete", "-exec", "-execdir"} for word in words)
    return name not in _READING_PROGRAMS and not name.startswith(("#", "-"))


class GitListing(NamedTuple):
    """The files that git printed as changed.

    ``relative_paths`` are relative to the folder in which git ran, and ``root_paths`` are relative
    to the root of the repository.
    """

    relative_paths: tuple[str, ...]
    root_paths: tuple[str, ...]


class ChangedPath(NamedTuple):
    """A file that a command changes. The path is relative to the folder in which the command starts.

    ``is_removed`` means that the command removes the file.
    """

    path: str
    is_removed: bool


@lru_cache(maxsize=MAX_CACHED_COMMANDS)
def find_changed_paths(parts: tuple[SimpleCommand, ...]) -> tuple[ChangedPath, ...]:
    """Return the files that a command changes or removes."""
    return tuple(_list_changed_paths(parts))


def _list_changed_paths(parts: tuple[SimpleCommand, ...]) -> Iterator[ChangedPath]:
    if not any(
        targets or not _PROGRAMS_CHANGING_FILES.isdisjoint(words) for words, targets in parts
    ):
        return
    folder: str | None = ""
    restored_paths = _find_restored_paths(parts)
    for words, targets in parts:
        if words[:1] in {("cd",), ("pushd",)}:
            folder = _resolve_cd(folder, words)
        verb = words[0].rpartition("/")[2] if words else ""
        if verb == "git":
            verb = next(iterate_git_arguments(words), "")
        operands = _list_changed_operands(words)
        if verb in {"rm", "unlink"} and "--cached" not in words:
            removed_paths = operands
        elif verb == "mv":
            removed_paths = operands[:-1]
        else:
            removed_paths = ()
        for path, is_removed in (
            *((path, False) for path in targets),
            *((path, path in removed_paths) for path in operands),
        ):
            if path in restored_paths:
                continue
            if _UNKNOWN_PATH_PATTERN.search(path) is None and (
                folder is not None or path.startswith(("/", "~"))
            ):
                yield ChangedPath(
                    path if path.startswith(("/", "~")) else posixpath.join(folder or "", path),
                    is_removed,
                )


def _find_restored_paths(parts: tuple[SimpleCommand, ...]) -> frozenset[str]:
    """Return the files that a command first copies to a backup and later copies or moves back."""
    copies: set[tuple[str, str]] = set()
    restored: set[str] = set()
    for words, _ in parts:
        operands = select_operands(words[1:])
        if words[:1] not in {("cp",), ("mv",)} or len(operands) != 2:
            continue
        source, target = operands
        if (target, source) in copies:
            restored.add(target)
        elif words[0] == "cp":
            copies.add((source, target))
    return frozenset(restored)


@lru_cache(maxsize=MAX_CACHED_COMMANDS)
def does_status_cover_all_parts(command: str) -> bool:
    """Check whether a command's exit status shows that all of its simple commands succeeded.

    This is true if ``&&`` is the only operator between them.
    """
    return (
        _LOOSE_SEPARATOR_PATTERN.search(remove_here_documents(command).replace("2>&1", "").strip())
        is None
    )


def find_start_folder(parts: tuple[SimpleCommand, ...]) -> str | None:
    """Return the folder to which a command first changes.

    The result is ``""`` if the command does not start with ``cd``, and None if the folder is
    unknown.
    """
    folder: str | None = ""
    for words, _ in parts:
        if words[:1] != ("cd",):
            break
        folder = _resolve_cd(folder, words)
    return folder


def parse_git_listing(parts: tuple[SimpleCommand, ...], output: str) -> GitListing:
    """Return the files that git printed as changed by this session's work."""
    git_calls = []
    for words, _ in parts:
        if words[:1] == ("git",):
            git_calls.append([*iterate_git_arguments(words)])
    subcommands = {call[0] for call in git_calls if call}
    is_elsewhere = any(words[:1] == ("git",) and "-C" in words for words, _ in parts)
    if is_elsewhere or not subcommands:
        return GitListing((), ())
    has_commit = "commit" in subcommands and not subcommands & _FOREIGN_GIT_COMMANDS
    diff_calls = []
    for call in git_calls:
        if call[:1] == ["diff"] and not subcommands & _FOREIGN_GIT_COMMANDS:
            diff_calls.append(call)
    has_counts = bool(diff_calls) and all(map(_shows_own_changes, diff_calls))
    root_paths = []
    for row in output.split("\n") if has_commit or has_counts else ():
        if has_commit and (match := _MODE_ROW_PATTERN.fullmatch(row)):
            root_paths.append(_unquote_path(match[1]))
        if has_counts and (path := _parse_diffstat_path(row)):
            root_paths.append(path)
    if subcommands & {"status", "commit"}:
        status_paths = _STATUS_ROW_PATTERN.findall(f"\n{output}")
    else:
        status_paths = []
    return GitListing(
        tuple(_unquote_path(path.rpartition(" -> ")[2]) for path in status_paths), tuple(root_paths)
    )


def _resolve_cd(folder: str | None, words: tuple[str, ...]) -> str | None:
    """Return the folder to which a ``cd`` changes from ``folder``, or None if it is unknown."""
    target = next((word for word in words[1:] if word != "--"), "~")
    if target.startswith(("/", "~")) and _UNKNOWN_PATH_PATTERN.search(target) is None:
        return target
    if folder is None or _UNKNOWN_PATH_PATTERN.search(target):
        return None
    return posixpath.join(folder, target)


def _list_changed_operands(words: tuple[str, ...]) -> tuple[str, ...]:
    if words[:1] == ("git",):  # For example, ``git -C folder mv a b`` becomes ``mv``, ``a``, ``b``.
        verb, *arguments = [*iterate_git_arguments(words)] or [""]
        source_option = next((word for word in arguments if word in {"-s", "--source"}), None)
        # With "--", a checkout restores files and does not switch branches.
        if verb in {"checkout", "restore"} and "--" in arguments:
            words = ("git restore", *arguments[arguments.index("--") + 1 :])
        else:
            words = (
                f"git {verb}",
                *(
                    _drop_option_with_value(source_option, tuple(arguments))
                    if verb == "restore"
                    else arguments
                ),
            )
    if words:
        name, operand_words = (words[0].rpartition("/")[2], words[1:])
    else:
        name, operand_words = ("", ())
    if (value_option := _OPTIONS_WITH_VALUE.get(name)) in operand_words:
        operand_words = _drop_option_with_value(value_option, operand_words)
    operands = tuple(select_operands(operand_words))
    if name in _PROGRAMS_CHANGING_ALL_OPERANDS:
        return operands
    if name in _PROGRAMS_CHANGING_LAST_OPERAND:
        return operands[-1:]
    if name == "sed" and any(_IN_PLACE_OPTION_PATTERN.match(word) for word in operand_words):
        if any(word in {"-e", "-f"} for word in operand_words):
            script_count = 0
        else:
            script_count = 1
        return tuple(
            word
            for word in filter(None, operands[script_count:])
            if not _SED_SCRIPT_PATTERN.match(word)
        )
    return ()


def _drop_option_with_value(option: str | None, words: tuple[str, ...]) -> tuple[str, ...]:
    index = words.index(option) if option in words else len(words)
    return words[:index] + words[index + 2 :]


def _shows_own_changes(diff_words: list[str]) -> bool:
    """Check whether a ``git diff`` shows this session's work.

    Two kinds of diffs show it: the uncommitted changes, and named files compared with one commit.
    """
    arguments = diff_words[1 : diff_words.index("--")] if "--" in diff_words else diff_words[1:]
    commits = []
    for word in arguments:
        if not word.startswith("-") and word != "HEAD":
            commits.append(word)
    names_files = len(diff_words) > len(arguments) + 2
    # A single commit is compared with the work tree. A diff of two commits may show work from
    # outside the session.
    return not commits or (names_files and len(commits) == 1 and ".." not in commits[0])


def _parse_diffstat_path(row: str) -> str:
    """Return the path in a row of ``git diff --stat``, or ``""`` if the row shows a rename or a cut path."""
    path, bar, counts = row.rpartition(" | ")
    if (
        not bar
        or not path.startswith(" ")
        or _CHANGE_COUNT_PATTERN.fullmatch(counts.strip()) is None
    ):
        return ""
    if "=>" in path or path.lstrip().startswith("..."):
        return ""
    return _unquote_path(path)


def _unquote_path(path: str) -> str:
    return path.strip().strip('"')
