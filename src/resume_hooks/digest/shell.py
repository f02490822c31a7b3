"""Shell commands as a digest sees them: what only looks around, what is the same command, which files it changes.

A glance, not a shell: quotes and operators are told apart, nothing is expanded. What can't be told counts as work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

LONGEST = 4_000
"""Characters of a command that are looked at; what is longer carries a document."""

_TOKEN = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|(?:\\.|[^\s'"\\;&|<>()])+|\d?>>?&?|&&|\|\||[;&|<()]|\n""", re.DOTALL)
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n.*?(?:\n[ \t]*\2[ \t]*(?=\n|\)|\Z)|\Z)", re.DOTALL)
_QUOTING = re.compile(r"['\"\\<>]")
_SPLIT = re.compile(r"[;&|()\n]+")
_BREAKS = frozenset({"&&", "||", ";", "&", "|", "\n", "(", ")"})
_LOOKERS = frozenset(
    [
        "ls",
        "cat",
        "head",
        "tail",
        "grep",
        "egrep",
        "fgrep",
        "rg",
        "ag",
        "fd",
        "find",
        "sed",
        "awk",
        "wc",
        "echo",
        "printf",
        "cd",
        "pwd",
        "which",
        "type",
        "stat",
        "file",
        "tree",
        "du",
        "df",
        "diff",
        "cmp",
        "sort",
        "uniq",
        "cut",
        "tr",
        "jq",
        "less",
        "more",
        "true",
        "false",
        "test",
        "[",
        "[[",
        "sleep",
        "date",
        "env",
        "printenv",
        "whoami",
        "hostname",
        "ps",
        "basename",
        "dirname",
        "realpath",
        "readlink",
        "export",
        "set",
        "unset",
        "source",
        ".",
        "if",
        "then",
        "else",
        "elif",
        "fi",
        "for",
        "do",
        "done",
        "while",
        "case",
        "esac",
        "in",
        "wait",
        "read",
        "local",
        "xxd",
        "od",
        "strings",
        "column",
        "nl",
        "tac",
        "rev",
        "tput",
        "clear",
        "history",
        "alias",
        "id",
        "uname",
        "exit",
        "return",
        "break",
        "continue",
        "pushd",
        "popd",
        "xargs",
    ]
)
_GIT_LOOKS = frozenset(
    [
        "status",
        "log",
        "diff",
        "show",
        "rev-parse",
        "rev-list",
        "ls-files",
        "ls-tree",
        "ls-remote",
        "blame",
        "shortlog",
        "describe",
        "grep",
        "reflog",
        "remote",
        "config",
        "merge-base",
        "cat-file",
        "name-rev",
        "show-ref",
        "for-each-ref",
        "symbolic-ref",
        "whatchanged",
        "help",
        "version",
    ]
)
_MAY_CHANGE = re.compile(r">|\b(?:rm|rmdir|unlink|touch|tee|truncate|mv|cp|ln|install|sed|restore|checkout)\b")
_BARE_LOOKS = frozenset({"branch", "tag", "stash", "worktree"})
"""Parts of git that look around where only a listing is asked for."""

_BEFORE = frozenset({"do", "then", "else", "time", "!", "sudo", "command", "exec", "nohup", "{"})
"""Words before a command that are none."""

_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
_LEADING_CD = re.compile(r"\A\s*cd\s+(?:'[^']*'|\"[^\"]*\"|[^\s;&|]+)\s*(?:&&|;|\n)\s*")
_CUTS = re.compile(r"\s*(?:tail|head)(?:\s+-?\w+)*\s*")


class Simple(NamedTuple):
    """A command without operators: its words, unquoted, and the files that its output goes to."""

    words: tuple[str, ...]
    targets: tuple[str, ...]


@lru_cache(maxsize=4096)
def core(command: str) -> str:
    """The command without a leading ``cd`` and without what only cuts its output: one name for the same command."""
    found = " ".join(command.split())
    while found.startswith("cd ") and (moved := _LEADING_CD.match(found)):
        found = found[moved.end() :]
    while (shorter := _less_output(found)) != found:
        found = shorter
    return found


def _less_output(command: str) -> str:
    """A command without the last thing that only cuts its output or sends it elsewhere."""
    kept, bar, filtering = command.rpartition("|")
    if bar and _CUTS.fullmatch(filtering):
        return kept.rstrip()
    return command.removesuffix("2>&1").removesuffix("2>/dev/null").removesuffix("2> /dev/null").rstrip()


