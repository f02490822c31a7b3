"""Find the pull requests, with their branches, in the session's own commands.

Invariant: no server is queried. So if a pull request is merged or closed outside the session, it is
still reported as open.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from resume_hooks.reading.digest import shell
from resume_hooks.reading.digest.facts import RecordPosition, ShellRun
from resume_hooks.reading.digest.git_seen import ParsedRun, read_branch
from resume_hooks.redaction.lazy_patterns import compile_lazily

_PULL_REQUEST_URL_PATTERN = compile_lazily(
    r"(?:\"url\":\s*\"|(?:\A|\n)(?:url:)?\s*)(https://[^\s\"'<>)\]]{1,300}/pull/(\d{1,9}))(?=[\s\"]|\Z)"
)
"""The address of a pull request, which may be among other addresses in the output of a command."""

_NUMBER_ARGUMENT_PATTERN = compile_lazily(r"#?(\d{1,9})|https://\S{1,300}/pull/(\d{1,9})")
_PULL_REQUEST_END_MESSAGE_PATTERN = compile_lazily(
    r"(?:Merged|Closed) pull request (?:\S{1,200})?#(\d{1,9})"
)
_PULL_REQUEST_END_STATE_PATTERN = compile_lazily(
    r"(?:\bstate\"?\s{0,3}[:=]\s{0,3}\"?|(?:\A|\n)(?:#?\d{1,9} )?)(MERGED|CLOSED)\b"
)
"""The output of ``gh pr view`` for a pull request that was merged or closed."""

_PULL_REQUEST_REFERENCE_PATTERN = compile_lazily(r"#(\d{1,9})\b|/pull/(\d{1,9})\b")
_WAITING_WORD_PATTERN = compile_lazily(
    r"\b(?:on hold|hold(?:ing)? off|wait(?:s|ing)?|paused?|blocked|until|once)\b", re.IGNORECASE
)


class PullRequest(NamedTuple):
    """A pull request of the session. ``branch`` is ``""`` if its branch is unknown."""

    url: str
    number: str
    branch: str
    position: RecordPosition


class PullRequests(NamedTuple):
    """The pull requests of a session, the latest last.

    ``end_positions_by_number`` maps the number of a merged or closed pull request to the position
    of the command that shows its end.
    """

    requests: list[PullRequest]
    end_positions_by_number: Mapping[str, RecordPosition]
    has_known_branch: bool
    """Whether a command in the session showed the current branch. If none did, no pull request's
    branch is known."""

    def find_open_pull_request(self, branch: str) -> PullRequest | None:
        """Return a branch's latest pull request that was neither merged nor closed, or None."""
        for request in reversed(self.requests):
            is_on_branch = request.branch == branch or not (request.branch or self.has_known_branch)
            if is_on_branch and request.number not in self.end_positions_by_number:
                return request
        return None

    def has_wait_ended(self, text: str, position: RecordPosition) -> bool:
        """Check whether a text is about waiting for a pull request that ended after ``position``.

        A pull request ends when it is merged or closed.
        """
        if _WAITING_WORD_PATTERN.search(text) is None:
            return False
        numbers = [match[1] or match[2] for match in _PULL_REQUEST_REFERENCE_PATTERN.finditer(text)]
        end_orders = [
            self.end_positions_by_number[number].order
            for number in numbers
            if number in self.end_positions_by_number
        ]
        return any(position.order < end for end in end_orders)


def collect_pull_requests(commands: Iterable[ParsedRun]) -> PullRequests:
    """Return the pull requests in ``commands``, which are ordered oldest first."""
    requests: list[PullRequest] = []
    end_positions: dict[str, RecordPosition] = {}
    branch = ""
    for run, parts in commands:
        if "git" in run.command:
            branch = read_branch(run) or branch
        if run.has_failed or "gh pr" not in run.command:
            continue
        calls = [words[2:] for words, _ in parts if words[:2] == ("gh", "pr") and len(words) > 2]
        for verb, *rest in calls:
            _process_pull_request_command(verb, rest, run, branch, requests, end_positions)
        if len(calls) == 1 and calls[0][0] == "view":
            _process_pull_request_view(calls[0][1:], run, end_positions)
    return PullRequests(requests, end_positions, bool(branch))


def _process_pull_request_command(
    verb: str,
    arguments: Sequence[str],
    run: ShellRun,
    branch: str,
    requests: list[PullRequest],
    end_positions: dict[str, RecordPosition],
) -> None:
    """Process a ``gh pr`` command, which may create, merge, close or reopen a pull request."""
    number = _find_pull_request_number(arguments)
    if verb == "create" or (verb == "view" and not number):
        if url_match := _PULL_REQUEST_URL_PATTERN.search(run.output):
            head_branch = _find_option_value(arguments, "--head", "-H") if verb == "create" else ""
            requests.append(
                PullRequest(url_match[1], url_match[2], head_branch or branch, run.result_position)
            )
    elif verb in {"merge", "close"} and "--auto" not in arguments:
        end_match = _PULL_REQUEST_END_MESSAGE_PATTERN.search(run.output)
        number = number or (end_match[1] if end_match else "")
        if number:
            end_positions[number] = run.result_position
    elif verb == "reopen":
        end_positions.pop(number, None)


def _process_pull_request_view(
    arguments: Sequence[str], run: ShellRun, end_positions: dict[str, RecordPosition]
) -> None:
    """Process a ``gh pr view`` if it shows that a pull request was merged or closed."""
    number = _find_pull_request_number(arguments)
    url_match = _PULL_REQUEST_URL_PATTERN.search(run.output)
    if not number and url_match is not None:
        number = url_match[2]
    if number and _PULL_REQUEST_END_STATE_PATTERN.search(run.output):
        end_positions.setdefault(number, run.result_position)


def _find_pull_request_number(arguments: Sequence[str]) -> str:
    """Return the number of the first pull request in a command's arguments, or ``""``."""
    for word in shell.select_operands(arguments):
        if match := _NUMBER_ARGUMENT_PATTERN.fullmatch(word):
            return str(match[1] or match[2])
    return ""


def _find_option_value(arguments: Sequence[str], *names: str) -> str:
    """Return the value of the first option that is in ``names``, or ``""``."""
    for option, value in pairwise(arguments):
        if option in names:
            return value
    return ""
