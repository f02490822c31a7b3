"""The forms of doctor and of its bug report."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from resume_hooks.cli.schema.base import Like, Strict
from resume_hooks.maintenance.doctor import Finding

Level = Literal["ok", "note", "problem"]


class Versions(Strict):
    """What runs."""

    engine: str
    plugin: list[str] = Field(description="one for each copy that the client has")
    client: str = Field(description="empty where claude is not on PATH")
    python: str
    implementation: str
    system: str
    sqlite: str
    libraries: dict[str, str]


class ReportedSetting(Strict):
    """A setting that somebody set; of a path only that it is."""

    key: str
    value: int | str
    source: Literal["file", "environment", "plugin"]


class BugReport(Strict):
    """A report without content: no title, prompt, path of a project or name of a user."""

    report: int = Field(description="version of this form")
    made_at: str
    versions: Versions
    findings: list[Annotated[Finding, Like(name=None, remedy=None, level=Level)]] = Field(
        description="a detail is left out where it could name something of the user's"
    )
    settings: list[ReportedSetting]
    log: list[str] = Field(description="the last bugs: where in the code, nothing else")


class DoctorForm(Strict):
    """The findings of doctor, in the order checked."""

    findings: list[Annotated[Finding, Like(level=Level, code="stable: what was found, whatever the sentence says")]]
    report: BugReport | None = Field(description="with --bundle")
    file: str = Field(description="where the report was written; empty where it was not")
