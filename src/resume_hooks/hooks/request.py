"""The request that a trigger answers: what the user typed, and in which session."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from resume_hooks.errors import (
    NothingToHandOff,
    NothingToRecover,
    NothingToTrim,
    ResumeHooksError,
    SessionNotFound,
    UsageError,
)
from resume_hooks.hooks.time_limit import time_limit
from resume_hooks.hooks.triggers import Trigger
from resume_hooks.paths import Where
from resume_hooks.system.invocation import shell_command

if TYPE_CHECKING:
    from resume_hooks.derive.verbs.caller import Caller
    from resume_hooks.sessions.session import Session

ALL_OPTION = "--all"  # this option before the words makes a search cover all projects
# matches a quoted text, or a word outside quotes that looks like an option (group 1)
_OPTION_PATTERN = re.compile(r'"[^"]*"?|(?<!\S)(--[a-z][a-z-]*)')

MISSING_TRANSCRIPT_ERRORS: dict[str, tuple[type[ResumeHooksError], str]] = {
    "handoff": (NothingToHandOff, "There is nothing to hand off"),
    "rollover": (NothingToHandOff, "There is nothing to hand off"),
    "trim": (NothingToTrim, "There is nothing to trim"),
    "untrim": (NothingToTrim, "There is nothing to untrim"),
    "recall": (NothingToRecover, "There is nothing to recover"),
    "lineage": (SessionNotFound, "There are no ancestors to show"),
    "fsck": (SessionNotFound, "There is nothing to repair"),
}
"""For each trigger, the error and the message in a session that has no transcript yet."""


def make_missing_transcript_error(
    error_class: type[ResumeHooksError], message_start: str
) -> ResumeHooksError:
    """Return the error for a session without a transcript. Its message begins with ``message_start``."""
    return error_class(
        f"{message_start}: this session has no transcript yet", "Send a prompt first."
    )


@dataclass(frozen=True)
class Request:
    """A trigger that the user typed, and its session.

    ``path`` is the session's transcript, or None if the file does not exist yet. ``is_in_subagent``
    means that the user typed in a sub-agent; ``path`` is the main transcript even then.
    ``own_model_report`` is the module's report about the summary that the session's own model
    wrote. ``can_wait`` means that the module can show a waiting line before the answer.
    """

    trigger: Trigger
    session_id: str
    path: str | None
    where: Where
    is_in_subagent: bool = False
    own_model_report: dict[str, Any] | None = None
    can_wait: bool = False

    @property
    def text(self) -> str:
        """The text after the trigger's name."""
        return self.trigger.text

    @property
    def is_slash(self) -> bool:
        """Whether the user typed the form with a slash, which empties the input box."""
        return self.trigger.is_slash

    @property
    def typed_name(self) -> str:
        """The trigger's name as the user typed it."""
        return self.trigger.name_of_verb(self.trigger.verb)

    @cached_property
    def session(self) -> Session:
        """The session. Raise the trigger's ResumeHooksError if there is no transcript."""
        if self.path is None:
            raise make_missing_transcript_error(*MISSING_TRANSCRIPT_ERRORS[self.trigger.verb])
        # Imported late because a list does not read the session.
        from resume_hooks.sessions.session import Session

        return Session.open_path(self.path, self.where)

    @property
    def command(self) -> str:
        """The shell command that does the same as the trigger."""
        return shell_command(f"{self.trigger.verb} {self.session_id}")

    def caller(self, command: str = "") -> Caller:
        """Return a Caller for creating a child, with the time limit of a hook.

        If the limit is exceeded, the error suggests ``command`` in a shell, where there is no
        limit.
        """
        # Imported late because a search creates no child.
        from resume_hooks.derive.verbs.caller import Caller

        limit_time = partial(time_limit, command or self.command)
        return Caller(self.where, reuses_child=True, time_limit=limit_time)


class SearchInput(NamedTuple):
    """The words that the user typed after a search trigger, without the option for all projects."""

    words: str
    in_all_projects: bool


def parse_search_input(text: str) -> SearchInput:
    """Parse the text after a search trigger. Raise UsageError for an unknown option."""
    first_word, *other_words = text.split(maxsplit=1) or [""]
    in_all_projects = first_word.lower() == ALL_OPTION
    search_words = " ".join(other_words) if in_all_projects else text
    if option := next(
        (match[1] for match in _OPTION_PATTERN.finditer(search_words) if match[1]), ""
    ):
        raise UsageError(
            f"{option} is not an option here; the only option is {ALL_OPTION}, before the words",
            "More options, in a shell: resume-hooks search --help. "
            f'To search for this text, put it in quotes: "{option}"',
        )
    return SearchInput(search_words, in_all_projects)


def refuse_option(text: str, remedy: str) -> None:
    """Raise UsageError if the text begins with an option."""
    if match := re.match(r"--?[a-z][a-z-]*(?=[\s=]|\Z)", text):
        raise UsageError(f"{match[0]} is not an option here", remedy)


def current_folder() -> str:
    """Return the current folder. Raise UsageError if it no longer exists."""
    try:
        return os.getcwd()
    except FileNotFoundError as error:
        raise UsageError("The current folder is gone", "Type: >search --all words") from error
