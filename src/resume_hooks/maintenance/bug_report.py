"""Make a bug report about an installation, without the names of sessions, files or people.

The report contains only numbers, versions, known words, and values in an expected format. All other
values are omitted.
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
from resume_hooks.paths import Where, read_json_object
from resume_hooks.system import bug_log, claude_cli
from resume_hooks.system.plugin_files import PLUGIN_NAME
from resume_hooks.version import __version__

REPORT_VERSION = 3
"""The version of the report's format."""

REPORTABLE_FINDING_CODES = frozenset(
    {
        "client-ok", "client-missing", "client-silent", "client-old", "hooks-ok", "hooks-off", "engine-ok",
        "engine-install-failed", "engine-installing", "transcripts-ok", "transcripts-none", "state-ok",
        "state-no-folder", "state-foreign", "state-full", "state-open", "state-read-only", "log-ok", "log-bugs",
        "index-ok", "index-missing", "index-damaged", "index-newer", "trash-ok", "trash-odd", "vault-ok", "vault-full",
        "expiry-ok", "expiry-soon", "expiry-kept", "clipboard-ok", "clipboard-none",
    }
)  # fmt: skip
"""The codes of findings whose messages contain only numbers and known words.

For all other findings, the report contains the code without the message.
"""

REPORTED_LIBRARIES = (
    "click",
    "orjson",
    "prompt-toolkit",
    "pydantic",
    "pyperclip",
    "rich",
    "tantivy",
)
MAX_LOG_ENTRIES = 20
"""The maximum number of log entries in a report."""

_PLAIN_WORD_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_ENTRY_HEADING_PATTERN = re.compile(
    r"[0-9TZ:.-]{20,30} [0-9A-Za-z.+-]{1,20} >?[a-z-]{1,20} [A-Za-z]{1,60}"
)
_CODE_LOCATION_PATTERN = re.compile(r"  [\w./-]{1,100}:[0-9]+ [\w<>]{1,60}")


def make_bug_report(findings: Sequence[Finding], cwd: str, where: Where) -> dict[str, Any]:
    """Return the report as a JSON value with the schema ``cli.schema.doctor.BugReport``."""
    anonymizer = Anonymizer(cwd, where)
    return {
        "report": REPORT_VERSION,
        "made_at": clock.now(),
        "versions": _collect_versions(anonymizer),
        "findings": [
            {
                "code": finding.code,
                "level": finding.level,
                "detail": anonymizer.anonymize(finding.detail)
                if finding.code in REPORTABLE_FINDING_CODES
                else "",
            }
            for finding in findings
        ],
        "settings": _collect_settings(where, anonymizer),
        "log": _read_log_entries(where),
    }


def _collect_versions(anonymizer: Anonymizer) -> dict[str, Any]:
    library_versions = {}
    for name in REPORTED_LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            library_versions[name] = importlib.metadata.version(name)
    return {
        "engine": __version__,
        "plugin": _list_plugin_versions(),
        "client": ".".join(map(str, claude_cli.read_client_version() or ())),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": anonymizer.anonymize(
            f"{platform.system()} {platform.release()} {platform.machine()}"
        ),
        "sqlite": sqlite3.sqlite_version,
        "libraries": dict.fromkeys(REPORTED_LIBRARIES, "") | library_versions,
    }


def _list_plugin_versions() -> list[str]:
    plugins = read_json_object(
        os.path.join(Where().config, "plugins", "installed_plugins.json")
    ).get("plugins")
    versions = []
    for name, copies in plugins.items() if isinstance(plugins, dict) else ():
        if name.split("@")[0] == PLUGIN_NAME and isinstance(copies, list):
            for copy in copies:
                if isinstance(copy, dict):
                    versions.append(_anonymize_word(copy.get("version")))
    return versions


def _anonymize_word(value: object) -> str:
    """Return ``value`` if it is a single plain word, ``""`` if it is empty, and ``other`` otherwise."""
    if not isinstance(value, str) or not value:
        return ""
    if _PLAIN_WORD_PATTERN.fullmatch(value):
        return value
    return "other"


def _collect_settings(where: Where, anonymizer: Anonymizer) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name, setting in settings.load_settings(where).items():
        value: object = setting.value
        if setting.source == "default":
            continue
        if not isinstance(value, int):
            words = value if isinstance(value, tuple) else (value,)
            if settings.SETTING_DEFINITIONS[name].is_path:
                value = "set"
            else:
                value = anonymizer.anonymize(", ".join(map(_anonymize_word, words)))
        rows.append({"key": name, "value": value, "source": setting.source})
    return rows


