"""Which files a shell command changes: those that it names, and those that git then prints as changed.

A claim that can't be held is none: globs and variables are passed over, and so is what git prints of other people's
commits.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from resume_hooks.reading.digest.shell import SimpleCommand, git_words

_UNKNOWN = re.compile(r"[*?$`{}\n]|\A(?:/dev/|-|&|\Z)")
_ALL_OPERANDS = frozenset(
    {"rm", "rmdir", "unlink", "touch", "tee", "truncate", "mv", "git rm", "git mv", "git restore"}
)
_LAST_OPERAND = frozenset({"cp", "ln", "install"})
_CHANGERS = _ALL_OPERANDS | _LAST_OPERAND | {"sed", "git"}
_VALUED = {"truncate": "-s", "touch": "-d", "install": "-m"}  # an option that is followed by a value, which is no file

_IN_PLACE = re.compile(r"-[a-zA-Z]*i|--in-place")
_SED_SCRIPT = re.compile(r"[sy]\W|\d*[,\d]*[dapi]\Z")
_STATUS = re.compile(
    r"^(?:[ \t]{0,8}(?:modified|new file|deleted|renamed|both modified|typechange): +|"
    r"(?:[ MADRCTU][MADRCTU]|[MADRCTU] ) (?=\S))(.+)$",
    re.MULTILINE,
)
_COUNTS = re.compile(r"\d+ ?[+-]*|Bin .*")
_MODE = re.compile(r" (?:create|delete) mode \d{1,9} (.+)")
_FOREIGN = frozenset(
    {"log", "show", "merge", "pull", "fetch", "cherry-pick", "rebase", "blame", "format-patch", "apply"}
)
"""Parts of git that print files of commits that this session may have had nothing to do with."""


class GitListing(NamedTuple):
    """Files that git printed as changed: ``here`` as told from the folder it ran in, ``rooted`` from the repository."""

    here: tuple[str, ...]
    rooted: tuple[str, ...]


def changed_by(parts: tuple[SimpleCommand, ...]) -> Iterator[str]:
    """Files that a command names as what it writes, moves or removes, as told from where it was started."""
    if not any(targets or not _CHANGERS.isdisjoint(words) for words, targets in parts):
        return
    base: str | None = ""
    for words, targets in parts:
        if words[:1] in {("cd",), ("pushd",)}:
            base = _moved(base, words)
        for path in (*targets, *_named(words)):
            if _UNKNOWN.search(path) is None and (base is not None or path.startswith(("/", "~"))):
                yield path if path.startswith(("/", "~")) else posixpath.join(base or "", path)


def started_in(parts: tuple[SimpleCommand, ...]) -> str | None:
    """The folder that a command changes to before it does anything else; ``""`` for none, None if it is unknown."""
    base: str | None = ""
    for words, _ in parts:
        if words[:1] != ("cd",):
            break
        base = _moved(base, words)
    return base


def listed_by_git(parts: tuple[SimpleCommand, ...], output: str) -> GitListing:
    """The files that the session's own git commands printed as changed."""
    calls = [[*git_words(words)] for words, _ in parts if words[:1] == ("git",)]
    verbs = {call[0] for call in calls if call}
    elsewhere = any(words[:1] == ("git",) and "-C" in words for words, _ in parts)
    if elsewhere or not verbs:
        return GitListing((), ())
    readers: list[Callable[[str], str]] = []
    if not verbs & _FOREIGN:
        differs = [call for call in calls if call[:1] == ["diff"]]
        readers += [_mode_path] if "commit" in verbs else []
        readers += [_counted_path] if differs and all(map(_is_of_work, differs)) else []
    rows = output.split("\n") if readers else []
    here = _STATUS.findall(output) if verbs & {"status", "commit"} else []
    return GitListing(
        tuple(_unquoted(path.rpartition(" -> ")[2]) for path in here),
        tuple(path for row in rows for read in readers if (path := read(row))),
    )


def _moved(base: str | None, words: tuple[str, ...]) -> str | None:
    """Where a ``cd`` leads to; None if that can't be told."""
    target = next((word for word in words[1:] if word != "--"), "~")
    if target.startswith(("/", "~")) and _UNKNOWN.search(target) is None:
        return target
    return None if base is None or _UNKNOWN.search(target) else posixpath.join(base, target)


def _named(words: tuple[str, ...]) -> tuple[str, ...]:
    """The files that a simple command changes by its arguments."""
    if words[:1] == ("git",):
        words = _named_for_git(words)
    name, rest = (words[0].rpartition("/")[2], words[1:]) if words else ("", ())
    if (valued := _VALUED.get(name)) in rest:
        rest = _without(valued, rest)
    operands = tuple(word for word in rest if not word.startswith("-"))
    if name in _ALL_OPERANDS:
        return operands
    if name in _LAST_OPERAND:
        return operands[-1:]
    if name == "sed" and any(_IN_PLACE.match(word) for word in rest):
        scripts = 0 if any(word in {"-e", "-f"} for word in rest) else 1
        return tuple(word for word in filter(None, operands[scripts:]) if not _SED_SCRIPT.match(word))
    return ()


def _named_for_git(words: tuple[str, ...]) -> tuple[str, ...]:
    """``git -C folder mv a b`` as ``git mv``, ``a``, ``b``; a checkout of files is a restore of these."""
    verb, *rest = [*git_words(words)] or [""]
    if verb in {"checkout", "restore"} and "--" in rest:
        return ("git restore", *rest[rest.index("--") + 1 :])
    source = next((word for word in rest if word in {"-s", "--source"}), "")
    return (f"git {verb}", *(_without(source, tuple(rest)) if source and verb == "restore" else rest))


def _without(option: str | None, words: tuple[str, ...]) -> tuple[str, ...]:
    """Words without an option and its value."""
    at = words.index(option) if option in words else len(words)
    return words[:at] + words[at + 2 :]


def _is_of_work(call: list[str]) -> bool:
    """Whether a ``git diff`` tells of this work: of what is not committed, or of files named beside a commit."""
    before = call[1 : call.index("--")] if "--" in call else call[1:]
    commits = [word for word in before if not word.startswith("-") and word != "HEAD"]
    named = len(call) > len(before) + 2  # the folder against one commit: two would be of what others did
    return not commits or (named and len(commits) == 1 and ".." not in commits[0])


def _mode_path(row: str) -> str:
    match = _MODE.fullmatch(row)
    return _unquoted(match[1]) if match else ""


def _counted_path(row: str) -> str:
    """The path in a row of ``--stat``; a renamed or shortened one is passed over."""
    path, bar, counts = row.rpartition(" | ")
    if not bar or not path.startswith(" ") or _COUNTS.fullmatch(counts.strip()) is None:
        return ""
    return "" if "=>" in path or path.lstrip().startswith("...") else _unquoted(path)


def _unquoted(path: str) -> str:
    return path.strip().strip('"')
