"""Shell completion of sessions: ids with their titles.

Anybody may have written a title, so titles are only shown, and the command line gets an id.
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

MAX_SESSIONS = 40  # the maximum number of sessions to offer, newest first
# the time limit in seconds for reading titles; later sessions are offered without a title
TITLE_SECONDS = 0.06
MAX_TITLE_CHARACTERS = 60  # the maximum length of a shown title in characters
# the minimum length in characters of a text that is searched for in titles
MIN_TITLE_PART_CHARACTERS = 2
# matches characters that may have a special meaning in a shell
_SPECIAL_CHARACTERS = re.compile(r"[^\w .,;()/#@&+=·-]")


class BashCompletion(BashComplete):
    """Completion for bash, which shows no descriptions, so an item contains its title."""

    def complete(self) -> str:
        """Return the completion items, one on each line."""
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
    """Let click complete bash with titles."""
    add_completion_class(BashCompletion)


def complete_locators(incomplete: str) -> list[CompletionItem[str]]:
    """Return this project's sessions whose id begins with the word, or whose title contains it."""
    if incomplete.startswith((".", "~", "/")):
        return [CompletionItem(incomplete, type="file")]
    try:
        sessions = list(_list_completions(incomplete.lower()))
    except (OSError, ResumeHooksError):
        return []  # the folder no longer exists; Tab must not print a message
    words = []
    for word in ("latest",):
        if word.startswith(incomplete.lower()) and sessions:
            words.append(word)
    return [*(CompletionItem(word, help="the newest session") for word in words), *sessions]


def _list_completions(beginning: str) -> Iterator[CompletionItem[str]]:
    folder = canonical_path(os.getcwd())
    project = project_of_folder(folder, Where())
    deadline, count = time.monotonic() + TITLE_SECONDS, 0
    for session in listing.candidate_files(project, Where()):
        has_matching_id = session.session_id.startswith(beginning)
        title = ""
        with contextlib.suppress(ResumeHooksError):
            if time.monotonic() < deadline and (ends := HeadTail(session.path)).is_listed:
                title = " ".join(_SPECIAL_CHARACTERS.sub(" ", plain_line(ends.title)).split())[
                    :MAX_TITLE_CHARACTERS
                ].rstrip()
        if has_matching_id or (
            len(beginning) >= MIN_TITLE_PART_CHARACTERS and beginning in title.lower()
        ):
            if len(beginning) <= SHORT_ID_CHARACTERS:
                id_characters = SHORT_ID_CHARACTERS
            else:
                id_characters = len(session.session_id)
            yield CompletionItem(session.session_id[:id_characters], help=title or "a session")
            count += 1
        if count == MAX_SESSIONS:
            return
