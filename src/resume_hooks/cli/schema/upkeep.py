"""The schemas of the verbs that check, repair and set up."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from resume_hooks.cli.schema.base import CommonFields, FieldsLike, ReceiptSchema, StrictModel
from resume_hooks.cli.with_fields import WithFields
from resume_hooks.maintenance.doctor import Finding
from resume_hooks.maintenance.fsck import findings
from resume_hooks.search.index.connect import IndexStatus

Level = Literal["ok", "note", "problem"]

report = CommonFields[findings.DefectReport]()


class FsckSession(StrictModel):
    """The defects of a session, worst first."""

    session_id: str
    session_file: str
    clean: bool = report(lambda each: each.has_only_notes, "no errors and no warnings")
    errors: int = report(lambda each: each.count_findings("error"))
    warnings: int = report(lambda each: each.count_findings("warning"))
    notes: int = report(lambda each: each.count_findings("note"))
    kinds: list[
        Annotated[
            findings.DefectKind,
            FieldsLike(
                consequence="its effect on the clients and the API",
                count=int,
                findings=(
                    list[
                        Annotated[
                            findings.Defect, FieldsLike(kind=None, record="0-based line number")
                        ]
                    ],
                    f"the first {findings.MAX_LISTED_FINDINGS}",
                ),
            ),
        ]
    ] = report(
        lambda each: [
            WithFields(
                kind, {"count": len(found), "findings": found[: findings.MAX_LISTED_FINDINGS]}
            )
            for kind, found in each.groups
        ]
    )


class FsckSchema(StrictModel):
    """The checked sessions; ``repair`` is the child that was, or would be, written."""

    sessions: list[FsckSession]
    unlistable: list[str] = Field(
        description="project folders that can't be listed: nothing in them was checked"
    )
    repair: ReceiptSchema | None
    lost: list[str] = Field(description="the contents that the repaired child could not keep")


class SettingRow(StrictModel):
    """A setting in force."""

    key: str
    value: int | str | list[str]
    source: Literal["default", "file", "environment", "plugin"]
    about: str


class ConfigSchema(StrictModel):
    """The settings in force and their file."""

    file: str
    settings: list[SettingRow]


class InstallSchema(StrictModel):
    """The installed or removed plugin, or the plan for it; with --completion only a script."""

    plugin: str
    commands: list[str]
    ran: bool = Field(
        description=(
            "false: --dry-run, or claude is not on PATH and the commands are for the user to run"
        )
    )
    goes: list[str] = Field(
        description="files and folders of ours that --purge removed, or would remove"
    )
    stays: list[str] = Field(description="files and folders that are still there, or would be")
    script: str = Field(description="with --completion: the shell's script")


class Versions(StrictModel):
    """The versions of the installed programs."""

    engine: str
    plugin: list[str] = Field(description="one for each copy that the client has")
    client: str = Field(description="empty if claude is not on PATH")
    python: str
    implementation: str
    system: str
    sqlite: str
    libraries: dict[str, str]


class ReportedSetting(StrictModel):
    """A setting that the user changed; a path is not shown."""

    key: str
    value: int | str
    source: Literal["file", "environment", "plugin"]


class BugReport(StrictModel):
    """A report without content: no titles, prompts, project paths or user names."""

    report: int = Field(description="version of this form")
    made_at: str
    versions: Versions
    findings: list[Annotated[Finding, FieldsLike(name=None, remedy=None, level=Level)]] = Field(
        description="a detail is omitted if it could name something of the user's"
    )
    settings: list[ReportedSetting]
    log: list[str] = Field(description="the last bugs: only their places in the code")


class DoctorSchema(StrictModel):
    """The findings of doctor, in the order of the checks."""

    findings: list[
        Annotated[
            Finding,
            FieldsLike(level=Level, code="the finding's stable name, whatever the sentence says"),
        ]
    ]
    report: BugReport | None = Field(description="with --bundle")
    file: str = Field(description="the path of the written report; empty without one")
    index: (
        Annotated[
            IndexStatus,
            FieldsLike(
                state=Literal["ready", "missing", "damaged", "newer"],
                behind="files to be read or dropped",
                vaulted="sessions in it of which only the vault has a copy",
                bytes_read=(int, "bytes read by this command"),
            ),
        ]
        | None
    ) = Field(description="with --index: its state; nothing else is checked then")
