"""How things stand: doctor, fsck, settings, installation."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from resume_hooks.cli.schema.base import Strict
from resume_hooks.cli.schema.report import Report
from resume_hooks.cli.schema.writes import Receipt


class Finding(Strict):
    """One finding of doctor."""

    name: str
    level: Literal["ok", "note", "problem"]
    detail: str
    remedy: str
    code: str = Field(description="stable: what was found, whatever the sentence says")


class Doctor(Strict):
    """The findings of doctor, in the order checked."""

    findings: list[Finding]
    report: Report | None = Field(description="with --bundle")
    file: str = Field(description="where the report was written; empty where it was not")


class FsckFinding(Strict):
    """One defect."""

    record: int | None = Field(description="0-based line number")
    uuid: str
    message: str


class FsckKind(Strict):
    """The defects of one kind."""

    code: str
    severity: Literal["error", "warning", "note"]
    consequence: str = Field(description="what the clients and the API do with it")
    repairable: bool
    count: int
    findings: list[FsckFinding] = Field(description="the first 200")


class FsckSession(Strict):
    """What is broken in a session, the worst first."""

    session_id: str
    session_file: str
    clean: bool = Field(description="no errors and no warnings")
    errors: int
    warnings: int
    notes: int
    kinds: list[FsckKind]


class Fsck(Strict):
    """The sessions looked at; ``repair`` is the child that was, or would be, written."""

    sessions: list[FsckSession]
    unlistable: list[str] = Field(description="project folders that can't be listed: nothing in them was looked at")
    repair: Receipt | None
    lost: list[str] = Field(description="what the repaired child could not keep")


class SettingRow(Strict):
    """A setting in force."""

    key: str
    value: int | str | list[str]
    source: Literal["default", "file", "environment", "plugin"]
    about: str


class Config(Strict):
    """The settings in force and the file that keeps them."""

    file: str
    settings: list[SettingRow]


class Completion(Strict):
    """What makes a shell complete."""

    shell: Literal["bash", "zsh", "fish"]
    script: str


class Installation(Strict):
    """What install or uninstall did."""

    plugin: str
    commands: list[str]
    ran: bool = Field(description="false: --dry-run, or claude is not on PATH and the commands are for the user to run")
    goes: list[str] = Field(description="files and folders of ours that --purge removed, or would remove")
    stays: list[str] = Field(description="folders of ours that are still there, or would be")
