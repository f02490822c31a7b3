"""The schemas of the verbs that check, repair and set up."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from resume_hooks.cli.schema.base import FieldDeclarer, ReceiptSchema, StrictModel
from resume_hooks.maintenance import doctor
from resume_hooks.maintenance.fsck import findings
from resume_hooks.maintenance.fsck.findings import Severity
from resume_hooks.search.index import connect
from resume_hooks.settings import Setting

Level = Literal["ok", "note", "problem"]

defect_field = FieldDeclarer[findings.Defect]()


class Defect(StrictModel):
    """One defect of a session."""

    message: str = defect_field(lambda defect: defect.message)
    record: int | None = defect_field(lambda defect: defect.record_number, "0-based line number")
    uuid: str = defect_field(lambda defect: defect.uuid)


group_field = FieldDeclarer[findings.DefectGroup]()


class DefectKind(StrictModel):
    """A kind of defect, with the defects of this kind."""

    code: str = group_field(lambda group: group.kind.code)
    severity: Severity = group_field(lambda group: group.kind.severity)
    consequence: str = group_field(
        lambda group: group.kind.consequence, "the defect's effect on the clients and the API"
    )
    repairable: bool = group_field(lambda group: group.kind.is_repairable)
    count: int = group_field(lambda group: len(group.defects))
    findings: list[Defect] = group_field(
        lambda group: group.defects[: findings.MAX_LISTED_FINDINGS],
        f"the first {findings.MAX_LISTED_FINDINGS}",
    )


report_field = FieldDeclarer[findings.DefectReport]()


class FsckSession(StrictModel):
    """The defects of a session, worst first."""

    session_id: str = report_field(lambda report: report.session_id)
    session_file: str = report_field(lambda report: report.session_file)
    clean: bool = report_field(
        lambda report: report.has_only_notes, "true: the session has neither errors nor warnings"
    )
    errors: int = report_field(lambda report: report.count_findings("error"))
    warnings: int = report_field(lambda report: report.count_findings("warning"))
    notes: int = report_field(lambda report: report.count_findings("note"))
    kinds: list[DefectKind] = report_field(lambda report: report.groups)


class FsckSchema(StrictModel):
    """The checked sessions. With --repair, ``repair`` is the child that was, or would be, written."""

    sessions: list[FsckSession]
    unlistable: list[str] = Field(
        description="project folders that can't be listed: nothing in them was checked"
    )
    repair: ReceiptSchema | None
    lost: list[str] = Field(description="the contents that the repaired child could not keep")


setting_field = FieldDeclarer[Setting]()


class SettingRow(StrictModel):
    """A setting: its value, and where the value comes from."""

    key: str
    value: int | str | list[str] = setting_field(lambda setting: setting.value)
    source: Literal["default", "file", "environment", "plugin"] = setting_field(
        lambda setting: setting.source
    )
    about: str


class ConfigSchema(StrictModel):
    """The settings, and the file that stores them."""

    file: str
    settings: list[SettingRow]


class InstallSchema(StrictModel):
    """What the verb installed or removed. In a dry run, what it would install or remove.

    With --completion there is only a script.
    """

    plugin: str
    commands: list[str]
    ran: bool = Field(
        description=(
            "false: with --dry-run, or if claude is not on PATH, so that the user must run the commands"
        )
    )
    goes: list[str] = Field(
        description="files and folders of ours that --purge removed, or would remove"
    )
    stays: list[str] = Field(
        description="files and folders that were not, or would not be, removed"
    )
    script: str = Field(description="with --completion: the shell's script")


class Versions(StrictModel):
    """The versions of the installed programs."""

    engine: str
    plugin: list[str] = Field(
        description="the version of each copy of the plugin that the client has"
    )
    client: str = Field(description="the version of the client; empty if claude is not on PATH")
    python: str
    implementation: str
    system: str
    sqlite: str
    libraries: dict[str, str]


class ReportedSetting(StrictModel):
    """A setting that the user changed. If the value is a path, ``set`` is reported instead."""

    key: str
    value: int | str
    source: Literal["file", "environment", "plugin"]


class ReportedFinding(StrictModel):
    """The result of one check: ok, note (it works, with a remark) or problem (something does not work).

    ``code`` identifies the finding for programs and stays the same when the sentence is reworded.
    It is ``<name>-<level>``, or a different name if a check has several findings of that level.
    """

    level: Level
    detail: str
    code: str


class BugReport(StrictModel):
    """A report for a bug. It contains no titles, prompts, project paths or user names."""

    report: int = Field(description="version of this form")
    made_at: str
    versions: Versions
    findings: list[ReportedFinding] = Field(
        description="the results of the checks; a detail is empty if it could contain a name of the user's"
    )
    settings: list[ReportedSetting]
    log: list[str] = Field(
        description="the last bugs, each with the lines of our code at which it occurred"
    )


finding_field = FieldDeclarer[doctor.Finding]()


class Finding(StrictModel):
    """The result of one check: ok, note (it works, with a remark) or problem (something does not work).

    ``code`` identifies the finding for programs and stays the same when the sentence is reworded.
    It is ``<name>-<level>``, or a different name if a check has several findings of that level.
    """

    name: str = finding_field(lambda finding: finding.name)
    level: Level = finding_field(lambda finding: finding.level)
    detail: str = finding_field(lambda finding: finding.detail)
    remedy: str = finding_field(lambda finding: finding.remedy)
    code: str = finding_field(
        lambda finding: finding.code,
        "a name for the finding that stays the same when its sentence is reworded",
    )


index_field = FieldDeclarer[connect.IndexStatus]()


class IndexStatus(StrictModel):
    """The state of the search index. Sizes are in bytes.

    ``behind`` is the number of files that the index must still read or drop. ``vaulted`` is the
    number of indexed sessions that only the vault has.
    """

    file: str = index_field(lambda index: index.index_path)
    state: Literal["ready", "missing", "damaged", "newer"] = index_field(lambda index: index.state)
    size: int = index_field(lambda index: index.index_bytes)
    transcripts: int = index_field(lambda index: index.transcript_count)
    transcripts_size: int = index_field(lambda index: index.transcript_bytes)
    sessions: int = index_field(lambda index: index.session_count)
    records: int = index_field(lambda index: index.record_count)
    behind: int = index_field(
        lambda index: index.outdated_file_count,
        "the number of files that the index must still read or drop",
    )
    vaulted: int = index_field(
        lambda index: index.archived_session_count,
        "the number of indexed sessions that only the vault has",
    )
    bytes_read: int = Field(description="bytes read by this command")


class DoctorSchema(StrictModel):
    """The findings of doctor, in the order of the checks."""

    findings: list[Finding]
    report: BugReport | None = Field(description="with --bundle: the bug report")
    file: str = Field(description="the path of the written report; empty if none was written")
    index: IndexStatus | None = Field(
        description="with --index: the state of the index; nothing else is checked"
    )
