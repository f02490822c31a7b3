"""The pull requests that the session's own commands named, by the branch that they belong to.

Invariant: nothing is asked of a server; who merged or closed one in another window is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from resume_hooks.reading.digest import shell
from resume_hooks.reading.digest.facts import RecordPlace, ShellRun
from resume_hooks.reading.digest.git_seen import ParsedRun, branch_named
from resume_hooks.redaction.lazy_patterns import late

_URL = late(r"https://[^\s\"'<>)\]]{1,300}/pull/(\d{1,9})")
_OWN_URL = late(
    r"(?:\"url\":\s*\"|(?:\A|\n)(?:url:)?\s*)(https://[^\s\"'<>)\]]{1,300}/pull/(\d{1,9}))(?=[\s\"]|\Z)"
)
"""The address of the pull request itself in an output, in whose text others may stand."""

_NUMBER = late(r"#?(\d{1,9})|https://\S{1,300}/pull/(\d{1,9})")
_TOLD = late(r"(?:Merged|Closed) pull request (?:\S{1,200})?#(\d{1,9})")
_NAMED = late(r"#(\d{1,9})\b|/pull/(\d{1,9})\b")
_WAITS = late(
    r"\b(?:on hold|hold(?:ing)? off|wait(?:s|ing)?|paused?|blocked|until|once)\b", re.IGNORECASE
)
MERGED, CLOSED = "merged", "closed"


class PullRequest(NamedTuple):
    """A pull request; ``branch`` is ``""`` where none was known as it was named."""

    url: str
    number: str
    branch: str
    place: RecordPlace


class PullRequests(NamedTuple):
    """Those that were named, the latest last, and by number those that are ``done``: how, and where."""

    named: list[PullRequest]
    done: Mapping[str, tuple[str, RecordPlace]]

    def of_branch(self, branch: str) -> PullRequest | None:
        """The pull request of a branch that was named last."""
        for each in reversed(self.named):
            if not branch or each.branch in {branch, ""}:
                return each
        return None

    def ends_wait(self, text: str, place: RecordPlace) -> bool:
        """Whether a text waits for a pull request that was merged or closed later."""
        if _WAITS.search(text) is None:
            return False
        numbers = [found[1] or found[2] for found in _NAMED.finditer(text)]
        ends = [self.done[number][1].order for number in numbers if number in self.done]
        return any(place.order < end for end in ends)


def pull_requests(commands: Iterable[ParsedRun], links: Mapping[str, RecordPlace]) -> PullRequests:
    """The pull requests in commands, oldest first, and in the client's own ``links``."""
    named: list[PullRequest] = []
    done: dict[str, tuple[str, RecordPlace]] = {}
    for url, place in links.items():
        if found := _URL.match(url):
            named.append(PullRequest(found[0], found[1], "", place))
    branch = ""
    for run, parts in commands:
        if "git" in run.command:
            branch = branch_named(run) or branch
        if run.failed or "gh pr" not in run.command:
            continue
        for words, _ in parts:
            if words[:2] == ("gh", "pr") and len(words) > 2:
                _take_call(words[2], words[3:], run, branch, named, done)
    named.sort(key=lambda each: each.place.order)
    return PullRequests(named, done)


def _take_call(
    verb: str,
    rest: Sequence[str],
    run: ShellRun,
    branch: str,
    named: list[PullRequest],
    done: dict[str, tuple[str, RecordPlace]],
) -> None:
    """Take in a call of ``gh pr``: the pull request that it names, or the end of one."""
    number = _number_in(rest)
    if verb == "create" or (verb == "view" and not number):
        if found := _OWN_URL.search(run.output):
            head = _option_of(rest, "--head", "-H") if verb == "create" else ""
            named.append(PullRequest(found[1], found[2], head or branch, run.answered))
    elif verb in {"merge", "close"} and "--auto" not in rest:
        told = _TOLD.search(run.output)
        number = number or (told[1] if told else "")
        if number:
            done[number] = (MERGED if verb == "merge" else CLOSED, run.answered)
    elif verb == "reopen":
        done.pop(number, None)


def _number_in(rest: Sequence[str]) -> str:
    """The number of the pull request that a call names first; ``""`` for none."""
    for word in shell.operands_of(rest):
        if found := _NUMBER.fullmatch(word):
            return str(found[1] or found[2])
    return ""


def _option_of(rest: Sequence[str], *names: str) -> str:
    """The value of an option of a call; ``""`` without it."""
    for option, value in pairwise(rest):
        if option in names:
            return value
    return ""
