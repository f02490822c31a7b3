"""What a bug report needs to know of an installation, and nothing of what any session, file or person is called.

Made of numbers, of words of ours and of versions; what could hold anything else is left out or checked for its form.
"""

from __future__ import annotations

import contextlib
import getpass
import importlib.metadata
import os
import platform
import re
import sqlite3
from collections.abc import Sequence
from typing import Any

from resume_hooks import clock, settings
from resume_hooks.maintenance.doctor import Finding
from resume_hooks.paths import Where, read_object
from resume_hooks.system import bug_log, claude_cli
from resume_hooks.system.plugin_files import NAME
from resume_hooks.version import __version__

VERSION = 3
"""Of the form of a report."""

TOLD = frozenset(
    {
        "client-ok", "client-missing", "client-silent", "client-old", "hooks-ok", "hooks-off", "engine-ok",
        "engine-install-failed", "engine-installing", "transcripts-ok", "transcripts-none", "state-ok",
        "state-no-folder", "state-foreign", "state-open", "state-read-only", "log-ok", "log-bugs", "index-ok",
        "index-missing", "index-damaged", "index-newer", "trash-ok", "trash-odd", "vault-ok", "vault-full",
        "expiry-ok", "expiry-soon", "expiry-kept", "clipboard-ok", "clipboard-none",
    }
)  # fmt: skip
"""Findings whose sentences are made of numbers and known words; of any other only the code is reported."""

LIBRARIES = ("click", "orjson", "prompt-toolkit", "pydantic", "pyperclip", "rich", "tantivy")
LAST_ENTRIES = 20
"""Entries of the log that are reported."""

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_HEAD = re.compile(r"[0-9TZ:.-]{20,30} [0-9A-Za-z.+-]{1,20} >?[a-z-]{1,20} [A-Za-z]{1,60}")
_PLACE = re.compile(r"  [\w./-]{1,100}:[0-9]+ [\w<>]{1,60}")


def report(findings: Sequence[Finding], cwd: str, where: Where) -> dict[str, Any]:
    """The report as a JSON value, in the form of ``cli.schema.doctor.BugReport``."""
    who = Anonymous(cwd, where)
    return {
        "report": VERSION,
        "made_at": clock.now(),
        "versions": _versions(who),
        "findings": [
            {"code": each.code, "level": each.level, "detail": who.text(each.detail) if each.code in TOLD else ""}
            for each in findings
        ],
        "settings": _settings(where, who),
        "log": _log(where),
    }


def _versions(who: Anonymous) -> dict[str, Any]:
    found = {}
    for name in LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return {
        "engine": __version__,
        "plugin": _plugins(),
        "client": ".".join(map(str, claude_cli.client_version() or ())),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": who.text(f"{platform.system()} {platform.release()} {platform.machine()}"),
        "sqlite": sqlite3.sqlite_version,
        "libraries": dict.fromkeys(LIBRARIES, "") | found,
    }


def _plugins() -> list[str]:
    known = read_object(os.path.join(Where().config, "plugins", "installed_plugins.json")).get("plugins")
    return [
        _word(copy.get("version"))
        for name, found in (known.items() if isinstance(known, dict) else ())
        if name.split("@")[0] == NAME and isinstance(found, list)
        for copy in found
        if isinstance(copy, dict)
    ]


def _word(value: object) -> str:
    """A value if it is one plain word, else ``other``; ``""`` if there is none."""
    if not isinstance(value, str) or not value:
        return ""
    return value if _WORD.fullmatch(value) else "other"


def _settings(where: Where, who: Anonymous) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name, setting in settings.load(where).items():
        value: object = setting.value
        if setting.source == "default":
            continue
        if not isinstance(value, int):
            words = value if isinstance(value, tuple) else (value,)
            value = "set" if settings.KEYS[name].names_files else who.text(", ".join(map(_word, words)))
        rows.append({"key": name, "value": value, "source": setting.source})
    return rows


def _log(where: Where) -> list[str]:
    """The last entries, without any line that is not of the form that we write."""
    found = []
    for entry in bug_log.log_entries(where)[-LAST_ENTRIES:]:
        first, *places = entry.strip("\n").split("\n")
        if _HEAD.fullmatch(first):
            found.append("\n".join([first, *(place for place in places if _PLACE.fullmatch(place))]))
    return found


PATH = "<path>"
USER = "<user>"

_SHARED = ("/usr/bin", "/usr/local/bin", "/bin", "/sbin", "/etc/claude-code", "/opt/homebrew/bin", "/dev")
"""Where nothing of a user's lies."""

_KEY = re.compile(r"(projects/)[^\s/'\";,]+")
_AT_HOME = re.compile(r"~/(\.[\w-]+/)?[^\s'\";,)]+")
"""Of a path in the home a hidden first folder, such as that of a tool, is kept."""

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
        shared = tuple(f"{place}/" for place in _SHARED)
        said = _ABSOLUTE.sub(lambda found: found[0] if f"{found[0]}/".startswith(shared) else PATH, said)
        return self._user.sub(USER, said) if self._user else said


def _names(where: Where) -> set[str]:
    """What the user may be called: by the system, by the environment, by the name of the home."""
    given = {where.environ.get(key, "") for key in ("USER", "LOGNAME", "USERNAME", "SUDO_USER")}
    given.add(os.path.basename((where.environ.get("HOME") or "").rstrip("/")))
    with contextlib.suppress(OSError, KeyError, ImportError):  # an id without a name, as in some containers
        given.add(getpass.getuser())
    return {name for name in given if len(name) >= _SHORTEST_NAME and name.lower() not in {"home", "users"}}
