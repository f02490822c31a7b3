"""Findings as values: the defect, its record, and the way in which clients treat it.

The behaviour of clients was measured on 2.1.42, 2.1.112 and 2.1.329; the API's refusals are
documented by it and in docs/transcripts.md. ``error``: a client refuses the session, or sends what
the API refuses, or history is lost. ``warning``: mended or tolerated, at a price. ``note``: residue
that clients leave themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from resume_hooks.transcripts.nodes import Node

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")

LISTED = 200
"""Most findings of one kind that a document lists; ``count`` is of all."""


class Kind(NamedTuple):
    """A kind of defect. ``consequence``: how clients and the API treat it; ``repairable``: a repair undoes it."""

    code: str
    severity: Severity
    consequence: str
    repairable: bool = True

    def in_node(self, node: Node, message: str) -> Defect:
        """A defect of this kind in one record."""
        return Defect(self, message, node.number, node.uuid)


class Defect(NamedTuple):
    """One defect. ``record`` is a 0-based line number, None if no single record is meant."""

    kind: Kind
    message: str
    record: int | None = None
    uuid: str = ""


class DefectGroup(NamedTuple):
    """The findings of one kind, in the order of the file."""

    kind: Kind
    findings: tuple[Defect, ...]


class DefectReport(NamedTuple):
    """The findings in one session."""

    session_id: str
    session_file: str
    groups: tuple[DefectGroup, ...]

    @property
    def clean(self) -> bool:
        """Whether every finding is a note, which needs no attention."""
        return all(group.kind.severity == "note" for group in self.groups)

    def count(self, severity: Severity) -> int:
        """The number of findings of a severity."""
        return sum(len(group.findings) for group in self.groups if group.kind.severity == severity)


def report_findings(session_id: str, session_file: str, findings: Iterable[Defect]) -> DefectReport:
    """Gather findings by kind, the worst first."""
    by_kind: dict[Kind, list[Defect]] = {}
    for finding in findings:
        by_kind.setdefault(finding.kind, []).append(finding)
    groups = []
    for kind, found in by_kind.items():
        groups.append(DefectGroup(kind, tuple(sorted(found, key=_place_of_finding))))
    groups.sort(
        key=lambda group: (
            SEVERITIES.index(group.kind.severity),
            _place_of_finding(group.findings[0]),
        )
    )
    return DefectReport(session_id, session_file, tuple(groups))


def _place_of_finding(finding: Defect) -> int:
    if finding.record is None:
        return -1
    return finding.record
