"""Home folders, which leave this machine as ``~``: in a document, and in a bundle."""

from __future__ import annotations

import re
from collections.abc import Iterable

from resume_hooks.paths import Where, project_key

_HOMES = re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\Users\\)[^/\\\s]+|/root(?=/|$)")

_OTHERS = (
    r"(?:(?<![\w.~-])|(?<=\\[nrt]))(?:/(?:home|Users)/|[A-Za-z]:\\{1,2}Users\\{1,2})[\w-]+(?:\.[\w-]+)*",
    r"(?<=/)-(?:home|Users)-[\w-]+",
)
"""Where people's homes lie, in texts and in lines of JSON, and the project folders named after them, to the end."""


class Homes:
    """Home folders, whoever's, also as names of project folders; this user's and the sessions' own may lie anywhere."""

    def __init__(self, where: Where, folders: Iterable[str]) -> None:
        found = {where.environ.get("HOME", "").rstrip("/\\")}
        found |= {match.group() for folder in folders if (match := _HOMES.match(folder))}
        homes = sorted((home for home in found if len(home) > len("/x/")), key=len, reverse=True)
        paths = (re.escape(home).replace(r"\\", r"\\{1,2}") for home in homes)
        keys = (f"(?<=/){re.escape(project_key(home))}" for home in homes)
        known = [f"{one}(?![A-Za-z0-9_.])" for one in (*paths, *keys)]
        self._pattern = re.compile("|".join((*known, *_OTHERS)))

    def hidden(self, text: str) -> tuple[str, int]:
        """A text with ``~`` for each of them, and how many there were; in a line of JSON, too."""
        return self._pattern.subn(lambda match: "-~" if match[0].startswith("-") else "~", text)
