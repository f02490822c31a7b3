"""A session's defects as values: each with its record and its effect on clients.

The clients' behaviour was measured on 2.1.42, 2.1.112 and 2.1.329. The API's refusals are
documented in its reference and in docs/transcripts.md. ``error``: a client refuses the session, the
API refuses a message, or history is lost. ``warning``: clients repair or tolerate it, at a cost.
``note``: clients write such records themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from resume_hooks.transcripts.nodes import Node

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")

MAX_LISTED_FINDINGS = 200
"""The maximum number of findings of one kind to list in a document; ``count`` includes all findings."""


class DefectKind(NamedTuple):
    """A kind of defect. ``consequence`` is its effect on clients and the API. ``repairable``: a repair removes it."""

    code: str
    severity: Severity
    consequence: str
    repairable: bool = True

    def defect_in_node(self, node: Node, message: str) -> Defect:
        """Return a defect of this kind in one record."""
        return Defect(self, message, node.number, node.uuid)


class Defect(NamedTuple):
    """One defect. ``record`` is a 0-based line number, or None if the defect does not concern a single record."""

    kind: DefectKind
    message: str
    record: int | None = None
    uuid: str = ""


class DefectGroup(NamedTuple):
    """The findings of one kind, in file order."""

    kind: DefectKind
    findings: tuple[Defect, ...]


class DefectReport(NamedTuple):
    """The findings of one session."""

    session_id: str
    session_file: str
    groups: tuple[DefectGroup, ...]

    @property
    def has_only_notes(self) -> bool:
        """Whether every finding is a note, which needs no attention."""
        return all(group.kind.severity == "note" for group in self.groups)

    def count_findings(self, severity: Severity) -> int:
        """Return the number of findings of a severity."""
        return sum(len(group.findings) for group in self.groups if group.kind.severity == severity)


def group_findings(session_id: str, session_file: str, findings: Iterable[Defect]) -> DefectReport:
    """Group findings by kind, the most severe first."""
    by_kind: dict[DefectKind, list[Defect]] = {}
    for finding in findings:
        by_kind.setdefault(finding.kind, []).append(finding)
    groups = []
    for kind, defects in by_kind.items():
        groups.append(DefectGroup(kind, tuple(sorted(defects, key=_line_number_or_start))))
    groups.sort(
        key=lambda group: (
            SEVERITIES.index(group.kind.severity),
            _line_number_or_start(group.findings[0]),
        )
    )
    return DefectReport(session_id, session_file, tuple(groups))


def _line_number_or_start(finding: Defect) -> int:
    if finding.record is None:
        return -1
    return finding.record
