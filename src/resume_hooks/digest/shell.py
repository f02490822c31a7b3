"""Shell commands as a digest sees them: what only looks around, what is the same command, which files it changes.

A glance, not a shell: quotes and operators are told apart, nothing is expanded. What can't be told counts as work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

LONGEST = 4_000
"""Characters of a command that are looked at; what is longer carries a document."""

_TOKEN = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|(?:\\.|[^\s'"\\;&|<>()])+|\d?>>?&?|&&|\|\||[;&|<()]|\n""", re.DOTALL)
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n.*?(?:\n[ \t]*\2[ \t]*(?=\n|\)|\Z)|\Z)", re.DOTALL)
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
_BARE_LOOKS = frozenset({"branch", "tag", "stash", "worktree"})
"""Parts of git that look around where only a listing is asked for."""

_BEFORE = frozenset({"do", "then", "else", "time", "!", "sudo", "command", "exec", "nohup", "{"})
"""Words before a command that are none."""

_ASSIGNED = re.compile(r"[A-Za-z_]\w*=")
_LEADING_CD = re.compile(r"\A\s*cd\s+(?:'[^']*'|\"[^\"]*\"|[^\s;&|]+)\s*(?:&&|;|\n)\s*")
_OUTPUT = re.compile(r"(?:\s*2>&1)?\s*\|\s*(?:tail|head)(?:\s+-[\w]*\s*\d*)*\s*\Z|\s*2>&1\s*\Z|\s*2>\s*/dev/null\s*\Z")


@lru_cache(maxsize=4096)
def core(command: str) -> str:
    """The command without a leading ``cd`` and without what only cuts its output: one name for the same command."""
    found = " ".join(command.split())
    shorter = _LEADING_CD.sub("", found)
    while shorter != found:
        found, shorter = shorter, _LEADING_CD.sub("", shorter)
    shorter = _OUTPUT.sub("", found)
    while shorter and shorter != found:
        found, shorter = shorter, _OUTPUT.sub("", shorter)
    return found


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
def _simple(command: str) -> tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]:
    """The simple commands in a command: their words, unquoted, and the files that their output goes to."""
    found: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    words: list[str] = []
    targets: list[str] = []
    redirected = False
    for match in _TOKEN.finditer(_HEREDOC.sub(r" \3\n", command[:LONGEST])):
        token = match.group()
        if token in _BREAKS:
            found.append((tuple(words), tuple(targets)))
            words, targets, redirected = [], [], False
        elif ">" in token and token.strip("0123456789>&") == "":
            redirected = not token.endswith("&")  # 2>&1 leads to no file
        elif token.strip("<"):
            text = token[1:-1] if token[0] in "'\"" else token.replace("\\", "")
            (targets if redirected else words).append(text)
            redirected = False
    found.append((tuple(words), tuple(targets)))
    return tuple(pair for pair in found if pair[0] or pair[1])
