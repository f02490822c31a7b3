"""Which commands do more than look around, and what it is that they run. What can't be told counts as work."""

from __future__ import annotations

import re
from collections.abc import Iterator

from resume_hooks.reading.digest.shell import Simple

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
"""Parts of git that look around where only a listing is asked for."""

_LISTING = frozenset({"list", "-a", "-r", "-v", "-vv", "--list", "-l", "--show-current"})
_SYSTEM = re.compile(r"\A/(?:usr/(?:local/)?|opt/homebrew/)?s?bin/")
_PLAIN = re.compile(r"[a-z][\w:-]*")


def program_of(parts: tuple[Simple, ...]) -> str:
    """What the first working part of a command runs: ``go test``, ``npm run``, ``pytest``; ``""`` for none."""
    for words, _ in parts:
        if words and _works(words):
            return " ".join([words[0].rpartition("/")[2] or words[0], *filter(_PLAIN.fullmatch, words[1:2])])
    return ""


def git_words(words: tuple[str, ...]) -> Iterator[str]:
    """``git -C folder mv a b`` as ``mv``, ``a``, ``b``."""
    rest = list(words[1:])
    while rest and rest[0].startswith("-"):
        del rest[: 2 if rest[0] in {"-C", "-c", "--git-dir", "--work-tree"} else 1]
    yield from rest


def _works(words: tuple[str, ...]) -> bool:
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
