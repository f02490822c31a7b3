"""The pull requests in the session's own commands, with their branches.

Invariant: no server is queried. If a pull request is merged or closed outside the session, this is
unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from resume_hooks.reading.digest import shell
from resume_hooks.reading.digest.facts import RecordPlace, ShellRun
from resume_hooks.reading.digest.git_seen import ParsedRun, branch_named
from resume_hooks.redaction.lazy_patterns import compile_lazily

_OWN_URL = compile_lazily(
    r"(?:\"url\":\s*\"|(?:\A|\n)(?:url:)?\s*)(https://[^\s\"'<>)\]]{1,300}/pull/(\d{1,9}))(?=[\s\"]|\Z)"
)
"""The address of the pull request in a command's output, which may also contain other addresses."""

_NUMBER = compile_lazily(r"#?(\d{1,9})|https://\S{1,300}/pull/(\d{1,9})")
_TOLD = compile_lazily(r"(?:Merged|Closed) pull request (?:\S{1,200})?#(\d{1,9})")
_ENDED = compile_lazily(
    r"(?:\bstate\"?\s{0,3}[:=]\s{0,3}\"?|(?:\A|\n)(?:#?\d{1,9} )?)(MERGED|CLOSED)\b"
)
"""The state of a pull request in the output of ``gh pr view``."""

_NAMED = compile_lazily(r"#(\d{1,9})\b|/pull/(\d{1,9})\b")
_WAITS = compile_lazily(
    r"\b(?:on hold|hold(?:ing)? off|wait(?:s|ing)?|paused?|blocked|until|once)\b", re.IGNORECASE
)


class PullRequest(NamedTuple):
    """A pull request. ``branch`` is ``""`` if the branch is unknown."""

    url: str
    number: str
    branch: str
    place: RecordPlace


class PullRequests(NamedTuple):
    """The pull requests, the latest last. ``done`` has, by number, the end of each merged or closed pull request."""

    named: list[PullRequest]
    done: Mapping[str, RecordPlace]
    names_branch: bool
    """Whether a command of the session named a branch."""

    def open_one_of(self, branch: str) -> PullRequest | None:
        """Return the last pull request of a branch if that pull request was not merged or closed."""
        for each in reversed(self.named):
            is_sure = each.branch == branch or not (each.branch or self.names_branch)
            if is_sure and each.number not in self.done:
                return each
        return None

    def ends_wait(self, text: str, place: RecordPlace) -> bool:
        """Check whether a text waits for a pull request that was later merged or closed."""
        if _WAITS.search(text) is None:
            return False
        numbers = [found[1] or found[2] for found in _NAMED.finditer(text)]
        ends = [self.done[number].order for number in numbers if number in self.done]
        return any(place.order < end for end in ends)


def pull_requests(commands: Iterable[ParsedRun]) -> PullRequests:
    """Return the pull requests in commands, oldest first."""
    named: list[PullRequest] = []
    done: dict[str, RecordPlace] = {}
    branch = ""
    for run, parts in commands:
        if "git" in run.command:
            branch = branch_named(run) or branch
        if run.failed or "gh pr" not in run.command:
            continue
        calls = [words[2:] for words, _ in parts if words[:2] == ("gh", "pr") and len(words) > 2]
        for verb, *rest in calls:
            _take_call(verb, rest, run, branch, named, done)
        if len(calls) == 1 and calls[0][0] == "view":
            _take_end(calls[0][1:], run, done)
    return PullRequests(named, done, bool(branch))


def _take_call(
    verb: str,
    rest: Sequence[str],
    run: ShellRun,
    branch: str,
    named: list[PullRequest],
    done: dict[str, RecordPlace],
) -> None:
    """Process a call of ``gh pr``: it names a pull request, or merges or closes one."""
    number = _find_number(rest)
    if verb == "create" or (verb == "view" and not number):
        if found := _OWN_URL.search(run.output):
            head = _option_value(rest, "--head", "-H") if verb == "create" else ""
            named.append(PullRequest(found[1], found[2], head or branch, run.answered))
    elif verb in {"merge", "close"} and "--auto" not in rest:
        told = _TOLD.search(run.output)
        number = number or (told[1] if told else "")
        if number:
            done[number] = run.answered
    elif verb == "reopen":
        done.pop(number, None)


def _take_end(rest: Sequence[str], run: ShellRun, done: dict[str, RecordPlace]) -> None:
    """Process the output of a view that shows a pull request as merged or closed."""
    number = _find_number(rest)
    own = _OWN_URL.search(run.output)
    if not number and own is not None:
        number = own[2]
    if number and _ENDED.search(run.output):
        done.setdefault(number, run.answered)


def _find_number(rest: Sequence[str]) -> str:
    """Return the number of the first pull request in a call, or ``""``."""
    for word in shell.select_operands(rest):
        if found := _NUMBER.fullmatch(word):
            return str(found[1] or found[2])
    return ""


def _option_value(rest: Sequence[str], *names: str) -> str:
    """Return the value of an option of a call, or ``""``."""
    for option, value in pairwise(rest):
        if option in names:
            return value
    return ""
