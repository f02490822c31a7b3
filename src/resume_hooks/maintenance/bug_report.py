"""What a bug report needs to know of an installation, and nothing of what any session, file or person is called.

Made of numbers, of words of ours and of versions; what could hold anything else is left out or checked for its form.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sqlite3
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from resume_hooks import __version__, clock, settings
from resume_hooks.maintenance.anonymize import Anonymous
from resume_hooks.maintenance.doctor import Finding
from resume_hooks.paths import Where, read_object
from resume_hooks.reading.stats import state_sizes
from resume_hooks.reading.stats.cache import gather
from resume_hooks.reading.stats.totals import figures, hook_data
from resume_hooks.sessions import link_log, locate
from resume_hooks.sessions.transcript_files import all_files
from resume_hooks.system import bug_log, claude_cli
from resume_hooks.system.plugin_files import NAME

VERSION = 1
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
"""Findings whose sentences are made of numbers and known words; of any other the code alone is told."""

LIBRARIES = ("click", "orjson", "prompt-toolkit", "pydantic", "pyperclip", "rich")
LAST_ENTRIES = 20
"""Entries of the log that are told."""

KINDS = frozenset(
    {"handoff", "rollover", "trim", "smart-trim", "untrim", "rewind", "fork", "repair", "scrub", "rehome", "clear"}
)
PARTS = frozenset(
    {"backups", "index.db", "index.db-wal", "links.jsonl", "log", "pending", "plugin", "settings.json", "stats.json"}
    | {"trash", "vault"}
)
"""Names in the state folder that are ours; whatever else lies there is summed up."""

PATHS = frozenset({"handoff_dir", "ledger_file"})
"""Settings that name folders and files of the user's."""

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_HEAD = re.compile(r"[0-9TZ:.-]{20,30} [0-9A-Za-z.+-]{1,20} >?[a-z-]{1,20} [A-Za-z]{1,60}")
_PLACE = re.compile(r"  [\w./-]{1,100}:[0-9]+ [\w<>]{1,60}")


def report(findings: Sequence[Finding], cwd: str, where: Where) -> dict[str, Any]:
    """The report as a JSON value, in the form of ``cli.schema.figures.BugReport``."""
    who = Anonymous(cwd, where)
    return {
        "report": VERSION,
        "made_at": clock.now(),
        "versions": _versions(who),
        "terminal": _terminal(where),
        "findings": [_finding(finding, who) for finding in findings],
        "settings": _settings(where, who),
        "counts": _counts(where),
        "state": _state(where),
        "hooks": _hooks(where),
        "log": _log(where),
    }


def _versions(who: Anonymous) -> dict[str, Any]:
    return {
        "engine": __version__,
        "plugin": _plugins(),
        "client": ".".join(map(str, claude_cli.version() or ())),
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": who.text(f"{platform.system()} {platform.release()} {platform.machine()}"),
        "sqlite": sqlite3.sqlite_version,
        "fts5": _has_fts5(),
        "libraries": {name: _library(name) for name in LIBRARIES},
    }


def _plugins() -> list[str]:
    """The versions of the plugin that the client has."""
    known = read_object(os.path.join(Where().config, "plugins", "installed_plugins.json")).get("plugins")
    copies = [
        copy
        for name, found in (known.items() if isinstance(known, dict) else ())
        if name.split("@")[0] == NAME and isinstance(found, list)
        for copy in found
        if isinstance(copy, dict)
    ]
    return [_word(copy.get("version")) for copy in copies]


def _has_fts5() -> bool:
    with sqlite3.connect(":memory:") as db:
        return bool(db.execute("SELECT sqlite_compileoption_used('ENABLE_FTS5')").fetchone()[0])


def _library(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _word(value: object) -> str:
    """A value if it is one plain word, else ``other``; ``""`` for none."""
    if not isinstance(value, str) or not value:
        return ""
    return value if _WORD.fullmatch(value) else "other"


def _terminal(where: Where) -> dict[str, Any]:
    return {
        "term": _word(where.environ.get("TERM")),
        "program": _word(where.environ.get("TERM_PROGRAM")),
        "colours": _word(where.environ.get("COLORTERM")),
        "multiplexer": next(
            (name for name, key in (("tmux", "TMUX"), ("screen", "STY")) if where.environ.get(key)), ""
        ),
        "ssh": "SSH_CONNECTION" in where.environ,
        "wsl": "WSL_DISTRO_NAME" in where.environ,
        "no_color": bool(where.environ.get("NO_COLOR")),
        "in_client": "CLAUDECODE" in where.environ,
        "encoding": _word(sys.stdout.encoding),
    }


def _finding(finding: Finding, who: Anonymous) -> dict[str, Any]:
    detail = who.text(finding.detail) if finding.code in TOLD else ""
    return {"code": finding.code, "level": finding.level, "detail": detail}


def _settings(where: Where, who: Anonymous) -> list[dict[str, Any]]:
    rows = []
    for name, setting in settings.load(where).items():
        value: object = list(setting.value) if isinstance(setting.value, tuple) else setting.value
        if setting.source != "default" and not isinstance(value, int):
            words = value if isinstance(value, list) else [value]
            value = "set" if name in PATHS else who.text(", ".join(map(_word, words)))
        rows.append({"key": name, "value": value, "source": setting.source})
    return rows


def _counts(where: Where) -> dict[str, Any]:
    files = all_files(where)
    sizes = sorted((file.size for file in files if not file.agent), reverse=True)
    kinds = Counter(link.kind if link.kind in KINDS else "other" for link in link_log.read_links(where))
    return {
        "projects": len({file.folder for file in files}),
        "sessions": len(sizes),
        "subagents": len(files) - len(sizes),
        "bytes": sum(file.size for file in files),
        "largest": sizes[0] if sizes else 0,
        "unlistable": len(locate.unlistable(where)),
        "links": dict(sorted(kinds.items())),
    }


def _state(where: Where) -> list[dict[str, Any]]:
    rows: dict[str, state_sizes.FolderSize] = {}
    for part in state_sizes.parts(where):
        name = part.name if part.name in PARTS else "other"
        known = rows.get(name, state_sizes.FolderSize(name, 0, 0))
        rows[name] = state_sizes.FolderSize(name, known.files + part.files, known.size + part.size)
    return [row._asdict() for row in rows.values()]


def _hooks(where: Where) -> list[dict[str, Any]]:
    found = figures(gather(where).transcripts, "", lambda _: True).hooks
    return [hook_data(row) for row in found if _WORD.fullmatch(row.event)]


def _log(where: Where) -> list[str]:
    """The last entries, without any line that is not of the form that we write."""
    found = []
    for entry in bug_log.entries(where)[-LAST_ENTRIES:]:
        first, *places = entry.strip("\n").split("\n")
        if _HEAD.fullmatch(first):
            found.append("\n".join([first, *(place for place in places if _PLACE.fullmatch(place))]))
    return found