@lru_cache(maxsize=4096)
def is_work(command: str) -> bool:
    """Whether some part of a command does more than look around."""
    return any(_works(words) for words, _ in _simple(command))


@lru_cache(maxsize=4096)
def program(command: str) -> str:
    """What the first working part of a command runs: ``go test``, ``npm run``, ``pytest``; ``""`` for none."""
    for words, _ in _simple(command):
        if _works(words):
            named = [word for word in words if not _ASSIGNED.match(word)]
            plain = [word for word in named[1:2] if re.fullmatch(r"[a-z][\w:-]*", word)]
            return " ".join([named[0].rpartition("/")[2], *plain])
    return ""


def changed_paths(command: str) -> Iterator[str]:
    """Files that a command names as what it writes, moves or removes; a glob or a variable is passed over."""
    if _MAY_CHANGE.search(command) is None:
        return
    for words, targets in _simple(command):
        for path in (*targets, *_named(words)):
            if path and not re.search(r"[*?$`{}\n]|\A/dev/|\A-|\A&", path):
                yield path


def _named(words: tuple[str, ...]) -> tuple[str, ...]:
    """The files that a simple command changes by its arguments."""
    if words[:1] == ("git",):
        words = tuple(_git(words))
    name, rest = (words[0], words[1:]) if words else ("", ())
    operands = tuple(word for word in rest if not word.startswith("-"))
    if name in {"rm", "rmdir", "unlink", "touch", "tee", "truncate", "mv", "git-rm", "git-mv"}:
        return operands
    if name in {"cp", "ln", "install"}:
        return operands[-1:]
    if name == "sed" and any(re.match(r"-[a-zA-Z]*i|--in-place", word) for word in rest):
        scripts = 0 if any(word in {"-e", "-f"} for word in rest) else 1
        return tuple(word for word in operands[scripts:] if not re.match(r"[sy]\W|\d*[,\d]*[dapi]\Z", word))
    if name == "git-restore" or (name == "git-checkout" and "--" in rest):
        return operands
    return ()


def _git(words: tuple[str, ...]) -> Iterator[str]:
    """``git -C folder mv a b`` as ``git-mv a b``."""
    rest = list(words[1:])
    while rest and rest[0] in {"-C", "-c", "--git-dir", "--work-tree"}:
        del rest[:2]
    while rest and rest[0].startswith("-"):
        del rest[0]
    yield f"git-{rest[0]}" if rest else "git"
    yield from rest[1:]


def _works(words: tuple[str, ...]) -> bool:
    named = [word for word in words if not _ASSIGNED.match(word)]
    while named and named[0] in _BEFORE:
        del named[0]
    if not named:
        return False
    name = named[0].rpartition("/")[2]
    if name == "git":
        verb, *rest = _git(tuple(named))
        part = verb.removeprefix("git-")
        listing = not rest or rest[0] in {"list", "-a", "-r", "-v", "-vv", "--list", "-l", "--show-current"}
        return part != "git" and part not in _GIT_LOOKS and not (part in _BARE_LOOKS and listing)
    if name == "sed":
        return any(re.match(r"-[a-zA-Z]*i|--in-place", word) for word in named)
    return name not in _LOOKERS and not name.startswith(("#", "-"))


@lru_cache(maxsize=4096)
def _simple(command: str) -> tuple[Simple, ...]:
    """The simple commands in a command."""
    bare = command.replace("2>&1", "").replace("2>/dev/null", "")
    if _QUOTING.search(bare) is None:  # nine of ten; the walk over tokens costs ten times as much
        return tuple(Simple(tuple(part.split()), ()) for part in _SPLIT.split(bare) if part.strip())
    document_free = _HEREDOC.sub(r" \3\n", command[:LONGEST]) if "<<" in command else command[:LONGEST]
    found: list[Simple] = []
    words: list[str] = []
    targets: list[str] = []
    redirected = False
    for match in _TOKEN.finditer(document_free):
        token = match.group()
        if token in _BREAKS:
            found.append(Simple(tuple(words), tuple(targets)))
            words, targets, redirected = [], [], False
        elif ">" in token and token.strip("0123456789>&") == "":
            redirected = not token.endswith("&")  # 2>&1 leads to no file
        elif token.strip("<"):
            text = token[1:-1] if token[0] in "'\"" else token.replace("\\", "")
            (targets if redirected else words).append(text)
            redirected = False
    found.append(Simple(tuple(words), tuple(targets)))
    return tuple(one for one in found if one.words or one.targets)