def _read_log_entries(where: Where) -> list[str]:
    """Return the last entries of the log. Lines that do not have the log's format are omitted."""
    entries = []
    for entry in bug_log.read_log_entries(where)[-MAX_LOG_ENTRIES:]:
        heading, *locations = entry.strip("\n").split("\n")
        if _ENTRY_HEADING_PATTERN.fullmatch(heading):
            entries.append(
                "\n".join(
                    [
                        heading,
                        *(
                            location
                            for location in locations
                            if _CODE_LOCATION_PATTERN.fullmatch(location)
                        ),
                    ]
                )
            )
    return entries


PATH_PLACEHOLDER = "<path>"
USER_PLACEHOLDER = "<user>"

_SYSTEM_FOLDERS = (
    "/usr/bin",
    "/usr/local/bin",
    "/bin",
    "/sbin",
    "/etc/claude-code",
    "/opt/homebrew/bin",
    "/dev",
)
"""System folders that contain no files of users."""

_PROJECT_KEY_PATTERN = re.compile(r"(projects/)[^\s/'\";,]+")
_HOME_PATH_PATTERN = re.compile(r"~/(\.[\w-]+/)?[^\s'\";,)]+")
"""Matches a path in the home folder. If the first folder in the path is hidden, it belongs to a
tool, and its name also stays in the anonymized path."""

_ABSOLUTE_PATH_PATTERN = re.compile(r"(?<![\w~>./-])/[^\s'\";,)]+")
MIN_USER_NAME_CHARACTERS = 2


class Anonymizer:
    """Removes names from texts: the user's name, the project's folder, and the home folders."""

    def __init__(self, cwd: str, where: Where) -> None:
        replacements = [
            (where.state, "<state>"),
            (where.config, "<config>"),
            (cwd, "<project>"),
            (where.environ.get("HOME") or os.path.expanduser("~"), "~"),
        ]
        names_by_path = {}
        for folder, name in replacements:
            for path in (folder, os.path.realpath(folder)):
                names_by_path[path.rstrip("/")] = name
        # Longer paths are replaced before shorter ones. A home folder that is the root folder is
        # skipped, because every path starts with it.
        self._replacements = sorted(
            (
                (path_prefix, placeholder)
                for path_prefix, placeholder in names_by_path.items()
                if len(path_prefix) > 1
            ),
            key=lambda pair: -len(pair[0]),
        )
        words = sorted((re.escape(name) for name in _find_user_names(where)), key=len, reverse=True)
        self._user_pattern: re.Pattern[str] | None = None
        if words:
            self._user_pattern = re.compile(
                rf"(?<![A-Za-z0-9])(?:{'|'.join(words)})(?![A-Za-z0-9])"
            )

    def anonymize(self, text: str) -> str:
        """Return a text without the user's paths and without the user's name."""
        for path, name in self._replacements:
            text = re.sub(rf"{re.escape(path)}(?![\w.-])", name, text)
        text = _PROJECT_KEY_PATTERN.sub(rf"\1{PATH_PLACEHOLDER}", text)
        text = _HOME_PATH_PATTERN.sub(rf"~/\1{PATH_PLACEHOLDER}", text)
        shared_prefixes = tuple(f"{folder}/" for folder in _SYSTEM_FOLDERS)
        text = _ABSOLUTE_PATH_PATTERN.sub(
            lambda match: (
                match[0] if f"{match[0]}/".startswith(shared_prefixes) else PATH_PLACEHOLDER
            ),
            text,
        )
        return self._user_pattern.sub(USER_PLACEHOLDER, text) if self._user_pattern else text


def _find_user_names(where: Where) -> set[str]:
    """Return the user's names: the login name, names in the environment, and the home folder's name."""
    names = set()
    for key in ("USER", "LOGNAME", "USERNAME", "SUDO_USER"):
        names.add(where.environ.get(key, ""))
    names.add(os.path.basename((where.environ.get("HOME") or "").rstrip("/")))
    # The user id may have no name, as in some containers.
    with contextlib.suppress(OSError, KeyError, ImportError):
        names.add(getpass.getuser())
    return {
        name
        for name in names
        if len(name) >= MIN_USER_NAME_CHARACTERS and name.lower() not in {"home", "users"}
    }
