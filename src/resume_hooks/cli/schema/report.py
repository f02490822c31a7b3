"""The report that doctor makes for a bug report."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from resume_hooks.cli.schema.base import Strict
from resume_hooks.cli.schema.stats import HookOfStats, StatePart


class Versions(Strict):
    """What runs."""

    engine: str
    plugin: list[str] = Field(description="one for each copy that the client has")
    client: str = Field(description="empty where claude is not on PATH")
    python: str
    implementation: str
    system: str
    sqlite: str
    fts5: bool
    libraries: dict[str, str]


class TerminalKind(Strict):
    """What kind of terminal it is."""

    term: str
    program: str
    colours: str
    multiplexer: str
    ssh: bool
    wsl: bool
    no_color: bool
    in_client: bool
    encoding: str


class ReportedFinding(Strict):
    """A finding; the detail is left out where it could name something of the user's."""

    code: str
    level: Literal["ok", "note", "problem"]
    detail: str


class ReportedSetting(Strict):
    """A setting; of a path only that it is set."""

    key: str
    value: int | str | list[str]
    source: Literal["default", "file", "environment", "plugin"]


class ReportedCounts(Strict):
    """How much there is."""

    projects: int
    sessions: int
    subagents: int
    bytes: int
    largest: int = Field(description="bytes of the largest session")
    unlistable: int
    links: dict[str, int] = Field(description="links between sessions by kind")


class Report(Strict):
    """A report without content: no title, prompt, path of a project or name of a user."""

    report: int = Field(description="version of this form")
    made_at: str
    versions: Versions
    terminal: TerminalKind
    findings: list[ReportedFinding]
    settings: list[ReportedSetting]
    counts: ReportedCounts
    state: list[StatePart]
    hooks: list[HookOfStats]
    log: list[str] = Field(description="the last bugs: where in the code, nothing else")
