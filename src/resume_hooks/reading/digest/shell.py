"""Parse shell commands for a digest: their simple commands, their identity, and the files that they change.

This is a lexer and not a shell: it knows quotes and operators, and expands nothing. Only certain
changes count. Globs, variables, and git's output about commits from outside the session are
skipped.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from resume_hooks.redaction.lazy_patterns import compile_lazily

# the maximum characters of a command that are parsed, not counting its here-documents
LONGEST = 2_000
# the number of commands whose results are cached, because a session often repeats a command
REMEMBERED = 4_096
DOCUMENTS = 100  # the maximum number of here-documents that are searched for in a command
INDENT = 200  # the maximum white space around the word that ends a here-document
_TOKEN = compile_lazily(
    r"""'[^']*'|"(?:[^"\\]|\\.)*"|(?:\\.|[^\s'"\\;&|<>()])+|\d?>>?&?|&&|\|\||[;&|<()]|\n""",
    re.DOTALL,
)
_DOCUMENT = compile_lazily(r"(?<!<)<<-?[ \t]*(['\"]?)(\w{1,80})\1")
_COMMENT = compile_lazily(r"^[ \t]*#.*\n?", re.MULTILINE)
_QUOTING = compile_lazily(r"['\"\\<>]")
_SPLIT = compile_lazily(r"[;&|()\n]+")
_BREAKS = frozenset({"&&", "||", ";", "&", "|", "\n", "(", ")"})
_CONDITIONS = frozenset({"[", "[[", "(("})
_LEADING_CD = compile_lazily(r"\s*cd\s+('[^']*'|\"[^\"]*\"|[^\s;&|]+)\s*(?:&&|;|\n)\s*")
_ONE_OF_SEVERAL = compile_lazily(r"[;|\n]|(?<!&)&(?!&)")
_CUTS = compile_lazily(r"\s*(?:tail|head)(?:\s+-?\w+)*\s*")
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\r": "\\r"})

_BEFORE = frozenset({
    "do", "then", "else", "if", "elif", "while", "until", "time", "!", "sudo", "command", "exec", "nohup", "env",
    "nice", "xargs", "timeout", "{",
})  # fmt: skip
"""Words before a command that are not commands themselves."""

_ASSIGNED = compile_lazily(r"[A-Za-z_]\w*=")
_KEYWORDS = frozenset({"!", "{", "do", "then", "else", "if", "elif", "while", "until"})
_OPERAND = compile_lazily(r"-.*|[\d.]+[smhd]?|\{\}")
"""Arguments between such a word and the command: options, or the seconds of a timeout."""

_LOOKS = frozenset({
    "ls", "cat", "head", "tail", "grep", "egrep", "fgrep", "rg", "ag", "fd", "find", "sed", "awk", "wc", "echo",
    "printf", "cd", "pwd", "which", "type", "stat", "file", "tree", "du", "df", "diff", "cmp", "sort", "uniq", "cut",
    "tr", "jq", "less", "more", "true", "false", "test", "[", "[[", "((", "sleep", "date", "printenv", "whoami",
    "hostname", "ps", "basename", "dirname", "realpath", "readlink", "export", "set", "unset", "source", ".", "fi",
    "for", "done", "case", "esac", "in", "wait", "read", "local", "xxd", "od", "strings", "column", "nl", "tac",
    "rev", "tput", "clear", "history", "alias", "id", "uname", "exit", "return", "break", "continue", "pushd",
    "popd", "}",
})  # fmt: skip

_GIT_LOOKS = frozenset({
    "status", "log", "diff", "show", "rev-parse", "rev-list", "ls-files", "ls-tree", "ls-remote", "blame",
    "shortlog", "describe", "grep", "reflog", "remote", "config", "merge-base", "cat-file", "name-rev", "show-ref",
    "for-each-ref", "symbolic-ref", "whatchanged", "help", "version",
})  # fmt: skip

_GIT_LISTS = frozenset({"branch", "tag", "stash", "worktree"})
"""Git subcommands that only read if they are called to list something."""

