"""Complete session ids in a shell, with the titles as descriptions.

Only ids are inserted into the command line. Titles are only shown, because a title may contain text
from an untrusted source.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator

from click.shell_completion import BashComplete, CompletionItem, add_completion_class

from resume_hooks.errors import ResumeHooksError
from resume_hooks.paths import Where, canonical_path
from resume_hooks.search import listing
from resume_hooks.sessions.record_references import SHORT_ID_CHARACTERS
from resume_hooks.system.git_worktrees import project_of_folder
from resume_hooks.system.text import plain_line
from resume_hooks.transcripts.head_tail import HeadTail

MAX_OFFERED_SESSIONS = 40  # the maximum number of sessions to offer; the newest sessions come first
# the time limit in seconds for reading titles; when it is reached, the remaining sessions are
# offered without a title
MAX_TITLE_READING_SECONDS = 0.06
MAX_TITLE_CHARACTERS = 60  # the maximum number of characters of a title that is shown
# titles are searched only if the user has typed at least this number of characters
MIN_CHARACTERS_TO_SEARCH_TITLES = 2
# matches characters that may have a special meaning in a shell
_SPECIAL_CHARACTER_PATTERN = re.compile(r"[^\w .,;()/#@&+=·-]")


class BashCompletion(BashComplete):
    """Completion for bash, which can't show descriptions: each offered line has a session's id and title."""

    def complete(self) -> str:
        """Return the completions, one on each line, in the format that click's script for bash reads.

        Add the title to each session only if several completions are offered, because bash inserts
        a single completion into the command line.
        """
        items = self.get_completions(*self.get_completion_args())
        has_several = len(items) > 1
        lines = []
        for item in items:
            is_session = (
                item.help
                and len(item.value) >= SHORT_ID_CHARACTERS
                and set(item.value) <= set("0123456789abcdef-")
            )
            titled_line = f"{item.type},{item.value}  {item.help}"
            lines.append(
                titled_line if has_several and is_session else self.format_completion(item)
            )
        return "\n".join(lines)


def register_bash_completion() -> None:
    """Make click use ``BashCompletion`` for completion in bash."""
    add_completion_class(BashCompletion)


def complete_locators(incomplete: str) -> list[CompletionItem[str]]:
    """Return the sessions of this project whose id begins with ``incomplete`` or whose title contains it."""
    if incomplete.startswith((".", "~", "/")):
        return [CompletionItem(incomplete, type="file")]
    try:
        sessions = list(_list_completions(incomplete.lower()))
    except (OSError, ResumeHooksError):
        return []  # The current folder no longer exists. Tab must not print an error message.
    words = []
    for word in ("latest",):
        if word.startswith(incomplete.lower()) and sessions:
            words.append(word)
    return [*(CompletionItem(word, help="the newest session") for word in words), *sessions]


def _list_completions(beginning: str) -> Iterator[CompletionItem[str]]:
    folder = canonical_path(os.getcwd())
    project = project_of_folder(folder, Where())
    deadline, count = time.monotonic() + MAX_TITLE_READING_SECONDS, 0
    for session in listing.candidate_files(project, Where()):
        has_matching_id = session.session_id.startswith(beginning)
        title = ""
        with contextlib.suppress(ResumeHooksError):
            if time.monotonic() < deadline and (ends := HeadTail(session.path)).is_shown_in_lists:
                title = " ".join(
                    _SPECIAL_CHARACTER_PATTERN.sub(" ", plain_line(ends.title)).split()
                )[:MAX_TITLE_CHARACTERS].rstrip()
        if has_matching_id or (
            len(beginning) >= MIN_CHARACTERS_TO_SEARCH_TITLES and beginning in title.lower()
        ):
            if len(beginning) <= SHORT_ID_CHARACTERS:
                id_characters = SHORT_ID_CHARACTERS
            else:
                id_characters = len(session.session_id)
            yield CompletionItem(session.session_id[:id_characters], help=title or "a session")
            count += 1
        if count == MAX_OFFERED_SESSIONS:
            return
