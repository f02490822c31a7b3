"""Text without whom and what it is about: no user name, no path of a project, homes as ``~``.

For our own sentences, whose parts are known; content of a session has no place here at all.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import re

from resume_hooks.paths import Where

PATH = "<path>"
USER = "<user>"

_SHARED = ("/usr/bin", "/usr/local/bin", "/bin", "/sbin", "/etc/claude-code", "/opt/homebrew/bin", "/dev")
"""Where nothing of a user's lies."""

_KEY = re.compile(r"(projects/)[^\s/'\";,]+")
_AT_HOME = re.compile(r"~/(\.[\w-]+/)?[^\s'\";,)]+")
"""Of a path in the home a hidden first folder, such as that of a tool, is told."""

_ABSOLUTE = re.compile(r"(?<![\w~>./-])/[^\s'\";,)]+")
_SHORTEST_NAME = 2


class Anonymous:
    """Knows whom to leave out: the user of this machine, the folder of a project, the homes of client and user."""

    def __init__(self, cwd: str, where: Where) -> None:
        places = [
            (where.state, "<state>"),
            (where.config, "<config>"),
            (cwd, "<project>"),
            (where.environ.get("HOME") or os.path.expanduser("~"), "~"),
        ]
        known = {path.rstrip("/"): name for place, name in places for path in (place, os.path.realpath(place))}
        # The longest first; a home that is the root folder would be part of every path.
        self._places = sorted(((p, n) for p, n in known.items() if len(p) > 1), key=lambda pair: -len(pair[0]))
        words = sorted((re.escape(name) for name in _names(where)), key=len, reverse=True)
        self._user = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(words)})(?![A-Za-z0-9])") if words else None

    def text(self, said: str) -> str:
        """A sentence of ours without paths of the user's and without the user's name."""
        for path, name in self._places:
            said = re.sub(rf"{re.escape(path)}(?![\w.-])", name, said)
        said = _KEY.sub(rf"\1{PATH}", said)
        said = _AT_HOME.sub(rf"~/\1{PATH}", said)
        said = _ABSOLUTE.sub(lambda found: found[0] if _is_shared(found[0]) else PATH, said)
        return self._user.sub(USER, said) if self._user else said


def _is_shared(path: str) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in _SHARED)


def _names(where: Where) -> set[str]:
    """What the user may be called: by the system, by the environment, by the name of the home."""
    given = {where.environ.get(key, "") for key in ("USER", "LOGNAME", "USERNAME", "SUDO_USER")}
    given.add(os.path.basename((where.environ.get("HOME") or "").rstrip("/")))
    with contextlib.suppress(OSError, KeyError, ImportError):  # an id without a name, as in some containers
        given.add(getpass.getuser())
    return {name for name in given if len(name) >= _SHORTEST_NAME and name.lower() not in {"home", "users"}}