_LISTING = frozenset({"list", "-a", "-r", "-v", "-vv", "--list", "-l", "--show-current"})
_SYSTEM = compile_lazily(r"\A/(?:usr/(?:local/)?|opt/homebrew/)?s?bin/")
_PLAIN = compile_lazily(r"[a-z][\w:-]*")

_UNKNOWN = compile_lazily(r"[*?$`{}\n]|\A(?:/dev/|-|&|\Z)")
_ALL_OPERANDS = frozenset(
    {"rm", "unlink", "touch", "tee", "truncate", "mv", "git rm", "git mv", "git restore"}
)
_LAST_OPERAND = frozenset({"cp", "ln", "install"})
_CHANGERS = _ALL_OPERANDS | _LAST_OPERAND | {"sed", "git"}
_VALUED = {
    "truncate": "-s",
    "touch": "-d",
    "install": "-m",
}  # an option with a value, where the value is not a file

_IN_PLACE = compile_lazily(r"-[a-zA-Z]*i|--in-place")
_SED_SCRIPT = compile_lazily(r"[sy]\W|\d*[,\d]*[dapi]\Z")
_STATUS = compile_lazily(
    r"\n(?:[ \t]{0,8}(?:modified|new file|deleted|renamed|both modified|typechange): +|"
    r"(?:[ MADRCTU][MADRCTU]|[MADRCTU] ) (?=\S))(.+)"
)
_COUNTS = compile_lazily(r"\d+ ?[+-]*|Bin .*")
_MODE = compile_lazily(r" (?:create|delete) mode \d{1,9} (.+)")
_FOREIGN = frozenset(
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
"""Git subcommands that print the files of commits that may come from outside this session."""


class SimpleCommand(NamedTuple):
    """A command without operators: its name and unquoted arguments, and the files that its output is written to."""

    words: tuple[str, ...]
    targets: tuple[str, ...]


@lru_cache(maxsize=REMEMBERED)
def command_core(command: str) -> str:
    """Return a key that identifies the command: the command without a leading ``cd`` and without output filters."""
    if len(command) > LONGEST:
        return command  # a command with a here-document has only one form
    found = remove_output_filters(command)
    while found.startswith("cd ") and (moved := _LEADING_CD.match(found)):
        found = found[moved.end() :]
    return found


_PLAIN_ROW = compile_lazily(r"[\w./][\w \t./:=@%+,-]*")
"""A row that is a whole command without quotes, operators or a continuation."""


def command_at_home(command: str, folder: str) -> str:
    """Return the command on one line, without filters of its output and without a leading ``cd`` into ``folder``.

    The result can be run: several plain lines are joined, other lines are passed to ``eval``.
    """
    moved = _LEADING_CD.match(command)
    home = moved is not None and moved[1].strip("'\"").rstrip("/") == folder.rstrip("/") != ""
    own = command[moved.end() :] if moved and home else command
    rows = [row.strip() for row in own.strip().split("\n")]
    if len(rows) > 1 and all(_PLAIN_ROW.fullmatch(row) for row in rows):
        return "; ".join(rows)
    if len(rows) > 1:
        return "eval $'" + own.strip().translate(_ESCAPES) + "'"
    if len(own) <= LONGEST:
        return remove_output_filters(own)
    return own


def remove_output_filters(command: str) -> str:
    """Return the command on one line, without an output filter at its end and without a redirection of its errors."""
    found = " ".join(command.split())
    longer = ""
    while longer != found:
        longer = found
        kept, bar, filtering = found.rpartition("|")
        if bar and not kept.endswith("|") and _CUTS.fullmatch(filtering):
            found = kept.rstrip()
        else:
            found = (
                found.removesuffix("2>&1")
                .removesuffix("2>/dev/null")
                .removesuffix("2> /dev/null")
                .rstrip()
            )
    return found


@lru_cache(maxsize=REMEMBERED)
def simple_commands(command: str) -> tuple[SimpleCommand, ...]:
    """Return the simple commands that a command consists of."""
    bare = without_documents(command).replace("2>&1", "").replace("2>/dev/null", "")
    if "#" in bare:
        bare = _COMMENT.sub("", bare)
    bare = bare[:LONGEST]
    if _QUOTING.search(bare) is None:  # the common case, because tokenizing costs ten times as much
        return tuple(
            SimpleCommand(_program_words(part.split()), ())
            for part in _SPLIT.split(bare)
            if part.strip()
        )
    return tuple(one for one in _walk_command(bare) if one.words or one.targets)


def _walk_command(command: str) -> list[SimpleCommand]:
    found: list[SimpleCommand] = []
    words: list[str] = []
    targets: list[str] = []
    redirected = False
    end = 0
    for match in _TOKEN.finditer(command):
        token = match.group()
        if token in _BREAKS:
            found.append(_simple_command(words, targets))
            words, targets, redirected = [], [], False
        elif ">" in token and token.strip("0123456789>&") == "":
            redirected = not token.endswith("&")  # 2>&1 does not write a file
        elif token.strip("<"):
            if token[0] in "'\"":
                text = token[1:-1]
            else:
                text = token.replace("\\", "")
            is_value = match.start() == end and bool(words) and _ASSIGNED.fullmatch(words[-1])
            if is_value and not redirected:
                words[-1] += text
            else:
                (targets if redirected else words).append(text)
            redirected = False
        end = match.end()
    found.append(_simple_command(words, targets))
    return found


def _simple_command(words: list[str], targets: list[str]) -> SimpleCommand:
    own = _program_words(words)
    return SimpleCommand(own, () if own[:1] and own[0] in _CONDITIONS else tuple(targets))


def _program_words(words: list[str]) -> tuple[str, ...]:
    """Return the words without assignments, and without words that only start the actual command."""
    own = []
    for word in words:
        if "=" not in word or not _ASSIGNED.match(word):
            own.append(word)
    while own and own[0] in _BEFORE:
        starter = own.pop(0)
        if starter == "command" and own[:1] in (["-v"], ["-V"]):
            return ()
        while own and starter not in _KEYWORDS and _OPERAND.fullmatch(own[0]):
            del own[0]
    return tuple(own)


def without_documents(command: str) -> str:
    """Return a command without its here-documents and without the words that end them."""
    if "<<" not in command or "\n" not in command:
        return command
    kept, at = [], 0
    for opening in islice(_DOCUMENT.finditer(command), DOCUMENTS):
        begins = command.find("\n", opening.end())
        if opening.start() < at or begins < 0:
            continue
        kept += [command[at : opening.start()], command[opening.end() : begins + 1]]
        at = _find_document_end(command, begins + 1, opening[2])
    return "".join([*kept, command[at:]])


def find_documents(command: str) -> Iterator[str]:
    """Yield the here-documents of a command, each with the line that ends it."""
    at = 0
    for opening in islice(_DOCUMENT.finditer(command), DOCUMENTS):
        begins = command.find("\n", opening.end())
        if opening.start() >= at and begins >= 0:
            at = _find_document_end(command, begins + 1, opening[2])
            yield command[begins + 1 : at]


def _find_document_end(command: str, at: int, word: str) -> int:
    """Return the end of a here-document that starts ``at``: the end of the line that consists only of its word.

    If there is no such line, return the end of the command.
    """
    while (found := command.find(word, at)) >= 0:
        at = found + len(word)
        before, after = (
            command[max(0, found - INDENT) : found].rstrip(" \t"),
            command[at : at + INDENT].lstrip(" \t\r"),
        )
        if before.endswith("\n") and (not after or after[0] in "\n)"):
            return at
    return len(command)


@lru_cache(maxsize=REMEMBERED)
def find_program(parts: tuple[SimpleCommand, ...]) -> str:
    """Return the program of a command's first part that does work, such as ``go test`` or ``pytest``, or ``""``."""
    for words, _ in parts:
        if words and _is_working_command(words):
            return " ".join(
                [words[0].rpartition("/")[2] or words[0], *filter(_PLAIN.fullmatch, words[1:2])]
            )
    return ""


def select_operands(words: Iterable[str]) -> list[str]:
    """Return the arguments of a command that are not options."""
    return [word for word in words if not word.startswith("-")]


def git_words(words: tuple[str, ...]) -> Iterator[str]:
    """Yield the words of a command, with ``git -C folder mv a b`` as ``mv``, ``a``, ``b``."""
    rest = list(words[1:])
    while rest and rest[0].startswith("-"):
        del rest[: 2 if rest[0] in {"-C", "-c", "--git-dir", "--work-tree"} else 1]
    yield from rest


def _is_working_command(words: tuple[str, ...]) -> bool:
    name = _SYSTEM.sub("", words[0])
    if name == "git":
        part, *rest = [*git_words(words), ""]
        lists = part in _GIT_LISTS and (rest[0] in _LISTING if rest[:-1] else True)
        return bool(part) and part not in _GIT_LOOKS and not lists
    if name == "sed":
        return any(re.match(r"-[a-zA-Z]*i|--in-place", word) for word in words)
    if name == "find":
        return any(word in {"-delete", "-exec", "-execdir"} for word in words)
    return name not in _LOOKS and not name.startswith(("#", "-"))


class GitListing(NamedTuple):
    """Files that git printed as changed: ``here`` relative to its folder, ``rooted`` relative to the repository."""

    here: tuple[str, ...]
    rooted: tuple[str, ...]


@lru_cache(maxsize=REMEMBERED)
def changes_by(parts: tuple[SimpleCommand, ...]) -> tuple[tuple[str, bool], ...]:
    """Return the files that a command names as changed, relative to its start folder, and which are removed."""
    return tuple(_changes_in_order(parts))


def _changes_in_order(parts: tuple[SimpleCommand, ...]) -> Iterator[tuple[str, bool]]:
    if not any(targets or not _CHANGERS.isdisjoint(words) for words, targets in parts):
        return
    base: str | None = ""
    restored = _restored_paths(parts)
    for words, targets in parts:
        if words[:1] in {("cd",), ("pushd",)}:
            base = _folder_moved_to(base, words)
        verb = words[0].rpartition("/")[2] if words else ""
        if verb == "git":
            verb = next(git_words(words), "")
        named = _named_paths(words)
        if verb in {"rm", "unlink"} and "--cached" not in words:
            removed = named
        elif verb == "mv":
            removed = named[:-1]
        else:
            removed = ()
        for path, gone in (
            *((path, False) for path in targets),
            *((path, path in removed) for path in named),
        ):
            if path in restored:
                continue
            if _UNKNOWN.search(path) is None and (base is not None or path.startswith(("/", "~"))):
                yield (
                    path if path.startswith(("/", "~")) else posixpath.join(base or "", path),
                    gone,
                )


def _restored_paths(parts: tuple[SimpleCommand, ...]) -> frozenset[str]:
    """Return the paths that a command copies elsewhere, and from there back again."""
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


@lru_cache(maxsize=REMEMBERED)
def ends_with_all(command: str) -> bool:
    """Check whether a command's exit status covers all of its simple commands, which are joined by ``&&`` only."""
    return _ONE_OF_SEVERAL.search(without_documents(command).replace("2>&1", "").strip()) is None


def folder_after_cd(parts: tuple[SimpleCommand, ...]) -> str | None:
    """Return the folder that a command first changes to, ``""`` if it does not, or None if the folder is unknown."""
    base: str | None = ""
    for words, _ in parts:
        if words[:1] != ("cd",):
            break
        base = _folder_moved_to(base, words)
    return base


def listed_by_git(parts: tuple[SimpleCommand, ...], output: str) -> GitListing:
    """Return the files that the session's own git commands printed as changed."""
    calls = []
    for words, _ in parts:
        if words[:1] == ("git",):
            calls.append([*git_words(words)])
    verbs = {call[0] for call in calls if call}
    elsewhere = any(words[:1] == ("git",) and "-C" in words for words, _ in parts)
    if elsewhere or not verbs:
        return GitListing((), ())
    commits = "commit" in verbs and not verbs & _FOREIGN
    differs = []
    for call in calls:
        if call[:1] == ["diff"] and not verbs & _FOREIGN:
            differs.append(call)
    counts = bool(differs) and all(map(_shows_this_work, differs))
    rooted = []
    for row in output.split("\n") if commits or counts else ():
        if commits and (match := _MODE.fullmatch(row)):
            rooted.append(_unquote_path(match[1]))
        if counts and (path := _counted_path(row)):
            rooted.append(path)
    if verbs & {"status", "commit"}:
        here = _STATUS.findall(f"\n{output}")
    else:
        here = []
    return GitListing(
        tuple(_unquote_path(path.rpartition(" -> ")[2]) for path in here), tuple(rooted)
    )


def _folder_moved_to(base: str | None, words: tuple[str, ...]) -> str | None:
    """Return the target folder of a ``cd``, or None if it is unknown."""
    target = next((word for word in words[1:] if word != "--"), "~")
    if target.startswith(("/", "~")) and _UNKNOWN.search(target) is None:
        return target
    if base is None or _UNKNOWN.search(target):
        return None
    return posixpath.join(base, target)


def _named_paths(words: tuple[str, ...]) -> tuple[str, ...]:
    if words[:1] == ("git",):  # ``git -C folder mv a b`` as ``git mv``, ``a``, ``b``
        verb, *own = [*git_words(words)] or [""]
        source = next((word for word in own if word in {"-s", "--source"}), None)
        # a checkout of files restores the files
        if verb in {"checkout", "restore"} and "--" in own:
            words = ("git restore", *own[own.index("--") + 1 :])
        else:
            words = (
                f"git {verb}",
                *(_words_without_option(source, tuple(own)) if verb == "restore" else own),
            )
    if words:
        name, rest = (words[0].rpartition("/")[2], words[1:])
    else:
        name, rest = ("", ())
    if (valued := _VALUED.get(name)) in rest:
        rest = _words_without_option(valued, rest)
    operands = tuple(select_operands(rest))
    if name in _ALL_OPERANDS:
        return operands
    if name in _LAST_OPERAND:
        return operands[-1:]
    if name == "sed" and any(_IN_PLACE.match(word) for word in rest):
        if any(word in {"-e", "-f"} for word in rest):
            scripts = 0
        else:
            scripts = 1
        return tuple(
            word for word in filter(None, operands[scripts:]) if not _SED_SCRIPT.match(word)
        )
    return ()


def _words_without_option(option: str | None, words: tuple[str, ...]) -> tuple[str, ...]:
    at = words.index(option) if option in words else len(words)
    return words[:at] + words[at + 2 :]


def _shows_this_work(call: list[str]) -> bool:
    """Check whether a ``git diff`` shows this work: uncommitted changes, or named files compared with a commit."""
    before = call[1 : call.index("--")] if "--" in call else call[1:]
    commits = []
    for word in before:
        if not word.startswith("-") and word != "HEAD":
            commits.append(word)
    named = (
        len(call) > len(before) + 2
        # one commit is compared with the folder, but a comparison of two commits may show work from
        # outside the session
    )
    return not commits or (named and len(commits) == 1 and ".." not in commits[0])


def _counted_path(row: str) -> str:
    """Return the path in a row of ``--stat``, or ``""`` for a renamed or shortened one."""
    path, bar, counts = row.rpartition(" | ")
    if not bar or not path.startswith(" ") or _COUNTS.fullmatch(counts.strip()) is None:
        return ""
    if "=>" in path or path.lstrip().startswith("..."):
        return ""
    return _unquote_path(path)


def _unquote_path(path: str) -> str:
    return path.strip().strip('"')
